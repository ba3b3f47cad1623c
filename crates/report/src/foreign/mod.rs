//! Prints imported tables as text in the layout of the kernel's lists, and as JSON, CSV and HTML.

mod check;
mod csv;
mod json;
mod layout;

use import::{Baseline, Check, Row, Table, Unread};

use crate::ascii::excerpt;

pub use check::check as foreign_check;
pub use csv::csv as foreign_csv;
pub use json::json as foreign_json;
pub use layout::{html as foreign_html, text as foreign};

/// The tables that were found in files, and what could not be read.
#[derive(Clone, Debug, Default)]
pub struct Foreign {
    /// The tables, in the order in which they were found.
    pub tables: Vec<ForeignTable>,
    /// Lines that look like a table and could not be read.
    pub unread: Vec<ForeignUnread>,
}

/// A table, with the file that has it.
#[derive(Clone, Debug)]
pub struct ForeignTable {
    /// The file; `-` for standard input.
    pub file: String,
    /// The rows and columns of the table.
    pub table: Table,
    /// The result of checking its percentages, if requested.
    pub check: Option<Check>,
    /// A note on the table, printed below it.
    pub note: Option<&'static str>,
}

/// Lines that could not be read.
#[derive(Clone, Debug)]
pub struct ForeignUnread {
    /// The file; `-` for standard input.
    pub file: String,
    /// The line numbers, and why the lines could not be read.
    pub unread: Unread,
}

impl ForeignTable {
    /// Returns a line with the table's file and lines, its author, its title and its kind.
    fn heading(&self) -> String {
        let table = &self.table;
        let mut heading = format!("{}, {}", excerpt(&self.file), lines(table.lines));
        if let Some(author) = &table.author {
            heading.push_str(&format!(", by {}", excerpt(author)));
        }
        match table.title.is_empty() {
            true => heading.push_str(&format!(": {}", table.kind.name())),
            false => {
                heading.push_str(&format!(": {} ({})", excerpt(&table.title), table.kind.name()));
            }
        }
        if let Some(Baseline::Row(_)) = table.baseline {
            let name = table.baseline_name().unwrap_or_default();
            heading.push_str(&format!(", against {}", excerpt(name)));
        }
        heading
    }
}

fn lines(lines: import::Lines) -> String {
    match lines.first == lines.last {
        true => format!("line {}", lines.first),
        false => format!("lines {}-{}", lines.first, lines.last),
    }
}

/// Returns the text to the left of a row.
fn label(row: &Row) -> String {
    match row.statistic.is_empty() {
        true => row.label.clone(),
        false => format!("{} {}", row.statistic, row.label),
    }
}

/// Returns the name of a column; its number, such as `#2`, if it has no name.
fn column(table: &Table, column: usize) -> String {
    match table.columns[column].is_empty() {
        true => format!("#{}", column + 1),
        false => table.columns[column].clone(),
    }
}
