//! Figures of both sides, one per seed.

use model::Boot;

use crate::verdicts::luck::{Entry, listed};
use crate::{Difference, FEWEST_FOR_LISTS};

/// One value for each seed of both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Sides<T> {
    /// The seeds of the baseline, then those of the other variant.
    pub seeds: [Vec<T>; 2],
    /// Whether both sides have the same seeds. If not, luck is unknown.
    pub complete: bool,
}

impl<'a> Sides<&'a Boot> {
    /// The boots of both sides, in the order of their seeds.
    pub fn of(seeds: [Vec<&'a Boot>; 2]) -> Self {
        let [first, second] = seeds.each_ref().map(|boots| boots.iter().map(|it| it.boot_index));
        let complete = !seeds[0].is_empty() && first.eq(second);
        Self { seeds, complete }
    }
}

impl<T> Sides<T> {
    /// Computes a figure of each seed.
    pub fn map<'a, U>(&'a self, figure: impl Fn(&'a T) -> U) -> Sides<U> {
        let seeds = self.seeds.each_ref().map(|seeds| seeds.iter().map(&figure).collect());
        Sides { seeds, complete: self.complete }
    }

    /// The values of all seeds, the baseline's first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.seeds.iter().flatten()
    }

    /// The least common multiple of the numbers of seeds; 1 if a side has no seed.
    pub fn denominator(&self) -> i128 {
        let [base, new] = self.seeds.each_ref().map(Vec::len);
        let (mut divisor, mut rest) = (base, new);
        while rest > 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        (base * new / divisor.max(1)).max(1) as i128
    }
}

impl Sides<i128> {
    /// The numerator of the change of the mean, over [`Sides::denominator`]; 0 if a side has no seed.
    pub fn change(&self) -> i128 {
        let unit = self.denominator();
        let [base, new] = self.seeds.each_ref().map(|seeds| {
            let share = unit / (seeds.len() as i128).max(1);
            seeds.iter().sum::<i128>() * share
        });
        new - base
    }

    /// The difference with its luck floor; `None` if a side has no seed.
    pub fn difference(&self) -> Option<Difference> {
        self.map(|&count| Some(count as f64)).difference()
    }

    /// The sum of each side's seeds.
    pub fn sums(&self) -> [f64; 2] {
        self.seeds.each_ref().map(|seeds| seeds.iter().sum::<i128>() as f64)
    }
}

impl Sides<Option<f64>> {
    /// The difference between the existing figures; `None` if a side has none. It has a luck floor only if
    /// every seed has a figure.
    pub fn difference(&self) -> Option<Difference> {
        let [base, new] = self.known();
        let difference = Difference::of(&base, &new)?;
        let all = self.complete && self.iter().all(Option::is_some);
        Some(Difference { floor: difference.floor.filter(|_| all), ..difference })
    }
    /// The existing figures, in the order of the seeds.
    pub fn known(&self) -> [Vec<f64>; 2] {
        self.seeds.each_ref().map(|seeds| seeds.iter().copied().flatten().collect())
    }
}

/// Gives each row of a list the floor of its `difference` within the list, from its figures. With fewer than
/// [`FEWEST_FOR_LISTS`] seeds no change in a list can be told from luck, so rows have no floor. For `of_one_unit` see
/// [`listed`].
pub fn judged<T>(
    mut list: Vec<(T, Sides<i128>)>,
    of_one_unit: bool,
    difference: fn(&mut T) -> &mut Difference,
) -> Vec<T> {
    let entries = list.iter_mut().map(|(row, figures)| Entry {
        difference: difference(row),
        values: figures.seeds.each_ref().map(|side| side.iter().map(|it| *it as f64).collect()),
        scale: 1.0,
    });
    listed(entries, of_one_unit);
    let is_short = |side: &Vec<i128>| side.len() < FEWEST_FOR_LISTS as usize;
    let rows = list.into_iter().map(|(mut row, figures)| {
        if figures.seeds.iter().any(is_short) {
            difference(&mut row).floor = None;
        }
        row
    });
    rows.collect()
}
