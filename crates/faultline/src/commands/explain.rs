//! `faultline explain`: which functions cause the difference between two variants, by exact mode and by samples, and
//! what a counter means.

use std::path::PathBuf;
use std::process::ExitCode;

use benchmarks::names::others;
use code::Symbol;
use compare::BUILT_AS;
use model::{Class, Cost, Experiment, Mode, SAMPLES};
use report::escape;
use results::explanation::ExplanationQuestion;
use results::{AnalysisError, Explained, Functions, LinesQuestion, SampledProfiles};
use store::{Archive, ExperimentId};

use super::{chosen, existing_store, lines, print, say, store_option, write_out};
use crate::args::{CHANGED, ExplainArgs, ExplainFormat};
use crate::failure::Failure;

pub fn explain(store: Option<PathBuf>, args: &ExplainArgs) -> Result<ExitCode, Failure> {
    match (&args.counter, &args.base, &args.new) {
        (Some(counter), ..) => explain_counter(counter),
        (None, Some(base), Some(new)) => {
            explain_difference(store, args, [base, new], args.experiment.as_deref())
        }
        (None, experiment, _) => {
            let (id, [base, new]) = only_two(store.as_ref(), experiment.as_deref())?;
            explain_difference(store, args, [&base, &new], Some(&id.to_string()))
        }
    }
}

/// An experiment, or the latest one, and its two variants. Kernels that were built to take a change apart do not count.
fn only_two(
    store: Option<&PathBuf>,
    experiment: Option<&str>,
) -> Result<(ExperimentId, [String; 2]), Failure> {
    let store = existing_store(store.cloned())?;
    let id = chosen::find_with_results(&*store, experiment)?;
    let variants = store.experiment(id)?.variants.into_iter().map(|it| it.name);
    let mut variants: Vec<String> = variants.collect();
    if let [base, new, ..] = variants.as_slice() {
        let built =
            [[new, base], [base, new]].map(|[one, other]| format!("{one}{BUILT_AS}{other}"));
        variants.retain(|it| !built.contains(it));
    }
    let variants = variants.try_into().map_err(|variants: Vec<String>| {
        let has = escape(&variants.join(", "));
        Failure::Usage(match variants.len() {
            0 | 1 => {
                format!("experiment {id} has only {has}: name an experiment with two variants")
            }
            _ => format!("name two variants of experiment {id}, which has {has}"),
        })
    })?;
    Ok((id, variants))
}

fn explain_counter(name: &str) -> Result<ExitCode, Failure> {
    if let Some(cost) = Class::ALL.map(Class::cost).iter().find(|cost| is_row_of(cost, name)) {
        let what = match Class::named(&cost.name) {
            Some(class) if class.is_transfer() => {
                "lines of memory that CPUs take from each other (docs/exact-mode.md)"
            }
            Some(class) if class.is_miss() => {
                "misses in a model of caches and TLBs (docs/memory-model.md)"
            }
            _ => "a class of the kernel's instructions",
        };
        print(&format!(
            "{}: {}, which exact mode counts by function: `faultline explain BASE NEW --cost {}`\n",
            cost.unit, what, cost.name
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(text) = report::counter(name) else {
        if model::PerfEvent::parse(name).is_some() {
            let message = format!("`{name}` is an event of perf: `man perf-list` describes it");
            return Err(Failure::Usage(message));
        }
        let near = kernelfiles::catalogue::near(name, &others(None));
        let meant = match near.is_empty() {
            true => String::new(),
            false => format!("; did you mean {}?", near.join(", ")),
        };
        return Err(Failure::Usage(format!("no counter or row is called `{name}`{meant}")));
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Whether a row of the table of counters is of this class of instructions, in a phase or in all.
fn is_row_of(class: &Cost, label: &str) -> bool {
    let row = label.split_once(" in ").map_or(label, |(row, _)| row);
    row.eq_ignore_ascii_case(&class.unit) || label == class.name
}

/// The number of rows of each ranking in the text.
const TOP: usize = 10;
/// The number of lines that changed most in the text.
const TOP_LINES: usize = 20;
/// The number of lines that changed most, of each of several functions.
const TOP_CHANGED: usize = 5;

fn explain_difference(
    store: Option<PathBuf>,
    args: &ExplainArgs,
    [base, new]: [&str; 2],
    experiment: Option<&str>,
) -> Result<ExitCode, Failure> {
    if args.top.is_some() && args.format != ExplainFormat::Text {
        return Err(Failure::Usage(
            "--top needs --format text: other formats have all rows".into(),
        ));
    }
    let is_same = match args.seeds {
        None => base == new,
        Some([one, other]) => base == new && one == other,
    };
    if is_same {
        let message = match args.seeds {
            None => "name two variants, or two seeds of it with --seeds",
            Some(_) => "--seeds names one seed twice",
        };
        return Err(Failure::Usage(format!("`{base}` is the same on both sides: {message}")));
    }
    let named = store_option(store.as_ref());
    let store = existing_store(store)?;
    if let Some(function) = &args.lines {
        return explain_lines(&*store, args, ([base, new], experiment), (function, &named));
    }
    let Chosen { exact, sampled } = choose(&*store, experiment, [base, new])?;
    let (exact, sampled) = match args.cost.as_deref() {
        None => (exact, sampled),
        Some(SAMPLES) if sampled.is_some() => (None, sampled),
        Some(_) if exact.is_some() => (exact, None),
        Some(_) => (None, sampled),
    };
    // Samples have no seeds, and lead to no system call.
    let is_exact = args.seeds.is_some() || args.by_syscall;
    let sampled = sampled.filter(|_| !is_exact);
    if is_exact && exact.is_none() {
        let message = "--seeds and --by-syscall are for exact mode: no such experiment was found";
        return Err(Failure::Usage(message.into()));
    }
    let asked = |experiment| ExplanationQuestion {
        experiment,
        variants: [base, new].map(str::to_owned),
        workload: args.workload.clone(),
        phase: args.phase.clone(),
        cost: args.cost.clone(),
        by_system_call: args.by_syscall,
        seeds: args.seeds,
    };
    let exact = exact.map(|id| Explained::of(&*store, asked(id))).transpose()?;
    let exact = exact.map(|it| {
        let placed = it.with_places(&say);
        if args.format == ExplainFormat::Html { placed.with_lines(&say) } else { placed }
    });
    let sampled = sampled.map(|id| SampledProfiles::of(&*store, asked(id)));
    let sampled = match (&exact, sampled) {
        // Experiments with samples may lack the phase or the workload.
        (Some(_), Some(Err(error))) if !matches!(error, AnalysisError::Store(_)) => None,
        (_, sampled) => sampled.transpose()?,
    };
    let text = lay_out(exact.as_ref(), sampled.as_ref(), args)?;
    write_out(&text, args.output.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the lines of a function, or of those that changed. `named` is the option `--store`, if it was given.
fn explain_lines(
    store: &dyn Archive,
    args: &ExplainArgs,
    (variants, experiment): ([&str; 2], Option<&str>),
    (function, named): (&str, &str),
) -> Result<ExitCode, Failure> {
    let functions = match function {
        CHANGED => Functions::Changed,
        // A suffix such as `.part.0` is the compiler's.
        named => Functions::Named(Symbol::of(named).name.to_owned()),
    };
    let sources = match args.source.as_slice() {
        [] => [None, None],
        [both] => [Some(both.clone()), Some(both.clone())],
        [base, new] => [Some(base.clone()), Some(new.clone())],
        _ => {
            return Err(Failure::Usage("--source has one directory, or one of each kernel".into()));
        }
    };
    if let Some(missing) = sources.iter().flatten().find(|it| !it.is_dir()) {
        return Err(Failure::Usage(format!("--source: {} is no directory", missing.display())));
    }
    let experiment = with_lines(store, experiment, variants, &functions)?;
    let explained = ExplanationQuestion {
        experiment,
        variants: variants.map(str::to_owned),
        workload: args.workload.clone(),
        phase: args.phase.clone(),
        cost: None,
        by_system_call: false,
        seeds: None,
    };
    let is_named = functions != Functions::Changed;
    let asked = LinesQuestion { explained, functions, sources, debug: args.debug.clone() };
    let refused = |error| lines::refused(store, error, named);
    let lines = results::lines(store, asked, &say).map_err(refused)?;
    let failed = |error: serde_json::Error| Failure::Host(error.to_string());
    let text = match (args.format, lines.as_slice()) {
        (ExplainFormat::Text, [only]) if is_named => {
            report::lines(only, args.top.unwrap_or(TOP_LINES))
        }
        (ExplainFormat::Text, all) => report::changed_lines(all, args.top.unwrap_or(TOP_CHANGED)),
        (ExplainFormat::Json, [only]) if is_named => report::lines_json(only).map_err(failed)?,
        (ExplainFormat::Json, all) => report::changed_lines_json(all).map_err(failed)?,
        (ExplainFormat::Html, _) => {
            return Err(Failure::Usage("--lines needs --format text or json".into()));
        }
    };
    write_out(&text, args.output.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

/// The experiment that was named; otherwise the latest one of exact mode that has both variants and keeps the lines of
/// the functions, or else the latest one of exact mode.
fn with_lines(
    store: &dyn Archive,
    named: Option<&str>,
    variants: [&str; 2],
    functions: &Functions,
) -> Result<ExperimentId, Failure> {
    if named.is_some() {
        return chosen::find(store, named);
    }
    let mut known = chosen::with_both(store, variants)?;
    known.retain(|(_, it)| it.mode == Mode::Exact);
    let keeps = |it: &Experiment| match functions {
        Functions::Named(function) => it.profile.lines.contains(function),
        Functions::Changed => !it.profile.lines.is_empty(),
    };
    if known.iter().any(|(_, it)| keeps(it)) {
        known.retain(|(_, it)| keeps(it));
    }
    let rows: Vec<_> = known.into_iter().map(|(row, _)| row).collect();
    chosen::with_results_of(store, &rows, variants)?.ok_or_else(|| none(variants, "of exact mode"))
}

/// The experiments whose profiles are explained. There is at least one.
struct Chosen {
    exact: Option<ExperimentId>,
    sampled: Option<ExperimentId>,
}

/// The experiment that was named; otherwise the latest one of each mode that has profiles of both variants.
fn choose(
    store: &dyn Archive,
    named: Option<&str>,
    variants: [&str; 2],
) -> Result<Chosen, Failure> {
    if named.is_some() {
        let id = chosen::find(store, named)?;
        return Ok(match store.experiment(id)?.mode {
            Mode::Exact => Chosen { exact: Some(id), sampled: None },
            Mode::Measured => Chosen { exact: None, sampled: Some(id) },
        });
    }
    let known = chosen::with_both(store, variants)?;
    let latest = |is_wanted: fn(&Experiment) -> bool| {
        let wanted = known.iter().filter(|(_, experiment)| is_wanted(experiment));
        let rows: Vec<_> = wanted.map(|(row, _)| row.clone()).collect();
        chosen::with_results_of(store, &rows, variants)
    };
    match (latest(|it| it.mode == Mode::Exact)?, latest(|it| it.profile.sampled)?) {
        (None, None) => Err(none(variants, "of exact mode or with samples")),
        (exact, sampled) => Ok(Chosen { exact, sampled }),
    }
}

/// Says that no experiment of a kind has both variants.
fn none([base, new]: [&str; 2], kind: &str) -> Failure {
    Failure::Usage(format!(
        "no experiment {kind} has both `{base}` and `{new}`: `faultline list` shows experiments and their variants"
    ))
}

/// The text, JSON or page for exact profiles, for samples, or for both.
fn lay_out(
    exact: Option<&Explained>,
    sampled: Option<&SampledProfiles>,
    args: &ExplainArgs,
) -> Result<String, Failure> {
    let (phase, rows) = (args.phase.as_deref(), args.top.unwrap_or(TOP));
    let difference = sampled.map(|it| &it.difference);
    let failed = |error: serde_json::Error| Failure::Host(error.to_string());
    match (args.format, exact, difference) {
        (ExplainFormat::Text, exact, difference) => {
            let exact =
                exact.map(|it| report::explain(&it.explanation, &it.headlines(), phase, rows));
            let sampled = difference.map(|it| report::sampled(it, rows));
            Ok(exact.into_iter().chain(sampled).collect::<Vec<_>>().join("\n"))
        }
        (ExplainFormat::Json, Some(exact), difference) => {
            report::explain_json(&exact.explanation, &exact.headlines(), difference).map_err(failed)
        }
        (ExplainFormat::Json, None, Some(it)) => report::sampled_json(it).map_err(failed),
        (ExplainFormat::Html, Some(exact), difference) => {
            let paths = sampled.map(SampledProfiles::paths);
            let beside = difference.zip(paths.as_ref());
            let Explained { explanation, .. } = exact;
            Ok(report::explain_html(explanation, &exact.headlines(), &exact.paths(), phase, beside))
        }
        (ExplainFormat::Html, None, Some(it)) => {
            let paths = sampled.map(SampledProfiles::paths).unwrap_or_default();
            Ok(report::sampled_html(it, &paths))
        }
        (_, None, None) => Ok(String::new()),
    }
}
