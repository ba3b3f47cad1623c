//! Handles the kernel modules that workloads name. Our own modules are built for the kernels of an
//! experiment before the first boot. Modules of the kernel are used if they exist.

use std::iter;

use kernels::digest;
use kernels::modules::{self, Module};
use kernels::out_of_tree::Source;
use kernels::{Cache, Error};
use model::{Experiment, Kernel, Variant, WorkloadUse};

/// The sources of our own kernel modules.
const SOURCES: [Source; 2] = [
    Source { name: "pagealloc", text: include_str!("../../../workloads/pagealloc/pagealloc.c") },
    Source { name: "timevmalloc", text: include_str!("../../../workloads/vmalloc/timevmalloc.c") },
];

/// Returns the source of one of our own modules; `None` for modules of the kernel.
pub fn source(module: &str) -> Option<Source> {
    SOURCES.into_iter().find(|source| source.name == module)
}

/// Returns the sources of our own modules that an experiment's workloads name, each once.
pub fn sources(experiment: &Experiment) -> Vec<Source> {
    let wanted = experiment.workloads.iter().flat_map(|workload| &workload.manifest.modules);
    let mut sources: Vec<Source> = wanted.filter_map(|module| source(module)).collect();
    sources.sort_by_key(|source| source.name);
    sources.dedup();
    sources
}

/// Combines `guest`, the digest of our programs in the guest, with the sources of our own modules
/// that the experiment's workloads name. Returns their common digest; without such modules, `guest`
/// itself.
pub fn pinned(guest: String, experiment: &Experiment) -> String {
    let sources = sources(experiment);
    if sources.is_empty() {
        return guest;
    }
    let texts = sources.iter().map(|source| source.text);
    digest(iter::once(guest.as_str()).chain(texts).collect::<String>().as_bytes())
}

/// The modules that workloads name, as far as they are available for one kernel.
#[derive(Clone, Debug, Default)]
pub struct OutOfTree {
    /// Our own modules, built for the kernel, or why they could not be built.
    built: Vec<(Source, Result<Module, String>)>,
    /// The modules of the kernel that workloads name and the kernel lacks.
    lacking: Vec<String>,
}

impl OutOfTree {
    /// Builds our own modules that the experiment's workloads name, and finds the modules that the
    /// kernel lacks. Fails when the host lacks the tools, the package archive cannot be reached, or
    /// the kernel's lists of modules cannot be read. A module that does not compile is no error.
    pub fn build(
        cache: &Cache,
        kernel: &Kernel,
        experiment: &Experiment,
        say: &dyn Fn(&str),
    ) -> Result<Self, Error> {
        let build = |source| Ok((source, cache.out_of_tree(kernel, &source, say)?));
        let built = sources(experiment).into_iter().map(build).collect::<Result<_, Error>>()?;
        let workloads = experiment.workloads.iter();
        let wanted: Vec<&str> = workloads.flat_map(of_kernel).collect();
        let lacking = modules::lacking(kernel, &wanted)?;
        Ok(Self { built, lacking: lacking.into_iter().map(String::from).collect() })
    }

    /// Returns the modules that were built.
    pub fn modules(&self) -> impl Iterator<Item = &Module> {
        self.built.iter().filter_map(|(_, built)| built.as_ref().ok())
    }

    /// Returns the modules of the kernel that a workload names; empty if the workload cannot run on
    /// this kernel.
    pub fn of_kernel<'a>(&self, workload: &'a WorkloadUse) -> Vec<&'a str> {
        match self.missing(workload) {
            None => of_kernel(workload).collect(),
            Some(_) => Vec::new(),
        }
    }

    /// Returns why a workload cannot run on this kernel, as a predicate that follows the kernel's
    /// name; `None` if it can run.
    pub fn missing(&self, workload: &WorkloadUse) -> Option<String> {
        let modules = &workload.manifest.modules;
        let lacking = self.lacking.iter().find(|module| modules.contains(module));
        let lacking = lacking.map(|module| format!("has no module {module}"));
        lacking.or_else(|| {
            self.built.iter().find_map(|(source, built)| {
                let why = built.as_ref().err()?;
                modules.iter().any(|module| module == source.name).then(|| why.clone())
            })
        })
    }
}

/// Returns whether the variant itself loads modules that were built outside of its kernel's tree.
/// If modules are missing it returns false; the boots then fail and report the reason.
pub fn has_foreign(kernel: &Kernel, variant: &Variant) -> bool {
    let modules = modules::choose(kernel, &variant.modules).unwrap_or_default();
    modules.iter().any(|module| module.is_in_tree().is_ok_and(|in_tree| !in_tree))
}

/// Returns the modules of the kernel that a workload names.
pub fn of_kernel(workload: &WorkloadUse) -> impl Iterator<Item = &str> {
    let modules = workload.manifest.modules.iter().map(String::as_str);
    modules.filter(|module| source(module).is_none())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::job;
    use crate::job::JobError;
    use plan::file;
    use plan::workloads;

    fn used(name: &str) -> WorkloadUse {
        let manifest = workloads::find(name, Path::new("")).unwrap();
        WorkloadUse::new(manifest, 3, model::Millis(1))
    }

    /// Returns a kernel with these modules as files and with xfs built in.
    fn kernel(directory: &Path, files: &[&str]) -> Kernel {
        let list: String = files.iter().map(|file| format!("kernel/{file}.ko:\n")).collect();
        fs::write(directory.join("modules.dep"), list).unwrap();
        fs::write(directory.join("modules.builtin"), "kernel/fs/xfs/xfs.ko\n").unwrap();
        Kernel {
            name: "small".into(),
            release: "1.2.3".into(),
            modules: Some(directory.to_owned()),
            ..Kernel::default()
        }
    }

    /// Returns an experiment with two workloads on a machine with an xfs disk.
    fn experiment() -> Experiment {
        let text = r#"
            name = "x"
            boots = 1
            machine.cpus = 1
            machine.memory = "1G"
            machine.nodes = 1
            machine.disk = [{ kind = "virtio-blk", size = "1G", filesystem = "xfs" }]
            variant = [{ kernel = "small" }]
            workload = [{ name = "xfsrepair" }, { name = "autonuma" }]
        "#;
        file::parse(Path::new("x.toml"), text, None).unwrap().experiment
    }

    fn build(kernel: &Kernel, experiment: &Experiment) -> OutOfTree {
        let cache = Cache::at("/nowhere");
        OutOfTree::build(&cache, kernel, experiment, &|line| panic!("{line}")).unwrap()
    }

    #[test]
    fn a_workload_without_its_module_is_not_run() {
        let [source, _] = SOURCES;
        let built = vec![(source, Err("has no headers".into()))];
        let out_of_tree = OutOfTree { built, lacking: Vec::new() };
        assert_eq!(out_of_tree.missing(&used("pagealloc")).as_deref(), Some("has no headers"));
        assert_eq!(out_of_tree.missing(&used("truncate")), None);
        assert_eq!(out_of_tree.modules().count(), 0);
        assert_eq!(job::iterations(&used("pagealloc"), &out_of_tree), 0);
        assert_eq!(job::iterations(&used("truncate"), &out_of_tree), 3);
    }

    #[test]
    fn a_built_module_is_loaded() {
        let [source, _] = SOURCES;
        let module = Module { name: "pagealloc".into(), path: "x.ko".into(), optional: false };
        let built = vec![(source, Ok(module.clone()))];
        let out_of_tree = OutOfTree { built, lacking: Vec::new() };
        assert_eq!(out_of_tree.missing(&used("pagealloc")), None);
        assert_eq!(out_of_tree.modules().collect::<Vec<_>>(), [&module]);
    }

    #[test]
    fn a_workload_without_its_kernel_module_is_not_run() {
        let directory = tempfile::tempdir().unwrap();
        let mut experiment = experiment();
        let disk = ["virtio_pci", "virtio_blk"];
        let with = |more: &[&str]| kernel(directory.path(), &[&disk, more].concat());
        let iterations = |kernel: &Kernel, experiment: &Experiment| {
            let out_of_tree = build(kernel, experiment);
            let why = out_of_tree.missing(&experiment.workloads[0]);
            let variant = &experiment.variants[0];
            let made = job::job(experiment, variant, kernel, &out_of_tree, None);
            made.map(|(job, _)| (job.workloads.iter().map(|it| it.iterations).collect(), why))
        };
        let runs: (Vec<u32>, _) = iterations(&with(&["loop"]), &experiment).unwrap();
        assert!(runs.0.iter().all(|&times| times > 0) && runs.1.is_none(), "{runs:?}");
        let (left, why) = iterations(&with(&[]), &experiment).unwrap();
        assert_eq!(why.as_deref(), Some("has no module loop"));
        assert_eq!(left, [0, runs.0[1]]);

        // Modules for the disk or for the variant itself must exist.
        let error = iterations(&kernel(directory.path(), &["loop"]), &experiment).unwrap_err();
        assert!(error.to_string().contains("no module virtio_pci"), "{error}");
        experiment.variants[0].modules = vec!["loop".into()];
        let error = iterations(&with(&[]), &experiment).unwrap_err();
        assert!(error.to_string().contains("no module loop"), "{error}");
    }

    #[test]
    fn tainting_modules_of_the_variant_are_recognised() {
        let directory = tempfile::tempdir().unwrap();
        let kernel = kernel(directory.path(), &["zram", "mine"]);
        let files = directory.path().join("kernel");
        fs::create_dir(&files).unwrap();
        fs::write(files.join("zram.ko"), "license=GPL\0intree=Y\0").unwrap();
        fs::write(files.join("mine.ko"), "license=GPL\0").unwrap();
        let mut variant = experiment().variants.remove(0);
        let mut has = |modules: &[&str]| {
            variant.modules = modules.iter().copied().map(String::from).collect();
            has_foreign(&kernel, &variant)
        };
        assert!(!has(&[]) && !has(&["zram", "xfs"]) && !has(&["nix"]));
        assert!(has(&["mine"]) && has(&["zram", "mine"]));
    }

    #[test]
    fn a_kernel_without_module_lists_lacks_no_module() {
        let directory = tempfile::tempdir().unwrap();
        let experiment = experiment();
        let kernel = Kernel { modules: None, ..kernel(directory.path(), &[]) };
        let out_of_tree = build(&kernel, &experiment);
        assert_eq!(out_of_tree.missing(&experiment.workloads[0]), None);
        let made = job::job(&experiment, &experiment.variants[0], &kernel, &out_of_tree, None);
        assert!(matches!(made, Err(JobError::Module(modules::Error::NoModules { .. }))));
    }
}
