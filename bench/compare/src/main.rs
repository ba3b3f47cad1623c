//! Measures the cost of importing and comparing a large directory of mmtests' logs: 4 kernels x 10 iterations of
//! `autonumabench`, with 10,000 samples of `/proc/vmstat` in each.
//!
//! Makes the directory, the same each time; imports it with Faultline, including monitors, and compares.
//! Then, if `MMTESTS` names a checkout of mmtests, and `perl` and `R` are installed, has mmtests compare the
//! same directory: the table, and one counter of the monitor. Prints CPU time of each with its children,
//! wall time, and ratios. `bench/README.md` has figures.
//!
//! `bench-compare [KERNELS ITERATIONS SAMPLES]`

mod generate;
mod measure;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::generate::{Size, generate};
use crate::measure::{Spent, measure};

/// Default size of the directory.
const LARGE: Size = Size { kernels: 4, iterations: 10, samples: 10_000 };
/// Number of imports for the median; each goes into a store of its own.
const IMPORTS: usize = 3;
/// Number of our comparisons for the mean, because a single one is too short.
const COMPARISONS: u32 = 10;
/// The counter that mmtests is asked for.
const COUNTER: &str = "pgfault";
/// The required speed relative to mmtests' comparison.
const TARGET: f64 = 100.0;

fn main() -> Result<(), Box<dyn Error>> {
    let size = size()?;
    let faultline = faultline()?;
    let directory = tempfile::tempdir()?;
    let logs = directory.path().join("log");
    eprintln!("making a directory of {size:?}");
    let text = generate(&logs, size)?;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!(
        "{} kernels x {} iterations x {} samples of /proc/vmstat: {:.0} MiB of text, {:.0} MiB packed",
        size.kernels,
        size.iterations,
        size.samples,
        mib(text),
        mib(on_disk(&logs)?)
    );
    println!("{:<44} {:>9} {:>9}", "", "CPU s", "wall s");
    let store = |number: usize| directory.path().join(format!("store{number}.db"));
    let mut imports = Vec::new();
    for number in 0..IMPORTS {
        let mut command = ours(&faultline, &store(number));
        imports.push(measure(command.args(["import", "mmtests"]).arg(&logs))?);
    }
    imports.sort_by(|a, b| a.cpu.total_cmp(&b.cpu));
    let import = imports[IMPORTS / 2];
    row("faultline import mmtests, all counters", import);
    let mut compare = Spent::default();
    for _ in 0..COMPARISONS {
        compare += measure(ours(&faultline, &store(0)).arg("compare"))?;
    }
    let compare = compare / f64::from(COMPARISONS);
    row("faultline compare", compare);
    let Some(mmtests) = env::var_os("MMTESTS").map(PathBuf::from) else {
        println!("mmtests itself: not run; MMTESTS names no checkout of it");
        return Ok(());
    };
    let table = measure(&mut theirs(&mmtests, &logs, size))?;
    row("mmtests compare, table", table);
    let counter = ["--print-monitor", "proc-vmstat", "--sub-heading", COUNTER];
    let monitor = measure(theirs(&mmtests, &logs, size).args(counter))?;
    row("mmtests compare, one counter of the monitor", monitor);
    ratios(import, compare, table, monitor);
    Ok(())
}

fn size() -> Result<Size, Box<dyn Error>> {
    let numbers: Result<Vec<usize>, _> = env::args().skip(1).map(|word| word.parse()).collect();
    match numbers?.as_slice() {
        [] => Ok(LARGE),
        &[kernels, iterations, samples] => Ok(Size { kernels, iterations, samples }),
        _ => Err("expected KERNELS ITERATIONS SAMPLES".into()),
    }
}

/// The path of `faultline`, beside this program.
fn faultline() -> Result<PathBuf, Box<dyn Error>> {
    let path = env::current_exe()?.with_file_name("faultline");
    match path.exists() {
        true => Ok(path),
        false => Err(format!("{} is not built", path.display()).into()),
    }
}

fn ours(faultline: &Path, store: &Path) -> Command {
    let mut command = Command::new(faultline);
    command.arg("--store").arg(store);
    command
}

fn theirs(mmtests: &Path, logs: &Path, size: Size) -> Command {
    let mut command = Command::new("perl");
    command.arg(mmtests.join("bin/compare-mmtests.pl")).arg("-d").arg(logs);
    command.args(["-b", "autonumabench", "-n", &size.names().join(",")]);
    command
}

fn on_disk(directory: &Path) -> Result<u64, Box<dyn Error>> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { on_disk(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

fn row(what: &str, spent: Spent) {
    println!("{what:<44} {:>9.2} {:>9.2}", spent.cpu, spent.wall);
}

fn ratios(import: Spent, compare: Spent, table: Spent, monitor: Spent) {
    let ratio = |what: &str, theirs: Spent, ours: Spent| {
        let (cpu, wall) = (theirs.cpu / ours.cpu, theirs.wall / ours.wall);
        println!("{what:<44} {cpu:>9.1} {wall:>9.1}");
    };
    println!("mmtests / faultline");
    ratio("table / compare", table, compare);
    println!("{:<44} {:>9}", "  to be at least", TARGET);
    ratio("table and one counter / import and compare", table + monitor, import + compare);
}
