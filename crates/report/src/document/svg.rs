//! Draws scales, axes, paths and marks. Drawings have only shapes and classes; the style sheet decides how
//! they look. So one drawing serves for light and dark screens and for print.

use std::fmt::Write;

use maud::{Markup, html};

/// Width of every plot. A phone shows it without shrinking.
pub const WIDTH: f64 = 360.0;
/// Number of groups that differ in colour and shape. Further groups repeat them.
pub const GROUPS: usize = 6;
/// The largest value that is drawn. Larger values are drawn at this one, because differences between them
/// could overflow.
const HUGE: f64 = 1e300;

/// A linear mapping from values to coordinates.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    values: [f64; 2],
    lengths: [f64; 2],
}

impl Scale {
    /// Maps the range of `values`, with some room at both ends, to `lengths`. Values that are not finite
    /// are ignored. `None` if there is no value.
    pub fn around(values: impl IntoIterator<Item = f64>, lengths: [f64; 2]) -> Option<Self> {
        let values = values.into_iter().filter(|value| value.is_finite());
        let values = values.map(|value| value.clamp(-HUGE, HUGE));
        let [least, most] = values
            .map(|value| [value; 2])
            .reduce(|[least, most], [value, _]| [least.min(value), most.max(value)])?;
        let room = match most - least {
            0.0 if most == 0.0 => 1.0,
            0.0 => 0.02 * most.abs(),
            span => 0.04 * span,
        };
        Some(Self { values: [least - room, most + room], lengths })
    }

    /// Maps exactly the range from the first to the second of `values` to `lengths`.
    pub fn between(values: [f64; 2], lengths: [f64; 2]) -> Self {
        let end = if values[1] > values[0] { values[1] } else { values[0] + 1.0 };
        Self { values: [values[0], end], lengths }
    }

    /// Returns the coordinate of a value. A value outside the range is drawn at most one width of the range
    /// outside.
    pub fn at(&self, value: f64) -> f64 {
        let ([first, last], [start, end]) = (self.values, self.lengths);
        let share = (value.clamp(-HUGE, HUGE) - first) / (last - first);
        start + share.clamp(-1.0, 2.0) * (end - start)
    }

    /// Returns the first and the last value of the range.
    pub fn values(&self) -> [f64; 2] {
        self.values
    }

    /// Returns about `count` round values, each with its coordinate and its label.
    pub fn ticks(&self, count: usize) -> Vec<(f64, String)> {
        let [first, last] = self.values;
        let step = round_step((last - first) / count as f64);
        let begin = (first / step - 1e-9).ceil();
        let values = (0..=2 * count).map(|number| (begin + number as f64) * step);
        // Rounding errors may put the first and the last value slightly beyond the ends.
        let values = values.take_while(|&value| value <= last + 1e-9 * step);
        values.map(|value| (self.at(value), tick(value, step))).collect()
    }
}

/// Rounds up to 1, 2 or 5 times a power of ten.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let rounded = [1.0, 2.0, 5.0, 10.0].into_iter().find(|it| it * power >= 0.999 * step);
    rounded.unwrap_or(10.0) * power
}

/// Formats a value on an axis with the digits that its step needs.
fn tick(value: f64, step: f64) -> String {
    let value = if value.abs() < step / 2.0 { 0.0 } else { value };
    let units = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    let largest = value.abs().max(step);
    if !(1e-5..1e12).contains(&largest) {
        return if value == 0.0 { "0".into() } else { format!("{value:.1e}") };
    }
    let unit = units.into_iter().find(|(unit, _)| value.abs() >= *unit && *unit >= 1e3);
    let (unit, suffix) = unit.filter(|_| value.abs() >= 1e4).unwrap_or((1.0, ""));
    let decimals = (-(step / unit).log10().floor()).max(0.0) as usize;
    let text = format!("{:.decimals$}", value / unit);
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{}{suffix}", text.replace('-', "\u{2212}"))
}

/// Formats a coordinate with one decimal.
pub fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// A path of straight lines on a grid of whole numbers, written as short as possible.
#[derive(Debug, Default)]
pub struct Path {
    text: String,
    last: [i64; 2],
    drawing: bool,
}

impl Path {
    /// Starts a new line at `point`.
    pub fn move_to(&mut self, point: [f64; 2]) {
        self.last = point.map(|it| it.round() as i64);
        let [x, y] = self.last;
        let _ = write!(self.text, "M{x} {y}");
        self.drawing = false;
    }

    /// Draws a straight line to `point`. A line within one grid point is left out.
    pub fn line_to(&mut self, point: [f64; 2]) {
        let to = point.map(|it| it.round() as i64);
        let [x, y] = [to[0] - self.last[0], to[1] - self.last[1]];
        if [x, y] == [0, 0] {
            return;
        }
        let before = match (self.drawing, x < 0) {
            (false, _) => "l",
            (true, true) => "",
            (true, false) => " ",
        };
        let between = if y < 0 { "" } else { " " };
        let _ = write!(self.text, "{before}{x}{between}{y}");
        self.last = to;
        self.drawing = true;
    }

    /// Draws a line of no length, which round ends turn into a dot.
    pub fn dot(&mut self) {
        self.text.push_str("h0");
        self.drawing = false;
    }

    /// Returns the value of the attribute `d`.
    pub fn d(self) -> String {
        self.text
    }
}

/// Draws the marks of a group at `points` as one path. Each group has its own shape.
pub fn marks(group: usize, points: impl IntoIterator<Item = [f64; 2]>, size: f64) -> Markup {
    let r = size;
    let [half, most] = [r * 0.9, r * 1.25].map(px);
    let shape = |[x, y]: [f64; 2]| {
        let [left, top, bottom] = [x - r, y - r, y + r].map(px);
        let (x, y) = (px(x), px(y));
        match group % GROUPS {
            0 => format!("M{x} {y}h0"),
            1 => format!("M{x} {}l{most} {most}-{most} {most}-{most}-{most}z", px(top_of(&y, r))),
            2 => format!("M{left} {top}h{0}v{0}h-{0}z", px(2.0 * r)),
            3 => format!("M{x} {top}l{most} {0}h-{1}z", px(2.0 * r), px(2.5 * r)),
            4 => format!("M{x} {bottom}l{most}-{0}h-{1}z", px(2.0 * r), px(2.5 * r)),
            _ => format!("M{left} {y}h{0}M{x} {top}v{0}m-{half} 0", px(2.0 * r)),
        }
    };
    let d: String = points.into_iter().map(shape).collect();
    let width = (group.is_multiple_of(GROUPS)).then(|| px(2.0 * r));
    html! { path class={ "mark m" (group % GROUPS) } stroke-width=[width] d=(d) {} }
}

fn top_of(y: &str, r: f64) -> f64 {
    y.parse::<f64>().unwrap_or(0.0) - 1.25 * r
}

/// Draws the entry of a group in a legend: its line and its shape.
pub fn key(group: usize) -> Markup {
    html! {
        svg class="swatch" viewBox="0 0 26 12" width="26" height="12" aria-hidden="true" {
            path class={ "line g" (group % GROUPS) } d="M1 6h24" {}
            (marks(group, [[13.0, 6.0]], 3.5))
        }
    }
}

/// Draws the axis below a plot: at each round value a line up to `top`, and the value.
pub fn bottom_axis(scale: &Scale, top: f64, bottom: f64) -> Markup {
    let ticks = scale.ticks(5);
    html! {
        g class="grid" {
            @for (x, _) in &ticks { path d={ "M" (px(*x)) " " (px(top)) "V" (px(bottom)) } {} }
        }
        g class="ticks across" {
            @for (x, text) in &ticks {
                text x=(px(*x)) y=(px(bottom + 11.0)) text-anchor="middle" { (text) }
            }
        }
    }
}

/// Draws the axis to the left of a plot.
pub fn left_axis(scale: &Scale, left: f64, right: f64) -> Markup {
    let ticks = scale.ticks(4);
    html! {
        g class="grid" {
            @for (y, _) in &ticks { path d={ "M" (px(left)) " " (px(*y)) "H" (px(right)) } {} }
        }
        g class="ticks" {
            @for (y, text) in &ticks {
                text x=(px(left - 4.0)) y=(px(y + 3.0)) text-anchor="end" { (text) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(values: [f64; 2]) -> Vec<String> {
        let scale = Scale::between(values, [0.0, 100.0]);
        scale.ticks(5).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(texts([0.0, 1.0]), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(texts([-3.0, 7.0]), ["\u{2212}2", "0", "2", "4", "6"]);
        assert_eq!(texts([0.0, 50_000.0]), ["0", "10k", "20k", "30k", "40k", "50k"]);
        assert_eq!(texts([1_000_000.0, 1_002_000.0])[1], "1.0005M");
        assert_eq!(texts([0.00012, 0.00013])[0], "0.00012");
        assert_eq!(texts([0.0, 1e15])[1], "2.0e14");
    }

    #[test]
    fn scales_accept_any_values() {
        assert!(Scale::around([f64::NAN, f64::INFINITY], [0.0, 1.0]).is_none());
        for values in [[0.0, 0.0], [5.0, 5.0], [f64::MIN, f64::MAX], [1e-300, 2e-300], [-1.0, 1e18]]
        {
            let scale = Scale::around(values, [10.0, 110.0]).unwrap();
            for value in values {
                assert!((10.0..=110.0).contains(&scale.at(value)), "{values:?}");
            }
            assert!(scale.ticks(5).len() <= 11, "{values:?}");
        }
    }

    #[test]
    fn paths_are_short_and_true() {
        let mut path = Path::default();
        path.move_to([1.4, 2.0]);
        for point in [[3.0, 1.0], [3.2, 1.1], [2.0, 5.0], [4.0, 5.0]] {
            path.line_to(point);
        }
        assert_eq!(path.d(), "M1 2l2-1-1 4 2 0");
    }
}
