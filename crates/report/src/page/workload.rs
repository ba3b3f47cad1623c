//! The section of a workload: its samples, the counters that moved most, its series and its nodes. Its
//! tables follow, folded.

use compare::{Comparison, Kind, Row, Table};
use kernelfiles::catalogue;
use model::count;
use plots::{Panel, Plots, Scatter};

use super::{convergence, distribution, dots, series};
use crate::brief;
use crate::document::{Block, note, part};
use crate::oddities::{self, left_out};
use crate::table;
use crate::verdicts;

/// Lays out the figures of the workload `name`.
pub fn blocks(name: &str, comparison: &Comparison, plots: Option<&Plots>) -> Vec<Block> {
    let own: Vec<&Table> =
        comparison.tables.iter().filter(|table| table.workload == name).collect();
    let of = |kind: Kind| own.iter().copied().filter(move |table| table.kind == kind);
    let titled =
        |title: &str, blocks: Vec<Block>| (!blocks.is_empty()).then(|| part(title, blocks));
    let mut all: Vec<Block> = plots.into_iter().flat_map(|it| samples(it, comparison)).collect();
    all.extend(of(Kind::Metrics).flat_map(|table| oddities::blocks(table, comparison)));
    let counters = of(Kind::Counters).map(|table| brief::counters(table, comparison));
    all.extend(counters.filter_map(|blocks| titled("Counters that moved most", blocks)));
    all.extend(of(Kind::Events).map(|table| part("Events", table::blocks(table, comparison))));
    all.extend(plots.into_iter().flat_map(|plots| curves(plots, comparison)));
    let said = of(Kind::Metrics).map(|table| verdicts::blocks(table, comparison));
    let said = said.filter(|blocks| !blocks.is_empty());
    let said = said.map(|blocks| Block::Fold("Verdicts and evidence".to_owned(), blocks));
    let tables = own.iter().filter(|table| table.kind != Kind::Events).map(|table| {
        let mut blocks = table::blocks(table, comparison);
        if table.kind != Kind::Metrics {
            blocks.extend(oddities::blocks(table, comparison));
        }
        Block::Fold(format!("{}: {}", kind(table), count(table.rows.len(), "row")), blocks)
    });
    all.extend(titled("All figures", said.chain(tables).collect()));
    all
}

fn kind(table: &Table) -> &'static str {
    match table.kind {
        Kind::Metrics => "Metrics",
        Kind::Duration => "Durations",
        Kind::Counters => "Counters",
        Kind::Events => "Events",
    }
}

/// Draws every sample. If some operations have a verdict, the samples of the others are folded.
fn samples(plots: &Plots, comparison: &Comparison) -> Option<Block> {
    let mean_of = |scatter: &Scatter| mean_row(comparison, &plots.workload, &scatter.name);
    let is_judged = |scatter: &Scatter| mean_of(scatter).is_some_and(|row| row.is_judged());
    let (mut first, mut rest): (Vec<_>, Vec<_>) =
        plots.scatters.iter().partition(|scatter| is_judged(scatter));
    if first.is_empty() {
        std::mem::swap(&mut first, &mut rest);
    }
    let drawn = |scatters: &[&Scatter]| {
        let charts = scatters.iter().filter_map(|it| dots::chart(it, mean_of(it), comparison));
        Block::Charts(keys(comparison), charts.collect())
    };
    let mut own = comparison.tables.iter().filter(|table| table.workload == plots.workload);
    let warm_up = match own.any(|table| !left_out(table, comparison).is_empty()) {
        true => " Warm-up that is left out is drawn, but counts in no mean and no curve.",
        false => "",
    };
    let mut blocks = vec![drawn(&first), note(format!("{}{warm_up}", dots::legend(comparison)))];
    if !rest.is_empty() {
        let of = count(rest.len(), "metric");
        blocks.push(Block::Fold(format!("Samples of {of} without a verdict"), vec![drawn(&rest)]));
    }
    if plots.scatters_left_out > 0 {
        let more = count(plots.scatters_left_out, "more metric");
        blocks.push(note(format!("Not drawn: {more}.")));
    }
    (!first.is_empty()).then(|| part("Every sample", blocks))
}

/// Draws distributions, and figures over time.
fn curves(plots: &Plots, comparison: &Comparison) -> Vec<Block> {
    let mut blocks = Vec::new();
    let scatters = plots.scatters.iter().filter(|it| !it.distributions.is_empty());
    let charts = scatters.filter_map(|it| distribution::chart(it, comparison));
    let charts: Vec<_> = charts.collect();
    if !charts.is_empty() {
        let said = "The percentage of samples at or below a value, all boots together. Many samples \
                    lie at a step; a flat part between two steps separates two peaks.";
        blocks.push(part("Distributions", [note(said), Block::Charts(keys(comparison), charts)]));
    }
    // The text above says that no counter differs: then none is drawn.
    let own = comparison.tables.iter().filter(|table| table.workload == plots.workload);
    let mut counters = own.filter(|table| table.kind == Kind::Counters);
    let none_differs = counters.any(|it| matches!(brief::moved_most(it, comparison), Some(Err(_))));
    let is_drawn = |it: &&Panel| !none_differs || catalogue::find(&it.title).is_none();
    let panels = plots.panels.iter().filter(is_drawn);
    let charts = panels.filter_map(|it| series::chart(it, plots, comparison));
    let charts: Vec<_> = charts.collect();
    if !charts.is_empty() {
        let said = note(series::legend(plots, comparison));
        blocks.push(part("Over time", [said, Block::Charts(keys(comparison), charts)]));
    }
    if !plots.nodes.is_empty() {
        blocks.push(part("Node by node", convergence::families(plots, comparison)));
    }
    blocks
}

/// Returns the row of means of an operation.
fn mean_row<'a>(comparison: &'a Comparison, workload: &str, name: &str) -> Option<&'a Row> {
    let tables = comparison.tables.iter();
    let mut tables = tables.filter(|it| it.workload == workload && it.kind == Kind::Metrics);
    tables.find_map(|table| {
        table.rows.iter().find(|row| row.statistic.is_mean() && row.metric == name)
    })
}

/// Returns the legend: the group and the name of each variant.
fn keys(comparison: &Comparison) -> Vec<(usize, String)> {
    comparison.variants.iter().map(|it| it.name.clone()).enumerate().collect()
}
