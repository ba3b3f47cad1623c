//! Zero noise is not zero luck: what a figure of exact mode owes to start-up timing and placement.
//! The spread of one variant over its seeds is the floor; a difference inside it is none.
//!
//! The floor is the wider range of two, and grows with the number of seeds. How often luck alone
//! exceeds it, simulated with 200,000 pairs of normal samples: with 2 seeds a variant 22 %, 3 seeds
//! 4.9 %, 4 seeds 1.1 %, 5 seeds 0.2 %. With 5 seeds a difference of 3 standard deviations is seen
//! in 59 % of cases, one of 4 in 88 %.

use std::collections::BTreeSet;

use model::Better;
use serde::Serialize;

/// What is said of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Worse: in exact mode beyond luck, in measured mode more than chance explains.
    Regression,
    /// Better, likewise.
    Improvement,
    /// Inside the luck floor; in measured mode, shown to be smaller than the margin.
    Same,
    /// Not enough is known. In exact mode a variant lacks a seed's figure, or has only one seed.
    Undecided,
}

impl Verdict {
    /// The name used in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Regression => "regression",
            Self::Improvement => "improvement",
            Self::Same => "same",
            Self::Undecided => "undecided",
        }
    }

    /// The verdict on the difference of a figure of which `better` is good.
    pub(crate) fn of(better: Better, difference: Option<&Difference>) -> Self {
        let Some((more, beyond_luck)) =
            difference.and_then(|it| Some((it.change() > 0.0, it.beyond_luck()?)))
        else {
            return Self::Undecided;
        };
        match (beyond_luck, more == (better == Better::Higher)) {
            (false, _) => Self::Same,
            (true, true) => Self::Improvement,
            (true, false) => Self::Regression,
        }
    }
}

/// A figure of one variant: one value a seed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Seeds {
    /// Ascending, so that sums do not depend on the order of boots.
    values: Vec<f64>,
    complete: bool,
}

impl Seeds {
    /// From seeds and their values; `wanted` seeds, from 0, make the set complete.
    pub fn new(figures: impl IntoIterator<Item = (u32, Option<f64>)>, wanted: u32) -> Self {
        let figures = figures.into_iter();
        let known = figures.filter_map(|(seed, value)| Some((seed, value?)));
        let (seeds, mut values): (BTreeSet<u32>, Vec<f64>) =
            known.filter(|(_, value)| value.is_finite()).unzip();
        values.sort_by(f64::total_cmp);
        Self { values, complete: (0..wanted).all(|seed| seeds.contains(&seed)) }
    }

    /// The values, ascending.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The luck floor of a difference between two variants; none unless both have all seeds.
    pub fn floor(&self, other: &Self) -> Option<f64> {
        (self.complete && other.complete).then(|| floor(&self.values, &other.values)).flatten()
    }
}

/// The difference of a figure between two variants, each booted with several seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Mean over the baseline's seeds.
    pub base: f64,
    /// Mean over the other variant's seeds.
    pub new: f64,
    /// The luck floor: the wider of the two ranges over seeds. None if a variant has not two
    /// seeds, or not all that are wanted, so that nothing is known of luck.
    pub floor: Option<f64>,
}

impl Difference {
    /// The difference between figures, one a seed. None if a side has none.
    pub fn of(base: &[f64], new: &[f64]) -> Option<Self> {
        Some(Self { base: mean(base)?, new: mean(new)?, floor: floor(base, new) })
    }

    /// What was added.
    pub fn change(&self) -> f64 {
        self.new - self.base
    }

    /// Whether luck alone does not explain it; none if nothing is known of luck.
    pub fn beyond_luck(&self) -> Option<bool> {
        Some(self.change().abs() > self.floor?)
    }

    /// By how much the change exceeds luck; 0 where it does not, or nothing is known of luck.
    pub fn excess(&self) -> f64 {
        self.floor.map_or(0.0, |floor| (self.change().abs() - floor).max(0.0))
    }
}

/// The wider of two ranges; none if one is not known.
fn floor(base: &[f64], new: &[f64]) -> Option<f64> {
    Some(range(base)?.max(range(new)?))
}

/// The mean. Taken from the first value on, so that the mean of equal values is that value, to the
/// last bit: where the floor is 0, an error of rounding would be a difference beyond luck.
fn mean(values: &[f64]) -> Option<f64> {
    let first = values.first()?;
    let beyond: f64 = values.iter().map(|value| value - first).sum();
    Some(first + beyond / values.len() as f64)
}

/// The distance between the largest and the smallest of two or more values.
fn range(values: &[f64]) -> Option<f64> {
    let least = values.iter().copied().reduce(f64::min)?;
    let most = values.iter().copied().reduce(f64::max)?;
    (values.len() > 1).then_some(most - least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::deviations;

    fn seeds(values: &[f64]) -> Seeds {
        Seeds::new((0..).zip(values.iter().copied().map(Some)), values.len() as u32)
    }

    #[test]
    fn a_difference_inside_the_spread_of_one_variant_is_luck() {
        let base = [100.0, 104.0, 101.0];
        let same = Difference::of(&base, &[103.0, 104.0, 105.0]).unwrap();
        assert_eq!((same.floor, same.beyond_luck(), same.excess()), (Some(4.0), Some(false), 0.0));
        let more = Difference::of(&base, &[110.0, 111.0, 112.0]).unwrap();
        assert_eq!(more.beyond_luck(), Some(true));
        assert!((more.excess() - (111.0 - 305.0 / 3.0 - 4.0)).abs() < 1e-9);
    }

    #[test]
    fn the_wider_range_counts() {
        let difference = Difference::of(&[1.0, 1.0], &[2.0, 8.0]).unwrap();
        assert_eq!((difference.floor, difference.beyond_luck()), (Some(6.0), Some(false)));
    }

    #[test]
    fn one_seed_says_nothing_of_luck() {
        let difference = Difference::of(&[1.0], &[2.0]).unwrap();
        assert_eq!((difference.floor, difference.beyond_luck()), (None, None));
        let opposite_a_range = Difference::of(&[1.0, 1.5], &[2.0]).unwrap();
        assert_eq!((opposite_a_range.floor, opposite_a_range.excess()), (None, 0.0));
        assert_eq!(Difference::of(&[], &[2.0]), None);
    }

    #[test]
    fn verdicts_follow_the_direction() {
        let verdict = |better, new, floor| {
            Verdict::of(better, Some(&Difference { base: 100.0, new, floor })).name()
        };
        assert_eq!(verdict(Better::Lower, 105.0, Some(4.0)), "regression");
        assert_eq!(verdict(Better::Lower, 95.0, Some(4.0)), "improvement");
        assert_eq!(verdict(Better::Higher, 105.0, Some(4.0)), "improvement");
        assert_eq!(verdict(Better::Higher, 95.0, Some(4.0)), "regression");
        assert_eq!(verdict(Better::Lower, 104.0, Some(4.0)), "same");
        assert_eq!(verdict(Better::Higher, 100.0, Some(0.0)), "same");
        assert_eq!(verdict(Better::Lower, 105.0, None), "undecided");
        assert_eq!(Verdict::of(Better::Lower, None), Verdict::Undecided);
    }

    #[test]
    fn only_complete_sets_of_seeds_have_a_floor() {
        let base = seeds(&[1.0, 3.0, 2.0]);
        assert_eq!(base.values(), [1.0, 2.0, 3.0]);
        assert_eq!(base.floor(&seeds(&[5.0, 9.0, 6.0])), Some(4.0));
        let gap = Seeds::new([(0, Some(1.0)), (2, Some(9.0))], 3);
        let no_number = Seeds::new([(0, Some(1.0)), (1, Some(f64::NAN)), (2, Some(2.0))], 3);
        let none = Seeds::new([(0, Some(1.0)), (1, None), (2, Some(2.0))], 3);
        for incomplete in [gap, no_number, none] {
            assert_eq!(incomplete.values().len(), 2);
            assert_eq!((base.floor(&incomplete), incomplete.floor(&base)), (None, None));
        }
        assert_eq!(seeds(&[1.0]).floor(&seeds(&[2.0])), None);
    }

    /// How often luck alone exceeds the floor, as this page says, give or take 4 standard errors.
    #[test]
    fn luck_exceeds_its_floor_as_rarely_as_said() {
        const TRIALS: usize = 20_000;
        let mut deviations = deviations();
        for (number, said) in [(2, 0.22), (3, 0.049), (4, 0.011), (5, 0.002)] {
            let mut exceeds = |_: &usize| {
                let mut draw = || (0..number).filter_map(|_| deviations.next()).collect::<Vec<_>>();
                Difference::of(&draw(), &draw()).unwrap().beyond_luck().unwrap()
            };
            let share = (0..TRIALS).filter(&mut exceeds).count() as f64 / TRIALS as f64;
            let error = (said * (1.0 - said) / TRIALS as f64).sqrt();
            assert!((share - said).abs() < 4.0 * error, "{share} of {number} seeds");
        }
    }
}
