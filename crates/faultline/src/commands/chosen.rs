//! Finds the experiment that a name means.

use model::{Experiment, Outcome};
use report::escape;
use store::{ExperimentId, ExperimentRow, Store};

use crate::failure::Failure;
use crate::list::moment;

/// At most this many other experiments of a name are listed.
const MAX_OTHERS: usize = 4;

/// The experiment of this name or number, or the latest one. If several have the name, prints on standard
/// error which one is used.
pub fn find(store: &Store, named: Option<&str>) -> Result<ExperimentId, Failure> {
    let rows = store.experiments()?;
    let Some(named) = named else {
        let none =
            || Failure::Usage("the store has no experiments: `faultline run` adds one".into());
        return rows.last().map(|latest| latest.id).ok_or_else(none);
    };
    let id = store.find_experiment(named)?;
    if let Some(line) = which(&rows, named, id) {
        eprintln!("{line}");
    }
    Ok(id)
}

/// The message if several experiments have the name.
fn which(rows: &[ExperimentRow], named: &str, id: ExperimentId) -> Option<String> {
    let all: Vec<&ExperimentRow> = rows.iter().rev().filter(|row| row.name == named).collect();
    let (taken, others) = all.split_first()?;
    if others.is_empty() || taken.id != id {
        return None;
    }
    let more = others.len().saturating_sub(MAX_OTHERS);
    let others = others.iter().take(MAX_OTHERS).zip(2..).map(|(row, place)| {
        format!("{named}~{place} (number {}, {} UTC)", row.id, moment(row.created))
    });
    let mut others = others.collect::<Vec<_>>().join(", ");
    if more > 0 {
        others.push_str(&format!(" and {more} more"));
    }
    let taken = format!("number {}, created {} UTC", taken.id, moment(taken.created));
    Some(escape(&format!("{named} means {taken}; others: {others}")))
}

/// The same for a command that needs results: the latest experiment is the latest with a complete boot.
pub fn find_with_results(store: &Store, named: Option<&str>) -> Result<ExperimentId, Failure> {
    let latest = match named {
        Some(_) => None,
        None => with_results(&store.experiments()?),
    };
    latest.map_or_else(|| find(store, named), Ok)
}

/// The last of these experiments that has a complete boot; the last one if none has. If it is not the last
/// one, prints on standard error which one is used.
pub fn with_results(rows: &[ExperimentRow]) -> Option<ExperimentId> {
    let counts = [Outcome::Complete, Outcome::Partial(String::new())].map(|it| it.name());
    let has_results = |row: &&ExperimentRow| counts.iter().any(|&it| row.outcomes.contains_key(it));
    let last = rows.last()?;
    let taken = rows.iter().rfind(has_results).unwrap_or(last);
    if taken.id != last.id {
        let (id, name) = (taken.id, escape(&taken.name));
        eprintln!("experiment {} has no complete boot: experiment {id} ({name}) is used", last.id);
    }
    Some(taken.id)
}

/// The experiments that have both variants.
pub fn with_both(
    store: &Store,
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
        let told = which(&rows, "numa", ExperimentId(4)).unwrap();
        insta::assert_snapshot!(told, @"numa means number 4, created 2026-09-21 14:17 UTC; others: numa~2 (number 1, 2026-09-21 14:14 UTC), numa~3 (number 3, 2026-09-21 14:16 UTC)");
        assert_eq!(which(&rows, "other", ExperimentId(2)), None);
        assert_eq!(which(&rows, "numa~2", ExperimentId(1)), None);
        assert_eq!(which(&rows, "1", ExperimentId(1)), None);
        assert_eq!(older(&rows, &rows[3]).unwrap().id, ExperimentId(1));
        assert_eq!(older(&rows, &rows[0]), None);
    }
}
