//! The functions that hold a change, with their figures.

use serde::Serialize;

use super::calls::{asked, calls_it, reason, sums};
use super::common::CommonCallee;
use super::moved::Moved;
use super::offset::OwnCost;
use super::{Path, Paths};

/// The functions that hold the change of a phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Held {
    /// The function that holds the change with what it calls. `None` if no function does.
    pub function: Option<Holder>,
    /// The functions between which the change divides.
    pub divided: Option<Divided>,
    /// The function that many others call, and that has much of the change.
    pub common: Option<CommonCallee>,
    /// Kernel threads, the one with the largest change first.
    pub threads: Vec<KernelThread>,
}

/// What a kernel thread executed beside a phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelThread {
    /// Its function, such as `kdamond_fn`.
    pub function: String,
    /// Instructions on both sides, of all threads with this function.
    pub instructions: [f64; 2],
}

/// Functions that have parts of a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Divided {
    /// The functions, that with the largest part of the change first.
    pub parts: Vec<Holder>,
    /// Whether they make up the change. If not, they are only the largest.
    pub complete: bool,
    /// The share of the change that is in none of them.
    pub elsewhere: f64,
    /// The share of the change by which reasons elsewhere offset each other: some have so much more, others as much less.
    pub offset_elsewhere: f64,
}

/// The function that holds a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Holder {
    /// The function's name, or that of a reason, such as `exception page_fault`: what made the kernel execute.
    pub name: String,
    /// Whether the figures include those of its callees.
    pub inclusive: bool,
    /// The function or reason in which it is called, directly or not, if the figures are those of these calls alone. `None`
    /// if they are those of all calls.
    pub within: Option<String>,
    /// Instructions on both sides.
    pub instructions: [f64; 2],
    /// Entries on both sides. `None` if a side has none, because a kernel thread entered its function before the phase,
    /// or if the figures are those of a part of its calls: entries are not known by call path.
    pub entries: Option<[f64; 2]>,
    /// Instructions on both sides without loops that copy and clear memory; `None` if these have little of its change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_loops: Option<[f64; 2]>,
    /// Its share of the phase's change; above 1 if other functions offset a part of it.
    pub share: f64,
    /// Own instructions on both sides of each function in it whose instructions differ, the largest change first.
    /// Empty without callees.
    pub parts: Vec<OwnCost>,
    /// Whether [`Holder::parts`] are per entry: if both sides entered it as often but for 1 %, and not only a few times.
    /// Otherwise its entries may do different work, and the change of an entry cannot be divided.
    pub parts_per_entry: bool,
    /// The callee with the largest change, if the holder has no entries.
    pub callee: Option<Callee>,
    /// The callee with most of the change, if one side calls it elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved: Option<Moved>,
    /// The innermost callee that has half of its change or more, if the change is not divided otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inner: Option<Inner>,
}

/// A function that the holder of a change calls, directly or not, with a large part of that change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inner {
    /// The callee's name.
    pub name: String,
    /// The share of the holder's change in the callee and in what it calls.
    pub share: f64,
}

/// A function that the holder of a change calls, directly or not, and that both sides entered. Its own instructions
/// changed most of all such functions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Callee {
    /// The callee's name.
    pub name: String,
    /// Entries on both sides.
    pub entries: [f64; 2],
    /// Own instructions per entry on both sides.
    pub per_entry: [f64; 2],
}

impl Holder {
    /// Whether it is what made the kernel execute instead of a function.
    pub fn is_reason(&self) -> bool {
        self.name.contains(' ')
    }

    /// Instructions per entry on both sides; `None` if a side has no entries.
    pub fn per_entry(&self) -> Option<[f64; 2]> {
        Some(per_entry(self.instructions, self.entries?))
    }

    /// Whether its entries are so few that their mean may stand for none of them.
    pub fn has_few_entries(&self) -> bool {
        self.entries.is_some_and(are_few)
    }

    /// The function's instructions on both sides of other paths, of the same calls.
    pub fn instructions_in(&self, paths: &Paths) -> [f64; 2] {
        let is_its = |path: &&Path| {
            let reason = reason(path);
            let frames = asked(path, &reason);
            match self.inclusive {
                true => calls_it(&frames, self.within.as_deref(), &self.name),
                false => frames.last() == Some(&&*self.name),
            }
        };
        sums(paths.paths.iter().filter(is_its))
    }
}

impl Callee {
    /// Whether more of its change is due to the number of entries than to the instructions per entry
    /// ([`super::Split`]).
    pub fn is_by_number(&self) -> bool {
        is_by_number(self.entries, self.per_entry)
    }
}

/// Whether more of the change of `entries`, each with the cost `per_entry`, is due to their number than to that cost.
pub(super) fn is_by_number(entries: [f64; 2], per_entry: [f64; 2]) -> bool {
    let part = |[base, new]: [f64; 2], of: [f64; 2]| ((new - base) * (of[0] + of[1])).abs();
    part(entries, per_entry) > part(per_entry, entries)
}

/// Entries on both sides are alike if they differ by at most this share of the larger number.
const ALIKE: f64 = 0.01;

pub(super) fn are_alike([base, new]: [f64; 2]) -> bool {
    (new - base).abs() <= ALIKE * base.max(new)
}

/// The mean of fewer entries may stand for none of them: one may be long, and another short.
const FEW: f64 = 5.0;

pub(super) fn are_few(entries: [f64; 2]) -> bool {
    entries.iter().any(|it| *it < FEW)
}

pub(super) fn per_entry(instructions: [f64; 2], entries: [f64; 2]) -> [f64; 2] {
    [instructions[0] / entries[0], instructions[1] / entries[1]]
}
