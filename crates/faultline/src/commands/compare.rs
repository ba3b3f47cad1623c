//! `faultline compare`: the tables of an experiment, or of several side by side.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::compare::{Comparison, Explained, Results};
use model::{Architecture, Experiment, Mode, WorkloadUse, visible};
use plan::file::{self, Written};
use plan::workloads;
use plots::Plots;
use report::{
    Console, MAX_CONSOLES, OfArchitecture, Page, Recipe, escape, shell_word, source_name,
};
use results::{Analysis, Question};
use store::{Archive, ExperimentId, ExperimentRow};

use super::chosen::{find, find_with_results};
use super::import::perf;
use super::{architectures, existing_store, new_directory, say, store_option, write_out};
use crate::args::{CompareArgs, Format, Warmup};
use crate::failure::Failure;
use crate::list::moment;

/// The names of the files beside a mail: tables as text, JSON, and the page.
const ATTACHED: [&str; 3] = ["comparison.txt", "comparison.json", "comparison.html"];

pub fn compare(store: Option<PathBuf>, args: &CompareArgs) -> Result<ExitCode, Failure> {
    check(args)?;
    let named = store_option(store.as_ref());
    let store = existing_store(store)?;
    let ids = experiments(&*store, args)?;
    for id in &ids {
        refuse_samples(&store.experiment(*id)?, *id, &named)?;
    }
    if architectures::are_several(&*store, &ids)? {
        if args.format == Format::Csv || args.full || args.attach.is_some() {
            return Err(Failure::Usage(ONE_ARCHITECTURE.into()));
        }
        let text = match args.format {
            Format::Text => architectures::beside(&*store, &ids, &question(args), &named)?,
            format => {
                let analyses = architectures::analyses(&*store, &ids, &question(args))?;
                check_single(&analyses, format)?;
                of_several(&*store, &analyses, format)?
            }
        };
        write_out(&text, args.output.as_deref())?;
        return Ok(ExitCode::SUCCESS);
    }
    let analysis = Analysis::of(&*store, &ids, &question(args))?;
    check_single(std::slice::from_ref(&analysis), args.format)?;
    let head = head(&analysis.rows, analysis.comparison.mode);
    let comparison = &analysis.comparison;
    let full = full_command(&named, &ids, args, comparison);
    let text = match args.format {
        Format::Text if !args.full => head + &report::brief(comparison, &full),
        Format::Text => head + &report::text(comparison),
        Format::Csv => report::csv(comparison).map_err(|error| Failure::Host(error.to_string()))?,
        Format::Json => {
            if !head.is_empty() {
                eprintln!("{}", head.trim_end());
            }
            json(&analysis)?
        }
        Format::Mail => mail(&*store, &analysis, args.attach.as_deref())?,
        Format::Html => page(&*store, &analysis)?,
    };
    write_out(&text, args.output.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

/// Why another form of a comparison of several architectures is refused.
const ONE_ARCHITECTURE: &str = "--full, --attach and --format csv are for experiments of one architecture: the verdicts on \
                                several are compared as text, json, mail or html";

/// Experiments for several architectures as JSON, as a mail, or as a page.
fn of_several(
    store: &dyn Archive,
    analyses: &[Analysis],
    format: Format,
) -> Result<String, Failure> {
    match format {
        Format::Json => {
            let explained: Vec<Vec<Explained>> = analyses.iter().map(Analysis::explained).collect();
            let all = analyses.iter().map(|it| &it.comparison);
            let all: Vec<_> = all.zip(explained.iter().map(Vec::as_slice)).collect();
            report::architectures_json(&all).map_err(|error| Failure::Host(error.to_string()))
        }
        Format::Mail => {
            let parts: Vec<_> = analyses
                .iter()
                .map(|it| (it, it.results(), it.explained_with_reasons(), files_of_both(it)))
                .collect();
            let recipes = parts.iter().map(|(analysis, .., files)| {
                let recipe = recipe(analysis, files);
                Recipe { on_both: true, ..recipe }
            });
            let recipes: Vec<Recipe<'_>> = recipes.collect();
            let all =
                parts.iter().zip(&recipes).map(|((analysis, results, explained, _), recipe)| {
                    let comparison = &analysis.comparison;
                    OfArchitecture { comparison, results, explained, recipe }
                });
            Ok(report::architectures_mail(&all.collect::<Vec<_>>()))
        }
        _ => {
            let shown =
                analyses.iter().map(|it| Shown::of(store, it)).collect::<Result<Vec<_>, _>>()?;
            let recipes: Vec<Recipe<'_>> =
                shown.iter().map(|it| recipe(it.analysis, &it.files)).collect();
            let pages = shown.iter().zip(&recipes).map(|(it, recipe)| it.page(recipe));
            Ok(report::architectures_page(&pages.collect::<Vec<_>>()))
        }
    }
}

/// Refuses an experiment of perf's samples, which have no figures for tables.
fn refuse_samples(experiment: &Experiment, id: ExperimentId, named: &str) -> Result<(), Failure> {
    if experiment.imported.as_ref().is_none_or(|it| it.tool != perf::TOOL) {
        return Ok(());
    }
    let names = experiment.variants.iter().map(|it| shell_word(it.name.as_bytes()));
    let names = if experiment.variants.len() < 2 {
        "BASE NEW".to_owned()
    } else {
        names.take(2).collect::<Vec<_>>().join(" ")
    };
    Err(Failure::Usage(format!(
        "experiment {id} has samples of perf: `faultline{named} explain {names} {id}` compares them"
    )))
}

/// The command that prints all tables.
fn full_command(
    named: &str,
    ids: &[ExperimentId],
    args: &CompareArgs,
    comparison: &Comparison,
) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let point = match (&args.point, comparison.points.last()) {
        (Some(point), _) => format!(" --point {}", shell_word(point.as_bytes())),
        (None, Some(last)) => format!(" --point {}", shell_word(last.name.as_bytes())),
        (None, None) => String::new(),
    };
    format!("faultline{named} compare {}{point} --full", ids.join(" "))
}

/// Refuses options that contradict each other.
fn check(args: &CompareArgs) -> Result<(), Failure> {
    let wrong = |message: &str| Err(Failure::Usage(message.into()));
    if args.full && args.format != Format::Text {
        return wrong(
            "--full needs --format text: json, csv and html are always complete, and a mail is short",
        );
    }
    if let Some(directory) = &args.attach {
        if args.format != Format::Mail {
            return wrong("--attach needs --format mail: it writes what a mail leaves out");
        }
        new_directory::check("--attach", directory)?;
    }
    if args.phase.len() > 1 && args.phase.iter().any(|phase| phase == ::compare::ALL_PHASES) {
        return wrong("--phase all already means every phase: leave the others out");
    }
    if args.experiments.len() > 1 && args.point.is_some() {
        return wrong("--point needs one experiment: a sweep is compared alone");
    }
    Ok(())
}

/// Refuses a mail or a page on several experiments that are compared with each other.
fn check_single(analyses: &[Analysis], format: Format) -> Result<(), Failure> {
    let is_single = analyses.iter().all(|it| it.rows.len() < 2);
    match is_single || !matches!(format, Format::Mail | Format::Html) {
        true => Ok(()),
        false => Err(Failure::Usage(
            "several experiments can only be compared with --format text or json: mail and page tell how to \
             reproduce one experiment"
                .into(),
        )),
    }
}

/// The experiments that are named, or the latest with a complete boot.
fn experiments(store: &dyn Archive, args: &CompareArgs) -> Result<Vec<ExperimentId>, Failure> {
    let mut ids: Vec<ExperimentId> = Vec::new();
    for named in &args.experiments {
        let id = find(store, Some(named))?;
        if ids.contains(&id) {
            return Err(Failure::Usage(format!("experiment {id} is named twice")));
        }
        ids.push(id);
    }
    if ids.is_empty() {
        ids.push(find_with_results(store, None)?);
    }
    Ok(ids)
}

fn question(args: &CompareArgs) -> Question {
    Question {
        baseline: args.baseline.clone(),
        point: args.point.clone(),
        phases: args.phase.clone(),
        margin: args.margin.map(|margin| margin.0),
        warm_up_counts: args.warmup.map(|warmup| warmup == Warmup::Include),
        names: args.names,
    }
}

/// Says which experiments are compared, and what a comparison of several does not tell; empty for one.
fn head(rows: &[ExperimentRow], mode: Mode) -> String {
    let mut text = String::new();
    if rows.len() < 2 {
        return text;
    }
    for row in rows {
        let (created, variants) = (moment(row.created), row.variants.join(", "));
        let line =
            format!("Experiment {}: {} ({variants}), created {created} UTC", row.id, row.name);
        text.push_str(&escape(&line));
        text.push('\n');
    }
    text.push_str(match mode {
        Mode::Exact => {
            "Counts depend only on a boot's inputs, so boots of different experiments are comparable.\n\n"
        }
        Mode::Measured => {
            "Boots of different experiments were not interleaved, so they form no pairs. A change of the host between\n\
             the experiments looks like a difference between variants.\n\n"
        }
    });
    text
}

/// The mail. What it leaves out is written into the directory `attached`.
fn mail(
    store: &dyn Archive,
    analysis: &Analysis,
    attached: Option<&Path>,
) -> Result<String, Failure> {
    let comparison = &analysis.comparison;
    let files = files(analysis);
    let mut beside: Vec<(String, Vec<u8>)> = Vec::new();
    if let Some(directory) = attached {
        let all = [report::text(comparison), json(analysis)?, page(store, analysis)?];
        let all = all.map(|text| visible(&text).into_owned());
        let named = ATTACHED.map(str::to_owned).into_iter().zip(all);
        let texts = named.chain(files.iter().cloned());
        beside.extend(texts.map(|(name, text)| (name, text.into_bytes())));
        let manifests = analysis.experiment.workloads.iter().map(|it| &it.manifest);
        let sources = manifests.filter_map(|it| Some((source_name(it)?, it.source.clone().into())));
        for (name, source) in sources {
            if !beside.iter().any(|(other, _)| *other == name) {
                beside.push((name, source));
            }
        }
        add_programs(analysis, &mut beside);
        new_directory::write(directory, &beside)?;
    }
    let names: Vec<&str> = beside.iter().map(|(name, _)| &**name).collect();
    let (results, explained) = (analysis.results(), analysis.explained_with_reasons());
    Ok(report::mail(comparison, &results, &explained, &recipe(analysis, &files), &names))
}

/// Adds the user's programs and archives to `beside`, as they were booted. Says which are left out. Directories of
/// programs are left out.
fn add_programs(analysis: &Analysis, beside: &mut Vec<(String, Vec<u8>)>) {
    let used = || analysis.experiment.workloads.iter();
    for it in used().filter(|it| !it.binaries.is_empty()) {
        say(&format!("the programs of {} are not attached", escape(&it.manifest.name)));
    }
    let files: BTreeSet<(&str, &str, &Path)> = used()
        .flat_map(|it| it.program.iter().chain(&it.archive))
        .filter_map(|it| Some((it.path().file_name()?.to_str()?, it.digest.as_deref()?, it.path())))
        .collect();
    for (name, digest, path) in files {
        // A device may never end.
        let content = path.is_file().then(|| fs::read(path).ok()).flatten();
        let content = content.filter(|bytes| kernels::digest(bytes) == digest);
        let is_taken = beside.iter().any(|(other, _)| other == name);
        match content.filter(|_| !is_taken) {
            Some(content) => beside.push((name.to_owned(), content)),
            None => {
                let shown = path.display().to_string();
                let why = match is_taken {
                    true => "another file has its name".to_owned(),
                    false if path.is_relative() => format!(
                        "{} was changed or is not here; where the run was started, it may be",
                        escape(&shown)
                    ),
                    false => format!("{} is gone or was changed", escape(&shown)),
                };
                say(&format!("{} is not attached: {why}", escape(name)));
            }
        }
    }
}

fn json(analysis: &Analysis) -> Result<String, Failure> {
    report::json(&analysis.comparison, &analysis.explained())
        .map_err(|error| Failure::Host(error.to_string()))
}

fn page(store: &dyn Archive, analysis: &Analysis) -> Result<String, Failure> {
    let shown = Shown::of(store, analysis)?;
    Ok(report::page(&shown.page(&recipe(analysis, &shown.files))))
}

/// What a page has of a comparison.
struct Shown<'a> {
    analysis: &'a Analysis,
    results: Results<'a>,
    plots: Vec<Plots>,
    explained: Vec<Explained>,
    consoles: Vec<Console>,
    files: Vec<(String, String)>,
}

impl<'a> Shown<'a> {
    fn of(store: &dyn Archive, analysis: &'a Analysis) -> Result<Self, Failure> {
        let consoles = analysis.consoles(store, MAX_CONSOLES)?.into_iter();
        Ok(Self {
            analysis,
            results: analysis.results(),
            plots: analysis.plots(store)?,
            explained: results::with_lines(analysis, analysis.explained_with_paths(), &say),
            consoles: consoles.map(|(boot, text)| Console { boot, text }).collect(),
            files: files(analysis),
        })
    }

    fn page<'b>(&'b self, recipe: &'b Recipe<'b>) -> Page<'b> {
        Page {
            comparison: &self.analysis.comparison,
            results: &self.results,
            plots: &self.plots,
            explained: &self.explained,
            consoles: &self.consoles,
            recipe,
        }
    }
}

/// The files that reproduce an experiment, the experiment file first.
fn files(analysis: &Analysis) -> Vec<(String, String)> {
    let Written { text, others } = file::write(&analysis.experiment, &analysis.reading);
    let mut name = file::file_name(&analysis.experiment.name);
    if others.iter().any(|(other, _)| *other == name) {
        name = format!("run-{name}");
    }
    let own = (name, text);
    [own].into_iter().chain(others).collect()
}

/// The files of an experiment for x86-64, for a run on both architectures.
fn files_of_both(analysis: &Analysis) -> Vec<(String, String)> {
    let mut files = files(analysis);
    let names = Architecture::ALL.iter().map(|arch| format!("\"{}\"", arch.name()));
    let arch = format!("[machine]\narch = [{}]\n", names.collect::<Vec<_>>().join(", "));
    files[0].1 = files[0].1.replacen("[machine]\n", &arch, 1);
    files
}

fn recipe<'a>(analysis: &Analysis, files: &'a [(String, String)]) -> Recipe<'a> {
    let parameters = parameters(&analysis.experiment);
    Recipe { version: env!("CARGO_PKG_VERSION"), files, parameters, on_both: false }
}

/// The parameters of a built-in workload that differ from their defaults. `None` if other workloads run, or a program
/// of the user's.
fn parameters(experiment: &Experiment) -> Option<Vec<(String, String)>> {
    let [WorkloadUse { manifest, program: None, archive: None, binaries, .. }] =
        &experiment.workloads[..]
    else {
        return None;
    };
    let built_in = workloads::built_in();
    let usual = built_in.iter().find(|it| it.name == manifest.name && binaries.is_empty())?;
    let mut own = usual.clone();
    let mut changed = Vec::new();
    for (name, parameter) in &mut own.parameters {
        let value = &manifest.parameters.get(name)?.value;
        if parameter.value != *value {
            changed.push((name.clone(), value.clone()));
            parameter.value.clone_from(value);
        }
    }
    (own.as_run() == manifest.as_run()).then_some(changed)
}
