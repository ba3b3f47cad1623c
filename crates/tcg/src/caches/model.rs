//! The caches and TLBs of all CPUs, with a short way for most accesses.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use flight::profile::Misses;

use super::hierarchy::{Caches, Found};
use super::lru::FLAG;
use super::tlb::{Known, Tlbs};
use crate::arch::Walk;
use crate::arguments::Shape;
use crate::transfers::LINE;

/// The recent accesses that a CPU remembers, by line. A power of 2.
const RECENT: usize = 64;

/// A recent access. It is made again without any change if its line and its page are still the most recent ones of
/// their sets: then nothing has to be looked up, not even the physical address.
#[derive(Default)]
struct Recent {
    /// The number of the line by virtual address, plus 1.
    line: AtomicU64,
    /// The entry of the line in L1D with the flag, and where its set begins.
    cached: AtomicU64,
    cached_at: AtomicUsize,
    /// The same of the page in the TLB.
    page: AtomicU64,
    page_at: AtomicUsize,
}

struct Cpu {
    tlbs: Tlbs,
    recent: Box<[Recent; RECENT]>,
}

/// Caches and TLBs.
pub struct Model {
    caches: Caches,
    cpus: Vec<Cpu>,
}

impl Model {
    /// Empty caches and TLBs.
    pub fn new(shape: &Shape) -> Self {
        let recent = || Box::new(std::array::from_fn(|_| Recent::default()));
        let cpus = shape.homes.iter().map(|_| Cpu { tlbs: Tlbs::new(shape), recent: recent() });
        Self { caches: Caches::new(shape), cpus: cpus.collect() }
    }

    /// Whether an access within a line misses nothing and changes nothing, as far as that is known without its physical
    /// address.
    #[inline]
    pub fn has(&self, cpu: usize, address: u64, stores: bool) -> bool {
        let Cpu { tlbs, recent } = &self.cpus[cpu];
        let recent = &recent[place(address)];
        let entry = |at: &AtomicUsize| self.caches.entry(cpu, at.load(Relaxed));
        // A load does not ask whether the CPU has the line alone.
        let ignored = if stores { 0 } else { FLAG };
        recent.line.load(Relaxed) == address / LINE + 1
            && entry(&recent.cached_at) | ignored == recent.cached.load(Relaxed)
            && tlbs.entry(recent.page_at.load(Relaxed)) == recent.page.load(Relaxed)
    }

    /// A CPU accesses a line at a virtual and physical address. `walk` finds the page if no TLB has it. Returns what
    /// missed, with the loads of the walk.
    pub fn access(
        &self,
        cpu: usize,
        (address, physical): (u64, u64),
        stores: bool,
        walk: impl FnOnce() -> Walk,
    ) -> Misses {
        let Cpu { tlbs, recent } = &self.cpus[cpu];
        let mut misses = Misses::default();
        let (known, page_at, page) = tlbs.touch(address, || {
            let walk = walk();
            for load in walk.loads {
                count(&mut misses, self.caches.access(cpu, load / LINE, false));
            }
            walk.page
        });
        misses.dtlb += u64::from(known > Known::First);
        misses.stlb += u64::from(known > Known::Second);
        let line = physical / LINE;
        count(&mut misses, self.caches.access(cpu, line, stores));
        let (cached_at, cached) = self.caches.recent(cpu, line);
        let recent = &recent[place(address)];
        recent.line.store(address / LINE + 1, Relaxed);
        recent.cached.store(cached, Relaxed);
        recent.cached_at.store(cached_at, Relaxed);
        recent.page.store(page, Relaxed);
        recent.page_at.store(page_at, Relaxed);
        misses
    }

    /// A CPU forgets pages: all of them, or all but global ones.
    pub fn flush(&self, cpu: usize, keeps_global: bool) {
        self.cpus[cpu].tlbs.flush(keeps_global);
    }

    /// A CPU forgets the page of an address.
    pub fn flush_page(&self, cpu: usize, address: u64) {
        self.cpus[cpu].tlbs.flush_page(address);
    }
}

fn place(address: u64) -> usize {
    (address / LINE) as usize % RECENT
}

fn count(misses: &mut Misses, found: Found) {
    misses.l1d += u64::from(found > Found::First);
    misses.l2 += u64::from(found > Found::Second);
    misses.llc += u64::from(found > Found::Last);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::slow::{Slow, walk};
    use super::*;
    use crate::arch::Page;
    use crate::arguments::{CacheShape, TlbShape};

    const PAGE: u64 = 4096;

    /// A Skylake with one CPU.
    fn skylake() -> Shape {
        Shape::parse("0:64.8:1024.16.0:2048.11:1.16.4:2.8.4:4.1.4/3.128.12:4.4.4").unwrap()
    }

    /// What misses in the last of four rounds over `number` places that are `step` bytes apart, in pages of one size.
    fn rounds(number: u64, step: u64, size: u32) -> Misses {
        let model = Model::new(&skylake());
        let mut misses = Misses::default();
        for _ in 0..4 {
            misses = Misses::default();
            for address in (0..number).map(|it| it * step) {
                let walk = || Walk { loads: Vec::new(), page: Page { size, global: false } };
                if !model.has(0, address, false) {
                    misses = misses.plus(model.access(0, (address, address), false, walk));
                }
            }
        }
        misses
    }

    #[test]
    fn rounds_miss_once_they_exceed_a_size_or_the_ways() {
        let misses = |[l1d, l2, llc]: [u64; 3]| Misses { l1d, l2, llc, ..Misses::default() };
        // All of L1D, and one line more: those of its set miss, the others do not.
        assert_eq!(rounds(512, 64, 2), misses([0, 0, 0]));
        assert_eq!(rounds(513, 64, 2), misses([9, 0, 0]));
        assert_eq!(rounds(1024, 64, 2), misses([1024, 0, 0]));
        // One set of L1D, and of L2.
        assert_eq!(rounds(8, 4096, 2), misses([0, 0, 0]));
        assert_eq!(rounds(9, 4096, 2), misses([9, 0, 0]));
        assert_eq!(rounds(16, 65536, 2), misses([16, 0, 0]));
        assert_eq!(rounds(17, 65536, 2), misses([17, 17, 0]));
        // All of L2, twice as much, and more than L2 and LLC have together: 16 + 22 lines in each set of L2.
        assert_eq!(rounds(16384, 64, 2), misses([16384, 0, 0]));
        assert_eq!(rounds(32768, 64, 2), misses([32768, 32768, 0]));
        assert_eq!(rounds(38 * 1024, 64, 2), misses([38 * 1024, 38 * 1024, 0]));
        assert_eq!(rounds(65536, 64, 2), misses([65536, 65536, 65536]));
    }

    #[test]
    fn rounds_over_pages_miss_once_they_exceed_a_tlb() {
        let tlbs = |number, step, size| {
            let Misses { dtlb, stlb, .. } = rounds(number, step, size);
            (dtlb, stlb)
        };
        assert_eq!(tlbs(64, PAGE, 0), (0, 0));
        assert_eq!(tlbs(65, PAGE, 0), (5, 0));
        assert_eq!(tlbs(128, PAGE, 0), (128, 0));
        assert_eq!(tlbs(1536, PAGE, 0), (1536, 0));
        assert_eq!(tlbs(1537, PAGE, 0), (1537, 13));
        assert_eq!(tlbs(3072, PAGE, 0), (3072, 3072));
        // One set of each level.
        assert_eq!(tlbs(4, 16 * PAGE, 0), (0, 0));
        assert_eq!(tlbs(12, 128 * PAGE, 0), (12, 0));
        assert_eq!(tlbs(13, 128 * PAGE, 0), (13, 13));
        assert_eq!(tlbs(32, 1 << 21, 1), (0, 0));
        assert_eq!(tlbs(1536, 1 << 21, 1), (1536, 0));
        assert_eq!(tlbs(4, 1 << 30, 2), (0, 0));
        assert_eq!(tlbs(16, 1 << 30, 2), (16, 0));
        assert_eq!(tlbs(32, 1 << 30, 2), (32, 32));
    }

    #[test]
    fn loads_of_a_walk_go_through_the_caches() {
        let model = Model::new(&skylake());
        let page = Page { size: 0, global: true };
        let access = |address: u64| {
            let loads = vec![0x1_0000, 0x2_0000, 0x3_0000, 0x4_0000, 0x5_0000 + address / PAGE * 8];
            model.access(0, (address, address), false, || Walk { loads, page })
        };
        let misses = |l1d, stlb| Misses { l1d, l2: l1d, llc: l1d, dtlb: stlb, stlb };
        assert_eq!(access(0), misses(6, 1));
        // The next entry of the last table is in the same line.
        assert_eq!(access(PAGE), misses(1, 1));
        assert_eq!(access(8 * PAGE), misses(2, 1));
        model.flush(0, true);
        assert!(model.has(0, 8 * PAGE, false));
        model.flush_page(0, PAGE);
        assert_eq!(access(PAGE), misses(0, 1));
        model.flush(0, false);
        assert!(!model.has(0, 8 * PAGE, false));
        assert_eq!(access(8 * PAGE), misses(0, 1));
    }

    #[test]
    fn cpus_take_lines_from_the_caches_of_others() {
        // Two CPUs share a last-level cache, one is elsewhere.
        let model = Model::new(&Shape { homes: vec![0, 0, 1], ..skylake() });
        let page = || Walk::UNKNOWN;
        let access = |cpu, stores| match model.has(cpu, 64, stores) {
            true => [0; 3],
            false => {
                let Misses { l1d, l2, llc, .. } = model.access(cpu, (64, 64), stores, page);
                [l1d, l2, llc]
            }
        };
        assert_eq!(access(0, true), [1, 1, 1]);
        assert_eq!(access(0, true), [0, 0, 0]);
        // From the other CPU, then from another node.
        assert_eq!(access(1, true), [1, 1, 0]);
        assert_eq!(access(2, false), [1, 1, 1]);
        assert_eq!(access(2, false), [0, 0, 0]);
        assert_eq!(access(1, false), [0, 0, 0]);
        assert_eq!(access(0, false), [1, 1, 0]);
        assert_eq!(access(1, true), [0, 0, 0]);
        assert_eq!((access(0, false), access(2, false)), ([1, 1, 0], [1, 1, 1]));
    }

    #[derive(Clone, Debug)]
    enum Event {
        Access { cpu: usize, page: u64, line: u64, stores: bool },
        Flush(usize, bool),
        FlushPage(usize, u64),
    }

    fn event() -> impl Strategy<Value = Event> {
        let access = (0..3_usize, 0..30_u64, 0..4_u64, any::<bool>());
        prop_oneof![
            60 => access.prop_map(|(cpu, page, line, stores)| {
                Event::Access { cpu, page, line, stores }
            }),
            1 => (0..3_usize, any::<bool>()).prop_map(|(cpu, global)| Event::Flush(cpu, global)),
            2 => (0..3_usize, 0..30_u64).prop_map(|(cpu, page)| Event::FlushPage(cpu, page)),
        ]
    }

    fn small(inclusive: bool) -> Shape {
        let tlb = |sizes, sets, ways| TlbShape { sizes, sets, ways };
        Shape {
            homes: vec![0, 1, 1],
            l1: CacheShape { sets: 4, ways: 2 },
            l2: CacheShape { sets: 5, ways: 3 },
            inclusive,
            last: CacheShape { sets: 7, ways: 2 },
            dtlb: vec![tlb(1, 2, 2), tlb(6, 1, 3)],
            stlb: vec![tlb(3, 4, 2), tlb(4, 1, 2)],
        }
    }

    /// Pages of all sizes, of processes and global.
    fn address(page: u64, line: u64) -> u64 {
        ((page % 6) << 39) + (page << 12) + ((page % 3) << 21) + line * 64
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        // What the short way passes by is no access of the slow model's, or one that misses nothing.
        #[test]
        fn it_agrees_with_lists_and_times(
            inclusive in any::<bool>(),
            events in prop::collection::vec(event(), 0..400),
        ) {
            let shape = small(inclusive);
            let (fast, plain, mut slow) = (Model::new(&shape), Model::new(&shape), Slow::new(&shape));
            for event in events {
                match event {
                    Event::Access { cpu, page, line, stores } => {
                        let address = address(page, line);
                        let both = (address, address % (1 << 39));
                        let walk = walk(address);
                        let expected = slow.access(cpu, both, stores, &walk);
                        prop_assert_eq!(plain.access(cpu, both, stores, || walk.clone()), expected);
                        let found = match fast.has(cpu, address, stores) {
                            true => Misses::default(),
                            false => fast.access(cpu, both, stores, || walk.clone()),
                        };
                        prop_assert_eq!(found, expected);
                    }
                    Event::Flush(cpu, global) => {
                        [&fast, &plain].iter().for_each(|it| it.flush(cpu, global));
                        slow.flush(cpu, global);
                    }
                    Event::FlushPage(cpu, page) => {
                        [&fast, &plain].iter().for_each(|it| it.flush_page(cpu, address(page, 0)));
                        slow.flush_page(cpu, address(page, 0));
                    }
                }
            }
        }
    }
}
