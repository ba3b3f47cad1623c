//! What boots of measured mode say of a difference: how large it is, how sure that is, and what it
//! would take to know more.

use serde::Serialize;

/// What the boots of two variants say of one figure, in measured mode. Shares are of the baseline's
/// figure: 0.01 is 1 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// The other variant's figure over the baseline's.
    pub ratio: f64,
    /// The lower bound of the ratio's 95 % confidence interval.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
    /// How probable so large a difference is where there is none, with as many comparisons as were
    /// made.
    pub p: f64,
    /// Complete boots of the baseline and of the other variant that it rests on.
    pub boots: [usize; 2],
    /// Whether boots of one block of the schedule were compared with each other.
    pub paired: bool,
    /// The smallest change that would have been seen in four of five cases.
    pub visible: Option<f64>,
    /// Boots a side that would be needed to see a change as large as the margin; none if unknown.
    pub needed: Option<u32>,
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
