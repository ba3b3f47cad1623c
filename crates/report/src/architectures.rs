//! Verdicts on the same kernels for several architectures, side by side.

use compare::{Comparison, RowVerdict, Verdict};

use crate::ascii::excerpt;
use crate::document::{self, Block, Column, TEXT, part, sections, sentence};
use crate::exact::change;

/// A row with verdicts, and what it has in each comparison.
pub struct Beside<'a> {
    /// The workload of the row.
    pub workload: &'a str,
    /// The name of the row.
    pub metric: &'a str,
    /// The verdict in each comparison. `None` in one that lacks it.
    pub on: Vec<Option<RowVerdict<'a>>>,
}

impl Beside<'_> {
    /// What the row has in a comparison: its change and its verdict.
    pub fn said(&self, place: usize, column: usize) -> Option<String> {
        let it = self.on[place]?;
        Some(format!("{} ({})", change(it.row, column, 2)?, it.verdict.name()))
    }
}

/// Returns the verdicts of these comparisons, each of which is for another architecture: a line for each row and a column
/// for each architecture. Variants and rows have the same names. Below them are the rows that became better on one
/// architecture and worse on another.
pub fn architectures(all: &[&Comparison]) -> String {
    sections(&blocks(all), &TEXT)
}

/// Lays out the verdicts on each variant.
pub fn blocks(all: &[&Comparison]) -> Vec<Vec<Block>> {
    (1..columns(all)).map(|column| on_variant(all, column)).collect()
}

/// The number of variants.
pub fn columns(all: &[&Comparison]) -> usize {
    all.iter().map(|it| it.variants.len()).max().unwrap_or(0)
}

/// Returns the rows that have a verdict on a variant in any of these comparisons.
pub fn rows<'a>(all: &[&'a Comparison], column: usize) -> Vec<Beside<'a>> {
    let mut rows: Vec<Beside<'a>> = Vec::new();
    for (place, comparison) in all.iter().enumerate() {
        for found in comparison.verdicts(column) {
            let (workload, metric) = (&*found.table.workload, &*found.row.metric);
            let is_it = |it: &Beside<'_>| (it.workload, it.metric) == (workload, metric);
            let known = rows.iter().position(is_it).unwrap_or_else(|| {
                rows.push(Beside { workload, metric, on: vec![None; all.len()] });
                rows.len() - 1
            });
            rows[known].on[place].get_or_insert(found);
        }
    }
    rows
}

/// Lays out the verdicts on one variant; empty if there are none.
fn on_variant(all: &[&Comparison], column: usize) -> Vec<Block> {
    let found = rows(all, column);
    let variants = all.iter().map(|it| &it.variants).find(|it| it.len() > column);
    let Some(variants) = variants.filter(|_| !found.is_empty()) else { return Vec::new() };
    let has_several = found.iter().any(|it| it.workload != found[0].workload);
    let label = |it: &Beside<'_>| match has_several {
        true => format!("{}: {}", excerpt(it.workload), excerpt(it.metric)),
        false => excerpt(it.metric),
    };
    let lines = found.iter().map(|it| {
        let cell = |place| it.said(place, column).unwrap_or_else(|| "-".into());
        [label(it)].into_iter().chain((0..all.len()).map(cell)).collect::<Vec<_>>()
    });
    let lines: Vec<Vec<String>> = lines.collect();
    let heading = format!(
        "Verdicts on {} against {}, by architecture:",
        excerpt(&variants[column].name),
        excerpt(&variants[0].name)
    );
    let columns = all.iter().map(|it| Column::words(it.arch.name()));
    let columns: Vec<Column> = [Column::words("")].into_iter().chain(columns).collect();
    let opposite = found.iter().filter_map(|row| {
        let on = |verdict: Verdict| {
            row.on.iter().position(|it| it.is_some_and(|it| it.verdict == verdict))
        };
        let [better, worse] = [on(Verdict::Improvement)?, on(Verdict::Regression)?];
        let [better, worse] = [better, worse].map(|place| all[place].arch.name());
        Some(sentence(format!("{}: better on {better}, worse on {worse}.", label(row))))
    });
    let table = [document::table(columns, lines)].into_iter();
    vec![part(heading, table.chain(opposite).collect::<Vec<Block>>())]
}
