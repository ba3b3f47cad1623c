//! Tables of our own reports with words after the figures: cross-checks, and the totals and rankings of an
//! explanation. The part of a row that is not a figure is its label.

use crate::block::{Fixed, Lined, MAX_ODD};
use crate::figure::{figure, is_missing};
use crate::mail::Role;
use crate::row::has_figures;
use crate::table::{Cell, Figure};

/// The headings of the tables of an explanation; the last one is over the labels.
const HEADS: [&[&str]; 4] = [
    &["base", "new", "change", "%", "floor", "luck", "of"],
    &["base", "new", "change", "floor", "entries", "by cost", "function"],
    &["change", "by cost", "by number", "floor", "luck", "of"],
    &["base", "new", "change", "floor", "luck", "counter"],
];
/// The change in percent of the value two columns before.
const PERCENT: &str = "%";
/// Whether a change exceeds luck, as a word.
const LUCK: &str = "luck";
/// The word for an unknown answer.
const UNKNOWN: &str = "?";

/// The headings of cross-checks, after that of the labels.
const CLOCKS: [&str; 5] = ["time", "interval", "instructions", "floor", "reading"];
/// Possible words in the last of these columns; a mail program may have wrapped them onto their own line.
const READINGS: [&str; 6] =
    ["code path", "layout or memory", "hidden", "same", "undecided", "withheld"];
/// The names of the figures below it.
const FIGURES: [&str; 5] = ["time", "interval from", "interval to", "instructions", "floor"];
/// The characters around our verdicts.
const BRACKETS: [char; 5] = ['(', ')', '[', ']', '?'];

/// Splits a row into its label and its figures.
type Take = fn(&[&str], &[&str]) -> Option<(String, Vec<Cell>)>;

/// All of them.
pub fn find(lines: &[Lined<'_>]) -> Vec<Fixed> {
    (0..lines.len()).filter_map(|place| table(lines, place)).collect()
}

/// The headings of the figures of one of our tables whose heads are on this line, and the function that
/// parses its rows.
fn heads(text: &str) -> Option<(&'static [&'static str], Take)> {
    let words: Vec<&str> = text.split_whitespace().take(12).collect();
    let is = |heads: &&&[&str]| heads.join(" ").split(' ').eq(words.iter().copied());
    match HEADS.iter().find(is) {
        Some(heads) => Some((heads, explained)),
        None => (words == CLOCKS).then_some((&FIGURES, beside)),
    }
}

/// The table whose heads are at `place`.
fn table(lines: &[Lined<'_>], place: usize) -> Option<Fixed> {
    let head = lines[place].line;
    let (heads, take) = heads(&head.text)?;
    let mut rows: Vec<(usize, String, Vec<Cell>)> = Vec::new();
    let mut odd = Vec::new();
    // Lines since the last row that are not rows, and those of them that do not look like one.
    let (mut passed, mut others) = (0, Vec::new());
    for (at, Lined { line, .. }) in lines.iter().enumerate().skip(place + 1) {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let same = line.role == Role::Text && line.depth == head.depth;
        match take(heads, &words).filter(|_| same) {
            Some((label, cells)) => {
                passed = 0;
                let figures = |place: &usize| has_figures(&lines[*place].line.text);
                odd.extend(others.drain(..).filter(figures));
                rows.push((at, label, cells));
            }
            None if READINGS.contains(&line.text.trim()) && !rows.is_empty() => {
                let row = rows.len() - 1;
                rows[row].1 += &format!(" {}", line.text.trim());
            }
            None if passed == MAX_ODD || words.is_empty() || self::heads(&line.text).is_some() => {
                break;
            }
            None => {
                passed += 1;
                let into = if is_odd(&words) { &mut odd } else { &mut others };
                into.push(at);
            }
        }
    }
    odd.sort_unstable();
    let last = odd.last().copied().into_iter().chain([rows.last()?.0]).max()?;
    let columns = heads.iter().filter(|head| !is_beside(head));
    let columns = columns.take(rows[0].2.len()).map(|head| (*head).to_owned()).collect();
    Some(Fixed { first: place, last, columns, rows, odd, measured: false })
}

/// Whether a line may be a row with something unreadable. Notes below a table are words after their first
/// figure.
fn is_odd(words: &[&str]) -> bool {
    let begins = |first: char| first.is_ascii_digit() || "+-([?".contains(first);
    let like = |word: &&&str| word.starts_with(begins);
    words.get(1).iter().any(&like) && words.iter().filter(&like).count() > 2
}

/// Whether the text under a head is not a value of its own.
fn is_beside(head: &str) -> bool {
    matches!(head, PERCENT | LUCK)
}

/// A row of an explanation: one word under each head but the last, and the rest under that.
fn explained(heads: &[&str], words: &[&str]) -> Option<(String, Vec<Cell>)> {
    let (_, heads) = heads.split_last()?;
    let mut label = Vec::new();
    let mut cells: Vec<Cell> = Vec::new();
    for (head, word) in heads.iter().zip(words) {
        match *head {
            PERCENT => {
                let new = cells.len().checked_sub(2)?;
                cells[new].percent = cell(word)?.map(|figure| Figure {
                    text: figure.text.trim_end_matches('%').to_owned(),
                    ..figure
                });
            }
            LUCK if figure(word).is_some() => return None,
            LUCK => label.extend(Some(*word).filter(|word| *word != UNKNOWN)),
            _ => cells.push(Cell { value: cell(word)?, ..Cell::default() }),
        }
    }
    let of = words.get(heads.len()..).filter(|of| !of.is_empty())?;
    label.extend(of);
    Some((label.join(" "), cells))
}

/// A row of a cross-check: a name, the gain in time and its interval, in brackets that of instructions,
/// their floor, and a reading.
fn beside(_: &[&str], words: &[&str]) -> Option<(String, Vec<Cell>)> {
    // A name may end with a number, so the rightmost figures count.
    (1..words.len()).rev().find_map(|at| {
        let (name, rest) = words.split_at(at);
        let (values, reading) = gains(rest)?;
        if reading.iter().any(|word| word.contains(|letter: char| letter.is_ascii_digit())) {
            return None;
        }
        let label: Vec<&str> = name.iter().chain(reading).copied().collect();
        let cells = values.into_iter().map(|value| Cell { value, ..Cell::default() });
        Some((label.join(" "), cells.collect()))
    })
}

/// The figures of such a row, and the text after them.
fn gains<'a, 'b>(words: &'a [&'b str]) -> Option<([Option<Figure>; 5], &'a [&'b str])> {
    let (time, rest) = words.split_first()?;
    let (from, to, rest) = match rest {
        [from, "to", to, rest @ ..] => (cell(from)?, cell(to)?, rest),
        [none, rest @ ..] if is_missing(none) => (None, None, rest),
        _ => return None,
    };
    // The brackets mark the verdict, and may be separated from the figure.
    let bare = |word: &&str| !word.trim_matches(BRACKETS).is_empty();
    let mut rest = rest;
    while rest.first().is_some_and(|word| !bare(word)) {
        rest = &rest[1..];
    }
    let (instructions, rest) = rest.split_first()?;
    let (floor, reading) = rest.split_first()?;
    let instructions = cell(instructions.trim_matches(BRACKETS))?;
    Some(([cell(time)?, from, to, instructions, cell(floor)?], reading))
}

/// A figure, or `Some(None)` for a placeholder; `None` if it is neither.
fn cell(word: &str) -> Option<Option<Figure>> {
    match is_missing(word) {
        true => Some(None),
        false => figure(word).map(Some),
    }
}
