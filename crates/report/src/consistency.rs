//! Notes on counters that contradict each other, and on rows that two kernels compute from different
//! counters.

use compare::{Counting, Finding, Relation, Severity};
use kernelfiles::catalogue;
use model::BootId;

use crate::note::Note;

/// Most boots that a finding names; the others are counted.
const MAX_BOOTS: usize = 5;

/// Returns a note on a contradiction between counters, or on another finding about them.
pub fn finding(finding: &Finding) -> Note {
    let topic = match finding.severity {
        Severity::Contradiction => "does not add up",
        Severity::Remark => "remark",
    };
    let Finding { workload, variant, found, why, answer, .. } = finding;
    let boots = boots(&finding.boots);
    let text = format!("{boots}, {workload}: {found}. {why} {answer}");
    Note::on(topic, variant, text)
}

fn boots(boots: &[BootId]) -> String {
    let shown: Vec<String> = boots.iter().take(MAX_BOOTS).map(BootId::to_string).collect();
    let shown = shown.join(", ");
    match boots.len() {
        all if all > MAX_BOOTS => format!("{shown} and {} more", all - MAX_BOOTS),
        _ => shown,
    }
}

/// Returns a note on rows that a column computes from other counters than the baseline.
pub fn counting(counting: &Counting, baseline: &str) -> Note {
    let Counting { variant, rows, relation, baseline: old, counters: new } = counting;
    let (rows, old_names, new_names) = (rows.join(", "), old.join(", "), new.join(", "));
    let text = match relation {
        Relation::Renamed => format!(
            "{rows}: computed from {new_names}; in {baseline} from \
                                      {old_names}"
        ),
        Relation::Apart if is_part(new, old) => {
            format!(
                "{rows}: {new_names} is counted by itself; in {baseline} it is part of \
                     {old_names}"
            )
        }
        Relation::Apart => {
            format!("{rows}: {new_names} includes what {baseline} counts by itself as {old_names}")
        }
        Relation::Untold => format!(
            "{rows}: cannot be compared, because this kernel has {new_names} where {baseline} \
             has {old_names}. A counter that a kernel lacks is not 0"
        ),
        Relation::Widened => {
            let counters = || new.iter().chain(old);
            let by = counters().find_map(|name| catalogue::find(name)?.widened.as_ref());
            let names = counters().copied().collect::<Vec<_>>().join(", ");
            let by = by.map(|it| &*it.by).unwrap_or_default();
            let [newer, older] = match old.is_empty() {
                true => [variant, baseline],
                false => [baseline, variant],
            };
            format!(
                "{rows}: {names} includes {by} in {newer}, not in {older}. These rows compare only \
                 without it"
            )
        }
    };
    Note::on("counted otherwise", variant, text)
}

/// Returns whether the first counter of `names` was split from one of `wholes`.
fn is_part(names: &[&str], wholes: &[&str]) -> bool {
    let part = names.first().and_then(|name| catalogue::find(name));
    part.is_some_and(|part| part.split_from.iter().any(|whole| wholes.contains(&&**whole)))
}
