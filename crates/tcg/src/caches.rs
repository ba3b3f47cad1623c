//! Counts what misses in a model of caches and TLBs, by instruction.

mod hierarchy;
mod lru;
mod model;
#[cfg(test)]
mod slow;
mod tlb;

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};

use flight::profile::{BEYOND, MAX_MISSES, MissCount, Misses};
use foldhash::fast::FixedState;

use crate::arch::{Architecture, Walk};
use crate::arguments::Shape;
use crate::machine::{Access, Flush, Machine};
use crate::observer::{At, Observer, Slice};
use crate::transfers::{LINE, PAGE};
use model::Model;

/// The largest access that QEMU makes, in bytes.
const LARGEST: u64 = 16;

/// The counts of all CPUs.
pub struct CacheCounts<A> {
    model: Model,
    /// The counts of each CPU by instruction.
    cpus: Mutex<Vec<HashMap<u64, Misses, FixedState>>>,
    architecture: PhantomData<A>,
}

impl<A: Architecture> CacheCounts<A> {
    /// Counts of 0, of empty caches and TLBs.
    pub fn new(shape: &Shape) -> Self {
        let cpus = Mutex::new(vec![HashMap::default(); shape.homes.len()]);
        Self { model: Model::new(shape), cpus, architecture: PhantomData }
    }

    /// The instruction at `by` makes an access.
    #[inline]
    pub fn accesses(&self, machine: &impl Machine, at: At<'_>, by: u64, access: &impl Access) {
        let (address, stores) = (access.address(), access.is_store());
        let room = LINE - address % LINE;
        let crosses = room < LARGEST && access.size() > room;
        if crosses || !self.model.has(at.cpu, address, stores) {
            self.looks_up(machine, at, by, access, crosses.then_some(room));
        }
    }

    /// The same for an access that may change something. It continues in the next line after `next` bytes.
    #[inline(never)]
    fn looks_up(
        &self,
        machine: &impl Machine,
        at: At<'_>,
        by: u64,
        access: &impl Access,
        next: Option<u64>,
    ) {
        let Some(physical) = access.physical() else { return };
        let address = access.address();
        // The next page can be anywhere.
        let next = next.filter(|next| !(address + next).is_multiple_of(PAGE));
        for distance in [Some(0), next].into_iter().flatten() {
            let (address, physical) = (address + distance, physical + distance);
            let walk = || A::walk(address, machine).unwrap_or(Walk::UNKNOWN);
            let misses = self.model.access(at.cpu, (address, physical), access.is_store(), walk);
            if misses != Misses::default() && at.running.weight() > 0 {
                add(&mut self.lock()[at.cpu], by, misses);
            }
        }
    }

    /// The CPU is about to forget pages.
    pub fn flushes(&self, machine: &impl Machine, flush: Flush) {
        let cpu = machine.cpu();
        let page = match flush {
            Flush::Page(register) => machine.register(register),
            _ => None,
        };
        match page {
            Some(address) => self.model.flush_page(cpu, address),
            None => self.model.flush(cpu, flush == Flush::Process),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<HashMap<u64, Misses, FixedState>>> {
        self.cpus.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn add(counts: &mut HashMap<u64, Misses, FixedState>, by: u64, misses: Misses) {
    let is_full = counts.len() + 1 >= MAX_MISSES && !counts.contains_key(&by);
    let sums = counts.entry(if is_full { BEYOND } else { by }).or_default();
    *sums = sums.plus(misses);
}

impl<A: Architecture> Observer for CacheCounts<A> {
    fn cut(&self, slice: &mut Slice) {
        for (cpu, counts) in slice.counts.cpus.iter_mut().zip(&mut *self.lock()) {
            let counts = counts.drain().map(|(address, misses)| MissCount { address, misses });
            cpu.misses = counts.collect();
            cpu.misses.sort_unstable_by_key(|it| it.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use flight::profile::{Cpu, Phase};

    use super::*;
    use crate::arch::X86_64;
    use crate::machine::fake::{Fake, FakeAccess};
    use crate::running::Running;

    /// The kernel's map of all memory, whose page tables are at the beginning of memory.
    const MEMORY: u64 = 0xffff_8880_0000_0000;

    /// Counts, and a machine that maps the first 2 MiB of programs page by page and the kernel's in one page.
    fn counts() -> (CacheCounts<X86_64>, Fake) {
        let shape = "0.0:64.8:1024.16.0:2048.11:1.16.4:2.8.4:4.1.4/3.128.12:4.4.4";
        let mut machine = Fake::new(X86_64::REGISTERS);
        machine.set("cr3", 0x1000);
        machine.set("cr4", 0);
        let tables = [(0x1000, 0x2001), (0x2000, 0x3001), (0x3000, 0x4001)];
        let pages = (0..512).map(|page| (0x4000 + page * 8, 0x10_0001 + page * 0x1000));
        for (place, entry) in tables.into_iter().chain(pages) {
            machine.write(MEMORY + place, &u64::to_le_bytes(entry));
        }
        (CacheCounts::new(&Shape::parse(shape).unwrap()), machine)
    }

    fn load(address: u64, size: u64) -> FakeAccess {
        FakeAccess { physical: Some(0x10_0000 + address), size, ..FakeAccess::load(address, 0) }
    }

    fn cut(counts: &CacheCounts<X86_64>) -> Vec<Vec<MissCount>> {
        let cpus = vec![Cpu::default(); 2];
        let mut slice = Slice { counts: Phase { cpus, ..Phase::default() }, ..Slice::default() };
        counts.cut(&mut slice);
        slice.counts.cpus.into_iter().map(|it| it.misses).collect()
    }

    #[test]
    fn misses_are_counted_by_cpu_and_instruction() {
        let (counts, machine) = counts();
        let running = Running::new();
        let access = |cpu: usize, by: u64, access: FakeAccess| {
            counts.accesses(&machine, At { cpu, running: &running }, by, &access);
        };
        // Four tables and the line, then a line in another page, then nothing.
        access(0, 7, load(0, 8));
        access(0, 7, load(0x1000, 8));
        access(0, 7, load(0x1000, 8));
        // The end of a line, in part and alone, and the end of a page.
        access(0, 9, load(0x103c, 8));
        access(0, 9, load(0x103c, 4));
        access(0, 9, load(0x1ffe, 4));
        // A device.
        access(0, 5, FakeAccess { physical: None, ..load(0x2000, 8) });
        access(1, 7, load(0, 8));
        let misses =
            |l1d, near, walks| Misses { l1d, l2: l1d, llc: l1d - near, dtlb: walks, stlb: walks };
        let of = |address, misses| MissCount { address, misses };
        let expected =
            [vec![of(7, misses(6, 0, 2)), of(9, misses(2, 0, 0))], vec![of(7, misses(5, 5, 1))]];
        assert_eq!(cut(&counts), expected);
        assert_eq!(cut(&counts), [[], []]);
    }

    #[test]
    fn pages_are_walked_again_after_a_flush() {
        let (counts, mut machine) = counts();
        machine.set("rdi", 0x1000);
        let running = Running::new();
        let walks = |machine: &Fake, flush: Flush| {
            counts.flushes(machine, flush);
            for address in [0, 0x1000, 0x2000] {
                counts.accesses(machine, At { cpu: 0, running: &running }, 1, &load(address, 8));
            }
            cut(&counts)[0].first().map_or(0, |it| it.misses.stlb)
        };
        assert_eq!(walks(&machine, Flush::All), 3);
        assert_eq!(walks(&machine, Flush::Page(7)), 1);
        assert_eq!(walks(&machine, Flush::Process), 3);
        // A register that cannot be read.
        assert_eq!(walks(&machine, Flush::Page(8)), 3);
    }
}
