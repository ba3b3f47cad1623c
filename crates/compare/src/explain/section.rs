//! One phase, or all of them: totals, contributions and counters, ranked.

use std::collections::BTreeSet;

use super::contribution::{change, difference, of_function, plain};
use super::counters::{self, Growth};
use super::tally::{Identity, Tally};
use super::{Contribution, Subject};
use crate::Difference;

/// The difference in one phase, or in all phases together.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// The phase, empty before the first one; none for all phases together.
    pub phase: Option<String>,
    /// Instructions in all.
    pub totals: Totals,
    /// Change of the instructions in all, over [`super::Explanation::denominator`]: the sum of the
    /// changes of [`Section::contributions`].
    pub change: i128,
    /// Everything that executed instructions on a side, by how much it changed the total, the
    /// largest first.
    pub contributions: Vec<Contribution>,
    /// Functions among the contributions, by their places there, whose instructions per entry
    /// changed beyond luck. First those that cost most at equal work: by the excess over the luck
    /// floor times the smaller number of entries. At the end, by the whole change, those of which
    /// nothing is known of luck.
    pub per_entry: Vec<usize>,
    /// Counters of `/proc/vmstat` that grew by another amount: first those beyond luck, by the
    /// excess relative to what the baseline has, or to the floor if that is more; then those of
    /// which nothing is known of luck; then those within it.
    pub counters: Vec<Counter>,
}

/// Instructions by who executed them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Totals {
    /// By whomever.
    pub all: Difference,
    /// By programs in user mode.
    pub user: Difference,
    /// By the kernel.
    pub kernel: Difference,
    /// By firmware.
    pub firmware: Difference,
}

/// By how much a counter grew.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Its name in `/proc/vmstat`.
    pub name: String,
    /// Growth on each side.
    pub growth: Difference,
}

/// A section from the seeds of both sides; none if a side has no seed.
pub fn section<'a>(
    phase: Option<&str>,
    sides: &[Vec<Tally<'a>>; 2],
    growth: &[Vec<Growth<'_>>; 2],
) -> Option<Section> {
    let of = |figure: &dyn Fn(&Tally<'a>) -> i128| difference(&of_each(sides, figure));
    let totals = Totals {
        all: of(&Tally::total)?,
        user: of(&|tally| tally.user)?,
        kernel: of(&|tally| tally.kernel)?,
        firmware: of(&|tally| tally.firmware)?,
    };
    let mut contributions = contributions(sides);
    contributions.sort_by(|one, other| {
        let size = |it: &Contribution| std::cmp::Reverse(it.change.unsigned_abs());
        (size(one), &one.subject).cmp(&(size(other), &other.subject))
    });
    Some(Section {
        phase: phase.map(str::to_owned),
        totals,
        change: change(&of_each(sides, Tally::total)),
        per_entry: per_entry(&contributions),
        contributions,
        counters: counters::ranked(growth),
    })
}

fn of_each<'a>(sides: &[Vec<Tally<'a>>; 2], figure: impl Fn(&Tally<'a>) -> i128) -> [Vec<i128>; 2] {
    sides.each_ref().map(|seeds| seeds.iter().map(&figure).collect())
}

/// Everything that executed instructions. What is left over of the kernel's and the users'
/// instructions has rows of its own, so the changes add up to that of the total.
fn contributions(sides: &[Vec<Tally<'_>>; 2]) -> Vec<Contribution> {
    let seeds = || sides.iter().flatten();
    let functions: BTreeSet<Identity<'_>> =
        seeds().flat_map(|tally| tally.functions.keys().copied()).collect();
    let processes: BTreeSet<&str> =
        seeds().flat_map(|tally| tally.processes.keys().copied()).collect();
    let others = [
        (Subject::OtherFunctions, unclaimed_kernel as fn(&Tally<'_>) -> i128),
        (Subject::OtherProcesses, unclaimed_user),
        (Subject::Firmware, |tally| tally.firmware),
    ];
    let functions = functions.into_iter().filter_map(|identity| {
        let Identity { name, module } = identity;
        let executed =
            |tally: &Tally<'_>| tally.functions.get(&identity).copied().unwrap_or_default();
        let subject = Subject::Function { name: name.to_owned(), module: module.to_owned() };
        let sides = sides.each_ref().map(|seeds| seeds.iter().map(executed).collect::<Vec<_>>());
        of_function(subject, &sides)
    });
    let processes = processes.into_iter().filter_map(|name| {
        let executed = |tally: &Tally<'_>| tally.processes.get(name).copied().unwrap_or_default();
        plain(Subject::Process(name.to_owned()), &of_each(sides, executed))
    });
    let others =
        others.into_iter().filter_map(|(subject, figure)| plain(subject, &of_each(sides, figure)));
    let executed = |it: &Contribution| it.change != 0 || it.instructions.base != 0.0;
    functions.chain(processes).chain(others).filter(executed).collect()
}

fn unclaimed_kernel(tally: &Tally<'_>) -> i128 {
    tally.kernel - tally.functions.values().map(|it| it.instructions).sum::<i128>()
}

fn unclaimed_user(tally: &Tally<'_>) -> i128 {
    tally.user - tally.processes.values().sum::<i128>()
}

/// The places of the functions whose instructions per entry changed beyond luck, ranked.
fn per_entry(contributions: &[Contribution]) -> Vec<usize> {
    let mut ranked: Vec<(usize, bool, f64)> = contributions
        .iter()
        .enumerate()
        .filter_map(|(place, it)| {
            let calls = it.calls.as_ref()?;
            let cost = calls.per_entry?;
            let entries = calls.entries.base.min(calls.entries.new);
            let known = cost.floor.is_some();
            let dearer = if known { cost.excess() } else { cost.change().abs() };
            (dearer > 0.0).then_some((place, !known, dearer * entries))
        })
        .collect();
    ranked.sort_by(|one, other| {
        let subject = |place: usize| &contributions[place].subject;
        (one.1.cmp(&other.1))
            .then(other.2.total_cmp(&one.2))
            .then_with(|| subject(one.0).cmp(subject(other.0)))
    });
    ranked.into_iter().map(|(place, ..)| place).collect()
}
