//! MG, "multigrid": V-cycles for a Poisson problem on a periodic cube. The right-hand side is 0 except at twenty
//! points. Memory is accessed with short and long strides, on grids from large to tiny.

mod grid;

use std::sync::Mutex;

use self::grid::{Grid, Sums, Weights};
use super::random::Random;
use super::stages::{Stage, Stages};
use super::team::{Member, Team};
use super::verify::check;
use super::{Class, Outcome, Result};

const SEED: u64 = 314_159_265;
const EPSILON: f64 = 1e-8;
/// The operator, a discrete Laplacian.
const LAPLACIAN: Weights = [-8.0 / 3.0, 0.0, 1.0 / 6.0, 1.0 / 12.0];
/// The number of points of the right-hand side that are -1, and of those that are 1.
const CHARGES: usize = 10;
/// The number of operations for each point and iteration, as the official programs count them.
const OPERATIONS: f64 = 58.0;

/// The number of points along each side, and of iterations.
fn size(class: Class) -> (usize, usize) {
    class.pick([(32, 4), (128, 4), (256, 4), (256, 20), (512, 20), (1024, 50)])
}

/// The approximate inverse that smooths solutions.
fn smoother(class: Class) -> Weights {
    match class {
        Class::S | Class::W | Class::A => [-3.0 / 8.0, 1.0 / 32.0, -1.0 / 64.0, 0.0],
        Class::B | Class::C | Class::D => [-3.0 / 17.0, 1.0 / 33.0, -1.0 / 61.0, 0.0],
    }
}

/// The final norm of the residual.
fn official(class: Class) -> f64 {
    class.pick([
        0.5307707005734e-04, 0.6467329375339e-05, 0.2433365309069e-05, 0.1800564401355e-05,
        0.5706732285740e-06, 0.1583275060440e-09,
    ])
}

/// The number of points along each side of every grid, the coarsest first.
fn sides(points: usize) -> impl Iterator<Item = usize> {
    (1..=points.ilog2()).map(|level| 1 << level)
}

/// The size of all grids in bytes.
pub fn bytes(class: Class) -> u64 {
    let (points, _) = size(class);
    let levels: u64 = sides(points).map(Grid::bytes).sum();
    Grid::bytes(points) + 2 * levels
}

/// The grids, named as in the specification.
struct Cube {
    points: usize,
    c: Weights,
    /// The solution, or the correction to that of the finer grid; coarsest first.
    u: Vec<Grid>,
    /// The residual of each grid.
    r: Vec<Grid>,
    /// The right-hand side.
    v: Grid,
    /// The points at which the right-hand side is not 0, collected from all threads.
    extremes: Mutex<Extremes>,
}

pub fn run(class: Class, team: &Team, stages: &Stages<'_>) -> Result<Outcome> {
    let (points, iterations) = size(class);
    let cube = Cube::of(points, smoother(class))?;
    let found = Mutex::new(f64::NAN);
    team.run(|member| {
        let mut sums = Sums::of(points);
        stages.begin(member, Stage::Fill);
        cube.reset(member);
        cube.residual(member, &mut sums);
        stages.begin(member, Stage::WarmUp);
        cube.cycle(member, &mut sums);
        cube.residual(member, &mut sums);
        cube.reset(member);
        stages.begin(member, Stage::Steady);
        cube.residual(member, &mut sums);
        for _ in 0..iterations {
            cube.cycle(member, &mut sums);
            cube.residual(member, &mut sums);
        }
        let norm = cube.finest(&cube.r).norm(member);
        stages.begin(member, Stage::Verify);
        *found.lock().expect("nobody panics") = norm;
    });
    let found = found.into_inner().expect("nobody panics");
    Ok(Outcome {
        millions: OPERATIONS * iterations as f64 * (points as f64).powi(3) / 1e6,
        verdict: check("the norm of the residual", found, official(class), EPSILON),
        remark: format!("{points} points along each side"),
    })
}

impl Cube {
    fn of(points: usize, c: Weights) -> Result<Self> {
        let levels = || sides(points).map(Grid::of).collect::<Result<Vec<_>, _>>();
        let (u, r, v) = (levels()?, levels()?, Grid::of(points)?);
        Ok(Self { points, c, u, r, v, extremes: Mutex::default() })
    }

    fn finest<'a>(&self, levels: &'a [Grid]) -> &'a Grid {
        &levels[levels.len() - 1]
    }

    /// The residual of the finest grid.
    fn residual(&self, member: &Member<'_>, sums: &mut Sums) {
        let (u, r) = (self.finest(&self.u), self.finest(&self.r));
        r.residual(member, u, &self.v, LAPLACIAN, sums);
    }

    /// A V-cycle: down to the coarsest grid, whose problem is solved approximately, and up again.
    fn cycle(&self, member: &Member<'_>, sums: &mut Sums) {
        let Self { u, r, c, .. } = self;
        let top = u.len() - 1;
        for level in (0..top).rev() {
            r[level].project(member, &r[level + 1], sums);
        }
        u[0].clear(member);
        u[0].smooth(member, &r[0], *c, sums);
        for level in 1..top {
            u[level].clear(member);
            u[level].interpolate(member, &u[level - 1], sums);
            r[level].residual(member, &u[level], &r[level], LAPLACIAN, sums);
            u[level].smooth(member, &r[level], *c, sums);
        }
        u[top].interpolate(member, &u[top - 1], sums);
        self.residual(member, sums);
        u[top].smooth(member, &r[top], *c, sums);
    }

    /// Resets the solution to 0 and the right-hand side to its first state. Each point gets a random number. The
    /// points with the smallest numbers are -1, those with the largest are 1.
    fn reset(&self, member: &Member<'_>) {
        self.finest(&self.u).clear(member);
        self.v.clear(member);
        let points = self.points;
        let mut own = Extremes::default();
        for z in member.share(points) {
            let mut random = Random::new(SEED).skip((z * points * points) as u64);
            for y in 0..points {
                for x in 0..points {
                    own.add(random.draw(), [z + 1, y + 1, x + 1]);
                }
            }
        }
        let mut all = self.extremes.lock().expect("nobody panics");
        own.lowest.into_iter().chain(own.highest).for_each(|(number, at)| all.add(number, at));
        drop(all);
        member.alone(|| {
            let all = std::mem::take(&mut *self.extremes.lock().expect("nobody panics"));
            all.lowest.iter().for_each(|(_, at)| self.v.set(*at, -1.0));
            all.highest.iter().for_each(|(_, at)| self.v.set(*at, 1.0));
        });
        self.v.wrap(member);
    }
}

/// The points with the smallest and the largest numbers, each ordered from the most extreme.
#[derive(Default)]
struct Extremes {
    lowest: Vec<(f64, [usize; 3])>,
    highest: Vec<(f64, [usize; 3])>,
}

impl Extremes {
    fn add(&mut self, number: f64, at: [usize; 3]) {
        insert(&mut self.lowest, number, at, |a, b| a < b);
        insert(&mut self.highest, number, at, |a, b| a > b);
    }
}

/// Keeps the first [`CHARGES`] in the order of `before`.
fn insert(
    kept: &mut Vec<(f64, [usize; 3])>,
    number: f64,
    at: [usize; 3],
    before: impl Fn(f64, f64) -> bool,
) {
    if kept.len() == CHARGES && !before(number, kept[CHARGES - 1].0) {
        return;
    }
    let place = kept.partition_point(|(other, _)| before(*other, number));
    kept.insert(place, (number, at));
    kept.truncate(CHARGES);
}
