//! Gains: how much better one figure is than another.

use model::Better;

/// The gain of `new` over `base` in percent; positive is better, whatever the direction.
///
/// - lower is better: `100 - 100 new / base`, so twice the time is -100 %, half of it 50 %;
/// - higher is better: `100 new / base - 100`, so twice the rate is 100 %, half of it -50 %.
///
/// These are the formulas of the tables on the kernel's lists (mmtests, `Stat.pm`, `pndiff` and `pdiff`), without
/// their substitutes of -99 and 100 % where no percentage exists. Equal figures give 0, also if both are 0. `None` if
/// a figure is not finite, or if `base` is not above 0 and differs from `new`: a percentage of 0 does not exist, and
/// one of a negative figure would have the wrong sign.
pub fn gain(better: Better, new: f64, base: f64) -> Option<f64> {
    if !new.is_finite() || !base.is_finite() {
        return None;
    }
    if new == base {
        return Some(0.0);
    }
    if base <= 0.0 {
        return None;
    }
    // The product comes before the division, as in mmtests, so that the last printed digit agrees.
    let percent = new * 100.0 / base;
    let gain = match better {
        Better::Lower => 100.0 - percent,
        Better::Higher => percent - 100.0,
    };
    gain.is_finite().then_some(gain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(better: Better, new: f64, base: f64) -> String {
        format!("{:.2}", gain(better, new, base).unwrap())
    }

    /// From the table "xfsrepair" of "mm: numa: Slow PTE scan rate if migration failures occur" (Mel
    /// Gorman, 7 March 2015): base, two others, and their gains as printed there.
    const AMEAN: [(f64, [(f64, &str); 2]); 4] = [
        (1166.63, [(1155.97, "0.91"), (1166.28, "0.03")]),
        (4020.94, [(4004.19, "0.42"), (4025.87, "-0.12")]),
        (507.85, [(459.58, "9.50"), (447.66, "11.85")]),
        (519.88, [(281.63, "45.83"), (202.93, "60.97")]),
    ];

    /// CoeffVar of the same table.
    const COEFF_VAR: [(f64, [(f64, f64); 2]); 4] = [
        (0.56, [(0.34, 38.74), (0.12, 77.97)]),
        (0.40, [(0.38, 6.57), (0.24, 39.93)]),
        (2.20, [(0.74, 66.22), (1.24, 43.47)]),
        (2.69, [(7.08, -163.23), (2.80, -4.23)]),
    ];

    #[test]
    fn means_of_a_mail_give_its_gains() {
        for (base, others) in AMEAN {
            for (new, gain) in others {
                assert_eq!(printed(Better::Lower, new, base), gain);
            }
        }
    }

    #[test]
    fn coefficients_of_a_mail_give_its_gains_within_their_two_decimals() {
        const ROUNDING: f64 = 0.005;
        for (base, others) in COEFF_VAR {
            for (new, expected) in others {
                let least = gain(Better::Lower, new + ROUNDING, base - ROUNDING).unwrap();
                let most = gain(Better::Lower, new - ROUNDING, base + ROUNDING).unwrap();
                assert!((least..=most).contains(&expected), "{new} over {base}");
            }
        }
    }

    #[test]
    fn a_gain_is_positive_when_better() {
        assert_eq!(gain(Better::Lower, 50.0, 100.0), Some(50.0));
        assert_eq!(gain(Better::Higher, 50.0, 100.0), Some(-50.0));
        assert_eq!(gain(Better::Lower, 200.0, 100.0), Some(-100.0));
        assert_eq!(gain(Better::Higher, 200.0, 100.0), Some(100.0));
        assert_eq!(gain(Better::Lower, 0.0, 100.0), Some(100.0));
        assert_eq!(gain(Better::Higher, 0.0, 100.0), Some(-100.0));
    }

    #[test]
    fn equal_figures_gain_nothing() {
        for figure in [0.0, -3.0, 0.1, f64::MAX] {
            assert_eq!(gain(Better::Lower, figure, figure), Some(0.0));
        }
    }

    #[test]
    fn no_percentage_is_invented() {
        for (new, base) in [
            (1.0, 0.0),
            (-1.0, -2.0),
            (f64::NAN, 1.0),
            (1.0, f64::NAN),
            (f64::INFINITY, f64::INFINITY),
            (f64::MAX, f64::MIN_POSITIVE),
        ] {
            assert_eq!(gain(Better::Lower, new, base), None, "{new} over {base}");
            assert_eq!(gain(Better::Higher, new, base), None, "{new} over {base}");
        }
    }
}
