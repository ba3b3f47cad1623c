//! The functions that hold the changes of a comparison, in exact mode.

use model::{INSTRUCTIONS, WorkloadUse};
use serde::Serialize;

use crate::{
    Comparison, Explanation, Headline, Paths, Results, RowVerdict, VariantBoots, Verdict, explain,
    headlines, paths, reasons,
};

/// The attribution of a variant's changes in the phases of a workload.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Explained {
    /// The workload's name.
    pub workload: String,
    /// The variant's name.
    pub variant: String,
    /// Whether the workload is a program without a manifest of its own, whose start is measured with it.
    #[serde(skip)]
    pub plain: bool,
    /// One headline per phase that the workload measures.
    pub headlines: Vec<Headline>,
    /// The functions to which the change belongs.
    #[serde(skip)]
    pub explanation: Explanation,
    /// The call paths of the measured phases; empty until [`add_paths`] adds them.
    #[serde(skip)]
    pub paths: Paths,
}

/// The functions that hold the changes beyond luck, for each workload and variant with a regression or an improvement
/// in `comparison`. With `unchanged`, also what others executed, without headlines. `comparison` must be of these
/// results. Empty in measured mode.
pub fn explained(
    comparison: &Comparison,
    results: &Results<'_>,
    unchanged: bool,
) -> Vec<Explained> {
    let mut all = Vec::new();
    if comparison.mode.is_measured() {
        return all;
    }
    let boots = |column: usize| results.column(&comparison.variants[column].name);
    for column in 1..comparison.variants.len() {
        let (Some(base), Some(new)) = (boots(0), boots(column)) else { continue };
        for used in &results.experiment.workloads {
            let workload = &used.manifest.name;
            let is_change = |verdict| matches!(verdict, Verdict::Regression | Verdict::Improvement);
            let own = |it: &RowVerdict<'_>| it.table.workload == *workload;
            let verdicts: Vec<Verdict> =
                comparison.verdicts(column).filter(own).map(|it| it.verdict).collect();
            let is_changed = verdicts.iter().any(|verdict| is_change(*verdict));
            if !is_changed && (!unchanged || verdicts.is_empty()) {
                continue;
            }
            let explanation = explain(base, new, used, results.experiment.boots, INSTRUCTIONS);
            let mut headlines = match is_changed {
                true => headlines(&explanation, used, |phase| {
                    paths(base, new, used, (Some(phase), INSTRUCTIONS))
                }),
                false => Vec::new(),
            };
            headlines.retain(|it| it.kernel.beyond_luck() == Some(true));
            let (workload, variant) = (workload.clone(), new.variant.name.clone());
            let (plain, paths) = (used.manifest.plain, Paths::default());
            all.push(Explained { workload, variant, plain, headlines, explanation, paths });
        }
    }
    all
}

/// Adds the call paths of the measured phases, which graphs draw. `comparison` and `results` must be those that were
/// explained.
pub fn add_paths(all: &mut [Explained], comparison: &Comparison, results: &Results<'_>) {
    for (it, [base, new], used) in boots_of(all, comparison, results) {
        it.paths = paths(base, new, used, (None, INSTRUCTIONS));
    }
}

/// Adds the kernel's instructions by what made it execute, in the measured phases together, where calls were followed.
/// `comparison` and `results` must be those that were explained.
pub fn add_reasons(all: &mut [Explained], comparison: &Comparison, results: &Results<'_>) {
    for (it, [base, new], used) in boots_of(all, comparison, results) {
        it.explanation.reasons = reasons(base, new, used, (None, INSTRUCTIONS));
    }
}

/// Each change that was explained, with the boots of both sides and the workload.
fn boots_of<'a, 'b>(
    all: &'a mut [Explained],
    comparison: &Comparison,
    results: &'a Results<'b>,
) -> impl Iterator<Item = (&'a mut Explained, [&'a VariantBoots<'b>; 2], &'a WorkloadUse)> {
    let base = comparison.variants.first().and_then(|it| results.column(&it.name));
    all.iter_mut().filter_map(move |it| {
        let mut workloads = results.experiment.workloads.iter();
        let used = workloads.find(|used| used.manifest.name == it.workload)?;
        let new = results.column(&it.variant)?;
        Some((it, [base?, new], used))
    })
}
