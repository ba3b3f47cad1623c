//! Order statistics as the rows of mmtests' tables define them: picked values, never interpolated.
//!
//! Percentages are of the number of values, so 95 is 95 %. Every function returns `None` if there are no values, if
//! one of them is not finite, or if the percentage is not in 0 to 100.

use std::cmp::Ordering;

use model::{Better, Mean};

use crate::counted::{at, count, split_at};
use crate::{Counted, RepeatedValue, Summary};

/// The mean of the best `max (1, floor (n percent / 100))` of `n` values: the rows `BAmean` and `BHmean` of mmtests.
/// `None` also if the mean is undefined.
pub fn best_mean<V: Counted>(
    values: &[V],
    better: Better,
    percent: f64,
    mean: Mean,
) -> Option<f64> {
    let sorted = sorted(values, better)?;
    let [best, _] = split_at(&sorted, share(count(&sorted), percent)?.max(1));
    mean_of(&best, mean)
}

/// The value at or below which `percent` of the values lie: with `n` values sorted ascending, number
/// `floor ((n - 1) percent / 100 + 1/2)`, counted from 0. These are the quartile rows that mmtests printed
/// from 2014 to 2018 (`1st-qrtle`, `2nd-qrtle`, `Max-93%` and so on).
pub fn quartile<V: Counted>(values: &[V], percent: f64) -> Option<f64> {
    let sorted = sorted(values, Better::Lower)?;
    let last = count(&sorted) - 1;
    share(last, percent)?;
    at(&sorted, (last as f64 * percent / 100.0 + 0.5) as usize)
}

/// The mean of the smallest `floor (n percent / 100) + 1` of `n` values, or of all of them if that share rounds down
/// to 0 values or the number exceeds `n`. These are the rows `Best95%Mean` and so on that mmtests printed from 2014
/// to 2018. It counts one value more than [`best_mean`].
pub fn smallest_mean<V: Counted>(values: &[V], percent: f64) -> Option<f64> {
    let sorted = sorted(values, Better::Lower)?;
    match share(count(&sorted), percent)? {
        0 => mean_of(&sorted, Mean::Amean),
        best => mean_of(&split_at(&sorted, best + 1)[0], Mean::Amean),
    }
}

/// The median; of an even number of values the mean of the two middle ones.
pub fn median<V: Counted>(values: &[V]) -> Option<f64> {
    let sorted = sorted(values, Better::Lower)?;
    let n = count(&sorted);
    let (low, high) = (at(&sorted, (n - 1) / 2)?, at(&sorted, n / 2)?);
    // Values are halved first, so that the sum of two large ones stays finite.
    Some(if low == high { low } else { low / 2.0 + high / 2.0 })
}

/// The last decimal place of the values, as a power of ten from `1e-9` to `1e6`: the unit to which they may have been
/// rounded. `None` if they have more places.
pub(crate) fn resolution<V: Counted>(values: &[V]) -> Option<f64> {
    let is_multiple = |unit: f64| {
        let off = |x: f64| (x / unit - (x / unit).round()).abs();
        // Up to 1e9 units, a double's own rounding error is far less than a millionth of a unit.
        values.iter().map(|it| it.value()).all(|x| off(x) < 1e-6 && (x / unit).abs() < 1e9)
    };
    (-9..=6).rev().map(|power| 10f64.powi(power)).find(|&unit| is_multiple(unit))
}

/// The values, best first.
fn sorted<V: Counted>(values: &[V], better: Better) -> Option<Vec<RepeatedValue>> {
    if values.is_empty() || values.iter().any(|it| !it.value().is_finite()) {
        return None;
    }
    let mut sorted: Vec<RepeatedValue> = values.iter().map(|it| it.run()).collect();
    sorted.sort_by(|a, b| match better {
        Better::Lower => a.value.total_cmp(&b.value),
        Better::Higher => b.value.total_cmp(&a.value),
    });
    Some(sorted)
}

/// `percent` of `n`, rounded down. The product comes before the division, so that 95 % of 20 is 19, not 18.
fn share(n: usize, percent: f64) -> Option<usize> {
    let in_range = percent.partial_cmp(&0.0)? != Ordering::Less && percent <= 100.0;
    in_range.then(|| (n as f64 * percent / 100.0) as usize)
}

fn mean_of(values: &[RepeatedValue], mean: Mean) -> Option<f64> {
    let summary = Summary::of(values)?;
    match mean {
        Mean::Amean => Some(summary.amean),
        Mean::Hmean => summary.hmean,
        Mean::Gmean => summary.gmean,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEN: [f64; 10] = [30.0, 10.0, 50.0, 40.0, 20.0, 100.0, 60.0, 90.0, 80.0, 70.0];

    #[test]
    fn best_means_leave_out_the_worst() {
        let mean = |better, percent, mean| best_mean(&TEN, better, percent, mean).unwrap();
        assert_eq!(mean(Better::Lower, 95.0, Mean::Amean), 50.0);
        assert_eq!(mean(Better::Higher, 25.0, Mean::Amean), 95.0);
        assert_eq!(mean(Better::Higher, 20.0, Mean::Hmean), 2.0 / (1.0 / 100.0 + 1.0 / 90.0));
        assert_eq!(mean(Better::Lower, 1.0, Mean::Gmean), 10.0);
        // 95 % of 20 is exactly 19.
        let twenty: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(best_mean(&twenty, Better::Lower, 95.0, Mean::Amean), Some(10.0));
    }

    #[test]
    fn quartiles_are_the_nearest_values() {
        let at = |percent| quartile(&TEN, percent).unwrap();
        // (n - 1) q + 1/2 = 2.75, 5, 7.25, 8.6, 8.87, 9.05, 9.41.
        let expected = [30.0, 60.0, 80.0, 90.0, 90.0, 100.0, 100.0];
        for (percent, expected) in
            [25.0, 50.0, 75.0, 90.0, 93.0, 95.0, 99.0].into_iter().zip(expected)
        {
            assert_eq!(at(percent), expected, "{percent}");
        }
        assert_eq!((at(0.0), at(100.0)), (10.0, 100.0));
    }

    #[test]
    fn smallest_means_hold_one_value_more() {
        assert_eq!(smallest_mean(&TEN, 50.0), Some(35.0));
        assert_eq!(smallest_mean(&TEN, 90.0), Some(55.0));
        assert_eq!(smallest_mean(&TEN, 99.0), Some(55.0));
        assert_eq!(smallest_mean(&TEN, 100.0), Some(55.0));
        assert_eq!(smallest_mean(&TEN, 5.0), Some(55.0));
        assert_eq!(smallest_mean(&TEN, 10.0), Some(15.0));
    }

    #[test]
    fn a_median_may_lie_between_two() {
        assert_eq!(median(&TEN), Some(55.0));
        assert_eq!(median(&TEN[..3]), Some(30.0));
        assert_eq!(median(&[f64::MAX, f64::MAX]), Some(f64::MAX));
    }

    #[test]
    fn the_last_place_is_found() {
        assert_eq!(resolution(&[755.96, 833.6, 558.0]), Some(0.01));
        assert_eq!(resolution(&[1200.0, 0.0, -300.0]), Some(100.0));
        assert_eq!(resolution(&[1.0 / 3.0, 1.0]), None);
        assert_eq!(resolution(&[1e300, 1.0]), None);
    }

    #[test]
    fn what_is_undefined_is_absent() {
        for values in [&[0.0; 0][..], &[1.0, f64::NAN], &[f64::INFINITY]] {
            assert_eq!(best_mean(values, Better::Lower, 50.0, Mean::Amean), None);
            assert_eq!(quartile(values, 50.0), None);
            assert_eq!(smallest_mean(values, 50.0), None);
            assert_eq!(median(values), None);
        }
        for percent in [-1.0, 100.5, f64::NAN] {
            assert_eq!(best_mean(&TEN, Better::Lower, percent, Mean::Amean), None);
            assert_eq!(quartile(&TEN, percent), None);
            assert_eq!(smallest_mean(&TEN, percent), None);
        }
        assert_eq!(best_mean(&[0.0, 1.0], Better::Higher, 100.0, Mean::Hmean), None);
    }

    proptest! {
        #[test]
        fn what_is_picked_is_one_of_the_values(
            values in prop::collection::vec(-1e9..1e9_f64, 1..40),
            percent in 0.0..=100.0_f64,
        ) {
            prop_assert!(values.contains(&quartile(&values, percent).unwrap()));
        }
    }
}
