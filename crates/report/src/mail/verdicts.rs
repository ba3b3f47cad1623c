//! What was found, a line a verdict.

use compare::{Comparison, Row, Verdict};
use model::Mode;

use super::{LAYOUT, WIDTH, clipped};
use crate::ascii::{escape, fold};
use crate::table::signed;
use crate::verdicts;

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
    if comparison.mode == Mode::Measured {
        return measured(comparison);
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

/// The verdicts of measured mode, table by table.
fn measured(comparison: &Comparison) -> String {
    let several = several(comparison);
    let tables = comparison.tables.iter().filter_map(|table| {
        let verdicts = verdicts::verdicts(table, comparison, &LAYOUT)?;
        let title = if several { format!("{}:", escape(&table.workload)) } else { String::new() };
        let title = if several { fold(WIDTH, "", "", &title) } else { title };
        (!verdicts.is_empty()).then(|| title + &verdicts)
    });
    let tables: Vec<String> = tables.collect();
    let said = match tables.is_empty() {
        true => "No verdict on any metric.\n".to_owned(),
        false => tables.join("\n") + "Gains are positive where it is better.\n",
    };
    let all = comparison.tables.iter();
    said + &all.map(|table| verdicts::unmet(table, comparison, &LAYOUT)).collect::<String>()
}

/// Whether tables are of more than one workload.
fn several(comparison: &Comparison) -> bool {
    comparison.tables.windows(2).any(|pair| pair[0].workload != pair[1].workload)
}

fn lines(comparison: &Comparison, column: usize) -> String {
    let several = several(comparison);
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

/// The gain of a column, with the luck floor; none without a gain.
fn evidence(row: &Row, column: usize) -> Option<String> {
    let gain = row.gains[column]?;
    let plus = if gain > 0.0 { "+" } else { "" };
    let gain = format!("{plus}{} %", signed(Some(gain), row.verdicts[column]));
    match luck(row, column) {
        Some(luck) => Some(format!("{gain}, luck floor {luck:.2} %")),
        None => Some(gain),
    }
}

/// The luck floor in percent of the baseline's figure.
pub fn luck(row: &Row, column: usize) -> Option<f64> {
    let base = row.values[0].filter(|base| *base != 0.0)?;
    Some(100.0 * row.floors[column]? / base.abs())
}
