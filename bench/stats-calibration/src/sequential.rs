//! Simulates runs that end as soon as there is a verdict. Measures how often the verdict is false despite all the
//! looks, how often there is one, and after how many boots, compared with fixed numbers of boots.

use compare::{BootFigures, Evidence, Judging, Verdict};
use model::Better;
use rayon::prelude::*;
use stats::holm;
use stats::sequential::looks;

use crate::world::{Chance, Shape, World, figures};

/// The most boots of each variant.
const MOST: u32 = 32;
/// Fixed numbers of boots to compare with.
const FIXED: [u32; 3] = [8, 16, 32];
/// The points of a sweep.
const POINTS: usize = 4;
/// Boot-to-boot standard deviations, in units of that of a run.
const BOOT: [f64; 4] = [0.0, 0.5, 1.0, 2.0];
const RUNS: usize = 3;
const TRIALS: u64 = 10_000;
const BATCH: u64 = 250;
/// The largest rate of false verdicts that is allowed, in percent.
const MOST_FALSE: f64 = 5.0;

/// Prints all rates, and returns whether false verdicts are rare enough.
pub fn sequential() -> bool {
    let mut worst: f64 = 0.0;
    println!("\nBoots that end when the verdict is in, looked at in blocks with 3 runs a boot:");
    for look in looks().take_while(|look| look.units <= MOST) {
        print!("  {} at {:.2} %", look.units, 5.0 * look.share);
    }
    println!(
        "\nFalse verdicts in percent, at most 5: of a difference where there is none, with one and"
    );
    println!(
        "with three metrics; of none where it is the margin (1 %); the same of one metric at any"
    );
    println!("of {POINTS} points of a sweep, which ends when all are decided:");
    let heads = ["one", "three", "margin", "sweep", "margin"].map(|head| format!("{head:>8}"));
    println!("{:16}{:>9}{}", "", "boot sd", heads.concat());
    for shape in Shape::ALL {
        for boot in BOOT {
            let world = World { boot, ..same(shape) };
            let margin = World { ratio: 1.01, ..world };
            let cells = [
                outcome(&world, [1, 1], early).different,
                outcome(&world, [1, 3], early).different,
                outcome(&margin, [1, 1], early).same,
                outcome(&world, [POINTS, 1], early).different,
                outcome(&margin, [POINTS, 1], early).same,
            ];
            worst = cells.iter().copied().fold(worst, f64::max);
            let cells = cells.map(|cell| format!("{cell:>8.1}"));
            println!("{:<16}{boot:>9.1}{}", shape.name(), cells.concat());
        }
    }
    println!(
        "\nVerdicts in percent on a kernel that is slower by so much (normal, boot sd 1, margin 1 %),"
    );
    println!(
        "regression / same, and the mean number of boots; the same of a fixed number of boots:"
    );
    let heads = FIXED.map(|boots| format!("{:>14}", format!("{boots} boots")));
    println!("{:>8}{:>14}{:>8}{}", "change", "verdicts", "boots", heads.concat());
    for change in [0.0, 0.5, 1.0, 2.0, 3.0, 5.0] {
        let world = World { ratio: 1.0 + change / 100.0, ..same(Shape::Normal) };
        let verdicts =
            |it: &Outcome| format!("{:>14}", format!("{:.0} / {:.0}", it.different, it.same));
        let found = outcome(&world, [1, 1], early);
        let fixed = FIXED.map(|boots| {
            let world = World { boots: [boots; 2], ..world };
            verdicts(&outcome(&world, [1, 1], fixed))
        });
        let change = format!("{change} %");
        println!("{change:>8}{}{:>8.1}{}", verdicts(&found), found.boots, fixed.concat());
    }
    println!(
        "false verdicts of boots that end early: at most {worst:.1} %, to be at most {MOST_FALSE} %"
    );
    worst <= MOST_FALSE
}

fn same(shape: Shape) -> World {
    World { shape, boot: 1.0, boots: [MOST; 2], runs: RUNS, blocks: true, wider: 1.0, ratio: 1.0 }
}

/// Rates in percent of the experiments, and boots of each variant.
#[derive(Clone, Copy, Default)]
struct Outcome {
    /// Experiments in which a metric was called different.
    different: f64,
    /// Experiments in which a metric was called the same.
    same: f64,
    boots: f64,
}

/// The figures of both sides of a metric.
type Sides = [BootFigures; 2];
/// Judges the metrics of each point.
type Judge = fn(&[Vec<Sides>]) -> (Vec<Verdict>, u32);

/// Simulates experiments with `points` points and `metrics` independent metrics at each. `judge` gives the verdicts,
/// and the number of boots after which they are final.
fn outcome(world: &World, [points, metrics]: [usize; 2], judge: Judge) -> Outcome {
    let batches = (0..TRIALS / BATCH).into_par_iter().map(|batch| {
        let mut chance = Chance::new(world.seed(batch));
        let mut sums = [0.0; 3];
        for _ in 0..BATCH {
            let mut sides = || world.experiment(&mut chance).each_ref().map(figures);
            let mut point = || (0..metrics).map(|_| sides()).collect();
            let (verdicts, boots) = judge(&(0..points).map(|_| point()).collect::<Vec<_>>());
            let changes = [Verdict::Regression, Verdict::Improvement];
            let different = verdicts.iter().any(|verdict| changes.contains(verdict));
            let same = verdicts.contains(&Verdict::Same);
            let found = [f64::from(u8::from(different)), f64::from(u8::from(same)), boots.into()];
            sums = std::array::from_fn(|number| sums[number] + found[number]);
        }
        sums
    });
    let sums =
        batches.reduce(|| [0.0; 3], |a, b| std::array::from_fn(|number| a[number] + b[number]));
    let [different, same, boots] = sums.map(|sum| sum / TRIALS as f64);
    Outcome { different: 100.0 * different, same: 100.0 * same, boots }
}

/// The verdicts at the look that ends the boots, and its number of boots.
fn early(points: &[Vec<Sides>]) -> (Vec<Verdict>, u32) {
    let looks = looks().take_while(|look| look.units <= MOST);
    let mut last = (Vec::new(), 0);
    for look in looks {
        let verdicts = verdicts(points, &Judging::at(&look, MOST, Judging::default().margin));
        let is_end = !verdicts.contains(&Verdict::Undecided);
        last = (verdicts, look.units);
        if is_end {
            break;
        }
    }
    last
}

/// The verdicts on all boots.
fn fixed(points: &[Vec<Sides>]) -> (Vec<Verdict>, u32) {
    (verdicts(points, &Judging::default()), 0)
}

/// The verdicts on the metrics of all points.
fn verdicts(points: &[Vec<Sides>], judging: &Judging) -> Vec<Verdict> {
    let judging = judging.shared_by(points.len());
    points.iter().flat_map(|metrics| of_table(metrics, &judging)).collect()
}

/// The verdicts on metrics of one table.
fn of_table(metrics: &[Sides], judging: &Judging) -> Vec<Verdict> {
    let evidence = metrics.iter().map(|[base, new]| base.against(new, judging).ok());
    let evidence: Option<Vec<Evidence>> = evidence.collect();
    let Some(evidence) = evidence else { return vec![Verdict::Undecided] };
    let adjusted = holm(&evidence.iter().map(|it| it.p_alone).collect::<Vec<f64>>());
    let judged = evidence.into_iter().zip(adjusted);
    judged.map(|(it, p)| Evidence { p, ..it }.verdict(Better::Lower, judging)).collect()
}
