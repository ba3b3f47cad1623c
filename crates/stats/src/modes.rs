//! Whether values come from one peak or from several.

use crate::order::{median, resolution};

/// Below this p-value values do not come from a single mode.
const LEVEL: f64 = 0.05;
/// Fewer values than this have one mode.
const MIN_VALUES: usize = 5;
/// Fewer values than this are no mode of their own.
const MIN_MODE: usize = 2;
/// The dip's null distribution is drawn so often at most, and until so many draws reach the dip.
const MAX_DRAWS: u32 = 999;
const ENOUGH: u32 = 20;
/// Of more values than this the null distribution of `sqrt (n) dip` is taken as that of so many.
const MAX_DRAWN: usize = 500;
const SEED: u64 = 0xd1b;

/// The modes of some values, and the evidence that there is more than one.
#[derive(Clone, Debug, PartialEq)]
pub struct Modes {
    /// The modes by ascending centre, at least one.
    pub modes: Vec<Mode>,
    /// The dip of all values: how far their distribution is from the nearest one with a single
    /// mode, from `1 / 2n` to 1/4.
    pub dip: f64,
    /// How often as many values of one uniform distribution would have such a dip or a greater one.
    pub p: f64,
}

/// Values around one peak.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mode {
    /// Their median.
    pub centre: f64,
    /// How many there are.
    pub n: usize,
}

impl Modes {
    /// How many modes there are.
    pub fn count(&self) -> usize {
        self.modes.len()
    }
}

/// Finds the modes of independent values. There is more than one only where the dip test rejects a
/// single one at 5 % (Hartigan and Hartigan, "The dip test of unimodality", Annals of Statistics 13,
/// 1985). Its p-value is against the uniform distribution, the hardest of those with one mode, and
/// simulated until 20 draws reach the dip or 999 are drawn (Besag and Clifford, "Sequential Monte
/// Carlo p-values", Biometrika 78, 1991), the same draws each time. Normal values are thus hardly
/// ever called bimodal.
///
/// Where it rejects, the values are parted at the deepest valley of their smoothed density, and each
/// part is tested in turn. Figures that were rounded, to the digits that all of them share, count as
/// spread over what each of them stands for.
///
/// None for no values and unless all are finite; fewer than 5 have one mode.
pub fn modes(values: &[f64]) -> Option<Modes> {
    median(values)?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let smooth = unrounded(&sorted);
    let (dip, p) = test(&smooth);
    let mut ends = Vec::new();
    part(&smooth, p, 0, &mut ends);
    ends.push(sorted.len());
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let mode = |(start, &end): (usize, &usize)| {
        let own = &sorted[start..end];
        Some(Mode { centre: median(own)?, n: own.len() })
    };
    Some(Modes { modes: starts.zip(&ends).map(mode).collect::<Option<_>>()?, dip, p })
}

/// Adds to `ends` where the modes of `sorted` but the last end, each `offset` further on.
fn part(sorted: &[f64], p: f64, offset: usize, ends: &mut Vec<usize>) {
    if p > LEVEL {
        return;
    }
    let Some(valley) = valley(sorted) else { return };
    let (left, right) = sorted.split_at(valley);
    part(left, test(left).1, offset, ends);
    ends.push(offset + valley);
    part(right, test(right).1, offset + valley, ends);
}

/// The values without the ties that rounding made: equal ones spread evenly over the span that a
/// rounded figure stands for.
fn unrounded(sorted: &[f64]) -> Vec<f64> {
    let Some(unit) = resolution(sorted) else { return sorted.to_vec() };
    let ties = sorted.chunk_by(|a, b| (a - b).abs() < unit / 2.0);
    let spread = |ties: &[f64]| -> Vec<f64> {
        let place = |(i, x): (usize, &f64)| x + unit * ((i as f64 + 0.5) / ties.len() as f64 - 0.5);
        ties.iter().enumerate().map(place).collect()
    };
    ties.flat_map(spread).collect()
}

/// The dip of `sorted` and its p-value.
fn test(sorted: &[f64]) -> (f64, f64) {
    let dip = dip(sorted);
    if sorted.len() < MIN_VALUES {
        return (dip, 1.0);
    }
    let n = sorted.len().min(MAX_DRAWN);
    let least = dip * (sorted.len() as f64 / n as f64).sqrt();
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut reached = 0;
    for draws in 1..=MAX_DRAWS {
        // Sums of exponential gaps are sorted uniform values, but for a factor.
        let mut sum = 0.0;
        let mut gap = || {
            sum -= (1.0 - random.f64()).ln();
            sum
        };
        let uniform: Vec<f64> = (0..n).map(|_| gap()).collect();
        reached += u32::from(self::dip(&uniform) >= least);
        if reached == ENOUGH {
            return (dip, f64::from(reached) / f64::from(draws));
        }
    }
    (dip, f64::from(reached + 1) / f64::from(MAX_DRAWS + 1))
}

/// Half of the least distance that a band around the distribution of `sorted` needs so that a
/// distribution with one mode fits in: convex up to the mode, concave from there on.
///
/// From the whole range the interval in which the mode may lie is narrowed to where the greatest
/// convex function below the distribution and the least concave one above it are farthest apart,
/// until what was left outside asks for more than that (Hartigan, "Algorithm AS 217", Applied
/// Statistics 34, 1985).
fn dip(sorted: &[f64]) -> f64 {
    let n = sorted.len() as f64;
    let (mut low, mut high) = (0, sorted.len().saturating_sub(1));
    // In counts of values; one step of the distribution is there always.
    let mut least = 1.0_f64;
    while low < high && sorted[low] < sorted[high] {
        let below = hull(sorted, low, high, -1.0);
        let above = hull(sorted, low, high, 1.0);
        let (apart, new_low, new_high) = farthest(sorted, &below, &above);
        if apart < least {
            break;
        }
        let outside = |hull: &[usize], from: usize, to: usize, off: &dyn Fn(f64, f64) -> f64| {
            let at = |i: usize| off(height(sorted, hull, i), i as f64);
            (from..=to).map(at).fold(1.0, f64::max)
        };
        // The distribution steps from i to i + 1 at value i; the convex function rests on the lower
        // corners, the concave one on the upper.
        let left = outside(&below, low, new_low, &|convex, i| i + 1.0 - convex);
        let right = outside(&above, new_high, high, &|concave, i| concave + 1.0 - i);
        least = least.max(left).max(right);
        if (new_low, new_high) == (low, high) {
            break;
        }
        (low, high) = (new_low, new_high);
    }
    least / (2.0 * n)
}

/// The corners of the convex hull of the points `(sorted[i], i)` from `low` to `high`: the lower
/// part for `side` -1, the upper for 1.
fn hull(sorted: &[f64], low: usize, high: usize, side: f64) -> Vec<usize> {
    let mut corners: Vec<usize> = Vec::new();
    for next in low..=high {
        while let [.., a, b] = corners[..] {
            let rise = (b - a) as f64 * (sorted[next] - sorted[b]);
            let needed = (next - b) as f64 * (sorted[b] - sorted[a]);
            if side * (rise - needed) > 0.0 {
                break;
            }
            corners.pop();
        }
        corners.push(next);
    }
    corners
}

/// The height of a hull over value `i`.
fn height(sorted: &[f64], hull: &[usize], i: usize) -> f64 {
    let after = hull.partition_point(|&corner| corner < i);
    let Some(before) = after.checked_sub(1).filter(|_| hull[after] != i) else {
        return i as f64;
    };
    let (a, b) = (hull[before], hull[after]);
    let width = sorted[b] - sorted[a];
    let share = if width > 0.0 { (sorted[i] - sorted[a]) / width } else { 0.0 };
    a as f64 + share * (b - a) as f64
}

/// How far the upper hull is above the lower one where it is farthest, one step of the distribution
/// added; and the corners next to there, of the lower one to the left and the upper one to the right.
fn farthest(sorted: &[f64], below: &[usize], above: &[usize]) -> (f64, usize, usize) {
    let at_upper = above.iter().map(|&corner| {
        let left = below[below.partition_point(|&it| it <= corner) - 1];
        (corner as f64 + 1.0 - height(sorted, below, corner), left, corner)
    });
    let at_lower = below.iter().map(|&corner| {
        let right = above[above.partition_point(|&it| it < corner)];
        (height(sorted, above, corner) + 1.0 - corner as f64, corner, right)
    });
    let farther = |a: (f64, usize, usize), b: (f64, usize, usize)| if b.0 > a.0 { b } else { a };
    at_upper.chain(at_lower).fold((0.0, below[0], above[above.len() - 1]), farther)
}

/// How many of the values lie below the deepest valley of their density, as it is smoothed with a
/// normal density; at first with the width that suits a single normal peak (Silverman, "Density
/// Estimation", 1986, section 3.4), then with less until there is a valley. Its depth is that
/// below the lower of the highest peaks to both sides.
fn valley(sorted: &[f64]) -> Option<usize> {
    const POINTS: usize = 256;
    let n = sorted.len();
    let (first, last) = (sorted[0], sorted[n - 1]);
    let quartiles = sorted[3 * n / 4] - sorted[n / 4];
    let sd = crate::Summary::of(sorted)?.stddev?;
    let spread = if quartiles > 0.0 { sd.min(quartiles / 1.34) } else { sd };
    let mut width = 0.9 * spread * (n as f64).powf(-0.2);
    let at = |point: usize| first + (last - first) * point as f64 / (POINTS - 1) as f64;
    while width > (last - first) / POINTS as f64 {
        let density = |x: f64| -> f64 {
            sorted.iter().map(|value| (-0.5 * ((x - value) / width).powi(2)).exp()).sum()
        };
        let heights: Vec<f64> = (0..POINTS).map(|point| density(at(point))).collect();
        if let Some(point) = deepest(&heights) {
            let below = sorted.partition_point(|&x| x < at(point));
            if below.min(n - below) >= MIN_MODE {
                return Some(below);
            }
        }
        width *= 0.8;
    }
    None
}

/// Where heights lie deepest below the lower of the highest ones to both sides.
fn deepest(heights: &[f64]) -> Option<usize> {
    let highest = |highest: &mut f64, &height: &f64| {
        *highest = highest.max(height);
        Some(*highest)
    };
    let left: Vec<f64> = heights.iter().scan(0.0, highest).collect();
    let mut right: Vec<f64> = heights.iter().rev().scan(0.0, highest).collect();
    right.reverse();
    let depth = |&at: &usize| left[at].min(right[at]) - heights[at];
    let deepest = (0..heights.len()).max_by(|a, b| depth(a).total_cmp(&depth(b)))?;
    (depth(&deepest) > 0.0).then_some(deepest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simulate::normal;

    /// Scrambled values, squared so that there is one mode, or a third of them 2 higher.
    fn scrambled(is_parted: bool) -> Vec<f64> {
        let value = |i: u32| {
            let x = f64::from(i * 619 % 1009) / 1009.0;
            let x = if is_parted { x + if i.is_multiple_of(3) { 2.0 } else { 0.0 } } else { x * x };
            x + f64::from(i) * 1e-5
        };
        (0..200).map(value).collect()
    }

    /// diptest 0.12.0 (Python), `diptest.diptest(x)`: the dip and its p-value from the table that R's
    /// package `diptest` has too.
    #[test]
    fn dips_agree_with_diptest() {
        let few = [755.96, 833.63, 558.84, 382.22, 395.45];
        let one = [1.25, 1.31, 1.28, 1.22, 1.4, 1.27, 1.3, 1.26, 1.19, 1.21, 1.2, 1.33];
        let two = [10.1, 10.3, 10.25, 9.9, 10.02, 15.2, 15.3, 14.9, 15.05, 15.11];
        for (values, dip, p) in [
            (&few[..], 0.14682322333287692, 0.3036639447602396),
            (&one, 0.08333333333333333, 0.6877420201762977),
            (&two, 0.22999999999999998, 0.0),
            (&THREE, 0.1573959620931191, 0.0008217189241552791),
            (&scrambled(true), 0.08463049467371447, 0.0),
            (&scrambled(false), 0.006276446369738239, 1.0),
        ] {
            let mut sorted = values.to_vec();
            sorted.sort_by(f64::total_cmp);
            let found = test(&sorted);
            assert!((found.0 - dip).abs() < 1e-14, "{}, not {dip}", found.0);
            // As exact as 20 draws that reach the dip can be: 3 standard errors.
            assert!((found.1 - p).abs() < 0.67 * p.max(found.1) + 0.002, "{}, not {p}", found.1);
        }
    }

    const THREE: [f64; 15] =
        [1.0, 1.13, 1.07, 0.92, 5.0, 5.2, 5.11, 4.95, 9.1, 9.0, 9.22, 8.87, 1.02, 5.07, 9.05];

    #[test]
    fn modes_are_counted_and_centred() {
        let found = modes(&THREE).unwrap();
        let of = |centre| Mode { centre, n: 5 };
        assert_eq!(found.modes, [of(1.02), of(5.07), of(9.05)]);
        assert!(found.p < 0.05);
    }

    #[test]
    fn few_values_have_one_mode_and_none_has_none() {
        let found = modes(&[1.0, 1.01, 9.0, 9.01]).unwrap();
        assert_eq!((found.count(), found.p), (1, 1.0));
        assert_eq!(modes(&[3.0]).unwrap().modes, [Mode { centre: 3.0, n: 1 }]);
        assert_eq!(modes(&[]), None);
        assert_eq!(modes(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn equal_values_are_one_mode() {
        assert_eq!(modes(&[0.1; 50]).unwrap().count(), 1);
        assert_eq!(modes(&[1.0 / 3.0; 50]).unwrap().count(), 1);
    }

    /// How many of 200 samples of `n` values have `count` modes.
    fn share(n: usize, count: usize, value: impl Fn(usize, f64) -> f64) -> f64 {
        const TRIALS: usize = 200;
        let mut normal = normal(9);
        let has = |_: &usize| {
            let values: Vec<f64> = (0..n).map(|i| value(i, normal())).collect();
            modes(&values).unwrap().count() == count
        };
        (0..TRIALS).filter(has).count() as f64 / TRIALS as f64
    }

    /// Simulated with 500 samples each: 0 to 2.6 % of normal ones, 0 to 1 % of rounded ones and up to
    /// 2.2 % of lognormal ones are called multimodal.
    #[test]
    fn one_mode_is_seldom_called_several() {
        for n in [5, 6, 8, 10, 20, 50, 200] {
            assert!(share(n, 1, |_, x| x) >= 0.95, "normal, {n}");
            assert!(share(n, 1, |_, x| x.round()) >= 0.95, "rounded to a standard deviation, {n}");
            assert!(share(n, 1, |_, x| (3.0 * x).round()) >= 0.95, "rounded to a third, {n}");
            assert!(share(n, 1, |_, x| x.exp()) >= 0.95, "lognormal, {n}");
        }
    }

    /// Two equal peaks 8 standard deviations apart are found in 9 of 10 samples of 10 values, three
    /// in 8 of 10 of 20, and a peak of a fifth of the values in 8 of 10 of 100 only.
    #[test]
    fn several_modes_are_found() {
        assert!(share(10, 2, |i, x| x + 8.0 * (i % 2) as f64) > 0.8);
        assert!(share(20, 3, |i, x| x + 8.0 * (i % 3) as f64) > 0.7);
        assert!(share(50, 2, |i, x| x + 5.0 * (i % 2) as f64) > 0.9);
        assert!(share(100, 2, |i, x| x + 8.0 * f64::from(i % 5 == 0)) > 0.7);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_value_belongs_to_a_mode(
            values in prop::collection::vec(prop_oneof![-1e12..1e12_f64, 0.0..9.0_f64], 1..60),
        ) {
            let found = modes(&values).unwrap();
            prop_assert_eq!(found.modes.iter().map(|mode| mode.n).sum::<usize>(), values.len());
            prop_assert!(found.modes.is_sorted_by(|a, b| a.centre < b.centre));
            prop_assert!(0.5 / values.len() as f64 <= found.dip && found.dip <= 0.25 + 1e-12 || values.len() == 1);
        }
    }
}
