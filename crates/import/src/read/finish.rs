//! Completes tables: differences beside their values, the kind, the baseline, the directions.

use model::Better;

use crate::check::{cut_off, follows};
use crate::direction;
use crate::header;
use crate::kind;
use crate::table::{Baseline, Cell, Row, Table};

/// Determines the kind of a table, its baseline, and the directions of its rows.
pub fn finish(table: &mut Table, gains: bool) {
    table.kind = kind::kind(&table.heading, &table.columns, &table.rows);
    table.baseline = baseline(table).map(Baseline::Column);
    direction::infer(table, gains);
}

/// Moves columns such as `%diff` beside the values that they belong to. Returns whether the table calls them gains.
pub fn fold_differences(table: &mut Table) -> bool {
    let mut gains = false;
    let folds = |column: usize, table: &Table| {
        let bare = |row: &Row| {
            row.cells[column].percent.is_none() && row.cells[column - 1].percent.is_none()
        };
        header::is_difference(&table.columns[column]) && table.rows.iter().all(bare)
    };
    for column in (1..table.columns.len()).rev() {
        if column < 2 || !folds(column, table) {
            continue;
        }
        gains |= table.columns.remove(column).to_ascii_lowercase().contains("gain");
        for row in &mut table.rows {
            let mut percent = row.cells.remove(column).value;
            if let Some(figure) = &mut percent {
                figure.text = figure.text.trim_end_matches('%').to_owned();
            }
            row.cells[column - 1].percent = percent;
        }
    }
    gains
}

/// The column that the percentages compare with. It has nearly all 0 %, so that an error there can be reported, or no
/// percentages.
fn baseline(table: &Table) -> Option<usize> {
    let percents =
        |column: usize| table.rows.iter().map(move |row| row.cells[column].percent.as_ref());
    let mut columns = 0..table.columns.len();
    if !columns.clone().any(|column| percents(column).any(|percent| percent.is_some())) {
        return None;
    }
    let zero = |column: &usize| {
        let zeros = percents(*column).filter(|it| it.is_some_and(|it| it.value == 0.0)).count();
        let printed = percents(*column).flatten().count();
        zeros > 0 && 4 * zeros >= 3 * printed
    };
    let none = |column: &usize| percents(*column).all(|percent| percent.is_none());
    columns.clone().find(zero).or_else(|| columns.find(|it| none(it) && is_compared(table, *it)))
}

/// Whether the percentages of a table can compare with this column, which has none itself, or with others like it. If
/// most percentages of several columns do not follow, they are about something else, such as shares.
fn is_compared(table: &Table, base: usize) -> bool {
    let bases: Vec<Option<usize>> =
        (0..table.columns.len()).map(|it| table.base_from(base, it)).collect();
    let follow = |row: &Row, column: usize, cell: &Cell| {
        let base = &row.cells[bases[column]?];
        let directions = [Better::Lower, Better::Higher];
        let told = directions.map(|it| follows(it, base, cell));
        let cut = directions.iter().any(|it| cut_off(*it, base, cell));
        if cut || told.contains(&Some(true)) { Some(true) } else { told[0].and(told[1]) }
    };
    let told = table.rows.iter().flat_map(|row| {
        let cells = row.cells.iter().enumerate();
        cells.filter_map(|(column, cell)| follow(row, column, cell))
    });
    let told: Vec<bool> = told.collect();
    let derived = told.iter().filter(|told| **told).count();
    told.len() < 2 || 2 * derived >= told.len()
}
