//! Finds operations that other iterations of a run have and one lacks. Its log was deleted, could not be read, or is
//! too short.

use std::collections::HashSet;

use super::benchmark::Parsed;
use super::iteration::Iteration;

/// The largest number of operations that are named; the others are counted.
const MOST: usize = 8;

/// A metric and a label.
type Operation<'a> = [&'a str; 2];

/// For each iteration of a run, the benchmarks that lack operations, and which operations. Benchmarks without any
/// result are not listed.
pub fn missing(iterations: &[Iteration]) -> Vec<Vec<(String, String)>> {
    let mut missing = vec![Vec::new(); iterations.len()];
    let benchmarks: HashSet<&str> =
        iterations.iter().flat_map(|it| it.benchmarks.keys()).map(|name| &**name).collect();
    for name in benchmarks {
        let mut all: Vec<Operation<'_>> = Vec::new();
        let mut known = HashSet::new();
        let of_each: Vec<Option<HashSet<Operation<'_>>>> = iterations
            .iter()
            .map(|it| match it.benchmarks.get(name) {
                Some(Err(_)) => None,
                Some(Ok(parsed)) => Some(operations(parsed, &mut all, &mut known)),
                None => Some(HashSet::new()),
            })
            .collect();
        for (own, missing) in of_each.iter().zip(&mut missing) {
            let Some(own) = own else { continue };
            let lacking: Vec<_> =
                all.iter().filter(|operation| !own.contains(*operation)).collect();
            if !lacking.is_empty() {
                missing.push((name.to_owned(), named(&lacking)));
            }
        }
    }
    missing.iter_mut().for_each(|missing| missing.sort_unstable());
    missing
}

/// The operations of an iteration. Adds those that are not `known` to `all`.
fn operations<'a>(
    parsed: &'a Parsed,
    all: &mut Vec<Operation<'a>>,
    known: &mut HashSet<Operation<'a>>,
) -> HashSet<Operation<'a>> {
    let mut own = HashSet::new();
    for sample in &parsed.samples {
        let operation = [&*sample.metric, &*sample.label];
        if own.insert(operation) && known.insert(operation) {
            all.push(operation);
        }
    }
    own
}

/// Lists operations as `txn-1, txn-4, which ...`.
fn named(operations: &[&Operation<'_>]) -> String {
    let shown = operations.iter().take(MOST).map(|[metric, label]| match *label {
        "" => (*metric).to_owned(),
        label => format!("{metric}-{label}"),
    });
    let mut names: Vec<String> = shown.collect();
    if operations.len() > MOST {
        names.push(format!("{} more", operations.len() - MOST));
    }
    format!("{}, which other iterations of the run have", names.join(", "))
}
