//! Change points: the places where a series changes its mean or its spread.

use crate::Summary;
use crate::order::resolution;

/// The starts of the segments of `values`, without the first: the segmentation into stretches of normal
/// values, each with its own mean and variance, of least total cost. The cost of a segment is twice its
/// negative log-likelihood less a constant; each start adds `penalty ln n`; a segment has at least
/// `min_segment` values. The result is exact. Pruning makes the time linear if the number of changes grows
/// with the length (PELT; Killick, Fearnhead and Eckley, "Optimal detection of changepoints with a linear
/// computational cost", J. American Statistical Association 107, 2012).
///
/// A penalty of 15 is conservative (Barrett and others, "Virtual machine warmup blows hot and cold", OOPSLA
/// 2017); one of 4 reports likely changes. A variance is at least that of rounding to the last decimal
/// place of the values, so that a run of equal ones is not a segment.
///
/// Empty if nothing changes, or if a value is not finite. A `min_segment` below 2 counts as 2.
pub fn pelt(values: &[f64], penalty: f64, min_segment: usize) -> Vec<usize> {
    let min_segment = min_segment.max(2);
    let (Some(cost), n) = (Cost::of(values), values.len()) else { return Vec::new() };
    let penalty = penalty * (n as f64).ln();
    // For the first `end` values: the least cost, and the start of its last segment.
    let mut best = vec![(f64::INFINITY, 0); n + 1];
    best[0].0 = -penalty;
    let mut candidates: Vec<Candidate> = Vec::new();
    for end in min_segment..=n {
        let start = end - min_segment;
        if best[start].0.is_finite() {
            candidates.push(Candidate { start, until: usize::MAX });
        }
        candidates.retain(|candidate| end < candidate.until);
        for candidate in &candidates {
            let start = candidate.start;
            let total = best[start].0 + cost.of_segment(start, end) + penalty;
            if total < best[end].0 {
                best[end] = (total, start);
            }
        }
        // If a new segment that starts here costs no more, the old start is never better for a later end. The new
        // segment is long enough only `min_segment` values later.
        for candidate in &mut candidates {
            let start = candidate.start;
            if best[start].0 + cost.of_segment(start, end) > best[end].0 {
                candidate.until = candidate.until.min(end + min_segment);
            }
        }
    }
    let mut starts = Vec::new();
    let mut end = n;
    while best[end].1 > 0 {
        end = best[end].1;
        starts.push(end);
    }
    starts.reverse();
    starts
}

/// A candidate start of the last segment.
struct Candidate {
    start: usize,
    /// It is a candidate for ends before this one.
    until: usize,
}

/// The cost of segments.
struct Cost {
    /// Prefix sums of the values less their mean, and of their squares.
    sums: Vec<(f64, f64)>,
    least_variance: f64,
}

impl Cost {
    /// `None` for fewer than 2 values, or if one is not finite.
    fn of(values: &[f64]) -> Option<Self> {
        let Summary { amean, stddev, .. } = Summary::of(values)?;
        let sums = values.iter().scan((0.0, 0.0), |(sum, squares), x| {
            *sum += x - amean;
            *squares += (x - amean).powi(2);
            Some((*sum, *squares))
        });
        let sums = std::iter::once((0.0, 0.0)).chain(sums).collect();
        // Below 1e-10 of the total variance, differences of sums are rounding errors.
        let rounding = resolution(values).map_or(0.0, |unit| unit * unit / 12.0);
        let least_variance = rounding.max(1e-10 * stddev?.powi(2)).max(f64::MIN_POSITIVE);
        Some(Self { sums, least_variance })
    }

    /// Cost of the values from `start` to `end`: `n (ln v + s / v)`, with their variance `s` about their mean, and
    /// `v` the larger of `s` and the least variance. It is a maximised likelihood, so it never grows when a segment
    /// is split. Pruning relies on this.
    fn of_segment(&self, start: usize, end: usize) -> f64 {
        let ((sum, squares), (sum_before, squares_before)) = (self.sums[end], self.sums[start]);
        let n = (end - start) as f64;
        let mean = (sum - sum_before) / n;
        let found = ((squares - squares_before) / n - mean * mean).max(0.0);
        let variance = found.max(self.least_variance);
        n * (variance.ln() + found / variance)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simulate::normal;

    /// Pseudorandom values between -1/2 and 1/2, with steps in mean and spread.
    fn steps() -> Vec<f64> {
        let noise = |i: u32| f64::from(i * 619 % 1009) / 1009.0 - 0.5;
        let step = |i: u32| match i {
            0..40 => 3.0 + noise(i),
            40..55 => 1.5 + noise(i),
            55..120 => 1.5 + 0.2 * noise(i),
            120..123 => 9.0 + noise(i),
            _ => 1.5 + 0.25 * noise(i),
        };
        (0..200).map(step).collect()
    }

    /// ruptures 1.1.10: `Pelt(custom_cost=cost, min_size=m, jump=1).fit(x).predict(c * log(200))[:-1]`
    /// where `cost.error(a, b)` is `(b - a) * log(numpy.var(x[a:b]))`; `Dynp` with as many changes
    /// gives the same.
    #[test]
    fn segments_agree_with_ruptures() {
        let many = [
            3, 30, 34, 40, 44, 48, 55, 59, 86, 90, 99, 103, 112, 116, 120, 123, 127, 136, 140, 149,
            153, 161, 165, 174, 178, 187, 191,
        ];
        for (penalty, min_segment, starts) in [
            (60.0, 2, &[123][..]),
            (40.0, 3, &[40, 120, 123]),
            (40.0, 10, &[40, 113, 123]),
            (15.0, 2, &[40, 55, 120, 123]),
            (15.0, 10, &[40, 55, 119, 129]),
            (0.2, 3, &many),
        ] {
            assert_eq!(pelt(&steps(), penalty, min_segment), starts, "{penalty} {min_segment}");
        }
    }

    /// The least cost by trying every start, without pruning.
    fn least_cost(values: &[f64], penalty: f64, min_segment: usize) -> f64 {
        let cost = Cost::of(values).unwrap();
        let mut best = vec![f64::INFINITY; values.len() + 1];
        best[0] = -penalty;
        for end in min_segment..=values.len() {
            let of = |start: usize| best[start] + cost.of_segment(start, end) + penalty;
            best[end] = (0..=end - min_segment).map(of).fold(f64::INFINITY, f64::min);
        }
        best[values.len()]
    }

    proptest! {
        #[test]
        fn segments_cost_the_least_of_all(
            runs in prop::collection::vec((-5.0..5.0_f64, 0.01..3.0_f64, 1..20usize), 1..8),
            factor in 0.5..6.0_f64,
            min_segment in 2..7usize,
        ) {
            let mut normal = normal(10);
            let values: Vec<f64> = runs
                .iter()
                .flat_map(|&(mean, sd, n)| vec![(mean, sd); n])
                .map(|(mean, sd)| mean + sd * normal())
                .collect();
            prop_assume!(values.len() >= min_segment);
            let starts = pelt(&values, factor, min_segment);
            let cost = Cost::of(&values).unwrap();
            let penalty = factor * (values.len() as f64).ln();
            let ends: Vec<usize> = [&[0], &starts[..], &[values.len()]].concat();
            prop_assert!(ends.windows(2).all(|ends| ends[1] - ends[0] >= min_segment));
            let found: f64 = ends.windows(2).map(|ends| cost.of_segment(ends[0], ends[1])).sum();
            let least = least_cost(&values, penalty, min_segment);
            prop_assert!((found + penalty * starts.len() as f64 - least).abs() < 1e-6 * least.abs().max(1.0));
        }
    }

    #[test]
    fn runs_of_equal_rounded_values_are_no_segments() {
        let mut normal = normal(11);
        let values: Vec<f64> = (0..500).map(|_| (10.0 + 0.4 * normal()).round()).collect();
        assert_eq!(pelt(&values, 15.0, 2), [0; 0]);
        assert_eq!(pelt(&[7.0; 100], 15.0, 2), [0; 0]);
    }

    #[test]
    fn what_is_too_short_or_not_finite_has_no_changes() {
        assert_eq!(pelt(&[], 15.0, 2), [0; 0]);
        assert_eq!(pelt(&[1.0], 15.0, 2), [0; 0]);
        assert_eq!(pelt(&[1.0, 9.0], 15.0, 9), [0; 0]);
        assert_eq!(pelt(&[1.0, 1.0, 1.0, f64::NAN, 9.0, 9.0], 0.1, 2), [0; 0]);
    }
}
