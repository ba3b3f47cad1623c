//! Checks an experiment for requirements that cannot be met, before anything boots.

use model::{Bytes, Experiment, Topology};

use super::RunError;
use super::obtain::Obtained;
use crate::boot::out_of_tree::OutOfTree;

/// The word of the command line that makes a kernel divide its memory into emulated nodes
/// (`Documentation/admin-guide/kernel-parameters.txt`).
const FAKE_NODES: &str = "numa=fake";

/// The machine needs more memory than the host has.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "the machine needs {wants} of memory, but this host has only {has} with its swap; nothing was booted"
)]
pub struct TooLarge {
    wants: Bytes,
    has: Bytes,
}

/// Checks that the host has the memory of a machine. Fails when it has less.
pub fn check_memory(topology: &Topology) -> Result<(), TooLarge> {
    let wants = topology.memory();
    match machine::host::memory().filter(|has| *has < wants) {
        Some(has) => Err(TooLarge { wants, has: Bytes(has.0 >> 20 << 20) }),
        None => Ok(()),
    }
}

/// Checks for requirements that this host or the machine cannot meet. Fails when the machine needs more
/// memory than the host has, or a workload more NUMA nodes than the machine.
pub fn check(experiment: &Experiment) -> Result<(), RunError> {
    let manifests = experiment.workloads.iter().map(|used| &used.manifest);
    let most = manifests.max_by_key(|manifest| manifest.nodes);
    for variant in &experiment.variants {
        let topology = experiment.seen_by(variant).machine.topology;
        check_memory(&topology)?;
        let has = topology.nodes.len();
        let makes_nodes = variant.cmdline.contains(FAKE_NODES);
        if let Some(most) = most.filter(|most| !makes_nodes && has < most.nodes as usize) {
            let (workload, wants) = (most.name.clone(), most.nodes);
            return Err(RunError::Nodes { workload, variant: variant.name.clone(), wants, has });
        }
    }
    Ok(())
}

/// Checks that each workload is supported by at least one kernel. Fails when no kernel supports a workload.
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
