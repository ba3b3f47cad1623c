//! Counters of `/proc/vmstat` that grew by different amounts.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use model::{Boot, Source, WorkloadUse};

use super::sides::Sides;
use super::{Counter, Span};
use crate::Difference;
use crate::figures::growth::{Growth, lost_series};
use crate::verdicts::luck::{Entry, listed};

/// The growth of counters in one seed over the iterations that count, in the phases of `span`; empty if the seed lost
/// series.
pub fn growth<'a>(boot: &'a Boot, used: &WorkloadUse, span: Span<'_>) -> Growth<'a> {
    let chunks = boot.chunks.iter().filter(|chunk| {
        chunk.workload == used.manifest.name
            && used.counts(chunk.iteration)
            && chunk.is_of(Source::Vmstat)
            && span.has(&chunk.phase, used)
    });
    if lost_series(boot) { Growth::default() } else { Growth::of(chunks) }
}

/// The growth of the counters of `/proc/vmstat` in one boot, over the iterations of the workload that count. A counter
/// that a part of them lacks is missing; all are if the boot lost series.
pub fn counter_growth<'a>(boot: &'a Boot, used: &WorkloadUse) -> BTreeMap<&'a str, i128> {
    let grown = growth(boot, used, Span::All);
    grown.iter().filter_map(|(name, by)| Some((name, by?))).collect()
}

/// The counters that both sides have, ranked by [`order`].
pub fn ranked(sides: &Sides<Growth<'_>>) -> Vec<Counter> {
    let names: BTreeSet<&str> =
        sides.iter().flat_map(|growth| growth.iter().map(|(name, _)| name)).collect();
    let counters = names.into_iter().filter_map(|name| {
        let grown = sides.map(|growth| Some(growth.get(name)? as f64));
        Some((Counter { name: name.to_owned(), growth: grown.difference()? }, grown.known()))
    });
    let mut counters: Vec<(Counter, [Vec<f64>; 2])> = counters.collect();
    let entries = counters.iter_mut().map(|(counter, grown)| Entry {
        difference: &mut counter.growth,
        values: grown.clone(),
        scale: 1.0,
    });
    listed(entries, false);
    let mut ranked: Vec<Counter> = counters.into_iter().map(|(counter, _)| counter).collect();
    ranked.sort_by(|one, other| order(&one.growth, &other.growth));
    ranked
}

/// Counters beyond luck first, then those with unknown luck, then those within luck; by weight within each
/// group. Ties keep the order of names.
fn order(one: &Difference, other: &Difference) -> Ordering {
    let class = |it: &Difference| match it.beyond_luck() {
        Some(true) => 0,
        None => 1,
        Some(false) => 2,
    };
    class(one).cmp(&class(other)).then(weight(other).total_cmp(&weight(one)))
}

/// The excess over the floor, relative to the baseline's growth or to the floor, whichever is larger. So a counter
/// that hardly moves in the baseline is measured by its floor. If luck is unknown or explains the change, the whole
/// change replaces the excess.
fn weight(growth: &Difference) -> f64 {
    let weighed = match growth.beyond_luck() {
        Some(true) => growth.excess(),
        _ => growth.change().abs(),
    };
    weighed / growth.base.abs().max(growth.floor.unwrap_or(0.0)).max(1.0)
}
