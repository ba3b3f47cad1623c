//! Trends: the drift of figures.

use crate::Estimate;

/// The slope of the least-squares line through `points`, x and y: `sum (x - mean x) (y - mean y) / sum (x - mean
/// x)^2`. With `s^2` the sum of squared residuals over `n - 2`, its standard error is `s / sqrt (sum (x - mean
/// x)^2)`, with `n - 2` degrees of freedom (Student's t, if the residuals are independent and normal). `None` for
/// fewer than 3 points or 2 distinct x, or if one is not finite.
pub fn trend(points: &[(f64, f64)]) -> Option<Estimate> {
    let n = points.len() as f64;
    if points.len() < 3 || points.iter().any(|(x, y)| !x.is_finite() || !y.is_finite()) {
        return None;
    }
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
    let squares: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let slope = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / squares;
    let left = points.iter().map(|(x, y)| (y - mean_y - slope * (x - mean_x)).powi(2));
    let se = (left.sum::<f64>() / (n - 2.0) / squares).sqrt();
    slope.is_finite().then_some(Estimate { value: slope, se, df: n - 2.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::assert_near;

    fn of(values: &[f64]) -> Option<Estimate> {
        let points: Vec<(f64, f64)> = (0..).map(f64::from).zip(values.iter().copied()).collect();
        trend(&points)
    }

    /// SciPy 1.17.1: slope, stderr and pvalue of `scipy.stats.linregress(range(len(y)), y)`.
    #[test]
    fn slopes_agree_with_scipy() {
        let cases: [(&[f64], &str); 3] = [
            (
                &[62.44, 64.0, 61.9, 63.3, 62.7],
                "-0.017999999999999263 0.2951406444392234 0.9552045135996571",
            ),
            (
                &[1.25, 1.31, 1.28, 1.22, 1.4, 1.27, 1.3, 1.26],
                "0.0020238095238095228 0.008956569857540368 0.8287344867869603",
            ),
            (&[3.0, 4.1, 4.9, 6.2], "1.0400000000000003 0.06480740698407707 0.0038606633700023485"),
        ];
        for (values, expected) in cases {
            let found = of(values).unwrap();
            let found = [found.value, found.se, found.p_apart(0.0)];
            assert_near(&found, expected, 1e-9);
        }
    }

    #[test]
    fn invalid_points_have_no_slope() {
        assert_eq!(of(&[1.0, 2.0]), None);
        assert_eq!(of(&[1.0, f64::NAN, 2.0]), None);
        assert_eq!(trend(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
        let flat = of(&[2.0; 4]).unwrap();
        assert_eq!((flat.value, flat.p_apart(0.0)), (0.0, 1.0));
    }
}
