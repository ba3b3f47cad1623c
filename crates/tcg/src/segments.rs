//! Segments of blocks, with their counts.
//!
//! A segment is a run of instructions of a block that is entered at its first instruction only. It is counted once for
//! all of its instructions. A CPU leaves a segment midway if an instruction has a fault, or if QEMU ends a block at an
//! access to a device or at a store into the block. So a segment of the kernel has a cell for each number of executed
//! instructions, for each CPU. Only the thread that runs the CPUs writes cells.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flight::profile::{Executed, Privilege};

/// The place where blocks store the number that the executed instruction has in its segment. It is one for all CPUs,
/// because one thread runs them.
pub type Position = &'static AtomicU64;

/// A counter with a cell per CPU. It lives as long as QEMU.
#[derive(Clone, Copy, Debug)]
pub struct Counter(&'static [AtomicU64]);

impl Counter {
    /// A counter of 0, for a machine with this number of CPUs.
    pub fn new(cpus: usize) -> Self {
        Self(cells(cpus))
    }

    /// The count of `cpu`.
    pub fn get(self, cpu: usize) -> u64 {
        self.0[cpu].load(Relaxed)
    }

    /// Returns the count, and resets it to 0.
    pub fn take(self, cpu: usize) -> u64 {
        take(&self.0[cpu])
    }
}

/// Instructions that a CPU executes in order. It lives as long as QEMU, because translations refer to it.
#[derive(Debug)]
pub struct Segment {
    pub privilege: Privilege,
    count: Count,
}

/// How executions are counted.
#[derive(Debug)]
enum Count {
    /// By instruction.
    Own {
        /// The addresses of the instructions.
        addresses: Box<[u64]>,
        /// Whether the first instruction may begin again. See [`Segment::repeats`].
        again: bool,
        /// Executions by the number of executed instructions: those of CPU 0 from 1 to all, then those of CPU 1.
        cells: &'static [AtomicU64],
    },
    /// As a sum, together with all other segments of this kind. A program's code can run at other addresses than those
    /// for which it was translated, and it can make new code without end.
    Shared(Counter),
}

impl Segment {
    pub fn is_kernel(&self) -> bool {
        self.privilege == Privilege::Kernel
    }

    fn addresses(&self) -> &[u64] {
        match &self.count {
            Count::Own { addresses, .. } => addresses,
            Count::Shared(_) => &[],
        }
    }

    /// Adds `weight` executions of the first `executed` instructions, of which there is at least one.
    #[inline]
    pub fn add(&self, cpu: usize, executed: usize, weight: u64) {
        match &self.count {
            Count::Own { addresses, cells, .. } => {
                let length = addresses.len();
                add(&cells[cpu * length..][..length][executed - 1], weight);
            }
            Count::Shared(Counter(cells)) => add(&cells[cpu], executed as u64 * weight),
        }
    }

    /// Whether its first instruction is the one at `position` of the segment `last`, which the CPU began last, and
    /// begins again without having been executed. Such an instruction is a store that may modify its own block: QEMU
    /// abandons the block at the store, translates the store again into a block of its own, and executes it there. Another
    /// is a repeated string instruction: it begins once more than it is repeated, and a processor retires it once.
    /// Otherwise only jumps begin twice in a row.
    #[inline]
    pub fn repeats(&self, last: &Self, position: usize) -> bool {
        match &self.count {
            Count::Own { again: true, addresses, .. } => {
                last.addresses().get(position) == Some(&addresses[0])
            }
            _ => false,
        }
    }

    /// Whether a fault of code of this privilege at `address` can be one of the instruction with this number.
    pub fn is_at(&self, number: usize, address: u64, privilege: Privilege) -> bool {
        let addresses = self.addresses();
        self.privilege == privilege
            && (addresses.is_empty() || addresses.get(number) == Some(&address))
    }
}

/// All segments of a machine.
#[derive(Debug)]
pub struct Segments {
    cpus: usize,
    /// The largest number of instructions of all segments with their own counts.
    limit: usize,
    instructions: usize,
    /// Segments with their own counts, by their addresses and whether the first instruction may begin again.
    own: HashMap<(Box<[u64]>, bool), &'static Segment>,
    shared: [&'static Segment; 3],
    /// Instructions in user mode.
    pub user: Counter,
    /// Kernel instructions beyond the limit.
    pub kernel_other: Counter,
    /// Privileged instructions in the lower half of the address space.
    pub firmware: Counter,
}

impl Segments {
    /// No segments, for a machine with these CPUs. Those with their own counts have at most `limit` instructions together.
    pub fn new(cpus: usize, limit: usize) -> Self {
        let [user, kernel_other, firmware] = [(); 3].map(|()| Counter::new(cpus));
        let shared = [
            (Privilege::User, user),
            (Privilege::Kernel, kernel_other),
            (Privilege::Firmware, firmware),
        ];
        let shared = shared.map(|(privilege, counter)| {
            let count = Count::Shared(counter);
            &*Box::leak(Box::new(Segment { privilege, count }))
        });
        let (instructions, own) = (0, HashMap::new());
        Self { cpus, limit, instructions, own, shared, user, kernel_other, firmware }
    }

    /// The segment of the kernel with these instructions. Beyond the limit it is one that others share.
    pub fn kernel(&mut self, addresses: &[u64], again: bool) -> &'static Segment {
        let key = (addresses.into(), again);
        if let Some(known) = self.own.get(&key) {
            return known;
        }
        if self.instructions + addresses.len() > self.limit {
            return self.shared(Privilege::Kernel);
        }
        self.instructions += addresses.len();
        let cells = cells(addresses.len() * self.cpus);
        let count = Count::Own { addresses: addresses.into(), again, cells };
        let segment = Box::leak(Box::new(Segment { privilege: Privilege::Kernel, count }));
        self.own.insert(key, segment);
        segment
    }

    /// The segment that stands for any instructions of this privilege.
    pub fn shared(&self, privilege: Privilege) -> &'static Segment {
        let mut shared = self.shared.into_iter();
        shared.find(|it| it.privilege == privilege).expect("each privilege has one")
    }

    /// The segment of the instruction `number` of another one alone.
    pub fn alone(&mut self, of: &Segment, number: usize) -> &'static Segment {
        match of.addresses().get(number) {
            Some(address) => self.kernel(&[*address], false),
            None => self.shared(of.privilege),
        }
    }

    /// Returns how often `cpu` executed each kernel instruction, in the order of addresses, and resets these counts.
    pub fn take(&self, cpu: usize) -> Vec<Executed> {
        let mut executed = BTreeMap::new();
        for segment in self.own.values() {
            let Count::Own { addresses, cells, .. } = &segment.count else { continue };
            let mut count = 0;
            let cells = &cells[cpu * addresses.len()..][..addresses.len()];
            for (cell, address) in cells.iter().zip(addresses).rev() {
                count += take(cell);
                if count > 0 {
                    *executed.entry(*address).or_insert(0) += count;
                }
            }
        }
        executed.into_iter().map(|(address, count)| Executed { address, count }).collect()
    }
}

/// Adds to a cell of this thread's CPU.
#[inline]
pub fn add(cell: &AtomicU64, count: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(count), Relaxed);
}

fn take(cell: &AtomicU64) -> u64 {
    let count = cell.load(Relaxed);
    cell.store(0, Relaxed);
    count
}

/// Allocates cells that are never freed, because translations contain their addresses.
pub fn cells(count: usize) -> &'static [AtomicU64] {
    Vec::leak((0..count).map(|_| AtomicU64::new(0)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(segments: &Segments, cpu: usize) -> Vec<(u64, u64)> {
        segments.take(cpu).into_iter().map(|it| (it.address, it.count)).collect()
    }

    #[test]
    fn instructions_are_counted_by_cpu_and_address() {
        let mut segments = Segments::new(2, 10);
        let (long, short) =
            (segments.kernel(&[10, 11, 15], false), segments.kernel(&[11, 15], false));
        assert!(std::ptr::eq(long, segments.kernel(&[10, 11, 15], false)));
        long.add(1, 3, 1);
        long.add(1, 3, 1);
        long.add(1, 1, 1);
        short.add(1, 2, 5);
        short.add(0, 1, 1);
        short.add(0, 2, 0);
        assert_eq!(taken(&segments, 1), [(10, 3), (11, 7), (15, 7)]);
        assert_eq!(taken(&segments, 0), [(11, 1)]);
        assert_eq!(taken(&segments, 1), []);
    }

    #[test]
    fn user_instructions_are_a_sum() {
        let segments = Segments::new(2, 10);
        let segment = segments.shared(Privilege::User);
        segment.add(1, 3, 1);
        segment.add(1, 2, 1);
        assert_eq!([0, 1].map(|cpu| segments.user.take(cpu)), [0, 5]);
        assert!(segment.is_at(7, 77, Privilege::User) && !segment.is_at(7, 77, Privilege::Kernel));
        assert_eq!(taken(&segments, 1), []);
    }

    #[test]
    fn segments_are_limited() {
        let mut segments = Segments::new(1, 5);
        let is_own = |segments: &mut Segments, addresses: &[u64]| {
            !segments.kernel(addresses, false).addresses().is_empty()
        };
        assert!(is_own(&mut segments, &[1, 2, 3]) && !is_own(&mut segments, &[4, 5, 6]));
        assert!(is_own(&mut segments, &[1, 2, 3]) && is_own(&mut segments, &[4, 5]));
        segments.kernel(&[6, 7], false).add(0, 2, 1);
        assert_eq!(segments.kernel_other.take(0), 2);
    }

    #[test]
    #[should_panic(expected = "out of bounds")]
    fn a_number_beyond_the_segment_is_not_counted_for_another_cpu() {
        Segments::new(2, 5).kernel(&[1, 2], false).add(0, 3, 1);
    }
}
