//! Distributions of samples, with a curve for each variant.

use compare::Comparison;
use maud::html;
use plots::Scatter;

use super::dots::caption;
use crate::ascii::excerpt;
use crate::document::Chart;
use crate::document::svg::{GROUPS, Path, Scale, WIDTH, bottom_axis, left_axis, marks};
use crate::words::decimal;

const LEFT: f64 = 34.0;
const RIGHT: f64 = WIDTH - 6.0;
const BOTTOM: f64 = 130.0;

/// Draws the distribution of a metric; `None` if it has none.
pub fn chart(scatter: &Scatter, comparison: &Comparison) -> Option<Chart> {
    let values = scatter.distributions.iter().flatten().map(|step| step[0]);
    let across = Scale::around(values, [LEFT, RIGHT])?;
    let percent = Scale::between([0.0, 100.0], [BOTTOM, 6.0]);
    let curves = scatter.distributions.iter().zip(&comparison.variants).enumerate();
    let median = |steps: &[[f64; 2]]| steps.iter().find(|step| step[1] >= 0.5).map(|it| it[0]);
    let figures = curves.clone().filter_map(|(_, (steps, variant))| {
        Some(format!("{}: median {}", excerpt(&variant.name), decimal(Some(median(steps)?), 3)))
    });
    let figures = figures.collect::<Vec<_>>().join("; ");
    let shapes = html! {
        (left_axis(&percent, LEFT, RIGHT))
        (bottom_axis(&across, 6.0, BOTTOM))
        @for (group, (steps, variant)) in curves {
            @if !steps.is_empty() {
                g {
                    title { (excerpt(&variant.name)) }
                    path class={ "line g" (group % GROUPS) } transform="scale(.1)"
                        d=(stairs(steps, &across, &percent)) {}
                    @if let Some(value) = median(steps) {
                        (marks(group, [[across.at(value), percent.at(50.0)]], 3.0))
                    }
                }
            }
        }
    };
    Some(Chart {
        title: scatter.name.clone(),
        beside: caption(scatter),
        label: format!(
            "Distribution of {}: percent of samples at or below",
            excerpt(&scatter.name)
        ),
        figures,
        note: String::new(),
        class: "",
        size: [WIDTH, BOTTOM + 16.0],
        shapes,
    })
}

/// Draws the steps of a distribution as a line, on a grid of tenths of a unit of the drawing.
fn stairs(steps: &[[f64; 2]], across: &Scale, percent: &Scale) -> String {
    let tenths = |x: f64, y: f64| [10.0 * x, 10.0 * y];
    let mut path = Path::default();
    path.move_to(tenths(LEFT, percent.at(0.0)));
    let mut below = 0.0;
    for [value, share] in steps {
        path.line_to(tenths(across.at(*value), percent.at(below)));
        below = 100.0 * share;
        path.line_to(tenths(across.at(*value), percent.at(below)));
    }
    path.line_to(tenths(RIGHT, percent.at(below)));
    path.d()
}
