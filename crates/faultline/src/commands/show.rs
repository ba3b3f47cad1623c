//! `faultline list` and `faultline show`: what the store holds.

mod boot;

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use model::{Topology, count};
use report::escape;
use store::{BootId, Detail, Store};

use super::compare::find;
use super::{existing_store, print};
use crate::failure::Failure;
use crate::list;

pub fn list(store: Option<PathBuf>) -> Result<ExitCode, Failure> {
    let store = existing_store(store)?;
    print(&list::experiments(&store.experiments()?))?;
    Ok(ExitCode::SUCCESS)
}

pub fn show(store: Option<PathBuf>, what: Option<&str>) -> Result<ExitCode, Failure> {
    let store = existing_store(store)?;
    let number = what.and_then(|what| what.strip_prefix('b')?.parse().ok());
    print(&match number {
        Some(number) => boot::text(&store.boot(BootId(number))?),
        None => show_experiment(&store, what)?,
    })?;
    Ok(ExitCode::SUCCESS)
}

fn show_experiment(store: &Store, named: Option<&str>) -> Result<String, Failure> {
    let id = find(store, named)?;
    let experiment = store.experiment(id)?;
    let mut text = format!("experiment {id}: {}\n", escape(&experiment.name));
    if let Some(imported) = &experiment.imported {
        let directory = imported.directory.display().to_string();
        let _ = writeln!(text, "imported from {} ({})", escape(&directory), escape(&imported.tool));
    }
    let _ = writeln!(text, "machine: {}", machine(&experiment.machine.topology));
    for (number, disk) in experiment.machine.disks.iter().enumerate() {
        let _ = writeln!(text, "disk {number}: {}", escape(&disk.to_string()));
    }
    if let Some(swap) = &experiment.machine.swap {
        let _ = writeln!(text, "swap: {}", escape(&swap.to_string()));
    }
    for variant in &experiment.variants {
        let kernel = if variant.kernel.is_empty() { "not known" } else { &variant.kernel };
        let _ = writeln!(text, "variant {}: {}", escape(&variant.name), escape(kernel));
    }
    for used in &experiment.workloads {
        let iterations = count(used.iterations as usize, "iteration");
        let warmup = match used.warmup {
            0 => String::new(),
            warmup => format!(", after {warmup} of warm-up"),
        };
        let _ = writeln!(text, "workload {}: {iterations}{warmup}", escape(&used.manifest.name));
        for (name, value) in &used.manifest.parameters {
            let _ = writeln!(text, "  {} = {}", escape(name), escape(value));
        }
    }
    let boots = store.boots(id, Detail::Summary)?;
    Ok(format!("{text}\n{}", list::boots(&boots)))
}

fn machine(topology: &Topology) -> String {
    if topology.nodes.is_empty() {
        return "not known, or not one for all runs: `faultline show BOOT` tells of a boot's"
            .into();
    }
    let (cpus, nodes) = (topology.cpus() as usize, topology.nodes.len());
    let memory = topology.memory();
    format!("{}, {memory} of memory, {}", count(cpus, "CPU"), count(nodes, "node"))
}
