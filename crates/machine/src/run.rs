//! Starts a machine, watches it, and ends it when it exceeds its limits.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use flight::Event;
use flight::frame::Kind;
use flight::job::ON_HOST;
use flight::profile::{FUNCTIONS_VARIABLE, MAX_BYTES, PATH_VARIABLE, pack_functions};
use model::{Bytes, Limits, Millis};
use rustix::termios::{self, OptionalActions};

use crate::arguments::{Console, arguments};
use crate::clock::{Clock, starved, waited};
use crate::monitor::{Heard, Monitor};
use crate::process::{KILL_LIMIT, Process, tied};
use crate::streams;
use crate::tail::Tail;
use crate::words::quote_file;
use crate::{
    CONSOLE_FILE, EMULATOR_FILE, Ending, Engine, Error, Exact, FUNCTIONS_FILE, How, Limit,
    PROFILE_FILE, RECORDER_FILE, Session, Vm,
};

/// Time between two readings of the recorder and checks of the limits.
const TICK: Duration = Duration::from_millis(50);
/// The least free space for the recording with which a machine is started.
const ROOM: Bytes = Bytes::mib(64);
/// If a machine ended with less free space than this, its recording may be cut short.
const NO_ROOM: Bytes = Bytes::mib(4);
/// The host's messages of a full disk and of a lack of memory (`errno(3)`).
const FULL: &str = "No space left on device";
const NO_MEMORY: &str = "Cannot allocate memory";
/// The largest console output of a guest. More would fill the disk.
const CONSOLE_LIMIT: Bytes = Bytes::mib(64);
/// The largest profile. The plugin stops at half of this, so a larger file is not from the plugin.
const PROFILE_LIMIT: Bytes = Bytes(2 * MAX_BYTES as u64);
/// The most that QEMU may write to its standard error.
const MESSAGES_LIMIT: Bytes = Bytes::mib(16);
/// An unlimited time.
const NEVER: Millis = Millis(u64::MAX);
/// QEMU's warning if all CPUs of an exact machine are halted and no timer is set (`start_vcpu_warp_timer` in
/// `accel/tcg/icount-common.c`). QEMU prints it only once, so the guest may have continued.
const NO_TIMERS: &str = "icount sleep disabled and no active timers";

/// Runs a machine to its end, and passes each event to `watch` soon after the guest recorded it. Returns within the
/// limits, whatever guest and emulator do. QEMU has then ended, unless a remark of the ending says otherwise. If
/// faultline ends first, QEMU is killed. Fails when the host cannot run it. Failures after the start are endings.
pub fn run(vm: &Vm<'_>, watch: &mut dyn FnMut(&Event)) -> Result<Ending, Error> {
    let mut command = tied(vm.emulator.path());
    if let Engine::Exact(exact) = vm.engine {
        exact.check(vm)?;
        command.env("LD_PRELOAD", &exact.clock);
        command.env(PATH_VARIABLE, vm.directory.join(PROFILE_FILE));
        if let Some(path) = write_functions(exact, vm.directory)? {
            command.env(FUNCTIONS_VARIABLE, path);
        }
    }
    let files = Files::create(vm.directory, vm.recorder)?;
    command.args(arguments(vm, Console::File));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(files.messages);
    let mut process = Process::start(command)?;
    let pipes = process.pipes();
    let monitor = pipes.map(|(input, output)| Monitor::attach(input, output));
    let watched = Watched::of(vm, vm.limits);
    Watch::new(watched, process, monitor, files.recorder).until_the_end(watch)
}

/// Runs a session on this host to its end, as [`run`] does with a machine. The job is in the directory. If faultline ends
/// first, the agent ends what it started.
pub fn run_on_host(session: &Session<'_>, watch: &mut dyn FnMut(&Event)) -> Result<Ending, Error> {
    let &Session { agent, directory, recorder, limits, streams } = session;
    let files = Files::create(directory, recorder)?;
    let path = directory.join(CONSOLE_FILE);
    let console = File::options().append(true).open(&path).map_err(Error::file(&path))?;
    let mut command = Command::new(agent);
    command.arg(ON_HOST).arg(directory);
    // Ctrl-C is for faultline. The agent ends when its standard input does.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(console);
    if streams {
        streams::pass(&mut command).map_err(Error::file(agent))?;
    }
    let process = Process::start_agent(command, agent)?;
    let watched = Watched { directory, recorder, limits, clock: Clock::wall(), is_host: true };
    Watch::new(watched, process, None, files.recorder).until_the_end(watch)
}

/// Writes the list of functions, if the plugin needs it. Returns its path.
fn write_functions(exact: &Exact, directory: &Path) -> Result<Option<PathBuf>, Error> {
    let plugin = exact.plugin.as_ref().filter(|plugin| plugin.stacks);
    let Some(plugin) = plugin.filter(|plugin| !plugin.functions.is_empty()) else {
        return Ok(None);
    };
    let path = directory.join(FUNCTIONS_FILE);
    fs::write(&path, pack_functions(&plugin.functions)).map_err(Error::file(&path))?;
    Ok(Some(path))
}

/// Runs a machine interactively, with its console on our standard input and output. C-a x ends it, C-a c
/// switches to QEMU's monitor. Only the boot limit applies. Any successful exit of QEMU counts as
/// [`How::PoweredOff`]. Fails as [`run`] does, and for exact machines.
pub fn run_interactive(vm: &Vm<'_>) -> Result<Ending, Error> {
    if matches!(vm.engine, Engine::Exact(_)) {
        return Err(Error::ExactTerminal);
    }
    let files = Files::create(vm.directory, vm.recorder)?;
    let mut command = tied(vm.emulator.path());
    command.args(arguments(vm, Console::Terminal));
    let limits = Limits { boot: vm.limits.boot, run: NEVER, shutdown: NEVER };
    let terminal = termios::tcgetattr(io::stdin()).ok();
    let process = Process::start(command)?;
    let watched = Watched::of(vm, &limits);
    let ending = Watch::new(watched, process, None, files.recorder).until_the_end(&mut |_| {});
    if let Some(terminal) = terminal {
        // A killed QEMU leaves the terminal raw, so its settings are restored. This fails only if the terminal is
        // gone.
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, &terminal);
    }
    ending
}

/// The files of a machine that are open before it starts.
struct Files {
    recorder: File,
    messages: File,
}

impl Files {
    /// Creates the files, if there is enough space.
    fn create(directory: &Path, size: Bytes) -> Result<Self, Error> {
        let free = room(directory).map_err(Error::file(directory))?;
        let needed = ROOM.min(size);
        if free < needed {
            let directory = directory.to_owned();
            return Err(Error::NoSpace { directory, free, needed });
        }
        let create = |name| {
            let path = directory.join(name);
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(true);
            options.open(&path).map_err(Error::file(&path))
        };
        let recorder = create(RECORDER_FILE)?;
        let path = directory.join(RECORDER_FILE);
        recorder.set_len(size.0).map_err(Error::file(&path))?;
        create(CONSOLE_FILE)?;
        let profile = directory.join(PROFILE_FILE);
        match fs::remove_file(&profile) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::file(&profile)(error));
            }
            _ => {}
        }
        let messages = create(EMULATOR_FILE)?;
        Ok(Self { recorder, messages })
    }
}

/// The free space on the file system of `directory`.
fn room(directory: &Path) -> io::Result<Bytes> {
    let file_system = rustix::fs::statvfs(directory)?;
    Ok(Bytes(file_system.f_bavail.saturating_mul(file_system.f_frsize)))
}

/// What is watched: a machine, or a session on this host.
struct Watched<'a> {
    directory: &'a Path,
    /// The size of the recorder.
    recorder: Bytes,
    limits: &'a Limits,
    clock: Clock,
    is_host: bool,
}

impl<'a> Watched<'a> {
    fn of(vm: &Vm<'a>, limits: &'a Limits) -> Self {
        let clock = match vm.engine {
            Engine::Exact(_) => Clock::cpu(),
            Engine::Kvm | Engine::Tcg => Clock::wall(),
        };
        Self { directory: vm.directory, recorder: vm.recorder, limits, clock, is_host: false }
    }

    /// The name of the process.
    fn process(&self) -> &'static str {
        if self.is_host { "the agent" } else { "QEMU" }
    }
}

/// A running machine or session.
struct Watch<'a> {
    of: Watched<'a>,
    process: Process,
    monitor: Option<Monitor>,
    recorder: Tail,
    started: Instant,
    /// The current limit; the clock has the time since it began.
    limit: Limit,
}

impl<'a> Watch<'a> {
    fn new(of: Watched<'a>, process: Process, monitor: Option<Monitor>, recorder: File) -> Self {
        let limit = Limit::Boot(of.clock.time(of.limits.boot));
        let (recorder, started) = (Tail::new(recorder), Instant::now());
        Self { of, process, monitor, recorder, started, limit }
    }

    fn until_the_end(mut self, watch: &mut dyn FnMut(&Event)) -> Result<Ending, Error> {
        loop {
            // The status is read before the frames, so that the last frames are read.
            let status = self.process.status();
            self.read(watch)?;
            self.of.clock.tick(self.process.id());
            if let Some(status) = status {
                let heard = self.monitor.take().map(Monitor::last_words);
                let how = self.ended(status, heard);
                tracing::debug!("{} ended with {status}: {how:?}", self.of.process());
                self.check_host(&how)?;
                return Ok(self.ending(how, Vec::new()));
            }
            if let Some(how) = self.too_much() {
                let (how, time) = self.blamed(how);
                let remarks = self.kill();
                tracing::debug!("{} was killed: {how:?}", self.of.process());
                self.check_host(&how)?;
                self.read(watch)?;
                return Ok(Ending { time, ..self.ending(how, remarks) });
            }
            thread::sleep(TICK);
        }
    }

    /// Reads the new frames, and switches to the limit that applies after them.
    fn read(&mut self, watch: &mut dyn FnMut(&Event)) -> Result<(), Error> {
        let mut limit = self.limit;
        let read = self.recorder.read(|frame| {
            if frame.kind != Kind::Event as u16 {
                return;
            }
            let Ok(event) = Event::decode(frame.payload) else { return };
            limit = match (limit, &event) {
                (Limit::Boot(_), Event::Hello(_)) => {
                    Limit::Run(self.of.clock.time(self.of.limits.run))
                }
                (Limit::Boot(_) | Limit::Run(_), Event::Bye { .. }) => {
                    Limit::Shutdown(self.of.clock.time(self.of.limits.shutdown))
                }
                // A repeated event does not extend the limit.
                _ => limit,
            };
            watch(&event);
        });
        read.map_err(Error::file(&self.of.directory.join(RECORDER_FILE)))?;
        if limit != self.limit {
            self.limit = limit;
            self.of.clock.restart();
        }
        Ok(())
    }

    /// The reason why the machine must be ended; `None` if there is none.
    fn too_much(&self) -> Option<How> {
        let (Limit::Boot(limit) | Limit::Run(limit) | Limit::Shutdown(limit)) = self.limit;
        if self.of.clock.has_passed(limit) {
            return Some(How::TimedOut(self.limit));
        }
        if let Some(stall) = self.of.clock.stall() {
            let is_halted = stall.is_sleep() && self.words().contains(NO_TIMERS);
            return Some(if is_halted { How::Halted } else { How::Stalled(stall.to_string()) });
        }
        let is_longer = |name, limit: Bytes| {
            let file = fs::metadata(self.of.directory.join(name));
            file.is_ok_and(|file| file.len() > limit.0)
        };
        if is_longer(CONSOLE_FILE, CONSOLE_LIMIT) {
            let why = format!("the guest wrote more than {CONSOLE_LIMIT} to its console");
            return Some(How::Died(why));
        }
        if is_longer(EMULATOR_FILE, MESSAGES_LIMIT) {
            let words = self.words();
            let why = format!("QEMU wrote more than {MESSAGES_LIMIT} of messages: {words}");
            return Some(How::Died(why));
        }
        is_longer(PROFILE_FILE, PROFILE_LIMIT)
            .then(|| How::Died(format!("the plugin wrote a profile of more than {PROFILE_LIMIT}")))
    }

    /// The end by a limit of the host's time, or the host's fault if it left QEMU too little CPU time. For an end
    /// by a limit also says what time QEMU had. Other ends are returned as they are.
    fn blamed(&self, how: How) -> (How, Option<String>) {
        let length = self.started.elapsed();
        match (&how, &self.of.clock) {
            _ if self.of.is_host => (how, None),
            (How::TimedOut(limit), Clock::Wall(_)) => {
                match starved(waited(self.process.id()), length) {
                    Ok(why) => (How::Stalled(format!("{limit}: {why}")), None),
                    Err(why) => (how, Some(why)),
                }
            }
            (How::TimedOut(_), Clock::Cpu(cpu)) => (how, Some(cpu.share_of(length))),
            _ => (how, None),
        }
    }

    /// Kills QEMU. Returns remarks on anomalies.
    fn kill(&mut self) -> Vec<String> {
        let mut remarks = Vec::new();
        if !self.process.kill() {
            let (name, id, limit) = (self.of.process(), self.process.id(), KILL_LIMIT.as_secs());
            remarks
                .push(format!("{name} (process {id}) did not end within {limit}s after SIGKILL"));
        }
        let heard = self.monitor.take().map(Monitor::last_words);
        if heard.is_some_and(|heard| heard.stopped) {
            remarks.push("the guest's CPUs were stopped, by a user or by QEMU".to_owned());
        }
        remarks
    }

    /// How the machine ended, from QEMU's exit status and QMP events.
    fn ended(&self, status: ExitStatus, heard: Option<Heard>) -> How {
        let cause = heard.as_ref().and_then(|heard| heard.cause.as_deref());
        match cause {
            // QEMU crashed or was killed by a signal, which says nothing about the guest.
            _ if status.signal().is_some() => How::Crashed(self.death(status, cause)),
            Some("host-signal") => How::Crashed(self.death(status, cause)),
            _ if !status.success() => How::Died(self.death(status, cause)),
            Some("guest-shutdown") => How::PoweredOff,
            Some("guest-reset" | "guest-panic") => How::Reset,
            None if heard.is_none() => How::PoweredOff,
            _ => How::Died(self.death(status, cause)),
        }
    }

    fn death(&self, status: ExitStatus, cause: Option<&str>) -> String {
        let mut text = format!("{} ended with {status}", self.of.process());
        if let Some(cause) = cause {
            text += &format!(" ({cause})");
        }
        let words = self.words();
        if !words.is_empty() {
            text += &format!(": {words}");
        }
        text
    }

    /// The messages of QEMU, or of the agent.
    fn words(&self) -> String {
        let name = if self.of.is_host { CONSOLE_FILE } else { EMULATOR_FILE };
        quote_file(&self.of.directory.join(name)).unwrap_or_default()
    }

    /// Checks that the host had the disk space and the memory for this machine.
    fn check_host(&self, how: &How) -> Result<(), Error> {
        let (directory, words) = (self.of.directory.to_owned(), self.words());
        let free = room(&directory).map_err(Error::file(&directory))?;
        if free < NO_ROOM || words.contains(FULL) {
            return Err(Error::NoSpace { directory, free, needed: self.of.recorder });
        }
        match matches!(how, How::Died(_)) && words.contains(NO_MEMORY) {
            true => Err(Error::NoMemory(words)),
            false => Ok(()),
        }
    }

    fn ending(&self, how: How, remarks: Vec<String>) -> Ending {
        Ending { how, wall: self.started.elapsed(), remarks, time: None }
    }
}

#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;
