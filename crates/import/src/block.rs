//! Candidates for tables: consecutive rows.

use crate::mail::{Line, Role};
use crate::row::{self, Placed, Shape};
use crate::table::Cell;

/// Longest line that can head a part of a table.
const MAX_SECTION: usize = 40;
/// Most unreadable lines beside the rows of a table, or between two of them.
pub const MAX_ODD: usize = 3;
/// Headings of notes in our own reports. Below them words and figures are not tables. The rest of a note is indented.
const NOTES: [&str; 4] = ["Exact mode:", "Notes:", "Variation:", VERDICTS];
/// This heading may wrap: its colon can be on the next line.
const VERDICTS: &str = "Verdicts on ";

/// The lines of a mail, with the shape of each.
#[derive(Debug)]
pub struct Lined<'a> {
    pub line: &'a Line,
    /// The shape; a line that cannot hold a table is [`Shape::Other`] without text.
    pub shape: Shape,
}

/// A table of a format whose every part is known. Places are indices into the lines.
#[derive(Debug, PartialEq)]
pub struct Fixed {
    pub first: usize,
    pub last: usize,
    /// The headings over the figures.
    pub columns: Vec<String>,
    pub rows: Vec<FixedRow>,
}

/// A row of such a table.
#[derive(Debug, PartialEq)]
pub struct FixedRow {
    pub place: usize,
    pub label: String,
    pub cells: Vec<Cell>,
}

/// Consecutive rows of one layout.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The place of each row among the lines, and its values.
    pub rows: Vec<(usize, Vec<Placed>)>,
    /// Whether they have percentages.
    pub percent: bool,
}

impl Block {
    /// The index of the first row.
    pub fn first(&self) -> usize {
        self.rows.first().map_or(0, |(place, _)| *place)
    }

    /// The index of the last row.
    pub fn last(&self) -> usize {
        self.rows.last().map_or(0, |(place, _)| *place)
    }

    /// Possible numbers of columns, the likeliest first. The label before the values may end with a number,
    /// and the baseline of a table with percentages may have none.
    pub fn widths(&self) -> Vec<usize> {
        let counts = || self.rows.iter().map(|(_, cells)| cells.len());
        let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        let mut widths = match self.percent {
            true => {
                let bare = |cells: &[Placed]| {
                    cells.iter().take_while(|placed| placed.cell.percent.is_none()).count()
                };
                let rows = || self.rows.iter().map(|(_, cells)| (bare(cells), cells.len()));
                let with = rows().map(|(bare, all)| all - bare).max().unwrap_or(0);
                let before = rows().map(|(bare, _)| bare).min().unwrap_or(0);
                match before > 0 && (with == 1 || !self.has_baseline()) {
                    true => vec![with + 1, with],
                    false => vec![with],
                }
            }
            false if self.may_end_with_numbers(least) => {
                vec![most, least, least.saturating_sub(1)]
            }
            false => vec![most, least],
        };
        widths.dedup();
        widths.retain(|width| *width > 0);
        widths
    }

    /// Whether the first of the last `width` values of each row is a whole number, and so can be the end of the
    /// label.
    pub fn may_end_with_numbers(&self, width: usize) -> bool {
        let whole = |cells: &[Placed]| {
            let first = cells.len().checked_sub(width).and_then(|place| cells.get(place));
            let figure = first.and_then(|placed| placed.cell.value.as_ref());
            figure.is_none_or(|figure| !figure.text.contains('.'))
        };
        self.rows.iter().all(|(_, cells)| whole(cells))
    }

    /// Whether some column has only 0 %.
    fn has_baseline(&self) -> bool {
        let zero = |placed: &Placed| placed.cell.percent.as_ref().is_some_and(|it| it.value == 0.0);
        let most = self.rows.iter().map(|(_, cells)| cells.len()).max().unwrap_or(0);
        (1..=most).any(|from_right| {
            let mut cells = self.rows.iter().map(|(_, cells)| {
                cells.len().checked_sub(from_right).and_then(|place| cells.get(place))
            });
            cells.all(|placed| placed.is_some_and(zero))
        })
    }
}

/// The shape of each line of a mail.
pub fn line_up(lines: &[Line]) -> Vec<Lined<'_>> {
    let shaped = lines.iter().zip(notes(lines)).map(|(line, is_note)| {
        let is_text = line.role == Role::Text && !is_note;
        let shape = if is_text { row::shape(&line.text) } else { Shape::Other };
        Lined { line, shape }
    });
    shaped.collect()
}

/// Makes rows of lines that are labelled by numbers alone, such as numbers of threads. They need at least two rows,
/// one of them with all values, ascending numbers, and a line of headings with one over the numbers.
pub fn take_numbered(lines: &mut [Lined<'_>]) {
    let mut top = 0;
    while top < lines.len() {
        let head = lines[top].line;
        let names = head.text.split_whitespace().filter(|word| *word != "|");
        let names: Vec<&str> = names.take(row::MAX_CELLS + 1).collect();
        top += 1;
        let begins = |word: &&str| word.starts_with(char::is_alphabetic);
        if names.len() < 3 || lines[top - 1].shape != Shape::Other || !begins(&names[0]) {
            continue;
        }
        let below = top..lines.len();
        let same = |place: &usize| {
            lines[*place].line.depth == head.depth && lines[*place].shape != Shape::Blank
        };
        let mut rows: Vec<(usize, Vec<Placed>)> = Vec::new();
        let (mut last, mut odd) = (None, 0);
        for place in below.take_while(same).filter(|place| lines[*place].shape != Shape::Rule) {
            let text = &lines[place].line.text;
            match row::numbered(text).filter(|_| lines[place].shape == Shape::Other) {
                Some((number, cells)) if last < Some(number) && cells.len() < names.len() => {
                    last = Some(number);
                    rows.push((place, cells));
                }
                None if odd < MAX_ODD && row::has_figures(text) => odd += 1,
                _ => break,
            }
        }
        if rows.len() > 1 && rows.iter().any(|(_, cells)| cells.len() + 1 == names.len()) {
            top = rows[rows.len() - 1].0 + 1;
            rows.into_iter().for_each(|(place, cells)| lines[place].shape = Shape::Row(cells));
        }
    }
}

/// Which lines are notes of our own reports.
pub fn notes(lines: &[Line]) -> Vec<bool> {
    // The depth of the note, and whether its heading still lacks the colon.
    let mut open: Option<(usize, bool)> = None;
    let is_note = |line: &Line| {
        let text = line.text.as_str();
        let begins = NOTES.iter().any(|note| text.starts_with(note));
        let goes_on = open
            .filter(|(depth, _)| *depth == line.depth)
            .is_some_and(|(_, heading)| text.starts_with("  ") || heading && !text.is_empty());
        let is_note = line.role == Role::Text && (begins || goes_on);
        let heading = text.starts_with(VERDICTS) || open.is_some_and(|(_, heading)| heading);
        open = is_note.then_some((line.depth, heading && !text.ends_with(':')));
        is_note
    };
    lines.iter().map(is_note).collect()
}

/// The heading of the rows that begin right below `place`, if that line heads a part of a table: a few words
/// that are not indented.
pub fn section<'a>(lines: &[Lined<'a>], place: usize) -> Option<&'a str> {
    let Lined { line, shape: Shape::Other } = lines.get(place)? else {
        return None;
    };
    let text = line.text.as_str();
    let below = lines.get(place + 1).and_then(layout)?;
    let words = (1..=3).contains(&text.split(' ').count()) && text.len() <= MAX_SECTION;
    let plain = text
        .split(' ')
        .all(|word| word.starts_with(char::is_alphabetic) && word.chars().all(char::is_alphabetic));
    (line.role == Role::Text && words && plain && below.depth == line.depth).then_some(text)
}

/// What the rows of a block have in common.
#[derive(Clone, Copy, PartialEq)]
struct Layout {
    /// The depth of quoting.
    depth: usize,
    /// Whether they have percentages.
    percent: bool,
    /// Whether they have a single value.
    single: bool,
}

/// The layout of a row; `None` if the line is not one.
fn layout(lined: &Lined<'_>) -> Option<Layout> {
    let Shape::Row(cells) = &lined.shape else {
        return None;
    };
    let percent = cells.iter().any(|placed| placed.cell.percent.is_some());
    Some(Layout { depth: lined.line.depth, percent, single: cells.len() == 1 })
}

/// All candidates. Headings of parts, rules and dots between rows do not end a candidate; another depth of quoting or
/// another layout does.
pub fn blocks(lines: &[Lined<'_>]) -> Vec<Block> {
    let mut blocks = Vec::<Block>::new();
    let mut open: Option<Layout> = None;
    for (place, lined) in lines.iter().enumerate() {
        let depth = lined.line.depth;
        match &lined.shape {
            Shape::Row(cells) => {
                let layout = layout(lined);
                if open != layout {
                    let percent = layout.is_some_and(|it| it.percent);
                    blocks.push(Block { rows: Vec::new(), percent });
                    open = layout;
                }
                if let Some(block) = blocks.last_mut() {
                    block.rows.push((place, cells.clone()));
                }
            }
            Shape::Rule | Shape::Ellipsis if open.is_some_and(|it| it.depth == depth) => {}
            Shape::Other
                if section(lines, place).is_some() && open == layout(&lines[place + 1]) => {}
            _ => open = None,
        }
    }
    blocks
}
