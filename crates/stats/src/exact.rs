//! Tests and intervals that assume no distribution: permutations, sign flips, the sign test.
//!
//! Few values leave few arrangements: with `n` pairs no p-value is below `2 / 2^n`, so that 5 pairs
//! never reach 0.05.

use statrs::distribution::{Binomial, DiscreteCDF};

use crate::Summary;

/// So many arrangements or fewer are all tried, more are sampled.
const MAX_ENUMERATED: u64 = 100_000;
/// How many are sampled.
const SAMPLED: u32 = 9_999;
const SEED: u64 = 0x5eed;

/// The p-value of the hypothesis that two independent samples come from one distribution: the share
/// of all ways to deal the values to the two sides in which the means are as far apart as they are,
/// or farther. Two-sided. Up to 100000 ways are all tried; of more, 9999 are drawn, the same ones
/// each time, and the p-value is `(k + 1) / (9999 + 1)` for `k` of them (Phipson and Smyth,
/// "Permutation p-values should never be zero", Statistical Applications in Genetics and Molecular
/// Biology 9, 2010). None when a side has no values, and unless all are finite.
pub fn permutation(a: &[f64], b: &[f64]) -> Option<f64> {
    let all = centred(&[a, b].concat())?;
    let take = a.len();
    if take == 0 || b.is_empty() {
        return None;
    }
    // With the mean of all values 0, the difference of means is a multiple of one side's sum.
    let least = at_least(&all, all[..take].iter().sum());
    if binomial(all.len() as u64, take as u64) <= MAX_ENUMERATED {
        let mut tally = Tally::default();
        deal(&all, take, 0.0, &mut |sum| tally.count(sum.abs() >= least));
        return Some(tally.share());
    }
    let mut random = fastrand::Rng::with_seed(SEED);
    let (n, mut dealt) = (all.len(), all);
    Some(sampled(|| {
        for at in 0..take {
            dealt.swap(at, random.usize(at..n));
        }
        dealt[..take].iter().sum::<f64>().abs() >= least
    }))
}

/// The p-value of the hypothesis that differences of pairs are as likely to be positive as negative,
/// whatever their size: the share of all ways to choose their signs in which their mean is as far
/// from 0 as it is, or farther (Fisher, "The Design of Experiments", 1935, chapter 3). Two-sided;
/// enumerated or drawn like those of [`permutation`]. None when there are no differences, and
/// unless all are finite.
pub fn sign_flip(differences: &[f64]) -> Option<f64> {
    if differences.is_empty() || differences.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let least = at_least(differences, differences.iter().sum());
    // Bit i says whether difference i counts as negative.
    let flipped = |signs: u64| -> f64 {
        let signed = |(i, &x): (usize, &f64)| if signs >> i & 1 == 1 { -x } else { x };
        differences.iter().enumerate().map(signed).sum()
    };
    let ways = 1u64.checked_shl(differences.len() as u32).unwrap_or(u64::MAX);
    if ways <= MAX_ENUMERATED {
        let mut tally = Tally::default();
        (0..ways).for_each(|signs| tally.count(flipped(signs).abs() >= least));
        return Some(tally.share());
    }
    let mut random = fastrand::Rng::with_seed(SEED);
    Some(sampled(|| {
        let sum: f64 = differences.iter().map(|&x| if random.bool() { -x } else { x }).sum();
        sum.abs() >= least
    }))
}

/// A median with an interval between two of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MedianInterval {
    /// The median.
    pub median: f64,
    /// The lower bound, one of the values.
    pub low: f64,
    /// The upper bound, one of the values.
    pub high: f64,
    /// How probably, at least, such an interval holds the true median: never less than asked for.
    pub confidence: f64,
}

/// The shortest interval between the `k`-th lowest and the `k`-th highest of independent values that
/// holds the median of their distribution with at least probability `confidence`: it does so with
/// `1 - 2 P(B < k)`, where `B` counts heads in `n` tosses (the sign test turned round; Thompson, "On
/// confidence ranges for the median", Annals of Mathematical Statistics 7, 1936).
///
/// None when even the extremes do not suffice, which for 0.95 is so for fewer than 6 values, and
/// unless all are finite.
pub fn median_interval(values: &[f64], confidence: f64) -> Option<MedianInterval> {
    let median = crate::order::median(values)?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let tosses = Binomial::new(0.5, values.len() as u64).ok()?;
    let holds = |k: usize| 1.0 - 2.0 * tosses.cdf(k as u64 - 1);
    let k = (1..=values.len() / 2).take_while(|&k| holds(k) >= confidence).last()?;
    let (low, high) = (sorted[k - 1], sorted[sorted.len() - k]);
    Some(MedianInterval { median, low, high, confidence: holds(k) })
}

/// The values less their mean.
fn centred(values: &[f64]) -> Option<Vec<f64>> {
    let Summary { amean, .. } = Summary::of(values)?;
    Some(values.iter().map(|x| x - amean).collect())
}

/// The least sum that counts as far out as `observed`: a little less, as sums of the same numbers
/// in another order differ by rounding.
fn at_least(values: &[f64], observed: f64) -> f64 {
    observed.abs() - 1e-12 * values.iter().map(|x| x.abs()).sum::<f64>()
}

/// Calls `visit` with `sum` and the sum of each choice of `take` among the values.
fn deal(values: &[f64], take: usize, sum: f64, visit: &mut impl FnMut(f64)) {
    if take == 0 {
        return visit(sum);
    }
    for first in 0..=values.len() - take {
        deal(&values[first + 1..], take - 1, sum + values[first], visit);
    }
}

/// In how many ways `k` of `n` can be chosen; `u64::MAX` where that is too many to say.
fn binomial(n: u64, k: u64) -> u64 {
    let step = |ways: u64, i: u64| Some(ways.checked_mul(n - i)? / (i + 1));
    (0..k.min(n - k)).try_fold(1, step).unwrap_or(u64::MAX)
}

/// The share of drawn arrangements that are as far out as the observed one, which is one of them.
fn sampled(mut is_far: impl FnMut() -> bool) -> f64 {
    let mut tally = Tally { far: 1, all: 1 };
    (0..SAMPLED).for_each(|_| tally.count(is_far()));
    tally.share()
}

#[derive(Default)]
struct Tally {
    far: u32,
    all: u32,
}

impl Tally {
    fn count(&mut self, is_far: bool) {
        self.far += u32::from(is_far);
        self.all += 1;
    }

    fn share(&self) -> f64 {
        f64::from(self.far) / f64::from(self.all)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simulate::normal;

    const A: [f64; 5] = [755.96, 833.63, 558.84, 382.22, 395.45];
    const C: [f64; 8] = [1.25, 1.31, 1.28, 1.22, 1.4, 1.27, 1.3, 1.26];
    const D: [f64; 8] = [1.19, 1.28, 1.21, 1.2, 1.33, 1.25, 1.26, 1.2];
    const MIXED: [f64; 7] = [-0.9, 0.5, 2.5, -0.1, 1.7, 0.3, 1.1];

    /// SciPy 1.17.1, `scipy.stats.permutation_test((a, b), statistic, vectorized=True,
    /// n_resamples=numpy.inf, permutation_type="independent", alternative="greater").pvalue`, the
    /// statistic being the absolute difference of means.
    #[test]
    fn permutations_agree_with_scipy() {
        let p = |a, b| permutation(a, b).unwrap();
        assert!((p(&A, &[602.44, 620.1, 470.25]) - 0.8928571428571429).abs() < 1e-15);
        assert!((p(&C, &D) - 0.10303030303030303).abs() < 1e-15);
        let apart = p(&[62.44, 64.0, 61.9, 63.3, 62.7], &[72.1, 74.2, 71.5, 73.9, 72.2, 72.3]);
        assert!((apart - 0.0021645021645021645).abs() < 1e-15);
    }

    /// The same with `permutation_type="samples"` on differences, their mean, two-sided.
    #[test]
    fn sign_flips_agree_with_scipy() {
        let differences = [-0.06, -0.03, -0.07, -0.02, -0.07, -0.02, -0.04, -0.06];
        assert_eq!(sign_flip(&differences), Some(0.0078125));
        assert_eq!(sign_flip(&MIXED), Some(0.15625));
    }

    /// SciPy 1.17.1, `scipy.stats.quantile_test(x, q=0, p=0.5).confidence_interval(confidence)`,
    /// and `1 - 2 * scipy.stats.binom.cdf(k - 1, n, 0.5)`.
    #[test]
    fn median_intervals_agree_with_scipy() {
        let skewed =
            [71472.0, 70627.0, 11079.0, 8256.0, 662.0, 633.0, 5.0, 12.0, 900.0, 1200.0, 44.0, 3e3];
        for (values, confidence, [median, low, high, holds]) in [
            (&MIXED[..], 0.95, [0.5, -0.9, 2.5, 0.984375]),
            (&skewed, 0.95, [1050.0, 44.0, 11079.0, 0.96142578125]),
            (&skewed, 0.99, [1050.0, 12.0, 70627.0, 0.99365234375]),
            (&C, 0.95, [1.275, 1.22, 1.4, 0.9921875]),
        ] {
            let found = median_interval(values, confidence).unwrap();
            assert_eq!((found.median, found.low, found.high), (median, low, high));
            assert!((found.confidence - holds).abs() < 1e-12, "{}", found.confidence);
        }
    }

    #[test]
    fn what_is_too_little_is_absent() {
        assert_eq!(permutation(&[], &[1.0]), None);
        assert_eq!(permutation(&[1.0], &[]), None);
        assert_eq!(permutation(&[1.0], &[f64::NAN]), None);
        assert_eq!(sign_flip(&[]), None);
        assert_eq!(median_interval(&A, 0.95), None);
        assert!(median_interval(&MIXED[..6], 0.95).is_some());
    }

    #[test]
    fn equal_values_differ_in_nothing() {
        assert_eq!(permutation(&[0.1; 4], &[0.1; 3]), Some(1.0));
        assert_eq!(permutation(&[0.1; 40], &[0.1; 30]), Some(1.0));
        assert_eq!(sign_flip(&[0.0; 4]), Some(1.0));
    }

    #[test]
    fn what_is_far_apart_has_the_least_p() {
        let (low, high): (Vec<f64>, Vec<f64>) = ((0..30).map(f64::from).collect(), vec![99.0; 30]);
        assert_eq!(permutation(&low, &high), Some(1e-4));
        assert_eq!(sign_flip(&vec![1.0; 64]), Some(1e-4));
        assert_eq!(sign_flip(&[1.0; 5]), Some(2.0 / 32.0));
    }

    /// Drawn arrangements say what all of them say, within 4 standard errors.
    #[test]
    fn drawn_and_enumerated_agree() {
        let mut normal = normal(3);
        let differences: Vec<f64> = (0..17).map(|_| normal() + 0.4).collect();
        let drawn = sign_flip(&differences).unwrap();
        let least = differences.iter().sum::<f64>().abs();
        let sum = |signs: u64| -> f64 {
            let sign = |i| if signs >> i & 1 == 1 { -1.0 } else { 1.0 };
            differences.iter().enumerate().map(|(i, x)| sign(i) * x).sum()
        };
        let far = (0..1u64 << 17).filter(|&signs| sum(signs).abs() >= least - 1e-9).count();
        let exact = far as f64 / f64::from(1 << 17);
        let error = (exact * (1.0 - exact) / f64::from(SAMPLED)).sqrt();
        assert!((drawn - exact).abs() < 4.0 * error + 1e-4, "{drawn}, not {exact}");
    }

    proptest! {
        #[test]
        fn sides_can_be_exchanged(
            a in prop::collection::vec(-10.0..10.0_f64, 1..7),
            b in prop::collection::vec(-10.0..10.0_f64, 1..7),
        ) {
            let (one, other) = (permutation(&a, &b).unwrap(), permutation(&b, &a).unwrap());
            prop_assert!((one - other).abs() < 1e-12);
            prop_assert!(0.0 < one && one <= 1.0);
        }
    }
}
