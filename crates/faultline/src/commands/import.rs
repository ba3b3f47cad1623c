//! `faultline import`: makes an experiment from the results of another tool.

pub mod perf;

use std::collections::BTreeSet;
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::path::PathBuf;
use std::process::ExitCode;

use mmtests::{Directory, Error, Places, RunSummary, Summary};
use model::{Reading, count, date};
use report::escape;
use store::{Standing, Trouble};

use super::{print, store_option, store_path};
use crate::args::{ImportCommand, ImportMmtestsArgs};
use crate::failure::{BOOTS_FAILED, Failure};

pub fn import(store: Option<PathBuf>, command: ImportCommand) -> Result<ExitCode, Failure> {
    match command {
        ImportCommand::Mmtests(args) => mmtests(store, &args),
        ImportCommand::Perf(args) => perf::import(store, &args),
    }
}

fn mmtests(store: Option<PathBuf>, args: &ImportMmtestsArgs) -> Result<ExitCode, Failure> {
    if let Some(name) = &args.name {
        plan::file::check_name(name).map_err(Failure::Usage)?;
    }
    let named = store_option(store.as_ref());
    let directory = Directory::read(&args.directory).map_err(|error| match error {
        Error::NoRun { .. } => Failure::Usage(error.to_string()),
        Error::Unreadable { error: ref why, .. } => match why.kind() {
            NotFound | NotADirectory => Failure::Usage(error.to_string()),
            _ => Failure::Host(error.to_string()),
        },
    })?;
    let mut summary = directory.summary();
    let experiment = directory.experiment(args.name.as_deref());
    let mut store = store::open(&store_path(store)?)?;
    let id = store.keep_experiment(&experiment, Reading::USUAL)?;
    let done = store.done(id)?;
    let mut kept = 0;
    let mut failed = false;
    for (number, (variant, boot_index)) in directory.boots().enumerate() {
        if !done.iter().any(|it| (&*it.0, it.1) == (variant, boot_index)) {
            let (boot, series) = directory.boot(number, &mut summary);
            match store.keep(id, &boot, &series, Standing::Counts) {
                // Another import has added it since.
                Err(store::Error::Store { trouble: Trouble::KeptAlready { .. }, .. }) => continue,
                done => done?,
            };
            failed |= !boot.outcome.is_complete();
            kept += 1;
        }
    }
    let name = escape(&experiment.name);
    let end = match kept {
        0 => format!("experiment {id}, {name}, already has all of this: nothing was added\n"),
        _ => {
            let kept = count(kept, "boot");
            format!(
                "added {kept} to experiment {id}, {name}: see `faultline{named} compare {id}`\n"
            )
        }
    };
    print(&format!("{}{end}", text(&summary)))?;
    Ok(if failed { ExitCode::from(BOOTS_FAILED) } else { ExitCode::SUCCESS })
}

/// What was imported, and what was not.
fn text(summary: &Summary) -> String {
    let mut lines: Vec<String> = summary.runs.iter().map(run).collect();
    let benchmarks = summary.benchmarks.iter();
    lines.extend(benchmarks.map(|(name, samples)| {
        format!("benchmark {}: {}", escape(name), count(*samples, "sample"))
    }));
    let monitors = summary.monitors.iter();
    lines.extend(monitors.map(|(name, (files, samples))| {
        let (files, samples) = (count(*files, "file"), count(*samples, "sample"));
        format!("monitor {}: {samples} in {files}", escape(name))
    }));
    for run in &summary.runs {
        let left_out = run.left_out.iter();
        lines.extend(
            left_out.map(|why| format!("left out of {}: {}", escape(&run.name), escape(why))),
        );
    }
    let everywhere = everywhere(summary);
    for (what, all) in
        [("note", &summary.remarks), ("not read", &summary.unread), ("missing", &summary.missing)]
    {
        lines.extend(all.iter().map(|((name, text), at)| {
            format!("{what}: {}: {}{}", escape(name), escape(text), places(at, &everywhere))
        }));
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// All iterations of all runs, which need not be named.
fn everywhere(summary: &Summary) -> Places {
    let runs = summary.runs.iter();
    runs.map(|run| (run.name.clone(), run.boots.iter().flatten().copied().collect())).collect()
}

/// The places where something holds: ` (6.6.0, iterations 0-2 4; 6.7.0, iteration 1)`.
fn places(places: &Places, everywhere: &Places) -> String {
    if places.is_empty() {
        return String::new();
    }
    if places == everywhere {
        return " (all iterations)".to_owned();
    }
    let runs = places.iter().map(|(run, iterations)| match iterations.len() {
        0 => escape(run),
        1 => format!("{}, iteration {}", escape(run), ranges(iterations)),
        _ => format!("{}, iterations {}", escape(run), ranges(iterations)),
    });
    format!(" ({})", runs.collect::<Vec<_>>().join("; "))
}

/// Numbers with their ranges joined: `0-2 4`.
fn ranges(numbers: &BTreeSet<u32>) -> String {
    let numbers: Vec<u32> = numbers.iter().copied().collect();
    let ranges = numbers.chunk_by(|a, b| a + 1 == *b).map(|range| match range {
        [first, .., last] => format!("{first}-{last}"),
        one => one.iter().map(u32::to_string).collect(),
    });
    ranges.collect::<Vec<_>>().join(" ")
}

/// A line about a run: `run 6.6.0: 2023-11-14, kernel 6.6.0-rc1, 3 iterations`.
fn run(run: &RunSummary) -> String {
    let RunSummary { name, kernel, started, boots, .. } = run;
    let started = started.map_or_else(|| "date not known".to_owned(), date);
    let kernel = match kernel.as_str() {
        "" => "kernel not known".to_owned(),
        kernel => format!("kernel {}", escape(kernel)),
    };
    let iterations = boots.iter().map(Vec::len).sum();
    let boots = match boots.as_slice() {
        [_] => String::new(),
        boots => {
            let of_each = boots.iter().map(|numbers| {
                let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
                numbers.join(" ")
            });
            let of_each: Vec<String> = of_each.collect();
            format!(", of {}: {}", count(boots.len(), "boot"), of_each.join(" | "))
        }
    };
    let iterations = count(iterations, "iteration");
    format!("run {}: {started}, {kernel}, {iterations}{boots}", escape(name))
}

#[cfg(test)]
mod tests {
    use mmtests::Told;

    use super::*;

    #[test]
    fn what_was_read_and_what_was_not() {
        let run = |name: &str, boots: &[&[u32]]| RunSummary {
            name: name.into(),
            kernel: String::new(),
            started: None,
            boots: boots.iter().map(|boot| boot.to_vec()).collect(),
            left_out: Vec::new(),
        };
        let told = |(name, text): (&str, &str), places: &[(&str, &[u32])]| {
            let places = places.iter().map(|(run, numbers)| {
                ((*run).to_owned(), numbers.iter().copied().collect::<BTreeSet<u32>>())
            });
            Told::from([((name.to_owned(), text.to_owned()), places.collect())])
        };
        let known = RunSummary {
            kernel: "6.6.0".into(),
            started: Some(1_700_000_000),
            left_out: vec!["nas, iteration 1: \x1b[2J".into()],
            ..run("base", &[&[0, 1], &[2]])
        };
        let summary = Summary {
            runs: vec![known, run("fix\n", &[&[0]])],
            benchmarks: [("nas".to_owned(), 12)].into(),
            monitors: [("proc-vmstat".to_owned(), (3, 300))].into(),
            remarks: told(("nas", "it was cold"), &[("base", &[0, 1, 2]), ("fix\n", &[0])]),
            unread: told(("loop", "no iteration"), &[("base", &[])])
                .into_iter()
                .chain(told(("notes", "belongs to no run"), &[]))
                .chain(told(("dmesg", "cut off"), &[("base", &[0, 1]), ("fix\n", &[0])]))
                .collect(),
            missing: told(("nas", "bt.C"), &[("base", &[0, 2])]),
        };
        insta::assert_snapshot!(text(&summary), @r"
        run base: 2023-11-14, kernel 6.6.0, 3 iterations, of 2 boots: 0 1 | 2
        run fix\n: date not known, kernel not known, 1 iteration
        benchmark nas: 12 samples
        monitor proc-vmstat: 300 samples in 3 files
        left out of base: nas, iteration 1: \u{1b}[2J
        note: nas: it was cold (all iterations)
        not read: dmesg: cut off (base, iterations 0-1; fix\n, iteration 0)
        not read: loop: no iteration (base)
        not read: notes: belongs to no run
        missing: nas: bt.C (base, iterations 0 2)
        ");
    }
}
