//! Finds a warm-up at the beginning of series that chance does not explain.

use std::collections::BTreeSet;

use crate::counted::{count, expanded};
use crate::{Counted, Estimate, Steady, steady};

/// The fewest units for which a common warm-up is certain.
const MIN_UNITS: usize = 3;
/// The largest probability that the first values differ by chance, over all lengths that are tried.
const ALPHA: f64 = 0.01;

/// The beginnings of the series of several independent units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WarmUp {
    /// Number of first values of each series that precede the steady state; 0 if no warm-up is certain.
    pub until: usize,
    /// Number of units whose series are long enough to tell.
    pub units: usize,
    /// Number of these that begin with a warm-up.
    pub warm: usize,
    /// Number of values in the longest of these warm-ups.
    pub longest: usize,
    /// Number of these that never become steady.
    pub never: usize,
}

/// The beginning of most series of a unit, by [`steady()`].
enum Beginning {
    Steady,
    /// A warm-up: the number of first values, and whether they are above the others.
    Warm(usize, bool),
    Never,
}

/// Looks for a warm-up in `units`. Each unit has one or more series of the same figure in order of time; series of
/// fewer than 20 values are skipped.
///
/// A single series is weak evidence: [`steady()`] finds a warm-up in 23 % of stationary lognormal series of
/// 40 values correlated by 0.8. Units are independent of each other, whatever the correlation within them.
/// So a warm-up is certain if there are 3 units or more, and
///
/// - more than half of them begin with one, on the same side of the values that follow (a unit begins with one if
///   more than half of its series do);
/// - and this number of first values is on that side in all units together: the probability that one of them is above
///   one of the others, less 1/2 (Mann and Whitney, "On a test of whether one of two random variables is
///   stochastically larger than the other", Annals of Mathematical Statistics 18, 1947), differs from 0 over units by
///   Student's t at level 1 %, divided by the number of lengths that are tried (Bonferroni). In stationary series
///   this difference is 0 on average.
///
/// The longest certain length is taken, because one unit that changes late must not hide a warm-up that all have in
/// common. It must not exceed three quarters of any series. In simulations, two sides of 3 to 10 stationary units are
/// cut in about 1 % of cases at most, be they normal, skewed, bimodal or correlated (`bench/stats-calibration`).
pub fn warm_up<V: Counted, U: AsRef<[Vec<V>]>>(units: &[U]) -> WarmUp {
    let units = || units.iter().map(AsRef::as_ref);
    let known: Vec<(&[Vec<V>], Beginning)> =
        units().filter_map(|series| Some((series, beginning(series)?))).collect();
    let warm = known.iter().filter_map(|(_, beginning)| match beginning {
        Beginning::Warm(until, above) => Some((*until, *above)),
        Beginning::Steady | Beginning::Never => None,
    });
    let warm: Vec<(usize, bool)> = warm.collect();
    let shortest = units().flatten().map(|it| count(it)).min().unwrap_or(0);
    let is_sure = |until: usize, above: bool, level: f64| {
        let shares: Vec<f64> = known.iter().map(|(series, _)| unit_above(series, until)).collect();
        let apart = Estimate::of_mean(&shares).filter(|it| (it.value > 0.0) == above);
        4 * until <= 3 * shortest && apart.is_some_and(|it| it.p_apart(0.0) < level)
    };
    let longest = |above: bool| {
        let own = warm.iter().filter(|(_, it)| *it == above).map(|(until, _)| *until);
        let lengths: BTreeSet<usize> = own.clone().collect();
        let in_common = known.len() >= MIN_UNITS && 2 * own.count() > known.len();
        // Each length tried may differ by chance.
        let level = ALPHA / lengths.len() as f64;
        lengths.into_iter().rev().find(|until| in_common && is_sure(*until, above, level))
    };
    WarmUp {
        until: [true, false].into_iter().find_map(longest).unwrap_or(0),
        units: known.len(),
        warm: warm.len(),
        longest: warm.iter().map(|(until, _)| *until).max().unwrap_or(0),
        never: known.iter().filter(|(_, beginning)| matches!(beginning, Beginning::Never)).count(),
    }
}

/// The beginning of most series of a unit; `None` if no series is long enough.
fn beginning<V: Counted>(series: &[Vec<V>]) -> Option<Beginning> {
    // Series are expanded one at a time, because they may be long.
    let known: Vec<(&[V], Steady)> =
        series.iter().filter_map(|it| Some((&it[..], steady(&expanded(it))?))).collect();
    let most = |count: usize| 2 * count > known.len();
    if known.is_empty() {
        return None;
    }
    let warm = known.iter().filter_map(|(values, found)| match found {
        Steady::Warmup { until } | Steady::Slowdown { until } => {
            Some((*until, above(values, *until) > 0.0))
        }
        Steady::Flat | Steady::None => None,
    });
    let warm: Vec<(usize, bool)> = warm.collect();
    for side in [true, false] {
        let own = warm.iter().filter(|(_, above)| *above == side).map(|(until, _)| *until);
        if most(own.clone().count()) {
            return own.max().map(|until| Beginning::Warm(until, side));
        }
    }
    let never = known.iter().filter(|(_, found)| *found == Steady::None).count();
    Some(if most(never) { Beginning::Never } else { Beginning::Steady })
}

/// The mean of [`above`] over the series of a unit.
fn unit_above<V: Counted>(series: &[Vec<V>], until: usize) -> f64 {
    let long = series.iter().filter(|it| count(it) > until);
    let shares: Vec<f64> = long.map(|values| above(values, until)).collect();
    shares.iter().sum::<f64>() / shares.len().max(1) as f64
}

/// The probability that one of the first `until` values, of which there must be some, is above one of
/// the others, less 1/2. Ties count half.
fn above<V: Counted>(values: &[V], until: usize) -> f64 {
    let values = expanded(values);
    let (first, rest) = values.split_at(until);
    let mut rest = rest.to_vec();
    rest.sort_by(f64::total_cmp);
    let below = |value: &f64| {
        let [lower, upper] =
            [rest.partition_point(|it| it < value), rest.partition_point(|it| it <= value)];
        (lower + upper) as f64 / 2.0
    };
    first.iter().map(below).sum::<f64>() / (first.len() * rest.len()) as f64 - 0.5
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simulate::normal;

    /// Units of one series each. `value` makes each value from the unit, its place and a normal figure.
    fn units(
        units: usize,
        n: usize,
        value: impl Fn(usize, usize, f64) -> f64,
    ) -> Vec<Vec<Vec<f64>>> {
        let mut normal = normal(21);
        let mut unit = |number| vec![(0..n).map(|at| value(number, at, normal())).collect()];
        (0..units).map(&mut unit).collect()
    }

    /// SciPy 1.17.1: `scipy.stats.mannwhitneyu(first, rest).statistic / (len(first) * len(rest))`
    /// less 0.5.
    #[test]
    fn first_values_are_above_as_mann_and_whitney_have_it() {
        let values = [5.0, 3.5, 2.0, 2.0, 1.0, 4.0, 3.5, 2.5, 0.5, 2.0, 6.0];
        for (until, expected) in
            [(1, 0.4), (2, 0.3055555555555556), (3, 0.14583333333333337), (5, -0.08333333333333331)]
        {
            assert!((above(&values, until) - expected).abs() < 1e-12, "{until}");
        }
    }

    #[test]
    fn the_longest_common_warm_up_is_found() {
        let length = |unit: usize| if unit == 2 { 6 } else { 4 };
        let slow = |unit, at, x| 100.0 + x + if at < length(unit) { 9.0 } else { 0.0 };
        let found = warm_up(&units(5, 40, slow));
        assert_eq!(found, WarmUp { until: 6, units: 5, warm: 5, longest: 6, never: 0 });
        let fast = units(5, 40, |unit, at, x| -slow(unit, at, x));
        assert_eq!(warm_up(&fast).until, 6);
    }

    #[test]
    fn one_unit_that_changes_late_hides_nothing() {
        let late = |unit, at, x| {
            let length = if unit == 4 { 28 } else { 3 };
            100.0 + x + if at < length { 9.0 } else { 0.0 }
        };
        let found = warm_up(&units(5, 40, late));
        assert_eq!(found, WarmUp { until: 3, units: 5, warm: 5, longest: 28, never: 0 });
    }

    #[test]
    fn a_steep_warm_up_is_no_outlier() {
        let decay = |_, at: usize, x| 100.0 + x + 40.0 * (-(at as f64)).exp();
        let found = warm_up(&units(4, 40, decay));
        assert_eq!((found.warm, found.units), (4, 4));
        assert!((2..=5).contains(&found.until), "{found:?}");
    }

    #[test]
    fn a_few_units_alone_cut_nothing() {
        let one = |unit, at, x| 100.0 + x + if unit < 2 && at < 5 { 9.0 } else { 0.0 };
        let found = warm_up(&units(5, 40, one));
        assert_eq!(found, WarmUp { until: 0, units: 5, warm: 2, longest: 5, never: 0 });
        let two = warm_up(&units(2, 40, |_, at, x| one(0, at, x)));
        assert_eq!((two.until, two.warm), (0, 2));
    }

    #[test]
    fn units_that_begin_to_different_sides_have_nothing_in_common() {
        let sides = |unit, at, x| {
            let side = if unit % 2 == 0 { 9.0 } else { -9.0 };
            100.0 + x + if at < 5 { side } else { 0.0 }
        };
        let found = warm_up(&units(6, 40, sides));
        assert_eq!((found.until, found.warm), (0, 6));
    }

    #[test]
    fn units_that_never_become_steady_are_counted() {
        let drift = |unit, at, x| x + if unit == 0 { at as f64 } else { 0.0 };
        let found = warm_up(&units(3, 60, drift));
        assert_eq!((found.never, found.warm, found.until), (1, 0, 0));
    }

    #[test]
    fn most_series_of_a_unit_speak_for_it() {
        let warm = |at: usize, x: f64| 100.0 + x + if at < 3 { 9.0 } else { 0.0 };
        let mut normal = normal(22);
        let mut unit = |warm_series: usize| -> Vec<Vec<f64>> {
            let mut series = |number| {
                let of =
                    |at| if number < warm_series { warm(at, normal()) } else { 100.0 + normal() };
                (0..40).map(of).collect()
            };
            (0..3).map(&mut series).collect()
        };
        let found = warm_up(&[unit(2), unit(3), unit(1), unit(2), unit(2)]);
        assert_eq!((found.warm, found.units), (4, 5));
        // Short series are no evidence, and must keep some values.
        let short = [unit(3), unit(3), unit(3), vec![vec![1.0; 4]]];
        assert_eq!((warm_up(&short).until, warm_up(&short).units), (3, 3));
        let short = [unit(3), unit(3), unit(3), vec![vec![1.0; 3]]];
        assert_eq!(warm_up(&short).until, 0);
    }

    /// Stationary, lognormal, each value correlated by 0.8 with the previous one: the worst case of the
    /// calibration.
    #[test]
    fn stationary_units_are_seldom_cut() {
        let mut normal = normal(23);
        let mut last = 0.0;
        let mut value = || {
            last = 0.8 * last + 0.6 * normal();
            f64::exp(last)
        };
        let mut unit = |_| vec![(0..40).map(|_| value()).collect::<Vec<f64>>()];
        let cut = |_: &usize| warm_up(&(0..3).map(&mut unit).collect::<Vec<_>>()).until > 0;
        assert!((0..200).filter(cut).count() <= 4);
    }

    proptest! {
        #[test]
        fn a_quarter_of_every_series_is_left(
            units in prop::collection::vec(
                prop::collection::vec(
                    prop::collection::vec(
                        prop_oneof![9 => 0.0..2.0_f64, 1 => any::<f64>()],
                        0..50,
                    ),
                    0..3,
                ),
                0..5,
            ),
        ) {
            let found = warm_up(&units);
            prop_assert!(found.warm + found.never <= found.units && found.units <= units.len());
            let shortest = units.iter().flatten().map(Vec::len).min().unwrap_or(0);
            prop_assert!(4 * found.until <= 3 * shortest && found.until <= found.longest);
        }
    }
}
