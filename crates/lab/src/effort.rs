//! Counts the boots that only read the symbols of a kernel, and estimates how long boots take.

use std::collections::BTreeSet;
use std::time::Duration;

use boot::symbols;
use kernels::Cache;
use model::{Experiment, Mode};
use store::Archive;

use crate::known::usual_wall;
use crate::obtain::Obtained;
use crate::{RunError, RunOptions};

/// Returns the number of boots that read the symbols of an experiment's kernels before its own boots. A kernel that the
/// cache lacks is counted. Measured mode needs no symbols. Fails when the cache cannot be read.
pub fn symbol_boots(experiment: &Experiment, cache: &Cache) -> Result<usize, RunError> {
    let mut unread = BTreeSet::new();
    for variant in experiment.variants.iter().filter(|_| experiment.mode == Mode::Exact) {
        let name = variant.kernel.name.clone();
        let digest = cache.get(&name)?.map(|kernel| kernel.digest);
        if !digest.as_ref().is_some_and(|digest| symbols::are_cached(cache, digest)) {
            unread.insert(digest.unwrap_or(name));
        }
    }
    Ok(unread.len())
}

/// Like [`symbol_boots`], of kernels that were obtained.
pub(crate) fn symbol_boots_of(mode: Mode, kernels: &[Obtained], cache: &Cache) -> usize {
    let built = kernels.iter().filter(|it| mode == Mode::Exact && it.unbuilt.is_none());
    let digests: BTreeSet<&str> = built.map(|it| &*it.kernel.digest).collect();
    digests.into_iter().filter(|digest| !symbols::are_cached(cache, digest)).count()
}

/// Estimates the time of `boots` boots of an experiment and of `symbols` boots that read symbols before them, by similar
/// boots in the store. A boot that reads symbols is counted as a whole one, which is too much. `None` if the store has no
/// similar boot. Fails when the store cannot be read.
pub fn time(
    experiment: &Experiment,
    (boots, symbols): (usize, usize),
    options: RunOptions,
    store: &dyn Archive,
) -> Result<Option<Duration>, store::Error> {
    let each = if options.verify { 2 } else { 1 };
    let rounds = (each * boots).div_ceil(options.side_by_side(experiment));
    // Symbols are read one kernel after the other.
    let all = u32::try_from(rounds + symbols).unwrap_or(u32::MAX);
    Ok(usual_wall(experiment, store)?.map(|wall| wall.saturating_mul(all)))
}
