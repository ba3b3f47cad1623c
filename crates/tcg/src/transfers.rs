//! Counts the lines of memory that CPUs take from each other, by instruction and by what lies there. Caches have no
//! limits, so only what CPUs do to each other counts.

mod directory;
mod filter;
mod lines;
mod objects;

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};

use flight::profile::{BEYOND, MAX_TRANSFERS, Object, TransferCount, Transfers};
use foldhash::fast::FixedState;

use crate::arch::Architecture;
use crate::arguments::Arguments;
use crate::machine::{Access, Machine};
use crate::observer::{At, Observer, Slice};
use directory::{LINE, MOST_CPUS, Transfer, split};
use lines::Lines;
use objects::Objects;

/// The counts of all CPUs.
pub struct TransferCounts<A> {
    lines: Lines,
    counts: Mutex<Counts>,
    architecture: PhantomData<A>,
}

struct Counts {
    objects: Objects,
    /// The counts of each CPU by instruction and object.
    cpus: Vec<HashMap<(u64, Object), Transfers, FixedState>>,
}

impl<A: Architecture> TransferCounts<A> {
    /// Counts of 0, for a machine with these CPUs. `None` unless transfers are to be counted.
    pub fn new(arguments: &Arguments, cpus: u16) -> Option<Self> {
        let homes = arguments.transfers.as_ref()?;
        let nodes: Vec<u16> = homes.iter().copied().take(MOST_CPUS).collect();
        let objects = Objects::new(arguments.layout, arguments.per_cpu, cpus);
        let counts = Counts { objects, cpus: vec![HashMap::default(); nodes.len()] };
        let lines = Lines::new(&nodes);
        Some(Self { lines, counts: Mutex::new(counts), architecture: PhantomData })
    }

    /// The instruction at `by` makes an access. If it `locks`, its load already takes the line to write.
    #[inline]
    pub fn accesses(
        &self,
        machine: &impl Machine,
        at: At<'_>,
        (by, locks): (u64, bool),
        access: &impl Access,
    ) {
        let (address, stores) = (access.address(), locks || access.is_store());
        let (bytes, next) = split(address, access.size());
        if next == 0 && self.lines.has(at.cpu, address, bytes, stores) {
            return;
        }
        let Some(physical) = access.physical() else { return };
        let takes = |address: u64, physical: u64, bytes| {
            if let Some(taken) = self.lines.access(at.cpu, (address, physical), bytes, stores)
                && at.running.weight() > 0
            {
                let mut counts = self.lock();
                let object = counts.objects.find::<A>(machine, address, physical);
                counts.add(at.cpu, (by, object), taken);
            }
        };
        takes(address, physical, bytes);
        // The next page can be anywhere.
        let begins = (physical / LINE + 1) * LINE;
        if next != 0 && !begins.is_multiple_of(PAGE) {
            takes(address + (begins - physical), begins, next);
        }
    }

    /// The CPU's virtual addresses may have other physical ones from now on.
    pub fn flushes(&self, cpu: usize) {
        self.lines.flush(cpu);
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes of a page.
const PAGE: u64 = 4096;

impl Counts {
    fn add(&mut self, cpu: usize, mut what: (u64, Object), taken: Transfer) {
        let counts = &mut self.cpus[cpu];
        if counts.len() + 1 >= MAX_TRANSFERS && !counts.contains_key(&what) {
            what = (BEYOND, Object::Unknown);
        }
        let sums = counts.entry(what).or_default();
        sums.all += 1;
        sums.upgrades += u64::from(taken.upgrade);
        sums.disjoint += u64::from(taken.disjoint);
        sums.remote += u64::from(taken.remote);
    }
}

impl<A: Architecture> Observer for TransferCounts<A> {
    fn cut(&self, slice: &mut Slice) {
        let mut all = self.lock();
        for (cpu, counts) in slice.counts.cpus.iter_mut().zip(&mut all.cpus) {
            let counts = counts.drain();
            let counts = counts.map(|((address, object), transfers)| TransferCount {
                address,
                object,
                transfers,
            });
            cpu.transfers = counts.collect();
            cpu.transfers.sort_unstable_by_key(|it| (it.address, it.object));
        }
        slice.caches = all.objects.take_names();
    }
}
