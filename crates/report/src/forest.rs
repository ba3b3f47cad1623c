//! Little plots of gains with their intervals or luck floors, on a common scale (a forest plot).

use compare::{Comparison, Row};
use maud::{Markup, html};
use model::Mode;

use crate::document::svg::{Scale, px};
use crate::exact;
use crate::words::decimal;

/// Width and height of a little plot.
const FOREST: [f64; 2] = [200.0, 16.0];
/// The plots reach to at most this multiple of the median extent of intervals, so that one huge change does
/// not flatten the others.
const REACH: f64 = 5.0;

/// A gain in percent with its interval; positive is better. In exact mode it is the change with its luck
/// floor; positive is more.
#[derive(Clone, Copy)]
pub struct Gain {
    pub gain: f64,
    pub low: f64,
    pub high: f64,
}

impl Gain {
    /// Returns the gain of a column with its interval, or its change with the luck floor. `None` if it is
    /// not known.
    pub fn of(row: &Row, column: usize, mode: Mode) -> Option<Self> {
        if let Some((evidence, better)) = row.evidence(column).zip(row.better) {
            let (gain, [low, high]) = (evidence.gain(better)?, evidence.gains(better)?);
            return Some(Self { gain, low, high });
        }
        let gain = match mode {
            Mode::Measured => row.gain(column)?,
            Mode::Exact => exact::percent(row, column)?,
        };
        let floor = exact::floor_percent(row, column).unwrap_or(0.0);
        Some(Self { gain, low: gain - floor, high: gain + floor })
    }
}

/// Returns how far the plots reach to both sides, in percent; at least 1.
pub fn reach(gains: impl Iterator<Item = Gain>) -> f64 {
    let ends = gains.map(|it| it.low.abs().max(it.high.abs())).filter(|end| end.is_finite());
    let mut ends: Vec<f64> = ends.collect();
    ends.sort_by(f64::total_cmp);
    let middle = ends.get(ends.len() / 2).copied().unwrap_or(1.0);
    let most = ends.last().copied().unwrap_or(1.0);
    most.min(REACH * middle).max(1.0)
}

/// Returns the word for a column of these figures. A gain is positive if better, a change if there is more.
pub fn gain_word(comparison: &Comparison) -> &'static str {
    match comparison.mode {
        Mode::Measured => "Gain",
        Mode::Exact => "Change",
    }
}

/// Returns the margin in percent. It is 0 in exact mode, where plots show the luck floor instead.
pub fn margin(comparison: &Comparison) -> f64 {
    match comparison.mode {
        Mode::Measured => 100.0 * comparison.judging.margin,
        Mode::Exact => 0.0,
    }
}

/// Draws a gain and its interval on a line from `-reach` to `reach`. The middle of the line means no
/// change.
pub fn forest(gain: Gain, reach: f64, class: &str, comparison: &Comparison) -> Markup {
    let (margin, word) = (margin(comparison), gain_word(comparison));
    let [width, height] = FOREST;
    let scale = Scale::between([-reach, reach], [4.0, width - 4.0]);
    let middle = height / 2.0;
    let at = |value: f64| scale.at(value.clamp(-reach, reach));
    let [low, here, high] = [gain.low, gain.gain, gain.high].map(at);
    let cap = |x: f64, beyond: bool, tip: f64| {
        match beyond {
            true => format!("M{0} {1}l{2} 3.5-{2} 3.5", px(x), px(middle - 3.5), px(tip)),
            false => format!("M{} {}v6", px(x), px(middle - 3.0)),
        }
        .replace("--", "")
    };
    let title = format!("{word} {:.2}%, from {:.2} to {:.2}%", gain.gain, gain.low, gain.high);
    html! {
        svg class={ "forest " (class) } viewBox={ "0 0 " (px(width)) " " (px(height)) }
            width=(px(width)) height=(px(height)) role="img" {
            title { (title) }
            @if margin > 0.0 {
                rect class="margin" x=(px(at(-margin))) y="0"
                    width=(px(at(margin) - at(-margin))) height=(px(height)) {}
            }
            path class="zero" d={ "M" (px(scale.at(0.0))) " 0V" (px(height)) } {}
            path class="interval" d={ "M" (px(low)) " " (px(middle)) "H" (px(high)) } {}
            path class="caps" d={
                (cap(low, gain.low < -reach, -3.5)) (cap(high, gain.high > reach, 3.5))
            } {}
            path class="point" d={ "M" (px(here)) " " (px(middle - 3.5)) "l3.5 3.5-3.5 3.5-3.5-3.5z" } {}
        }
    }
}

/// Draws the scale above a column of plots.
pub fn ruler(reach: f64, comparison: &Comparison) -> Markup {
    let right = match comparison.mode {
        Mode::Measured => "better",
        Mode::Exact => "more",
    };
    let [width, height] = FOREST;
    let end = decimal(Some(reach), if reach < 10.0 { 1 } else { 0 });
    html! {
        svg class="forest" viewBox={ "0 0 " (px(width)) " " (px(height)) }
            width=(px(width)) height=(px(height)) role="img" {
            title { (gain_word(comparison)) " from \u{2212}" (end) " to +" (end) " percent; " (right) " is to the right" }
            text x="0" y="12" { "\u{2212}" (end) "%" }
            text x=(px(width / 2.0)) y="12" text-anchor="middle" { "0" }
            text x=(px(width)) y="12" text-anchor="end" { "+" (end) "%" }
        }
    }
}
