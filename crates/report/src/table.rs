//! A table in the layout of the kernel's lists: labels to the left, a column for each variant, and in it
//! each value with its gain in parentheses.

use benchmarks::names::OPS;
use compare::{Comparison, Kind, Row, Spread, Table, Verdict};
use model::Mode;

use crate::document::{Block, Figure, Figures, Grid, Label, part, sentence};
use crate::exact::legend;
use crate::header::Name;
use crate::heading;
use crate::words::decimal;

/// Least width of a value and the space before it, in a table with gains.
const MIN_WIDTH_WITH_GAIN: usize = 10;
/// Least width of a value and the space before it, in a table without gains.
const MIN_WIDTH: usize = 12;
/// Width of the number of a gain; a longer number widens the column.
const MIN_GAIN_WIDTH: usize = 7;
/// Most counters that are named because they are zero in all columns.
const FEW: usize = 8;
/// Printed if there is no table.
pub const NOTHING: &str = "No complete boot has a measurement: there is nothing to compare.";
/// Printed below every table with times, if boots were emulated.
pub const EMULATED: &str = "Times under emulation (TCG) are not performance.";
/// The sentence that is printed below a table with a row of this name. No other rows are models.
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

/// Lays out `table` with its heading. Counters that are zero in all columns have no rows; they are named
/// below the table.
pub fn blocks(table: &Table, comparison: &Comparison) -> Vec<Block> {
    let (table, still) = &moved(table);
    let exact = comparison.mode == Mode::Exact;
    let below = still.sentences().into_iter().chain(below(table, comparison, exact));
    [plain(table, comparison, true)].into_iter().chain(below.map(sentence)).collect()
}

/// Lays out the heading and the rows, without the text below them. `marks` says whether values without
/// gains have marks.
pub fn plain(table: &Table, comparison: &Comparison, marks: bool) -> Block {
    part(heading::words(table, comparison), [rows(table, comparison, marks)])
}

/// Lays out the rows, with a column for each variant.
pub fn rows(table: &Table, comparison: &Comparison, marks: bool) -> Block {
    let marks = Some(comparison).filter(|_| marks);
    let columns = comparison.variants.iter().enumerate();
    let columns = columns.map(|(column, variant)| Figures {
        name: variant.name.clone(),
        cells: cells(table, column, marks),
    });
    let word = word(comparison, table.kind);
    let is_metric = table.kind == Kind::Metrics;
    let labels = table.rows.iter().map(|row| Label {
        section: row.section.map(str::to_owned),
        before: if is_metric { row.statistic.to_string() } else { word.unwrap_or_default().into() },
        name: row.metric.clone(),
        unit: if is_metric { String::new() } else { row.unit.clone() },
        stands_out: is_metric && row.statistic.is_mean(),
    });
    Block::Grid(Grid {
        heading: String::new(),
        rows: labels.collect(),
        columns: columns.collect(),
        least: if is_directed(table) { MIN_WIDTH_WITH_GAIN } else { MIN_WIDTH },
        gap: 1,
        cut: Name::cut,
    })
}

/// Returns the sentences below a table. `marks` says whether values without gains have marks, which are
/// then explained.
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

/// The names of counters that are zero in all columns.
#[derive(Default)]
pub struct Still {
    /// Counters that the kernels of all columns have.
    everywhere: Vec<String>,
    /// Counters that the kernel of some column lacks.
    where_counted: Vec<String>,
}

impl Still {
    /// Returns sentences that name the first few of these counters and give the number of the others.
    pub fn sentences(&self) -> Vec<String> {
        let lists = [
            ("Zero in every column: ", &self.everywhere),
            ("Zero in the kernels that count them: ", &self.where_counted),
        ];
        let lists = lists.into_iter().filter(|(_, labels)| !labels.is_empty());
        let listed = |(first, labels): (&str, &Vec<String>)| match labels.get(FEW..) {
            Some([_, _, ..]) => {
                let (named, more) = (labels[..FEW].join(", "), labels.len() - FEW);
                format!("{first}{named} and {more} more (all are in --format json).")
            }
            _ => format!("{first}{}.", labels.join(", ")),
        };
        lists.map(listed).collect()
    }
}

/// Splits a table of counters into the rows with a figure other than zero, and the names of the other rows.
pub fn moved(table: &Table) -> (Table, Still) {
    let mut still = Still::default();
    let mut moved = Table { rows: Vec::new(), ..table.clone() };
    // A column without a complete boot does not show which counters its kernel has.
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

/// Returns the word that mmtests prints before the names of rows in tables of this kind. `None` if there is
/// none, or if rows have our names.
pub fn word(comparison: &Comparison, kind: Kind) -> Option<&'static str> {
    comparison.names.filter(|at| *at >= OPS)?;
    match kind {
        Kind::Metrics | Kind::Events => None,
        Kind::Duration => Some("Duration"),
        Kind::Counters => Some("Ops"),
    }
}

/// Formats the column `number` of `table`. If `marks` is a comparison, values without gains have marks that
/// say whether they differ from the baseline.
fn cells(table: &Table, number: usize, marks: Option<&Comparison>) -> Vec<Figure> {
    let known = marks.filter(|comparison| is_known(table, number, comparison));
    let (values, gains) = match (is_directed(table), known) {
        (true, _) => (values(table, number), gains(table, number)),
        (false, Some(comparison)) => marked(table, number, comparison),
        (false, None) => (values(table, number), vec![String::new(); table.rows.len()]),
    };
    let cells = values.into_iter().zip(gains).zip(spreads(table, number)).zip(&table.rows);
    let cells = cells.map(|(((value, beside), spread), row)| Figure {
        value,
        beside,
        spread,
        verdict: row.verdict(number),
    });
    cells.collect()
}

/// Returns whether the table has gains: a row has a good direction, and there is a column besides the
/// baseline.
fn is_directed(table: &Table) -> bool {
    table.rows.iter().any(|row| row.better.is_some()) && table.pooled.len() > 1
}

/// Formats the spreads of a column of events, as `perf stat -r` prints them.
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

/// What the spreads of a table are taken over: all boots, or the intervals of a single boot.
#[derive(Clone, Copy)]
enum SpreadOver {
    Boots,
    Intervals,
}

impl SpreadOver {
    /// Returns boots if a row has a spread over boots, otherwise intervals; `None` if no row has a spread.
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

/// Returns sentences for a table of events: what the spreads are taken over, and which figures were scaled
/// because events shared a counter.
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
    // A number per iteration was counted as long as its rate.
    for row in table.rows.iter().filter(|row| row.unit.ends_with("/s")) {
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

/// Formats the gains of a column, each with a space before it: ` (   0.91%)`. A gain is blank if the row
/// has no value or no good direction, and a dash if there is no percentage. Brackets mean a regression or
/// an improvement, question marks an undecided verdict, parentheses any other gain.
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

/// Returns whether the baseline's figure is printed as 0 but is not 0. No gain is printed then, because
/// none follows from the printed values.
pub fn vanishes(row: &Row) -> bool {
    let base = row.value(0).filter(|base| *base != 0.0);
    base.is_some_and(|base| decimal(Some(base), row.decimals) == decimal(Some(0.0), row.decimals))
}

/// Formats the number of a gain. A regression has a minus sign even if the gain rounds to zero.
pub fn signed(gain: Option<f64>, verdict: Option<Verdict>) -> String {
    match decimal(gain, 2) {
        zero if verdict == Some(Verdict::Regression) && zero == "0.00" => "-0.00".to_owned(),
        text => text,
    }
}

/// Returns the opening and the closing mark of a gain with this verdict.
pub fn marks(verdict: Option<Verdict>) -> [char; 2] {
    match verdict {
        Some(Verdict::Regression | Verdict::Improvement) => ['[', ']'],
        Some(Verdict::Undecided) => ['?', '?'],
        Some(Verdict::Same) | None => ['(', ')'],
    }
}

/// Returns whether the values of a column have marks: always in exact mode, in measured mode if a row has
/// evidence. The baseline has none.
fn is_known(table: &Table, column: usize, comparison: &Comparison) -> bool {
    let mut evidence = table.rows.iter().map(|row| row.evidence(column));
    column > 0 && (comparison.mode == Mode::Exact || evidence.any(|it| it.is_some()))
}

/// Formats a column without gains: the values, and the text after each. `[12]` differs from the baseline
/// beyond luck, or in measured mode by more than chance; `?12?` means that this is not known.
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

/// Returns whether a column's value differs from the baseline's beyond luck, or in measured mode by more
/// than chance explains. `None` if that is not known.
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
