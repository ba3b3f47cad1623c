//! Counts the lines of memory that CPUs take from each other, by instruction and by what lies there. Caches have no
//! limits, so only what CPUs do to each other counts.

mod directory;
mod filter;
mod lines;
mod objects;
mod pair;
mod sites;

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use flight::profile::{BEYOND, MAX_TRANSFERS, Object, TransferCount, Transfers};
use foldhash::fast::FixedState;

use crate::arch::Architecture;
use crate::arguments::Arguments;
use crate::machine::{Access, Allocator, Machine};
use crate::observer::{At, Observer, Slice};
pub use directory::LINE;
use directory::{MOST_CPUS, Taken, Transfer, split};
use lines::Lines;
use objects::Objects;
use sites::Returns;

/// The counts of all CPUs.
pub struct TransferCounts<A> {
    lines: Lines,
    /// The kernel's functions that allocate memory, by their beginning.
    allocators: HashMap<u64, Allocator>,
    /// Whether any of them runs.
    allocates: AtomicBool,
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
        let (lines, allocates) = (Lines::new(&nodes), AtomicBool::new(false));
        let Arguments { allocators, per_cpu_allocators, .. } = arguments;
        let general = allocators.iter().map(|(begin, size)| (*begin, false, *size));
        let all = general.chain(per_cpu_allocators.iter().map(|begin| (*begin, true, 1)));
        let all = all.map(|(begin, per_cpu, size)| (begin, Allocator { per_cpu, size }));
        let allocators = all.collect();
        let (counts, architecture) = (Mutex::new(counts), PhantomData);
        Some(Self { lines, allocators, allocates, counts, architecture })
    }

    /// The function that begins at this address; `None` if it allocates no memory.
    pub fn allocator(&self, address: u64) -> Option<Allocator> {
        self.allocators.get(&address).copied()
    }

    /// A function that allocates memory begins.
    pub fn begins_to_allocate(&self, machine: &impl Machine, allocator: Allocator) {
        let size = A::argument(allocator.size, machine);
        let what = match allocator.per_cpu {
            true => size.map(Returns::PerCpu),
            // A size that does not fit is no size of a type.
            false => Some(Returns::Object(size.and_then(|it| it.try_into().ok()).unwrap_or(0))),
        };
        let slot = machine.register(A::STACK_POINTER);
        if let (Some(what), Some(slot)) = (what, slot)
            && let Some(returns_to) = machine.read(slot)
        {
            let mut counts = self.lock();
            counts.objects.sites.begins(slot, u64::from_le_bytes(returns_to), what);
            self.allocates.store(true, Relaxed);
        }
    }

    /// A function of the kernel returns. Most often none allocates, and no lock is taken.
    #[inline(always)]
    pub fn returns(&self, machine: &impl Machine) {
        if self.allocates.load(Relaxed)
            && let Some(slot) = machine.register(A::STACK_POINTER)
        {
            let sites = &mut self.lock().objects.sites;
            sites.returns(slot, || A::returned(machine));
            self.allocates.store(!sites.is_idle(), Relaxed);
        }
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
pub const PAGE: u64 = 4096;

impl Counts {
    fn add(&mut self, cpu: usize, mut what: (u64, Object), taken: Taken) {
        let counts = &mut self.cpus[cpu];
        if counts.len() + 1 >= MAX_TRANSFERS && !counts.contains_key(&what) {
            what = (BEYOND, Object::Unknown);
        }
        let sums = counts.entry(what).or_default();
        let Taken::Line(Transfer { upgrade, disjoint, remote }) = taken else {
            sums.pairs += 1;
            return;
        };
        sums.all += 1;
        sums.upgrades += u64::from(upgrade);
        sums.disjoint += u64::from(disjoint);
        sums.remote += u64::from(remote);
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
        slice.caches = all.objects.take_caches();
    }
}

#[cfg(test)]
mod tests {
    use flight::profile::{Cpu, Phase};

    use super::*;
    use crate::arch::X86_64;
    use crate::machine::fake::{Fake, FakeAccess};
    use crate::running::Running;

    const MEMORY: u64 = 0xff11_0000_0000_0000;
    const PAGES: u64 = 0xffd4_0000_0000_0000;
    const CACHE: u64 = MEMORY + 0x8000;
    const STACK: u64 = 0xffa0_0000_0001_3f00;
    const SITE: u64 = 0xffff_ffff_8123_4567;

    /// Counts of two CPUs, and a machine whose page 4 is a slab of `kmalloc`.
    fn counts() -> (TransferCounts<X86_64>, Fake) {
        let words = ["transfers=0.1", "allocators=0x20:3", "per-cpu-allocators=0x30"];
        let words = words.into_iter().chain(["layout=64:8:48:245:8:24:96"]).map(str::to_owned);
        let arguments = Arguments::parse(&words.collect::<Vec<_>>()).unwrap();
        let mut machine = Fake::new(X86_64::REGISTERS);
        let page = PAGES + 4 * 64;
        for (address, word) in [
            (page + 8, CACHE),
            (page + 48, 0xf500_0000),
            (CACHE + 24, 256),
            (CACHE + 96, CACHE + 0x100),
            (STACK, SITE),
        ] {
            machine.write(address, &u64::to_le_bytes(word));
        }
        machine.write(CACHE + 0x100, b"kmalloc-256\0");
        (TransferCounts::new(&arguments, 2).unwrap(), machine)
    }

    #[test]
    fn what_cpus_take_is_counted_by_who_allocated_it() {
        let (counts, mut machine) = counts();
        assert_eq!(
            [0x20, 0x30, 0x40].map(|it| counts.allocator(it).map(Allocator::number)),
            [Some(6), Some(3), None]
        );
        machine.set("rsp", STACK);
        machine.set("rdx", 200);
        counts.begins_to_allocate(&machine, Allocator::of(6));
        // Another function returns, then this one.
        for (stack, value) in [(STACK - 64, MEMORY + 0x4000), (STACK, MEMORY + 0x4100)] {
            machine.set("rsp", stack);
            machine.set("rax", value);
            counts.returns(&machine);
        }
        let running = Running::new();
        let access = |cpu: usize, offset: u64, store: bool| {
            let (address, physical) = (MEMORY + 0x4100 + offset, Some(0x4100 + offset));
            let access = FakeAccess { physical, store, ..FakeAccess::load(address, 0) };
            counts.accesses(&machine, At { cpu, running: &running }, (7, false), &access);
        };
        access(0, 8, true);
        access(1, 8, false);
        // The other line of the pair: first it misses in any case.
        access(1, 64, true);
        access(0, 8, false);
        access(0, 8, false);
        let cpus = vec![Cpu::default(); 2];
        let mut slice = Slice { counts: Phase { cpus, ..Phase::default() }, ..Slice::default() };
        counts.cut(&mut slice);
        let taken = |cpu: usize| &slice.counts.cpus[cpu].transfers[..];
        let object = Object::Allocated { site: SITE, size: 200, offset: 8 };
        let of = |transfers| [TransferCount { address: 7, object, transfers }];
        let line = Transfers { all: 1, remote: 1, ..Transfers::default() };
        let pair = Transfers { pairs: 1, ..Transfers::default() };
        assert_eq!((taken(0), taken(1)), (&of(pair)[..], &of(line)[..]));
        assert_eq!(slice.caches, ["kmalloc-256 256"]);
    }
}
