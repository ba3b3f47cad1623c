//! Rates over simulated experiments.

use compare::{Judging, Verdict};
use model::Better;
use rayon::prelude::*;
use stats::{Design, power, welch};

use crate::world::{Chance, Shape, Side, World, figures};

/// Experiments of each kind: the standard error of a share of 5 % is then 0.2 %.
const TRIALS: u64 = 10_000;
/// Experiments per batch.
const BATCH: u64 = 250;

/// Rates in percent of the experiments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    /// Experiments in which a difference is significant as a single comparison.
    pub alarms: f64,
    /// Experiments in which the interval holds the true ratio.
    pub covered: f64,
    /// Experiments with these verdicts.
    pub regression: f64,
    pub same: f64,
    /// Experiments in which a difference is significant if all runs of a side are pooled.
    pub pooled: f64,
}

/// Simulates `world`.
pub fn rates(world: &World) -> Rates {
    let batches = (0..TRIALS / BATCH).into_par_iter();
    let sum = batches
        .map(|batch| simulate(world, batch))
        .reduce(|| [0; 5], |a, b| std::array::from_fn(|number| a[number] + b[number]));
    let [alarms, covered, regression, same, pooled] =
        sum.map(|count| 100.0 * count as f64 / TRIALS as f64);
    Rates { alarms, covered, regression, same, pooled }
}

fn simulate(world: &World, batch: u64) -> [u64; 5] {
    let judging = Judging::default();
    let mut chance = Chance::new(world.seed(batch));
    let mut counts = [0; 5];
    for _ in 0..BATCH {
        let [base, new] = world.experiment(&mut chance);
        let Ok(evidence) = figures(&base).against(&figures(&new), &judging) else { continue };
        let verdict = evidence.verdict(Better::Lower, &judging);
        let found = [
            evidence.p_alone < judging.alpha(),
            evidence.low <= world.ratio && world.ratio <= evidence.high,
            verdict == Verdict::Regression,
            verdict == Verdict::Same,
            pooled(&base, &new).is_some_and(|p| p < judging.alpha()),
        ];
        for (count, found) in counts.iter_mut().zip(found) {
            *count += u64::from(found);
        }
    }
    counts
}

/// The p-value of Welch's test of all runs, ignoring boots.
fn pooled(base: &Side, new: &Side) -> Option<f64> {
    let all = |side: &Side| side.iter().flat_map(|(_, runs)| runs).copied().collect::<Vec<f64>>();
    Some(welch(&all(base), &all(new))?.p)
}

/// The predicted power in percent for a change in blocks, with normal boots.
pub fn predicted(world: &World) -> Option<f64> {
    let normal = world.shape == Shape::Normal && world.blocks && world.ratio != 1.0;
    // The standard deviation is a share of the mean, which is 100.
    let sd = (2.0 * (world.boot.powi(2) + 1.0 / world.runs as f64)).sqrt() / 100.0;
    let power = || power(Design::Paired, world.boots[0] as usize, sd, world.ratio.ln(), 0.05);
    normal.then(power).flatten().map(|power| 100.0 * power)
}
