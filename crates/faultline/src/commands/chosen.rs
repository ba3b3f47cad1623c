//! Finds the experiment that a name means.

use std::ops::ControlFlow;

use model::{Experiment, Kept, Outcome};
use report::escape;
use store::{Archive, Detail, ExperimentId, ExperimentRow};

use crate::failure::Failure;
use crate::list::moment;

/// The largest number of other experiments of a name that are listed.
const MAX_OTHERS: usize = 4;

/// The experiment of this name or number, or the latest one. If several have the name, prints on standard
/// error which one is used.
pub fn find(store: &dyn Archive, named: Option<&str>) -> Result<ExperimentId, Failure> {
    let Some(named) = named else {
        let none =
            || Failure::Usage("the store has no experiments: `faultline run` adds one".into());
        return latest(store, &|_| true)?.map(|latest| latest.id).ok_or_else(none);
    };
    let id = store.find_experiment(named)?;
    if let Some(line) = which(&store.rows(Some(named))?, named, id) {
        eprintln!("{line}");
    }
    Ok(id)
}

/// The latest experiment that `is_wanted` accepts.
fn latest(
    store: &dyn Archive,
    is_wanted: &dyn Fn(&ExperimentRow) -> bool,
) -> Result<Option<ExperimentRow>, Failure> {
    let mut latest = None;
    store.each_row(None, &mut |row| {
        if !is_wanted(&row) {
            return ControlFlow::Continue(());
        }
        latest = Some(row);
        ControlFlow::Break(())
    })?;
    Ok(latest)
}

/// The message that says which of several experiments with a name is meant. `rows` are in order, the latest last.
fn which(rows: &[ExperimentRow], named: &str, id: ExperimentId) -> Option<String> {
    let (taken, others) = rows.split_last()?;
    if others.is_empty() || taken.id != id {
        return None;
    }
    let more = others.len().saturating_sub(MAX_OTHERS);
    let others = others.iter().rev().take(MAX_OTHERS).zip(2..).map(|(row, place)| {
        format!("{named}~{place} (number {}, {} UTC)", row.id, moment(row.created))
    });
    let mut others = others.collect::<Vec<_>>().join(", ");
    if more > 0 {
        others.push_str(&format!(" and {more} more"));
    }
    let taken = format!("number {}, created {} UTC", taken.id, moment(taken.created));
    Some(escape(&format!("{named} means {taken}; others: {others}")))
}

/// Like [`find`], for a command that needs results: without a name, the latest experiment with a complete boot.
pub fn find_with_results(
    store: &dyn Archive,
    named: Option<&str>,
) -> Result<ExperimentId, Failure> {
    if named.is_some() {
        return find(store, named);
    }
    let last = find(store, None)?;
    match latest(store, &has_results)? {
        Some(taken) if taken.id != last => {
            say_is_used(last, "no complete boot", &taken);
            Ok(taken.id)
        }
        _ => Ok(last),
    }
}

fn has_results(row: &ExperimentRow) -> bool {
    let counts = [Outcome::Complete, Outcome::Partial(String::new())].map(|it| it.name());
    counts.iter().any(|&it| row.outcomes.contains_key(it))
}

/// Prints on standard error which experiment is used, and what the last one `has`.
fn say_is_used(last: ExperimentId, has: &str, taken: &ExperimentRow) {
    let (id, name) = (taken.id, escape(&taken.name));
    eprintln!("experiment {last} has {has}: experiment {id} ({name}) is used");
}

/// The last of these experiments with a complete boot of both variants, or the last one if none has them. If another than
/// the last is chosen, prints on standard error which one. Fails when the store cannot be read.
pub fn with_results_of(
    store: &dyn Archive,
    rows: &[ExperimentRow],
    variants: [&str; 2],
) -> Result<Option<ExperimentId>, Failure> {
    let Some(last) = rows.last() else { return Ok(None) };
    for row in rows.iter().rev().filter(|row| has_results(row)) {
        let kept = store.boots(row.id, Detail::Summary)?;
        let counts = |it: &&Kept| !it.superseded && it.boot.outcome.counts();
        let complete = || kept.iter().filter(counts);
        if variants.iter().all(|variant| complete().any(|it| it.boot.variant == *variant)) {
            if row.id != last.id {
                say_is_used(last.id, "no complete boots of both", row);
            }
            return Ok(Some(row.id));
        }
    }
    Ok(Some(last.id))
}

/// The experiments that have both variants.
pub fn with_both(
    store: &dyn Archive,
    variants: [&str; 2],
) -> Result<Vec<(ExperimentRow, Experiment)>, Failure> {
    let has_both =
        |row: &ExperimentRow| variants.iter().all(|it| row.variants.iter().any(|own| own == it));
    let rows = store.experiments()?.into_iter().filter(has_both);
    let read = |row: ExperimentRow| {
        let experiment = store.experiment(row.id)?;
        Ok((row, experiment))
    };
    rows.map(read).collect()
}

/// The previous experiment of the same name.
pub fn older<'a>(rows: &'a [ExperimentRow], row: &ExperimentRow) -> Option<&'a ExperimentRow> {
    let place = rows.iter().position(|other| other.id == row.id)?;
    rows[..place].iter().rev().find(|other| other.name == row.name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn row(id: i64, name: &str) -> ExperimentRow {
        ExperimentRow {
            id: ExperimentId(id),
            name: name.into(),
            created: 1_790_000_000 + id as u64 * 60,
            variants: Vec::new(),
            boots: 1,
            outcomes: BTreeMap::new(),
            superseded: 0,
            size: 0,
            note: String::new(),
        }
    }

    #[test]
    fn a_name_of_several_says_which_is_meant() {
        let rows = [row(3, "numa"), row(1, "numa"), row(2, "other"), row(4, "numa")];
        let named = [&rows[0], &rows[1], &rows[3]].map(ExperimentRow::clone);
        let told = which(&named, "numa", ExperimentId(4)).unwrap();
        insta::assert_snapshot!(told, @"numa means number 4, created 2026-09-21 14:17 UTC; others: numa~2 (number 1, 2026-09-21 14:14 UTC), numa~3 (number 3, 2026-09-21 14:16 UTC)");
        assert_eq!(which(&rows[2..3], "other", ExperimentId(2)), None);
        assert_eq!(which(&[], "numa~2", ExperimentId(1)), None);
        assert_eq!(which(&named, "numa", ExperimentId(1)), None);
        assert_eq!(older(&rows, &rows[3]).unwrap().id, ExperimentId(1));
        assert_eq!(older(&rows, &rows[0]), None);
    }
}
