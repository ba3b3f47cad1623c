//! Simulates warm-up. Measures how often figures that are steady from the start lose values, and how much of a true
//! warm-up is left out.

use rayon::prelude::*;
use stats::warm_up;

use crate::world::{Chance, Shape};

const TRIALS: u64 = 1000;
const BOOTS: [usize; 3] = [3, 5, 10];
/// Numbers of values of a boot.
const VALUES: [usize; 4] = [20, 40, 80, 160];
/// An offset added to all values.
const BASE: f64 = 100.0;
/// The largest share of cases, in percent, in which steady figures may lose values. It should be about 1 %, and is
/// measured to 0.3 %.
const MOST_CUT: f64 = 1.5;
/// The height of a warm-up, in standard deviations, and the number of values in which it decays to 1/e.
const WARM_UPS: [(f64, f64); 4] = [(3.0, 5.0), (10.0, 2.0), (10.0, 8.0), (30.0, 1.0)];

/// Both sides, boots with a series each.
fn sides(
    chance: &mut Chance,
    shape: Shape,
    boots: usize,
    values: usize,
    (height, fall): (f64, f64),
) -> [Vec<Vec<Vec<f64>>>; 2] {
    let start = |at: usize| height * (-(at as f64) / fall).exp();
    let mut boot = || {
        let runs = chance.runs(shape, values).enumerate();
        vec![runs.map(|(at, run)| BASE + run + start(at)).collect()]
    };
    [0, 1].map(|_| (0..boots).map(|_| boot()).collect())
}

/// The number of first values left out of both sides in each trial.
fn cuts(shape: Shape, boots: usize, values: usize, start: (f64, f64)) -> Vec<usize> {
    let cut = |trial: u64| {
        let seed = [shape as u64, boots as u64, values as u64, start.0 as u64, start.1 as u64];
        let seed = seed.into_iter().fold(trial + 1, |seed, part| {
            (seed ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
        });
        let sides = sides(&mut Chance::new(seed), shape, boots, values, start);
        sides.iter().map(|side| warm_up(side).until).max().unwrap_or(0)
    };
    (0..TRIALS).into_par_iter().map(cut).collect()
}

/// Prints the rates of both, and returns whether steady figures are cut rarely enough.
pub fn warm_ups() -> bool {
    println!(
        "\nSteady from the start: values are left out, in percent of comparisons, of 20, 40, 80"
    );
    println!("and 160 values a boot:");
    let heading = BOOTS.map(|boots| format!("{:>24}", format!("{boots} boots a side")));
    println!("{:<20}{}", "", heading.concat());
    let mut most: f64 = 0.0;
    for shape in Shape::WITHIN {
        let cells = BOOTS.map(|boots| {
            let shares = VALUES.map(|values| {
                let cuts = cuts(shape, boots, values, (0.0, 1.0));
                let share = 100.0 * cuts.iter().filter(|cut| **cut > 0).count() as f64;
                let share = share / TRIALS as f64;
                most = most.max(share);
                format!("{share:>5.1}")
            });
            format!("{:>24}", shares.concat())
        });
        println!("{:<20}{}", shape.name(), cells.concat());
    }
    println!(
        "\nTrue warm-ups, of such a height in standard deviations and falling so fast, 40 values a"
    );
    println!("boot: left out in percent of comparisons, so many values in the median, and by how");
    println!("many standard deviations the mean is too high before and after:");
    println!("{:<20}{:>8}{}", "", "", heading.concat());
    for shape in Shape::WITHIN {
        for start in WARM_UPS {
            let cells = BOOTS.map(|boots| found(shape, boots, start));
            let start = format!("{:.0} / {:.0}", start.0, start.1);
            println!("{:<20}{start:>8}{}", shape.name(), cells.concat());
        }
    }
    println!("steady figures that lose values: at most {most:.1} %, to be at most {MOST_CUT} %");
    most <= MOST_CUT
}

fn found(shape: Shape, boots: usize, (height, fall): (f64, f64)) -> String {
    const VALUES: usize = 40;
    let mut cuts = cuts(shape, boots, VALUES, (height, fall));
    cuts.retain(|cut| *cut > 0);
    cuts.sort_unstable();
    let share = 100.0 * cuts.len() as f64 / TRIALS as f64;
    let Some(median) = cuts.get(cuts.len() / 2) else {
        return format!("{:>24}", format!("{share:.0}"));
    };
    let left = |from: usize| {
        let starts = (from..VALUES).map(|at| height * (-(at as f64) / fall).exp());
        starts.sum::<f64>() / (VALUES - from) as f64
    };
    format!("{:>24}", format!("{share:.0} {median:>3} {:.2} {:.2}", left(0), left(*median)))
}
