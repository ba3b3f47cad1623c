//! The TLBs of a CPU: two levels, each with arrays for some sizes of pages.

use std::sync::atomic::Ordering::Relaxed;

use super::lru::{self, EMPTY, Set};
use crate::arch::Page;
use crate::arguments::{Shape, TlbShape};

/// The number of sizes of pages.
const SIZES: u32 = 3;
/// The bits of an address in the smallest page, and those by which the next larger pages have more.
const SMALLEST: u32 = 12;
const STEP: u32 = 9;
/// Where a key has the size of its page. The bits below are the page's number.
const SIZE_AT: u32 = 58;

/// The key of the page of this size that has an address.
fn key(address: u64, size: u32) -> u64 {
    u64::from(size) << SIZE_AT | address >> (SMALLEST + STEP * size)
}

/// Entries for pages of some sizes.
struct Array {
    sizes: u64,
    /// Where it begins among the entries of the level.
    first: usize,
    sets: u64,
    ways: usize,
}

impl Array {
    fn place(&self, key: u64) -> usize {
        let page = key & ((1 << SIZE_AT) - 1);
        self.first + (page % self.sets) as usize * self.ways
    }

    fn sizes(&self) -> impl Iterator<Item = u32> {
        let sizes = self.sizes;
        (0..SIZES).filter(move |size| sizes >> size & 1 != 0)
    }
}

/// A level of TLBs.
struct Level {
    arrays: Vec<Array>,
    entries: Box<Set>,
}

impl Level {
    fn new(shapes: &[TlbShape]) -> Self {
        let mut entries = 0;
        let array = |&TlbShape { sizes, sets, ways }: &TlbShape| {
            let first = entries;
            entries += sets as usize * ways;
            Array { sizes, first, sets, ways }
        };
        let arrays = shapes.iter().map(array).collect();
        Self { arrays, entries: lru::entries(entries) }
    }

    fn set(&self, array: &Array, key: u64) -> &Set {
        &self.entries[array.place(key)..][..array.ways]
    }

    /// Uses the page of an address. Returns it, and where its set begins.
    fn touch(&self, address: u64) -> Option<(Page, usize)> {
        for array in &self.arrays {
            for size in array.sizes() {
                let key = key(address, size);
                if let Some(global) = lru::touch(self.set(array, key), key) {
                    return Some((Page { size, global }, array.place(key)));
                }
            }
        }
        None
    }

    /// Inserts the page of an address. Returns where its set begins.
    fn insert(&self, address: u64, page: Page) -> usize {
        let key = key(address, page.size);
        let array = self.arrays.iter().find(|it| it.sizes >> page.size & 1 != 0);
        array.map_or(0, |array| {
            lru::insert(self.set(array, key), key, page.global);
            array.place(key)
        })
    }

    fn remove(&self, address: u64) {
        for array in &self.arrays {
            for size in array.sizes() {
                let key = key(address, size);
                lru::remove(self.set(array, key), key);
            }
        }
    }

    fn keep(&self, wanted: impl Fn(bool) -> bool) {
        for entry in &self.entries {
            if !lru::key_and_flag(entry.load(Relaxed)).is_some_and(|(_, global)| wanted(global)) {
                entry.store(EMPTY, Relaxed);
            }
        }
    }
}

/// The TLB in which an access found its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Known {
    First,
    Second,
    Nowhere,
}

/// The TLBs of one CPU.
pub struct Tlbs {
    first: Level,
    second: Level,
}

impl Tlbs {
    /// Empty TLBs.
    pub fn new(shape: &Shape) -> Self {
        Self { first: Level::new(&shape.dtlb), second: Level::new(&shape.stlb) }
    }

    /// Uses the page of an address. `walk` finds the page if no TLB has it. Returns which had it, and the place and the
    /// entry of the page, which is the most recent one of its set.
    pub fn touch(&self, address: u64, walk: impl FnOnce() -> Page) -> (Known, usize, u64) {
        let (known, place) = match self.first.touch(address) {
            Some((_, place)) => (Known::First, place),
            None => {
                let second = self.second.touch(address).map(|(page, _)| page);
                let page = second.unwrap_or_else(|| {
                    let page = walk();
                    self.second.insert(address, page);
                    page
                });
                let known = if second.is_some() { Known::Second } else { Known::Nowhere };
                (known, self.first.insert(address, page))
            }
        };
        (known, place, self.entry(place))
    }

    /// The entry at a place of the first level.
    #[inline]
    pub fn entry(&self, place: usize) -> u64 {
        self.first.entries[place].load(Relaxed)
    }

    /// Forgets all pages, but global ones if they are to be kept.
    pub fn flush(&self, keeps_global: bool) {
        self.first.keep(|global| keeps_global && global);
        self.second.keep(|global| keeps_global && global);
    }

    /// Forgets the page of an address.
    pub fn flush_page(&self, address: u64) {
        self.first.remove(address);
        self.second.remove(address);
    }
}
