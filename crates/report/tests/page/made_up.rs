//! A synthetic experiment that contains every kind of content.

use compare::{Comparison, Explained, Judging, KeptBoot, Results, VariantBoots, compare};
use model::{
    Boot, BootId, Chunk, Column, Experiment, Mode, Outcome, Problem, ProblemKind, Reading, Setting,
    Variant,
};
use plots::plots;
use report::{Console, Page, Recipe};

use crate::common::{boot, experiment, measure, spend, variant};

const SECOND: u64 = 1_000_000_000;
const ITERATIONS: u32 = 5;
const PHASES: [(&str, u64, u64); 3] = [("fill", 0, 12), ("steady", 12, 45), ("drain", 45, 60)];

/// A variant with its boots.
pub struct Side {
    pub variant: Variant,
    pub boots: Vec<Boot>,
}

/// Pseudo-random numbers from 0 to 1, the same in each run (SplitMix64).
pub struct Chance(pub u64);

impl Chance {
    pub fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a roughly normal number with mean 0 and standard deviation 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }
}

/// Returns two variants. The second is slower in Elapsed, faster in System and has two modes in Rate.
pub fn sides(boots: u32) -> Vec<Side> {
    let mut chance = Chance(1);
    let names = ["6.12-vanilla", "6.12-slowscan-v2"];
    let sides = names.iter().enumerate().map(|(place, name)| {
        let boots = (0..boots).map(|number| measured(place, number, &mut chance));
        Side { variant: variant(name), boots: boots.collect() }
    });
    let mut sides: Vec<Side> = sides.collect();
    sides[1].variant.settings =
        vec![Setting::Sysctl { name: "kernel.numa_balancing".into(), value: "0".into() }];
    let place = sides[1].boots.len().min(3);
    sides[1].boots.insert(place, panicked());
    sides
}

fn measured(place: usize, number: u32, chance: &mut Chance) -> Boot {
    let slower = place as f64;
    let of_boot = 1.0 + 0.006 * chance.normal();
    let mut boot = boot(number);
    boot.block = number;
    boot.host.load_after = 1.0 + 0.2 * f64::from(number);
    let mut values = |of: &mut dyn FnMut(&mut Chance) -> f64| -> Vec<f64> {
        (0..ITERATIONS).map(|_| of(chance)).collect()
    };
    let mut elapsed =
        values(&mut |it| 62.0 * (1.0 + 0.031 * slower) * of_boot * (1.0 + 0.003 * it.normal()));
    if (place, number) == (1, 2) {
        elapsed[3] *= 1.14;
    }
    let system =
        values(&mut |it| 31.0 * (1.0 - 0.05 * slower) * of_boot * (1.0 + 0.02 * it.normal()));
    let rate = values(&mut |it| {
        let mode = if slower > 0.0 && it.next() < 0.4 { 0.82 } else { 1.0 };
        5120.0 * mode * (1.0 + 0.012 * it.normal())
    });
    let cpu = values(&mut |it| 390.0 + 3.0 * it.normal());
    for (metric, values) in [("Elapsed", elapsed), ("System", system), ("Rate", rate), ("CPU", cpu)]
    {
        measure(&mut boot, metric, "NUMA01", &values);
    }
    for iteration in 0..ITERATIONS {
        spend(&mut boot, iteration, 150.0, 31.0, 62.0);
        let length = 1.0 + 0.03 * slower + 0.02 * chance.normal();
        boot.chunks.extend(recorded(iteration, place, length, chance));
    }
    boot
}

/// Returns the series of an iteration of `length` minutes, with two readings a second.
fn recorded(iteration: u32, place: usize, length: f64, chance: &mut Chance) -> Vec<Chunk> {
    let begin = SECOND * (30 + 70 * u64::from(iteration));
    let slower = place as f64;
    let mut chunks = Vec::new();
    let [mut faults, mut local, mut migrated, mut scanned] = [0.0; 4];
    for (phase, from, to) in PHASES {
        let [from, to] = [from, to].map(|it| (it as f64 * length * 2.0) as u64);
        let mut rows = Vec::new();
        for step in from..=to {
            let part = step as f64 / (120.0 * length);
            let settled = 1.0 - (-(6.0 - 2.5 * slower) * part).exp();
            if step > from {
                let busy = 900.0 * (1.0 - 0.7 * settled) * (0.7 + 0.6 * chance.next());
                faults += busy;
                local += busy * (0.5 + 0.45 * settled + 0.06 * (chance.next() - 0.5));
                migrated += busy * (1.0 - settled) * (0.4 + 0.25 * slower);
                scanned += 20_000.0 * (1.0 - 0.45 * slower) * chance.next();
            }
            let free = 1_400_000.0 * (1.0 - 0.75 * (part * 9.0).min(1.0) * (1.0 - part.powi(12)));
            rows.push([
                faults,
                local,
                migrated,
                scanned,
                free * (1.0 + 0.01 * chance.next()),
                1e6 * (0.5 + 0.5 * settled),
                1e6 * (0.5 - 0.5 * settled),
                1e6 * (2.0 + settled + 0.2 * chance.next()),
            ]);
        }
        let times: Vec<u64> = (from..=to).map(|step| begin + step * SECOND / 2).collect();
        let chunk = |source: &str, named: &[(&str, usize)]| Chunk {
            workload: "autonuma".into(),
            iteration,
            phase: phase.into(),
            source: source.into(),
            times: times.clone(),
            columns: named
                .iter()
                .map(|&(name, column)| {
                    Column::new(name, rows.iter().map(|row| Some(row[column] as i64)).collect())
                })
                .collect(),
        };
        let vmstat = [
            ("numa_hint_faults", 0),
            ("numa_hint_faults_local", 1),
            ("numa_pages_migrated", 2),
            ("numa_pte_updates", 3),
        ];
        let own = [("memory-node0", 5), ("memory-node1", 6), ("GB moved a second", 7)];
        chunks.extend([
            chunk("vmstat", &vmstat),
            chunk("meminfo", &[("MemFree", 4)]),
            chunk("workload", &own),
        ]);
    }
    chunks
}

fn panicked() -> Boot {
    let mut boot = boot(3);
    boot.outcome = Outcome::Panicked("Kernel panic - not syncing: Fatal exception".into());
    let text = "BUG: unable to handle page fault for address: ffffb1c0deadbeef".into();
    boot.problems.push(Problem { kind: ProblemKind::Bug, text });
    boot
}

/// Returns the experiment of `sides`.
pub fn of(sides: &[Side], mode: Mode) -> Experiment {
    let boots = sides.iter().map(|side| side.boots.len()).min().unwrap_or(0) as u32;
    Experiment {
        variants: sides.iter().map(|side| side.variant.clone()).collect(),
        name: "numa-slowscan".into(),
        ..experiment(mode, boots)
    }
}

/// Returns the page of a comparison of these variants.
pub fn page(sides: &[Side], experiment: &Experiment) -> String {
    judged(sides, experiment, |_| ())
}

/// Returns their page under this reading.
pub fn read(sides: &[Side], experiment: &Experiment, reading: &Reading) -> String {
    drawn(sides, (experiment, reading), |_| (), &[])
}

/// Returns their page after `judge` has modified the comparison.
pub fn judged(sides: &[Side], experiment: &Experiment, judge: impl Fn(&mut Comparison)) -> String {
    drawn(sides, (experiment, Reading::USUAL), judge, &[])
}

/// Returns their page with the functions in which the changes are.
pub fn explained(sides: &[Side], experiment: &Experiment, explained: &[Explained]) -> String {
    drawn(sides, (experiment, Reading::USUAL), |_| (), explained)
}

fn drawn(
    sides: &[Side],
    (experiment, reading): (&Experiment, &Reading),
    judge: impl Fn(&mut Comparison),
    explained: &[Explained],
) -> String {
    let mut numbers = (1..).map(BootId);
    let mut kept = |boot| KeptBoot { id: numbers.next().unwrap(), superseded: false, boot };
    let variants: Vec<VariantBoots<'_>> = sides
        .iter()
        .map(|side| VariantBoots {
            variant: &side.variant,
            boots: side.boots.iter().map(&mut kept).collect(),
        })
        .collect();
    let results = Results { experiment, reading, variants };
    let mut comparison = compare(&results, 0, &Judging::default());
    judge(&mut comparison);
    let failed = comparison.variants.iter().flat_map(|variant| &variant.failed);
    let consoles: Vec<Console> =
        failed.map(|failed| Console { boot: failed.boot, text: CONSOLE.repeat(20) }).collect();
    report::page(&Page {
        comparison: &comparison,
        results: &results,
        plots: &plots(&results, 0, &Judging::default()),
        explained,
        consoles: &consoles,
        recipe: &Recipe {
            version: "0.1.0",
            files: &[FILE.map(str::to_owned).into()],
            parameters: None,
            on_both: false,
        },
    })
}

const FILE: [&str; 2] =
    ["numa-slowscan.toml", "name = \"numa-slowscan\"\nboots = 6\n\n[machine]\ncpus = 4\n"];

const CONSOLE: &str =
    "[   12.345678] BUG: unable to handle page fault for address: ffffb1c0deadbeef
[   12.345690] #PF: supervisor read access in kernel mode
[   12.345701] CPU: 2 PID: 312 Comm: numa01 Not tainted 6.12.0-slowscan-v2 #1
[   12.345711] Call Trace:
[   12.345720]  <TASK>
[   12.345729]  task_numa_work+0x1c4/0x3a0
[   12.345760]  </TASK>
[   12.345770] Kernel panic - not syncing: Fatal exception
";
