//! The patches of a series: what each moved against the step before it.

use compare::{Comparison, Step, Verdict};
use maud::{Markup, html};

use super::judgement::{Judgement, forest, reach};
use crate::ascii::{escape, excerpt};
use crate::steps;

/// Most figures of a patch that are drawn.
const MAX_PLOTS: usize = 8;

/// A line for each patch; nothing if the variants are no steps.
pub fn section(comparison: &Comparison) -> Markup {
    let Some(title) = steps::title(comparison) else { return html! {} };
    let changed: Vec<Vec<Judgement<'_>>> = comparison.steps.iter().map(changed).collect();
    let reach = reach(changed.iter().flatten().filter_map(Judgement::gain));
    html! {
        section id="series" {
            h2 { "By patch" }
            div class="table" {
                table class="notes" {
                    caption { (title) "." }
                    thead { tr {
                        th scope="col" { "Step" }
                        th scope="col" { "Patch" }
                        th scope="col" { "What it moved" }
                    } }
                    tbody {
                        @for (step, changed) in comparison.steps.iter().zip(&changed) {
                            tr {
                                th scope="row" { (escape(&step.comparison.variants[1].name)) }
                                td { (excerpt(&step.patch)) }
                                td {
                                    @if changed.is_empty() { (steps::moved(&step.comparison)) }
                                    @for judgement in changed.iter().take(MAX_PLOTS) {
                                        (line(judgement, reach))
                                    }
                                    @if changed.len() > MAX_PLOTS {
                                        p { (changed.len() - MAX_PLOTS) " more figures changed." }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The figures that a patch changed.
fn changed(step: &Step) -> Vec<Judgement<'_>> {
    let comparison = &step.comparison;
    let verdicts = comparison.verdicts(1);
    let changed =
        verdicts.filter(|(.., it)| matches!(it, Verdict::Regression | Verdict::Improvement));
    changed
        .map(|(table, row, _)| Judgement { comparison, table, row, column: 1, point: None })
        .collect()
}

fn line(it: &Judgement<'_>, reach: f64) -> Markup {
    html! {
        p {
            (it.said())
            @if let (Some(gain), Some(verdict)) = (it.gain(), it.verdict()) {
                (forest(gain, reach, verdict.name(), it.comparison))
            }
        }
    }
}
