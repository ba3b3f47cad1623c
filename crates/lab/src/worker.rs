//! Does work in its own thread, which reports to the main thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;
use std::thread;

/// A report from a thread.
pub enum Report<T> {
    /// What it does now.
    Doing(String),
    /// Its result. The error is a panic.
    Ended(Box<thread::Result<T>>),
}

/// Does the work for `key`, and reports its progress and its result to `sender`.
pub fn work<K: Copy, T>(
    key: K,
    sender: &Sender<(K, Report<T>)>,
    work: impl FnOnce(&mut dyn FnMut(&str)) -> T,
) {
    // The receiver is gone only after a panic.
    let report = |it| drop(sender.send((key, it)));
    let mut doing = |what: &str| report(Report::Doing(what.to_owned()));
    let ended = catch_unwind(AssertUnwindSafe(|| work(&mut doing)));
    report(Report::Ended(Box::new(ended)));
}
