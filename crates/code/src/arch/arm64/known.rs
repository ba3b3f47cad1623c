//! Finds the addresses that a function forms in two steps: `adrp` puts a page into a register, and the distance in the
//! page is added by another instruction, which can be far away.

use std::collections::BTreeMap;

use super::word::{Named, Word};

/// The length of an instruction in bytes.
const LENGTH: u64 = 4;

/// The addresses in registers; 0 for a register whose value is not known.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Known([u64; 31]);

impl Known {
    fn address(&self, register: usize) -> Option<u64> {
        self.0.get(register).copied().filter(|address| *address != 0)
    }

    /// Forgets what is not so in `other` too. Returns whether that was anything.
    fn meet(&mut self, other: &Self) -> bool {
        let before = *self;
        for (one, other) in self.0.iter_mut().zip(&other.0) {
            if one != other {
                *one = 0;
            }
        }
        before != *self
    }

    /// The address that the instruction forms or accesses from a register.
    fn formed(&self, word: Word) -> Option<u64> {
        let offset = word.offset()?;
        Some(self.address(offset.base)?.wrapping_add_signed(offset.distance))
    }

    fn execute(&mut self, word: Word, address: u64) {
        let value = match word.named(address) {
            Some((Named::Page(it) | Named::Address(it), _)) => Some(it),
            _ if word.adds() => self.formed(word),
            _ => word.copied().and_then(|it| self.address(it)),
        };
        let written = word.written();
        for (number, register) in self.0.iter_mut().enumerate() {
            if written >> number & 1 == 1 {
                *register = 0;
            }
        }
        if let (Some(value), Some(register)) = (value, self.0.get_mut(word.field(0, 5) as usize)) {
            *register = value;
        }
    }
}

/// For each instruction of a piece, the address that it forms or accesses by a register that has an address. The first
/// `beginning` instructions are a landing pad and NOPs, which only calls of the tracer replace.
pub(super) fn addresses(words: &[Word], start: u64, beginning: usize) -> Vec<Option<u64>> {
    let mut flow = Flow { words, start, beginning, ..Flow::default() };
    flow.find_blocks();
    flow.enter(0, &Known([0; 31]));
    flow.follow();
    flow.follow_others();
    flow.addresses()
}

/// The blocks of a piece, and what is known where they begin.
#[derive(Default)]
struct Flow<'w> {
    words: &'w [Word],
    start: u64,
    beginning: usize,
    /// Whether a block begins at an instruction.
    begins: Vec<bool>,
    /// What is known where a block begins, for blocks that were reached.
    known: BTreeMap<usize, Known>,
    /// Blocks to execute.
    due: Vec<usize>,
    /// What is known after each jump to a fixed place. The kernel replaces some of them by NOPs (`arch_static_branch`,
    /// alternatives of atomic instructions).
    passed: BTreeMap<usize, Known>,
    /// What is known wherever the kernel may jump to a block that nothing else reaches: jumps by a table, and NOPs that
    /// the kernel can replace by jumps.
    aside: Option<Known>,
    /// How often what is known of a block changed.
    changes: usize,
}

impl Flow<'_> {
    fn address(&self, at: usize) -> u64 {
        self.start.wrapping_add(LENGTH * at as u64)
    }

    /// The instruction of the piece that this one branches to.
    fn target(&self, at: usize) -> Option<usize> {
        let word = self.words[at];
        let (Named::Target(address), _) = word.named(self.address(at))? else { return None };
        let distance = address.checked_sub(self.start).filter(|it| it % LENGTH == 0)?;
        let target = usize::try_from(distance / LENGTH).ok()?;
        (target < self.words.len() && !word.calls()).then_some(target)
    }

    fn find_blocks(&mut self) {
        self.begins = vec![false; self.words.len()];
        for at in 0..self.words.len() {
            if let Some(target) = self.target(at) {
                self.begins[target] = true;
            }
            if let Some(next) = self.begins.get_mut(at + 1).filter(|_| self.words[at].ends()) {
                *next = true;
            }
        }
    }

    /// Reaches a block with what is known.
    fn enter(&mut self, block: usize, known: &Known) {
        let is_new = !self.known.contains_key(&block);
        let own = self.known.entry(block).or_insert(*known);
        if own.meet(known) || is_new {
            self.due.push(block);
            self.changes += 1;
        }
    }

    fn follow(&mut self) {
        while let Some(block) = self.due.pop() {
            let mut known = self.known[&block];
            for at in block..self.words.len() {
                if at != block && self.begins[at] {
                    self.enter(at, &known);
                    break;
                }
                let word = self.words[at];
                if let Some(target) = self.target(at) {
                    self.enter(target, &known);
                }
                if word.jumps_anywhere() || (word == Word::NOP && at >= self.beginning) {
                    self.aside.get_or_insert(known).meet(&known);
                }
                known.execute(word, self.address(at));
                if word.jumps() {
                    self.passed.insert(at + 1, known);
                }
                if word.ends() {
                    break;
                }
            }
        }
    }

    /// Follows the blocks that no branch reaches.
    fn follow_others(&mut self) {
        let mut others = Vec::new();
        for at in 0..self.words.len() {
            if self.begins[at] && !self.known.contains_key(&at) {
                others.push(at);
                self.follow_other(at);
            }
        }
        let mut before = None;
        while before.replace(self.changes) != Some(self.changes) {
            others.iter().for_each(|at| self.follow_other(*at));
        }
    }

    fn follow_other(&mut self, block: usize) {
        let known = self.passed.get(&block).copied().or(self.aside);
        self.enter(block, &known.unwrap_or(Known([0; 31])));
        self.follow();
    }

    fn addresses(&self) -> Vec<Option<u64>> {
        let mut known = Known([0; 31]);
        let formed = self.words.iter().enumerate().map(|(at, word)| {
            known = self.known.get(&at).copied().unwrap_or(known);
            let formed = known.formed(*word);
            known.execute(*word, self.address(at));
            formed
        });
        formed.collect()
    }
}
