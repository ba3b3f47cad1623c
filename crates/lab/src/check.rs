//! Checks, before anything boots, that the host, the machine and the kernels meet an experiment's
//! requirements.

use std::path::Path;

use boot::out_of_tree::{self, OutOfTree};
use boot::{BootError, check_memory};
use kernels::Source;
use machine::Emulator;
use machine::host::{no_events, no_tracepoint};
use model::{Architecture, Experiment, Kernel, Machine, PerfEvent, WorkloadUse};
use plan::Request;
use plan::form::near;

use crate::known::pin_programs;
use crate::obtain::Obtained;
use crate::{Lab, RunError};

/// The parameter of the command line that makes a kernel divide its memory into emulated nodes
/// (`Documentation/admin-guide/kernel-parameters.txt`).
const FAKE_NODES: &str = "numa=fake";

/// Checks what is known before kernels are fetched. Fails when a machine needs more memory than the
/// host has, a workload needs more NUMA nodes than a machine has, or a file of the user's is missing.
pub fn check(experiment: &Experiment) -> Result<(), RunError> {
    pin_programs(&mut experiment.clone())?;
    let manifests = experiment.workloads.iter().map(|used| &used.manifest);
    let most = manifests.max_by_key(|manifest| manifest.nodes);
    for variant in &experiment.variants {
        let Machine { kind, topology, .. } = experiment.seen_by(variant).machine;
        if kind.is_vm() {
            check_memory(&topology)?;
        }
        let has = topology.nodes.len();
        let makes_nodes = variant.cmdline.contains(FAKE_NODES);
        if let Some(most) = most.filter(|most| !makes_nodes && has < most.nodes as usize) {
            let (workload, wants) = (most.name.clone(), most.nodes);
            return Err(RunError::Nodes { workload, variant: variant.name.clone(), wants, has });
        }
    }
    Ok(())
}

impl Lab {
    /// Checks that this user may do on this host what an experiment wants: write settings, and count events. Changes
    /// nothing.
    fn check_host(&self, experiment: &Experiment) -> Result<(), RunError> {
        let mut settings = experiment.variants.iter().flat_map(|it| &it.settings);
        settings.try_for_each(|it| self.settings.check(it))?;
        let Experiment { sampler, profile, .. } = experiment;
        let wants = [
            ("events", !sampler.events.is_empty()),
            ("a sampled profile", profile.samples().is_some()),
        ];
        let wanted = wants.into_iter().find(|(_, wanted)| *wanted);
        let root = Path::new("/");
        let forbidden = wanted.and_then(|(what, _)| Some((what, no_events(root)?)));
        let mut named = sampler.events.iter().map(|event| PerfEvent::parse(event));
        let missing = named.find_map(|event| match event {
            Some(PerfEvent::Tracepoint { system, name }) => no_tracepoint(root, system, name),
            _ => None,
        });
        match forbidden.or(missing.map(|why| ("events", why))) {
            Some((what, why)) => Err(RunError::NoEvents { what, why }),
            None => Ok(()),
        }
    }

    /// Checks the names of the kernels before this run waits for another one. Nothing is fetched or built. Fails when a
    /// name means no kernel, a file of the user's is missing, the tree lacks a commit, or what arm64 needs is not
    /// installed.
    pub fn check_kernels(&self, request: &Request) -> Result<(), RunError> {
        if !request.experiment.machine.kind.is_vm() {
            return self.check_host(&request.experiment);
        }
        let arch = request.experiment.machine.arch;
        if arch == Architecture::Arm64 {
            self.guest.of(arch).map_err(BootError::from)?;
            Emulator::find(arch)?;
            let has_ours = |used: &&WorkloadUse| {
                out_of_tree::of_kernel(used).count() < used.manifest.modules.len()
            };
            if let Some(used) = request.experiment.workloads.iter().find(has_ours) {
                let workload = used.manifest.name.clone();
                let why = "its module is built for x86_64 kernels so far".into();
                return Err(RunError::Unsupported { workload, why });
            }
        }
        for variant in &request.experiment.variants {
            let name = &variant.kernel.name;
            match request.build(variant) {
                Some(build) => self.cache.check_source(&name.parse::<Source>()?, build)?,
                None => self.cache.would_fetch(name).map(drop)?,
            }
        }
        Ok(())
    }
}

/// Checks that at least one kernel supports each workload. Fails when no kernel supports a
/// workload.
pub fn check_support(
    experiment: &Experiment,
    kernels: &[Obtained],
    out_of_tree: &[OutOfTree],
) -> Result<(), RunError> {
    for used in &experiment.workloads {
        let missing: Option<Vec<String>> = kernels
            .iter()
            .zip(out_of_tree)
            .map(|(Obtained { kernel, .. }, out_of_tree)| {
                Some(format!("{} {}", kernel.name, out_of_tree.missing(used)?))
            })
            .collect();
        if let Some(mut why) = missing {
            why.dedup();
            let (workload, why) = (used.manifest.name.clone(), why.join("; "));
            return Err(RunError::Unsupported { workload, why });
        }
    }
    Ok(())
}

/// Checks that at least one kernel can have each tracepoint of the experiment. Fails when no kernel
/// can have one of them.
pub fn check_tracepoints<'a>(
    experiment: &Experiment,
    kernels: impl IntoIterator<Item = &'a Kernel>,
) -> Result<(), RunError> {
    let mut known: Vec<(&Kernel, Vec<String>)> = Vec::new();
    for kernel in kernels {
        let is_new = !known.iter().any(|(other, _)| other.name == kernel.name);
        if is_new && !experiment.sampler.events.is_empty() {
            known.push((kernel, kernels::tracepoints(kernel)?.unwrap_or_default()));
        }
    }
    let impossible = |event: &&String| match PerfEvent::parse(event) {
        Some(PerfEvent::Tracepoint { system, .. }) => {
            !known.iter().any(|(kernel, names)| may_have(kernel, names, event, system))
        }
        _ => false,
    };
    match experiment.sampler.events.iter().find(impossible).filter(|_| !known.is_empty()) {
        None => Ok(()),
        Some(event) => {
            let all = known.iter().flat_map(|(_, names)| names).map(String::as_str);
            Err(RunError::NoEvent {
                event: event.clone(),
                kernels: known.iter().map(|(it, _)| &*it.name).collect::<Vec<_>>().join(", "),
                near: near::several(event, all).join(", "),
            })
        }
    }
}

/// Returns whether a kernel with the tracepoints `names` can have the tracepoint `event`, built in
/// or in a module. True if `names` is empty: the kernel has none or they are not known, and its
/// boots report what is missing.
fn may_have(kernel: &Kernel, names: &[String], event: &String, system: &str) -> bool {
    let is_of_system = |name: &String| name.split_once(':').is_some_and(|(it, _)| it == system);
    names.is_empty()
        || names.contains(event)
        || (kernel.modules.is_some()
            && !names.iter().any(is_of_system)
            && !is_misspelt(names, event, system))
}

/// Returns whether a known tracepoint has this name in a system that is spelt similarly.
fn is_misspelt(names: &[String], event: &str, system: &str) -> bool {
    let own = event.split_once(':').map(|(_, own)| own);
    let mut known = names.iter().filter_map(|name| name.split_once(':'));
    known.any(|(of, name)| Some(name) == own && near::nearest(system, [of].into_iter()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tracepoint_may_be_in_a_module_of_another_system() {
        let names = ["tlb:tlb_flush", "sched:sched_switch"].map(String::from);
        let (bare, with) =
            (Kernel::default(), Kernel { modules: Some("lib".into()), ..Kernel::default() });
        let may = |kernel, event: &str, system| may_have(kernel, &names, &event.to_owned(), system);
        assert!(may(&bare, "tlb:tlb_flush", "tlb") && !may(&bare, "tlb:tlb_flsh", "tlb"));
        assert!(!may(&with, "tlb:tlb_flsh", "tlb") && may(&with, "xfs:xfs_buf_get", "xfs"));
        assert!(!may(&bare, "xfs:xfs_buf_get", "xfs"));
        assert!(!may(&with, "shced:sched_switch", "shced"));
        assert!(may(&with, "drm:sched_switch", "drm"));
        assert!(may_have(&bare, &[], &"tlb:tlb_flush".to_owned(), "tlb"));
    }
}
