//! What is said of a comparison in which all boots of a kernel failed, so that there is nothing to compare.

use compare::{Comparison, VariantOutcomes};

use crate::ascii::{escape, excerpt};

/// Returns the variants whose boots all failed, if no variant can be compared with the baseline because of that. Empty
/// otherwise.
pub fn variants(comparison: &Comparison) -> Vec<&VariantOutcomes> {
    let Some((base, others)) = comparison.variants.split_first() else { return Vec::new() };
    let fails = |it: &&VariantOutcomes| it.complete == 0 && !it.failed.is_empty();
    let can_compare = !fails(&base) && others.iter().any(|it| !fails(&it));
    match others.is_empty() || can_compare {
        true => Vec::new(),
        false => comparison.variants.iter().filter(fails).collect(),
    }
}

/// Returns a sentence on each of these variants, with the first reason, and that there is nothing to compare. Empty if
/// there are none.
pub fn sentences(comparison: &Comparison) -> Vec<String> {
    let failing = variants(comparison);
    let last = (!failing.is_empty()).then(|| "There is nothing to compare.".to_owned());
    let said = failing.into_iter().map(|it| {
        let failed = &it.failed[0];
        let reason = excerpt(&failed.outcome);
        format!("No boot of {} is complete. {}: {reason}.", escape(&it.name), failed.boot)
    });
    said.chain(last).collect()
}
