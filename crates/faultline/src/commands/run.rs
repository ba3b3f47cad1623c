//! `faultline run`: carries out an experiment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kernels::Cache;
use lab::{Guest, Lab, Libraries, Manner, file, workloads};
use model::{Experiment, Machine, Mode, Profiling, Sampler, Variant, WorkloadUse, count};
use store::Store;

use super::{print, store_path, topology};
use crate::args::{AccelArg, ExactArgs, ModeArg, RunArgs};
use crate::failure::{BOOTS_FAILED, Failure};
use crate::progress::Display;

pub fn run(store: Option<PathBuf>, args: RunArgs) -> Result<ExitCode, Failure> {
    let mut experiment = match &args.experiment {
        Some(path) => read(path, args.exact.mode.map(Mode::from))?,
        None => without_file(&args)?,
    };
    apply(&args, &mut experiment)?;
    let store_option =
        store.as_ref().map_or(String::new(), |path| format!(" --store {}", path.display()));
    let path = store_path(store)?;
    let mut lab = Lab {
        cache: Cache::open()?,
        guest: Guest::find()?,
        libraries: Libraries::find(),
        store: Store::open(&path)?,
        scratch: scratch(&path),
    };
    let mut display = Display::new(args.quiet);
    let manner = Manner { retry_failed: args.retry_failed, verify: args.exact.verify };
    let summary = lab.run(&experiment, manner, &mut |progress| display.show(progress));
    display.finish();
    let summary = summary?;
    let done = match (summary.boots, summary.failed) {
        (0, _) => "every boot was done before".to_owned(),
        (boots, 0) => format!("{} done", count(boots, "boot")),
        (boots, failed) => format!("{} done, {failed} of them failed", count(boots, "boot")),
    };
    let same = match summary.verified {
        0 => String::new(),
        boots => format!(", {} booted twice and the same to the bit", count(boots, "boot")),
    };
    let (name, id) = (&experiment.name, summary.experiment);
    let see = format!("see `faultline{store_option} compare {id}`");
    print(&format!("experiment {id}, {}: {done}{same}; {see}\n", report::escape(name)))?;
    Ok(if summary.failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(BOOTS_FAILED) })
}

/// Boots of each kernel in measured mode, where no file says how many.
const DEFAULT_BOOTS: u32 = 3;

/// The directory for boots under way, beside the store and of its name, so that two stores in one
/// directory do not meet.
pub fn scratch(store: &Path) -> PathBuf {
    let mut name = store.file_name().unwrap_or_default().to_owned();
    name.push(".running");
    store.with_file_name(name)
}

fn read(path: &Path, mode: Option<Mode>) -> Result<Experiment, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    Ok(file::parse(path, &text, mode)?)
}

/// The experiment that options describe. Its name tells what is compared, so that the same words
/// find it again.
fn without_file(args: &RunArgs) -> Result<Experiment, Failure> {
    let usage = |error: workloads::WorkloadError| Failure::Usage(error.to_string());
    let mut manifest = workloads::find(&args.workload).map_err(usage)?;
    let parameters = args.parameters.iter().cloned().collect();
    workloads::set_parameters(&mut manifest, parameters).map_err(usage)?;
    let mode = args.exact.mode.map_or(Mode::Measured, Mode::from);
    if mode == Mode::Exact && args.boots.is_some() {
        let message =
            "exact mode has no --boots: a boot with the same seed gives the same; use --seeds";
        return Err(Failure::Usage(message.into()));
    }
    if mode == Mode::Exact && matches!(args.machine.accel, AccelArg::Kvm) {
        let message = "exact mode is emulation of its own kind: leave --accel out";
        return Err(Failure::Usage(message.into()));
    }
    let boots = match mode {
        Mode::Measured => args.boots.unwrap_or(DEFAULT_BOOTS),
        Mode::Exact => file::DEFAULT_SEEDS,
    };
    if boots == 0 || args.iterations == 0 {
        return Err(Failure::Usage("--boots and --iterations want 1 or more".into()));
    }
    let variants: Vec<Variant> = args.kernels.iter().map(|kernel| variant(kernel)).collect();
    let names: Vec<&str> = variants.iter().map(|variant| &*variant.name).collect();
    for (place, name) in names.iter().enumerate() {
        if names[..place].contains(name) {
            return Err(Failure::Usage(format!("kernel `{name}` is named twice")));
        }
    }
    let name = format!("{}-{}", args.workload, names.join("-"));
    let workloads = vec![WorkloadUse {
        manifest,
        program: None,
        iterations: args.iterations,
        timeout: file::DEFAULT_TIMEOUT,
    }];
    Ok(Experiment {
        name,
        mode,
        profile: Profiling::default(),
        guest_digest: String::new(),
        variants,
        machine: Machine {
            topology: topology(&args.machine)?,
            disks: Vec::new(),
            accel: args.machine.accel.into(),
            limits: file::usual_limits(&workloads),
        },
        workloads,
        sampler: Sampler::default(),
        boots,
        sequential: None,
        imported: None,
    })
}

/// What the options say of exact mode. One that is not of the experiment's file gets a name of its
/// own.
fn apply(args: &RunArgs, experiment: &mut Experiment) -> Result<(), Failure> {
    let usage = |message: &str| Err(Failure::Usage(message.into()));
    let ExactArgs { mode, seeds, profile, verify } = &args.exact;
    if experiment.mode.is_measured() && (seeds.is_some() || *verify || !profile.is_empty()) {
        return usage("--seeds, --profile and --verify are for exact mode: add --mode exact");
    }
    if experiment.mode == Mode::Exact && *mode == Some(ModeArg::Measured) {
        return usage("the experiment is of exact mode, and its file says so: change it there");
    }
    if *seeds == Some(0) {
        return usage("--seeds wants 1 or more");
    }
    if *mode == Some(ModeArg::Exact) {
        experiment.name.push_str("-exact");
    }
    experiment.boots = seeds.unwrap_or(experiment.boots);
    let Profiling { accesses, stacks } = args.exact.profiling();
    experiment.profile.accesses |= accesses;
    experiment.profile.stacks |= stacks;
    Ok(())
}

fn variant(kernel: &str) -> Variant {
    Variant {
        name: file::default_name(kernel),
        kernel: kernel.to_owned(),
        cmdline: String::new(),
        settings: Vec::new(),
        modules: Vec::new(),
    }
}
