//! A table as it was read.

use model::Better;

/// A range of lines of a text, counted from 1, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// The first.
    pub first: usize,
    /// The last.
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
    /// Their place.
    pub lines: Lines,
    /// The reason.
    pub why: &'static str,
}

/// The kind of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Statistics of a benchmark's metrics, mostly with percentages.
    Metrics,
    /// Processor and elapsed time of a whole benchmark.
    Duration,
    /// Figures that the kernel counts, or derived from such.
    Counters,
    /// Figures of a monitor, such as turbostat, with a statistic of each.
    Monitor,
    /// Times such as `8m08s` by configuration.
    Times,
    /// One row a commit, one column a statistic.
    Commits,
    /// Figures of an unknown kind.
    Figures,
}

impl Kind {
    /// Its name in output.
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
    /// Positive means better, whatever the direction.
    Gain,
    /// Positive means more, better or not.
    Change,
}

/// The baseline of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// A column.
    Column(usize),
    /// A row, in a table of commits.
    Row(usize),
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its place, header included.
    pub lines: Lines,
    /// Its author, if the text names one.
    pub author: Option<String>,
    /// Its kind.
    pub kind: Kind,
    /// The line over it, if it reads like a title; may be empty.
    pub title: String,
    /// The heading over the labels, such as `COMMIT`; usually empty.
    pub heading: String,
    /// The names of the columns; empty where there is none.
    pub columns: Vec<String>,
    /// The baseline of the percentages, if there are any.
    pub baseline: Option<Baseline>,
    /// The meaning of the percentages, if there are any.
    pub signs: Option<Signs>,
    /// The rows.
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

    /// The column with which the percentages of `column` compare: the baseline or, where more than one
    /// column has no percentages, as in pairs, the next of these to the left.
    pub(crate) fn base_of(&self, column: usize) -> Option<usize> {
        match self.baseline {
            Some(Baseline::Column(base)) => self.base_from(base, column),
            _ => None,
        }
    }

    /// The same, where `base` is the baseline.
    pub(crate) fn base_from(&self, base: usize, column: usize) -> Option<usize> {
        let bare =
            |column: &usize| self.rows.iter().all(|row| row.cells[*column].percent.is_none());
        let pairs = bare(&base);
        (0..column).rev().find(|column| pairs && bare(column)).or(Some(base))
    }

    /// The name of the baseline; none if there is no baseline, or if it has no name.
    pub fn baseline_name(&self) -> Option<&str> {
        let name = match self.baseline? {
            Baseline::Column(column) => self.columns.get(column)?,
            Baseline::Row(row) => &self.rows.get(row)?.label,
        };
        (!name.is_empty()).then_some(name)
    }
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The line on which it stands.
    pub line: usize,
    /// The heading of its part of the table, such as `Reclaim`; usually empty.
    pub section: String,
    /// The statistic, such as `Amean`; may be empty.
    pub statistic: String,
    /// The metric or operation.
    pub label: String,
    /// The direction, as far as known.
    pub better: Option<Better>,
    /// One cell a column.
    pub cells: Vec<Cell>,
}

/// A value with what is printed beside it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// The value; `None` if missing.
    pub value: Option<Figure>,
    /// The percentage printed after it.
    pub percent: Option<Figure>,
    /// Whether the percentage is between stars. mmtests' stars mean little: they are never passed on to a
    /// recomputed table.
    pub marked: bool,
    /// The printed spread of the value: in its unit, or in percent of it.
    pub spread: Option<Figure>,
}

/// A figure as it was printed.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its value; times such as `1m2.5s` in seconds.
    pub value: f64,
    /// Half a step of its last decimal: the exact value lies within this distance.
    pub half: f64,
    /// Its text.
    pub text: String,
}
