//! The place in the source at which the code of a function differs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::difference::{have_lines, inlined, unmatched};
use crate::image::Image;
use crate::listing::{Line, listings_of};

/// Where the code of a function differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedPlace {
    /// The inlined function whose number of instructions changed most; or, if none changed, that has most of the
    /// instructions that only one kernel has. `None` if that is the function itself.
    pub inlined: Option<String>,
    /// The line that most of these instructions come from.
    pub line: ChangedLine,
}

/// A line of the source whose code differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangedLine {
    /// File and line, such as `mm/memory.c:3312`.
    pub place: String,
    /// Whether it is a line of the baseline, because most of the instructions are only there. Otherwise it is a line of
    /// the other kernel.
    pub of_base: bool,
    /// Whether at least half of the differing instructions are of this line. Otherwise the change may be elsewhere.
    pub mostly: bool,
}

/// Whether the code of a function differs.
pub fn differs(base: &Image<'_>, new: &Image<'_>, name: &str) -> bool {
    let images = [base, new];
    let pieces = images.map(|image| image.pieces_of(name));
    let bodies = unmatched(pieces.each_ref().map(Vec::as_slice), images);
    bodies.iter().any(|it| !it.is_empty())
}

/// Finds where the code of a function differs; `None` if it does not, or a kernel has no debug information of it.
pub fn changed_place(base: &Image<'_>, new: &Image<'_>, name: &str) -> Option<ChangedPlace> {
    let images = [base, new];
    let pieces = images.map(|image| image.pieces_of(name));
    let bodies = unmatched(pieces.each_ref().map(Vec::as_slice), images);
    if !have_lines(&bodies, images) {
        return None;
    }
    let by_key = inlined(&bodies, images);
    let listings = listings_of(bodies, images);
    let differing: Vec<&Line> =
        listings.iter().flat_map(|it| &it.lines).filter(|line| !line.same).collect();
    // An instruction that has no counterpart says more than one with another register.
    let alone: Vec<&Line> =
        differing.iter().copied().filter(|it| it.at.iter().flatten().count() == 1).collect();
    let (inlined, counted) = match grown(&alone) {
        Some(inlined) => (inlined.cloned(), &alone),
        None => (by_key, &differing),
    };
    let ((place, of_base), share) = most(counted, inlined.as_ref())?;
    let line = ChangedLine { place, of_base, mostly: share >= MOSTLY };
    Some(ChangedPlace { inlined, line })
}

/// A line has most of the differing instructions from this share on.
const MOSTLY: f64 = 0.5;

/// The inlined function, or the function itself, whose number of instructions changed most; `None` if none changed.
fn grown<'a>(alone: &[&'a Line]) -> Option<Option<&'a String>> {
    let mut by_function = BTreeMap::<Option<&String>, i64>::new();
    for line in alone {
        for (at, sign) in line.at.iter().zip([-1, 1]) {
            if let Some(origin) = at.as_ref().and_then(|it| it.origin.as_ref()) {
                *by_function.entry(origin.inlined.as_ref()).or_default() += sign;
            }
        }
    }
    by_function.retain(|_, change| *change != 0);
    let most = by_function.into_iter().rev().max_by_key(|(_, change)| change.unsigned_abs());
    most.map(|(function, _)| function)
}

/// The line that most of the instructions come from, among those of an inlined function or of the function itself, and
/// whether it is a line of the baseline; and its share of all instructions whose line is known. Of two such lines it is
/// that of the other kernel, and then the first.
fn most(differing: &[&Line], inlined: Option<&String>) -> Option<((String, bool), f64)> {
    let mut counts = HashMap::<(bool, &str), (u64, u64)>::new();
    let sides = differing.iter().flat_map(|line| line.at.iter().zip([true, false]));
    let places = sides.filter_map(|(at, of_base)| Some((at.as_ref()?.origin.as_ref()?, of_base)));
    let mut all = 0;
    for ((origin, of_base), number) in places.zip(0..) {
        let Some(line) = origin.line.as_deref() else { continue };
        all += 1;
        if origin.inlined.as_ref() == inlined {
            counts.entry((of_base, line)).or_insert((0, number)).0 += 1;
        }
    }
    let most = counts
        .into_iter()
        .min_by_key(|&((of_base, _), (count, first))| (Reverse(count), of_base, first));
    most.map(|((of_base, place), (count, _))| {
        ((place.to_owned(), of_base), count as f64 / f64::from(all))
    })
}
