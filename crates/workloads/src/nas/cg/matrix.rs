//! The matrix of CG: sparse, symmetric and positive definite. It is the weighted sum of the outer products of sparse
//! random vectors, one for each row (RNR-94-007, section 3.4.4).

use std::ops::Range;

use guest::words::{HalfWords, Words};

use super::super::Result;
use super::super::memory::{Element, integers, reals};
use super::super::random::Random;
use super::super::team::Member;
use super::Problem;

/// The smallest weight. It is also added to the diagonal.
const CONDITION: f64 = 0.1;
const SEED: u64 = 314_159_265;
/// The element of a vector in its own row.
const OWN: f64 = 0.5;

/// Rows of values, each with its column.
pub struct Matrix {
    problem: Problem,
    /// The largest number of elements of a vector.
    most: usize,
    values: Words,
    columns: HalfWords,
    /// The start and end of each row in `values`. The rows of a thread are consecutive. Free space follows them,
    /// because how many products share a place is known only after they are added up.
    starts: HalfWords,
    ends: HalfWords,
    /// The space of each thread.
    rooms: HalfWords,
    /// For each vector: the number of its elements, where they are, their values, and its weight.
    lengths: HalfWords,
    places: HalfWords,
    elements: Words,
    weights: Words,
}

/// For each row of a thread, the vectors that have an element there.
struct Touching {
    /// Where the vectors of each row begin in `vectors`, and where those of the last row end.
    starts: Vec<usize>,
    vectors: Vec<u32>,
}

impl Matrix {
    /// The size of all arrays in bytes.
    pub fn bytes(problem: Problem) -> u64 {
        let (rows, most) = (problem.rows as u64, problem.nonzeros as u64 + 1);
        rows * (12 * most * most + 12 * most + 20)
    }

    /// Allocates the matrix of the problem, which `threads` threads make.
    pub fn of(problem: Problem, threads: usize) -> Result<Self> {
        let (rows, most) = (problem.rows, problem.nonzeros + 1);
        Ok(Self {
            problem,
            most,
            values: reals(rows * most * most)?,
            columns: integers(rows * most * most)?,
            starts: integers(rows)?,
            ends: integers(rows)?,
            rooms: integers(threads)?,
            lengths: integers(rows)?,
            places: integers(rows * most)?,
            elements: reals(rows * most)?,
            weights: reals(rows)?,
        })
    }

    /// Makes this thread's rows.
    pub fn fill(&self, member: &Member<'_>) {
        let rows = member.share(self.problem.rows);
        self.draw_vectors(rows.clone());
        member.wait();
        let touching = self.touching(rows.clone());
        let room = touching.vectors.iter().map(|&vector| self.lengths[vector as usize].get()).sum();
        self.rooms[member.number].set(room);
        member.wait();
        let rooms = self.rooms[..member.number].iter().map(|room| room.get() as usize);
        let mut end: usize = rooms.sum();
        let mut products = Vec::new();
        for (place, row) in rows.enumerate() {
            self.starts[row].set(end as u32);
            let vectors = touching.starts[place]..touching.starts[place + 1];
            self.multiply_out(row, &touching.vectors[vectors], &mut products);
            for &(column, value) in &products {
                self.columns[end].set(column);
                self.values[end].set(value);
                end += 1;
            }
            self.ends[row].set(end as u32);
        }
        member.wait();
    }

    /// Draws the vectors of these rows. How many random numbers a vector takes is known only after it is drawn, so
    /// all preceding vectors are drawn too.
    fn draw_vectors(&self, rows: Range<usize>) {
        // The first number of the sequence is skipped.
        let mut random = Random::new(SEED).skip(1);
        let size = self.problem.rows.next_power_of_two() as f64;
        let ratio = CONDITION.powf(1.0 / self.problem.rows as f64);
        let mut weight = 1.0;
        let mut vector: Vec<(u32, f64)> = Vec::with_capacity(self.most);
        for row in 0..rows.end {
            vector.clear();
            while vector.len() < self.problem.nonzeros {
                let value = random.draw();
                let place = (size * random.draw()) as u32;
                let is_new = vector.iter().all(|(other, _)| *other != place);
                if (place as usize) < self.problem.rows && is_new {
                    vector.push((place, value));
                }
            }
            if rows.contains(&row) {
                match vector.iter_mut().find(|(place, _)| *place as usize == row) {
                    Some((_, value)) => *value = OWN,
                    None => vector.push((row as u32, OWN)),
                }
                self.keep_vector(row, weight, &vector);
            }
            weight *= ratio;
        }
    }

    fn keep_vector(&self, row: usize, weight: f64, vector: &[(u32, f64)]) {
        self.weights[row].set(weight);
        self.lengths[row].set(vector.len() as u32);
        for (slot, (place, value)) in (row * self.most..).zip(vector) {
            self.places[slot].set(*place);
            self.elements[slot].set(*value);
        }
    }

    /// The slots of a vector's elements.
    fn slots(&self, vector: usize) -> Range<usize> {
        let start = vector * self.most;
        start..start + self.lengths[vector].get() as usize
    }

    /// Finds the vectors that have elements in these rows. Those of each row are in order.
    fn touching(&self, rows: Range<usize>) -> Touching {
        let places = |vector| self.places[self.slots(vector)].iter().map(|it| it.get() as usize);
        let all = 0..self.problem.rows;
        let mut starts = vec![0; rows.len() + 1];
        for place in all.clone().flat_map(places).filter(|place| rows.contains(place)) {
            starts[place - rows.start + 1] += 1;
        }
        for row in 0..rows.len() {
            starts[row + 1] += starts[row];
        }
        let mut next = starts.clone();
        let mut vectors = vec![0; starts[rows.len()]];
        for vector in all {
            for place in places(vector).filter(|place| rows.contains(place)) {
                let next = &mut next[place - rows.start];
                vectors[*next] = vector as u32;
                *next += 1;
            }
        }
        Touching { starts, vectors }
    }

    /// Adds up what the outer products of `vectors` contribute to a row, by columns.
    fn multiply_out(&self, row: usize, vectors: &[u32], products: &mut Vec<(u32, f64)>) {
        products.clear();
        for vector in vectors.iter().map(|&vector| vector as usize) {
            let slots = self.slots(vector);
            let here = slots.clone().find(|&slot| self.places[slot].get() as usize == row);
            let factor = self.elements[here.expect("it has an element here")].get();
            let factor = factor * self.weights[vector].get();
            for slot in slots {
                let column = self.places[slot].get();
                let mut value = self.elements[slot].get() * factor;
                if vector == row && column as usize == row {
                    value += CONDITION - self.problem.shift;
                }
                products.push((column, value));
            }
        }
        products.sort_by_key(|(column, _)| *column);
        products.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
    }

    /// The product of a row and a vector.
    pub fn times(&self, row: usize, vector: &Words) -> f64 {
        let vector = &vector[..self.problem.rows];
        let places = self.starts[row].get() as usize..self.ends[row].get() as usize;
        let row = self.values[places.clone()].iter().zip(&self.columns[places]);
        row.fold(0.0, |sum, (value, column)| {
            sum + value.get() * vector[column.get() as usize].get()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::team::Team;
    use super::*;

    /// The products with all unit vectors give all elements.
    #[test]
    fn a_matrix_is_symmetric_and_the_same_for_any_number_of_threads() {
        let problem = Problem { rows: 150, nonzeros: 4, iterations: 1, shift: 10.0 };
        let dense = |threads: usize| {
            let matrix = Matrix::of(problem, threads).unwrap();
            Team::new(threads).run(|member| matrix.fill(member));
            let unit = reals(problem.rows).unwrap();
            let mut dense = vec![vec![0.0; problem.rows]; problem.rows];
            for column in 0..problem.rows {
                unit[column].set(1.0);
                for (row, elements) in dense.iter_mut().enumerate() {
                    elements[column] = matrix.times(row, &unit);
                }
                unit[column].set(0.0);
            }
            dense
        };
        let one = dense(1);
        assert_eq!(one, dense(3));
        for (row, elements) in one.iter().enumerate() {
            assert!(elements[row] < 0.0, "the shift is on the diagonal");
            for (column, element) in elements.iter().enumerate() {
                assert!((element - one[column][row]).abs() < 1e-15);
            }
        }
    }
}
