//! One phase, or all of them: totals, contributions and counters, ranked.

use std::collections::BTreeSet;

use serde::Serialize;
use stats::Estimate;

use super::asked::{Asked, asked};
use super::contribution::{SeedContribution, of_function, plain};
use super::counters;
use super::equal::{self, AtEqualEntries};
use super::sides::Sides;
use super::tally::{Identity, Tally};
use super::{Contribution, Subject};
use crate::figures::growth::Growth;
use crate::verdicts::luck::{Entry, LEVEL, estimate, listed, reaches};
use crate::{Difference, FEWEST_FOR_LISTS};

/// The difference in one phase, or in all phases together.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// The phase's name, empty for the time before the first phase; `None` for all phases together.
    pub phase: Option<String>,
    /// Total instructions by who executed them.
    pub totals: Totals,
    /// Whether each side executed anything in it.
    pub executed: [bool; 2],
    /// Change of the total, over [`super::Explanation::denominator`], as the CPUs counted it. The changes of
    /// [`Section::contributions`] were counted by function. They add up to this change if [`Section::in_no_function`]
    /// is 0.
    pub change: i128,
    /// Kernel instructions of the CPUs minus the sum over functions, in the seed of either side in which the two
    /// differ most. Other values than 0 are an error of the profile.
    pub in_no_function: i128,
    /// All functions, processes and remainders that executed instructions on either side, by descending change.
    pub contributions: Vec<Contribution>,
    /// Indices in the contributions of the functions whose instructions per entry changed beyond luck. They are
    /// ordered by the cost at equal work: the excess over the luck floor times the smaller number of entries, but at
    /// most the change of the function's instructions, because entries can be of another kind where their number and
    /// their cost changed against each other. If luck is unknown, they are all functions whose figure changed,
    /// ordered by the whole change. Functions whose code is known to differ come before the others.
    pub per_entry: Vec<usize>,
    /// Counters of `/proc/vmstat` that grew by different amounts: first those beyond luck, then those with unknown
    /// luck, then those within luck. Counters beyond luck are ordered by the excess relative to the baseline's growth
    /// or to the floor, whichever is larger.
    pub counters: Vec<Counter>,
    /// The system calls and exceptions that ran, the most frequent first, without their instructions.
    pub asked: Vec<Asked>,
    /// The functions that have no part in [`Totals::equal`], because the cost of their entries is luck, the largest change
    /// first.
    pub left_out: Vec<LeftOut>,
    /// How many figures were compared with luck.
    pub compared: Compared,
    /// Estimates of the changes on which verdicts rest: of the kernel's total, and at equal entries. `None` where luck is
    /// unknown.
    pub judged: [Option<Estimate>; 2],
}

impl Section {
    /// Whether only one side has the phase.
    pub fn is_of_one_side(&self) -> bool {
        self.executed[0] != self.executed[1]
    }
}

/// Gives the changes on which verdicts rest joint luck floors, as in a comparison of two variants: luck alone lifts any of
/// them above its floor in at most the share [`LEVEL`] of cases.
pub fn set_joint_floors<'a>(sections: impl Iterator<Item = &'a mut Section>) {
    let changes = sections.flat_map(|section| {
        let Totals { kernel, equal, .. } = &mut section.totals;
        let known = [Some(kernel), equal.as_mut()].into_iter().zip(section.judged);
        known.filter_map(|(difference, estimate)| difference.zip(estimate)).collect::<Vec<_>>()
    });
    let (differences, estimates): (Vec<&mut Difference>, Vec<Estimate>) = changes.unzip();
    for (difference, reach) in differences.into_iter().zip(reaches(&estimates, LEVEL)) {
        difference.floor = Some(reach);
        *difference = difference.of_total();
    }
}

/// Numbers of figures that have a luck floor. The more there are, the more of them exceed it by luck alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// Number of functions whose instructions per entry were compared.
    pub per_entry: usize,
    /// Number of contributions whose instructions were compared.
    pub contributions: usize,
    /// Number of counters, including unchanged ones.
    pub counters: usize,
}

/// Instructions by who executed them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Totals {
    /// Instructions of user mode, kernel and firmware together.
    #[serde(rename = "total")]
    pub all: Difference,
    /// Instructions of programs in user mode.
    pub user: Difference,
    /// Instructions of the kernel.
    pub kernel: Difference,
    /// Instructions of firmware.
    pub firmware: Difference,
    /// By the kernel, at equal entries of its functions: [`crate::explain::equal`]. `None` where a seed has no
    /// functions.
    #[serde(rename = "kernel_at_equal_entries")]
    pub equal: Option<Difference>,
}

impl Totals {
    /// The figure at equal entries, if its change is beyond luck and luck hides it in the total of the kernel's
    /// instructions. Verdicts then rest on this figure.
    pub fn hidden(&self) -> Option<&Difference> {
        let equal = self.equal.as_ref().filter(|equal| self.kernel.hides(equal));
        equal.filter(|equal| equal.beyond_luck() == Some(true))
    }
}

/// A function that has no part in the figure at equal entries, because the cost of its entries is luck.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeftOut {
    /// The function's name, with its module.
    pub function: String,
    /// The change of its instructions at equal entries.
    pub change: f64,
}

/// The growth of a counter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Counter {
    /// Its name in `/proc/vmstat`.
    pub name: String,
    /// Growth on each side.
    pub growth: Difference,
}

/// A section from the seeds of both sides; `None` if a side has no seed.
pub fn section(
    phase: Option<&str>,
    sides: &Sides<Tally<'_>>,
    growth: &Sides<Growth<'_>>,
) -> Option<Section> {
    let total = sides.map(Tally::total);
    let of_total = |figures: &Sides<i128>| Some(figures.difference()?.of_total());
    let (equal, left_out) = at_equal_entries(sides).unzip();
    let totals = Totals {
        all: of_total(&total)?,
        user: of_total(&sides.map(|tally| tally.user))?,
        kernel: of_total(&sides.map(|tally| tally.kernel))?,
        firmware: of_total(&sides.map(|tally| tally.firmware))?,
        equal: equal.as_ref().and_then(|it| Some(it.difference()?.of_total())),
    };
    let kernel = sides.map(|tally| Some(tally.kernel as f64));
    let judged = [
        (totals.kernel.floor, Some(&kernel)),
        (totals.equal.and_then(|it| it.floor), equal.as_ref()),
    ];
    let judged = judged.map(|(floor, sides)| {
        let [base, new] = sides.filter(|_| floor.is_some())?.known();
        estimate(&base, &new)
    });
    let mut contributions = among_others(contributions(sides));
    contributions.sort_by(|one, other| {
        let size = |it: &Contribution| std::cmp::Reverse(it.change.unsigned_abs());
        (size(one), &one.subject).cmp(&(size(other), &other.subject))
    });
    let mut counters = counters::ranked(growth);
    let compared = compared(&contributions, &counters);
    counters.retain(|counter| counter.growth.change() != 0.0);
    let in_no_function = sides.iter().map(Tally::in_no_function);
    Some(Section {
        phase: phase.map(str::to_owned),
        totals,
        executed: sides.seeds.each_ref().map(|side| side.iter().any(Tally::has_executed)),
        change: total.change(),
        in_no_function: in_no_function.max_by_key(|it| (it.unsigned_abs(), *it)).unwrap_or(0),
        per_entry: per_entry(&contributions),
        contributions,
        counters,
        asked: asked(sides),
        left_out: left_out.unwrap_or_default(),
        compared,
        judged,
    })
}

/// The instructions at equal entries of the seeds, and the functions that have no part in them, the largest change first.
fn at_equal_entries(sides: &Sides<Tally<'_>>) -> Option<(Sides<Option<f64>>, Vec<LeftOut>)> {
    let AtEqualEntries { seeds, left_out } =
        equal::instructions(sides.seeds.each_ref().map(|side| side.iter()))?;
    let enough = seeds.iter().all(|side| side.len() >= FEWEST_FOR_LISTS as usize);
    let seeds = seeds.map(|side| side.into_iter().map(Some).collect());
    let left_out = left_out.into_iter().map(|(function, change)| {
        let Identity { name, module } = function;
        let subject = Subject::Function { name: name.to_owned(), module: module.to_owned() };
        LeftOut { function: subject.to_string(), change }
    });
    let mut left_out: Vec<LeftOut> = left_out.collect();
    left_out.sort_by(|one, other| other.change.abs().total_cmp(&one.change.abs()));
    Some((Sides { seeds, complete: sides.complete && enough }, left_out))
}

fn compared(contributions: &[Contribution], counters: &[Counter]) -> Compared {
    let with_floor = |it: &&Difference| it.floor.is_some();
    let costs = contributions.iter().filter_map(|it| it.calls.as_ref()?.per_entry.as_ref());
    Compared {
        per_entry: costs.filter(with_floor).count(),
        contributions: contributions.iter().map(|it| &it.instructions).filter(with_floor).count(),
        counters: counters.iter().map(|it| &it.growth).filter(with_floor).count(),
    }
}

/// The contributions of functions, of processes, and of the remaining instructions of the CPUs in user mode and in
/// firmware.
fn contributions(sides: &Sides<Tally<'_>>) -> Vec<SeedContribution> {
    let functions: BTreeSet<Identity<'_>> =
        sides.iter().flat_map(|tally| tally.functions.keys().copied()).collect();
    let processes: BTreeSet<&str> =
        sides.iter().flat_map(|tally| tally.processes.keys().copied()).collect();
    let functions = functions.into_iter().filter_map(|identity| {
        let Identity { name, module } = identity;
        let subject = Subject::Function { name: name.to_owned(), module: module.to_owned() };
        of_function(subject, &sides.map(|tally| tally.executed(identity)))
    });
    let processes = processes.into_iter().filter_map(|name| {
        let executed = |tally: &Tally<'_>| tally.processes.get(name).copied().unwrap_or_default();
        plain(Subject::Process(name.to_owned()), &sides.map(executed))
    });
    let others = [
        plain(Subject::OtherProcesses, &sides.map(Tally::of_no_process)),
        plain(Subject::Firmware, &sides.map(|tally| tally.firmware)),
    ];
    let executed = |it: &SeedContribution| {
        let Contribution { change, instructions, .. } = &it.contribution;
        *change != 0 || instructions.base != 0.0
    };
    functions.chain(processes).chain(others.into_iter().flatten()).filter(executed).collect()
}

/// Gives the contributions their floors as entries of a list. Instructions are one list, instructions per entry
/// another.
fn among_others(mut all: Vec<SeedContribution>) -> Vec<Contribution> {
    let instructions = all.iter_mut().map(|it| Entry {
        difference: &mut it.contribution.instructions,
        values: it.instructions.clone(),
        scale: 1.0,
    });
    listed(instructions, true);
    let per_entry = all.iter_mut().filter_map(|it| {
        let calls = it.contribution.calls.as_mut()?;
        let Difference { base, new, .. } = calls.entries;
        let difference = calls.per_entry.as_mut()?;
        Some(Entry { difference, values: it.per_entry.clone(), scale: (base + new) / 2.0 })
    });
    listed(per_entry, true);
    all.into_iter().map(|it| it.contribution).collect()
}

/// Ranked indices of the functions whose instructions per entry changed beyond luck; if luck is unknown, of all
/// functions whose figure changed.
fn per_entry(contributions: &[Contribution]) -> Vec<usize> {
    let luck_is_known = contributions.iter().any(|it| it.instructions.floor.is_some());
    let mut ranked: Vec<(usize, f64)> = contributions
        .iter()
        .enumerate()
        .map(|(place, it)| (place, it.cost_at_equal_work(luck_is_known), it))
        .filter(|(_, cost, _)| *cost > 0.0)
        .map(|(place, cost, it)| (place, cost.min(it.instructions.change().abs())))
        .collect();
    ranked.sort_by(|one, other| {
        let subject = |place: usize| &contributions[place].subject;
        (other.1.total_cmp(&one.1)).then_with(|| subject(one.0).cmp(subject(other.0)))
    });
    ranked.into_iter().map(|(place, ..)| place).collect()
}
