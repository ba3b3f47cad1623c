//! Luck in exact mode: the part of a figure that depends on what may differ between two boots of one kernel, such as
//! free lists, PIDs and timer phases. Each boot of a variant has a seed of its own, from which these are drawn. Seeds
//! are independent, so the statistics of small samples apply. Luck alone lifts a difference of means above its floor
//! at a stated, small rate:
//!
//! - A single difference: Welch's t at the level [`LEVEL`].
//! - Verdicts: the same level for all verdicts of a table together, by Holm ([`crate::verdicts::exact`]).
//! - Lists of many figures, as functions and counters are: a false discovery rate of [`RATE`], by
//!   relabelling the seeds ([`listed`]).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::Better;
use serde::Serialize;
use stats::Estimate;

/// The largest share of tables in which luck alone gives a regression or an improvement.
pub const LEVEL: f64 = 0.01;
/// A change below this share of the baseline's figure is never a regression or an improvement, because
/// variants may differ by as much in what no seed draws: `bench/luck` found a few parts in 10,000, caused by
/// a module that one variant loads.
pub const RESOLUTION: f64 = 0.001;
/// Of the entries of a list that are called beyond luck, at most this share is expected to be luck.
pub const RATE: f64 = 0.05;

/// Seeds per side needed to call an entry of a list beyond luck. With 3 seeds per side the smallest possible
/// p-value is 2/20 = 10 %, which is above [`RATE`].
pub const FEWEST_FOR_LISTS: u32 = 4;

/// The verdict on a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Worse: in exact mode beyond luck, in measured mode significant.
    Regression,
    /// Better: in exact mode beyond luck, in measured mode significant.
    Improvement,
    /// Within the margin. In exact mode this means no change at all, a change beyond luck that is smaller than the
    /// margin, or a change within a luck floor that does not exceed the margin.
    Same,
    /// Not enough is known. In exact mode the change is within a luck floor that exceeds the margin, the figure is
    /// missing in a seed that counts, or fewer than two seeds are complete on both sides.
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

    /// The verdict on the difference of a figure with direction `better`. A change of at most `margin` of
    /// the baseline's figure counts as none, and so does one of at most [`RESOLUTION`].
    pub(crate) fn of(better: Better, difference: Option<&Difference>, margin: f64) -> Self {
        let known = difference.and_then(|it| Some((it.change(), it.floor?, it.base.abs())));
        let Some((change, floor, base)) = known else { return Self::Undecided };
        let is_better = (change > 0.0) == (better == Better::Higher);
        match change.abs() > floor {
            true if change.abs() <= margin * base => Self::Same,
            true if is_better => Self::Improvement,
            true => Self::Regression,
            false if change != 0.0 && floor > margin.max(RESOLUTION) * base => Self::Undecided,
            false => Self::Same,
        }
    }
}

/// A figure of one variant: one value per seed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Seeds {
    /// The seeds that count, each with its value; `None` if the figure is missing in its boot.
    figures: BTreeMap<u32, Option<f64>>,
    /// The values in the order of the seeds.
    values: Vec<f64>,
    /// The number of seeds that a floor needs.
    fewest: usize,
}

impl Seeds {
    /// Collects the values of `seeds`, which are those of the boots that count. A value that is not finite is missing.
    pub fn new(
        figures: impl IntoIterator<Item = (u32, Option<f64>)>,
        seeds: impl IntoIterator<Item = u32>,
    ) -> Self {
        let mut known: BTreeMap<u32, Option<f64>> =
            seeds.into_iter().map(|seed| (seed, None)).collect();
        let finite = |it: Option<f64>| it.filter(|value| value.is_finite());
        known.extend(figures.into_iter().map(|(seed, value)| (seed, finite(value))));
        Self::of(known, 0)
    }

    fn of(figures: BTreeMap<u32, Option<f64>>, fewest: usize) -> Self {
        let values = figures.values().copied().flatten().collect();
        Self { figures, values, fewest }
    }

    /// The same seeds. With fewer than `fewest` of them there is no floor.
    pub fn needing(self, fewest: u32) -> Self {
        Self { fewest: fewest as usize, ..self }
    }

    /// The values less those that `part` has of the seeds. A seed without such a part lacks its value.
    pub fn less(&self, part: &BTreeMap<u32, f64>) -> Self {
        let left = |(seed, value): (&u32, &Option<f64>)| {
            (*seed, value.and_then(|it| Some(it - part.get(seed)?)))
        };
        Self::of(self.figures.iter().map(left).collect(), self.fewest)
    }

    /// The values, in the order of the seeds.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Whether all seeds that count have a value, and are as many as a floor needs.
    pub fn is_complete(&self) -> bool {
        self.values.len() == self.figures.len() && self.values.len() >= self.fewest
    }

    /// Only the seeds that all of `others` have too.
    pub fn shared<'a>(&self, others: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let is_shared = |seed: &u32| others.clone().all(|it| it.figures.contains_key(seed));
        let figures = self.figures.iter().filter(|(seed, _)| is_shared(seed));
        Self::of(figures.map(|(seed, value)| (*seed, *value)).collect(), self.fewest)
    }

    /// Both sides of a comparison, with the seeds that both have.
    pub fn paired(sides: [&Self; 2]) -> [Self; 2] {
        sides.map(|side| side.shared(sides.into_iter()))
    }

    /// The difference from `base`, of the seeds that both have; `None` if there are none with a value. Its floor is
    /// known only if each of these seeds has a value.
    pub fn against(&self, base: &Self) -> Option<Difference> {
        let sides = Self::paired([base, self]);
        let complete = sides.iter().all(Self::is_complete);
        let [base, own] = sides.each_ref().map(Self::values);
        let difference = Difference::of(base, own)?;
        Some(Difference { floor: difference.floor.filter(|_| complete), ..difference })
    }
}

/// The difference of a figure between two variants, each booted with several seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(into = "Figure")]
pub struct Difference {
    /// Mean over the baseline's seeds.
    pub base: f64,
    /// Mean over the other variant's seeds.
    pub new: f64,
    /// The luck floor: a change that does not exceed it may be luck. `None` if fewer than two seeds are complete on
    /// both sides, or the figure is missing in one of them.
    pub floor: Option<f64>,
}

/// A difference as JSON has it, with the figures that follow from it.
#[derive(Serialize)]
struct Figure {
    base: f64,
    new: f64,
    change: f64,
    floor: Option<f64>,
    beyond_luck: Option<bool>,
}

impl From<Difference> for Figure {
    fn from(it: Difference) -> Self {
        let Difference { base, new, floor } = it;
        Self { base, new, change: it.change(), floor, beyond_luck: it.beyond_luck() }
    }
}

impl Difference {
    /// The difference between figures, one per seed. Its floor is that of a single comparison. `None` if a side has
    /// no figure.
    pub fn of(base: &[f64], new: &[f64]) -> Option<Self> {
        let floor = estimate(base, new).map(|it| it.reach(1.0 - LEVEL));
        Some(Self { base: mean(base)?, new: mean(new)?, floor })
    }

    /// The difference of a total: its floor is at least [`RESOLUTION`].
    pub(crate) fn of_total(self) -> Self {
        let least = RESOLUTION * self.base.abs();
        Self { floor: self.floor.map(|floor| floor.max(least)), ..self }
    }

    /// The change: `new` minus `base`.
    pub fn change(&self) -> f64 {
        self.new - self.base
    }

    /// Whether the change exceeds its luck floor; `None` if that is unknown.
    pub fn beyond_luck(&self) -> Option<bool> {
        Some(self.change().abs() > self.floor?)
    }

    /// Whether luck hides the change `equal` of the same figure at equal entries: the change of this total does not
    /// exceed its floor, and is compatible with `equal`.
    pub(crate) fn hides(&self, equal: &Self) -> bool {
        let is_allowed = |floor: f64| (equal.change() - self.change()).abs() <= floor;
        self.beyond_luck() == Some(false) && self.floor.is_some_and(is_allowed)
    }

    /// By how much the change exceeds its luck floor; 0 where it does not, or the floor is unknown.
    pub fn excess(&self) -> f64 {
        self.floor.map_or(0.0, |floor| (self.change().abs() - floor).max(0.0))
    }
}

/// A difference in a list of many.
pub(crate) struct Entry<'a> {
    pub difference: &'a mut Difference,
    /// The values of the two sides, in the order of the seeds.
    pub values: [Vec<f64>; 2],
    /// The factor that gives all entries of the list one unit.
    pub scale: f64,
}

/// Gives each difference of a list its floor within the list. A difference without a floor is not compared, and gets
/// none. For `of_one_unit` see [`stats::floors`].
pub(crate) fn listed<'a>(list: impl IntoIterator<Item = Entry<'a>>, of_one_unit: bool) {
    let known = list.into_iter().filter(|entry| entry.difference.floor.is_some());
    let mut known: Vec<Entry<'_>> = known.collect();
    for entry in &mut known {
        entry.values.iter_mut().flatten().for_each(|value| *value *= entry.scale);
    }
    // Entries are relabelled together, so they must have the same numbers of seeds.
    let seeds = |entry: &Entry<'_>| entry.values.each_ref().map(Vec::len);
    known.sort_by_key(|entry| Reverse(seeds(entry)));
    for list in known.chunk_by_mut(|one, other| seeds(one) == seeds(other)) {
        let figures: Vec<[&[f64]; 2]> =
            list.iter().map(|entry| entry.values.each_ref().map(Vec::as_slice)).collect();
        let floors = stats::floors(&figures, RATE, of_one_unit);
        for (Entry { difference, scale, .. }, floor) in list.iter_mut().zip(floors) {
            let change = difference.change().abs();
            let least = floor.floor / *scale;
            // A figure of all seeds together may differ although the mean over seeds does not.
            let is_beyond = floor.distance > floor.floor && least < change;
            difference.floor = Some(if is_beyond { least } else { least.max(change) });
        }
    }
}

/// The change of the mean with its standard error; `None` for fewer than two values per side.
pub(crate) fn estimate(base: &[f64], new: &[f64]) -> Option<Estimate> {
    Estimate::of_difference(&ascending(base), &ascending(new))
}

/// The mean, computed as an offset from the least value, so that the mean of equal values is exactly that value. A
/// rounding error would be a difference beyond luck where the floor is 0.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    let values = ascending(values);
    let least = values.first()?;
    let beyond: f64 = values.iter().map(|value| value - least).sum();
    Some(least + beyond / values.len() as f64)
}

/// The values sorted, so that sums do not depend on the order of seeds.
pub(crate) fn ascending(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

/// For each estimate, the largest value that luck explains. Luck lifts any of the estimates above this value in at
/// most the share `level` of cases (Holm).
pub(crate) fn reaches(estimates: &[Estimate], level: f64) -> Vec<f64> {
    let p: Vec<f64> = estimates.iter().map(|it| it.p_apart(0.0)).collect();
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|one, other| p[*one].total_cmp(&p[*other]));
    let mut left = p.len();
    let mut reaches = vec![0.0; p.len()];
    for place in order {
        let own = level / left as f64;
        reaches[place] = estimates[place].reach(1.0 - own);
        // Holm: after the first that fails, all others fail.
        left -= usize::from(p[place] <= own && left > 1);
    }
    reaches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{deviations, seeds};

    /// SciPy: `ttest_ind(a, b, equal_var=False).confidence_interval(0.99)`, half its width.
    #[test]
    fn the_floor_is_that_of_welch() {
        let base = [100.0, 104.0, 101.0, 102.0, 99.0];
        let new = [110.0, 111.0, 112.0, 108.0, 111.0];
        let difference = Difference::of(&base, &new).unwrap();
        assert!((difference.change() - 9.2).abs() < 1e-12);
        assert!((difference.floor.unwrap() - 3.734_547_788_550_934).abs() < 1e-6);
        assert_eq!(difference.beyond_luck(), Some(true));
        assert!((difference.excess() - (9.2 - 3.734_547_788_550_934)).abs() < 1e-6);
        let same = Difference::of(&base, &[103.0, 104.0, 100.0, 102.0, 101.0]).unwrap();
        assert_eq!((same.beyond_luck(), same.excess()), (Some(false), 0.0));
    }

    #[test]
    fn one_seed_has_no_luck_floor() {
        let difference = Difference::of(&[1.0], &[2.0]).unwrap();
        assert_eq!((difference.floor, difference.beyond_luck()), (None, None));
        assert_eq!(Difference::of(&[1.0, 1.5], &[2.0]).unwrap().excess(), 0.0);
        assert_eq!(Difference::of(&[], &[2.0]), None);
    }

    #[test]
    fn verdicts_follow_direction_and_margin() {
        let verdict = |better, new, floor, margin| {
            Verdict::of(better, Some(&Difference { base: 100.0, new, floor }), margin).name()
        };
        assert_eq!(verdict(Better::Lower, 105.0, Some(4.0), 0.01), "regression");
        assert_eq!(verdict(Better::Lower, 95.0, Some(4.0), 0.01), "improvement");
        assert_eq!(verdict(Better::Higher, 105.0, Some(4.0), 0.01), "improvement");
        assert_eq!(verdict(Better::Higher, 95.0, Some(4.0), 0.01), "regression");
        assert_eq!(verdict(Better::Lower, 104.0, Some(4.0), 0.01), "undecided");
        assert_eq!(verdict(Better::Lower, 100.0, Some(4.0), 0.01), "same");
        assert_eq!(verdict(Better::Lower, 104.0, Some(4.0), 0.04), "same");
        assert_eq!(verdict(Better::Lower, 100.05, Some(0.1), 0.0), "same");
        assert_eq!(verdict(Better::Lower, 100.05, Some(0.2), 0.0), "undecided");
        assert_eq!(verdict(Better::Higher, 100.0, Some(0.0), 0.0), "same");
        assert_eq!(verdict(Better::Lower, 100.5, Some(0.1), 0.01), "same");
        assert_eq!(verdict(Better::Lower, 100.5, Some(0.1), 0.0), "regression");
        assert_eq!(verdict(Better::Lower, 105.0, None, 0.0), "undecided");
        assert_eq!(Verdict::of(Better::Lower, None, 0.0), Verdict::Undecided);
    }

    #[test]
    fn the_seeds_of_both_sides_have_a_floor_unless_a_figure_is_missing() {
        let base = seeds(&[1.0, 3.0, 2.0]);
        assert_eq!(base.values(), [1.0, 3.0, 2.0]);
        assert!(seeds(&[5.0, 9.0, 6.0]).against(&base).unwrap().floor.is_some());
        let no_number = Seeds::new([(0, Some(1.0)), (1, Some(f64::NAN)), (2, Some(2.0))], 0..3);
        let none = Seeds::new([(0, Some(1.0)), (2, Some(2.0))], 0..3);
        for incomplete in [no_number, none] {
            assert_eq!(incomplete.values().len(), 2);
            assert_eq!(base.against(&incomplete).unwrap().floor, None);
            assert_eq!(incomplete.against(&base).unwrap().floor, None);
        }
        assert_eq!(seeds(&[1.0]).against(&seeds(&[2.0])).unwrap().floor, None);
        let few = base.clone().needing(4);
        assert_eq!(few.against(&base).unwrap().floor, None);
    }

    /// A boot that failed takes its seed out of both sides. The floor is that of the other seeds.
    #[test]
    fn a_missing_seed_counts_on_neither_side() {
        let base = seeds(&[100.0, 140.0, 101.0, 99.0]);
        let new = Seeds::new([(0, Some(110.0)), (2, Some(112.0)), (3, Some(109.0))], [0, 2, 3]);
        let three = Difference::of(&[100.0, 101.0, 99.0], &[110.0, 112.0, 109.0]);
        assert!(three.unwrap().beyond_luck().unwrap());
        assert_eq!(new.against(&base), three);
        assert_eq!(base.against(&new).unwrap().change(), -three.unwrap().change());
        let apart = Seeds::new([(7, Some(1.0))], [7]);
        assert_eq!(apart.against(&base), None);
    }

    #[test]
    fn a_list_finds_consistent_differences_and_no_others() {
        let mut deviations = deviations();
        let mut draw =
            || -> [Vec<f64>; 2] { [0, 1].map(|_| deviations.by_ref().take(5).collect()) };
        let mut values: Vec<[Vec<f64>; 2]> = (0..100).map(|_| draw()).collect();
        values.push([vec![709.0; 5], vec![710.0; 5]]);
        let mut list: Vec<Difference> =
            values.iter().map(|[base, new]| Difference::of(base, new).unwrap()).collect();
        list.push(Difference { base: 1.0, new: 2.0, floor: None });
        values.push([vec![1.0], vec![2.0]]);
        let entries = list.iter_mut().zip(values);
        listed(entries.map(|(difference, values)| Entry { difference, values, scale: 1.0 }), false);
        let beyond: Vec<_> = list.iter().map(Difference::beyond_luck).collect();
        assert_eq!((beyond[100], beyond[101]), (Some(true), None));
        assert!(beyond[..100].iter().all(|it| *it == Some(false)));
    }

    /// How often luck alone exceeds the floor of a single difference, at most as often as stated, and
    /// how much smaller the floor is with more seeds.
    #[test]
    fn luck_exceeds_floors_as_rarely_as_stated_and_more_seeds_lower_them() {
        const TRIALS: usize = 20_000;
        let mut deviations = deviations();
        let mut before = f64::INFINITY;
        for number in [3, 5, 10, 20] {
            let mut floors = 0.0;
            let mut exceeds = |_: &usize| {
                let mut draw = || (0..number).filter_map(|_| deviations.next()).collect::<Vec<_>>();
                let difference = Difference::of(&draw(), &draw()).unwrap();
                floors += difference.floor.unwrap();
                difference.beyond_luck().unwrap()
            };
            let share = (0..TRIALS).filter(&mut exceeds).count() as f64 / TRIALS as f64;
            let error = (LEVEL * (1.0 - LEVEL) / TRIALS as f64).sqrt();
            assert!(share < LEVEL + 4.0 * error, "{share} of {number} seeds");
            assert!(floors < 0.8 * before, "{number} seeds");
            before = floors;
        }
    }
}
