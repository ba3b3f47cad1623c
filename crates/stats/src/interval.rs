//! Between which bounds a ratio lies.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::Summary;

/// Fewer pairs than this give no interval: two figures of a distribution with two peaks are too
/// often near to each other (with 2 pairs, a 95 % interval held the truth in 88 % of cases).
const MIN_PAIRS: usize = 3;

/// A ratio, and the bounds of its confidence interval. All above 0; 1 is: no change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioInterval {
    /// Geometric mean of the pairs' ratios.
    pub ratio: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

/// The ratio of the second to the first figure of each pair, with an interval that holds the true
/// one with probability `confidence`, such as 0.95, if pairs are independent.
///
/// Student's t on logarithms (Student, "The probable error of a mean", Biometrika 6, 1908): with
/// `d = ln (second / first)` of `n` pairs, mean `m` and sample standard deviation `s`, the bounds
/// are `exp (m -+ t s / sqrt n)`, where `t` is the quantile `(1 + confidence) / 2` for `n - 1`
/// degrees of freedom. What both figures of a pair share drops out: pair what was measured
/// together, and let a figure stand for all that is not independent (Kalibera and Jones,
/// "Rigorous benchmarking in reasonable time", ISMM 2013).
///
/// None for fewer than 3 pairs, and unless every figure is finite and above 0.
pub fn ratio_interval(pairs: &[(f64, f64)], confidence: f64) -> Option<RatioInterval> {
    if pairs.len() < MIN_PAIRS {
        return None;
    }
    let logarithms: Vec<f64> =
        pairs.iter().map(|&(first, second)| second.ln() - first.ln()).collect();
    let Summary { amean, stddev, .. } = Summary::of(&logarithms)?;
    let n = pairs.len() as f64;
    let student = StudentsT::new(0.0, 1.0, n - 1.0).ok()?;
    let reach = student.inverse_cdf((1.0 + confidence) / 2.0) * stddev? / n.sqrt();
    Some(RatioInterval {
        ratio: amean.exp(),
        low: (amean - reach).exp(),
        high: (amean + reach).exp(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// First and second figures, the confidence, and what SciPy 1.10.1 makes of them:
    /// `d = numpy.log(second / first)`, `numpy.exp(d.mean())`, and `numpy.exp` of both ends of
    /// `scipy.stats.ttest_1samp(d, 0).confidence_interval(confidence)`.
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
                // The quantile is searched for, to about 1e-11.
                assert!((found / expected - 1.0).abs() < 1e-9, "{found}, not {expected}");
            }
        }
    }

    #[test]
    fn what_is_no_ratio_has_no_interval() {
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

    /// Deviations near to normal: the sum of twelve uniform ones (SplitMix64) less its mean.
    fn deviations() -> impl Iterator<Item = f64> {
        let mut state = 1u64;
        let mut uniform = move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        };
        std::iter::from_fn(move || Some((0..12).map(|_| uniform()).sum::<f64>() - 6.0))
    }

    /// Of 20000 intervals 95 % hold the truth, give or take 4 standard errors.
    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        const TRIALS: usize = 20_000;
        let mut deviations = deviations();
        for pairs in [3, 5, 10] {
            let holds = |_: &usize| {
                let pairs: Vec<(f64, f64)> = (0..pairs)
                    .map(|_| (10.0, 11.0 * (0.02 * deviations.next().unwrap()).exp()))
                    .collect();
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
    }
}
