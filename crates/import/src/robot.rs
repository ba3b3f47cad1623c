//! Tables of the kernel test robot. A row has a figure for each commit, with its spread and change, and its name at
//! the end of the line.

use crate::block::{Fixed, FixedRow, Lined};
use crate::figure::figure;
use crate::mail::Role;
use crate::row::{MAX_CELLS, Shape};
use crate::table::Cell;

/// The headings over the figures of a commit, and over changes.
const HEADINGS: [&str; 2] = ["%stddev", "%change"];

/// Finds the robot's tables of a mail.
pub fn find(lines: &[Lined<'_>]) -> Vec<Fixed> {
    let mut found: Vec<Fixed> = Vec::new();
    for place in 0..lines.len() {
        let top = found.last().map_or(0, |before| before.last + 1);
        if place >= top {
            found.extend(table(lines, place, top));
        }
    }
    found
}

/// The table whose headings are at `place`.
fn table(lines: &[Lined<'_>], place: usize, top: usize) -> Option<Fixed> {
    let width = headings(&lines[place])?;
    let same = |at: &usize| lines[*at].line.depth == lines[place].line.depth;
    let mut rows = Vec::new();
    let mut last = place;
    let below = (place + 1..lines.len()).take_while(same);
    for at in below.filter(|at| !is_drawn(&lines[*at].line.text)) {
        let Lined { line, .. } = &lines[at];
        let (label, cells) = match row(&line.text, width) {
            Some(row) if line.role == Role::Text => row,
            _ => break,
        };
        rows.push(FixedRow { place: at, label, cells });
        last = at;
    }
    if rows.is_empty() {
        return None;
    }
    let names = place.checked_sub(2).filter(|names| *names >= top && same(names));
    let ruled = names.filter(|names| lines[names + 1].shape == Shape::Rule);
    let words = |at: usize| lines[at].line.text.split_whitespace().map(str::to_owned).collect();
    let columns = ruled.map(words).filter(|names: &Vec<String>| names.len() == width);
    let first = if columns.is_some() { place - 2 } else { place };
    Some(Fixed {
        first,
        last,
        columns: columns.unwrap_or_else(|| vec![String::new(); width]),
        rows,
    })
}

/// The number of commits on a line of headings.
fn headings(lined: &Lined<'_>) -> Option<usize> {
    let words: Vec<&str> = lined.line.text.split_whitespace().take(MAX_CELLS).collect();
    let fits = lined.line.role == Role::Text
        && words.len() > 2
        && words.len() % 2 == 1
        && words.iter().enumerate().all(|(at, word)| *word == HEADINGS[at % 2]);
    fits.then_some(words.len().div_ceil(2))
}

/// Whether a line is blank, or connects headings with columns.
fn is_drawn(text: &str) -> bool {
    text.chars().all(|letter| " \\|/".contains(letter))
}

/// Parses a row: a figure of each commit. Before each but the first stands its change.
fn row(text: &str, width: usize) -> Option<(String, Vec<Cell>)> {
    let mut words = text.split_whitespace().peekable();
    let mut cells = Vec::with_capacity(width);
    for column in 0..width {
        let change = if column > 0 { Some(figure(words.next()?)?) } else { None };
        // Changes of percentages are differences, not percentages of the other commit.
        let percent = change.and_then(|mut change| {
            let number = change.text.strip_suffix('%')?.to_owned();
            change.text = number;
            Some(change)
        });
        let value = Some(figure(words.next()?)?);
        let beside = words.peek().and_then(|word| word.strip_prefix('\u{b1}'));
        let spread = match beside {
            Some(beside) => {
                words.next();
                Some(figure(if beside.is_empty() { words.next()? } else { beside })?)
            }
            None => None,
        };
        cells.push(Cell { value, percent, marked: false, spread });
    }
    let label: Vec<&str> = words.collect();
    let one = label.len() == 1 && label[0].contains(char::is_alphabetic);
    one.then(|| (label[0].to_owned(), cells))
}
