//! `faultline run`: runs an experiment.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, exit};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use kernels::Cache;
use lab::schedule::MOST_BOOTS;
use lab::sequential::{self, Unfit};
use lab::workloads::{MOST_ITERATIONS, WorkloadError};
use lab::{Ending, Guest, Lab, Libraries, RunError, RunOptions, RunSummary, file, workloads};
use model::{
    Experiment, Machine, Mode, Profiling, Sampler, Sequential, Variant, WorkloadUse, count,
};
use store::Store;

use super::plan::{left_out, plan};
use super::{existing_store, print, store_option, store_path, topology};
use crate::args::{AccelArg, BootsArg, ExactArgs, MachineArgs, ModeArg, RunArgs, SequentialArgs};
use crate::failure::{BOOTS_FAILED, Failure, INTERRUPTED};
use crate::log;
use crate::progress::Display;

pub fn run(store: Option<PathBuf>, args: RunArgs) -> Result<ExitCode, Failure> {
    let mut experiment = match &args.experiment {
        Some(path) => read(path, args.exact.mode.map(Mode::from))?,
        None if args.kernels.is_empty() => return Err(Failure::Usage(NOTHING.into())),
        None => without_file(&args)?,
    };
    apply(&args, &mut experiment)?;
    lab::check(&experiment).map_err(|error| failed(&args, error))?;
    if args.dry_run {
        let path = store_path(store)?;
        let store = path.exists().then(|| existing_store(Some(path))).transpose()?;
        let cache = Cache::open()?.without_waiting();
        print(&plan(&experiment, &cache, store.as_ref(), options(&args))?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let named = store_option(store.as_ref());
    let mut lab = laboratory(store)?;
    let mut display = Display::new(args.quiet);
    on_interrupt(&display)?;
    let summary = lab.run(&experiment, options(&args), &mut |progress| display.show(progress));
    display.finish();
    let summary = summary.map_err(|error| failed(&args, error))?;
    let (name, id) = (report::escape(&experiment.name), summary.experiment);
    let see = format!("see `faultline{named} compare {id}`");
    print(&format!("experiment {id}, {name}: {}; {see}\n", done(&summary)))?;
    let failed = summary.failed + summary.failed_before;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(BOOTS_FAILED) })
}

fn options(args: &RunArgs) -> RunOptions {
    let ExactArgs { verify, keep_going, jobs, .. } = args.exact;
    RunOptions { retry_failed: args.retry_failed, keep_going, verify, jobs }
}

/// Handles Ctrl-C: prints how many boots this run stored, and exits. The machines end with this process, and the next
/// run stores what they recorded.
pub fn on_interrupt(display: &Display) -> Result<(), Failure> {
    let kept = Arc::clone(&display.kept);
    let end = move || {
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
        && let Ok(text) = file::text::read(path)
        && let Some(error) = file::package_error(path, &text, package, &no.to_string())
    {
        return error.into();
    }
    error.into()
}

/// The laboratory with the named store, or the default one.
pub fn laboratory(store: Option<PathBuf>) -> Result<Lab, Failure> {
    let path = store_path(store)?;
    log::to_file(&path);
    Ok(Lab {
        cache: Cache::open()?,
        guest: Guest::find()?,
        libraries: Libraries::find(),
        store: Store::open(&path)?,
        scratch: scratch(&path),
    })
}

/// A summary of the run.
fn done(summary: &RunSummary) -> String {
    let done = match (summary.boots, summary.failed, summary.ending) {
        (0, _, Ending::Schedule) if summary.given_up.is_empty() => {
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
        Ending::Schedule => "",
        Ending::Verdicts => "; all verdicts are decided",
        Ending::Budget => "; the time budget is used up: run the same command again to continue",
        Ending::Fruitless => "; a variant has no complete boot",
        Ending::Unjudged => {
            "; no row can be judged: set `primary` to rows of the tables, and run it again"
        }
    };
    format!("{done}{before}{left_out}{same}{why}")
}

/// Boots of each kernel in measured mode without a file.
const DEFAULT_BOOTS: u32 = 3;

/// The directory for running boots, next to the store. It has the store's name, so two stores in one
/// directory do not conflict.
pub fn scratch(store: &Path) -> PathBuf {
    // Every path to the store leads to the same directory, and so to the same lock.
    let store = fs::canonicalize(store).unwrap_or_else(|_| store.to_owned());
    let mut name = store.file_name().unwrap_or_default().to_owned();
    name.push(".running");
    store.with_file_name(name)
}

fn read(path: &Path, mode: Option<Mode>) -> Result<Experiment, Failure> {
    Ok(file::parse(path, &text(path)?, mode)?)
}

/// The text of an experiment file.
pub fn text(path: &Path) -> Result<String, Failure> {
    file::text::read(path).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// The experiment that options describe. Its name is made from workload and kernels, so the same command
/// continues it.
fn without_file(args: &RunArgs) -> Result<Experiment, Failure> {
    let mode = args.exact.mode.map_or(Mode::Measured, Mode::from);
    if mode == Mode::Exact && args.boots.is_some() {
        let message =
            "--boots does not apply to exact mode: boots of one seed are identical; use --seeds";
        return Err(Failure::Usage(message.into()));
    }
    let SequentialArgs { at_most, margin, budget } = args.sequential;
    if mode == Mode::Exact && (at_most.is_some() || margin.is_some() || budget.is_some()) {
        let message = "--at-most, --margin and --budget need --boots auto in measured mode; in exact mode \
                       use `faultline compare --margin`";
        return Err(Failure::Usage(message.into()));
    }
    if mode == Mode::Exact && matches!(args.machine.accel, AccelArg::Kvm) {
        let message = "exact mode has its own emulation: leave --accel out";
        return Err(Failure::Usage(message.into()));
    }
    let (boots, sequential) = match mode {
        Mode::Measured => boots(args)?,
        Mode::Exact => (file::DEFAULT_SEEDS, None),
    };
    let variants = super::build::variants(&args.kernels, &args.build, args.each)?;
    let names: Vec<&str> = variants.iter().map(|variant| &*variant.name).collect();
    let used = workload(&args.workload, &args.parameters, args.iterations)?;
    let name = format!("{}-{}", used.manifest.name, names.join("-"));
    let name = if mode == Mode::Exact { file::exact_name(&name) } else { name };
    let described = described(name, variants, used, (&args.machine, mode), boots)?;
    let sampler = Sampler { events: events(&args.events)?, ..described.sampler };
    let experiment = Experiment { sequential, sampler, ..described };
    match sequential::unfit(&experiment) {
        Some(Unfit { problem, remedy }) => Err(Failure::Usage(format!("{problem}: {remedy}"))),
        None => Ok(experiment),
    }
}

/// The events to count.
fn events(names: &[String]) -> Result<Vec<String>, Failure> {
    let names: Vec<String> = names.iter().map(|name| name.trim().to_owned()).collect();
    let wrong = |(problem, hint)| Failure::Usage(format!("--events: {problem}: {hint}"));
    file::check_events(&names).map_err(wrong).map(|()| names)
}

/// An experiment with one workload.
pub fn described(
    name: String,
    variants: Vec<Variant>,
    workload: WorkloadUse,
    (machine, mode): (&MachineArgs, Mode),
    boots: u32,
) -> Result<Experiment, Failure> {
    let workloads = vec![workload];
    let disk = machine.disk.map(|disk| file::usual_disk(disk.size, disk.filesystem, mode));
    let disk = disk.transpose().map_err(|wrong| Failure::Usage(format!("--disk: {wrong}")))?;
    let machine = Machine {
        accel: machine.accel.into(),
        limits: file::usual_limits(&workloads),
        disks: disk.into_iter().collect(),
        ..Machine::new(topology(machine)?)
    };
    for used in &workloads {
        workloads::check(used, &machine).map_err(refused)?;
    }
    Ok(Experiment { name, mode, variants, machine, workloads, boots, ..Experiment::default() })
}

/// A workload with parameters of the user's. `name` may be the file of its manifest.
pub fn workload(
    name: &str,
    parameters: &[(String, String)],
    iterations: u32,
) -> Result<WorkloadUse, Failure> {
    let mut manifest = workloads::named(name).map_err(refused)?;
    let values: BTreeMap<String, String> = parameters.iter().cloned().collect();
    if values.len() < parameters.len() {
        return Err(Failure::Usage("--set names a parameter twice".into()));
    }
    workloads::set_parameters(&mut manifest, values).map_err(refused)?;
    if iterations == 0 {
        return Err(Failure::Usage("--iterations needs 1 or more".into()));
    }
    if iterations > MOST_ITERATIONS {
        let message = format!("--iterations {iterations}: a boot has at most {MOST_ITERATIONS}");
        return Err(Failure::Usage(message));
    }
    let program = workloads::take_program(&mut manifest).map_err(refused)?;
    Ok(WorkloadUse { program, ..WorkloadUse::new(manifest, iterations, file::DEFAULT_TIMEOUT) })
}

pub fn refused(error: WorkloadError) -> Failure {
    match error.hint() {
        hint if hint.is_empty() => Failure::Usage(error.to_string()),
        hint => Failure::Usage(format!("{error}: {hint}")),
    }
}

/// Boots of each kernel in measured mode, and when `--boots auto` ends.
fn boots(args: &RunArgs) -> Result<(u32, Option<Sequential>), Failure> {
    let SequentialArgs { at_most, margin, budget } = args.sequential;
    let usage = |message: String| Err(Failure::Usage(message));
    match args.boots {
        Some(BootsArg::Auto) => {
            let (boots, sequential) = until_decided(&args.sequential)?;
            Ok((boots, Some(sequential)))
        }
        Some(BootsArg::Number(_)) | None
            if at_most.is_some() || margin.is_some() || budget.is_some() =>
        {
            usage("--at-most, --margin and --budget need --boots auto".into())
        }
        Some(BootsArg::Number(boots)) => Ok((boots, None)),
        None => Ok((DEFAULT_BOOTS, None)),
    }
}

/// The largest number of boots of each kernel, and when `--boots auto` ends.
pub fn until_decided(args: &SequentialArgs) -> Result<(u32, Sequential), Failure> {
    let SequentialArgs { at_most, margin, budget } = *args;
    let usage = |message: String| Err(Failure::Usage(message));
    let at_most = at_most.unwrap_or(sequential::AT_MOST);
    if at_most < sequential::FEWEST {
        return usage(format!("--at-most {at_most}: {}", sequential::TOO_FEW));
    }
    let margin = margin.unwrap_or(sequential::MARGIN);
    if !sequential::is_margin(margin) {
        return usage(format!("--margin {margin}: {}", sequential::NO_MARGIN));
    }
    Ok((sequential::last(at_most), Sequential { margin: margin.0, budget }))
}

/// Applies the options of exact mode.
fn apply(args: &RunArgs, experiment: &mut Experiment) -> Result<(), Failure> {
    let usage = |message: &str| Err(Failure::Usage(message.into()));
    let ExactArgs { mode, seeds, verify, keep_going, jobs, .. } = &args.exact;
    let is_for_exact = seeds.is_some() || *verify || *keep_going || jobs.is_some();
    if experiment.mode.is_measured() && is_for_exact {
        return usage(
            "--seeds, --verify, --keep-going and --jobs need exact mode: add --mode exact",
        );
    }
    if experiment.mode == Mode::Exact && *mode == Some(ModeArg::Measured) {
        return usage("the file has mode = \"exact\": change it there");
    }
    if *seeds == Some(0) {
        return usage("--seeds needs 1 or more");
    }
    experiment.boots = not_too_many(seeds.unwrap_or(experiment.boots))?;
    experiment.profile = args.exact.profiling(experiment.profile);
    let Profiling { accesses, stacks, sampled, .. } = experiment.profile;
    match experiment.mode {
        Mode::Measured if accesses || stacks => {
            usage("--profile accesses and stacks need exact mode: add --mode exact")
        }
        Mode::Exact if sampled => {
            usage("--profile sampled is for measured mode: exact mode has --profile stacks")
        }
        _ => Ok(()),
    }
}

/// Checks a number of boots of a variant.
pub fn not_too_many(boots: u32) -> Result<u32, Failure> {
    match boots {
        0..=MOST_BOOTS => Ok(boots),
        _ => Err(Failure::Usage(format!("{boots} boots: a variant has at most {MOST_BOOTS}"))),
    }
}
