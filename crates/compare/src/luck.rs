//! Zero noise is not zero luck: what a figure of exact mode owes to start-up timing and placement.
//! The spread of one variant over its seeds is the floor; a difference inside it is none.

/// The difference of a figure between two variants, each booted with several seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Mean over the baseline's seeds.
    pub base: f64,
    /// Mean over the other variant's seeds.
    pub new: f64,
    /// The luck floor: the wider of the two ranges over seeds. None if no variant has two seeds,
    /// so that nothing is known of luck.
    pub floor: Option<f64>,
}

impl Difference {
    /// The difference between figures, one a seed. None if a side has none.
    pub fn of(base: &[f64], new: &[f64]) -> Option<Self> {
        let floor = match (range(base), range(new)) {
            (Some(base), Some(new)) => Some(base.max(new)),
            (one, other) => one.or(other),
        };
        Some(Self { base: mean(base)?, new: mean(new)?, floor })
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

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
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
        assert_eq!(Difference::of(&[], &[2.0]), None);
    }
}
