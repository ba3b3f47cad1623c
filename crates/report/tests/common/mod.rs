//! Builders of boots for tests.

#![allow(dead_code, reason = "each test uses what it needs")]

pub mod carried;

use code::{Change, Function, Instrumentation, Size};
use compare::{
    Comparison, Difference, Headline, Holder, Judging, KeptBoot, Results, VariantBoots, compare,
};
use model::{
    Better, Boot, BootFacts, BootId, Bytes, Chunk, Column, Execution, Experiment, HostLoad,
    Machine, Manifest, Mean, Metric, Millis, Mode, Outcome, PatchStep, Point, PointChange,
    Provenance, Reading, Sample, Topology, Usage, Variant, VariantReading, WorkloadReading,
    WorkloadUse,
};
use serde_json::Value;

/// The headline of a phase in whose kernel the cost changed so. `function` holds the change.
pub fn headline(phase: &str, kernel: Difference, function: Option<Holder>) -> Headline {
    Headline {
        phase: phase.into(),
        kernel,
        function,
        divided: None,
        asked: Vec::new(),
        pages: None,
        offset: Vec::new(),
        threads: Vec::new(),
        common: None,
        unit: "instructions".into(),
        at_equal_entries: false,
        counted: None,
        left_out: Vec::new(),
        followed: true,
        by_path: true,
        listed: true,
        only_cause: None,
        of_one_variant: false,
        one_kernel: false,
    }
}

/// A function of both kernels whose code differs.
pub fn changed(name: &str) -> Function {
    Function {
        name: name.into(),
        change: Change::Changed,
        base: Size::default(),
        new: Size::default(),
        removed: 0,
        added: 0,
        inlined: None,
        instrumentation: Instrumentation::default(),
    }
}

/// Returns the workload of all tests. It has times, a rate, and a figure without direction.
pub fn manifest() -> Manifest {
    let metric = |name: &str, unit: &str, better, mean| Metric {
        name: name.into(),
        unit: unit.into(),
        better,
        mean,
        ..Metric::default()
    };
    let lower = Some(Better::Lower);
    Manifest {
        name: "autonuma".into(),
        metrics: vec![
            metric("System", "s", lower, Mean::Amean),
            metric("Elapsed", "s", lower, Mean::Amean),
            metric("Rate", "MB/s", Some(Better::Higher), Mean::Hmean),
            metric("CPU", "%", None, Mean::Amean),
        ],
        ..Manifest::default()
    }
}

/// Returns a complete boot under KVM without any measurement.
pub fn boot(boot_index: u32) -> Boot {
    Boot {
        boot_index,
        started: 1_700_000_000,
        outcome: Outcome::Complete,
        facts: BootFacts {
            release: "6.1.0-49-cloud-amd64".into(),
            version: "#1 SMP PREEMPT_DYNAMIC Debian 6.1.174-1 (2026-06-06)".into(),
            banner: "Linux version 6.1.0-49-cloud-amd64 (debian-kernel@lists.debian.org) \
                     (gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0, GNU ld (GNU Binutils for Debian) \
                     2.40) #1 SMP PREEMPT_DYNAMIC Debian 6.1.174-1 (2026-06-06)"
                .into(),
            cmdline: "console=ttyS0 quiet panic=-1".into(),
            preemption: "none (voluntary) full".into(),
            cpus: 4,
            nodes: 2,
            memory: 2048 << 20,
            page_size: 4096,
            provenance: Provenance {
                execution: Some(Execution::Kvm),
                emulator: "QEMU 10.0.2".into(),
                ..Provenance::default()
            },
            kernel_origin: "Debian 6.1.174-1, linux-image-6.1.0-49-cloud-amd64".into(),
            kernel_digest: "5bd1".into(),
            config: "CONFIG_HZ=250\nCONFIG_LRU_GEN=y\n# CONFIG_LRU_GEN_ENABLED is not set\nCONFIG_NR_CPUS=512\n".into(),
            ..BootFacts::default()
        },
        host: HostLoad { load_before: 0.8, load_after: 2.4, steal: 0.012, wall: 61.0 },
        ..Boot::default()
    }
}

/// Adds values of a metric, one for each iteration.
pub fn measure(boot: &mut Boot, metric: &str, label: &str, values: &[f64]) {
    for (iteration, &value) in values.iter().enumerate() {
        boot.samples.push(Sample {
            iteration: iteration as u32,
            label: label.into(),
            ..Sample::new("autonuma", metric, value)
        });
    }
}

/// Returns a boot with these values of metrics and labels.
pub fn measured(values: &[(&str, &str, &[f64])]) -> Boot {
    let mut boot = boot(0);
    for (metric, label, values) in values {
        measure(&mut boot, metric, label, values);
    }
    boot
}

/// Adds a value of a metric in a phase of the first iteration.
pub fn measure_phase(boot: &mut Boot, phase: &str, metric: &str, label: &str, value: f64) {
    measure(boot, metric, label, &[value]);
    if let Some(sample) = boot.samples.last_mut() {
        sample.phase = phase.into();
    }
}

/// Adds the times of one iteration.
pub fn spend(boot: &mut Boot, iteration: u32, user: f64, system: f64, elapsed: f64) {
    boot.usage.push(Usage { workload: "autonuma".into(), iteration, user, system, elapsed });
}

/// Adds growth of counters of `/proc/vmstat` during one iteration.
pub fn count(boot: &mut Boot, iteration: u32, grown: &[(&str, i64)]) {
    let column = |&(name, by): &(&str, i64)| Column::new(name, vec![Some(1000), Some(1000 + by)]);
    boot.chunks.push(Chunk {
        workload: "autonuma".into(),
        iteration,
        phase: String::new(),
        source: "vmstat".into(),
        times: vec![0, 1_000_000_000],
        columns: grown.iter().map(column).collect(),
    });
}

/// Returns two boots like those of a real run. `scale` is the factor by which they are slower and scan
/// less.
pub fn boots(scale: f64) -> Vec<Boot> {
    let boots = (0..2).map(|boot_index| {
        let mut boot = boot(boot_index);
        let drift = scale + 0.01 * f64::from(boot_index);
        measure(&mut boot, "System", "NUMA01", &[31.5 * drift, 30.1 * drift]);
        measure(&mut boot, "System", "NUMA01_THREADLOCAL", &[0.61 * drift, 0.6 * drift]);
        measure(&mut boot, "Elapsed", "NUMA01", &[62.44 * drift, 64.0 * drift]);
        measure(&mut boot, "Elapsed", "NUMA01_THREADLOCAL", &[38.1 * drift, 38.2 * drift]);
        measure(&mut boot, "CPU", "NUMA01", &[397.2, 398.0]);
        let scans = (438_792.0 / drift) as i64;
        let counters = [
            ("numa_pte_updates", scans),
            ("numa_huge_pte_updates", scans / 600),
            ("numa_hint_faults", scans / 500),
            ("numa_hint_faults_local", scans / 900),
            ("numa_pages_migrated", scans / 9),
        ];
        for iteration in 0..2 {
            spend(&mut boot, iteration, 150.0 * drift, 31.3 * drift, 102.5 * drift);
            count(&mut boot, iteration, &counters);
        }
        boot
    });
    boots.collect()
}

/// Returns boots in blocks, with the times of three operations and two iterations in each. All times drift
/// from block to block. Those of NUMA01 change by `scale`, those of NUMA02 scatter too much for a verdict,
/// and those of NUMA03 do not change.
pub fn blocks(boots: u32, scale: f64, seed: u64) -> Vec<Boot> {
    let mut state = seed;
    let mut luck = |spread: f64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        1.0 + spread * ((state >> 33) as f64 / f64::from(1u32 << 30) - 1.0)
    };
    let mut boot = |block: u32| {
        let mut boot = boot(block);
        boot.block = block;
        let drift = 1.0 + 0.01 * f64::from(block);
        for (label, base, spread) in
            [("NUMA01", 62.0 * scale, 0.004), ("NUMA02", 31.0, 0.06), ("NUMA03", 48.0, 0.003)]
        {
            let own = luck(spread);
            let values = [0, 1].map(|_| base * drift * own * luck(0.002));
            measure(&mut boot, "System", label, &values);
            let values = values.map(|value| 0.4 * value * luck(0.01));
            measure(&mut boot, "Elapsed", label, &values);
        }
        for iteration in 0..2 {
            spend(&mut boot, iteration, 90.0 * luck(0.01), 31.0 * scale * luck(0.01), 150.0);
            let faults = (1000.0 * scale * luck(0.01)) as i64;
            count(&mut boot, iteration, &[("numa_hint_faults", faults), ("pgmigrate_fail", 0)]);
        }
        boot
    };
    (0..boots).map(&mut boot).collect()
}

/// Returns a variant without any settings.
pub fn variant(name: &str) -> Variant {
    Variant { name: name.into(), ..Variant::default() }
}

/// Returns the variants of a series of patches with these subjects, and the reading that makes them steps.
pub fn series(patches: &[&str]) -> (Vec<Variant>, Reading) {
    let name = |step: usize| if step == 0 { "v6.12".to_owned() } else { format!("v6.12+{step}") };
    let variants = (0..=patches.len()).map(|step| variant(&name(step)));
    let steps = patches.iter().zip(1..).map(|(patch, number)| {
        let step = Some(PatchStep { after: name(number - 1), patch: (*patch).to_owned() });
        (name(number), VariantReading { step, ..VariantReading::default() })
    });
    (variants.collect(), Reading { variants: steps.collect(), ..Reading::default() })
}

/// Returns the reading of a matrix, with the value of each variant on each axis.
pub fn crossed<'a>(
    axes: &[&str],
    cells: impl Iterator<Item = (&'a Variant, Vec<String>)>,
) -> Reading {
    let own = cells.map(|(variant, values)| {
        let axes = axes.iter().map(|axis| (*axis).to_owned()).zip(values).collect();
        (variant.name.clone(), VariantReading { axes, step: None })
    });
    Reading { variants: own.collect(), ..Reading::default() }
}

/// Returns the reading in which verdicts rest on these rows.
pub fn on_rows(primary: &[&str]) -> Reading {
    let primary = primary.iter().map(|row| (*row).to_owned()).collect();
    let own = WorkloadReading { primary, left_out: None };
    Reading { workloads: [(manifest().name, own)].into(), ..Reading::default() }
}

/// Returns variants of these names at points with these values.
pub fn sweep(names: &[&str], values: &[&str]) -> Vec<Variant> {
    let at = |value: &&str| {
        let point = |name: &&str| Point {
            variant: (*name).to_owned(),
            key: "memory".into(),
            value: (*value).to_owned(),
            change: PointChange::Topology(Topology::default()),
        };
        let at_point = |name: &&str| {
            let point = point(name);
            Variant { point: Some(point.clone()), ..variant(&format!("{name} {}", point.name())) }
        };
        names.iter().map(at_point).collect::<Vec<_>>()
    };
    values.iter().flat_map(at).collect()
}

/// Returns the part of a text from `begin` to the next empty line.
pub fn section<'a>(text: &'a str, begin: &str) -> &'a str {
    let section = &text[text.find(begin).unwrap_or_else(|| panic!("{text}"))..];
    section.split("\n\n").next().unwrap()
}

/// Returns the section on the patches of a series.
pub fn by_patch(text: &str) -> &str {
    section(text, "By patch")
}

/// Returns the words of a text, with single spaces between them.
pub fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Checks that a text is printable ASCII without spaces at the ends of lines.
pub fn assert_plain(text: &str) {
    for line in text.lines() {
        assert!(line.chars().all(|letter| matches!(letter, ' '..='~')), "{line}");
        assert!(!line.ends_with(' '), "{line}");
    }
}

/// Returns the short form of a comparison.
pub fn brief(comparison: &Comparison) -> String {
    report::brief(comparison, "faultline compare 1 --full")
}

/// Returns a comparison as JSON.
pub fn document(comparison: &Comparison) -> Value {
    serde_json::from_str(&report::json(comparison, &[]).unwrap()).unwrap()
}

/// Returns a column for each variant. The boots are numbered over all columns: `b1`, `b2` and so on.
pub fn columns<'a>(variants: &'a [Variant], boots: &[&'a [Boot]]) -> Vec<VariantBoots<'a>> {
    let mut numbers = (1..).map(BootId);
    let mut kept = |boot| KeptBoot { id: numbers.next().unwrap(), superseded: false, boot };
    let columns = variants.iter().zip(boots);
    columns
        .map(|(variant, boots)| VariantBoots {
            variant,
            boots: boots.iter().map(&mut kept).collect(),
        })
        .collect()
}

/// Returns an experiment with the workload of all tests on four CPUs and two nodes.
pub fn experiment(mode: Mode, boots: u32) -> Experiment {
    let used = WorkloadUse::new(manifest(), 1, Millis(1000));
    Experiment {
        name: "test".into(),
        mode,
        machine: Machine::new(Topology::even(4, Bytes::mib(2048), 2).unwrap()),
        workloads: vec![used],
        boots,
        ..Experiment::default()
    }
}

/// Compares columns in measured mode. The first column is the baseline.
pub fn compare_columns(columns: Vec<VariantBoots<'_>>) -> Comparison {
    compare_after(0, columns)
}

/// Compares columns in measured mode. The first `warmup` iterations of each boot are warm-up.
pub fn compare_after(warmup: u32, columns: Vec<VariantBoots<'_>>) -> Comparison {
    let mut experiment = experiment(Mode::Measured, 2);
    experiment.workloads[0].warmup = warmup;
    judged(&experiment, columns)
}

/// Compares columns of an experiment. The first column is the baseline.
pub fn judged(experiment: &Experiment, variants: Vec<VariantBoots<'_>>) -> Comparison {
    compare(&Results { experiment, reading: Reading::USUAL, variants }, 0, &Judging::default())
}

/// Compares variants by the workload of all tests. The first variant is the baseline.
pub fn compared(columns: &[(&str, &[Boot])]) -> Comparison {
    let variants: Vec<_> = columns.iter().map(|(name, _)| variant(name)).collect();
    let boots: Vec<_> = columns.iter().map(|(_, boots)| *boots).collect();
    compare_columns(self::columns(&variants, &boots))
}
