//! One sentence per phase: by how much the kernel's instructions changed, and the function that holds the
//! change.

use std::collections::BTreeMap;

use model::WorkloadUse;

use super::paths::KERNEL;
use super::{Contribution, Explanation, Path, Paths, Section, Subject};
use crate::{Difference, FEWEST_FOR_LISTS};

/// A callee holds the change if it has this share of its caller's change.
const MOST: f64 = 0.9;
/// A function is named if it has at least this share of the phase's change.
const HALF: f64 = 0.5;

/// One phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Headline {
    /// The phase.
    pub phase: String,
    /// The kernel's instructions; at equal entries where luck hides the change of the total.
    pub kernel: Difference,
    /// The function that holds the change; none where luck explains it, or no function does.
    pub function: Option<Holder>,
    /// Whether these are the instructions at equal entries.
    pub at_equal_entries: bool,
    /// Whether call paths were recorded; false where the change is not beyond luck.
    pub followed: bool,
    /// Whether there are enough seeds for lists of functions.
    pub listed: bool,
}

/// The function that holds a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Holder {
    /// Its name.
    pub name: String,
    /// Whether the figures include those of its callees.
    pub inclusive: bool,
    /// Instructions per entry on both sides.
    pub per_entry: [f64; 2],
    /// Entries on both sides.
    pub entries: [f64; 2],
    /// Its share of the change; above 1 where others offset a part of it.
    pub share: f64,
    /// Own instructions of each function in it per entry on both sides, where they differ: the largest change
    /// first. Empty without callees.
    pub parts: Vec<(String, [f64; 2])>,
}

impl Holder {
    /// Whether the number of entries holds more of its change than the instructions per entry
    /// ([`super::Split`]).
    pub fn is_by_number(&self) -> bool {
        let [cost, number] = [self.per_entry, self.entries];
        let part = |[base, new]: [f64; 2], of: [f64; 2]| ((new - base) * (of[0] + of[1])).abs();
        part(number, cost) > part(cost, number)
    }
}

/// The headlines of the phases that `used` measures. `paths` gives the paths of a phase.
pub fn headlines(
    explanation: &Explanation,
    used: &WorkloadUse,
    paths: impl Fn(&str) -> Paths,
) -> Vec<Headline> {
    let measured = explanation.phases.iter().filter_map(|section| {
        let phase = section.phase.as_deref().filter(|phase| !phase.is_empty())?;
        (!used.manifest.prepares(phase)).then_some((phase, section))
    });
    let seeds = explanation.base.seeds.min(explanation.new.seeds);
    let listed = seeds >= FEWEST_FOR_LISTS as usize;
    let headline = |(phase, section): (&str, &Section)| {
        let hidden = section.totals.hidden();
        let kernel = *hidden.unwrap_or(&section.totals.kernel);
        let at_equal_entries = hidden.is_some();
        let is_beyond = kernel.beyond_luck() == Some(true);
        let paths = is_beyond.then(|| paths(phase));
        let followed = paths.as_ref().is_some_and(|paths| paths.followed);
        let holder = |paths: Paths| match paths.followed {
            true => by_calls(section, &paths),
            false => own(section),
        };
        let function = paths.and_then(holder);
        let phase = phase.to_owned();
        Headline { phase, kernel, function, at_equal_entries, followed, listed }
    };
    measured.map(headline).collect()
}

/// The innermost function that, callees included, holds most of its caller's change; the outermost one holds
/// half of the phase's. A callee that only one side has was renamed, moved or inlined, so its caller is the
/// one that changed.
fn by_calls(section: &Section, paths: &Paths) -> Option<Holder> {
    let kernel = |path: &&Path| path.frames.first().is_some_and(|frame| frame == KERNEL);
    let mut within: Vec<&Path> = paths.paths.iter().filter(kernel).collect();
    let all = change(&within);
    let mut least = HALF;
    let mut holder = None;
    for depth in 1.. {
        let Some((frame, inside)) = heaviest(&within, depth) else { break };
        let [base, new] = sums(&inside);
        let share = change(&inside) / change(&within);
        if share.is_nan() || share < least || base == 0.0 || new == 0.0 {
            break;
        }
        holder = Some((frame.to_owned(), [base, new]));
        (within, least) = (inside, MOST);
    }
    let (name, sums) = holder?;
    let entries = entries(section, &name)?;
    let per_entry = |sums: [f64; 2]| [sums[0] / entries[0], sums[1] / entries[1]];
    let mut parts = BTreeMap::<&str, [f64; 2]>::new();
    for Path { frames, base, new } in &within {
        let part = parts.entry(frames.last().map_or("", String::as_str)).or_default();
        *part = [part[0] + base, part[1] + new];
    }
    let parts = parts.into_iter().map(|(name, sums)| (name.to_owned(), per_entry(sums)));
    let mut parts: Vec<(String, [f64; 2])> = parts.filter(|(_, [base, new])| base != new).collect();
    let size = |(_, [base, new]): &(String, [f64; 2])| (new - base).abs();
    parts.sort_by(|one, other| size(other).total_cmp(&size(one)));
    let share = (sums[1] - sums[0]) / all;
    Some(Holder { name, inclusive: true, per_entry: per_entry(sums), entries, share, parts })
}

/// The frame at `depth` in which instructions changed most, and the paths with it.
fn heaviest<'a>(within: &[&'a Path], depth: usize) -> Option<(&'a str, Vec<&'a Path>)> {
    // Paths are in order, so those with the same frames up to here follow each other.
    let deeper: Vec<&Path> =
        within.iter().copied().filter(|path| path.frames.len() > depth).collect();
    let groups = deeper.chunk_by(|one, other| one.frames[depth] == other.frames[depth]);
    let size = |group: &[&Path]| change(group).abs();
    let group = groups.max_by(|one, other| size(one).total_cmp(&size(other)))?;
    Some((&group[0].frames[depth], group.to_vec()))
}

fn change(paths: &[&Path]) -> f64 {
    let [base, new] = sums(paths);
    new - base
}

fn sums(paths: &[&Path]) -> [f64; 2] {
    [paths.iter().map(|path| path.base).sum(), paths.iter().map(|path| path.new).sum()]
}

/// How often each side entered a function of the kernel; `None` if a side did not.
fn entries(section: &Section, function: &str) -> Option<[f64; 2]> {
    let is_it =
        |subject: &Subject| matches!(subject, Subject::Function { name, .. } if name == function);
    let mut found = section.contributions.iter().filter(|it| is_it(&it.subject));
    let (only, None) = (found.next()?, found.next()) else { return None };
    let Difference { base, new, .. } = only.calls.as_ref()?.entries;
    (base > 0.0 && new > 0.0).then_some([base, new])
}

/// The function whose own instructions per entry hold half of the change, unless functions executed on one
/// side only offset it: it may have absorbed their code.
fn own(section: &Section) -> Option<Holder> {
    let first = section.contributions.get(*section.per_entry.first()?)?;
    let own = first.instructions.change();
    let share = own / section.totals.kernel.change();
    let makes_up = |it: &&Contribution| {
        let is_one_sided = it.calls.as_ref().is_some_and(|calls| calls.only.is_some());
        is_one_sided && it.instructions.change() / own < -HALF
    };
    if share < HALF || section.contributions.iter().any(|it| makes_up(&it)) {
        return None;
    }
    let calls = first.calls.as_ref()?;
    let [per_entry, entries] = [calls.per_entry?, calls.entries].map(|it| [it.base, it.new]);
    let name = first.subject.to_string();
    Some(Holder { name, inclusive: false, per_entry, entries, share, parts: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all, executed};
    use super::*;

    fn paths(paths: &[(&str, f64, f64)]) -> Paths {
        let path = |&(frames, base, new): &(&str, f64, f64)| Path {
            frames: frames.split(' ').map(str::to_owned).collect(),
            base,
            new,
        };
        Paths { followed: true, paths: paths.iter().map(path).collect() }
    }

    /// The loop of a function moved into a new function and became more expensive.
    #[test]
    fn the_caller_of_a_moved_loop_holds_the_change() {
        let base = [executed(&[("sys", "", 5, 50), ("change", "", 5, 1000)])];
        let new = [executed(&[("sys", "", 5, 50), ("change", "", 5, 10), ("pte", "", 500, 2400)])];
        let section = all(&base, &new);
        let calls = paths(&[
            ("kernel irq", 70.0, 71.0),
            ("kernel sys", 50.0, 50.0),
            ("kernel sys change", 1000.0, 10.0),
            ("kernel sys change pte", 0.0, 2400.0),
        ]);
        let holder = by_calls(&section, &calls).unwrap();
        let expected = Holder {
            name: "change".into(),
            inclusive: true,
            per_entry: [200.0, 482.0],
            entries: [5.0, 5.0],
            share: 1410.0 / 1411.0,
            parts: vec![("pte".into(), [0.0, 480.0]), ("change".into(), [200.0, 2.0])],
        };
        assert_eq!(holder, expected);
    }

    #[test]
    fn fewer_entries_can_hold_the_change() {
        let boot = |entries: u64, cost: u64| [executed(&[("f", "", entries, entries * cost)])];
        let section = all(&boot(100, 10), &boot(50, 11));
        let calls = paths(&[("kernel f", 1000.0, 550.0)]);
        let holder = by_calls(&section, &calls).unwrap();
        assert_eq!((holder.per_entry, holder.entries), ([10.0, 11.0], [100.0, 50.0]));
        assert!(holder.is_by_number());
        let dearer = Holder { per_entry: [10.0, 30.0], ..holder };
        assert!(!dearer.is_by_number());
    }

    #[test]
    fn a_change_in_two_callees_belongs_to_their_caller() {
        let boot =
            |cost: u64| [executed(&[("sys", "", 2, 10), ("a", "", 2, cost), ("b", "", 2, cost)])];
        let section = all(&boot(100), &boot(200));
        let calls = paths(&[
            ("kernel sys", 10.0, 10.0),
            ("kernel sys a", 100.0, 200.0),
            ("kernel sys b", 100.0, 200.0),
        ]);
        assert_eq!(by_calls(&section, &calls).unwrap().name, "sys");
        // Where calls were not followed, a function that holds half is named.
        let holder = own(&section).unwrap();
        assert_eq!((holder.per_entry, holder.share), ([50.0, 100.0], 0.5));
    }

    #[test]
    fn a_function_that_absorbed_another_holds_no_change() {
        let base = [executed(&[("load", "", 10, 170), ("descend", "", 10, 160)])];
        let section = all(&base, &[executed(&[("load", "", 10, 335)])]);
        assert_eq!(own(&section), None);
        // And neither does a small part of a change.
        let boot = |work: u64, cost: u64| {
            [executed(&[("f", "", 2, 2 * cost), ("g", "", work, 100 * work)])]
        };
        assert_eq!(own(&all(&boot(10, 5), &boot(20, 6))), None);
    }

    #[test]
    fn nothing_changed() {
        let boot = [executed(&[("sys", "", 2, 10)])];
        assert_eq!(by_calls(&all(&boot, &boot), &paths(&[("kernel sys", 10.0, 10.0)])), None);
        assert_eq!(by_calls(&all(&boot, &boot), &Paths::default()), None);
    }
}
