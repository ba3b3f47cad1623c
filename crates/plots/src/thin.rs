//! Reduces the number of points to what a page can hold and a screen can show. Extremes stay.

use model::ONCE;

use super::scatter::Dot;
use super::{Curve, Panel, Plots, Scatter};

/// Most points of series on a page. A point takes about 9 bytes.
const POINTS: usize = 200_000;
/// Most points of samples on a page. A point takes about 12 bytes.
const DOTS: usize = 40_000;
/// Most points of distributions on a page.
const STEPS: usize = 40_000;
/// Most points in one column of a curve: first, least, most, last.
const POINTS_OF_COLUMN: usize = 4;
/// Fewest and most columns of a curve.
const COLUMNS: [usize; 2] = [6, 240];
/// A curve that is drawn in front has this many times more columns than others.
const CHIEF: usize = 4;
/// Fewest and most dots of a boot.
const DOTS_OF_BOOT: [usize; 2] = [6, 400];
/// Fewest and most steps of a distribution.
const STEPS_OF_CURVE: [usize; 2] = [20, 400];

/// Reduces the points to what a page can hold.
pub fn fit_page(all: &mut [Plots]) {
    let weight = |curve: &Curve| if curve.chief { CHIEF } else { 1 };
    let weights: usize = all.iter().flat_map(panels).flat_map(|it| &it.curves).map(weight).sum();
    let share = POINTS / POINTS_OF_COLUMN / weights.max(1);
    let panels = all
        .iter_mut()
        .flat_map(|plots| plots.panels.iter_mut().chain(plots.nodes.iter_mut().flatten()));
    for panel in panels {
        let last = |curve: &Curve| curve.runs.last().and_then(|run| run.last()).map(|it| it[0]);
        let end = panel.curves.iter().filter_map(last).fold(0.0, f64::max);
        for curve in &mut panel.curves {
            let columns = (share * weight(curve)).clamp(COLUMNS[0], COLUMNS[1]);
            for run in &mut curve.runs {
                *run = thin(run, end / columns as f64);
            }
        }
    }

    let scatters = |all: &[Plots]| all.iter().map(|plots| plots.scatters.len()).sum::<usize>();
    let boots = |it: &Scatter| it.columns.iter().map(Vec::len).sum::<usize>();
    let boots: usize = all.iter().flat_map(|plots| &plots.scatters).map(boots).sum();
    let dots = (DOTS / boots.max(1)).clamp(DOTS_OF_BOOT[0], DOTS_OF_BOOT[1]);
    let steps = (STEPS / scatters(all).max(1)).clamp(STEPS_OF_CURVE[0], STEPS_OF_CURVE[1]);
    for scatter in all.iter_mut().flat_map(|plots| &mut plots.scatters) {
        for boot in scatter.columns.iter_mut().flatten() {
            let count = |dot: &Dot| dot.count.get() as usize;
            let kept = by_rank(&boot.dots, dots, |dot| dot.value, count, |dot| dot.outlier);
            boot.dots = kept.into_iter().map(|dot| Dot { count: ONCE, ..dot }).collect();
        }
        for steps_of in &mut scatter.distributions {
            *steps_of = by_rank(steps_of, steps, |step| step[0], |_| 1, |_| false);
        }
    }
}

fn panels(plots: &Plots) -> impl Iterator<Item = &Panel> {
    plots.panels.iter().chain(plots.nodes.iter().flatten())
}

/// The first, least, most and last point of each column of this width, in the order of the points. A line through
/// them looks like one through all points where a column is a pixel wide (Jugel et al., M4: A Visualization-Oriented
/// Time Series Data Aggregation, VLDB 2014).
pub fn thin(points: &[[f64; 2]], width: f64) -> Vec<[f64; 2]> {
    let column = |point: &[f64; 2]| (point[0] / width) as u64;
    let columns = points.chunk_by(|a, b| column(a) == column(b));
    let kept = columns.flat_map(|points| {
        let value = |place: &usize| points[*place][1];
        let places = || 0..points.len();
        let least = places().min_by(|a, b| value(a).total_cmp(&value(b)));
        let most = places().max_by(|a, b| value(a).total_cmp(&value(b)));
        let mut places = [Some(0), least, most, points.len().checked_sub(1)];
        places.sort_unstable();
        let mut places: Vec<usize> = places.into_iter().flatten().collect();
        places.dedup();
        places.into_iter().map(|place| points[place])
    });
    kept.collect()
}

/// Selects about `limit` of `items` evenly by the rank of their values, and returns them in their original order. An
/// item stands for `count` equal ones. Extremes and items that must stay are always selected.
fn by_rank<T: Copy>(
    items: &[T],
    limit: usize,
    value: impl Fn(&T) -> f64,
    count: impl Fn(&T) -> usize,
    must_stay: impl Fn(&T) -> bool,
) -> Vec<T> {
    // A place is the index of an item, and the number of one among its equal ones.
    let each = |place: usize| (0..count(&items[place])).map(move |which| (place, which));
    let all: usize = items.iter().map(&count).sum();
    if all <= limit {
        return (0..items.len()).flat_map(each).map(|(place, _)| items[place]).collect();
    }
    let mut ranked: Vec<usize> = (0..items.len()).collect();
    ranked.sort_by(|&a, &b| value(&items[a]).total_cmp(&value(&items[b])));
    let mut before = 0;
    let mut ranked = ranked.into_iter().peekable();
    let even = (0..limit).filter_map(|number| {
        let rank = number * (all - 1) / (limit - 1);
        while let Some(place) = ranked.next_if(|&it| before + count(&items[it]) <= rank) {
            before += count(&items[place]);
        }
        Some((*ranked.peek()?, rank - before))
    });
    let far = (0..items.len()).filter(|&place| must_stay(&items[place])).flat_map(each);
    let mut places: Vec<(usize, usize)> = even.chain(far.take(limit)).collect();
    places.sort_unstable();
    places.dedup();
    places.into_iter().map(|(place, _)| items[place]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn extremes_and_ends_stay_and_nothing_is_invented(
            values in prop::collection::vec(-1e6..1e6f64, 1..400),
            columns in 1usize..50,
        ) {
            let points: Vec<[f64; 2]> =
                values.iter().enumerate().map(|(place, &value)| [place as f64, value]).collect();
            let kept = thin(&points, points.len() as f64 / columns as f64);
            prop_assert!(kept.len() <= POINTS_OF_COLUMN * columns);
            prop_assert!(kept.windows(2).all(|pair| pair[0][0] < pair[1][0]));
            prop_assert!(kept.iter().all(|point| points.contains(point)));
            prop_assert_eq!((kept[0], kept[kept.len() - 1]), (points[0], points[points.len() - 1]));
            let extremes = |points: &[[f64; 2]]| {
                points.iter().fold([f64::MAX, f64::MIN], |[least, most], point| {
                    [least.min(point[1]), most.max(point[1])]
                })
            };
            prop_assert_eq!(extremes(&kept), extremes(&points));
        }

        #[test]
        fn a_choice_of_samples_keeps_extremes_and_what_must_stay(
            values in prop::collection::vec(-1e6..1e6f64, 7..300),
            far in 0usize..7,
        ) {
            let items: Vec<(usize, f64)> = values.iter().copied().enumerate().collect();
            let kept = by_rank(&items, 6, |item| item.1, |_| 1, |item| item.0 == far);
            prop_assert!(kept.len() <= 7 && kept.is_sorted_by_key(|item| item.0));
            prop_assert!(kept.iter().any(|item| item.0 == far));
            for extreme in [values.iter().copied().fold(f64::MIN, f64::max),
                            values.iter().copied().fold(f64::MAX, f64::min)] {
                prop_assert!(kept.iter().any(|item| item.1 == extreme));
            }
        }
    }
}
