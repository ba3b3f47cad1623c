//! One set of a cache or of a TLB: entries in the order of their last use, the most recent one first. So the first entry
//! changes nothing when it is used again.
//!
//! It has no lock, because only the thread that runs the CPUs uses it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The entries of a set, one for each way.
pub type Set = [AtomicU64];

/// No entry.
pub const EMPTY: u64 = 0;
/// The flag of an entry. The bits above it are the key plus 1.
pub const FLAG: u64 = 1;

/// Empty entries.
pub fn entries(number: usize) -> Box<Set> {
    (0..number).map(|_| AtomicU64::new(EMPTY)).collect()
}

/// The entry of a key, which is below 2^63 - 1.
pub fn entry(key: u64, flag: bool) -> u64 {
    (key + 1) << 1 | u64::from(flag)
}

/// The key and the flag of an entry.
pub fn key_and_flag(entry: u64) -> Option<(u64, bool)> {
    Some(((entry >> 1).checked_sub(1)?, entry & FLAG != 0))
}

/// The way that has a key.
fn way(set: &Set, key: u64) -> Option<usize> {
    let wanted = entry(key, true);
    set.iter().position(|it| it.load(Relaxed) | FLAG == wanted)
}

/// Moves the entries before a way back by one, over what was there.
fn push_back(set: &Set, way: usize) {
    for to in (1..=way).rev() {
        set[to].store(set[to - 1].load(Relaxed), Relaxed);
    }
}

/// Uses a key. Returns its flag; `None` if the set does not have it.
pub fn touch(set: &Set, key: u64) -> Option<bool> {
    let way = way(set, key)?;
    let used = set[way].load(Relaxed);
    push_back(set, way);
    set[0].store(used, Relaxed);
    Some(used & FLAG != 0)
}

/// Inserts a key that the set does not have. Returns the key and the flag that leave the set for it.
pub fn insert(set: &Set, key: u64, flag: bool) -> Option<(u64, bool)> {
    let last = set.len() - 1;
    let way = set.iter().position(|it| it.load(Relaxed) == EMPTY).unwrap_or(last);
    let gone = set[way].load(Relaxed);
    push_back(set, way);
    set[0].store(entry(key, flag), Relaxed);
    key_and_flag(gone)
}

/// The flag of a key, without using it.
pub fn flag(set: &Set, key: u64) -> Option<bool> {
    way(set, key).map(|way| set[way].load(Relaxed) & FLAG != 0)
}

/// Sets the flag of a key, if the set has it.
pub fn set_flag(set: &Set, key: u64, flag: bool) -> bool {
    let way = way(set, key);
    way.into_iter().for_each(|way| set[way].store(entry(key, flag), Relaxed));
    way.is_some()
}

/// Removes a key. Returns whether the set had it.
pub fn remove(set: &Set, key: u64) -> bool {
    let way = way(set, key);
    way.into_iter().for_each(|way| set[way].store(EMPTY, Relaxed));
    way.is_some()
}
