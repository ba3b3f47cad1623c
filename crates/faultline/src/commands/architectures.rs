//! Experiments for several architectures, side by side.

use std::collections::BTreeMap;

use model::{Architecture, Experiment, Machine};
use results::{Analysis, Question};
use store::{Archive, ExperimentId};

use crate::failure::Failure;

/// Whether the experiments are for several architectures.
pub fn are_several(store: &dyn Archive, ids: &[ExperimentId]) -> Result<bool, Failure> {
    Ok(by_architecture(store, ids)?.len() > 1)
}

/// The experiments, compared for each architecture by itself. Fails when they are not the same but for that.
pub fn analyses(
    store: &dyn Archive,
    ids: &[ExperimentId],
    question: &Question,
) -> Result<Vec<Analysis>, Failure> {
    let mut analyses: Vec<Analysis> = Vec::new();
    for ids in by_architecture(store, ids)?.into_values() {
        let analysis = Analysis::of(store, &ids, question)?;
        if let Some(what) = analyses.first().and_then(|first| differs(first, &analysis)) {
            return Err(Failure::Usage(format!(
                "experiments for several architectures must be the same but for that: their {what} differ"
            )));
        }
        analyses.push(analysis);
    }
    Ok(analyses)
}

/// The verdicts of the experiments as text.
pub fn beside(
    store: &dyn Archive,
    ids: &[ExperimentId],
    question: &Question,
    named: &str,
) -> Result<String, Failure> {
    let analyses = analyses(store, ids, question)?;
    let more = by_architecture(store, ids)?.into_iter().map(|(arch, ids)| {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        format!("All of {}: faultline{named} compare {}\n", arch.name(), ids.join(" "))
    });
    let more: String = more.collect();
    let comparisons = analyses.iter().map(|it| &it.comparison);
    let verdicts = report::architectures(&comparisons.collect::<Vec<_>>());
    let verdicts = if verdicts.is_empty() {
        "No row has a verdict that can be set beside another.\n".to_owned()
    } else {
        verdicts
    };
    Ok(format!("{verdicts}\n{more}"))
}

/// What two experiments differ in beside the architecture.
fn differs(first: &Analysis, other: &Analysis) -> Option<&'static str> {
    let [first, other] = [first, other].map(|it| &it.experiment);
    let names = |it: &Experiment| it.variants.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
    let machine = |it: &Experiment| Machine { arch: Architecture::default(), ..it.machine.clone() };
    let workloads = |it: &Experiment| {
        let used = it.workloads.iter().map(|it| (&it.manifest.name, &it.manifest.parameters));
        used.map(|(name, parameters)| format!("{name} {parameters:?}")).collect::<Vec<_>>()
    };
    let same = [
        ("modes", first.mode == other.mode),
        ("variants", names(first) == names(other)),
        ("machines", machine(first) == machine(other)),
        ("workloads", workloads(first) == workloads(other)),
    ];
    same.into_iter().find_map(|(what, same)| (!same).then_some(what))
}

/// The experiments of each architecture.
fn by_architecture(
    store: &dyn Archive,
    ids: &[ExperimentId],
) -> Result<BTreeMap<Architecture, Vec<ExperimentId>>, Failure> {
    let mut found = BTreeMap::<Architecture, Vec<ExperimentId>>::new();
    for id in ids {
        found.entry(store.experiment(*id)?.machine.arch).or_default().push(*id);
    }
    Ok(found)
}
