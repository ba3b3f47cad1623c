//! Measures how many readings the search for a step takes in measured mode, and how often it is wrong, in simulated
//! ranges whose steps are known. Compares it with the bound of information theory and with `git bisect run`.
//!
//! `bench-culprit [SEARCHES [REPOSITORY GOOD..BAD]]` makes `SEARCHES` searches of each kind. With a repository it
//! also searches in the history of a range of its commits. `bench/README.md` has figures.

mod search;
mod world;

use std::error::Error;
use std::time::Instant;

use culprit::History;
use fastrand::Rng;
use rayon::prelude::*;
use search::{Outcome, Rules, Search, Steps, all_steps, git_bisect, search};
use world::{Boots, World};

/// Default number of searches of each kind.
const SEARCHES: u64 = 100;
/// Readings of each end that do not count, in searches with known levels.
const KNOWN: usize = 100;
const ONE: Rules = Rules { free: 0, most: 600, build: 0.0, knows: false };
/// The largest ratio of readings to the bound, at 1,024 commits and 2 standard deviations with known levels.
const TARGET: f64 = 1.3;
/// The required share of right statements of 93 to 97 %, in percent.
const RIGHT: [f64; 2] = [93.0, 97.0];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let searches = arguments.next().map_or(Ok(SEARCHES), |count| count.parse())?;
    let lines = [64, 256, 1024, 4096].map(|commits| vec![History::linear(commits)]);
    let merged: Vec<History> =
        (0..8).map(|seed| world::merged(1024, &mut Rng::with_seed(seed))).collect();
    let mut bench = Bench { searches, near: [0; 2], one_step: [0; 3] };
    println!("1,024 commits, levels known, by shift in standard deviations\n{HEAD}");
    let known = Rules { free: KNOWN, ..ONE };
    for shift in [1.0, 2.0, 3.0, 4.0] {
        let row =
            bench.row(&format!("{shift}"), &Kind { rules: known, ..Kind::new(&lines[2], shift) });
        if shift == 2.0 {
            println!("{:38}the target is {TARGET:.2}: {}", "", verdict(row <= TARGET));
        }
    }
    println!("\nLevels unknown, by commits and shift\n{HEAD}");
    for line in &lines {
        for shift in [1.0, 2.0, 3.0, 4.0] {
            let name = format!("{} commits, {shift}", line[0].bad());
            bench.row(&name, &Kind::new(line, shift));
        }
    }
    println!("\n256 commits, by boots and shift\n{HEAD}");
    let kinds =
        [Boots::Bimodal, Boots::RareMode, Boots::Outliers].map(|it| (it, [1.0, 2.0, 3.0, 4.0]));
    for (boots, shifts) in kinds.into_iter().chain([(Boots::Half, [3.0, 4.0, 6.0, 8.0])]) {
        for shift in shifts {
            let name = format!("{}, {shift}", boots.name());
            bench.row(&name, &Kind { boots, ..Kind::new(&lines[1], shift) });
        }
    }
    println!("\n1,024 commits with merges, shift 2 and 3; with 5 % that cannot be read\n{HEAD}");
    for unreadable in [0.0, 0.05] {
        for shift in [2.0, 3.0] {
            let name = format!("{shift}, {} % unreadable", 100.0 * unreadable);
            bench.row(&name, &Kind { unreadable, ..Kind::new(&merged, shift) });
        }
    }
    if let (Some(repository), Some(range)) = (arguments.next(), arguments.next()) {
        let real = [world::of_repository(&repository, &range)?];
        let merges = (1..real[0].len()).filter(|node| real[0].parents(*node).len() > 1).count();
        println!("\n{range}: {} commits, {merges} of them merges\n{HEAD}", real[0].bad());
        for shift in [2.0, 3.0] {
            bench.row(
                &format!("{shift}, 5 %"),
                &Kind { unreadable: 0.05, ..Kind::new(&real, shift) },
            );
        }
    }
    println!("\n256 commits, steps of 3 at random places, by their number\n{HEAD}");
    for steps in [0, 2, 3] {
        bench.row(&format!("{steps} steps"), &Kind { steps, ..Kind::new(&lines[1], 3.0) });
    }
    println!(
        "\nThe same divided into halves where one step does not fit, and with merges; percent"
    );
    println!("                         readings   named   right   found  budget");
    for (name, histories) in [("256 commits", &lines[1]), ("1024 with merges", &merged)] {
        for steps in [1, 2, 3] {
            bench.steps(&format!("{name}, {steps}"), &Kind { steps, ..Kind::new(histories, 3.0) });
        }
    }
    bench.costs(&lines[1]);
    bench.git(&lines);
    decisions();

    let [right, all] = bench.near;
    let percent = 100.0 * right as f64 / all as f64;
    println!(
        "\nFirst statements of 93 to 97 % for one commit, ranges of one step, levels unknown:"
    );
    println!("{percent:.1} % of {all} right, to be {} to {}", RIGHT[0], RIGHT[1]);
    let [right, wrong, misfit] = bench.one_step;
    println!("answers: {right} right, {wrong} wrong; {misfit} false misfits");
    Ok(())
}

/// Prints the time that it takes to choose readings.
fn decisions() {
    let mut rng = Rng::with_seed(1);
    let history = world::merged(4096, &mut rng);
    let world = World::new(&history, Boots::Normal, &[1.0], 0.05, &mut rng);
    let start = Instant::now();
    let found = search(&world, ONE, &mut rng);
    let mean = start.elapsed().as_secs_f64() / found.readings as f64;
    println!(
        "\n4,096 commits with merges, shift 1: {} readings, {:.0} ms to choose one",
        found.readings,
        1000.0 * mean
    );
}

const HEAD: &str = "                         readings   bound   ratio   right  stated   wrong  misfit    none  budget";

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "missed" }
}

/// A kind of range.
#[derive(Clone, Copy)]
struct Kind<'a> {
    histories: &'a [History],
    boots: Boots,
    shift: f64,
    steps: usize,
    unreadable: f64,
    rules: Rules,
}

impl<'a> Kind<'a> {
    /// One step, normal boots, all kernels can be read.
    fn new(histories: &'a [History], shift: f64) -> Self {
        Self { histories, boots: Boots::Normal, shift, steps: 1, unreadable: 0.0, rules: ONE }
    }

    /// One search of the kind.
    fn search<T>(&self, number: u64, search: impl Fn(&World, &mut Rng) -> T) -> T {
        let history = &self.histories[number as usize % self.histories.len()];
        let mut rng = Rng::with_seed(number);
        let steps = vec![self.shift; self.steps];
        search(&World::new(history, self.boots, &steps, self.unreadable, &mut rng), &mut rng)
    }

    /// The number of readings that information theory requires.
    fn bound(&self) -> f64 {
        let commits = self.histories.iter().map(|history| history.bad() as f64);
        let commits = commits.sum::<f64>() / self.histories.len() as f64;
        0.95 * commits.log2() / self.boots.information(self.shift)
    }
}

struct Bench {
    searches: u64,
    /// Right and all statements of 93 to 97 % in ranges of one step.
    near: [usize; 2],
    /// Right and wrong answers and misfits in ranges of one step.
    one_step: [usize; 3],
}

impl Bench {
    /// Prints how the searches of a kind end. Returns the ratio of readings to the bound.
    fn row(&mut self, name: &str, kind: &Kind) -> f64 {
        let one = |number| kind.search(number, |world, rng| search(world, kind.rules, rng));
        let found: Vec<Search> = (0..self.searches).into_par_iter().map(one).collect();
        let count = |outcome| found.iter().filter(|search| search.outcome == outcome).count();
        let [right, wrong, misfit, none, budget] = [
            Outcome::Right,
            Outcome::Wrong,
            Outcome::Misfit,
            Outcome::NoDifference,
            Outcome::Budget,
        ]
        .map(count);
        if kind.steps == 1 && kind.rules.free == 0 {
            let near: Vec<bool> = found.iter().filter_map(|search| search.near).collect();
            self.near[0] += near.iter().filter(|right| **right).count();
            self.near[1] += near.len();
            let sums = self.one_step.iter_mut().zip([right, wrong, misfit]);
            sums.for_each(|(sum, count)| *sum += count);
        }
        let all = found.len() as f64;
        let answers = (right + wrong) as f64;
        let readings = found.iter().map(|search| search.readings as f64).sum::<f64>() / all;
        let stated = found.iter().map(|search| search.stated).sum::<f64>() / answers;
        let bound = kind.bound();
        let shares = [wrong, misfit, none, budget].map(|it| 100.0 * it as f64 / all);
        println!(
            "{name:<24}{readings:>9.1}{bound:>8.1}{:>8.2}{:>8.1}{:>8.1}{:>8.1}{:>8.1}{:>8.1}{:>8.1}",
            readings / bound,
            100.0 * right as f64 / answers,
            100.0 * stated,
            shares[0],
            shares[1],
            shares[2],
            shares[3],
        );
        readings / bound
    }

    /// Prints how many steps searches of a kind name, how many of these are steps, and how many steps they find.
    fn steps(&self, name: &str, kind: &Kind) {
        let one = |number| kind.search(number, |world, rng| all_steps(world, kind.rules, rng));
        let found: Vec<Steps> = (0..self.searches).into_par_iter().map(one).collect();
        let sum = |of: fn(&Steps) -> usize| found.iter().map(of).sum::<usize>() as f64;
        let all = found.len() as f64;
        let ended = sum(|it| usize::from(it.ended));
        println!(
            "{name:<24}{:>9.1}{:>8.2}{:>8.1}{:>8.1}{:>8.1}",
            sum(|it| it.readings) / all,
            sum(|it| it.named) / ended,
            100.0 * sum(|it| it.right) / sum(|it| it.named),
            100.0 * sum(|it| it.found) / (ended * kind.steps as f64),
            100.0 * (1.0 - ended / all),
        );
    }

    /// Prints the time that a search saves if it knows the cost of builds.
    fn costs(&self, histories: &[History]) {
        println!("\n256 commits, shift 2: minutes if a boot takes 1 and a kernel's first boot 11");
        for knows in [false, true] {
            let rules = Rules { build: 10.0, knows, ..ONE };
            let kind = Kind { rules, ..Kind::new(histories, 2.0) };
            let one = |number| kind.search(number, |world, rng| search(world, rules, rng));
            let found: Vec<Search> = (0..self.searches).into_par_iter().map(one).collect();
            let mean =
                |of: fn(&Search) -> f64| found.iter().map(of).sum::<f64>() / found.len() as f64;
            println!(
                "{:<24}{:>9.1} readings {:>7.1} minutes {:>6.1} % right",
                if knows { "costs known" } else { "costs taken as equal" },
                mean(|search| search.readings as f64),
                mean(|search| search.minutes),
                100.0 * mean(|search| f64::from(u8::from(search.outcome == Outcome::Right))),
            );
        }
    }

    /// `git bisect run`, whose script knows the middle between both levels.
    fn git(&self, lines: &[Vec<History>]) {
        println!(
            "\ngit bisect run that knows the middle: readings, percent right, by commits and shift"
        );
        println!("{:<24}{:>16}{:>16}", "", "3 a step", "5 a step");
        for histories in lines {
            for shift in [1.0, 2.0, 3.0, 4.0] {
                let cells = [3, 5].map(|each| {
                    let kind = Kind::new(histories, shift);
                    let one =
                        |number| kind.search(number, |world, rng| git_bisect(world, each, rng));
                    let found: Vec<Search> = (0..self.searches).into_par_iter().map(one).collect();
                    let all = found.len() as f64;
                    let right = found.iter().filter(|it| it.outcome == Outcome::Right).count();
                    let readings: usize = found.iter().map(|search| search.readings).sum();
                    let percent = 100.0 * right as f64 / all;
                    format!("{:>8.1}{percent:>8.1}", readings as f64 / all)
                });
                let name = format!("{} commits, {shift}", histories[0].bad());
                println!("{name:<24}{}", cells.concat());
            }
        }
    }
}
