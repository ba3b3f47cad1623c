//! Candidates: rows that follow each other.

use crate::mail::{Line, Role};
use crate::row::{self, Placed, Shape};

/// The lines of a mail with what each looks like.
#[derive(Debug)]
pub struct Lined<'a> {
    /// The line.
    pub line: &'a Line,
    /// What it looks like; what is set apart is [`Shape::Other`] without text.
    pub shape: Shape,
}

/// Rows of one layout that follow each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Their places among the lines, and their values.
    pub rows: Vec<(usize, Vec<Placed>)>,
    /// Whether they have percentages.
    pub percent: bool,
}

impl Block {
    /// The first row's place.
    pub fn first(&self) -> usize {
        self.rows.first().map_or(0, |(place, _)| *place)
    }

    /// The last row's place.
    pub fn last(&self) -> usize {
        self.rows.last().map_or(0, |(place, _)| *place)
    }

    /// How many columns there may be, the likeliest number first. In front of the values a label
    /// may end with a number, and the baseline of a table with percentages may have none.
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
            false => vec![most, least, least.saturating_sub(1)],
        };
        widths.dedup();
        widths.retain(|width| *width > 0);
        widths
    }

    /// Whether a column has nothing but 0 %.
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

/// What each line of a mail looks like.
pub fn line_up(lines: &[Line]) -> Vec<Lined<'_>> {
    let shaped = lines.iter().map(|line| {
        let shape = if line.role == Role::Text { row::shape(&line.text) } else { Shape::Other };
        Lined { line, shape }
    });
    shaped.collect()
}

/// All candidates. Rules and dots between rows do not part them; another depth of quoting, or
/// another layout, does.
pub fn blocks(lines: &[Lined<'_>]) -> Vec<Block> {
    let mut blocks = Vec::<Block>::new();
    let mut open: Option<(usize, bool, bool)> = None;
    for (place, lined) in lines.iter().enumerate() {
        let depth = lined.line.depth;
        match &lined.shape {
            Shape::Row(cells) => {
                let percent = cells.iter().any(|placed| placed.cell.percent.is_some());
                let layout = (depth, percent, cells.len() == 1);
                if open != Some(layout) {
                    blocks.push(Block { rows: Vec::new(), percent });
                    open = Some(layout);
                }
                if let Some(block) = blocks.last_mut() {
                    block.rows.push((place, cells.clone()));
                }
            }
            Shape::Rule | Shape::Ellipsis if open.is_some_and(|(open, ..)| open == depth) => {}
            _ => open = None,
        }
    }
    blocks
}
