//! Boots that go on until verdicts are in: `boots = "auto"`. The looks, and the error rate of each, are
//! fixed before (`stats::sequential`).

use model::{Experiment, Share, WorkloadUse};
use stats::sequential::last_look;

/// The default for the most boots of each variant: that of the 7th look.
pub const AT_MOST: u32 = 32;
/// The first look is at so many boots of each variant.
pub const FEWEST: u32 = 4;
/// The remedy for fewer.
pub const TOO_FEW: &str = "the first look is at 4 boots of each variant: ask for 4 or more";
/// The default margin.
pub const MARGIN: Share = Share(0.01);
/// The remedy for an invalid margin.
pub const NO_MARGIN: &str = "above 0% and below 100%, such as 1%: a smaller difference is none";

/// The boots of each variant at the last look if there may be `at_most`; further boots would not be looked
/// at.
pub fn last(at_most: u32) -> u32 {
    last_look(at_most).map_or(0, |look| look.units)
}

/// Whether a share is a valid margin.
pub fn is_margin(Share(margin): Share) -> bool {
    margin > 0.0 && margin < 1.0
}

/// Why the boots of an experiment would never end early, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// What is wrong.
    pub problem: String,
    /// The remedy.
    pub remedy: String,
}

/// Why no verdict will ever end the boots of an experiment early; `None` if one may, or boots are not to end
/// early.
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
        // An experiment's chosen rows can be judged.
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
