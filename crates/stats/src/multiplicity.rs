//! Many tests at once: adjusts p-values so that a level holds for all of them together.
//!
//! Every function returns one adjusted p-value, at most 1, for each given one, in the same order. Those at or below
//! the level are rejected. A p-value that is NaN counts as 1.

/// Holm's step-down procedure: at level 0.05 the probability of any false rejection is at most
/// 5 %, however the tests depend on each other. With p-values ascending, `p_i` of `m` becomes
/// `max over j <= i of (m - j + 1) p_j` (Holm, "A simple sequentially rejective multiple test
/// procedure", Scandinavian Journal of Statistics 6, 1979).
pub fn holm(p: &[f64]) -> Vec<f64> {
    let order = ascending(p);
    let mut highest = 0.0_f64;
    let mut adjusted = vec![0.0; p.len()];
    for (rank, &at) in order.iter().enumerate() {
        highest = highest.max((p.len() - rank) as f64 * known(p[at])).min(1.0);
        adjusted[at] = highest;
    }
    adjusted
}

/// The step-up procedure that controls the false discovery rate, the expected share of false rejections,
/// for tests that are independent or depend positively on each other. With p-values ascending, `p_i` of `m`
/// becomes `min over j >= i of m p_j / j` (Benjamini and Hochberg, "Controlling the false discovery rate",
/// J. Royal Statistical Society B 57, 1995).
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let order = ascending(p);
    let mut lowest = 1.0_f64;
    let mut adjusted = vec![0.0; p.len()];
    for (rank, &at) in order.iter().enumerate().rev() {
        lowest = lowest.min(p.len() as f64 * known(p[at]) / (rank + 1) as f64);
        adjusted[at] = lowest;
    }
    adjusted
}

/// The smallest credible p-value of Student's t with `units` units a side: `2 / 4^units`, which is 3.1 % for 3, 0.8 %
/// for 4 and 0.2 % for 5.
///
/// Many tests at once need p-values far below 5 %, where Student's t holds for normal figures only (Fan, Hall and
/// Yao, "To how many simultaneous hypothesis tests can normal, Student's t or bootstrap calibration be applied?", J.
/// American Statistical Association 102, 2007). Figures that have two narrow modes, or are one of two adjacent whole
/// numbers, have no spread within the sides when one side has all of one value and the other all of the other. If `q`
/// is the share of one value, this happens in `2 q^n (1 - q)^n` of cases, at most `2 / 4^n`. The same holds for pairs
/// that all differ alike. Sides of different sizes separate no more often than two sides of the smaller size.
pub fn least_p(units: usize) -> f64 {
    2.0 * 0.25_f64.powi(i32::try_from(units).unwrap_or(i32::MAX))
}

/// Indices of the p-values, lowest first.
fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| known(p[a]).total_cmp(&known(p[b])));
    order
}

fn known(p: f64) -> f64 {
    if p.is_nan() { 1.0 } else { p }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const P: [f64; 8] = [0.01, 0.04, 0.03, 0.005, 0.2, 0.04, 0.9, 0.0001];

    /// statsmodels 0.15.0, `statsmodels.stats.multitest.multipletests(P, method=...)[1]`.
    #[test]
    fn adjusted_values_agree_with_statsmodels() {
        let expected = [0.06, 0.16, 0.15, 0.035, 0.4, 0.16, 0.9, 0.0008];
        assert_close(&holm(&P), &expected);
        let expected = [
            0.02666666666666667, 0.05333333333333334, 0.05333333333333334, 0.02,
            0.2285714285714286, 0.05333333333333334, 0.9, 0.0008,
        ];
        assert_close(&benjamini_hochberg(&P), &expected);
    }

    fn assert_close(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-14, "{found}, not {expected}");
        }
    }

    #[test]
    fn no_tests_and_unknown_ones_are_harmless() {
        assert!(holm(&[]).is_empty());
        assert!(benjamini_hochberg(&[]).is_empty());
        assert_eq!(holm(&[f64::NAN, 0.01]), [1.0, 0.02]);
        assert_eq!(benjamini_hochberg(&[f64::NAN, 0.01]), [1.0, 0.02]);
    }

    /// Two-valued figures, for any share of one value: the sides separate completely no more often than
    /// stated.
    #[test]
    fn two_modes_separate_no_more_often_than_stated() {
        let separated =
            |a: i32, b: i32, q: f64| q.powi(a) * (1.0 - q).powi(b) + (1.0 - q).powi(a) * q.powi(b);
        let shares = || (0..=1000).map(|share| f64::from(share) / 1000.0);
        for units in 1..12 {
            let most = shares().map(|q| separated(units, units, q)).fold(0.0, f64::max);
            assert!((most / least_p(units as usize) - 1.0).abs() < 1e-12);
            let of_more = shares().map(|q| separated(units, units + 2, q)).fold(0.0, f64::max);
            assert!(of_more <= least_p(units as usize));
        }
        assert_eq!((least_p(0), least_p(usize::MAX)), (2.0, 0.0));
    }

    proptest! {
        #[test]
        fn stricter_methods_reject_less(p in prop::collection::vec(0.0..=1.0_f64, 1..30)) {
            let (holm, bh) = (holm(&p), benjamini_hochberg(&p));
            for i in 0..p.len() {
                prop_assert!(p[i] <= bh[i] * (1.0 + 1e-12));
                prop_assert!(bh[i] <= holm[i] * (1.0 + 1e-12));
                prop_assert!(holm[i] <= 1.0);
            }
        }
    }
}
