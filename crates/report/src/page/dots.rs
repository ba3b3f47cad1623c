//! A dot plot of samples. Each variant has a row with a lane for each boot, so that differences between
//! boots are visible.

use compare::{Comparison, Row};
use maud::{Markup, html};
use model::{Better, Mode, count};
use plots::{BootDots, Scatter};

use super::{boot_word, short};
use crate::ascii::excerpt;
use crate::document::svg::{Scale, WIDTH, bottom_axis, marks, px};
use crate::document::{Chart, figure as figure_of};
use crate::words::decimal;

/// The left and right ends of lanes. The names of boots are to the left.
const LANES: [f64; 2] = [30.0, WIDTH - 6.0];
/// Height of the words above a variant's lanes.
const WORDS: f64 = 15.0;
/// Height of the marks below a variant's lanes.
const BELOW: f64 = 13.0;
/// Height of a lane if a variant has at most this many boots.
const HEIGHTS: [(usize, f64); 4] = [(6, 11.0), (12, 9.0), (24, 6.0), (48, 4.0)];
/// Height of a lane with more boots.
const LOWEST: f64 = 2.5;
/// Boots are named if lanes are at least this high.
const NAMED: f64 = 9.0;

pub fn legend(comparison: &Comparison) -> &'static str {
    match comparison.mode {
        Mode::Measured => {
            "Each lane is a boot, in the order they ran; the tick marks its mean. The dashed \
             line is the baseline's mean. Below each variant stand its own mean and, if there \
             are enough boots, the interval of its difference from the baseline; an arrow marks \
             an end that lies outside. Ringed samples are far from the others."
        }
        Mode::Exact => {
            "Each lane is a seed; the tick marks its mean. The dashed line is the baseline's \
             mean, and the band around it is the luck floor. A mean inside the band may be \
             luck."
        }
    }
}

/// Draws the samples of an operation; `None` if there are none. `row` is the row of its means.
pub fn chart(scatter: &Scatter, row: Option<&Row>, comparison: &Comparison) -> Option<Chart> {
    let intervals: Vec<Option<[f64; 2]>> = (0..scatter.columns.len())
        .map(|column| row.and_then(|row| interval(row, column)))
        .collect();
    let floors: Vec<Option<[f64; 2]>> =
        (0..scatter.columns.len()).map(|column| row.and_then(|row| floor(row, column))).collect();
    let dots = || scatter.columns.iter().flatten().flat_map(|boot| &boot.dots).map(|dot| dot.value);
    let room = room(dots());
    let intervals: Vec<Option<Bar>> =
        intervals.into_iter().map(|ends| Some(Bar::within(room, ends?))).collect();
    let bars = intervals.iter().flatten().flat_map(|bar| bar.ends);
    let bounds = floors.iter().flatten().flatten().copied().chain(bars);
    let scale = Scale::around(dots().chain(bounds), LANES)?;
    let heights: Vec<f64> = scatter.columns.iter().map(|boots| height(boots.len())).collect();
    let tops: Vec<f64> = heights
        .iter()
        .scan(2.0, |top, height| {
            let here = *top;
            *top += height;
            Some(here)
        })
        .collect();
    let bottom = 2.0 + heights.iter().sum::<f64>();
    let base = row.and_then(|row| row.value(0));
    let shapes = html! {
        (bottom_axis(&scale, 0.0, bottom))
        @if let Some(base) = base {
            path class="base" d={ "M" (px(scale.at(base))) " 0V" (px(bottom)) } {}
        }
        @for (column, boots) in scatter.columns.iter().enumerate() {
            g transform={ "translate(0 " (px(tops[column])) ")" } {
                text class="name" x="2" y="11" { (name(column, comparison)) }
                text class="ticks" x=(px(WIDTH - 2.0)) y="11" text-anchor="end" {
                    (words(column, scatter, row).join(" \u{b7} "))
                }
                @let lanes = boots.len() as f64 * lane(boots.len());
                @if let Some(floor) = floors[column] {
                    rect class="floor" x=(px(scale.at(floor[0]))) y=(px(WORDS))
                        width=(px(scale.at(floor[1]) - scale.at(floor[0])))
                        height=(px(lanes + BELOW - 3.0)) {}
                }
                @for (number, boot) in boots.iter().enumerate() {
                    (lane_of(column, number, boot, boots.len(), &scale, comparison))
                }
                @let mean = row.and_then(|row| row.value(column));
                (judged(column, mean, intervals[column], WORDS + lanes + 4.0, &scale))
            }
        }
    };
    let figures = (0..scatter.columns.len()).map(|column| {
        format!("{}: {}", name(column, comparison), words(column, scatter, row).join(", "))
    });
    Some(Chart {
        title: scatter.name.clone(),
        beside: caption(scatter),
        label: format!("Samples of {}, boot by boot", excerpt(&scatter.name)),
        figures: figures.collect::<Vec<_>>().join("; "),
        note: String::new(),
        class: "",
        size: [WIDTH, bottom + 16.0],
        shapes,
    })
}

/// Returns the range in which intervals are drawn. It extends the range of the samples by its own width on
/// each side, so that a wide interval, as few boots have, does not squeeze the samples together. If all
/// samples are equal, there is no limit.
fn room(dots: impl Iterator<Item = f64>) -> [f64; 2] {
    let [least, most] =
        dots.fold([f64::MAX, f64::MIN], |[least, most], it| [least.min(it), most.max(it)]);
    let apart = most - least;
    match apart > 0.0 && apart.is_finite() {
        true => [least - apart, most + apart],
        false => [f64::MIN, f64::MAX],
    }
}

/// An interval as drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bar {
    ends: [f64; 2],
    /// Whether the interval extends beyond the drawn range, at each end.
    cut: [bool; 2],
}

impl Bar {
    fn within([least, most]: [f64; 2], [low, high]: [f64; 2]) -> Self {
        let ends = [low, high].map(|end| end.clamp(least, most));
        Self { ends, cut: [low < least, high > most] }
    }
}

/// Returns the unit of the metric and its good direction.
pub fn caption(scatter: &Scatter) -> String {
    let better = match scatter.better {
        Some(Better::Lower) => "lower is better",
        Some(Better::Higher) => "higher is better",
        None => "",
    };
    let said = [&*excerpt(&scatter.unit), better];
    said.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ")
}

fn lane(boots: usize) -> f64 {
    let known = HEIGHTS.into_iter().find(|(most, _)| boots <= *most);
    known.map_or(LOWEST, |(_, height)| height)
}

fn height(boots: usize) -> f64 {
    WORDS + boots.max(1) as f64 * lane(boots) + BELOW
}

/// Returns the interval of a variant's ratio, multiplied by the baseline's mean.
fn interval(row: &Row, column: usize) -> Option<[f64; 2]> {
    let evidence = row.evidence(column)?;
    let base = row.value(0)?;
    Some([base * evidence.low, base * evidence.high])
}

/// Returns the range of the luck floor around the baseline's mean.
fn floor(row: &Row, column: usize) -> Option<[f64; 2]> {
    let floor = row.floor(column)?;
    let base = row.base(column)?;
    Some([base - floor, base + floor])
}

fn name(column: usize, comparison: &Comparison) -> String {
    comparison.variants.get(column).map_or(String::new(), |it| short(&it.name))
}

/// Writes the variant's mean, and the number of samples.
fn words(column: usize, scatter: &Scatter, row: Option<&Row>) -> Vec<String> {
    let (boots, modes) = (&scatter.columns[column], scatter.modes[column]);
    let samples: usize = boots.iter().map(|boot| boot.samples).sum();
    let mean = row.and_then(|row| Some((row.value(column)?, row.decimals)));
    let mean =
        mean.map(|(mean, decimals)| format!("mean {}", figure_of(&decimal(Some(mean), decimals))));
    let far = boots.iter().flat_map(|boot| &boot.dots).filter(|dot| dot.outlier).count();
    let mut said: Vec<String> = mean.into_iter().collect();
    if modes > 1 {
        said.push(count(modes, "peak"));
    }
    if far > 0 {
        said.push(count(far, "outlier"));
    }
    said.push(format!("n = {samples}"));
    said
}

fn lane_of(
    column: usize,
    number: usize,
    boot: &BootDots,
    boots: usize,
    scale: &Scale,
    comparison: &Comparison,
) -> Markup {
    let high = lane(boots);
    let y = WORDS + (number as f64 + 0.5) * high;
    let size = (0.3 * high).clamp(1.2, 2.6);
    let values = || boot.dots.iter().map(|dot| dot.value);
    let [least, most] = values()
        .fold([f64::MAX, f64::MIN], |[least, most], value| [least.min(value), most.max(value)]);
    let points = |far: bool| {
        let dots = boot.dots.iter().filter(move |dot| dot.outlier == far);
        dots.map(move |dot| [scale.at(dot.value), y])
    };
    let mean = boot.mean.map_or("-".to_owned(), |mean| format!("{mean:.6}"));
    html! {
        g {
            title {
                (boot.boot) ": " (count(boot.samples, "sample")) ", mean of the "
                (boot_word(comparison)) " " (mean)
            }
            @if high >= NAMED {
                text class="boot" x=(px(LANES[0] - 5.0)) y=(px(y + 2.6)) text-anchor="end" { (boot.boot) }
            }
            @if least < most {
                path class="lane" d={ "M" (px(scale.at(least))) " " (px(y)) "H" (px(scale.at(most))) } {}
            }
            (marks(column, points(false), size))
            @if boot.dots.iter().any(|dot| dot.outlier) {
                (marks(column, points(true), size))
                path class="far" d=(rings(points(true), size + 2.2)) {}
            }
            @if let (Some(mean), true) = (boot.mean, boot.dots.len() > 1) {
                path class={ "tick s" (column % crate::document::svg::GROUPS) }
                    d={ "M" (px(scale.at(mean))) " " (px(y - 0.45 * high)) "v" (px(0.9 * high)) } {}
            }
        }
    }
}

fn rings(points: impl Iterator<Item = [f64; 2]>, r: f64) -> String {
    let ring = |[x, y]: [f64; 2]| {
        let r = px(r);
        let begin = px(x - r.parse::<f64>().unwrap_or(0.0));
        let across = px(2.0 * r.parse::<f64>().unwrap_or(0.0));
        format!("M{begin} {}a{r} {r} 0 1 0 {across} 0a{r} {r} 0 1 0-{across} 0", px(y))
    };
    points.map(ring).collect()
}

/// Draws the variant's mean, and the interval of its difference from the baseline.
fn judged(
    column: usize,
    mean: Option<f64>,
    interval: Option<Bar>,
    y: f64,
    scale: &Scale,
) -> Markup {
    let group = column % crate::document::svg::GROUPS;
    html! {
        @if let Some(Bar { ends, cut }) = interval {
            @let [low, high] = ends.map(|end| scale.at(end));
            path class={ "bar s" (group) } d={
                "M" (px(low)) " " (px(y)) "H" (px(high))
                (bar_end(low, y, cut[0].then_some(-3.0))) (bar_end(high, y, cut[1].then_some(3.0)))
            } {}
        }
        @if let Some(mean) = mean {
            path class={ "mean f" (group) } d={
                "M" (px(scale.at(mean))) " " (px(y - 4.0)) "l4 4-4 4-4-4z"
            } {}
        }
    }
}

/// Draws the end of an interval at `x`: a stroke, or an arrow of this length to mark that the interval
/// continues.
fn bar_end(x: f64, y: f64, arrow: Option<f64>) -> String {
    match arrow {
        None => format!("M{} {}v6", px(x), px(y - 3.0)),
        Some(by) => {
            format!(
                "M{} {}L{} {}L{} {}",
                px(x - by),
                px(y - 3.0),
                px(x),
                px(y),
                px(x - by),
                px(y + 3.0)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_leave_room_for_samples() {
        let room = room([1.0, 3.0, 2.0].into_iter());
        let far = Bar::within(room, [-5.0, f64::INFINITY]);
        assert_eq!(far, Bar { ends: [-1.0, 5.0], cut: [true, true] });
        let near = Bar::within(room, [0.0, 4.0]);
        assert_eq!(near, Bar { ends: [0.0, 4.0], cut: [false, false] });
        // The range of a single sample has no width, so it sets no limit.
        let alone = Bar::within(super::room([1.0].into_iter()), [0.0, 9.0]);
        assert_eq!((alone.ends, alone.cut), ([0.0, 9.0], [false, false]));
    }
}
