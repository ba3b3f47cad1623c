//! A cubic periodic grid, and the four operators between grids. They are 27-point stencils whose weights depend only
//! on the distance, so neighbours share sums over edges and corners.
//!
//! Each thread computes a share of the planes. Every operator returns when all threads are done.

use std::ops::Range;
use std::sync::atomic::AtomicU64;

use guest::words::Words;

use super::super::Result;
use super::super::memory::{Element, reals};
use super::super::team::Member;

/// Weights of a stencil by distance: the centre, faces, edges, corners.
pub type Weights = [f64; 4];

/// A grid with a border of one point on each side that repeats the opposite side.
pub struct Grid {
    /// The number of points along each side, border included.
    side: usize,
    points: Words,
}

/// Sums over the neighbours of a row, point by point.
pub struct Sums {
    /// Over the four nearest rows.
    near: Vec<f64>,
    /// Over the four rows beyond their edges.
    far: Vec<f64>,
}

impl Sums {
    /// Space for the sums of a row, for a grid with `points` along each side, border not included.
    pub fn of(points: usize) -> Self {
        Self { near: vec![0.0; points + 2], far: vec![0.0; points + 2] }
    }

    /// Adds up the rows around row (`z`, `y`) of a grid.
    fn add_up(&mut self, grid: &Grid, z: usize, y: usize) {
        let row = |z, y| grid.row(z, y);
        add(&mut self.near, [row(z, y - 1), row(z, y + 1), row(z - 1, y), row(z + 1, y)]);
        let far = [row(z - 1, y - 1), row(z - 1, y + 1), row(z + 1, y - 1), row(z + 1, y + 1)];
        add(&mut self.far, far);
    }
}

/// Adds up rows into `sums`, as far as the rows reach.
fn add<const N: usize>(sums: &mut [f64], rows: [&[AtomicU64]; N]) {
    for (x, sum) in sums[..rows[0].len()].iter_mut().enumerate() {
        *sum = rows.iter().map(|row| row[x].get()).sum();
    }
}

impl Grid {
    /// A grid with `points` along each side, without the border.
    pub fn of(points: usize) -> Result<Self> {
        let side = points + 2;
        Ok(Self { side, points: reals(side * side * side)? })
    }

    /// The size of such a grid in bytes.
    pub fn bytes(points: usize) -> u64 {
        8 * (points as u64 + 2).pow(3)
    }

    /// The indices inside the border.
    pub fn inside(&self) -> Range<usize> {
        1..self.side - 1
    }

    /// The points that differ only in the last coordinate.
    fn row(&self, z: usize, y: usize) -> &[AtomicU64] {
        &self.points[(z * self.side + y) * self.side..][..self.side]
    }

    /// Sets the point at an index.
    pub fn set(&self, [z, y, x]: [usize; 3], value: f64) {
        self.row(z, y)[x].set(value);
    }

    /// Sets all points to 0.
    pub fn clear(&self, member: &Member<'_>) {
        for z in member.share(self.side) {
            (0..self.side).flat_map(|y| self.row(z, y)).for_each(|point| point.set(0.0));
        }
        member.wait();
    }

    /// Copies the inner points to the border on the opposite side.
    pub fn wrap(&self, member: &Member<'_>) {
        let last = self.side - 2;
        for z in member.share_of(self.inside()) {
            for row in self.inside().map(|y| self.row(z, y)) {
                row[0].set(row[last].get());
                row[last + 1].set(row[1].get());
            }
            copy(self.row(z, last), self.row(z, 0));
            copy(self.row(z, 1), self.row(z, last + 1));
        }
        member.wait();
        for y in member.share(self.side) {
            copy(self.row(last, y), self.row(0, y));
            copy(self.row(1, y), self.row(last + 1, y));
        }
        member.wait();
    }

    /// The root mean square of all inner points.
    pub fn norm(&self, member: &Member<'_>) -> f64 {
        let planes = member.share_of(self.inside());
        let rows = planes.flat_map(|z| self.inside().map(move |y| self.row(z, y)));
        let squares = rows.flat_map(|row| &row[self.inside()]).map(|point| point.get().powi(2));
        let [sum] = member.sum([squares.sum()]);
        (sum / (self.inside().len() as f64).powi(3)).sqrt()
    }

    /// Sets the grid to `right - A solution`. The faces' weight in `a` is 0, and is not used.
    pub fn residual(
        &self,
        member: &Member<'_>,
        solution: &Self,
        right: &Self,
        a: Weights,
        sums: &mut Sums,
    ) {
        for z in member.share_of(self.inside()) {
            for y in self.inside() {
                sums.add_up(solution, z, y);
                let Sums { near, far } = &*sums;
                let (own, solution, right) = (self.row(z, y), solution.row(z, y), right.row(z, y));
                for x in self.inside() {
                    let edges = far[x] + near[x - 1] + near[x + 1];
                    let corners = far[x - 1] + far[x + 1];
                    let product = a[0] * solution[x].get() + a[2] * edges + a[3] * corners;
                    own[x].set(right[x].get() - product);
                }
            }
        }
        self.wrap(member);
    }

    /// Adds `C residual`, an approximate solution for the residual. The corners' weight in `c` is 0, and is
    /// not used.
    pub fn smooth(&self, member: &Member<'_>, residual: &Self, c: Weights, sums: &mut Sums) {
        for z in member.share_of(self.inside()) {
            for y in self.inside() {
                sums.add_up(residual, z, y);
                let Sums { near, far } = &*sums;
                let (own, residual) = (self.row(z, y), residual.row(z, y));
                for x in self.inside() {
                    let faces = residual[x - 1].get() + residual[x + 1].get() + near[x];
                    let edges = far[x] + near[x - 1] + near[x + 1];
                    let product = c[0] * residual[x].get() + c[1] * faces + c[2] * edges;
                    own[x].set(own[x].get() + product);
                }
            }
        }
        self.wrap(member);
    }

    /// Sets the grid to the projection of a grid twice as fine. The weight of a neighbour halves with each step of
    /// distance.
    pub fn project(&self, member: &Member<'_>, fine: &Self, sums: &mut Sums) {
        for z in member.share_of(self.inside()) {
            for y in self.inside() {
                sums.add_up(fine, 2 * z, 2 * y);
                let Sums { near, far } = &*sums;
                let (own, fine) = (self.row(z, y), fine.row(2 * z, 2 * y));
                for x in self.inside() {
                    let (point, at) = (&own[x], 2 * x);
                    let faces = fine[at - 1].get() + fine[at + 1].get() + near[at];
                    let edges = near[at - 1] + near[at + 1] + far[at];
                    let corners = far[at - 1] + far[at + 1];
                    let centre = fine[at].get();
                    point.set(0.5 * centre + 0.25 * faces + 0.125 * edges + 0.0625 * corners);
                }
            }
        }
        self.wrap(member);
    }

    /// Adds the interpolation of a grid half as fine, border included: between its points the mean of the two, four
    /// or eight around.
    pub fn interpolate(&self, member: &Member<'_>, coarse: &Self, sums: &mut Sums) {
        let between = 0..coarse.side - 1;
        for z in member.share(between.len()) {
            for y in between.clone() {
                let row = |dz, dy| coarse.row(z + dz, y + dy);
                let spread = |[dz, dy]: [usize; 2], means: &[f64]| {
                    let own = self.row(2 * z + dz, 2 * y + dy).chunks_exact(2);
                    for (pair, mean) in own.zip(means.windows(2)) {
                        pair[0].set(pair[0].get() + mean[0]);
                        pair[1].set(pair[1].get() + 0.5 * (mean[0] + mean[1]));
                    }
                };
                let means = &mut sums.near[..coarse.side];
                add(means, [row(0, 0)]);
                spread([0, 0], means);
                add(means, [row(0, 0), row(0, 1)]);
                means.iter_mut().for_each(|mean| *mean *= 0.5);
                spread([0, 1], means);
                add(means, [row(0, 0), row(1, 0)]);
                means.iter_mut().for_each(|mean| *mean *= 0.5);
                spread([1, 0], means);
                add(means, [row(0, 0), row(0, 1), row(1, 0), row(1, 1)]);
                means.iter_mut().for_each(|mean| *mean *= 0.25);
                spread([1, 1], means);
            }
        }
        member.wait();
    }
}

fn copy(from: &[AtomicU64], to: &[AtomicU64]) {
    for (from, to) in from.iter().zip(to) {
        to.set(from.get());
    }
}
