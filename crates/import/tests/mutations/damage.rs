//! Damage to lines of a table by mail programs, people and scripts.

use std::collections::BTreeMap;
use std::ops::Range;

use import::{Document, Row};

/// Mail programs wrap here.
const MARGIN: usize = 72;
/// How far from its column's end a value still stands in it.
const NEAR: usize = 2;

type Printed = (Option<String>, Option<String>);

/// A text with one damaged line.
pub struct Damaged {
    pub what: String,
    pub text: String,
    /// The new place of each row of the old text; empty if nothing is left of it.
    pub places: BTreeMap<usize, Vec<usize>>,
    /// Rows of the old text, and what may be read of them now; others are unchanged.
    pub wanted: Vec<(usize, Vec<Printed>)>,
    /// Whether the names of columns may change.
    pub renames: bool,
}

/// Where a cell stands on its line.
struct Spot {
    value: Range<usize>,
    /// The place of the percentage, including brackets or stars.
    percent: Option<Range<usize>>,
    printed: Printed,
}

impl Spot {
    fn all(&self) -> Range<usize> {
        self.value.start..self.percent.as_ref().map_or(self.value.end, |percent| percent.end)
    }
}

/// The cells of a row, if all of them are on its line.
fn spots(line: &str, row: &Row) -> Option<Vec<Spot>> {
    let mut end = line.len();
    let mut spots = Vec::new();
    for cell in row.cells.iter().rev() {
        let value = cell.value.as_ref()?.text.clone();
        let percent = cell.percent.as_ref().map(|it| it.text.clone());
        let mut bracket = None;
        if let Some(text) = &percent {
            let start = line[..end].rfind(text.as_str())?;
            let opens = line[..start].rfind(['(', '*', '[']).unwrap_or(start);
            let opens = if line[opens..start].len() > 12 { start } else { opens };
            let closes = line[start..end].find([')', '*', ']']).map(|it| start + it + 1);
            bracket = Some(opens..closes.unwrap_or(start + text.len()));
            end = opens;
        }
        let start = line[..end].rfind(value.as_str())?;
        spots.push(Spot {
            value: start..start + value.len(),
            percent: bracket,
            printed: (Some(value), percent),
        });
        end = start;
    }
    spots.reverse();
    Some(spots)
}

/// All damages to the rows and headers of a text's tables, one at a time.
pub fn damaged(text: &str, before: &Document) -> Vec<Damaged> {
    let lines: Vec<&str> = text.lines().collect();
    let rows: Vec<usize> =
        before.tables.iter().flat_map(|table| &table.rows).map(|row| row.line).collect();
    let mut all = Vec::new();
    for table in &before.tables {
        for row in &table.rows {
            let line = lines[row.line - 1];
            let Some(spots) = spots(line, row) else {
                continue;
            };
            for (what, new, wanted) in of_row(line, &spots) {
                all.push(replaced(&lines, &rows, row.line, &what, &new, wanted));
            }
        }
        let first = table.rows.iter().map(|row| row.line).min().unwrap_or(0);
        for header in table.lines.first..first {
            all.extend(of_header(&lines, &rows, header));
        }
    }
    all
}

/// The text with line `at` replaced by `new` lines.
fn replaced(
    lines: &[&str],
    rows: &[usize],
    at: usize,
    what: &str,
    new: &[String],
    wanted: Vec<Vec<Printed>>,
) -> Damaged {
    let mut text = String::new();
    for (place, line) in lines.iter().enumerate() {
        let own = [(*line).to_owned()];
        let lines = if place + 1 == at { new } else { &own };
        lines.iter().for_each(|line| text += &format!("{line}\n"));
    }
    let moved = |line: usize| match line.cmp(&at) {
        std::cmp::Ordering::Less => vec![line],
        std::cmp::Ordering::Equal => (at..at + new.len()).collect(),
        std::cmp::Ordering::Greater => vec![line + new.len() - 1],
    };
    let places = rows.iter().map(|line| (*line, moved(*line))).collect();
    let wanted = wanted.into_iter().map(|cells| (at, cells)).collect();
    let what = format!("line {at} {what}");
    Damaged { what, text, places, wanted, renames: false }
}

type OfRow = (String, Vec<String>, Vec<Vec<Printed>>);

fn of_row(line: &str, spots: &[Spot]) -> Vec<OfRow> {
    let whole: Vec<Printed> = spots.iter().map(|spot| spot.printed.clone()).collect();
    let without = |column: usize, cell: Printed| {
        let mut cells = whole.clone();
        cells[column] = cell;
        cells
    };
    let nothing = || (None, None);
    let blanked = |range: Range<usize>| {
        let mut text = line.to_owned();
        text.replace_range(range.clone(), &" ".repeat(range.len()));
        text.trim_end().to_owned()
    };
    let deleted = |range: Range<usize>| {
        let blanks = line[..range.start].len() - line[..range.start].trim_end().len();
        let mut text = line.to_owned();
        text.replace_range(range.start - blanks.min(1)..range.end, "");
        text.trim_end().to_owned()
    };
    let mut all: Vec<OfRow> = Vec::new();
    let mut push = |what: String, lines: Vec<String>, wanted: Vec<Vec<Printed>>| {
        all.push((what, lines, wanted));
    };
    let alone = spots.len() == 1;
    for (column, spot) in spots.iter().enumerate() {
        let number = column + 1;
        if !alone {
            let wanted = || vec![without(column, nothing())];
            let shifted = by_place(spots, column);
            push(format!("blanked {number}"), vec![blanked(spot.all())], wanted());
            let wanted = [wanted(), shifted].concat();
            push(format!("deleted {number}"), vec![deleted(spot.all())], wanted);
        }
        if let Some(percent) = &spot.percent {
            let wanted = || vec![without(column, (spot.printed.0.clone(), None))];
            push(format!("percentage blanked {number}"), vec![blanked(percent.clone())], wanted());
            push(format!("percentage deleted {number}"), vec![deleted(percent.clone())], wanted());
        }
        if let Some(next) = spots.get(column + 1) {
            let (end, start) = (spot.all().end, next.value.start);
            let joined = format!("{}{}", &line[..end], &line[start..]);
            // Whole numbers that have run together cannot be told apart.
            if !joined[spot.value.start..].split(' ').next().is_some_and(is_whole) {
                push(format!("joined {number}"), vec![joined], vec![whole.clone()]);
            }
            let apart = format!("{}{}{}", &line[..end], " ".repeat(12), &line[end..]);
            push(format!("apart {number}"), vec![apart], vec![whole.clone()]);
        }
    }
    if let Some(last) = spots.last() {
        let middle = last.value.start + last.value.len() / 2;
        let cut = line[..middle].trim_end().to_owned();
        let left = &line[last.value.start..middle];
        let mut wanted = vec![without(spots.len() - 1, nothing())];
        if left.ends_with(|letter: char| letter.is_ascii_digit()) {
            wanted.push(without(spots.len() - 1, (Some(left.to_owned()), None)));
        }
        if !alone || !left.is_empty() {
            push("cut in a number".into(), vec![cut], wanted);
        }
        if let Some(percent) = &last.percent {
            let cut = line[..percent.start + percent.len() / 2].trim_end().to_owned();
            let wanted = vec![without(spots.len() - 1, (last.printed.0.clone(), None))];
            push("cut in a percentage".into(), vec![cut], wanted);
        }
    }
    for comment in ["   <--", "  # slower", " (see below)", "   <- why 3?"] {
        push(format!("with{comment}"), vec![format!("{line}{comment}")], vec![whole.clone()]);
    }
    push("in tabs".into(), vec![tabbed(line)], vec![whole.clone()]);
    push("deeper".into(), vec![format!("> {line}")], vec![whole.clone()]);
    if let Some(lines) = wrapped(line) {
        push("wrapped".into(), lines, vec![whole.clone()]);
    }
    all
}

fn is_whole(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

/// The columns of the cells if cell `gone` was cut out and those after it moved left, by the places where columns
/// end. `None` if a value is in no column.
fn by_place(spots: &[Spot], gone: usize) -> Vec<Vec<Printed>> {
    let by = spots[gone].all().len() + 1;
    let mut cells = vec![(None, None); spots.len()];
    for (column, spot) in spots.iter().enumerate().filter(|(column, _)| *column != gone) {
        let end = spot.all().end - if column > gone { by } else { 0 };
        let near = |other: &&Spot| other.all().end.abs_diff(end) <= NEAR;
        match spots.iter().position(|other| near(&other)) {
            Some(place) => cells[place] = spot.printed.clone(),
            None => return Vec::new(),
        }
    }
    vec![cells]
}

/// Tabs where eight letters end with at least two blanks.
fn tabbed(line: &str) -> String {
    if line.contains('\t') || line.starts_with('>') || !line.is_ascii() {
        return line.to_owned();
    }
    let mut text = String::new();
    for start in (0..line.len()).step_by(8) {
        let piece = &line[start..line.len().min(start + 8)];
        match piece.strip_suffix("  ").filter(|_| piece.len() == 8) {
            Some(rest) => text += &format!("{}\t", rest.trim_end()),
            None => text += piece,
        }
    }
    text
}

/// The line wrapped at the margin; `None` if it is too short.
fn wrapped(line: &str) -> Option<Vec<String>> {
    let quote = &line[..line.len() - line.trim_start_matches(['>', ' ']).len()];
    let quote = if quote.contains('>') { quote } else { "" };
    let space = line.get(..MARGIN)?.rfind(' ')?;
    let (first, rest) = line.split_at(space);
    let usable = first.trim_end().len() > 20 && rest.len() > 1;
    usable.then(|| vec![first.trim_end().to_owned(), format!("{quote}{}", rest.trim_start())])
}

/// Drops a line of a header, and swaps its names.
fn of_header(lines: &[&str], rows: &[usize], header: usize) -> Vec<Damaged> {
    let line = lines[header - 1];
    let words: Vec<&str> = line.split(' ').collect();
    let swapped: String = words.iter().rev().map(|word| format!("{word} ")).collect();
    let kept = swapped.trim_end().to_owned();
    let mut all = vec![
        replaced(lines, rows, header, "dropped", &[], Vec::new()),
        replaced(lines, rows, header, "blanked", &[String::new()], Vec::new()),
        replaced(lines, rows, header, "backwards", &[kept], Vec::new()),
    ];
    all.iter_mut().for_each(|damaged| damaged.renames = true);
    all
}
