//! Chooses the counters of `/proc/vmstat` that are plotted.

use std::collections::BTreeSet;

use compare::{Difference, VariantBoots, counter_growth};
use kernelfiles::catalogue;
use model::{Boot, WorkloadUse};

/// Most counters that are drawn for a workload.
const MAX_COUNTERS: usize = 8;
/// The smallest change of a counter that is plotted.
const LEAST: f64 = 10.0;
/// A counter whose growth equals that of another within this share is redundant.
const ALIKE: f64 = 0.01;
/// Counters that have a panel of their own.
const SHOWN_ELSEWHERE: [&str; 3] =
    ["nr_free_pages", "nr_free_pages_blocks", "numa_hint_faults_local"];

/// Whether a counter is a level, such as pages in use, and not a number of events since boot. For counters
/// missing from the catalogue, the name decides.
pub fn is_level(counter: &str) -> bool {
    let known = catalogue::find(counter);
    known.map_or_else(|| counter.starts_with("nr_"), |known| known.gauge)
}

/// The unit of a counter and its meaning; empty where the catalogue does not know it.
pub fn meaning(counter: &str) -> (&'static str, &'static str) {
    catalogue::find(counter).map_or(("", ""), |known| (&known.unit, &known.what))
}

/// The counters whose growth differs between some variant and the baseline by more than between boots of one variant.
/// They are in descending order of the change as a share of the growth of both sides, times the logarithm of the
/// change. Of counters that grow alike only the first is taken.
pub fn most_different<'a>(used: &WorkloadUse, columns: &'a [VariantBoots<'_>]) -> Vec<&'a str> {
    let grown: Vec<Vec<_>> = columns
        .iter()
        .map(|column| column.complete().map(|boot: &Boot| counter_growth(boot, used)).collect())
        .collect();
    let names: BTreeSet<&str> = grown.iter().flatten().flat_map(|it| it.keys().copied()).collect();
    let mut ranked: Vec<(f64, &str, Vec<f64>)> = names
        .into_iter()
        .filter(|name| !SHOWN_ELSEWHERE.contains(name))
        .filter_map(|name| {
            let sides: Vec<Vec<f64>> = grown
                .iter()
                .map(|boots| {
                    let known = boots.iter().filter_map(|it| it.get(name));
                    known.map(|&value| value as f64).collect()
                })
                .collect();
            let (base, others) = sides.split_first()?;
            let weights = others.iter().filter_map(|other| weight(&Difference::of(base, other)?));
            Some((weights.reduce(f64::max)?, name, sides.concat()))
        })
        .collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let mut chosen: Vec<(&str, Vec<f64>)> = Vec::new();
    for (_, name, values) in ranked {
        if chosen.len() == MAX_COUNTERS {
            break;
        }
        if !chosen.iter().any(|(_, other)| are_alike(other, &values)) {
            chosen.push((name, values));
        }
    }
    chosen.into_iter().map(|(name, _)| name).collect()
}

/// The weight of a difference; `None` if boots of one variant differ as much. With one boot on a side that is not
/// known, and does not exclude the difference.
fn weight(difference: &Difference) -> Option<f64> {
    let change = difference.change().abs();
    let share = change / (difference.base.abs() + difference.new.abs());
    let telling = change >= LEAST && difference.beyond_luck() != Some(false);
    telling.then(|| share * change.ln_1p())
}

fn are_alike(one: &[f64], other: &[f64]) -> bool {
    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= ALIKE * a.abs().max(b.abs());
    one.len() == other.len() && one.iter().zip(other).all(near)
}
