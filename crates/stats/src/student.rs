//! Student's t: inference on means of normal figures, for one sample and two.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::Summary;

/// An estimate whose error, divided by its standard error, has Student's t distribution. Intervals, tests
/// against any bound, and equivalence follow from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimated figure.
    pub value: f64,
    /// Its standard error; 0 if the values had no spread.
    pub se: f64,
    /// Degrees of freedom, above 0; not always a whole number.
    pub df: f64,
}

impl Estimate {
    /// The mean of independent values. Its standard error is `s / sqrt n` with `n - 1` degrees of freedom (Student,
    /// "The probable error of a mean", Biometrika 6, 1908). `None` for fewer than 2 values, or if one is not finite.
    pub fn of_mean(values: &[f64]) -> Option<Self> {
        let Summary { amean, stddev, .. } = Summary::of(values)?;
        let n = values.len() as f64;
        Some(Self { value: amean, se: stddev? / n.sqrt(), df: n - 1.0 })
    }

    /// The mean of `b` minus that of `a`, for independent samples whose spreads may differ. With `u = s_a^2 / n_a`
    /// and `v = s_b^2 / n_b` the standard error is `sqrt (u + v)`, the degrees of freedom are `(u + v)^2 / (u^2 /
    /// (n_a - 1) + v^2 / (n_b - 1))` (Welch, "The generalization of Student's problem", Biometrika 34, 1947), and
    /// `n_a + n_b - 2` if neither has any spread. `None` for fewer than 2 values a side, or if one is not finite.
    pub fn of_difference(a: &[f64], b: &[f64]) -> Option<Self> {
        Self::of_contrast(&[(-1.0, a), (1.0, b)])
    }

    /// The sum of the means of independent samples, each multiplied by its weight ([`Self::sum`]). `None` for fewer
    /// than 2 values a sample, or if one is not finite.
    pub fn of_contrast(samples: &[(f64, &[f64])]) -> Option<Self> {
        let means = samples.iter().map(|(weight, values)| Some((*weight, Self::of_mean(values)?)));
        Some(Self::sum(&means.collect::<Option<Vec<_>>>()?))
    }

    /// The sum of independent estimates, each multiplied by its weight, whose spreads may differ. With `u = w^2 se^2`
    /// of each the standard error is `sqrt (sum of u)`, the degrees of freedom are `(sum of u)^2 / (sum of u^2 / df)`
    /// (Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics Bulletin 2,
    /// 1946), and the sum of all `df` if none has any spread.
    pub fn sum(parts: &[(f64, Self)]) -> Self {
        let value = parts.iter().map(|(weight, it)| weight * it.value).sum();
        let se = parts.iter().map(|(weight, it)| weight.abs() * it.se).fold(0.0, f64::hypot);
        let df = if se == 0.0 {
            parts.iter().map(|(_, it)| it.df).sum()
        } else {
            let part = |(weight, it): &(f64, Self)| (weight.abs() * it.se / se).powi(4) / it.df;
            parts.iter().map(part).sum::<f64>().recip()
        };
        Self { value, se, df }
    }

    /// Half the width of the interval around `value` that holds the true figure with probability
    /// `confidence`, such as 0.95.
    ///
    /// # Panics
    ///
    /// Unless `confidence` lies in 0 to 1.
    pub fn reach(&self, confidence: f64) -> f64 {
        // The lower tail has more precision for a confidence near 1.
        if self.se == 0.0 { 0.0 } else { -self.t().inverse_cdf((1.0 - confidence) / 2.0) * self.se }
    }

    /// The bounds of the interval that holds the true figure with probability `confidence`.
    ///
    /// # Panics
    ///
    /// Unless `confidence` lies in 0 to 1.
    pub fn interval(&self, confidence: f64) -> (f64, f64) {
        let reach = self.reach(confidence);
        (self.value - reach, self.value + reach)
    }

    /// The probability of an estimate this high or higher if the true figure is `bound`. It is small if the true
    /// figure is above `bound`. One-sided.
    pub fn p_above(&self, bound: f64) -> f64 {
        self.p_of((self.value - bound) / self.se)
    }

    /// The probability of an estimate this low or lower if the true figure is `bound`. One-sided.
    pub fn p_below(&self, bound: f64) -> f64 {
        self.p_of((bound - self.value) / self.se)
    }

    /// The probability of an estimate this far or farther from `bound`, on either side, if `bound` is the true
    /// figure.
    pub fn p_apart(&self, bound: f64) -> f64 {
        (2.0 * self.p_of(((self.value - bound) / self.se).abs())).min(1.0)
    }

    /// The upper tail beyond `t`; 1 if both distance and standard error are 0.
    pub(crate) fn p_of(&self, t: f64) -> f64 {
        if t.is_nan() { 1.0 } else { self.t().sf(t) }
    }

    fn t(&self) -> StudentsT {
        StudentsT::new(0.0, 1.0, self.df).expect("degrees of freedom are above 0")
    }
}

/// Welch's test of two independent samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Welch {
    /// The mean of the second sample minus that of the first, in the values' unit.
    pub difference: f64,
    /// Standard error of the difference.
    pub se: f64,
    /// The difference divided by its standard error; 0 for no difference.
    pub t: f64,
    /// Welch's degrees of freedom.
    pub df: f64,
    /// The probability of means this far or farther apart if both are the same. Two-sided.
    pub p: f64,
}

impl Welch {
    /// The bounds of the interval that holds the true difference with probability `confidence`.
    ///
    /// # Panics
    ///
    /// Unless `confidence` lies in 0 to 1.
    pub fn interval(&self, confidence: f64) -> (f64, f64) {
        let &Self { difference: value, se, df, .. } = self;
        Estimate { value, se, df }.interval(confidence)
    }
}

/// Compares the means of two independent samples whose spreads may differ; see [`Estimate::of_difference`]. `None`
/// for fewer than 2 values a side, or if one is not finite.
pub fn welch(a: &[f64], b: &[f64]) -> Option<Welch> {
    let estimate = Estimate::of_difference(a, b)?;
    let Estimate { value: difference, se, df } = estimate;
    let t = if difference == 0.0 { 0.0 } else { difference / se };
    Some(Welch { difference, se, t, df, p: estimate.p_apart(0.0) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::assert_near;

    /// Two samples, and SciPy 1.17.1's results with `r = scipy.stats.ttest_ind(b, a, equal_var=False)`: the
    /// difference of `numpy.mean`, `r.statistic`, `r.df`, `r.pvalue` and both ends of `r.confidence_interval(0.99)`.
    const REFERENCE: [(&[f64], &[f64], &str); 3] = [
        (
            &[755.96, 833.63, 558.84, 382.22, 395.45],
            &[602.44, 620.1, 470.25],
            "-20.956666666666706 -0.20283779579848152 5.612313450486916 0.8464137299558581 \
             -415.1061990111442 373.1928656778108",
        ),
        (
            &[1.25, 1.31, 1.28, 1.22, 1.4, 1.27, 1.3, 1.26],
            &[1.19, 1.28, 1.21, 1.2, 1.33, 1.25, 1.26, 1.2],
            "-0.046250000000000124 -1.7947636252688683 13.870909350213381 0.09450610174006287 \
             -0.12307096426612664 0.03057096426612639",
        ),
        (
            &[62.44, 64.0, 61.9, 63.3, 62.7],
            &[72.1, 74.2, 71.5, 73.9, 72.2, 72.3],
            "9.832000000000008 17.180761386847415 8.926884461262564 3.8043994731096925e-08 \
             7.968361113963551 11.695638886036464",
        ),
    ];

    #[test]
    fn welch_agrees_with_scipy() {
        for (a, b, expected) in REFERENCE {
            let found = welch(a, b).unwrap();
            let (low, high) = found.interval(0.99);
            let found = [found.difference, found.t, found.df, found.p, low, high];
            assert_near(&found, expected, 1e-9);
        }
    }

    #[test]
    fn values_without_spread_leave_no_doubt() {
        let same = welch(&[1.0; 3], &[1.0; 2]).unwrap();
        assert_eq!((same.t, same.df, same.p), (0.0, 3.0, 1.0));
        let apart = welch(&[1.0; 3], &[2.0; 2]).unwrap();
        assert_eq!((apart.p, apart.interval(0.95)), (0.0, (1.0, 1.0)));
    }

    #[test]
    fn too_little_is_no_test() {
        assert_eq!(welch(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(welch(&[1.0, f64::NAN], &[1.0, 2.0]), None);
    }

    #[test]
    fn sides_of_a_bound_share_the_whole() {
        let estimate = Estimate::of_mean(&[1.0, 2.0, 4.0]).unwrap();
        for bound in [-5.0, 0.5, 2.0, 9.0] {
            let sum = estimate.p_above(bound) + estimate.p_below(bound);
            assert!((sum - 1.0).abs() < 1e-14, "{bound}");
        }
        assert_eq!(estimate.p_apart(estimate.value), 1.0);
    }

    /// NumPy 2.4.6: with samples `s` and weights `w`, `u = w**2 * var(s, ddof=1) / n` of each, the sum of
    /// `w * mean(s)`, `sqrt(u.sum())` and `u.sum()**2 / (u**2 / (n - 1)).sum()`.
    #[test]
    fn a_contrast_of_four_samples_agrees_with_numpy() {
        let samples = [
            [100.0, 104.0, 101.0, 102.0],
            [110.0, 111.0, 112.0, 108.0],
            [99.0, 99.5, 98.0, 100.0],
            [120.0, 121.5, 118.0, 122.0],
        ];
        for (weights, expected) in [
            ([-0.5, -0.5, 0.5, 0.5], "3.75 0.7822909731466078 10.28238944918542"),
            ([1.0, -1.0, -1.0, 1.0], "12.75 1.564581946293216 10.28238944918542"),
        ] {
            let sides: Vec<(f64, &[f64])> =
                weights.iter().zip(&samples).map(|(weight, side)| (*weight, &side[..])).collect();
            let Estimate { value, se, df } = Estimate::of_contrast(&sides).unwrap();
            assert_near(&[value, se, df], expected, 1e-12);
        }
        let still = Estimate::of_contrast(&[(1.0, &[2.0; 3]), (-2.0, &[1.0; 4])]);
        assert_eq!(still, Some(Estimate { value: 0.0, se: 0.0, df: 5.0 }));
        assert_eq!(Estimate::of_contrast(&[(1.0, &[2.0; 3]), (1.0, &[1.0])]), None);
    }
}
