//! Instructions at equal entries: what the kernel would have cost had its functions been entered as
//! often on both sides. How often they are entered is most of luck, as where pages lie and which
//! are migrated; what an entry costs is hardly any. So far smaller changes are seen than in the
//! instructions as they are.
//!
//! With `i` and `e` for the instructions and the entries of function `f` in a seed, the seed's figure
//! is `sum over f of (i / e) E`, where `E` is the mean of `e` over the seeds of both
//! sides: direct standardization, with the mean of both sides as the standard. A function counts as
//! it is, by `i`, where entries can't be set equal: it was entered on one side alone, or in parts, or
//! the sides differ in its entries by more than luck explains, as they do where work comes in larger
//! batches.

use std::collections::{BTreeMap, BTreeSet};

use model::{Boot, WorkloadUse};

use crate::VariantBoots;
use crate::explain::{Executed, Identity, Tally};
use crate::luck::{Difference, Seeds};

/// The figures of both sides in one phase, the mean over a boot's iterations that count. None where
/// a boot has no functions counted. `wanted` seeds make a side complete.
pub fn at_equal_entries(
    used: &WorkloadUse,
    sides: [&VariantBoots<'_>; 2],
    phase: &str,
    wanted: u32,
) -> Option<[Seeds; 2]> {
    let tallies = sides.map(|side| {
        side.complete().map(|boot| (boot.replicate, Counted::of(used, boot, phase))).collect()
    });
    let tallies: [Vec<(u32, Counted<'_>)>; 2] = tallies;
    if tallies.iter().flatten().any(|(_, counted)| counted.tally.functions.is_empty()) {
        return None;
    }
    let standard = standard(&tallies);
    Some(tallies.each_ref().map(|side| {
        let costs = costs(side, &standard);
        let figure = |(seed, counted): &(u32, Counted<'_>)| {
            (*seed, Some(counted.at(&standard, &costs) / f64::from(counted.iterations)))
        };
        Seeds::new(side.iter().map(figure), wanted)
    }))
}

/// What a boot executed in a phase.
struct Counted<'a> {
    tally: Tally<'a>,
    iterations: u32,
}

/// Entries of the functions that are set equal.
type Standard<'a> = BTreeMap<Identity<'a>, f64>;

impl<'a> Counted<'a> {
    fn of(used: &WorkloadUse, boot: &'a Boot, phase: &str) -> Self {
        let profiles = || {
            boot.profiles.iter().filter(|profile| {
                profile.workload == used.manifest.name
                    && profile.phase == phase
                    && used.counts(profile.iteration)
            })
        };
        let iterations: BTreeSet<u32> = profiles().map(|profile| profile.iteration).collect();
        Self { tally: Tally::of(profiles()), iterations: iterations.len().max(1) as u32 }
    }

    fn executed(&self, function: Identity<'a>) -> Executed {
        self.tally.functions.get(&function).copied().unwrap_or_default()
    }

    /// The kernel's instructions, with the entries of functions as in `standard`. A function that this seed
    /// did not enter costs what it does in the others of its side.
    fn at(&self, standard: &Standard<'a>, costs: &BTreeMap<Identity<'a>, f64>) -> f64 {
        let own = |function: &Identity<'a>| {
            let Executed { instructions, entries, .. } = self.executed(*function);
            (entries > 0).then(|| instructions as f64 / entries as f64)
        };
        let set: f64 = standard
            .iter()
            .map(|(function, entries)| own(function).unwrap_or(costs[function]) * entries)
            .sum();
        let functions = self.tally.functions.iter();
        let as_they_are = functions.filter(|(function, _)| !standard.contains_key(function));
        let rest: i128 = as_they_are.map(|(_, executed)| executed.instructions).sum();
        set + rest as f64
    }
}

/// The functions that are set equal, with their entries.
fn standard<'a>(sides: &[Vec<(u32, Counted<'a>)>; 2]) -> Standard<'a> {
    let all = sides.iter().flatten();
    let functions: BTreeSet<Identity<'a>> =
        all.clone().flat_map(|(_, it)| it.tally.functions.keys().copied()).collect();
    let set = functions.into_iter().filter_map(|function| {
        let in_parts = all.clone().any(|(_, it)| it.executed(function).part_entries > 0);
        let entries = sides.each_ref().map(|side| -> Vec<f64> {
            side.iter().map(|(_, it)| it.executed(function).entries as f64).collect()
        });
        let [base, new] = &entries;
        let difference = Difference::of(base, new)?;
        let is_entered = difference.base > 0.0 && difference.new > 0.0;
        let is_luck = difference.beyond_luck() == Some(false);
        let mean = (difference.base + difference.new) / 2.0;
        (is_entered && is_luck && !in_parts).then_some((function, mean))
    });
    set.collect()
}

/// What an entry costs over all seeds of a side.
fn costs<'a>(side: &[(u32, Counted<'a>)], standard: &Standard<'a>) -> BTreeMap<Identity<'a>, f64> {
    let cost = |function: &Identity<'a>| {
        let executed = side.iter().map(|(_, it)| it.executed(*function));
        let sum = executed.fold((0, 0), |(i, e), it| (i + it.instructions, e + it.entries));
        (*function, sum.0 as f64 / (sum.1 as f64).max(1.0))
    };
    standard.keys().map(cost).collect()
}

#[cfg(test)]
mod tests {
    use model::{Count, Function, Instructions, Profile};

    use super::*;
    use crate::testing::{boot, columns, manifest, used, variant};

    /// A boot with these functions: name, entries, instructions.
    fn seed(replicate: u32, functions: &[(&str, u64, u64)]) -> Boot {
        let function = |&(name, entries, instructions): &(&str, u64, u64)| Function {
            name: name.into(),
            module: String::new(),
            counts: vec![Count { instructions, entries }],
        };
        let kernel = functions.iter().map(|(.., instructions)| instructions).sum();
        let profile = Profile {
            workload: "autonuma".into(),
            phase: "run".into(),
            cpus: vec![Instructions { kernel, ..Instructions::default() }],
            functions: functions.iter().map(function).collect(),
            ..Profile::default()
        };
        Boot { profiles: vec![profile], ..boot(replicate) }
    }

    fn change(base: &[Boot], new: &[Boot]) -> Difference {
        let variants = ["base", "new"].map(variant);
        let columns = columns(&variants, &[base, new]);
        let wanted = base.len() as u32;
        let used = used(manifest());
        let [base, new] =
            at_equal_entries(&used, [&columns[0], &columns[1]], "run", wanted).unwrap();
        new.against(&base).unwrap()
    }

    const LUCKY: [u64; 5] = [1000, 3000, 2000, 1500, 2500];

    /// A function that luck enters more or less often costs 1 % more an entry.
    #[test]
    fn what_luck_hides_in_the_total_shows_at_equal_entries() {
        let side = |cost: u64, order: [usize; 5]| {
            let boot = |(seed, place): (u32, usize)| {
                let entries = LUCKY[place];
                seed_with(seed, entries, cost)
            };
            (0..).zip(order).map(boot).collect::<Vec<Boot>>()
        };
        fn seed_with(replicate: u32, entries: u64, cost: u64) -> Boot {
            seed(replicate, &[("lucky", entries, entries * cost), ("steady", 10, 5000)])
        }
        let (base, new) = (side(100, [0, 1, 2, 3, 4]), side(101, [4, 2, 0, 1, 3]));
        let difference = change(&base, &new);
        // 2000 entries at 100 and at 101, and 5000 beside them.
        assert!((difference.base - 205_000.0).abs() < 1e-6, "{difference:?}");
        assert!((difference.change() - 2000.0).abs() < 1e-6, "{difference:?}");
        assert_eq!(difference.beyond_luck(), Some(true));
    }

    /// A tenth of the entries at ten times the cost is no change.
    #[test]
    fn larger_batches_are_no_change() {
        let boots = |entries: u64, cost: u64| -> Vec<Boot> {
            (0..5).map(|it| seed(it, &[("batch", entries, entries * cost)])).collect()
        };
        assert_eq!(change(&boots(1000, 30), &boots(100, 300)).change(), 0.0);
    }

    /// What one side inlines is in its caller there.
    #[test]
    fn a_function_of_one_side_counts_as_it_is() {
        let boots = |functions: &[(&str, u64, u64)]| -> Vec<Boot> {
            (0..5).map(|it| seed(it, functions)).collect()
        };
        let base = boots(&[("caller", 10, 1000), ("callee", 10, 400)]);
        assert_eq!(change(&base, &boots(&[("caller", 10, 1400)])).change(), 0.0);
        assert_eq!(change(&base, &boots(&[("caller", 10, 1500)])).change(), 100.0);
        // One that is entered by a part too.
        let parts = boots(&[("caller", 5, 600), ("caller.part.0", 5, 500), ("callee", 10, 400)]);
        assert_eq!(change(&base, &parts).change(), 100.0);
    }

    #[test]
    fn a_seed_without_an_entry_costs_what_the_others_do() {
        let boots = |rare: [u64; 5]| -> Vec<Boot> {
            let boot = |(it, rare): (u32, u64)| seed(it, &[("f", 1, 10), ("rare", rare, 7 * rare)]);
            (0..).zip(rare).map(boot).collect()
        };
        assert_eq!(change(&boots([0, 1, 2, 1, 0]), &boots([2, 0, 1, 0, 3])).change(), 0.0);
    }

    #[test]
    fn without_functions_there_is_nothing() {
        let boots: Vec<Boot> = (0..5).map(boot).collect();
        let variants = ["base", "new"].map(variant);
        let columns = columns(&variants, &[&boots, &boots]);
        let sides = [&columns[0], &columns[1]];
        assert!(at_equal_entries(&used(manifest()), sides, "run", 5).is_none());
    }
}
