//! `faultline culprit`: searches the commit or the option at which a figure changed.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::compare::Comparison;
use ::culprit::{Findings, Proof, SearchEnding};
use kernels::Cache;
use lab::{Lab, Progress};
use model::{Build, Mode, Profiling, count, visible};
use plan::Search;
use plan::file::{BootsForm, CulpritForm, FileForm, Input, placeless};
use results::{Analysis, Question};
use search::Range;
use store::ExperimentId;

use super::run::{laboratory, of_file, on_interrupt};
use super::{existing_store, new_directory, options, write_out};
use crate::args::{CulpritArgs, CulpritFormat, FigureArgs};
use crate::failure::{BOOTS_FAILED, Failure};
use crate::progress::Display;

/// The number of boots of each end before the search, in exact mode.
const SEEDS: u32 = 4;
/// The names of the files beside a mail: the answer as text, JSON, and the page.
const ATTACHED: [&str; 3] = ["culprit.txt", "culprit.json", "culprit.html"];

pub fn culprit(store: Option<PathBuf>, args: &CulpritArgs) -> Result<ExitCode, Failure> {
    let search = asked(args)?;
    lab::check(&search.experiment)?;
    // What would fail only at the end of a long search is checked first.
    kernels::subjects(&search.build.patches)?;
    for path in [&args.output, &args.bisect_log].into_iter().flatten() {
        if path.is_dir() {
            return Err(Failure::Usage(format!("{}: it is a directory", path.display())));
        }
        let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
        if directory.is_some_and(|directory| !directory.is_dir()) {
            let path = path.display();
            return Err(Failure::Usage(format!("{path}: its directory does not exist")));
        }
    }
    if args.bisect_log.is_some() && args.bisect_log == args.output {
        let why = "--output and --bisect-log name the same file: give each its own";
        return Err(Failure::Usage(why.into()));
    }
    if let Some(directory) = &args.attach {
        if args.format != CulpritFormat::Mail {
            let why = "--attach needs --format mail: it writes other forms of the answer beside it";
            return Err(Failure::Usage(why.into()));
        }
        new_directory::check("--attach", directory)?;
    }
    let display = RefCell::new(Display::new(args.quiet));
    let say = |line: &str| display.borrow_mut().show(Progress::Message(line));
    let cache = match args.dry_run {
        true => Cache::open()?.without_waiting(),
        false => Cache::open()?,
    };
    for config in [&search.build.config, &search.bad_config] {
        cache.check_request(&Build { config: config.clone(), ..search.build.clone() })?;
    }
    let range = Range::read(&search, &cache, &say)?;
    let mut display = display.into_inner();
    search.reference.as_ref().map(|name| range.history.commit(name)).transpose()?;
    if args.bisect_log.is_some() && range.options() > 0 {
        let why = "--bisect-log cannot tell git of options: give both ends one configuration";
        return Err(Failure::Usage(why.into()));
    }
    if args.dry_run {
        return plan(store, &search, &range);
    }
    let mut lab = laboratory(store, args.turn)?;
    on_interrupt(&display, &lab)?;
    let found = search::find(&mut lab, &search, &range, &mut |progress| display.show(progress));
    display.finish();
    let found = found?;
    let text = match args.format {
        CulpritFormat::Text => report::culprit(&found),
        CulpritFormat::Mail => mail(&lab, &found, args.attach.as_deref())?,
        CulpritFormat::Json => report::culprit_json(&found),
        CulpritFormat::Html => report::culprit_page(&found),
    };
    write_out(&text, args.output.as_deref())?;
    if let Some(path) = &args.bisect_log {
        write_out(&report::bisect_log(&found), Some(path))?;
    }
    Ok(match found.ending {
        SearchEnding::NoEnd(_) => ExitCode::from(BOOTS_FAILED),
        _ => ExitCode::SUCCESS,
    })
}

/// The mail. Other forms of the answer are written into the directory `attached`.
fn mail(lab: &Lab, found: &Findings, attached: Option<&Path>) -> Result<String, Failure> {
    let mut names: &[&str] = &[];
    if let Some(directory) = attached {
        let all = [report::culprit, report::culprit_json, report::culprit_page];
        let all = all.map(|form| visible(&form(found)).into_owned().into_bytes());
        let files: Vec<_> = ATTACHED.map(str::to_owned).into_iter().zip(all).collect();
        new_directory::write(directory, &files)?;
        names = &ATTACHED;
    }
    Ok(report::culprit_mail(found, &proofs(lab, found)?, &command(), names))
}

/// The comparison of each proof.
fn proofs(lab: &Lab, found: &Findings) -> Result<Vec<Comparison>, Failure> {
    let proofs = found.culprits.iter().filter_map(|culprit| culprit.proof.as_ref());
    let compared = |proof: &Proof| {
        let id = ExperimentId(proof.experiment);
        Ok(Analysis::of(&*lab.store, &[id], &Question::default())?.comparison)
    };
    proofs.map(compared).collect()
}

/// The search that a file or the options describe.
fn asked(args: &CulpritArgs) -> Result<Search, Failure> {
    let (input, mut form) = match &args.experiment {
        Some(path) => of_file(path)?,
        None => without_file(args)?,
    };
    let wanted = form.culprit.get_or_insert_with(|| placeless(CulpritForm::default())).get_mut();
    for (given, end) in [(&args.good, &mut wanted.good), (&args.bad, &mut wanted.bad)] {
        *end = given.clone().or(end.take());
    }
    Ok(Search { prove: !args.no_proof, ..input.search(form)? })
}

/// The form that the options describe, without the ends.
fn without_file(args: &CulpritArgs) -> Result<(Input, FileForm), Failure> {
    let mut input = Input::default();
    if args.config.kconfig.is_some() && args.good_config.is_some() && args.bad_config.is_some() {
        let why = "--kconfig has no effect beside --good-config and --bad-config: leave it out";
        return Err(Failure::Usage(why.into()));
    }
    let mut workload =
        options::workload(&mut input, ("--workload", &args.workload), &args.parameters)?;
    workload.iterations = Some(input.option("--iterations", args.iterations));
    let machine = options::machine(&mut input, &args.machine);
    let mut form = FileForm::new(machine, Vec::new(), workload);
    form.mode = args.mode.into();
    match form.mode {
        Mode::Exact => form.seeds = Some(input.option("--boots", args.boots.unwrap_or(SEEDS))),
        Mode::Measured => {
            form.boots = args.boots.map(|it| input.option("--boots", BootsForm::Number(it)));
        }
    }
    form.profile = args.memory_model.clone().map(|model| {
        let profile = Profiling { memory_model: Some(model), ..Profiling::default() };
        input.option("--memory-model", profile)
    });
    form.tree = args.tree.clone();
    form.build = options::build(&mut input, &args.config);
    let FigureArgs { metric, counter, phase, function, cost } = &args.figure;
    form.culprit = Some(placeless(CulpritForm {
        good_config: args.good_config.clone(),
        bad_config: args.bad_config.clone(),
        reference: args.reference.clone(),
        metric: metric.clone(),
        counter: counter.clone(),
        phase: phase.clone().map(|phase| input.option("--phase", phase)),
        function: function.clone().map(|function| input.option("--function", function)),
        cost: cost.clone().map(|cost| input.option("--cost", cost)),
        all: args.all,
        first_parent: args.first_parent,
        with_patch: args.with_patch.clone(),
        confidence: args.confidence.map(|it| input.option("--confidence", it)),
        budget: args.budget,
        ..CulpritForm::default()
    }));
    Ok((input, form))
}

/// The command as the user typed it.
fn command() -> String {
    let quoted = |word: OsString| match word.as_encoded_bytes() {
        [b'-', b'-', name @ ..] if !name.is_empty() => format!("--{}", report::shell_word(name)),
        word => report::shell_word(word),
    };
    let words = std::env::args_os().skip(1).map(quoted);
    ["faultline".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// Prints what a search would do.
fn plan(store: Option<PathBuf>, search: &Search, range: &Range) -> Result<ExitCode, Failure> {
    let commits = &range.history.commits;
    let merges = match commits.iter().filter(|commit| commit.parents.len() > 1).count() {
        0 => String::new(),
        merges => format!(", {}", count(merges, "merge")),
    };
    let parting =
        range.parting().map_or("", |_| ", the bad end's code with the good end's options");
    let reverted = if search.prove { ", one with the culprit reverted" } else { "" };
    let boots = search.experiment.boots;
    // Without a store there are no earlier boots.
    let cost = search::cost(search, range, existing_store(store).ok().as_deref(), &Cache::open()?)?;
    let text = format!(
        "{}{merges}\nabout {} kernels: the two ends{parting}, one for each halving{reverted}; \
         fewer if commits change nothing that is built\n{boots} boots of each end, then {}\n{cost}\n",
        range.between(search),
        range.kernels(search.prove),
        match search.experiment.mode {
            Mode::Exact => "1 or a few of each kernel",
            Mode::Measured => "as many as the noise needs",
        }
    );
    write_out(&text, None)?;
    Ok(ExitCode::SUCCESS)
}
