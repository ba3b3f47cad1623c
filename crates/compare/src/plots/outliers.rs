//! Which samples lie far from the others.

use std::ops::RangeInclusive;

/// Fewer values than this don't tell what is far.
const ENOUGH: usize = 5;
/// B. Iglewicz and D. Hoaglin, How to Detect and Handle Outliers (1993): values whose modified
/// z-score is larger are potential outliers.
const FAR: f64 = 3.5;
/// The standard deviation of normal values over their median absolute deviation ...
const MEDIAN_DEVIATION: f64 = 1.482_602;
/// ... and over their mean absolute deviation, sqrt(pi / 2).
const MEAN_DEVIATION: f64 = 1.253_314;

/// What lies outside of a range.
pub struct Outliers(Option<RangeInclusive<f64>>);

impl Outliers {
    /// Whether `value` does.
    pub fn contains(&self, value: f64) -> bool {
        self.0.as_ref().is_some_and(|usual| !usual.contains(&value))
    }
}

/// Outliers by the modified z-score, (value - median) / (1.4826 x median absolute deviation) beyond
/// 3.5. Where more than half of the values are equal the mean absolute deviation takes that of the
/// median. None of fewer than 5 values.
pub fn outliers(values: &[f64]) -> Outliers {
    if values.len() < ENOUGH {
        return Outliers(None);
    }
    let middle = median(values.to_vec());
    let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let mean = deviations.iter().sum::<f64>() / deviations.len() as f64;
    let deviation = match median(deviations) {
        0.0 => MEAN_DEVIATION * mean,
        median => MEDIAN_DEVIATION * median,
    };
    Outliers(Some(middle - FAR * deviation..=middle + FAR * deviation))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() % 2 {
        0 => (values[half - 1] + values[half]) / 2.0,
        _ => values[half],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn far(values: &[f64]) -> Vec<f64> {
        let outliers = outliers(values);
        values.iter().copied().filter(|&value| outliers.contains(value)).collect()
    }

    #[test]
    fn two_far_values_do_not_hide_each_other() {
        let values = [2.1, 2.6, 2.4, 2.5, 2.3, 2.1, 2.3, 2.6, 8.2, 8.3];
        assert_eq!(far(&values), [8.2, 8.3]);
        assert_eq!(far(&[10.0, 10.1, 9.9, 10.05, 9.95]), [0.0; 0]);
    }

    #[test]
    fn equal_values_leave_only_what_differs() {
        assert_eq!(far(&[5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 9.0]), [9.0]);
        assert_eq!(far(&[5.0; 6]), [0.0; 0]);
    }

    #[test]
    fn few_values_have_no_outlier() {
        assert_eq!(far(&[1.0, 1.0, 1.0, 1000.0]), [0.0; 0]);
        assert_eq!(far(&[]), [0.0; 0]);
    }
}
