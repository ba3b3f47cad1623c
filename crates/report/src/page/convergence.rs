//! Series by node, such as where memory and threads are. Each variant has a plot; the plots of one figure
//! share their scales.

use std::collections::BTreeSet;

use compare::Comparison;
use maud::{Markup, html};
use plots::{Panel, Plots};

use super::series::unit;
use super::time::{Surroundings, plot};
use super::{short, svg};
use crate::ascii::excerpt;

/// Draws all figures by node, each as a row of plots.
pub fn families(plots: &Plots, comparison: &Comparison) -> Markup {
    let curves = plots.nodes.iter().flatten().flat_map(|panel| &panel.curves);
    let nodes: BTreeSet<usize> = curves.map(|curve| curve.group).collect();
    html! {
        ul class="keys small" {
            @for number in &nodes { li { (svg::key(*number)) " " (node(*number)) } }
        }
        @for panels in &plots.nodes { (family(panels, plots, comparison)) }
    }
}

fn node(number: usize) -> String {
    format!("node {number}")
}

/// Draws one figure by node, with a plot for each variant.
fn family(panels: &[Panel], plots: &Plots, comparison: &Comparison) -> Markup {
    let all: Vec<&Panel> = panels.iter().collect();
    let title = panels.first().map_or(String::new(), |panel| excerpt(&panel.title));
    html! {
        h4 {
            (title)
            @if let Some(unit) = panels.first().and_then(unit) { " " small { (unit) } }
        }
        div class="plots" {
            @for (column, (panel, variant)) in panels.iter().zip(&comparison.variants).enumerate() {
                @let shaded = plots.phases.get(column).map_or(&[][..], |phases| phases);
                @if let Some(around) = Surroundings::of(&all, plots, shaded, Vec::new())
                    && !panel.curves.is_empty() {
                    @let name = short(&variant.name);
                    figure {
                        figcaption { b { (name) } }
                        (plot(panel, &around, &format!("{title} of {name} over time"), &node))
                    }
                }
            }
        }
    }
}
