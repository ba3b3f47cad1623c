//! Runs the QEMU process. It does not outlive faultline, and every wait for its end has a time limit.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use crate::Error;

/// The time limit for a killed process to end. With KVM it may be executing in the host's kernel.
pub const KILL_LIMIT: Duration = Duration::from_secs(10);
/// Time between two checks of a killed process.
const TICK: Duration = Duration::from_millis(10);

/// A running process, killed when dropped.
pub struct Process {
    child: Child,
    /// Whether it has ended, or was killed and did not end.
    done: bool,
}

/// A command for `program`. The kernel kills it when the thread that starts it ends, even by SIGKILL
/// (`PR_SET_PDEATHSIG`, `prctl(2)`), so no machine runs unwatched. That thread must live as long as the machine.
pub fn tied(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

impl Process {
    /// Starts a command made by [`tied`].
    pub fn start(mut command: Command) -> Result<Self, Error> {
        tracing::debug!("starts {command:?}");
        let child = command.spawn().map_err(Error::Setpriv)?;
        Ok(Self { child, done: false })
    }

    /// Starts the agent on this host. It ends itself, and what it started, when its standard input ends: with this process
    /// at the latest.
    pub fn start_agent(mut command: Command, agent: &Path) -> Result<Self, Error> {
        let child = command.spawn().map_err(Error::file(agent))?;
        Ok(Self { child, done: false })
    }

    /// Starts a command that soon ends by itself. The end of the starting thread does not end it.
    pub fn unbound(mut command: Command) -> io::Result<Self> {
        Ok(Self { child: command.spawn()?, done: false })
    }

    /// Waits until `end`. Returns the exit status if the process ended.
    pub fn end_by(&mut self, end: Instant) -> Option<ExitStatus> {
        while self.status().is_none() && Instant::now() < end {
            thread::sleep(TICK);
        }
        self.status()
    }

    /// Its process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its standard input and output if both are pipes; `None` after the first call.
    pub fn pipes(&mut self) -> Option<(ChildStdin, ChildStdout)> {
        self.child.stdin.take().zip(self.child.stdout.take())
    }

    /// Its standard output and error; `None` for one that is not a pipe, and after the first call.
    pub fn outputs(&mut self) -> [Option<Box<dyn Read + Send>>; 2] {
        let output = self.child.stdout.take().map(|it| Box::new(it) as Box<dyn Read + Send>);
        let messages = self.child.stderr.take().map(|it| Box::new(it) as Box<dyn Read + Send>);
        [output, messages]
    }

    /// The exit status, if the process has ended.
    pub fn status(&mut self) -> Option<ExitStatus> {
        // Waiting for a child fails only if its status was already read, so it has ended.
        let status = self.child.try_wait().unwrap_or_else(|_| Some(ExitStatus::default()));
        self.done |= status.is_some();
        status
    }

    /// Kills it and waits for its end, up to [`KILL_LIMIT`]. Returns false if it has not ended by then. An agent, whose
    /// standard input we have, first gets time to end what it started.
    pub fn kill(&mut self) -> bool {
        if self.child.stdin.take().is_some() {
            self.end_by(Instant::now() + KILL_LIMIT);
        }
        let start = Instant::now();
        // An error means that it has ended.
        let _ = self.child.kill();
        while self.status().is_none() && start.elapsed() < KILL_LIMIT {
            thread::sleep(TICK);
        }
        std::mem::replace(&mut self.done, true)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.done {
            self.kill();
        }
    }
}

#[cfg(test)]
pub mod testing {
    use super::*;

    use std::io::Write;
    use std::path::PathBuf;
    use std::process::Stdio;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// An executable shell script. Another process writes it, because a concurrent test that forks would
    /// inherit our descriptor, and a file that is open for writing cannot be executed.
    pub fn script(directory: &Path, body: &str) -> PathBuf {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("qemu-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let path = directory.join(name);
        let mut install = Command::new("install")
            .args(["-m", "755", "/dev/stdin"])
            .arg(&path)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = install.stdin.take().unwrap();
        writeln!(input, "#!/bin/sh\n{body}").unwrap();
        drop(input);
        assert!(install.wait().unwrap().success());
        path
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;

    use super::*;

    /// A process that has reported that it runs and does not end by itself.
    fn started(directory: &Path) -> Process {
        let script = testing::script(directory, "echo up; exec sleep 1000000");
        let mut command = tied(&script);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Process::start(command).unwrap();
        let (_, output) = process.pipes().unwrap();
        BufReader::new(output).read_line(&mut String::new()).unwrap();
        process
    }

    #[test]
    fn a_process_ends_with_the_thread_that_started_it() {
        let directory = tempfile::tempdir().unwrap();
        let mut process =
            thread::scope(|scope| scope.spawn(|| started(directory.path())).join().unwrap());
        let start = Instant::now();
        let status = loop {
            match process.status() {
                Some(status) => break status,
                None => assert!(start.elapsed() < Duration::from_secs(60), "it lives on"),
            }
            thread::sleep(TICK);
        };
        assert_eq!(status.signal(), Some(9));
    }

    #[test]
    fn a_process_is_killed_when_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let process = started(directory.path());
        let path = format!("/proc/{}", process.id());
        assert!(Path::new(&path).exists());
        drop(process);
        assert!(!Path::new(&path).exists());
    }
}
