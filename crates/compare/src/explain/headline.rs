//! What happened, phase by phase, in one sentence: by how much the kernel's instructions changed, and
//! the function that holds the change.

use model::WorkloadUse;

use super::{Explanation, Path, Paths, Section, Subject};
use crate::Difference;

/// A callee that has this share of its caller's change has the change.
const MOST: f64 = 0.9;

/// One phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Headline {
    /// The phase.
    pub phase: String,
    /// The kernel's instructions; at equal entries where luck hides the change otherwise.
    pub kernel: Difference,
    /// The function that holds the change; none where luck explains it, or no function does.
    pub function: Option<Holder>,
}

/// The function that holds a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Holder {
    /// Its name.
    pub name: String,
    /// Whether the figures are of all that it calls too.
    pub inclusive: bool,
    /// Instructions per entry on both sides.
    pub per_entry: [f64; 2],
}

/// The headlines of the phases that `used` measures. `paths` gives those of a phase.
pub fn headlines(
    explanation: &Explanation,
    used: &WorkloadUse,
    paths: impl Fn(&str) -> Paths,
) -> Vec<Headline> {
    let measured = explanation.phases.iter().filter_map(|section| {
        let phase = section.phase.as_deref().filter(|phase| !phase.is_empty())?;
        (!used.manifest.prepares(phase)).then_some((phase, section))
    });
    let headline = |(phase, section): (&str, &Section)| {
        let kernel = *section.totals.hidden().unwrap_or(&section.totals.kernel);
        let is_beyond = kernel.beyond_luck() == Some(true);
        let function = || by_calls(section, &paths(phase)).or_else(|| own(section));
        Headline { phase: phase.to_owned(), kernel, function: is_beyond.then(function).flatten() }
    };
    measured.map(headline).collect()
}

/// The innermost function that has, with all that it calls, most of the change. Followed from the
/// outermost: a callee that only one side has was renamed, moved or inlined, so it is its caller
/// that changed.
fn by_calls(section: &Section, paths: &Paths) -> Option<Holder> {
    let mut within: Vec<&Path> = paths.paths.iter().filter(|_| paths.followed).collect();
    let mut depth = 0;
    let mut holder = None;
    loop {
        let sums = sums(&within);
        let Some((frame, inside)) = heaviest(&within, depth) else { break };
        let [base, new] = self::sums(&inside);
        let has_most = (new - base) / (sums[1] - sums[0]) >= MOST;
        // The first frame is who executes.
        if depth > 0 && (!has_most || base == 0.0 || new == 0.0) {
            break;
        }
        holder = (depth > 0).then(|| (frame.to_owned(), [base, new]));
        (within, depth) = (inside, depth + 1);
    }
    let (name, sums) = holder?;
    let entries = entries(section, &name)?;
    let per_entry = [sums[0] / entries[0], sums[1] / entries[1]];
    Some(Holder { name, inclusive: true, per_entry })
}

/// The frame at `depth` in which instructions changed most, and the paths with it.
fn heaviest<'a>(within: &[&'a Path], depth: usize) -> Option<(&'a str, Vec<&'a Path>)> {
    // Paths are in order, so those with the same frames up to here follow each other.
    let deeper: Vec<&Path> =
        within.iter().copied().filter(|path| path.frames.len() > depth).collect();
    let groups = deeper.chunk_by(|one, other| one.frames[depth] == other.frames[depth]);
    let change = |group: &[&Path]| {
        let [base, new] = sums(group);
        (new - base).abs()
    };
    let group = groups.max_by(|one, other| change(one).total_cmp(&change(other)))?;
    Some((&group[0].frames[depth], group.to_vec()))
}

fn sums(paths: &[&Path]) -> [f64; 2] {
    [paths.iter().map(|path| path.base).sum(), paths.iter().map(|path| path.new).sum()]
}

/// How often each side entered a function of the kernel; none if a side did not.
fn entries(section: &Section, function: &str) -> Option<[f64; 2]> {
    let is_it =
        |subject: &Subject| matches!(subject, Subject::Function { name, .. } if name == function);
    let mut found = section.contributions.iter().filter(|it| is_it(&it.subject));
    let (only, None) = (found.next()?, found.next()) else { return None };
    let Difference { base, new, .. } = only.calls.as_ref()?.entries;
    (base > 0.0 && new > 0.0).then_some([base, new])
}

/// The function whose own instructions per entry cost most.
fn own(section: &Section) -> Option<Holder> {
    let first = section.contributions.get(*section.per_entry.first()?)?;
    let Difference { base, new, .. } = first.calls.as_ref()?.per_entry?;
    let name = first.subject.to_string();
    Some(Holder { name, inclusive: false, per_entry: [base, new] })
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

    /// The loop of a function moved into one of its own, and got dearer there.
    #[test]
    fn the_caller_of_what_moved_holds_the_change() {
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
        let expected = Holder { name: "change".into(), inclusive: true, per_entry: [200.0, 482.0] };
        assert_eq!(holder, expected);
    }

    #[test]
    fn a_change_in_two_callees_is_their_callers() {
        let boot =
            |cost: u64| [executed(&[("sys", "", 2, 10), ("a", "", 2, cost), ("b", "", 2, cost)])];
        let section = all(&boot(100), &boot(200));
        let calls = paths(&[
            ("kernel sys", 10.0, 10.0),
            ("kernel sys a", 100.0, 200.0),
            ("kernel sys b", 100.0, 200.0),
        ]);
        assert_eq!(by_calls(&section, &calls).unwrap().name, "sys");
        // Where calls were not followed, the dearest function is named.
        let alone = Paths { followed: false, ..calls };
        assert_eq!(by_calls(&section, &alone), None);
        assert_eq!(own(&section).unwrap().per_entry, [50.0, 100.0]);
    }

    #[test]
    fn nothing_changed() {
        let boot = [executed(&[("sys", "", 2, 10)])];
        assert_eq!(by_calls(&all(&boot, &boot), &paths(&[("kernel sys", 10.0, 10.0)])), None);
        assert_eq!(by_calls(&all(&boot, &boot), &Paths::default()), None);
    }
}
