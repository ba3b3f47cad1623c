//! Modes: tells whether values come from one peak or from several.

use crate::counted::{count, split_at};
use crate::order::{median, resolution};
use crate::{Counted, RepeatedValue};

/// The significance level of the dip test.
const LEVEL: f64 = 0.05;
/// The fewest values that are tested. Fewer have one mode.
const MIN_VALUES: usize = 5;
/// The fewest values of a mode.
const MIN_MODE: usize = 2;
/// The most draws from the dip's null distribution. Fewer are drawn once enough of them reach the dip.
const MAX_DRAWS: u32 = 999;
const ENOUGH: u32 = 20;
/// For more values than this, the null distribution of `sqrt (n) dip` is taken from samples of this size.
const MAX_DRAWN: usize = 500;
/// The largest number of places by which equal values are represented when a density is smoothed. More would lie
/// closer together than the density can resolve.
const MAX_PLACES: usize = 256;
const SEED: u64 = 0xd1b;

/// The modes of some values, and the evidence that there is more than one.
#[derive(Clone, Debug, PartialEq)]
pub struct Modes {
    /// The modes by ascending centre, at least one.
    pub modes: Vec<Mode>,
    /// The dip of all values: the distance of their distribution from the nearest unimodal one, from
    /// `1 / 2n` to 1/4.
    pub dip: f64,
    /// The probability that as many values of a uniform distribution have this dip or a greater one.
    pub p: f64,
}

/// Values around one peak.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mode {
    /// The median of the values.
    pub centre: f64,
    /// The number of values.
    pub n: usize,
}

impl Modes {
    /// The number of modes.
    pub fn count(&self) -> usize {
        self.modes.len()
    }
}

/// Finds the modes of independent values. There is more than one only if the dip test rejects a single one at 5 %
/// (Hartigan and Hartigan, "The dip test of unimodality", Annals of Statistics 13, 1985). Its p-value is against the
/// uniform distribution, the least favourable of the unimodal ones. It is simulated until 20 draws reach the dip or
/// 999 are drawn (Besag and Clifford, "Sequential Monte Carlo p-values", Biometrika 78, 1991), with the same draws
/// each time. Normal values are thus hardly ever called bimodal.
///
/// If the test rejects, the values are split at the deepest valley of their smoothed density, and each part is tested
/// in turn. Figures are taken as rounded to the last decimal place of any of them, and count as spread evenly over
/// their rounding intervals.
///
/// `None` without values, or if a value is not finite. Fewer than 5 values have one mode.
pub fn modes<V: Counted>(values: &[V]) -> Option<Modes> {
    median(values)?;
    let mut sorted: Vec<RepeatedValue> = values.iter().map(|it| it.run()).collect();
    sorted.sort_by(|a, b| a.value.total_cmp(&b.value));
    let smooth = unrounded(&sorted);
    let (dip, p) = test(&smooth);
    let mut sizes = Vec::new();
    part(&smooth, p, &mut sizes);
    let mut rest = sorted;
    let mode = |n: usize| {
        let [own, others] = split_at(&rest, n);
        rest = others;
        Some(Mode { centre: median(&own)?, n })
    };
    Some(Modes { modes: sizes.into_iter().map(mode).collect::<Option<_>>()?, dip, p })
}

/// Adds the sizes of the modes of `sorted` to `sizes`.
fn part(sorted: &[Ties], p: f64, sizes: &mut Vec<usize>) {
    let valley = if p > LEVEL { None } else { valley(sorted) };
    let Some(mut left) = valley else {
        return sizes.push(size(sorted));
    };
    let mut sides = [Vec::new(), Vec::new()];
    for ties in sorted {
        let count = ties.count.min(left);
        left -= count;
        sides[0].extend((count > 0).then_some(Ties { count, ..*ties }));
        let (before, count) = (ties.before + count, ties.count - count);
        sides[1].extend((count > 0).then_some(Ties { before, count, ..*ties }));
    }
    sides.iter().for_each(|side| part(side, test(side).1, sizes));
}

/// Equal values, spread evenly over the rounding interval of their figure. It can be a part of them, in one part of
/// the interval.
#[derive(Clone, Copy)]
struct Ties {
    value: f64,
    /// The width of the rounding interval.
    unit: f64,
    /// The number of values in the whole interval.
    all: usize,
    /// The number of these values before this part.
    before: usize,
    /// The number of values in this part.
    count: usize,
}

impl Ties {
    /// The position of value number `i`, which may be fractional.
    fn at(&self, i: f64) -> f64 {
        self.value + self.unit * ((self.before as f64 + i + 0.5) / self.all as f64 - 0.5)
    }

    /// Positions, and the number of values at each. If there are very many, some positions represent their
    /// neighbours.
    fn places(&self) -> impl Iterator<Item = (f64, f64)> {
        let places = self.count.min(MAX_PLACES);
        let each = self.count as f64 / places as f64;
        (0..places).map(move |place| match places == self.count {
            true => (self.at(place as f64), 1.0),
            false => (self.at((place as f64 + 0.5) * each - 0.5), each),
        })
    }

    /// The number of these values below `x`.
    fn below(&self, x: f64) -> usize {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = (low + high) / 2;
            match self.at(middle as f64) < x {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }
}

/// The number of values.
fn size(sorted: &[Ties]) -> usize {
    sorted.iter().map(|ties| ties.count).sum()
}

/// Value number `place`.
fn nth(sorted: &[Ties], mut place: usize) -> Option<f64> {
    for ties in sorted {
        match place.checked_sub(ties.count) {
            Some(left) => place = left,
            None => return Some(ties.at(place as f64)),
        }
    }
    None
}

/// The values without the ties that rounding made: equal values are spread evenly over their rounding interval.
fn unrounded(sorted: &[RepeatedValue]) -> Vec<Ties> {
    let unit = resolution(sorted).unwrap_or(0.0);
    let ties = sorted.chunk_by(|a, b| (a.value - b.value).abs() < unit / 2.0);
    let spread = |runs: &[RepeatedValue]| {
        let all = count(runs);
        let mut before = 0;
        let ties = |run: &RepeatedValue| {
            let ties = Ties { value: run.value, unit, all, before, count: run.count() };
            before += ties.count;
            ties
        };
        runs.iter().map(ties).collect::<Vec<_>>()
    };
    ties.flat_map(spread).collect()
}

/// A value, and the number of values below it.
type Point = (f64, f64);

/// The points that determine the distribution of `sorted`. It is a straight line between the first and the last of
/// equal values, whether these are spread or not. Adjacent points show where it is vertical.
fn points(sorted: &[Ties]) -> Vec<Point> {
    let mut below = 0;
    let of_ties = |ties: &Ties| {
        let last = ties.count - 1;
        let mut places = vec![0, 1.min(last), last.saturating_sub(1), last];
        places.sort_unstable();
        places.dedup();
        let (ties, before) = (*ties, below);
        below += ties.count;
        places.into_iter().map(move |place| (ties.at(place as f64), (before + place) as f64))
    };
    sorted.iter().flat_map(of_ties).collect()
}

/// The dip of `sorted` and its p-value.
fn test(sorted: &[Ties]) -> (f64, f64) {
    let all = size(sorted);
    let dip = dip(&points(sorted), all);
    if all < MIN_VALUES {
        return (dip, 1.0);
    }
    let n = all.min(MAX_DRAWN);
    let least = dip * (all as f64 / n as f64).sqrt();
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut reached = 0;
    for draws in 1..=MAX_DRAWS {
        // Partial sums of exponential gaps are sorted uniform values, up to a factor.
        let mut sum = 0.0;
        let mut gap = |below: usize| {
            sum -= (1.0 - random.f64()).ln();
            (sum, below as f64)
        };
        let uniform: Vec<Point> = (0..n).map(&mut gap).collect();
        reached += u32::from(self::dip(&uniform, n) >= least);
        if reached == ENOUGH {
            return (dip, f64::from(reached) / f64::from(draws));
        }
    }
    (dip, f64::from(reached + 1) / f64::from(MAX_DRAWS + 1))
}

/// Half of the smallest width that a band around the distribution of `sorted` needs to contain a unimodal
/// distribution: convex up to the mode, concave beyond.
///
/// The interval that may have the mode is at first the whole range. It is narrowed to the part where the greatest
/// convex minorant of the distribution and its least concave majorant are farthest apart, until the parts outside
/// need a wider band than that distance (Hartigan, "Algorithm AS 217", Applied Statistics 34, 1985).
fn dip(points: &[Point], n: usize) -> f64 {
    let (mut low, mut high) = (0, points.len().saturating_sub(1));
    // The width is in counts of values. The band is never narrower than one step of the distribution.
    let mut least = 1.0_f64;
    while low < high && points[low].0 < points[high].0 {
        let below = hull(points, low, high, -1.0);
        let above = hull(points, low, high, 1.0);
        let HullGap { apart, low: new_low, high: new_high } = farthest(points, &below, &above);
        if apart < least {
            break;
        }
        let outside = |hull: &[usize], from: usize, to: usize, off: &dyn Fn(f64, f64) -> f64| {
            let at = |i: usize| off(height(points, hull, i), points[i].1);
            (from..=to).map(at).fold(1.0, f64::max)
        };
        // The distribution steps from i to i + 1 at value i. The convex function touches the lower corners,
        // the concave one the upper.
        let left = outside(&below, low, new_low, &|convex, i| i + 1.0 - convex);
        let right = outside(&above, new_high, high, &|concave, i| concave + 1.0 - i);
        least = least.max(left).max(right);
        if (new_low, new_high) == (low, high) {
            break;
        }
        (low, high) = (new_low, new_high);
    }
    least / (2.0 * n as f64)
}

/// The corners of the convex hull of the points from `low` to `high`: its lower part if `side` is -1, its upper part
/// if `side` is 1.
fn hull(points: &[Point], low: usize, high: usize, side: f64) -> Vec<usize> {
    let mut corners: Vec<usize> = Vec::new();
    for next in low..=high {
        while let [.., a, b] = corners[..] {
            let [a, b, next] = [a, b, next].map(|it| points[it]);
            let rise = (b.1 - a.1) * (next.0 - b.0);
            let needed = (next.1 - b.1) * (b.0 - a.0);
            if side * (rise - needed) > 0.0 {
                break;
            }
            corners.pop();
        }
        corners.push(next);
    }
    corners
}

/// The height of a hull over point `i`.
fn height(points: &[Point], hull: &[usize], i: usize) -> f64 {
    let after = hull.partition_point(|&corner| corner < i);
    let Some(before) = after.checked_sub(1).filter(|_| hull[after] != i) else {
        return points[i].1;
    };
    let (a, b) = (points[hull[before]], points[hull[after]]);
    let width = b.0 - a.0;
    let share = if width > 0.0 { (points[i].0 - a.0) / width } else { 0.0 };
    a.1 + share * (b.1 - a.1)
}

/// The distance of the upper hull above the lower one at some point.
struct HullGap {
    /// The distance, plus one step of the distribution.
    apart: f64,
    /// The corner of the lower hull to the left.
    low: usize,
    /// The corner of the upper hull to the right.
    high: usize,
}

/// The place where two hulls are farthest apart.
fn farthest(points: &[Point], below: &[usize], above: &[usize]) -> HullGap {
    let at_upper = above.iter().map(|&corner| {
        let low = below[below.partition_point(|&it| it <= corner) - 1];
        let apart = points[corner].1 + 1.0 - height(points, below, corner);
        HullGap { apart, low, high: corner }
    });
    let at_lower = below.iter().map(|&corner| {
        let high = above[above.partition_point(|&it| it < corner)];
        let apart = height(points, above, corner) + 1.0 - points[corner].1;
        HullGap { apart, low: corner, high }
    });
    let none = HullGap { apart: 0.0, low: below[0], high: above[above.len() - 1] };
    at_upper.chain(at_lower).fold(none, |a, b| if b.apart > a.apart { b } else { a })
}

/// The number of values below the deepest valley of their density, smoothed with a normal kernel. The first bandwidth
/// is that for a single normal peak (Silverman, "Density Estimation", 1986, section 3.4); it is reduced until there
/// is a valley. The depth is measured from the lower of the highest peaks on both sides.
fn valley(sorted: &[Ties]) -> Option<usize> {
    const POINTS: usize = 256;
    let n = size(sorted);
    let (first, last) = (nth(sorted, 0)?, nth(sorted, n - 1)?);
    let quartiles = nth(sorted, 3 * n / 4)? - nth(sorted, n / 4)?;
    let sum = |term: &dyn Fn(f64) -> f64| -> f64 {
        sorted.iter().flat_map(Ties::places).map(|(x, count)| count * term(x)).sum()
    };
    let mean = (sum(&|x| x) / n as f64).clamp(first, last);
    let sd = (sum(&|x| (x - mean).powi(2)) / (n as f64 - 1.0)).sqrt();
    let spread = if quartiles > 0.0 { sd.min(quartiles / 1.34) } else { sd };
    let mut width = 0.9 * spread * (n as f64).powf(-0.2);
    let at = |point: usize| first + (last - first) * point as f64 / (POINTS - 1) as f64;
    while width > (last - first) / POINTS as f64 {
        let density =
            |x: f64| -> f64 { sum(&|value| (-0.5 * ((x - value) / width).powi(2)).exp()) };
        let heights: Vec<f64> = (0..POINTS).map(|point| density(at(point))).collect();
        if let Some(point) = deepest(&heights) {
            let below = sorted.iter().map(|ties| ties.below(at(point))).sum::<usize>();
            if below.min(n - below) >= MIN_MODE {
                return Some(below);
            }
        }
        width *= 0.8;
    }
    None
}

/// The index at which the height is farthest below the lower of the two highest ones, one on each side.
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

    /// Pseudorandom values, squared so that there is one mode, or with a third of them shifted up by 2.
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
            let mut sorted: Vec<RepeatedValue> = values.iter().map(|it| it.run()).collect();
            sorted.sort_by(|a, b| a.value.total_cmp(&b.value));
            let ties = |run: &RepeatedValue| Ties {
                value: run.value,
                unit: 0.0,
                all: 1,
                before: 0,
                count: 1,
            };
            let found = test(&sorted.iter().map(ties).collect::<Vec<_>>());
            assert!((found.0 - dip).abs() < 1e-14, "{}, not {dip}", found.0);
            // The precision of 20 draws that reach the dip: 3 standard errors.
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
        assert_eq!(modes::<f64>(&[]), None);
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

    /// In simulations with 500 samples each, 0 to 2.6 % of normal ones, 0 to 1 % of rounded ones and up to
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

    /// Two equal peaks 8 standard deviations apart are found in 9 of 10 samples of 10 values; three such
    /// peaks in 8 of 10 samples of 20; a peak of a fifth of the values in 8 of 10 samples of 100.
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
