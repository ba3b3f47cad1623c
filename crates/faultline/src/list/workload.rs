//! Workloads as text: all of them, one, and what a run of one yields.

use std::collections::BTreeSet;

use model::{Boot, INSTRUCTIONS, Manifest, Metric, Sample, count};
use plan::workloads::{Floors, Known, WorkloadFloors};
use report::escape;
use stats::Summary;

use super::layout::{columns, columns_above, figure, wrapped};

/// How much lines below a row are indented.
const INDENT: &str = "    ";

/// All workloads: a row each, and below it what the workload does and the floors of its phases.
pub fn workloads(all: &[Known], floors: &Floors) -> String {
    let rows = all.iter().map(|known| {
        let file = known.file.as_ref().map(|file| file.display().to_string());
        let needs = known.manifest.as_ref().map_or("-".into(), needs);
        [known.name.clone(), needs, file.unwrap_or_else(|| "built in".into())]
    });
    let about = all.iter().map(|known| match &known.manifest {
        Ok(manifest) => {
            let floors = floors.workload.get(&known.name).filter(|_| known.file.is_none());
            indented(&manifest.description) + &floors.map_or(String::new(), floors_in_words)
        }
        Err(error) => indented(error.to_string().lines().next().unwrap_or_default()),
    });
    columns_above(["WORKLOAD", "NEEDS", "MANIFEST"], rows, about)
}

/// The floors of a workload as a sentence.
fn floors_in_words(floors: &WorkloadFloors) -> String {
    let phases = floors.phases.iter().map(|(phase, it)| format!("{phase} {:.2} %", it.all));
    let phases: Vec<String> = phases.collect();
    indented(&format!(
        "Luck floors in exact mode with 5 seeds and small parameters (`workload show`): {}. {}",
        phases.join(", "),
        floors.why
    ))
}

/// The floors of a built-in workload: a row for each phase, and how they were measured. Empty if they were not measured.
pub fn floors(workload: &str, all: &Floors) -> String {
    let Some(floors) = all.workload.get(workload) else { return String::new() };
    let percent = |floor: f64| format!("{floor:.2} %");
    let rows = floors
        .phases
        .iter()
        .map(|(phase, it)| [phase.clone(), percent(it.all), it.equal.map_or("-".into(), percent)]);
    let table = columns(["PHASE", "LUCK FLOOR IN EXACT MODE", "AT EQUAL ENTRIES"], rows);
    let Floors { kernel, seeds, .. } = all;
    let WorkloadFloors { machine, parameters, why, .. } = floors;
    let how = format!(
        "Measured: {kernel}, {seeds} seeds a side, {machine}, {parameters}, these phases together. Floors are wider in \
         comparisons of more phases. {why}"
    );
    format!("{table}{}\n", indented(&how))
}

/// One workload: needs, phases, parameters, floors, metrics, command, and how long it took.
pub fn workload(manifest: &Manifest, times: &[String], floors: &str) -> String {
    let mut text = format!("{}\n{}", escape(&manifest.name), indented(&manifest.description));
    text += &format!("\nneeds: {}\n", needs(manifest));
    let preparation = manifest.preparation.iter().map(|phase| match &**phase {
        "" => "time outside phases".to_owned(),
        phase => escape(phase),
    });
    let preparation: Vec<String> = preparation.collect();
    if !preparation.is_empty() {
        text += &format!("phases that only prepare: {}\n", preparation.join(", "));
    }
    for time in times {
        text += &format!("took: {time}\n");
    }
    text += &format!("command:\n{}\n", indented(&manifest.command.join(" ")));
    if !manifest.parameters.is_empty() {
        text += &parameters(manifest);
        text.push('\n');
    }
    text += floors;
    let rows = manifest.metrics.iter().map(|metric| {
        let better = metric.better.map_or("-", |better| better.name());
        let verdicts = if manifest.is_primary(metric) { "yes" } else { "no" };
        [&metric.name, &metric.unit, better, verdicts].map(str::to_owned)
    });
    text + &columns(["METRIC", "UNIT", "BETTER", "VERDICTS BY TIME"], rows)
}

/// The parameters: a row each, and below it meaning and values.
fn parameters(manifest: &Manifest) -> String {
    let rows = manifest.parameters.iter().map(|(name, parameter)| {
        let default = if parameter.value.is_empty() { "\"\"" } else { &parameter.value };
        [name.clone(), default.to_owned()]
    });
    let about = manifest.parameters.values().map(|parameter| {
        indented(format!("{} Values: {}.", parameter.meaning, parameter.allowed(None)).trim_start())
    });
    columns_above(["PARAMETER", "DEFAULT"], rows, about)
}

/// What a workload needs of a machine and a kernel.
fn needs(manifest: &Manifest) -> String {
    let mut needs = Vec::new();
    if manifest.nodes > 0 {
        needs.push(count(manifest.nodes as usize, "node"));
    }
    let on_disk = manifest.parameters.values().any(|parameter| parameter.disk.is_some());
    let disk = manifest.command.iter().any(|word| word.contains("{disk}"));
    match (on_disk, disk) {
        (true, _) => needs.push("a disk with a file system".into()),
        (false, true) => needs.push("a disk".into()),
        (false, false) => {}
    }
    if manifest.swap {
        needs.push("swap".into());
    }
    for (what, names) in [("module", &manifest.modules), ("package", &manifest.packages)] {
        if !names.is_empty() {
            let plural = if names.len() > 1 { "s" } else { "" };
            needs.push(format!("{what}{plural} {}", escape(&names.join(" "))));
        }
    }
    if needs.is_empty() { "-".into() } else { needs.join(", ") }
}

/// What one boot of a workload yielded: problems, metrics, phases, times.
pub fn checked(manifest: &Manifest, boot: &Boot) -> String {
    let mut text = format!(
        "{} on {}: {}\n",
        escape(&manifest.name),
        escape(&boot.facts.release),
        boot.outcome
    );
    for problem in &boot.problems {
        text += &format!("{}: {}\n", problem.kind, escape(&problem.text));
    }
    for note in &boot.notes {
        text += &format!("note: {}\n", escape(&note.to_string()));
    }
    for usage in &boot.usage {
        let [elapsed, user, system] =
            [usage.elapsed, usage.user, usage.system].map(|seconds| figure(seconds, 2));
        text += &format!("time: {elapsed} s elapsed, {user} s user, {system} s system\n");
    }
    let phases: BTreeSet<&str> = boot.chunks.iter().map(|chunk| &*chunk.phase).collect();
    let phases: Vec<String> = phases
        .into_iter()
        .filter(|phase| !phase.is_empty())
        .map(|phase| {
            let prepares = if manifest.prepares(phase) { " (prepares)" } else { "" };
            format!("{}{prepares}", escape(phase))
        })
        .collect();
    if !phases.is_empty() {
        text += &format!("phases: {}\n", phases.join(", "));
    }
    if !boot.samples.is_empty() {
        text += &format!("\n{}", metrics(manifest, boot));
    }
    let silent = |metric: &&Metric| boot.samples.iter().all(|it| it.metric != metric.name);
    for metric in manifest.metrics.iter().filter(silent) {
        text += &format!("{}: the program reported no sample of it\n", escape(&metric.name));
    }
    text
}

/// The rows of all metrics with a sample, by phase.
fn metrics(manifest: &Manifest, boot: &Boot) -> String {
    let mut rows: Vec<([&str; 3], Vec<f64>)> = Vec::new();
    for Sample { metric, label, phase, value, .. } in &boot.samples {
        let own: [&str; 3] = [metric, label, phase];
        match rows.iter_mut().find(|row| row.0 == own) {
            Some((_, values)) => values.push(*value),
            None => rows.push((own, vec![*value])),
        }
    }
    let rows = rows.into_iter().map(|([metric, label, phase], values)| {
        let known = manifest.metrics.iter().find(|it| it.name == metric);
        let is_exact = known.is_none() && metric == INSTRUCTIONS;
        let unit = match known {
            Some(metric) => metric.unit.clone(),
            None if is_exact => "-".into(),
            None => "not in the manifest".into(),
        };
        let name = match label {
            "" => metric.to_owned(),
            label => format!("{metric}-{label}"),
        };
        let mean = Summary::of(&values).map_or(f64::NAN, |summary| summary.amean);
        let mean = figure(mean, if is_exact { 0 } else { 6 });
        let phase = if phase.is_empty() { "-" } else { phase };
        [name, phase.to_owned(), values.len().to_string(), mean, unit]
    });
    columns(["ROW", "PHASE", "SAMPLES", "MEAN", "UNIT"], rows)
}

/// Indented lines of a text.
fn indented(text: &str) -> String {
    wrapped(INDENT, INDENT, text.split_whitespace())
}
