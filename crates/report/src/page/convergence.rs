//! Series by node, such as where memory and threads are. Each variant has a plot; the plots of one figure
//! share their scales.

use std::collections::BTreeSet;

use compare::Comparison;
use plots::{Panel, Plots};

use super::short;
use super::time::{self, Surroundings};
use crate::ascii::excerpt;
use crate::document::{Block, Chart, part};

/// Draws all figures by node, each as a row of plots.
pub fn families(plots: &Plots, comparison: &Comparison) -> Vec<Block> {
    let curves = plots.nodes.iter().flatten().flat_map(|panel| &panel.curves);
    let nodes: BTreeSet<usize> = curves.map(|curve| curve.group).collect();
    let nodes: Vec<(usize, String)> = nodes.into_iter().map(|it| (it, node(it))).collect();
    let family = |panels: &Vec<Panel>| {
        let title = panels.first().map_or("", |panel| &*panel.title);
        let charts = family(panels, plots, comparison);
        part(title, [Block::Charts(nodes.clone(), charts)])
    };
    plots.nodes.iter().map(family).collect()
}

fn node(number: usize) -> String {
    format!("node {number}")
}

/// Draws one figure by node, with a plot for each variant.
fn family(panels: &[Panel], plots: &Plots, comparison: &Comparison) -> Vec<Chart> {
    let all: Vec<&Panel> = panels.iter().collect();
    let of = panels.iter().zip(&comparison.variants).enumerate();
    let of = of.filter(|(_, (panel, _))| !panel.curves.is_empty());
    let charts = of.filter_map(|(column, (panel, variant))| {
        let shaded = plots.phases.get(column).map_or(&[][..], |phases| phases);
        let around = Surroundings::of(&all, plots, shaded, Vec::new())?;
        let name = short(&variant.name);
        let label = format!("{} of {name} over time", excerpt(&panel.title));
        Some(Chart { title: name, ..time::chart(panel, &around, label, &node) })
    });
    charts.collect()
}
