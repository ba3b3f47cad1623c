//! Measures error rates of verdicts in simulations whose truth is known: false alarms, coverage of intervals and
//! power of the methods in `compare`, and of a test that pools runs. `bench-stats-calibration equal` simulates exact
//! mode only.

mod counters;
mod equal;
mod rates;
mod sequential;
mod sides;
mod warmup;
mod world;

use std::process::ExitCode;

use model::count;
use rates::{Rates, rates};
use world::{Shape, World};

/// Boot-to-boot standard deviations, in units of that of a run.
const BOOT: [f64; 4] = [0.0, 0.5, 1.0, 2.0];
const BOOTS: [u32; 4] = [3, 5, 10, 30];
const RUNS: [usize; 3] = [1, 3, 10];
/// True changes in percent, for the power.
const CHANGES: [f64; 6] = [0.0, 0.5, 1.0, 2.0, 3.0, 5.0];
/// The required coverage of 95 % intervals for normal figures, in percent.
const COVERAGE: [f64; 2] = [94.0, 96.0];
/// The largest rate of false alarms for other figures, in percent.
const MOST_ALARMS: f64 = 6.0;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("equal") {
        return if equal::equal() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    println!("False alarms in percent, nominally 5, where both sides are the same kernel: boots");
    println!("compared in blocks that drift, boots not in blocks, and all runs pooled (Welch).");
    let mut found = Extremes::default();
    for runs in RUNS {
        let heading = BOOTS.map(|boots| format!("{:>20}", format!("{boots} boots a side")));
        println!("\n{:<20}{}", format!("{} a boot, boot sd", count(runs, "run")), heading.concat());
        println!("{:20}{}", "", " blocks apart pooled".repeat(4));
        for shape in Shape::ALL {
            for boot in BOOT {
                let cells = BOOTS.map(|boots| {
                    let world = |blocks| World { blocks, ..same(shape, boot, boots, runs) };
                    let [in_blocks, apart] = [rates(&world(true)), rates(&world(false))];
                    found.note(shape, &in_blocks);
                    found.note(shape, &apart);
                    found.pool(shape, boot, runs, &apart);
                    format!("{:>7.1}{:>6.1}{:>7.1}", in_blocks.alarms, apart.alarms, apart.pooled)
                });
                println!("{:<16}{boot:>4.1}{}", shape.name(), cells.concat());
            }
        }
    }
    unlike(&mut found);
    power();
    found.alarm(counters::counters());
    let few = sides::sides();
    let early = sequential::sequential();
    let seldom = warmup::warm_ups();
    let exact = equal::equal();
    found.report(few && early && seldom && exact)
}

/// A world in which both sides have the same distribution.
fn same(shape: Shape, boot: f64, boots: u32, runs: usize) -> World {
    World { shape, boot, boots: [boots; 2], runs, blocks: true, wider: 1.0, ratio: 1.0 }
}

/// Simulates sides with different distributions, but the same true figures.
fn unlike(found: &mut Extremes) {
    println!("\nFalse alarms of sides that scatter differently or have other numbers of boots");
    println!("(normal, boot sd 1, 3 runs a boot):");
    println!("{:>10}{:>24}{:>9}{:>9}{:>9}", "boots", "second side", "blocks", "apart", "pooled");
    for (boots, wider) in
        [([3; 2], 2.0), ([10; 2], 2.0), ([3, 5], 1.0), ([3, 10], 1.0), ([5, 30], 1.0)]
    {
        let world = World { boots, wider, blocks: false, ..same(Shape::Normal, 1.0, 3, 3) };
        let apart = rates(&world);
        found.alarm(apart.alarms);
        let in_blocks = match boots[0] == boots[1] {
            true => {
                let in_blocks = rates(&World { blocks: true, ..world });
                found.alarm(in_blocks.alarms);
                format!("{:.1}", in_blocks.alarms)
            }
            false => "-".to_owned(),
        };
        println!(
            "{:>10}{:>24}{in_blocks:>9}{:>9.1}{:>9.1}",
            format!("{} and {}", boots[0], boots[1]),
            if wider > 1.0 { "scatters twice as far" } else { "scatters as far" },
            apart.alarms,
            apart.pooled
        );
    }
}

/// Prints how often a change is seen, as predicted and as simulated, and how often it is called `same`.
fn power() {
    println!(
        "\nPower: verdicts in percent on a kernel that is slower by so much, in blocks, margin 1 %"
    );
    println!(
        "(boot sd 1, 3 runs a boot): regression, of normal figures with what is predicted, / same"
    );
    let changes = CHANGES.map(|change| format!("{:>15}", format!("{change} %")));
    println!("{:<15}{:>6}{}", "", "boots", changes.concat());
    for shape in Shape::ALL {
        for boots in BOOTS {
            let cells = CHANGES.map(|change| {
                let world = World { ratio: 1.0 + change / 100.0, ..same(shape, 1.0, boots, 3) };
                let Rates { regression, same, .. } = rates(&world);
                let predicted = rates::predicted(&world);
                let predicted = predicted.map_or(String::new(), |it| format!(" ({it:.0})"));
                format!("{:>15}", format!("{regression:.0}{predicted} / {same:.0}"))
            });
            println!("{:<15}{boots:>6}{}", shape.name(), cells.concat());
        }
    }
}

/// The extreme rates over all simulations.
#[derive(Default)]
struct Extremes {
    coverage: Option<[f64; 2]>,
    alarms: f64,
    pooled: Option<[f64; 2]>,
}

impl Extremes {
    fn note(&mut self, shape: Shape, rates: &Rates) {
        match shape {
            Shape::Normal => self.coverage = Some(widened(self.coverage, rates.covered)),
            _ => self.alarm(rates.alarms),
        }
    }

    fn alarm(&mut self, alarms: f64) {
        self.alarms = self.alarms.max(alarms);
    }

    /// Adds rates of a test that pools runs, if boots matter and have several runs.
    fn pool(&mut self, shape: Shape, boot: f64, runs: usize, rates: &Rates) {
        if shape == Shape::Normal && boot > 0.0 && runs > 1 {
            self.pooled = Some(widened(self.pooled, rates.pooled));
        }
    }

    fn report(&self, others: bool) -> ExitCode {
        let [least, most] = self.coverage.unwrap_or_default();
        println!(
            "\n95 % intervals of normal figures cover {least:.1} to {most:.1} %, to be 94 to 96 %"
        );
        println!(
            "false alarms elsewhere: at most {:.1} %, to be at most {MOST_ALARMS} %",
            self.alarms
        );
        let [few, many] = self.pooled.unwrap_or_default();
        println!("pooled runs of boots that differ: {few:.1} to {many:.1} % false alarms");
        let good =
            least >= COVERAGE[0] && most <= COVERAGE[1] && self.alarms <= MOST_ALARMS && others;
        if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

fn widened(range: Option<[f64; 2]>, figure: f64) -> [f64; 2] {
    let [least, most] = range.unwrap_or([figure; 2]);
    [least.min(figure), most.max(figure)]
}
