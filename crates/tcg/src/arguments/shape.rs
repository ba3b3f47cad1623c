//! The sizes of caches and TLBs, as the plugin's arguments have them.

/// Sets and ways of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheShape {
    pub sets: u64,
    pub ways: usize,
}

/// Sets and ways of a TLB, for pages of some sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlbShape {
    /// The sizes, one for each bit, from the smallest one.
    pub sizes: u64,
    pub sets: u64,
    pub ways: usize,
}

/// All caches and TLBs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The number of each CPU's last-level cache.
    pub homes: Vec<usize>,
    pub l1: CacheShape,
    pub l2: CacheShape,
    /// Whether a line that leaves L2 leaves L1D too.
    pub inclusive: bool,
    /// What each CPU adds to its last-level cache.
    pub last: CacheShape,
    /// The TLBs of the first level.
    pub dtlb: Vec<TlbShape>,
    /// The TLBs of the second level.
    pub stlb: Vec<TlbShape>,
}

/// The largest number of sets or ways.
const MOST: u64 = 1 << 24;

impl Shape {
    /// The shape that these words describe: the number of each CPU's last-level cache; sets and ways of L1D, L2 (with 1 if
    /// it is inclusive, and 0 otherwise) and LLC; and sizes of pages, sets and ways of each TLB of the first level and of
    /// the second one. Words are divided by colons, numbers by dots, and the levels of TLBs by a slash.
    pub fn parse(text: &str) -> Option<Self> {
        let (caches, stlb) = text.split_once('/')?;
        let words: Vec<&str> = caches.split(':').collect();
        let [homes, l1, l2, last, ref dtlb @ ..] = words[..] else { return None };
        let homes = numbers(homes)?.into_iter().map(|home| home as usize).collect::<Vec<_>>();
        let (l2, inclusive) = l2.rsplit_once('.')?;
        let shape = Self {
            l1: cache(l1)?,
            l2: cache(l2)?,
            inclusive: inclusive == "1",
            last: cache(last)?,
            dtlb: dtlb.iter().map(|it| tlb(it)).collect::<Option<_>>()?,
            stlb: stlb.split(':').map(tlb).collect::<Option<_>>()?,
            homes,
        };
        let number = shape.homes.len();
        (shape.homes.iter().all(|home| *home < number)).then_some(shape)
    }
}

fn cache(word: &str) -> Option<CacheShape> {
    match numbers(word)?[..] {
        [sets @ 1..=MOST, ways @ 1..=MOST] => Some(CacheShape { sets, ways: ways as usize }),
        _ => None,
    }
}

fn tlb(word: &str) -> Option<TlbShape> {
    match numbers(word)?[..] {
        [sizes @ 1..=7, sets @ 1..=MOST, ways @ 1..=MOST] => {
            Some(TlbShape { sizes, sets, ways: ways as usize })
        }
        _ => None,
    }
}

fn numbers(word: &str) -> Option<Vec<u64>> {
    word.split('.').map(|it| it.parse().ok()).collect()
}
