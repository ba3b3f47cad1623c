//! Lays documents out as HTML.

use maud::{Markup, html};

use super::grid;
use super::markup::sentence;
use super::{Block, Column, Holds, Table, Tone};
use crate::ascii::escape;

/// `blocks` below a heading of `level`.
pub fn html(blocks: &[Block], level: u8) -> Markup {
    html! { @for block in blocks { (one(block, level + 1)) } }
}

fn one(block: &Block, level: u8) -> Markup {
    match block {
        Block::Sentence(tone, said) => {
            let class = match tone {
                Tone::Lead => Some("lead"),
                Tone::Plain => None,
                Tone::Note => Some("note"),
            };
            html! { p class=[class] { (sentence(&escape(said))) } }
        }
        // Above a table alone, a title deep in a page is its caption.
        Block::Part(title, blocks) => match &blocks[..] {
            [Block::Table(it)] if level > 2 => table(it, Some(title)),
            _ => html! { (heading(title, level)) (html(blocks, level)) },
        },
        Block::Table(it) => table(it, None),
        Block::Grid(it) => grid::html(it),
        Block::Fold(line, blocks) => html! {
            details { summary { (escape(line)) } (html(blocks, level - 1)) }
        },
        Block::Drawing(drawing) => drawing.clone(),
        Block::Code(lines) => html! {
            pre tabindex="0" { @for line in lines.lines() { (escape(line)) "\n" } }
        },
    }
}

fn heading(title: &str, level: u8) -> Markup {
    let title = named(title);
    html! {
        @match level {
            0..=2 => h2 { (title) },
            3 => h3 { (title) },
            _ => h4 { (title) },
        }
    }
}

fn named(title: &str) -> String {
    escape(title.trim_end_matches(':'))
}

/// A table. What a row is about stays in sight while figures are scrolled.
fn table(Table { columns, rows }: &Table, title: Option<&str>) -> Markup {
    let has_subject = columns.last().is_some_and(|it| it.holds == Holds::Subject);
    let of_words = columns.last().is_some_and(|it| it.holds == Holds::Sentences);
    let is_same = |one: &Vec<String>, other: &Vec<String>| {
        columns[0].holds != Holds::Topics || one[0] == other[0]
    };
    let blocks = rows.chunk_by(is_same);
    html! {
        @if !rows.is_empty() {
            div class="table" {
                table class=[of_words.then_some("notes")] {
                    @if let Some(title) = title { caption { (named(title)) } }
                    @if columns.iter().any(|column| !column.head.is_empty()) {
                        thead { tr {
                            @for column in columns.iter().rev().take(usize::from(has_subject)) {
                                th scope="col" { (column.head) }
                            }
                            @for column in &columns[..columns.len() - usize::from(has_subject)] {
                                th scope="col" class=[class(column)] { (column.head) }
                            }
                        } }
                    }
                    @for block in blocks {
                        tbody {
                            @for (number, row) in block.iter().enumerate() {
                                (line(row, columns, number == 0, block.len()))
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What its cells have, for the style.
fn class(column: &Column) -> Option<&'static str> {
    (column.holds == Holds::Figures).then_some("figure")
}

/// A row of a block of `of` rows with the same first cell.
fn line(row: &[String], columns: &[Column], is_first: bool, of: usize) -> Markup {
    let subject = row.last().filter(|_| columns[row.len() - 1].holds == Holds::Subject);
    let (head, cells) = match subject {
        Some(subject) => (subject, &row[..row.len() - 1]),
        None => (&row[0], &row[1..]),
    };
    let of_topics = columns[0].holds == Holds::Topics;
    let spanned = 1 + columns.len() - row.len();
    let last = cells.len().saturating_sub(1);
    let columns = if subject.is_some() { columns } else { &columns[1..] };
    html! {
        tr {
            @if !of_topics { th scope="row" { (escape(head)) } }
            @else if is_first { th scope="rowgroup" rowspan=(of) { (escape(head)) } }
            @for (place, cell) in cells.iter().enumerate() {
                @let span = (place == last && spanned > 1).then_some(spanned);
                @match columns[place].holds {
                    Holds::Figures => td class=[class(&columns[place])] { (figure(&escape(cell))) },
                    Holds::Words if span.is_none() => td { b { (escape(cell)) } },
                    _ => td colspan=[span] { (sentence(&escape(cell.trim_start()))) },
                }
            }
        }
    }
}

/// Figures with more digits than this before the point are grouped.
const WHOLE_DIGITS: usize = 4;
/// Digits of a group.
const GROUP: usize = 3;

/// A printed figure for a page: digits in groups of three, and a true minus.
pub fn figure(text: &str) -> String {
    let (sign, rest) = match (text.strip_prefix('-'), text.strip_prefix('+')) {
        (Some(rest), _) => ("\u{2212}", rest),
        (_, Some(rest)) => ("+", rest),
        _ => ("", text),
    };
    let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    let (whole, rest) = rest.split_at(digits);
    if whole.is_empty() || whole.len() <= WHOLE_DIGITS {
        // A single dash stands for no figure.
        let is_figure = !whole.is_empty();
        return if is_figure { format!("{sign}{whole}{rest}") } else { text.to_owned() };
    }
    let mut parted = String::from(sign);
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (digits - place) % GROUP == 0 {
            parted.push('\u{202f}');
        }
        parted.push(digit);
    }
    parted + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        let figures = ["1327681769", "-12345.678901", "9999", "-0.14", "-", "1.5e300", "[12345]"];
        let parted = figures.map(|text| figure(text).replace('\u{202f}', "_"));
        let expected = [
            "1_327_681_769", "\u{2212}12_345.678901", "9999", "\u{2212}0.14", "-", "1.5e300",
            "[12345]",
        ];
        assert_eq!(parted, expected);
    }
}
