//! The kernel's cost by what made it execute.

use std::collections::{BTreeMap, BTreeSet};

use kernelfiles::entry;
use model::{Boot, WorkloadUse};
use serde::Serialize;

use super::paths::{KERNEL, has_paths, sums};
use super::sides::Sides;
use super::{Span, profiles, seeds};
use crate::verdicts::luck::{Entry, listed};
use crate::{Difference, FEWEST_FOR_LISTS, VariantBoots};

/// A cost of the kernel by what made it execute: a system call, an exception, an interrupt or a kernel thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reason {
    /// Its kind and name, such as `system call clone`; `other` for the rest.
    pub name: String,
    /// The cost of all that it executes.
    pub cost: Difference,
}

/// The kernel's cost by reason, the largest change first, in one phase or in the measured phases. `None` if a seed did
/// not follow calls.
pub fn reasons(
    base: &VariantBoots<'_>,
    new: &VariantBoots<'_>,
    used: &WorkloadUse,
    (phase, cost): (Option<&str>, &str),
) -> Option<Vec<Reason>> {
    let all = seeds([base, new], used);
    let span = Span::of(phase, &all, used);
    let followed = |boot: &&Boot| profiles(boot, used, Span::All).any(|it| has_paths(it, cost));
    if !all.iter().flatten().all(followed) {
        return None;
    }
    let by_reason = |boot: &&Boot| {
        let mut totals = BTreeMap::<String, i128>::new();
        for (frames, sum) in sums(&[*boot], used, (span, cost), true) {
            if let [KERNEL, path @ ..] = &*frames {
                let name = entry::reason(path).map_or_else(|| OTHER.to_owned(), |it| it.name);
                *totals.entry(name).or_default() += sum;
            }
        }
        totals
    };
    let sides = Sides::of(all).map(by_reason);
    let names: BTreeSet<&String> = sides.iter().flat_map(BTreeMap::keys).collect();
    let rows = names
        .into_iter()
        .map(|name| (name.clone(), sides.map(|it| it.get(name).copied().unwrap_or_default())));
    let judged = judged(rows.collect()).into_iter();
    let mut reasons: Vec<Reason> = judged.map(|(name, cost)| Reason { name, cost }).collect();
    reasons.sort_by(|one, other| {
        other
            .cost
            .change()
            .abs()
            .total_cmp(&one.cost.change().abs())
            .then(one.name.cmp(&other.name))
    });
    Some(reasons)
}

/// Judges rows of a list, each with its sum in each seed, against luck. A row that a side has no seed of is left out. With
/// few seeds no change in a list can be told from luck.
fn judged<T>(rows: Vec<(T, Sides<i128>)>) -> Vec<(T, Difference)> {
    let known = rows.into_iter().filter_map(|(of, sides)| Some((of, sides.difference()?, sides)));
    let mut rows: Vec<_> = known.collect();
    listed(
        rows.iter_mut().map(|(_, difference, sides)| Entry {
            difference,
            values: sides.seeds.each_ref().map(|side| side.iter().map(|it| *it as f64).collect()),
            scale: 1.0,
        }),
        true,
    );
    let is_few =
        |sides: &Sides<i128>| sides.seeds.iter().any(|side| side.len() < FEWEST_FOR_LISTS as usize);
    let judged = rows.into_iter().map(|(of, difference, sides)| {
        let floor = difference.floor.filter(|_| !is_few(&sides));
        (of, Difference { floor, ..difference })
    });
    judged.collect()
}

/// The name of what has no reason of its own, such as the idle task.
const OTHER: &str = "other";
