//! The points of a sweep: the verdicts at each point, and where they change.

use compare::{
    Comparison, PointComparison, PointFigure, PointVerdict, PointVerdicts, Statistic,
    VerdictChange, verdicts_by_point,
};
use model::Mode;

use crate::ascii::{escape, few};
use crate::document::{Block, Column, part, sentence, table};
use crate::effects::VERDICT;
use crate::exact;
use crate::steps::without_figures;
use crate::verdicts;

/// Most changes of verdicts that are named; the others are counted.
const MAX_TURNS: usize = 12;

/// Lays out the verdicts by point; nothing if the experiment is not a sweep.
pub fn blocks(comparison: &Comparison) -> Vec<Block> {
    let Some(PointComparison { comparison: first, .. }) = comparison.points.first() else {
        return Vec::new();
    };
    let all = verdicts_by_point(&comparison.points);
    let figure = |figure: &PointVerdicts<'_>| {
        let rows = figure.points.iter().map(|place| {
            let verdict = place.found.map_or("unknown", |found| found.verdict.name());
            vec![place.point.name.clone(), verdict.to_owned(), said(place)]
        });
        let columns = [Column::words(""), VERDICT, Column::sentences("")];
        part(name(figure, &all, first), [table(columns, rows.collect())])
    };
    let said = turns(&all).into_iter().map(sentence).chain(all.iter().map(figure));
    let whole = part(format!("{}:", heading(comparison)), said.collect::<Vec<_>>());
    [whole].into_iter().chain(unmet(comparison)).collect()
}

/// Returns a sentence on what is compared, and how it is judged; empty if the experiment is not a sweep.
pub fn heading(comparison: &Comparison) -> String {
    let Some(PointComparison { comparison: first, .. }) = comparison.points.first() else {
        return String::new();
    };
    let settings = match first.mode {
        Mode::Measured => verdicts::level(first),
        Mode::Exact => exact::level() + " of sweeps",
    };
    let baseline = first.variants.first().map(|it| escape(&it.name)).unwrap_or_default();
    format!("By point, each variant against {baseline} at the same point ({settings})")
}

/// Returns the name of a figure, with its workload and its variant if there are several.
fn name(along: &PointVerdicts<'_>, all: &[PointVerdicts<'_>], first: &Comparison) -> String {
    let mut name = escape(along.metric);
    if all.iter().any(|other| other.workload != along.workload) {
        name = format!("{} {name}", escape(along.workload));
    }
    if first.variants.len() > 2 {
        name.push_str(&format!(", {}", escape(along.variant)));
    }
    name
}

/// Returns the evidence at a point, or why there is none.
pub fn said(place: &PointFigure<'_>) -> String {
    let comparison = &place.point.comparison;
    let Some(PointVerdict { row, column, verdict, .. }) = place.found else {
        return without_figures(comparison).unwrap_or_else(|| "no such figure".to_owned());
    };
    let evidence = verdicts::evidence(row, verdict, comparison, column);
    match row.statistic {
        Statistic::Equal => format!("{evidence}, at equal entries"),
        _ => evidence,
    }
}

/// Returns a sentence for each change of a verdict from point to point, up to a limit; one sentence if no
/// verdict changes.
pub fn turns(all: &[PointVerdicts<'_>]) -> Vec<String> {
    let several = all.len() > 1;
    let of = |along: &PointVerdicts<'_>| {
        let figure = match several {
            true => format!(" on {} of {}", escape(along.metric), escape(along.variant)),
            false => String::new(),
        };
        let turns = along.changes().into_iter();
        let sentence = |VerdictChange { after, from, at, to }: VerdictChange<'_>| {
            let [after, at] = [after, at].map(escape);
            let [from, to] = [from, to].map(|verdict| verdict.name());
            format!("The verdict{figure} changes from {from} at {after} to {to} at {at}.")
        };
        turns.map(sentence).collect::<Vec<_>>()
    };
    let turns: Vec<String> = all.iter().flat_map(of).collect();
    if !turns.is_empty() {
        return few(MAX_TURNS, turns);
    }
    let open = all.iter().map(|along| along.undecided().count()).sum::<usize>();
    let undecided = match open {
        0 => String::new(),
        _ => format!("; {} undecided or unknown", model::count(open, "verdict")),
    };
    match all.is_empty() {
        true => vec!["No point has a verdict.".to_owned()],
        false => vec![format!("No verdict changes from point to point{undecided}.")],
    }
}

/// Returns sentences on rows that were chosen for verdicts and that a point lacks.
pub fn unmet(comparison: &Comparison) -> Vec<Block> {
    let of = |spot: &PointComparison| {
        let tables = spot.comparison.tables.iter();
        tables.filter_map(|table| verdicts::unmet(table, &spot.comparison)).collect::<Vec<_>>()
    };
    let mut all: Vec<Vec<String>> = comparison.points.iter().map(of).collect();
    all.dedup();
    all.concat().into_iter().map(sentence).collect()
}
