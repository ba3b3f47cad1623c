//! The equations of LU: the compressible Navier-Stokes equations in three dimensions, with
//! artificial dissipation, on a cube of side 1 (RNR-94-007, sections 2.4 and 3.6). States are
//! conserved variables: density, three momenta, energy.
//!
//! Derivatives along x, y and z differ only in the momentum that carries the flow and in coefficients, so
//! one function handles all three.

/// The five variables at a point.
pub type State = [f64; 5];
/// Derivatives of five fluxes by five variables: one row for each flux.
pub type Block = [State; 5];

/// The coefficients k1 to k5 of the specification: the ratio of specific heats, that ratio less 1, and those of
/// viscosity and heat conduction.
const C1: f64 = 1.4;
const C2: f64 = 0.4;
const C3: f64 = 0.1;
const C4: f64 = 1.0;
const C5: f64 = 1.4;
const C34: f64 = C3 * C4;
const C1345: f64 = C1 * C3 * C4 * C5;
/// The viscosity along the flow, relative to the viscosity across it.
const ALONG: f64 = 4.0 / 3.0;
/// The weight of fourth differences: a quarter of the largest weight of second differences.
const DISSIPATION: f64 = 0.25;

/// The coefficients of the exact solution, a polynomial of degree 4 in each coordinate without mixed terms. For each
/// variable: the constant, then the coefficients of x, y, z, those of their squares, and so on.
const EXACT: [[f64; 13]; 5] = [
    [2.0, 0.0, 0.0, 4.0, 5.0, 3.0, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3],
    [1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5],
    [2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4],
    [2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3],
    [5.0, 4.0, 3.0, 2.0, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2],
];

/// The exact solution at a place of the cube, from (0, 0, 0) to (1, 1, 1).
pub fn exact(place: [f64; 3]) -> State {
    EXACT.map(|c| {
        let along = |axis: usize| {
            let at = place[axis];
            at * (c[1 + axis] + at * (c[4 + axis] + at * (c[7 + axis] + at * c[10 + axis])))
        };
        c[0] + along(0) + along(1) + along(2)
    })
}

/// Half the square of the momentum, divided by the density.
pub fn kinetic(state: &State) -> f64 {
    let [density, x, y, z, _] = state;
    0.5 * (x * x + y * y + z * z) / density
}

pub fn pressure(state: &State) -> f64 {
    C2 * (state[4] - kinetic(state))
}

/// Differences along the axis whose momentum is the variable `FLOW`.
#[derive(Clone, Copy)]
pub struct Axis<const FLOW: usize> {
    /// The coefficients of first, second and one-sided differences.
    first: f64,
    second: f64,
    side: f64,
    /// The weight of the second differences that are added for stability.
    added: f64,
}

impl<const FLOW: usize> Axis<FLOW> {
    /// The differences along an axis of a cube with `points` along each side.
    pub fn of(points: usize, added: f64) -> Self {
        let steps = (points - 1) as f64;
        Self { first: steps / 2.0, second: steps * steps, side: steps, added }
    }

    /// Adds what derivatives along a line contribute to the residual at its inner points.
    pub fn differ(&self, line: &[State], residual: &mut [State]) {
        debug_assert!(line.len() > 6 && residual.len() == line.len());
        let last = line.len() - 1;
        let mut fluxes = [self.flux(&line[0]), self.flux(&line[1])];
        let mut stress = self.stress(&line[0], &line[1]);
        for at in 1..last {
            let [before, here, after] = [&line[at - 1], &line[at], &line[at + 1]];
            let (next_flux, next_stress) = (self.flux(after), self.stress(here, after));
            for m in 0..5 {
                let second = before[m] - 2.0 * here[m] + after[m];
                residual[at][m] += self.side * C34 * (next_stress[m] - stress[m])
                    + self.added * self.second * second
                    - self.first * (next_flux[m] - fluxes[0][m])
                    - DISSIPATION * fourth(line, at, m);
            }
            fluxes = [fluxes[1], next_flux];
            stress = next_stress;
        }
    }

    /// The flux at a point.
    fn flux(&self, state: &State) -> State {
        let speed = state[FLOW] / state[0];
        let kinetic = kinetic(state);
        let mut flux = state.map(|variable| variable * speed);
        flux[0] = state[FLOW];
        flux[FLOW] += C2 * (state[4] - kinetic);
        flux[4] = (C1 * state[4] - C2 * kinetic) * speed;
        flux
    }

    /// Viscous stress and heat flow between two points.
    fn stress(&self, before: &State, after: &State) -> State {
        let specific = |state: &State| state.map(|variable| variable / state[0]);
        let (before, after) = (specific(before), specific(after));
        let difference = |m: usize| after[m] - before[m];
        let squares = |m: usize| after[m] * after[m] - before[m] * before[m];
        let all = squares(1) + squares(2) + squares(3);
        std::array::from_fn(|m| {
            let change = match m {
                0 => 0.0,
                4 => 0.5 * (1.0 - C1 * C5) * all + squares(FLOW) / 6.0 + C1 * C5 * difference(4),
                _ if m == FLOW => ALONG * difference(m),
                _ => difference(m),
            };
            self.side * change
        })
    }

    /// The derivatives of the flux at a point.
    fn convection(&self, state: &State) -> Block {
        let (by_density, kinetic) = (1.0 / state[0], kinetic(state));
        let speed = state[FLOW] * by_density;
        let mut block = [[0.0; 5]; 5];
        block[0][FLOW] = 1.0;
        for m in 1..4 {
            let own = state[m] * by_density;
            block[m][0] = -own * speed;
            block[m][FLOW] += own;
            block[m][m] += speed;
            block[FLOW][m] -= C2 * own;
            block[4][m] = -C2 * own * speed;
        }
        block[FLOW][0] += C2 * kinetic * by_density;
        block[FLOW][4] = C2;
        let energy = state[4] * by_density;
        block[4][0] = (2.0 * C2 * kinetic * by_density - C1 * energy) * speed;
        block[4][FLOW] += C1 * energy - C2 * kinetic * by_density;
        block[4][4] = C1 * speed;
        block
    }

    /// The derivatives of the viscous terms at a point, including the terms that are added for stability.
    fn viscosity(&self, state: &State) -> Block {
        let by_density = 1.0 / state[0];
        let mut block = [[0.0; 5]; 5];
        for m in 1..4 {
            let share = if m == FLOW { ALONG } else { 1.0 } * C34;
            let own = state[m] * by_density;
            block[m][0] = -share * own * by_density;
            block[m][m] = share * by_density;
            block[4][0] -= (share - C1345) * own * own * by_density;
            block[4][m] = (share - C1345) * own * by_density;
        }
        block[4][0] -= C1345 * state[4] * by_density * by_density;
        block[4][4] = C1345 * by_density;
        for (m, row) in block.iter_mut().enumerate() {
            row[m] += self.added;
        }
        block
    }

    /// How the change of a neighbour in a time step affects a point: of the point before (`side` -1) or after (1).
    pub fn neighbour(&self, state: &State, step: f64, side: f64) -> Block {
        let mut block = self.convection(state);
        let viscosity = self.viscosity(state);
        for (row, viscous) in block.iter_mut().zip(viscosity) {
            for (value, viscous) in row.iter_mut().zip(viscous) {
                *value = step * (side * self.first * *value - self.second * viscous);
            }
        }
        block
    }

    /// Adds how the change of a point in a time step affects the point itself.
    pub fn add_own(&self, state: &State, step: f64, block: &mut Block) {
        for (row, viscous) in block.iter_mut().zip(self.viscosity(state)) {
            for (value, viscous) in row.iter_mut().zip(viscous) {
                *value += 2.0 * step * self.second * viscous;
            }
        }
    }
}

/// The fourth difference of a variable. Near the ends it has only the inner part.
fn fourth(line: &[State], at: usize, m: usize) -> f64 {
    let last = line.len() - 1;
    let value = |at: usize| line[at][m];
    if at == 1 {
        5.0 * value(1) - 4.0 * value(2) + value(3)
    } else if at == 2 {
        -4.0 * value(1) + 6.0 * value(2) - 4.0 * value(3) + value(4)
    } else if at == last - 2 {
        value(at - 2) - 4.0 * value(at - 1) + 6.0 * value(at) - 4.0 * value(at + 1)
    } else if at == last - 1 {
        value(at - 2) - 4.0 * value(at - 1) + 5.0 * value(at)
    } else {
        value(at - 2) - 4.0 * value(at - 1) + 6.0 * value(at) - 4.0 * value(at + 1) + value(at + 2)
    }
}

/// The product of a block and a state.
pub fn multiply(block: &Block, state: &State) -> State {
    block.map(|row| row.iter().zip(state).map(|(a, b)| a * b).sum())
}

/// Solves `block x = right` by elimination without pivots, since the diagonal is large.
pub fn solve(mut block: Block, mut right: State) -> State {
    for pivot in 0..5 {
        let (from, value) = (block[pivot], right[pivot]);
        for (row, right) in block.iter_mut().zip(&mut right).skip(pivot + 1) {
            let factor = row[pivot] / from[pivot];
            for (element, other) in row.iter_mut().zip(from).skip(pivot + 1) {
                *element -= factor * other;
            }
            *right -= factor * value;
        }
    }
    for row in (0..5).rev() {
        let known: f64 = (row + 1..5).map(|column| block[row][column] * right[column]).sum();
        right[row] = (right[row] - known) / block[row][row];
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: State = [1.5, 0.3, -0.4, 0.2, 3.0];

    /// Compares a block with differences of the function of which it is the derivative.
    fn compare(block: &Block, function: impl Fn(&State) -> State) {
        const STEP: f64 = 1e-6;
        for column in 0..5 {
            let moved = |by: f64| {
                let mut state = STATE;
                state[column] += by;
                function(&state)
            };
            let (after, before) = (moved(STEP), moved(-STEP));
            for row in 0..5 {
                let slope = (after[row] - before[row]) / (2.0 * STEP);
                let wrong = (block[row][column] - slope).abs();
                assert!(
                    wrong < 1e-8,
                    "row {row}, column {column}: {} and {slope}",
                    block[row][column]
                );
            }
        }
    }

    fn check_axis<const FLOW: usize>() {
        let axis = Axis::<FLOW>::of(2, 0.0);
        compare(&axis.convection(&STATE), |state| axis.flux(state));
        // Stress is linear in the differences of specific variables, up to squares of these.
        compare(&axis.viscosity(&STATE), |state| {
            axis.stress(&STATE, state).map(|stress| stress * C34)
        });
    }

    #[test]
    fn blocks_are_derivatives() {
        check_axis::<1>();
        check_axis::<2>();
        check_axis::<3>();
    }

    #[test]
    fn systems_are_solved() {
        let block = Axis::<2>::of(12, 0.75).neighbour(&STATE, 0.5, 1.0);
        let mut block = block.map(|row| row.map(|value| value * 1e-3));
        for (m, row) in block.iter_mut().enumerate() {
            row[m] += 2.0;
        }
        let solution = solve(block, multiply(&block, &STATE));
        for (found, wanted) in solution.into_iter().zip(STATE) {
            assert!((found - wanted).abs() < 1e-12, "{found} {wanted}");
        }
    }

    #[test]
    fn the_exact_solution_is_a_polynomial() {
        assert_eq!(exact([0.0; 3]), [2.0, 1.0, 2.0, 2.0, 5.0]);
        let ends = exact([1.0; 3]);
        let sums = EXACT.map(|c| c.iter().sum::<f64>());
        assert!(ends.iter().zip(sums).all(|(found, sum)| (found - sum).abs() < 1e-12));
    }

    #[test]
    fn fourth_differences_of_a_cubic_are_none_inside() {
        let line: Vec<State> = (0..9).map(|x| [f64::from(x).powi(3); 5]).collect();
        assert!((3..=5).all(|at| fourth(&line, at, 2).abs() < 1e-9));
        assert_eq!(fourth(&line, 1, 0), 5.0 - 4.0 * 8.0 + 27.0);
    }
}
