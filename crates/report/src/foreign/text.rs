//! Imported tables in the layout of the kernel's lists: values as printed, gains in parentheses, or between
//! stars where they were printed so.

use import::{Cell, Figure, Row, Signs, Table};

use super::{Foreign, ForeignTable, lines};
use crate::ascii::{escape, excerpt};
use crate::header::Name;

/// Least width of a value with the space before it.
const MIN_WIDTH: usize = 11;
/// Width of a percentage's number, unless a longer one needs more.
const MIN_PERCENT_WIDTH: usize = 7;
/// Longer labels push only their own line to the right.
const MAX_LABEL_WIDTH: usize = 60;

/// All tables, and what could not be read.
pub fn text(found: &Foreign) -> String {
    let mut parts: Vec<String> = found.tables.iter().map(whole).collect();
    if parts.is_empty() {
        parts.push("No table found.\n".to_owned());
    }
    if !found.unread.is_empty() {
        let lines = found.unread.iter().map(|it| {
            format!("  {}, {}: {}\n", excerpt(&it.file), lines(it.unread.lines), it.unread.why)
        });
        parts.push(format!(
            "Looks like a table, but could not be read:\n{}",
            lines.collect::<String>()
        ));
    }
    parts.join("\n")
}

fn whole(found: &ForeignTable) -> String {
    let mut text = format!("{}\n{}", found.heading(), table(&found.table));
    if let Some(note) = found.note {
        text.push_str(note);
        text.push('\n');
    }
    text
}

fn table(table: &Table) -> String {
    let columns: Vec<Column> = (0..table.columns.len()).map(|it| Column::new(table, it)).collect();
    let labels = labels(&table.rows);
    let longest = labels.iter().map(String::len).chain([table.heading.len()]).max();
    let label_width = longest.unwrap_or(0).min(MAX_LABEL_WIDTH);

    let mut text = String::new();
    let mut line = |label: &str, cells: &dyn Fn(&Column) -> String| {
        let cells: String = columns.iter().map(cells).collect();
        text.push_str(format!("{label:<label_width$}{cells}").trim_end());
        text.push('\n');
    };
    let below = columns.iter().any(|column| !column.name.bottom.is_empty());
    let heading = escape(&table.heading);
    if columns.iter().any(|column| !column.name.top.is_empty()) {
        line(if below { "" } else { &heading }, &|column| column.right_aligned(&column.name.top));
    }
    if below {
        line(&heading, &|column| column.right_aligned(&column.name.bottom));
    }
    for (number, ((section, _), label)) in table.sections().zip(&labels).enumerate() {
        if let Some(section) = section {
            line(&escape(section), &|_| String::new());
        }
        line(label, &|column| column.cell(number));
    }
    text
}

fn labels(rows: &[Row]) -> Vec<String> {
    let width = rows.iter().map(|row| escape(&row.statistic).len()).max().unwrap_or(0);
    let label = |row: &Row| match width {
        0 => escape(&row.label),
        _ => format!("{:<width$} {}", escape(&row.statistic), escape(&row.label)),
    };
    rows.iter().map(label).collect()
}

/// A column: its texts and their widths.
struct Column {
    name: Name,
    values: Vec<String>,
    percents: Vec<String>,
    value_width: usize,
    percent_width: usize,
}

impl Column {
    fn new(table: &Table, number: usize) -> Self {
        let cells = || table.rows.iter().map(|row| &row.cells[number]);
        let text =
            |figure: &Option<Figure>| figure.as_ref().map_or("-".to_owned(), |it| escape(&it.text));
        let spread = |cell: &Cell| {
            cell.spread.as_ref().map_or(String::new(), |it| format!(" +- {}", escape(&it.text)))
        };
        let value = |cell: &Cell| text(&cell.value) + &spread(cell);
        let values: Vec<String> = cells().map(value).collect();
        let plus = table.signs == Some(Signs::Change);
        let numbers: Vec<Option<String>> = cells()
            .map(|cell| cell.percent.as_ref().map(|percent| number_of(percent, plus)))
            .collect();
        let width = numbers.iter().flatten().map(String::len).max();
        let width = width.map(|longest| longest.max(MIN_PERCENT_WIDTH));
        let percents: Vec<String> = cells()
            .zip(numbers)
            .map(|(cell, number)| {
                let [open, close] = if cell.marked { ["*", "*"] } else { ["(", ")"] };
                match (number, width) {
                    (Some(number), Some(width)) => format!(" {open}{number:>width$}%{close}"),
                    (None, Some(width)) => " ".repeat(width + 4),
                    (_, None) => String::new(),
                }
            })
            .collect();
        let percent_width = width.map_or(0, |width| width + 4);
        let longest = values.iter().map(String::len).max().unwrap_or(0);
        let needed = MIN_WIDTH.max(2 + longest);
        let name = name(&escape(&table.columns[number]), needed + percent_width - 2);
        let value_width = needed.max((2 + name.longer()).saturating_sub(percent_width));
        Self { name, values, percents, value_width, percent_width }
    }

    fn right_aligned(&self, text: &str) -> String {
        format!("{text:>width$}", width = self.value_width + self.percent_width)
    }

    fn cell(&self, row: usize) -> String {
        let Self { value_width, .. } = self;
        format!("{:>value_width$}{}", self.values[row], self.percents[row])
    }
}

/// A name for a column of `room` letters. One that begins with a version is cut after it, others only if
/// they are too long.
fn name(name: &str, room: usize) -> Name {
    let version = name.starts_with(|first: char| first.is_ascii_digit());
    match version || name.len() > room {
        true => Name::cut(name, room),
        false => Name { top: name.to_owned(), bottom: String::new() },
    }
}

/// The number of a percentage; in a table of changes with an explicit sign.
fn number_of(percent: &Figure, plus: bool) -> String {
    let text = escape(percent.text.trim_start_matches('+'));
    if plus && percent.value >= 0.0 && !text.starts_with('-') { format!("+{text}") } else { text }
}
