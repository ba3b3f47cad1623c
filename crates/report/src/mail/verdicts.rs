//! The verdicts, one per line.

use compare::Comparison;

use super::{LAYOUT, WIDTH};
use crate::ascii::{escape, fold};
use crate::verdicts;

/// The verdicts on each variant, regressions first.
pub fn text(comparison: &Comparison) -> String {
    let Some(baseline) = comparison.variants.first() else {
        return "There is no variant.\n".to_owned();
    };
    if comparison.variants.len() == 1 {
        let name = escape(&baseline.name);
        return fold(
            WIDTH,
            "",
            "",
            &format!("Figures of {name}; there is nothing to compare with."),
        );
    }
    tables(comparison)
}

/// The verdicts, table by table.
fn tables(comparison: &Comparison) -> String {
    let several = several(comparison);
    let tables = comparison.tables.iter().filter_map(|table| {
        let verdicts = verdicts::on_columns(table, comparison, &LAYOUT);
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
