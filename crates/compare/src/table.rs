//! A table: rows of figures with a column for each variant.

use std::borrow::Cow;
use std::fmt;

use model::{Better, Mean};
use serde::{Serialize, Serializer};

use crate::figures::BootFigures;
use crate::steady::Part;
use crate::{Evidence, Judging, NoEvidence, Oddity, Variation, Verdict, WarmUp};

/// The kind of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Statistics of the workload's metrics: over all values of all iterations of all boots; in exact mode
    /// over seeds, with one value per seed, the mean of its iterations.
    Metrics,
    /// Processor and elapsed seconds of a boot, summed over its iterations: the mean over boots.
    Duration,
    /// Differences of the kernel's counters over a boot's iterations: the mean over boots.
    Counters,
}

/// A statistic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The smallest value.
    Min,
    /// Arithmetic mean.
    Amean,
    /// Harmonic mean.
    Hmean,
    /// Geometric mean.
    Gmean,
    /// The arithmetic mean, as it is called beside quantiles.
    Mean,
    /// Sample standard deviation.
    Stddev,
    /// Coefficient of variation.
    CoeffVar,
    /// Spread about the harmonic mean.
    HStddev,
    /// The same in percent of it.
    HCoeffVar,
    /// The largest value.
    Max,
    /// The value that so many percent of the values do not exceed.
    Quantile(u8),
    /// The mean of the best 95 %.
    Best(Mean),
    /// The arithmetic mean of the best values, so many percent of them, as printed beside quantiles.
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
    /// First iterations that do not count: as the experiment says or, for counters and durations, as was
    /// found.
    #[serde(skip_serializing_if = "is_none")]
    pub warmup: u32,
}

fn is_none(warmup: &u32) -> bool {
    *warmup == 0
}

/// One line of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The part of the table that it stands in, such as `Reclaim`; none in a table without parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section: Option<&'static str>,
    /// The metric with its label and phase, such as `Elapsed-NUMA01`, or the counter's label.
    pub metric: String,
    /// The unit of the values.
    pub unit: String,
    /// The direction; `None` for rows that only describe.
    pub better: Option<Better>,
    /// What the values are. In tables of durations and counters the mean over boots; a percentage
    /// there is one of means.
    pub statistic: Statistic,
    /// One value a column.
    pub values: Vec<Option<f64>>,
    /// Gain over the baseline in percent, one a column; positive is better.
    pub gains: Vec<Option<f64>>,
    /// The verdict on each column's difference from the baseline: in exact mode, on rows of means
    /// with a good direction. None for the baseline.
    pub verdicts: Vec<Option<Verdict>>,
    /// The luck floor of each column's difference from the baseline, in exact mode, on rows of
    /// means; none if it is not known.
    pub floors: Vec<Option<f64>>,
    /// Whether that difference is beyond the floor.
    pub beyond_luck: Vec<Option<bool>>,
    /// The evidence on each column's difference from the baseline, in measured mode, on rows of means;
    /// `None` for the baseline, and where there are too few boots.
    pub evidence: Vec<Option<Evidence>>,
    /// Why evidence is missing, where it was sought.
    pub lacking: Vec<Option<NoEvidence>>,
    /// The spread of the values of each column, in measured mode, on rows of means.
    pub variation: Vec<Option<Variation>>,
    /// Decimals that make sense in print.
    #[serde(skip)]
    pub decimals: usize,
}

impl Row {
    /// A row with its gains, not compared with luck.
    pub(crate) fn new(
        metric: &str,
        unit: &str,
        better: Option<Better>,
        statistic: Statistic,
        values: Vec<Option<f64>>,
        decimals: usize,
    ) -> Self {
        let columns = values.len();
        Self {
            section: None,
            metric: metric.to_owned(),
            unit: unit.to_owned(),
            better,
            statistic,
            gains: gains(better, &values),
            values,
            verdicts: vec![None; columns],
            floors: vec![None; columns],
            beyond_luck: vec![None; columns],
            evidence: vec![None; columns],
            lacking: vec![None; columns],
            variation: vec![None; columns],
            decimals,
        }
    }

    /// Computes the gains of the current values.
    pub(crate) fn take_gains(&mut self) {
        self.gains = gains(self.better, &self.values);
    }

    /// The row as one of a section of the table.
    pub(crate) fn in_section(self, section: &'static str) -> Self {
        Self { section: Some(section), ..self }
    }

    /// The row with the evidence from boots of measured mode, where `figures` has one figure per boot for
    /// each column. Each comparison is still taken alone.
    pub(crate) fn against_boots(mut self, figures: &[BootFigures], judging: &Judging) -> Self {
        for column in 1..self.values.len() {
            match figures[0].against(&figures[column], judging) {
                Ok(evidence) => self.evidence[column] = Some(evidence),
                Err(lack) => self.lacking[column] = Some(lack),
            }
        }
        self.variation = figures.iter().map(BootFigures::variation).collect();
        self
    }
}

/// A table with a column for each variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The workload's name.
    pub workload: String,
    /// What it is of.
    pub kind: Kind,
    /// The data behind each column.
    pub pooled: Vec<Pool>,
    /// Phases that a table of counters leaves out, because they only prepare what is measured. An empty name
    /// stands for time outside all phases.
    pub left_out: Vec<String>,
    /// Whether it includes preparation, as tables of durations do: they cover whole iterations.
    pub with_preparation: bool,
    /// The part of phases that it covers, where samples of metrics are left out; for a table of metrics,
    /// only if some of them have one value per iteration.
    pub part: Option<Part>,
    /// Metrics and their units, in the order of the rows.
    pub units: Vec<(String, String)>,
    /// The lines.
    pub rows: Vec<Row>,
    /// In measured mode, the warm-up of metrics: what is left out, and what is only suspected.
    pub warm_ups: Vec<WarmUp>,
    /// In measured mode, what means of metrics hide.
    pub oddities: Vec<Oddity>,
}

/// Gain of each value over the first, where both exist and there is a direction.
fn gains(better: Option<Better>, values: &[Option<f64>]) -> Vec<Option<f64>> {
    let base = values.first().copied().flatten();
    let gain = |value: &Option<f64>| stats::gain(better?, (*value)?, base?);
    values.iter().map(gain).collect()
}
