//! The verdicts of a mail, one on a line.

use compare::{Comparison, Table};

use crate::document::{Block, sentence};
use crate::verdicts;

/// Lays out the verdicts on each variant, regressions first.
pub fn sections(comparison: &Comparison) -> Vec<Vec<Block>> {
    match &comparison.variants[..] {
        [] => vec![vec![sentence("There is no variant.")]],
        [only] => {
            let said = format!("Figures of {}; there is nothing to compare with.", only.name);
            vec![vec![sentence(said)]]
        }
        _ => tables(comparison),
    }
}

/// Lays out the verdicts, table by table.
fn tables(comparison: &Comparison) -> Vec<Vec<Block>> {
    let several = comparison.has_several_workloads();
    let of_table = |table: &Table| {
        let verdicts = verdicts::on_columns(table, comparison);
        let title = several.then(|| sentence(format!("{}:", table.workload)));
        let is_judged = !verdicts.is_empty();
        is_judged.then(|| title.into_iter().chain(verdicts).collect())
    };
    let mut sections: Vec<Vec<Block>> = comparison.tables.iter().filter_map(of_table).collect();
    if sections.is_empty() {
        sections.push(vec![sentence("No verdict on any metric.")]);
    }
    let unmet = comparison.tables.iter().filter_map(|table| verdicts::unmet(table, comparison));
    sections.last_mut().expect("there is a section").extend(unmet.map(sentence));
    sections
}
