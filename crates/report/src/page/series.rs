//! Series of a workload over time, with the variants overlaid.

use compare::Comparison;
use maud::{Markup, html};
use model::count;
use plots::{Panel, Plots};

use super::short;
use super::time::{Surroundings, plot};
use crate::ascii::excerpt;

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

pub fn figure(panel: &Panel, plots: &Plots, comparison: &Comparison) -> Markup {
    let shaded = plots.phases.first().map_or(&[][..], |phases| phases);
    let strips = plots.phases.iter().enumerate().map(|(group, phases)| (group, &**phases));
    let Some(around) = Surroundings::of(&[panel], plots, shaded, strips.collect()) else {
        return html! {};
    };
    let name = |group: usize| {
        comparison.variants.get(group).map_or(String::new(), |variant| short(&variant.name))
    };
    let title = excerpt(&panel.title);
    html! {
        figure {
            figcaption {
                b { (title) }
                @if let Some(unit) = unit(panel) { " " small { (unit) } }
                @if !panel.what.is_empty() { small class="what" { (panel.what) } }
            }
            (plot(panel, &around, &format!("{title} over time"), &name))
        }
    }
}

/// Returns the unit, and whether the series shows growth since the iteration began. `None` if there is
/// nothing to say.
pub fn unit(panel: &Panel) -> Option<String> {
    match (panel.unit, panel.growth) {
        ("", true) => Some("since the iteration began".to_owned()),
        ("", false) => None,
        (unit, true) => Some(format!("{unit} since the iteration began")),
        (unit, false) => Some(unit.to_owned()),
    }
}
