//! The section of a workload: its samples, the counters that moved most, its series and its nodes. Its
//! tables follow, folded.

use compare::{Comparison, Kind, Row, Table};
use maud::{Markup, html};
use model::count;
use plots::{Plots, Scatter};

use super::{convergence, distribution, dots, series, svg, tables};
use crate::ascii::excerpt;
use crate::brief::moved_most;
use crate::document;
use crate::oddities::{self, left_out};
use crate::verdicts;

pub fn section(
    number: usize,
    name: &str,
    comparison: &Comparison,
    plots: Option<&Plots>,
) -> Markup {
    let own: Vec<&Table> =
        comparison.tables.iter().filter(|table| table.workload == name).collect();
    let of = |kind: Kind| own.iter().copied().filter(move |table| table.kind == kind);
    html! {
        section id={ "w" (number) } class="workload" {
            h2 { (excerpt(name)) }
            @if let Some(plots) = plots { (samples(plots, comparison)) }
            @for table in of(Kind::Metrics) { (document::html(&oddities::blocks(table, comparison), 3)) }
            @for table in of(Kind::Counters) { (counters(table, comparison)) }
            @for table in of(Kind::Events) {
                h3 { "Events" }
                (tables::table(table, comparison))
            }
            @if let Some(plots) = plots { (curves(plots, comparison)) }
            h3 { "All figures" }
            @let said = of(Kind::Metrics).map(|table| verdicts::blocks(table, comparison));
            @for blocks in said.filter(|blocks| !blocks.is_empty()) {
                details {
                    summary { "Verdicts and evidence" }
                    (document::html(&blocks, 3))
                }
            }
            @for table in own.iter().filter(|table| table.kind != Kind::Events) {
                details {
                    summary { (kind(table)) ": " (count(table.rows.len(), "row")) }
                    (tables::table(table, comparison))
                    @if table.kind != Kind::Metrics { (document::html(&oddities::blocks(table, comparison), 3)) }
                }
            }
        }
    }
}

fn kind(table: &Table) -> &'static str {
    match table.kind {
        Kind::Metrics => "Metrics",
        Kind::Duration => "Durations",
        Kind::Counters => "Counters",
        Kind::Events => "Events",
    }
}

/// Lays out the counters that moved most.
fn counters(table: &Table, comparison: &Comparison) -> Markup {
    html! {
        @match moved_most(table, comparison) {
            None => {}
            Some(Err(none)) => p { "Counters: " (none) }
            Some(Ok((few, more))) => {
                h3 { "Counters that moved most" }
                (tables::figures(&few, comparison))
                @if let Some(more) = more { p class="note" { (more) } }
            }
        }
    }
}

/// Draws every sample. If some operations have a verdict, the samples of the others are folded.
fn samples(plots: &Plots, comparison: &Comparison) -> Markup {
    let mean_of = |scatter: &Scatter| mean_row(comparison, &plots.workload, &scatter.name);
    let is_judged = |scatter: &Scatter| mean_of(scatter).is_some_and(|row| row.is_judged());
    let (mut first, mut rest): (Vec<_>, Vec<_>) =
        plots.scatters.iter().partition(|scatter| is_judged(scatter));
    if first.is_empty() {
        std::mem::swap(&mut first, &mut rest);
    }
    let drawn = |scatters: &[&Scatter]| {
        html! {
            div class="plots" {
                @for scatter in scatters { (dots::figure(scatter, mean_of(scatter), comparison)) }
            }
        }
    };
    let mut own = comparison.tables.iter().filter(|table| table.workload == plots.workload);
    html! {
        @if !first.is_empty() {
            h3 { "Every sample" }
            (keys(comparison))
            (drawn(&first))
            p class="note" {
                (dots::legend(comparison))
                @if own.any(|table| !left_out(table, comparison).is_empty()) {
                    " Warm-up that is left out is drawn, but counts in no mean and no curve."
                }
            }
            @if !rest.is_empty() {
                details {
                    summary { "Samples of " (count(rest.len(), "metric")) " without a verdict" }
                    (drawn(&rest))
                }
            }
            @if plots.scatters_left_out > 0 {
                p class="note" { "Not drawn: " (count(plots.scatters_left_out, "more metric")) "." }
            }
        }
    }
}

/// Draws distributions, and figures over time.
fn curves(plots: &Plots, comparison: &Comparison) -> Markup {
    html! {
        @if plots.scatters.iter().any(|scatter| !scatter.distributions.is_empty()) {
            h3 { "Distributions" }
            (keys(comparison))
            p class="note" {
                "The percentage of samples at or below a value, all boots together. Many samples \
                 lie at a step; a flat part between two steps separates two peaks."
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

/// Returns the row of means of an operation.
fn mean_row<'a>(comparison: &'a Comparison, workload: &str, name: &str) -> Option<&'a Row> {
    let tables = comparison.tables.iter();
    let mut tables = tables.filter(|it| it.workload == workload && it.kind == Kind::Metrics);
    tables.find_map(|table| {
        table.rows.iter().find(|row| row.statistic.is_mean() && row.metric == name)
    })
}

/// Lays out the legend: the colour and shape of each variant.
fn keys(comparison: &Comparison) -> Markup {
    html! {
        ul class="keys small" {
            @for (column, variant) in comparison.variants.iter().enumerate() {
                li { (svg::key(column)) " " (excerpt(&variant.name)) }
            }
        }
    }
}
