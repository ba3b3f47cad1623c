//! Runs a workload's program as a process: starts it with its pipes, watches it, and ends it with its
//! descendants.

use std::env;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{self, Command, Stdio};
use std::time::Duration;

use crate::orphans;
use command_fds::{CommandFdExt, FdMapping};
use flight::job::Workload;
use flight::protocol::{ACK_VARIABLE, FD_VARIABLE};
use guest::sys::chroot;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{ioctl_fionbio, ioctl_fionread};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, kill_process_group, pidfd_open, wait, waitpid,
};

/// The program's end of the pipe for the protocol. It has one digit, because a plain shell cannot redirect others.
const LINES_FD: i32 = 3;
const ACK_FD: i32 = 4;
/// The size of a pipe in bytes (pipe(7)).
const PIPE_SIZE: usize = 64 << 10;

/// The environment of a program in a guest: what the kernel gives PID 1, and a PATH. PID 1 also has unknown words of
/// the kernel's command line in its environment. They must not reach a workload. On a host, a program has the agent's
/// environment, which is that of the user.
const ENVIRONMENT: [(&str, &str); 3] =
    [("HOME", "/"), ("TERM", "linux"), ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")];

/// A program with all that it needs to start. A plain program's phase begins between here and [`Prepared::start`], so
/// it does not contain this work.
pub struct Prepared<'a> {
    command: Command,
    directory: &'a str,
    pipes: Pipes,
}

/// The pipes of a program.
///
/// The agent keeps the program's ends open. Otherwise polling would return at once after the program closes them.
struct Pipes {
    lines: PipeReader,
    output: PipeReader,
    ack: PipeWriter,
    its_ack: PipeReader,
    _its_ends: (PipeWriter, PipeWriter),
    /// What was read last. It is allocated once, because the heap would grow and shrink with each reading otherwise,
    /// and the current phase would count that.
    buffer: Box<[u8]>,
}

/// A running program.
pub struct Child {
    pid: Pid,
    ended: OwnedFd,
    pipes: Pipes,
}

impl<'a> Prepared<'a> {
    /// Prepares a program that will run in its own process group; in `root` if that is given, and in the workload's
    /// directory unless that is empty. Its standard output and standard error go into one pipe. A plain program gets no
    /// descriptors of the metric protocol. Fails if the command is empty or a pipe cannot be made.
    pub fn new(workload: &'a Workload, root: Option<&Path>) -> io::Result<Self> {
        let Some((program, arguments)) = workload.command.split_first() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"));
        };
        let (lines, its_lines) = io::pipe()?;
        let (output, its_output) = io::pipe()?;
        let (its_ack, ack) = io::pipe()?;
        let mut command = Command::new(program);
        if let Some(root) = root {
            chroot(&mut command, root)?;
        }
        if is_init() {
            command.env_clear().envs(ENVIRONMENT);
        }
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(its_output.try_clone()?)
            .stderr(its_output.try_clone()?)
            .process_group(0);
        if !workload.plain {
            command
                .env(FD_VARIABLE, LINES_FD.to_string())
                .env(ACK_VARIABLE, ACK_FD.to_string())
                .fd_mappings(vec![
                    FdMapping { parent_fd: its_lines.try_clone()?.into(), child_fd: LINES_FD },
                    FdMapping { parent_fd: its_ack.try_clone()?.into(), child_fd: ACK_FD },
                ])
                .map_err(io::Error::other)?;
        }
        for end in [lines.as_fd(), output.as_fd(), ack.as_fd()] {
            ioctl_fionbio(end, true)?;
        }
        // Zeroes would be pages that the kernel hands out when they are first written, which is in a phase.
        let buffer = vec![u8::MAX; PIPE_SIZE].into();
        let _its_ends = (its_lines, its_output);
        let pipes = Pipes { lines, output, ack, its_ack, _its_ends, buffer };
        Ok(Self { command, directory: &workload.directory, pipes })
    }

    /// Starts the program. Fails if it does not exist or cannot be started.
    pub fn start(mut self) -> io::Result<Child> {
        let _kept = orphans::starting();
        let child = within(self.directory, || self.command.spawn())?;
        let pid = Pid::from_child(&child);
        let ended = pidfd_open(pid, PidfdFlags::empty())?;
        Ok(Child { pid, ended, pipes: self.pipes })
    }
}

impl Child {
    /// Waits until the program has written something or ended, or `timeout` has passed.
    pub fn wait(&self, timeout: Duration) -> io::Result<()> {
        let timeout =
            Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        let mut ends = [self.pipes.lines.as_fd(), self.pipes.output.as_fd(), self.ended.as_fd()]
            .map(|end| PollFd::from_borrowed_fd(end, PollFlags::IN));
        match poll(&mut ends, Some(&timeout)) {
            Err(error) if error != rustix::io::Errno::INTR => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// The program's new output on its protocol descriptor; may be empty.
    pub fn lines(&mut self) -> io::Result<&[u8]> {
        available(&mut self.pipes.lines, &mut self.pipes.buffer)
    }

    /// The program's new output; may be empty.
    pub fn output(&mut self) -> io::Result<&[u8]> {
        available(&mut self.pipes.output, &mut self.pipes.buffer)
    }

    /// Tells the program that its phase has begun. Writes nothing if the pipe is full because the program
    /// does not read it.
    pub fn acknowledge(&mut self) {
        let _ = self.pipes.ack.write(b"\n");
    }

    /// Whether the program has not read all that [`Child::acknowledge`] wrote.
    pub fn is_unread(&self) -> io::Result<bool> {
        Ok(ioctl_fionread(&self.pipes.its_ack)? > 0)
    }

    /// How the program ended; `None` while it runs. Also reaps orphans.
    pub fn ended(&self) -> Option<WaitStatus> {
        self.reap(WaitOptions::NOHANG)
    }

    /// Kills the process group of the program and reaps it, and its orphans if they become children of the agent; as PID
    /// 1, all other processes.
    pub fn end(&self) {
        // For PID 1 this means all processes except the caller (kill(2)).
        let group = if is_init() { Pid::INIT } else { self.pid };
        // This fails if no process is left, which is the goal.
        let _ = kill_process_group(group, Signal::KILL);
        orphans::kill();
        self.reap(WaitOptions::empty());
    }

    /// Reaps children: all if orphans become children of the agent, otherwise only the program.
    fn reap(&self, options: WaitOptions) -> Option<WaitStatus> {
        let next = || {
            if is_init() || orphans::are_ours() {
                wait(options)
            } else {
                waitpid(Some(self.pid), options)
            }
        };
        let mut status = None;
        while let Ok(Some((pid, how))) = next() {
            if pid == self.pid {
                status = Some(how);
            }
        }
        status
    }
}

/// Starts a program in `directory`, unless that is empty. The agent itself goes there and back: with nothing to do
/// between fork and exec, Rust's standard library uses `posix_spawn`, which does not copy the agent's page tables. That
/// would be counted as a part of the program.
fn within<T>(directory: &str, start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    if directory.is_empty() {
        return start();
    }
    let before = env::current_dir()?;
    env::set_current_dir(directory)?;
    let started = start();
    env::set_current_dir(before)?;
    started
}

fn is_init() -> bool {
    process::id() == 1
}

/// Reads the available data into the buffer, and returns it.
fn available<'a>(pipe: &mut PipeReader, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let length = match pipe.read(buffer) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        length => length?,
    };
    Ok(&buffer[..length])
}
