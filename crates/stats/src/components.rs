//! Variance components: the parts of a spread that lie between groups and within them.

use crate::{Counted, Summary};

/// The variance of values that come in groups, in two parts. Variances are in the values' unit squared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Components {
    /// The mean of the groups' means, each group counted once.
    pub mean: f64,
    /// The variance of the groups' true means; 0 if the spread within the groups explains their
    /// differences.
    pub between: f64,
    /// The variance of values within a group.
    pub within: f64,
}

impl Components {
    /// The standard deviation between groups in percent of the mean. `None` for a mean of 0.
    pub fn between_percent(&self) -> Option<f64> {
        self.percent(self.between)
    }

    /// The standard deviation within groups in percent of the mean. `None` for a mean of 0.
    pub fn within_percent(&self) -> Option<f64> {
        self.percent(self.within)
    }

    fn percent(&self, variance: f64) -> Option<f64> {
        let percent = 100.0 * variance.sqrt() / self.mean.abs();
        percent.is_finite().then_some(percent)
    }
}

/// Splits the variance of values in groups: `y = mean + group + error`, groups and errors random.
///
/// The estimators are those of the analysis of variance with unequal group sizes (Searle, Casella
/// and McCulloch, "Variance Components", 1992, section 3.6): with `k` groups of `n_i` values, `N` in
/// all, `MSA = sum n_i (mean_i - mean)^2 / (k - 1)` and `MSE = sum (y - mean_i)^2 / (N - k)`,
/// `within = MSE` and `between = max (0, (MSA - MSE) / n0)`, where
/// `n0 = (N - sum n_i^2 / N) / (k - 1)`.
///
/// Empty groups do not count. `None` for fewer than 2 groups, if no group has 2 values, or if a value is not finite.
pub fn variance_components<V: Counted>(groups: &[Vec<V>]) -> Option<Components> {
    let groups: Vec<&Vec<V>> = groups.iter().filter(|group| !group.is_empty()).collect();
    let summaries = groups.iter().map(|group| Summary::of(group)).collect::<Option<Vec<_>>>()?;
    let means: Vec<f64> = summaries.iter().map(|group| group.amean).collect();
    let mean = Summary::of(&means)?.amean;

    let n: f64 = summaries.iter().map(|group| group.n as f64).sum();
    let between_df = summaries.len() as f64 - 1.0;
    if between_df < 1.0 {
        return None;
    }
    let (within, _) = pooled(&summaries)?;

    let weighted = |f: &dyn Fn(&Summary) -> f64| -> f64 {
        summaries.iter().map(|group| group.n as f64 * f(group)).sum()
    };
    let grand = weighted(&|group| group.amean / n);
    let among = weighted(&|group| (group.amean - grand).powi(2)) / between_df;
    let n0 = (n - weighted(&|group| group.n as f64) / n) / between_df;
    let between = ((among - within) / n0).max(0.0);
    let components = Components { mean, between, within };
    (between.is_finite() && within.is_finite()).then_some(components)
}

/// The variance of values about the mean of their own group, and its degrees of freedom: `sum (y - mean_i)^2 / (N -
/// k)` with `N - k`, for `k` groups of `N` values. `None` if no group has 2 values, or if a value is not finite.
/// Empty groups do not count.
pub fn pooled_variance<V: Counted>(groups: &[Vec<V>]) -> Option<(f64, f64)> {
    let groups = groups.iter().filter(|group| !group.is_empty());
    pooled(&groups.map(|group| Summary::of(group)).collect::<Option<Vec<_>>>()?)
}

fn pooled(groups: &[Summary]) -> Option<(f64, f64)> {
    let df = groups.iter().map(|group| group.n as f64 - 1.0).sum::<f64>();
    let squares = |group: &Summary| group.stddev.map_or(0.0, |s| s * s * (group.n as f64 - 1.0));
    (df >= 1.0).then(|| (groups.iter().map(squares).sum::<f64>() / df, df))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::normal;

    fn assert_close(found: f64, expected: f64, relative: f64) {
        assert!((found / expected - 1.0).abs() < relative, "{found}, not {expected}");
    }

    /// statsmodels 0.15.0, `MixedLM(y, numpy.ones(12), groups).fit(reml=True)`: `cov_re`, `scale`
    /// and `params`. Where groups are equally large, REML gives what the analysis of variance does.
    #[test]
    fn balanced_components_agree_with_statsmodels() {
        let groups =
            [[20.3, 20.9, 20.5], [22.0, 22.4, 21.8], [19.1, 19.6, 19.2], [21.5, 21.1, 21.0]];
        let found = variance_components(&groups.map(Vec::from)).unwrap();
        assert_close(found.between, 1.32870235, 3e-6);
        assert_close(found.within, 0.08166669704117512, 1e-6);
        assert_close(found.mean, 20.78333333, 1e-9);
    }

    /// By hand from SciPy 1.17.1, `F = scipy.stats.f_oneway(*groups).statistic`, and NumPy: `MSE` is
    /// the pooled variance, `between = (F - 1) MSE / n0`.
    #[test]
    fn unbalanced_components_agree_with_scipy() {
        let groups = [vec![10.1, 10.4, 10.2], vec![11.2, 11.0], vec![], vec![9.6, 9.9, 9.7, 9.8]];
        let found = variance_components(&groups).unwrap();
        assert_close(found.between, 0.41423076923076896, 1e-12);
        assert_close(found.within, 0.019444444444444525, 1e-12);
        assert_eq!(pooled_variance(&groups), Some((found.within, 6.0)));
        assert_close(found.mean, 10.36111111111111, 1e-14);
        assert_close(found.between_percent().unwrap(), 6.2118, 1e-4);
        assert_close(found.within_percent().unwrap(), 1.3458, 1e-4);
    }

    #[test]
    fn groups_that_hardly_differ_have_no_variance_between_them() {
        let groups = [vec![5.0, 7.0, 6.0], vec![6.5, 5.5, 6.2]];
        let found = variance_components(&groups).unwrap();
        assert_eq!(found.between, 0.0);
        assert_close(found.within, 0.6316666666666667, 1e-14);
    }

    #[test]
    fn what_cannot_be_split_is_absent() {
        assert_eq!(variance_components::<f64>(&[]), None);
        assert_eq!(variance_components(&[vec![1.0, 2.0]]), None);
        assert_eq!(variance_components(&[vec![1.0], vec![2.0]]), None);
        assert_eq!(pooled_variance(&[vec![1.0], vec![2.0]]), None);
        assert_eq!(variance_components(&[vec![1.0, f64::NAN], vec![2.0]]), None);
        let around_zero = variance_components(&[vec![1.0, -1.0], vec![0.0]]).unwrap();
        assert_eq!(around_zero.between_percent(), None);
    }

    /// The mean of the estimates over many draws is the true value, within 4 standard errors.
    #[test]
    fn estimates_are_not_biased() {
        const TRIALS: usize = 4000;
        let mut normal = normal(4);
        let found: Vec<Components> = (0..TRIALS)
            .map(|_| {
                let group = |size| {
                    let centre = 100.0 + 3.0 * normal();
                    (0..size).map(|_| centre + normal()).collect()
                };
                variance_components(&[5, 10, 2, 7, 5].map(group)).unwrap()
            })
            .collect();
        let check = |figure: fn(&Components) -> f64, truth: f64| {
            let summary = Summary::of(&found.iter().map(figure).collect::<Vec<_>>()).unwrap();
            let error = summary.stddev.unwrap() / (TRIALS as f64).sqrt();
            assert!((summary.amean - truth).abs() < 4.0 * error, "{}", summary.amean);
        };
        check(|found| found.between, 9.0);
        check(|found| found.within, 1.0);
        check(|found| found.mean, 100.0);
    }
}
