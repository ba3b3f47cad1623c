//! The agent runs a job in a guest: it samples the kernel, runs the workloads and records both. Any failure is
//! recorded and ends the job. What the agent does as PID 1 of a virtual machine is in [`vm`].

mod chance;
mod hello;
mod job;
mod leftovers;
pub mod recorder;
mod run;
pub mod sampler;
mod settings;
mod states;
mod symbols;
mod vm;
mod watch;

use std::io::{self, Write};

pub use vm::main;

/// Prints a message on the console.
fn say(text: &str) {
    // If there is no console, the message is lost.
    let _ = writeln!(io::stderr(), "faultline: {text}");
}
