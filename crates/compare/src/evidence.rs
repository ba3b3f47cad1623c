//! What boots of measured mode say of a difference: how large it is, how sure that is, and what it
//! would take to know more. The boot is the unit of evidence: what was measured within one shares
//! its placement, its memory layout and its luck.

use model::Better;
use serde::Serialize;
use stats::{Counted, Estimate, Summary, variance_components};

use crate::Look;
use crate::sequential::FEWEST_SAME;

/// How differences of measured mode are judged.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Judging {
    /// A difference up to this share of the baseline's figure is none: 0.01 is 1 %.
    pub margin: f64,
    /// The confidence of intervals, such as 0.95. What it leaves is the rate of false alarms.
    pub confidence: f64,
    /// At which look, where boots may end early; then verdicts, evidence and warm-up rest on no others
    /// than those looked at. Values, their spread, what is odd and plots show all there are.
    pub look: Option<Look>,
    /// Whether what precedes a steady state within boots counts all the same.
    pub warm_up_counts: bool,
}

impl Judging {
    /// How often a verdict may be false where there is no difference.
    pub fn alpha(&self) -> f64 {
        1.0 - self.confidence
    }

    /// Whether there are boots enough to find that there is no difference.
    pub(crate) fn may_find_same(&self) -> bool {
        self.look.is_none_or(|look| look.boots >= FEWEST_SAME)
    }

    /// Whether boots of this block of the schedule count.
    pub(crate) fn counts(&self, block: u32) -> bool {
        self.look.is_none_or(|look| block < look.boots)
    }
}

impl Default for Judging {
    fn default() -> Self {
        Self { margin: 0.01, confidence: 0.95, look: None, warm_up_counts: false }
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
    /// The smallest change that would have been seen in four of five cases, had no other figure
    /// differed. None too where so few boots can't tell one among so many.
    pub visible: Option<f64>,
    /// Boots a side that would be needed to see a change as large as the margin in four of five
    /// cases. Told where verdicts rest on it; none if it is not known.
    pub needed: Option<u32>,
    /// Whether figures were compared by their logarithms.
    pub logarithmic: bool,
    /// Standard error of `ratio`: of its logarithm where figures are compared by theirs.
    pub error: f64,
    /// Degrees of freedom.
    pub freedom: f64,
}

/// Why there is no evidence for or against a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoEvidence {
    /// A side has too few boots with this figure: so many of the baseline and of the other variant.
    Boots([usize; 2]),
    /// A boot's values have no such mean, or are no numbers.
    Figure,
    /// The baseline's mean is below 0, so that there is no share of it.
    Share,
}

impl Evidence {
    /// The interval of the gain in percent, its lower bound first; positive is better. None where
    /// there is no percentage.
    pub fn gains(&self, better: Better) -> Option<[f64; 2]> {
        let [one, other] = [self.low, self.high].map(|ratio| stats::gain(better, ratio, 1.0));
        Some([one?.min(other?), one?.max(other?)])
    }

    /// By how many percent it is worse at most, with this confidence; 0 where it is not worse at
    /// all. What [`Verdict::Same`](crate::Verdict::Same) promises. None where there is no
    /// percentage.
    pub fn no_worse_than(&self, better: Better, confidence: f64) -> Option<f64> {
        let value = if self.logarithmic { self.ratio.ln() } else { self.ratio - 1.0 };
        let estimate = Estimate { value, se: self.error, df: self.freedom };
        // One-sided.
        let (low, high) = estimate.interval(2.0 * confidence - 1.0);
        let bound = if better == Better::Lower { high } else { low };
        let ratio = if self.logarithmic { bound.exp() } else { 1.0 + bound };
        // From 0 on, not negated: what is equal is not worse by -0 %.
        Some((0.0 - stats::gain(better, ratio, 1.0)?).max(0.0))
    }

    /// The gain in percent that the boots' figures amount to, about which the interval lies.
    pub fn gain(&self, better: Better) -> Option<f64> {
        stats::gain(better, self.ratio, 1.0)
    }
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

impl Variation {
    /// Of the values of each boot ([`stats::variance_components`]). Where no boot has two, what lies
    /// between boots can't be told from what lies within, and counts as the former. None where
    /// nothing is known.
    pub(crate) fn of<V: Counted>(boots: &[Vec<V>]) -> Option<Self> {
        let share =
            |percent: Option<f64>| Some(percent?.abs() / 100.0).filter(|share| share.is_finite());
        let spread = |values: &[V]| share(Summary::of(values)?.coeffvar);
        let variation = match variance_components(boots) {
            Some(components) => Self {
                between: share(components.between_percent()),
                within: share(components.within_percent()),
            },
            None => match boots {
                [only] => Self { between: None, within: spread(only) },
                _ => Self { between: spread(&boots.concat()), within: None },
            },
        };
        (variation != Self::default()).then_some(variation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::BootFigures;

    fn of(boots: &[&[f64]]) -> Option<[Option<f64>; 2]> {
        let boots: Vec<Vec<f64>> = boots.iter().map(|boot| boot.to_vec()).collect();
        Variation::of(&boots).map(|Variation { between, within }| [between, within])
    }

    #[test]
    fn what_is_equal_is_worse_by_nothing() {
        let figures = BootFigures::new((0..4).map(|block| (block, Some(7.0))));
        let evidence = figures.against(&figures, &Judging::default()).unwrap();
        for better in [Better::Lower, Better::Higher] {
            let bound = evidence.no_worse_than(better, 0.95).unwrap();
            assert_eq!(format!("{bound}"), "0");
        }
    }

    #[test]
    fn what_lies_between_boots_is_told_from_what_lies_within() {
        // By hand: means 100 and 110, variances within 2, so between (50 * 2 - 2) / 2 = 49.
        let [between, within] = of(&[&[99.0, 101.0], &[109.0, 111.0]]).unwrap().map(Option::unwrap);
        assert!((between - 7.0 / 105.0).abs() < 1e-12, "{between}");
        assert!((within - 2.0_f64.sqrt() / 105.0).abs() < 1e-12, "{within}");
    }

    #[test]
    fn with_one_value_a_boot_all_of_it_lies_between() {
        assert_eq!(of(&[&[1.0], &[3.0]]), Some([Some(0.5_f64.sqrt()), None]));
        assert_eq!(of(&[&[1.0, 3.0]]), Some([None, Some(0.5_f64.sqrt())]));
        assert_eq!((of(&[]), of(&[&[1.0]]), of(&[&[1.0], &[f64::NAN]])), (None, None, None));
        assert_eq!(of(&[&[-1.0], &[1.0]]), None);
    }
}
