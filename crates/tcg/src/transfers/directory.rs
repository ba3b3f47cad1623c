//! The CPUs that have a copy of a line of memory, if caches have no limits: copies are lost only by the stores of other
//! CPUs. So only what CPUs do to each other counts, and not what does not fit into a cache.
//!
//! A line is in the state of the MESI protocol (Papamarcos and Patel, 1984): a CPU that stores has the only copy, and
//! others load from it.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::PAGE;
use super::pair::{PAIR, Pair};

/// The bytes of a line.
pub const LINE: u64 = PAIR / 2;
/// The lines of a page.
pub const LINES: usize = (PAGE / LINE) as usize;
/// The pairs of lines of a page.
const PAIRS: usize = (PAGE / PAIR) as usize;
/// The largest number of CPUs, one for each bit of a line's copies.
pub const MOST_CPUS: usize = 64;

/// What a CPU takes from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// A line.
    Line(Transfer),
    /// Nothing, because it has the line. It would take the line if the pair were one.
    Pair,
}

/// How a CPU takes a line from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Whether the CPU had a copy already, and takes those of the others to write.
    pub upgrade: bool,
    /// Whether the CPU accesses no byte that others wrote since it had a copy.
    pub disjoint: bool,
    /// Whether it comes from another node.
    pub remote: bool,
}

/// The bytes of a line, one for each bit.
pub type Bytes = u64;

/// The bytes of an access in its line, and those in the next line.
pub fn split(address: u64, size: u64) -> (Bytes, Bytes) {
    let bytes = u128::MAX >> (128 - size.clamp(1, LINE));
    let both = bytes << (address % LINE);
    (both as u64, (both >> LINE) as u64)
}

/// The state of a line.
#[derive(Clone, Copy, Default)]
struct Line {
    /// The CPUs that have a copy, one for each bit.
    copies: u64,
    /// What the last writer wrote since it got the line from others.
    written: Bytes,
    /// The last writer's number plus 1; 0 if no CPU wrote the line.
    writer: u32,
    /// The number of its list in [`Directory::lost`] plus 1; 0 if it was never transferred.
    lost: u32,
}

/// The lines of a page, and its pairs of lines.
struct Page {
    lines: [Line; LINES],
    pairs: [Pair; PAIRS],
}

/// The place of a line: its page in the directory, and its number there.
#[derive(Clone, Copy)]
struct Place {
    page: usize,
    line: usize,
}

/// The lines that were accessed, by their physical addresses.
pub struct Directory {
    /// The node of each CPU.
    nodes: Vec<u16>,
    /// The place in `pages` of each page, by the number of the page.
    places: HashMap<u64, usize, FixedState>,
    pages: Vec<Page>,
    /// What others wrote since a CPU lost its copy: a list of all CPUs for each line that was transferred.
    lost: Vec<Bytes>,
}

impl Directory {
    /// A directory without lines, of CPUs on these nodes: at most [`MOST_CPUS`].
    pub fn new(nodes: &[u16]) -> Self {
        let (places, pages, lost) = Default::default();
        Self { nodes: nodes.to_vec(), places, pages, lost }
    }

    /// A CPU loads these bytes of the line at a physical address, or stores to them. Returns what it takes from others.
    pub fn access(
        &mut self,
        cpu: usize,
        address: u64,
        bytes: Bytes,
        stores: bool,
    ) -> Option<Taken> {
        let (own, at) = (1 << cpu, self.place(address));
        let takes_pair = self.pair(at).access(own, stores);
        let has = self.line(at).copies & own != 0;
        let line = self.take_line(cpu, at, bytes, stores).map(Taken::Line);
        line.or((has && takes_pair).then_some(Taken::Pair))
    }

    fn take_line(&mut self, cpu: usize, at: Place, bytes: Bytes, stores: bool) -> Option<Transfer> {
        let (own, writes) = (1_u64 << cpu, cpu as u32 + 1);
        let line = self.line(at);
        let (has, others) = (line.copies & own != 0, line.copies & !own);
        if has && (!stores || others == 0) {
            if stores {
                line.writer = writes;
                line.written |= bytes;
            }
            return None;
        }
        let writer = (line.writer as usize).checked_sub(1);
        let missed = self.hand_over(at, cpu);
        let line = self.line(at);
        if stores {
            (line.copies, line.writer, line.written) = (own, writes, bytes);
        } else {
            line.copies |= own;
        }
        // A line that no CPU wrote comes from memory. A store takes the copies of all others.
        let from = match writer {
            Some(writer) if !stores => 1 << writer,
            None if !has => return None,
            _ => others,
        };
        let (upgrade, disjoint) = (has, !has && missed & bytes == 0);
        Some(Transfer { upgrade, disjoint, remote: self.is_remote(cpu, from) })
    }

    /// The CPUs that have a copy of the pair of lines at a physical address, one for each bit. No others have the line
    /// unless they lost the pair with the other line.
    pub fn copies(&mut self, address: u64) -> u64 {
        let at = self.place(address);
        self.pair(at).copies
    }

    /// The only CPU with a copy, which wrote the line before, wrote these bytes too.
    pub fn wrote(&mut self, address: u64, bytes: Bytes) {
        let at = self.place(address);
        self.line(at).written |= bytes;
    }

    /// The other CPUs lose what the last writer wrote. Returns what this CPU lost since it had a copy.
    fn hand_over(&mut self, at: Place, cpu: usize) -> Bytes {
        let (cpus, end) = (self.nodes.len(), self.lost.len());
        let line = self.line(at);
        let Some(writer) = (line.writer as usize).checked_sub(1) else { return 0 };
        let written = std::mem::take(&mut line.written);
        if line.lost == 0 {
            line.lost = (end / cpus) as u32 + 1;
            self.lost.resize(end + cpus, 0);
        }
        let first = (self.line(at).lost as usize - 1) * cpus;
        let lists = self.lost[first..][..cpus].iter_mut().enumerate();
        lists.filter(|(other, _)| *other != writer).for_each(|(_, lost)| *lost |= written);
        std::mem::take(&mut self.lost[first + cpu])
    }

    fn is_remote(&self, cpu: usize, from: u64) -> bool {
        let others = self.nodes.iter().enumerate().filter(|(other, _)| from >> other & 1 != 0);
        others.map(|(_, node)| node).any(|node| *node != self.nodes[cpu])
    }

    fn line(&mut self, at: Place) -> &mut Line {
        &mut self.pages[at.page].lines[at.line]
    }

    fn pair(&mut self, at: Place) -> &mut Pair {
        &mut self.pages[at.page].pairs[at.line / 2]
    }

    fn place(&mut self, address: u64) -> Place {
        let Self { places, pages, .. } = self;
        let page = *places.entry(address / PAGE).or_insert_with(|| {
            pages.push(Page { lines: [Line::default(); LINES], pairs: [Pair::default(); PAIRS] });
            pages.len() - 1
        });
        Place { page, line: (address / LINE) as usize % LINES }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CPUS: usize = 4;

    fn directory() -> Directory {
        Directory::new(&[0, 0, 1, 1])
    }

    /// The same as [`Directory`], from a list of all accesses. Lines can have any size.
    #[derive(Default)]
    struct Slow(Vec<(usize, u64, Bytes, bool)>);

    /// What lines of 64 bytes and the pairs of them say together.
    fn taken(
        lines: &mut Slow,
        pairs: &mut Slow,
        access: (usize, u64, Bytes, bool),
    ) -> Option<Taken> {
        let (cpu, line, bytes, stores) = access;
        let has = lines.has(cpu, line);
        let pair = pairs.access(cpu, line / 2, bytes, stores).filter(|_| has).map(|_| Taken::Pair);
        lines.access(cpu, line, bytes, stores).map(Taken::Line).or(pair)
    }

    impl Slow {
        /// Whether no other CPU stored to the line since this one accessed it.
        fn has(&self, cpu: usize, line: u64) -> bool {
            let own = self.0.iter().rev().filter(|it| it.1 == line);
            own.take_while(|it| !it.3 || it.0 == cpu).any(|it| it.0 == cpu)
        }

        fn last_store(&self, line: u64) -> Option<&(usize, u64, Bytes, bool)> {
            self.0.iter().rev().find(|it| it.1 == line && it.3)
        }

        fn access(
            &mut self,
            cpu: usize,
            line: u64,
            bytes: Bytes,
            stores: bool,
        ) -> Option<Transfer> {
            let has = self.has(cpu, line);
            let holders: Vec<usize> =
                (0..CPUS).filter(|other| *other != cpu && self.has(*other, line)).collect();
            let writer = self.last_store(line).map(|it| it.0);
            // What others wrote since this CPU's last access.
            let since = self.0.iter().rev().filter(|it| it.1 == line).take_while(|it| it.0 != cpu);
            let lost = since.filter(|it| it.3).fold(0, |lost, it| lost | it.2);
            self.0.push((cpu, line, bytes, stores));
            let from = match (has, stores) {
                (true, false) => return None,
                (true, true) if holders.is_empty() => return None,
                (false, _) if writer.is_none() => return None,
                (false, false) => writer.into_iter().collect(),
                _ => holders,
            };
            let remote = from.iter().any(|other| other / 2 != cpu / 2);
            Some(Transfer { upgrade: has, disjoint: !has && lost & bytes == 0, remote })
        }
    }

    #[test]
    fn bytes_of_an_access_are_in_two_lines_at_most() {
        assert_eq!(split(0x1000, 8), (0xff, 0));
        assert_eq!(split(0x103c, 4), (0xf << 60, 0));
        assert_eq!(split(0x103e, 4), (3 << 62, 3));
        assert_eq!(split(0x1000, 64), (u64::MAX, 0));
        assert_eq!(split(0x1001, 64), (!1, 1));
    }

    #[test]
    fn two_cpus_that_write_in_turn_take_the_line_each_time() {
        let mut directory = directory();
        let taken =
            |upgrade, disjoint, remote| Some(Taken::Line(Transfer { upgrade, disjoint, remote }));
        assert_eq!(directory.access(0, 0x40, 1, true), None);
        assert_eq!(directory.access(0, 0x44, 0x10, true), None);
        // The same byte, then another byte of the line.
        assert_eq!(directory.access(1, 0x40, 1, true), taken(false, false, false));
        assert_eq!(directory.access(2, 0x40, 2, true), taken(false, true, true));
        // CPU 0 wrote byte 4 before CPU 1 took the line, so CPU 3 misses it.
        assert_eq!(directory.access(3, 0x40, 0x10, false), taken(false, false, false));
        assert_eq!(directory.access(3, 0x40, 0x10, true), taken(true, false, false));
        assert_eq!(directory.access(3, 0x40, 0x10, true), None);
    }

    #[test]
    fn padded_fields_are_not_transferred() {
        let mut directory = directory();
        for _ in 0..100 {
            assert_eq!(directory.access(0, 0x40, 0xff, true), None);
            assert_eq!(directory.access(1, 0x80, 0xff, true), None);
        }
    }

    #[test]
    fn fields_in_a_pair_of_lines_are_taken_with_it() {
        let mut directory = directory();
        // The first access of a CPU misses in any case.
        assert_eq!(directory.access(0, 0x80, 1, true), None);
        assert_eq!(directory.access(1, 0xc0, 1, true), None);
        for _ in 0..100 {
            assert_eq!(directory.access(0, 0x80, 1, true), Some(Taken::Pair));
            assert_eq!(directory.access(0, 0x80, 1, true), None);
            assert_eq!(directory.access(1, 0xc0, 1, true), Some(Taken::Pair));
            assert_eq!(directory.access(1, 0xc0, 1, false), None);
        }
        // Those who only read share the pair.
        assert_eq!(directory.access(0, 0x80, 1, false), Some(Taken::Pair));
        assert_eq!(directory.access(1, 0xc0, 1, false), None);
        assert_eq!(directory.access(0, 0x80, 1, false), None);
        // A line that another CPU wrote is no line of a pair.
        let line = Transfer { upgrade: false, disjoint: false, remote: false };
        assert_eq!(directory.access(1, 0x80, 1, false), Some(Taken::Line(line)));
    }

    #[test]
    fn readers_share_a_line_until_one_writes() {
        let mut directory = directory();
        for cpu in 0..CPUS {
            assert_eq!(directory.access(cpu, 0, 1, false), None);
        }
        let upgrade = Transfer { upgrade: true, disjoint: false, remote: true };
        assert_eq!(directory.access(0, 0, 1, true), Some(Taken::Line(upgrade)));
        let missed = (1..CPUS).filter(|cpu| directory.access(*cpu, 0, 1, false).is_some());
        assert_eq!(missed.count(), 3);
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_list_of_all_accesses(
            accesses in prop::collection::vec((0..CPUS, 0..3_u64, 0..4_u32, any::<bool>()), 0..200),
        ) {
            let (mut directory, mut lines, mut pairs) = (directory(), Slow::default(), Slow::default());
            for (cpu, line, byte, stores) in accesses {
                let fast = directory.access(cpu, line * LINE, 1 << byte, stores);
                let slow = taken(&mut lines, &mut pairs, (cpu, line, 1 << byte, stores));
                prop_assert_eq!(fast, slow);
            }
        }
    }
}
