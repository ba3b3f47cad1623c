//! `faultline try`: compares a program of the user on several kernels.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use bundle::{self, BundleError, ProgramBundle, ProgramRequest};
use compare::split_columns;
use lab::{Lab, Progress, RunOptions, RunSummary};
use model::{
    Architecture, Boot, Experiment, Kept, MachineKind, Mode, Note, Outcome, Pinned, Profiling,
    count,
};
use plan::Request;
use plan::file::{self, Auto, BootsForm, FileForm, Input, WorkloadForm, Written, placeless};
use report::{escape, shell_word};
use results::{Analysis, Question};
use store::{Detail, ExperimentId};

use super::architectures::beside;
use super::build::variants;
use super::run::{laboratory, on_interrupt};
use super::{new_directory, options, print, split, store_option};
use crate::args::{ArchArg, TryArgs};
use crate::failure::{BOOTS_FAILED, Failure};
use crate::progress::Display;

/// The number of seeds of each kernel before the first answer. With fewer, luck hides nearly any change.
const FIRST: u32 = 3;
/// The number of boots of a kernel that is not compared.
const ALONE: u32 = 1;

/// The variable by which programs find the metric protocol.
const PROTOCOL: &[u8] = b"FAULTLINE_FD";

pub fn attempt(store: Option<PathBuf>, args: &TryArgs) -> Result<ExitCode, Failure> {
    let all = match args.arch {
        Some(ArchArg::Both) => vec![Some(ArchArg::X86), Some(ArchArg::Arm64)],
        arch => vec![arch],
    };
    let is_both = all.len() > 1;
    let asked = match (args.exact, args.measured) {
        (true, _) => Some(Mode::Exact),
        (_, true) => Some(Mode::Measured),
        _ if args.place.is_host() => Some(Mode::Measured),
        // Machines for arm64 are emulated.
        _ if is_both => Some(Mode::Exact),
        _ => None,
    };
    // Errors in the options are reported before a store is made.
    let prepared = |arch: Option<ArchArg>| {
        let args = TryArgs { arch, ..args.clone() };
        let bundle = bundle(&args)?;
        let request = request(&args, &bundle, asked)?;
        Ok((args, bundle, request))
    };
    let all = all.into_iter().map(prepared).collect::<Result<Vec<_>, Failure>>()?;
    if args.save.is_some() && all.iter().any(|(.., request)| !request.builds.is_empty()) {
        let message = "--save does not write how kernels are built from source: name packaged ones";
        return Err(Failure::Usage(message.into()));
    }
    if args.place.is_host() && (args.save.is_some() || !args.with.is_empty()) {
        let message =
            "--save and --with pack files for VMs, and --on host runs the program where it is";
        return Err(Failure::Usage(message.into()));
    }
    if args.save.is_some() && is_both {
        return Err(Failure::Usage("--save writes one experiment: name one --arch".into()));
    }
    if let Some(directory) = &args.save {
        new_directory::check("--save", directory)?;
    }
    let named = store_option(store.as_ref());
    let mut lab = laboratory(store, args.turn)?;
    let mut display = Display::new(args.quiet);
    if args.save.is_none() {
        on_interrupt(&display, &lab)?;
    }
    if all.iter().any(|(_, bundle, _)| knows_protocol(bundle)) {
        eprintln!(
            "the program seems to report phases: `try` measures it as one phase; a manifest has its phases measured \
             (docs/own-workload.md)"
        );
    }
    let (mut ids, mut failures) = (Vec::new(), 0);
    for (args, bundle, mut request) in all {
        if asked.is_none() {
            let mode = usual_mode(&args, &lab, &request, &mut display)?;
            request = self::request(&args, &bundle, Some(mode))?;
        }
        let workload = &mut request.experiment.workloads[0];
        if args.place.is_host() {
            workload.program = Some(Pinned::from(bundle.command[0].clone()));
        } else {
            let failed = |error: BundleError| Failure::Host(error.to_string());
            let archive = bundle.keep(lab.cache.root()).map_err(failed)?;
            workload.archive = Some(Pinned::from(archive.display().to_string()));
            if let Some(directory) = &args.save {
                return save(&request, &archive, directory);
            }
        }
        lab.check_kernels(&request)?;
        let _turn = lab.lock(&mut |progress| display.show(progress))?;
        let summary = stages(&mut lab, &request, &args, &mut display)?;
        let answer = answer(&lab, &summary, &named, &request.experiment)?;
        let arch = request.experiment.machine.arch.name();
        print(&if is_both { format!("On {arch}:\n\n{answer}\n") } else { answer })?;
        ids.push(summary.experiment);
        failures += summary.failed + summary.failed_before;
    }
    if is_both {
        print(&beside(&*lab.store, &ids, &Question::default(), &named)?)?;
    }
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::from(BOOTS_FAILED) })
}

/// The experiment that the options describe, without the program's files. It has one boot until the mode is known.
fn request(args: &TryArgs, bundle: &ProgramBundle, mode: Option<Mode>) -> Result<Request, Failure> {
    let mut input = Input::default();
    let kernels = args.kernels.iter().flat_map(|it| it.split(',')).map(str::to_owned);
    let kernels: Vec<String> = kernels.collect();
    let mut variants = variants(&mut input, ("", &kernels), &args.build, false)?;
    if args.split {
        let kernels = variants.iter().map(|it| it.kernel.get_ref().clone());
        variants.extend(split::variants(&mut input, &kernels.collect::<Vec<_>>())?);
    }
    let mut workload = WorkloadForm::default();
    workload.made = Some(bundle.manifest());
    workload.timeout = Some(input.option("--timeout", args.timeout));
    let machine = options::machine_at(&mut input, &args.place, &args.machine());
    let mut form = FileForm::new(machine, Vec::new(), workload);
    let settings = args.place.sysctl.iter().chain(&args.place.sysfs);
    let is_alone = variants.len() <= 1 && settings.map(|(_, it)| it.len()).all(|it| it == 1);
    options::variants(&mut input, &args.place, variants, &mut form)?;
    form.tree = args.build.tree.clone();
    form.build = options::build(&mut input, &args.build.config);
    match mode {
        None => form.boots = Some(placeless(BootsForm::Number(ALONE))),
        Some(mode) => boots(&mut input, args, &mut form, (mode, is_alone))?,
    }
    let request = input.request(form)?;
    lab::check(&request.experiment)?;
    Ok(request)
}

/// Sets the mode, the boots of each kernel, and when they may end early.
fn boots(
    input: &mut Input,
    args: &TryArgs,
    form: &mut FileForm,
    (mode, is_alone): (Mode, bool),
) -> Result<(), Failure> {
    let TryArgs { seeds, jobs, at_most, budget, transfers, .. } = *args;
    let refused = |message: &str| Err(Failure::Usage(message.into()));
    form.mode = mode;
    match mode {
        Mode::Exact if at_most.is_some() || budget.is_some() => {
            return refused("--at-most and --budget are for measured mode: exact mode has --seeds");
        }
        Mode::Measured if seeds.is_some() => {
            return refused(
                "--seeds is for exact mode: --at-most limits the boots of measured mode",
            );
        }
        Mode::Measured if jobs.is_some() => {
            return refused("--jobs is for exact mode: boots of measured mode follow each other");
        }
        Mode::Measured if args.memory_model.is_some() => {
            return refused("--memory-model is for exact mode: add --exact");
        }
        Mode::Measured if transfers => {
            return refused("--transfers is for exact mode: add --exact");
        }
        Mode::Exact => {
            let seeds = seeds.or(is_alone.then_some(ALONE));
            form.seeds = seeds.map(|seeds| input.option("--seeds", seeds));
            let memory_model = args.memory_model.clone();
            let profile =
                Profiling { stacks: true, memory_model, transfers, ..Profiling::default() };
            form.profile = Some(placeless(profile));
        }
        Mode::Measured if is_alone => form.boots = Some(placeless(BootsForm::Number(ALONE))),
        Mode::Measured => {
            form.boots = Some(placeless(BootsForm::Word(Auto::Auto)));
            form.at_most = at_most.map(|boots| input.option("--at-most", boots));
            form.budget = budget.map(|budget| input.option("--budget", budget));
        }
    }
    Ok(())
}

/// Runs one boot of each kernel, in exact mode then a few for a first answer, and then the others. Ends when a kernel
/// has no complete boot, since others would fail too.
fn stages(
    lab: &mut Lab,
    request: &Request,
    args: &TryArgs,
    display: &mut Display,
) -> Result<RunSummary, Failure> {
    let whole = &request.experiment;
    let has_first = whole.mode == Mode::Exact && whole.variants.len() > 1;
    let early = if has_first { &[1, FIRST][..] } else { &[1] };
    for &boots in early.iter().filter(|&&boots| boots < whole.boots) {
        let summary = run(lab, request, Some(boots), args, display)?;
        let kept = lab.store.boots(summary.experiment, Detail::Summary)?;
        if !has_complete(whole, &kept, 1) {
            return Ok(summary);
        }
        if boots == FIRST && !has_complete(whole, &kept, whole.boots) {
            let more = count((whole.boots - FIRST) as usize, "seed");
            let of =
                if summary.failed + summary.failed_before > 0 { "those complete of " } else { "" };
            let head = format!(
                "First answer, from {of}{FIRST} seeds of each kernel, before {more} more:\n"
            );
            let analysis = Analysis::of(&*lab.store, &[summary.experiment], &Question::default())?;
            print(&format!("{head}{}\n", report::verdicts(&analysis.comparison)))?;
        }
    }
    run(lab, request, None, args, display)
}

/// Whether each kernel has this number of complete boots.
fn has_complete(experiment: &Experiment, kept: &[Kept], wanted: u32) -> bool {
    let counts = |kept: &&Kept| !kept.superseded && kept.boot.outcome.counts();
    experiment.variants.iter().all(|variant| {
        let own = kept.iter().filter(counts).filter(|kept| kept.boot.variant == variant.name);
        own.count() >= wanted as usize
    })
}

/// Whether a program, or a file with it, has the name by which programs find the metric protocol.
fn knows_protocol(bundle: &ProgramBundle) -> bool {
    bundle.archive.windows(PROTOCOL.len()).any(|it| it == PROTOCOL)
}

/// The program with its files.
fn bundle(args: &TryArgs) -> Result<ProgramBundle, Failure> {
    let usage = |message: String| Failure::Usage(message);
    let is_host = args.place.is_host();
    let Some(kernels) = args.kernels.as_deref().or(is_host.then_some("--on host")) else {
        let message =
            "name the kernels, such as faultline try 6.12,newest -- ./mytest.sh, or --on host";
        return Err(usage(message.into()));
    };
    let kernels = escape(kernels);
    let stray = (!args.stray.is_empty()).then(|| escape(&args.stray.join(" ")));
    match (stray, args.command.is_empty()) {
        (Some(stray), true) => {
            let command = format!("faultline try {kernels} -- {stray}");
            return Err(usage(format!("put -- before the program: {command}")));
        }
        (Some(stray), false) => {
            let command = format!("faultline try {kernels},{} -- PROGRAM", stray.replace(' ', ","));
            return Err(usage(format!("put a comma between kernels: {command}")));
        }
        (None, true) => {
            let command = format!("faultline try {kernels} -- ./mytest.sh");
            return Err(usage(format!("name a program after --, such as {command}")));
        }
        (None, false) => {}
    }
    let (directory, path) = (env::current_dir()?, search_path()?);
    if is_host {
        return find_in_place(&args.command);
    }
    let first = args.kernels.iter().flat_map(|it| it.split(',')).next().unwrap_or_default();
    let asked = args.arch.and_then(ArchArg::one);
    let arch = asked.unwrap_or_else(|| kernels::Request::architecture(first));
    let request = ProgramRequest {
        command: &args.command,
        directory: &directory,
        path: &path,
        with: &args.with,
        arch,
    };
    bundle::bundle(request).map_err(|error| usage(error.to_string()))
}

/// A program that runs on this host, where it is.
pub fn find_in_place(command: &[String]) -> Result<ProgramBundle, Failure> {
    let (directory, path) = (env::current_dir()?, search_path()?);
    let arch = Architecture::X86_64;
    let request = ProgramRequest { command, directory: &directory, path: &path, with: &[], arch };
    bundle::in_place(request).map_err(|error| Failure::Usage(error.to_string()))
}

/// The directories in which programs are searched.
fn search_path() -> Result<Vec<PathBuf>, Failure> {
    let path: Vec<PathBuf> = env::var_os("PATH").iter().flat_map(env::split_paths).collect();
    let path = Some(path).filter(|path| !path.is_empty());
    path.ok_or_else(|| Failure::Usage("PATH is not set".into()))
}

/// Measured mode if KVM works, otherwise exact mode.
fn usual_mode(
    args: &TryArgs,
    lab: &Lab,
    request: &Request,
    display: &mut Display,
) -> Result<Mode, Failure> {
    if lab.has_kvm(request, &mut |progress| display.show(progress))? {
        return Ok(Mode::Measured);
    }
    if !args.quiet {
        let why = match request.experiment.machine.arch {
            Architecture::X86_64 => "KVM does not work here",
            Architecture::Arm64 => "machines for arm64 are emulated",
        };
        eprintln!("{why}, so instructions are counted; --measured compares times");
    }
    Ok(Mode::Exact)
}

/// Does one stage: the boots of each kernel up to this number. The first one announces the boots of all stages.
fn run(
    lab: &mut Lab,
    request: &Request,
    until: Option<u32>,
    args: &TryArgs,
    display: &mut Display,
) -> Result<RunSummary, Failure> {
    // In the last stage a failure depends on the seed.
    let TryArgs { retry_failed, jobs, .. } = *args;
    let keep_going = true;
    let options = RunOptions { retry_failed, jobs, keep_going, until, ..RunOptions::default() };
    let is_announced = display.has_plan();
    let summary = lab.run_locked(request, options, &mut |progress| {
        if !(is_announced && matches!(progress, Progress::Plan { .. })) {
            display.show(progress);
        }
    });
    display.finish();
    Ok(summary?)
}

/// Verdicts, functions, figures, and what failed. `whole` is the experiment with all its boots.
fn answer(
    lab: &Lab,
    summary: &RunSummary,
    named: &str,
    whole: &Experiment,
) -> Result<String, Failure> {
    let id = summary.experiment;
    let mut text = failures(lab, id, named)?;
    if summary.failed_before > 0 {
        text += "These boots failed before: --retry-failed repeats them.\n";
    }
    let kept = lab.store.boots(id, Detail::Summary)?;
    if !has_complete(whole, &kept, 1) {
        let done = kept.iter().filter(|kept| !kept.superseded).count();
        let left = (whole.boots as usize * whole.variants.len()).saturating_sub(done);
        if left > 0 {
            let left = count(left, "boot");
            text += &format!("{left} left out, because a kernel has no complete boot.\n");
        }
    }
    let analysis = Analysis::of(&*lab.store, &[id], &Question::default())?;
    let comparison = &analysis.comparison;
    let variants = &analysis.experiment.variants;
    if let Some(nothing) = report::failing(comparison).last() {
        text += &format!("{nothing}\n");
    } else if comparison.variants.iter().any(|variant| variant.complete > 0) {
        text += &report::verdicts(comparison);
        text += &report::headlines(&analysis.explained_with_reasons());
        text += &report::builds(comparison);
        text += "\n";
        text += &report::figures(comparison);
        text += "\n";
    }
    if variants.len() == 1 {
        text += match analysis.experiment.machine.kind {
            MachineKind::Vm => {
                "A comparison needs two kernels, such as `faultline try 6.12,newest -- PROGRAM`.\n"
            }
            MachineKind::Host => {
                "A comparison needs two variants, such as `faultline try --on host --sysctl vm.swappiness=10,60 -- PROGRAM`.\n"
            }
        };
    } else {
        text += &format!("More: faultline{named} compare {id} --full\n");
        // The kernels that are built for a split are not the question.
        let last = split_columns(comparison).map_or(variants.len() - 1, |_| 1);
        let has_both = [0, last].iter().all(|place| comparison.variants[*place].complete > 0);
        if analysis.experiment.mode == Mode::Exact && has_both {
            let word = |place: usize| shell_word(variants[place].name.as_bytes());
            text += &format!("      faultline{named} explain {} {} {id}\n", word(0), word(last));
        }
    }
    Ok(text)
}

/// A sentence for each kernel whose boots failed, with the first reason.
fn failures(lab: &Lab, id: ExperimentId, named: &str) -> Result<String, Failure> {
    let boots = lab.store.boots(id, Detail::Summary)?;
    let mut told: Vec<&str> = Vec::new();
    let mut text = String::new();
    let is_complete = |it: &Boot| {
        let same = |other: &&Kept| {
            (&other.boot.variant, other.boot.boot_index) == (&it.variant, it.boot_index)
        };
        boots.iter().filter(same).any(|other| other.boot.outcome.counts())
    };
    // A boot that was interrupted and done again did not fail.
    let failed = |kept: &&Kept| kept.boot.outcome.counts() || !is_complete(&kept.boot);
    for kept in boots.iter().filter(|kept| !kept.superseded).filter(failed) {
        let boot = &kept.boot;
        let lacks = not_found(&boot.notes);
        let hint = match lacks {
            Some(_) => {
                ". Commands of this host are taken along if the script names them; --with FILE takes others"
            }
            None => "",
        };
        let reason = match &boot.outcome {
            Outcome::Complete => lacks,
            outcome => Some(outcome.to_string()),
        };
        let Some(reason) = reason.filter(|_| !told.contains(&&*boot.variant)) else { continue };
        told.push(&boot.variant);
        let line = format!("{}: {reason}{hint}. All of it: ", boot.variant);
        text += &format!("{}`faultline{named} show {}`\n", escape(&line), kept.id);
    }
    Ok(text)
}

/// The message of a shell about a missing command. The script may have continued.
fn not_found(notes: &[Note]) -> Option<String> {
    let mut lines = notes.iter().map(|note| &note.text);
    let line =
        lines.find(|it| it.ends_with(": not found") || it.ends_with(": command not found"))?;
    Some(format!("the program {line}"))
}

/// Writes the experiment with its files into a directory.
fn save(request: &Request, archive: &Path, directory: &Path) -> Result<ExitCode, Failure> {
    let Request { experiment, reading, .. } = request;
    let Written { text, others } = file::write(experiment, reading);
    let name = format!("run-{}", file::file_name(&experiment.name));
    let failed = |error| Failure::Host(format!("{}: {error}", archive.display()));
    let own = archive.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let own = (own, fs::read(archive).map_err(failed)?);
    let texts = others.into_iter().chain([(name.clone(), text)]);
    let texts = texts.map(|(name, text)| (name, text.into_bytes()));
    new_directory::write(directory, &texts.chain([own]).collect::<Vec<_>>())?;
    let file = shell_word(directory.join(name).to_string_lossy().as_bytes());
    print(&format!("Wrote {}. `faultline run {file}` runs it.\n", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use model::{BootId, Variant};

    use super::*;

    #[test]
    fn a_failed_boot_ends_a_try_only_if_its_kernel_has_no_complete_one() {
        let variants =
            ["old", "new"].map(|name| Variant { name: name.into(), ..Variant::default() });
        let experiment = Experiment { variants: variants.into(), ..Experiment::default() };
        let kept = |variant: &str, outcome| Kept {
            id: BootId(1),
            superseded: false,
            boot: Boot { variant: variant.into(), outcome, ..Boot::default() },
        };
        let failed = || Outcome::TimedOut("late".into());
        let mut boots = vec![kept("old", Outcome::Complete), kept("new", failed())];
        assert!(!has_complete(&experiment, &boots, 1));
        boots.push(kept("new", Outcome::Complete));
        boots.push(kept("old", failed()));
        assert!(has_complete(&experiment, &boots, 1) && !has_complete(&experiment, &boots, 2));
        boots[2].superseded = true;
        assert!(!has_complete(&experiment, &boots, 1));
    }
}
