//! Writes an experiment as a file, so that others can run it.

mod text;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use model::{
    Accel, Disk, Experiment, Limits, Machine, Manifest, Mode, Pinned, Point, PointChange,
    Profiling, Reading, Sampler, Setting, Share, Topology, Variant, WorkloadReading, WorkloadUse,
};
use toml::Spanned;

use super::build::BuildForm;
use super::disks::DiskForm;
use super::machine::{ArchForm, LimitsForm, MachineForm, USUAL_TURN};
use super::matrix::List;
use super::mode::{Auto, BootsForm};
use super::sweep::SweepForm;
use super::variants::VariantForm;
use super::workloads::{Parameters, WorkloadForm};
use super::{DEFAULT_TIMEOUT, FileForm, Value, lock, placeless, usual_limits};
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

/// Writes the file that [`super::parse`] reads as `experiment`, with its `reading`. Kernels and programs are named without
/// digests, programs without directories. The file does not say whether a run was imported.
pub fn write(experiment: &Experiment, reading: &Reading) -> Written {
    // All fields are listed, so that none is forgotten.
    let Experiment {
        name,
        mode,
        profile,
        guest_digest: _,
        counted_by: _,
        userspace_digest: _,
        userspace,
        variants,
        machine,
        workloads,
        sampler,
        boots,
        sequential,
        imported: _,
    } = experiment.clone().unpinned();
    let machine = self::machine(&machine, mode, &usual_limits(&workloads));
    let mut others = Vec::new();
    let workloads =
        workloads.iter().map(|used| placeless(workload(used, reading, &mut others))).collect();
    others.extend(userspace.as_ref().map(|userspace| (LOCK.to_owned(), lock::write(userspace))));
    let number = match sequential {
        Some(_) => BootsForm::Word(Auto::Auto),
        None => BootsForm::Number(boots),
    };
    let margin = sequential.map(|it| Share(it.margin)).filter(|margin| *margin != MARGIN);
    let form = FileForm {
        name: Some(placeless(name)),
        mode,
        boots: mode.is_measured().then(|| placeless(number)),
        at_most: sequential.and(Some(boots)).filter(|boots| *boots != AT_MOST).map(placeless),
        margin: margin.map(placeless),
        budget: sequential.and_then(|it| it.budget).map(placeless),
        seeds: (mode == Mode::Exact).then(|| placeless(boots)),
        profile: Some(profile).filter(|it| *it != Profiling::default()).map(placeless),
        userspace: userspace.map(|_| placeless(LOCK.into())),
        tree: None,
        build: BuildForm::default(),
        machine: placeless(machine),
        sampler: Some(sampler).filter(|it| *it != Sampler::default()).map(placeless),
        sweep: sweep(&variants).map(placeless),
        variants: Some(placeless(
            at_first_point(variants).map(|it| variant(it, reading)).collect(),
        )),
        matrix: None,
        culprit: None,
        workloads: placeless(workloads),
    };
    Written { text: text(&form), others }
}

/// A text as the form has it; `None` for the default, an empty one.
fn given(text: &str) -> Option<Spanned<String>> {
    Some(text).filter(|text| !text.is_empty()).map(|text| placeless(text.to_owned()))
}

/// A list as the form has it; `None` for the default, an empty one.
fn some<T: Clone>(list: &[T]) -> Option<Spanned<Vec<T>>> {
    Some(list).filter(|list| !list.is_empty()).map(|list| placeless(list.to_vec()))
}

fn machine(machine: &Machine, mode: Mode, usual: &Limits) -> MachineForm {
    let Machine { kind, arch, topology, disks, swap, accel, turn, limits } = machine;
    let nodes = topology.nodes.len() as u32;
    let even = Topology::even(topology.cpus(), topology.memory(), nodes);
    // The topology of a host is not asked for.
    let is_even = kind.is_vm() && even.as_ref() == Ok(topology);
    let listed = topology.nodes.iter().filter(|_| kind.is_vm() && !is_even);
    MachineForm {
        kind: Some(*kind).filter(|kind| !kind.is_vm()).map(placeless),
        arch: arch.unless_usual().map(|arch| placeless(ArchForm::One(arch))),
        cpus: is_even.then(|| placeless(topology.cpus())),
        memory: is_even.then(|| placeless(topology.memory())),
        nodes: is_even.then(|| placeless(nodes)),
        node: listed.cloned().map(placeless).collect(),
        disk: disks.iter().map(|it| placeless(disk(it))).collect(),
        swap: swap.as_ref().map(|swap| placeless(swap.into())),
        accel: Some(*accel)
            .filter(|accel| mode.is_measured() && *accel != Accel::Auto)
            .map(placeless),
        turn: (mode == Mode::Exact && *turn != Some(USUAL_TURN)).then(|| placeless((*turn).into())),
        limits: (limits != usual).then(|| LimitsForm {
            boot: Some(placeless(limits.boot)),
            run: Some(placeless(limits.run)),
            shutdown: Some(placeless(limits.shutdown)),
        }),
    }
}

fn disk(Disk { kind, size, format }: &Disk) -> DiskForm {
    let format = format.as_ref();
    DiskForm {
        kind: Some(placeless(*kind)),
        size: placeless(*size),
        filesystem: format.map(|format| format.filesystem),
        mkfs: format.and_then(|format| some(&format.mkfs)),
        mount: format.and_then(|format| given(&format.mount)),
        options: format.and_then(|format| given(&format.options)),
    }
}

/// The points at which the variants run, if they form a sweep.
fn sweep(variants: &[Variant]) -> Option<SweepForm> {
    fn list<T: FromStr>(values: &[&str]) -> Option<List<T>> {
        let values = values.iter().filter_map(|value| value.parse().ok());
        Some(placeless(values.map(placeless).collect()))
    }
    let points = || variants.iter().filter_map(|variant| variant.point.as_ref());
    let Point { key, change, .. } = points().next()?;
    let mut values: Vec<&str> = Vec::new();
    for Point { value, .. } in points() {
        if !values.contains(&&**value) {
            values.push(value);
        }
    }
    let mut form = SweepForm::default();
    match (change, &**key) {
        (PointChange::Parameter(workload), key) => {
            let values = values.into_iter().map(|value| placeless(Value::Text(value.to_owned())));
            form.workload = given(workload);
            form.parameters = [(placeless(key.to_owned()), placeless(values.collect()))].into();
        }
        (_, "cpus") => form.cpus = list(&values),
        (_, "memory") => form.memory = list(&values),
        (_, "nodes") => form.nodes = list(&values),
        (_, "node_memory") => form.node_memory = list(&values),
        (_, "kernelcore") => form.kernelcore = list(&values),
        (_, "movablecore") => form.movablecore = list(&values),
        _ => form.cmdline = list(&values),
    }
    Some(form)
}

/// The variants at the first point of a sweep; without a sweep, all.
fn at_first_point(variants: Vec<Variant>) -> impl Iterator<Item = Variant> {
    let value = |it: &Variant| it.point.as_ref().map(|point| point.value.clone());
    let first = variants.first().and_then(value);
    variants.into_iter().filter(move |it| value(it) == first)
}

/// A variant, without what it has only at its point.
fn variant(variant: Variant, reading: &Reading) -> VariantForm {
    let axes = reading.variant(&variant).axes.clone();
    let Variant { name, kernel, cmdline, settings, modules, point } = variant;
    let (name, cmdline) = match point {
        Some(Point { variant, change: PointChange::Cmdline(words), .. }) => {
            let own = cmdline.strip_suffix(&words).unwrap_or(&cmdline);
            (variant, own.trim_end().to_owned())
        }
        Some(Point { variant, .. }) => (variant, cmdline),
        None => (name, cmdline),
    };
    let mut form = VariantForm::new(placeless(kernel.name));
    form.name = Some(placeless(name));
    form.cmdline = given(&cmdline);
    form.modules = modules.into_iter().map(placeless).collect();
    form.axes = axes.iter().map(|(axis, value)| placeless(format!("{axis}={value}"))).collect();
    for setting in settings {
        let (settings, key, value) = match setting {
            Setting::Sysctl { name, value } => (&mut form.sysctl, name, value),
            Setting::Sysfs { path, value } => (&mut form.sysfs, path, value),
        };
        settings.insert(placeless(key), Value::Text(value));
    }
    form
}

fn workload(
    used: &WorkloadUse,
    reading: &Reading,
    manifests: &mut Vec<(String, String)>,
) -> WorkloadForm {
    let WorkloadUse { manifest, program, binaries, archive, iterations, warmup, timeout } = used;
    // The chosen phases of tables are an option of a command.
    let WorkloadReading { primary, left_out: _ } = reading.workload(used);
    let name = |path: Option<&Path>| Some(placeless(PathBuf::from(path?.file_name()?)));
    let mut form = WorkloadForm {
        program: name(program.as_ref().map(Pinned::path)),
        binaries: name(binaries.first().and_then(|program| program.path().parent())),
        archive: name(archive.as_ref().map(Pinned::path)),
        iterations: Some(*iterations).filter(|number| *number != 1).map(placeless),
        warmup: Some(*warmup).filter(|number| *number != 0),
        timeout: Some(*timeout).filter(|timeout| *timeout != DEFAULT_TIMEOUT).map(placeless),
        primary: some(primary)
            .map(|rows| placeless(rows.into_inner().into_iter().map(placeless).collect())),
        ..WorkloadForm::default()
    };
    match as_built_in(manifest) {
        Some((name, parameters)) => {
            form.called = given(&manifest.name).filter(|_| name != manifest.name);
            form.name = given(&name);
            form.parameters = Some(parameters).filter(|it| !it.is_empty());
        }
        None => {
            let file = file_name(&manifest.name);
            manifests.push((file.clone(), text(manifest)));
            form.manifest = Some(placeless(file.into()));
        }
    }
    form
}

/// The name and parameters of the built-in manifest that results in the given one, except for its name;
/// `None` if there is none.
fn as_built_in(manifest: &Manifest) -> Option<(String, Parameters)> {
    let same = |built_in: &Manifest| {
        let Manifest { name, parameters, .. } = manifest.clone();
        let known = parameters.keys().eq(built_in.parameters.keys());
        known && Manifest { name, parameters, ..built_in.clone() } == *manifest
    };
    let built_in = workloads::built_in().into_iter().find(same)?;
    let defaults = &built_in.parameters;
    let own = manifest.parameters.iter().filter(|(name, own)| defaults[*name].value != own.value);
    let own =
        own.map(|(name, own)| (placeless(name.clone()), placeless(Value::Text(own.value.clone()))));
    let parameters = own.collect();
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

    use model::{Millis, Sequential};

    use super::super::{Request, parse};
    use super::text::WIDTH;
    use super::*;

    fn read(text: &str) -> Request {
        parse(Path::new("x.toml"), text, None).unwrap_or_else(|error| panic!("{error:?}\n{text}"))
    }

    fn written(request: &Request) -> Written {
        write(&request.experiment, &request.reading)
    }

    #[test]
    fn the_examples_are_read_back_unchanged() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        let mut seen = 0;
        // A file that is written names kernels in the cache, not how they were built.
        let read = |text: &str| {
            let mut request = read(text);
            request.builds.clear();
            request
        };
        let files = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
        for file in files.filter(|file| file.extension().is_some_and(|it| it == "toml")) {
            let request = read(&fs::read_to_string(file).unwrap());
            let Written { text, others } = written(&request);
            assert_eq!(read(&text), request, "{text}");
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
        assert_eq!(written(&read(text)).text, text);
    }

    #[test]
    fn boots_that_may_end_early_are_written() {
        for (boots, margin, budget) in [(32, 0.01, None), (11, 0.007, Some(Millis(7_200_000)))] {
            let mut request = odd("a", "b");
            let own = request.reading.variants["6.1"].clone();
            request.reading.variants.insert("other".into(), own);
            let experiment = &mut request.experiment;
            experiment.mode = Mode::Measured;
            experiment.machine.turn = None;
            experiment.profile = Profiling::default();
            let other = Variant { name: "other".into(), ..experiment.variants[0].clone() };
            experiment.variants.push(other);
            experiment.boots = boots;
            experiment.sequential = Some(Sequential { margin, budget });
            let text = written(&request).text;
            assert!(text.contains("boots = \"auto\""), "{text}");
            assert_eq!(text.contains("margin"), margin != 0.01);
            assert_eq!(read(&text), request);
        }
    }

    #[test]
    fn digests_are_not_written() {
        let mut request = read(&written(&odd("a", "b")).text);
        request.experiment.variants[0].kernel = "6.1.0-56-cloud-amd64 sha256:51349501".into();
        let text = written(&request).text;
        assert!(text.contains("kernel = \"6.1.0-56-cloud-amd64\"\n"), "{text}");
    }

    #[test]
    fn a_workload_can_appear_twice_under_two_names() {
        let text = written(&odd("a", "b")).text
            + "[[workload]]\nname = \"autonuma\"\nas = \"again\"\nparameters = { passes = \"1,2,3,4\" }\n";
        let request = read(&text);
        let names = request.experiment.workloads.iter().map(|used| used.manifest.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["autonuma", "again"]);
        let written = written(&request);
        assert!(written.others.is_empty(), "{written:?}");
        assert_eq!(read(&written.text), request);
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
        let text = written(&odd("a", "b")).text.replace(
            "name = \"autonuma\"",
            "manifest = \"m.toml\"\nprogram = \"own\"\narchive = \"own.cpio\"\niterations = 3\nwarmup = 2\n\
             timeout = \"5m\"\nprimary = [\"Rate-a*\"]",
        );
        let request = parse(&path("x.toml"), &text, None).unwrap();
        let written = written(&request);
        let [(name, manifest)] = written.others.as_slice() else { panic!("{written:?}") };
        assert_eq!(name, "own-caf-.toml");
        assert!(manifest.is_ascii());
        fs::write(path(name), manifest).unwrap();
        assert_eq!(parse(&path("x.toml"), &written.text, None).unwrap(), request);
    }

    #[test]
    fn a_lock_is_written_too() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let own = "tiobench\"\nparameters = { size = 1 }\n#\"";
        let text = written(&odd("a", "b")).text.replace("autonuma", own);
        fs::write(path("own.lock"), lock::write(&lock::tests::lock())).unwrap();
        let text = format!("userspace = \"own.lock\"\n{text}");
        let request = parse(&path("x.toml"), &text, None).unwrap();
        assert_eq!(request.experiment.userspace, Some(lock::tests::lock()));
        let Written { text, others } = written(&request);
        let [(name, lock)] = &others[..] else { panic!("{others:?}") };
        fs::write(path(name), lock).unwrap();
        assert_eq!(parse(&path("x.toml"), &text, None).unwrap(), request);
    }

    /// A request with arbitrary names and values.
    fn odd(name: &str, value: &str) -> Request {
        let mut request = read(
            "name = \"x\"\nmode = \"exact\"\nseeds = 7\nprofile = { stacks = true }\n[machine]\nturn = 500\n\
             [[machine.node]]\ncpus = \"0-2\"\nmemory = \"1G\"\ndistances = [10, 17]\n\
             [[machine.node]]\nmemory = \"512M\"\ndistances = [17, 10]\n\
             [[machine.disk]]\nsize = \"64M\"\nfilesystem = \"xfs\"\nmkfs = [\"-m\", \"crc=0\"]\n\
             options = \"noatime\"\n[[machine.disk]]\nsize = \"2M\"\n[machine.swap]\nkind = \"file\"\n\
             size = \"16M\"\n[machine.limits]\nboot = \"9m\"\n\
             [sampler]\ninterval = \"50ms\"\nsources = [\"vmstat\"]\nevents = [\"cs\"]\n[[variant]]\nkernel = \"6.1\"\n\
             [[workload]]\nname = \"autonuma\"\n",
        );
        let variant = &mut request.experiment.variants[0];
        variant.cmdline = value.replace(char::is_control, " ");
        variant.modules = vec![format!("m{value}"); 30];
        let short: String = variant.cmdline.chars().take(40).collect();
        let axes = vec![("z".into(), "1".into()), ("a".into(), format!("v{short}=v"))];
        request.reading.variants.get_mut("6.1").unwrap().axes = axes;
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
        request
    }

    proptest! {
        #[test]
        fn any_written_experiment_is_read_back(name in "\\PC{1,20}|.{1,20}", value in ".{0,60}|[ \"a\\\\]{0,300}") {
            let request = odd(&name, &value);
            let text = written(&request).text;
            prop_assert!(text.chars().all(|letter| matches!(letter, '\n' | ' '..='~')), "{}", text);
            // Lines that begin with a quotation mark have an odd key.
            let mut plain = text.lines().filter(|line| !line.starts_with('"'));
            prop_assert!(plain.all(|line| line.len() <= WIDTH), "{}", text);
            prop_assert_eq!(read(&text), request);
        }
    }
}
