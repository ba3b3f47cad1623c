//! What a report says, before it is laid out: [`text()`] lays it out for terminals and mails, [`html()`] for pages.
//! Words are as they were given. Both escape them.

pub mod frame;
mod grid;
mod html;
mod markup;
mod medium;
mod text;

use compare::Verdict;
use maud::Markup;

pub use grid::{Figures, Grid};
pub use html::{figure, html, symbol};
pub use medium::{MAIL, Medium, TEXT};
pub use text::{sections, text};

/// A part of a report.
#[derive(Clone, Debug)]
pub enum Block {
    /// A sentence, or several. What stands between backticks is code.
    Sentence(Tone, String),
    /// A line that names what follows, and what follows.
    Part(String, Vec<Block>),
    /// Rows of words and figures.
    Table(Table),
    /// Figures in the layout of the kernel's lists.
    Grid(Grid),
    /// Lines that stay as they are, such as commands and files.
    Code(String),
    /// On a page folded below a line. Text leaves it out.
    Fold(String, Vec<Block>),
    /// A line on what text leaves out, and on a page folded below it.
    More(String, Vec<Block>),
    /// What pages alone have, such as a drawing.
    Drawing(Markup),
}

/// How much a sentence stands out on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// An answer, which stands out most.
    Lead,
    /// A sentence like other text.
    Plain,
    /// What is needed to read figures.
    Note,
    /// That something is missing.
    Bad,
}

/// Rows of words and figures.
#[derive(Clone, Debug)]
pub struct Table {
    /// What its columns have.
    pub columns: Vec<Column>,
    /// The cells. The last cell of a row that has fewer than there are columns spans the others.
    pub rows: Vec<Vec<Cell>>,
    /// Whether only a page has the names of the columns.
    pub bare: bool,
}

/// A cell of a table.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// The text of the cell.
    pub said: String,
    /// The verdict that it is.
    pub verdict: Option<Verdict>,
    /// What a page has below that.
    pub below: Vec<Block>,
}

impl From<String> for Cell {
    fn from(said: String) -> Self {
        Self { said, ..Self::default() }
    }
}

impl From<Option<Markup>> for Cell {
    fn from(drawing: Option<Markup>) -> Self {
        Self { below: drawing.map(Block::Drawing).into_iter().collect(), ..Self::default() }
    }
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    /// The name over it; empty where the cells need none.
    pub head: &'static str,
    /// What is drawn over it.
    pub ruler: Option<Markup>,
    /// Which media have it.
    pub on: On,
    /// The kind of the cells in it.
    pub holds: Holds,
    /// The least width in text, in letters.
    pub least: usize,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// What rows are about, printed once for those that follow each other; only in the first column.
    Topics,
    /// Words, to the left.
    Words,
    /// Figures, to the right.
    Figures,
    /// What the figures before it are of: the last column of text, cut where the line ends, and the first of a
    /// page.
    Subject,
    /// Sentences; in text only in the last column.
    Sentences,
    /// Gains, coloured by the verdict of their row.
    Gains,
    /// How uncertain the gains are.
    Intervals,
    /// Little plots, which only pages have.
    Drawings,
    /// Verdicts, with what they rest on below.
    Verdicts,
}

/// The media that have a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// Text, mail and pages.
    All,
    /// Text and mail, which are lines.
    Text,
    /// Pages, which are wider.
    Page,
}

impl Column {
    /// A column on all media.
    const fn of(holds: Holds, head: &'static str) -> Self {
        Self { head, ruler: None, on: On::All, holds, least: 0 }
    }

    /// The column of what rows are about.
    pub const fn topics() -> Self {
        Self::of(Holds::Topics, "")
    }

    /// A column of words.
    pub const fn words(head: &'static str) -> Self {
        Self::of(Holds::Words, head)
    }

    /// A column of figures.
    pub const fn figures(head: &'static str) -> Self {
        Self::of(Holds::Figures, head)
    }

    /// The column of what figures are of.
    pub const fn subject(head: &'static str) -> Self {
        Self::of(Holds::Subject, head)
    }

    /// The column of sentences.
    pub const fn sentences(head: &'static str) -> Self {
        Self::of(Holds::Sentences, head)
    }

    /// A column of a page alone.
    pub fn on_page(holds: Holds, head: &'static str) -> Self {
        Self { on: On::Page, ..Self::of(holds, head) }
    }

    /// A column of little plots below their `ruler`.
    pub fn drawings(ruler: Markup) -> Self {
        Self { ruler: Some(ruler), ..Self::on_page(Holds::Drawings, "") }
    }

    /// The same with at least so many letters in text.
    pub const fn at_least(mut self, least: usize) -> Self {
        self.least = least;
        self
    }

    /// The same in text alone.
    pub const fn in_text(mut self) -> Self {
        self.on = On::Text;
        self
    }
}

impl Table {
    /// The columns and the rows that a medium has.
    fn on(&self, medium: On) -> (Vec<&Column>, Vec<Vec<&Cell>>) {
        let is_on = |column: &&Column| column.on == On::All || column.on == medium;
        let rows = self.rows.iter().map(|row| {
            let cells = row.iter().zip(&self.columns).filter(|(_, column)| is_on(column));
            cells.map(|(cell, _)| cell).collect()
        });
        (self.columns.iter().filter(is_on).collect(), rows.collect())
    }
}

/// A sentence like other text.
pub fn sentence(text: impl Into<String>) -> Block {
    Block::Sentence(Tone::Plain, text.into())
}

/// A sentence on how to read figures.
pub fn note(text: impl Into<String>) -> Block {
    Block::Sentence(Tone::Note, text.into())
}

/// A sentence on what was found.
pub fn lead(text: impl Into<String>) -> Block {
    Block::Sentence(Tone::Lead, text.into())
}

/// A line that names what follows, and what follows.
pub fn part(title: impl Into<String>, blocks: impl Into<Vec<Block>>) -> Block {
    Block::Part(title.into(), blocks.into())
}

/// Rows below the names of their columns.
pub fn table<C: Into<Cell>>(columns: impl Into<Vec<Column>>, rows: Vec<Vec<C>>) -> Block {
    let rows = rows.into_iter().map(|row| row.into_iter().map(Into::into).collect());
    Block::Table(Table { columns: columns.into(), rows: rows.collect(), bare: false })
}

/// Rows whose columns have names on a page alone.
pub fn bare(columns: impl Into<Vec<Column>>, rows: Vec<Vec<Cell>>) -> Block {
    Block::Table(Table { columns: columns.into(), rows, bare: true })
}
