//! `faultline run`: runs an experiment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, exit};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use boot::{Guest, Libraries};
use kernels::Cache;
use lab::{Lab, RunEnding, RunError, RunOptions, RunSummary};
use machine::settings::HostSettings;
use model::{Experiment, Mode, Sampler, count};
use plan::Request;
use plan::file::{self, FileForm, Input};
use plan::form::text;
use plan::workloads::WorkloadError;
use results::Question;
use store::Archive;

use super::architectures::beside;
use super::build::variants;
use super::plan::{left_out, plan};
use super::{chosen, existing_store, lines, options, print, store_option, store_path};
use crate::args::{BootsArg, CHANGED, CountArg, ExactArgs, RunArgs, SequentialArgs, TurnArgs};
use crate::failure::{BOOTS_FAILED, Failure, INTERRUPTED};
use crate::log;
use crate::progress::Display;

pub fn run(store: Option<PathBuf>, args: RunArgs) -> Result<ExitCode, Failure> {
    let requests = match &args.again {
        Some(named) => vec![again(store.clone(), named, &args.exact.lines)?],
        None => described(&args)?,
    };
    for request in &requests {
        lab::check(&request.experiment).map_err(|error| failed(&args, error))?;
    }
    if args.dry_run {
        let path = store_path(store)?;
        let store = path.exists().then(|| existing_store(Some(path))).transpose()?;
        let cache = Cache::open()?.without_waiting();
        for request in &requests {
            check_settings(&request.experiment)?;
            print(&plan(request, &cache, store.as_deref(), run_options(&args))?)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let named = store_option(store.as_ref());
    let mut lab = laboratory(store, args.turn)?;
    let mut display = Display::new(args.quiet);
    on_interrupt(&display, &lab)?;
    let (mut ids, mut failures) = (Vec::new(), 0);
    for request in &requests {
        let summary = lab.run(request, run_options(&args), &mut |progress| display.show(progress));
        display.finish();
        let summary = summary.map_err(|error| failed(&args, error))?;
        let (name, id) = (report::escape(&request.experiment.name), summary.experiment);
        let see = format!("see `faultline{named} compare {id}`");
        print(&format!("experiment {id}, {name}: {}; {see}\n", done(&summary)))?;
        ids.push(id);
        failures += summary.failed + summary.failed_before;
    }
    if ids.len() > 1 {
        print(&beside(&*lab.store, &ids, &Question::default(), &named)?)?;
    }
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::from(BOOTS_FAILED) })
}

/// Checks that this user may write the settings of an experiment on this host.
fn check_settings(experiment: &Experiment) -> Result<(), RunError> {
    let settings = HostSettings::of_user();
    let variants = experiment.variants.iter().filter(|_| !experiment.machine.kind.is_vm());
    let mut all = variants.flat_map(|variant| &variant.settings);
    Ok(all.try_for_each(|setting| settings.check(setting))?)
}

fn run_options(args: &RunArgs) -> RunOptions {
    let ExactArgs { verify, keep_going, jobs, count, .. } = args.exact;
    let each = count == Some(CountArg::Each);
    RunOptions { retry_failed: args.retry_failed, keep_going, verify, each, jobs, until: None }
}

/// Handles Ctrl-C: puts settings of this host back, prints how many boots this run stored, and exits. The machines end
/// with this process, and the next run stores what they recorded.
pub fn on_interrupt(display: &Display, lab: &Lab) -> Result<(), Failure> {
    let (kept, settings) = (Arc::clone(&display.kept), Arc::clone(&lab.settings));
    let end = move || {
        for line in settings.put_back_for_good().left {
            eprintln!("{line}");
        }
        let boots = count(kept.load(Relaxed), "boot");
        eprintln!(
            "\nfaultline: interrupted. This run stored {boots}. Run the same command again to continue; it \
             also stores what unfinished boots recorded."
        );
        exit(INTERRUPTED);
    };
    ctrlc::set_handler(end).map_err(|error| Failure::Host(error.to_string()))
}

/// The message for `faultline run` without arguments.
const NOTHING: &str = "give an experiment file, or kernels and a workload:
  faultline run experiments/demo.toml
  faultline run --kernels debian:6.12,debian:newest --workload mprotect --mode exact";

/// Why the run failed. An unknown package in the user's manifest is an error in the file.
fn failed(args: &RunArgs, error: RunError) -> Failure {
    if let RunError::Kernel(no @ kernels::Error::NoPackage { package, .. }) = &error
        && let Some(path) = &args.experiment
        && let Ok(text) = text::read(path)
        && let Some(error) = file::package_error(path, &text, package, &no.to_string())
    {
        return error.into();
    }
    error.into()
}

/// The laboratory with the named store, or with the default one.
pub fn laboratory(store: Option<PathBuf>, turn: TurnArgs) -> Result<Lab, Failure> {
    let path = store_path(store)?;
    with_store(store::open(&path)?, &path, turn)
}

/// The laboratory with an open store, whose file is at `path`.
pub fn with_store(store: Box<dyn Archive>, path: &Path, turn: TurnArgs) -> Result<Lab, Failure> {
    log::to_file(path);
    Ok(Lab {
        cache: Cache::open()?,
        guest: Guest::find()?,
        libraries: Libraries::find(),
        store,
        host: machine::host::describe(Path::new("/")),
        settings: Arc::new(HostSettings::of_user()),
        scratch: scratch(path),
        streams: false,
        waits: !turn.no_wait,
    })
}

/// A summary of the run.
fn done(summary: &RunSummary) -> String {
    let done = match (summary.boots, summary.failed, summary.ending) {
        (0, _, RunEnding::Schedule)
            if summary.given_up.is_empty() && summary.of_other_hosts == 0 =>
        {
            "all boots were already done".to_owned()
        }
        (0, ..) => "no boots done".to_owned(),
        (boots, 0, _) => format!("{} done", count(boots, "boot")),
        (boots, failed, _) if failed == summary.partial => {
            format!("{} done; in {failed} of them a workload failed", count(boots, "boot"))
        }
        (boots, failed, _) => format!("{} done, {failed} of them failed", count(boots, "boot")),
    };
    let before = match summary.failed_before {
        0 => String::new(),
        failed => {
            format!("; {} failed before: --retry-failed repeats them", count(failed, "boot"))
        }
    };
    let left_out = match &summary.given_up[..] {
        [] => String::new(),
        given_up => format!("; {}", self::left_out(given_up)),
    };
    let same = match summary.verified {
        0 => String::new(),
        boots => format!(", {} repeated with bit-identical results", count(boots, "boot")),
    };
    let why = match summary.ending {
        RunEnding::Schedule => "",
        RunEnding::Verdicts => "; all verdicts are decided",
        RunEnding::Budget => "; the time budget is used up: run the same command again to continue",
        RunEnding::Fruitless => "; a variant has no complete boot",
        RunEnding::Unjudged => {
            "; no row can be judged: set `primary` to rows of the tables, and run it again"
        }
    };
    format!("{done}{before}{left_out}{same}{why}")
}

/// The number of boots of each kernel in measured mode, without a file.
const DEFAULT_BOOTS: u32 = 3;

/// The directory for running boots, next to the store. It has the store's name, so two stores in one
/// directory do not conflict.
pub fn scratch(store: &Path) -> PathBuf {
    // All paths to the store lead to the same directory, and so to the same lock.
    let store = fs::canonicalize(store).unwrap_or_else(|_| store.to_owned());
    let mut name = store.file_name().unwrap_or_default().to_owned();
    name.push(".running");
    store.with_file_name(name)
}

/// The form of an experiment file.
pub fn of_file(path: &Path) -> Result<(Input, FileForm), Failure> {
    Ok(Input::file(path, text_of(path)?)?)
}

fn text_of(path: &Path) -> Result<String, Failure> {
    text::read(path).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// The experiment that a file or the options describe, or one for each architecture.
fn described(args: &RunArgs) -> Result<Vec<Request>, Failure> {
    // A file is read once, because it can be a pipe.
    let text = args.experiment.as_deref().map(text_of).transpose()?;
    let form = || match (&args.experiment, &text) {
        (Some(path), Some(text)) => Ok(Input::file(path, text.clone())?),
        _ => without_file(args),
    };
    let (_, asked) = form()?;
    let for_one = |arch| {
        let (mut input, form) = form()?;
        let form = options::exact(&mut input, &args.exact, form.for_architecture(arch))?;
        Ok(input.request(form)?)
    };
    asked.architectures().into_iter().map(for_one).collect()
}

/// A stored experiment of exact mode, whose boots are to keep the lines of functions.
fn again(store: Option<PathBuf>, named: &str, names: &[String]) -> Result<Request, Failure> {
    let store = existing_store(store)?;
    let id = chosen::find(&*store, Some(named))?;
    let (mut experiment, reading) = (store.experiment(id)?, store.reading(id)?);
    if experiment.mode.is_measured() {
        return Err(Failure::Usage(format!(
            "experiment {id} ran in measured mode, which has no lines"
        )));
    }
    let (changed, named): (Vec<_>, Vec<_>) = names.iter().partition(|it| *it == CHANGED);
    experiment.profile.lines.extend(named.iter().copied().cloned());
    if !changed.is_empty() {
        let functions = results::changed_functions(&*store, id)?;
        let list = report::escape(&functions.join(", "));
        eprintln!("Keeping the lines of {}: {list}", count(functions.len(), "function"));
        experiment.profile.lines.extend(functions);
    }
    file::check_profiling(experiment.mode, &mut experiment.profile)
        .map_err(|(problem, hint)| Failure::Usage(format!("--lines: {problem}: {hint}")))?;
    lines::check_executed(&*store, id, named)?;
    let cached = Cache::open()?.list(&|_| ())?;
    for variant in &mut experiment.variants {
        // A source is not built again.
        let kernel = cached.iter().find(|it| Some(&it.digest) == variant.kernel.digest.as_ref());
        let kernel = kernel.ok_or_else(|| {
            let (name, kernel) = (&variant.name, &variant.kernel.name);
            Failure::Usage(format!("the cache no longer has the kernel of {name}, {kernel}: run the command that made the experiment, with --lines"))
        })?;
        variant.kernel.name.clone_from(&kernel.name);
    }
    Ok(Request { experiment, reading, builds: Default::default() })
}

/// The form of the experiment that the options describe.
fn without_file(args: &RunArgs) -> Result<(Input, FileForm), Failure> {
    let mut input = Input::default();
    if args.kernels.is_empty() && !args.place.is_host() {
        return Err(Failure::Usage(NOTHING.into()));
    }
    let variants = variants(&mut input, ("--kernels", &args.kernels), &args.build, args.each)?;
    let mut workload =
        options::workload(&mut input, ("--workload", &args.workload), &args.parameters)?;
    workload.iterations = Some(input.option("--iterations", args.iterations));
    let machine = options::machine_at(&mut input, &args.place, &args.machine);
    let mut form = FileForm::new(machine, Vec::new(), workload);
    options::variants(&mut input, &args.place, variants, &mut form)?;
    form.mode = args.exact.mode.map_or(Mode::Measured, Mode::from);
    let usual = Some(BootsArg::Number(DEFAULT_BOOTS)).filter(|_| form.mode.is_measured());
    let SequentialArgs { at_most, margin, budget } = args.sequential;
    form.boots = args.boots.or(usual).map(|boots| input.option("--boots", boots.into()));
    form.at_most = at_most.map(|boots| input.option("--at-most", boots));
    form.margin = margin.map(|margin| input.option("--margin", margin));
    form.budget = budget.map(|budget| input.option("--budget", budget));
    if !args.events.is_empty() {
        let events = args.events.iter().map(|name| name.trim().to_owned()).collect();
        form.sampler = Some(input.option("--events", Sampler { events, ..Sampler::default() }));
    }
    form.tree = args.build.tree.clone();
    form.build = options::build(&mut input, &args.build.config);
    Ok((input, form))
}

pub fn refused(error: WorkloadError) -> Failure {
    match error.hint() {
        hint if hint.is_empty() => Failure::Usage(error.to_string()),
        hint => Failure::Usage(format!("{error}: {hint}")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    /// The experiment of these options, and the experiment of the file that they are written to.
    fn both(options: &[&str]) -> [Request; 2] {
        let words = [&["faultline", "run"], options].concat();
        let Command::Run(args) = Cli::try_parse_from(words).unwrap().command else {
            unreachable!()
        };
        let request = described(&args).unwrap().remove(0);
        let text = file::write(&request.experiment, &request.reading).text;
        let read = file::parse(Path::new("x.toml"), &text, None);
        [request, read.unwrap_or_else(|error| panic!("{error}: {text}"))]
    }

    #[test]
    fn options_and_a_file_make_the_same_experiment() {
        for options in [
            &["--kernels", "6.1"][..],
            &[
                "--kernels", "6.1,6.12", "--boots", "auto", "--at-most", "9", "--margin", "2",
                "--budget", "2h",
            ],
            &[
                "--kernels", "6.1", "--mode", "exact", "--seeds", "3", "--profile",
                "stacks,accesses", "--lines", "do_wp_page,change_protection",
            ],
            &[
                "--kernels", "6.1", "--workload", "tiobench", "--set", "threads=1,4", "--disk",
                "8G,xfs",
            ],
            &[
                "--kernels", "6.1", "--accel", "tcg", "--cpus", "2", "--nodes", "1", "--memory",
                "512M",
            ],
            &["--kernels", "6.1,newest", "--arch", "arm64", "--workload", "fork"],
            &[
                "--kernels", "6.1", "--events", "cs, page-faults", "--iterations", "3",
                "--profile", "sampled",
            ],
        ] {
            let [options, file] = both(options);
            assert_eq!(options, file);
        }
    }

    #[test]
    fn the_name_has_workload_and_kernels() {
        let [exact, _] = both(&["--kernels", "debian:6.1,6.12", "--mode", "exact"]);
        assert_eq!(exact.experiment.name, "autonuma-6.1-6.12-exact");
    }
}
