//! What was found, a line a verdict.

use compare::{Comparison, Row, Verdict};
use model::count;

use super::{WIDTH, clipped};
use crate::ascii::{escape, fold};
use crate::table::signed;

/// Verdicts of one kind that have a line of their own; the others are counted.
const MAX_LINES: usize = 12;
/// Longer names are cut.
const MAX_NAME: usize = 60;

/// The verdicts on each variant, the bad ones first.
pub fn text(comparison: &Comparison) -> String {
    let Some((baseline, others)) = comparison.variants.split_first() else {
        return "There is no variant.\n".to_owned();
    };
    if others.is_empty() {
        let name = escape(&baseline.name);
        return fold(
            WIDTH,
            "",
            "",
            &format!("Figures of {name}; there is nothing to compare with."),
        );
    }
    let columns = (1..).zip(others).map(|(column, other)| {
        let names = format!("{} against {}", escape(&other.name), escape(&baseline.name));
        let lines = lines(comparison, column);
        let title = match lines.is_empty() {
            true => format!("No verdict on {names}."),
            false => format!("{names}; gains are positive where it is better:"),
        };
        fold(WIDTH, "", "", &title) + &lines
    });
    columns.collect::<Vec<_>>().join("\n")
}

fn lines(comparison: &Comparison, column: usize) -> String {
    let several = comparison.tables.windows(2).any(|pair| pair[0].workload != pair[1].workload);
    let mut text = String::new();
    for verdict in [Verdict::Regression, Verdict::Improvement, Verdict::Undecided, Verdict::Same] {
        let of_kind = comparison.verdicts(column).filter(|it| it.2 == verdict);
        let said = of_kind.map(|(table, row, _)| {
            let name = match several {
                true => format!("{} {}", table.workload, row.metric),
                false => row.metric.clone(),
            };
            match evidence(row, column) {
                Some(evidence) => format!("{} {evidence}", clipped(&name, MAX_NAME)),
                None => clipped(&name, MAX_NAME),
            }
        });
        let said: Vec<String> = said.collect();
        let first = format!("  {}: ", verdict.name());
        for line in said.iter().take(MAX_LINES) {
            text.push_str(&fold(WIDTH, &first, "    ", line));
        }
        if let Some(more) = said.len().checked_sub(MAX_LINES).filter(|more| *more > 0) {
            text.push_str(&format!("{first}{more} more\n"));
        }
    }
    text
}

/// The gain of a column, and how sure it is; none without a gain.
fn evidence(row: &Row, column: usize) -> Option<String> {
    let gain = row.gains[column]?;
    let verdict = row.verdicts[column];
    let plus = if gain > 0.0 { "+" } else { "" };
    let gain = format!("{plus}{} %", signed(Some(gain), verdict));
    if let Some(Some(evidence)) = row.evidence.get(column) {
        let [low, high] = interval(row, evidence);
        let [base, new] = evidence.boots;
        let boots = match base == new {
            true => format!("{} a side", count(base, "boot")),
            false => format!("{base} and {}", count(new, "boot")),
        };
        return Some(format!("{gain} [{low:.2}, {high:.2}], p {:.3}, {boots}", evidence.p));
    }
    match luck(row, column) {
        Some(luck) => Some(format!("{gain}, luck floor {luck:.2} %")),
        None => Some(gain),
    }
}

/// The bounds of the gain's interval in percent; positive is better.
pub fn interval(row: &Row, evidence: &compare::Evidence) -> [f64; 2] {
    let percent = |ratio: f64| 100.0 * (ratio - 1.0);
    match row.better {
        Some(model::Better::Lower) => [-percent(evidence.high), -percent(evidence.low)],
        _ => [percent(evidence.low), percent(evidence.high)],
    }
}

/// The luck floor in percent of the baseline's figure.
pub fn luck(row: &Row, column: usize) -> Option<f64> {
    let base = row.values[0].filter(|base| *base != 0.0)?;
    Some(100.0 * row.floors[column]? / base.abs())
}
