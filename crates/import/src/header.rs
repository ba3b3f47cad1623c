//! The names of columns, on one or two lines above a table.

use std::ops::Range;

use crate::block::{Block, Lined, MAX_ODD, section};
use crate::figure::{figure, is_unit};
use crate::kind;
use crate::names::{JoinedNames, KnownNames, split};
use crate::row::{self, Placed, Shape, is_rule};
use crate::table::{Cell, Figure};

const MAX_NAME: usize = 200;
/// Headings over labels, where names of columns could be taken for a row of figures.
const HEADINGS: [&str; 7] = ["commit", "config", "kernel", "release", "test", "variant", "version"];
/// Headings that could also be a row's label.
const AMBIGUOUS: [&str; 6] = ["benchmark", "case", "clients", "groups", "threads", "workers"];
/// Headings of columns with percentages.
const DIFFERENCES: [&str; 4] = ["diff", "delta", "change", "gain"];

/// Positions of labels and columns.
#[derive(Debug)]
pub struct Geometry {
    pub width: usize,
    label_start: usize,
    /// End of the longest label.
    label_end: usize,
    /// Where each column ends.
    ends: Vec<usize>,
    /// Whether values are aligned.
    aligned: bool,
    /// Whether there are percentages beside the values.
    percent: bool,
    /// Whether at least half of the rows have a label that ends with a whole number, and a first value that is not
    /// one.
    numbered: bool,
}

/// Names over a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// The index of its first line.
    pub first: usize,
    /// The heading over the labels; may be empty.
    pub heading: String,
    /// The lines from the top, each with its texts and their columns.
    lines: Vec<Vec<HeaderPart>>,
    width: usize,
}

/// A text over one column, or over several whose names have run together.
#[derive(Clone, Debug, PartialEq)]
struct HeaderPart {
    first: usize,
    last: usize,
    text: String,
    edge: Option<usize>,
}

/// One or more words on a line.
#[derive(Clone, Copy, Debug)]
struct Group<'a> {
    start: usize,
    end: usize,
    text: &'a str,
}

/// What a line says about columns.
enum Said<'a> {
    /// A name for each column, with the heading over the labels.
    All(&'a str, Vec<Group<'a>>),
    /// Names for some columns, or some that have run together.
    Some(Vec<Group<'a>>),
}

impl Geometry {
    /// The positions of `width` columns; `None` if no row has as many values.
    pub fn of(block: &Block, lines: &[Lined<'_>], width: usize) -> Option<Self> {
        let full = || block.rows.iter().filter(|(_, cells)| cells.len() >= width);
        let at =
            |column: usize| full().map(move |(_, cells)| cells[cells.len() - width + column].end);
        full().next()?;
        let label = |place: usize, start: usize| lines[place].line.text[..start].trim_end().len();
        let labels = full().map(|(place, cells)| label(*place, cells[cells.len() - width].start));
        let gaps = full().all(|(place, _)| lines[*place].line.text.trim_start().contains("  "));
        let end = |column: usize| {
            let mut ends: Vec<usize> = at(column).collect();
            ends.sort_unstable();
            ends.get(ends.len() / 2).copied()
        };
        // If a label ends with a number, a row that lacks its last value can seem complete.
        let last = end(width - 1)?;
        let near = at(width - 1).filter(|it| last.abs_diff(*it) <= 2).count();
        let straight = 3 * near >= 2 * full().count();
        Some(Self {
            width,
            label_start: full().map(|(place, _)| indent(&lines[*place].line.text)).max()?,
            label_end: labels.max()?,
            ends: (0..width).filter_map(end).collect(),
            aligned: gaps && straight,
            percent: block.percent,
            numbered: 2 * full().filter(|row| is_numbered(lines, row, width)).count()
                >= full().count(),
        })
    }

    /// Whether something that is not a figure stands in the area of the columns, before the values of a row that
    /// lacks some.
    pub fn has_odd_label(&self, label: &str) -> bool {
        let label = label.trim_end();
        let last = label.rsplit(' ').next().unwrap_or_default();
        label.len() > self.label_end && last.contains(|letter: char| letter.is_ascii_digit())
    }

    /// Whether a row's first cell is the number in its label, because the row lacks a value.
    pub fn is_number_of_label(&self, cells: &[Placed]) -> bool {
        self.numbered && cells.len() == self.width && is_whole(&cells[0])
    }

    /// The end of each column; `None` where the place of a value does not tell its column.
    pub fn stand(&self) -> Option<&[usize]> {
        self.aligned.then_some(&self.ends)
    }

    /// Whether text that ends at `end` is among the labels.
    pub fn is_label(&self, end: usize) -> bool {
        self.aligned && end <= self.label_end
    }
}

impl Header {
    /// The names of the columns, their lines joined by dashes; empty where there is none.
    pub fn columns(&self, known: &KnownNames) -> Vec<String> {
        let mut columns = vec![String::new(); self.width];
        for part in self.lines.iter().flatten() {
            let names = match part.last - part.first {
                0 => vec![part.text.clone()],
                more => {
                    let joined = JoinedNames { text: &part.text, names: more + 1, edge: part.edge };
                    split(&joined, known).unwrap_or_default()
                }
            };
            for (column, name) in columns[part.first..].iter_mut().zip(names) {
                if !column.is_empty() {
                    column.push('-');
                }
                column.push_str(&name);
            }
        }
        columns
    }

    /// The indices of its lines.
    pub fn places(&self) -> Range<usize> {
        self.first..self.first + self.lines.len()
    }

    /// Adds its unambiguous names to the known ones.
    pub fn teach(&self, known: &mut KnownNames) {
        let parts = self.lines.iter().flatten();
        parts.filter(|part| part.first == part.last).for_each(|part| known.learn(&part.text));
    }
}

/// Whether the label before a row's last `width` values ends with a whole number, and the first of these values is
/// not one.
fn is_numbered(lines: &[Lined<'_>], (place, cells): &(usize, Vec<Placed>), width: usize) -> bool {
    let first = &cells[cells.len() - width];
    let label = lines[*place].line.text[..first.start].trim_end();
    let (_, number) = label.rsplit_once(' ').unwrap_or_default();
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    digits && !is_whole(first)
}

fn is_whole(placed: &Placed) -> bool {
    let Cell { value, percent, spread, .. } = &placed.cell;
    let digits = |figure: &Figure| figure.text.bytes().all(|byte| byte.is_ascii_digit());
    value.as_ref().is_some_and(digits) && percent.is_none() && spread.is_none()
}

/// Whether a column of this name holds percentages.
pub fn is_difference(name: &str) -> bool {
    let shown = name.trim_matches(|letter: char| !letter.is_ascii_alphabetic() && letter != '%');
    (shown.starts_with('%') && shown.trim_start_matches('%').len() < 12) || is_change(name)
}

/// Whether a column of this name is a difference between two values.
pub fn is_change(name: &str) -> bool {
    let word = name.trim_matches(|letter: char| !letter.is_ascii_alphabetic());
    DIFFERENCES.contains(&&*word.to_ascii_lowercase())
}

/// Whether a word is a heading over labels, even if what follows it looks like figures.
pub fn is_heading(word: &str) -> bool {
    word.starts_with('#') || HEADINGS.contains(&&*heading(word)) || is_ambiguous(word)
}

/// Whether a line has only names of columns, beginning with a heading over labels.
pub fn is_headed(text: &str) -> bool {
    let groups = groups(text, 2);
    let names = groups.iter().all(|group| figure(group.text).is_none());
    groups.len() > 1 && names && HEADINGS.contains(&&*heading(groups[0].text))
}

/// Whether a word that may be a heading over labels may also be a label.
pub fn is_ambiguous(word: &str) -> bool {
    AMBIGUOUS.contains(&&*heading(word))
}

fn heading(word: &str) -> String {
    word.strip_suffix(':').unwrap_or(word).to_ascii_lowercase()
}

/// The header over the row at `from`. Lines above `top` do not belong to it.
pub fn find(lines: &[Lined<'_>], from: usize, top: usize, geometry: &Geometry) -> Option<Header> {
    let depth = lines[from].line.depth;
    let mut place = from;
    let mut blanks = usize::from(geometry.aligned || geometry.width == 1);
    let mut odd = MAX_ODD;
    let found = loop {
        place = above_rules(lines, place, top)?;
        if lines[place].shape == Shape::Blank && blanks > 0 {
            blanks -= 1;
            continue;
        }
        match said(&lines[place].line.text, geometry) {
            Some(names @ Said::All(..)) => break names,
            _ if is_ruled_title(lines, place, top) => {}
            _ if odd > 0 && is_row(&lines[place].line.text) => odd -= 1,
            _ if geometry.width > 1 && section(lines, place).is_some() => {}
            other => break other?,
        }
    };
    if lines[place].line.depth != depth {
        return None;
    }
    let above = place.checked_sub(1).filter(|above| *above >= top);
    let above = above.filter(|above| lines[*above].line.depth == depth);
    let upper = above.and_then(|above| said(&lines[above].line.text, geometry));
    let one = |heading: &str, groups: &[Group<'_>]| Header {
        first: place,
        heading: heading.to_owned(),
        lines: vec![each(groups)],
        width: geometry.width,
    };
    let two = |heading: &str, lines: [Vec<HeaderPart>; 2]| Header {
        first: place - 1,
        heading: heading.to_owned(),
        lines: lines.to_vec(),
        width: geometry.width,
    };
    match (upper, found) {
        (Some(Said::All("", upper)), Said::All(heading, lower)) if belongs(&upper, geometry) => {
            Some(two(heading, [each(&upper), each(&lower)]))
        }
        (Some(Said::Some(upper)), Said::All(heading, lower)) if geometry.aligned => {
            match below(&upper, &lower) {
                Some(parts) => Some(two(heading, [parts, each(&lower)])),
                None => Some(one(heading, &lower)),
            }
        }
        (_, Said::All(heading, lower)) => Some(one(heading, &lower)),
        (Some(Said::All(heading, upper)), Said::Some(lower)) if geometry.aligned => {
            Some(two(heading, [each(&upper), below(&lower, &upper)?]))
        }
        (Some(Said::All(heading, upper)), Said::Some(lower)) if belongs(&upper, geometry) => {
            Some(two(heading, [each(&upper), vec![over_all(&lower, geometry)]]))
        }
        _ => None,
    }
}

/// The next line above `from` that is neither a rule nor dots.
fn above_rules(lines: &[Lined<'_>], from: usize, top: usize) -> Option<usize> {
    let mut above = (top..from).rev();
    above.find(|place| !matches!(lines[*place].shape, Shape::Rule | Shape::Ellipsis))
}

/// Whether a line is a title between two rules.
pub fn is_ruled_title(lines: &[Lined<'_>], place: usize, top: usize) -> bool {
    let ruled = |place: usize| lines.get(place).is_some_and(|lined| lined.shape == Shape::Rule);
    place > top && ruled(place - 1) && ruled(place + 1) && lines[place].shape == Shape::Other
}

fn indent(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

/// Whether a line above names holds names too, and is not a title. In a table without aligned columns only versions
/// and a repeated name can be told from words.
fn belongs(upper: &[Group<'_>], geometry: &Geometry) -> bool {
    let version = |group: &Group<'_>| group.text.contains(|letter: char| letter.is_ascii_digit());
    let repeated = geometry.width > 1 && upper.iter().all(|group| group.text == upper[0].text);
    geometry.aligned || repeated || upper.iter().all(version)
}

/// What a line says about the columns, if it can consist of names.
fn said<'a>(text: &'a str, geometry: &Geometry) -> Option<Said<'a>> {
    let width = geometry.width;
    let single = width == 1 && !text.trim().contains(' ') && text.ends_with(':');
    let text = if single { text.trim_end_matches(':') } else { text };
    if text.is_empty() || text.ends_with(['.', ',', ':', ';', '?', '!']) && !text.ends_with("...") {
        return None;
    }
    let clean = |mut groups: Vec<Group<'a>>| {
        groups.retain(|group| !is_rule(group.text));
        if geometry.percent {
            while groups.len() > 1 && groups.last().is_some_and(|last| is_difference(last.text)) {
                groups.pop();
            }
        }
        groups
    };
    let words = clean(groups(text, 1));
    let wide = clean(groups(text, 2));
    if words.iter().any(|word| word.text.len() > MAX_NAME) {
        return None;
    }
    // Versions are unambiguous, even if the line has lost its indent.
    let version = |group: &Group<'_>| {
        group.text.starts_with(|first: char| first.is_ascii_digit()) && group.text.contains('.')
    };
    let over_values = |groups: &[Group<'_>]| match groups.first() {
        Some(first) => {
            !geometry.aligned
                || first.end > geometry.label_end && first.start > geometry.label_start
                || groups.len() == width && groups.iter().all(version)
        }
        None => false,
    };
    // A row with something that is not a figure is not names either. But without a heading over the labels, shares,
    // times and hashes may be names.
    let names = geometry.aligned && width > 1 && words.len() == width && over_values(&words);
    if is_row(text) && !(names && words.iter().all(|word| may_name(word.text))) {
        return None;
    }
    for groups in [&words, &wide] {
        let names = groups.len() == width && over_values(groups);
        if names && (width > 1 || single || geometry.aligned) {
            return Some(Said::All("", groups.clone()));
        }
    }
    for groups in [&words, &wide] {
        if let [first, names @ ..] = groups.as_slice() {
            let heading = match geometry.aligned {
                true => first.start < geometry.label_end && over_values(names),
                false => is_heading(first.text),
            };
            // Figures are not names either, unless a heading says so.
            let figures = names.iter().all(|name| figure(name.text).is_some());
            let decimals = figures && names.iter().any(|name| name.text.contains('.'));
            let word = figure(first.text).is_none();
            // Figures with a comment at one of them are a row.
            let commented = names.len() > 1
                && names.iter().all(|name| figure(first_word(name.text)).is_some())
                && names.iter().any(|name| name.text.contains(' '));
            let heading = heading && word && (!(decimals || commented) || is_heading(first.text));
            if names.len() == width && width > 1 && heading {
                return Some(Said::All(first.text, names.to_vec()));
            }
        }
    }
    let some = words.len() < width && over_values(&words);
    some.then_some(Said::Some(words))
}

/// Whether a line has figures that cannot be names, such as values with their units.
pub fn is_row(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let known = kind::has_known_label(text);
    words.any(|word| is_measured(word) || known && figure(word).is_some())
        || groups(text, 2).iter().any(|group| is_quantity(group.text))
        || row::has_beside(text)
}

/// Whether a word is a figure that cannot be a name: a time, a share, or one with more digits than versions,
/// sizes and dates have.
fn is_measured(word: &str) -> bool {
    let Some(figure) = figure(word) else {
        return false;
    };
    let (whole, decimals) = word.split_once('.').unwrap_or((word, ""));
    let date = whole.len() == 8 && (whole.starts_with("20") || whole.starts_with("19"));
    word.ends_with(['s', '%'])
        || decimals.len() > 3
        || !decimals.is_empty() && (whole.len() > 2 || figure.value < 0.0)
        || whole.len() > 7 && !date
}

/// Whether a word can name a column among others: no decimal number except shares and times, and no
/// percentage beside a value.
fn may_name(word: &str) -> bool {
    let plain = !word.contains('.') || word.ends_with(['s', '%']) || !is_measured(word);
    plain && !row::has_beside(word)
}

fn first_word(text: &str) -> &str {
    text.split(' ').next().unwrap_or_default()
}

/// Whether a text is a figure and its unit, as `52.6 us` is.
fn is_quantity(text: &str) -> bool {
    let is_figure = |word: &str| figure(word).is_some();
    text.split_once(' ').is_some_and(|(value, unit)| is_figure(value) && is_unit(unit))
}

/// Joins words with fewer than `gap` spaces between them.
fn groups(text: &str, gap: usize) -> Vec<Group<'_>> {
    let mut groups = Vec::<Group<'_>>::new();
    let mut place = 0;
    for word in text.split(' ') {
        let (start, end) = (place, place + word.len());
        place = end + 1;
        if word.is_empty() || matches!(word, "|" | "/") {
            continue;
        }
        match groups.last_mut().filter(|last| start - last.end < gap) {
            Some(last) => *last = Group { start: last.start, end, text: &text[last.start..end] },
            None => groups.push(Group { start, end, text: word }),
        }
    }
    groups
}

/// Unambiguous names, one per column.
fn each(groups: &[Group<'_>]) -> Vec<HeaderPart> {
    let parts = groups.iter().enumerate().map(|(column, group)| HeaderPart {
        first: column,
        last: column,
        text: group.text.to_owned(),
        edge: None,
    });
    parts.collect()
}

/// The names that each of `groups` is above or below; `None` if two match the same one.
fn below(groups: &[Group<'_>], names: &[Group<'_>]) -> Option<Vec<HeaderPart>> {
    let mut parts = Vec::<HeaderPart>::new();
    for group in groups {
        let touches = |name: &Group<'_>| group.start < name.end && name.start < group.end;
        let distance = |column: &usize| names[*column].end.abs_diff(group.end);
        let (first, last) = match names.iter().position(touches) {
            Some(first) => (first, names.iter().rposition(touches)?),
            None => {
                let nearest = (0..names.len()).min_by_key(distance)?;
                (nearest, nearest)
            }
        };
        if parts.last().is_some_and(|before| before.last >= first) {
            return None;
        }
        let edge = edge(group, names, first);
        parts.push(HeaderPart { first, last, text: group.text.to_owned(), edge });
    }
    Some(parts)
}

/// One part with all names, where some of them have run together and positions do not determine columns.
fn over_all(groups: &[Group<'_>], geometry: &Geometry) -> HeaderPart {
    let text = groups.iter().map(|group| group.text).collect();
    HeaderPart { first: 0, last: geometry.width - 1, text, edge: None }
}

/// The number of letters of `group` in the column `first`, if its name begins with space to spare in that column.
fn edge(group: &Group<'_>, names: &[Group<'_>], first: usize) -> Option<usize> {
    let width = names.get(first + 1)?.end.checked_sub(names[first].end)?;
    let end = names[first].end;
    let room = group.start > end.checked_sub(width)?;
    room.then(|| end.checked_sub(group.start))?
}
