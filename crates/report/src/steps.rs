//! Which patch of a series moved what: a line for each patch.

use compare::{Comparison, Step, Verdict};
use model::Mode;

use crate::ascii::{escape, excerpt, few};
use crate::document::{Block, Column, part, table};
use crate::exact;
use crate::verdicts;
use crate::words::{name, times};

/// Most rows that are named for a patch; the others are counted.
const MAX_ROWS: usize = 4;

/// The patches of a series, each against the step before it. `None` if the variants are no steps.
pub fn block(comparison: &Comparison) -> Option<Block> {
    let rows = comparison.steps.iter().map(|step| {
        let said = format!("{}: {}", excerpt(&step.patch), moved(&step.comparison));
        vec![step.comparison.variants[1].name.clone(), said]
    });
    let columns = [Column::words(""), Column::sentences("")];
    Some(part(title(comparison)? + ":", [table(columns, rows.collect())]))
}

/// What is compared, and how it is judged. `None` if the variants are no steps.
pub fn title(comparison: &Comparison) -> Option<String> {
    let Step { comparison: first, .. } = comparison.steps.first()?;
    let settings = match first.mode {
        Mode::Measured => verdicts::level(first),
        Mode::Exact => exact::level() + " of series",
    };
    Some(format!("By patch, each against the step before it ({settings})"))
}

/// Which variant has no complete boot, and why.
pub fn without_figures(comparison: &Comparison) -> Option<String> {
    let none = comparison.variants.iter().find(|variant| variant.complete == 0)?;
    let why = none.failed.first().map(|failed| format!(": {}", excerpt(&failed.outcome)));
    Some(format!("{} has no figures{}", escape(&none.name), why.unwrap_or_default()))
}

/// What the second of two columns moved.
pub fn moved(comparison: &Comparison) -> String {
    if let Some(why) = without_figures(comparison) {
        return format!("not known, {why}");
    }
    let of = |wanted: Verdict| {
        comparison.verdicts(1).filter(move |(.., verdict)| *verdict == wanted).map(move |it| {
            let (table, row, verdict) = it;
            let evidence = verdicts::evidence(row, verdict, comparison, 1);
            let evidence = evidence.trim_start();
            format!("{} {} {evidence}", verdict.name(), name(comparison, table, row))
        })
    };
    let changed: Vec<String> = of(Verdict::Regression).chain(of(Verdict::Improvement)).collect();
    if !changed.is_empty() {
        return few(MAX_ROWS, changed).join("; ");
    }
    let counted = [Verdict::Same, Verdict::Undecided].map(|it| (it, of(it).count()));
    let counted = counted.into_iter().filter(|(_, number)| *number > 0);
    let counted: Vec<String> = counted.map(|(verdict, number)| times(verdict, number)).collect();
    match counted.is_empty() {
        true => "no verdict".to_owned(),
        false => format!("no change seen ({})", counted.join(", ")),
    }
}
