//! Permutation test of many figures of the same two samples. It finds those that differ by more than relabelling
//! explains. If the samples do not differ, the assignment of values to sides is arbitrary. The differences under
//! other assignments then show the differences that chance causes in these very figures, whatever their distributions
//! and dependence (Tusher, Tibshirani and Chu, "Significance analysis of microarrays applied to the ionizing
//! radiation response", PNAS 98, 2001).

use fastrand::Rng;

/// The largest floor in standard errors, for a difference that does not exceed its floor.
const USUAL: f64 = 5.0;
/// The largest number of labellings that are tried. If there are more, this number is drawn at random.
const MOST: usize = 500;

/// The floor of each figure's difference of means. Of the differences above their floors, at most
/// the share `rate` is expected to be chance. Each figure has the values of the two samples, in
/// the same order in every figure.
///
/// Differences are measured in standard errors. As many figures as possible are above their floors, on the condition
/// that the mean number of figures that differ as much, over all labellings, is at most `rate` times their number
/// under the true labelling. The true labelling is one of those counted, so that `rate` holds with few values too:
/// with fewer than `1 / rate` labellings no figure is above its floor.
///
/// `of_one_unit` requires that all figures have the same unit. The standard error that nine tenths of the
/// figures do not exceed is then added to each (the paper's `s_0`); otherwise figures with zero standard
/// error rank first, however small they are.
pub fn floors(figures: &[[&[f64]; 2]], rate: f64, of_one_unit: bool) -> Vec<Floor> {
    let Some([base, new]) = figures.first().map(|sides| sides.map(<[f64]>::len)) else {
        return Vec::new();
    };
    let labellings = labellings(base, base + new);
    let figures: Vec<Figure> = figures.iter().map(Figure::of).collect();
    let mut errors: Vec<f64> =
        figures.iter().map(|it| it.distance(&labellings[0], 0.0).error).collect();
    errors.sort_by(f64::total_cmp);
    let added = if of_one_unit { errors[(errors.len() - 1) * 9 / 10] } else { 0.0 };
    let own: Vec<Distance> = figures.iter().map(|it| it.distance(&labellings[0], added)).collect();
    let threshold = threshold(&figures, &own, &labellings, (rate, added));
    let floor = |it: &Distance| Floor { distance: it.value, floor: it.floor(threshold) };
    own.iter().map(floor).collect()
}

/// The values of both samples with their places, sorted, so that sums do not depend on the original order.
struct Figure(Vec<(f64, usize)>);

impl Figure {
    fn of([a, b]: &[&[f64]; 2]) -> Self {
        let mut values: Vec<(f64, usize)> = a.iter().chain(*b).copied().zip(0..).collect();
        values.sort_by(|one, other| one.0.total_cmp(&other.0));
        Self(values)
    }

    /// The distance of the sides under these labels.
    fn distance(&self, labels: &[bool], added: f64) -> Distance {
        let [a, b] = [false, true].map(|wanted| {
            let own = self.0.iter().filter(move |(_, place)| labels[*place] == wanted);
            moments(own.map(|(value, _)| value))
        });
        Distance { value: (b.0 - a.0).abs(), error: added + (a.1 + b.1).sqrt() }
    }
}

/// A difference and its floor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    /// The distance of the means.
    pub distance: f64,
    /// The distance that chance explains.
    pub floor: f64,
}

/// The distance of two means, and its standard error, `sqrt (s_a^2 / n_a + s_b^2 / n_b)`, plus the added
/// error.
struct Distance {
    value: f64,
    error: f64,
}

impl Distance {
    /// The distance in standard errors; infinite if the error is 0.
    fn in_errors(&self) -> f64 {
        if self.value == 0.0 { 0.0 } else { self.value / self.error }
    }

    /// The distance that must be exceeded to be above `threshold` standard errors.
    fn floor(&self, threshold: f64) -> f64 {
        match self.in_errors() > threshold {
            true if self.error == 0.0 => 0.0,
            true => threshold * self.error,
            // No distance is beyond an infinite threshold.
            false => self.value.max(threshold.min(USUAL) * self.error),
        }
    }
}

/// The mean, and the square of its standard error. The mean of equal values is exactly that value, and
/// their error 0.
fn moments<'a>(values: impl Iterator<Item = &'a f64> + Clone) -> (f64, f64) {
    let Some(first) = values.clone().next() else { return (0.0, 0.0) };
    let n = values.clone().count() as f64;
    let mean = values.clone().map(|value| value - first).sum::<f64>() / n;
    let squares: f64 = values.map(|value| (value - first - mean).powi(2)).sum();
    (first + mean, squares / (n - 1.0).max(1.0) / n)
}

/// The threshold that keeps the rate. Figures that are not listed do not exceed it, and at most the allowed number of
/// the labellings' distances does. Equal distances are listed together or not at all.
fn threshold(
    figures: &[Figure],
    own: &[Distance],
    labellings: &[Vec<bool>],
    (rate, added): (f64, f64),
) -> f64 {
    let of_all = |labels: &Vec<bool>| {
        let distances = figures.iter().map(|figure| figure.distance(labels, added).in_errors());
        distances.collect::<Vec<f64>>()
    };
    let mut drawn: Vec<f64> = labellings.iter().flat_map(of_all).collect();
    let descending = |values: &mut Vec<f64>| values.sort_by(|a, b| b.total_cmp(a));
    let mut own: Vec<f64> = own.iter().map(Distance::in_errors).collect();
    descending(&mut own);
    descending(&mut drawn);
    // Sums of the same values in another order may differ in the last digit.
    let drawn_beyond = |distance: f64| drawn.partition_point(|it| *it >= distance * (1.0 - 1e-9));
    let allowed = |number: usize| (rate * number as f64 * labellings.len() as f64) as usize;
    let listed = (1..=own.len())
        .rev()
        .find(|&number| own[number - 1] > 0.0 && drawn_beyond(own[number - 1]) <= allowed(number))
        .unwrap_or(0);
    let largest = |distances: &[f64], place: usize| distances.get(place).copied().unwrap_or(0.0);
    largest(&own, listed).max(largest(&drawn, allowed(listed.max(1))))
}

/// Ways to split `count` values in two, with `base` of them on the first side. The true one is first. Of two mirror
/// images there is only one.
fn labellings(base: usize, count: usize) -> Vec<Vec<bool>> {
    let own: Vec<bool> = (0..count).map(|place| place >= base).collect();
    let is_even = 2 * base == count;
    match binomial(count, base) / if is_even { 2.0 } else { 1.0 } {
        ways if ways <= MOST as f64 => {
            let mut all = Vec::new();
            choose(&mut vec![true; count], 0, base, &mut all);
            all.retain(|labels| !is_even || !labels[0]);
            all
        }
        _ => {
            let mut rng = Rng::with_seed(0);
            let mut labels = own.clone();
            let mut all = vec![own];
            all.resize_with(MOST, || {
                rng.shuffle(&mut labels);
                labels.clone()
            });
            all
        }
    }
}

/// All ways to assign `left` more places, from `from` on, to the first side.
fn choose(labels: &mut Vec<bool>, from: usize, left: usize, all: &mut Vec<Vec<bool>>) {
    if left == 0 {
        all.push(labels.clone());
        return;
    }
    for place in from..=labels.len() - left {
        labels[place] = false;
        choose(labels, place + 1, left - 1, all);
        labels[place] = true;
    }
}

fn binomial(n: usize, k: usize) -> f64 {
    (0..k).map(|it| (n - it) as f64 / (k - it) as f64).product()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::normal;

    type Sides = [Vec<f64>; 2];

    fn beyond(figures: &[Sides]) -> Vec<bool> {
        let slices: Vec<[&[f64]; 2]> =
            figures.iter().map(|sides| sides.each_ref().map(Vec::as_slice)).collect();
        floors(&slices, 0.05, false).iter().map(|it| it.distance > it.floor).collect()
    }

    fn figure(mut value: impl FnMut(usize) -> f64, seeds: usize) -> Sides {
        [0, 1].map(|_| (0..seeds).map(&mut value).collect())
    }

    #[test]
    fn labellings_are_counted_without_their_mirrors() {
        let count = |base, all| labellings(base, all).len();
        assert_eq!([count(3, 6), count(4, 8), count(5, 10), count(3, 8)], [10, 35, 126, 56]);
        assert_eq!(count(10, 20), MOST);
        assert_eq!(labellings(2, 4)[0], [false, false, true, true]);
    }

    /// A function that always takes one instruction more, among many that differ by chance.
    #[test]
    fn a_consistent_difference_is_found_among_many_by_chance() {
        let mut deviation = normal(1);
        let mut figures: Vec<Sides> = (0..300).map(|_| figure(|_| deviation(), 5)).collect();
        figures.push([vec![709.0; 5], vec![710.0; 5]]);
        let found = beyond(&figures);
        assert!(found[300] && found.iter().filter(|it| **it).count() == 1);
        // There are 10 ways to split 3 values a side: too few.
        figures.truncate(10);
        figures.iter_mut().flatten().for_each(|side| side.truncate(3));
        figures.push([vec![709.0; 3], vec![710.0; 3]]);
        assert!(beyond(&figures).iter().all(|it| !it));
    }

    /// Figures with two equally likely modes sometimes separate by chance. Student's t would call these
    /// certain.
    #[test]
    fn separation_by_chance_is_no_discovery() {
        let mut random = Rng::with_seed(7);
        let mut figures: Vec<Sides> =
            (0..3000).map(|_| figure(|_| f64::from(u8::from(random.bool())), 5)).collect();
        let parted =
            |[a, b]: &Sides| a.iter().all(|it| *it == a[0]) && b.iter().all(|it| *it == 1.0 - a[0]);
        assert!(figures.iter().filter(|figure| parted(figure)).count() > 1);
        assert!(beyond(&figures).iter().all(|it| !it));
        figures.extend(vec![[vec![0.0; 5], vec![1.0; 5]]; 200]);
        assert!(beyond(&figures)[3000..].iter().all(|it| *it));
    }

    /// Among samples that do not differ, at most 5 % of the lists name any figure, however the figures
    /// depend on each other; within 4 standard errors.
    #[test]
    fn few_lists_name_anything_if_nothing_differs() {
        const LISTS: usize = 600;
        for seeds in [4, 5, 6] {
            for shared in [0.0, 0.9] {
                let (mut deviation, mut random) = (normal(3), Rng::with_seed(5));
                let false_lists = (0..LISTS).filter(|_| {
                    let common: Vec<f64> = (0..2 * seeds).map(|_| deviation()).collect();
                    let figures: Vec<Sides> = (0..20)
                        .map(|_| {
                            let mut common = common.iter();
                            let rounded = random.bool();
                            figure(
                                |_| {
                                    let common = shared * common.next().unwrap();
                                    let value = common + (1.0 - shared) * deviation();
                                    if rounded { value.round() } else { value }
                                },
                                seeds,
                            )
                        })
                        .collect();
                    beyond(&figures).iter().any(|it| *it)
                });
                let share = false_lists.count() as f64 / LISTS as f64;
                let error = (0.05 * 0.95 / LISTS as f64).sqrt();
                assert!(share < 0.05 + 4.0 * error, "{share} with {seeds} seeds");
            }
        }
    }

    /// Small figures that separate by chance under other labellings as often, and a large one that surely
    /// differs.
    #[test]
    fn a_large_figure_is_not_hidden_by_small_ones() {
        let mut random = Rng::with_seed(7);
        let mut noise = normal(9);
        let mut figures: Vec<Sides> =
            (0..1000).map(|_| figure(|_| f64::from(u8::from(random.bool())), 5)).collect();
        figures.extend((0..200).map(|_| figure(|_| 100.0 * noise(), 5)));
        figures.push([vec![40_000.0; 5], vec![41_000.0; 5]]);
        assert!(beyond(&figures).iter().all(|it| !it));
        let slices: Vec<[&[f64]; 2]> =
            figures.iter().map(|sides| sides.each_ref().map(Vec::as_slice)).collect();
        let found = floors(&slices, 0.05, true);
        let found: Vec<usize> =
            (0..found.len()).filter(|it| found[*it].distance > found[*it].floor).collect();
        assert_eq!(found, [1200]);
    }

    #[test]
    fn a_threshold_that_nothing_exceeds_still_gives_floors() {
        let figures: [[&[f64]; 2]; 3] =
            [[&[1.0, 2.0, 3.0], &[3.0, 4.0, 5.0]], [&[5.0; 3], &[6.0; 3]], [&[5.0; 3], &[5.0; 3]]];
        let floors: Vec<f64> = floors(&figures, 0.05, false).iter().map(|it| it.floor).collect();
        assert!(floors[0] >= 2.0 && floors[0].is_finite());
        assert_eq!(floors[1..], [1.0, 0.0]);
        assert_eq!(super::floors(&[], 0.05, false), []);
    }
}
