//! Changes that are partly other work: other calls, or another number of them.

use compare::{Comparison, Explained, Headline, Row, Statistic, Table, Verdict};

use crate::explain::work::names;
use crate::words::{Of, phase_alone};

/// Returns the headline of the phase of a row that is a regression or an improvement, if the work of the phase is another
/// one.
pub fn other<'a>(
    explained: &'a [Explained],
    comparison: &Comparison,
    (table, row): (&Table, &Row),
    column: usize,
) -> Option<&'a Headline> {
    // A row at equal entries has the cost of the same work.
    let is_change = row.statistic != Statistic::Equal
        && matches!(row.verdict(column), Some(Verdict::Regression | Verdict::Improvement));
    let variant = &comparison.variants[column].name;
    let is_its = |it: &&Explained| it.workload == table.workload && it.variant == *variant;
    let mut headlines = explained.iter().filter(is_its).flat_map(|it| &it.headlines);
    let of_phase = headlines.find(|it| is_change && it.phase == phase_alone(row));
    of_phase.filter(|it| !it.other_work().is_empty())
}

/// Returns how the number of the call that makes the work another one changed, for a subject: `23.0 % fewer page faults`.
/// `None` if the work is the same.
pub fn in_subject(it: &Headline) -> Option<String> {
    let asked = *it.other_work().first()?;
    let [_, calls] = names(asked);
    let change = Of::Number.change([asked.entries.base, asked.entries.new], 1);
    Some(format!("with {}{calls}", change.unwrap_or_else(|| "new".to_owned())))
}
