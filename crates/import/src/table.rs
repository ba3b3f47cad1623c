//! A table as it was read.

use model::Better;

/// A range of lines of a text, counted from 1, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// The first line of the range, counted from 1.
    pub first: usize,
    /// The last line of the range, which belongs to it.
    pub last: usize,
}

/// All tables found in a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// The tables, in the order of the text.
    pub tables: Vec<Table>,
    /// Lines that look like a table and could not be read.
    pub unread: Vec<Unread>,
}

/// Lines that look like a table and could not be read as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Where they are in the text.
    pub lines: Lines,
    /// Why they could not be read.
    pub why: &'static str,
}

/// The kind of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Statistics of a benchmark's metrics, mostly with percentages.
    Metrics,
    /// CPU time and elapsed time of a whole benchmark.
    Duration,
    /// Figures that the kernel counts, or figures derived from these.
    Counters,
    /// Figures of a monitor such as turbostat. Each has a statistic.
    Monitor,
    /// Times such as `8m08s` by configuration.
    Times,
    /// One row for each commit, one column for each statistic.
    Commits,
    /// Figures of an unknown kind.
    Figures,
}

impl Kind {
    /// What output calls this kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Metrics => "metrics",
            Self::Duration => "duration",
            Self::Counters => "counters",
            Self::Monitor => "monitor",
            Self::Times => "times",
            Self::Commits => "commits",
            Self::Figures => "figures",
        }
    }
}

/// The meaning of a table's percentages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signs {
    /// A positive percentage means better, whatever the direction of the row is.
    Gain,
    /// A positive percentage means more, whether that is better or not.
    Change,
}

/// The baseline of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// The column with this index.
    Column(usize),
    /// The row with this index, in a table of commits.
    Row(usize),
}

/// A table of a text, as its author printed it.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Where the table is in the text, header included.
    pub lines: Lines,
    /// Its author, if the text names one.
    pub author: Option<String>,
    /// What its rows are about.
    pub kind: Kind,
    /// The line over the table, if it reads like a title; may be empty.
    pub title: String,
    /// The heading over the labels, such as `COMMIT`; usually empty.
    pub heading: String,
    /// The names of the columns; empty for a column without a name.
    pub columns: Vec<String>,
    /// The baseline of the percentages, if there are any.
    pub baseline: Option<Baseline>,
    /// The meaning of the percentages, if there are any.
    pub signs: Option<Signs>,
    /// The rows, from the top.
    pub rows: Vec<Row>,
}

impl Table {
    /// The rows, each with the heading of its part if one begins there.
    pub fn sections(&self) -> impl Iterator<Item = (Option<&str>, &Row)> {
        let mut last = "";
        self.rows.iter().map(move |row| {
            let begins = row.section != last;
            last = &row.section;
            (Some(last).filter(|_| begins), row)
        })
    }

    /// The column that the percentages of `column` compare with. It is the baseline or, if several columns have no
    /// percentages, as in pairs, the next of these to the left.
    pub(crate) fn base_of(&self, column: usize) -> Option<usize> {
        match self.baseline {
            Some(Baseline::Column(base)) => self.base_from(base, column),
            _ => None,
        }
    }

    /// Like [`Self::base_of`], if `base` is the baseline.
    pub(crate) fn base_from(&self, base: usize, column: usize) -> Option<usize> {
        let bare =
            |column: &usize| self.rows.iter().all(|row| row.cells[*column].percent.is_none());
        let pairs = bare(&base);
        (0..column).rev().find(|column| pairs && bare(column)).or(Some(base))
    }

    /// The name of the baseline; `None` if there is no baseline or it has no name.
    pub fn baseline_name(&self) -> Option<&str> {
        let name = match self.baseline? {
            Baseline::Column(column) => self.columns.get(column)?,
            Baseline::Row(row) => &self.rows.get(row)?.label,
        };
        (!name.is_empty()).then_some(name)
    }
}

/// A row of a table: one metric, with a value in each column.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The number of its line in the text, counted from 1.
    pub line: usize,
    /// The heading of its part of the table, such as `Reclaim`; usually empty.
    pub section: String,
    /// The statistic, such as `Amean`; may be empty.
    pub statistic: String,
    /// The metric or the operation.
    pub label: String,
    /// The direction, as far as known.
    pub better: Option<Better>,
    /// One cell for each column.
    pub cells: Vec<Cell>,
}

/// A value with what is printed beside it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// The value; `None` if missing.
    pub value: Option<Figure>,
    /// The percentage printed after it.
    pub percent: Option<Figure>,
    /// Whether stars surround the percentage. mmtests' stars say little, so a recomputed table has none.
    pub marked: bool,
    /// The spread printed beside the value: in the unit of the value, or in percent of it.
    pub spread: Option<Figure>,
}

/// A figure as it was printed.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The number that the text stands for; seconds for times such as `1m2.5s`.
    pub value: f64,
    /// Half a step of its last decimal: the exact value lies within this distance.
    pub half: f64,
    /// The text as printed.
    pub text: String,
}
