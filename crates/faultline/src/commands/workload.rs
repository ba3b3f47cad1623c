//! `faultline workload`: lists, shows, makes and checks workloads.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lab::RunOptions;
use model::{Kept, Mode, Sample};
use plan::file::{BootsForm, FileForm, Input, VariantForm, placeless};
use plan::workloads;
use report::escape;
use store::Detail;

use super::run::{laboratory, refused};
use super::{options, print, store_path};
use crate::args::{Language, TurnArgs, WorkloadCheckArgs, WorkloadCommand};
use crate::failure::{BOOTS_FAILED, Failure};
use crate::list;
use crate::progress::Display;

/// The longest name of a new workload.
const MOST_LETTERS: usize = 60;
/// From how many of the latest experiments the time of a workload is taken.
const LATEST: usize = 3;

pub fn command(store: Option<PathBuf>, command: WorkloadCommand) -> Result<ExitCode, Failure> {
    match command {
        WorkloadCommand::List => {
            print(&list::workloads(&workloads::all(Path::new("")), &workloads::floors()))?;
        }
        WorkloadCommand::Show { workload } => {
            let manifest = workloads::named(&workload).map_err(refused)?;
            let times = times(store, &manifest.name)?;
            let floors = list::floors(&workload, &workloads::floors());
            print(&list::workload(&manifest, &times, &floors))?;
        }
        WorkloadCommand::New { name, language } => print(&new(&name, language)?)?,
        WorkloadCommand::Check(args) => return check(&args),
    }
    Ok(ExitCode::SUCCESS)
}

/// How long an iteration took in the latest experiments with this workload, one line for each.
fn times(store: Option<PathBuf>, workload: &str) -> Result<Vec<String>, Failure> {
    let path = store_path(store)?;
    if !path.exists() {
        return Ok(Vec::new());
    }
    let store = store::open_to_read(&path)?;
    let mut lines = Vec::new();
    for row in store.experiments()?.iter().rev() {
        if lines.len() == LATEST {
            break;
        }
        let experiment = store.experiment(row.id)?;
        if !experiment.workloads.iter().any(|it| it.manifest.name == workload) {
            continue;
        }
        let boots = store.boots(row.id, Detail::Summary)?;
        let usage = boots.iter().flat_map(|kept| &kept.boot.usage);
        let mut times: Vec<f64> =
            usage.filter(|it| it.workload == workload).map(|it| it.elapsed).collect();
        times.sort_by(f64::total_cmp);
        if let Some(median) = stats::order::median(&times) {
            let name = escape(&row.name);
            lines.push(format!(
                "experiment {} ({name}): {} s in the guest",
                row.id,
                list::figure(median, 1)
            ));
        }
    }
    Ok(lines)
}

/// Writes a manifest and a program into `workloads/`. Returns what to do next.
fn new(name: &str, language: Language) -> Result<String, Failure> {
    let plain = |letter: u8| letter.is_ascii_alphanumeric() || b"-_".contains(&letter);
    let begins = name.starts_with(|first: char| first.is_ascii_alphanumeric());
    if !begins || name.len() > MOST_LETTERS || !name.bytes().all(plain) {
        let message = format!(
            "`{}`: use up to {MOST_LETTERS} letters, digits, - and _, the first a letter or digit",
            name.escape_debug()
        );
        return Err(Failure::Usage(message));
    }
    if workloads::built_in().iter().any(|manifest| manifest.name == name) {
        return Err(Failure::Usage(format!("{name} is a built-in workload: choose another name")));
    }
    let (ending, program, skeleton, packages) = match language {
        Language::C => ("c", name.to_owned(), include_str!("workload/skeleton.c"), ""),
        Language::Shell => {
            let skeleton = include_str!("workload/skeleton.sh");
            ("sh", format!("{name}.sh"), skeleton, "packages = [\"dash\"]\n")
        }
        Language::Python => {
            let skeleton = include_str!("workload/skeleton.py");
            ("py", format!("{name}.py"), skeleton, "packages = [\"python3\"]\n")
        }
    };
    let manifest = include_str!("workload/skeleton.toml")
        .replace("NAME", name)
        .replace("PROGRAM", &program)
        .replace("packages = []\n", packages);
    let directory = Path::new("workloads");
    let failed = |error| Failure::Host(format!("workloads: {error}"));
    fs::create_dir_all(directory).map_err(failed)?;
    let source = directory.join(format!("{name}.{ending}"));
    let place = directory.join(format!("{name}.toml"));
    for path in [&source, &place] {
        if path.exists() {
            let message = format!("{} exists and stays as it is", path.display());
            return Err(Failure::Usage(message));
        }
    }
    write_new(&source, &skeleton.replace("NAME", name))?;
    write_new(&place, &manifest)?;
    let build = match language {
        Language::C => format!("cc -O2 -static -o workloads/{name} workloads/{name}.c\n"),
        _ => String::new(),
    };
    Ok(format!(
        "Wrote {} and {}. Next:\n{build}faultline workload check {name}\n",
        place.display(),
        source.display()
    ))
}

/// Writes a file that must not exist yet. Scripts become executable.
fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
    let failed = |error| Failure::Host(format!("{}: {error}", path.display()));
    let mut file =
        fs::File::options().write(true).create_new(true).mode(mode).open(path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}

/// Runs a workload once and prints what it yields. The user's store does not change.
fn check(args: &WorkloadCheckArgs) -> Result<ExitCode, Failure> {
    let mut input = Input::default();
    let mut form = options::workload(&mut input, ("", &args.workload), &args.parameters)?;
    form.timeout = Some(input.option("--timeout", args.timeout));
    let variant = VariantForm::new(input.option("--kernel", args.kernel.clone()));
    let machine = options::machine(&mut input, &args.machine);
    let mut form = FileForm::new(machine, vec![variant], form);
    form.mode = args.mode.map_or(Mode::Measured, Mode::from);
    match form.mode {
        Mode::Measured => form.boots = Some(placeless(BootsForm::Number(1))),
        Mode::Exact => form.seeds = Some(placeless(1)),
    }
    let mut request = input.request(form)?;
    let experiment = &mut request.experiment;
    let manifest = experiment.workloads[0].manifest.clone();
    experiment.name = format!("check-{}", manifest.name);
    lab::check(experiment)?;
    let directory = tempfile::tempdir()?;
    let mut lab = laboratory(Some(directory.path().join("check.db")), TurnArgs { no_wait: false })?;
    let mut display = Display::new(args.quiet);
    let summary = lab.run(&request, RunOptions::default(), &mut |progress| display.show(progress));
    display.finish();
    let boots = lab.store.boots(summary?.experiment, Detail::AllSeries)?;
    let Some(Kept { boot, .. }) = boots.iter().rfind(|kept| !kept.superseded) else {
        return Err(Failure::Host("the boot is not in the store".into()));
    };
    print(&list::checked(&manifest, boot))?;
    let is_known = |sample: &Sample| manifest.metrics.iter().any(|it| it.name == sample.metric);
    let is_good = boot.outcome.is_complete()
        && (manifest.metrics.is_empty() || boot.samples.iter().any(is_known));
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::from(BOOTS_FAILED) })
}
