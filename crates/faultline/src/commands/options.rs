//! Turns options into the form of an experiment file, which `lab` checks.

use std::collections::{BTreeMap, BTreeSet};

use model::{Accel, Architecture, MachineKind, Mode, Profiling};
use plan::file::{
    ArchForm, Auto, BootsForm, BuildForm, DiskForm, FileForm, Input, MachineForm, MatrixForm,
    Value, VariantForm, WorkloadForm, placeless,
};

use crate::args::{
    BootsArg, CHANGED, ConfigArgs, ExactArgs, MachineArgs, PlaceArgs, ProfileArg, SettingArg,
};
use crate::failure::Failure;

impl From<BootsArg> for BootsForm {
    fn from(boots: BootsArg) -> Self {
        match boots {
            BootsArg::Number(number) => Self::Number(number),
            BootsArg::Auto => Self::Word(Auto::Auto),
        }
    }
}

/// The machine that options describe: a VM, or this host, which has no defaults.
pub fn machine_at(input: &mut Input, place: &PlaceArgs, args: &MachineArgs) -> MachineForm {
    match place.is_host() {
        true => {
            let mut form = of_options(input, args);
            form.kind = Some(input.option("--on host", MachineKind::Host));
            form
        }
        false => machine(input, args),
    }
}

/// The VM that options describe.
pub fn machine(input: &mut Input, args: &MachineArgs) -> MachineForm {
    of_options(input, &args.of_vm())
}

fn of_options(input: &mut Input, args: &MachineArgs) -> MachineForm {
    let MachineArgs { arch, cpus, memory, nodes, accel, disk } = *args;
    let mut form = MachineForm::default();
    let both = || ArchForm::Several(Architecture::ALL.to_vec());
    let arch = arch.map(|arch| arch.one().map_or_else(both, ArchForm::One));
    form.arch = arch.map(|arch| input.option("--arch", arch));
    form.cpus = cpus.map(|cpus| input.option("--cpus", cpus));
    form.memory = memory.map(|memory| input.option("--memory", memory));
    form.nodes = nodes.map(|nodes| input.option("--nodes", nodes));
    form.accel = accel.map(|accel| input.option("--accel", Accel::from(accel)));
    form.disk.extend(disk.map(|disk| {
        let size = input.option("--disk", disk.size);
        let filesystem = Some(disk.filesystem);
        let form =
            DiskForm { kind: None, size, filesystem, mkfs: None, mount: None, options: None };
        input.option("--disk", form)
    }));
    form
}

/// Sets the variants of an experiment without a file: each of `variants`, which are kernels, with each value of the
/// settings. A host has one kernel, which is not among them.
pub fn variants(
    input: &mut Input,
    place: &PlaceArgs,
    variants: Vec<VariantForm>,
    form: &mut FileForm,
) -> Result<(), Failure> {
    let PlaceArgs { sysctl, sysfs, .. } = place;
    if !place.is_host() && sysctl.is_empty() && sysfs.is_empty() {
        form.variants(variants);
        return Ok(());
    }
    if variants.iter().any(VariantForm::is_changed) {
        let message = "--sysctl and --sysfs cannot be combined with patches and --split: write an experiment file";
        return Err(Failure::Usage(message.into()));
    }
    let mut values = |option: &str, settings: &[(String, SettingArg)]| {
        let value = |(name, values): &(String, SettingArg)| {
            (input.option(&format!("{option} {name}"), name.clone()), values.clone())
        };
        settings.iter().map(value).collect()
    };
    for (option, settings) in [("--sysctl", sysctl), ("--sysfs", sysfs)] {
        let mut names = BTreeSet::new();
        if let Some((name, _)) = settings.iter().find(|(name, _)| !names.insert(name)) {
            let message = format!("{option} names {name} twice: separate its values by commas");
            return Err(Failure::Usage(message));
        }
    }
    let (sysctl, sysfs) = (values("--sysctl", sysctl), values("--sysfs", sysfs));
    let kernels = variants.into_iter().map(|it| it.kernel).collect();
    form.matrix = Some(placeless(MatrixForm::crossing(kernels, sysctl, sysfs)));
    Ok(())
}

/// The workload that is named by the option or argument `option`, as a name or as the file of a manifest, with the
/// parameters of `--set`.
pub fn workload(
    input: &mut Input,
    (option, name): (&str, &str),
    parameters: &[(String, String)],
) -> Result<WorkloadForm, Failure> {
    let mut form = WorkloadForm::default();
    match name.ends_with(".toml") {
        true => form.manifest = Some(input.option(option, name.into())),
        false => form.name = Some(input.option(option, name.to_owned())),
    }
    let mut values = BTreeMap::new();
    for (name, value) in parameters {
        let value = input.option("--set", Value::Text(value.clone()));
        if values.insert(input.option("--set", name.clone()), value).is_some() {
            return Err(Failure::Usage("--set names a parameter twice".into()));
        }
    }
    form.parameters = Some(values);
    Ok(form)
}

/// The configuration and the compiler of kernels.
pub fn build(input: &mut Input, args: &ConfigArgs) -> BuildForm {
    let ConfigArgs { kconfig, fragments, build_modules, compiler } = args;
    let mut form = BuildForm::default();
    form.config = kconfig.as_ref().map(|config| input.option("--kconfig", config.clone()));
    form.fragments = Some(fragments.clone());
    form.modules = Some(*build_modules);
    form.compiler = compiler.as_ref().map(|it| input.option("--compiler", it.to_string()));
    form
}

/// Adds the options of exact mode and of profiles to a form, which comes from a file or from other options.
pub fn exact(input: &mut Input, args: &ExactArgs, form: FileForm) -> Result<FileForm, Failure> {
    let ExactArgs { mode, seeds, profile, memory_model, lines, verify, keep_going, jobs, count } =
        args;
    let mode = mode.map_or(form.mode, Mode::from);
    if mode.is_measured() && form.mode == Mode::Exact {
        return Err(Failure::Usage("the file has mode = \"exact\": change it there".into()));
    }
    if mode.is_measured() && (*verify || *keep_going || jobs.is_some() || count.is_some()) {
        let message =
            "--verify, --keep-going, --jobs and --count need exact mode: add --mode exact";
        return Err(Failure::Usage(message.into()));
    }
    let mut form = form.in_mode(mode);
    if let Some(seeds) = seeds {
        form.seeds = Some(input.option("--seeds", *seeds));
    }
    if lines.iter().any(|it| it == CHANGED) {
        let message =
            "--lines changed needs --again EXPERIMENT, whose boots say which functions ran";
        return Err(Failure::Usage(message.into()));
    }
    if !profile.is_empty() || memory_model.is_some() || !lines.is_empty() {
        let described = form.profile.map_or(Profiling::default(), |it| it.into_inner());
        let asked = args.profiling(described);
        if profile.contains(&ProfileArg::Lines) && asked.lines.is_empty() {
            let message =
                "--profile lines needs --lines FUNCTION,...: the functions whose lines are counted";
            return Err(Failure::Usage(message.into()));
        }
        let is_model = profile.is_empty() && memory_model.is_some();
        let option = if is_model { "--memory-model" } else { "--profile" };
        form.profile = Some(input.option(option, asked));
    }
    Ok(form)
}
