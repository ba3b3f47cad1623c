//! Functions for the agent and the built-in workloads in a guest: system calls, mapped memory, clocks, the kernel's
//! log and small changes of texts.

pub mod arch;
pub mod caches;
pub mod clock;
pub mod kmsg;
pub mod settings;
pub mod sys;
pub mod words;

use std::io;

/// The kernel's message, without the number that Rust appends.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((reason, _)) => reason.to_owned(),
        None => text,
    }
}

/// The start of `text`: at most `limit` bytes, cut between characters.
pub fn cut(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The value in a file of sysfs: the word in brackets if there are several, as in `always [madvise] never`.
pub fn chosen(text: &str) -> &str {
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or(text.trim(), |(word, _)| word)
}
