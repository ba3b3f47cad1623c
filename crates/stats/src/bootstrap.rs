//! The ratio of two means by drawing again from nested values: units first, then the values within.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::power::Design;
use crate::student::Estimate;
use crate::{RatioInterval, Summary, variance_components};

/// How often both sides are drawn.
const DRAWS: usize = 2000;
/// Fewer units a side than this say nothing.
const MIN_UNITS: usize = 3;

/// The ratio of the mean of `new` to that of `base`, and its bootstrap interval at `confidence`. A
/// side is a list of units, such as all values of one run; the mean of a side is that of its units'
/// means, each unit counted once. [`Design::Paired`] takes unit `i` of both sides for one pair and
/// draws them together.
///
/// Each draw chooses units with replacement, then values of each chosen unit. Done plainly, that
/// spreads units too little, by `(k - 1) / k`, and counts the spread within them twice. So the units'
/// means are first moved towards or away from the mean of all, and values away from that of their
/// unit, until both spread as [`variance_components`] says (Davison and Hinkley, "Bootstrap Methods
/// and their Application", 1997, section 3.8).
///
/// The bounds are percentiles of the drawn ratios, moved out to where Student's t lies rather than
/// the normal distribution (Hesterberg, "What teachers should know about the bootstrap", American
/// Statistician 69, 2015): with `t` the quantile for the degrees of freedom of [`Estimate`] on the
/// logarithms of the units' means, the percentiles `Phi (-+ t)`. Of few units no percentile lies
/// beyond the outermost unit, so the bounds reach at least `t` standard deviations of the drawn
/// ratios' logarithms. Simulated, 95 % intervals hold the truth in 94 to 99 % of cases, with 3 to 10
/// units a side, normal or skewed.
///
/// The same `seed` gives the same interval. None for fewer than 3 units a side, for pairs without a
/// partner, a unit without values, and unless all values are finite and above 0. Bounds are 0 and
/// infinite where the spread leaves nothing certain.
///
/// # Panics
///
/// Unless `confidence` lies in 0 to 1.
pub fn bootstrap_ratio(
    design: Design,
    base: &[Vec<f64>],
    new: &[Vec<f64>],
    confidence: f64,
    seed: u64,
) -> Option<RatioInterval> {
    let sides = [Side::of(base)?, Side::of(new)?];
    let df = degrees_of_freedom(design, &sides)?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut drawn: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let units = sides[0].choose(&mut random);
            let again = match design {
                Design::Paired => units.clone(),
                Design::Unpaired => sides[1].choose(&mut random),
            };
            let base = sides[0].draw(&units, &mut random);
            sides[1].draw(&again, &mut random) / base
        })
        .collect();
    drawn.sort_by(f64::total_cmp);

    let t = -StudentsT::new(0.0, 1.0, df).ok()?.inverse_cdf((1.0 - confidence) / 2.0);
    let below = ((Normal::standard().sf(t) * DRAWS as f64) as usize).min((DRAWS - 1) / 2);
    let logarithms: Vec<f64> = drawn.iter().map(|x| x.ln()).collect();
    let sd = Summary::of(&logarithms).and_then(|summary| summary.stddev);
    let reach = t * sd.unwrap_or(f64::INFINITY);
    let ratio = sides[1].mean / sides[0].mean;
    Some(RatioInterval {
        ratio,
        low: drawn[below].min(ratio * (-reach).exp()),
        high: drawn[DRAWS - 1 - below].max(ratio * reach.exp()),
    })
}

fn degrees_of_freedom(design: Design, sides: &[Side; 2]) -> Option<f64> {
    let [base, new] = sides
        .each_ref()
        .map(|side| -> Vec<f64> { side.units.iter().map(|unit| unit.mean.ln()).collect() });
    let estimate = match design {
        Design::Paired if base.len() != new.len() => None,
        Design::Paired => {
            Estimate::of_mean(&base.iter().zip(&new).map(|(a, b)| b - a).collect::<Vec<_>>())
        }
        Design::Unpaired => Estimate::of_difference(&base, &new),
    };
    Some(estimate?.df)
}

/// One side of the ratio, ready to be drawn from.
struct Side {
    /// The mean of the units' means.
    mean: f64,
    units: Vec<Unit>,
}

struct Unit {
    /// As measured.
    mean: f64,
    /// How far the unit lies from the mean of all, scaled.
    effect: f64,
    /// How far its values lie from its mean, scaled.
    errors: Vec<f64>,
}

impl Side {
    fn of(units: &[Vec<f64>]) -> Option<Self> {
        if units.len() < MIN_UNITS || units.iter().flatten().any(|&x| x <= 0.0) {
            return None;
        }
        let means = units.iter().map(|unit| Some(Summary::of(unit)?.amean));
        let means = means.collect::<Option<Vec<f64>>>()?;
        let Summary { amean: mean, stddev, .. } = Summary::of(&means)?;
        let k = means.len() as f64;
        let spread = stddev?.powi(2);
        // Without repeated values nothing is known of the spread within units.
        let between = variance_components(units).map_or(spread, |components| components.between);
        let drawn = spread * (k - 1.0) / k;
        let scale = if drawn > 0.0 { (between / drawn).sqrt() } else { 0.0 };
        let unit = |(values, mean_of_unit): (&Vec<f64>, f64)| Unit {
            mean: mean_of_unit,
            effect: scale * (mean_of_unit - mean),
            errors: errors(values, mean_of_unit),
        };
        Some(Self { mean, units: units.iter().zip(means).map(unit).collect() })
    }

    /// As many units as there are, with replacement.
    fn choose(&self, random: &mut fastrand::Rng) -> Vec<usize> {
        self.units.iter().map(|_| random.usize(..self.units.len())).collect()
    }

    /// The mean of the chosen units, whose values are drawn again. Not below 0.
    fn draw(&self, chosen: &[usize], random: &mut fastrand::Rng) -> f64 {
        let unit = |&at: &usize| {
            let Unit { effect, errors, .. } = &self.units[at];
            let sum: f64 = errors.iter().map(|_| errors[random.usize(..errors.len())]).sum();
            effect + sum / errors.len() as f64
        };
        let moved = chosen.iter().map(unit).sum::<f64>() / chosen.len() as f64;
        (self.mean + moved).max(0.0)
    }
}

/// How far values lie from their mean, moved away from it so that drawn ones spread as they do:
/// by `sqrt (n / (n - 1))`.
fn errors(values: &[f64], mean: f64) -> Vec<f64> {
    let n = values.len() as f64;
    let scale = if values.len() > 1 { (n / (n - 1.0)).sqrt() } else { 0.0 };
    values.iter().map(|x| scale * (x - mean)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RatioTest;
    use crate::simulate::normal;

    /// Units of 8 values. Effects of units are normal or have a long upper tail, with the same
    /// standard deviation, relative to the mean; pairs share a larger one.
    struct Truth {
        design: Design,
        units: usize,
        between: f64,
        within: f64,
        is_skewed: bool,
    }

    impl Truth {
        /// Both sides; the true ratio is 1.1.
        fn draw(&self, normal: &mut impl FnMut() -> f64) -> [Vec<Vec<f64>>; 2] {
            let shared: Vec<f64> = (0..self.units)
                .map(|_| if self.design == Design::Paired { 0.05 * normal() } else { 0.0 })
                .collect();
            [100.0, 110.0].map(|mean| {
                let unit = |shared: &f64| {
                    let own = normal();
                    // A lognormal figure less its mean, by its standard deviation.
                    let own = if self.is_skewed { (own.exp() - 1.6487) / 2.1612 } else { own };
                    let centre = mean * (1.0 + self.between * own + shared);
                    (0..8).map(|_| centre * (1.0 + self.within * normal())).collect()
                };
                shared.iter().map(unit).collect()
            })
        }

        /// The share of intervals at 95 % that hold the true ratio.
        fn coverage(&self) -> f64 {
            const TRIALS: u64 = 300;
            let mut normal = normal(6);
            let holds = |&seed: &u64| {
                let [base, new] = self.draw(&mut normal);
                let found = bootstrap_ratio(self.design, &base, &new, 0.95, seed).unwrap();
                (found.low..=found.high).contains(&1.1)
            };
            (0..TRIALS).filter(holds).count() as f64 / TRIALS as f64
        }
    }

    /// Of 300 intervals 95 % or more hold the truth, give or take 3 standard errors (0.038).
    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        for design in [Design::Unpaired, Design::Paired] {
            for (units, between, within) in [(3, 0.02, 0.002), (3, 0.02, 0.02), (8, 0.02, 0.01)] {
                for is_skewed in [false, true] {
                    let truth = Truth { design, units, between, within, is_skewed };
                    let share = truth.coverage();
                    assert!(share > 0.912, "{share} of {units} units, {design:?}");
                }
            }
        }
    }

    /// Where figures are normal and units are many, drawing and Student's t agree.
    #[test]
    fn intervals_of_many_units_are_those_of_student() {
        for design in [Design::Unpaired, Design::Paired] {
            let truth = Truth { design, units: 40, between: 0.02, within: 0.01, is_skewed: false };
            let [base, new] = truth.draw(&mut normal(7));
            let found = bootstrap_ratio(design, &base, &new, 0.95, 1).unwrap();
            let means = |side: &[Vec<f64>]| -> Vec<f64> {
                side.iter().map(|unit| Summary::of(unit).unwrap().amean).collect()
            };
            let (base, new) = (means(&base), means(&new));
            let test = match design {
                Design::Unpaired => RatioTest::unpaired(&base, &new).unwrap(),
                Design::Paired => {
                    RatioTest::paired(&base.into_iter().zip(new).collect::<Vec<_>>()).unwrap()
                }
            };
            let expected = test.interval(0.95);
            let width = expected.high - expected.low;
            assert!((found.low - expected.low).abs() < 0.1 * width, "{found:?}, {expected:?}");
            assert!((found.high - expected.high).abs() < 0.1 * width, "{found:?}, {expected:?}");
        }
    }

    #[test]
    fn units_of_single_values_are_drawn_as_they_are() {
        let units = |values: &[f64]| values.iter().map(|&x| vec![x]).collect::<Vec<_>>();
        let (base, new) = (units(&[1.0, 1.1, 1.2, 0.9]), units(&[2.0, 2.1, 2.2, 2.4]));
        let one = bootstrap_ratio(Design::Unpaired, &base, &new, 0.95, 1).unwrap();
        assert!(one.low < 2.0 && 2.0 < one.high && one.low > 1.5, "{one:?}");
        assert_eq!(bootstrap_ratio(Design::Unpaired, &base, &new, 0.95, 1), Some(one));
        assert_ne!(bootstrap_ratio(Design::Unpaired, &base, &new, 0.95, 2), Some(one));
    }

    #[test]
    fn values_without_spread_leave_no_doubt() {
        let (base, new) = (vec![vec![2.0; 4]; 3], vec![vec![4.0; 2]; 3]);
        let found = bootstrap_ratio(Design::Paired, &base, &new, 0.95, 1).unwrap();
        assert_eq!((found.ratio, found.low, found.high), (2.0, 2.0, 2.0));
    }

    #[test]
    fn what_is_no_ratio_has_no_interval() {
        let good = vec![vec![1.0, 2.0]; 3];
        let of = |design, new: &[Vec<f64>]| bootstrap_ratio(design, &good, new, 0.95, 1);
        assert!(of(Design::Unpaired, &vec![vec![1.0]; 4]).is_some());
        assert_eq!(of(Design::Paired, &vec![vec![1.0]; 4]), None);
        assert_eq!(of(Design::Unpaired, &good[..2]), None);
        for bad in [vec![], vec![0.0], vec![f64::NAN]] {
            assert_eq!(of(Design::Unpaired, &[vec![1.0], vec![1.0], bad]), None);
        }
    }
}
