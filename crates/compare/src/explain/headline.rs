//! One sentence per phase: by how much the kernel's instructions changed, and the function that holds the
//! change.

use std::collections::{BTreeMap, HashMap};

use model::{ENTRIES, WorkloadUse};

use super::paths::KERNEL;
use super::{Contribution, Explanation, Path, Paths, Section, Subject};
use crate::{Difference, FEWEST_FOR_LISTS};

/// A callee holds the change if it has at least this share of its caller's change.
const MOST: f64 = 0.9;
/// A function is named if it has at least this share of the phase's change.
const HALF: f64 = 0.5;
/// A frame only leads to a thread's work if less than this share of its instructions is its own.
const LITTLE: f64 = 0.01;
/// A callee of a holder without entries is named if it has at least this share of the change.
const NOTABLE: f64 = 0.1;

/// The change of the kernel's cost in one phase, and the function that holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Headline {
    /// The phase's name.
    pub phase: String,
    /// The kernel's cost, at equal entries if luck hides the change of the total.
    pub kernel: Difference,
    /// The unit of the cost.
    pub unit: String,
    /// The function that holds the change; `None` if luck explains the change, or no function holds it.
    pub function: Option<Holder>,
    /// Whether [`Headline::kernel`] is at equal entries.
    pub at_equal_entries: bool,
    /// Whether call paths were recorded; false where the change is not beyond luck.
    pub followed: bool,
    /// Whether call paths can have this cost. They have no entries.
    pub by_path: bool,
    /// Whether there are enough seeds for lists of functions.
    pub listed: bool,
}

/// The function that holds a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Holder {
    /// The function's name.
    pub name: String,
    /// Whether the figures include those of its callees.
    pub inclusive: bool,
    /// Instructions on both sides.
    pub instructions: [f64; 2],
    /// Entries on both sides. `None` if a side has none: a kernel thread entered its function before the phase.
    pub entries: Option<[f64; 2]>,
    /// Its share of the phase's change; above 1 if other functions offset a part of it.
    pub share: f64,
    /// Own instructions on both sides of each function in it whose instructions differ, the largest change first.
    /// They are per entry of the holder if it has entries. Empty without callees.
    pub parts: Vec<(String, [f64; 2])>,
    /// The callee with the largest change, if the holder has no entries.
    pub callee: Option<Callee>,
}

/// A function that the holder of a change calls, directly or not, and that both sides entered. Its own instructions
/// changed most of all such functions.
#[derive(Clone, Debug, PartialEq)]
pub struct Callee {
    /// The callee's name.
    pub name: String,
    /// Entries on both sides.
    pub entries: [f64; 2],
    /// Own instructions per entry on both sides.
    pub per_entry: [f64; 2],
}

impl Holder {
    /// Instructions per entry on both sides; `None` if a side has no entries.
    pub fn per_entry(&self) -> Option<[f64; 2]> {
        Some(per_entry(self.instructions, self.entries?))
    }
}

impl Callee {
    /// Whether more of its change is due to the number of entries than to the instructions per entry
    /// ([`super::Split`]).
    pub fn is_by_number(&self) -> bool {
        let [cost, number] = [self.per_entry, self.entries];
        let part = |[base, new]: [f64; 2], of: [f64; 2]| ((new - base) * (of[0] + of[1])).abs();
        part(number, cost) > part(cost, number)
    }
}

fn per_entry(instructions: [f64; 2], entries: [f64; 2]) -> [f64; 2] {
    [instructions[0] / entries[0], instructions[1] / entries[1]]
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
        // Without entries only the total is known, and the total is not at equal entries.
        let says = |it: &Holder| it.entries.is_some() || !at_equal_entries;
        let function = paths.and_then(holder).filter(says);
        let phase = phase.to_owned();
        let unit = explanation.cost.unit.clone();
        let by_path = explanation.cost.name != ENTRIES;
        Headline { phase, kernel, unit, function, at_equal_entries, followed, by_path, listed }
    };
    measured.map(headline).collect()
}

/// A path, and those of its frames that count.
type Walked<'a> = (Vec<&'a str>, &'a Path);

/// The innermost function that holds the change, by call paths. Callees included, the outermost candidate must hold
/// half of the phase's change, and each further one most of its caller's. Functions that only one side executes were
/// renamed, moved or inlined: what they call counts as called by their caller. What follows a frame with which a
/// kernel thread begins is compared with the change of the phase, not of that frame.
fn by_calls(section: &Section, paths: &Paths) -> Option<Holder> {
    let mut within = walked(paths);
    let all = change(&within);
    let (mut whole, mut least) = (all, HALF);
    let mut holder = None;
    for depth in 1.. {
        let Some((frame, inside)) = heaviest(&within, depth) else { break };
        let share = change(&inside) / whole;
        if share.is_nan() || share < least || sums(&inside).contains(&0.0) {
            break;
        }
        holder = Some(frame);
        if !begins_thread(section, frame, &inside, depth) {
            (whole, least) = (change(&inside), MOST);
        }
        within = inside;
    }
    let name = holder?.to_owned();
    let (instructions, entries) = (sums(&within), entries(section, &name));
    let mut parts = BTreeMap::<&str, [f64; 2]>::new();
    for (_, Path { frames, base, new }) in &within {
        let part = parts.entry(frames.last().map_or("", String::as_str)).or_default();
        *part = [part[0] + base, part[1] + new];
    }
    let mut parts: Vec<(String, [f64; 2])> =
        parts.into_iter().map(|(name, sums)| (name.to_owned(), sums)).collect();
    parts.retain(|(_, [base, new])| base != new);
    if let Some(entries) = entries {
        parts.iter_mut().for_each(|(_, sums)| *sums = per_entry(*sums, entries));
    }
    let size = |(_, [base, new]): &(String, [f64; 2])| (new - base).abs();
    parts.sort_by(|one, other| size(other).total_cmp(&size(one)));
    let callee = match entries {
        None => callee(section, &name, change(&within), &parts),
        Some(_) => None,
    };
    let share = change(&within) / all;
    Some(Holder { name, inclusive: true, instructions, entries, share, parts, callee })
}

/// The kernel's paths in order, without the functions that only one side executes.
fn walked(paths: &Paths) -> Vec<Walked<'_>> {
    let kernel = |path: &&Path| path.frames.first().is_some_and(|frame| frame == KERNEL);
    let mut executed = HashMap::<&str, [bool; 2]>::new();
    for Path { frames, base, new } in paths.paths.iter().filter(kernel) {
        for frame in frames {
            let sides = executed.entry(frame).or_default();
            *sides = [sides[0] || *base > 0.0, sides[1] || *new > 0.0];
        }
    }
    let mut walked: Vec<Walked<'_>> = paths
        .paths
        .iter()
        .filter(kernel)
        .map(|path| {
            let frames = path.frames.iter().map(String::as_str);
            (frames.filter(|frame| executed[frame] == [true; 2]).collect(), path)
        })
        .collect();
    walked.sort_by(|(one, _), (other, _)| one.cmp(other));
    walked
}

/// Whether `frame` only leads to a kernel thread's work, as `kthread` does: it was entered before the phase, and
/// executes hardly any instructions itself.
fn begins_thread(section: &Section, frame: &str, inside: &[Walked<'_>], depth: usize) -> bool {
    let own: Vec<Walked<'_>> =
        inside.iter().filter(|(frames, _)| frames.len() == depth + 1).cloned().collect();
    let ([own, of_new], [all, all_new]) = (sums(&own), sums(inside));
    entries(section, frame).is_none() && own < LITTLE * all && of_new < LITTLE * all_new
}

/// Of the functions that both sides entered, the one whose own instructions have the largest part of the change of
/// `holder`; `None` if that part is below [`NOTABLE`].
fn callee(
    section: &Section,
    holder: &str,
    change: f64,
    parts: &[(String, [f64; 2])],
) -> Option<Callee> {
    let is_notable = |[base, new]: &[f64; 2]| (new - base) / change >= NOTABLE;
    let mut parts = parts.iter().filter(|(name, part)| name != holder && is_notable(part));
    parts.find_map(|(name, _)| {
        let calls = function(section, name)?.calls.as_ref()?;
        let entries = entries(section, name)?;
        let Difference { base, new, .. } = calls.per_entry?;
        Some(Callee { name: name.clone(), entries, per_entry: [base, new] })
    })
}

/// The frame at `depth` in which instructions changed most, and the paths that contain it.
fn heaviest<'a>(within: &[Walked<'a>], depth: usize) -> Option<(&'a str, Vec<Walked<'a>>)> {
    // Paths are sorted, so those with the same frames up to `depth` are adjacent.
    let deeper: Vec<Walked<'a>> =
        within.iter().filter(|(frames, _)| frames.len() > depth).cloned().collect();
    let groups = deeper.chunk_by(|(one, _), (other, _)| one[depth] == other[depth]);
    let size = |group: &[Walked<'a>]| change(group).abs();
    let group = groups.max_by(|one, other| size(one).total_cmp(&size(other)))?;
    Some((group[0].0[depth], group.to_vec()))
}

fn change(paths: &[Walked<'_>]) -> f64 {
    let [base, new] = sums(paths);
    new - base
}

fn sums(paths: &[Walked<'_>]) -> [f64; 2] {
    let sum = |of: fn(&Path) -> f64| paths.iter().map(|(_, path)| of(path)).sum();
    [sum(|path| path.base), sum(|path| path.new)]
}

/// How often each side entered a function of the kernel; `None` if a side did not.
fn entries(section: &Section, name: &str) -> Option<[f64; 2]> {
    let Difference { base, new, .. } = function(section, name)?.calls.as_ref()?.entries;
    (base > 0.0 && new > 0.0).then_some([base, new])
}

/// The only function of this name in the kernel and its modules.
fn function<'a>(section: &'a Section, function: &str) -> Option<&'a Contribution> {
    let is_it =
        |subject: &Subject| matches!(subject, Subject::Function { name, .. } if name == function);
    let mut found = section.contributions.iter().filter(|it| is_it(&it.subject));
    let only = found.next()?;
    found.next().is_none().then_some(only)
}

/// The function whose own instructions per entry hold half of the change. `None` if functions executed on one side
/// only offset its change: it may have absorbed their code.
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
    let entries = first.calls.as_ref()?.entries;
    let [instructions, entries] = [first.instructions, entries].map(|it| [it.base, it.new]);
    Some(Holder {
        name: first.subject.to_string(),
        inclusive: false,
        instructions,
        entries: Some(entries),
        share,
        parts: Vec::new(),
        callee: None,
    })
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
            instructions: [1000.0, 2410.0],
            entries: Some([5.0, 5.0]),
            share: 1410.0 / 1411.0,
            parts: vec![("pte".into(), [0.0, 480.0]), ("change".into(), [200.0, 2.0])],
            callee: None,
        };
        assert_eq!(holder.per_entry(), Some([200.0, 482.0]));
        assert_eq!(holder, expected);
    }

    #[test]
    fn fewer_entries_can_hold_the_change() {
        let boot = |entries: u64, cost: u64| [executed(&[("f", "", entries, entries * cost)])];
        let section = all(&boot(100, 10), &boot(50, 11));
        let calls = paths(&[("kernel f", 1000.0, 550.0)]);
        let holder = by_calls(&section, &calls).unwrap();
        assert_eq!(holder.per_entry(), Some([10.0, 11.0]));
        assert_eq!((holder.instructions, holder.entries), ([1000.0, 550.0], Some([100.0, 50.0])));
    }

    /// Two threads were entered before the phase; one of them calls `walk` less often now. One of the kernels enters
    /// threads by a function that the other does not have.
    #[test]
    fn the_function_of_a_kernel_thread_has_a_total() {
        let boot = |scan: u64, walks: u64| {
            let threads = [("kthread", "", 0, 0), ("scan", "", 0, scan), ("reclaim", "", 0, 300)];
            [executed(&[threads.as_slice(), &[("walk", "", walks, 10 * walks)]].concat())]
        };
        let section = all(&boot(5000, 400), &boot(2000, 10));
        let calls = paths(&[
            ("kernel fork kthread reclaim", 300.0, 0.0),
            ("kernel fork kthread scan", 5000.0, 0.0),
            ("kernel fork kthread scan walk", 4000.0, 0.0),
            ("kernel start fork kthread reclaim", 0.0, 300.0),
            ("kernel start fork kthread scan", 0.0, 2000.0),
            ("kernel start fork kthread scan walk", 0.0, 100.0),
        ]);
        let holder = by_calls(&section, &calls).unwrap();
        let callee =
            Callee { name: "walk".into(), entries: [400.0, 10.0], per_entry: [10.0, 10.0] };
        assert!(callee.is_by_number());
        assert!(!Callee { per_entry: [10.0, 900.0], ..callee.clone() }.is_by_number());
        let expected = Holder {
            name: "scan".into(),
            inclusive: true,
            instructions: [9000.0, 2100.0],
            entries: None,
            share: 1.0,
            parts: vec![("walk".into(), [4000.0, 100.0]), ("scan".into(), [5000.0, 2000.0])],
            callee: Some(callee),
        };
        assert_eq!(holder, expected);
        assert_eq!(holder.per_entry(), None);
    }

    /// Half of the change is in one thread, and the rest in another.
    #[test]
    fn a_thread_is_named_by_its_own_function() {
        let boot =
            |cost: u64| [executed(&[("scan", "", 0, 6 * cost), ("reclaim", "", 0, 4 * cost)])];
        let section = all(&boot(10), &boot(20));
        let calls = paths(&[
            ("kernel fork kthread reclaim", 40.0, 80.0),
            ("kernel fork kthread scan", 60.0, 120.0),
        ]);
        let holder = by_calls(&section, &calls).unwrap();
        assert_eq!(
            (&*holder.name, holder.instructions, holder.share),
            ("scan", [60.0, 120.0], 0.6)
        );
        assert_eq!(holder.callee, None);
    }

    /// A function between two others has another name in each kernel.
    #[test]
    fn functions_of_one_side_are_looked_through() {
        let boot = |name: &'static str, cost: u64| {
            [executed(&[("sys", "", 2, 10), (name, "", 2, 10), ("f", "", 4, cost)])]
        };
        let section = all(&boot("old", 100), &boot("new", 900));
        let calls = paths(&[
            ("kernel sys", 10.0, 10.0),
            ("kernel sys new", 0.0, 10.0),
            ("kernel sys new f", 0.0, 900.0),
            ("kernel sys old", 10.0, 0.0),
            ("kernel sys old f", 100.0, 0.0),
        ]);
        let holder = by_calls(&section, &calls).unwrap();
        assert_eq!((&*holder.name, holder.entries), ("f", Some([4.0, 4.0])));
        assert_eq!(holder.share, 1.0);
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
        assert_eq!((holder.per_entry(), holder.share), (Some([50.0, 100.0]), 0.5));
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
