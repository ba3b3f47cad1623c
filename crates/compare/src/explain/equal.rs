//! Instructions at equal entries: their number if each function had been entered equally often on both sides. Most
//! luck is in the number of entries (where pages lie, which pages are migrated), and hardly any in the cost of an
//! entry. So this figure shows smaller changes than the total does.
//!
//! With `i` and `e` for the instructions and the entries of function `f` in a seed, the seed's figure
//! is `sum over f of (i / e) E`, where `E` is the mean of `e` over the seeds of both sides: direct
//! standardization, with the mean of both sides as the standard. There are three exceptions:
//!
//! - A function counts by `i`, unchanged, if its entries cannot be made equal: it was entered in parts, or all seeds of
//!   one side entered it, and none of the other or by more than luck explains less or more often, as with larger
//!   batches or with a function that one side inlines nearly everywhere.
//! - A function that one side entered [`TOO_FAR`] times as often as the other counts the same in all seeds, if luck may
//!   explain its entries: it handles batches, and its cost depends on their size.
//! - A function whose cost per entry is itself luck, such as a loop over pending work, counts the same in all seeds.
//!   Such functions are few, and hold all remaining luck. The spread of their cost within the sides identifies them.
//!   A difference between the sides counts only if it is beyond doubt ([`NO_DOUBT`]).
//!
//! A seed that did not enter a function has no cost per entry. It gets the mean cost over the entries of both sides,
//! so that such seeds make no difference between the sides. With the mean of its own side instead, a few entries that
//! differ by chance would set the sides apart without any spread. A function that some seeds enter, at random costs,
//! then has a wide spread, and counts the same in all seeds. A real change of such a function is visible only in the
//! total and in the list of functions.
//!
//! With few seeds, luck alone can put a function on one side only. If half of all boots enter a function, all `n`
//! seeds of one side and none of the other enter it in `2 / 4^n` of cases. So there is no floor with fewer than
//! [`FEWEST_FOR_LISTS`] seeds a side. `bench/stats-calibration` has the rates of false verdicts.

use std::collections::BTreeSet;

use model::{Boot, INSTRUCTIONS, WorkloadUse};

use crate::VariantBoots;
use crate::explain::{Executed, Identity, Tally};
use crate::pairs;
use crate::verdicts::luck::{FEWEST_FOR_LISTS, Seeds, ascending, estimate, mean};

/// Returns the functions that the complete boots of both sides executed in a phase, of seeds that both sides have.
pub fn counted<'a>(
    used: &WorkloadUse,
    sides: [&VariantBoots<'a>; 2],
    phase: &str,
) -> [Vec<Counted<'a>>; 2] {
    pairs::sides(sides, &used.manifest.name).map(|side| of_column(used, &side, phase))
}

/// Returns the functions that the complete boots of a column executed in a phase.
pub fn of_column<'a>(
    used: &WorkloadUse,
    column: &VariantBoots<'a>,
    phase: &str,
) -> Vec<Counted<'a>> {
    column.complete().map(|boot| Counted::of(used, boot, phase)).collect()
}

/// The figures of both sides in one phase: the mean over a boot's iterations that count. `None` if a boot has no
/// functions counted. There is no floor with fewer than [`FEWEST_FOR_LISTS`] seeds that are complete on both sides.
pub fn at_equal_entries(counted: &[Vec<Counted<'_>>; 2]) -> Option<[Seeds; 2]> {
    let equal = instructions(counted.each_ref().map(|side| side.iter().map(|it| &it.tally)))?;
    Some([0, 1].map(|side| {
        let figures = counted[side]
            .iter()
            .zip(&equal.seeds[side])
            .map(|(it, sum)| (it.seed, Some(sum / f64::from(it.iterations))));
        Seeds::new(figures, []).needing(FEWEST_FOR_LISTS)
    }))
}

/// Instructions at equal entries.
pub struct AtEqualEntries<'a> {
    /// Those of each seed of both sides.
    pub seeds: [Vec<f64>; 2],
    /// The functions whose cost per entry is luck, and so counts the same in all seeds, with its change.
    pub left_out: Vec<(Identity<'a>, f64)>,
}

/// The instructions at equal entries. `None` if a seed has no functions.
pub fn instructions<'a, I: Iterator<Item = &'a Tally<'a>>>(
    sides: [I; 2],
) -> Option<AtEqualEntries<'a>> {
    let sides: [Vec<&Tally<'_>>; 2] = sides.map(Iterator::collect);
    if sides.iter().flatten().any(|tally| tally.functions.is_empty()) {
        return None;
    }
    let functions: BTreeSet<Identity<'_>> =
        sides.iter().flatten().flat_map(|tally| tally.functions.keys().copied()).collect();
    let mut sums = sides.each_ref().map(|side| vec![0.0; side.len()]);
    let mut left_out = Vec::new();
    for function in functions {
        let executed =
            sides.each_ref().map(|side| side.iter().map(|it| it.executed(function)).collect());
        let (shares, lucky) = shares(&executed);
        for (sums, shares) in sums.iter_mut().zip(shares) {
            sums.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
        }
        left_out.extend(lucky.map(|change| (function, change)));
    }
    Some(AtEqualEntries { seeds: sums, left_out })
}

/// A cost per entry is luck if its coefficient of variation over seeds exceeds this.
const STEADY: f64 = 0.01;
/// The significance level of two tests: whether the sides differ in the entries of a function, and whether they
/// differ in a cost that is luck. It is small because a table has thousands of functions, and costs need not be
/// normal.
const NO_DOUBT: f64 = 1e-6;
/// The level for entries that differ by a factor of [`FAR`] or more.
const FAR_APART: f64 = 1e-4;
const FAR: f64 = 2.0;
/// Entries that differ by this factor or more are not made equal.
const TOO_FAR: f64 = 8.0;

/// The functions that a boot executed in a phase.
pub struct Counted<'a> {
    /// The boot's seed.
    pub seed: u32,
    /// The sums of all iterations that count.
    pub tally: Tally<'a>,
    /// The number of these iterations.
    pub iterations: u32,
}

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
        let iterations = iterations.len().max(1) as u32;
        Self { seed: boot.boot_index, tally: Tally::of(profiles(), INSTRUCTIONS), iterations }
    }
}

/// The contribution of a function to the figure of each seed, on both sides. If its cost is luck, also the change of that
/// cost, which has no part in the figure.
fn shares(executed: &[Vec<Executed>; 2]) -> ([Vec<f64>; 2], Option<f64>) {
    let all = || executed.iter().flatten();
    let seeds = executed.each_ref().map(Vec::len);
    let entered = executed.each_ref().map(|side| side.iter().filter(|it| it.entries > 0).count());
    let is_of_one_side = entered == [seeds[0], 0] || entered == [0, seeds[1]];
    let in_parts = all().any(|it| it.part_entries > 0);
    let entries = each(executed, |it| it.entries as f64);
    let cannot_be_equal = in_parts
        || is_of_one_side
        || entered == [0, 0]
        || (entered[0] == seeds[0] || entered[1] == seeds[1]) && differ_in_entries(&entries);
    if cannot_be_equal {
        return (each(executed, |it| it.cost as f64), None);
    }
    let means = |sides: &[Vec<f64>; 2]| sides.each_ref().map(|it| mean(it).unwrap_or(0.0));
    let both = |[base, new]: [f64; 2]| (base + new) / 2.0;
    let the_same = |sides: [Vec<f64>; 2]| {
        let [base, new] = means(&sides);
        (sides.map(|side| vec![both([base, new]); side.len()]), Some(new - base))
    };
    if is_apart(&entries, TOO_FAR) {
        return the_same(each(executed, |it| it.cost as f64));
    }
    let standard = both(means(&entries));
    let sum = all().fold((0, 0), |sum, it| (sum.0 + it.cost, sum.1 + it.entries));
    let shares = executed.each_ref().map(|side| {
        let cost = side.iter().map(|it| match it.entries {
            0 => sum.0 as f64 / sum.1 as f64,
            entries => it.cost as f64 / entries as f64,
        });
        cost.map(|cost| cost * standard).collect::<Vec<f64>>()
    });
    if spread(&shares) <= STEADY * both(means(&shares)) || is_sure(&shares, NO_DOUBT) {
        return (shares, None);
    }
    the_same(shares)
}

fn each(executed: &[Vec<Executed>; 2], figure: fn(&Executed) -> f64) -> [Vec<f64>; 2] {
    executed.each_ref().map(|side| side.iter().map(figure).collect())
}

/// Whether the sides differ in entries by more than luck explains.
fn differ_in_entries(entries: &[Vec<f64>; 2]) -> bool {
    is_sure(entries, if is_apart(entries, FAR) { FAR_APART } else { NO_DOUBT })
}

/// Whether the mean entries of the sides differ by more than this factor.
fn is_apart(entries: &[Vec<f64>; 2], factor: f64) -> bool {
    let [base, new] = entries.each_ref().map(|side| mean(side).unwrap_or(0.0));
    !(1.0 / factor..=factor).contains(&(new / base))
}

/// Whether the means of the sides differ significantly at this level.
fn is_sure([base, new]: &[Vec<f64>; 2], level: f64) -> bool {
    estimate(base, new).is_some_and(|it| it.p_apart(0.0) < level)
}

/// The pooled standard deviation within the sides.
fn spread(sides: &[Vec<f64>; 2]) -> f64 {
    let squares = |side: &Vec<f64>| {
        let mean = mean(side).unwrap_or(0.0);
        ascending(side).iter().map(|value| (value - mean).powi(2)).sum::<f64>()
    };
    let freedom = sides.iter().map(|side| side.len().saturating_sub(1)).sum::<usize>();
    (sides.iter().map(squares).sum::<f64>() / freedom.max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{boot, columns, deviations, executing, manifest, used, variant};
    use crate::verdicts::luck::{Difference, LEVEL};

    /// A boot with these functions: name, entries, instructions.
    fn seed(boot_index: u32, functions: &[(&str, u64, u64)]) -> Boot {
        let executed = functions.iter().map(|&(name, entries, it)| (name, "", entries, it));
        let profile = executing(0, "run", &executed.collect::<Vec<_>>());
        Boot { profiles: vec![profile], ..boot(boot_index) }
    }

    fn change(base: &[Boot], new: &[Boot]) -> Difference {
        let variants = ["base", "new"].map(variant);
        let columns = columns(&variants, &[base, new]);
        let used = used(manifest());
        let counted = counted(&used, [&columns[0], &columns[1]], "run");
        let [base, new] = at_equal_entries(&counted).unwrap();
        new.against(&base).unwrap()
    }

    const LUCKY: [u64; 5] = [1000, 3000, 2000, 1500, 2500];

    /// Luck decides how often a function is entered, and each entry costs 1 % more.
    #[test]
    fn equal_entries_show_what_luck_hides_in_the_total() {
        let side = |cost: u64, order: [usize; 5]| {
            let boot = |(it, place): (u32, usize)| {
                let entries = LUCKY[place];
                seed(it, &[("lucky", entries, entries * cost), ("steady", 10, 5000)])
            };
            (0..).zip(order).map(boot).collect::<Vec<Boot>>()
        };
        let (base, new) = (side(100, [0, 1, 2, 3, 4]), side(101, [4, 2, 0, 1, 3]));
        let difference = change(&base, &new);
        // 2000 entries at 100 and at 101, and 5000 beside them.
        assert!((difference.base - 205_000.0).abs() < 1e-6, "{difference:?}");
        assert!((difference.change() - 2000.0).abs() < 1e-6, "{difference:?}");
        assert_eq!(difference.beyond_luck(), Some(true));
    }

    /// A loop over pending work does not hide a change of 1 % in another function. A change of the loop
    /// itself counts if it is beyond doubt.
    #[test]
    fn a_cost_that_is_luck_does_not_count() {
        let side = |steady: u64, more: u64| -> Vec<Boot> {
            let boot = |(it, work): (u32, u64)| {
                let looped = 100 * work + more;
                seed(it, &[("loop", 100, looped), ("steady", 10, 10 * steady)])
            };
            (0..).zip(LUCKY).map(boot).collect()
        };
        let mut new = side(1010, 0);
        new.rotate_left(2);
        (0..).zip(&mut new).for_each(|(it, boot)| boot.boot_index = it);
        let difference = change(&side(1000, 0), &new);
        assert_eq!((difference.change(), difference.beyond_luck()), (100.0, Some(true)));
        let far = change(&side(1000, 0), &side(1000, 10_000_000));
        assert!((far.change() - 1e7).abs() < 1.0, "{far:?}");
    }

    /// A tenth of the entries at ten times the cost is no change.
    #[test]
    fn larger_batches_are_no_change() {
        let boots = |entries: u64, cost: u64| -> Vec<Boot> {
            (0..5).map(|it| seed(it, &[("batch", entries, entries * cost)])).collect()
        };
        assert_eq!(change(&boots(1000, 30), &boots(100, 300)).change(), 0.0);
    }

    /// Batches whose number luck decides: the cost of an entry of the one side says nothing about the other.
    #[test]
    fn entries_that_are_too_far_apart_are_not_made_equal() {
        let boots = |entries: [u64; 4], cost: u64| -> Vec<Boot> {
            let boot = |(it, entries)| seed(it, &[("batch", entries, cost), ("steady", 10, 1000)]);
            (0..).zip(entries).map(boot).collect()
        };
        let [base, new] = [boots([1, 2, 0, 3], 202_701), boots([20, 120, 2, 146], 249_696)];
        assert_eq!(change(&base, &new).change(), 0.0);
    }

    /// A function that one side inlines is part of its caller there.
    #[test]
    fn a_function_of_one_side_counts_unchanged() {
        let boots = |functions: &[(&str, u64, u64)]| -> Vec<Boot> {
            (0..5).map(|it| seed(it, functions)).collect()
        };
        let base = boots(&[("caller", 10, 1000), ("callee", 10, 400)]);
        assert_eq!(change(&base, &boots(&[("caller", 10, 1400)])).change(), 0.0);
        assert_eq!(change(&base, &boots(&[("caller", 10, 1500)])).change(), 100.0);
        // So does a function that is also entered through a part.
        let parts = boots(&[("caller", 5, 600), ("caller.part.0", 5, 500), ("callee", 10, 400)]);
        assert_eq!(change(&base, &parts).change(), 100.0);
    }

    /// One side inlines a function but for one call, which one of its seeds makes.
    #[test]
    fn a_stray_entry_is_no_reason_to_make_entries_equal() {
        let side = |function: [u64; 4], caller: u64| -> Vec<Boot> {
            let boot = |(it, entries): (u32, u64)| {
                seed(it, &[("callee", entries, 30 * entries), ("caller", 10, caller)])
            };
            (0..).zip(function).map(boot).collect()
        };
        let difference = change(
            &side([32_760, 32_765, 32_770, 32_765], 1000),
            &side([0, 0, 1, 0], 1000 + 30 * 32_765),
        );
        assert_eq!(difference.change(), 7.5, "{difference:?}");
    }

    #[test]
    fn a_seed_without_an_entry_gets_the_mean_cost_of_both_sides() {
        let boots = |rare: [u64; 5]| -> Vec<Boot> {
            let boot = |(it, rare): (u32, u64)| seed(it, &[("f", 1, 10), ("rare", rare, 7 * rare)]);
            (0..).zip(rare).map(boot).collect()
        };
        assert_eq!(change(&boots([0, 1, 2, 1, 0]), &boots([2, 0, 1, 0, 3])).change(), 0.0);
        // Luck also decides that no seed of a side enters it.
        assert_eq!(change(&boots([0, 1, 2, 1, 0]), &boots([0; 5])).change(), 0.0);
    }

    /// One seed of each side makes a call, at its own cost.
    #[test]
    fn a_rare_call_of_any_cost_is_no_change() {
        let side = |place: u32, cost: u64| -> Vec<Boot> {
            let boot = |it: u32| {
                let rare = u64::from(it == place);
                seed(it, &[("steady", 100, 100_000), ("rare", rare, rare * cost)])
            };
            (0..5).map(boot).collect()
        };
        let difference = change(&side(3, 60), &side(1, 4900));
        assert_eq!((difference.change(), difference.beyond_luck()), (0.0, Some(false)));
        // A cost that hardly varies counts, with the spread that seeds without a call leave.
        let difference = change(&side(3, 4900), &side(1, 4950));
        assert!((difference.change() - 2.0).abs() < 1e-6, "{difference:?}");
        assert_eq!(difference.beyond_luck(), Some(false));
    }

    /// Two boots in five make one more call, on 50 to 499 pages.
    #[test]
    fn luck_in_rare_calls_exceeds_the_floor_as_rarely_as_stated() {
        const TRIALS: usize = 1000;
        let mut deviations = deviations();
        let mut uniform = move || (deviations.next().unwrap() * 1e6).rem_euclid(1.0);
        for seeds in [5, 8] {
            let mut side = || -> Vec<Boot> {
                let mut boot = |it: u32| {
                    let steady = 100_000 + (20.0 * uniform()) as u64;
                    let rare = u64::from(uniform() < 0.4);
                    let pages = 50 + (450.0 * uniform()) as u64;
                    seed(it, &[("steady", 100, steady), ("rare", rare, 10 * rare * pages)])
                };
                (0..seeds).map(&mut boot).collect()
            };
            let is_false = |_: &usize| change(&side(), &side()).beyond_luck() == Some(true);
            let share = (0..TRIALS).filter(is_false).count() as f64 / TRIALS as f64;
            assert!(share < LEVEL + 4.0 * (LEVEL / TRIALS as f64).sqrt(), "{share} of {seeds}");
        }
    }

    /// Half of the boots enter it: then 3 seeds a side tell nothing.
    #[test]
    fn few_seeds_have_no_floor() {
        let boots = |seeds: u32, rare: u64| -> Vec<Boot> {
            (0..seeds).map(|it| seed(it, &[("f", 1, 10), ("rare", rare, 7 * rare)])).collect()
        };
        assert_eq!(change(&boots(3, 1), &boots(3, 0)).beyond_luck(), None);
        assert_eq!(change(&boots(4, 1), &boots(4, 0)).beyond_luck(), Some(true));
    }

    #[test]
    fn without_functions_there_is_no_figure() {
        let boots: Vec<Boot> = (0..5).map(boot).collect();
        let variants = ["base", "new"].map(variant);
        let columns = columns(&variants, &[&boots, &boots]);
        let sides = [&columns[0], &columns[1]];
        assert!(at_equal_entries(&counted(&used(manifest()), sides, "run")).is_none());
    }
}
