//! The kernel's cost by what made it execute.

use std::collections::{BTreeMap, BTreeSet};

use kernelfiles::entry;
use model::{Boot, WorkloadUse};
use serde::Serialize;

use super::paths::{KERNEL, has_paths, sums};
use super::sides::{Sides, judged};
use super::{Span, profiles, seeds};
use crate::{Difference, VariantBoots};

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
    let rows = names.into_iter().filter_map(|name| {
        let figures = sides.map(|it| it.get(name).copied().unwrap_or_default());
        Some((Reason { name: name.clone(), cost: figures.difference()? }, figures))
    });
    let mut reasons = judged(rows.collect(), true, |it| &mut it.cost);
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

/// The name of what has no reason of its own, such as the idle task.
const OTHER: &str = "other";
