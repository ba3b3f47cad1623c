//! Simulates verdicts of exact mode at equal entries. Measures how often luck alone gives a verdict in phases whose
//! functions are entered in some seeds only, or whose cost per entry is luck, and how often a real change does.

use compare::{Judging, Results, VariantBoots, Verdict, compare};
use model::{
    Boot, BootId, Cell, CostTable, ENTRIES, Experiment, INSTRUCTIONS, Kept, Manifest, Millis, Mode,
    Outcome, Place, Privilege, Profile, Reading, Sample, Variant, WorkloadUse,
};
use rayon::prelude::*;

use crate::world::Chance;

const SEEDS: [u32; 4] = [4, 5, 8, 16];
const TRIALS: u64 = 2_000;
const TABLES: u64 = 1_000;
const REAL: u64 = 200;
/// Phases of a table.
const PHASES: usize = 12;
const BATCH: u64 = 50;
/// The share of boots that fail at random, where some do.
const FAILING: f64 = 0.2;
/// The approximate number of instructions of a phase.
const PHASE: f64 = 1e6;
const WORKLOAD: &str = "simulated";
/// The stated rate of tables with a false verdict, in percent.
const STATED: f64 = 1.0;
/// The largest number of standard errors by which a measured rate may exceed the stated one.
const ERRORS: f64 = 4.0;

/// The instructions of an entry, as a multiple of their mean.
#[derive(Clone, Copy)]
enum Cost {
    /// Normal, with this coefficient of variation.
    About(f64),
    /// Lognormal, with this standard deviation of the logarithm.
    Wide(f64),
    /// Uniform from 50 to 499, like the pages of a range.
    Pages,
    /// One of two equally likely costs at this distance.
    Modes(f64),
}

impl Cost {
    fn draw(self, chance: &mut Chance) -> f64 {
        match self {
            Self::About(spread) => 1.0 + spread * chance.normal(),
            Self::Wide(spread) => (spread * chance.normal() - spread * spread / 2.0).exp(),
            Self::Pages => (50.0 + (450.0 * chance.uniform()).floor()) / 274.5,
            Self::Modes(apart) => 1.0 + if chance.happens(0.5) { apart } else { -apart } / 2.0,
        }
    }
}

/// A number of functions with the same distribution.
#[derive(Clone, Copy)]
struct Alike {
    count: usize,
    /// The share of each in the phase's instructions, in percent, in a seed that enters it.
    share: f64,
    /// The mean number of entries.
    entries: f64,
    /// The standard deviation of the logarithm of that number.
    luck: f64,
    /// The share of seeds that enter it.
    present: f64,
    cost: Cost,
}

const fn alike(count: usize, share: f64, entries: f64, cost: Cost) -> Alike {
    Alike { count, share, entries, luck: 0.0, present: 1.0, cost }
}

/// The functions of all phases: functions whose cost is nearly the same in all seeds, and one whose number of entries
/// is luck, so that the total hides small changes.
const COMMON: [Alike; 4] = [
    alike(10, 2.0, 1000.0, Cost::About(0.0)),
    alike(10, 1.0, 50.0, Cost::About(0.0005)),
    alike(5, 1.0, 1.0, Cost::About(0.0)),
    Alike { luck: 0.3, ..alike(1, 60.0, 5000.0, Cost::About(0.0)) },
];

/// A kind of phase.
struct Kind {
    name: &'static str,
    functions: &'static [Alike],
}

const fn rare(count: usize, share: f64, present: f64, cost: Cost) -> Alike {
    Alike { present, ..alike(count, share, 1.0, cost) }
}

const fn lucky(count: usize, entries: f64, cost: Cost) -> Alike {
    Alike { luck: 1.0, ..alike(count, 1.0, entries, cost) }
}

const KINDS: [Kind; 16] = [
    Kind { name: "nothing else", functions: &[] },
    Kind { name: "1 rare, 10 %", functions: &[rare(1, 1.0, 0.1, Cost::Pages)] },
    Kind { name: "1 rare, 20 %", functions: &[rare(1, 1.0, 0.2, Cost::Pages)] },
    Kind { name: "1 rare, 40 %", functions: &[rare(1, 1.0, 0.4, Cost::Pages)] },
    Kind { name: "1 rare, 60 %", functions: &[rare(1, 1.0, 0.6, Cost::Pages)] },
    Kind { name: "1 rare, 90 %", functions: &[rare(1, 1.0, 0.9, Cost::Pages)] },
    Kind { name: "10 rare, 40 %", functions: &[rare(10, 0.5, 0.4, Cost::Pages)] },
    Kind { name: "10 rare, 80 %", functions: &[rare(10, 0.5, 0.8, Cost::Pages)] },
    Kind { name: "5 nearly always", functions: &[rare(5, 1.0, 0.95, Cost::About(0.002))] },
    Kind { name: "5 always", functions: &[rare(5, 1.0, 1.0, Cost::Pages)] },
    Kind { name: "10 lucky entries", functions: &[lucky(10, 100.0, Cost::About(0.0))] },
    Kind { name: "10 lucky and wide", functions: &[lucky(10, 100.0, Cost::Wide(0.2))] },
    Kind { name: "3 of close costs", functions: &[alike(3, 2.0, 10.0, Cost::Modes(0.015))] },
    Kind { name: "20 wide, 3 %", functions: &[alike(20, 2.0, 100.0, Cost::Wide(0.03))] },
    Kind { name: "20 wide, 10 %", functions: &[alike(20, 2.0, 100.0, Cost::Wide(0.1))] },
    Kind { name: "40 wide, 50 %", functions: &[alike(40, 1.0, 100.0, Cost::Wide(0.5))] },
];

/// Kinds of phases whose luck is the same in about half of the seeds. With `n` seeds it separates the sides in `2 /
/// 4^n` of cases, and then looks like a real change. These rates are printed and have no target.
const HALVES: [Kind; 3] = [
    Kind { name: "1 rare, one cost", functions: &[rare(1, 1.0, 0.4, Cost::About(0.0))] },
    Kind { name: "1 rare, two costs", functions: &[rare(1, 1.0, 0.4, Cost::Modes(0.2))] },
    Kind { name: "1 of two costs", functions: &[alike(1, 2.0, 10.0, Cost::Modes(0.2))] },
];

/// A real change of the second side.
#[derive(Clone, Copy, PartialEq)]
enum Change {
    None,
    /// Each function costs more, by this share.
    All(f64),
    /// The first function has ten instructions more in each entry.
    Ten,
    /// The functions of the kind cost this number of times as much.
    Last(f64),
}

/// A simulated comparison of two variants.
#[derive(Clone, Copy)]
struct World<'a> {
    kind: &'a Kind,
    seeds: u32,
    phases: usize,
    change: Change,
    /// The share of boots that fail, whatever they count.
    failing: f64,
}

/// Prints all rates, and returns whether false verdicts are as rare as stated.
pub fn equal() -> bool {
    println!(
        "\nVerdicts of exact mode by luck alone, in percent of tables of one phase, 1 % is stated;"
    );
    println!(
        "the same of tables of {PHASES} phases with 5 seeds; the same of one phase with 5 seeds, if {:.0} % of boots",
        100.0 * FAILING
    );
    println!("fail at random (failing); then, with 5 seeds, verdicts on real changes:");
    println!(
        "every function 1 % more, one ten instructions an entry more, the named ones twice the cost:"
    );
    let heads = SEEDS.map(|seeds| format!("{:>9}", format!("{seeds} seeds")));
    let heads = heads.concat();
    println!(
        "{:20}{heads}{:>9}{:>9}{:>7}{:>7}{:>7}",
        "", "tables", "failing", "+1 %", "+10", "twice"
    );
    let mut is_met = true;
    for kind in &KINDS {
        let [alone, tables] = line(kind);
        is_met &= alone <= most(TRIALS) && tables <= most(TABLES);
    }
    println!("The same in about half of the seeds, without a target:");
    for kind in &HALVES {
        line(kind);
    }
    println!("false verdicts as rare as stated: {is_met}");
    is_met
}

/// The largest rate that is allowed with this number of trials, in percent.
fn most(trials: u64) -> f64 {
    STATED + ERRORS * (STATED * (100.0 - STATED) / trials as f64).sqrt()
}

/// Prints the rates of a kind of phase. Returns the largest rate of tables with one phase, and that of
/// other tables.
fn line(kind: &Kind) -> [f64; 2] {
    let world = World { kind, seeds: 5, phases: 1, change: Change::None, failing: 0.0 };
    let alone = SEEDS.map(|seeds| rate(World { seeds, ..world }, TRIALS));
    let tables = rate(World { phases: PHASES, ..world }, TABLES);
    let failing = rate(World { failing: FAILING, ..world }, TRIALS);
    let real = [Change::All(1.01), Change::Ten, Change::Last(2.0)]
        .map(|change| rate(World { change, ..world }, REAL));
    let worst = alone.into_iter().fold(failing, f64::max);
    let alone = alone.map(|it| format!("{it:>9.2}"));
    let real = real.map(|it| format!("{it:>7.0}"));
    let (alone, real) = (alone.concat(), real.concat());
    println!("{:<20}{alone}{tables:>9.2}{failing:>9.2}{real}", kind.name);
    [worst, tables]
}

/// The share of tables with a verdict, in percent.
fn rate(world: World<'_>, trials: u64) -> f64 {
    let batches = (0..trials / BATCH).into_par_iter().map(|batch| {
        let mut chance = Chance::new(batch);
        (0..BATCH).filter(|_| is_found(world, &mut chance)).count()
    });
    100.0 * batches.sum::<usize>() as f64 / trials as f64
}

fn is_found(world: World<'_>, chance: &mut Chance) -> bool {
    let World { kind, seeds, phases, change, failing } = world;
    let variants = ["base", "new"].map(|name| Variant { name: name.into(), ..Variant::default() });
    let mut kept = Vec::new();
    for (variant, change) in variants.iter().zip([Change::None, change]) {
        for boot_index in 0..seeds {
            let mut boot = boot(kind, phases, change, chance);
            (boot.variant, boot.boot_index) = (variant.name.clone(), boot_index);
            if failing > 0.0 && chance.happens(failing) {
                boot.outcome = Outcome::TimedOut(String::new());
            }
            kept.push(Kept { id: BootId(kept.len() as i64), superseded: false, boot });
        }
    }
    let manifest = Manifest { name: WORKLOAD.into(), ..Manifest::default() };
    let experiment = Experiment {
        mode: Mode::Exact,
        workloads: vec![WorkloadUse::new(manifest, 1, Millis(1000))],
        boots: seeds,
        variants: variants.to_vec(),
        ..Experiment::default()
    };
    let variants = experiment.variants.iter().map(|it| VariantBoots::of(it, &kept)).collect();
    let results = Results { experiment: &experiment, reading: Reading::USUAL, variants };
    let comparison = compare(&results, 0, &Judging { margin: 0.0, ..Judging::default() });
    let changes = [Verdict::Regression, Verdict::Improvement];
    comparison.verdicts(1).any(|it| changes.contains(&it.verdict))
}

fn boot(kind: &Kind, phases: usize, change: Change, chance: &mut Chance) -> Boot {
    let mut boot = Boot { outcome: Outcome::Complete, ..Boot::default() };
    for phase in 0..phases {
        let phase = format!("phase{phase}");
        let (costs, kernel) = costs(kind, change, chance);
        let sample = Sample::new(WORKLOAD, INSTRUCTIONS, kernel as f64);
        boot.samples.push(Sample { phase: phase.clone(), label: "kernel".into(), ..sample });
        boot.profiles.push(Profile {
            workload: WORKLOAD.into(),
            phase,
            costs,
            ..Profile::default()
        });
    }
    boot
}

/// The costs of a phase, and its instructions.
fn costs(kind: &Kind, change: Change, chance: &mut Chance) -> (CostTable, u64) {
    let mut costs = CostTable::new([INSTRUCTIONS, ENTRIES].map(model::Cost::new));
    let mut kernel = 0;
    for (group, alike) in COMMON.iter().chain(kind.functions).enumerate() {
        for number in 0..alike.count {
            if !chance.happens(alike.present) {
                continue;
            }
            let factor = (alike.luck * chance.normal() - alike.luck * alike.luck / 2.0).exp();
            let entries = (alike.entries * factor).round().max(1.0);
            let mean = PHASE * alike.share / 100.0 / alike.entries;
            let cost = mean * alike.cost.draw(chance);
            let cost = match change {
                Change::All(ratio) => ratio * cost,
                Change::Ten if group == 0 && number == 0 => cost + 10.0,
                Change::Last(ratio) if group >= COMMON.len() => ratio * cost,
                _ => cost,
            };
            let instructions = (entries * cost).round() as u64;
            let name = format!("{group}_{number}").into();
            let function = Place::Function { name, module: "".into() };
            costs.push(function, [Cell::new(0, 0, instructions), Cell::new(1, 0, entries as u64)]);
            kernel += instructions;
        }
    }
    costs.push(Place::All(Privilege::Kernel), [Cell::new(0, 0, kernel)]);
    (costs, kernel)
}
