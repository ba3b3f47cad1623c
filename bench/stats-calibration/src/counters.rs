//! Simulates tables of counters with a known truth: whole numbers, some nearly constant, some with two modes, many
//! counting the same events. Measures how often a counter that does not differ is called different, and how many of
//! those that differ are found.

use compare::{BootFigures, Evidence, Judging, false_discovery_rates};
use rayon::prelude::*;
use stats::benjamini_hochberg;

use crate::world::Chance;

/// Counters in a table.
const COUNTERS: usize = 20;
const BOOTS: [u32; 4] = [3, 4, 5, 10];
/// Numbers of counters that count the same events.
const TOGETHER: [usize; 2] = [1, 5];
/// Numbers of counters that are higher by half on the second side.
const CHANGED: [usize; 2] = [4, 16];
const TRIALS: u64 = 4_000;
const BATCH: u64 = 100;

/// The distribution of a boot's events, which a counter has above its minimum.
#[derive(Clone, Copy)]
enum Events {
    /// About a thousand, normally.
    Normal,
    /// 0 or 1.
    One,
    /// 0 or 35, and up to two others.
    Modes,
    /// Four events that happen rarely.
    Rare,
    /// One of the above, a different one for each counter or group of counters.
    Mixed,
}

impl Events {
    const ALL: [Self; 5] = [Self::Normal, Self::One, Self::Modes, Self::Rare, Self::Mixed];

    const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::One => "one count or none",
            Self::Modes => "two modes",
            Self::Rare => "rare events",
            Self::Mixed => "all of these",
        }
    }

    fn draw(self, group: usize, chance: &mut Chance) -> f64 {
        let mut happens = |share: f64| f64::from(u8::from(chance.happens(share)));
        match self {
            Self::Normal => (100.0 * chance.normal()).round() + 1000.0,
            Self::One => happens(0.5),
            Self::Modes => 35.0 * happens(0.5) + happens(0.5) + happens(0.5),
            Self::Rare => (0..4).map(|_| happens(0.1)).sum(),
            Self::Mixed => Self::ALL[group % 4].draw(group, chance),
        }
    }
}

/// A kind of table.
#[derive(Clone, Copy)]
struct Table {
    events: Events,
    together: usize,
    boots: u32,
    changed: usize,
}

/// Rates in percent of the tables, or of the counters that differ.
#[derive(Default)]
struct Rates {
    /// Tables in which a counter that does not differ is called different.
    alarms: f64,
    /// Tables with such a false alarm if p-values are not adjusted.
    plain: f64,
    /// Counters that differ and are called different.
    found: f64,
}

/// Prints all rates, and returns the highest rate of false alarms.
pub fn counters() -> f64 {
    println!(
        "\nFalse alarms among {COUNTERS} counters of the same kernel, in percent of the tables, in blocks:"
    );
    println!(
        "with the p-values that so few boots can tell, as compare does it, and with those of Student's t"
    );
    let heads = BOOTS.map(|boots| format!("{:>16}", format!("{boots} boots a side")));
    println!("{:34}{}", "", heads.concat());
    let mut worst: f64 = 0.0;
    for events in Events::ALL {
        for together in TOGETHER {
            let cells = BOOTS.map(|boots| {
                let Rates { alarms, plain, .. } =
                    rates(Table { events, together, boots, changed: 0 });
                worst = worst.max(alarms);
                format!("{:>16}", format!("{alarms:.1} ({plain:.1})"))
            });
            let of = if together == 1 { "each its own" } else { "five alike" };
            println!("{:<20}{of:<14}{}", events.name(), cells.concat());
        }
    }
    println!(
        "Called different in percent of those that are higher by half, all of these, each its own:"
    );
    for changed in CHANGED {
        let cells = BOOTS.map(|boots| {
            let table = Table { events: Events::Mixed, together: 1, boots, changed };
            format!("{:>16.1}", rates(table).found)
        });
        println!("{:<34}{}", format!("{changed} of {COUNTERS}"), cells.concat());
    }
    worst
}

fn rates(table: Table) -> Rates {
    let batches = (0..TRIALS / BATCH).into_par_iter().map(|batch| {
        let mut chance = Chance::new(table.seed() + batch);
        (0..BATCH).fold([0; 3], |sums, _| add(sums, trial(&table, &mut chance)))
    });
    let sums = batches.reduce(|| [0; 3], add);
    let [alarms, plain, found] = sums.map(|sum| 100.0 * sum as f64 / TRIALS as f64);
    Rates { alarms, plain, found: found / table.changed.max(1) as f64 }
}

fn add(a: [u64; 3], b: [u64; 3]) -> [u64; 3] {
    std::array::from_fn(|number| a[number] + b[number])
}

/// Whether there is a false alarm, whether there is one by unadjusted p-values, and how many counters that
/// differ are found.
fn trial(table: &Table, chance: &mut Chance) -> [u64; 3] {
    let judging = Judging::default();
    let compared =
        table.draw(chance).into_iter().enumerate().filter_map(|(number, [base, new])| {
            let evidence = base.against(&new, &judging).ok().filter(Evidence::moved)?;
            Some((number < table.changed, evidence))
        });
    let (differ, evidence): (Vec<bool>, Vec<Evidence>) = compared.unzip();
    let plain = benjamini_hochberg(&evidence.iter().map(|it| it.p_alone).collect::<Vec<f64>>());
    let called = |rates: Vec<f64>, truly: bool| {
        let both = rates.into_iter().zip(&differ);
        both.filter(|(p, differs)| *p < judging.alpha() && **differs == truly).count() as u64
    };
    let rates = || false_discovery_rates(&evidence);
    [called(rates(), false).min(1), called(plain, false).min(1), called(rates(), true)]
}

impl Table {
    fn seed(&self) -> u64 {
        let Self { events, together, boots, changed } = *self;
        let words = [events as u64, together as u64, u64::from(boots), changed as u64];
        words.into_iter().fold(1, |seed, word| 100 * seed + word) * (TRIALS / BATCH)
    }

    /// Both sides of each counter. Each has its own minimum, which is the same in all boots.
    fn draw(&self, chance: &mut Chance) -> Vec<[BootFigures; 2]> {
        let groups = COUNTERS / self.together;
        let mut events = |group: usize| -> [Vec<f64>; 2] {
            [(); 2].map(|()| (0..self.boots).map(|_| self.events.draw(group, chance)).collect())
        };
        let events: Vec<[Vec<f64>; 2]> = (0..groups).map(&mut events).collect();
        let counter = |number: usize| {
            let least = [1000.0, 7.0, 40_000.0, 0.0][number % 4];
            let side = |side: usize| {
                let higher = if side == 1 && number < self.changed { 1.5 } else { 1.0 };
                let of_boot = |event: &f64| Some(higher * (least + event));
                BootFigures::new((0..).zip(events[number % groups][side].iter().map(of_boot)))
            };
            [side(0), side(1)]
        };
        (0..COUNTERS).map(counter).collect()
    }
}
