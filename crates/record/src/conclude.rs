//! Turns the files that a boot left in its directory into a [`Boot`] for the store.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use kernelfiles::kallsyms::Symbols;
use kernelfiles::klog;
use kernels::digest;
use machine::{Ending, How, Limit};
use model::{
    Boot, BootFacts, Execution, HostLoad, Mode, Note, NoteKind, Outcome, Problem, ProblemKind,
    Profile, Topology,
};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use crate::clock;
use crate::collect::{Recording, collect};
use crate::exact::read_counted;
use crate::memory::Memory;
use crate::{metrics, profile};

/// The description of a boot before it begins. It is written beside the recording, so that an interrupted
/// boot can be identified.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The name of the boot's experiment.
    pub experiment: String,
    /// The name of the boot's variant.
    pub variant: String,
    /// The boot index: the number of the boot of its variant, from 0.
    #[serde(rename = "replicate")]
    pub boot_index: u32,
    /// The boot's block in the schedule.
    pub block: u32,
    /// The start of the boot, in seconds since 1970.
    pub started: u64,
    /// The names of the job's workloads, each with its number of iterations.
    pub workloads: Vec<(String, u32)>,
    /// Whether the only modules that taint the kernel are our own out-of-tree modules.
    #[serde(default)]
    pub own_modules: bool,
    /// How the boot's figures are compared.
    #[serde(default, skip_serializing_if = "Mode::is_measured")]
    pub mode: Mode,
    /// Facts of the kernel. Facts of the guest are added from the recording.
    pub facts: BootFacts,
}

/// The contents of the file `boot.json`.
#[derive(Serialize, Deserialize)]
struct Sealed {
    /// SHA-256 of the description as JSON without white space, in hexadecimal.
    sha256: String,
    head: Head,
}

/// The outcome of a boot whose counts do not fit its recording.
const OTHER_CUTS: &str = "the plugin counted other cuts than the agent recorded: a program executed the agent's marks, \
                          or wrote into its recording";
/// The largest size of a console that is stored in full, in bytes. Of a longer one, only its start
/// and its end are stored.
const MAX_CONSOLE: usize = 4 << 20;
/// The largest number of characters of a console's line in an outcome.
const MAX_LINE: usize = 200;

impl Head {
    /// Returns the path of the description in a boot's directory.
    pub fn path(directory: &Path) -> PathBuf {
        directory.join("boot.json")
    }

    /// Writes the description into a boot's directory, atomically. Fails when it cannot be written.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        let mut file = NamedTempFile::new_in(directory)?;
        let sealed = Sealed { sha256: self.digest()?, head: self.clone() };
        file.write_all(&serde_json::to_vec(&sealed)?)?;
        file.as_file().sync_all()?;
        file.persist(Self::path(directory))?;
        Ok(())
    }

    /// Reads the description from a boot's directory. Fails when it is missing, damaged or changed.
    pub fn read(directory: &Path) -> io::Result<Self> {
        let Sealed { sha256, head } = serde_json::from_slice(&fs::read(Self::path(directory))?)?;
        if head.digest()? != sha256 {
            return Err(io::Error::other("it was changed or damaged: its digest differs"));
        }
        Ok(head)
    }

    fn digest(&self) -> io::Result<String> {
        Ok(digest(&serde_json::to_vec(self)?))
    }
}

/// Returns a load without values, for a host that was not observed.
pub fn unknown_load() -> HostLoad {
    HostLoad { load_before: f64::NAN, load_after: f64::NAN, steal: f64::NAN, wall: f64::NAN }
}

/// What is needed to assign the plugin's counts to functions and nodes.
#[derive(Clone, Copy)]
pub struct Counting<'a> {
    /// The kernel's functions, without modules.
    pub symbols: &'a Symbols,
    /// What is known of the kernel's memory, if transfers of lines were counted.
    pub memory: Option<&'a Memory>,
    /// The CPUs and nodes of the machine.
    pub topology: &'a Topology,
    /// The functions whose executions are kept by instruction.
    pub lines: &'a [String],
}

/// Turns a recording into a boot. `ending` is `None` if the end of the machine was not observed.
/// `counting` is `None` if instructions were not counted, or their counts cannot be read. Fails
/// when the recording or the console cannot be read. If there should be counts but they are missing
/// or damaged, the outcome is `Failed`.
pub fn conclude(
    head: Head,
    directory: &Path,
    ending: Option<&Ending>,
    host: HostLoad,
    counting: Option<Counting<'_>>,
) -> io::Result<Boot> {
    let log = machine::read_log(directory)?;
    let mut recording = collect(&log, &head.workloads);
    recording.failures.extend(metrics::ambiguous(&recording.samples));
    let console = read_console(&directory.join(machine::CONSOLE_FILE))?;
    // In exact mode the guest's clock is the number of instructions, and a session has the host's own clock, which began
    // long before.
    let has_clock = head.facts.provenance.execution != Some(Execution::Native);
    let wall = ending.map(|ending| ending.wall).filter(|_| counting.is_none() && has_clock);
    if recording.unsound.is_none() && has_clock {
        let is_exact = head.mode == Mode::Exact;
        recording.unsound = clock::contradiction(&console, recording.lived, wall, is_exact);
    }
    let mut outcome = outcome(&head, &recording, &console, ending);
    if counting.is_none() && has_clock && recording.unsound.is_none() {
        let fault = clock::fault(&recording.log, recording.lived, wall);
        outcome = match (fault, outcome) {
            (Some(why), Outcome::Complete) => Outcome::Invalid(why),
            // Workloads' time limits use the same clock, so its fault may have caused the failure.
            (Some(why), Outcome::Partial(how) | Outcome::Failed(how)) => {
                Outcome::Invalid(format!("{why}; the boot itself failed: {how}"))
            }
            (_, outcome) => outcome,
        };
    }
    let expected = if head.own_modules { klog::EXTERNAL_MODULE } else { 0 };
    let problems = problems(&recording, &console, expected);
    let profiles = match counting.map(|counting| profiles(directory, &mut recording, counting)) {
        None => sampled(&recording),
        Some(Ok(profiles)) => profiles,
        Some(Err(why)) => {
            if outcome.counts() {
                outcome = Outcome::Failed(why);
            }
            Vec::new()
        }
    };
    let mut boot = Boot {
        variant: head.variant,
        boot_index: head.boot_index,
        block: head.block,
        started: head.started,
        outcome,
        facts: BootFacts { recording_digest: digest(&log), ..facts(head.facts, &recording) },
        host,
        problems,
        notes: notes(&recording, ending),
        samples: recording.samples,
        usage: recording.usage,
        chunks: recording.chunks,
        profiles,
        console: match recording.log.is_empty() {
            true => console,
            false => format!("{}\n=== console ===\n{console}", recording.log),
        },
    };
    if matches!(boot.outcome, Outcome::Partial(_)) {
        for (workload, _) in &recording.failures {
            forget(&mut boot, workload);
        }
    }
    Ok(boot)
}

/// Removes a workload's measurements from a boot.
fn forget(boot: &mut Boot, workload: &str) {
    boot.samples.retain(|it| it.workload != workload);
    boot.usage.retain(|it| it.workload != workload);
    boot.chunks.retain(|it| it.workload != workload);
    boot.profiles.retain(|it| it.workload != workload);
}

/// Returns the profile of each phase, and adds its instructions to the samples of the recording,
/// and its memory accesses and the slab caches to the series. The error says why there is no profile; the boot then
/// counts as failed.
fn profiles(
    directory: &Path,
    recording: &mut Recording,
    counting: Counting<'_>,
) -> Result<Vec<Profile>, String> {
    // With modules, only the guest knows the addresses of functions.
    let own = Symbols::parse(&recording.symbols);
    let symbols = if own.is_empty() { counting.symbols } else { &own };
    let counted = read_counted(directory).map_err(|error| error.to_string())?;
    recording.notes.extend(counted.intruder.as_ref().map(|process| {
        let name = profile::name_of_process(process);
        NoteKind::Profile.note(format!(
            "process {} (`{}`) executed a mark, which only the agent may do; it had no effect",
            process.id,
            name.escape_debug()
        ))
    }));
    let spans = &recording.spans;
    let profiles = profile::profiles(&counted, spans, symbols, counting.lines, counting.memory);
    let series = profile::series(&counted, spans, &counting.topology.homes());
    let (profiles, series) = profiles.zip(series).ok_or(OTHER_CUTS)?;
    recording.chunks.extend(series);
    recording.chunks.extend(profile::slots(&counted, spans));
    recording.samples.extend(profile::samples(&profiles));
    Ok(profiles)
}

/// Returns the sampled profile of each phase; empty if the guest was not profiled.
fn sampled(recording: &Recording) -> Vec<Profile> {
    let Some(sampling) = &recording.sampling else { return Vec::new() };
    sampling.profiles(&recording.spans, &Symbols::parse(&recording.symbols))
}

fn facts(kernel: BootFacts, recording: &Recording) -> BootFacts {
    let Some(hello) = recording.hello.clone() else {
        return kernel;
    };
    BootFacts {
        release: hello.release,
        version: hello.version,
        banner: hello.banner,
        cmdline: hello.cmdline,
        preemption: hello.preemption,
        cpus: hello.cpus,
        nodes: hello.nodes,
        memory: hello.memory,
        page_size: hello.page_size,
        ..kernel
    }
}

/// Returns the outcome of a boot: from the agent's report if there is one, else from a panic of the
/// kernel, else from how the machine ended.
fn outcome(head: &Head, recording: &Recording, console: &str, ending: Option<&Ending>) -> Outcome {
    if let Some(reason) = recording.unsound.as_ref().or(recording.failed.as_ref()) {
        return Outcome::Failed(reason.clone());
    }
    if recording.bye.is_some() {
        return of_workloads(head, recording);
    }
    let panic = klog::panic_line(console).or_else(|| klog::panic_line(&recording.log));
    if let Some(line) = panic {
        return Outcome::Panicked(line.to_owned());
    }
    match ending.map(|ending| &ending.how) {
        None => Outcome::Interrupted,
        Some(how @ (How::TimedOut(_) | How::Halted)) => Outcome::TimedOut(timed_out(how, console)),
        Some(How::PoweredOff | How::Reset) => {
            Outcome::Died("the guest ended before its job was complete".into())
        }
        Some(How::Died(how)) => Outcome::Died(how.clone()),
        Some(How::Crashed(how) | How::Stalled(how)) => Outcome::Invalid(how.clone()),
    }
}

/// Says which limit expired. If the agent did not start, or all CPUs halted, adds the last line of
/// the console, which shows where the boot hung.
fn timed_out(how: &How, console: &str) -> String {
    let last = console.lines().map(str::trim_end).rfind(|line| !line.is_empty());
    match (how, last) {
        (How::TimedOut(Limit::Run(_) | Limit::Shutdown(_)), _) => how.to_string(),
        (_, Some(line)) => {
            let line: String = line.chars().take(MAX_LINE).collect();
            format!("{how}; the last line on its console: {line}")
        }
        (_, None) => format!("{how}; its console is empty"),
    }
}

/// Returns the outcome of a complete job, by the number of workloads that failed.
fn of_workloads(head: &Head, recording: &Recording) -> Outcome {
    let reasons: Vec<&str> = recording.failures.iter().map(|(_, why)| &**why).collect();
    let reasons = reasons.join("; ");
    let ran = head.workloads.iter().filter(|(_, iterations)| *iterations > 0).count();
    match recording.failures.len() {
        0 => Outcome::Complete,
        failed if failed < ran => Outcome::Partial(reasons),
        _ => Outcome::Failed(reasons),
    }
}

/// Collects the notes of the agent, of the workloads and of the machine.
fn notes(recording: &Recording, ending: Option<&Ending>) -> Vec<Note> {
    let Recording { found, left, notes, .. } = recording;
    let mut notes = [&**found, left, notes].concat();
    let remarks = ending.into_iter().flat_map(|it| it.remarks.iter().chain(&it.time));
    notes.extend(remarks.map(|remark| NoteKind::Remark.note(remark)));
    if recording.log_cut {
        notes.push(NoteKind::Remark.note("the kernel's log was too long; its end is missing"));
    }
    notes
}

/// Returns the kernel's warnings from its log, and later ones from the console, which the agent
/// could no longer record. Also lists the kernel's taint, without the flags in `expected`, and
/// dropped series.
fn problems(recording: &Recording, console: &str, expected: u64) -> Vec<Problem> {
    let log = format!("{}{}", recording.log, after(console, &recording.log));
    let mut problems = klog::problems(&log);
    if let Some(text) = recording.bye.and_then(|flags| klog::taint(flags & !expected)) {
        problems.push(Problem { kind: ProblemKind::Taint, text });
    }
    if recording.series_dropped {
        let text = "the recorder was full: series end early, samples are complete".to_owned();
        problems.push(Problem { kind: ProblemKind::SeriesDropped, text });
    }
    problems
}

/// Returns the part of the console that is later than the log; the entire console if the log is
/// empty.
fn after<'a>(console: &'a str, log: &str) -> &'a str {
    let Some(last) = log.lines().filter_map(klog::stamp).next_back() else {
        return console;
    };
    let mut place = 0;
    for line in console.split_inclusive('\n') {
        if klog::stamp(line).is_some_and(|time| time > last) {
            return &console[place..];
        }
        place += line.len();
    }
    ""
}

/// Reads the console as text; empty if there is no file. If it exceeds [`MAX_CONSOLE`], only the
/// start and the end are returned.
fn read_console(path: &Path) -> io::Result<String> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        other => other?,
    };
    if bytes.len() <= MAX_CONSOLE {
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    let (start, end) = (&bytes[..MAX_CONSOLE / 2], &bytes[bytes.len() - MAX_CONSOLE / 2..]);
    Ok(format!("{}\n...\n{}", String::from_utf8_lossy(start), String::from_utf8_lossy(end)))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use flight::Event;
    use flight::event::Hello;
    use machine::Time;
    use model::Millis;
    use proptest::prelude::*;

    use super::*;
    use crate::collect::tests::{Writer, job, recorded};

    /// Returns the description of a boot with the job of [`recorded`].
    pub fn head() -> Head {
        Head {
            experiment: "e".into(),
            variant: "v".into(),
            boot_index: 3,
            block: 3,
            started: 1_700_000_000,
            workloads: job().into(),
            own_modules: false,
            mode: Mode::Measured,
            facts: BootFacts { kernel_digest: "5bd1".into(), ..BootFacts::default() },
        }
    }

    proptest! {
        /// A damaged description is refused, unless it still has the same meaning.
        #[test]
        fn changed_descriptions_are_refused(
            changes in prop::collection::vec((0..3, any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let directory = tempfile::tempdir().unwrap();
            head().write(directory.path()).unwrap();
            prop_assert_eq!(Head::read(directory.path()).unwrap(), head());
            let path = Head::path(directory.path());
            let mut bytes = fs::read(&path).unwrap();
            for (change, place, byte) in changes {
                let place = place.index(bytes.len());
                match change {
                    0 => bytes[place] ^= 1 << (byte % 8),
                    1 => drop(bytes.remove(place)),
                    _ => bytes.insert(place, byte),
                }
            }
            fs::write(&path, bytes).unwrap();
            if let Ok(read) = Head::read(directory.path()) {
                prop_assert_eq!(read, head());
            }
        }
    }

    /// Concludes a boot of measured mode with the job of [`recorded`] from this recording.
    fn concluded(log: &[u8]) -> Boot {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(machine::RECORDER_FILE), log).unwrap();
        let console = "[    9.000000] reboot: Power down\n";
        fs::write(directory.path().join(machine::CONSOLE_FILE), console).unwrap();
        let wall = Duration::from_secs(10);
        let ending = Ending { how: How::PoweredOff, wall, remarks: Vec::new(), time: None };
        conclude(head(), directory.path(), Some(&ending), unknown_load(), None).unwrap()
    }

    #[test]
    fn forged_times_are_not_the_hosts_fault() {
        assert_eq!(concluded(&recorded()).outcome, Outcome::Complete);
        let hour = 3_600_000_000_000;
        let forged = |last| {
            let mut writer = Writer::new();
            writer.event(1, Event::Hello(Hello::default()));
            writer.event(hour, Event::Begin { workload: 0, iteration: 0 });
            writer.event(last, Event::WorkloadFailed("it exited with status 1".into()));
            writer.event(last, Event::Bye { tainted: 0 });
            concluded(&writer.log).outcome
        };
        let failed =
            |why: &str| Outcome::Failed(format!("the recording contradicts itself: {why}"));
        assert_eq!(forged(2), failed("its time goes back from 3600.000 s to 0.000 s"));
        let late = "its last time is 3600.0 s after the start of the guest, but the kernel powered off after \
                    9.0 s";
        assert_eq!(forged(hour), failed(late));
    }

    #[test]
    fn a_message_in_both_log_and_console_is_listed_once() {
        let warning = "WARNING: CPU: 0 PID: 1 at mm/x.c:1 f+0x1/0x2";
        let recording = Recording {
            log: format!("[    1.000000] {warning}\n[    2.500000] quiet\n"),
            ..Recording::default()
        };
        let panic = "Kernel panic - not syncing: gone";
        let console = format!(
            "SeaBIOS\n[    1.000000] {warning}\n[    2.500000] quiet\n[    2.500001] {panic}\n"
        );
        let found = problems(&recording, &console, 0);
        let texts: Vec<_> = found.iter().map(|problem| &*problem.text).collect();
        assert_eq!(texts, [warning, panic]);
        assert_eq!(after(&console, ""), console);
        assert_eq!(after("no stamps", "[    1.0] x"), "");
    }

    #[test]
    fn a_boot_that_hangs_says_where() {
        let time = Time::Wall(Millis(180_000));
        let boot = How::TimedOut(Limit::Boot(time));
        let console = "SeaBIOS\n[    0.5] smp: Bringing up secondary CPUs ...\r\n\n";
        let said = timed_out(&boot, console);
        let expected = "the agent did not start within 3m; the last line on its console: \
                        [    0.5] smp: Bringing up secondary CPUs ...";
        assert_eq!(said, expected);
        assert!(timed_out(&boot, "").ends_with("; its console is empty"));
        assert!(timed_out(&boot, &"x".repeat(9999)).len() < 400);
        let run = timed_out(&How::TimedOut(Limit::Run(time)), "SeaBIOS\n");
        assert_eq!(run, "the job was not complete 3m after the agent started");
    }

    #[test]
    fn a_boot_that_exceeds_a_limit_says_what_time_it_had() {
        let how = How::TimedOut(Limit::Run(Time::Wall(Millis(180_000))));
        let time = Some("a thread of QEMU waited".to_owned());
        let ending = Ending { how, wall: Duration::ZERO, remarks: Vec::new(), time };
        let notes = notes(&Recording::default(), Some(&ending));
        assert_eq!(notes, [NoteKind::Remark.note("a thread of QEMU waited")]);
    }

    #[test]
    fn only_a_stalled_machine_is_the_hosts_fault() {
        let outcome = |how| {
            let ending = Ending { how, wall: Duration::ZERO, remarks: Vec::new(), time: None };
            let head = Head {
                experiment: String::new(),
                variant: String::new(),
                boot_index: 0,
                block: 0,
                started: 0,
                workloads: Vec::new(),
                own_modules: false,
                mode: Mode::Measured,
                facts: BootFacts::default(),
            };
            outcome(&head, &Recording::default(), "SeaBIOS\n", Some(&ending))
        };
        let why = "QEMU used no CPU time".to_owned();
        assert_eq!(outcome(How::Stalled(why.clone())), Outcome::Invalid(why));
        let Outcome::TimedOut(how) = outcome(How::Halted) else { panic!() };
        let expected = "all CPUs of the guest are halted, and no timer is set; the last line on its \
                        console: SeaBIOS";
        assert_eq!(how, expected);
    }
}
