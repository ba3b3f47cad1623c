//! Call paths as a tree of calls.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kernelfiles::entry::{self, Reason, is_entry};

use super::loops::is_copy_loop;
use super::paths::KERNEL;
use super::{Path, Paths};

/// Functions make up a change if their sum differs from it by at most this share, and no other function has more.
pub(super) const REST: f64 = 0.1;

/// A path, and those of its frames that count.
pub(super) type Walked<'a> = (Vec<&'a str>, &'a Path);

/// A call of a function on one path, with all that is called in it.
#[derive(Clone, Copy)]
pub(super) struct Call<'w, 'a> {
    /// The number of frames before the function.
    pub(super) depth: usize,
    /// The paths that begin with these frames and the function, in order.
    pub(super) paths: &'w [Walked<'a>],
}

impl<'w, 'a> Call<'w, 'a> {
    pub(super) fn name(&self) -> &'a str {
        self.paths[0].0[self.depth]
    }

    pub(super) fn sums(&self) -> [f64; 2] {
        sums(self.paths.iter().map(|(_, path)| *path))
    }

    pub(super) fn change(&self) -> f64 {
        let [base, new] = self.sums();
        new - base
    }

    /// The paths that end with the function, and the others. Paths are sorted, so the former are first.
    pub(super) fn split(&self) -> [Self; 2] {
        let depth = self.depth;
        let own = self.paths.partition_point(|(frames, _)| frames.len() <= depth + 1);
        let (own, rest) = self.paths.split_at(own);
        [own, rest].map(|paths| Call { depth, paths })
    }

    /// The calls in it, that with the largest change first.
    pub(super) fn callees(&self) -> Vec<Self> {
        let [_, Call { paths, .. }] = self.split();
        let depth = self.depth + 1;
        let calls = paths.chunk_by(|(one, _), (other, _)| one[depth] == other[depth]);
        let mut calls: Vec<Self> = calls.map(|paths| Call { depth, paths }).collect();
        calls.sort_by(|one, other| other.change().abs().total_cmp(&one.change().abs()));
        calls
    }

    /// The paths in it that call the function, in `within` if that is given.
    pub(super) fn paths_of(&self, function: &str, within: Option<&str>) -> Vec<&'a Path> {
        let paths = self.paths.iter().filter(|(frames, _)| calls_it(frames, within, function));
        paths.map(|(_, path)| *path).collect()
    }

    /// The functions in which the call is made, the innermost first, without the kernel as a whole.
    pub(super) fn callers(&self) -> impl Iterator<Item = &'a str> + use<'a, 'w> {
        self.paths[0].0[..self.depth].iter().rev().copied().filter(|it| *it != KERNEL)
    }

    /// The innermost call that has the change of this one, by way of callees that have it too. A callee with more than that
    /// took work over from others. A change is the same but for the share `rest`. `leads` says whether the way leads from a
    /// call to its callee.
    pub(super) fn innermost(self, rest: f64, leads: impl Fn(&Self, &Self) -> bool) -> Self {
        let share = |it: &Self| it.change() / self.change();
        let holds = |it: &Self| (share(it) - 1.0).abs() <= rest && is_on_both(&it.sums());
        let mut inner = self;
        while let Some(callee) = inner.callees().first().filter(|it| holds(it) && leads(&inner, it))
        {
            inner = *callee;
        }
        inner
    }
}

/// The frames of a path from `within` on, or all of them; empty if the path does not call `within`.
fn called_in<'f, 'a>(frames: &'f [&'a str], within: Option<&str>) -> &'f [&'a str] {
    let begin = within.map_or(Some(0), |within| frames.iter().position(|it| *it == within));
    &frames[begin.unwrap_or(frames.len())..]
}

/// Whether a path calls the function, in `within` if that is given.
pub(super) fn calls_it(frames: &[&str], within: Option<&str>, function: &str) -> bool {
    called_in(frames, within).contains(&function)
}

/// The instructions of each function with what it calls on both sides, wherever it is called; only where `within` calls
/// it if that is given.
pub(super) fn together<'w, 'a: 'w>(
    paths: impl IntoIterator<Item = &'w Walked<'a>>,
    within: Option<&str>,
) -> BTreeMap<&'a str, [f64; 2]> {
    let mut sums = BTreeMap::<&str, [f64; 2]>::new();
    for (frames, Path { base, new, .. }) in paths {
        let called = called_in(frames, within).iter().filter(|it| **it != KERNEL);
        for frame in called.collect::<BTreeSet<_>>() {
            let sum = sums.entry(frame).or_default();
            *sum = added(*sum, [*base, *new]);
        }
    }
    sums
}

/// Whether both sides executed a function that much that it is no other one by its name.
pub(super) fn is_on_both(&[base, new]: &[f64; 2]) -> bool {
    let least = base.min(new);
    least > 0.0 && least >= REST * base.max(new)
}

pub(super) fn sums<'a>(paths: impl IntoIterator<Item = &'a Path>) -> [f64; 2] {
    paths.into_iter().fold([0.0; 2], |sums, path| added(sums, [path.base, path.new]))
}

pub(super) fn added([base, new]: [f64; 2], more: [f64; 2]) -> [f64; 2] {
    [base + more[0], new + more[1]]
}

/// What made a processor execute a path of the kernel.
pub(super) fn reason(path: &Path) -> Option<Reason> {
    let functions = path.frames.iter().skip(1).map(String::as_str);
    entry::reason(&functions.collect::<Vec<_>>())
}

/// A path of the kernel: its reason, then the functions from that with which the reason begins. An interrupt is no call of
/// the function that it interrupts.
pub(super) fn asked<'a>(path: &'a Path, reason: &'a Option<Reason>) -> Vec<&'a str> {
    let (kernel, called) = path.frames.split_at(path.frames.len().min(1));
    let begin = reason.as_ref().map_or(0, |it| it.begin);
    let name = reason.iter().map(|it| &*it.name);
    let kernel = kernel.iter().map(String::as_str);
    kernel.chain(name).chain(called[begin..].iter().map(String::as_str)).collect()
}

/// The kernel's paths in order, each as [`asked`], without the functions that only one side executes, and without those
/// that one side's caller bypasses ([`bypassed`]). Functions by which the kernel is entered, and loops that copy memory and
/// take page faults in it, only lead to others: they are kept where it is their own cost, or that of functions that only
/// one side executes. `reasons` are those of all paths.
pub(super) fn walked<'a>(paths: &'a Paths, reasons: &'a [Option<Reason>]) -> Vec<Walked<'a>> {
    let all = paths.paths.iter().zip(reasons);
    let kernel = all.filter(|(path, _)| path.is_of_kernel());
    let mut executed = HashMap::<&str, [bool; 2]>::new();
    for (Path { frames, base, new }, _) in kernel.clone() {
        for frame in frames {
            let sides = executed.entry(frame).or_default();
            *sides = [sides[0] || *base > 0.0, sides[1] || *new > 0.0];
        }
    }
    let is_on_both = |frame: &&str| executed.get(frame).is_none_or(|it| *it == [true; 2]);
    let mut walked: Vec<Walked<'_>> = kernel
        .map(|(path, reason)| {
            let frames: Vec<&str> = asked(path, reason).into_iter().filter(is_on_both).collect();
            let last = frames.len().saturating_sub(1);
            let leads = |frame: &str| is_entry(frame) || is_copy_loop(frame);
            let counts = |(place, frame): &(usize, &str)| *place == last || !leads(frame);
            let frames = frames.into_iter().enumerate().filter(counts);
            (frames.map(|(_, frame)| frame).collect(), path)
        })
        .collect();
    let bypassed = bypassed(&walked);
    for (frames, _) in walked.iter_mut().filter(|_| !bypassed.is_empty()) {
        let is_kept = |place: usize| place == 0 || !bypassed.contains(&frames[place - 1..=place]);
        *frames = (0..frames.len()).filter(|it| is_kept(*it)).map(|it| frames[it]).collect();
    }
    walked.sort_by(|(one, _), (other, _)| one.cmp(other));
    walked
}

/// Functions, each after its caller, that one side has between the caller and a callee which the other side's caller calls
/// itself. The callee has at least half of the function's instructions there.
fn bypassed<'a>(walked: &[Walked<'a>]) -> BTreeSet<Vec<&'a str>> {
    let mut calls = HashMap::<&[&'a str], [f64; 2]>::new();
    for (frames, Path { base, new, .. }) in walked {
        let found: BTreeSet<&[&str]> = frames.windows(2).chain(frames.windows(3)).collect();
        for call in found {
            let sums = calls.entry(call).or_default();
            *sums = added(*sums, [*base, *new]);
        }
    }
    let is_bypassed = |chain: &[&'a str], sums: &[f64; 2]| {
        let around = calls[&chain[..2]];
        let Some(itself) = calls.get([chain[0], chain[2]].as_slice()) else { return false };
        let side = usize::from(sums[1] > sums[0]);
        [sums, &around, itself].iter().all(|it| !is_on_both(it))
            && is_on_both(&added(*sums, *itself))
            && 2.0 * sums[side] >= around[side]
    };
    let chains = calls.iter().filter(|(call, sums)| call.len() == 3 && is_bypassed(call, sums));
    chains.map(|(chain, _)| chain[..2].to_vec()).collect()
}
