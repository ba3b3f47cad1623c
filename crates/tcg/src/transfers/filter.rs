//! A CPU's recent accesses to lines that it has already, with the other line of their pair, by their virtual addresses.
//! They change nothing but the bytes that were written, so most accesses need neither the physical address nor the
//! directory, nor a lock.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::directory::{Bytes, LINE, LINES};
use super::pair::PAIR;

/// The lines with the same place in their page that a CPU remembers. Within a page, virtual and physical addresses are the
/// same.
const WAYS: usize = 8;
/// The key of an entry without a line.
const EMPTY: u64 = 0;

/// The recent lines of a CPU.
pub struct Filter(Box<[Entry; LINES * WAYS]>);

/// A line that the CPU has, and its pair.
#[derive(Default)]
struct Entry {
    /// Twice the number of the line by virtual address, plus 1, and the highest bit if the CPU may write the pair.
    key: AtomicU64,
    /// The number of the line by physical address.
    physical: AtomicU64,
    /// The bytes that the CPU wrote, and that the directory does not know of.
    written: AtomicU64,
}

const WRITABLE: u64 = 1 << 63;

impl Filter {
    /// No lines.
    pub fn new() -> Self {
        Self(Box::new(std::array::from_fn(|_| Entry::default())))
    }

    /// Whether the CPU has the line at a virtual address, and may write it if it stores. Then the access is done.
    #[inline]
    pub fn has(&self, address: u64, bytes: Bytes, stores: bool) -> bool {
        let line = key(address);
        let entry = &self.0[place(address)];
        let key = entry.key.load(Relaxed);
        if key == line | WRITABLE {
            let written = if stores { bytes } else { 0 };
            entry.written.store(entry.written.load(Relaxed) | written, Relaxed);
            return true;
        }
        key == line && !stores
    }

    /// The CPU got the line at a virtual address. Returns the line that it forgets for it, with what it wrote there.
    pub fn got(&self, address: u64, physical: u64, writable: bool) -> Option<(u64, Bytes)> {
        let entry = &self.0[place(address)];
        let forgotten = entry.take();
        entry.key.store(key(address) | if writable { WRITABLE } else { 0 }, Relaxed);
        entry.physical.store(physical / LINE, Relaxed);
        forgotten
    }

    /// Another CPU gets the pair of lines at a physical address, and `takes` it if it writes. Returns the lines of the pair
    /// that this CPU wrote.
    pub fn shares(&self, physical: u64, takes: bool) -> impl Iterator<Item = (u64, Bytes)> {
        let first = (physical / PAIR * 2) as usize % LINES * WAYS;
        let is_own = move |it: &&Entry| {
            it.key.load(Relaxed) != EMPTY && it.physical.load(Relaxed) / 2 == physical / PAIR
        };
        self.0[first..][..2 * WAYS].iter().filter(is_own).filter_map(move |entry| match takes {
            true => entry.take(),
            false => {
                entry.key.store(entry.key.load(Relaxed) & !WRITABLE, Relaxed);
                entry.take_written()
            }
        })
    }

    /// The CPU's virtual addresses may have other physical ones from now on. Forgets all lines, and returns those that it
    /// wrote.
    pub fn flush(&self) -> impl Iterator<Item = (u64, Bytes)> {
        self.0.iter().filter_map(Entry::take)
    }
}

impl Entry {
    /// Forgets the line. Returns its physical address and what was written there, if anything was.
    fn take(&self) -> Option<(u64, Bytes)> {
        self.key.store(EMPTY, Relaxed);
        self.take_written()
    }

    fn take_written(&self) -> Option<(u64, Bytes)> {
        let written = self.written.swap(0, Relaxed);
        (written != 0).then(|| (self.physical.load(Relaxed) * LINE, written))
    }
}

fn key(address: u64) -> u64 {
    address / LINE * 2 + 1
}

/// The place of an entry: the line in its page, and a way that depends on the page.
fn place(address: u64) -> usize {
    let line = (address / LINE) as usize % LINES;
    // The upper 3 bits of a product with 2^64 divided by the golden ratio.
    let way = (address >> 12).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61;
    line * WAYS + way as usize
}
