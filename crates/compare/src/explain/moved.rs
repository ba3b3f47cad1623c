//! What a function calls on one side only, and both sides call elsewhere.

use serde::Serialize;

use super::calls::{Call, Walked, is_on_both, sums, together};

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

/// The cause is not looked for in a callee if this share of its change moved to or from other callees of its caller.
const NOTABLE: f64 = 0.1;

/// Whether a part of the change of `callee` is work that its caller `call` does in another callee on one side.
pub(super) fn is_beside(call: &Call<'_, '_>, callee: &Call<'_, '_>) -> bool {
    let change = |[base, new]: [f64; 2]| new - base;
    let inside = together(callee.paths, Some(callee.name()));
    let has_moved = |(name, own): (&str, [f64; 2])| {
        let whole = || change(sums(call.paths_of(name, Some(call.name()))));
        let moved = change(own);
        (moved / callee.change()).abs() >= NOTABLE
            && !is_on_both(&own)
            && (whole() - moved) / moved <= -HALF
    };
    inside.into_iter().any(has_moved)
}

/// Finds the callee with the largest change in the direction of the change of `paths`, which are those of the holder `name`.
/// `entries` gives those of a function. `None` if there is none, or it has less than half of their change.
pub(super) fn moved<'w, 'a: 'w>(
    name: &str,
    paths: impl IntoIterator<Item = &'w Walked<'a>>,
    kernel: Call<'_, 'a>,
    entries: impl Fn(&str) -> Option<[f64; 2]>,
) -> Option<Moved> {
    let mut inside = together(paths, Some(name));
    let [base, new] = inside.remove(name)?;
    let share = |[before, now]: [f64; 2]| (now - before) / (new - base);
    let is_large = |it: &[f64; 2]| share(*it) >= HALF && !is_on_both(it);
    let mut found: Vec<_> = inside.into_iter().filter(|(_, it)| is_large(it)).collect();
    found.sort_by(|(_, one), (_, other)| share(*other).total_cmp(&share(*one)));
    let change = |[before, now]: [f64; 2]| now - before;
    found.into_iter().find_map(|(name, inside)| {
        let instructions = sums(kernel.paths_of(name, None));
        // It is called on both sides there, and costs more or less wherever it is called.
        let is_everywhere =
            !inside.contains(&0.0) && change(instructions) / change(inside) > 1.0 - HALF;
        let found =
            || Moved { name: name.to_owned(), inside, instructions, entries: entries(name) };
        (is_on_both(&instructions) && !is_everywhere).then(found)
    })
}
