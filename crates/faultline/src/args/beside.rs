//! Options of `run` that an experiment file has as keys.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The argument of `run` that names a file, as clap's errors write it.
const FILE: &str = "[EXPERIMENT]";
/// Options, and the keys of the file that say the same.
const KEYS: [(&str, &str); 12] = [
    ("--kernels", "kernel in [[variant]]"),
    ("--workload", "name in [[workload]]"),
    ("--set", "parameters in [[workload]]"),
    ("--iterations", "iterations in [[workload]]"),
    ("--boots", "boots"),
    ("--at-most", "at_most"),
    ("--margin", "margin"),
    ("--budget", "budget"),
    ("--cpus", "cpus in [machine]"),
    ("--memory", "memory in [machine]"),
    ("--nodes", "nodes in [machine]"),
    ("--accel", "accel in [machine]"),
];

/// The message for an option that stands beside an experiment file; none for other errors.
pub fn beside_a_file(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::ArgumentConflict {
        return None;
    }
    let words = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => vec![word.clone()],
        Some(ContextValue::Strings(words)) => words.clone(),
        _ => Vec::new(),
    };
    let words = [words(ContextKind::InvalidArg), words(ContextKind::PriorArg)].concat();
    let is_beside = words.iter().any(|word| word == FILE);
    let key_of = |word: &String| {
        let option = word.split_whitespace().next()?;
        KEYS.into_iter().find(|(known, _)| *known == option)
    };
    let (option, key) = words.iter().find_map(key_of).filter(|_| is_beside)?;
    Some(format!("{option} is for runs without a file: set {key} in the file"))
}
