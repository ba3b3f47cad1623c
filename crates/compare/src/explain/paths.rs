//! A cost by path of calls, on both sides.

use std::collections::BTreeMap;

use model::{Boot, Name, Place, Profile, USER, WorkloadUse, program_frames};

use super::tally::Tally;
use super::{Span, profiles, seeds};
use crate::VariantBoots;
use code::{Piece, Symbol};

/// A cost of two variants by call path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Paths {
    /// Whether calls were followed on both sides. If not, a kernel path is a single function.
    pub followed: bool,
    /// The paths, sorted by their frames.
    pub paths: Vec<Path>,
}

/// A path of calls with its cost: means over the seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Who executes (`kernel`, a process, `firmware`), then the functions, the outermost first.
    pub frames: Vec<String>,
    /// Own cost of the last frame on this path, in the baseline.
    pub base: f64,
    /// Own cost of the last frame on this path, in the other variant.
    pub new: f64,
}

impl Path {
    /// Whether the kernel executes it, and no program.
    pub(super) fn is_of_kernel(&self) -> bool {
        self.frames.first().is_some_and(|frame| frame == KERNEL)
    }
}

/// The paths of a workload on both sides, in one phase or in the measured phases. If some seeds of a side followed
/// calls, its other seeds are left out.
pub fn paths(
    base: &VariantBoots<'_>,
    new: &VariantBoots<'_>,
    used: &WorkloadUse,
    (phase, cost): (Option<&str>, &str),
) -> Paths {
    let all = seeds([base, new], used);
    let span = Span::of(phase, &all, used);
    let with_stacks = all.each_ref().map(|boots| {
        let followed = |boot: &&Boot| profiles(boot, used, Span::All).any(|it| has_paths(it, cost));
        boots.iter().copied().filter(followed).collect::<Vec<_>>()
    });
    let followed = with_stacks.iter().all(|boots| !boots.is_empty());
    let sides = if followed { with_stacks } else { all };
    let mut means = BTreeMap::<Vec<&str>, [f64; 2]>::new();
    for (side, boots) in sides.iter().enumerate() {
        for (frames, sum) in sums(boots, used, (span, cost), followed) {
            means.entry(frames).or_default()[side] = sum as f64 / boots.len() as f64;
        }
    }
    let paths = means.into_iter().filter(|(_, [base, new])| *base > 0.0 || *new > 0.0);
    let paths = paths.map(|(frames, [base, new])| Path {
        frames: frames.into_iter().map(str::to_owned).collect(),
        base,
        new,
    });
    Paths { followed, paths: paths.collect() }
}

/// The paths of one side with their instructions, over all its seeds.
pub(super) fn sums<'a>(
    boots: &[&'a Boot],
    used: &WorkloadUse,
    (span, cost): (Span<'_>, &str),
    followed: bool,
) -> BTreeMap<Vec<&'a str>, i128> {
    let mut sums = BTreeMap::new();
    let mut add = |frames, sum: i128| *sums.entry(frames).or_default() += sum;
    let all = boots.iter().flat_map(|boot| profiles(boot, used, span));
    for profile in all.filter(|_| followed) {
        let number = profile.costs.number(cost);
        for row in profile.costs.rows() {
            let sum = row.sum(number).cast_signed();
            match row.place {
                Place::Path(functions) => add(frames(functions), sum),
                Place::Process { name, functions, .. } => {
                    add(std::iter::once(&**name).chain(program_frames(functions)).collect(), sum);
                }
                _ => {}
            }
        }
    }
    for tally in boots.iter().map(|boot| Tally::of(profiles(boot, used, span), cost)) {
        if !followed {
            let functions = tally.functions.iter();
            functions.for_each(|(it, sum)| add(vec![KERNEL, it.name], sum.cost));
            tally.processes.iter().for_each(|(name, sum)| add(vec![name, USER], *sum));
        }
        add(vec![FIRMWARE], tally.firmware);
    }
    sums
}

/// First frame of each path in the kernel.
pub const KERNEL: &str = "kernel";
const FIRMWARE: &str = "firmware";

/// Whether a profile has the cost by path.
pub(super) fn has_paths(profile: &Profile, cost: &str) -> bool {
    let number = profile.costs.number(cost);
    let is_main = cost == profile.main_cost();
    let is_path = |place: &Place| matches!(place, Place::Path(_));
    profile.costs.rows().any(|row| is_path(row.place) && (is_main || row.sum(number) > 0))
}

/// The frames of a kernel path. A part of a function does not count as a call.
fn frames(functions: &[Name]) -> Vec<&str> {
    let mut frames = vec![KERNEL];
    for function in functions {
        let Symbol { name, piece } = Symbol::of(function);
        if !(piece != Piece::Whole && frames.len() > 1 && frames.last() == Some(&name)) {
            frames.push(name);
        }
    }
    frames
}
