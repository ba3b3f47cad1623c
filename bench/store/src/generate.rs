//! Makes up experiments and boots: a large experiment like one that runs for half an hour, and small ones.

use model::{
    Better, Boot, Chunk, Column, Experiment, Manifest, Metric, Millis, Mode, NoteKind, Outcome,
    Sample, Variant, WorkloadUse,
};

/// The name of the large experiment.
pub const NAME: &str = "large";
/// Number of boots of each variant of the large experiment.
pub const LARGE_BOOTS: u32 = 10;
/// Samples, counters and readings of each of its boots.
const SAMPLES: u32 = 200;
const COUNTERS: i64 = 180;
const READINGS: u64 = 300;

/// The large experiment.
pub fn large() -> Experiment {
    experiment(NAME.into(), ["6.1".into(), "7.3".into()])
}

/// A boot of the large experiment.
pub fn large_boot(variant: &str, boot_index: u32) -> Boot {
    let mut boot = boot(variant, boot_index, SAMPLES);
    let value = |counter: i64, time: i64| match counter % 10 {
        0..5 => counter * 1000,
        5..8 => time * 1000 + (counter * time * i64::from(boot_index + 1)) % 61,
        _ => 100_000 + (counter * time) % 67,
    };
    let columns = (0..COUNTERS).map(|counter| {
        let values = (0..READINGS.cast_signed()).map(|time| Some(value(counter, time)));
        Column::new(format!("nr_counter_{counter}"), values.collect())
    });
    boot.chunks.push(Chunk {
        workload: "faults".into(),
        iteration: 0,
        phase: "run".into(),
        source: "vmstat".into(),
        times: (0..READINGS).map(|reading| reading * 1_000_000_000).collect(),
        columns: columns.collect(),
    });
    boot.console = (0..600).map(|line| format!("[ {line}.{boot_index:06}] a line\n")).collect();
    boot.facts.config = (0..4000).map(|option| format!("CONFIG_OPTION_{option}=y\n")).collect();
    boot
}

/// One of the small experiments. Half of them have the kernels of the large one; one in ten is exact.
pub fn small(number: u32) -> Experiment {
    let kernels = match number % 2 {
        0 => ["6.1".into(), "7.3".into()],
        _ => ["6.1".into(), format!("7.3+{number}")],
    };
    let mode = if number % 10 == 1 { Mode::Exact } else { Mode::Measured };
    Experiment { mode, ..experiment(format!("small-{number}"), kernels) }
}

/// Boots of a small experiment.
pub fn small_boots(number: u32, boots: u32) -> impl Iterator<Item = Boot> {
    (0..boots).map(move |place| {
        let variant = if place % 2 == 0 { "old" } else { "new" };
        let mut boot = boot(variant, place / 2, 4);
        boot.notes.push(NoteKind::Remark.note(format!("boot {place} of experiment {number}")));
        boot
    })
}

fn experiment(name: String, kernels: [String; 2]) -> Experiment {
    let [old, new] = kernels;
    let variant = |name: &str, kernel: String| Variant {
        name: name.into(),
        kernel: kernel.into(),
        ..Variant::default()
    };
    let metric = Metric {
        name: "Elapsed".into(),
        unit: "s".into(),
        better: Some(Better::Lower),
        ..Metric::default()
    };
    let manifest = Manifest {
        name: "faults".into(),
        description: "touches memory page by page, again and again".repeat(20),
        metrics: vec![metric],
        ..Manifest::default()
    };
    Experiment {
        name,
        variants: vec![variant("old", old), variant("new", new)],
        workloads: vec![WorkloadUse::new(manifest, 1, Millis(60_000))],
        boots: LARGE_BOOTS,
        ..Experiment::default()
    }
}

fn boot(variant: &str, boot_index: u32, samples: u32) -> Boot {
    let value = |sample: u32| 10.0 + f64::from((sample * 7919 + boot_index * 104_729) % 1000) / 1e3;
    let samples = (0..samples).map(|sample| Sample::new("faults", "Elapsed", value(sample)));
    let mut boot = Boot {
        variant: variant.into(),
        boot_index,
        block: boot_index,
        started: 1_790_000_000 + u64::from(boot_index),
        outcome: Outcome::Complete,
        samples: samples.collect(),
        ..Boot::default()
    };
    boot.facts.banner = format!("Linux version of {variant} (gcc-14)").repeat(4);
    boot
}
