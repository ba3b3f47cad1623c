//! Writes an experiment as a file, so that others can run it.

mod text;

use model::{
    Disk, Experiment, Limits, Machine, Manifest, Mode, Point, PointChange, Profiling, Sampler,
    Sequential, Setting, Share, Topology, Variant, WorkloadUse,
};
use toml::{Table, Value};

use super::{DEFAULT_TIMEOUT, usual_limits};
use crate::file::lock;
use crate::run::replay::unpinned;
use crate::sequential::{AT_MOST, MARGIN};
use crate::workloads;
use text::text;

/// The name of the file with the lock of the user space.
const LOCK: &str = "userspace.lock";

/// An experiment as files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The experiment file, in ASCII. Defaults are left out.
    pub text: String,
    /// Names and contents of the other files that it names: manifests of workloads that are not built in, as
    /// they were used, and the lock of the user space.
    pub others: Vec<(String, String)>,
}

/// Writes the file that [`super::parse`] reads as `experiment`. Kernels and programs are named without
/// digests, programs without directories. The file does not say whether a run was imported.
pub fn write(experiment: &Experiment) -> Written {
    // All fields are listed, so that none is forgotten.
    let Experiment {
        name,
        mode,
        profile,
        guest_digest: _,
        userspace_digest: _,
        userspace,
        variants,
        machine,
        workloads,
        sampler,
        boots,
        sequential,
        imported: _,
    } = unpinned(experiment.clone());
    let mut file = Table::new();
    file.insert("name".into(), name.into());
    match (mode, sequential) {
        (Mode::Measured, None) => set(&mut file, "boots", boots),
        (Mode::Measured, Some(sequential)) => self::sequential(&mut file, boots, sequential),
        (Mode::Exact, _) => {
            file.insert("mode".into(), mode.name().into());
            set(&mut file, "seeds", boots);
        }
    }
    if profile != Profiling::default() {
        set(&mut file, "profile", value(&profile));
    }
    if sampler != Sampler::default() {
        set(&mut file, "sampler", value(&sampler));
    }
    set(&mut file, "machine", self::machine(&machine, mode, &usual_limits(&workloads)));
    if let Some(sweep) = sweep(&variants) {
        set(&mut file, "sweep", sweep);
    }
    let first = variants.first().and_then(|first| Some(first.point.as_ref()?.value.clone()));
    let is_first = |it: &Variant| it.point.as_ref().map(|point| &point.value) == first.as_ref();
    let variants = variants.into_iter().filter(is_first).map(variant);
    set(&mut file, "variant", variants.collect::<Vec<_>>());
    let mut others = Vec::new();
    let workloads = workloads.iter().map(|used| workload(used, &mut others));
    set(&mut file, "workload", workloads.collect::<Vec<_>>());
    if let Some(userspace) = &userspace {
        set(&mut file, "userspace", LOCK);
        others.push((LOCK.to_owned(), lock::write(userspace)));
    }
    Written { text: text(&file), others }
}

fn set(table: &mut Table, key: &str, value: impl Into<Value>) {
    table.insert(key.to_owned(), value.into());
}

fn sequential(file: &mut Table, at_most: u32, Sequential { margin, budget }: Sequential) {
    set(file, "boots", "auto");
    if at_most != AT_MOST {
        set(file, "at_most", at_most);
    }
    if Share(margin) != MARGIN {
        set(file, "margin", Share(margin).to_string());
    }
    if let Some(budget) = budget {
        set(file, "budget", budget.to_string());
    }
}

/// Converts a type of the model to a TOML value, which cannot fail.
fn value(it: &impl serde::Serialize) -> Value {
    Value::try_from(it).unwrap_or(Value::Table(Table::new()))
}

fn machine(machine: &Machine, mode: Mode, usual: &Limits) -> Table {
    let Machine { topology, disks, swap, accel, limits } = machine;
    let mut table = Table::new();
    let nodes = topology.nodes.len() as u32;
    let even = Topology::even(topology.cpus(), topology.memory(), nodes);
    if even.as_ref() == Ok(topology) {
        set(&mut table, "cpus", topology.cpus());
        set(&mut table, "memory", topology.memory().to_string());
        set(&mut table, "nodes", nodes);
    } else {
        set(&mut table, "node", topology.nodes.iter().map(value).collect::<Vec<_>>());
    }
    if mode.is_measured() && *accel != model::Accel::Auto {
        set(&mut table, "accel", accel.name());
    }
    if !disks.is_empty() {
        set(&mut table, "disk", disks.iter().map(disk).collect::<Vec<_>>());
    }
    if let Some(swap) = swap {
        set(&mut table, "swap", value(swap));
    }
    if limits != usual {
        set(&mut table, "limits", value(limits));
    }
    table
}

fn disk(disk: &Disk) -> Table {
    let mut table = Table::new();
    set(&mut table, "kind", disk.kind.name());
    set(&mut table, "size", disk.size.to_string());
    if let Some(format) = &disk.format {
        set(&mut table, "filesystem", format.filesystem.name());
        set(&mut table, "mount", format.mount.as_str());
        if !format.mkfs.is_empty() {
            set(&mut table, "mkfs", format.mkfs.clone());
        }
        if !format.options.is_empty() {
            set(&mut table, "options", format.options.as_str());
        }
    }
    table
}

/// The points at which the variants run, if they form a sweep.
fn sweep(variants: &[Variant]) -> Option<Table> {
    let points = || variants.iter().filter_map(|variant| variant.point.as_ref());
    let Point { key, change, .. } = points().next()?;
    let mut values: Vec<&String> = Vec::new();
    for Point { value, .. } in points() {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let is_number = key == "cpus" || key == "nodes";
    let value = |value: &String| match value.parse::<i64>() {
        Ok(number) if is_number => Value::from(number),
        _ => Value::from(value.as_str()),
    };
    let values: Vec<Value> = values.into_iter().map(value).collect();
    let mut table = Table::new();
    match change {
        PointChange::Parameter(workload) => {
            set(&mut table, "workload", workload.as_str());
            set(&mut table, "parameters", Table::from_iter([(key.clone(), values.into())]));
        }
        _ => set(&mut table, key, values),
    }
    Some(table)
}

/// A variant, without what it has only at its point.
fn variant(variant: Variant) -> Table {
    let Variant { name, kernel, cmdline, settings, modules, axes, build: _, step: _, point } =
        variant;
    let (name, cmdline) = match point {
        Some(Point { variant, change: PointChange::Cmdline(words), .. }) => {
            let own = cmdline.strip_suffix(&words).unwrap_or(&cmdline);
            (variant, own.trim_end().to_owned())
        }
        Some(Point { variant, .. }) => (variant, cmdline),
        None => (name, cmdline),
    };
    let mut table = Table::new();
    set(&mut table, "name", name);
    set(&mut table, "kernel", kernel.name.clone());
    if !cmdline.is_empty() {
        set(&mut table, "cmdline", cmdline);
    }
    if !modules.is_empty() {
        set(&mut table, "modules", modules);
    }
    if !axes.is_empty() {
        let axes = axes.iter().map(|(axis, value)| format!("{axis}={value}"));
        set(&mut table, "axes", axes.collect::<Vec<_>>());
    }
    let [mut sysctl, mut sysfs] = [Table::new(), Table::new()];
    for setting in settings {
        match setting {
            Setting::Sysctl { name, value } => set(&mut sysctl, &name, value),
            Setting::Sysfs { path, value } => set(&mut sysfs, &path, value),
        }
    }
    for (name, settings) in [("sysctl", sysctl), ("sysfs", sysfs)] {
        if !settings.is_empty() {
            set(&mut table, name, settings);
        }
    }
    table
}

fn workload(used: &WorkloadUse, manifests: &mut Vec<(String, String)>) -> Table {
    // The chosen phases of tables are not part of an experiment.
    let WorkloadUse {
        manifest,
        program,
        binaries,
        archive,
        iterations,
        warmup,
        timeout,
        primary,
        left_out: _,
    } = used;
    let mut table = Table::new();
    match as_built_in(manifest) {
        Some((name, parameters)) => {
            set(&mut table, "name", name.as_str());
            if name != manifest.name {
                set(&mut table, "as", manifest.name.as_str());
            }
            if !parameters.is_empty() {
                set(&mut table, "parameters", parameters);
            }
        }
        None => {
            let file = file_name(&manifest.name);
            if let Value::Table(manifest) = value(manifest) {
                manifests.push((file.clone(), text(&manifest)));
            }
            set(&mut table, "manifest", file);
        }
    }
    if let Some(name) = program.as_ref().and_then(|program| program.path().file_name()) {
        set(&mut table, "program", name.to_string_lossy().into_owned());
    }
    let directory = binaries.first().and_then(|program| program.path().parent());
    if let Some(name) = directory.and_then(|directory| directory.file_name()) {
        set(&mut table, "binaries", name.to_string_lossy().into_owned());
    }
    if let Some(name) = archive.as_ref().and_then(|archive| archive.path().file_name()) {
        set(&mut table, "archive", name.to_string_lossy().into_owned());
    }
    if *iterations != 1 {
        set(&mut table, "iterations", *iterations);
    }
    if *warmup != 0 {
        set(&mut table, "warmup", *warmup);
    }
    if *timeout != DEFAULT_TIMEOUT {
        set(&mut table, "timeout", timeout.to_string());
    }
    if !primary.is_empty() {
        set(&mut table, "primary", primary.clone());
    }
    table
}

/// The name and parameters of the built-in manifest that results in the given one, except for its name;
/// `None` if there is none.
fn as_built_in(manifest: &Manifest) -> Option<(String, Table)> {
    let same = |built_in: &Manifest| {
        let Manifest { name, parameters, .. } = manifest.clone();
        let known = parameters.keys().eq(built_in.parameters.keys());
        known && Manifest { name, parameters, ..built_in.clone() } == *manifest
    };
    let built_in = workloads::built_in().into_iter().find(same)?;
    let defaults = &built_in.parameters;
    let own = manifest.parameters.iter().filter(|(name, own)| defaults[*name].value != own.value);
    let parameters = own.map(|(name, own)| (name.clone(), own.value.as_str().into())).collect();
    Some((built_in.name, parameters))
}

/// Turns a name into a file name, with only letters that every system allows.
pub fn file_name(name: &str) -> String {
    let plain = |letter: char| match letter {
        letter if letter.is_ascii_alphanumeric() || ".-_".contains(letter) => letter,
        _ => '-',
    };
    format!("{}.toml", name.chars().map(plain).collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use proptest::prelude::*;

    use model::Millis;

    use super::super::parse;
    use super::text::WIDTH;
    use super::*;

    fn read(text: &str) -> Experiment {
        parse(Path::new("x.toml"), text, None).unwrap_or_else(|error| panic!("{error:?}\n{text}"))
    }

    #[test]
    fn the_examples_are_read_back_unchanged() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        let mut seen = 0;
        // A file that is written names kernels in the cache, not how they were built.
        let read = |text: &str| {
            let mut experiment = read(text);
            experiment.variants.iter_mut().for_each(|variant| variant.build = None);
            experiment
        };
        let files = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
        for file in files.filter(|file| file.extension().is_some_and(|it| it == "toml")) {
            let experiment = read(&fs::read_to_string(file).unwrap());
            let Written { text, others } = write(&experiment);
            assert_eq!(read(&text), experiment, "{text}");
            assert_eq!(others, []);
            assert!(text.lines().all(|line| line.len() <= 78), "{text}");
            seen += 1;
        }
        assert!(seen > 2);
    }

    #[test]
    fn defaults_are_left_out() {
        let text = "name = \"x\"\nboots = 2\n\n[machine]\ncpus = 2\nmemory = \"1G\"\nnodes = 2\n\n\
                    [[variant]]\nname = \"6.1\"\nkernel = \"debian:6.1\"\n\n\
                    [[workload]]\nname = \"autonuma\"\n\n[workload.parameters]\nscale = \"0.5\"\n";
        assert_eq!(write(&read(text)).text, text);
    }

    #[test]
    fn boots_that_may_end_early_are_written() {
        for (boots, margin, budget) in [(32, 0.01, None), (11, 0.007, Some(Millis(7_200_000)))] {
            let mut experiment = odd("a", "b");
            experiment.mode = Mode::Measured;
            experiment.profile = Profiling::default();
            let other = Variant { name: "other".into(), ..experiment.variants[0].clone() };
            experiment.variants.push(other);
            experiment.boots = boots;
            experiment.sequential = Some(Sequential { margin, budget });
            let text = write(&experiment).text;
            assert!(text.contains("boots = \"auto\""), "{text}");
            assert_eq!(text.contains("margin"), margin != 0.01);
            assert_eq!(read(&text), experiment);
        }
    }

    #[test]
    fn digests_are_not_written() {
        let mut experiment = read(&write(&odd("a", "b")).text);
        experiment.variants[0].kernel = "6.1.0-56-cloud-amd64 sha256:51349501".into();
        let text = write(&experiment).text;
        assert!(text.contains("kernel = \"6.1.0-56-cloud-amd64\"\n"), "{text}");
    }

    #[test]
    fn a_workload_can_appear_twice_under_two_names() {
        let text = write(&odd("a", "b")).text
            + "[[workload]]\nname = \"autonuma\"\nas = \"again\"\nparameters = { passes = \"1,2,3,4\" }\n";
        let experiment = read(&text);
        let names = experiment.workloads.iter().map(|used| used.manifest.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["autonuma", "again"]);
        let written = write(&experiment);
        assert!(written.others.is_empty(), "{written:?}");
        assert_eq!(read(&written.text), experiment);
    }

    #[test]
    fn a_users_manifest_is_written_too() {
        let directory = tempfile::tempdir().unwrap();
        let manifest = "name = \"own caf\u{e9}\"\ndescription = \"d\"\n\
                        command = [\"/faultline/own\", \"{size}\"]\n\
                        [parameters]\nsize = \"5\"\n[[metrics]]\nname = \"Rate\"\nunit = \"MB/s\"\n\
                        better = \"higher\"\nmean = \"hmean\"\n";
        let path = |name: &str| directory.path().join(name);
        fs::write(path("m.toml"), manifest).unwrap();
        let text = write(&odd("a", "b")).text.replace(
            "name = \"autonuma\"",
            "manifest = \"m.toml\"\nprogram = \"own\"\narchive = \"own.cpio\"\niterations = 3\nwarmup = 2\n\
             timeout = \"5m\"\nprimary = [\"Rate-a*\"]",
        );
        let experiment = parse(&path("x.toml"), &text, None).unwrap();
        let written = write(&experiment);
        let [(name, manifest)] = written.others.as_slice() else { panic!("{written:?}") };
        assert_eq!(name, "own-caf-.toml");
        assert!(manifest.is_ascii());
        fs::write(path(name), manifest).unwrap();
        assert_eq!(parse(&path("x.toml"), &written.text, None).unwrap(), experiment);
    }

    #[test]
    fn a_lock_is_written_too() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let own = "tiobench\"\nparameters = { size = 1 }\n#\"";
        let text = write(&odd("a", "b")).text.replace("autonuma", own);
        fs::write(path("own.lock"), lock::write(&lock::tests::lock())).unwrap();
        let text = format!("userspace = \"own.lock\"\n{text}");
        let experiment = parse(&path("x.toml"), &text, None).unwrap();
        assert_eq!(experiment.userspace, Some(lock::tests::lock()));
        let Written { text, others } = write(&experiment);
        let [(name, lock)] = &others[..] else { panic!("{others:?}") };
        fs::write(path(name), lock).unwrap();
        assert_eq!(parse(&path("x.toml"), &text, None).unwrap(), experiment);
    }

    /// An experiment with arbitrary names and values.
    fn odd(name: &str, value: &str) -> Experiment {
        let mut experiment = read(
            "name = \"x\"\nmode = \"exact\"\nseeds = 7\nprofile = { stacks = true }\n[machine]\n\
             [[machine.node]]\ncpus = \"0-2\"\nmemory = \"1G\"\ndistances = [10, 17]\n\
             [[machine.node]]\nmemory = \"512M\"\ndistances = [17, 10]\n\
             [[machine.disk]]\nsize = \"64M\"\nfilesystem = \"xfs\"\nmkfs = [\"-m\", \"crc=0\"]\n\
             options = \"noatime\"\n[[machine.disk]]\nsize = \"2M\"\n[machine.swap]\nkind = \"file\"\n\
             size = \"16M\"\n[machine.limits]\nboot = \"9m\"\n\
             [sampler]\ninterval = \"50ms\"\nsources = [\"vmstat\"]\nevents = [\"cs\"]\n[[variant]]\nkernel = \"6.1\"\n\
             [[workload]]\nname = \"autonuma\"\n",
        );
        let variant = &mut experiment.variants[0];
        variant.cmdline = value.replace(char::is_control, " ");
        variant.modules = vec![format!("m{value}"); 30];
        let short: String = variant.cmdline.chars().take(40).collect();
        variant.axes = vec![("z".into(), "1".into()), ("a".into(), format!("v{short}=v"))];
        variant.settings = vec![
            Setting::Sysctl {
                name: format!("kernel.x{}", name.replace(['.', '/'], "_")),
                value: value.into(),
            },
            Setting::Sysfs {
                path: format!("/sys/x{}x", name.replace('/', "/x")),
                value: value.into(),
            },
        ];
        experiment
    }

    proptest! {
        #[test]
        fn any_written_experiment_is_read_back(name in "\\PC{1,20}|.{1,20}", value in ".{0,60}|[ \"a\\\\]{0,300}") {
            let experiment = odd(&name, &value);
            let text = write(&experiment).text;
            prop_assert!(text.chars().all(|letter| matches!(letter, '\n' | ' '..='~')), "{}", text);
            // Lines that begin with a quotation mark have an odd key.
            let mut plain = text.lines().filter(|line| !line.starts_with('"'));
            prop_assert!(plain.all(|line| line.len() <= WIDTH), "{}", text);
            prop_assert_eq!(read(&text), experiment);
        }
    }
}
