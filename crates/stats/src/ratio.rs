//! Ratios of two sides: intervals, tests against a bound, and equivalence.

use crate::student::Estimate;

/// The fewest pairs, or figures a side, that are tested. Two figures of a bimodal distribution are too often close to
/// each other: with 2 pairs, a 95 % interval held the true value in 88 % of cases.
const MIN_FIGURES: usize = 3;

/// A ratio, and the bounds of its confidence interval. All are above 0; 1 means no change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioInterval {
    /// The ratio of geometric means.
    pub ratio: f64,
    /// The lower bound of the interval.
    pub low: f64,
    /// The upper bound of the interval.
    pub high: f64,
}

/// Inference on the ratio of two geometric means from independent figures: interval, tests against any
/// bound, equivalence. It is Student's t on logarithms, so that a ratio and its inverse are treated alike
/// and factors common to both sides cancel.
///
/// Figures must be independent. Values that are not, such as those of one unit, must be one figure, such as their
/// mean (Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioTest {
    /// The ratio of the second to the first geometric mean; for pairs, the geometric mean of their ratios.
    /// Above 0.
    pub ratio: f64,
    /// The probability of a ratio this far or farther from 1 if the true one is 1. Two-sided.
    pub p_difference: f64,
    /// Standard error of the ratio's logarithm: 0.01 is about 1 % of the ratio.
    pub se: f64,
    /// Degrees of freedom of the standard error.
    pub df: f64,
}

impl RatioTest {
    /// Tests pairs. Influences that both figures of a pair share cancel, so figures that were measured together
    /// should be pairs. The logarithms of the pairs' ratios are tested by [`Estimate::of_mean`]. `None` for fewer
    /// than 3 pairs, or unless every figure is finite and above 0.
    pub fn paired(pairs: &[(f64, f64)]) -> Option<Self> {
        let logarithms: Vec<f64> =
            pairs.iter().map(|&(first, second)| second.ln() - first.ln()).collect();
        let enough = pairs.len() >= MIN_FIGURES;
        enough.then(|| Estimate::of_mean(&logarithms)).flatten().map(Self::of)
    }

    /// Tests two independent samples, `new` against `base`. Their logarithms are tested by
    /// [`Estimate::of_difference`] (Welch). This is approximate: of 95 % intervals, 94 to 96.5 % hold the true value.
    /// `None` for fewer than 3 figures a side, or unless every figure is finite and above 0.
    pub fn unpaired(base: &[f64], new: &[f64]) -> Option<Self> {
        let [a, b] = [base, new].map(|x| x.iter().map(|x| x.ln()).collect::<Vec<f64>>());
        let enough = a.len().min(b.len()) >= MIN_FIGURES;
        enough.then(|| Estimate::of_difference(&a, &b)).flatten().map(Self::of)
    }

    fn of(logarithm: Estimate) -> Self {
        let Estimate { value, se, df } = logarithm;
        Self { ratio: value.exp(), p_difference: logarithm.p_apart(0.0), se, df }
    }

    /// The logarithm of the ratio over `bound`.
    fn over(&self, bound: f64) -> Estimate {
        Estimate { value: (self.ratio / bound).ln(), se: self.se, df: self.df }
    }

    /// The interval that holds the true ratio with probability `confidence`, such as 0.95:
    /// `ratio exp (-+ t se)`, where `t` is the quantile `(1 + confidence) / 2`.
    ///
    /// # Panics
    ///
    /// Unless `confidence` lies in 0 to 1.
    pub fn interval(&self, confidence: f64) -> RatioInterval {
        let reach = self.over(1.0).reach(confidence);
        let &Self { ratio, .. } = self;
        RatioInterval { ratio, low: ratio * (-reach).exp(), high: ratio * reach.exp() }
    }

    /// The probability of a ratio this high or higher if the true one is `bound`, which must be above 0. It is small
    /// if the true ratio is above `bound`. One-sided.
    pub fn p_above(&self, bound: f64) -> f64 {
        self.over(bound).p_above(0.0)
    }

    /// The probability of a ratio this low or lower if the true one is `bound`. One-sided.
    pub fn p_below(&self, bound: f64) -> f64 {
        self.over(bound).p_below(0.0)
    }
}

/// The interval of [`RatioTest::paired`] at `confidence`.
///
/// # Panics
///
/// Unless `confidence` lies in 0 to 1.
pub fn ratio_interval(pairs: &[(f64, f64)], confidence: f64) -> Option<RatioInterval> {
    Some(RatioTest::paired(pairs)?.interval(confidence))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simulate::{assert_near, normal};

    /// First and second figures, the confidence, and SciPy 1.10.1's results: `d = numpy.log(second / first)`,
    /// `numpy.exp(d.mean())`, and `numpy.exp` of both ends of `scipy.stats.ttest_1samp(d,
    /// 0).confidence_interval(confidence)`.
    #[expect(clippy::type_complexity, reason = "a table")]
    const REFERENCE: [(&[f64], &[f64], f64, [f64; 3]); 6] = [
        (THREE[0], THREE[1], 0.95, [0.7930761688173193, 0.6802134598716002, 0.9246653391196994]),
        (THREE[0], THREE[1], 0.99, [0.7930761688173193, 0.5565821610105463, 1.1300574355526989]),
        (FIVE[0], FIVE[1], 0.95, [0.9985220133177013, 0.9892922280719967, 1.0078379095559564]),
        (FIVE[0], FIVE[1], 0.99, [0.9985220133177013, 0.9832631534877206, 1.0140176691696676]),
        (EIGHT[0], EIGHT[1], 0.95, [0.9641176392784006, 0.9507576149545697, 0.9776653983593616]),
        (EIGHT[0], EIGHT[1], 0.99, [0.9641176392784006, 0.9444116164221615, 0.9842348465483611]),
    ];
    const THREE: [&[f64]; 2] = [&[755.96, 833.63, 558.84], &[602.44, 620.1, 470.25]];
    const FIVE: [&[f64]; 2] = [&[62.44, 64.0, 61.9, 63.3, 62.7], &[62.1, 64.2, 61.5, 63.9, 62.2]];
    const EIGHT: [&[f64]; 2] = [
        &[1.25, 1.31, 1.28, 1.22, 1.4, 1.27, 1.3, 1.26],
        &[1.19, 1.28, 1.21, 1.2, 1.33, 1.25, 1.26, 1.2],
    ];

    fn paired(first: &[f64], second: &[f64]) -> Vec<(f64, f64)> {
        first.iter().copied().zip(second.iter().copied()).collect()
    }

    #[test]
    fn intervals_agree_with_scipy() {
        for (first, second, confidence, expected) in REFERENCE {
            let found = ratio_interval(&paired(first, second), confidence).unwrap();
            for (found, expected) in [found.ratio, found.low, found.high].iter().zip(expected) {
                // The quantile is found numerically, to about 1e-11.
                assert!((found / expected - 1.0).abs() < 1e-9, "{found}, not {expected}");
            }
        }
    }

    #[test]
    fn invalid_figures_have_no_interval() {
        let two = [(1.0, 2.0); 2];
        assert_eq!(ratio_interval(&two, 0.95), None);
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let pairs = [(1.0, 2.0), (1.0, bad), (2.0, 3.0)];
            assert_eq!(ratio_interval(&pairs, 0.95), None, "{bad}");
        }
    }

    #[test]
    fn equal_ratios_leave_no_doubt() {
        let found = ratio_interval(&[(2.0, 4.0); 3], 0.95).unwrap();
        assert_eq!((found.low, found.high), (found.ratio, found.ratio));
        assert!((found.ratio - 2.0).abs() < 1e-15);
    }

    /// Two samples, and SciPy 1.17.1 on `a, b = numpy.log(base), numpy.log(new)`: `numpy.exp` of
    /// the difference of means; `r = scipy.stats.ttest_ind(b, a, equal_var=False)` with `r.df`,
    /// `r.pvalue`, `numpy.exp` of both ends of `r.confidence_interval(0.95)`; and the p-values of
    /// `ttest_ind(b - numpy.log(1.02), a, equal_var=False, alternative=...)`, "greater" and "less".
    const UNPAIRED: [(&[f64], &[f64], &str); 3] = [
        (
            &[755.96, 833.63, 558.84, 382.22, 395.45],
            THREE[1],
            "1.006935966855266 5.726649560698629 0.9711388971675418 0.6402540891298051 \
             1.5836213443397273 0.5268936875680146 0.4731063124319855",
        ),
        (
            EIGHT[0],
            EIGHT[1],
            "0.9641176392784004 13.962337657271163 0.08995057407124968 0.9235133923629235 \
             1.006507138991733 0.9930235862664366 0.006976413733563354",
        ),
        (
            FIVE[0],
            &[72.1, 74.2, 71.5, 73.9, 72.2, 72.3],
            "1.1563604706136905 8.973056967086418 3.252951470558758e-08 1.1346768645286938 \
             1.1784584490962813 5.8205547958433784e-08 0.9999999417944521",
        ),
    ];

    #[test]
    fn unpaired_tests_agree_with_scipy() {
        for (base, new, expected) in UNPAIRED {
            let test = RatioTest::unpaired(base, new).unwrap();
            let RatioInterval { ratio, low, high } = test.interval(0.95);
            let sides = [test.p_above(1.02), test.p_below(1.02)];
            let found = [ratio, test.df, test.p_difference, low, high, sides[0], sides[1]];
            assert_near(&found, expected, 1e-9);
        }
    }

    /// SciPy 1.17.1 on `d = numpy.log(EIGHT[1]) - numpy.log(EIGHT[0])`: `d.std(ddof=1) / 8 ** 0.5`,
    /// the p-values of `scipy.stats.ttest_1samp(d, 0)` and of
    /// `ttest_1samp(d, numpy.log(0.98), alternative=...)`, "greater" and "less".
    #[test]
    fn paired_tests_agree_with_scipy() {
        let test = RatioTest::paired(&paired(EIGHT[0], EIGHT[1])).unwrap();
        let found = [test.se, test.p_difference, test.p_above(0.98), test.p_below(0.98)];
        let expected =
            "0.005901218094580044 0.00044861812123128106 0.986128858238145 0.013871141761855051";
        assert_near(&found, expected, 1e-9);
    }

    /// Welch's intervals are not exact: 96.5 % hold the truth with 3 equal spreads a side, 94 % with
    /// 12 figures beside 4 that spread three times as far. Four standard errors of 20000 trials
    /// are 0.006.
    #[test]
    fn unpaired_intervals_hold_the_truth_as_often_as_they_say() {
        const TRIALS: usize = 20_000;
        let mut normal = normal(2);
        for (a, b, spread) in [(3, 3, 1.0), (3, 3, 3.0), (5, 5, 1.0), (4, 12, 3.0), (12, 4, 3.0)] {
            let holds = |_: &usize| {
                let mut sample = |n, centre: f64, sd: f64| -> Vec<f64> {
                    (0..n).map(|_| centre * (sd * normal()).exp()).collect()
                };
                let (base, new) = (sample(a, 10.0, 0.02), sample(b, 11.0, 0.02 * spread));
                let found = RatioTest::unpaired(&base, &new).unwrap().interval(0.95);
                (found.low..=found.high).contains(&1.1)
            };
            let share = (0..TRIALS).filter(holds).count() as f64 / TRIALS as f64;
            assert!((0.937..0.969).contains(&share), "{share} of {a} and {b}");
        }
    }

    /// Of 20000 intervals 95 % hold the true value, within 4 standard errors.
    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        const TRIALS: usize = 20_000;
        let mut normal = normal(1);
        for pairs in [3, 5, 10] {
            let holds = |_: &usize| {
                let pairs: Vec<(f64, f64)> =
                    (0..pairs).map(|_| (10.0, 11.0 * (0.02 * normal()).exp())).collect();
                let found = ratio_interval(&pairs, 0.95).unwrap();
                (found.low..=found.high).contains(&1.1)
            };
            let share = (0..TRIALS).filter(holds).count() as f64 / TRIALS as f64;
            assert!((share - 0.95).abs() < 0.0062, "{share} of {pairs} pairs");
        }
    }

    proptest! {
        #[test]
        fn the_other_way_round_is_the_inverse(
            pairs in prop::collection::vec((1e-3..1e6_f64, 1e-3..1e6_f64), 3..12),
        ) {
            let inverse: Vec<_> = pairs.iter().map(|&(first, second)| (second, first)).collect();
            let one = ratio_interval(&pairs, 0.95).unwrap();
            let other = ratio_interval(&inverse, 0.95).unwrap();
            prop_assert!(one.low <= one.ratio && one.ratio <= one.high);
            let near = |a: f64, b: f64| (a * b - 1.0).abs() < 1e-9;
            prop_assert!(near(one.low, other.high));
            prop_assert!(near(one.ratio, other.ratio));
        }

        /// Intervals and tests agree.
        #[test]
        fn a_bound_outside_the_interval_is_rejected(
            pairs in prop::collection::vec((1.0..2.0_f64, 1.0..2.0_f64), 3..12),
            bound in 0.3..3.0_f64,
        ) {
            let test = RatioTest::paired(&pairs).unwrap();
            let within = test.interval(0.90);
            prop_assume!((within.low / bound - 1.0).abs() > 1e-6);
            prop_assume!((within.high / bound - 1.0).abs() > 1e-6);
            prop_assert_eq!(test.p_above(bound) < 0.05, bound < within.low);
            prop_assert_eq!(test.p_below(bound) < 0.05, bound > within.high);
        }
    }
}
