//! The same model, slowly: everything is a list, and what was used last is told by time.

use flight::profile::Misses;

use crate::arch::{Page, Walk};
use crate::arguments::{CacheShape, Shape, TlbShape};

/// A line or a page, the time of its last use, and whether a page is global.
type Entry = (u64, u64, bool);

/// A cache, or TLBs of one level for some sizes of pages.
struct Array {
    sets: u64,
    ways: usize,
    sizes: u64,
    entries: Vec<Entry>,
}

impl Array {
    fn new(sets: u64, ways: usize, sizes: u64) -> Self {
        Self { sets, ways, sizes, entries: Vec::new() }
    }

    fn cache(CacheShape { sets, ways }: CacheShape) -> Self {
        Self::new(sets, ways, 1)
    }

    fn has(&self, key: u64) -> bool {
        self.entries.iter().any(|it| it.0 == key)
    }

    /// Uses a key that it may have.
    fn touches(&mut self, key: u64, time: u64) -> bool {
        let own = self.entries.iter_mut().find(|it| it.0 == key);
        own.map(|it| it.1 = time).is_some()
    }

    /// Uses a key. Returns the one that has to leave.
    fn puts(&mut self, key: u64, time: u64, global: bool) -> Option<u64> {
        if self.touches(key, time) {
            return None;
        }
        self.entries.push((key, time, global));
        let set = |key: u64| key % (1 << 58) % self.sets;
        let own = self.entries.iter().filter(|it| set(it.0) == set(key));
        let full = own.clone().count() > self.ways;
        let oldest = own.min_by_key(|it| it.1).map(|it| it.0).filter(|_| full)?;
        self.drops(oldest);
        Some(oldest)
    }

    fn drops(&mut self, key: u64) -> bool {
        let had = self.has(key);
        self.entries.retain(|it| it.0 != key);
        had
    }
}

fn page(address: u64, size: u32) -> u64 {
    (u64::from(size) << 58) + (address >> (12 + 9 * size))
}

/// Caches and TLBs.
pub struct Slow {
    shape: Shape,
    time: u64,
    /// L1D and L2 of each CPU.
    own: Vec<[Array; 2]>,
    last: Vec<Array>,
    /// Both levels of each CPU.
    tlbs: Vec<[Vec<Array>; 2]>,
}

impl Slow {
    pub fn new(shape: &Shape) -> Self {
        let tlbs = |shapes: &[TlbShape]| -> Vec<Array> {
            shapes.iter().map(|it| Array::new(it.sets, it.ways, it.sizes)).collect()
        };
        let cpus = shape.homes.len();
        let last = |home: usize| {
            let own = shape.homes.iter().filter(|it| **it == home).count() as u64;
            Array::new(shape.last.sets * own.max(1), shape.last.ways, 1)
        };
        Self {
            time: 0,
            own: (0..cpus).map(|_| [shape.l1, shape.l2].map(Array::cache)).collect(),
            last: (0..cpus).map(last).collect(),
            tlbs: (0..cpus).map(|_| [tlbs(&shape.dtlb), tlbs(&shape.stlb)]).collect(),
            shape: shape.clone(),
        }
    }

    pub fn access(
        &mut self,
        cpu: usize,
        (address, physical): (u64, u64),
        stores: bool,
        walk: &Walk,
    ) -> Misses {
        let mut misses = Misses::default();
        let found = [0, 1].map(|level| self.uses_page(cpu, level, address));
        let known = found[0].or(found[1]);
        if known.is_none() {
            for load in &walk.loads {
                self.line(cpu, load / 64, false, &mut misses);
            }
        }
        let (size, global) = known.unwrap_or((walk.page.size, walk.page.global));
        for level in 0..2 {
            let is_here = |it: &&mut Array| it.sizes >> size & 1 != 0;
            if found[..=level].iter().all(Option::is_none) {
                let array = self.tlbs[cpu][level].iter_mut().find(is_here).unwrap();
                array.puts(page(address, size), self.time, global);
            }
        }
        misses.dtlb = found[0].is_none().into();
        misses.stlb = known.is_none().into();
        self.line(cpu, physical / 64, stores, &mut misses);
        misses
    }

    /// The size of the page, and whether it is global, if a level has it. The second level is not asked in vain.
    fn uses_page(&mut self, cpu: usize, level: usize, address: u64) -> Option<(u32, bool)> {
        if level == 1
            && (0..3).any(|size| self.tlbs[cpu][0].iter().any(|it| it.has(page(address, size))))
        {
            return None;
        }
        self.time += 1;
        for array in &mut self.tlbs[cpu][level] {
            let sizes = array.sizes;
            for size in (0..3).filter(|size| sizes >> size & 1 != 0) {
                let key = page(address, size);
                if array.touches(key, self.time) {
                    let own = array.entries.iter().find(|it| it.0 == key);
                    return own.map(|it| (size, it.2));
                }
            }
        }
        None
    }

    fn line(&mut self, cpu: usize, line: u64, stores: bool, misses: &mut Misses) {
        self.time += 1;
        let home = self.shape.homes[cpu];
        let holders: Vec<usize> = (0..self.own.len())
            .filter(|other| *other != cpu && self.own[*other].iter().any(|it| it.has(line)))
            .collect();
        if !self.own[cpu][0].touches(line, self.time) {
            misses.l1d += 1;
            if !self.own[cpu][1].touches(line, self.time) {
                misses.l2 += 1;
                let near = holders.iter().any(|other| self.shape.homes[*other] == home);
                if !self.last[home].drops(line) && !near {
                    misses.llc += 1;
                }
                self.fills(cpu, line);
            }
            if let Some(gone) = self.own[cpu][0].puts(line, self.time, false)
                && !self.own[cpu][1].has(gone)
            {
                self.fills(cpu, gone);
            }
        }
        if stores {
            for other in holders {
                self.own[other].iter_mut().for_each(|it| {
                    it.drops(line);
                });
            }
            self.last.iter_mut().for_each(|it| {
                it.drops(line);
            });
        }
    }

    /// A line comes to L2.
    fn fills(&mut self, cpu: usize, line: u64) {
        self.time += 1;
        if let Some(gone) = self.own[cpu][1].puts(line, self.time, false) {
            if self.shape.inclusive {
                self.own[cpu][0].drops(gone);
            }
            if !self.own[cpu][0].has(gone) {
                self.last[self.shape.homes[cpu]].puts(gone, self.time, false);
            }
        }
    }

    pub fn flush(&mut self, cpu: usize, keeps_global: bool) {
        for array in self.tlbs[cpu].iter_mut().flatten() {
            array.entries.retain(|it| keeps_global && it.2);
        }
    }

    pub fn flush_page(&mut self, cpu: usize, address: u64) {
        for array in self.tlbs[cpu].iter_mut().flatten() {
            (0..3).for_each(|size| {
                array.drops(page(address, size));
            });
        }
    }
}

/// The page of an address in memory whose pages have several sizes, for tests.
pub fn walk(address: u64) -> Walk {
    let size = (address >> 40) as u32 % 3;
    let global = address >> 39 & 1 != 0;
    let loads = (size..4)
        .rev()
        .map(|level| (address >> (12 + 9 * level)) % 64 * 8 + u64::from(level) * 512);
    Walk { loads: loads.collect(), page: Page { size, global } }
}
