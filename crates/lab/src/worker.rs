//! Work in a thread of its own, which reports to the main thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;
use std::thread;

/// A report of a thread.
pub enum Told<T> {
    /// What it does now.
    Doing(String),
    /// Its result. The error is a panic.
    Ended(Box<thread::Result<T>>),
}

/// Does the work for `key`, and reports to `sender` what it does and how it ends.
pub fn work<K: Copy, T>(
    key: K,
    sender: &Sender<(K, Told<T>)>,
    work: impl FnOnce(&mut dyn FnMut(&str)) -> T,
) {
    // The receiver is gone only after a panic.
    let tell = |told| drop(sender.send((key, told)));
    let mut doing = |what: &str| tell(Told::Doing(what.to_owned()));
    let ended = catch_unwind(AssertUnwindSafe(|| work(&mut doing)));
    tell(Told::Ended(Box::new(ended)));
}
