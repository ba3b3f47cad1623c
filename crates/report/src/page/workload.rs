//! One workload: its tables, then its samples, its series and its nodes.

use compare::{Comparison, Kind, Plots, Row};
use maud::{Markup, html};
use model::count;

use super::{convergence, distribution, dots, series, svg, tables};
use crate::ascii::excerpt;
use crate::oddities::left_out;
use crate::verdicts;

pub fn section(
    number: usize,
    name: &str,
    comparison: &Comparison,
    plots: Option<&Plots>,
) -> Markup {
    let of_workload = comparison.tables.iter().filter(|table| table.workload == name);
    let (metrics, others): (Vec<_>, Vec<_>) =
        of_workload.partition(|table| table.kind == Kind::Metrics);
    html! {
        section id={ "w" (number) } class="workload" {
            h2 { (excerpt(name)) }
            div class="tables" {
                div { @for table in &metrics { (tables::table(table, comparison)) } }
                div {
                    @for table in &others {
                        @match table.kind {
                            Kind::Counters => details open {
                                summary { "Counters" }
                                (tables::table(table, comparison))
                            }
                            Kind::Metrics | Kind::Duration => (tables::table(table, comparison)),
                        }
                    }
                }
            }
            @let said = metrics.iter().map(|table| verdicts::text(table, comparison));
            @for text in said.filter(|text| !text.is_empty()) {
                details {
                    summary { "What the boots say" }
                    pre tabindex="0" { (text) }
                }
            }
            @if let Some(plots) = plots { (drawn(plots, comparison)) }
        }
    }
}

fn drawn(plots: &Plots, comparison: &Comparison) -> Markup {
    let mean_of = |name: &str| mean_row(comparison, &plots.workload, name);
    let mut own = comparison.tables.iter().filter(|table| table.workload == plots.workload);
    html! {
        @if !plots.scatters.is_empty() {
            h3 { "Every sample" }
            (keys(comparison))
            p class="note" { (dots::legend(comparison)) }
            @if own.any(|table| !left_out(table, comparison).is_empty()) {
                p class="note" { "What is left out as warm-up is drawn, and is in no mean and no curve." }
            }
            div class="plots" {
                @for scatter in &plots.scatters {
                    (dots::figure(scatter, mean_of(&scatter.name), comparison))
                }
            }
            @if plots.scatters_left_out > 0 {
                p class="note" { "Not drawn: " (count(plots.scatters_left_out, "more metric")) "." }
            }
        }
        @if plots.scatters.iter().any(|scatter| !scatter.distributions.is_empty()) {
            h3 { "Distributions" }
            (keys(comparison))
            p class="note" {
                "The percentage of samples at or below a value, all boots together. A step is where many \
                 samples lie; a flat part between two steps parts two modes."
            }
            div class="plots" {
                @for scatter in &plots.scatters {
                    @if !scatter.distributions.is_empty() { (distribution::figure(scatter, comparison)) }
                }
            }
        }
        @if !plots.panels.is_empty() {
            h3 { "Over time" }
            (keys(comparison))
            p class="note" { (series::legend(plots, comparison)) }
            div class="plots" {
                @for panel in &plots.panels { (series::figure(panel, plots, comparison)) }
            }
        }
        @if !plots.nodes.is_empty() {
            h3 { "Node by node" }
            (convergence::families(plots, comparison))
        }
    }
}

/// The row of means of an operation.
fn mean_row<'a>(comparison: &'a Comparison, workload: &str, name: &str) -> Option<&'a Row> {
    let tables = comparison.tables.iter();
    let mut tables = tables.filter(|it| it.workload == workload && it.kind == Kind::Metrics);
    tables.find_map(|table| {
        table.rows.iter().find(|row| row.statistic.is_mean() && row.metric == name)
    })
}

/// Which colour and shape is which variant.
fn keys(comparison: &Comparison) -> Markup {
    html! {
        ul class="keys small" {
            @for (column, variant) in comparison.variants.iter().enumerate() {
                li { (svg::key(column)) " " (excerpt(&variant.name)) }
            }
        }
    }
}
