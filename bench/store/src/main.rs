//! Measures the cost of a large store: `faultline compare` of one experiment and keeping a boot of it, in a store
//! with 1,999 other experiments and 20,000 boots, and in a store of its own.
//!
//! Makes both stores, the same each time, and measures both in turns. Prints medians and their ratios. `bench/README.md`
//! has figures.
//!
//! `bench-store [EXPERIMENTS]`: other experiments, of ten boots each

mod generate;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};

use model::Reading;
use store::{Archive, ExperimentId};

/// The number of other experiments.
const OTHERS: u32 = 1_999;
/// The number of boots of each.
const BOOTS: u32 = 10;
/// Number of comparisons in each store.
const COMPARISONS: usize = 21;
/// Number of boots that are kept in each store.
const KEPT: u32 = 41;
/// The largest ratio that is allowed.
const TARGET: f64 = 1.2;

fn main() -> Result<(), Box<dyn Error>> {
    let others = match env::args().nth(1) {
        Some(number) => number.parse()?,
        None => OTHERS,
    };
    let faultline = faultline()?;
    let directory = tempfile::tempdir()?;
    let paths = ["alone.db", "large.db"].map(|name| directory.path().join(name));
    eprintln!("making a store with {others} experiments");
    let mut stores = Vec::new();
    for (path, others) in paths.iter().zip([0, others]) {
        stores.push(filled(path, others)?);
    }
    let size = fs::metadata(&paths[1])?.len() as f64 / f64::from(1 << 20);
    println!(
        "large store: {others} other experiments, {} other boots, {size:.0} MiB",
        others * BOOTS
    );
    println!("{:<12} {:>10} {:>10} {:>6}", "ms", "alone", "large", "ratio");
    let mut comparisons = [Vec::new(), Vec::new()];
    for round in 0..COMPARISONS {
        for place in turn(round) {
            comparisons[place].push(compared(&faultline, &paths[place])?);
        }
    }
    row("compare", comparisons);
    let mut keeping = [Vec::new(), Vec::new()];
    for boot_index in 0..KEPT {
        let boot = generate::large_boot("new", generate::LARGE_BOOTS + boot_index);
        for place in turn(boot_index as usize) {
            let (store, id) = &mut stores[place];
            let begin = Instant::now();
            store.keep_boot(*id, &boot)?;
            keeping[place].push(begin.elapsed());
        }
    }
    row("keep a boot", keeping);
    println!("{:<12} {:>28}", "to be within", TARGET);
    Ok(())
}

/// The order of both stores in a round. Each is first in half of the rounds, because the second one finds warm
/// caches.
fn turn(round: usize) -> [usize; 2] {
    if round.is_multiple_of(2) { [0, 1] } else { [1, 0] }
}

/// The path of `faultline`, beside this program.
fn faultline() -> Result<PathBuf, Box<dyn Error>> {
    let path = env::current_exe()?.with_file_name("faultline");
    match path.exists() {
        true => Ok(path),
        false => Err(format!("{} is not built", path.display()).into()),
    }
}

/// A new store with the large experiment among others.
fn filled(path: &Path, others: u32) -> Result<(Box<dyn Archive>, ExperimentId), Box<dyn Error>> {
    let mut store = store::open(path)?;
    let mut large = None;
    for number in 0..=others {
        if number == others / 2 {
            let id = store.keep_experiment(&generate::large(), Reading::USUAL)?;
            for boot_index in 0..generate::LARGE_BOOTS {
                for variant in ["old", "new"] {
                    store.keep_boot(id, &generate::large_boot(variant, boot_index))?;
                }
            }
            large = Some(id);
        } else {
            let id = store.keep_experiment(&generate::small(number), Reading::USUAL)?;
            for boot in generate::small_boots(number, BOOTS) {
                store.keep_boot(id, &boot)?;
            }
        }
    }
    Ok((store, large.ok_or("there is no place for the large experiment")?))
}

/// The time of one comparison of the large experiment.
fn compared(faultline: &Path, store: &Path) -> Result<Duration, Box<dyn Error>> {
    let begin = Instant::now();
    let mut command = Command::new(faultline);
    let output = command.arg("--store").arg(store).args(["compare", generate::NAME]).output();
    let (elapsed, output) = (begin.elapsed(), output?);
    match output.status.success() && !output.stdout.is_empty() {
        true => Ok(elapsed),
        false => Err(String::from_utf8_lossy(&output.stderr).into()),
    }
}

/// Prints the medians of both stores in milliseconds, and their ratio.
fn row(what: &str, times: [Vec<Duration>; 2]) {
    let [alone, large] = times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64() * 1000.0
    });
    println!("{what:<12} {alone:>10.2} {large:>10.2} {:>6.2}", large / alone);
}
