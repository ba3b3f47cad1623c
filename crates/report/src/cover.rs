//! Lays out which workloads execute the functions that differ between two kernels, as text and as JSON.

use code::Change;
use compare::{Coverage, FunctionCoverage, WorkloadCoverage};
use model::count;
use serde::Serialize;

use crate::ascii::{cut, excerpt, few};
use crate::code::word;
use crate::document::{Block, Column, TEXT, note, part, sections, sentence, table, text};

/// The version of the JSON.
const SCHEMA: u32 = 1;
/// Most workloads, and most functions, that are listed without `full`.
const ROWS: usize = 9;
/// Most functions that are named because no workload enters them.
const MAX_NAMES: usize = 8;
/// Most workloads that are named beside a function.
const MAX_WORKLOADS: usize = 3;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    base: &'a str,
    new: &'a str,
    boots: usize,
    workloads: &'a [WorkloadCoverage],
    functions: Vec<FunctionDocument<'a>>,
}

#[derive(Serialize)]
struct FunctionDocument<'a> {
    name: &'a str,
    change: Change,
    entered: Vec<EnteredDocument<'a>>,
}

#[derive(Serialize)]
struct EnteredDocument<'a> {
    workload: &'a str,
    entries: u64,
}

/// Returns the coverage as JSON. The format is stable: keys may be added without a new version. No coverage
/// causes an error.
pub fn cover_json([base, new]: [&str; 2], coverage: &Coverage) -> serde_json::Result<String> {
    let workloads = &coverage.workloads;
    let functions = coverage.functions.iter().map(function).collect();
    let document =
        Document { schema: SCHEMA, base, new, boots: coverage.boots, workloads, functions };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn function(it: &FunctionCoverage) -> FunctionDocument<'_> {
    let entered = it.entered.iter();
    let entered =
        entered.map(|(workload, entries)| EnteredDocument { workload, entries: *entries });
    FunctionDocument { name: &it.name, change: it.change, entered: entered.collect() }
}

/// Returns the coverage as plain text: ASCII, at most 40 lines; with `full`, all functions.
pub fn cover(names: [&str; 2], coverage: &Coverage, full: bool) -> String {
    let [base, new] = names.map(excerpt);
    let Coverage { boots, workloads, functions } = coverage;
    let entered: Vec<&FunctionCoverage> =
        functions.iter().filter(|it| !it.entered.is_empty()).collect();
    let missed = &functions[entered.len()..];
    let differ = match functions.len() {
        0 => {
            let none = format!("From {base} to {new} no function differs.");
            return text(&[sentence(none)], &TEXT);
        }
        number => count(number, "function"),
    };
    let profiles = match (boots, entered.len()) {
        (0, _) => "The store has no profile of exact mode".to_owned(),
        (_, 0) => format!("The profiles of {} enter none of them", count(*boots, "exact boot")),
        (_, some) => format!("The profiles of {} enter {some}", count(*boots, "exact boot")),
    };
    let said = format!("From {base} to {new} the code of {differ} differs. {profiles}.");
    let most = if full { usize::MAX } else { ROWS };
    let mut all = vec![vec![sentence(said)]];
    if !workloads.is_empty() {
        let rows = workloads.iter().take(most).map(|it| {
            let (name, experiment) = (cut(&it.name, 30), cut(&it.experiment, 40));
            vec![it.adds.to_string(), it.functions.to_string(), format!("{name}, {experiment}")]
        });
        let columns = [
            Column::figures("adds").at_least(7),
            Column::figures("enters").at_least(7),
            Column::subject("workload, experiment"),
        ];
        let rows = [table(columns, rows.collect())].into_iter().chain(more(workloads.len(), most));
        let title = "Workloads, by what each adds to those above it:";
        all.push(vec![part(title, rows.collect::<Vec<_>>())]);
    }
    if !entered.is_empty() {
        let rows = entered.iter().take(most).map(|it| {
            let by = it.entered.iter().map(|(workload, _)| cut(workload, 20));
            let by = few(MAX_WORKLOADS, by).join(", ");
            let change = match it.change {
                Change::Changed => String::new(),
                change => format!("{}, ", word(change)),
            };
            let (entries, name) = (it.entered[0].1, cut(&it.name, 50));
            vec![entries.to_string(), format!("{name} ({change}by {by})")]
        });
        let columns = [Column::figures("entries").at_least(10), Column::subject("function")];
        let rows = [table(columns, rows.collect())].into_iter().chain(more(entered.len(), most));
        all.push(vec![part("Entered, by entries in one boot:", rows.collect::<Vec<_>>())]);
    }
    if !missed.is_empty() {
        let most = if full { usize::MAX } else { MAX_NAMES };
        let named = missed.iter().map(|it| cut(&it.name, 50));
        all.push(vec![part("Entered by none:", [sentence(few(most, named).join(", "))])]);
    }
    sections(&all, &TEXT)
}

fn more(all: usize, most: usize) -> Option<Block> {
    match all.saturating_sub(most) {
        0 => None,
        more => Some(note(format!("{more} more (--full)"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 2] = ["base", "new\x1b[2J"];

    fn covered(name: &str, change: Change, entered: &[(&str, u64)]) -> FunctionCoverage {
        let entered = entered.iter().map(|&(name, entries)| (name.to_owned(), entries)).collect();
        FunctionCoverage { name: name.into(), change, entered }
    }

    fn covers(name: &str, functions: usize, adds: usize) -> WorkloadCoverage {
        WorkloadCoverage {
            name: name.into(),
            experiment: "numa (number 3)".into(),
            functions,
            adds,
        }
    }

    #[test]
    fn what_is_entered_and_what_is_not() {
        let coverage = Coverage {
            boots: 7,
            workloads: vec![covers("autonuma", 2, 2), covers("pagealloc\n", 1, 0)],
            functions: vec![
                covered("fork", Change::Changed, &[("pagealloc\n", 12_000), ("autonuma", 3)]),
                covered("late", Change::New, &[("autonuma", 1)]),
                covered("rare", Change::Changed, &[]),
                covered("early", Change::Gone, &[]),
            ],
        };
        insta::assert_snapshot!(cover(NAMES, &coverage, false));
        insta::assert_snapshot!(cover_json(NAMES, &coverage).unwrap());
    }

    #[test]
    fn the_first_screen_has_forty_lines() {
        let name = |number| format!("a_function_with_quite_a_long_name_for_a_kernel_{number:03}");
        let function = |number: usize| {
            let entered = [("w", 1_u64)];
            covered(&name(number), Change::Changed, if number < 50 { &entered } else { &[] })
        };
        let coverage = Coverage {
            boots: 1,
            workloads: (0..50).map(|number| covers(&format!("w{number}"), 1, 0)).collect(),
            functions: (0..100).map(function).collect(),
        };
        let first = cover(NAMES, &coverage, false);
        assert!(first.lines().count() <= 40, "{first}");
        assert!(first.contains("  41 more (--full)\n") && first.contains("42 more"), "{first}");
        let all = cover(NAMES, &coverage, true);
        assert!(all.contains(&name(49)) && all.contains(&name(99)), "{all}");
    }

    #[test]
    fn a_store_without_profiles() {
        let functions = vec![covered("fork", Change::Changed, &[])];
        let said = cover(["a", "b"], &Coverage { functions, ..Coverage::default() }, false);
        assert!(said.contains("The store has no profile of exact mode."), "{said}");
        let none = cover(["a", "b"], &Coverage::default(), false);
        assert_eq!(none, "From a to b no function differs.\n");
    }
}
