//! The caches of data: L1D and L2 of each CPU, and last-level caches (LLC) that CPUs share.
//!
//! A line that is fetched goes to L1D and L2. One that leaves L1D goes to L2, if that has lost it. One that leaves L2
//! goes to the LLC, unless L1D has it still, and one that is found in the LLC leaves it: the LLC has what does not fit
//! into L2, as in processors since 2017 (a victim cache, not inclusive).
//!
//! A CPU that stores has the only copy of the line (Papamarcos and Patel, 1984). The flag of a line in L1D and L2 says
//! that no other CPU has one.

use std::sync::atomic::Ordering::Relaxed;

use super::lru::{self, Set};
use crate::arguments::{CacheShape, Shape};

/// Where an access found its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Found {
    /// In its own L1D.
    First,
    /// In its own L2.
    Second,
    /// In its LLC, or in a private cache of another CPU with the same LLC.
    Last,
    /// Elsewhere.
    Memory,
}

/// Sets of lines.
struct Cache {
    entries: Box<Set>,
    sets: u64,
    ways: usize,
}

impl Cache {
    fn new(shape: CacheShape) -> Self {
        let CacheShape { sets, ways } = shape;
        Self { entries: lru::entries(sets as usize * ways), sets, ways }
    }

    /// Where the set of a line begins.
    fn place(&self, line: u64) -> usize {
        (line % self.sets) as usize * self.ways
    }

    fn set(&self, line: u64) -> &Set {
        &self.entries[self.place(line)..][..self.ways]
    }
}

/// The caches of one CPU.
struct Private {
    l1: Cache,
    l2: Cache,
    /// The number of its LLC.
    last: usize,
}

impl Private {
    fn set_flag(&self, line: u64, flag: bool) -> bool {
        let [l1, l2] = [&self.l1, &self.l2].map(|it| lru::set_flag(it.set(line), line, flag));
        l1 || l2
    }

    fn remove(&self, line: u64) {
        for cache in [&self.l1, &self.l2] {
            lru::remove(cache.set(line), line);
        }
    }
}

/// All caches.
pub struct Caches {
    cpus: Vec<Private>,
    last: Vec<Cache>,
    /// Whether a line that leaves L2 leaves L1D too.
    inclusive: bool,
}

impl Caches {
    /// Empty caches.
    pub fn new(shape: &Shape) -> Self {
        let private = |last: &usize| Private {
            l1: Cache::new(shape.l1),
            l2: Cache::new(shape.l2),
            last: *last,
        };
        let CacheShape { sets, ways } = shape.last;
        let last = |number| {
            let cpus = shape.homes.iter().filter(|home| **home == number).count() as u64;
            Cache::new(CacheShape { sets: sets * cpus.max(1), ways })
        };
        let number = shape.homes.iter().max().map_or(0, |most| most + 1);
        Self {
            cpus: shape.homes.iter().map(private).collect(),
            last: (0..number).map(last).collect(),
            inclusive: shape.inclusive,
        }
    }

    /// A CPU loads from a line, or stores to it.
    pub fn access(&self, cpu: usize, line: u64, stores: bool) -> Found {
        let own = &self.cpus[cpu];
        let (found, alone) = match lru::touch(own.l1.set(line), line) {
            Some(alone) => (Found::First, alone),
            None => self.fetch(cpu, line),
        };
        if stores && !alone {
            self.take(cpu, line);
        }
        found
    }

    /// Where the set of a line begins in L1D of each CPU, and what is there if the CPU used the line last and has it
    /// alone.
    pub fn recent(&self, cpu: usize, line: u64) -> (usize, u64) {
        (self.cpus[cpu].l1.place(line), lru::entry(line, true))
    }

    /// The entry at a place of L1D.
    #[inline]
    pub fn entry(&self, cpu: usize, place: usize) -> u64 {
        self.cpus[cpu].l1.entries[place].load(Relaxed)
    }

    /// A line comes to L1D. Returns where it was, and whether no other CPU has it.
    fn fetch(&self, cpu: usize, line: u64) -> (Found, bool) {
        let own = &self.cpus[cpu];
        let (found, alone) = match lru::touch(own.l2.set(line), line) {
            Some(alone) => (Found::Second, alone),
            None => {
                let (found, alone) = self.ask(cpu, line);
                self.fill(own, line, alone);
                (found, alone)
            }
        };
        if let Some((gone, alone)) = lru::insert(own.l1.set(line), line, alone)
            && lru::flag(own.l2.set(gone), gone).is_none()
        {
            self.fill(own, gone, alone);
        }
        (found, alone)
    }

    /// A line comes to L2, which does not have it.
    fn fill(&self, own: &Private, line: u64, alone: bool) {
        let Some((gone, _)) = lru::insert(own.l2.set(line), line, alone) else { return };
        let in_l1 = own.l1.set(gone);
        if self.inclusive {
            lru::remove(in_l1, gone);
        }
        let in_last = self.last[own.last].set(gone);
        if lru::flag(in_l1, gone).is_none() && lru::touch(in_last, gone).is_none() {
            lru::insert(in_last, gone, false);
        }
    }

    /// Looks for a line outside of a CPU's own caches. Returns where it was, and whether it is nowhere now. Others that
    /// have it have it no longer alone.
    fn ask(&self, cpu: usize, line: u64) -> (Found, bool) {
        let last = self.cpus[cpu].last;
        let mut is_near = lru::remove(self.last[last].set(line), line);
        let mut alone = self.last.iter().all(|it| lru::flag(it.set(line), line).is_none());
        for other in self.others(cpu) {
            if other.set_flag(line, false) {
                is_near |= other.last == last;
                alone = false;
            }
        }
        (if is_near { Found::Last } else { Found::Memory }, alone)
    }

    /// A CPU, which has the line, takes all other copies.
    fn take(&self, cpu: usize, line: u64) {
        self.others(cpu).for_each(|other| other.remove(line));
        for last in &self.last {
            lru::remove(last.set(line), line);
        }
        self.cpus[cpu].set_flag(line, true);
    }

    fn others(&self, cpu: usize) -> impl Iterator<Item = &Private> {
        let others = self.cpus.iter().enumerate().filter(move |(other, _)| *other != cpu);
        others.map(|(_, other)| other)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shape(inclusive: bool) -> Shape {
        Shape {
            homes: vec![0, 0, 1],
            l1: CacheShape { sets: 2, ways: 2 },
            l2: CacheShape { sets: 4, ways: 2 },
            inclusive,
            last: CacheShape { sets: 3, ways: 2 },
            dtlb: Vec::new(),
            stlb: Vec::new(),
        }
    }

    /// Whether a CPU has the line, and has it alone.
    fn alone(own: &Private, line: u64) -> Option<bool> {
        lru::flag(own.l1.set(line), line).or_else(|| lru::flag(own.l2.set(line), line))
    }

    proptest! {
        #[test]
        fn a_line_has_one_writer_or_many_readers(
            inclusive in any::<bool>(),
            accesses in prop::collection::vec((0..3_usize, 0..40_u64, any::<bool>()), 0..400),
        ) {
            let caches = Caches::new(&shape(inclusive));
            for (cpu, line, stores) in accesses {
                caches.access(cpu, line, stores);
                prop_assert!(lru::flag(caches.cpus[cpu].l1.set(line), line).is_some());
                prop_assert!(!stores || alone(&caches.cpus[cpu], line) == Some(true));
                for line in 0..40 {
                    let flags: Vec<bool> =
                        caches.cpus.iter().filter_map(|it| alone(it, line)).collect();
                    let last = caches.last.iter().filter(|it| lru::flag(it.set(line), line).is_some());
                    if flags.contains(&true) {
                        prop_assert_eq!((flags.len(), last.count()), (1, 0));
                    }
                }
                for cpu in &caches.cpus {
                    let in_l1 = (0..40).filter(|line| lru::flag(cpu.l1.set(*line), *line).is_some());
                    let is_outside = |line: &u64| lru::flag(cpu.l2.set(*line), *line).is_none();
                    prop_assert!(!inclusive || !in_l1.into_iter().any(|line| is_outside(&line)));
                }
            }
        }

        // With one more way nothing misses that hit before (Mattson et al., 1970).
        #[test]
        fn more_ways_miss_no_more(
            accesses in prop::collection::vec((0..40_u64, any::<bool>()), 0..400),
        ) {
            let caches: Vec<Caches> = (1..5)
                .map(|ways| Caches::new(&Shape {
                    homes: vec![0],
                    l1: CacheShape { sets: 3, ways },
                    ..shape(false)
                }))
                .collect();
            for (line, stores) in accesses {
                let found = caches.iter().map(|it| it.access(0, line, stores) == Found::First);
                prop_assert!(found.collect::<Vec<_>>().is_sorted());
            }
        }
    }
}
