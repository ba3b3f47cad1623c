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
pub struct Recent(Box<[Entry]>);

/// One entry of the cache, which is empty if it has no tally.
#[derive(Default)]
struct Entry {
    path: AtomicU32,
    address: AtomicU64,
    tally: AtomicPtr<AtomicU64>,
}

impl Recent {
    /// An empty cache.
    pub fn new() -> Self {
        Self((0..ENTRIES).map(|_| Entry::default()).collect())
    }

    /// The tally of `path` and `address`; `look_up` returns it if it is not cached.
    #[inline]
    pub fn tally(&self, path: Path, address: u64, look_up: impl FnOnce() -> Tally) -> Tally {
        let hash = (address ^ u64::from(path.0) << 32).wrapping_mul(GOLDEN);
        let entry = &self.0[(hash >> (u64::BITS - ENTRIES.ilog2())) as usize];
        if entry.path.load(Relaxed) == path.0
            && entry.address.load(Relaxed) == address
            // SAFETY: null, or made from a reference that is valid forever.
            && let Some(tally) = unsafe { entry.tally.load(Relaxed).as_ref() }
        {
            return tally;
        }
        let tally = look_up();
        entry.path.store(path.0, Relaxed);
        entry.address.store(address, Relaxed);
        entry.tally.store(ptr::from_ref(tally).cast_mut(), Relaxed);
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segments::cells;

    #[test]
    fn a_tally_is_looked_up_until_it_is_known() {
        let (recent, cells) = (Recent::new(), cells(2));
        let tally = |path, known: Option<Tally>| {
            let tally = recent.tally(Path(path), 7, || known.expect("it is not cached"));
            cells.iter().position(|cell| ptr::eq(tally, cell))
        };
        assert_eq!(tally(1, Some(&cells[0])), Some(0));
        assert_eq!(tally(2, Some(&cells[1])), Some(1));
        assert_eq!(tally(1, None), Some(0));
        assert_eq!(tally(2, None), Some(1));
        // The entry of an empty cache has no tally for path 0 at address 0.
        assert_eq!(recent.tally(Path::START, 0, || &cells[1]).as_ptr(), cells[1].as_ptr());
    }
}
