//! The verdicts, one per line.

use compare::{Comparison, Verdict};
use model::Mode;

use super::{LAYOUT, WIDTH, clipped};
use crate::ascii::{escape, fold};
use crate::{exact, verdicts};

/// Most verdicts of one kind with a line of their own; the others are counted.
const MAX_LINES: usize = 12;
/// Longer names are cut.
const MAX_NAME: usize = 60;

/// The verdicts on each variant, regressions first.
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
            false => format!("{names}:"),
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
        false => tables.join("\n"),
    };
    let all = comparison.tables.iter();
    said + &all.map(|table| verdicts::unmet(table, comparison, &LAYOUT)).collect::<String>()
}

/// Whether the tables are of more than one workload.
fn several(comparison: &Comparison) -> bool {
    comparison.tables.windows(2).any(|pair| pair[0].workload != pair[1].workload)
}

fn lines(comparison: &Comparison, column: usize) -> String {
    let several = several(comparison);
    let mut text = String::new();
    for verdict in [Verdict::Regression, Verdict::Improvement, Verdict::Undecided, Verdict::Same] {
        let of_kind = comparison.verdicts(column).filter(|it| it.2 == verdict);
        let said = of_kind.map(|(table, row, verdict)| {
            let name = match several {
                true => format!("{} {}", table.workload, row.metric),
                false => row.metric.clone(),
            };
            format!("{} {}", clipped(&name, MAX_NAME), exact::reasons(row, verdict, column))
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
