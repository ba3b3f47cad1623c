//! Instructions by path of calls, on both sides.

use std::collections::BTreeMap;

use model::{Boot, Profile, USER, WorkloadUse};

use super::tally::Tally;
use super::{Span, profiles, seeds};
use crate::VariantBoots;
use code::{Piece, Symbol};

/// The instructions of two variants by path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Paths {
    /// Whether calls were followed on both sides. If not, a kernel path is a single function.
    pub followed: bool,
    /// The paths, in order.
    pub paths: Vec<Path>,
}

/// A path of calls with its instructions: means over the seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Who executes (`kernel`, a process, `firmware`), then the functions, the outermost first.
    pub frames: Vec<String>,
    /// Own instructions of the last frame on this path, in the baseline.
    pub base: f64,
    /// The same in the other variant.
    pub new: f64,
}

/// The paths of a workload on both sides, of one phase or of the measured phases. Seeds that did not follow calls are
/// left out where others of their side did.
pub fn paths(
    base: &VariantBoots<'_>,
    new: &VariantBoots<'_>,
    used: &WorkloadUse,
    phase: Option<&str>,
) -> Paths {
    let all = [seeds(base, used), seeds(new, used)];
    let measured = || Span::measured(all.iter().flatten().copied(), used);
    let span = phase.map_or_else(measured, Span::Phase);
    let with_stacks = all.each_ref().map(|boots| {
        let followed = |boot: &&Boot| profiles(boot, used, Span::All).any(has_stacks);
        boots.iter().copied().filter(followed).collect::<Vec<_>>()
    });
    let followed = with_stacks.iter().all(|boots| !boots.is_empty());
    let sides = if followed { with_stacks } else { all };
    let mut means = BTreeMap::<Vec<&str>, [f64; 2]>::new();
    for (side, boots) in sides.iter().enumerate() {
        for (frames, sum) in sums(boots, used, span, followed) {
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
fn sums<'a>(
    boots: &[&'a Boot],
    used: &WorkloadUse,
    span: Span<'_>,
    followed: bool,
) -> BTreeMap<Vec<&'a str>, i128> {
    let mut sums = BTreeMap::new();
    let mut add = |frames, instructions: i128| *sums.entry(frames).or_default() += instructions;
    let all = boots.iter().flat_map(|boot| profiles(boot, used, span));
    for profile in all.filter(|_| followed) {
        for stack in &profile.stacks {
            add(frames(&stack.functions), stack.instructions.into());
        }
        for process in &profile.processes {
            let instructions = process.instructions.iter().copied().map(i128::from).sum();
            add(std::iter::once(&*process.name).chain(process.frames()).collect(), instructions);
        }
    }
    for tally in boots.iter().map(|boot| Tally::of(profiles(boot, used, span))) {
        if !followed {
            let functions = tally.functions.iter();
            functions.for_each(|(it, sum)| add(vec![KERNEL, it.name], sum.instructions));
            tally.processes.iter().for_each(|(name, sum)| add(vec![name, USER], *sum));
        }
        add(vec![FIRMWARE], tally.firmware);
    }
    sums
}

/// First frame of each path in the kernel.
pub const KERNEL: &str = "kernel";
const FIRMWARE: &str = "firmware";

fn has_stacks(profile: &Profile) -> bool {
    !profile.stacks.is_empty()
}

/// The frames of a kernel path. A part of a function does not count as a call.
fn frames(functions: &[String]) -> Vec<&str> {
    let mut frames = vec![KERNEL];
    for function in functions {
        let Symbol { name, piece } = Symbol::of(function);
        if !(piece != Piece::Whole && frames.len() > 1 && frames.last() == Some(&name)) {
            frames.push(name);
        }
    }
    frames
}
