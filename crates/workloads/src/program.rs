//! Runs another program, such as one of a distribution's packages. Its output and its time are limited. An error
//! names the program and quotes its output.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use guest::reason;
use guest::sys::{CpuTime, wait_with_time};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

/// The largest size of a program's standard output, in bytes.
const OUTPUT: usize = 16 << 20;
/// How much of the end of a program's standard error is kept, in bytes.
const SAID: usize = 4 << 10;
/// How many last lines of standard error an error quotes, besides the first line. The message may be followed by a
/// list of options or hints.
const LINES: usize = 4;
/// The directories that are searched for programs.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// A program to be run.
pub struct Program {
    name: String,
    command: Command,
    limit: Duration,
    together: bool,
}

/// The results of a program that succeeded.
#[derive(Debug)]
pub struct Output {
    /// What it wrote to standard output.
    pub text: String,
    /// The time from start to end.
    pub elapsed: Duration,
    /// The CPU time of the program and of the children that it waited for.
    pub spent: CpuTime,
}

/// Why a program has no result.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The program cannot be started.
    #[error("{program} cannot be started ({})", reason(.error))]
    Start { program: String, error: io::Error },
    /// The program cannot be watched.
    #[error("{program} cannot be watched ({})", reason(.error))]
    Watch { program: String, error: io::Error },
    /// The program exited with a failure status, or a signal killed it.
    #[error("{program} failed ({status}){}", told(.said))]
    Failed { program: String, status: ExitStatus, said: String },
    /// The program exceeded its time limit, and was killed.
    #[error("{program} took longer than {} s{}", .limit.as_secs_f64(), told(.said))]
    Timeout { program: String, limit: Duration, said: String },
    /// The program printed too much, and was killed.
    #[error("{program} printed more than {OUTPUT} bytes")]
    TooMuch { program: String },
    /// The output of the program is invalid.
    #[error("{program} printed unusable output: {problem}")]
    Garbage { program: String, problem: String },
}

fn told(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!("; its error output: {said}") }
}

impl Program {
    /// The program at a path, or with this name in the usual directories. It runs in the C locale, with an empty
    /// standard input and without a time limit.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let program = program.as_ref();
        let name = Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned();
        let mut command = Command::new(program);
        command.env("PATH", PATH).env("LC_ALL", "C").process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { name, command, limit: Duration::MAX, together: false }
    }

    /// Adds arguments to the command line.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.command.args(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of the program's environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs the program in a directory.
    #[must_use]
    pub fn directory(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// Runs the program as another user and group.
    #[must_use]
    pub fn user(mut self, user: u32, group: u32) -> Self {
        self.command.uid(user).gid(group);
        self
    }

    /// Kills the program and its descendants after this time.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Merges standard error into standard output, because some programs print results there.
    #[must_use]
    pub fn together(mut self) -> Self {
        self.together = true;
        self
    }

    #[cfg(test)]
    pub fn command(&self) -> &Command {
        &self.command
    }

    /// Runs the program to its end. Background processes that it leaves continue to run. Fails if the program cannot
    /// be started, fails, takes too long or prints too much. Then its process group is killed.
    pub fn run(self) -> Result<Output, ProgramError> {
        let program = self.name;
        let start = Instant::now();
        let mut started = match Started::new(self.command, self.together) {
            Ok(started) => started,
            Err(error) => return Err(ProgramError::Start { program, error }),
        };
        let attended = started.attend(start, self.limit);
        let Started { child, text, said } = started;
        if !matches!(attended, Ok(ProgramEnding::Itself)) {
            // This fails if no process is left, which is the goal.
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        }
        let waited = wait_with_time(&child);
        let elapsed = start.elapsed();
        let said = gist(&said.bytes);
        match attended.and_then(|ending| Ok((ending, waited?))) {
            Err(error) => Err(ProgramError::Watch { program, error }),
            Ok((ProgramEnding::Timeout, _)) => {
                Err(ProgramError::Timeout { program, limit: self.limit, said })
            }
            Ok((ProgramEnding::TooMuch, _)) => Err(ProgramError::TooMuch { program }),
            Ok((ProgramEnding::Itself, (status, _))) if !status.success() => {
                let said = if said.is_empty() { gist(&text.bytes) } else { said };
                Err(ProgramError::Failed { program, status, said })
            }
            Ok((ProgramEnding::Itself, (_, spent))) => {
                let text = String::from_utf8_lossy(&text.bytes).into_owned();
                Ok(Output { text, elapsed, spent })
            }
        }
    }
}

/// A program that runs, with pipes for its standard output and its standard error.
struct Started {
    child: Child,
    text: Pipe,
    said: Pipe,
}

/// How a program ended.
enum ProgramEnding {
    /// The program exited or was killed by a signal.
    Itself,
    Timeout,
    TooMuch,
}

impl Started {
    fn new(mut command: Command, together: bool) -> io::Result<Self> {
        let both = together.then(io::pipe).transpose()?;
        if let Some((_, writer)) = &both {
            command.stdout(writer.try_clone()?).stderr(writer.try_clone()?);
        }
        let mut child = command.spawn()?;
        let (text, said) = match both {
            Some((reader, _)) => (Some(reader.into()), None),
            None => (child.stdout.take().map(Into::into), child.stderr.take().map(Into::into)),
        };
        Ok(Self { child, text: Pipe::of(text), said: Pipe::of(said) })
    }

    /// Reads the program's output until it ends, or exceeds a limit.
    fn attend(&mut self, start: Instant, limit: Duration) -> io::Result<ProgramEnding> {
        let Self { child, text, said } = self;
        let ended = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
        text.unblock()?;
        said.unblock()?;
        loop {
            let left = limit.saturating_sub(start.elapsed());
            // If the program ended before the last read, the pipes are empty now.
            let over = wait(&[Some(ended.as_fd()), text.fd(), said.fd()], left)?;
            text.take_up()?;
            said.take_up()?;
            said.keep_last(SAID);
            if text.bytes.len() > OUTPUT {
                return Ok(ProgramEnding::TooMuch);
            }
            if over {
                return Ok(ProgramEnding::Itself);
            }
            if left.is_zero() {
                return Ok(ProgramEnding::Timeout);
            }
        }
    }
}

/// Waits until a pipe is readable. Returns whether it is the first one.
fn wait(ends: &[Option<BorrowedFd<'_>>], limit: Duration) -> io::Result<bool> {
    let ends = ends.iter().flatten();
    let mut polled: Vec<_> =
        ends.map(|end| PollFd::from_borrowed_fd(*end, PollFlags::IN)).collect();
    let seconds = i64::try_from(limit.as_secs()).ok();
    let limit = seconds.map(|tv_sec| Timespec { tv_sec, tv_nsec: i64::from(limit.subsec_nanos()) });
    match poll(&mut polled, limit.as_ref()) {
        Err(error) if error != Errno::INTR => Err(error.into()),
        _ => Ok(!polled[0].revents().is_empty()),
    }
}

/// One of a program's pipes, and the bytes read from it.
struct Pipe {
    /// The reading end; `None` once all writers have closed the pipe.
    end: Option<File>,
    bytes: Vec<u8>,
}

impl Pipe {
    fn of(end: Option<OwnedFd>) -> Self {
        Self { end: end.map(File::from), bytes: Vec::new() }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.end.as_ref().map(AsFd::as_fd)
    }

    fn unblock(&self) -> io::Result<()> {
        self.fd().map_or(Ok(()), |end| Ok(ioctl_fionbio(end, true)?))
    }

    /// Reads the available output, at most one pipe buffer.
    fn take_up(&mut self) -> io::Result<()> {
        let Some(end) = &mut self.end else {
            return Ok(());
        };
        let mut bytes = [0; 64 << 10];
        match end.read(&mut bytes) {
            Ok(0) => self.end = None,
            Ok(length) => self.bytes.extend_from_slice(&bytes[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn keep_last(&mut self, limit: usize) {
        let over = self.bytes.len().saturating_sub(limit);
        self.bytes.drain(..over);
    }
}

/// The last lines of a file of any length, without empty ones, joined; empty if there are none.
pub fn end_of(path: &Path) -> String {
    let end = || {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(SAID as u64)))?;
        let mut bytes = Vec::new();
        file.take(SAID as u64).read_to_end(&mut bytes)?;
        io::Result::Ok(bytes)
    };
    gist(&end().unwrap_or_default())
}

/// The first and the last lines of a text, without empty ones, joined.
fn gist(bytes: &[u8]) -> String {
    let end = &bytes[bytes.len().saturating_sub(SAID)..];
    let text = String::from_utf8_lossy(end);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match lines.split_at(lines.len().saturating_sub(LINES)) {
        ([first, _, ..], last) => format!("{first}; ...; {}", last.join("; ")),
        _ => lines.join("; "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        Program::new("sh").args(["-c", script])
    }

    fn fails(program: Program) -> String {
        program.run().unwrap_err().to_string()
    }

    #[test]
    fn output_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let script = "pwd; echo \"$WORD $LC_ALL\"; echo remark >&2; \
                      i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let output = shell(script).directory(directory.path()).env("WORD", "x").run().unwrap();
        let place = directory.path().canonicalize().unwrap();
        assert_eq!(output.text, format!("{}\nx C\n", place.display()));
        assert!(output.spent.total() > 0.0 && output.elapsed > Duration::ZERO);
    }

    #[test]
    fn much_output_is_read_or_an_error() {
        let much = |bytes| shell(&format!("head -c {bytes} /dev/zero | tr '\\0' a"));
        assert_eq!(much(OUTPUT).run().unwrap().text.len(), OUTPUT);
        let both = much(OUTPUT + 1).together();
        for more in [much(OUTPUT + 1), both] {
            assert_eq!(fails(more), "sh printed more than 16777216 bytes");
        }
    }

    #[test]
    fn merged_output_is_in_order() {
        let both = shell("echo a; echo b >&2; echo c").together();
        assert_eq!(both.run().unwrap().text, "a\nb\nc\n");
        let failing = shell("echo a; echo b >&2; exit 1").together();
        assert_eq!(fails(failing), "sh failed (exit status: 1); its error output: a; b");
    }

    #[test]
    fn a_failure_names_program_status_and_output() {
        let script = "for i in 1 2 3 4 5 6; do echo line $i >&2; done; exit 3";
        assert_eq!(
            fails(shell(script)),
            "sh failed (exit status: 3); its error output: line 1; ...; line 3; line 4; \
             line 5; line 6"
        );
        let error = fails(shell("echo no room; exit 1"));
        assert_eq!(error, "sh failed (exit status: 1); its error output: no room");
        assert_eq!(fails(shell("kill -9 $$")), "sh failed (signal: 9 (SIGKILL))");
        assert_eq!(
            fails(Program::new("/nonexistent/fio")),
            "fio cannot be started (No such file or directory)"
        );
    }

    #[test]
    fn a_slow_program_is_killed_with_its_children() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        let script = "mkfifo fifo; sh -c 'exec 3<fifo; sleep 1000' & echo > fifo; \
                      sleep 1000";
        let program = shell(script).directory(directory.path());
        let error = fails(program.limit(Duration::from_millis(500)));
        assert!(error.starts_with("sh took longer than 0.5 s"), "{error}");
        // The reader of this pipe has closed it. If not, this would not fail for a long time.
        let open = || {
            let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::WRONLY;
            rustix::fs::open(&fifo, flags, rustix::fs::Mode::empty())
        };
        while open().is_ok() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn background_processes_are_not_waited_for() {
        let output = shell("sleep 1000 & echo $!").run().unwrap();
        let pid = Pid::from_raw(output.text.trim().parse().unwrap()).unwrap();
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
    }

    #[test]
    fn the_end_of_a_file_is_quoted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        assert_eq!(end_of(&path), "");
        for (text, told) in [
            ("one\n\ntwo\n".to_owned(), "one; two".to_owned()),
            ("line\n".repeat(10_000) + "last\n", "; line; line; last".to_owned()),
            ("a".repeat(10 * SAID), "a".repeat(SAID)),
        ] {
            std::fs::write(&path, text).unwrap();
            let said = end_of(&path);
            assert!(said.ends_with(&told) && said.len() <= SAID, "{said}");
        }
    }

    #[test]
    fn invalid_output_does_not_panic() {
        let output = shell("printf 'a\\377b'").run().unwrap();
        assert_eq!(output.text, "a\u{fffd}b");
        let error = fails(shell("printf '\\377' >&2; exit 1"));
        assert_eq!(error, "sh failed (exit status: 1); its error output: \u{fffd}");
    }
}
