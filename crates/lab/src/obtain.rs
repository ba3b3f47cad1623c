//! Obtains the kernels of an experiment: from the cache, fetched, or built from source.

use std::cell::RefCell;
use std::path::Path;

use boot::{disks, out_of_tree, userspace};
use kernels::{Source, Unbuilt, digest};
use model::{Architecture, Build, Experiment, Kernel, Variant};
use plan::Request;

use crate::watch::{Progress, Watch};
use crate::{Lab, RunError};

/// The kernel of a variant, or why it cannot be built.
#[derive(Clone)]
pub struct Obtained {
    /// The kernel. If it cannot be built, it has only a name and a digest.
    pub kernel: Kernel,
    /// Why the kernel cannot be built; `None` if it was obtained.
    pub unbuilt: Option<Unbuilt>,
}

impl Lab {
    /// Obtains the kernels of the variants, in order. A kernel that cannot be built from source is
    /// no error. Fails when a kernel is not available, or the host fails.
    pub(super) fn kernels(
        &self,
        request: &Request,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<Obtained>, RunError> {
        let experiment = &request.experiment;
        if !experiment.machine.kind.is_vm() {
            let kernel = machine::host::running_kernel(Path::new("/"));
            let running = Obtained { kernel, unbuilt: None };
            return Ok(vec![running; experiment.variants.len()]);
        }
        let mut kernels: Vec<Obtained> = Vec::new();
        for variant in &experiment.variants {
            let build = request.build(variant);
            // Variants with the same kernel share it, because obtaining a kernel reads all its
            // files.
            let is_same = |it: &&Variant| {
                let same = it.kernel.name == variant.kernel.name && request.build(it) == build;
                same && (build.is_none() || it.modules == variant.modules)
            };
            let mut known = experiment.variants.iter().zip(&kernels);
            let obtained = match (known.find(|(it, _)| is_same(it)), build) {
                (Some((_, obtained)), _) => obtained.clone(),
                (None, Some(build)) => self.built(experiment, variant, build, watch)?,
                (None, None) => {
                    let kernel = self.kernel(&variant.kernel.name, watch)?;
                    check_architecture(&kernel, experiment.machine.arch)?;
                    Obtained { kernel, unbuilt: None }
                }
            };
            kernels.push(obtained);
        }
        Ok(kernels)
    }

    /// Returns the kernel that `spec` names; fetches it if necessary.
    pub fn kernel(&self, spec: &str, watch: &mut Watch<'_>) -> Result<Kernel, RunError> {
        let watch = RefCell::new(watch);
        Ok(self.cache.obtain(spec, &|line| watch.borrow_mut()(Progress::Message(line)))?)
    }

    /// Builds the kernel of a variant from source. If that is impossible, the result says why.
    /// Fails when the source cannot be read or the host fails.
    pub fn built(
        &self,
        experiment: &Experiment,
        variant: &Variant,
        build: &Build,
        watch: &mut Watch<'_>,
    ) -> Result<Obtained, RunError> {
        let source: Source = variant.kernel.name.parse()?;
        let build = complete(experiment, variant, build);
        let watch = RefCell::new(watch);
        let say = |line: &str| watch.borrow_mut()(Progress::Message(line));
        Ok(match self.cache.build(&source, &build, &say)? {
            Ok(kernel) => Obtained { kernel, unbuilt: None },
            Err(unbuilt) => {
                let (name, why) = (&variant.kernel.name, unbuilt.problem());
                say(&format!("{} {why}", variant.name));
                let digest = digest(format!("{name} {why}").as_bytes());
                let arch = build.arch;
                let kernel = Kernel { name: name.clone(), arch, digest, ..Kernel::default() };
                Obtained { kernel, unbuilt: Some(unbuilt) }
            }
        })
    }
}

/// Checks that a machine of this architecture can boot a kernel.
fn check_architecture(kernel: &Kernel, machine: Architecture) -> Result<(), RunError> {
    match kernel.arch == machine {
        true => Ok(()),
        false => {
            let (of, kernel) = (kernel.arch, kernel.name.clone());
            Err(RunError::Architecture { kernel, of, machine })
        }
    }
}

/// Returns how the kernel of a variant is built, with the modules and headers that the experiment
/// needs.
pub fn complete(experiment: &Experiment, variant: &Variant, build: &Build) -> Build {
    Build {
        modules: needs(experiment, variant),
        headers: build.arch.is_usual() && !out_of_tree::sources(experiment).is_empty(),
        ..build.clone()
    }
}

/// Returns the modules of the kernel that an experiment needs: for disks, file systems, swap,
/// workloads, events and the variant itself.
fn needs(experiment: &Experiment, variant: &Variant) -> Vec<String> {
    let machine = &experiment.machine;
    let workloads = experiment.workloads.iter();
    let mut modules: Vec<&str> = workloads.clone().flat_map(out_of_tree::of_kernel).collect();
    modules.extend(variant.modules.iter().map(String::as_str));
    modules.extend(disks::modules(&machine.disks));
    if workloads.clone().any(|used| !used.manifest.packages.is_empty()) {
        modules.extend(userspace::modules(experiment.mode));
    }
    if matches!(machine.swap, Some(model::Swap::Zram { .. })) {
        modules.push("zram");
    }
    if !experiment.sampler.events.is_empty() {
        modules.push(kernels::EVENTS);
    }
    modules.sort_unstable();
    modules.dedup();
    modules.into_iter().map(String::from).collect()
}
