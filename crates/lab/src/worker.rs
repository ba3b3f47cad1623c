//! Does work in a thread that reports to the main thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;
use std::thread;

/// A report from a working thread.
pub enum Report<T> {
    /// What the thread does now.
    Doing(String),
    /// The result of the work. The error is a panic.
    Ended(Box<thread::Result<T>>),
}

/// Does the work for `key`, and sends its progress and its result to `sender`. A panic of the work
/// becomes part of the result.
pub fn work<K: Copy, T>(
    key: K,
    sender: &Sender<(K, Report<T>)>,
    work: impl FnOnce(&mut dyn FnMut(&str)) -> T,
) {
    // Sending fails only if the receiver is gone, after a panic of the main thread.
    let report = |it| drop(sender.send((key, it)));
    let mut doing = |what: &str| report(Report::Doing(what.to_owned()));
    let ended = catch_unwind(AssertUnwindSafe(|| work(&mut doing)));
    report(Report::Ended(Box::new(ended)));
}
