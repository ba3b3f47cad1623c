//! Where the level of a history changes for good.

use crate::order::{median, resolution};
use crate::simulate::draw;
use crate::steady::persistence;

/// Fewer values than this have no change that could be told from chance.
const MIN_VALUES: usize = 5;
/// A level must hold for so many values.
const MIN_SEGMENT: usize = 2;
/// Below this p-value a change is one.
const LEVEL: f64 = 0.01;
/// So many draws at most, and until so many of them look as changed.
const MAX_DRAWS: u32 = 999;
const ENOUGH: u32 = 20;
/// A value this many deviations from both neighbours is a spike.
const SPIKE: f64 = 4.0;
/// Of so many values or more, their own residuals tell how far chance reaches.
const MIN_RESIDUALS: usize = 20;
const SEED: u64 = 0xc4a6e;

/// A change of level in a history.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// Where the first value of the new level stands.
    pub at: usize,
    /// The median of the values since the change before this one.
    pub before: f64,
    /// The median of the values until the next change.
    pub after: f64,
    /// How often chance shows as plain a change somewhere: 0.001 or more.
    pub p: f64,
}

/// Finds where the level of a history of independent values changes, such as the figures of one
/// revision after the other.
///
/// Circular binary segmentation (Olshen and Venkatraman, "Circular binary segmentation for the
/// analysis of array-based DNA copy number data", Biostatistics 5, 2004): of all stretches the one
/// is looked for whose mean differs most from that of all values around it, beside the spread that
/// remains. If chance shows such a contrast at most once in 100 histories, the history is parted at
/// both ends of the stretch, of which one may be an end of the history, and each part is searched in
/// turn. Chance is simulated with normal values, and from 20 values on with the values' own
/// residuals too, which may have longer tails; the same draws each time. The more neighbours
/// correlate, the plainer a contrast must be.
///
/// A level holds for 2 values or more: one that lies far from both its neighbours is a spike and no
/// change. Rounded values spread by what they were rounded to.
///
/// Simulated with 5 to 200 values, a change is found where there is none in 1 to 3 % of histories of
/// normal values and up to 6 % of those with spikes; in 6 to 8 % where neighbours correlate by 0.3,
/// and in up to 6 % where values are lognormal of `sigma` 0.5. Give logarithms of what spreads farther. Nothing is found in fewer than
/// 5 values, and unless all are finite. The time grows with the square of their number: this is for
/// hundreds, [`pelt`](crate::pelt()) for more.
pub fn change_points(values: &[f64]) -> Vec<ChangePoint> {
    if values.iter().any(|x| !x.is_finite()) {
        return Vec::new();
    }
    let mut found = Vec::new();
    split(values, 0, &mut fastrand::Rng::with_seed(SEED), &mut found);
    found.sort_by_key(|&(at, _)| at);
    let ends: Vec<usize> =
        [0].into_iter().chain(found.iter().map(|&(at, _)| at)).chain([values.len()]).collect();
    let level = |from: usize, to: usize| median(&values[from..to]).unwrap_or(f64::NAN);
    let change = |(ends, &(at, p)): (&[usize], &(usize, f64))| ChangePoint {
        at,
        before: level(ends[0], at),
        after: level(at, ends[2]),
        p,
    };
    ends.windows(3).zip(&found).map(change).collect()
}

/// Adds the changes among `values`, which stand `offset` into the history, with their p-values.
fn split(values: &[f64], offset: usize, random: &mut fastrand::Rng, found: &mut Vec<(usize, f64)>) {
    let Some(arc) = plainest(values) else { return };
    let n = values.len();
    let mut p = p_of(arc.contrast, n, || draw(random));
    if n >= MIN_RESIDUALS && p <= LEVEL {
        let residuals = residuals(&without_spikes(values), &arc);
        p = p.max(p_of(arc.contrast, n, || residuals[random.usize(..n)]));
    }
    if p > LEVEL {
        return;
    }
    let inner = [arc.start, arc.end].into_iter().filter(|&at| 0 < at && at < values.len());
    let ends: Vec<usize> = [0].into_iter().chain(inner.clone()).chain([values.len()]).collect();
    found.extend(inner.map(|at| (offset + at, p)));
    for ends in ends.windows(2) {
        split(&values[ends[0]..ends[1]], offset + ends[0], random, found);
    }
}

/// How often `n` drawn values show a contrast as great as `least`.
fn p_of(least: f64, n: usize, mut value: impl FnMut() -> f64) -> f64 {
    let mut reached = 0;
    for draws in 1..=MAX_DRAWS {
        let drawn: Vec<f64> = (0..n).map(|_| value()).collect();
        let contrast = plainest(&drawn).map_or(0.0, |arc| arc.contrast);
        reached += u32::from(contrast >= least * (1.0 - 1e-9));
        if reached == ENOUGH {
            return f64::from(reached) / f64::from(draws);
        }
    }
    f64::from(reached + 1) / f64::from(MAX_DRAWS + 1)
}

/// How far values lie from the mean of the stretch, or of all others.
fn residuals(values: &[f64], arc: &Arc) -> Vec<f64> {
    let is_inside = |at: usize| (arc.start..arc.end).contains(&at);
    let mean = |inside: bool| {
        let (mut sum, mut n) = (0.0, 0.0);
        for (at, x) in values.iter().enumerate() {
            if is_inside(at) == inside {
                sum += x;
                n += 1.0;
            }
        }
        sum / n
    };
    let (inner, outer) = (mean(true), mean(false));
    let residual = |(at, x): (usize, &f64)| x - if is_inside(at) { inner } else { outer };
    values.iter().enumerate().map(residual).collect()
}

/// A stretch that differs from the values before and after it.
struct Arc {
    start: usize,
    end: usize,
    /// The squares that the difference of means explains, by those that remain and by how much
    /// neighbours correlate.
    contrast: f64,
}

/// The stretch whose mean differs most from that of all other values, of two values or more and
/// with none or two or more before and after it. None for too few values and where all are equal.
fn plainest(values: &[f64]) -> Option<Arc> {
    let n = values.len();
    if n < MIN_VALUES {
        return None;
    }
    let values = without_spikes(values);
    let mean = values.iter().sum::<f64>() / n as f64;
    let mut sums = Vec::with_capacity(n + 1);
    sums.push(0.0);
    for x in &values {
        sums.push(sums[sums.len() - 1] + x - mean);
    }
    let mut best = Arc { start: 0, end: 0, contrast: 0.0 };
    for length in MIN_SEGMENT..=n - MIN_SEGMENT {
        let last = n - length;
        let sum = |start: usize| (sums[start + length] - sums[start]).abs();
        let mut start = if sum(last) > sum(0) { last } else { 0 };
        let mut most = sum(start);
        // Between those, two values or more are left on both sides.
        let inner = MIN_SEGMENT..(last + 1).saturating_sub(MIN_SEGMENT).max(MIN_SEGMENT);
        let until = &sums[MIN_SEGMENT + length..];
        for ((at, before), until) in inner.clone().zip(&sums[inner]).zip(until) {
            if (until - before).abs() > most {
                (start, most) = (at, (until - before).abs());
            }
        }
        let contrast = most * most * n as f64 / (length as f64 * last as f64);
        if contrast > best.contrast {
            best = Arc { start, end: start + length, contrast };
        }
    }
    if best.contrast == 0.0 {
        return None;
    }
    let total: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    let starts: Vec<usize> =
        [best.start, best.end].into_iter().filter(|&at| 0 < at && at < n).collect();
    let rounding = resolution(&values).map_or(0.0, |unit| n as f64 * unit * unit / 12.0);
    let residual = (total - best.contrast).max(1e-12 * total).max(rounding);
    best.contrast /= residual * persistence(&values, &starts);
    best.contrast.is_finite().then_some(best)
}

/// The values with each spike, one that lies far from both its neighbours to the same side, put back
/// to the nearer one.
fn without_spikes(values: &[f64]) -> Vec<f64> {
    let steps: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let Some(step) = median(&steps) else { return values.to_vec() };
    // A normal figure's median step is 0.954 standard deviations.
    let far = SPIKE * step / 0.954;
    let calm = |at: usize| {
        let x = values[at];
        let before = values[at.checked_sub(1).unwrap_or(1)];
        let after = values.get(at + 1).copied().unwrap_or(before);
        let middle = x.clamp(before.min(after), before.max(after));
        if (x - middle).abs() > far { middle } else { x }
    };
    if values.len() < 3 { values.to_vec() } else { (0..values.len()).map(calm).collect() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simulate::normal;

    /// The share of histories of `n` values, each made of its place and a normal figure, whose
    /// changes are as expected.
    fn share(
        trials: usize,
        n: usize,
        mut value: impl FnMut(usize, f64) -> f64,
        is_expected: impl Fn(&[usize]) -> bool,
    ) -> f64 {
        let mut normal = normal(14);
        let is_found = |_: &usize| {
            let values: Vec<f64> = (0..n).map(|at| value(at, normal())).collect();
            let found: Vec<usize> = change_points(&values).iter().map(|it| it.at).collect();
            is_expected(&found)
        };
        (0..trials).filter(is_found).count() as f64 / trials as f64
    }

    fn is_none(found: &[usize]) -> bool {
        found.is_empty()
    }

    /// 1 % is the level; of 200 histories 4 % are 3 standard errors more, and 60 of 100 values allow
    /// 3 false alarms.
    #[test]
    fn changes_are_seldom_found_where_there_are_none() {
        for (trials, n) in [(200, 5), (200, 10), (200, 20), (60, 100)] {
            assert!(share(trials, n, |_, x| x, is_none) >= 0.95, "normal, {n}");
            let rounded = |_, x: f64| x.round();
            assert!(share(trials, n, rounded, is_none) >= 0.93, "rounded, {n}");
            let skewed = |_, x: f64| (0.5 * x).exp();
            assert!(share(trials, n, skewed, is_none) >= 0.90, "lognormal, {n}");
        }
    }

    #[test]
    fn single_spikes_are_no_changes() {
        for spike_at in [3, 10, 19] {
            let spike = |at, x| x + if at == spike_at { 30.0 } else { 0.0 };
            assert!(share(100, 20, spike, is_none) >= 0.95, "{spike_at}");
        }
        let many = |at, x| x + if at % 13 == 4 { 30.0 } else { 0.0 };
        assert!(share(100, 40, many, is_none) >= 0.93);
    }

    #[test]
    fn steps_and_bumps_are_found_where_they_are() {
        let check = |n, from: usize, to: usize, height: f64, least| {
            let ends: Vec<usize> = [from, to].into_iter().filter(|&at| at < n).collect();
            let level = |at, x| x + if (from..to).contains(&at) { height } else { 0.0 };
            let is_near = |found: &[usize]| {
                let near = |(a, b): (&usize, &usize)| a.abs_diff(*b) <= 1;
                found.len() == ends.len() && found.iter().zip(&ends).all(near)
            };
            let share = share(50, n, level, is_near);
            assert!(share >= least, "{share} of {n} from {from} to {to}");
        };
        check(10, 5, 10, 6.0, 0.7);
        check(20, 10, 20, 6.0, 0.9);
        check(50, 25, 50, 3.0, 0.8);
        check(30, 15, 21, 5.0, 0.85);
        // Two values are enough where they lie far out.
        check(30, 28, 30, 10.0, 0.9);
    }

    #[test]
    fn a_change_tells_levels_before_and_after() {
        let values = [10.0, 10.2, 9.9, 10.1, 10.0, 12.1, 12.0, 12.2, 50.0, 11.9, 12.1];
        let found = change_points(&values);
        assert_eq!(found.len(), 1);
        let &ChangePoint { at, before, after, p } = &found[0];
        assert_eq!((at, before, after), (5, 10.0, 12.1));
        assert!(p <= 0.01, "{p}");
        assert_eq!(change_points(&values), found);
    }

    #[test]
    fn what_says_nothing_has_no_changes() {
        assert!(change_points(&[]).is_empty());
        assert!(change_points(&[1.0, 1.0, 9.0, 9.0]).is_empty());
        assert!(change_points(&[3.0; 50]).is_empty());
        assert!(change_points(&[1.0, 1.0, 1.0, f64::NAN, 9.0, 9.0, 9.0]).is_empty());
        // The last place moved now and then.
        assert!(change_points(&[5.0, 5.0, 5.0, 6.0, 5.0, 5.0, 6.0, 6.0]).is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn levels_hold_for_two_values(
            values in prop::collection::vec(prop_oneof![-1e12..1e12_f64, 0.0..2.0_f64], 0..40),
        ) {
            let found = change_points(&values);
            let ends: Vec<usize> = [0]
                .into_iter()
                .chain(found.iter().map(|change| change.at))
                .chain([values.len()])
                .collect();
            prop_assert!(found.is_empty() || ends.windows(2).all(|ends| ends[1] - ends[0] >= 2));
            prop_assert!(found.iter().all(|change| change.p <= 0.01));
        }
    }
}
