//! Gives the program of a session the standard input, output and error of this process. The agent starts the program
//! with streams of its own, so it inherits ours under other numbers, and a shell puts them in their place.

use std::io::{self, IsTerminal, stderr, stdin, stdout};
use std::os::fd::AsFd;
use std::process::Command;

use command_fds::{CommandFdExt, FdMapping};

/// The numbers of input, output and error in the agent. They have one digit, because a plain shell cannot redirect
/// others. The agent opens its own files at other numbers.
const NUMBERS: [i32; 3] = [7, 8, 9];
/// What the shell does with them.
const SCRIPT: &str = "exec \"$@\" <&7 >&8 2>&9 7<&- 8>&- 9>&-";

/// Passes our streams to an agent that `command` starts. A terminal as standard input is not passed: the program runs in
/// a group of its own, and the kernel stops such a group when it reads the terminal (setpgid(2)).
pub fn pass(command: &mut Command) -> io::Result<()> {
    let input = match stdin().is_terminal() {
        true => std::fs::File::open("/dev/null")?.into(),
        false => stdin().as_fd().try_clone_to_owned()?,
    };
    let [output, error] =
        [stdout().as_fd().try_clone_to_owned(), stderr().as_fd().try_clone_to_owned()];
    let streams = NUMBERS.into_iter().zip([input, output?, error?]);
    let mappings = streams.map(|(child_fd, parent_fd)| FdMapping { parent_fd, child_fd });
    command.fd_mappings(mappings.collect()).map_err(io::Error::other)?;
    Ok(())
}

/// The command by which a program has the streams that [`pass`] passed. The shell replaces itself by the program.
pub fn with_streams(program: Vec<String>) -> Vec<String> {
    let shell = ["/bin/sh", "-c", SCRIPT, "sh"].map(str::to_owned);
    shell.into_iter().chain(program).collect()
}
