//! Boots that go on until verdicts are in: `boots = "auto"`. When they are looked at, and how often
//! a look may err, is fixed before (`stats::sequential`).

use model::{Experiment, Share, WorkloadUse};
use stats::sequential::last_look;

/// The most boots of each variant where none are given: the 7th look is at so many.
pub const AT_MOST: u32 = 32;
/// The first look is at so many boots of each variant.
pub const FEWEST: u32 = 4;
/// What to do about fewer.
pub const TOO_FEW: &str = "the first look is at 4 boots of each variant: ask for 4 or more";
/// Differences up to this share are none, where nothing else is said.
pub const MARGIN: Share = Share(0.01);
/// What to do about a margin that is none.
pub const NO_MARGIN: &str = "above 0% and below 100%, such as 1%: a smaller difference is none";

/// The boots of each variant at which the last look is that there may be with so many: more of them
/// would not be looked at.
pub fn last(at_most: u32) -> u32 {
    last_look(at_most).map_or(0, |look| look.units)
}

/// Whether it is a margin.
pub fn is_margin(Share(margin): Share) -> bool {
    margin > 0.0 && margin < 1.0
}

/// Why boots of an experiment would never end before there are as many as there may be, and what to
/// do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub remedy: String,
}

/// Why there will never be a verdict that ends the boots of an experiment; none if there may be one,
/// or boots are not to end early.
pub fn unfit(experiment: &Experiment) -> Option<Unfit> {
    experiment.sequential?;
    let unfit = |problem: &str, remedy: &str| {
        Some(Unfit { problem: problem.to_owned(), remedy: remedy.to_owned() })
    };
    if experiment.variants.len() < 2 {
        let remedy = "a verdict is on a difference: add a [[variant]], or say how many boots";
        return unfit("boots = \"auto\" with one variant", remedy);
    }
    let is_judged = |used: &WorkloadUse| {
        let mut metrics = used.manifest.metrics.iter();
        // What an experiment chooses can be judged.
        !used.primary.is_empty() || metrics.any(|metric| used.is_primary(metric, &metric.name))
    };
    if !experiment.workloads.iter().any(is_judged) {
        let remedy = "a verdict rests on a metric with a good direction: say how many boots, or give a \
                      metric of the manifest `better = \"lower\"` or \"higher\"";
        return unfit("boots = \"auto\" without a metric that can be judged", remedy);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_looks() {
        let looks: Vec<u32> = stats::sequential::looks().map(|look| look.units).take(7).collect();
        assert_eq!((looks[0], looks[6]), (FEWEST, AT_MOST));
        assert_eq!([4, 9, 32, 44].map(last), [4, 8, 32, 32]);
    }
}
