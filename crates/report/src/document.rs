//! What a report says, before it is laid out: [`text()`] lays it out for terminals and mails, [`html()`] for pages.
//! Words are as they were given. Both escape them.

pub mod frame;
mod grid;
mod html;
mod markup;
mod medium;
mod text;

use maud::Markup;

pub use grid::{Figures, Grid};
pub use html::{figure, html};
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
    /// What pages alone have, such as a drawing.
    Drawing(Markup),
}

/// How much a sentence stands out on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// What was found.
    Lead,
    /// Like other text.
    Plain,
    /// What is needed to read figures.
    Note,
}

/// Rows of words and figures.
#[derive(Clone, Debug)]
pub struct Table {
    /// What its columns have.
    pub columns: Vec<Column>,
    /// The cells. The last cell of a row that has fewer than there are columns spans the others.
    pub rows: Vec<Vec<String>>,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The name over it; empty where the cells need none.
    pub head: &'static str,
    /// What it has.
    pub holds: Holds,
    /// The least width in text, in letters.
    pub least: usize,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// What rows are about, printed once for those that follow each other; only in the first column.
    Topics,
    /// Words.
    Words,
    /// Figures, to the right.
    Figures,
    /// What the figures before it are of: the last column of text, cut where the line ends, and the first of a
    /// page.
    Subject,
    /// Sentences; only in the last column.
    Sentences,
}

impl Column {
    /// The column of what rows are about.
    pub const fn topics() -> Self {
        Self { head: "", holds: Holds::Topics, least: 0 }
    }

    /// A column of words.
    pub const fn words(head: &'static str) -> Self {
        Self { head, holds: Holds::Words, least: 0 }
    }

    /// A column of figures.
    pub const fn figures(head: &'static str) -> Self {
        Self { head, holds: Holds::Figures, least: 0 }
    }

    /// The column of what figures are of.
    pub const fn subject(head: &'static str) -> Self {
        Self { head, holds: Holds::Subject, least: 0 }
    }

    /// The column of sentences.
    pub const fn sentences(head: &'static str) -> Self {
        Self { head, holds: Holds::Sentences, least: 0 }
    }

    /// The same with at least so many letters in text.
    pub const fn at_least(self, least: usize) -> Self {
        Self { least, ..self }
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
pub fn table(columns: impl Into<Vec<Column>>, rows: Vec<Vec<String>>) -> Block {
    Block::Table(Table { columns: columns.into(), rows })
}
