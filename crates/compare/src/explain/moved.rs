//! What a function calls on one side only, and both sides call elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::Path;
use super::calls::{Call, REST, added, sums};

/// A callee is named if it has at least this share of the change.
const HALF: f64 = 0.5;

/// A function that the holder of a change calls, directly or not, hardly on one side, and that this side calls elsewhere.
/// Examples are a context switch that another caller makes now, and work that was postponed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moved {
    /// The callee's name.
    pub name: String,
    /// Its instructions in the holder on both sides, with what it calls.
    pub inside: [f64; 2],
    /// Its instructions on both sides wherever it is called, with what it calls.
    pub instructions: [f64; 2],
    /// Its entries on both sides wherever it is called; `None` if a side has none.
    pub entries: Option<[f64; 2]>,
}

/// A callee with its instructions in the holder on both sides, and wherever it is called.
type Found<'a> = (&'a str, [f64; 2], [f64; 2]);

/// Finds it in `paths`, which are those of the holder `name`. `entries` gives those of a function. `None` if there is
/// none.
pub(super) fn moved(
    name: &str,
    paths: &[&Path],
    kernel: Call<'_, '_>,
    entries: impl Fn(&str) -> Option<[f64; 2]>,
) -> Option<Moved> {
    let (name, inside, instructions) = callee(name, paths, kernel)?;
    Some(Moved { name: name.to_owned(), inside, instructions, entries: entries(name) })
}

/// Finds the callee with the largest change in the direction of the change of `paths`, the outermost of several. `None`
/// if it has less than half of their change.
pub(super) fn callee<'a>(
    name: &str,
    paths: &[&'a Path],
    kernel: Call<'_, 'a>,
) -> Option<Found<'a>> {
    let [base, new] = sums(paths.iter().copied());
    let change = new - base;
    // A callee's instructions and its depth.
    let mut inside = BTreeMap::<&str, ([f64; 2], usize)>::new();
    for Path { frames, base, new } in paths {
        let called = frames.iter().map(String::as_str).enumerate();
        let called = called.skip_while(|(_, it)| *it != name).skip(1);
        let mut seen = BTreeSet::new();
        for (depth, frame) in called.filter(|(_, it)| *it != name) {
            let (sum, least) = inside.entry(frame).or_insert(([0.0; 2], depth));
            *least = depth.min(*least);
            if seen.insert(frame) {
                *sum = added(*sum, [*base, *new]);
            }
        }
    }
    let share = |[base, new]: [f64; 2]| (new - base) / change;
    let is_large = |it: &[f64; 2]| share(*it) >= HALF && !is_on_both(it);
    let mut found: Vec<_> = inside.into_iter().filter(|(_, (it, _))| is_large(it)).collect();
    found.sort_by(|(_, (one, near)), (_, (other, far))| {
        share(*other).total_cmp(&share(*one)).then(near.cmp(far))
    });
    let mut found = found.into_iter().map(|(name, (inside, _))| {
        let instructions = sums(kernel.paths_of(name, None));
        (name, inside, instructions)
    });
    found.find(|(_, _, instructions)| is_on_both(instructions))
}

/// Whether both sides executed a function that much that it is no other one by its name.
pub(super) fn is_on_both(&[base, new]: &[f64; 2]) -> bool {
    let least = base.min(new);
    least > 0.0 && least >= REST * base.max(new)
}
