//! Boots and manifests for tests.

use std::collections::BTreeMap;

use model::{
    Better, Boot, BootId, Bytes, Cell, Chunk, Column, Cost, CostTable, ENTRIES, Experiment,
    INSTRUCTIONS, LOADS, Machine, Manifest, Mean, Metric, Millis, Mode, Outcome, Place, Privilege,
    Profile, Reading, STORES, Sample, Target, Topology, Variant, WorkloadReading, WorkloadUse,
};

use crate::figures::BootFigures;
use crate::verdicts::luck::Seeds;
use crate::{KeptBoot, VariantBoots, Workload};

/// A workload with a time, a rate and a figure without direction.
pub fn manifest() -> Manifest {
    let metric = |name: &str, better, mean| Metric {
        name: name.into(),
        unit: "s".into(),
        better,
        mean,
        ..Metric::default()
    };
    Manifest {
        name: "autonuma".into(),
        metrics: vec![
            metric("Elapsed", Some(Better::Lower), Mean::Amean),
            metric("Rate", Some(Better::Higher), Mean::Hmean),
            metric("CPU", None, Mean::Amean),
        ],
        ..Manifest::default()
    }
}

/// Four CPUs on two nodes.
pub fn topology() -> Topology {
    Topology::even(4, Bytes::mib(512), 2).unwrap()
}

/// A workload, run once in each boot.
pub fn used(manifest: Manifest) -> WorkloadUse {
    WorkloadUse::new(manifest, 1, Millis(1000))
}

/// The workload of these columns, read as its manifest says.
pub fn usual<'a>(used: &'a WorkloadUse, columns: &[VariantBoots<'_>]) -> Workload<'a> {
    Workload::of(used, Reading::USUAL.workload(used), columns)
}

/// An experiment with these workloads.
pub fn experiment(mode: Mode, boots: u32, workloads: Vec<Manifest>) -> Experiment {
    Experiment {
        mode,
        machine: Machine::new(topology()),
        workloads: workloads.into_iter().map(used).collect(),
        boots,
        ..Experiment::default()
    }
}

/// The reading in which verdicts rest on these rows.
pub fn on_rows(primary: &[&str]) -> Reading {
    let primary = primary.iter().map(|row| (*row).to_owned()).collect();
    let own = WorkloadReading { primary, left_out: None };
    Reading { workloads: [(manifest().name, own)].into(), ..Reading::default() }
}

/// The profile of a phase of the workload with these numbers of accesses. Half of them are loads.
pub fn accessed(iteration: u32, phase: &str, counts: &[(u32, Privilege, Target, u64)]) -> Profile {
    let mut memory = BTreeMap::<Place, Vec<Cell>>::new();
    for &(cpu, privilege, target, number) in counts {
        let cell = |cost, value| Cell::new(cost, cpu as u16, value);
        let values = [cell(0, number / 2), cell(1, number - number / 2)];
        memory.entry(Place::Memory(privilege, target)).or_default().extend(values);
    }
    let mut costs = CostTable::new([LOADS, STORES].map(Cost::new));
    memory.into_iter().for_each(|(place, values)| {
        costs.push(place, values);
    });
    Profile {
        workload: "autonuma".into(),
        iteration,
        phase: phase.into(),
        costs,
        ..Profile::default()
    }
}

/// A function: symbol, module, entries, instructions.
pub type Executed<'a> = (&'a str, &'a str, u64, u64);

/// The profile of a phase of the workload whose kernel instructions are those of its functions.
pub fn executing(iteration: u32, phase: &str, executed: &[Executed<'_>]) -> Profile {
    let mut costs = CostTable::new([INSTRUCTIONS, ENTRIES].map(Cost::new));
    let mut kernel = 0;
    for &(name, module, entries, instructions) in executed {
        let function = Place::Function { name: name.into(), module: module.into() };
        costs.push(function, [Cell::new(0, 0, instructions), Cell::new(1, 0, entries)]);
        kernel += instructions;
    }
    costs.push(Place::All(Privilege::Kernel), [Cell::new(0, 0, kernel)]);
    Profile {
        workload: "autonuma".into(),
        iteration,
        phase: phase.into(),
        costs,
        ..Profile::default()
    }
}

/// Figures of boots, one per block from `first` on.
pub fn blocks_from(first: u32, values: &[f64]) -> BootFigures {
    BootFigures::new((first..).zip(values.iter().copied().map(Some)))
}

/// Figures of seeds from 0 on.
pub fn seeds(values: &[f64]) -> Seeds {
    Seeds::new((0..).zip(values.iter().copied().map(Some)), [])
}

/// Checks figures against those of a reference, to 9 digits.
pub fn near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found / expected - 1.0).abs() < 1e-9, "{found}, not {expected}");
    }
}

/// A variant that changes nothing.
pub fn variant(name: &str) -> Variant {
    Variant { name: name.into(), ..Variant::default() }
}

/// A column for each variant. Boots are `b0`, `b1` and so on in one row.
pub fn columns<'a>(variants: &'a [Variant], boots: &[&'a [Boot]]) -> Vec<VariantBoots<'a>> {
    let mut numbers = (0..).map(BootId);
    let mut kept = |boot| KeptBoot { id: numbers.next().unwrap(), superseded: false, boot };
    let columns = variants.iter().zip(boots);
    columns
        .map(|(variant, boots)| VariantBoots {
            variant,
            boots: boots.iter().map(&mut kept).collect(),
        })
        .collect()
}

/// Boots in one line: `b0 b1`.
pub fn named(boots: &[BootId]) -> String {
    boots.iter().map(BootId::to_string).collect::<Vec<_>>().join(" ")
}

/// A complete boot that measured nothing.
pub fn boot(boot_index: u32) -> Boot {
    Boot { boot_index, outcome: Outcome::Complete, ..Boot::default() }
}

pub fn failed(boot_index: u32, reason: &str) -> Boot {
    Boot { outcome: Outcome::Failed(reason.into()), ..boot(boot_index) }
}

/// A sample of the workload, outside any phase.
pub fn sample(metric: &str, label: &str, iteration: u32, value: f64) -> Sample {
    Sample { iteration, label: label.into(), ..Sample::new("autonuma", metric, value) }
}

/// A phase with the growth of each counter of `/proc/vmstat`.
pub fn chunk(iteration: u32, phase: &str, grown: &[(&str, i64)]) -> Chunk {
    let column = |&(name, by): &(&str, i64)| Column::new(name, vec![Some(1000), Some(1000 + by)]);
    Chunk {
        workload: "autonuma".into(),
        iteration,
        phase: phase.into(),
        source: "vmstat".into(),
        times: vec![0, 1_000_000_000],
        columns: grown.iter().map(column).collect(),
    }
}

/// Deviations that are nearly normal: the sum of twelve uniform ones (SplitMix64) less its mean.
pub fn deviations() -> impl Iterator<Item = f64> {
    let mut state = 1u64;
    let mut uniform = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    };
    std::iter::from_fn(move || Some((0..12).map(|_| uniform()).sum::<f64>() - 6.0))
}
