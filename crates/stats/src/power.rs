//! Power: the number of units that a comparison needs, and the difference that a number of units can show.
//!
//! A unit is anything independent that gives one figure. Its figures may be the logarithms from which
//! [`RatioTest`](crate::RatioTest) makes a ratio: then `sd` is near to the relative standard deviation of the
//! figures, and a margin of 2 % is an effect of `ln 1.02`. All of this assumes normal figures of equal spread on both
//! sides, and Student's t.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};
use statrs::function::gamma::ln_gamma;

/// The largest number of units that is considered.
const MAX_UNITS: usize = 1 << 20;

/// The relation between the figures of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// Each unit, such as a block, gives a figure of each side: `sd` is that of the units' differences, and
    /// units are counted as pairs.
    Paired,
    /// Each unit gives a figure of one side: `sd` is that of a side, and units are counted for each side.
    Unpaired,
}

impl Design {
    /// Degrees of freedom with `n` units, and the standard error of the difference divided by `sd`.
    fn of(self, n: usize) -> (f64, f64) {
        let n = n as f64;
        match self {
            Self::Paired => (n - 1.0, n.sqrt().recip()),
            Self::Unpaired => (2.0 * n - 2.0, (2.0 / n).sqrt()),
        }
    }
}

/// The probability that `n` units show a true difference `effect`, by a two-sided test at level `alpha`:
/// the tails of noncentral t beyond the critical values (Owen, "A survey of properties and applications of
/// the noncentral t-distribution", Technometrics 10, 1968; what R's `power.t.test` computes with
/// `strict = TRUE`).
///
/// `None` for fewer than 2 units, an `sd` that is negative, an effect that is not above 0, or an `alpha` outside 0 to
/// 1.
pub fn power(design: Design, n: usize, sd: f64, effect: f64, alpha: f64) -> Option<f64> {
    let (df, noncentrality) = known(design, n, sd, effect, alpha)?;
    Some(tails(df, critical(df, alpha / 2.0), noncentrality))
}

/// The least number of units, for each side or of pairs, that shows a true difference `effect` with probability
/// `power` at level `alpha`, two-sided. `None` if [`power`] is `None` for 2 units, for a `power` outside 0 to 1, or
/// if a million units do not suffice.
pub fn required(design: Design, sd: f64, effect: f64, alpha: f64, power: f64) -> Option<usize> {
    least_units(power, |n| self::power(design, n, sd, effect, alpha))
}

/// The smallest true difference that `n` units show with probability `power` at level `alpha`, two-sided. `None` for
/// fewer than 2 units, an `sd` that is negative or not finite, or unless `0 < alpha < power < 1`.
pub fn detectable(design: Design, n: usize, sd: f64, alpha: f64, power: f64) -> Option<f64> {
    let (df, _) = known(design, n, sd, 1.0, alpha)?;
    if !(alpha < power && power < 1.0) {
        return None;
    }
    let critical = critical(df, alpha / 2.0);
    let mut high = 1.0;
    while tails(df, critical, high) < power {
        high *= 2.0;
    }
    let mut low = 0.0;
    while high - low > 1e-12 * high {
        let middle = (low + high) / 2.0;
        let side = if tails(df, critical, middle) < power { &mut low } else { &mut high };
        *side = middle;
    }
    Some(high * sd * design.of(n).1)
}

/// Degrees of freedom, and `effect` in standard errors.
fn known(design: Design, n: usize, sd: f64, effect: f64, alpha: f64) -> Option<(f64, f64)> {
    let valid = n >= 2 && sd >= 0.0 && sd.is_finite() && effect > 0.0 && 0.0 < alpha && alpha < 1.0;
    let (df, error) = design.of(n.max(2));
    valid.then(|| (df, effect / (sd * error)))
}

fn least_units(power: f64, of: impl Fn(usize) -> Option<f64>) -> Option<usize> {
    if !(0.0 < power && power < 1.0) {
        return None;
    }
    let (mut low, mut high) = (1, 2);
    while of(high)? < power {
        (low, high) = (high, high * 2);
        if high > MAX_UNITS {
            return None;
        }
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let side = if of(middle)? < power { &mut low } else { &mut high };
        *side = middle;
    }
    Some(high)
}

/// The value above which t of `df` degrees of freedom lies with probability `tail`.
fn critical(df: f64, tail: f64) -> f64 {
    -StudentsT::new(0.0, 1.0, df).expect("degrees of freedom are above 0").inverse_cdf(tail)
}

/// The probability that noncentral t lies beyond `critical` on either side.
fn tails(df: f64, critical: f64, noncentrality: f64) -> f64 {
    let beyond = |s: f64| {
        upper_tail(critical * s - noncentrality) + upper_tail(critical * s + noncentrality)
    };
    mean_over_spread(df, beyond).clamp(0.0, 1.0)
}

/// The probability that a standard normal figure lies above `z`.
fn upper_tail(z: f64) -> f64 {
    Normal::standard().sf(z)
}

/// The mean of `f (s)`, where `s` is a measured standard deviation divided by the true one, that is
/// `sqrt (chi^2 / df)`: Simpson's rule over ten standard deviations on either side, which covers all the
/// weight.
fn mean_over_spread(df: f64, f: impl Fn(f64) -> f64) -> f64 {
    const STEPS: u32 = 1000;
    let reach = 10.0 / (2.0 * df).sqrt();
    let (low, high) = ((1.0 - reach).max(f64::MIN_POSITIVE), 1.0 + reach);
    let half = df / 2.0;
    let scale = std::f64::consts::LN_2 + half * half.ln() - ln_gamma(half);
    let density = |s: f64| (scale + (df - 1.0) * s.ln() - half * s * s).exp();
    let step = (high - low) / f64::from(STEPS);
    let weighted = |i: u32| {
        let weight = match i {
            0 | STEPS => 1.0,
            _ if i % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let s = low + f64::from(i) * step;
        weight * density(s) * f(s)
    };
    (0..=STEPS).map(weighted).sum::<f64>() * step / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units, effect by standard deviation, level; statsmodels 0.15.0,
    /// `statsmodels.stats.power.TTestPower().power(effect, n, alpha)` and
    /// `TTestIndPower().power(effect, n, alpha, ratio=1)`.
    const POWER: [(usize, f64, f64, f64, f64); 6] = [
        (3, 2.0, 0.05, 0.4707494312784346, 0.46264081189130635),
        (5, 1.0, 0.05, 0.4013899173717948, 0.28629549338059757),
        (20, 0.5, 0.05, 0.5645044184390203, 0.3379390289250411),
        (10, 1.5, 0.01, 0.8957205519224344, 0.6797662953874919),
        (2, 4.0, 0.05, 0.3428357100650761, 0.5645142892600375),
        (100, 0.3, 0.05, 0.8439471027374158, 0.5600592535808472),
    ];

    #[test]
    fn power_agrees_with_statsmodels() {
        for (n, effect, alpha, paired, unpaired) in POWER {
            for (design, expected) in [(Design::Paired, paired), (Design::Unpaired, unpaired)] {
                let found = power(design, n, 2.0, 2.0 * effect, alpha).unwrap();
                assert!((found - expected).abs() < 1e-8, "{found}, not {expected}");
            }
        }
    }

    /// The first whole number of units at which statsmodels' power, as above, reaches the target.
    #[test]
    fn required_units_agree_with_statsmodels() {
        for (effect, alpha, power, paired, unpaired) in [
            (1.0, 0.05, 0.8, 10, 17),
            (2.0, 0.05, 0.8, 5, 6),
            (0.5, 0.05, 0.9, 44, 86),
            (0.1, 0.01, 0.8, 1172, 2338),
            (5.0, 0.05, 0.8, 3, 3),
        ] {
            assert_eq!(required(Design::Paired, 1.0, effect, alpha, power), Some(paired));
            assert_eq!(required(Design::Unpaired, 1.0, effect, alpha, power), Some(unpaired));
        }
    }

    /// SciPy 1.17.1: `scipy.optimize.brentq` on `nct.sf(c, df, d) + nct.cdf(-c, df, d) - 0.8`, with
    /// `c = t.ppf(0.975, df)`, `d = effect * sqrt(n)` or `effect * sqrt(n / 2)`.
    #[test]
    fn detectable_effects_agree_with_scipy() {
        for (n, paired, unpaired) in [
            (3, 3.264043549699572, 3.0708922663636886),
            (5, 1.6819969659555531, 2.0244393393845423),
            (10, 0.9960013714554438, 1.3249473925792308),
            (30, 0.529235615112955, 0.7356210695976683),
        ] {
            for (design, expected) in [(Design::Paired, paired), (Design::Unpaired, unpaired)] {
                let found = detectable(design, n, 3.0, 0.05, 0.8).unwrap() / 3.0;
                assert!((found / expected - 1.0).abs() < 1e-9, "{found}, not {expected}");
            }
        }
    }

    #[test]
    fn no_spread_needs_the_fewest_units() {
        assert_eq!(required(Design::Paired, 0.0, 0.01, 0.05, 0.8), Some(2));
        assert_eq!(detectable(Design::Unpaired, 3, 0.0, 0.05, 0.8), Some(0.0));
    }

    #[test]
    fn invalid_input_has_no_answer() {
        let design = Design::Unpaired;
        assert_eq!(power(design, 1, 1.0, 1.0, 0.05), None);
        assert_eq!(power(design, 3, -1.0, 1.0, 0.05), None);
        assert_eq!(power(design, 3, f64::NAN, 1.0, 0.05), None);
        assert_eq!(power(design, 3, 1.0, 0.0, 0.05), None);
        assert_eq!(power(design, 3, 1.0, 1.0, 1.0), None);
        assert_eq!(required(design, 1.0, 1.0, 0.05, 1.0), None);
        assert_eq!(required(design, 1e6, 1.0, 0.05, 0.8), None);
        assert_eq!(detectable(design, 3, 1.0, 0.05, 0.05), None);
        assert_eq!(detectable(design, 3, f64::INFINITY, 0.05, 0.8), None);
    }
}
