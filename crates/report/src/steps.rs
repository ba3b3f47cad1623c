//! The patches of a series: a line for each patch with what it changed.

use compare::{Comparison, Row, RowVerdict, Step, Verdict};
use model::{Mode, count};

use crate::ascii::{escape, excerpt, few};
use crate::document::{Block, Cell, Column, Holds, bare, part, sentence};
use crate::exact;
use crate::forest::{Gain, forest, reach};
use crate::verdicts;
use crate::words::{name, times};

/// Most rows that are named for a patch; the others are counted.
const MAX_ROWS: usize = 4;
/// Most rows that a page draws for a patch; the others are counted.
const MAX_PLOTS: usize = 8;

/// Lays out the patches of a series, each against the step before it. `None` if the variants are no steps
/// of a series.
pub fn block(comparison: &Comparison) -> Option<Block> {
    let steps = &comparison.steps;
    let gains = steps.iter().flat_map(|step| {
        changed(&step.comparison).filter_map(|it| Gain::of(it.row, 1, step.comparison.mode))
    });
    let reach = reach(gains);
    let rows = steps.iter().map(|step| {
        let (patch, moved) = (excerpt(&step.patch), moved(&step.comparison));
        let below = drawn(&step.comparison, reach);
        let said = format!("{patch}: {moved}");
        let moved = if below.is_empty() { moved } else { String::new() };
        let moved = Cell { said: moved, below, ..Cell::default() };
        vec![step.comparison.variants[1].name.clone().into(), said.into(), patch.into(), moved]
    });
    let columns = [
        Column::words("Step"),
        Column::sentences("").in_text(),
        Column::on_page(Holds::Sentences, "Patch"),
        Column::on_page(Holds::Sentences, "What it moved"),
    ];
    Some(part(title(comparison)? + ":", [bare(columns, rows.collect())]))
}

/// Lays out a sentence and a little plot for each row that a step changed.
fn drawn(comparison: &Comparison, reach: f64) -> Vec<Block> {
    let all = || changed(comparison);
    let blocks = all().take(MAX_PLOTS).flat_map(|ChangedRow { row, verdict, said }| {
        let plot = Gain::of(row, 1, comparison.mode)
            .map(|gain| Block::Drawing(forest(gain, reach, verdict.name(), comparison)));
        [sentence(said)].into_iter().chain(plot)
    });
    let more = all().count().checked_sub(MAX_PLOTS).filter(|more| *more > 0);
    let more = more.map(|more| sentence(format!("{} changed.", count(more, "more figure"))));
    blocks.chain(more).collect()
}

/// Returns a sentence on what is compared, and how it is judged. `None` if the variants are no steps of a
/// series.
fn title(comparison: &Comparison) -> Option<String> {
    let Step { comparison: first, .. } = comparison.steps.first()?;
    let settings = match first.mode {
        Mode::Measured => verdicts::level(first),
        Mode::Exact => exact::level() + " of series",
    };
    Some(format!("By patch, each against the step before it ({settings})"))
}

/// Returns that a variant has no complete boot, and why. `None` if all have one.
pub fn without_figures(comparison: &Comparison) -> Option<String> {
    let none = comparison.variants.iter().find(|variant| variant.complete == 0)?;
    let why = none.failed.first().map(|failed| format!(": {}", excerpt(&failed.outcome)));
    Some(format!("{} has no figures{}", escape(&none.name), why.unwrap_or_default()))
}

/// A row that a step changed.
struct ChangedRow<'a> {
    row: &'a Row,
    verdict: Verdict,
    /// The change as a sentence.
    said: String,
}

/// Returns the rows that the second of two columns changed, regressions first, each with a sentence.
fn changed(comparison: &Comparison) -> impl Iterator<Item = ChangedRow<'_>> {
    let of = move |wanted: Verdict| comparison.verdicts(1).filter(move |it| it.verdict == wanted);
    let changed = of(Verdict::Regression).chain(of(Verdict::Improvement));
    changed.map(move |RowVerdict { table, row, verdict }| {
        let evidence = verdicts::evidence(row, verdict, comparison, 1);
        let (found, name) = (verdict.name(), name(comparison, table, row));
        ChangedRow { row, verdict, said: format!("{found} {name} {}", evidence.trim_start()) }
    })
}

/// Describes in words what the second of two columns changed. Without a change, the verdicts are counted.
fn moved(comparison: &Comparison) -> String {
    if let Some(why) = without_figures(comparison) {
        return format!("not known, {why}");
    }
    let changed: Vec<String> = changed(comparison).map(|it| it.said).collect();
    if !changed.is_empty() {
        return few(MAX_ROWS, changed).join("; ");
    }
    let of = |wanted| comparison.verdicts(1).filter(|it| it.verdict == wanted).count();
    let counted = [Verdict::Same, Verdict::Undecided].map(|it| (it, of(it)));
    let counted = counted.into_iter().filter(|(_, number)| *number > 0);
    let counted: Vec<String> = counted.map(|(verdict, number)| times(verdict, number)).collect();
    match counted.is_empty() {
        true => "no verdict".to_owned(),
        false => format!("no change seen ({})", counted.join(", ")),
    }
}
