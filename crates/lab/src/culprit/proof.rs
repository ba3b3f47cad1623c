//! Measures a culprit and its parent afresh, and reverts the culprit on the bad end.

use compare::{Difference, Signal};
use culprit::{Change, Proof};
use model::{Kept, Mode, Pinned, Variant};

use crate::boot::code::code_difference;
use crate::culprit::trial::{Trials, booted};
use crate::run::RunError;
use crate::run::watch::{Progress, Watch};

/// Boots of each kernel at least, so that the spread is known.
const FEWEST: u32 = 3;

/// Proves that a commit of the range is a culprit.
pub fn prove(
    trials: &mut Trials<'_>,
    place: usize,
    signal: &Signal,
    watch: &mut Watch<'_>,
) -> Result<Option<Proof>, RunError> {
    let history = trials.history;
    let (culprit, bad) = (&history.commits[place], history.commits.len() - 1);
    let Some(parent) = culprit.parents.first() else { return Ok(None) };
    watch(Progress::Remark(&format!("Measuring {} and its parent afresh", &culprit.id[..12])));
    let named = |name: &str, commit: &str| Variant { name: name.into(), ..trials.variant(commit) };
    let mut reverted = named("reverted", &history.commits[bad].id);
    if let Some(build) = &mut reverted.build {
        build.revert = vec![culprit.id.clone()];
    }
    let is_merge = culprit.parents.len() > 1;
    let mut variants = vec![named("parent", parent), named("culprit", &culprit.id)];
    if place != bad {
        variants.push(named("bad", &history.commits[bad].id));
    }
    let mut why = is_merge.then(|| "a merge is not one change that can be reverted".to_owned());
    if why.is_none() && place != bad {
        match trials.lab.built(&trials.search.experiment, &reverted, watch)? {
            Ok(kernel) => {
                variants.push(Variant {
                    kernel: Pinned::from(&*kernel.name),
                    build: None,
                    ..reverted
                });
            }
            Err(unbuilt) => why = Some(unbuilt.problem().to_owned()),
        }
    }
    let mut experiment = trials.search.experiment.clone();
    experiment.name = format!("{}-{}-proof", experiment.name, &culprit.id[..12]);
    experiment.boots = experiment.boots.max(FEWEST);
    experiment.variants = variants;
    let (id, experiment, kept) = booted(trials.lab, &experiment, watch)?;
    let figures = |name: &str| -> Vec<f64> {
        let own = kept.iter().filter(|kept: &&Kept| kept.boot.variant == name);
        own.filter(|kept| kept.boot.outcome.counts())
            .filter_map(|kept| signal.of_boot(&experiment, kept))
            .collect()
    };
    let change = |one: &str, other: &str| {
        let difference = Difference::of(&figures(one), &figures(other))?;
        let Difference { base, new, floor } = difference;
        let least = match experiment.mode {
            Mode::Exact => signal.least(base),
            Mode::Measured => 0.0,
        };
        Some(Change { levels: [base, new], floor: floor.map(|floor| floor.max(least)) })
    };
    let step = change("parent", "culprit");
    let reverted = match why {
        Some(why) => Err(why),
        // Without the last commit the bad end is its parent.
        None if place == bad => change("culprit", "parent").ok_or_else(no_boot),
        None => change("bad", "reverted").ok_or_else(no_boot),
    };
    let kernels = [0, 1].map(|place| &experiment.variants[place].kernel);
    let functions = code_difference(&trials.lab.cache, kernels);
    let functions = functions.map(|it| it.functions.into_iter().map(|it| it.name).collect());
    Ok(Some(Proof { experiment: id.0, parent: parent.clone(), step, reverted, functions }))
}

fn no_boot() -> String {
    "no boot of it is complete".into()
}
