//! The functions that hold the change of a phase: by call paths with what they call, otherwise by their own cost.

use std::collections::{BTreeMap, BTreeSet};

use kernelfiles::entry::is_entry;
use serde::Serialize;

use super::calls::{Call, REST, Walked, added, calls_it, is_on_both, sums, together, walked};
use super::moved::{self, Moved};
use super::offset::{OwnCost, callers, offset};
use super::{Contribution, Path, Paths, Section, Subject};
use crate::Difference;

/// A function whose own instructions hold the change has at least this share of it.
const HALF: f64 = 0.5;
/// A function that many call is named if it has at least this share of the change.
const SMALL: f64 = 0.05;
/// A callee of a holder without entries is named if it has at least this share of the change.
const NOTABLE: f64 = 0.1;
/// A change is divided between at most this many functions.
const PARTS: usize = 3;

/// The functions that hold the change of a phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Held {
    /// The function that holds the change with what it calls. `None` if no function does.
    pub function: Option<Holder>,
    /// The functions between which the change divides.
    pub divided: Option<Divided>,
}

/// Functions that have parts of a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Divided {
    /// The functions, that with the largest part of the change first.
    pub parts: Vec<Holder>,
    /// Whether they make up the change. If not, they are only the largest.
    pub complete: bool,
    /// The share of the change that is in none of them.
    pub elsewhere: f64,
}

/// The function that holds a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Holder {
    /// The function's name.
    pub name: String,
    /// Whether the figures include those of its callees.
    pub inclusive: bool,
    /// The function in which it is called, directly or not, if the figures are those of these calls alone. `None` if
    /// they are those of all calls.
    pub within: Option<String>,
    /// Functions that call it, directly or not, in calls that the figures leave out, because these functions have them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<String>,
    /// Instructions on both sides.
    pub instructions: [f64; 2],
    /// Entries on both sides. `None` if a side has none, because a kernel thread entered its function before the phase,
    /// or if the figures are those of a part of its calls: entries are not known by call path.
    pub entries: Option<[f64; 2]>,
    /// Its share of the phase's change; above 1 if other functions offset a part of it.
    pub share: f64,
    /// Own instructions on both sides of each function in it whose instructions differ, the largest change first.
    /// Empty without callees.
    pub parts: Vec<OwnCost>,
    /// Whether [`Holder::parts`] are per entry: if both sides entered it as often but for 1 %. Otherwise its entries may do
    /// different work, and the change of an entry cannot be divided.
    pub parts_per_entry: bool,
    /// The callee with the largest change, if the holder has no entries.
    pub callee: Option<Callee>,
    /// The callee with most of the change, if one side calls it elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved: Option<Moved>,
}

/// A function that the holder of a change calls, directly or not, and that both sides entered. Its own instructions
/// changed most of all such functions.
#[derive(Clone, Debug, PartialEq, Serialize)]
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

    /// The function's instructions on both sides of other paths, of the same calls.
    pub fn instructions_in(&self, paths: &Paths) -> [f64; 2] {
        let is_its = |path: &&Path| {
            let frames: Vec<&str> = path.frames.iter().map(String::as_str).collect();
            let is_called = calls_it(&frames, self.within.as_deref(), &self.name);
            let is_own = frames.last() == Some(&&*self.name);
            (if self.inclusive { is_called } else { is_own })
                && !self.outside.iter().any(|it| calls_it(&frames, None, it))
        };
        sums(paths.paths.iter().filter(is_its))
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

/// Entries on both sides are alike if they differ by at most this share of the larger number.
const ALIKE: f64 = 0.01;

fn are_alike([base, new]: [f64; 2]) -> bool {
    (new - base).abs() <= ALIKE * base.max(new)
}

fn per_entry(instructions: [f64; 2], entries: [f64; 2]) -> [f64; 2] {
    [instructions[0] / entries[0], instructions[1] / entries[1]]
}

/// The functions that hold the change, by call paths. Functions by which the kernel is entered only lead to others
/// ([`is_entry`]). Functions that only one side executes were renamed, moved or inlined: what they call counts as
/// called by their caller.
pub fn by_calls(section: &Section, paths: &Paths) -> Held {
    let walked = walked(paths);
    let kernel = Call { depth: 0, paths: &walked };
    let (all, calls) = (kernel.change(), kernel.callees());
    if all == 0.0 || calls.is_empty() {
        return Held::default();
    }
    let holder = |call: Call<'_, '_>| holder(section, call, kernel);
    let between = |calls: &mut dyn Iterator<Item = Call<'_, '_>>| {
        let mut parts = Vec::<Holder>::new();
        for part in calls.map(holder) {
            // Calls in several places may be of one function. Figures of all its calls contain those within a caller.
            if parts.iter().any(|it| it.name == part.name && it.within.is_none()) {
                continue;
            }
            if part.within.is_none() {
                parts.retain(|it| it.name != part.name);
            }
            parts.push(part);
        }
        parts.sort_by(|one, other| other.share.abs().total_cmp(&one.share.abs()));
        let is_in = |(frames, _): &Walked<'_>| {
            parts.iter().any(|it| calls_it(frames, it.within.as_deref(), &it.name))
        };
        let others = walked.iter().filter(|path| !is_in(path));
        let elsewhere = others.map(|(_, path)| path.new - path.base).sum::<f64>() / all;
        Divided { parts, complete: true, elsewhere }
    };
    // Innermost callees may have a tenth less than their callers. If too much is then elsewhere, the callers are named.
    let divided = |calls: &[Call<'_, '_>]| {
        let inside = between(&mut calls.iter().map(|it| it.innermost()));
        match inside.elsewhere.abs() <= REST {
            true => inside,
            false => between(&mut calls.iter().copied()),
        }
    };
    let luck = section.totals.kernel.floor.unwrap_or(0.0);
    let number = if is_alone(&calls, all, luck) { Some(1) } else { enough(&calls, all) };
    match number {
        Some(1) => {
            let call = calls[0].innermost();
            let divided = within(call, all).map(|calls| divided(&calls));
            Held { function: Some(holder(call)), divided }
        }
        Some(number) => {
            let found = Some(divided(&calls[..number]));
            // Work that moved between callers of one function is one part, such as that of RCU between its thread and
            // interrupts.
            let moved = found.as_ref().filter(|it| may_have_moved(&it.parts));
            let whole = moved.and_then(|_| across(section, kernel)).filter(|it| it.complete);
            let divided = whole.or(found);
            Held { function: None, divided }
        }
        None => Held { function: None, divided: across(section, kernel) },
    }
}

/// Whether two of these are the same function, called in different places, or hardly one side executed one of them, or
/// what one of them calls.
fn may_have_moved(parts: &[Holder]) -> bool {
    let names: BTreeSet<&str> = parts.iter().map(|it| &*it.name).collect();
    let has_moved = |it: &Holder| it.moved.is_some() || !is_on_both(&it.instructions);
    names.len() < parts.len() || parts.iter().any(has_moved)
}

/// Divides the change of the kernel between functions, each with what it calls, whatever calls them: a function may do
/// in one place what it did in another, or have small parts of the change in many places. What is called in a function
/// named before counts as its. `None` if no function has a part of the change.
fn across(section: &Section, kernel: Call<'_, '_>) -> Option<Divided> {
    let all = kernel.change();
    let mut left: Vec<Walked<'_>> = kernel.paths.to_vec();
    let mut parts = Vec::new();
    let mut taken: Vec<&str> = Vec::new();
    let mut next = largest_in(&left);
    let is_large = |(_, change): &(&str, f64)| (change / all).abs() >= SMALL;
    while let Some((name, _)) = next.filter(is_large).filter(|_| parts.len() < PARTS) {
        let of_all = of_calls(section, name, None, (Call { depth: 0, paths: &left }, kernel));
        let calls_both = |other: &str| {
            let mut paths = kernel.paths.iter();
            paths.any(|(frames, _)| calls_it(frames, None, other) && calls_it(frames, None, name))
        };
        let outside = taken.iter().filter(|it| calls_both(it)).map(|it| (*it).to_owned());
        let part = Holder { outside: outside.collect(), ..of_all };
        left.retain(|(frames, _)| !calls_it(frames, None, name));
        taken.push(name);
        // What it does less in one place it does more in another.
        if part.share.abs() >= SMALL {
            parts.push(part);
        }
        next = largest_in(&left);
    }
    parts.sort_by(|one: &Holder, other| other.share.abs().total_cmp(&one.share.abs()));
    let elsewhere = 1.0 - parts.iter().map(|it| it.share).sum::<f64>();
    let is_small = |share: f64| share.abs() <= REST;
    let complete = is_small(elsewhere) && next.is_none_or(|(_, change)| is_small(change / all));
    (!parts.is_empty()).then_some(Divided { parts, complete, elsewhere })
}

/// The function in these paths that is named next, and the change for which it is named: the innermost function in the
/// call with the largest change, or one that several calls have in common and that has a larger change in them together.
fn largest_in<'a>(paths: &[Walked<'a>]) -> Option<(&'a str, f64)> {
    let all = Call { depth: 0, paths };
    let calls = if paths.is_empty() { Vec::new() } else { all.callees() };
    let first = calls.first().filter(|it| it.change() != 0.0)?;
    let found = common(&calls).max_by(|(_, one), (_, other)| one.abs().total_cmp(&other.abs()));
    let Some((name, most)) = found.filter(|it| it.1.abs() > (1.0 + REST) * first.change().abs())
    else {
        let innermost = first.innermost();
        let moved = || moved::callee(innermost.name(), innermost.paths, all).map(|it| it.0);
        let name = moved_from(innermost, all).or_else(moved).unwrap_or(innermost.name());
        return Some((name, first.change()));
    };
    // Of the function and its callees that have nearly the same change in it, the innermost.
    let mut chain = vec![name];
    loop {
        let inside = together(paths.iter(), chain.last().copied());
        let mut callees = inside.iter().filter(|(callee, [base, new])| {
            !chain.contains(*callee) && ((new - base) / most - 1.0).abs() <= REST
        });
        match callees.find(|(_, sums)| is_on_both(sums)) {
            Some((callee, _)) => chain.push(callee),
            None => return chain.last().map(|innermost| (*innermost, most)),
        }
    }
}

/// The innermost function in a call that has the call's change, if hardly one side makes the call, and both sides execute
/// the function in `all`: its work moved to or from other places.
fn moved_from<'a>(call: Call<'_, 'a>, all: Call<'_, 'a>) -> Option<&'a str> {
    let mut found = None;
    let mut inside = (!is_on_both(&call.sums())).then_some(call);
    while let Some(it) = inside {
        let first = it.callees().first().copied();
        inside = first.filter(|it| (it.change() / call.change() - 1.0).abs() <= REST);
        let name = inside.map(|it| it.name());
        found = name.filter(|it| is_on_both(&sums(all.paths_of(it, None)))).or(found);
    }
    found
}

/// The functions that several of these calls have in common, each with its change in all of them. One that has its
/// change in a single call is none: others in that call may offset it.
fn common<'a>(calls: &[Call<'_, 'a>]) -> impl Iterator<Item = (&'a str, f64)> + use<'a> {
    let mut sums = BTreeMap::<&str, ([f64; 2], f64)>::new();
    for call in calls {
        for (name, more) in together(call.paths.iter(), None) {
            let (sum, largest) = sums.entry(name).or_default();
            *sum = added(*sum, more);
            *largest = largest.max((more[1] - more[0]).abs());
        }
    }
    sums.into_iter().filter_map(|(name, (sum, largest))| {
        let change = sum[1] - sum[0];
        (is_on_both(&sum) && largest < (1.0 - REST) * change.abs()).then_some((name, change))
    })
}

/// Whether the first of these calls has the change `all` or more of it, and what all others have together, and each of
/// them, is within `luck`.
fn is_alone(calls: &[Call<'_, '_>], all: f64, luck: f64) -> bool {
    let (first, others) = (calls[0].change(), &calls[1..]);
    let is_luck = |change: f64| change.abs() <= luck;
    first / all >= 1.0 - REST
        && is_luck(all - first)
        && others.iter().all(|it| is_luck(it.change()))
}

/// The number of the first calls that make up the change `all`; `None` if it takes too many.
fn enough(calls: &[Call<'_, '_>], all: f64) -> Option<usize> {
    (1..=calls.len().min(PARTS)).find(|&number| {
        let (named, others) = calls.split_at(number);
        let sum: f64 = named.iter().map(Call::change).sum();
        let largest = others.first().map_or(0.0, Call::change);
        (sum / all - 1.0).abs() <= REST && (largest / all).abs() <= REST
    })
}

/// The callees of the function that holds a change, if two or three make it up. `None` if they changed in opposite
/// directions, or only one side has one: then work moved between them.
fn within<'w, 'a>(call: Call<'w, 'a>, all: f64) -> Option<Vec<Call<'w, 'a>>> {
    let [own, _] = call.split();
    let mut calls = call.callees();
    calls.truncate(enough(&calls, all).filter(|number| *number > 1)?);
    let moved = |it: &Call<'_, '_>| it.change() / all < 0.0 || it.sums().contains(&0.0);
    ((own.change() / all).abs() <= REST && !calls.iter().any(moved)).then_some(calls)
}

/// The figures of a function with what it calls: of all its calls if their change is that of `call`, otherwise of those
/// in the innermost caller whose calls have that change. Functions by which the kernel is entered have their own cost.
/// `kernel` has all paths.
fn holder(section: &Section, call: Call<'_, '_>, kernel: Call<'_, '_>) -> Holder {
    let off = |within: &Option<&str>| {
        let [base, new] = sums(kernel.paths_of(call.name(), *within));
        (new - base - call.change()).abs()
    };
    let choices: Vec<Option<&str>> = [None].into_iter().chain(call.callers().map(Some)).collect();
    let agrees = |within: &&Option<&str>| off(within) <= REST * kernel.change().abs();
    let nearest = || choices.iter().min_by(|one, other| off(one).total_cmp(&off(other)));
    let within = choices.iter().find(agrees).or_else(nearest).copied().flatten();
    of_calls(section, call.name(), within, (kernel, kernel))
}

/// The figures of a function with what it calls: of its calls in `within`, or of all of them, in the paths `left` of all
/// those of the `kernel`.
fn of_calls(
    section: &Section,
    name: &str,
    within: Option<&str>,
    (left, kernel): (Call<'_, '_>, Call<'_, '_>),
) -> Holder {
    let walked: Vec<&Walked<'_>> =
        left.paths.iter().filter(|(frames, _)| calls_it(frames, within, name)).collect();
    let paths: Vec<&Path> = walked.iter().map(|(_, path)| *path).collect();
    let instructions = sums(paths.iter().copied());
    let are_all = || within.is_none() && paths.len() == kernel.paths_of(name, None).len();
    let entries = entries(section, name).filter(|_| are_all());
    let parts_per_entry = entries.is_some_and(are_alike);
    let mut own = BTreeMap::<&str, [f64; 2]>::new();
    for Path { frames, base, new } in &paths {
        let sum = own.entry(frames.last().map_or("", String::as_str)).or_default();
        *sum = added(*sum, [*base, *new]);
    }
    let part = |(name, sums): (&str, _)| OwnCost {
        name: name.to_owned(),
        own: entries.filter(|_| parts_per_entry).map_or(sums, |it| per_entry(sums, it)),
        ..OwnCost::default()
    };
    let callers = callers(&paths, &own);
    let differs = |(_, [base, new]): &(&str, [f64; 2])| base != new;
    let parts = offset(own.into_iter().filter(differs).map(part).collect(), &callers);
    let change = instructions[1] - instructions[0];
    let callee = match entries {
        None => callee(section, name, change, &parts, kernel),
        Some(_) => None,
    };
    Holder {
        inclusive: !is_entry(name),
        name: name.to_owned(),
        within: within.map(str::to_owned),
        outside: Vec::new(),
        instructions,
        entries,
        share: change / kernel.change(),
        parts,
        parts_per_entry,
        callee,
        moved: moved::moved(name, walked, kernel, |it| self::entries(section, it)),
    }
}

/// Of the functions that both sides entered, the one whose own instructions have the largest part of the change of
/// `holder`; `None` if that part is below [`NOTABLE`]. A function that absorbed others is none: with what it calls, wherever
/// that is in the `kernel`, it changed otherwise than its own instructions.
fn callee(
    section: &Section,
    holder: &str,
    change: f64,
    parts: &[OwnCost],
    kernel: Call<'_, '_>,
) -> Option<Callee> {
    let is_notable = |[base, new]: &[f64; 2]| (new - base) / change >= NOTABLE;
    let alone = parts.iter().filter(|it| it.with.is_none());
    let mut parts = alone.filter(|it| it.name != holder && is_notable(&it.own));
    parts.find_map(|OwnCost { name, .. }| {
        let function = function(section, name)?;
        let calls = function.calls.as_ref()?;
        let [before, now] = sums(kernel.paths_of(name, None));
        let is_its = (now - before) / function.instructions.change() >= HALF;
        let entries = entries(section, name).filter(|_| is_its)?;
        let Difference { base, new, .. } = calls.per_entry?;
        Some(Callee { name: name.clone(), entries, per_entry: [base, new] })
    })
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
pub fn own(section: &Section) -> Option<Holder> {
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
        within: None,
        outside: Vec::new(),
        instructions,
        entries: Some(entries),
        share,
        parts: Vec::new(),
        parts_per_entry: false,
        callee: None,
        moved: None,
    })
}

#[cfg(test)]
mod tests;
