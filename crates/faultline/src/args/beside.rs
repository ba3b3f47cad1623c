//! Options of `run` that an experiment file has as keys.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The argument of `run` that names a file, as clap's errors write it.
const FILE: &str = "[EXPERIMENT]";
/// Options, and the keys of the file that say the same.
const KEYS: [(&str, &str); 27] = [
    ("--kernels", "kernel in [[variant]]"),
    ("--on", "kind in [machine]"),
    ("--sysctl", "sysctl in [[variant]] or [matrix]"),
    ("--sysfs", "sysfs in [[variant]] or [matrix]"),
    ("--workload", "name in [[workload]]"),
    ("--set", "parameters in [[workload]]"),
    ("--iterations", "iterations in [[workload]]"),
    ("--boots", "boots"),
    ("--at-most", "at_most"),
    ("--margin", "margin"),
    ("--budget", "budget"),
    ("--events", "events in [sampler]"),
    ("--arch", "arch in [machine]"),
    ("--cpus", "cpus in [machine]"),
    ("--memory", "memory in [machine]"),
    ("--nodes", "nodes in [machine]"),
    ("--accel", "accel in [machine]"),
    ("--disk", "[[machine.disk]]"),
    ("--tree", "tree"),
    ("--patch", "patches in [[variant]]"),
    ("--each", "each in [[variant]]"),
    ("--revert", "revert in [[variant]]"),
    ("--pick", "pick in [[variant]]"),
    ("--kconfig", "config in [build]"),
    ("--fragment", "fragments in [build]"),
    ("--build-modules", "modules in [build]"),
    ("--compiler", "compiler in [build]"),
];

/// The message for an option that cannot be used with an experiment file; `None` for other errors.
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    /// The options of `run` that apply to an experiment file too.
    const APPLY: [&str; 15] = [
        "--count", "--dry-run", "--jobs", "--keep-going", "--lines", "--memory-model", "--mode",
        "--no-wait", "--profile", "--quiet", "--retry-failed", "--seeds", "--store", "--verbose",
        "--verify",
    ];

    #[test]
    fn each_option_applies_to_a_file_or_has_its_key() {
        let mut cli = Cli::command();
        cli.build();
        let run = cli.find_subcommand("run").unwrap();
        let file = run.get_arguments().find(|it| it.get_id() == "experiment").unwrap();
        let conflict = |one, other| run.get_arg_conflicts_with(one).contains(&other);
        let options = run.get_arguments().filter(|it| it.get_long().is_some());
        let (refused, apply): (Vec<_>, Vec<_>) =
            options.partition(|it| conflict(it, file) || conflict(file, it));
        let names = |options: Vec<&clap::Arg>| {
            let mut names: Vec<_> =
                options.iter().map(|it| format!("--{}", it.get_long().unwrap())).collect();
            // An experiment of the store stands for a file.
            names.retain(|name| name != "--help" && name != "--again");
            names.sort();
            names
        };
        let mut keys = KEYS.map(|(option, _)| option);
        keys.sort_unstable();
        assert_eq!(names(refused), keys);
        assert_eq!(names(apply), APPLY);
    }
}
