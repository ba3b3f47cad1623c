//! The code that runs inside the guest, in two static binaries: the agent, which is PID 1 and runs the job,
//! and the built-in workloads. Formats shared with the host are in `flight`. The host interprets the
//! recording.

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

/// The kernel's message, without the number that Rust appends.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((reason, _)) => reason.to_owned(),
        None => text,
    }
}

/// The start of `text`: at most `limit` bytes, cut between characters.
fn cut(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The value in a file of sysfs: the word in brackets if there are several, as in `always [madvise] never`.
fn chosen(text: &str) -> &str {
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or(text.trim(), |(word, _)| word)
}
