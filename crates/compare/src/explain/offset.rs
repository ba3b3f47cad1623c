//! Takes functions whose changes offset each other as one, because work moved between them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::loops::are_one_loop;
use super::rename::{are_names_alike, is_profiled, share_words};
use super::{Code, Path};

/// Two functions with similar names, and a function and a callee that only one side executed, are taken as one if their
/// changes offset each other but for this share of the larger one.
const INLINED: f64 = 0.5;

/// A function in the holder of a change.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OwnCost {
    /// The function's name.
    pub name: String,
    /// Another function whose opposite change offsets most of this one's, as if work moved, or a function was renamed,
    /// inlined or no longer inlined. The own cost is that of both.
    pub with: Option<String>,
    /// Its own cost on both sides.
    pub own: [f64; 2],
    /// How its code differs; `None` if that is not known.
    pub code: Option<Code>,
    /// Whether both sides executed it, in the holder or elsewhere.
    pub is_on_both: bool,
    /// Whether its own cost, or that per entry, differs beyond luck; `None` if that is not known.
    pub beyond_luck: Option<bool>,
}

/// The functions around one that only one side executed. Those that one side alone executed are looked through.
#[derive(Debug, Default)]
pub struct Around<'a> {
    /// The innermost functions that called it, directly or not, and that both sides executed.
    callers: BTreeSet<&'a str>,
    /// The outermost functions that it called, directly or not, and that both sides executed.
    callees: BTreeSet<&'a str>,
}

impl Around<'_> {
    /// Whether two functions are in the same place: they have half of their callers and of their callees in common, or more.
    fn is_same_place(&self, other: &Self) -> bool {
        let share = |one: &BTreeSet<&str>, other: &BTreeSet<&str>| {
            let common = one.intersection(other).count();
            (common, 2 * common >= one.union(other).count())
        };
        let (callers, alike) = share(&self.callers, &other.callers);
        let (callees, do_alike) = share(&self.callees, &other.callees);
        alike && callers > 0 && do_alike && callees >= MANY
    }

    /// Whether two functions have the same callers and call nothing.
    fn is_leaf_beside(&self, other: &Self) -> bool {
        let is_leaf = self.callees.is_empty() && other.callees.is_empty();
        is_leaf && !self.callers.is_empty() && self.callers == other.callers
    }
}

/// Fewest callees that two functions in the same place have in common.
const MANY: usize = 2;

/// What is around each function that only one side executed.
pub type Surroundings<'a> = BTreeMap<&'a str, Around<'a>>;

/// Finds it in paths. `own` has the own cost of each function on both sides.
pub fn surroundings<'a>(paths: &[&'a Path], own: &BTreeMap<&'a str, [f64; 2]>) -> Surroundings<'a> {
    let is_on_both = |frame: &&str| own.get(frame).is_some_and(|sums| !sums.contains(&0.0));
    let mut found = Surroundings::new();
    for path in paths {
        let mut caller = None;
        let mut since = Vec::new();
        for frame in path.frames.iter().map(String::as_str) {
            if is_on_both(&frame) {
                caller = Some(frame);
                for one_sided in since.drain(..) {
                    found.entry(one_sided).or_default().callees.insert(frame);
                }
            } else {
                found.entry(frame).or_default().callers.extend(caller);
                since.push(frame);
            }
        }
    }
    found
}

/// Whether two functions whose changes are opposite are one.
type Rule<'a> = &'a dyn Fn(&OwnCost, &OwnCost) -> bool;

/// Takes functions whose changes offset each other as one. Names decide first: two whose names differ in underscores at
/// their ends, in `_noprof`, or as arm64's names of alternatives do, those that only one side executed before others. Then
/// two with similar names that only one side executed each, or two loops that do the same. Then calls do: two that only
/// one side executed each in the same place, and a function that both sides executed, with one that it alone calls on one
/// side, as if it were inlined on the other side. Both are about as large. Equal sizes alone are no evidence. The largest
/// change is first.
pub fn offset(parts: Vec<OwnCost>, around: &Surroundings<'_>) -> Vec<OwnCost> {
    let is_moved =
        |one: &OwnCost, other: &OwnCost| one.own.contains(&0.0) && other.own.contains(&0.0);
    let is_near = |one: &OwnCost, other: &OwnCost| do_offset(change(one), change(other));
    let has_same_name = |one: &OwnCost, other: &OwnCost| are_one_name(&one.name, &other.name);
    let kept_name =
        |one: &OwnCost, other: &OwnCost| is_moved(one, other) && has_same_name(one, other);
    let is_renamed = |one: &OwnCost, other: &OwnCost| {
        let is_by_name = || are_names_alike(&one.name, &other.name) && is_near(one, other);
        let is_one = || are_one_loop(&one.name, &other.name) || is_by_name();
        has_same_name(one, other) || is_moved(one, other) && is_one()
    };
    let calls = |one: &OwnCost, other: &OwnCost| {
        let around = around.get(&*other.name);
        around.is_some_and(|it| it.callers.len() == 1 && it.callers.contains(&*one.name))
    };
    let is_successor = |one: &OwnCost, other: &OwnCost| {
        let both = [one, other].map(|it| around.get(&*it.name));
        let is_same_place = matches!(both, [Some(one), Some(other)] if one.is_same_place(other));
        // Functions that call nothing have words in common instead.
        let is_leaf = || matches!(both, [Some(one), Some(other)] if one.is_leaf_beside(other));
        let is_one = is_same_place || (is_leaf() && share_words(&one.name, &other.name));
        is_moved(one, other) && is_one && is_near(one, other)
    };
    let is_inlined = |one: &OwnCost, other: &OwnCost| {
        (calls(one, other) || calls(other, one)) && is_near(one, other)
    };
    let mut alone = parts;
    let mut all = Vec::new();
    for is_one in [&kept_name as Rule<'_>, &is_renamed, &is_successor, &is_inlined] {
        let (joined, rest) = pairs(alone, is_one);
        all.extend(joined);
        alone = rest;
    }
    all.extend(alone);
    all.sort_by(by_size);
    all
}

/// Whether two names differ only in underscores at their ends, in `_noprof`, or as arm64's names of alternatives do.
pub fn are_one_name(one: &str, other: &str) -> bool {
    one.trim_matches('_') == other.trim_matches('_')
        || is_profiled(one, other)
        || is_alternative(one, other)
}

/// Whether one name is that of the other one's body. Since Linux 6.13 arm64's `memset` and its like only jump to it,
/// unless the processor has instructions for them (arch/arm64/lib/memset.S).
fn is_alternative(one: &str, other: &str) -> bool {
    let is_body = |body: &str, of: &str| {
        body.strip_prefix("__pi_").and_then(|it| it.strip_suffix("_generic")) == Some(of)
    };
    is_body(one, other) || is_body(other, one)
}

/// Whether two changes offset each other: they are opposite, and at most half of the larger one remains.
pub fn do_offset(one: f64, other: f64) -> bool {
    one * other < 0.0 && (one + other).abs() <= INLINED * one.abs().max(other.abs())
}

/// Joins functions whose changes are opposite, if `is_one` says that they are one: each with the nearest in size. Returns
/// the joined ones, and those left alone.
fn pairs(
    mut parts: Vec<OwnCost>,
    is_one: impl Fn(&OwnCost, &OwnCost) -> bool,
) -> (Vec<OwnCost>, Vec<OwnCost>) {
    let (mut joined, mut alone) = (Vec::new(), Vec::new());
    parts.sort_by(by_size);
    while !parts.is_empty() {
        let one = parts.remove(0);
        let others = parts.iter().enumerate();
        let others = others.filter(|(_, it)| are_opposite(&one, it) && is_one(&one, it));
        let nearest = others.min_by(|(_, a), (_, b)| left(&one, a).total_cmp(&left(&one, b)));
        match nearest.map(|(place, _)| place) {
            None => alone.push(one),
            Some(place) => {
                let other = parts.remove(place);
                let own = [0, 1].map(|side| one.own[side] + other.own[side]);
                joined.push(OwnCost { with: Some(other.name), own, ..one });
            }
        }
    }
    (joined, alone)
}

fn change(it: &OwnCost) -> f64 {
    it.own[1] - it.own[0]
}

/// What remains of two changes that offset each other.
fn left(one: &OwnCost, other: &OwnCost) -> f64 {
    (change(one) + change(other)).abs()
}

fn are_opposite(one: &OwnCost, other: &OwnCost) -> bool {
    change(one).signum() != change(other).signum()
}

/// Orders functions by their changes, the largest first.
pub fn by_size(one: &OwnCost, other: &OwnCost) -> std::cmp::Ordering {
    change(other).abs().total_cmp(&change(one).abs()).then_with(|| one.name.cmp(&other.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, own: [f64; 2]) -> OwnCost {
        OwnCost { name: name.into(), own, ..OwnCost::default() }
    }

    fn joined(parts: &[(&str, [f64; 2])], around: &Surroundings<'_>) -> Vec<(String, f64)> {
        let parts = parts.iter().map(|(name, own)| part(name, *own)).collect();
        let said = |it: OwnCost| {
            let with = it.with.iter().map(|with| format!("+{with}"));
            (it.name + &with.collect::<String>(), it.own[1] - it.own[0])
        };
        offset(parts, around).into_iter().map(said).collect()
    }

    #[test]
    fn changes_that_offset_each_other_are_one() {
        let parts = [
            ("clear_old", [710.0, 0.0]),
            ("clear_new", [0.0, 709.0]),
            ("__count", [300.0, 100.0]),
            ("count", [10.0, 230.0]),
            ("both", [50.0, 20.0]),
            ("other", [20.0, 50.0]),
            ("gone", [7.0, 0.0]),
            ("new", [0.0, 2.0]),
            ("__alloc_pages_noprof", [99.0, 0.0]),
            ("__alloc_frozen_pages_noprof", [0.0, 142.0]),
            ("__mod_node_page_state", [42.0, 0.0]),
            ("mod_node_page_state", [0.0, 100.0]),
            ("kmem_cache_alloc", [497.0, 0.0]),
            ("kmem_cache_alloc_noprof", [0.0, 230.0]),
            ("mod_state", [0.0, 19.0]),
            ("__mod_state", [19.0, 0.0]),
            ("mod_group_state", [0.0, 21.0]),
            ("memset", [39.0, 4.0]),
            ("__pi_memset_generic", [0.0, 71.0]),
        ];
        let expected = [
            ("clear_old", -710.0),
            ("clear_new", 709.0),
            ("kmem_cache_alloc+kmem_cache_alloc_noprof", -267.0),
            ("mod_node_page_state+__mod_node_page_state", 58.0),
            ("__alloc_frozen_pages_noprof+__alloc_pages_noprof", 43.0),
            ("__pi_memset_generic+memset", 36.0),
            ("both", -30.0),
            ("other", 30.0),
            ("mod_group_state", 21.0),
            ("count+__count", 20.0),
            ("gone", -7.0),
            ("new", 2.0),
            ("__mod_state+mod_state", 0.0),
        ];
        let expected = expected.map(|(names, change)| (names.to_owned(), change));
        assert_eq!(joined(&parts, &Surroundings::new()), expected);
    }

    fn path(frames: &str, base: f64, new: f64) -> Path {
        Path { frames: frames.split(' ').map(str::to_owned).collect(), base, new }
    }

    /// Joins the functions of these paths.
    fn joined_in(paths: &[Path]) -> Vec<(String, f64)> {
        let mut own = BTreeMap::new();
        for Path { frames, base, new } in paths {
            let sums: &mut [f64; 2] = own.entry(&**frames.last().unwrap()).or_default();
            *sums = [sums[0] + base, sums[1] + new];
        }
        let around = surroundings(&paths.iter().collect::<Vec<_>>(), &own);
        let parts: Vec<(&str, [f64; 2])> =
            own.into_iter().filter(|(_, [base, new])| base != new).collect();
        joined(&parts, &around)
    }

    /// The loop of `change` moved into `pte`, which calls `flush`. `walk` lost little, and `found` has two callers.
    #[test]
    fn a_function_is_one_with_a_callee_that_it_had_inlined() {
        let paths = [
            path("kernel sys", 50.0, 50.0),
            path("kernel sys change", 1000.0, 10.0),
            path("kernel sys change pte", 0.0, 1800.0),
            path("kernel sys change pte flush", 0.0, 400.0),
            path("kernel sys walk", 1000.0, 990.0),
            path("kernel sys walk step", 0.0, 300.0),
            path("kernel sys walk found", 0.0, 2.0),
            path("kernel sys change found", 0.0, 3.0),
        ];
        let expected = [
            ("pte+change", 810.0),
            ("flush", 400.0),
            ("step", 300.0),
            ("walk", -10.0),
            ("found", 5.0),
        ];
        let expected = expected.map(|(names, change)| (names.to_owned(), change));
        assert_eq!(joined_in(&paths), expected);
    }

    /// A leaf that has a successor of its caller is not inlined into that caller.
    #[test]
    fn leaves_of_one_caller_with_common_words_are_one() {
        let paths = [
            path("kernel free", 1000.0, 1065.0),
            path("kernel free get_block_flags_mask", 310.0, 0.0),
            path("kernel free get_block_type", 0.0, 230.0),
            path("kernel free other_leaf", 0.0, 240.0),
        ];
        let expected =
            [("other_leaf", 240.0), ("get_block_flags_mask+get_block_type", -80.0), ("free", 65.0)];
        let expected = expected.map(|(names, change)| (names.to_owned(), change));
        assert_eq!(joined_in(&paths), expected);
    }

    /// `unmap_range` is `zap` now; a caller of it is gone. `other` has other callees.
    #[test]
    fn functions_in_the_same_place_are_one() {
        let paths = [
            path("kernel unmap", 50.0, 50.0),
            path("kernel unmap single", 7.0, 0.0),
            path("kernel unmap single unmap_range", 1000.0, 0.0),
            path("kernel unmap single unmap_range lock", 10.0, 0.0),
            path("kernel unmap single unmap_range rmap", 10.0, 0.0),
            path("kernel unmap zap", 0.0, 1100.0),
            path("kernel unmap zap lock", 0.0, 10.0),
            path("kernel unmap zap rmap", 0.0, 15.0),
            path("kernel unmap other", 0.0, 1000.0),
            path("kernel unmap other free", 0.0, 1.0),
            path("kernel unmap free", 1.0, 0.0),
        ];
        let expected =
            [("other", 1000.0), ("zap+unmap_range", 100.0), ("single", -7.0), ("rmap", 5.0)];
        let expected = expected.map(|(names, change)| (names.to_owned(), change));
        assert_eq!(joined_in(&paths), expected);
    }
}
