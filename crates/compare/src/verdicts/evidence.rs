//! Evidence from boots of measured mode: how large a difference is, how certain it is, and how many boots
//! would be needed to decide. The boot is the unit of evidence, because values from one boot share its page
//! placement and memory layout.

use std::collections::BTreeMap;

use model::Better;
use serde::Serialize;
use stats::{Counted, Estimate, Summary, variance_components};

use super::luck::LEVEL;

/// Fewest boots per side for the verdict `same`. With 4, figures with two modes are too often all in the
/// same mode: they then agree to the last digit, although a mode may be more frequent in one variant.
const FEWEST_SAME: u32 = 6;

/// How differences of measured mode are judged.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Judging {
    /// A difference up to this share of the baseline's figure counts as none: 0.01 is 1 %.
    pub margin: f64,
    /// The confidence of intervals, such as 0.95. The rate of false alarms is 1 minus this.
    pub confidence: f64,
    /// Exact mode: the largest share of tables in which luck alone may cause a regression or an improvement.
    #[serde(skip)]
    pub luck: f64,
    /// The current look of a run with `boots = "auto"`. Verdicts, evidence and warm-up then rest on its boots
    /// only. Values, their spread, oddities and plots show all boots.
    pub look: Option<Look>,
    /// Whether warm-up within boots counts.
    pub warm_up_counts: bool,
}

impl Judging {
    /// The rate of false verdicts where there is no difference.
    pub fn alpha(&self) -> f64 {
        1.0 - self.confidence
    }

    /// Judging for one of several tables that share the rates of false verdicts (Bonferroni).
    pub fn shared_by(&self, tables: usize) -> Self {
        let share = tables.max(1) as f64;
        let confidence = 1.0 - self.alpha() / share;
        Self { confidence, luck: self.luck / share, ..*self }
    }

    /// Whether there are enough boots for the verdict `same`.
    pub(crate) fn may_find_same(&self) -> bool {
        self.look.is_none_or(|look| look.boots >= FEWEST_SAME)
    }

    /// Whether boots of this block of the schedule count at the current look.
    pub(crate) fn counts(&self, block: u32) -> bool {
        self.look.is_none_or(|look| block < look.boots)
    }
}

impl Default for Judging {
    fn default() -> Self {
        Self { margin: 0.01, confidence: 0.95, luck: LEVEL, look: None, warm_up_counts: false }
    }
}

/// A look in a run with `boots = "auto"`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Look {
    /// Its number, from 1; 0 while there are too few boots for the first.
    pub number: u32,
    /// The largest number of looks.
    pub of: u32,
    /// Number of boots of each variant that the look judges. They are those of the first blocks of the schedule, one
    /// per block.
    pub boots: u32,
    /// Number of boots of each variant at the next look.
    pub next: u32,
}

/// Evidence from the boots of two variants about one figure, in measured mode. Shares are of the baseline's
/// figure: 0.01 is 1 %.
///
/// If all figures are above 0, their logarithms are compared, and `ratio` is that of geometric means over
/// boots. Otherwise their differences are compared, and `ratio` is 1 + difference / mean of the baseline;
/// the error of that mean is ignored. If it is 0, the ratio and its bounds are infinite.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// The other variant's figure over the baseline's.
    pub ratio: f64,
    /// The lower bound of the ratio's confidence interval, whose confidence is [`Judging::confidence`].
    pub low: f64,
    /// The upper bound of that interval.
    pub high: f64,
    /// The p-value of the difference, adjusted for the number of comparisons: by Holm's method where
    /// verdicts rest on it, otherwise as a false discovery rate.
    pub p: f64,
    /// The p-value as if this were the only comparison.
    pub p_alone: f64,
    /// The p-value of equivalence: the larger one of two one-sided tests against the margin.
    pub p_same: f64,
    /// Numbers of boots of the baseline and of the other variant.
    pub boots: [usize; 2],
    /// Whether boots of the same block were compared with each other.
    pub paired: bool,
    /// The smallest change that would be seen in four of five cases if no other figure differed. `None` if it is not
    /// known, or if there are too few boots to show one change among this many figures.
    pub visible: Option<f64>,
    /// Boots per side needed to see a change as large as the margin in four of five cases. `None` if no verdict rests
    /// on the row, or the number is not known.
    pub needed: Option<u32>,
    /// Whether figures were compared by their logarithms.
    pub logarithmic: bool,
    /// Standard error of `ratio`, or of its logarithm where logarithms are compared.
    pub error: f64,
    /// Degrees of freedom of that error.
    pub freedom: f64,
}

/// Why there is no evidence for or against a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoEvidence {
    /// A side has too few boots with this figure. The value has the numbers of the baseline and of the other variant.
    Boots([usize; 2]),
    /// A boot's values have no such mean, or are not numbers.
    Figure,
    /// The boots are of several hosts, and no host has enough boots of both sides.
    Hosts,
    /// The baseline's mean is below 0, so there is no share of it.
    Share,
}

impl Evidence {
    /// The interval of the gain in percent, the lower bound first; positive is better. `None` if there is no
    /// percentage.
    pub fn gains(&self, better: Better) -> Option<[f64; 2]> {
        let [one, other] = [self.low, self.high].map(|ratio| stats::gain(better, ratio, 1.0));
        Some([one?.min(other?), one?.max(other?)])
    }

    /// The upper bound, at this confidence, of how much worse the other variant is, in percent; 0 if it is not worse.
    /// [`Verdict::Same`](crate::Verdict::Same) rests on this bound. `None` if there is no percentage.
    pub fn no_worse_than(&self, better: Better, confidence: f64) -> Option<f64> {
        let value = if self.logarithmic { self.ratio.ln() } else { self.ratio - 1.0 };
        let estimate = Estimate { value, se: self.error, df: self.freedom };
        // A one-sided bound at `confidence` is a bound of this two-sided interval.
        let (low, high) = estimate.interval(2.0 * confidence - 1.0);
        let bound = if better == Better::Lower { high } else { low };
        let ratio = if self.logarithmic { bound.exp() } else { 1.0 + bound };
        // Avoids -0: equal figures are worse by 0 %.
        Some((0.0 - stats::gain(better, ratio, 1.0)?).max(0.0))
    }

    /// The gain in percent by the boots' figures, which the interval contains.
    pub fn gain(&self, better: Better) -> Option<f64> {
        stats::gain(better, self.ratio, 1.0)
    }
}

/// The spread of the figures of one variant, as shares of their mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Variation {
    /// Standard deviation from boot to boot, beyond what variation within boots explains. `None` for fewer than 2
    /// boots.
    pub between: Option<f64>,
    /// Standard deviation within a boot. `None` if no boot has two values.
    pub within: Option<f64>,
}

impl Variation {
    /// The variation of the values of each boot ([`stats::variance_components`]). If no boot has two values,
    /// variation between and within boots cannot be separated, and all of it counts as between. `None` if nothing is
    /// known.
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

impl Variation {
    /// The variation within hosts, from the host and the values of each boot. It is the root of the mean square over
    /// hosts. Hosts are weighted by degrees of freedom for the variation between boots, and by boots for the
    /// variation within them.
    pub(crate) fn within_hosts<V: Counted>(
        boots: impl IntoIterator<Item = (u64, Vec<V>)>,
    ) -> Option<Self> {
        let mut by_host: BTreeMap<u64, Vec<Vec<V>>> = BTreeMap::new();
        for (host, values) in boots {
            by_host.entry(host).or_default().push(values);
        }
        let known: Vec<(f64, Self)> = by_host
            .values()
            .filter_map(|boots| Some((boots.len() as f64, Self::of(boots)?)))
            .collect();
        if let [(_, only)] = known[..] {
            return Some(only);
        }
        let mean = |share: fn(&Self) -> Option<f64>, less: f64| {
            let squares: Vec<(f64, f64)> =
                known.iter().filter_map(|(n, it)| Some((n - less, share(it)?.powi(2)))).collect();
            let whole: f64 = squares.iter().map(|(weight, _)| weight).sum();
            let sum: f64 = squares.iter().map(|(weight, square)| weight * square).sum();
            (whole > 0.0).then(|| (sum / whole).sqrt())
        };
        let variation =
            Self { between: mean(|it| it.between, 1.0), within: mean(|it| it.within, 0.0) };
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
    fn equal_figures_are_not_worse() {
        let figures = BootFigures::new((0..4).map(|block| (block, Some(7.0))));
        let evidence = figures.against(&figures, &Judging::default()).unwrap();
        for better in [Better::Lower, Better::Higher] {
            let bound = evidence.no_worse_than(better, 0.95).unwrap();
            assert_eq!(format!("{bound}"), "0");
        }
    }

    #[test]
    fn variation_between_boots_is_separated_from_that_within() {
        // By hand: means 100 and 110, variances within 2, so between (50 * 2 - 2) / 2 = 49.
        let [between, within] = of(&[&[99.0, 101.0], &[109.0, 111.0]]).unwrap().map(Option::unwrap);
        assert!((between - 7.0 / 105.0).abs() < 1e-12, "{between}");
        assert!((within - 2.0_f64.sqrt() / 105.0).abs() < 1e-12, "{within}");
    }

    /// By hand: hosts at 10 and 100 with variances between boots of 2 and 200 (3 boots and 2), so shares of 0.1414 each.
    #[test]
    fn variation_between_boots_leaves_hosts_out() {
        let of = |boots: &[(u64, f64)]| {
            Variation::within_hosts(boots.iter().map(|(host, value)| (*host, vec![*value])))
        };
        let sd = 2.0_f64.sqrt();
        let slow = [(1, 10.0 - sd), (1, 10.0), (1, 10.0 + sd)];
        let fast = [(2, 90.0), (2, 110.0)];
        let between = of(&[&slow[..], &fast].concat()).unwrap().between.unwrap();
        assert!((between - 0.1 * sd).abs() < 1e-12, "{between}");
        assert_eq!(of(&slow), Variation::of(&slow.map(|(_, value)| vec![value])));
        assert_eq!(of(&[(1, 1.0), (2, 5.0)]), None);
    }

    #[test]
    fn with_one_value_per_boot_all_variation_is_between() {
        assert_eq!(of(&[&[1.0], &[3.0]]), Some([Some(0.5_f64.sqrt()), None]));
        assert_eq!(of(&[&[1.0, 3.0]]), Some([None, Some(0.5_f64.sqrt())]));
        assert_eq!((of(&[]), of(&[&[1.0]]), of(&[&[1.0], &[f64::NAN]])), (None, None, None));
        assert_eq!(of(&[&[-1.0], &[1.0]]), None);
    }
}
