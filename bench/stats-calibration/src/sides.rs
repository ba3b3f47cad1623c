//! Simulates sides with different numbers of boots. Measures rates of false alarms, coverage of intervals, and power,
//! compared with Welch's test that ignores blocks, and with the smaller p-value of both, which is not a valid test.

use std::ops::Range;

use compare::{BootFigures, Judging};
use rayon::prelude::*;
use stats::RatioTest;

use crate::world::{Chance, Shape};

/// The number of trials. The standard error of a share of 5 % is then 0.15 %, of 50 % 0.35 %.
const TRIALS: u64 = 20_000;
const BATCH: u64 = 500;
/// The standard deviation of a boot, as a share of its figure.
const BOOT: f64 = 0.011;
/// The ratio of a change whose power is measured.
const CHANGE: f64 = 1.03;
/// The largest rate of false alarms, in percent, if one side scatters twice as far as the other. Welch's own test
/// reaches 7.
const MOST_UNLIKE: f64 = 7.0;
/// The largest rate of false alarms, in percent, if boots have the same distribution or share blocks: 5 plus 4
/// standard errors.
const MOST_ALIKE: f64 = 5.0 + 0.62;

/// Boots of the baseline and of the other side, given by their blocks.
type Sides = [Vec<u32>; 2];

/// The distribution of boots.
#[derive(Clone, Copy)]
struct Scatter {
    shape: Shape,
    /// The standard deviation of each side, in `BOOT`.
    sd: [f64; 2],
    /// The random difference between blocks, and the drift from one to the next, in `BOOT`.
    block: f64,
    drift: f64,
}

const ALIKE: Scatter = Scatter { shape: Shape::Normal, sd: [1.0; 2], block: 0.0, drift: 0.0 };

/// Rates in percent.
struct Shares {
    alarms: f64,
    covered: f64,
    seen: f64,
    welch_alarms: f64,
    welch_seen: f64,
    either_alarms: f64,
}

/// Prints all rates, and returns whether false alarms are rare enough.
pub fn sides() -> bool {
    let apart = apart();
    let in_blocks = in_blocks();
    apart && in_blocks
}

/// Simulates boots that share no block.
fn apart() -> bool {
    println!("\nSides with other numbers of boots, in no block together. In percent: false alarms");
    println!("of like sides, where the one with fewer boots scatters twice as far, or the other");
    println!("one, and of boots that have two modes (50:50); what 95 % intervals of like sides");
    println!(
        "cover; how often 3 % are seen beside boots that scatter by 1.1 %; both of Welch's t:"
    );
    println!(
        "{:>10}{:>8}{:>8}{:>8}{:>8}{:>9}{:>8}{:>16}",
        "boots", "alike", "fewer", "more", "modes", "covered", "seen", "Welch"
    );
    let mut good = true;
    for [fewer, more] in [
        [3, 3],
        [3, 4],
        [3, 5],
        [3, 8],
        [3, 10],
        [3, 30],
        [4, 4],
        [4, 6],
        [5, 5],
        [5, 10],
        [5, 30],
        [10, 10],
        [10, 30],
    ] {
        let sides = [(0..fewer).collect(), (100..100 + more).collect()];
        let alike = shares(&sides, ALIKE);
        let alarms = |scatter| shares(&sides, scatter).alarms;
        let unlike = [[2.0, 1.0], [1.0, 2.0]].map(|sd| alarms(Scatter { sd, ..ALIKE }));
        let modes = alarms(Scatter { shape: Shape::Bimodal, ..ALIKE });
        good &= alike.alarms <= MOST_ALIKE && unlike.iter().all(|it| *it <= MOST_UNLIKE);
        println!(
            "{:>10}{:>8.1}{:>8.1}{:>8.1}{modes:>8.1}{:>9.1}{:>8.1}{:>16}",
            format!("{fewer} and {more}"),
            alike.alarms,
            unlike[0],
            unlike[1],
            alike.covered,
            alike.seen,
            format!("{:.1} / {:.1}", alike.welch_alarms, alike.welch_seen)
        );
    }
    good
}

/// Simulates boots in common blocks. In some blocks a side is missing.
fn in_blocks() -> bool {
    println!("\nThe same of boots in blocks from 1 on that share a luck of so many standard");
    println!("deviations of a boot, or drift by one from block to block: false alarms, what");
    println!("intervals cover, how often 3 % are seen; both of Welch's t, and the false alarms of");
    println!("whichever p-value is smaller:");
    println!(
        "{:<24}{:>8}{:>8}{:>9}{:>8}{:>16}{:>9}",
        "boots", "blocks", "alarms", "covered", "seen", "Welch", "smaller"
    );
    let first = |boots: u32| (0..boots).collect::<Vec<u32>>();
    let but = |boots: Range<u32>, lacks: u32| boots.filter(|block| *block != lacks).collect();
    let layouts: [(&str, Sides); 8] = [
        ("3 and 3", [first(3), first(3)]),
        ("3 and 4", [first(3), first(4)]),
        ("3 and 5", [first(3), first(5)]),
        ("3 and 8", [first(3), first(8)]),
        ("4 and 6", [first(4), first(6)]),
        ("5 and 5", [first(5), first(5)]),
        ("5 and 5, lack 5 and 1", [but(0..5, 4), but(0..5, 0)]),
        ("5 and 10", [first(5), first(10)]),
    ];
    let scatters = [0.0, 0.5, 1.0, 3.0].map(|block| (format!("{block}"), block, 0.0));
    let mut good = true;
    for (name, sides) in &layouts {
        for (world, block, drift) in scatters.iter().chain([&("drift".to_owned(), 0.0, 1.0)]) {
            let found = shares(sides, Scatter { block: *block, drift: *drift, ..ALIKE });
            good &= found.alarms <= MOST_ALIKE;
            println!(
                "{name:<24}{world:>8}{:>8.1}{:>9.1}{:>8.1}{:>16}{:>9.1}",
                found.alarms,
                found.covered,
                found.seen,
                format!("{:.1} / {:.1}", found.welch_alarms, found.welch_seen),
                found.either_alarms
            );
        }
    }
    good
}

fn shares(sides: &Sides, scatter: Scatter) -> Shares {
    let seed = sides.iter().fold(scatter.seed(), |seed, side| seed * 31 + side.len() as u64);
    let batches = (0..TRIALS / BATCH).into_par_iter();
    let sum = batches
        .map(|batch| simulate(sides, scatter, seed * 1000 + batch))
        .reduce(|| [0; 6], |a, b| std::array::from_fn(|number| a[number] + b[number]));
    let [alarms, covered, seen, welch_alarms, welch_seen, either_alarms] =
        sum.map(|count| 100.0 * count as f64 / TRIALS as f64);
    Shares { alarms, covered, seen, welch_alarms, welch_seen, either_alarms }
}

fn simulate(sides: &Sides, scatter: Scatter, seed: u64) -> [u64; 6] {
    let judging = Judging::default();
    let is_small = |p: f64| p < judging.alpha();
    let mut chance = Chance::new(seed);
    let mut counts = [0; 6];
    for _ in 0..BATCH {
        let [base, new] = scatter.logarithms(sides, &mut chance);
        let by = |side: &Side, ratio: f64| -> Side {
            side.iter().map(|(block, log)| (*block, ratio * log.exp())).collect()
        };
        let base = by(&base, 1.0);
        let of = |side: &Side| BootFigures::new(side.iter().map(|(block, it)| (*block, Some(*it))));
        let [same, changed] = [1.0, CHANGE].map(|ratio| {
            let new = by(&new, ratio);
            let evidence = of(&base).against(&of(&new), &judging).expect("boots enough");
            let values = [&base, &new].map(|it| it.iter().map(|(_, it)| *it).collect::<Vec<f64>>());
            let welch = RatioTest::unpaired(&values[0], &values[1]).expect("figures above 0");
            (evidence, welch.p_difference)
        });
        let found = [
            is_small(same.0.p_alone),
            same.0.low <= 1.0 && 1.0 <= same.0.high,
            is_small(changed.0.p_alone),
            is_small(same.1),
            is_small(changed.1),
            is_small(same.0.p_alone.min(same.1)),
        ];
        for (count, found) in counts.iter_mut().zip(found) {
            *count += u64::from(found);
        }
    }
    counts
}

/// A block and a figure for each boot.
type Side = Vec<(u32, f64)>;

impl Scatter {
    fn seed(&self) -> u64 {
        let parts = [self.sd[0], self.sd[1], self.block, self.drift];
        parts.iter().fold(self.shape as u64 + 1, |seed, part| seed * 31 + (2.0 * part) as u64)
    }

    /// The logarithms of figures that differ by chance and by block only.
    fn logarithms(&self, sides: &Sides, chance: &mut Chance) -> [Side; 2] {
        let most = sides.iter().flatten().max().map_or(0, |last| last + 1);
        let block = |number: u32| self.drift * f64::from(number) + self.block * chance.normal();
        let blocks: Vec<f64> = (0..most).map(block).collect();
        [0, 1].map(|side| {
            let boot = |&block: &u32| {
                let own = self.sd[side] * chance.draw(self.shape);
                (block, BOOT * (blocks[block as usize] + own))
            };
            sides[side].iter().map(boot).collect()
        })
    }
}
