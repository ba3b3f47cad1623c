//! Steps of a series of patches, each compared with the step before it.

use crate::{Comparison, Judging, Results, compare_columns};

/// What one patch of a series changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The subject of the patch.
    pub patch: String,
    /// The comparison of this step with the step before it, which is the baseline.
    pub comparison: Comparison,
}

/// The steps among the variants of these results. The verdicts on all steps share the rates of false ones
/// (Bonferroni).
pub fn steps(results: &Results<'_>, judging: &Judging) -> Vec<Step> {
    let Results { experiment, reading, variants } = results;
    let found = variants.iter().filter_map(|own| {
        let step = reading.variant(own.variant).step.as_ref()?;
        Some((&step.patch, [results.column(&step.after)?.clone(), own.clone()]))
    });
    let found: Vec<_> = found.collect();
    let judging = judging.shared_by(found.len());
    let step = |(patch, columns): (&String, [_; 2])| {
        let results = Results { experiment, reading, variants: columns.into() };
        Step { patch: patch.clone(), comparison: compare_columns(&results, 0, &judging) }
    };
    found.into_iter().map(step).collect()
}
