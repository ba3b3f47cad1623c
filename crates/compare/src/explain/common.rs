//! A function that many others call and that has much of a change, such as one that counts for statistics. No subtree of
//! the calls has it.

use std::collections::{BTreeMap, BTreeSet};

use kernelfiles::entry::is_entry;
use serde::Serialize;

use super::Paths;
use super::calls::{REST, added, asked, is_on_both, reason};
use super::joined::Pairs;
use super::loops::is_copy_loop;
use super::offset::are_one_name;

/// Such a function has at least this share of the change.
const LEAST: f64 = 0.25;
/// It has at least this number of callers.
const CALLERS: usize = 3;
/// No caller has more than this share of its change.
const MOST: f64 = 0.75;
/// Callers that one side alone has have at most this share of its change.
const HALF: f64 = 0.5;

/// A function with what it calls, wherever it is called.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CommonCallee {
    /// Its name.
    pub name: String,
    /// Its name in the baseline, if that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// Instructions on both sides.
    pub instructions: [f64; 2],
    /// Its share of the change.
    pub share: f64,
    /// The number of functions that call it.
    pub callers: usize,
}

/// What a function has on both sides, and in each caller.
#[derive(Default)]
struct Called<'a> {
    sums: [f64; 2],
    callers: BTreeMap<&'a str, [f64; 2]>,
}

impl Called<'_> {
    fn change(&self) -> f64 {
        self.sums[1] - self.sums[0]
    }

    /// Whether many functions call it, none of them has nearly all of its change, and its work did not move: both sides call
    /// it in most of them.
    fn is_common(&self) -> bool {
        let share = |[base, new]: &[f64; 2]| ((new - base) / self.change()).abs();
        let of_one_side: f64 = self.callers.values().filter(|it| !is_on_both(it)).map(share).sum();
        self.callers.len() >= CALLERS
            && self.callers.values().all(|it| share(it) <= MOST)
            && of_one_side <= HALF
    }
}

/// Finds the function of these paths that many others call and that has the largest part of the change `all`; of several
/// with this part, the innermost. Two of `pairs` are one function with the newer name if each side executes only one of
/// them, or their names differ in underscores alone. `None` if that part is below [`LEAST`]. Functions that are `named`
/// already are no answer.
pub fn common(paths: &Paths, pairs: &Pairs, all: f64, named: &[&str]) -> Option<CommonCallee> {
    let mut executed = BTreeMap::<&str, [f64; 2]>::new();
    let kernel = || paths.paths.iter().filter(|it| it.is_of_kernel());
    for path in kernel() {
        for frame in &path.frames {
            let sums = executed.entry(frame).or_default();
            *sums = added(*sums, [path.base, path.new]);
        }
    }
    // Names by which the newer kernel calls functions of other names.
    let [before, now] = [0, 1].map(|side| {
        let executed = &executed;
        move |name: &str| executed.get(name).map_or(0.0, |it| it[side])
    });
    let is_renamed = |one: &str, other: &str| {
        let is_moved = now(one) == 0.0 && before(other) == 0.0;
        now(one) < now(other) && (is_moved || are_one_name(one, other))
    };
    let renamed = pairs.iter().filter(|(one, other)| is_renamed(one, other));
    let renamed: BTreeMap<&str, &str> = renamed.map(|(one, other)| (&**one, &**other)).collect();
    let reasons: Vec<_> = kernel().map(reason).collect();
    let mut found = BTreeMap::<&str, Called<'_>>::new();
    for (path, reason) in kernel().zip(&reasons) {
        let frames = asked(path, reason).into_iter();
        let frames = frames.filter(|it| !is_entry(it) && !is_copy_loop(it));
        let frames: Vec<&str> = frames.map(|it| renamed.get(it).copied().unwrap_or(it)).collect();
        let mut seen = BTreeSet::new();
        for call in frames.windows(2).skip(1).filter(|call| seen.insert(call[1])) {
            let called = found.entry(call[1]).or_default();
            called.sums = added(called.sums, [path.base, path.new]);
            let caller = called.callers.entry(call[0]).or_default();
            *caller = added(*caller, [path.base, path.new]);
        }
    }
    let is_large = |share: f64| (LEAST..=1.0).contains(&share);
    found.retain(|name, it| {
        !named.contains(name)
            && is_large(it.change() / all)
            && is_on_both(&it.sums)
            && it.is_common()
    });
    let most = found.values().map(|it| it.change() / all).reduce(f64::max)?;
    let near = found.iter().filter(|(_, it)| it.change() / all >= (1.0 - REST) * most);
    let size = |it: &Called<'_>| it.sums[0] + it.sums[1];
    let (name, Called { sums, callers }) =
        near.min_by(|(_, one), (_, other)| size(one).total_cmp(&size(other)))?;
    let was = renamed.iter().find(|(_, new)| *new == name).map(|(old, _)| (*old).to_owned());
    Some(CommonCallee {
        name: (*name).to_owned(),
        was,
        instructions: *sums,
        share: (sums[1] - sums[0]) / all,
        callers: callers.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::followed;
    use super::*;

    /// `mod_state` was `__mod_state`, and `charge` in it is called by it alone. `lock` did not change.
    #[test]
    fn a_function_that_all_call_is_found() {
        let calls = |last: &'static str| {
            followed(&[
                ("kernel a map __mod_state", 10.0, 0.0),
                ("kernel a map mod_state", 0.0, 30.0),
                ("kernel b unmap __mod_state", 10.0, 0.0),
                ("kernel b unmap mod_state charge", 0.0, 25.0),
                ("kernel b unmap lock", 5.0, 5.0),
                ("kernel c", 10.0, 40.0),
                (last, 0.0, 15.0),
            ])
        };
        let pairs: Pairs = [("__mod_state".into(), "mod_state".into())].into();
        let found = common(&calls("kernel c free mod_state"), &pairs, 80.0, &[]).unwrap();
        let expected = CommonCallee {
            name: "mod_state".into(),
            was: Some("__mod_state".into()),
            instructions: [20.0, 70.0],
            share: 50.0 / 80.0,
            callers: 3,
        };
        assert_eq!(found, expected);
        let named = common(&calls("kernel c free mod_state"), &pairs, 80.0, &["mod_state"]);
        assert_eq!(named, None);
        // Two callers make two parts.
        assert_eq!(common(&calls("kernel b unmap mod_state"), &pairs, 80.0, &[]), None);
        // With a small part it is not the answer.
        assert_eq!(common(&calls("kernel c free mod_state"), &pairs, 300.0, &[]), None);
    }
}
