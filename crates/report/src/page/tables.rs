//! The tables of a comparison, with the same rows, figures and marks as the text.

use compare::{Comparison, Kind, Row, Statistic, Table, Verdict};
use maud::{Markup, html};
use model::Mean;

use super::svg;
use crate::ascii::excerpt;
use crate::document::{self, figure};
use crate::heading;
use crate::table::{Cells, below, cells, moved, word};

/// Maps the statistic of a row to that of its block. Statistics that differ only in the kind of mean share
/// a block.
fn rank(row: &Row) -> Statistic {
    match row.statistic {
        Statistic::HStddev => Statistic::Stddev,
        Statistic::HCoeffVar => Statistic::CoeffVar,
        Statistic::Best(_) => Statistic::Best(Mean::Amean),
        mean if mean.is_mean() => Statistic::Amean,
        other => other,
    }
}

/// Lays out a table with the text below it, except oddities.
pub fn table(table: &Table, comparison: &Comparison) -> Markup {
    let (table, still) = &moved(table);
    html! {
        (figures(table, comparison))
        @let below = still.whole().into_iter().chain(below(table, comparison, true));
        (document::html(&below.map(document::note).collect::<Vec<_>>(), 3))
    }
}

/// Lays out the rows of a table.
pub fn figures(table: &Table, comparison: &Comparison) -> Markup {
    let columns: Vec<Cells> = (0..comparison.variants.len())
        .map(|number| cells(table, number, Some(comparison)))
        .collect();
    let mut places = 0..;
    let blocks: Vec<Vec<(usize, &Row)>> = table
        .rows
        .chunk_by(|a, b| match table.kind {
            Kind::Metrics => rank(a) == rank(b),
            Kind::Duration | Kind::Counters | Kind::Events => a.section == b.section,
        })
        .map(|rows| rows.iter().map(|row| (places.next().unwrap_or(0), row)).collect())
        .collect();
    let are_means = |rows: &[(usize, &Row)]| {
        table.kind == Kind::Metrics && rows.first().is_some_and(|(_, row)| row.statistic.is_mean())
    };
    html! {
        div class="table" {
            table class="figures" {
                caption { (heading::what(table, comparison)) }
                thead {
                    tr {
                        th scope="col" { (head(table.kind)) }
                        @for (number, variant) in comparison.variants.iter().enumerate() {
                            th scope="col" colspan=[(number > 0).then_some(2)] {
                                (svg::key(number)) " " (excerpt(&variant.name))
                            }
                        }
                    }
                }
                @for rows in &blocks {
                    tbody class=[are_means(rows).then_some("means")] {
                        @if let Some(section) = rows.first().and_then(|(_, row)| row.section) {
                            tr {
                                th scope="rowgroup" colspan=(2 * columns.len()) { (section) }
                            }
                        }
                        @for (place, row) in rows {
                            tr {
                                th scope="row" { (label(table, row, comparison)) }
                                @for (column, cells) in columns.iter().enumerate() {
                                    (cell(cells, *place, row, column))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Lays out a value and its gain. If the table has no gains, the value has its marks on both sides. The
/// baseline has no gain over itself.
fn cell(cells: &Cells, place: usize, row: &Row, column: usize) -> Markup {
    let (value, beside) = (cells.values[place].trim(), cells.gains[place].trim());
    let spread = cells.spreads[place].trim();
    let verdict = row.verdict(column);
    html! {
        @if cells.directed && column > 0 {
            td { (figure(value)) }
            td class={ "gain " (verdict.map_or("none", Verdict::name)) } { (unpadded(beside)) }
        } @else if cells.directed {
            td { (figure(value)) }
        } @else {
            td colspan=[(column > 0).then_some(2)] {
                @match value.strip_prefix(['[', '?']) {
                    Some(marked) => { (&value[..1]) (figure(marked)) (beside) }
                    None => (figure(value)),
                }
                @if !spread.is_empty() { small { " " (spread) } }
            }
        }
    }
}

/// Removes the padding of a gain, and formats its number for a page.
fn unpadded(gain: &str) -> String {
    let gain = gain.replace(' ', "");
    let inner = gain.trim_start_matches(['(', '[', '?']);
    format!("{}{}", &gain[..gain.len() - inner.len()], figure(inner))
}

fn head(kind: Kind) -> &'static str {
    match kind {
        Kind::Metrics => "Metric",
        Kind::Duration => "Duration",
        Kind::Counters => "Counter",
        Kind::Events => "Event",
    }
}

fn label(table: &Table, row: &Row, comparison: &Comparison) -> Markup {
    html! {
        @if let Some(word) = word(comparison, table.kind) { span class="of" { (word) } " " }
        @if table.kind == Kind::Metrics { span class="of" { (row.statistic) } " " }
        (excerpt(&row.metric))
        @if table.kind != Kind::Metrics && !row.unit.is_empty() { small { " " (excerpt(&row.unit)) } }
    }
}
