//! Rows that a mail program has wrapped: a line that ends at the margin, and a next one that begins
//! with figures and cannot stand alone.

use crate::mail::{Line, Role};
use crate::row::{Placed, Shape, shape};

/// Mail programs wrap where the next word would end after this letter, or after one up to [`LAST`].
const FIRST: usize = 56;
/// No mail program that wraps leaves longer lines.
const LAST: usize = 82;

/// Lines of names over a row; in the file twice as many, if they were wrapped.
const NAMES: usize = 2;
/// A line of names that was wrapped has at least this many spaces before the first.
const INDENT: usize = 4;

/// A line, or several that were one.
struct Piece {
    line: Line,
    /// How long the last of them is in the file.
    length: usize,
    /// Whether they are several.
    joined: bool,
}

/// The lines of a mail, those of wrapped rows joined, and those of names over such rows.
pub fn joined(lines: Vec<Line>) -> Vec<Line> {
    let pieces = rows(lines);
    let mut begins = vec![false; pieces.len()];
    let is_row = |piece: &Piece| matches!(shape(&piece.line.text), Shape::Row(_));
    for row in (1..pieces.len()).filter(|row| pieces[*row].joined && !is_row(&pieces[row - 1])) {
        for above in 1..=NAMES {
            match row.checked_sub(2 * above) {
                Some(first) if are_names(&pieces[first], &pieces[first + 1].line) => {
                    begins[first] = true;
                }
                _ => break,
            }
        }
    }
    let mut lines: Vec<Line> = Vec::with_capacity(pieces.len());
    let mut open = false;
    for (piece, begins) in pieces.into_iter().zip(begins) {
        match lines.last_mut().filter(|_| open) {
            Some(before) => append(before, &piece.line),
            None => lines.push(piece.line),
        }
        open = begins;
    }
    lines
}

/// The lines with those of wrapped rows joined.
fn rows(lines: Vec<Line>) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::with_capacity(lines.len());
    for line in lines {
        let length = line.text.chars().count() + 2 * line.depth;
        match pieces.last_mut().filter(|before| is_one_row(before, &line)) {
            Some(before) => {
                append(&mut before.line, &line);
                before.length = length;
                before.joined = true;
            }
            None => pieces.push(Piece { line, length, joined: false }),
        }
    }
    pieces
}

fn append(before: &mut Line, rest: &Line) {
    before.text = format!("{} {}", before.text, rest.text.trim_start());
    before.lines.last = rest.lines.last;
}

/// Whether a line ends where a mail program may have wrapped it before `rest`. A lower depth is that
/// of programs that do not mark what they wrap.
fn is_at_margin(before: &Piece, rest: &Line) -> bool {
    let word = rest.text.split_whitespace().next().unwrap_or_default();
    let is_text = |line: &Line| line.role == Role::Text && !line.text.is_empty();
    let margin = before.length <= LAST && before.length + 1 + word.len() > FIRST;
    let depth = rest.depth == before.line.depth || rest.depth == 0;
    is_text(&before.line) && is_text(rest) && margin && depth
}

/// Whether two lines are one row that was wrapped.
fn is_one_row(before: &Piece, rest: &Line) -> bool {
    let text = rest.text.trim_start();
    if !is_at_margin(before, rest) || !is_rest(text) {
        return false;
    }
    let before = &before.line.text;
    match (shape(&format!("{before} {text}")), shape(opened(before))) {
        (Shape::Row(whole), Shape::Row(first)) => whole.len() >= first.len(),
        _ => false,
    }
}

/// Whether two lines are names of columns, of which the last were wrapped, and lost their indent.
fn are_names(before: &Piece, rest: &Line) -> bool {
    let indent = |line: &Line| line.text.len() - line.text.trim_start().len();
    is_at_margin(before, rest)
        && indent(&before.line) >= INDENT
        && indent(rest) < INDENT
        && !rest.text.ends_with(['.', ',', ':'])
}

/// What of a wrapped row's beginning can stand for a row: without a bracket that opens at its end.
fn opened(text: &str) -> &str {
    text.trim_end_matches(['(', '*', '[', ' '])
}

/// Whether a line consists of figures, percentages and what is left of them.
fn is_rest(text: &str) -> bool {
    let letters = |letter: char| letter.is_ascii_digit() || "+-.,%()*[]~| ".contains(letter);
    let figure = text.contains(|letter: char| letter.is_ascii_digit());
    // A number before pairs of values and percentages is a row's label.
    figure
        && text.chars().all(letters)
        && !matches!(shape(text), Shape::Row(cells) if numbered(text, &cells[0]))
}

fn numbered(text: &str, first: &Placed) -> bool {
    let label = text[..first.start].trim();
    !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::unfold;

    fn texts(text: &str) -> Vec<String> {
        joined(unfold(text.as_bytes()).lines).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn wrapped_rows_and_names_are_joined() {
        let text = "
                                    4.0.0-rc1             4.0.0-rc1
3.19.0
                                      vanilla           slowscan-v2
vanilla
Amean    real-fsmark        1166.63 (  0.00%)     1155.97 (  0.91%)
1166.28 (  0.03%)
Amean    syst-fsmark        4020.94 (  0.00%)     4004.19 (
0.42%)     4025.87 ( -0.12%)
";
        let texts = texts(text);
        assert_eq!(texts.len(), 5, "{texts:?}");
        assert!(
            texts[1].ends_with("4.0.0-rc1 3.19.0") && texts[2].ends_with("slowscan-v2 vanilla")
        );
        assert!(texts[4].ends_with("4004.19 ( 0.42%)     4025.87 ( -0.12%)"));
    }

    #[test]
    fn what_is_wrapped_may_have_lost_its_mark_of_quoting() {
        let text = "\
> Amean    syst-NUMA01_THREADLOCAL       0.21 (   0.00%)     0.20 *
4.76%*
> Amean    syst-NUMA02                   1.55 (   0.00%)     1.42 *
8.39%*
";
        assert_eq!(texts(text).len(), 2);
    }

    #[test]
    fn other_lines_stay_apart() {
        for text in [
            // Short of the margin; a label that is a number; words.
            "Amean  x   1.50 (  0.00%)\n1.60 ( -6.67%)\n",
            "Clients                               10.50 (0.00%)   11.50 (9.52%)\n\
             2    20.50 (0.00%)   21.50 (4.88%)\n",
            "Amean    real-fsmark        1166.63 (  0.00%)     1155.97 (  0.91%)\n5 runs each\n",
        ] {
            assert_eq!(texts(text).len(), 2, "{text}");
        }
    }
}
