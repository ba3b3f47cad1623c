//! Compares the sampled profiles of two stored variants. Text, page and JSON are made from the
//! result ([`SampledProfiles`]).

use compare::{
    Judging, Paths, Results, SampledDifference, VariantBoots, check_cost, paths, sampled,
    steady_profiles,
};
use model::{Experiment, Kept, Reading, SAMPLES, WorkloadUse};
use store::Archive;

use crate::error::AnalysisError;
use crate::explanation::{Compared, ExplanationQuestion, find, profiles_of, sides};

/// The compared sampled profiles of two variants.
pub struct SampledProfiles {
    /// The difference between both variants' sampled profiles.
    pub difference: SampledDifference,
    used: WorkloadUse,
    experiment: Experiment,
    places: [usize; 2],
    kept: Vec<Kept>,
}

impl SampledProfiles {
    /// Compares the sampled profiles of two variants. Warm-up is left out. Fails when a name in the
    /// question does not exist, a variant has no samples, or the store cannot be read.
    pub fn of(store: &dyn Archive, asked: ExplanationQuestion) -> Result<Self, AnalysisError> {
        let (id, phase, cost) = (asked.experiment, asked.phase.clone(), asked.cost.clone());
        let Compared { experiment, mut kept, places, used } = find(store, asked)?;
        check_cost(cost.as_deref().unwrap_or(SAMPLES), profiles_of(&used, &kept))?;
        let judging = Judging::of(&Results::of(&experiment, Reading::USUAL, &kept));
        let (steady, part) = steady_profiles(&sides(&experiment, places, &kept), &used, &judging);
        for (boot, profiles) in steady {
            if let Some(kept) = kept.iter_mut().find(|kept| kept.id == boot) {
                kept.boot.profiles = profiles;
            }
        }
        let [base, new] = sides(&experiment, places, &kept);
        let difference = sampled([&base, &new], &used, phase.as_deref(), &judging);
        let difference = SampledDifference { part, ..difference };
        if let Some(side) = difference.sides.iter().find(|side| side.boots == 0) {
            return Err(AnalysisError::NotSampled { variant: side.name.clone(), experiment: id });
        }
        if let Some(asked) = phase.filter(|phase| !difference.phases.contains(phase)) {
            let known = difference.phases.iter().map(String::as_str);
            return Err(AnalysisError::no_phase_of(difference.workload.clone(), &asked, known));
        }
        Ok(Self { difference, used, experiment, places, kept })
    }

    /// Returns the call paths of the phase that was asked for, with their samples.
    pub fn paths(&self) -> Paths {
        let [base, new]: [VariantBoots<'_>; 2] = sides(&self.experiment, self.places, &self.kept);
        paths(&base, &new, &self.used, (self.difference.phase.as_deref(), SAMPLES))
    }
}
