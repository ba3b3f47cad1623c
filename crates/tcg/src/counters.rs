//! Instruction counters: one for each kernel instruction, and a few for all others, each with a cell per CPU.
//! Only the thread that runs a CPU writes its cells.

use std::collections::BTreeMap;
use std::iter;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number of counters that are allocated at a time.
const CHUNK: usize = 1 << 12;

/// A counter with a cell per CPU. It lives as long as QEMU, because translations refer to it.
#[derive(Clone, Copy, Debug)]
pub struct Counter(&'static [AtomicU64]);

impl Counter {
    /// The cell of the first CPU. The cells of the other CPUs follow it.
    pub fn cells(self) -> *const AtomicU64 {
        self.0.as_ptr()
    }

    pub fn cell(self, cpu: usize) -> &'static AtomicU64 {
        &self.0[cpu]
    }

    /// The count of `cpu`.
    pub fn get(self, cpu: usize) -> u64 {
        self.0[cpu].load(Relaxed)
    }

    /// Returns the count, and resets it to 0.
    pub fn take(self, cpu: usize) -> u64 {
        let count = self.get(cpu);
        self.0[cpu].store(0, Relaxed);
        count
    }
}

/// Adds to a cell of this thread's CPU.
pub fn add(cell: &AtomicU64, count: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(count), Relaxed);
}

/// All counters of a machine.
#[derive(Debug)]
pub struct Counters {
    cpus: usize,
    limit: usize,
    chunks: Vec<&'static [AtomicU64]>,
    addresses: BTreeMap<u64, u32>,
    /// Instructions in user mode.
    pub user: Counter,
    /// Kernel instructions beyond the limit of counters.
    pub kernel_other: Counter,
    /// Privileged instructions in the lower half of the address space.
    pub firmware: Counter,
}

impl Counters {
    /// Counters for a machine with these CPUs. Up to `limit` kernel instructions get their own counters.
    pub fn new(cpus: usize, limit: usize) -> Self {
        let [user, kernel_other, firmware] = [(); 3].map(|()| Counter(cells(cpus)));
        let (chunks, addresses) = (Vec::new(), BTreeMap::new());
        Self { cpus, limit, chunks, addresses, user, kernel_other, firmware }
    }

    /// The counter of a kernel instruction, or a shared one if there are too many.
    pub fn kernel(&mut self, address: u64) -> Counter {
        let next = self.addresses.len();
        let number = match self.addresses.get(&address) {
            Some(number) => *number as usize,
            None if next >= self.limit => return self.kernel_other,
            None => {
                self.addresses.insert(address, next as u32);
                next
            }
        };
        if number / CHUNK == self.chunks.len() {
            self.chunks.push(cells(self.cpus * CHUNK));
        }
        self.numbered(number)
    }

    /// Whether the counter belongs to one instruction, not to several.
    pub fn is_one_instructions(&self, counter: Counter) -> bool {
        let common = [self.user, self.kernel_other, self.firmware];
        common.iter().all(|common| common.cells() != counter.cells())
    }

    /// Kernel instructions with their own counters, by address.
    pub fn kernel_counters(&self) -> impl Iterator<Item = (u64, Counter)> {
        let numbers = self.addresses.iter();
        numbers.map(|(address, number)| (*address, self.numbered(*number as usize)))
    }

    /// The counts of `cpu`.
    pub fn counts(&self, cpu: usize) -> Vec<u64> {
        self.cells(cpu).map(|cell| cell.load(Relaxed)).collect()
    }

    /// Sets the counts of `cpu` to those that [`Counters::counts`] returned. Counters made since then get 0.
    pub fn set_counts(&self, cpu: usize, counts: &[u64]) {
        let counts = counts.iter().copied().chain(iter::repeat(0));
        self.cells(cpu).zip(counts).for_each(|(cell, count)| cell.store(count, Relaxed));
    }

    /// The cells of `cpu`, in the order in which they were allocated.
    fn cells(&self, cpu: usize) -> impl Iterator<Item = &'static AtomicU64> {
        let common = [self.user, self.kernel_other, self.firmware];
        let kernel = self.chunks.iter().flat_map(move |it| it[cpu..].iter().step_by(self.cpus));
        common.map(|it| it.cell(cpu)).into_iter().chain(kernel)
    }

    fn numbered(&self, number: usize) -> Counter {
        let start = number % CHUNK * self.cpus;
        Counter(&self.chunks[number / CHUNK][start..start + self.cpus])
    }
}

/// Allocates cells that are never freed, because translations contain their addresses.
pub fn cells(count: usize) -> &'static [AtomicU64] {
    Vec::leak((0..count).map(|_| AtomicU64::new(0)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(counters: &Counters, cpu: usize) -> Vec<(u64, u64)> {
        let counters = counters.kernel_counters();
        counters.map(|(address, counter)| (address, counter.take(cpu))).collect()
    }

    #[test]
    fn each_address_has_one_counter_and_each_cpu_a_cell() {
        let mut counters = Counters::new(2, 10);
        for address in [30, 20, 30] {
            let counter = counters.kernel(address);
            add(counter.cell(1), 1);
        }
        assert_eq!(counters.kernel(30).get(1), 2);
        assert_eq!(taken(&counters, 0), [(20, 0), (30, 0)]);
        assert_eq!(taken(&counters, 1), [(20, 1), (30, 2)]);
        assert_eq!(taken(&counters, 1), [(20, 0), (30, 0)]);
    }

    #[test]
    fn counts_of_one_cpu_are_set_back() {
        let mut counters = Counters::new(2, 10);
        let all = [counters.user, counters.firmware, counters.kernel(30)];
        let add_to_all = || all.map(|it| [0, 1].map(|cpu| add(it.cell(cpu), 1)));
        add_to_all();
        let kept = counters.counts(1);
        add_to_all();
        add(counters.kernel(20).cell(1), 5);
        counters.set_counts(1, &kept);
        assert_eq!(all.map(|it| [it.get(0), it.get(1)]), [[2, 1]; 3]);
        assert_eq!(taken(&counters, 1), [(20, 0), (30, 1)]);
        counters.set_counts(0, &[]);
        assert_eq!(all.map(|it| it.get(0)), [0; 3]);
    }

    #[test]
    fn counters_are_limited() {
        let mut counters = Counters::new(1, 2 * CHUNK);
        for address in 0..2 * CHUNK as u64 {
            counters.kernel(address);
        }
        let other = counters.kernel_other.cells();
        assert_eq!(counters.kernel(u64::MAX).cells(), other);
        assert!(!counters.is_one_instructions(counters.kernel_other));
        let known = counters.kernel(7);
        assert!(counters.is_one_instructions(known));
    }
}
