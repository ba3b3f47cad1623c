//! The content of a report, independent of its layout: [`text()`] lays it out for terminals and mails,
//! [`html()`] for pages. The content is not escaped yet; both functions escape it.

pub mod frame;
mod grid;
mod html;
mod markup;
mod medium;
pub mod svg;
mod text;

use std::borrow::Cow;

use compare::Verdict;
use maud::Markup;

pub use grid::{Figure, Figures, Grid, Label};
pub use html::html;
pub use markup::figure;
pub use medium::{MAIL, Medium, TEXT};
pub use text::{sections, text};

/// A part of a report.
#[derive(Clone, Debug)]
pub enum Block {
    /// One or more sentences. Text between backticks is code.
    Sentence(Tone, String),
    /// A title line and the blocks below it.
    Part(String, Vec<Block>),
    /// Rows of words and figures.
    Table(Table),
    /// Figures in the layout of the kernel's lists.
    Grid(Grid),
    /// Lines that stay as they are, such as commands and files.
    Code(String),
    /// Blocks that a page folds below a line. Text omits the line and the blocks.
    Fold(String, Vec<Block>),
    /// Blocks that a page folds below a line. Text prints only the line.
    More(String, Vec<Block>),
    /// Words, then the verdicts that were given, each with its colour on a page.
    Verdicts(String, Vec<Cell>),
    /// A chart. Text omits it.
    Chart(Chart),
    /// Charts side by side, with one legend: the number of each group and its name. Text omits them.
    Charts(Vec<(usize, String)>, Vec<Chart>),
    /// A little drawing without a title, such as one in a cell. Text omits it.
    Drawing(Markup),
}

/// A drawing with its title, and its figures in words.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The name of what is drawn; may be empty.
    pub title: String,
    /// Words beside the title, such as the unit; may be empty.
    pub beside: String,
    /// What the drawing shows, on one line. It is the name of the image for readers who do not see it.
    pub label: String,
    /// The figures in words, for readers who do not see the drawing; may be empty. They are escaped
    /// already, and formatted for pages.
    pub figures: String,
    /// A sentence below the title on how to read the drawing; may be empty.
    pub note: String,
    /// The class for the style sheet; may be empty.
    pub class: &'static str,
    /// Width and height of the drawing. A drawing of width 0 is as wide as the page; its lengths across are
    /// in percent.
    pub size: [f64; 2],
    /// The shapes of the drawing.
    pub shapes: Markup,
}

/// How much a sentence stands out on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// An answer; it stands out most.
    Lead,
    /// A sentence like other text.
    Plain,
    /// An explanation that is needed to read figures.
    Note,
    /// A warning that limits what figures mean.
    Caution,
    /// A warning that something is missing.
    Bad,
}

/// Rows of words and figures.
#[derive(Clone, Debug)]
pub struct Table {
    /// The columns, from left to right.
    pub columns: Vec<Column>,
    /// The rows. If a row has fewer cells than there are columns, its last cell spans the remaining
    /// columns.
    pub rows: Vec<Vec<Cell>>,
    /// Whether text omits the line with the names of the columns. A page always has it.
    pub bare: bool,
}

/// A cell of a table.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// The text of the cell. The layout escapes it.
    pub said: String,
    /// The verdict that the cell states, if it states one.
    pub verdict: Option<Verdict>,
    /// Blocks that a page prints below the text. Text and mail omit them.
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
    /// The name above the column; empty if it has none.
    pub head: Cow<'static, str>,
    /// A drawing above the column, such as a scale.
    pub ruler: Option<Markup>,
    /// The media that print the column.
    pub on: On,
    /// The kind of the cells in it.
    pub holds: Holds,
    /// The least width in text, in characters.
    pub least: usize,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// The topics of rows. A topic is printed once for consecutive rows that have it. Only the first column
    /// can hold topics.
    Topics,
    /// Words, aligned to the left.
    Words,
    /// Figures, aligned to the right.
    Figures,
    /// The subject of a row, whose figures are in the columns before it. Text prints it last and cuts it at
    /// the end of the line; a page prints it first.
    Subject,
    /// Sentences. In text only the last column can hold them.
    Sentences,
    /// Gains, coloured by the verdict of their row.
    Gains,
    /// The interval of each gain, or its luck floor.
    Intervals,
    /// Little plots, which only pages have.
    Drawings,
    /// Verdicts, with their evidence below.
    Verdicts,
}

/// The media that have a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// Text, mail and pages.
    All,
    /// Text and mail, but no pages.
    Text,
    /// Pages, but neither text nor mail.
    Page,
}

impl Column {
    /// Creates a column that all media print.
    const fn of(holds: Holds, head: &'static str) -> Self {
        Self { head: Cow::Borrowed(head), ruler: None, on: On::All, holds, least: 0 }
    }

    /// Creates a column of topics, without a name.
    pub const fn topics() -> Self {
        Self::of(Holds::Topics, "")
    }

    /// Creates a column of words.
    pub const fn words(head: &'static str) -> Self {
        Self::of(Holds::Words, head)
    }

    /// Creates a column of figures.
    pub const fn figures(head: &'static str) -> Self {
        Self::of(Holds::Figures, head)
    }

    /// Creates the column of the rows' subjects.
    pub const fn subject(head: &'static str) -> Self {
        Self::of(Holds::Subject, head)
    }

    /// Creates a column of sentences.
    pub const fn sentences(head: &'static str) -> Self {
        Self::of(Holds::Sentences, head)
    }

    /// Creates a column that only pages print.
    pub fn on_page(holds: Holds, head: &'static str) -> Self {
        Self { on: On::Page, ..Self::of(holds, head) }
    }

    /// Creates a column of little plots, with `ruler` above them. Only pages print it.
    pub fn drawings(ruler: Markup) -> Self {
        Self { ruler: Some(ruler), ..Self::on_page(Holds::Drawings, "") }
    }

    /// Sets the name above the column. The layout escapes it.
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.head = name.into();
        self
    }

    /// Sets the least width in text, in characters.
    pub const fn at_least(mut self, least: usize) -> Self {
        self.least = least;
        self
    }

    /// Restricts the column to text and mail.
    pub const fn in_text(mut self) -> Self {
        self.on = On::Text;
        self
    }
}

impl Table {
    /// Returns the columns that `medium` prints, and the rows with only the cells of those columns.
    fn on(&self, medium: On) -> (Vec<&Column>, Vec<Vec<&Cell>>) {
        let is_on = |column: &&Column| column.on == On::All || column.on == medium;
        let rows = self.rows.iter().map(|row| {
            let cells = row.iter().zip(&self.columns).filter(|(_, column)| is_on(column));
            cells.map(|(cell, _)| cell).collect()
        });
        (self.columns.iter().filter(is_on).collect(), rows.collect())
    }
}

/// Creates a sentence like other text.
pub fn sentence(text: impl Into<String>) -> Block {
    Block::Sentence(Tone::Plain, text.into())
}

/// Creates a sentence on how to read figures.
pub fn note(text: impl Into<String>) -> Block {
    Block::Sentence(Tone::Note, text.into())
}

/// Creates a sentence that states an answer.
pub fn lead(text: impl Into<String>) -> Block {
    Block::Sentence(Tone::Lead, text.into())
}

/// Creates a title line with blocks below it.
pub fn part(title: impl Into<String>, blocks: impl Into<Vec<Block>>) -> Block {
    Block::Part(title.into(), blocks.into())
}

/// Creates a table with the names of its columns on all media.
pub fn table<C: Into<Cell>>(columns: impl Into<Vec<Column>>, rows: Vec<Vec<C>>) -> Block {
    let rows = rows.into_iter().map(|row| row.into_iter().map(Into::into).collect());
    Block::Table(Table { columns: columns.into(), rows: rows.collect(), bare: false })
}

/// Creates a table with the names of its columns on a page only.
pub fn bare(columns: impl Into<Vec<Column>>, rows: Vec<Vec<Cell>>) -> Block {
    Block::Table(Table { columns: columns.into(), rows, bare: true })
}
