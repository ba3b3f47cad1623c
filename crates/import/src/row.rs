//! A line taken apart: words, figures, percentages; and where they stand.

use crate::figure::{self, figure};
use crate::table::{Cell, Figure};

/// More cells than this no table has.
pub const MAX_CELLS: usize = 64;

/// A value on a line, with the percentage after it.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// Where it begins.
    pub start: usize,
    /// Where it ends, percentage included.
    pub end: usize,
    /// What it says.
    pub cell: Cell,
}

/// What a line looks like.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Nothing on it.
    Blank,
    /// Dashes or the like from end to end.
    Rule,
    /// Dots that stand for rows left out.
    Ellipsis,
    /// A label and values to the end of the line.
    Row(Vec<Placed>),
    /// Anything else.
    Other,
}

/// Something on a line.
struct Atom {
    start: usize,
    end: usize,
    what: What,
}

enum What {
    Word,
    Value(Option<Figure>),
    Percent(Option<Figure>, bool),
}

/// What `text` looks like.
pub fn shape(text: &str) -> Shape {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Shape::Blank;
    }
    if is_rule(trimmed) {
        return Shape::Rule;
    }
    if matches!(trimmed, "..." | "[...]" | "…") {
        return Shape::Ellipsis;
    }
    let atoms = atoms(text);
    let cells = cells(&atoms);
    let labelled = cells.first().is_some_and(|cell| !text[..cell.start].trim().is_empty());
    let any = cells.iter().any(|placed| placed.cell.value.is_some());
    match labelled && any && cells.len() <= MAX_CELLS {
        true => Shape::Row(cells),
        false => Shape::Other,
    }
}

/// Whether `word` is nothing but a line drawn.
pub fn is_rule(word: &str) -> bool {
    word.len() >= 3
        && word.bytes().all(|byte| matches!(byte, b'-' | b'=' | b'_' | b'+' | b'|' | b' '))
}

/// How many figures stand on a line, wherever they do.
pub fn figures(text: &str) -> usize {
    let is_figure =
        |atom: &&Atom| matches!(atom.what, What::Value(Some(_)) | What::Percent(Some(_), _));
    atoms(text).iter().filter(is_figure).count()
}

/// The values at the end of a line.
fn cells(atoms: &[Atom]) -> Vec<Placed> {
    let mut cells = Vec::new();
    let mut rest = atoms;
    loop {
        let (value, percent, before) = match rest {
            [before @ .., value, percent @ Atom { what: What::Percent(..), .. }] => {
                (value, Some(percent), before)
            }
            [before @ .., value] => (value, None, before),
            [] => break,
        };
        let What::Value(figure) = &value.what else {
            break;
        };
        let mut cell = Cell { value: figure.clone(), ..Cell::default() };
        let mut end = value.end;
        if let Some(Atom { end: after, what: What::Percent(figure, marked), .. }) = percent {
            cell.percent = figure.clone();
            cell.marked = *marked;
            end = *after;
        }
        cells.push(Placed { start: value.start, end, cell });
        rest = before;
    }
    cells.reverse();
    cells
}

fn atoms(text: &str) -> Vec<Atom> {
    let mut atoms = Vec::new();
    let mut place = 0;
    while let Some(found) = text[place..].find(|letter: char| letter != ' ') {
        place += found;
        if let Some((length, figure, marked)) = percent(&text[place..]) {
            let what = What::Percent(figure, marked);
            atoms.push(Atom { start: place, end: place + length, what });
            place += length;
            continue;
        }
        let end = word_end(text, place);
        let word = &text[place..end];
        let apart = text[..place].ends_with("  ");
        push_word(&mut atoms, marked(word).filter(|_| apart).unwrap_or(word), place);
        place = end;
    }
    atoms
}

/// Where the word that begins at `start` ends: at a space, or at a percentage that runs into it.
fn word_end(text: &str, start: usize) -> usize {
    let rest = &text[start..];
    let end = rest.find(' ').unwrap_or(rest.len());
    let opening = rest[..end].match_indices(['(', '*', '[']).map(|(place, _)| place);
    let is_number = |word: &str| figure(word).is_some();
    // A word has few brackets, but a hostile one may have many: the first decides.
    let stuck = opening
        .filter(|place| *place > 0)
        .take(1)
        .find(|place| is_number(&rest[..*place]) && percent(&rest[*place..]).is_some());
    start + stuck.unwrap_or(end)
}

/// What stands between the marks of our own verdicts, as in `[76]` and `?76?`.
fn marked(word: &str) -> Option<&str> {
    let inner = word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let inner = inner.or_else(|| word.strip_prefix('?')?.strip_suffix('?'));
    inner.filter(|inner| figure(inner).is_some())
}

fn push_word(atoms: &mut Vec<Atom>, word: &str, start: usize) {
    let mut push = |start, end, what| atoms.push(Atom { start, end, what });
    let end = start + word.len();
    if let Some(figure) = figure(word) {
        push(start, end, What::Value(Some(figure)));
    } else if figure::is_missing(word) {
        push(start, end, What::Value(None));
    } else if let Some(pieces) = figure::run_together(word) {
        let mut start = start;
        for piece in pieces {
            push(start, start + piece.len(), What::Value(figure(piece)));
            start += piece.len();
        }
    } else {
        push(start, end, What::Word);
    }
}

/// A percentage in brackets or between marks at the start of `text`: its length, the figure without
/// the percent sign, and whether it is between stars. Square brackets and question marks are what
/// our own verdicts are printed in, and a dash in brackets is a percentage that does not exist.
fn percent(text: &str) -> Option<(usize, Option<Figure>, bool)> {
    let close = match text.bytes().next()? {
        b'(' => b')',
        b'[' => b']',
        mark @ (b'*' | b'?') => mark,
        _ => return None,
    };
    let inner = &text[1..];
    let end = inner.bytes().take(64).position(|byte| byte == close)?;
    let figure = match inner[..end].trim() {
        "-" => None,
        text => Some(figure(text.strip_suffix('%')?.trim_end())?),
    };
    let number = figure.as_ref().is_none_or(|figure| !figure.text.ends_with(['s', '%']));
    number.then_some((end + 2, figure, close == b'*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells_of(text: &str) -> Vec<String> {
        let Shape::Row(cells) = shape(text) else {
            return Vec::new();
        };
        let shown = |placed: &Placed| {
            let text = |figure: &Option<Figure>| {
                figure.as_ref().map_or("-".to_owned(), |figure| figure.text.clone())
            };
            let star = if placed.cell.marked { "*" } else { "" };
            format!("{}/{}{star}", text(&placed.cell.value), text(&placed.cell.percent))
        };
        cells.iter().map(shown).collect()
    }

    #[test]
    fn values_come_with_their_percentages() {
        let row = "Amean     syst-A    11664.40 (   0.00%)    11616.17 *   0.41%*";
        assert_eq!(cells_of(row), ["11664.40/0.00", "11616.17/0.41*"]);
        assert_eq!(cells_of("a 1.55 (0.00%) 9.31 *-499.26%*"), ["1.55/0.00", "9.31/-499.26*"]);
        assert_eq!(
            cells_of("a 5 (  -1.00%) 6 [  -2.50%] 7 ?1.00%?"),
            ["5/-1.00", "6/-2.50", "7/1.00"]
        );
        assert_eq!(cells_of("a 5 (   0.00%) 6 (      -)"), ["5/0.00", "6/-"]);
        assert_eq!(cells_of("a   1 (    +0.00%)  2 (  -27.83%)"), ["1/+0.00", "2/-27.83"]);
    }

    #[test]
    fn columns_may_run_into_each_other() {
        assert_eq!(
            cells_of("a 1000.00(-10.00%)2000.00( 5.00%)"),
            ["1000.00/-10.00", "2000.00/5.00"]
        );
        assert_eq!(cells_of("a 1000.002000.00"), ["1000.00/-", "2000.00/-"]);
    }

    #[test]
    fn values_may_be_percentages_times_or_missing() {
        assert_eq!(cells_of("Kswapd efficiency  99%   81%"), ["99%/-", "81%/-"]);
        assert_eq!(cells_of("-o bhash=101073   6m04s   17m43s"), ["6m04s/-", "17m43s/-"]);
        assert_eq!(cells_of("x   -   3.0"), ["-/-", "3.0/-"]);
    }

    #[test]
    fn values_may_be_marked_as_verdicts_are() {
        assert_eq!(cells_of("THP fault alloc   78   [76]   ?7.5?"), ["78/-", "76/-", "7.5/-"]);
        for text in ["as said elsewhere [1]", "x   [a]", "x   [5"] {
            assert_eq!(cells_of(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn other_lines_are_no_rows() {
        for text in
            ["", "   ", "1 2 3", "words alone", "12 apples", "-----", "x - -", "...", "a 1 (x)"]
        {
            assert_eq!(cells_of(text), Vec::<String>::new(), "{text}");
        }
        assert_eq!(shape("------  -----"), Shape::Rule);
        assert_eq!(shape("..."), Shape::Ellipsis);
    }

    #[test]
    fn hostile_lines_take_little_time() {
        for unit in ["(", "*1", "1(", "1.00", "(1%)", "- "] {
            shape(&unit.repeat(4096 / unit.len()));
        }
    }
}
