//! `faultline list` and `faultline show`: what the store holds.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use model::Boot;
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
    let boot = what.and_then(|what| what.strip_prefix('b')?.parse().ok());
    print(&match boot {
        Some(number) => show_boot(&store.boot(BootId(number))?),
        None => show_experiment(&store, what)?,
    })?;
    Ok(ExitCode::SUCCESS)
}

fn show_experiment(store: &Store, named: Option<&str>) -> Result<String, Failure> {
    let id = find(store, named)?;
    let experiment = store.experiment(id)?;
    let topology = &experiment.machine.topology;
    let mut text = format!("experiment {id}: {}\n", experiment.name);
    let _ = writeln!(
        text,
        "machine: {} CPUs, {} of memory, {} nodes",
        topology.cpus(),
        topology.memory(),
        topology.nodes.len()
    );
    for variant in &experiment.variants {
        let _ = writeln!(text, "variant {}: {}", variant.name, variant.kernel);
    }
    for used in &experiment.workloads {
        let _ = writeln!(text, "workload {}: {} x", used.manifest.name, used.iterations);
        for (name, value) in &used.manifest.parameters {
            let _ = writeln!(text, "  {name} = {value}");
        }
    }
    let boots = store.boots(id, Detail::Summary)?;
    Ok(format!("{text}\n{}", list::boots(&boots)))
}

fn show_boot(boot: &Boot) -> String {
    let facts = &boot.facts;
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<14}{}", list::one_line(value));
    };
    line("variant", &boot.variant);
    line("replicate", &boot.replicate.to_string());
    line("outcome", &boot.outcome.to_string());
    line("kernel", &format!("{} {}", facts.release, facts.version));
    line("origin", &facts.kernel_origin);
    line("digest", &facts.kernel_digest);
    line("built by", &facts.banner);
    line("command line", &facts.cmdline);
    line("machine", &format!("{} CPUs, {} nodes, {} bytes", facts.cpus, facts.nodes, facts.memory));
    line("executed by", &format!("{} ({})", facts.emulator, facts.accel));
    let host = &boot.host;
    let (load, steal) = ((host.load_before, host.load_after), 100.0 * host.steal);
    line("host", &format!("load {:.2} to {:.2}, steal {steal:.1} %", load.0, load.1));
    for problem in &boot.problems {
        line(&problem.kind.to_string(), &problem.text);
    }
    for note in &boot.notes {
        line("note", note);
    }
    text.push_str("\nsamples\n");
    for sample in &boot.samples {
        let name = [&*sample.metric, &*sample.label, &*sample.phase]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("-");
        let place = format!("{} {}", sample.workload, sample.iteration);
        let _ = writeln!(text, "  {place:<16} {name:<36} {:>14.4}", sample.value);
    }
    text.push_str("\nseries\n");
    for chunk in &boot.chunks {
        let place = format!("{} {} {}", chunk.workload, chunk.iteration, chunk.phase);
        let (source, times, counters) = (&chunk.source, chunk.times.len(), chunk.columns.len());
        let _ = writeln!(text, "  {place:<36} {source:<14} {times:>6} x {counters} counters");
    }
    text.push_str("\nlog\n");
    for logged in boot.console.lines() {
        let _ = writeln!(text, "  {}", list::one_line(logged));
    }
    text
}
