//! Estimates how long boots take.

use std::time::Duration;

use model::Experiment;
use store::Archive;

use crate::RunOptions;
use crate::known::usual_wall;

/// Estimates the time of `boots` boots of an experiment by similar boots in the store. `None` if the store has no similar
/// boot. Fails when the store cannot be read.
pub fn time(
    experiment: &Experiment,
    boots: usize,
    options: RunOptions,
    store: &dyn Archive,
) -> Result<Option<Duration>, store::Error> {
    let each = if options.verify { 2 } else { 1 };
    let rounds = (each * boots).div_ceil(options.side_by_side(experiment));
    let all = u32::try_from(rounds).unwrap_or(u32::MAX);
    Ok(usual_wall(experiment, store)?.map(|wall| wall.saturating_mul(all)))
}
