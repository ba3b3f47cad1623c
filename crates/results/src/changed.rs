//! The functions that the variants of an experiment executed with different code.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::{Experiment, Point, Variant};
use store::{Archive, ExperimentId};

use crate::error::AnalysisError;
use crate::explanation::{Explained, ExplanationQuestion, function_of};

/// Most functions that are returned.
pub const MOST_CHANGED: usize = 20;

/// Returns the kernel's functions that were executed and whose code differs between the first variant
/// and another one: at most [`MOST_CHANGED`], first those that changed beyond luck, each part by the size
/// of its change. Fails when there are none, the code of no two kernels can be compared, or the store
/// cannot be read.
pub fn changed_functions(
    store: &dyn Archive,
    id: ExperimentId,
) -> Result<Vec<String>, AnalysisError> {
    let experiment = store.experiment(id)?;
    let mut found = BTreeMap::<String, (bool, u64)>::new();
    let (mut why, mut failed) = (None, None);
    for [base, new] in pairs(&experiment) {
        for used in &experiment.workloads {
            let asked = ExplanationQuestion {
                experiment: id,
                variants: [base, new].map(|it| it.name.clone()),
                workload: Some(used.manifest.name.clone()),
                phase: None,
                cost: None,
                by_system_call: false,
                seeds: None,
            };
            // A variant may have no complete boot.
            let explanation = match Explained::of(store, asked) {
                Ok(explained) => explained.explanation,
                Err(error) => {
                    failed.get_or_insert(error);
                    continue;
                }
            };
            for it in explanation.section(None).iter().flat_map(|section| section.causes()) {
                let Some(name) = function_of(it) else { continue };
                let size =
                    (it.is_beyond_luck() == Some(true), it.instructions.change().abs() as u64);
                let largest = found.entry(name).or_insert(size);
                *largest = size.max(*largest);
            }
            why = explanation.unmarked.or(why);
        }
    }
    if found.is_empty() {
        return Err(failed.unwrap_or(AnalysisError::NoChange { experiment: id, why }));
    }
    let mut found: Vec<(String, (bool, u64))> = found.into_iter().collect();
    found.sort_by_key(|(_, size)| Reverse(*size));
    Ok(found.into_iter().take(MOST_CHANGED).map(|(name, _)| name).collect())
}

/// The pairs of variants that are compared: the first one at each point of a sweep, and another one.
fn pairs(experiment: &Experiment) -> impl Iterator<Item = [&Variant; 2]> {
    let point = |it: &Variant| it.point.as_ref().map(Point::name);
    experiment.variants.iter().filter_map(move |new| {
        let base = experiment.variants.iter().find(|it| point(it) == point(new))?;
        (base.name != new.name).then_some([base, new])
    })
}
