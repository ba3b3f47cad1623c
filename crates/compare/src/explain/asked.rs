//! System calls and exceptions: the work that a program asks of the kernel. Where it is the same on both sides, a change is
//! one of its cost.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kernelfiles::entry;
use serde::Serialize;

use super::calls;
use super::sides::Sides;
use super::tally::{Identity, Tally};
use super::{Headline, Paths};
use crate::Difference;

/// Work is another one if the number of a call has at least this share of the change.
const NOTABLE: f64 = 0.05;
/// It must have at least this share of the phase too: one call more can be most of a small change.
const MARGIN: f64 = 0.01;

/// A system call or an exception in one phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Asked {
    /// Its kind and name, such as `system call clone`.
    pub name: String,
    /// How often it ran.
    pub entries: Difference,
    /// Instructions of it and of all that it calls; `None` if calls were not followed.
    pub instructions: Option<[f64; 2]>,
}

impl Asked {
    /// Instructions of one call on both sides, with all that it calls. `None` if calls were not followed, or a side has no
    /// call.
    pub fn per_call(&self) -> Option<[f64; 2]> {
        let [base, new] = self.instructions?;
        let Difference { base: before, new: now, .. } = self.entries;
        (before > 0.0 && now > 0.0).then(|| [base / before, new / now])
    }

    /// The part of its change that comes from its number ([`super::Split`]); 0 if calls were not followed, because then it
    /// is not known.
    fn by_number(&self) -> f64 {
        let Some([base, new]) = self.instructions else { return 0.0 };
        let Difference { base: before, new: now, .. } = self.entries;
        match before > 0.0 && now > 0.0 {
            true => (now - before) * (base / before + new / now) / 2.0,
            false => new - base,
        }
    }
}

impl Headline {
    /// The share of the change that comes from the number of a call.
    pub fn share_by_number(&self, asked: &Asked) -> f64 {
        asked.by_number() / self.kernel.change()
    }

    /// The calls that make the work of the phase another one, the one with the largest part of the change first: luck does
    /// not explain their number, and it has a notable part of the change. At equal entries there are none.
    pub fn other_work(&self) -> Vec<&Asked> {
        let share = |it: &Asked| self.share_by_number(it).abs();
        let least = NOTABLE.max(MARGIN * self.kernel.base / self.kernel.change().abs());
        let is_other = |it: &&Asked| {
            it.entries.change() != 0.0
                && it.entries.beyond_luck() != Some(false)
                && share(it) >= least
        };
        let asked = self.asked.iter().filter(|_| !self.at_equal_entries);
        let mut other: Vec<&Asked> = asked.filter(is_other).collect();
        other.sort_by(|one, other| share(other).total_cmp(&share(one)));
        other
    }

    /// Whether calls make up the same work in other pages: their numbers changed as the number of pages does.
    pub fn is_by_pages(&self, calls: &[&Asked]) -> bool {
        let follows = |it: &&Asked| {
            self.pages.as_ref().is_some_and(|of| of.follows([it.entries.base, it.entries.new]))
        };
        calls.iter().all(follows)
    }
}

/// The system calls and exceptions of a phase, the most frequent first.
pub fn asked(sides: &Sides<Tally<'_>>) -> Vec<Asked> {
    let functions: BTreeSet<Identity<'_>> =
        sides.iter().flat_map(|tally| tally.functions.keys().copied()).collect();
    let mut names = BTreeMap::<String, Vec<Identity<'_>>>::new();
    for function in functions.into_iter().filter(|it| it.module.is_empty()) {
        if let Some(name) = entry::asked(function.name) {
            names.entry(name).or_default().push(function);
        }
    }
    let found = names.into_iter().filter_map(|(name, functions)| {
        // A call can pass several of its functions, unless one is inlined.
        let most = |tally: &Tally<'_>| functions.iter().map(|it| tally.executed(*it).entries).max();
        let entries = sides.map(|tally| most(tally).unwrap_or_default());
        Some(Asked { name, entries: entries.difference()?, instructions: None })
    });
    let mut found: Vec<Asked> = found.collect();
    let number = |it: &Asked| it.entries.base.max(it.entries.new);
    found.retain(|it| number(it) > 0.0);
    found.sort_by(|one, other| number(other).total_cmp(&number(one)));
    found
}

/// Adds the instructions of the calls by call path, if calls were followed.
pub fn with_instructions(asked: &[Asked], paths: Option<&Paths>) -> Vec<Asked> {
    let Some(paths) = paths.filter(|it| it.followed) else { return asked.to_vec() };
    let mut sums = HashMap::<String, [f64; 2]>::new();
    for path in paths.paths.iter().filter(|it| it.is_of_kernel()) {
        let reason = calls::reason(path);
        let called = calls::asked(path, &reason).into_iter().filter_map(entry::asked);
        for name in called.collect::<BTreeSet<_>>() {
            let sum = sums.entry(name).or_default();
            *sum = calls::added(*sum, [path.base, path.new]);
        }
    }
    let of = |it: &Asked| Some(sums.get(&it.name).copied().unwrap_or_default());
    asked.iter().map(|it| Asked { instructions: of(it), ..it.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Path;
    use super::super::paths::KERNEL;
    use super::*;
    use crate::explain::headlines;
    use crate::explain::tests::{executed, explained};
    use crate::testing::{manifest, used};

    /// The headline of a phase in which a system call and page faults run so often, at these costs.
    fn headline(base: [[u64; 2]; 2], new: [[u64; 2]; 2], followed: bool) -> Headline {
        const CALL: &str = "__x64_sys_madvise";
        const FAULT: &str = "asm_exc_page_fault";
        let seeds = |[call, fault]: [[u64; 2]; 2]| {
            // No real system call has as many instructions in all seeds.
            let of = |luck: u64| {
                let function =
                    |name, [entries, cost]: [u64; 2]| (name, "", entries, entries * cost);
                executed(&[function(CALL, call), function(FAULT, fault), ("other", "", 1, luck)])
            };
            [1, 3, 2, 5, 4].map(of)
        };
        let path = |name: &str, place: usize| {
            let [base, new] = [base, new].map(|it| (it[place][0] * it[place][1]) as f64);
            Path { frames: [KERNEL, name].map(str::to_owned).into(), base, new }
        };
        let paths = Paths { followed, paths: vec![path(CALL, 0), path(FAULT, 1)] };
        let explanation = explained(&seeds(base), &seeds(new));
        headlines(&explanation, &used(manifest()), |_| paths.clone()).remove(0)
    }

    fn other(headline: &Headline) -> Vec<&str> {
        headline.other_work().into_iter().map(|it| &*it.name).collect()
    }

    #[test]
    fn the_same_calls_are_the_same_work() {
        let same = headline([[10, 5000], [300, 100]], [[10, 9000], [300, 100]], true);
        assert!(other(&same).is_empty());
        let asked: Vec<_> = same.asked.iter().map(|it| (&*it.name, it.per_call())).collect();
        let expected = [
            ("exception page_fault", Some([100.0, 100.0])),
            ("system call madvise", Some([5000.0, 9000.0])),
        ];
        assert_eq!(asked, expected);
    }

    #[test]
    fn a_number_that_makes_up_the_change_is_other_work() {
        let more = headline([[10, 5000], [300, 100]], [[10, 5000], [390, 100]], true);
        assert_eq!(other(&more), ["exception page_fault"]);
        assert!((more.share_by_number(&more.asked[0]) - 1.0).abs() < 0.01);
        // Few page faults more do not make a system call dearer.
        let few = headline([[10, 5000], [300, 100]], [[10, 9000], [310, 100]], true);
        assert!(other(&few).is_empty());
        // Without call paths nothing is known of the calls' instructions.
        let unknown = headline([[10, 5000], [300, 100]], [[10, 9000], [400, 100]], false);
        assert!(other(&unknown).is_empty());
        assert_eq!(unknown.asked[0].per_call(), None);
    }
}
