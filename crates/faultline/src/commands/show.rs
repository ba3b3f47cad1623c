//! `faultline list` and `faultline show`: prints the store's contents.

mod boot;

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use model::{Kept, Machine, count};
use report::escape;
use results::KeyDifference;
use store::{Archive, Detail, ExperimentRow};

use super::chosen::{find, older};
use super::run::scratch;
use super::{existing_store, print, store_or_nothing, store_path};
use crate::failure::Failure;
use crate::list;

pub fn list(store: Option<PathBuf>) -> Result<ExitCode, Failure> {
    let path = store_path(store.clone())?;
    let Some(store) = store_or_nothing(store)? else { return Ok(ExitCode::SUCCESS) };
    let rows = store.experiments()?;
    let mut remarks = Vec::new();
    for row in &rows {
        remarks.push(match older(&rows, row) {
            Some(older) => list::differing(&differences(&*store, row, older)?, older.id),
            None => String::new(),
        });
    }
    print(&list::experiments(&rows, &remarks))?;
    print(&list::runs(&lab::lock_file(&scratch(&path))))?;
    for row in &rows {
        store.listed(row.id)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The keys in which an experiment differs from an older one of its name.
fn differences(
    store: &dyn Archive,
    row: &ExperimentRow,
    older: &ExperimentRow,
) -> Result<Vec<KeyDifference>, Failure> {
    let read = |id| Ok::<_, Failure>((store.experiment(id)?, store.reading(id)?));
    let (now, before) = (read(row.id)?, read(older.id)?);
    Ok(results::differences((&now.0, &now.1), (&before.0, &before.1)))
}

pub fn show(store: Option<PathBuf>, what: Option<&str>) -> Result<ExitCode, Failure> {
    // A name or number of an experiment or a boot must exist.
    let opened = match what {
        Some(_) => Some(existing_store(store)?),
        None => store_or_nothing(store)?,
    };
    let Some(store) = opened else { return Ok(ExitCode::SUCCESS) };
    print(&match what.and_then(|what| what.parse().ok()) {
        Some(id) => boot::text(&store.boot(id)?.1),
        None => show_experiment(&*store, what)?,
    })?;
    Ok(ExitCode::SUCCESS)
}

fn show_experiment(store: &dyn Archive, named: Option<&str>) -> Result<String, Failure> {
    let id = find(store, named)?;
    let experiment = store.experiment(id)?;
    let mut text = format!("experiment {id}: {}\n", escape(&experiment.name));
    let row = store.row(id)?;
    let _ = writeln!(text, "created: {} UTC", list::moment(row.created));
    if !row.note.is_empty() {
        let _ = writeln!(text, "note: {}", escape(&row.note));
    }
    if let Some(imported) = &experiment.imported {
        let directory = imported.directory.display().to_string();
        let _ = writeln!(text, "imported from {} ({})", escape(&directory), escape(&imported.tool));
    }
    let points = experiment.points();
    let sweep = if points.is_empty() { "" } else { " at the first point" };
    if !points.is_empty() {
        let _ = writeln!(text, "sweep: {}", escape(&points.join(", ")));
    }
    let _ = writeln!(text, "machine{sweep}: {}", machine(&experiment.machine));
    for (number, disk) in experiment.machine.disks.iter().enumerate() {
        let _ = writeln!(text, "disk {number}: {}", escape(&disk.to_string()));
    }
    if let Some(swap) = &experiment.machine.swap {
        let _ = writeln!(text, "swap: {}", escape(&swap.to_string()));
    }
    let boots = store.boots(id, Detail::Summary)?;
    for variant in &experiment.variants {
        let kernel = match variant.kernel.to_string() {
            unknown if unknown.is_empty() => of_boots(&boots, &variant.name),
            kernel => kernel,
        };
        let _ = writeln!(text, "variant {}: {}", escape(&variant.name), escape(&kernel));
    }
    for used in &experiment.workloads {
        let iterations = count(used.iterations as usize, "iteration");
        let warmup = match used.warmup {
            0 => String::new(),
            warmup => format!(", after {warmup} of warm-up"),
        };
        let _ =
            writeln!(text, "workload {}{sweep}: {iterations}{warmup}", escape(&used.manifest.name));
        if used.manifest.plain {
            let _ = writeln!(text, "  command: {}", escape(&used.manifest.command.join(" ")));
        }
        for (name, parameter) in &used.manifest.parameters {
            let _ = writeln!(text, "  {} = {}", escape(name), escape(&parameter.value));
        }
    }
    Ok(format!("{text}\n{}", list::boots(&boots)))
}

/// The kernel of an imported variant and the files it was imported from, as far as its boots say them.
fn of_boots(boots: &[Kept], variant: &str) -> String {
    let own = boots.iter().filter(|kept| kept.boot.variant == variant);
    let mut said: Vec<&str> = Vec::new();
    for facts in own.map(|kept| &kept.boot.facts) {
        for text in [&facts.release, &facts.kernel_origin] {
            if !text.is_empty() && !said.contains(&&**text) {
                said.push(text);
            }
        }
    }
    if said.is_empty() { "not known".to_owned() } else { said.join(", ") }
}

fn machine(Machine { arch, topology, turn, .. }: &Machine) -> String {
    if topology.nodes.is_empty() {
        return "not known, or not the same for all runs: `faultline show BOOT` shows a boot's"
            .into();
    }
    let (cpus, nodes) = (topology.cpus() as usize, topology.nodes.len());
    let memory = topology.memory();
    let arch = arch.unless_usual().map(|it| format!("{}, ", it.name())).unwrap_or_default();
    let turn = turn.filter(|_| cpus > 1);
    let turn = turn.map(|it| format!(", turns of {it} instructions")).unwrap_or_default();
    format!("{arch}{}, {memory} of memory, {}{turn}", count(cpus, "CPU"), count(nodes, "node"))
}
