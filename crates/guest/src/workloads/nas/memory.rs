//! Arrays that the threads of a team share: mapped at once, backed by pages when threads touch them.
//!
//! Elements are atomics, so that a missing barrier can only cause a wrong result, which verification finds.
//! Loads and stores are relaxed, which are plain moves on x86; the team's barriers order them.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use super::super::{Result, While};
use crate::words::{HalfWords, Words};

/// An element of a shared array.
pub trait Element {
    /// The type of its value.
    type Value;

    /// Reads it.
    fn get(&self) -> Self::Value;

    /// Writes it.
    fn set(&self, value: Self::Value);
}

/// Holds a real number.
impl Element for AtomicU64 {
    type Value = f64;

    fn get(&self) -> f64 {
        f64::from_bits(self.load(Relaxed))
    }

    fn set(&self, value: f64) {
        self.store(value.to_bits(), Relaxed);
    }
}

/// Holds a key, a count or an index.
impl Element for AtomicU32 {
    type Value = u32;

    fn get(&self) -> u32 {
        self.load(Relaxed)
    }

    fn set(&self, value: u32) {
        self.store(value, Relaxed);
    }
}

/// Maps real numbers, all 0.
pub fn reals(count: usize) -> Result<Words> {
    let bytes = count * size_of::<AtomicU64>();
    Words::anonymous(bytes).while_(format!("mapping {bytes} bytes"))
}

/// Maps whole numbers, all 0.
pub fn integers(count: usize) -> Result<HalfWords> {
    let bytes = count * size_of::<AtomicU32>();
    HalfWords::anonymous(bytes).while_(format!("mapping {bytes} bytes"))
}
