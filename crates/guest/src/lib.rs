//! What runs inside the guest. Two static binaries are made of it: the agent, which is PID 1 and
//! carries out the job, and the built-in workloads. Formats shared with the host are in `flight`;
//! making sense of what is recorded is left to the host.

pub mod agent;
mod clock;
mod kmsg;
mod marker;
pub mod recorder;
mod run;
pub mod sampler;
pub mod sys;
mod watch;
pub mod words;
pub mod workloads;

use std::io;

/// What the kernel said, without the number that Rust puts behind it.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((reason, _)) => reason.to_owned(),
        None => text,
    }
}

/// The start of `text`, at most `limit` bytes, cut between characters.
fn cut(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
