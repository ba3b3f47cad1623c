//! Sequential testing of data that still come in: the times of looks, and the share of the error that each look may
//! spend, so that a run may stop at any look.
//!
//! Repeated looks that stop at the first difference find one in the end, even where there is none (P.
//! Armitage, C. K. McPherson, B. C. Rowe, "Repeated significance tests on accumulating data", Journal of
//! the Royal Statistical Society A 132, 1969). So the total error is spent look by look, by a function of
//! the number of units that is fixed beforehand (K. K. G. Lan, D. L. DeMets, "Discrete sequential
//! boundaries for clinical trials", Biometrika 70, 1983). With `n` units, `n² / (n² + 12²)` of it is spent:
//! half by 12 units, and never all of it, so that units can always be added.
//!
//! Each look may err as often as its share says, and the total error is at most the sum of these (Bonferroni). Lan
//! and DeMets are less conservative: they use the correlation of successive looks, which for few units is known for
//! normal figures only. `bench/stats-calibration` prints the cost, and that errors stay below the nominal rate.

/// Units at the first look. With 3, bimodal figures are too often all in the same mode: in 3 % of cases
/// each of the pairs of 3 units differs the same way.
const FIRST: f64 = 4.0;
/// Units by which half of the error is spent.
const HALF: f64 = 12.0;

/// One look at the data so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Its number, from 1.
    pub number: u32,
    /// The number of units at this look.
    pub units: u32,
    /// Its share of the total error that is allowed, 0 to 1.
    pub share: f64,
}

/// The looks, an infinite sequence: at 4, 6, 8, 11, 16, 23, 32, 45, 64 units and so on, growing by a factor
/// of the root of 2. Their shares add up to less than 1.
pub fn looks() -> impl Iterator<Item = Look> {
    let mut before = 0.0;
    (0..).map(move |index| {
        let units = (FIRST * 2f64.powf(f64::from(index) / 2.0)).round();
        let spent = spent(units);
        let share = spent - std::mem::replace(&mut before, spent);
        Look { number: index + 1, units: units as u32, share }
    })
}

/// The last look at or before this number of units; `None` before the first.
pub fn last_look(units: u32) -> Option<Look> {
    looks().take_while(|look| look.units <= units).last()
}

/// The share of the error that may be spent up to this number of units.
fn spent(units: f64) -> f64 {
    units * units / (units * units + HALF * HALF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_few_and_far_between() {
        let units: Vec<u32> = looks().map(|look| look.units).take(9).collect();
        assert_eq!(units, [4, 6, 8, 11, 16, 23, 32, 45, 64]);
        assert_eq!(last_look(3), None);
        assert_eq!(last_look(4).map(|look| look.number), Some(1));
        assert_eq!(last_look(15).map(|look| (look.number, look.units)), Some((4, 11)));
    }

    #[test]
    fn shares_never_add_up_to_the_whole() {
        let mut sum = 0.0;
        for look in looks().take(40) {
            sum += look.share;
            let units = f64::from(look.units);
            assert!(
                look.share > 0.0 && (sum - units * units / (units * units + 144.0)).abs() < 1e-12
            );
        }
        assert!((0.99..1.0).contains(&sum), "{sum}");
    }
}
