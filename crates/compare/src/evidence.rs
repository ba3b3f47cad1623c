//! What boots of measured mode say of a difference: how large it is, how sure that is, and what it
//! would take to know more. The boot is the unit of evidence: what was measured within one shares
//! its placement, its memory layout and its luck.

use serde::Serialize;

/// How differences of measured mode are judged.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Judging {
    /// A difference up to this share of the baseline's figure is none: 0.01 is 1 %.
    pub margin: f64,
    /// The confidence of intervals, such as 0.95. What it leaves is the rate of false alarms.
    pub confidence: f64,
}

impl Judging {
    /// How often a verdict may be false where there is no difference.
    pub fn alpha(&self) -> f64 {
        1.0 - self.confidence
    }
}

impl Default for Judging {
    fn default() -> Self {
        Self { margin: 0.01, confidence: 0.95 }
    }
}

/// What the boots of two variants say of one figure, in measured mode. Shares are of the baseline's
/// figure: 0.01 is 1 %.
///
/// Where all figures are above 0 they are compared by their logarithms, and `ratio` is that of
/// geometric means over boots. Where some are 0 or less their differences are compared, and `ratio`
/// is 1 + difference / mean of the baseline, which is taken as it was found; it is infinite if that
/// is 0, and so are the bounds then.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// The other variant's figure over the baseline's.
    pub ratio: f64,
    /// The lower bound of the ratio's confidence interval (95 % unless [`Judging`] says another).
    pub low: f64,
    /// The upper bound.
    pub high: f64,
    /// How probable so large a difference is where there is none, with as many comparisons as were
    /// made: by Holm's method where verdicts rest on it, else as a false discovery rate.
    pub p: f64,
    /// The same, had this been the only comparison.
    pub p_alone: f64,
    /// How probable a difference so small is where the true one is as large as the margin: the
    /// larger p-value of two one-sided tests.
    pub p_same: f64,
    /// Boots of the baseline and of the other variant that it rests on.
    pub boots: [usize; 2],
    /// Whether boots of one block of the schedule were compared with each other.
    pub paired: bool,
    /// The smallest change that would have been seen in four of five cases.
    pub visible: Option<f64>,
    /// Boots a side that would be needed to see a change as large as the margin in four of five
    /// cases; none if unknown.
    pub needed: Option<u32>,
    /// Standard error of `ratio`: of its logarithm where figures are compared by theirs.
    pub error: f64,
    /// Degrees of freedom.
    pub freedom: f64,
}

/// Why there is no evidence for or against a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lack {
    /// A side has too few boots with this figure: so many of the baseline and of the other variant.
    Boots([usize; 2]),
    /// A boot's values have no such mean, or are no numbers.
    Figure,
    /// The baseline's mean is below 0, so that there is no share of it.
    Share,
}

/// How far the figures of one variant lie apart. Shares of their mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Variation {
    /// Standard deviation from boot to boot, beyond what variation within boots explains. None for
    /// fewer than 2 boots.
    pub between: Option<f64>,
    /// Standard deviation within a boot. None where no boot has two values.
    pub within: Option<f64>,
}
