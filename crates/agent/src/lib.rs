//! The agent runs a job: it samples the kernel, runs the workloads and records both. Any failure is recorded and ends
//! the job. What the agent does as PID 1 of a virtual machine is in [`vm`], and what it does on a host in [`host`].

mod chance;
mod hello;
mod host;
mod job;
mod leftovers;
mod orphans;
pub mod recorder;
mod run;
pub mod sampler;
mod states;
mod symbols;
mod vm;
mod watch;

use std::io::{self, Write};
use std::path::Path;
use std::{env, process};

use flight::job::ON_HOST;

/// Runs the job of this machine. PID 1 is the agent of a guest; any other process needs the directory of a session on a
/// host.
pub fn main() -> ! {
    let mut arguments = env::args_os().skip(1);
    if process::id() == 1 {
        vm::main()
    }
    match (arguments.next(), arguments.next()) {
        (Some(word), Some(directory)) if word == ON_HOST => host::main(Path::new(&directory)),
        _ => {
            say("this program must run as PID 1 of a guest, or be started by faultline on a host");
            process::exit(1)
        }
    }
}

/// Prints a message on the console.
fn say(text: &str) {
    // If there is no console, the message is lost.
    let _ = writeln!(io::stderr(), "faultline: {text}");
}
