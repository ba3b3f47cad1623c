//! A plot over time, with curves and shaded phases. It has the data with which the script zooms into it.

use maud::{Markup, html};
use plots::{Panel, PhaseTimes, Plots};

use super::short;
use crate::ascii::excerpt;
use crate::document::Chart;
use crate::document::svg::{GROUPS, Path, Scale, WIDTH, left_axis, marks, px};
use crate::words::decimal;

const LEFT: f64 = 42.0;
const RIGHT: f64 = WIDTH - 6.0;
/// Height of the area of curves.
const HEIGHT: f64 = 112.0;
/// Height of the row with the names of phases.
const NAMES: f64 = 11.0;
/// Height of a variant's strip of phases.
const STRIP: f64 = 4.0;
/// Approximate width of a character in a phase's name.
const LETTER: f64 = 4.9;
/// Grid steps for each unit of the drawing. The points of curves lie on this grid.
const GRID: f64 = 10.0;

/// The scales and phases around the curves of some panels.
pub struct Surroundings<'a> {
    pub values: Scale,
    pub seconds: Scale,
    /// The phases that are shaded behind the curves and named.
    pub shaded: &'a [PhaseTimes],
    /// The phases of variants that are drawn as strips: the variant's column and its phases.
    pub strips: Vec<(usize, &'a [PhaseTimes])>,
}

impl<'a> Surroundings<'a> {
    /// Computes the scales that `panels` share. `None` if they have no point.
    pub fn of(
        panels: &[&Panel],
        plots: &'a Plots,
        shaded: &'a [PhaseTimes],
        strips: Vec<(usize, &'a [PhaseTimes])>,
    ) -> Option<Self> {
        let points =
            panels.iter().flat_map(|panel| &panel.curves).flat_map(|it| &it.runs).flatten();
        let strips: Vec<_> = strips.into_iter().filter(|(_, phases)| !phases.is_empty()).collect();
        let top = top(shaded, strips.len());
        let values = Scale::around(points.map(|point| point[1]), [top + HEIGHT, top + 3.0])?;
        let seconds = Scale::between([0.0, end(plots)], [LEFT, RIGHT]);
        Some(Self { values, seconds, shaded, strips })
    }

    fn top(&self) -> f64 {
        top(self.shaded, self.strips.len())
    }
}

fn top(shaded: &[PhaseTimes], strips: usize) -> f64 {
    let names = if shaded.is_empty() { 0.0 } else { NAMES };
    names + strips as f64 * (STRIP + 1.0)
}

/// Returns the end of the longest curve of a workload in seconds. All plots of the workload share this time
/// axis.
fn end(plots: &Plots) -> f64 {
    let panels = plots.panels.iter().chain(plots.nodes.iter().flatten());
    let runs = panels.flat_map(|panel| &panel.curves).flat_map(|curve| &curve.runs);
    runs.filter_map(|run| run.last()).map(|point| point[0]).fold(0.0, f64::max)
}

/// Draws the plot. `named` returns the name of a curve's group. The caller adds the title.
pub fn chart(
    panel: &Panel,
    around: &Surroundings<'_>,
    label: String,
    named: &dyn Fn(usize) -> String,
) -> Chart {
    let top = around.top();
    let bottom = top + HEIGHT;
    let wide = (RIGHT - LEFT) * GRID;
    let mut curves: Vec<_> = panel.curves.iter().collect();
    curves.sort_by_key(|curve| curve.chief);
    let shapes = html! {
        (left_axis(&around.values, LEFT, RIGHT))
        svg class="area" x=(px(LEFT)) y="0" width=(px(RIGHT - LEFT)) height=(px(bottom))
            viewBox={ "0 0 " (px(wide)) " " (px(bottom * GRID)) } preserveAspectRatio="none"
            data-end=(px(1000.0 * around.seconds.values()[1])) {
            (shades(around, bottom))
            @for curve in curves {
                path class={ "line g" (curve.group % GROUPS) @if !curve.chief { " faint" } }
                    d=(line(&curve.runs, around)) {
                    title { (named(curve.group)) ", " (curve.boot) ", iteration " (curve.iteration) }
                }
            }
            rect class="selection" y=(px(top * GRID)) width="0" height=(px(HEIGHT * GRID)) {}
        }
        g class="whole" {
            (names(around))
            @for (group, point) in ends(panel) {
                (marks(group, [[around.seconds.at(point[0]), around.values.at(point[1])]], 3.0))
            }
        }
        g class="ticks across" {
            @for (x, text) in &around.seconds.ticks(5) {
                text x=(px(*x)) y=(px(bottom + 12.0)) text-anchor="middle" { (text) " s" }
            }
        }
    };
    let figures = ends(panel).map(|(group, [second, value])| {
        let [second, value] = [second, value].map(|it| decimal(Some(it), 2));
        format!("{}: {value} at {second} s", named(group))
    });
    Chart {
        title: panel.title.to_string(),
        beside: unit(panel).unwrap_or_default(),
        label,
        figures: figures.collect::<Vec<_>>().join("; "),
        note: panel.what.to_string(),
        class: "",
        size: [WIDTH, bottom + 15.0],
        shapes,
    }
}

/// Returns the unit, and whether the series shows growth since the iteration began. `None` if there is
/// nothing to say.
fn unit(panel: &Panel) -> Option<String> {
    match (panel.unit, panel.growth) {
        ("", true) => Some("since the iteration began".to_owned()),
        ("", false) => None,
        (unit, true) => Some(format!("{unit} since the iteration began")),
        (unit, false) => Some(unit.to_owned()),
    }
}

/// Draws the phases: shaded behind the curves, and as a strip for each variant above them.
fn shades(around: &Surroundings<'_>, bottom: f64) -> Markup {
    let place = |second: f64| GRID * (around.seconds.at(second) - LEFT);
    let names = if around.shaded.is_empty() { 0.0 } else { NAMES };
    html! {
        @for (number, phase) in around.shaded.iter().enumerate() {
            rect class={ "phase p" (number % 2) } x=(px(place(phase.begin))) y="0"
                width=(px(place(phase.end) - place(phase.begin))) height=(px(GRID * bottom)) {
                title { "phase " (excerpt(&phase.name)) }
            }
        }
        @for (row, (group, phases)) in around.strips.iter().enumerate() {
            @for (number, phase) in phases.iter().enumerate() {
                rect class={ "strip f" (group % GROUPS) " p" (number % 2) } x=(px(place(phase.begin)))
                    y=(px(GRID * (names + row as f64 * (STRIP + 1.0))))
                    width=(px(place(phase.end) - place(phase.begin))) height=(px(GRID * STRIP)) {
                    title { "phase " (excerpt(&phase.name)) }
                }
            }
        }
    }
}

/// Writes the names of those shaded phases that are wide enough.
fn names(around: &Surroundings<'_>) -> Markup {
    let fitting = around.shaded.iter().filter_map(|phase| {
        let [begin, end] = [phase.begin, phase.end].map(|second| around.seconds.at(second));
        let name = short(&phase.name);
        let fits = name.chars().count() as f64 * LETTER <= end - begin;
        fits.then_some(((begin + end) / 2.0, name))
    });
    html! {
        @for (x, name) in fitting { text x=(px(x)) y="8" text-anchor="middle" { (name) } }
    }
}

/// Returns the group and the end of each strong curve. The ends are marked with the shapes of the groups,
/// because not every reader can tell the colours apart.
fn ends(panel: &Panel) -> impl Iterator<Item = (usize, [f64; 2])> {
    let chiefs = panel.curves.iter().filter(|curve| curve.chief);
    chiefs.filter_map(|curve| Some((curve.group, *curve.runs.last()?.last()?)))
}

/// Draws a curve on the grid of the plot area.
fn line(runs: &[Vec<[f64; 2]>], around: &Surroundings<'_>) -> String {
    let mut path = Path::default();
    for run in runs {
        let place = |point: &[f64; 2]| {
            [GRID * (around.seconds.at(point[0]) - LEFT), GRID * around.values.at(point[1])]
        };
        let Some((first, rest)) = run.split_first() else { continue };
        path.move_to(place(first));
        // A single point is drawn as a dot.
        if rest.is_empty() {
            path.dot();
        }
        for point in rest {
            path.line_to(place(point));
        }
    }
    path.d()
}
