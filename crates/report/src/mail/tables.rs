//! The tables, split by columns where they are too wide. The printed tables can be parsed again: each part
//! has the baseline, and each percentage follows from the values beside it.

use compare::{Comparison, Kind, Table};
use model::{Mode, count};

use super::{LAYOUT, WIDTH};
use crate::ascii::{escape, fold};
use crate::exact::luck_list;
use crate::heading;
use crate::table::{Column, NOTHING, below, grid, labels, moved, vanishes};
use crate::verdicts;

/// Labels are not cut shorter than this, even where two columns do not fit beside them.
const MIN_LABEL: usize = 19;
/// Longer names of columns are cut short, where they cannot be cut in two.
const MAX_NAME: usize = 20;
/// Significant digits of a baseline below 1.
const DIGITS: i32 = 2;
/// Most digits of a value.
const MAX_DIGITS: i32 = 14;
/// Larger gains, in percent, are not printed.
const MAX_GAIN: f64 = 1e6;

/// Names too long for their place, each with the mark that replaces its end.
#[derive(Default)]
struct Long(Vec<String>);

impl Long {
    /// `name`, or as much of it as fits into `room` letters and a mark.
    fn shorten(&mut self, name: &str, room: usize) -> String {
        let number = match self.0.iter().position(|long| long == name) {
            Some(place) => place + 1,
            None => self.0.len() + 1,
        };
        let mark = format!("~{number}");
        if number > self.0.len() {
            self.0.push(name.to_owned());
        }
        format!("{}{mark}", name[..room.saturating_sub(mark.len())].trim_end())
    }

    fn legend(&self) -> String {
        let names = (1..).zip(&self.0);
        names
            .map(|(number, name)| fold(WIDTH, "", "    ", &format!("~{number}: \"{name}\"")))
            .collect()
    }
}

/// All tables, or that there are none.
pub fn text(comparison: &Comparison) -> String {
    if comparison.tables.is_empty() {
        return fold(WIDTH, "", "", NOTHING);
    }
    let tables = comparison.tables.iter().map(|table| one(table, comparison));
    tables.collect::<Vec<_>>().join("\n")
}

fn one(table: &Table, comparison: &Comparison) -> String {
    let mut long = Long::default();
    let (moved, still) = moved(table);
    let table = &readable(&moved);
    let mut text = fold(WIDTH, "", "", &heading::words(table, comparison));
    let sections = table.rows.chunk_by(|one, other| one.section == other.section);
    let sections = sections.map(|rows| {
        let title = rows.first().and_then(|row| row.section);
        let section = Table { rows: rows.to_vec(), ..table.clone() };
        let parts = section_parts(&section, comparison, &mut long).join("\n");
        title.map_or(String::new(), |title| format!("{title}:\n")) + &parts
    });
    text.push_str(&sections.collect::<Vec<_>>().join("\n"));
    text.push_str(&long.legend());
    let columns = 1..comparison.variants.len();
    let beyond = columns.filter_map(|column| beyond_luck(table, comparison, column));
    let below = below(table, comparison, false).into_iter();
    for sentence in still.sentences().into_iter().chain(below).chain(beyond) {
        text.push_str(&fold(WIDTH, "", "", &sentence));
    }
    text + &verdicts::beside(table, comparison, &LAYOUT)
}

/// The rows of `table` beside the baseline and as many other columns as fit, part by part.
fn section_parts(table: &Table, comparison: &Comparison, long: &mut Long) -> Vec<String> {
    let variants = comparison.variants.iter().enumerate();
    let columns = variants.map(|(number, variant)| {
        Column::new(table, number, &short_name(&escape(&variant.name), long), None)
    });
    let columns: Vec<Column> = columns.collect();
    let widest = columns.iter().skip(1).map(Column::width).max().unwrap_or(0);
    let two = widest + columns.first().map_or(0, Column::width);
    let room = WIDTH.saturating_sub(two).max(MIN_LABEL);
    let labels = labels(table, comparison).into_iter().map(|label| short_label(label, room, long));
    let labels: Vec<String> = labels.collect();
    let label = labels.iter().map(String::len).max().unwrap_or(0);
    let parts = parts(&columns, WIDTH.saturating_sub(label));
    parts.iter().map(|part| grid(table, &labels, part)).collect()
}

/// The baseline with as many of the other columns as fit, until all have been printed.
fn parts(columns: &[Column], room: usize) -> Vec<Vec<&Column>> {
    let Some((baseline, others)) = columns.split_first() else {
        return Vec::new();
    };
    let mut parts = vec![vec![baseline]];
    for column in others {
        let fits = |part: &Vec<&Column>| {
            part.len() == 1
                || part.iter().map(|it| it.width()).sum::<usize>() + column.width() <= room
        };
        match parts.last_mut().filter(|part| fits(part)) {
            Some(part) => part.push(column),
            None => parts.push(vec![baseline, column]),
        }
    }
    parts
}

fn short_label(label: String, room: usize, long: &mut Long) -> String {
    if label.len() <= room {
        return label;
    }
    // The statistic stays: the name behind it is too long.
    let name = label.find(' ').map_or(0, |space| label.len() - label[space..].trim_start().len());
    let (statistic, name) = label.split_at(name);
    match statistic.len() < room / 2 {
        true => format!("{statistic}{}", long.shorten(name, room - statistic.len())),
        false => long.shorten(&label, room),
    }
}

fn short_name(name: &str, long: &mut Long) -> String {
    match crate::header::Name::cut(name, MAX_NAME).longer() <= MAX_NAME {
        true => name.to_owned(),
        false => long.shorten(name, MAX_NAME),
    }
}

/// The table in a form that can be parsed again. Rows without any value are left out. A baseline with fewer
/// than two digits has more decimals, so that the percentages follow from what is printed; one that is printed
/// as 0 has no percentages, as in the text. Where values lie too far apart for a percentage to be meaningful,
/// there is none.
fn readable(table: &Table) -> Table {
    let mut table = table.clone();
    table.rows.retain(|row| row.values().any(|value| value.is_some()));
    for row in &mut table.rows {
        let values = || row.values().flatten().filter(|value| *value != 0.0);
        // Digits before the point, less 1; for fractions minus the zeros after it, less 1.
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
        row.cells.iter_mut().for_each(|cell| cell.gain = cell.gain.take_if(|gain| says(gain)));
    }
    table
}

/// The figures of a table without verdicts that differ beyond luck, in exact mode.
fn beyond_luck(table: &Table, comparison: &Comparison, column: usize) -> Option<String> {
    if comparison.mode != Mode::Exact || table.kind == Kind::Metrics {
        return None;
    }
    let means = || table.rows.iter().filter(|row| row.value(column).is_some());
    let differs = means().filter(|row| row.beyond_luck(column) == Some(true));
    let names: Vec<String> = differs.map(|row| escape(&row.metric)).collect();
    let unknown = means().filter(|row| row.beyond_luck(column).is_none()).count();
    let name = escape(&comparison.variants[column].name);
    let mut said = Vec::new();
    if !names.is_empty() {
        said.push(format!("Beyond luck in {name} ({}): {}.", luck_list(), names.join(", ")));
    }
    if unknown > 0 {
        said.push(format!("Undecided in {name}: {unknown} of {}.", count(table.rows.len(), "row")));
    }
    (!said.is_empty()).then(|| said.join(" "))
}
