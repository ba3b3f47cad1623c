//! Parses a line: words, figures, percentages, and their positions.

use crate::figure::{self, figure};
use crate::table::{Cell, Figure};

/// Most cells of a table's row.
pub const MAX_CELLS: usize = 64;

/// A value on a line, with the percentage after it.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    pub start: usize,
    /// The end of the value, or of its percentage.
    pub end: usize,
    pub cell: Cell,
    /// The unit, if one follows the value.
    pub unit: Option<String>,
}

/// Words for a spread, before its figure.
const SPREADS: [&str; 5] = ["var:", "cv:", "CV:", "std:", "stddev:"];

/// The shape of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    Blank,
    /// Only dashes or the like.
    Rule,
    /// Dots that stand for rows left out.
    Ellipsis,
    /// A label and values to the end of the line.
    Row(Vec<Placed>),
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
    Percent(Percent),
    Spread(Figure),
    /// The unit of the preceding value.
    Unit(String),
    /// A mark that points at the line.
    Mark,
}

/// Text in brackets, or between marks, after a value.
#[derive(Clone)]
struct Percent {
    figure: Option<Figure>,
    marked: bool,
    /// The spread of the value, in further brackets.
    spread: Option<Figure>,
}

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
    if is_diffstat(trimmed) {
        return Shape::Other;
    }
    let atoms = atoms(text);
    let mut cells = cells(&atoms);
    if is_numbered(&cells) {
        cells.remove(0);
    }
    let labelled = cells.first().is_some_and(|cell| !text[..cell.start].trim().is_empty());
    let any = cells.iter().any(|placed| placed.cell.value.is_some());
    // More than two placeholders on a line are not chance. Units must be alike.
    let one_unit = cells.len() > 1 && cells.windows(2).all(|two| two[0].unit == two[1].unit);
    let units = one_unit || cells.iter().all(|placed| placed.unit.is_none());
    match labelled && units && (any || cells.len() > 2) && cells.len() <= MAX_CELLS {
        true => Shape::Row(cells),
        false => Shape::Other,
    }
}

/// The values of a line that has nothing else, and its first value if that is a whole number, which may be the label.
pub fn numbered(text: &str) -> Option<(u64, Vec<Placed>)> {
    let mut cells = cells(&atoms(text));
    let first = cells.first()?;
    let bare = text[..first.start].trim().is_empty() && !has_more(first);
    let label = first.cell.value.as_ref()?.text.parse().ok()?;
    cells.remove(0);
    let fits = (1..=MAX_CELLS).contains(&cells.len()) && cells.iter().all(|it| it.unit.is_none());
    (bare && fits).then_some((label, cells))
}

/// Whether a percentage, a spread or a unit stands beside a value.
fn has_more(placed: &Placed) -> bool {
    let Placed { cell: Cell { percent, spread, .. }, unit, .. } = placed;
    percent.is_some() || spread.is_some() || unit.is_some()
}

/// Whether the first figure of a line may be its label, such as a number of clients: it is a whole number, and all
/// other figures have percentages.
fn is_numbered(cells: &[Placed]) -> bool {
    let beside = |placed: &Placed| placed.cell.percent.is_some() || placed.cell.spread.is_some();
    let whole = |figure: &Figure| figure.text.bytes().all(|byte| byte.is_ascii_digit());
    match cells {
        [first, others @ ..] => {
            let label = first.cell.value.as_ref().is_some_and(whole) && !beside(first);
            label && others.len() > 1 && first.start < 16 && others.iter().all(beside)
        }
        [] => false,
    }
}

/// Whether a line is from a patch's diffstat, such as `mm/vmscan.c | 4 --`.
fn is_diffstat(text: &str) -> bool {
    let Some((_, changes)) = text.rsplit_once(" | ") else {
        return false;
    };
    let mut words = changes.split_whitespace();
    let counts = words.next().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    let drawn = words.next().is_some_and(|word| word.bytes().all(|byte| b"+-".contains(&byte)));
    counts && drawn && words.next().is_none()
}

/// Whether `word` is only a drawn line.
pub fn is_rule(word: &str) -> bool {
    word.len() >= 3
        && word.bytes().all(|byte| matches!(byte, b'-' | b'=' | b'_' | b'+' | b'|' | b' '))
}

/// The number of figures on a line, at any place.
pub fn figures(text: &str) -> usize {
    let is_figure = |atom: &&Atom| {
        matches!(atom.what, What::Value(Some(_)) | What::Percent(Percent { figure: Some(_), .. }))
    };
    atoms(text).iter().filter(is_figure).count()
}

/// Whether a line contains a figure, or the remains of one, such as `1.21.4` from `1.2` and `1.4`.
pub fn has_figures(text: &str) -> bool {
    let digits = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_digit())
            && word.bytes().all(|byte| byte.is_ascii_digit() || b".,%".contains(&byte))
    };
    figures(text) > 0 || text.split_whitespace().any(digits)
}

/// Whether a line contains a percentage or a spread.
pub fn has_beside(text: &str) -> bool {
    let is_beside = |atom: &Atom| {
        matches!(atom.what, What::Percent(Percent { figure: Some(_), .. }) | What::Spread(_))
    };
    atoms(text).iter().any(is_beside)
}

/// The values at the end of a line, which may end with a mark such as `^`.
fn cells(atoms: &[Atom]) -> Vec<Placed> {
    let mut cells = Vec::new();
    let mut rest = match atoms {
        [before @ .., Atom { what: What::Mark, .. }] => before,
        all => all,
    };
    while let Some((placed, before)) = last_cell(rest) {
        cells.push(placed);
        rest = before;
    }
    cells.reverse();
    cells
}

/// The last value of a line with what stands beside it, and the atoms before it.
fn last_cell(atoms: &[Atom]) -> Option<(Placed, &[Atom])> {
    let end = atoms.last()?.end;
    let (percent, before) = match atoms {
        [before @ .., Atom { what: What::Percent(percent), .. }] => (Some(percent), before),
        all => (None, all),
    };
    let (spread, before) = match before {
        [before @ .., Atom { what: What::Spread(figure), .. }] => (Some(figure), before),
        all => (None, all),
    };
    let (unit, before) = match before {
        [before @ .., Atom { what: What::Unit(unit), .. }] => (Some(unit), before),
        all => (None, all),
    };
    let (Atom { start, what: What::Value(value), .. }, before) = before.split_last()? else {
        return None;
    };
    let cell = Cell {
        value: value.clone(),
        percent: percent.and_then(|it| it.figure.clone()),
        marked: percent.is_some_and(|it| it.marked),
        spread: spread.or(percent.and_then(|it| it.spread.as_ref())).cloned(),
    };
    Some((Placed { start: *start, end, cell, unit: unit.cloned() }, before))
}

fn atoms(text: &str) -> Vec<Atom> {
    let mut atoms = Vec::new();
    let mut place = 0;
    while let Some(found) = text[place..].find(|letter: char| letter != ' ') {
        place += found;
        let beside = percent(&text[place..]).map(|(length, it)| (length, What::Percent(it)));
        if let Some((length, what)) = beside.or_else(|| spread(&text[place..])) {
            atoms.push(Atom { start: place, end: place + length, what });
            place += length;
            continue;
        }
        let end = word_end(text, place);
        let word = &text[place..end];
        if word == "|" {
            place = end;
            continue;
        }
        let beside = atoms.last().filter(|before| before.end + 1 == place);
        if figure::is_unit(word)
            && beside.is_some_and(|before| matches!(before.what, What::Value(Some(_))))
        {
            let what = What::Unit(word.to_owned());
            atoms.push(Atom { start: place, end, what });
            place = end;
            continue;
        }
        let apart = text[..place].ends_with("  ");
        push_word(&mut atoms, marked(word).filter(|_| apart).unwrap_or(word), place);
        place = end;
    }
    atoms
}

/// The end of the word that begins at `start`. It is at a space, or at a percentage without a space before it.
fn word_end(text: &str, start: usize) -> usize {
    let rest = &text[start..];
    let end = rest.find(' ').unwrap_or(rest.len());
    let opening = rest[..end].match_indices(['(', '*', '[']).map(|(place, _)| place);
    let is_number = |word: &str| figure(word).is_some();
    // A word has few brackets, but a hostile one may have many: only the first counts.
    let stuck = opening
        .filter(|place| *place > 0)
        .take(1)
        .find(|place| is_number(&rest[..*place]) && percent(&rest[*place..]).is_some());
    start + stuck.unwrap_or(end)
}

/// The text between the marks of our own verdicts, as in `[76]` and `?76?`.
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
    } else if is_mark(word) {
        push(start, end, What::Mark);
    } else {
        push(start, end, What::Word);
    }
}

/// Whether a word only points at its line, as `^` and `<---` do.
fn is_mark(word: &str) -> bool {
    let points = word.contains(['^', '*', '<', '!']);
    points && word.bytes().all(|byte| b"^*<!-=".contains(&byte))
}

/// A percentage in brackets or between marks at the start of `text`, and its length. Our own verdicts are printed
/// with square brackets and question marks. A dash or nothing in brackets stands for a percentage that does not
/// exist. At the end of a line the bracket may be unclosed.
fn percent(text: &str) -> Option<(usize, Percent)> {
    let close = match text.bytes().next()? {
        b'(' => b')',
        b'[' => b']',
        mark @ (b'*' | b'?') => mark,
        _ => return None,
    };
    let inner = &text[1..];
    let closed = inner.bytes().take(64).position(|byte| byte == close);
    let open = || (close == b')' && inner.len() < 16).then_some(inner.len());
    let end = closed.or_else(open)?;
    let length = (end + 2).min(text.len());
    let marked = close == b'*';
    if let Some((more, spread)) = in_brackets(&text[length..]).filter(|_| close == b']') {
        let figure = figure(inner[..end].trim())?;
        let spread = Some(spread);
        return Some((length + more, Percent { figure: Some(figure), marked, spread }));
    }
    let figure = match inner[..end].trim() {
        "" if close != b')' || closed.is_none() || end < 2 => return None,
        "-" | "" => None,
        text => {
            let number = text.strip_suffix('%').or_else(|| text.strip_suffix("pct"))?;
            Some(figure(number.trim_end())?)
        }
    };
    let number = figure.as_ref().is_none_or(|figure| !figure.text.ends_with(['s', '%']));
    number.then_some((length, Percent { figure, marked, spread: None }))
}

/// A number in round brackets at the start of `text`, and its length including the brackets.
fn in_brackets(text: &str) -> Option<(usize, Figure)> {
    let inner = text.strip_prefix('(')?;
    let end = inner.bytes().take(64).position(|byte| byte == b')')?;
    Some((end + 2, figure(inner[..end].trim())?))
}

/// The spread of the preceding value, as in `+- 0.5%`, `(+/-0.5)` or `(var: 0.5%)`, at the start of `text`.
fn spread(text: &str) -> Option<(usize, What)> {
    if let Some(inner) = text.strip_prefix('(') {
        let end = inner.bytes().take(64).position(|byte| byte == b')')?;
        let named = SPREADS.iter().find_map(|name| inner[..end].strip_prefix(name));
        if let Some(named) = named {
            return Some((end + 2, What::Spread(figure(named.trim())?)));
        }
        let (length, what) =
            spread(&inner[..end]).filter(|_| inner.starts_with(['+', '\u{b1}']))?;
        return inner[length..end].trim().is_empty().then_some((end + 2, what));
    }
    let marks = ["+-", "+/-", "\u{b1}"];
    let rest = marks.iter().find_map(|mark| text.strip_prefix(mark))?;
    let rest = rest.trim_start_matches(' ');
    let start = text.len() - rest.len();
    let word = &rest[..word_end(rest, 0)];
    Some((start + word.len(), What::Spread(figure(word)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cells of a row, each as value, spread and percentage; empty for other lines.
    fn cells_of(text: &str) -> String {
        let Shape::Row(cells) = shape(text) else { return String::new() };
        let shown = |placed: &Placed| {
            let text = |figure: &Option<Figure>| {
                figure.as_ref().map_or("-".to_owned(), |figure| figure.text.clone())
            };
            let star = if placed.cell.marked { "*" } else { "" };
            let spread = placed.cell.spread.as_ref().map(|it| format!("~{}", it.text));
            let spread = spread.unwrap_or_default();
            format!("{}{spread}/{}{star}", text(&placed.cell.value), text(&placed.cell.percent))
        };
        cells.iter().map(shown).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn values_come_with_their_percentages() {
        let row = "Amean     syst-A    11664.40 (   0.00%)    11616.17 *   0.41%*";
        assert_eq!(cells_of(row), "11664.40/0.00 11616.17/0.41*");
        assert_eq!(cells_of("a 1.55 (0.00%) 9.31 *-499.26%*"), "1.55/0.00 9.31/-499.26*");
        assert_eq!(cells_of("a 5 (  -1.00%) 6 [  -2.50%] 7 ?1.00%?"), "5/-1.00 6/-2.50 7/1.00");
        assert_eq!(cells_of("a 5 (   0.00%) 6 (      -)"), "5/0.00 6/-");
        assert_eq!(cells_of("a   1 (    +0.00%)  2 (  -27.83%)"), "1/+0.00 2/-27.83");
    }

    #[test]
    fn columns_may_run_into_each_other() {
        assert_eq!(cells_of("a 1000.00(-10.00%)2000.00( 5.00%)"), "1000.00/-10.00 2000.00/5.00");
        assert_eq!(cells_of("a 1000.002000.00"), "1000.00/- 2000.00/-");
    }

    #[test]
    fn values_may_be_percentages_times_or_missing() {
        assert_eq!(cells_of("Kswapd efficiency  99%   81%"), "99%/- 81%/-");
        assert_eq!(cells_of("-o bhash=101073   6m04s   17m43s"), "6m04s/- 17m43s/-");
        assert_eq!(cells_of("x   -   3.0"), "-/- 3.0/-");
    }

    #[test]
    fn values_come_with_their_spread() {
        let row = "Hmean   1         183.56  +- 0.21% (        )       516.12  +- 0.57% ( 181.18%)";
        assert_eq!(cells_of(row), "183.56~0.21%/- 516.12~0.57%/181.18");
        let row = "SubAmean  2048   39133.10 +- 45.71 (   0.82%)   53811.86 +-193.04 ( -36.38%)";
        assert_eq!(cells_of(row), "39133.10~45.71/0.82 53811.86~193.04/-36.38");
        let row = " 2-groups     1.00 [ -0.00]( 1.63)     1.05 [ -4.68]( 2.04)  *";
        assert_eq!(cells_of(row), "1.00~1.63/-0.00 1.05~2.04/-4.68");
        assert_eq!(cells_of("a  12 \u{b1} 3%   15 \u{b1}2%"), "12~3%/- 15~2%/-");
        assert_eq!(
            cells_of("GB/s   18.51 (+/-0.19)  97.86 (+/- 0.01)"),
            "18.51~0.19/- 97.86~0.01/-"
        );
        assert_eq!(cells_of("a  12.5 (var: 2.84%)  13 (cv: 1%)"), "12.5~2.84%/- 13~1%/-");
        for text in ["a   +- 5", "a  5 (far: 2%)", "as in [1](2) and [3]()", "a  5 ()"] {
            assert_eq!(cells_of(text), "", "{text}");
        }
    }

    #[test]
    fn values_may_have_a_unit_all_the_same() {
        assert_eq!(cells_of("lat   52.6 us   48.1 us (8.56%)"), "52.6/- 48.1/8.56");
        for text in ["lat   52.6 us   1.2 ms", "lat  52.6 us   48.1", "it took 5 ms", "x  5  us"] {
            assert_eq!(cells_of(text), "", "{text}");
        }
    }

    #[test]
    fn percentages_may_be_written_out_or_cut_off() {
        let row = " 1-groups:         3.92 (0.00 pct)         4.05 (-3.31 pct)";
        assert_eq!(cells_of(row), "3.92/0.00 4.05/-3.31");
        assert_eq!(cells_of("a   68.00 (   0.00%)   66.00 (   2.94%"), "68.00/0.00 66.00/2.94");
    }

    #[test]
    fn a_number_labels_a_line_of_percentages() {
        assert_eq!(cells_of("   16   452.49 (0.00%)   457.94 (1.20%)"), "452.49/0.00 457.94/1.20");
        for text in [
            "16   452.49   457.94 (1.20%)",
            "16   452.49 (0.00%)",
            "100.00   110.00 (-10.00%)   120.00 (-20.00%)",
        ] {
            assert_eq!(cells_of(text), "", "{text}");
        }
    }

    #[test]
    fn bars_and_marks_are_no_figures() {
        let row = "pgbench-ro      1.14   ~      ~     | 1.11 |  1.14";
        assert_eq!(cells_of(row), "1.14/- -/- -/- 1.11/- 1.14/-");
        let row = "Amean  x   7.06 (   0.00%)    8.10 *   8.23%*   ^";
        assert_eq!(cells_of(row), "7.06/0.00 8.10/8.23*");
        let row = "Amean  elsp   191.32 (   0.00%)      104.46 *  45.40%*  <---";
        assert_eq!(cells_of(row), "191.32/0.00 104.46/45.40*");
        for text in [" mm/vmscan.c | 4 --", " mm/vmscan.c |  21 ++--"] {
            assert_eq!(cells_of(text), "", "{text}");
        }
    }

    #[test]
    fn values_may_have_marks_of_verdicts() {
        assert_eq!(cells_of("THP fault alloc   78   [76]   ?7.5?"), "78/- 76/- 7.5/-");
        for text in ["as said elsewhere [1]", "x   [a]", "x   [5"] {
            assert_eq!(cells_of(text), "", "{text}");
        }
    }

    #[test]
    fn other_lines_are_no_rows() {
        for text in
            ["", "   ", "1 2 3", "words alone", "12 apples", "-----", "x - -", "...", "a 1 (x)"]
        {
            assert_eq!(cells_of(text), "", "{text}");
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
