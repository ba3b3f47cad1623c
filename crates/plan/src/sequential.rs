//! Rules for `boots = "auto"`, with which boots go on until verdicts are decided. The looks and their error
//! rates are fixed in advance (`stats::sequential`).

use model::{Experiment, Reading, Share, WorkloadUse};
use stats::sequential::last_look;

/// The default for the largest number of boots of each variant: that of the 7th look.
pub const AT_MOST: u32 = 32;
/// The number of boots of each variant at the first look.
pub const FEWEST: u32 = 4;
/// The hint for fewer boots.
pub const TOO_FEW: &str = "the first look is at 4 boots of each variant: use 4 or more";
/// The default margin: differences up to 1 % count as none.
pub const MARGIN: Share = Share(0.01);
/// The hint for an invalid margin.
pub const NO_MARGIN: &str = "use a share above 0% and below 100%, such as 1%";

/// The boots of each variant at the last look if there may be `at_most`. Further boots would not be judged.
pub fn last(at_most: u32) -> u32 {
    last_look(at_most).map_or(0, |look| look.units)
}

/// Whether a share is a valid margin.
pub fn is_margin(Share(margin): Share) -> bool {
    margin > 0.0 && margin < 1.0
}

/// Why no look can end a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// What prevents a look from ending the run.
    pub problem: String,
    /// What to change in the experiment.
    pub remedy: String,
}

/// Why no look can end the run of an experiment; `None` if one can, or if its boots are a fixed number.
pub fn unfit(experiment: &Experiment, reading: &Reading) -> Option<Unfit> {
    experiment.sequential?;
    let unfit = |problem: &str, remedy: &str| {
        Some(Unfit { problem: problem.to_owned(), remedy: remedy.to_owned() })
    };
    // Of a sweep, those at one point.
    if experiment.variants.len() / experiment.points().len().max(1) < 2 {
        let remedy = "add a [[variant]], or set a number of boots";
        return unfit("boots = \"auto\" needs two variants", remedy);
    }
    let is_judged = |used: &WorkloadUse| {
        let (manifest, own) = (&used.manifest, reading.workload(used));
        let mut metrics = manifest.metrics.iter();
        // The experiment's primary rows can be judged.
        !own.primary.is_empty()
            || metrics.any(|metric| own.is_primary(manifest, metric, &metric.name))
    };
    if !experiment.workloads.iter().any(is_judged) {
        let remedy = "a verdict needs a metric with a good direction: set a number of boots, or give a \
                      metric of the manifest `better = \"lower\"` or \"higher\"";
        return unfit("boots = \"auto\" needs a metric that can be judged", remedy);
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
