//! A cache of recent tallies. It has no lock, because only the thread that runs the CPUs uses it.

#![expect(unsafe_code, reason = "atomic pointers in place of references")]

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::paths::{Path, Tally};

/// The number of entries, a power of 2. It is large enough for most blocks of a phase, and small enough for a
/// CPU's own cache.
const ENTRIES: usize = 1 << 14;
/// 2^64 divided by the golden ratio, as in the kernel's `include/linux/hash.h`.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Tallies by path and address, direct-mapped.
pub struct Recent([Entry; ENTRIES]);

struct Entry {
    path: AtomicU32,
    address: AtomicU64,
    tally: AtomicPtr<AtomicU64>,
}

impl Entry {
    const fn new() -> Self {
        let (path, address) = (AtomicU32::new(0), AtomicU64::new(0));
        Self { path, address, tally: AtomicPtr::new(ptr::null_mut()) }
    }
}

impl Recent {
    /// An empty cache.
    pub const fn new() -> Self {
        Self([const { Entry::new() }; ENTRIES])
    }

    /// The tally of `path` and `address`; `look_up` returns it if it is not cached.
    #[inline]
    pub fn tally(
        &self,
        path: Path,
        address: u64,
        look_up: impl FnOnce() -> Option<Tally>,
    ) -> Option<Tally> {
        let hash = (address ^ u64::from(path.0) << 32).wrapping_mul(GOLDEN);
        let entry = &self.0[(hash >> (u64::BITS - ENTRIES.ilog2())) as usize];
        if entry.path.load(Relaxed) != path.0 || entry.address.load(Relaxed) != address {
            let tally = look_up()?;
            entry.path.store(path.0, Relaxed);
            entry.address.store(address, Relaxed);
            entry.tally.store(ptr::from_ref(tally).cast_mut(), Relaxed);
        }
        // SAFETY: null, or made from a reference that is valid forever.
        unsafe { entry.tally.load(Relaxed).as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::cells;

    static RECENT: Recent = Recent::new();

    #[test]
    fn a_tally_is_looked_up_until_it_is_known() {
        let cells = cells(2);
        let tally = |path, known| {
            let tally = RECENT.tally(Path(path), 7, || known);
            tally.map(|tally| ptr::eq(tally, &cells[1]))
        };
        assert_eq!(tally(1, None), None);
        assert_eq!(tally(1, Some(&cells[0])), Some(false));
        assert_eq!(tally(2, Some(&cells[1])), Some(true));
        assert_eq!(tally(1, None), Some(false));
        assert_eq!(tally(2, None), Some(true));
    }
}
