//! Summary statistics of some values.

use crate::Counted;
use crate::counted::count;

/// Number, extremes, means and spread of some values, all in the values' own unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The number of values.
    pub n: usize,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// Arithmetic mean: `sum x / n`.
    pub amean: f64,
    /// Harmonic mean: `n / sum (1 / x)`. `None` unless every value is above 0.
    pub hmean: Option<f64>,
    /// Geometric mean: `exp (sum ln x / n)`. `None` unless every value is above 0.
    pub gmean: Option<f64>,
    /// Sample standard deviation: `sqrt (sum (x - amean)^2 / (n - 1))`. `None` for a single value.
    pub stddev: Option<f64>,
    /// Coefficient of variation in percent: `100 stddev / amean`. `None` for a single value, and for a mean of 0.
    pub coeffvar: Option<f64>,
    /// Standard deviation about the harmonic mean, by the delta method: `sqrt (hmean^4 sum (1 / x - 1 / hmean)^2 /
    /// n)`, the row `HStddev` of mmtests (`Stat.pm`). `None` for a single value, and without a harmonic mean.
    pub hstddev: Option<f64>,
    /// `100 hstddev / hmean`, in percent. `None` without `hstddev`.
    pub hcoeffvar: Option<f64>,
}

impl Summary {
    /// Summarises `values`. `None` if there are none, or if one is not finite.
    pub fn of<V: Counted>(values: &[V]) -> Option<Self> {
        let each = || values.iter().map(|it| it.value());
        if values.is_empty() || each().any(|x| !x.is_finite()) {
            return None;
        }
        let all = count(values);
        let n = all as f64;
        let sum = |term: &dyn Fn(f64) -> f64| -> f64 {
            values.iter().map(|it| term(it.value()) * it.count() as f64).sum()
        };
        let min = each().fold(f64::INFINITY, f64::min);
        let max = each().fold(f64::NEG_INFINITY, f64::max);
        // Rounding can push a mean past the extremes; equal values must have no spread at all.
        let mean = |x: f64| x.clamp(min, max);

        let amean = mean(sum(&|x| x) / n);
        let positive = min > 0.0;
        let hmean = positive.then(|| mean(n / sum(&f64::recip)));
        let gmean = positive.then(|| mean((sum(&f64::ln) / n).exp()));

        let squares = sum(&|x| (x - amean).powi(2));
        let stddev = (all > 1).then(|| (squares / (n - 1.0)).sqrt());
        let coeffvar = stddev.filter(|_| amean != 0.0).map(|stddev| 100.0 * stddev / amean);

        let hcoeffvar = hmean.filter(|_| all > 1).map(|hmean| {
            let squares = sum(&|x| (hmean / x - 1.0).powi(2));
            100.0 * (squares / n).sqrt()
        });
        let hstddev = hmean.zip(hcoeffvar).map(|(hmean, percent)| hmean * percent / 100.0);
        Some(Self { n: all, min, max, amean, hmean, gmean, stddev, coeffvar, hstddev, hcoeffvar })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simulate::assert_near;

    /// Values, and the results of NumPy 2.4.6 and SciPy 1.17.1: `numpy.mean(x)`, `scipy.stats.hmean(x)`,
    /// `scipy.stats.gmean(x)`, `numpy.std(x, ddof=1)`, `100 * scipy.stats.variation(x, ddof=1)`; `numpy.std(r) /
    /// numpy.mean(r)**2` and `100 * numpy.std(r) / numpy.mean(r)` with `r = 1 / x`.
    const REFERENCE: [(&[f64], &str); 2] = [
        (
            &[755.96, 833.63, 558.84, 382.22, 395.45],
            "585.22 528.7159267043355 556.2024848147317 205.41253187184077 35.10005329138457 \
             165.09520776698295 31.225692177664666",
        ),
        (
            &[71471.91, 70627.04, 11078.96, 8256.13, 661.66, 632.74, 0.5],
            "23246.99142857143 3.494179898431055 1921.3289495507438 32927.19143863949 \
             141.64065719992794 8.542356836635946 244.47387040580267",
        ),
    ];

    fn assert_close(found: f64, expected: f64, relative: f64) {
        let error = (found - expected).abs();
        assert!(error <= relative * expected.abs(), "{found}, not {expected}");
    }

    #[test]
    fn means_and_spread_agree_with_scipy() {
        for (values, expected) in REFERENCE {
            let it = Summary::of(values).unwrap();
            assert_eq!(it.n, values.len());
            let spreads = [it.stddev, it.coeffvar, it.hstddev, it.hcoeffvar];
            let found = [Some(it.amean), it.hmean, it.gmean].into_iter().chain(spreads);
            assert_near(&found.map(Option::unwrap).collect::<Vec<_>>(), expected, 1e-14);
        }
    }

    /// NIST's Statistical Reference Datasets, `NumAcc3`: certified mean 1000000.2 and standard
    /// deviation 0.1. A formula that subtracts sums of squares fails here.
    #[test]
    fn a_small_spread_far_from_zero_is_found() {
        let pairs = [1_000_000.1, 1_000_000.3].into_iter().cycle().take(1000);
        let values: Vec<f64> = [1_000_000.2].into_iter().chain(pairs).collect();
        let summary = Summary::of(&values).unwrap();
        assert_close(summary.amean, 1_000_000.2, 1e-13);
        assert_close(summary.stddev.unwrap(), 0.1, 1e-8);
    }

    #[test]
    fn a_single_value_has_no_spread() {
        let summary = Summary::of(&[3.5]).unwrap();
        assert_eq!((summary.min, summary.amean, summary.max), (3.5, 3.5, 3.5));
        assert_eq!((summary.stddev, summary.coeffvar), (None, None));
        assert_eq!((summary.hstddev, summary.hcoeffvar), (None, None));
    }

    #[test]
    fn what_is_undefined_is_absent() {
        assert_eq!(Summary::of::<f64>(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
        assert_eq!(Summary::of(&[1.0, f64::INFINITY]), None);
        let with_zero = Summary::of(&[0.0, 2.0]).unwrap();
        assert_eq!((with_zero.hmean, with_zero.gmean), (None, None));
        assert_eq!((with_zero.hstddev, with_zero.hcoeffvar), (None, None));
        let around_zero = Summary::of(&[-1.0, 1.0]).unwrap();
        assert_eq!(around_zero.coeffvar, None);
    }

    #[test]
    fn equal_values_have_exactly_no_spread() {
        let summary = Summary::of(&[0.1; 3]).unwrap();
        assert_eq!((summary.amean, summary.stddev), (0.1, Some(0.0)));
    }

    proptest! {
        #[test]
        fn means_keep_their_order(values in prop::collection::vec(1e-6..1e9_f64, 1..50)) {
            let summary = Summary::of(&values).unwrap();
            let (hmean, gmean) = (summary.hmean.unwrap(), summary.gmean.unwrap());
            let slack = 1.0 + 1e-12;
            prop_assert!(summary.min <= hmean);
            prop_assert!(hmean <= gmean * slack);
            prop_assert!(gmean <= summary.amean * slack);
            prop_assert!(summary.amean <= summary.max);
        }
    }
}
