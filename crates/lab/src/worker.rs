//! Work in a thread of its own, which tells the main thread what it does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;
use std::thread;

/// What a thread tells of its work.
pub enum Told<T> {
    /// What it does now.
    Doing(String),
    /// Its result. The error is a panic.
    Ended(Box<thread::Result<T>>),
}

/// Does the work that `key` stands for, and tells `sender` what it does and how it ends.
pub fn work<K: Copy, T>(
    key: K,
    sender: &Sender<(K, Told<T>)>,
    work: impl FnOnce(&mut dyn FnMut(&str)) -> T,
) {
    // Nobody listens only after a panic.
    let tell = |told| drop(sender.send((key, told)));
    let mut doing = |what: &str| tell(Told::Doing(what.to_owned()));
    let ended = catch_unwind(AssertUnwindSafe(|| work(&mut doing)));
    tell(Told::Ended(Box::new(ended)));
}
