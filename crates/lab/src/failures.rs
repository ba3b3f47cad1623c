//! Gives up variants in exact mode. There, two boots of a variant differ only by their seed, which
//! changes little. If one fails, most others would fail in the same way.

use model::{Experiment, Mode, Outcome, count};
use plan::schedule::Slot;
use store::{Archive, Detail, ExperimentId};

use crate::RunOptions;
use crate::watch::{Progress, Watch};

/// A variant whose further boots were left out, because one boot had failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenUp {
    /// The name of the variant.
    pub variant: String,
    /// The seed of the failed boot.
    pub seed: u32,
    /// The outcome of the failed boot.
    pub outcome: Outcome,
    /// The number of boots that were left out.
    pub boots: usize,
}

impl GivenUp {
    /// Reports the boots that are left out.
    pub fn announce(&self, watch: &mut Watch<'_>) {
        let boots = count(self.boots, "further boot");
        let text = format!("{}: {boots} left out, because seed {} failed", self.variant, self.seed);
        watch(Progress::Message(&text));
    }
}

/// A failed boot because of which its variant is given up.
pub struct Failed {
    /// Index of its variant.
    pub variant: usize,
    given_up: GivenUp,
}

impl Failed {
    /// Returns the failure of a boot with this outcome, if other seeds of its variant would mostly
    /// fail in the same way: in exact mode, and if the whole job failed. `None` if the host caused
    /// the outcome, or if only some workloads failed, because the others have results for each
    /// seed.
    pub fn of(experiment: &Experiment, slot: Slot, outcome: &Outcome) -> Option<Self> {
        let is_repeated = match outcome {
            Outcome::Failed(_) | Outcome::Panicked(_) | Outcome::TimedOut(_) | Outcome::Died(_) => {
                experiment.mode == Mode::Exact
            }
            Outcome::Complete
            | Outcome::Partial(_)
            | Outcome::Invalid(_)
            | Outcome::Interrupted => false,
        };
        let variant = experiment.variants[slot.variant].name.clone();
        let given_up =
            GivenUp { variant, seed: slot.boot_index, outcome: outcome.clone(), boots: 0 };
        is_repeated.then_some(Self { variant: slot.variant, given_up })
    }

    /// Returns the variant as given up, with the number of boots that are left out; `None` if there
    /// are none.
    pub fn without(self, boots: usize) -> Option<GivenUp> {
        (boots > 0).then_some(GivenUp { boots, ..self.given_up })
    }
}

/// Finds the variants that a run gives up before it boots anything, and the first failed boot of
/// each. These are boots of earlier runs. Empty in measured mode, or if the options ask for more
/// boots of such variants. Fails when the store cannot be read.
pub fn before(
    experiment: &Experiment,
    options: RunOptions,
    (store, id): (&dyn Archive, ExperimentId),
) -> Result<Vec<Failed>, store::Error> {
    if experiment.mode.is_measured() || options.keep_going || options.retry_failed {
        return Ok(Vec::new());
    }
    let mut kept = store.boots(id, Detail::Summary)?;
    kept.retain(|kept| !kept.superseded);
    kept.sort_by_key(|kept| kept.boot.boot_index);
    let first = experiment.variants.iter().enumerate().filter_map(|(variant, it)| {
        kept.iter().filter(|kept| kept.boot.variant == it.name).find_map(|kept| {
            let (boot_index, block) = (kept.boot.boot_index, kept.boot.block);
            Failed::of(experiment, Slot { variant, boot_index, block }, &kept.boot.outcome)
        })
    });
    Ok(first.collect())
}

#[cfg(test)]
mod tests {
    use model::{Boot, Reading, Variant};

    use super::*;

    fn experiment(mode: Mode) -> Experiment {
        let variants = ["a", "b"].map(|name| Variant { name: name.into(), ..Variant::default() });
        Experiment { name: "x".into(), mode, variants: variants.into(), ..Experiment::default() }
    }

    #[test]
    fn only_a_failure_of_the_guest_in_exact_mode_gives_a_variant_up() {
        let slot = Slot { variant: 1, boot_index: 3, block: 3 };
        let text = || "why".to_owned();
        let cases = [
            (Outcome::Failed(text()), true),
            (Outcome::Panicked(text()), true),
            (Outcome::TimedOut(text()), true),
            (Outcome::Died(text()), true),
            (Outcome::Complete, false),
            (Outcome::Partial(text()), false),
            (Outcome::Invalid(text()), false),
            (Outcome::Interrupted, false),
        ];
        for (outcome, is_given_up) in cases {
            let failed = Failed::of(&experiment(Mode::Exact), slot, &outcome);
            assert_eq!(failed.is_some(), is_given_up, "{outcome}");
            let expected = GivenUp { variant: "b".into(), seed: 3, outcome, boots: 2 };
            let given_up = failed.and_then(|it| it.without(2));
            assert_eq!(given_up, is_given_up.then_some(expected.clone()));
            let measured = Failed::of(&experiment(Mode::Measured), slot, &expected.outcome);
            assert!(measured.is_none());
        }
    }

    #[test]
    fn failures_of_earlier_runs_count_unless_boots_are_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = store::open(&directory.path().join("x.db")).unwrap();
        let experiment = experiment(Mode::Exact);
        let id = store.keep_experiment(&experiment, Reading::USUAL).unwrap();
        let failed = |why: &str| Outcome::Failed(why.to_owned());
        let boots =
            [("b", 2, failed("late")), ("b", 1, failed("early")), ("a", 0, Outcome::Complete)];
        for (variant, boot_index, outcome) in boots {
            let boot = Boot { variant: variant.into(), boot_index, outcome, ..Boot::default() };
            store.keep_boot(id, &boot).unwrap();
        }
        let before = |options| {
            let failed = before(&experiment, options, (&*store, id)).unwrap().into_iter();
            failed.filter_map(|it| it.without(1)).collect::<Vec<_>>()
        };
        let expected = GivenUp { variant: "b".into(), seed: 1, outcome: failed("early"), boots: 1 };
        assert_eq!(before(RunOptions::default()), [expected]);
        assert!(before(RunOptions { keep_going: true, ..RunOptions::default() }).is_empty());
        assert!(before(RunOptions { retry_failed: true, ..RunOptions::default() }).is_empty());
    }
}
