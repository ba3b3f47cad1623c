//! Which functions of a phase are taken as one in all lists: one under two names, or two between which work moved.

use std::collections::{BTreeMap, BTreeSet};

use super::calls::added;
use super::offset::{OwnCost, by_size, offset, surroundings};
use super::{Contribution, Path, Paths, Section, Subject};

/// Functions that are taken as one, each with the other one.
pub type Pairs = BTreeMap<String, String>;

/// The pairs of a phase, by all its paths in the kernel: those of [`super::rename`], then those whose changes offset each
/// other. None if calls were not followed.
pub fn pairs(section: &Section, paths: &Paths) -> Pairs {
    let kernel = paths.paths.iter().filter(|it| paths.followed && it.is_of_kernel());
    let all: Vec<&Path> = kernel.collect();
    let own = own_costs(section, &all, &renamed(section));
    let with = own.into_iter().filter_map(|it| Some((it.name, it.with?)));
    with.flat_map(|(one, other)| [(one.clone(), other.clone()), (other, one)]).collect()
}

/// The functions that may have been renamed, by their numbers of entries and their costs.
fn renamed(section: &Section) -> Pairs {
    let name = |it: &Subject| match it {
        Subject::Function { name, .. } => Some(name.clone()),
        _ => None,
    };
    let pair =
        |it: &Contribution| Some((name(&it.subject)?, name(it.calls.as_ref()?.maybe.as_ref()?)?));
    section.contributions.iter().filter_map(pair).collect()
}

/// The own instructions of each function at the end of these paths that differ, the largest change first. Functions of
/// `pairs` are one. Of the others, those whose changes offset each other in these paths are.
pub fn own_costs(section: &Section, paths: &[&Path], pairs: &Pairs) -> Vec<OwnCost> {
    let mut own = BTreeMap::<&str, [f64; 2]>::new();
    for Path { frames, base, new } in paths {
        let sum = own.entry(frames.last().map_or("", String::as_str)).or_default();
        *sum = added(*sum, [*base, *new]);
    }
    // A function that both sides call elsewhere is not inlined there.
    let both = section.contributions.iter().filter_map(|it| match &it.subject {
        Subject::Function { name, .. } if it.instructions.base.min(it.instructions.new) > 0.0 => {
            Some(&**name)
        }
        _ => None,
    });
    let is_called: BTreeSet<&str> = both.collect();
    let mut around = surroundings(paths, &own);
    around.retain(|name, _| !is_called.contains(name));
    let part = |name: &str, own| OwnCost { name: name.to_owned(), own, ..OwnCost::default() };
    let (mut joined, mut alone) = (Vec::new(), Vec::new());
    for (&name, &costs) in own.iter().filter(|(_, [base, new])| base != new) {
        let other = pairs.get(name).and_then(|other| Some((&**other, *own.get(&**other)?)));
        match other {
            None if pairs.contains_key(name) => joined.push(part(name, costs)),
            None => alone.push(part(name, costs)),
            // The one with the larger change stands first, and has both.
            Some((other, others)) => {
                let size = |[base, new]: [f64; 2]| (new - base).abs();
                let is_first = (size(costs), other) > (size(others), name);
                let with = Some(other.to_owned());
                if is_first {
                    joined.push(OwnCost { with, ..part(name, added(costs, others)) });
                }
            }
        }
    }
    joined.extend(offset(alone, &around));
    joined.sort_by(by_size);
    joined
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all, executed, followed};
    use super::*;

    /// In the phase the walk was renamed; below `exit` alone the two do not offset each other. `lock` is only called there
    /// before.
    #[test]
    fn functions_are_one_in_all_lists() {
        let base = [executed(&[("mas_next_entry", "", 30, 1000), ("lock", "", 3, 9)])];
        let new = [executed(&[("mas_next_slot", "", 30, 900), ("lock", "", 3, 9)])];
        let section = all(&base, &new);
        let paths = followed(&[
            ("kernel exit mas_next_entry", 700.0, 0.0),
            ("kernel exit mas_next_slot", 0.0, 100.0),
            ("kernel unmap mas_next_entry", 300.0, 0.0),
            ("kernel unmap mas_next_slot", 0.0, 800.0),
        ]);
        let pairs = pairs(&section, &paths);
        let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        let expected =
            [pair("mas_next_entry", "mas_next_slot"), pair("mas_next_slot", "mas_next_entry")];
        assert_eq!(pairs, expected.into());
        let in_exit: Vec<&Path> = paths.paths[..2].iter().collect();
        let [one] = &own_costs(&section, &in_exit, &pairs)[..] else { panic!("not one") };
        let with = one.with.as_deref();
        assert_eq!(
            (&*one.name, with, one.own),
            ("mas_next_entry", Some("mas_next_slot"), [700.0, 100.0])
        );
        assert_eq!(own_costs(&section, &in_exit, &Pairs::new()).len(), 2);
        let unfollowed = Paths { followed: false, ..paths };
        assert!(super::pairs(&section, &unfollowed).is_empty());
    }
}
