//! CG, "conjugate gradient": the smallest eigenvalue of a large sparse matrix by inverse iteration,
//! whose systems 25 steps of the conjugate gradient method solve. Irregular access to memory.

mod matrix;

use guest::words::Words;

use self::matrix::Matrix;
use super::memory::{Element, reals};
use super::stages::{Stage, Stages};
use super::team::{Member, Team};
use super::verify::check;
use super::{Class, Outcome, Result};

/// The number of steps of the conjugate gradient method.
const STEPS: usize = 25;
const EPSILON: f64 = 1e-10;

/// The parameters of a class.
#[derive(Clone, Copy)]
struct Problem {
    rows: usize,
    /// The number of elements of the random vectors from which the matrix is made.
    nonzeros: usize,
    iterations: usize,
    /// The shift of the eigenvalues.
    shift: f64,
}

impl Problem {
    fn of(class: Class) -> Self {
        let (rows, nonzeros, iterations, shift) = class.pick([
            (1400, 7, 15, 10.0),
            (7000, 8, 15, 12.0),
            (14000, 11, 15, 20.0),
            (75000, 13, 75, 60.0),
            (150_000, 15, 75, 110.0),
            (1_500_000, 21, 100, 500.0),
        ]);
        Self { rows, nonzeros, iterations, shift }
    }

    /// The official count of operations.
    fn operations(self) -> f64 {
        let products = (self.nonzeros * (self.nonzeros + 1)) as f64;
        let per_row = 3.0 + products + STEPS as f64 * (5.0 + products) + 3.0;
        2.0 * (self.iterations * self.rows) as f64 * per_row
    }
}

/// The estimate of the eigenvalue after all iterations.
fn official(class: Class) -> f64 {
    class.pick([
        8.5971775078648, 10.362595087124, 17.130235054029, 22.712745482631, 28.973605592845,
        52.514532105794,
    ])
}

/// The size of all arrays in bytes.
pub fn bytes(class: Class) -> u64 {
    let problem = Problem::of(class);
    Matrix::bytes(problem) + 5 * 8 * problem.rows as u64
}

/// The vectors, named as in the specification.
struct Vectors {
    x: Words,
    z: Words,
    p: Words,
    q: Words,
    r: Words,
}

pub fn run(class: Class, team: &Team, stages: &Stages<'_>) -> Result<Outcome> {
    let problem = Problem::of(class);
    let matrix = Matrix::of(problem, team.threads())?;
    let vector = || reals(problem.rows);
    let vectors = Vectors { x: vector()?, z: vector()?, p: vector()?, q: vector()?, r: vector()? };
    let zeta = reals(1)?;
    team.run(|member| {
        stages.begin(member, Stage::Fill);
        matrix.fill(member);
        vectors.restart(member);
        stages.begin(member, Stage::WarmUp);
        vectors.iterate(member, &matrix);
        vectors.restart(member);
        stages.begin(member, Stage::Steady);
        for _ in 0..problem.iterations {
            let product = vectors.iterate(member, &matrix);
            if member.number == 0 {
                zeta[0].set(problem.shift + 1.0 / product);
            }
        }
        stages.begin(member, Stage::Verify);
    });
    Ok(Outcome {
        millions: problem.operations() / 1e6,
        verdict: check("zeta", zeta[0].get(), official(class), EPSILON),
        remark: format!("{} rows", problem.rows),
    })
}

impl Vectors {
    /// Sets `x` to the vector with which the iteration starts: ones.
    fn restart(&self, member: &Member<'_>) {
        self.x[member.share(self.rows())].iter().for_each(|x| x.set(1.0));
    }

    fn rows(&self) -> usize {
        self.x.len()
    }

    /// One inverse iteration. Returns the product of the previous `x` and the solution `z`.
    fn iterate(&self, member: &Member<'_>, matrix: &Matrix) -> f64 {
        self.solve(member, matrix);
        let share = member.share(self.rows());
        let dot = |a: &Words, b: &Words| dot(a, b, share.clone());
        let [product, square] = member.sum([dot(&self.x, &self.z), dot(&self.z, &self.z)]);
        let factor = 1.0 / square.sqrt();
        for row in share.clone() {
            self.x[row].set(factor * self.z[row].get());
        }
        product
    }

    /// Approximates `z` in `matrix z = x`, and returns the norm of the residual.
    fn solve(&self, member: &Member<'_>, matrix: &Matrix) -> f64 {
        let Self { x, z, p, q, r } = self;
        let share = member.share(self.rows());
        for row in share.clone() {
            z[row].set(0.0);
            q[row].set(0.0);
            r[row].set(x[row].get());
            p[row].set(x[row].get());
        }
        let [mut rho] = member.sum([dot(r, r, share.clone())]);
        for _ in 0..STEPS {
            for row in share.clone() {
                q[row].set(matrix.times(row, p));
            }
            // When the sum is complete, all threads have read `p`.
            let [product] = member.sum([dot(p, q, share.clone())]);
            let alpha = rho / product;
            for row in share.clone() {
                z[row].set(z[row].get() + alpha * p[row].get());
                r[row].set(r[row].get() - alpha * q[row].get());
            }
            let before = rho;
            [rho] = member.sum([dot(r, r, share.clone())]);
            let beta = rho / before;
            for row in share.clone() {
                p[row].set(r[row].get() + beta * p[row].get());
            }
            member.wait();
        }
        let left = share.map(|row| (x[row].get() - matrix.times(row, z)).powi(2)).sum();
        let [square] = member.sum([left]);
        square.sqrt()
    }
}

/// The contribution of some rows to a scalar product.
fn dot(a: &Words, b: &Words, rows: std::ops::Range<usize>) -> f64 {
    a[rows.clone()].iter().zip(&b[rows]).map(|(a, b)| a.get() * b.get()).sum()
}
