//! Measures the luck floors of the built-in workloads in exact mode. Boots two variants of one kernel that differ in
//! nothing that matters, with each workload, and compares them. Prints tables for the file of floors that
//! `faultline workload list` and `show` read.
//!
//! `bench-floors FAULTLINE STORE [WORKLOAD...]` boots the missing boots with the program `FAULTLINE` and resumes an
//! earlier run with the same store. `bench/README.md` has the command.

mod cells;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use cells::{CELLS, Cell, SEEDS};
use compare::{Comparison, Judging, Kind, Results, Row, Statistic, VariantBoots, compare};
use model::{EQUAL_ENTRIES, Reading};
use store::{Archive, Detail};

/// The floors of a phase in percent of the baseline's figure.
#[derive(Default)]
struct Floors {
    /// Of all instructions of the kernel.
    all: Option<f64>,
    /// At equal entries.
    equal: Option<f64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(program), Some(store)) = (arguments.next(), arguments.next()) else {
        return Err("usage: bench-floors FAULTLINE STORE [WORKLOAD...]".into());
    };
    let wanted: Vec<String> = arguments.collect();
    let mut releases = BTreeSet::new();
    let mut tables = String::new();
    let mut failed = Vec::new();
    for cell in &CELLS {
        if !wanted.is_empty() && wanted.iter().all(|name| name != cell.workload) {
            continue;
        }
        match boot(cell, &program, Path::new(&store)) {
            Ok(()) => tables += &measured(cell, &*store::open(Path::new(&store))?, &mut releases)?,
            Err(error) => {
                failed.push(cell.workload);
                eprintln!("{}: {error}", cell.workload);
            }
        }
    }
    let releases: Vec<String> = releases.into_iter().collect();
    print!("kernel = {:?}\nseeds = {SEEDS}\n{tables}", releases.join(", "));
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("no floors of {}", failed.join(", ")).into())
    }
}

/// Makes the missing boots of a cell.
fn boot(cell: &Cell, program: &str, store: &Path) -> Result<(), Box<dyn Error>> {
    let file = store.with_extension("toml");
    fs::write(&file, cell.experiment())?;
    let mut command = Command::new(program);
    command.arg("--store").arg(store).arg("run").arg("--quiet").arg(&file);
    let status = command.stdout(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(format!("run: {status}").into()) }
}

/// The floors of a cell as a table of TOML. Adds the release of its kernel.
fn measured(
    cell: &Cell,
    store: &dyn Archive,
    releases: &mut BTreeSet<String>,
) -> Result<String, Box<dyn Error>> {
    let id = store.find_experiment(cell.workload)?;
    let experiment = store.experiment(id)?;
    let kept = store.boots(id, Detail::Profiles(&[]))?;
    releases.extend(kept.iter().map(|it| it.boot.facts.release.clone()));
    let variants = experiment.variants.iter().map(|it| VariantBoots::of(it, &kept)).collect();
    let results = Results { experiment: &experiment, reading: Reading::USUAL, variants };
    let comparison = compare(&results, 0, &Judging { margin: 0.0, ..Judging::default() });
    let mut text = format!(
        "\n[workload.{}]\nmachine = {:?}\nparameters = {:?}\n",
        cell.workload,
        cell.machine(),
        cell.parameters
    );
    for (phase, floors) in floors(&comparison) {
        let figures = [("all", floors.all), ("equal", floors.equal)];
        let figures = figures.map(|(name, floor)| Some(format!("{name} = {:.2}", floor?)));
        let figures: Vec<String> = figures.into_iter().flatten().collect();
        writeln!(text, "phases.{phase:?} = {{ {} }}", figures.join(", "))?;
    }
    Ok(text)
}

/// The floors of each measured phase.
fn floors(comparison: &Comparison) -> BTreeMap<&str, Floors> {
    let mut phases: BTreeMap<&str, Floors> = BTreeMap::new();
    let tables = comparison.tables.iter().filter(|table| table.kind == Kind::Metrics);
    for row in tables.flat_map(|table| &table.rows) {
        let (Some(phase), Some(floor)) = (phase(row), floor(row)) else { continue };
        let floors = phases.entry(phase).or_default();
        match row.statistic {
            Statistic::Equal => floors.equal = Some(floor),
            it if it.is_mean() && row.verdict(1).is_some() => floors.all = Some(floor),
            _ => {}
        }
    }
    phases.retain(|_, floors| floors.all.is_some());
    phases
}

/// The phase of a row of the kernel's instructions.
fn phase(row: &Row) -> Option<&str> {
    let phase = row.metric.strip_prefix("instructions-kernel-")?;
    Some(phase.strip_suffix(EQUAL_ENTRIES).unwrap_or(phase))
}

/// The floor of a row in percent.
fn floor(row: &Row) -> Option<f64> {
    Some(100.0 * row.floor(1)? / row.base(1)?)
}
