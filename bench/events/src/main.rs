//! Measures the cost for the kernel of counting ten tracepoints that the workload passes often, and of sampling at
//! 100 Hz: `mprotect` with and without them, in pairs.
//!
//! - In exact mode, which counts but does not sample: the kernel's instructions in each phase, by seed.
//! - In measured mode under emulation: the time per page, boots taking turns.
//!
//! Prints the ratio of each pair's figures, with over without: median, least and most. `bench/README.md` has
//! figures.
//!
//! `bench-events FAULTLINE [KERNEL [events|samples]]`: the default is debian:6.1, and both.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

use model::Boot;
use store::Detail;

/// Pairs in exact mode.
const SEEDS: usize = 3;
/// Pairs in measured mode.
const ROUNDS: usize = 5;
/// Phases; the first passes two of the tracepoints for each page, and has no metric.
const PHASES: [&str; 3] = ["fill", "protect", "restore"];
const EVENTS: [&str; 10] = [
    "tlb:tlb_flush",
    "exceptions:page_fault_user",
    "exceptions:page_fault_kernel",
    "kmem:mm_page_alloc",
    "kmem:mm_page_free",
    "kmem:kmem_cache_alloc",
    "kmem:kmem_cache_free",
    "sched:sched_switch",
    "migrate:mm_migrate_pages",
    "irq_vectors:local_timer_entry",
];

struct Bench {
    program: String,
    kernel: String,
    directory: tempfile::TempDir,
}

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: bench-events FAULTLINE [KERNEL [events|samples]]";
    let mut arguments = std::env::args().skip(1);
    let program = arguments.next().ok_or(usage)?;
    let kernel = arguments.next().unwrap_or_else(|| "debian:6.1".to_owned());
    let [events, samples] = match arguments.next().as_deref() {
        None => [true; 2],
        Some("events") => [true, false],
        Some("samples") => [false, true],
        Some(_) => return Err(usage.into()),
    };
    let bench = Bench { program, kernel, directory: tempfile::tempdir()? };
    println!("On {}, with / without: median (least to most)", bench.kernel);
    if events {
        bench.events()?;
    }
    if samples {
        println!("Samples at 100 Hz");
        bench.timed("samples", "[profile]\nsampled = true\nfrequency = 100\n")?;
    }
    Ok(())
}

impl Bench {
    fn events(&self) -> Result<(), Box<dyn Error>> {
        println!("{} events", EVENTS.len());
        let events = format!("[sampler]\nevents = {EVENTS:?}\n");
        let exact = format!("mode = \"exact\"\nseeds = {SEEDS}");
        let pair = [self.boots("without", &exact, "")?, self.boots("with", &exact, &events)?];
        for phase in PHASES {
            let what = format!("instructions of the kernel, {phase}");
            print(&what, &ratios(&pair, phase, instructions));
        }
        self.timed("events", &events)
    }

    /// Prints the ratios of times with and without these keys.
    fn timed(&self, what: &str, keys: &str) -> Result<(), Box<dyn Error>> {
        let mut pair = [Vec::new(), Vec::new()];
        for round in 0..ROUNDS {
            for (keys, boots) in ["", keys].into_iter().zip(&mut pair) {
                let name = format!("{what}-{round}-{}", keys.is_empty());
                boots.extend(self.boots(&name, "boots = 1", keys)?);
            }
        }
        for phase in &PHASES[1..] {
            print(&format!("time under emulation, {phase}"), &ratios(&pair, phase, time));
        }
        Ok(())
    }

    /// The boots of an experiment with these keys, in order.
    fn boots(&self, name: &str, mode: &str, keys: &str) -> Result<Vec<Boot>, Box<dyn Error>> {
        let (file, store) = (self.path("x.toml"), self.path("bench.db"));
        let accel = if mode.contains("exact") { "" } else { "accel = \"tcg\"\n" };
        let text = format!(
            "name = \"{name}\"\n{mode}\n[machine]\ncpus = 1\nmemory = \"512M\"\n{accel}\
             {keys}[[variant]]\nkernel = \"{}\"\n\
             [[workload]]\nname = \"mprotect\"\nparameters = {{ rounds = 10 }}\n",
            self.kernel
        );
        fs::write(&file, text)?;
        let mut command = Command::new(&self.program);
        command.args(["run", "--quiet", "--store"]).arg(&store).arg(&file);
        command.stdout(std::process::Stdio::null());
        if !command.status()?.success() {
            return Err(format!("{name} does not run").into());
        }
        let store = store::open(Path::new(&store))?;
        let id = store.experiments()?.last().ok_or("the store is empty")?.id;
        let mut boots: Vec<Boot> =
            store.boots(id, Detail::Whole)?.into_iter().map(|kept| kept.boot).collect();
        boots.sort_by_key(|boot| boot.boot_index);
        Ok(boots)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }
}

/// The kernel's instructions in a phase.
fn instructions(boot: &Boot, phase: &str) -> f64 {
    let profiles = boot.profiles.iter().filter(|profile| profile.phase == phase);
    profiles.map(|it| it.totals().kernel as f64).sum()
}

/// The mean time per page in a phase.
fn time(boot: &Boot, phase: &str) -> f64 {
    let samples = boot.samples.iter().filter(|sample| sample.metric == phase);
    let values: Vec<f64> = samples.map(|sample| sample.value).collect();
    values.iter().sum::<f64>() / values.len() as f64
}

fn ratios(
    [without, with]: &[Vec<Boot>; 2],
    phase: &str,
    figure: fn(&Boot, &str) -> f64,
) -> Vec<f64> {
    let pairs = without.iter().zip(with);
    pairs.map(|(without, with)| figure(with, phase) / figure(without, phase)).collect()
}

fn print(what: &str, ratios: &[f64]) {
    let mut ratios = ratios.to_vec();
    ratios.sort_by(f64::total_cmp);
    let (middle, least, most) = (ratios[ratios.len() / 2], ratios[0], ratios[ratios.len() - 1]);
    println!("{what:<36} {middle:.3} ({least:.3} to {most:.3})");
}
