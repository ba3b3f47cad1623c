//! Values with counts, which say how many times in a row each was measured.

use std::num::NonZeroU32;

/// A value, and the number of times that it occurs in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RepeatedValue {
    /// The value that occurs.
    pub value: f64,
    /// The number of times.
    pub count: NonZeroU32,
}

impl RepeatedValue {
    /// Splits it into its first `n` values and the others; `None` for an empty part.
    pub fn split_at(self, n: usize) -> [Option<Self>; 2] {
        let all = self.count.get();
        let before = u32::try_from(n).map_or(all, |n| n.min(all));
        let part = |count| Some(Self { count: NonZeroU32::new(count)?, ..self });
        [part(before), part(all - before)]
    }
}

/// An element of a slice of values: a single value, or a run of equal ones, which counts as its value
/// repeated.
pub trait Counted: Copy {
    /// The value with its count.
    fn run(self) -> RepeatedValue;

    /// The value.
    fn value(self) -> f64 {
        self.run().value
    }

    /// The number of times that it occurs.
    fn count(self) -> usize {
        self.run().count.get() as usize
    }
}

impl Counted for f64 {
    fn run(self) -> RepeatedValue {
        RepeatedValue { value: self, count: NonZeroU32::MIN }
    }
}

impl Counted for RepeatedValue {
    fn run(self) -> RepeatedValue {
        self
    }
}

/// The number of values.
pub fn count<V: Counted>(values: &[V]) -> usize {
    values.iter().map(|it| it.count()).sum()
}

/// Every single value, with repetitions. All of them must fit into memory.
pub fn expanded<V: Counted>(values: &[V]) -> Vec<f64> {
    values.iter().flat_map(|it| std::iter::repeat_n(it.value(), it.count())).collect()
}

/// Splits values into the first `n` and the others.
pub fn split_at<V: Counted>(values: &[V], mut n: usize) -> [Vec<RepeatedValue>; 2] {
    let mut parts = [Vec::new(), Vec::new()];
    for run in values.iter().map(|it| it.run()) {
        let [before, after] = run.split_at(n);
        n -= n.min(run.count());
        parts[0].extend(before);
        parts[1].extend(after);
    }
    parts
}

/// Value number `place`, from 0, or the last one if there are fewer.
pub fn at<V: Counted>(values: &[V], place: usize) -> Option<f64> {
    let mut after = 0;
    let reaches = |it: &&V| {
        after += it.count();
        after > place
    };
    values.iter().find(reaches).or(values.last()).map(|it| it.value())
}

#[cfg(test)]
mod tests {
    use model::{Better, Mean};
    use proptest::prelude::*;

    use super::*;
    use crate::{Steady, Summary, modes, order, outliers, steady, variance_components, warm_up};

    /// Values in runs of up to `most` equal ones; some are rounded.
    fn runs(most: u32) -> impl Strategy<Value = Vec<RepeatedValue>> {
        let value = prop_oneof![0.5..9.0_f64, (1..9_i32).prop_map(f64::from), Just(4.25)];
        let run = (value, 1..=most).prop_map(|(value, count)| RepeatedValue {
            value,
            count: NonZeroU32::new(count).unwrap(),
        });
        prop::collection::vec(run, 1..30)
    }

    fn near(a: Option<f64>, b: Option<f64>) -> bool {
        a.zip(b).map_or(a == b, |(a, b)| (a - b).abs() <= 1e-9 * (1.0 + a.abs()))
    }

    proptest! {
        #[test]
        fn a_run_counts_as_its_value_so_many_times(runs in runs(60), percent in 0.0..=100.0_f64) {
            let all = expanded(&runs);
            prop_assert_eq!(count(&runs), all.len());
            prop_assert_eq!((at(&runs, all.len() / 3), at(&runs, 0)), (Some(all[all.len() / 3]), Some(all[0])));

            let [a, b] = [Summary::of(&runs).unwrap(), Summary::of(&all).unwrap()];
            prop_assert_eq!((a.n, a.min, a.max), (b.n, b.min, b.max));
            let figures = |it: Summary| {
                [Some(it.amean), it.hmean, it.gmean, it.stddev, it.coeffvar, it.hstddev, it.hcoeffvar]
            };
            for (a, b) in figures(a).into_iter().zip(figures(b)) {
                prop_assert!(near(a, b), "{a:?}, not {b:?}");
            }

            // Picked values are equal to the bit.
            prop_assert_eq!(order::median(&runs), order::median(&all));
            prop_assert_eq!(order::quartile(&runs, percent), order::quartile(&all, percent));
            for better in [Better::Lower, Better::Higher] {
                for mean in [Mean::Amean, Mean::Hmean, Mean::Gmean] {
                    prop_assert!(near(
                        order::best_mean(&runs, better, percent, mean),
                        order::best_mean(&all, better, percent, mean)
                    ));
                }
            }
            prop_assert!(near(order::smallest_mean(&runs, percent), order::smallest_mean(&all, percent)));

            let parts = [split_at(&runs, all.len() / 3), split_at(&all, all.len() / 3)];
            prop_assert_eq!(expanded(&parts[0][0]), expanded(&parts[1][0]));
            prop_assert_eq!(expanded(&parts[0][1]), expanded(&parts[1][1]));
        }

        #[test]
        fn outliers_and_components_are_those_of_all_values(runs in runs(9)) {
            let mut runs = runs;
            runs.push(RepeatedValue { value: 1000.0, count: NonZeroU32::MIN });
            let all = expanded(&runs);
            let far: Vec<f64> = outliers(&runs).into_iter().flat_map(|it| expanded(&runs[it..=it])).collect();
            let expected: Vec<f64> = outliers(&all).into_iter().map(|it| all[it]).collect();
            prop_assert_eq!(far, expected);

            let halves = |n: usize| [runs[..n].to_vec(), runs[n..].to_vec()];
            let halves = halves(runs.len() / 2);
            let found = variance_components(&halves);
            let expected = variance_components(&halves.each_ref().map(|it| expanded(it)));
            prop_assert_eq!(found.is_some(), expected.is_some());
            if let (Some(a), Some(b)) = (found, expected) {
                prop_assert!(near(Some(a.between), Some(b.between)), "{a:?}, not {b:?}");
                prop_assert!(near(Some(a.within), Some(b.within)), "{a:?}, not {b:?}");
            }
        }

        #[test]
        fn warm_up_is_that_of_all_values(runs in prop::collection::vec(runs(9), 3..5)) {
            let all: Vec<Vec<Vec<f64>>> = runs.iter().map(|it| vec![expanded(it)]).collect();
            let runs: Vec<Vec<Vec<RepeatedValue>>> = runs.into_iter().map(|it| vec![it]).collect();
            prop_assert_eq!(warm_up(&runs), warm_up(&all));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn modes_are_those_of_all_values(runs in runs(250), apart in 0..3_u32) {
            let mut runs = runs;
            for run in runs.iter_mut().step_by(3) {
                run.value += 20.0 * f64::from(apart);
            }
            let (found, expected) = (modes(&runs).unwrap(), modes(&expanded(&runs)).unwrap());
            prop_assert_eq!(found.modes, expected.modes);
            prop_assert!((found.dip - expected.dip).abs() < 1e-12, "{} {}", found.dip, expected.dip);
            prop_assert_eq!(found.p, expected.p);
        }
    }

    /// More equal values than are examined one by one.
    #[test]
    fn modes_of_very_many_equal_values_are_found() {
        let count = NonZeroU32::new(20_000).unwrap();
        let values = [1.0, 1.1, 1.2, 1.3, 1.4, 7.0, 7.1, 7.2, 7.3]
            .map(|value| RepeatedValue { value, count });
        let (found, expected) = (modes(&values).unwrap(), modes(&expanded(&values)).unwrap());
        assert_eq!(found.modes, expected.modes);
        assert_eq!((found.count(), found.modes[0].n), (2, 100_000));
        assert!((found.dip - expected.dip).abs() < 1e-12);
    }

    #[test]
    fn a_series_of_runs_is_steady_where_all_its_values_are() {
        let run = |value, count| RepeatedValue { value, count: NonZeroU32::new(count).unwrap() };
        let warm: Vec<RepeatedValue> =
            (0..60).map(|at| run(100.0 + f64::from(at % 7), 1 + at % 2)).collect();
        let series = [vec![run(200.0, 5)], warm].concat();
        assert_eq!(steady(&expanded(&series)), Some(Steady::Warmup { until: 5 }));
        let found = warm_up(&[vec![series.clone()], vec![series.clone()], vec![series]]);
        assert_eq!(found.until, 5);
    }
}
