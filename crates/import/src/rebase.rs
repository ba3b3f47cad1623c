//! Changes the baseline of a table.

use model::Better;

use crate::header::is_change;
use crate::table::{Baseline, Figure, Kind, Row, Signs, Table};

/// Decimals of computed percentages, as in mmtests' tables.
const DECIMALS: usize = 2;

/// Why a table cannot have this baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoBaseline {
    /// The table has no such column.
    Unknown,
    /// More than one column fits.
    Ambiguous,
}

/// `table` with the baseline `name` in the first column, and percentages recomputed for every row whose direction is
/// known. Other rows get no percentages. In a table of commits the baseline is a row. Stars belong to the old
/// comparison and are removed. Values of columns that are changes are removed as well, unless the baseline stays the
/// first column. `assume` is the direction of rows without one.
/// the first column. `assume` is the direction of rows without one.
///
/// `name` is a column's whole name, a part of only one column's name, or `#2` for the second column. Fails
/// when no column, or more than one, matches.
pub fn rebase(table: &Table, name: &str, assume: Option<Better>) -> Result<Table, NoBaseline> {
    let mut table = table.clone();
    for row in &mut table.rows {
        row.better = row.better.or(assume);
    }
    if table.kind == Kind::Commits {
        let labels: Vec<&str> = table.rows.iter().map(|row| row.label.as_str()).collect();
        let base = find(&labels, name)?;
        against_row(&mut table, base);
        return Ok(table);
    }
    let columns: Vec<&str> = table.columns.iter().map(String::as_str).collect();
    let base = find(&columns, name)?;
    if base > 0 {
        clear_changes(&mut table);
    }
    table.columns[..=base].rotate_right(1);
    for row in &mut table.rows {
        row.cells[..=base].rotate_right(1);
        let better = row.better;
        let value = row.cells[0].value.clone();
        for cell in &mut row.cells {
            cell.percent = gain(better, cell.value.as_ref(), value.as_ref());
            cell.marked = false;
        }
    }
    table.baseline = Some(Baseline::Column(0));
    table.signs = signs(&table.rows);
    Ok(table)
}

/// Removes the values of columns that are differences from the old baseline.
fn clear_changes(table: &mut Table) {
    for (column, name) in table.columns.iter().enumerate() {
        if is_change(name) {
            table.rows.iter_mut().for_each(|row| row.cells[column].value = None);
        }
    }
}

/// Compares commits with one of them. Less spread is better; other directions are unknown unless given.
fn against_row(table: &mut Table, base: usize) {
    let cells = table.rows[base].cells.clone();
    for row in &mut table.rows {
        for (column, cell) in row.cells.iter_mut().enumerate() {
            let spread = table.columns[column].to_ascii_lowercase().starts_with("std");
            let better = if spread { Some(Better::Lower) } else { row.better };
            cell.percent = gain(better, cell.value.as_ref(), cells[column].value.as_ref());
            cell.marked = false;
        }
    }
    table.baseline = Some(Baseline::Row(base));
    table.signs = signs(&table.rows);
}

fn signs(rows: &[Row]) -> Option<Signs> {
    let any = rows.iter().flat_map(|row| &row.cells).any(|cell| cell.percent.is_some());
    any.then_some(Signs::Gain)
}

/// The gain of `new` over `base`, if defined.
fn gain(better: Option<Better>, new: Option<&Figure>, base: Option<&Figure>) -> Option<Figure> {
    let value = stats::gain(better?, new?.value, base?.value)?;
    let text = format!("{value:.DECIMALS$}");
    let text = if text.trim_matches(['-', '0', '.']).is_empty() { "0.00".to_owned() } else { text };
    Some(Figure { value, half: 0.0, text })
}

/// The index that matches a whole name, `#N`, or a part that only one name has.
fn find(names: &[&str], wanted: &str) -> Result<usize, NoBaseline> {
    let number = wanted.strip_prefix('#').and_then(|number| number.parse::<usize>().ok());
    if let Some(place) = number {
        let place = place.checked_sub(1).filter(|place| *place < names.len());
        return place.ok_or(NoBaseline::Unknown);
    }
    let only = |holds: &dyn Fn(&str) -> bool| {
        let mut places = (0..names.len()).filter(|place| holds(names[*place]));
        match (places.next(), places.next()) {
            (Some(place), None) => Ok(place),
            (Some(_), Some(_)) => Err(NoBaseline::Ambiguous),
            (None, _) => Err(NoBaseline::Unknown),
        }
    };
    match only(&|name| name == wanted) {
        Err(NoBaseline::Unknown) if !wanted.is_empty() => only(&|name| name.contains(wanted)),
        found => found,
    }
}
