//! Imported tables in the layout of the kernel's lists. Values are as printed. Gains are in parentheses, or
//! between stars if they were printed so.

use import::{Cell, Figure, Signs, Table};
use maud::html;

use super::{Foreign, ForeignTable, ForeignUnread, check, lines};
use crate::ascii::{escape, excerpt};
use crate::document::Figure as Shown;
use crate::document::frame::{Policy, frame};
use crate::document::{self, Block, Figures, Grid, Label, TEXT, part, sections, sentence};
use crate::header::Name;

/// Least width of a value and the spaces before it.
const MIN_WIDTH: usize = 11;
/// Width of the number of a percentage; a longer number widens the column.
const MIN_PERCENT_WIDTH: usize = 7;

/// Returns all tables, and what could not be read, as text.
pub fn text(found: &Foreign) -> String {
    sections(&blocks(found), &TEXT)
}

/// Returns the same as one self-contained page. Every text from a file is escaped; nothing is loaded.
pub fn html(found: &Foreign) -> String {
    const STYLE: &str = include_str!("page.css");
    let body = html! {
        h1 { "Tables found" }
        (document::html(&blocks(found).concat(), 1))
    };
    frame("faultline table", STYLE, Policy::Nothing, &body.into_string())
}

fn blocks(found: &Foreign) -> Vec<Vec<Block>> {
    let mut all: Vec<Vec<Block>> = found.tables.iter().map(whole).collect();
    if all.is_empty() {
        all.push(vec![sentence("No table found.")]);
    }
    if !found.unread.is_empty() {
        let unread = found.unread.iter().map(|ForeignUnread { file, unread }| {
            sentence(format!("{}, {}: {}", excerpt(file), lines(unread.lines), unread.why))
        });
        let title = "Looks like a table, but could not be read:";
        all.push(vec![part(title, unread.collect::<Vec<_>>())]);
    }
    all
}

/// Lays out a table with its note, and the percentages that do not follow from the values.
fn whole(found: &ForeignTable) -> Vec<Block> {
    let findings = found.check.iter().flat_map(|check| &check.findings);
    let findings = findings.map(|it| sentence(check::finding(found, it)));
    let table = part(found.heading(), [Block::Grid(grid(&found.table))]);
    [table].into_iter().chain(found.note.map(sentence)).chain(findings).collect()
}

fn grid(table: &Table) -> Grid {
    let section = |section: &str| (!section.is_empty()).then(|| section.to_owned());
    let rows = table.rows.iter().map(|row| Label {
        section: section(&row.section),
        before: row.statistic.clone(),
        name: row.label.clone(),
        ..Label::default()
    });
    Grid {
        heading: table.heading.clone(),
        rows: rows.collect(),
        columns: (0..table.columns.len()).map(|number| column(table, number)).collect(),
        least: MIN_WIDTH,
        gap: 2,
        cut: name,
    }
}

fn column(table: &Table, number: usize) -> Figures {
    let cells = || table.rows.iter().map(|row| &row.cells[number]);
    let text =
        |figure: &Option<Figure>| figure.as_ref().map_or("-".to_owned(), |it| it.text.clone());
    let spread =
        |cell: &Cell| cell.spread.as_ref().map_or(String::new(), |it| format!(" +- {}", it.text));
    let plus = table.signs == Some(Signs::Change);
    let numbers: Vec<Option<String>> =
        cells().map(|cell| cell.percent.as_ref().map(|percent| number_of(percent, plus))).collect();
    let width = numbers.iter().flatten().map(String::len).max();
    let width = width.map(|longest| longest.max(MIN_PERCENT_WIDTH));
    let percents = cells().zip(numbers).map(|(cell, number)| {
        let [open, close] = if cell.marked { ["*", "*"] } else { ["(", ")"] };
        match (number, width) {
            (Some(number), Some(width)) => format!(" {open}{number:>width$}%{close}"),
            (None, Some(width)) => " ".repeat(width + 4),
            (_, None) => String::new(),
        }
    });
    let shown = cells().zip(percents).map(|(cell, beside)| Shown {
        value: text(&cell.value) + &spread(cell),
        beside,
        ..Shown::default()
    });
    Figures { name: table.columns[number].clone(), cells: shown.collect() }
}

/// Breaks a column's name into two lines for a column of `room` characters. A name that begins with a
/// version is broken after it, other names only if they are too long.
fn name(name: &str, room: usize) -> Name {
    let version = name.starts_with(|first: char| first.is_ascii_digit());
    match version || name.len() > room {
        true => Name::cut(name, room),
        false => Name { top: name.to_owned(), bottom: String::new() },
    }
}

/// Formats the number of a percentage. In a table of changes it has an explicit sign.
fn number_of(percent: &Figure, plus: bool) -> String {
    let text = escape(percent.text.trim_start_matches('+'));
    if plus && percent.value >= 0.0 && !text.starts_with('-') { format!("+{text}") } else { text }
}
