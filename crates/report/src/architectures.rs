//! Verdicts on the same kernels for several architectures, side by side.

use compare::{Comparison, RowVerdict, Verdict};

use crate::ascii::excerpt;
use crate::document::{self, Block, Column, TEXT, part, sections, sentence};
use crate::exact::change;

/// Returns the verdicts of these comparisons, each of which is for another architecture: a line for each row and a column
/// for each architecture. Variants and rows have the same names. Below them are the rows that became better on one
/// architecture and worse on another.
pub fn architectures(all: &[&Comparison]) -> String {
    let columns = |it: &&Comparison| it.variants.len();
    let most = all.iter().map(columns).max().unwrap_or(0);
    let blocks: Vec<Vec<Block>> = (1..most).map(|column| on_variant(all, column)).collect();
    sections(&blocks, &TEXT)
}

/// Lays out the verdicts on one variant; empty if there are none.
fn on_variant(all: &[&Comparison], column: usize) -> Vec<Block> {
    let found: Vec<Vec<RowVerdict<'_>>> =
        all.iter().map(|it| it.verdicts(column).collect()).collect();
    let mut names: Vec<[&str; 2]> = Vec::new();
    for name in found.iter().flatten().map(name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let of = |name: [&str; 2], place: usize| found[place].iter().find(|it| self::name(it) == name);
    let has_several = names.iter().any(|[workload, _]| *workload != names[0][0]);
    let label = |[workload, row]: [&str; 2]| match has_several {
        true => format!("{}: {}", excerpt(workload), excerpt(row)),
        false => excerpt(row),
    };
    let cell = |name: [&str; 2], place: usize| {
        let it = of(name, place)?;
        Some(format!("{} ({})", change(it.row, column, 2)?, it.verdict.name()))
    };
    let rows = names.iter().map(|name| {
        let cells = (0..all.len()).map(|place| cell(*name, place).unwrap_or_else(|| "-".into()));
        [label(*name)].into_iter().chain(cells).collect::<Vec<_>>()
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let Some(variants) = all.iter().map(|it| &it.variants).find(|it| it.len() > column) else {
        return Vec::new();
    };
    let heading = format!(
        "Verdicts on {} against {}, by architecture:",
        excerpt(&variants[column].name),
        excerpt(&variants[0].name)
    );
    let columns = all.iter().map(|it| Column::words(it.arch.name()));
    let columns: Vec<Column> = [Column::words("")].into_iter().chain(columns).collect();
    let opposite = names.iter().filter_map(|name| {
        let on = |verdict: Verdict| {
            (0..all.len()).find(|place| of(*name, *place).is_some_and(|it| it.verdict == verdict))
        };
        let [better, worse] = [on(Verdict::Improvement)?, on(Verdict::Regression)?];
        let [better, worse] = [better, worse].map(|place| all[place].arch.name());
        Some(sentence(format!("{}: better on {better}, worse on {worse}.", label(*name))))
    });
    match rows.is_empty() {
        true => Vec::new(),
        false => {
            let table = [document::table(columns, rows)].into_iter();
            vec![part(heading, table.chain(opposite).collect::<Vec<Block>>())]
        }
    }
}

/// The workload and the name of a row.
fn name<'a>(it: &RowVerdict<'a>) -> [&'a str; 2] {
    [&it.table.workload, &it.row.metric]
}
