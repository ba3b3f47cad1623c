//! A table: rows of figures with a column for each variant.

use std::borrow::Cow;
use std::fmt;

use model::{Better, Mean};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::figures::BootFigures;
use crate::figures::steady::Part;
use crate::{Effects, Evidence, Judging, NoEvidence, Oddity, Variation, Verdict, WarmUp};

/// The kind of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Statistics of the workload's metrics over all values of all iterations of all boots. In exact mode they are
    /// over seeds; a seed's value is the mean of its iterations.
    #[default]
    Metrics,
    /// Processor and elapsed seconds of a boot, summed over its iterations: the mean over boots.
    Duration,
    /// Differences of the kernel's counters over a boot's iterations: the mean over boots.
    Counters,
    /// Events that perf counts, per second of a phase: the mean over boots.
    Events,
}

/// The statistic of a row's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The smallest value.
    Min,
    /// The arithmetic mean of the values.
    Amean,
    /// The harmonic mean of the values.
    Hmean,
    /// The geometric mean of the values.
    Gmean,
    /// The arithmetic mean, named as in rows with quantiles.
    Mean,
    /// The sample standard deviation, about the arithmetic mean.
    Stddev,
    /// Coefficient of variation in percent: the standard deviation over the mean.
    CoeffVar,
    /// Standard deviation about the harmonic mean.
    HStddev,
    /// Standard deviation about the harmonic mean, in percent of that mean.
    HCoeffVar,
    /// The largest value.
    Max,
    /// The value that this percentage of the values does not exceed.
    Quantile(u8),
    /// The mean of the best 95 %.
    Best(Mean),
    /// The arithmetic mean of this percentage of the values, the best ones, as printed in rows with quantiles.
    BestMean(u8),
    /// In exact mode, the mean of instructions at equal entries of functions.
    Equal,
    /// In exact mode, the luck floor of the difference from the baseline.
    Luck,
}

impl Statistic {
    /// Whether it is a mean.
    pub const fn is_mean(self) -> bool {
        matches!(self, Self::Amean | Self::Hmean | Self::Gmean | Self::Mean)
    }

    /// The name used in tables.
    pub fn name(self) -> Cow<'static, str> {
        let name = match self {
            Self::Min => "Min",
            Self::Amean => "Amean",
            Self::Hmean => "Hmean",
            Self::Gmean => "Gmean",
            Self::Mean => "Mean",
            Self::Stddev => "Stddev",
            Self::CoeffVar => "CoeffVar",
            Self::HStddev => "HStddev",
            Self::HCoeffVar => "HCoeffVar",
            Self::Max => "Max",
            Self::Quantile(25) => "1st-qrtle",
            Self::Quantile(50) => "2nd-qrtle",
            Self::Quantile(75) => "3rd-qrtle",
            Self::Quantile(percent) => return format!("Max-{percent}%").into(),
            Self::Best(Mean::Amean) => "BAmean.95",
            Self::Best(Mean::Hmean) => "BHmean.95",
            Self::Best(Mean::Gmean) => "BGmean.95",
            Self::BestMean(percent) => return format!("Best{percent}%Mean").into(),
            Self::Equal => "Equal",
            Self::Luck => "Luck",
        };
        name.into()
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name())
    }
}

impl Serialize for Statistic {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The data behind one column of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pool {
    /// Number of iterations that count, for each boot that counts.
    pub iterations: Vec<usize>,
    /// Number of first iterations that do not count. The experiment gives it; for counters and durations it can be
    /// detected.
    #[serde(skip_serializing_if = "is_none")]
    pub warmup: u32,
}

fn is_none(warmup: &u32) -> bool {
    *warmup == 0
}

/// One line of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The section of the table that has the row, such as `Reclaim`; `None` in a table without sections.
    pub section: Option<&'static str>,
    /// The metric with its label and phase, such as `Elapsed-NUMA01`, or the counter's label.
    pub metric: String,
    /// The unit of the values.
    pub unit: String,
    /// The direction; `None` for rows that only describe.
    pub better: Option<Better>,
    /// The statistic of the values. In tables of durations and counters it is the mean over boots; a percentage there
    /// is computed from means.
    pub statistic: Statistic,
    /// One cell per column. The first is the baseline's.
    pub cells: Vec<Cell>,
    /// Number of decimals to print.
    pub decimals: usize,
}

/// The figure of one variant, and how it differs from the baseline's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// The figure; `None` if the variant lacks it.
    pub value: Option<f64>,
    /// In exact mode, the baseline's figure over the seeds of this column; `None` if it is the one in the baseline's
    /// cell, as it mostly is.
    pub base: Option<f64>,
    /// Gain over the baseline in percent; positive is better.
    pub gain: Option<f64>,
    /// The verdict on the difference, for rows of means with a good direction. `None` for the baseline.
    pub verdict: Option<Verdict>,
    /// The evidence that the verdict rests on.
    pub basis: Basis,
    /// The spread of an event's rate.
    pub spread: Option<Spread>,
}

/// The spread of an event's rates as a share of their mean, as `perf stat -r` prints it: the standard error of
/// the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Over the intervals of a boot; `None` for fewer than two.
    pub intervals: Option<f64>,
    /// Over boots; `None` for fewer than two.
    pub boots: Option<f64>,
    /// The share of the time during which the event was counted; below 1 if counters were multiplexed.
    pub running: f64,
}

/// The evidence on a figure and on its difference from the baseline's.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Basis {
    /// None, because the row has no means.
    #[default]
    Nothing,
    /// The boots of measured mode.
    Measured {
        /// The evidence, or why there is none. `None` for the baseline.
        evidence: Option<Result<Evidence, NoEvidence>>,
        /// The spread of the values behind the figure.
        variation: Option<Variation>,
    },
    /// The seeds of exact mode.
    Exact {
        /// The luck floor of the difference; `None` if it is not known.
        floor: Option<f64>,
        /// Whether the difference is beyond the floor.
        beyond_luck: Option<bool>,
        /// If the verdict is another one than `same`, and the change at equal entries is within the margin for certain:
        /// that change, as a share of the baseline's figure.
        same_at_equal_entries: Option<f64>,
        /// The change without loops that copy and clear memory, if the verdict would be another one or they have a large
        /// part in the change.
        without_loops: Option<WithoutLoops>,
    },
}

/// The change of a row without loops that copy and clear memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WithoutLoops {
    /// The change as a share of the baseline's figure without them.
    pub share: f64,
    /// Whether it may be luck: it does not exceed the row's floor, in which the loops have hardly a part.
    pub is_luck: bool,
}

impl Row {
    /// A row with its gains, and no evidence.
    pub(crate) fn new(
        metric: &str,
        unit: &str,
        better: Option<Better>,
        statistic: Statistic,
        values: Vec<Option<f64>>,
        decimals: usize,
    ) -> Self {
        let cells = values.into_iter().map(|value| Cell { value, ..Cell::default() });
        let mut row = Self {
            section: None,
            metric: metric.to_owned(),
            unit: unit.to_owned(),
            better,
            statistic,
            cells: cells.collect(),
            decimals,
        };
        row.take_gains();
        row
    }

    /// The figure of a column; `None` if the column has none or does not exist. The same holds for the methods below.
    pub fn value(&self, column: usize) -> Option<f64> {
        self.cells.get(column)?.value
    }

    /// The figure that a column is compared with.
    pub fn base(&self, column: usize) -> Option<f64> {
        self.cells.get(column)?.base.or(self.value(0))
    }

    /// The values, one per column.
    pub fn values(&self) -> impl Iterator<Item = Option<f64>> {
        self.cells.iter().map(|cell| cell.value)
    }

    /// The gain of a column in percent.
    pub fn gain(&self, column: usize) -> Option<f64> {
        self.cells.get(column)?.gain
    }

    /// The verdict on a column.
    pub fn verdict(&self, column: usize) -> Option<Verdict> {
        self.cells.get(column)?.verdict
    }

    /// Whether any column has a verdict.
    pub fn is_judged(&self) -> bool {
        self.cells.iter().any(|cell| cell.verdict.is_some())
    }

    /// The evidence on a column, in measured mode.
    pub fn evidence(&self, column: usize) -> Option<Evidence> {
        self.cells.get(column)?.evidence().copied()
    }

    /// Why a column has no evidence, in measured mode.
    pub fn no_evidence(&self, column: usize) -> Option<NoEvidence> {
        match self.cells.get(column)?.basis {
            Basis::Measured { evidence: Some(Err(why)), .. } => Some(why),
            _ => None,
        }
    }

    /// The spread of the values of a column, in measured mode.
    pub fn variation(&self, column: usize) -> Option<Variation> {
        match self.cells.get(column)?.basis {
            Basis::Measured { variation, .. } => variation,
            _ => None,
        }
    }

    /// The luck floor of a column's difference, in exact mode.
    pub fn floor(&self, column: usize) -> Option<f64> {
        match self.cells.get(column)?.basis {
            Basis::Exact { floor, .. } => floor,
            _ => None,
        }
    }

    /// Whether a column's difference is beyond luck, in exact mode.
    pub fn beyond_luck(&self, column: usize) -> Option<bool> {
        match self.cells.get(column)?.basis {
            Basis::Exact { beyond_luck, .. } => beyond_luck,
            _ => None,
        }
    }

    /// The change at equal entries of a row whose verdict is not `same`, as a share, if it is within the margin for
    /// certain.
    pub fn same_at_equal_entries(&self, column: usize) -> Option<f64> {
        match self.cells.get(column)?.basis {
            Basis::Exact { same_at_equal_entries, .. } => same_at_equal_entries,
            _ => None,
        }
    }

    /// The change of a row without loops that copy and clear memory, if the verdict would be another one or they have a
    /// large part in the change.
    pub fn without_loops(&self, column: usize) -> Option<WithoutLoops> {
        match self.cells.get(column)?.basis {
            Basis::Exact { without_loops, .. } => without_loops,
            _ => None,
        }
    }

    /// The results of `of`, one entry per column.
    fn each<T>(&self, of: impl Fn(&Self, usize) -> Option<T>) -> Vec<Option<T>> {
        (0..self.cells.len()).map(|column| of(self, column)).collect()
    }

    /// Computes the gains of the current values.
    pub(crate) fn take_gains(&mut self) {
        for column in 0..self.cells.len() {
            let (base, value) = (self.base(column), self.value(column));
            self.cells[column].gain = (|| stats::gain(self.better?, value?, base?))();
        }
    }

    /// The row in this section of the table.
    pub(crate) fn in_section(self, section: &'static str) -> Self {
        Self { section: Some(section), ..self }
    }

    /// The row with the evidence from boots of measured mode. `figures` has one entry per column, with one figure per
    /// boot. The evidence is not yet adjusted for the number of comparisons.
    pub(crate) fn against_boots(mut self, figures: &[BootFigures], judging: &Judging) -> Self {
        for (column, cell) in self.cells.iter_mut().enumerate() {
            cell.basis = Basis::Measured {
                evidence: (column > 0).then(|| figures[0].against(&figures[column], judging)),
                variation: figures[column].variation(),
            };
        }
        self
    }

    /// The row with the spread of an event's rate in each column.
    pub(crate) fn with_spreads(mut self, spreads: impl Iterator<Item = Option<Spread>>) -> Self {
        self.cells.iter_mut().zip(spreads).for_each(|(cell, spread)| cell.spread = spread);
        self
    }

    /// The row with another spread of each column's values.
    pub(crate) fn with_variation(
        mut self,
        spreads: impl IntoIterator<Item = Option<Variation>>,
    ) -> Self {
        for (cell, spread) in self.cells.iter_mut().zip(spreads) {
            if let Basis::Measured { variation, .. } = &mut cell.basis {
                *variation = spread;
            }
        }
        self
    }
}

impl Cell {
    /// The evidence, in measured mode; `None` for the baseline.
    pub fn evidence(&self) -> Option<&Evidence> {
        match &self.basis {
            Basis::Measured { evidence: Some(Ok(evidence)), .. } => Some(evidence),
            _ => None,
        }
    }

    /// The evidence, in measured mode, to be adjusted.
    pub fn evidence_mut(&mut self) -> Option<&mut Evidence> {
        match &mut self.basis {
            Basis::Measured { evidence: Some(Ok(evidence)), .. } => Some(evidence),
            _ => None,
        }
    }
}

/// Serializes cells as lists with one entry per column.
impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_map(None)?;
        if let Some(section) = self.section {
            row.serialize_entry("section", section)?;
        }
        row.serialize_entry("metric", &self.metric)?;
        row.serialize_entry("unit", &self.unit)?;
        row.serialize_entry("better", &self.better)?;
        row.serialize_entry("statistic", &self.statistic)?;
        row.serialize_entry("values", &self.each(Self::value))?;
        if self.cells.iter().any(|cell| cell.base.is_some()) {
            row.serialize_entry("bases", &self.each(Self::base))?;
        }
        row.serialize_entry("gains", &self.each(Self::gain))?;
        row.serialize_entry("verdicts", &self.each(Self::verdict))?;
        row.serialize_entry("floors", &self.each(Self::floor))?;
        row.serialize_entry("beyond_luck", &self.each(Self::beyond_luck))?;
        let same = self.each(Self::same_at_equal_entries);
        if same.iter().any(Option::is_some) {
            row.serialize_entry("same_at_equal_entries", &same)?;
        }
        let without = self.each(Self::without_loops);
        if without.iter().any(Option::is_some) {
            let share = |row: &Self, column| Some(row.without_loops(column)?.share);
            row.serialize_entry("without_loops", &self.each(share))?;
            let is_luck = |row: &Self, column| Some(row.without_loops(column)?.is_luck);
            row.serialize_entry("without_loops_is_luck", &self.each(is_luck))?;
        }
        row.serialize_entry("evidence", &self.each(Self::evidence))?;
        row.serialize_entry("lacking", &self.each(Self::no_evidence))?;
        row.serialize_entry("variation", &self.each(Self::variation))?;
        let interval = |row: &Self, column| row.evidence(column)?.gains(row.better?);
        row.serialize_entry("intervals", &self.each(interval))?;
        if self.cells.iter().any(|cell| cell.spread.is_some()) {
            row.serialize_entry("spreads", &self.each(|row, column| row.cells[column].spread))?;
        }
        row.end()
    }
}

/// A table with a column for each variant.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// The workload's name.
    pub workload: String,
    /// The kind of figures in the rows.
    pub kind: Kind,
    /// The data behind each column.
    pub pooled: Vec<Pool>,
    /// Phases that a table of counters leaves out because they only prepare what is measured. An empty name stands
    /// for the time outside all phases.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Whether it includes phases that only prepare. Tables of durations do, because they cover whole iterations.
    #[serde(skip)]
    pub with_preparation: bool,
    /// The part of phases that it covers, if samples of metrics are left out. A table of metrics has this only if
    /// some metrics have one value per iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// Metrics and their units, in the order of the rows.
    #[serde(skip)]
    pub units: Vec<(String, String)>,
    /// The lines of the table.
    pub rows: Vec<Row>,
    /// In measured mode, the warm-up of metrics, both left out and only suspected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warm_ups: Vec<WarmUp>,
    /// In measured mode, patterns that means of metrics hide.
    pub oddities: Vec<Oddity>,
    /// The effects of the axes on the rows that verdicts rest on, if the variants are a full cross.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<Effects>,
}
