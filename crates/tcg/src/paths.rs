//! Keeps the tree of call paths, and counts the instructions executed on each: one tally for each path and
//! block.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flight::profile::{BEYOND, CallSite, MAX_DEPTH, PathCount};

use crate::segments::cells;

/// The number of tallies that are allocated at a time.
const CHUNK: usize = 1 << 12;

/// A path: 0 for the empty path, or the number of its last call site plus 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(pub u32);

impl Path {
    /// The empty path.
    pub const START: Self = Self(0);
    /// The path for all paths without room.
    pub const BEYOND: Self = Self(u32::MAX);
}

/// A jump from one function to another. It is a call that returns together with its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// The path of the function that was called and did not return yet.
    pub called: Path,
    /// The path of the function that jumps.
    pub path: Path,
    /// The beginning of the function that jumps.
    pub from: u64,
}

/// A counter of instructions. It lives as long as QEMU.
pub type Tally = &'static AtomicU64;

/// The tree of call sites, and tallies of the instructions executed on its paths.
#[derive(Debug)]
pub struct Paths {
    limits: Limits,
    sites: Vec<CallSite>,
    depths: Vec<u8>,
    children: HashMap<(Path, u64), Path>,
    keys: Vec<(Path, u64)>,
    chunks: Vec<&'static [AtomicU64]>,
    tallies: HashMap<(Path, u64), Tally>,
    /// The tally for paths and blocks without room.
    beyond: Tally,
    /// The number of call sites that [`Paths::take_sites`] has returned so far.
    taken: usize,
}

/// The largest numbers of call sites and tallies of the tree.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest number of call sites.
    pub sites: usize,
    pub tallies: usize,
}

impl Paths {
    /// A tree without paths.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            sites: Vec::new(),
            depths: Vec::new(),
            children: HashMap::new(),
            keys: Vec::new(),
            chunks: Vec::new(),
            tallies: HashMap::new(),
            beyond: &cells(1)[0],
            taken: 0,
        }
    }

    /// The path that extends `path` by a call at `address`. Paths of the largest length are not extended.
    pub fn call(&mut self, path: Path, address: u64) -> Path {
        let depth = self.depth(path);
        if path == Path::BEYOND || usize::from(depth) == MAX_DEPTH {
            return path;
        }
        let next = self.sites.len();
        if let Some(known) = self.children.get(&(path, address)) {
            return *known;
        }
        if next >= self.limits.sites {
            return Path::BEYOND;
        }
        self.sites.push(CallSite { parent: path.0.checked_sub(1), address });
        self.depths.push(depth + 1);
        let called = Path(next as u32 + 1);
        self.children.insert((path, address), called);
        called
    }

    /// The path after a jump to the function that begins at `to`. If that function is already among the jumps since
    /// the call, the path is cut back to it, so that functions that jump to each other in turn do not make it longer.
    pub fn jump(&mut self, jump: Jump, to: u64) -> Path {
        let mut step = jump.path;
        while let Some(site) = self.site(step).filter(|_| step != jump.called) {
            step = site.parent.map_or(Path::START, |parent| Path(parent + 1));
            if site.address == to {
                return step;
            }
        }
        self.call(jump.path, jump.from)
    }

    /// The tally of the block at `address`, executed on `path`.
    pub fn tally(&mut self, path: Path, address: u64) -> Tally {
        if path == Path::BEYOND {
            return self.beyond;
        }
        if let Some(known) = self.tallies.get(&(path, address)) {
            return known;
        }
        let next = self.keys.len();
        if next >= self.limits.tallies {
            return self.beyond;
        }
        if next / CHUNK == self.chunks.len() {
            self.chunks.push(cells(CHUNK));
        }
        let tally = &self.chunks[next / CHUNK][next % CHUNK];
        self.keys.push((path, address));
        self.tallies.insert((path, address), tally);
        tally
    }

    /// The call sites that were added since the last call of this function.
    pub fn take_sites(&mut self) -> &[CallSite] {
        let from = std::mem::replace(&mut self.taken, self.sites.len());
        &self.sites[from..]
    }

    /// Returns the tallies as [`flight::profile::Phase::stacks`], and resets them to 0.
    pub fn take_tallies(&self) -> Vec<PathCount> {
        let tallies = self.chunks.iter().copied().flatten();
        let counts = self.keys.iter().zip(tallies);
        let counts =
            counts.map(|((path, address), tally)| (path.0.checked_sub(1), *address, tally));
        let beyond = (None, BEYOND, self.beyond);
        let taken = counts.chain([beyond]).map(|(node, address, tally)| {
            let count = tally.load(Relaxed);
            tally.store(0, Relaxed);
            PathCount { node, address, count }
        });
        let mut taken: Vec<_> = taken.filter(|it| it.count > 0).collect();
        taken.sort_unstable();
        taken
    }

    /// The last call site of a path.
    fn site(&self, path: Path) -> Option<CallSite> {
        self.sites.get(path.0.checked_sub(1)? as usize).copied()
    }

    fn depth(&self, path: Path) -> u8 {
        let site = path.0.checked_sub(1).and_then(|site| self.depths.get(site as usize));
        site.copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segments::add;

    /// The tallies as node, address and count.
    fn taken(paths: &Paths) -> Vec<(Option<u32>, u64, u64)> {
        paths.take_tallies().iter().map(|it| (it.node, it.address, it.count)).collect()
    }

    fn paths() -> Paths {
        Paths::new(Limits { sites: 300, tallies: 3 })
    }

    #[test]
    fn equal_paths_are_one() {
        let mut paths = paths();
        let fault = paths.call(Path::START, 10);
        let clear = paths.call(fault, 20);
        assert_eq!(paths.call(Path::START, 10), fault);
        assert_eq!(paths.call(fault, 20), clear);
        assert_ne!(paths.call(Path::START, 20), clear);
        let sites = [(None, 10), (Some(0), 20), (None, 20)];
        let sites = sites.map(|(parent, address)| CallSite { parent, address });
        assert_eq!(paths.take_sites(), sites);
        assert_eq!(paths.take_sites(), []);
    }

    #[test]
    fn jumps_beyond_the_longest_path_are_limited() {
        let mut paths = paths();
        let longest = (0..MAX_DEPTH).fold(Path::START, |path, _| paths.call(path, 7));
        let jump = |path, from| Jump { called: longest, path, from };
        assert_eq!(paths.jump(jump(longest, 1), 2), longest);
        assert_eq!(paths.jump(jump(longest, 2), 1), longest);
        assert_eq!(paths.jump(jump(Path::BEYOND, 2), 1), Path::BEYOND);
    }

    #[test]
    fn a_jump_back_to_the_caller_is_not_a_return() {
        let mut paths = paths();
        let called = paths.call(Path::START, 1);
        let jump = Jump { called, path: called, from: 2 };
        let path = paths.jump(jump, 1);
        assert_eq!(paths.call(called, 2), path);
    }

    #[test]
    fn tallies_are_taken_in_order_and_start_again() {
        let mut paths = paths();
        let path = paths.call(Path::START, 10);
        add(paths.tally(path, 50), 1);
        add(paths.tally(path, 40), 2);
        add(paths.tally(path, 50), 3);
        paths.tally(Path::START, 60);
        assert_eq!(taken(&paths), [(Some(0), 40, 2), (Some(0), 50, 4)]);
        add(paths.tally(Path::START, 60), 1);
        assert_eq!(taken(&paths), [(None, 60, 1)]);
        assert_eq!(taken(&paths), []);
    }

    #[test]
    fn paths_without_room_count_as_beyond() {
        let mut paths = paths();
        for address in 1..=5 {
            add(paths.tally(Path::START, address), 1);
        }
        let expected = [(None, BEYOND, 2), (None, 1, 1), (None, 2, 1), (None, 3, 1)];
        assert_eq!(taken(&paths), expected);
        let last = (0..=300).map(|address| paths.call(Path::START, address)).last();
        assert_eq!(last, Some(Path::BEYOND));
        assert_eq!(paths.call(Path::BEYOND, 1), Path::BEYOND);
        add(paths.tally(Path::BEYOND, 1), 1);
        assert_eq!(taken(&paths), [(None, BEYOND, 1)]);
    }

    #[test]
    fn the_longest_paths_are_not_extended() {
        let mut paths = paths();
        let longest = (0..MAX_DEPTH).fold(Path::START, |path, _| paths.call(path, 7));
        assert_eq!(longest, Path(MAX_DEPTH as u32));
        assert_eq!(paths.call(longest, 7), longest);
        assert_eq!(paths.take_sites().len(), MAX_DEPTH);
    }
}
