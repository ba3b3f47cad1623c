//! A table in the layout of the kernel's lists: labels to the left, under each name a value and, in
//! parentheses, its gain.

use benchmarks::names::OPS;
use compare::{Comparison, Kind, Row, Spread, Table, Verdict};
use model::Mode;

use crate::document::{Block, Figures, Grid, sentence};
use crate::exact::legend;
use crate::header::Name;
use crate::heading;
use crate::words::decimal;

/// Least width of a value with the space before it, next to a gain ...
const MIN_WIDTH_WITH_GAIN: usize = 10;
/// ... and without one.
const MIN_WIDTH: usize = 12;
/// Width of a gain's number, unless a longer one needs more.
const MIN_GAIN_WIDTH: usize = 7;
/// Most counters that are named because they did not move.
const FEW: usize = 8;
/// Printed where there is no table.
pub const NOTHING: &str = "No complete boot has a measurement: there is nothing to compare.";
/// Printed under every table with times.
pub const EMULATED: &str = "Times under emulation (TCG) are not performance.";
/// Printed under a table with a row of this name; no other rows are models.
const MODELS: [(&str, &str); 2] = [
    (
        "Compaction cost",
        "Compaction cost: (7 x migrate and free scanned + 19 x isolated + 1038 x migrated + 14 x failed) \
         / 10^6, a model.",
    ),
    (
        "AutoNUMA cost",
        "AutoNUMA cost: (7 x range updates + 5000 x hint faults + 19 x pages migrated) / 10^6, a model.",
    ),
];

/// `table` with its heading. Rows of counters that did not move are only named, below it.
pub fn blocks(table: &Table, comparison: &Comparison) -> Vec<Block> {
    let (table, still) = &moved(table);
    let exact = comparison.mode == Mode::Exact;
    let below = still.sentences().into_iter().chain(below(table, comparison, exact));
    plain(table, comparison, true).into_iter().chain(below.map(sentence)).collect()
}

/// The heading and the rows, with nothing below them. Values without gains have marks if `marks` is set.
pub fn plain(table: &Table, comparison: &Comparison, marks: bool) -> [Block; 2] {
    let heading = sentence(heading::words(table, comparison));
    [heading, Block::Grid(grid(table, comparison, marks))]
}

/// Names over columns, and a line for each row.
fn grid(table: &Table, comparison: &Comparison, marks: bool) -> Grid {
    let marks = Some(comparison).filter(|_| marks);
    let cells = (0..comparison.variants.len()).map(|column| cells(table, column, marks));
    let columns = comparison.variants.iter().zip(cells).map(|(variant, cells)| {
        let beside = cells.gains.iter().zip(&cells.spreads);
        let beside = beside.map(|(gain, spread)| format!("{gain}{spread}")).collect();
        Figures { name: variant.name.clone(), values: cells.values, beside }
    });
    let word = word(comparison, table.kind);
    let labels = table.rows.iter().map(|row| {
        let before = match table.kind {
            Kind::Metrics => row.statistic.to_string(),
            _ => word.unwrap_or_default().to_owned(),
        };
        [before, row.metric.clone()]
    });
    Grid {
        heading: String::new(),
        sections: table.rows.iter().map(|row| row.section.map(str::to_owned)).collect(),
        labels: labels.collect(),
        columns: columns.collect(),
        least: if is_directed(table) { MIN_WIDTH_WITH_GAIN } else { MIN_WIDTH },
        gap: 1,
        cut: Name::cut,
    }
}

/// The text below a table; about values with marks only where there are such.
pub fn below(table: &Table, comparison: &Comparison, marks: bool) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    if comparison.mode == Mode::Exact {
        sentences
            .extend(legend(table).into_iter().filter(|_| marks || table.kind == Kind::Metrics));
    } else if comparison.emulated && !matches!(table.kind, Kind::Counters | Kind::Events) {
        sentences.push(EMULATED.to_owned());
    }
    let has = |label: &str| table.rows.iter().any(|row| row.metric == label);
    let models = MODELS.iter().filter(|(label, _)| has(label));
    sentences.extend(models.map(|(_, model)| (*model).to_owned()));
    if table.kind == Kind::Events {
        sentences.extend(on_events(table, comparison));
    }
    sentences
}

/// Labels of rows in which no counter moved.
#[derive(Default)]
pub struct Still {
    everywhere: Vec<String>,
    /// Counters that not every column's kernel has.
    where_counted: Vec<String>,
}

impl Still {
    /// The first of them, named, and the number of others.
    pub fn sentences(&self) -> Vec<String> {
        self.listed(FEW)
    }

    /// All of them, named.
    pub fn whole(&self) -> Vec<String> {
        self.listed(usize::MAX)
    }

    fn listed(&self, most: usize) -> Vec<String> {
        let lists = [
            ("Zero in every column: ", &self.everywhere),
            ("Zero in the kernels that count them: ", &self.where_counted),
        ];
        let lists = lists.into_iter().filter(|(_, labels)| !labels.is_empty());
        let listed = |(first, labels): (&str, &Vec<String>)| match labels.get(most..) {
            Some([_, _, ..]) => {
                let (named, more) = (labels[..most].join(", "), labels.len() - most);
                format!("{first}{named} and {more} more (all are in --format json).")
            }
            _ => format!("{first}{}.", labels.join(", ")),
        };
        lists.map(listed).collect()
    }
}

/// A table of counters without the rows that are all zero, and those rows.
pub fn moved(table: &Table) -> (Table, Still) {
    let mut still = Still::default();
    let mut moved = Table { rows: Vec::new(), ..table.clone() };
    // A column without a boot does not show what its kernel counts.
    let counted =
        |column: usize| table.pooled.get(column).is_none_or(|pool| !pool.iterations.is_empty());
    for row in &table.rows {
        let zero = row.values().flatten().all(|value| value == 0.0);
        let mut values = row.values().enumerate();
        let everywhere = values.all(|(column, value)| value.is_some() || !counted(column));
        match (table.kind == Kind::Counters && zero, everywhere) {
            (false, _) => moved.rows.push(row.clone()),
            (true, true) => still.everywhere.push(row.metric.clone()),
            (true, false) => still.where_counted.push(row.metric.clone()),
        }
    }
    (moved, still)
}

/// What mmtests prints before the names of rows in such a table, where they have its names.
pub fn word(comparison: &Comparison, kind: Kind) -> Option<&'static str> {
    comparison.names.filter(|at| *at >= OPS)?;
    match kind {
        Kind::Metrics | Kind::Events => None,
        Kind::Duration => Some("Duration"),
        Kind::Counters => Some("Ops"),
    }
}

/// The texts of a column.
pub struct Cells {
    /// The value of each row; where marks are wanted and there is no gain, with the opening mark.
    pub values: Vec<String>,
    /// The text after each value: its gain, or the closing mark.
    pub gains: Vec<String>,
    /// The spread of each value, in a table of events.
    pub spreads: Vec<String>,
    /// Whether there are gains.
    pub directed: bool,
}

/// The texts of column `number` of `table`. With `marks`, values without gains have marks by the results of
/// the comparison.
pub fn cells(table: &Table, number: usize, marks: Option<&Comparison>) -> Cells {
    let directed = is_directed(table);
    let known = marks.filter(|comparison| is_known(table, number, comparison));
    let (values, gains) = match (directed, known) {
        (true, _) => (values(table, number), gains(table, number)),
        (false, Some(comparison)) => marked(table, number, comparison),
        (false, None) => (values(table, number), vec![String::new(); table.rows.len()]),
    };
    let spreads = spreads(table, number);
    Cells { values, gains, spreads, directed }
}

/// Whether values have gains.
fn is_directed(table: &Table) -> bool {
    table.rows.iter().any(|row| row.better.is_some()) && table.pooled.len() > 1
}

/// The spreads of a column of events, as `perf stat -r` prints them.
fn spreads(table: &Table, column: usize) -> Vec<String> {
    let kind = SpreadOver::of(table);
    let text = |row: &Row| {
        let spread = row.cells.get(column).and_then(|cell| cell.spread);
        match (kind, spread.zip(kind).and_then(|(spread, over)| over.in_cell(&spread))) {
            (None, _) => String::new(),
            (Some(_), Some(share)) => format!("  ( +-{:6.2}% )", 100.0 * share),
            (Some(_), None) => " ".repeat(14),
        }
    };
    table.rows.iter().map(text).collect()
}

/// What the spreads of a table are over.
#[derive(Clone, Copy)]
enum SpreadOver {
    Boots,
    Intervals,
}

impl SpreadOver {
    /// Boots, or the intervals of single boots; `None` without either.
    fn of(table: &Table) -> Option<Self> {
        let has = |over: &Self| {
            let mut cells = table.rows.iter().flat_map(|row| &row.cells);
            cells.any(|cell| cell.spread.is_some_and(|spread| over.in_cell(&spread).is_some()))
        };
        [Self::Boots, Self::Intervals].into_iter().find(has)
    }

    fn in_cell(self, spread: &Spread) -> Option<f64> {
        match self {
            Self::Boots => spread.boots,
            Self::Intervals => spread.intervals,
        }
    }
}

/// What the spreads of a table of events are, and what was scaled in it.
fn on_events(table: &Table, comparison: &Comparison) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(over) = SpreadOver::of(table) {
        let over = match over {
            SpreadOver::Boots => "boots",
            SpreadOver::Intervals => "the intervals of a boot",
        };
        sentences.push(format!(
            "( +- ) is the standard error of the mean over {over}, as perf stat -r prints it."
        ));
    }
    for row in &table.rows {
        for (cell, variant) in row.cells.iter().zip(&comparison.variants) {
            let share = cell.spread.map_or(1.0, |it| it.running);
            if share < 1.0 {
                sentences.push(format!(
                    "{} was counted {:.2} % of the time in {} (multiplexed), and is scaled.",
                    row.metric,
                    100.0 * share,
                    variant.name,
                ));
            }
        }
    }
    sentences
}

fn values(table: &Table, column: usize) -> Vec<String> {
    let value = |row: &Row| decimal(row.value(column), row.decimals);
    table.rows.iter().map(value).collect()
}

/// The gains of a column, each with a space before it: ` (   0.91%)`. Blank where there is no value or no
/// direction; a dash where there is no percentage. Brackets instead of parentheses mean a verdict that luck
/// does not explain it, question marks that there is no verdict yet.
fn gains(table: &Table, column: usize) -> Vec<String> {
    let verdict = |row: &Row| row.verdict(column);
    let gain_of = |row: &Row| row.gain(column).filter(|_| column == 0 || !vanishes(row));
    let number = |row: &Row| signed(gain_of(row), verdict(row));
    let width = longest(table.rows.iter().map(|row| number(row).len())).max(MIN_GAIN_WIDTH);
    let gain = |row: &Row| {
        if row.better.is_none() || row.value(column).is_none() {
            return " ".repeat(width + 4);
        }
        let [open, close] = marks(verdict(row));
        match gain_of(row) {
            Some(_) => format!(" {open}{:>width$}%{close}", number(row)),
            None => format!(" {open}{:>width$}{close}", "-", width = width + 1),
        }
    };
    table.rows.iter().map(gain).collect()
}

/// Whether the baseline's figure is printed as 0 though it is not: no gain follows from the printed values
/// then.
pub fn vanishes(row: &Row) -> bool {
    let base = row.value(0).filter(|base| *base != 0.0);
    base.is_some_and(|base| decimal(Some(base), row.decimals) == decimal(Some(0.0), row.decimals))
}

/// The number of a gain. Its sign agrees with the verdict, however small the gain.
pub fn signed(gain: Option<f64>, verdict: Option<Verdict>) -> String {
    match decimal(gain, 2) {
        zero if verdict == Some(Verdict::Regression) && zero == "0.00" => "-0.00".to_owned(),
        text => text,
    }
}

/// The marks around a gain with this verdict.
pub fn marks(verdict: Option<Verdict>) -> [char; 2] {
    match verdict {
        Some(Verdict::Regression | Verdict::Improvement) => ['[', ']'],
        Some(Verdict::Undecided) => ['?', '?'],
        Some(Verdict::Same) | None => ['(', ')'],
    }
}

/// Whether a column's differences from the baseline are known, or should be.
fn is_known(table: &Table, column: usize, comparison: &Comparison) -> bool {
    let mut evidence = table.rows.iter().map(|row| row.evidence(column));
    column > 0 && (comparison.mode == Mode::Exact || evidence.any(|it| it.is_some()))
}

/// The values of a column without gains, and the text after each: `[12]` differs beyond luck, or in measured
/// mode by more than chance; for `?12?` that is unknown.
fn marked(table: &Table, column: usize, comparison: &Comparison) -> (Vec<String>, Vec<String>) {
    let mark = |row: &Row, value: &str| match differs(row, column, comparison) {
        _ if !row.statistic.is_mean() || value == "-" => ["", " "],
        Some(true) => ["[", "]"],
        Some(false) => ["", " "],
        None => ["?", "?"],
    };
    let marked = values(table, column).into_iter().zip(&table.rows).map(|(value, row)| {
        let [open, close] = mark(row, &value);
        (format!("{open}{value}"), close.to_owned())
    });
    marked.unzip()
}

/// Whether a column's value differs from the baseline's beyond luck, or in measured mode by more than chance
/// explains; `None` if unknown.
pub fn differs(row: &Row, column: usize, comparison: &Comparison) -> Option<bool> {
    match comparison.mode {
        Mode::Exact => row.beyond_luck(column),
        Mode::Measured => {
            let evidence = row.evidence(column)?;
            Some(evidence.p < comparison.judging.alpha())
        }
    }
}

fn longest(lengths: impl Iterator<Item = usize>) -> usize {
    lengths.max().unwrap_or(0)
}
