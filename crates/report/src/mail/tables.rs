//! The tables of a mail. A program can parse them: each percentage follows from the values beside it.

use compare::{Comparison, Kind, Table};
use model::{Mode, count};

use crate::document::{Block, sentence};
use crate::exact::luck_list;
use crate::table::{NOTHING, below, moved, vanishes};
use crate::verdicts;

/// Least number of significant digits of a baseline below 1.
const DIGITS: i32 = 2;
/// Most digits of a printed value.
const MAX_DIGITS: i32 = 14;
/// Larger gains are not printed, in percent.
const MAX_GAIN: f64 = 1e6;

/// Lays out all tables with the sentences below them, or a sentence that there is no table.
pub fn sections(comparison: &Comparison) -> Vec<Vec<Block>> {
    match comparison.tables.is_empty() {
        true => vec![vec![sentence(NOTHING)]],
        false => comparison.tables.iter().map(|table| one(table, comparison)).collect(),
    }
}

/// Lays out the heading and the rows of a table.
pub fn plain(table: &Table, comparison: &Comparison) -> Block {
    crate::table::plain(&readable(table), comparison, false)
}

/// Lays out the rows of a table.
pub fn rows(table: &Table, comparison: &Comparison) -> Block {
    crate::table::rows(&readable(table), comparison, false)
}

fn one(table: &Table, comparison: &Comparison) -> Vec<Block> {
    let (moved, still) = moved(table);
    let table = &readable(&moved);
    let beyond =
        (1..comparison.variants.len()).filter_map(|column| beyond_luck(table, comparison, column));
    let said = still.sentences().into_iter().chain(below(table, comparison, false)).chain(beyond);
    let figures = crate::table::plain(table, comparison, false);
    let figures = [figures].into_iter().chain(said.map(sentence));
    figures.chain(verdicts::beside(table, comparison, false)).collect()
}

/// Returns the table in a form that can be parsed again. Rows without any value are left out. A baseline of
/// few digits gets more decimals, so that the percentages follow from what is printed. A baseline that is
/// printed as 0 has no percentages, as in the text. A row has no percentages if its values are too far
/// apart for enough digits.
fn readable(table: &Table) -> Table {
    let mut table = table.clone();
    table.rows.retain(|row| row.values().any(|value| value.is_some()));
    for row in &mut table.rows {
        let values = || row.values().flatten().filter(|value| *value != 0.0);
        // Digits before the point, less 1. For a fraction: the zeros after the point plus 1, negated.
        let places = |value: f64| value.abs().log10().floor() as i32;
        let base = row.value(0).filter(|base| *base != 0.0);
        let wanted = base.map_or(0, |base| DIGITS - 1 - places(base));
        let room = MAX_DIGITS - 1 - values().map(places).max().unwrap_or(0).max(0);
        let decimals = |number: i32| usize::try_from(number).unwrap_or(0);
        if wanted > room {
            row.cells.iter_mut().for_each(|cell| cell.gain = None);
        } else if wanted > DIGITS - 1 && !vanishes(row) {
            row.decimals = row.decimals.max(decimals(wanted));
        }
        row.decimals = row.decimals.min(decimals(room));
        let says = |gain: &mut f64| gain.abs() < MAX_GAIN;
        for cell in &mut row.cells {
            // The percentage of a column that lacks seeds does not follow from the baseline's cell.
            let follows = cell.base.is_none();
            cell.gain = cell.gain.take_if(|gain| says(gain) && follows);
        }
    }
    table
}

/// Lists the figures that differ beyond luck in a table without verdicts. `None` in measured mode.
fn beyond_luck(table: &Table, comparison: &Comparison, column: usize) -> Option<String> {
    if comparison.mode != Mode::Exact || table.kind == Kind::Metrics {
        return None;
    }
    let means = || table.rows.iter().filter(|row| row.value(column).is_some());
    let differs = means().filter(|row| row.beyond_luck(column) == Some(true));
    let names: Vec<&str> = differs.map(|row| &*row.metric).collect();
    let unknown = means().filter(|row| row.beyond_luck(column).is_none()).count();
    let name = &comparison.variants[column].name;
    let mut said = Vec::new();
    if !names.is_empty() {
        said.push(format!("Beyond luck in {name} ({}): {}.", luck_list(), names.join(", ")));
    }
    if unknown > 0 {
        said.push(format!("Undecided in {name}: {unknown} of {}.", count(table.rows.len(), "row")));
    }
    (!said.is_empty()).then(|| said.join(" "))
}
