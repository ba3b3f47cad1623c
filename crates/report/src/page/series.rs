//! Series of a workload over time, with the variants overlaid.

use compare::Comparison;
use model::count;
use plots::{Panel, Plots};

use super::short;
use super::time::{self, Surroundings};
use crate::ascii::excerpt;
use crate::document::Chart;

pub fn legend(plots: &Plots, comparison: &Comparison) -> String {
    let mut said =
        "Time runs from the beginning of an iteration. The strong line of a variant is its \
         iteration of median length; faint lines are the others."
            .to_owned();
    if plots.phases.iter().any(|phases| !phases.is_empty()) {
        let baseline = comparison.variants.first().map_or(String::new(), |it| short(&it.name));
        said.push_str(&format!(
            " Shaded: the phases of {baseline}. Strips above: the phases of each variant."
        ));
    }
    let left_out: usize = plots.iterations_left_out.iter().sum();
    if left_out > 0 {
        said.push_str(&format!(" Not drawn: {}.", count(left_out, "more iteration")));
    }
    said
}

/// Draws a series; `None` if it has no point.
pub fn chart(panel: &Panel, plots: &Plots, comparison: &Comparison) -> Option<Chart> {
    let shaded = plots.phases.first().map_or(&[][..], |phases| phases);
    let strips = plots.phases.iter().enumerate().map(|(group, phases)| (group, &**phases));
    let around = Surroundings::of(&[panel], plots, shaded, strips.collect())?;
    let name = |group: usize| {
        comparison.variants.get(group).map_or(String::new(), |variant| short(&variant.name))
    };
    Some(time::chart(panel, &around, format!("{} over time", excerpt(&panel.title)), &name))
}
