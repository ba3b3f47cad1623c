//! Distributions of samples, with a curve for each variant.

use compare::Comparison;
use maud::{Markup, html};
use plots::Scatter;

use super::dots::caption;
use super::svg::{GROUPS, Path, Scale, WIDTH, bottom_axis, left_axis, marks, px};
use crate::ascii::excerpt;

const LEFT: f64 = 34.0;
const RIGHT: f64 = WIDTH - 6.0;
const BOTTOM: f64 = 130.0;

pub fn figure(scatter: &Scatter, comparison: &Comparison) -> Markup {
    let values = scatter.distributions.iter().flatten().map(|step| step[0]);
    let Some(across) = Scale::around(values, [LEFT, RIGHT]) else {
        return html! {};
    };
    let percent = Scale::between([0.0, 100.0], [BOTTOM, 6.0]);
    let curves = scatter.distributions.iter().zip(&comparison.variants).enumerate();
    html! {
        figure {
            figcaption { (caption(scatter)) }
            svg viewBox={ "0 0 " (px(WIDTH)) " " (px(BOTTOM + 16.0)) } role="img" {
                title { "Distribution of " (excerpt(&scatter.name)) ": percent of samples at or below" }
                (left_axis(&percent, LEFT, RIGHT))
                (bottom_axis(&across, 6.0, BOTTOM))
                @for (group, (steps, variant)) in curves {
                    @if !steps.is_empty() {
                        g {
                            title { (excerpt(&variant.name)) }
                            path class={ "line g" (group % GROUPS) } transform="scale(.1)"
                                d=(stairs(steps, &across, &percent)) {}
                            @if let Some([value, _]) = steps.iter().find(|step| step[1] >= 0.5) {
                                (marks(group, [[across.at(*value), percent.at(50.0)]], 3.0))
                            }
                        }
                    }
                }
            }
        }
    }
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
