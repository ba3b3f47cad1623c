//! LU, "lower-upper": steps towards the steady state of a flow by symmetric successive over-relaxation. Two sweeps in
//! each step visit all points in order. To keep the order, threads wait for each other at each plane.
//!
//! NASA's programs store the blocks of a plane, of 5 by 5 numbers each, until they use them, and density and kinetic
//! energy of each point. Here all of these are recomputed when needed, which takes less memory.

mod cube;
mod flow;

use std::sync::Mutex;

use self::cube::{Cube, Line};
use self::flow::State;
use super::stages::{Stage, Stages};
use super::team::Team;
use super::verify::check;
use super::{Class, Outcome, Result};

const EPSILON: f64 = 1e-8;

/// The size of the problem.
#[derive(Clone, Copy)]
struct GridSize {
    /// The number of points along each side.
    side: usize,
    /// The number of time steps.
    steps: usize,
    /// The length of a time step.
    length: f64,
}

fn size(class: Class) -> GridSize {
    let size = |side, steps, length| GridSize { side, steps, length };
    class.pick([
        size(12, 50, 0.5),
        size(33, 300, 1.5e-3),
        size(64, 250, 2.0),
        size(102, 250, 2.0),
        size(162, 250, 2.0),
        size(408, 300, 1.0),
    ])
}

/// The figures that are verified: the root mean squares of the residuals and of the errors, and the surface integral.
#[derive(Clone, Copy)]
struct Figures {
    residuals: State,
    errors: State,
    integral: f64,
}

fn official(class: Class) -> Figures {
    let figures = |residuals, errors, integral| Figures { residuals, errors, integral };
    class.pick([
        figures(
            [
                1.6196343210977e-2, 2.1976745164821e-3, 1.5179927653399e-3, 1.5029584435994e-3,
                3.4264073155896e-2,
            ],
            [
                6.4223319957961e-4, 8.4144342047348e-5, 5.8588269616485e-5, 5.8474222595157e-5,
                1.3103347914111e-3,
            ],
            7.8418928865937e0,
        ),
        figures(
            [
                1.236511638192e1, 1.317228477799e0, 2.550120713095e0, 2.326187750252e0,
                2.826799444189e1,
            ],
            [
                4.867877144216e-1, 5.064652880982e-2, 9.28181810196e-2, 8.570126542733e-2,
                1.084277417792e0,
            ],
            1.161399311023e1,
        ),
        figures(
            [
                7.7902107606689e2, 6.3402765259693e1, 1.9499249727292e2, 1.7845301160419e2,
                1.8384760349464e3,
            ],
            [
                2.9964085685472e1, 2.8194576365003e0, 7.3473412698775e0, 6.7139225687777e0,
                7.0715315688393e1,
            ],
            2.6030925604886e1,
        ),
        figures(
            [
                3.5532672969983e3, 2.6214750795311e2, 8.8333721850952e2, 7.7812774739425e2,
                7.3087969592545e3,
            ],
            [
                1.1401176380213e2, 8.1098963655422e0, 2.8480597317698e1, 2.5905394567833e1,
                2.6054907504857e2,
            ],
            4.7887162703308e1,
        ),
        figures(
            [
                1.0376698032354e4, 8.9221245880101e2, 2.5623881458266e3, 2.1919434385783e3,
                1.7807805726106e4,
            ],
            [
                2.1598639971695e2, 1.5578955923986e1, 5.4131886307721e1, 4.8226264315405e1,
                4.5590291004325e2,
            ],
            6.6640455357218e1,
        ),
        figures(
            [
                4.868417937025e4, 4.696371050071e3, 1.218114549776e4, 1.033801493461e4,
                7.142398413817e4,
            ],
            [
                3.752393004482e2, 3.084128893659e1, 9.434276905469e1, 8.230686681928e1,
                7.00262063621e2,
            ],
            8.334101392503e1,
        ),
    ])
}

impl Figures {
    fn verify(&self, official: &Self) -> Result<(), String> {
        let norms = |what: &str, found: &State, official: &State| {
            let mut pairs = (1..).zip(found.iter().zip(official));
            pairs.try_for_each(|(variable, (found, official))| {
                check(&format!("{what} of variable {variable}"), *found, *official, EPSILON)
            })
        };
        norms("the residual", &self.residuals, &official.residuals)?;
        norms("the error", &self.errors, &official.errors)?;
        check("the surface integral", self.integral, official.integral, EPSILON)
    }
}

/// The size of all arrays in bytes.
pub fn bytes(class: Class) -> u64 {
    Cube::bytes(size(class).side)
}

/// The official count of operations.
fn operations(side: usize, steps: usize) -> f64 {
    let side = side as f64;
    let a_step = 1984.77 * side.powi(3) - 10923.3 * side.powi(2) + 27770.9 * side - 144_010.0;
    steps as f64 * a_step
}

pub fn run(class: Class, team: &Team, stages: &Stages<'_>) -> Result<Outcome> {
    let GridSize { side, steps, length } = size(class);
    let cube = Cube::of(side, length)?;
    let found = Mutex::new(None);
    team.run(|member| {
        let mut line = Line::of(side);
        stages.begin(member, Stage::Fill);
        cube.start(member);
        cube.force(member, &mut line);
        stages.begin(member, Stage::WarmUp);
        cube.make_residual(member, &mut line);
        cube.advance(member, 0, &mut line);
        cube.start(member);
        cube.make_residual(member, &mut line);
        stages.begin(member, Stage::Steady);
        for step in 1..=steps {
            cube.advance(member, step, &mut line);
        }
        let residuals = cube.residuals(member);
        stages.begin(member, Stage::Verify);
        let errors = cube.errors(member);
        *found.lock().expect("nobody panics") = Some((residuals, errors));
    });
    let found = found.into_inner().expect("nobody panics");
    let (residuals, errors) = found.expect("a team has a member");
    let found = Figures { residuals, errors, integral: cube.surface_integral() };
    Ok(Outcome {
        millions: operations(side, steps) / 1e6,
        verdict: found.verify(&official(class)),
        remark: format!("{side} points along each side"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_verified() {
        let right = official(Class::A);
        assert_eq!(right.verify(&official(Class::A)), Ok(()));
        let told = |change: &dyn Fn(&mut Figures)| {
            let mut wrong = right;
            change(&mut wrong);
            wrong.verify(&right).unwrap_err()
        };
        assert!(told(&|it| it.residuals[4] *= 1.0001).starts_with("the residual of variable 5 is"));
        assert!(told(&|it| it.errors[0] *= 1.0001).starts_with("the error of variable 1 is "));
        assert!(told(&|it| it.integral = f64::NAN).starts_with("the surface integral is "));
    }
}
