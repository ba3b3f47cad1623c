//! Recomputes every figure of `faultline compare` in Python from exported data.

use std::path::{Path, PathBuf};
use std::process::Command;

use model::{
    Better, Boot, BootFacts, Bytes, Chunk, Column, Execution, Experiment, Machine, Manifest, Mean,
    Metric, Millis, Outcome, Provenance, Reading, Sample, Topology, Usage, Variant, WorkloadUse,
};
use serde_json::Value;
use tempfile::TempDir;

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recomputed/recompute.py");
const WORKLOAD: &str = "bench";
const BLOCKS: u32 = 3;
const ITERATIONS: u32 = 2;
/// The phases in order. Some occur several times.
const PHASES: [&str; 7] = ["", "fill", "run", "", "run", "rest", ""];
/// Counters, about how much they grow between two readings, and how many percent faster they grow in the second
/// variant.
const COUNTERS: [(&str, u64, u64); 12] = [
    ("pgfault", 100_000, 3),
    ("pgmajfault", 300, 0),
    ("allocstall_normal", 90, 0),
    ("allocstall_movable", 60, 40),
    ("pgscan_direct", 500, 25),
    ("pgscan_kswapd", 4_000, 0),
    ("pgsteal_kswapd", 3_000, 10),
    ("numa_pte_updates", 900_000, 0),
    ("numa_huge_pte_updates", 90, 0),
    ("numa_hint_faults", 5_000, 200),
    ("numa_hint_faults_local", 2_000, 50),
    ("numa_pages_migrated", 700, 0),
];

/// Pseudorandom numbers that are the same in each run (SplitMix64).
struct Chance(u64);

impl Chance {
    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    /// A number from 1 to `most`.
    fn factor(&mut self, most: f64) -> f64 {
        1.0 + (most - 1.0) * self.below(1 << 53) as f64 / (1u64 << 53) as f64
    }
}

fn experiment() -> Experiment {
    let metric = |name: &str, better, mean, primary| Metric {
        name: name.into(),
        unit: "s".into(),
        better,
        mean,
        primary,
        ..Metric::default()
    };
    let manifest = Manifest {
        name: WORKLOAD.into(),
        preparation: vec![String::new(), "fill".into()],
        metrics: vec![
            metric("Elapsed", Some(Better::Lower), Mean::Amean, true),
            metric("Rate", Some(Better::Higher), Mean::Hmean, true),
            metric("CPU", None, Mean::Amean, false),
        ],
        ..Manifest::default()
    };
    let variant = |name: &str| Variant { name: name.into(), ..Variant::default() };
    Experiment {
        name: "recomputed".into(),
        variants: vec![variant("6.1"), variant("6.12")],
        machine: Machine::new(Topology::even(2, Bytes::mib(512), 1).unwrap()),
        workloads: vec![WorkloadUse::new(manifest, ITERATIONS, Millis(1000))],
        boots: BLOCKS,
        ..Experiment::default()
    }
}

/// A boot of the first or the second variant. Some differences of the second variant are certain, others are
/// doubtful, so that verdicts of every kind occur.
fn boot(variant: usize, block: u32, chance: &mut Chance) -> Boot {
    let changed = |factor: f64| if variant == 1 { factor } else { 1.0 };
    let operations = [
        ("Elapsed", "slower", 12.0 * changed(1.2), 1.004),
        ("Elapsed", "same", 30.0, 1.001),
        ("Elapsed", "unsure", 5.0 * changed(1.02), 1.2),
        ("Rate", "faster", 900.0 * changed(1.3), 1.005),
        ("CPU", "any", 90.0 * changed(1.1), 1.01),
    ];
    let mut boot = Boot {
        variant: ["6.1", "6.12"][variant].into(),
        boot_index: block,
        block,
        started: 1_772_884_800 + 100 * u64::from(block) + variant as u64,
        outcome: Outcome::Complete,
        facts: BootFacts {
            provenance: Provenance { execution: Some(Execution::Kvm), ..Provenance::default() },
            ..BootFacts::default()
        },
        ..Boot::default()
    };
    let mut time = 7_000_000_000;
    let mut values = [1000; COUNTERS.len()];
    for iteration in 0..ITERATIONS {
        for (metric, label, value, spread) in operations {
            boot.samples.extend((0..4).map(|_| Sample {
                iteration,
                label: label.into(),
                ..Sample::new(WORKLOAD, metric, value * chance.factor(spread))
            }));
        }
        boot.usage.push(Usage {
            workload: WORKLOAD.into(),
            iteration,
            user: 3.0 * changed(1.5) * chance.factor(1.01),
            system: chance.factor(2.0),
            elapsed: 50.0 * chance.factor(1.1),
        });
        for phase in PHASES {
            boot.chunks.push(chunk(variant, iteration, phase, &mut time, &mut values, chance));
        }
    }
    boot
}

/// A span of a phase. It begins at the end of the previous one.
fn chunk(
    variant: usize,
    iteration: u32,
    phase: &str,
    time: &mut u64,
    values: &mut [i64; COUNTERS.len()],
    chance: &mut Chance,
) -> Chunk {
    let mut times = vec![*time];
    let mut columns = COUNTERS.map(|(name, ..)| Column { name: name.into(), values: Vec::new() });
    for tick in 0..4 {
        if tick > 0 {
            *time += 900_000_000 + chance.below(200_000_000);
            times.push(*time);
        }
        let columns = columns.iter_mut().zip(&mut *values);
        for ((column, value), (_, usual, more)) in columns.zip(COUNTERS) {
            if tick > 0 {
                let grown = usual + chance.below(usual / 30);
                *value += (grown * (100 + more * variant as u64) / 100) as i64;
            }
            column.values.push(Some(*value));
        }
    }
    Chunk {
        workload: WORKLOAD.into(),
        iteration,
        phase: phase.into(),
        source: "vmstat".into(),
        times,
        columns: columns.into(),
    }
}

fn faultline(directory: &Path, arguments: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_faultline"));
    command.current_dir(directory).args(["--store", "x.db"]).args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The Python that `make python` sets up.
fn python() -> PathBuf {
    let usual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/python/bin/python");
    let path = std::env::var_os("FAULTLINE_PYTHON").map_or_else(|| usual.into(), PathBuf::from);
    assert!(path.exists(), "there is no {}: `make python` installs it", path.display());
    path
}

#[test]
fn figures_follow_from_what_is_exported() {
    let directory = TempDir::new().unwrap();
    let mut store = store::open(&directory.path().join("x.db")).unwrap();
    let id = store.keep_experiment(&experiment(), Reading::USUAL).unwrap();
    let mut chance = Chance(1);
    for block in 0..BLOCKS {
        for variant in 0..2 {
            store.keep_boot(id, &boot(variant, block, &mut chance)).unwrap();
        }
    }
    let export = ["export", "--format", "parquet", "-o"];
    faultline(directory.path(), &["compare", "--format", "json", "-o", "tables.json"]);
    faultline(directory.path(), &[&export[..], &["samples.parquet"]].concat());
    faultline(directory.path(), &[&export[..], &["series.parquet", "--series"]].concat());
    let output =
        Command::new(python()).arg(PROGRAM).current_dir(directory.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let verdicts = serde_json::json!(["improvement", "regression", "same", "undecided"]);
    assert_eq!(found["verdicts"], verdicts);
    assert!(found["agree"].as_u64().unwrap() > 300, "{found}");
}
