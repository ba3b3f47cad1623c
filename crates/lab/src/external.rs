//! Kernel modules of our own, which workloads name like any other: built for the kernels of an
//! experiment before the first boot.

use std::iter;

use kernels::external::Source;
use kernels::modules::Module;
use kernels::{Cache, Error};
use model::{Experiment, Kernel, WorkloadUse};

use crate::conclude::digest;

/// What there is.
const SOURCES: [Source; 1] =
    [Source { name: "pagealloc", text: include_str!("../../../workloads/pagealloc/pagealloc.c") }];

/// The source of a module of our own; none of the kernel's.
pub fn source(module: &str) -> Option<Source> {
    SOURCES.into_iter().find(|source| source.name == module)
}

/// The sources of what an experiment's workloads want.
pub fn sources(experiment: &Experiment) -> Vec<Source> {
    let wanted = experiment.workloads.iter().flat_map(|workload| &workload.manifest.modules);
    let mut sources: Vec<Source> = wanted.filter_map(|module| source(module)).collect();
    sources.sort_by_key(|source| source.name);
    sources.dedup();
    sources
}

/// A digest of what of ours runs in the guest, `guest`, with the sources that an experiment wants.
pub fn pinned(guest: String, experiment: &Experiment) -> String {
    let sources = sources(experiment);
    if sources.is_empty() {
        return guest;
    }
    let texts = sources.iter().map(|source| source.text);
    digest(iter::once(guest.as_str()).chain(texts).collect::<String>().as_bytes())
}

/// What was built for one kernel, or why it could not be.
#[derive(Clone, Debug, Default)]
pub struct Externals(Vec<(Source, Result<Module, String>)>);

impl Externals {
    /// Builds what the experiment's workloads want.
    ///
    /// # Errors
    /// When the host lacks what it takes, or the archive cannot be reached.
    pub fn build(
        cache: &Cache,
        kernel: &Kernel,
        experiment: &Experiment,
        say: &dyn Fn(&str),
    ) -> Result<Self, Error> {
        let build = |source| Ok((source, cache.external(kernel, &source, say)?));
        sources(experiment).into_iter().map(build).collect::<Result<_, _>>().map(Self)
    }

    /// The modules that were built.
    pub fn modules(&self) -> impl Iterator<Item = &Module> {
        self.0.iter().filter_map(|(_, built)| built.as_ref().ok())
    }

    /// Why a workload cannot run on this kernel; none if it can.
    pub fn missing(&self, workload: &WorkloadUse) -> Option<&str> {
        let modules = &workload.manifest.modules;
        self.0.iter().find_map(|(source, built)| {
            let why = built.as_ref().err()?;
            modules.iter().any(|module| module == source.name).then_some(why.as_str())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{job, workloads};

    fn used(name: &str) -> WorkloadUse {
        let manifest = workloads::find(name).unwrap();
        WorkloadUse { manifest, program: None, iterations: 3, timeout: model::Millis(1) }
    }

    #[test]
    fn a_workload_whose_module_cannot_be_had_is_not_run() {
        let [source] = SOURCES;
        let externals = Externals(vec![(source, Err("has no headers".into()))]);
        assert_eq!(externals.missing(&used("pagealloc")), Some("has no headers"));
        assert_eq!(externals.missing(&used("truncate")), None);
        assert_eq!(externals.modules().count(), 0);
        assert_eq!(job::iterations(&used("pagealloc"), &externals), 0);
        assert_eq!(job::iterations(&used("truncate"), &externals), 3);
    }

    #[test]
    fn what_was_built_is_loaded() {
        let [source] = SOURCES;
        let module = Module { name: "pagealloc".into(), path: "x.ko".into(), optional: false };
        let externals = Externals(vec![(source, Ok(module.clone()))]);
        assert_eq!(externals.missing(&used("pagealloc")), None);
        assert_eq!(externals.modules().collect::<Vec<_>>(), [&module]);
    }
}
