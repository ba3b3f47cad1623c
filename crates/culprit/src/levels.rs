//! The levels of commits in exact mode, and whether two of them differ beyond luck.

use std::collections::BTreeMap;

use stats::{Estimate, Summary, pooled_variance};

use crate::Node;

/// The probability that luck alone makes two equal levels look different, or a level look like another one.
const LEVEL: f64 = 0.001;
/// The most seeds of one commit. Each boots a machine.
const MOST_SEEDS: usize = 12;

/// Why the search cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// This many seeds of this commit must be read.
    Read(Node, usize),
    /// Luck hides whether these levels differ, even with [`MOST_SEEDS`] seeds each.
    Hidden(Node, Node),
}

/// Figures of commits, one for each seed.
#[derive(Clone, Copy, Debug)]
pub struct ExactLevels<'a> {
    /// The figures of each commit.
    pub readings: &'a BTreeMap<Node, Vec<f64>>,
    /// Smaller differences count as none, even if they are beyond luck.
    pub least: f64,
    /// The number of seeds that each end needs. Their spread holds for all commits.
    pub ends: usize,
}

impl ExactLevels<'_> {
    /// The mean over the seeds of a commit.
    pub fn level(&self, node: Node) -> Result<f64, Stop> {
        level(self.values(node)?).ok_or(Stop::Read(node, 1))
    }

    /// By how much `after` lies above `before`.
    pub fn change(&self, before: Node, after: Node) -> Result<f64, Stop> {
        Ok(self.level(after)? - self.level(before)?)
    }

    /// The largest difference of two levels that luck is likely to cause, by Student's t. The spread is that of all
    /// commits' seeds together.
    pub fn floor(&self, one: Node, other: Node) -> Result<f64, Stop> {
        let number = |node| Ok::<f64, Stop>(self.values(node)?.len() as f64);
        let all: Vec<Vec<f64>> = self.readings.values().cloned().collect();
        let Some((variance, df)) = pooled_variance(&all) else { return Ok(f64::INFINITY) };
        let se = (variance * (number(one)?.recip() + number(other)?.recip())).sqrt();
        Ok(Estimate { value: 0.0, se, df }.reach(1.0 - LEVEL).max(self.least))
    }

    /// Whether two levels differ beyond luck.
    pub fn differ(&self, one: Node, other: Node) -> Result<bool, Stop> {
        Ok(self.change(one, other)?.abs() > self.floor(one, other)?)
    }

    /// The next seeds that can tell two levels apart, or [`Stop::Hidden`] if there are no more.
    pub fn more(&self, one: Node, other: Node) -> Stop {
        let seeds = |node| self.readings.get(&node).map_or(0, Vec::len);
        let fewer = if seeds(one) <= seeds(other) { one } else { other };
        match seeds(fewer) {
            MOST_SEEDS.. => Stop::Hidden(one, other),
            number => Stop::Read(fewer, (2 * number).clamp(self.ends, MOST_SEEDS)),
        }
    }

    fn values(&self, node: Node) -> Result<&[f64], Stop> {
        self.readings.get(&node).map(Vec::as_slice).ok_or(Stop::Read(node, 1))
    }
}

/// The mean of figures; `None` without figures. The mean of equal figures is exactly their value.
pub fn level(figures: &[f64]) -> Option<f64> {
    Summary::of(figures).map(|summary| summary.amean)
}

/// Half the width of the interval of a level that rests on `number` boots, from the spread of all kernels' boots. The
/// interval is one of 99.9 % in exact mode and of 95 % in measured mode. `None` if no kernel has two boots.
pub fn reach(number: usize, all: &[Vec<f64>], is_exact: bool) -> Option<f64> {
    let (variance, df) = pooled_variance(all)?;
    let se = (variance / number as f64).sqrt();
    let share = if is_exact { 1.0 - LEVEL } else { 0.95 };
    Some(Estimate { value: 0.0, se, df }.reach(share)).filter(|reach| reach.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Student's t for 2 degrees of freedom: 4.303 for 95 %, 31.599 for 99.9 %.
    #[test]
    fn intervals_are_those_of_student() {
        let all = [vec![1.0, 3.0], vec![5.0], vec![], vec![7.0, 9.0]];
        let of = |number, exact| (1000.0 * reach(number, &all, exact).unwrap()).round();
        assert_eq!([of(2, false), of(2, true), of(8, false)], [4303.0, 31599.0, 2151.0]);
        assert_eq!(reach(1, &[vec![1.0]], true), None);
    }

    /// `(0.1 + 0.1 + 0.1) / 3` is not 0.1.
    #[test]
    fn equal_figures_have_one_level_whatever_their_number() {
        let readings = BTreeMap::from([(0, vec![0.1; 3]), (1, vec![0.1])]);
        let levels = ExactLevels { readings: &readings, least: 0.0, ends: 3 };
        assert_eq!((levels.differ(0, 1), levels.floor(0, 1)), (Ok(false), Ok(0.0)));
    }
}
