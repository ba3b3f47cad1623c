//! Rows that a mail program has wrapped: one line ends at the margin, and the next begins with figures and cannot be
//! a row by itself.

use crate::mail::{Line, MAX_LINE, Role};
use crate::row::{Placed, Shape, shape};

/// Mail programs wrap a line if its next word would end between this column and [`LAST`].
const FIRST: usize = 56;
/// Longest line of a mail program that wraps.
const LAST: usize = 82;

/// Largest number of lines of names over a row. In the file there are twice as many if they were wrapped.
const NAMES: usize = 2;
/// Smallest number of spaces before the first name of a wrapped line of names.
const INDENT: usize = 4;

/// Largest number of lines that one row was wrapped into.
const PARTS: usize = 4;

/// A line, or several that were one line.
struct Piece {
    line: Line,
    /// Length of the last line in the file.
    length: usize,
    parts: usize,
}

impl Piece {
    fn append(&mut self, rest: &Self) {
        append(&mut self.line, &rest.line);
        self.length = rest.length;
        self.parts += rest.parts;
    }
}

/// The lines of a mail, with wrapped rows joined, and wrapped names over such rows.
pub fn joined(lines: Vec<Line>) -> Vec<Line> {
    let pieces = rows(lines);
    let mut begins = vec![false; pieces.len()];
    let is_row = |piece: &Piece| matches!(shape(&piece.line.text), Shape::Row(_));
    for row in (1..pieces.len()).filter(|row| pieces[*row].parts > 1 && !is_row(&pieces[row - 1])) {
        // Rules and dots may stand between the names and the row.
        let drawn =
            |piece: &&Piece| matches!(shape(&piece.line.text), Shape::Rule | Shape::Ellipsis);
        let below = row - pieces[..row].iter().rev().take_while(drawn).count();
        for above in 1..=NAMES {
            match below.checked_sub(2 * above) {
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

/// Joins wrapped rows: a line that completes the value before it, or lines that have exactly as many values as the
/// row before them lacks.
fn rows(lines: Vec<Line>) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::with_capacity(lines.len());
    for line in lines {
        let length = line.text.chars().count() + 2 * line.depth;
        let piece = Piece { line, length, parts: 1 };
        match pieces.last_mut().filter(|before| completes(before, &piece.line)) {
            Some(before) => before.append(&piece),
            None => pieces.push(piece),
        }
    }
    let mut rows: Vec<Piece> = Vec::with_capacity(pieces.len());
    let mut pieces = pieces.into_iter();
    while let Some(mut row) = pieces.next() {
        let rests = rests(rows.last(), &row, pieces.as_slice());
        pieces.by_ref().take(rests).for_each(|rest| row.append(&rest));
        rows.push(row);
    }
    rows
}

fn append(before: &mut Line, rest: &Line) {
    before.text = format!("{} {}", before.text, rest.text.trim_start());
    before.lines.last = rest.lines.last;
}

/// Whether a line ends where a mail program may have wrapped it before `rest`. If a program does not quote the
/// wrapped part, `rest` has a lower depth.
fn is_at_margin(before: &Piece, rest: &Line) -> bool {
    let word = rest.text.split_whitespace().next().unwrap_or_default();
    let is_text = |line: &Line| line.role == Role::Text && !line.text.is_empty();
    let margin = before.length <= LAST && before.length + 1 + word.len() > FIRST;
    let depth = rest.depth == before.line.depth || rest.depth == 0;
    is_text(&before.line) && is_text(rest) && margin && depth
}

/// Whether `rest` may be the wrapped part of a row.
fn may_go_on(before: &Piece, rest: &Line) -> bool {
    let length = before.line.text.len() + 1 + rest.text.len();
    before.parts < PARTS
        && length <= MAX_LINE
        && is_at_margin(before, rest)
        && is_rest(rest.text.trim_start())
}

/// Whether `rest` completes the last value of the line before it.
fn completes(before: &Piece, rest: &Line) -> bool {
    if !may_go_on(before, rest) {
        return false;
    }
    let before = &before.line.text;
    match (shape(&format!("{before} {}", rest.text.trim_start())), shape(opened(before))) {
        (Shape::Row(whole), Shape::Row(first)) => {
            let last = first.len() - 1;
            goes_on(&first, &whole) && whole[last].cell != first[last].cell
        }
        _ => false,
    }
}

/// Whether the first values of a row are all the values of another row.
fn goes_on(first: &[Placed], whole: &[Placed]) -> bool {
    let starts = |cells: &[Placed]| cells.iter().map(|placed| placed.start).collect::<Vec<_>>();
    whole.len() >= first.len() && starts(&whole[..first.len()]) == starts(first)
}

/// The number of lines `after` a row that hold its rest: with them the row has as many values as the row above or
/// below. 0 if the row has that many by itself.
fn rests(above: Option<&Piece>, row: &Piece, after: &[Piece]) -> usize {
    if !after.first().is_some_and(|rest| may_go_on(row, &rest.line)) {
        return 0;
    }
    let is_beside = |piece: &&Piece| piece.line.depth == row.line.depth;
    let above = above.filter(is_beside).and_then(|above| widths(above, &[]).first().copied());
    let widths_here = widths(row, after);
    if widths_here.is_empty() || above == Some(widths_here[0]) {
        return 0;
    }
    let is_alike = |rests: &usize| {
        let width = Some(widths_here[*rests]);
        let below = after[*rests..].split_first().filter(|(below, _)| is_beside(below));
        let mut below = below.into_iter().flat_map(|(below, after)| widths(below, after));
        width == above || below.any(|below| Some(below) == width)
    };
    (1..widths_here.len()).find(is_alike).unwrap_or(0)
}

/// The number of values of a row by itself, with the next line, with the next two, and so on; empty if the line is
/// not a row.
fn widths(row: &Piece, after: &[Piece]) -> Vec<usize> {
    let Shape::Row(mut cells) = shape(&row.line.text) else {
        return Vec::new();
    };
    let mut widths = vec![cells.len()];
    let mut whole = Piece { line: row.line.clone(), ..*row };
    for rest in after {
        if !may_go_on(&whole, &rest.line) {
            break;
        }
        whole.append(rest);
        match shape(&whole.line.text) {
            Shape::Row(more) if more.len() > cells.len() && goes_on(&cells, &more) => cells = more,
            _ => break,
        }
        widths.push(cells.len());
    }
    widths
}

/// Whether two lines are names of columns. The second line has the last names: they were wrapped and lost their
/// indent.
fn are_names(before: &Piece, rest: &Line) -> bool {
    let indent = |line: &Line| line.text.len() - line.text.trim_start().len();
    is_at_margin(before, rest)
        && indent(&before.line) >= INDENT
        && indent(rest) < INDENT
        && !rest.text.ends_with(['.', ',', ':'])
}

/// The beginning of a wrapped row without an unclosed bracket at its end, so that it parses as a row.
fn opened(text: &str) -> &str {
    text.trim_end_matches(['(', '*', '[', ' '])
}

/// Whether a line consists of figures, percentages and parts of them.
fn is_rest(text: &str) -> bool {
    let letters = |letter: char| letter.is_ascii_digit() || "+-.,%()*[]~| ".contains(letter);
    let figure = text.contains(|letter: char| letter.is_ascii_digit());
    // A number before pairs of values and percentages labels a row.
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
        joined(unfold(text.as_bytes(), 0).lines).into_iter().map(|line| line.text).collect()
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
        let dots = text.replace("vanilla\nAmean", "vanilla\n...\nAmean");
        assert_eq!(texts(&dots).len(), 6);
        let texts = texts(text);
        assert_eq!(texts.len(), 5, "{texts:?}");
        assert!(
            texts[1].ends_with("4.0.0-rc1 3.19.0") && texts[2].ends_with("slowscan-v2 vanilla")
        );
        assert!(texts[4].ends_with("4004.19 ( 0.42%)     4025.87 ( -0.12%)"));
    }

    #[test]
    fn a_wrapped_part_may_have_lost_its_quote_mark() {
        let text = "\
> Amean    syst-NUMA01_THREADLOCAL       0.21 (   0.00%)     0.20 *
4.76%*
> Amean    syst-NUMA02                   1.55 (   0.00%)     1.42 *
8.39%*
";
        assert_eq!(texts(text).len(), 2);
    }

    #[test]
    fn a_row_takes_what_it_lacks_beside_its_neighbours() {
        let row = "Amean     elsp-NUMA02                200.10      210.10";
        let whole = "Amean     elsp-NUMA01        200.10      210.10      220.10";
        for (text, rows) in [
            (format!("{row}\n220.10\n{whole}\n"), 2),
            (format!("{whole}\n{row}\n220.10\n"), 2),
            (format!("{row}\n220.10\n{row}\n220.10\n"), 2),
            // One row is as complete as the row above, the other has too many values.
            (format!("{row}\n{row}\n220.10\n"), 3),
            (format!("{whole}\n{row}\n220.10   230.10\n"), 3),
        ] {
            assert_eq!(texts(&text).len(), rows, "{text}");
        }
    }

    #[test]
    fn whole_rows_take_no_figures() {
        for text in [
            "Amean     elsp-NUMA02                200.10      210.10\n2\n",
            "Amean     elsp-NUMA01         210.10 (   0.00%)   220.10 (  -4.76%)\n\
             Amean     elsp-NUMA02         200.10 (   0.00%)   210.10 (  -5.00%)\n+1\n",
            "threads            1           2           4           8\n\
             1             100.10      200.20      300.30      400.40\n\
             2             100.10      200.20      300.30      400.40\n",
        ] {
            assert_eq!(texts(text).len(), text.lines().count(), "{text}");
        }
    }

    #[test]
    fn a_row_has_few_lines() {
        let rest = "1.00 (   0.00%)     1.00 (   0.00%)     1.00 (   0.00%)     1.00 (";
        let lines: Vec<String> = (0..100).map(|_| format!("0.00%)  {rest}")).collect();
        let texts = texts(&format!("Amean  x  {rest}\n{}\n", lines.join("\n")));
        assert!(texts.iter().all(|text| text.matches("1.00").count() <= 4 * PARTS), "{texts:?}");
    }

    #[test]
    fn other_lines_stay_apart() {
        for text in [
            // A line shorter than the margin; a label that is a number; words.
            "Amean  x   1.50 (  0.00%)\n1.60 ( -6.67%)\n",
            "Clients                               10.50 (0.00%)   11.50 (9.52%)\n\
             2    20.50 (0.00%)   21.50 (4.88%)\n",
            "Amean    real-fsmark        1166.63 (  0.00%)     1155.97 (  0.91%)\n5 runs each\n",
        ] {
            assert_eq!(texts(text).len(), 2, "{text}");
        }
    }
}
