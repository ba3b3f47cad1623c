//! The cube of LU: its fields, the residual of the flow's equations, and the two sweeps over all points that
//! reduce it.

use std::ops::Range;

use guest::words::Words;

use super::super::Result;
use super::super::memory::{Element, reals};
use super::super::team::Member;
use super::flow::{Axis, Block, State, exact, multiply, pressure, solve};

/// The relaxation factor: each point changes by this multiple of the correction that the equations give.
const OVER: f64 = 1.2;

/// A state for each point of a cube.
struct Field {
    /// The number of points along each side.
    side: usize,
    values: Words,
}

impl Field {
    fn of(side: usize) -> Result<Self> {
        Ok(Self { side, values: reals(5 * side.pow(3))? })
    }

    fn get(&self, place: [usize; 3]) -> State {
        let values = &self.values[self.index(place)..][..5];
        std::array::from_fn(|m| values[m].get())
    }

    fn set(&self, place: [usize; 3], state: State) {
        let values = &self.values[self.index(place)..][..5];
        values.iter().zip(state).for_each(|(value, variable)| value.set(variable));
    }

    fn add(&self, place: [usize; 3], state: State) {
        let old = self.get(place);
        self.set(place, std::array::from_fn(|m| old[m] + state[m]));
    }

    fn index(&self, [z, y, x]: [usize; 3]) -> usize {
        5 * ((z * self.side + y) * self.side + x)
    }
}

/// Space for a line of states and its residual.
pub struct Line {
    states: Vec<State>,
    residual: Vec<State>,
}

impl Line {
    /// A line as long as the cube's side.
    pub fn of(side: usize) -> Self {
        Self { states: vec![[0.0; 5]; side], residual: vec![[0.0; 5]; side] }
    }

    /// Adds what derivatives along a line of `from` contribute to the inner points of `to`.
    fn differ<const FLOW: usize>(
        &mut self,
        axis: Axis<FLOW>,
        from: &Field,
        to: &Field,
        place: impl Fn(usize) -> [usize; 3],
    ) {
        for (at, state) in self.states.iter_mut().enumerate() {
            *state = from.get(place(at));
        }
        self.residual.fill([0.0; 5]);
        axis.differ(&self.states, &mut self.residual);
        for (at, state) in self.residual.iter().enumerate().take(from.side - 1).skip(1) {
            to.add(place(at), *state);
        }
    }
}

/// The fields, and the parameters of the equations. The index of a point is (z, y, x).
pub struct Cube {
    side: usize,
    /// The length of a time step.
    step: f64,
    x: Axis<1>,
    y: Axis<2>,
    z: Axis<3>,
    solution: Field,
    /// The residual of the solution; later the changes that correct the solution.
    residual: Field,
    /// The residual of the exact solution.
    forcing: Field,
}

impl Cube {
    /// Allocates a cube with `side` points along each side, for time steps of length `step`.
    pub fn of(side: usize, step: f64) -> Result<Self> {
        Ok(Self {
            side,
            step,
            x: Axis::of(side, 0.75),
            y: Axis::of(side, 0.75),
            z: Axis::of(side, 1.0),
            solution: Field::of(side)?,
            residual: Field::of(side)?,
            forcing: Field::of(side)?,
        })
    }

    /// The size of all fields in bytes.
    pub fn bytes(side: usize) -> u64 {
        3 * 5 * 8 * (side as u64).pow(3)
    }

    /// The indices of all points that are not on the surface, along one axis.
    fn inside(&self) -> Range<usize> {
        1..self.side - 1
    }

    /// The points of some planes and rows.
    fn places(&self, planes: Range<usize>, rows: Range<usize>) -> impl Iterator<Item = [usize; 3]> {
        planes.flat_map(move |z| {
            let columns = rows.clone();
            rows.clone().flat_map(move |y| columns.clone().map(move |x| [z, y, x]))
        })
    }

    /// The points of this thread's planes that are not on the surface.
    fn own_inside(&self, member: &Member<'_>) -> impl Iterator<Item = [usize; 3]> {
        self.places(member.share_of(self.inside()), self.inside())
    }

    /// The exact solution at a point.
    fn exact(&self, [z, y, x]: [usize; 3]) -> State {
        exact([x, y, z].map(|at| at as f64 / (self.side - 1) as f64))
    }

    /// Sets the solution to its first state: exact on the surface, and interpolated between the faces inside.
    pub fn start(&self, member: &Member<'_>) {
        for place in self.places(member.share(self.side), 0..self.side) {
            let last = self.side - 1;
            let is_inside = place.iter().all(|at| self.inside().contains(at));
            let state = match is_inside {
                false => self.exact(place),
                true => {
                    let along = [0, 1, 2].map(|axis: usize| {
                        let face = |at: usize| {
                            let mut face = place;
                            face[axis] = at;
                            self.exact(face)
                        };
                        let far = place[axis] as f64 / last as f64;
                        let (here, there) = (face(0), face(last));
                        std::array::from_fn(|m| (1.0 - far) * here[m] + far * there[m])
                    });
                    blend(along)
                }
            };
            self.solution.set(place, state);
        }
        member.wait();
    }

    /// Computes the forcing, with which the residual of the exact solution is 0.
    pub fn force(&self, member: &Member<'_>, line: &mut Line) {
        for place in self.places(member.share(self.side), 0..self.side) {
            self.residual.set(place, self.exact(place));
            self.forcing.set(place, [0.0; 5]);
        }
        member.wait();
        self.differ(member, &self.residual, &self.forcing, line);
    }

    /// Computes the residual of the solution.
    pub fn make_residual(&self, member: &Member<'_>, line: &mut Line) {
        for place in self.places(member.share(self.side), 0..self.side) {
            self.residual.set(place, self.forcing.get(place).map(|variable| -variable));
        }
        member.wait();
        self.differ(member, &self.solution, &self.residual, line);
    }

    /// Applies the equations to a field: along x and y by planes, then along z.
    fn differ(&self, member: &Member<'_>, from: &Field, to: &Field, line: &mut Line) {
        for z in member.share_of(self.inside()) {
            for y in self.inside() {
                line.differ(self.x, from, to, |x| [z, y, x]);
            }
            for x in self.inside() {
                line.differ(self.y, from, to, |y| [z, y, x]);
            }
        }
        member.wait();
        for y in member.share_of(self.inside()) {
            for x in self.inside() {
                line.differ(self.z, from, to, |z| [z, y, x]);
            }
        }
        member.wait();
    }

    /// Makes a time step. `number` counts them from 0, over all calls.
    pub fn advance(&self, member: &Member<'_>, number: usize, line: &mut Line) {
        for place in self.own_inside(member) {
            let change = self.residual.get(place).map(|variable| self.step * variable);
            self.residual.set(place, change);
        }
        member.wait();
        self.sweep_up(member, 2 * number);
        self.sweep_down(member, 2 * number + 1);
        member.wait();
        let part = 1.0 / (OVER * (2.0 - OVER));
        for place in self.own_inside(member) {
            self.solution.add(place, self.residual.get(place).map(|change| part * change));
        }
        member.wait();
        self.make_residual(member, line);
    }

    /// Solves the lower triangular part, each point after those before it. Each thread has a part of every plane, and
    /// waits for the preceding thread at each plane.
    fn sweep_up(&self, member: &Member<'_>, sweep: usize) {
        let done = sweep * self.inside().len();
        for z in self.inside() {
            if member.number > 0 {
                member.await_steps(member.number - 1, done + z);
            }
            for y in member.share_of(self.inside()) {
                for x in self.inside() {
                    self.solve_lower([z, y, x]);
                }
            }
            member.step();
        }
    }

    /// Solves the upper triangular part, in the opposite order.
    fn sweep_down(&self, member: &Member<'_>, sweep: usize) {
        let done = sweep * self.inside().len();
        for (steps, z) in (done + 1..).zip(self.inside().rev()) {
            if member.number + 1 < member.threads() {
                member.await_steps(member.number + 1, steps);
            }
            for y in member.share_of(self.inside()).rev() {
                for x in self.inside().rev() {
                    self.solve_upper([z, y, x]);
                }
            }
            member.step();
        }
    }

    fn solve_lower(&self, place: [usize; 3]) {
        let [z, y, x] = place;
        let others = self.others([[z - 1, y, x], [z, y - 1, x], [z, y, x - 1]], -1.0);
        let own = self.residual.get(place);
        let right = std::array::from_fn(|m| own[m] - OVER * others[m]);
        self.residual.set(place, solve(self.own(place), right));
    }

    fn solve_upper(&self, place: [usize; 3]) {
        let [z, y, x] = place;
        let others = self.others([[z + 1, y, x], [z, y + 1, x], [z, y, x + 1]], 1.0);
        let less = solve(self.own(place), others.map(|other| OVER * other));
        self.residual.add(place, less.map(|change| -change));
    }

    /// How the changes of three neighbours, along z, y and x, affect a point.
    fn others(&self, places: [[usize; 3]; 3], side: f64) -> State {
        let [z, y, x] = places.map(|place| (self.solution.get(place), self.residual.get(place)));
        let parts = [
            multiply(&self.z.neighbour(&z.0, self.step, side), &z.1),
            multiply(&self.y.neighbour(&y.0, self.step, side), &y.1),
            multiply(&self.x.neighbour(&x.0, self.step, side), &x.1),
        ];
        std::array::from_fn(|m| parts[0][m] + parts[1][m] + parts[2][m])
    }

    /// How the change of a point affects the point itself.
    fn own(&self, place: [usize; 3]) -> Block {
        let state = self.solution.get(place);
        let mut block = [[0.0; 5]; 5];
        (0..5).for_each(|m| block[m][m] = 1.0);
        self.x.add_own(&state, self.step, &mut block);
        self.y.add_own(&state, self.step, &mut block);
        self.z.add_own(&state, self.step, &mut block);
        block
    }

    /// The root mean squares of the residual.
    pub fn residuals(&self, member: &Member<'_>) -> State {
        self.norms(member, |place| self.residual.get(place))
    }

    /// The root mean squares of the error of the solution.
    pub fn errors(&self, member: &Member<'_>) -> State {
        self.norms(member, |place| {
            let (exact, found) = (self.exact(place), self.solution.get(place));
            std::array::from_fn(|m| exact[m] - found[m])
        })
    }

    fn norms(&self, member: &Member<'_>, value: impl Fn([usize; 3]) -> State) -> State {
        let mut sums = [0.0; 5];
        for state in self.own_inside(member).map(value) {
            sums.iter_mut().zip(state).for_each(|(sum, variable)| *sum += variable * variable);
        }
        let points = (self.inside().len() as f64).powi(3);
        member.sum(sums).map(|sum| (sum / points).sqrt())
    }

    /// The integral of the pressure over the surface of a box inside the cube.
    pub fn surface_integral(&self) -> f64 {
        let last = self.side - 1;
        let bounds = [2..=last - 1, 1..=last - 2, 1..=last - 1];
        let area = 1.0 / (last as f64).powi(2);
        let faces = |normal: usize, across: [usize; 2]| -> f64 {
            let [first, second] = across.map(|axis| bounds[axis].clone());
            let at = |place: [usize; 3]| pressure(&self.solution.get(place));
            let mut sum = 0.0;
            for a in *first.start()..*first.end() {
                for b in *second.start()..*second.end() {
                    for end in [*bounds[normal].start(), *bounds[normal].end()] {
                        for (a, b) in [(a, b), (a, b + 1), (a + 1, b), (a + 1, b + 1)] {
                            let mut place = [0; 3];
                            place[normal] = end;
                            place[across[0]] = a;
                            place[across[1]] = b;
                            sum += at(place);
                        }
                    }
                }
            }
            sum * area
        };
        0.25 * (faces(0, [1, 2]) + faces(1, [0, 2]) + faces(2, [0, 1]))
    }
}

/// Interpolates between all faces of a cube, given the interpolations between the three pairs of faces.
fn blend([a, b, c]: [State; 3]) -> State {
    std::array::from_fn(|m| {
        let (a, b, c) = (a[m], b[m], c[m]);
        a + b + c - a * b - b * c - c * a + a * b * c
    })
}
