//! The functions that hold the change of a phase: by call paths with what they call, otherwise by their own cost.

use kernelfiles::entry::{EXCEPTION, THREAD, is_entry};

use super::calls::{Call, REST, Walked, calls_it, is_on_both, reason, sums, walked};
use super::common::common;
use super::held::{
    Callee, Divided, Held, Holder, Inner, KernelThread, are_alike, are_few, is_by_number, per_entry,
};
use super::joined::{Pairs, own_costs};
use super::loops::{self, is_copy_loop};
use super::moved;
use super::offset::OwnCost;
use super::{Contribution, Path, Paths, Section, Subject};
use crate::Difference;

/// A function whose own instructions hold the change has at least this share of it.
pub(super) const HALF: f64 = 0.5;
/// A callee of the function that holds a change is named if it has at least this share of it.
const QUARTER: f64 = 0.25;
/// A reason is named as one of the largest parts if it has at least this share of the change.
const SMALL: f64 = 0.05;
/// A callee of a holder without entries, or what a figure leaves out, is named if it has at least this share of the
/// change.
pub(super) const NOTABLE: f64 = 0.1;
/// Figures of all calls of a function stand for those of some if their changes differ by at most this share of all.
const NEAR: f64 = 0.03;
/// A change is divided between at most this many functions.
const PARTS: usize = 3;
/// Of a change that no such number of functions makes up, at most this many are named.
const MOST_PARTS: usize = 5;
/// The largest parts are looked for in at most this many calls.
const MAX_LARGE: usize = 12;

/// A phase, and which functions of it are taken as one.
struct Phase<'s> {
    section: &'s Section,
    pairs: &'s Pairs,
}

/// The functions that hold the change, by call paths. Functions by which the kernel is entered only lead to others
/// ([`is_entry`]). Functions that only one side executes were renamed, moved or inlined: what they call counts as
/// called by their caller.
///
/// `pairs` are the functions of the phase that are taken as one.
pub fn by_calls(section: &Section, paths: &Paths, pairs: &Pairs) -> Held {
    let reasons: Vec<_> = paths.paths.iter().map(reason).collect();
    let walked = walked(paths, &reasons);
    let kernel = Call { depth: 0, paths: &walked };
    let phase = Phase { section, pairs };
    let thread = |it: Call<'_, '_>| {
        let function = it.name().strip_prefix(THREAD)?.to_owned();
        Some(KernelThread { function, instructions: it.sums() })
    };
    let threads = kernel.callees().into_iter().filter_map(thread).collect();
    let held = held(&phase, kernel);
    let parts = held.divided.iter().flat_map(|it| &it.parts);
    let named: Vec<&str> = held.function.iter().chain(parts).map(|it| &*it.name).collect();
    let common = common(paths, pairs, kernel.change(), &named);
    Held { common, threads, ..held }
}

/// The functions that hold the change of the `kernel`.
fn held(phase: &Phase<'_>, kernel: Call<'_, '_>) -> Held {
    let all = kernel.change();
    let mut calls: Vec<Call<'_, '_>> =
        kernel.callees().into_iter().flat_map(|it| told_apart(it, all)).collect();
    calls.sort_by(|one, other| other.change().abs().total_cmp(&one.change().abs()));
    if all == 0.0 || calls.is_empty() {
        return Held::default();
    }
    // The figures of the innermost calls in these, the largest share first.
    let parts = |calls: &[Call<'_, '_>], rest| {
        let inner = calls.iter().map(|it| innermost(phase, kernel, *it, rest));
        // Figures of all calls of a function say nothing of a call that changed otherwise, but for one that changed in
        // the same direction wherever it is called.
        let of_call = |call: Call<'_, '_>| {
            let more = |it: &Holder| it.instructions[1] - it.instructions[0] - call.change();
            let is_its = |it: &Holder| more(it).abs() <= REST * all.abs();
            let is_larger = |it: &Holder| more(it) * call.change() > 0.0;
            let own = Some(holder(phase, call, kernel)).filter(is_its);
            let everywhere = || Some(of_calls(phase, call.name(), None, kernel)).filter(is_larger);
            own.or_else(everywhere)
        };
        let parts = inner.filter_map(of_call).collect();
        let mut parts = each_once(phase, kernel, joined(phase, kernel, parts));
        parts.sort_by(|one, other| other.share.abs().total_cmp(&one.share.abs()));
        parts
    };
    // Innermost callees may have a tenth less than their callers. If too much is then elsewhere, their callers are named.
    let complete = |calls: &[Call<'_, '_>]| {
        let inside = divided(parts(calls, REST), kernel);
        match inside.complete {
            true => inside,
            false => Divided { complete: true, ..divided(parts(calls, NEAR), kernel) },
        }
    };
    let luck = phase.section.totals.kernel.floor.unwrap_or(0.0);
    let number = if is_alone(&calls, all, luck) { Some(1) } else { enough(&calls, all) };
    match number {
        Some(1) => {
            let call = innermost(phase, kernel, calls[0], REST);
            let largest = || {
                let parts = parts(&largest_within(call, all), REST);
                let divided = Divided { complete: false, ..divided(parts, kernel) };
                (!divided.parts.is_empty()).then_some(divided)
            };
            let divided = within(call, all).map(|calls| complete(&calls)).or_else(largest);
            let function = holder(phase, call, kernel);
            let inner = function.inner.clone().filter(|_| divided.is_none());
            let function = Some(Holder { inner, ..function });
            Held { function, divided, ..Held::default() }
        }
        Some(number) => Held { divided: Some(complete(&calls[..number])), ..Held::default() },
        None => {
            calls.truncate(MAX_LARGE);
            calls.retain(|it| (it.change() / all).abs() >= SMALL);
            let mut parts = parts(&calls, REST);
            let notable = parts.iter().take_while(|it| it.share.abs() >= NOTABLE).count();
            let left = parts.split_off(parts.len().min(notable.clamp(PARTS, MOST_PARTS)));
            let mut divided = divided(parts, kernel);
            divided.complete &= left.iter().all(|it| it.share.abs() <= REST);
            Held { divided: (!divided.parts.is_empty()).then_some(divided), ..Held::default() }
        }
    }
}

/// A call, or if it is an exception the calls in it that offset each other by a notable part of the change `all`: faults of
/// small pages may cost more, and those of huge ones less.
fn told_apart<'w, 'a>(call: Call<'w, 'a>, all: f64) -> Vec<Call<'w, 'a>> {
    if !call.name().starts_with(EXCEPTION) {
        return vec![call];
    }
    let size = |it: &Call<'_, '_>| it.sums().iter().sum::<f64>();
    let mut inner = call;
    loop {
        let callees = inner.callees();
        let is_one = |it: &&Call<'_, '_>| {
            let is_large = (it.change() / all).abs() >= QUARTER;
            is_large && is_on_both(&it.sums()) && !moved::is_beside(&inner, it)
        };
        let large: Vec<f64> = callees.iter().filter(is_one).map(Call::change).collect();
        // Where work moved between callees, their changes are not apart.
        let has_moved = callees
            .iter()
            .any(|it| (it.change() / all).abs() >= QUARTER && moved::is_beside(&inner, it));
        if !has_moved && large.iter().any(|it| *it > 0.0) && large.iter().any(|it| *it < 0.0) {
            return callees;
        }
        let whole = callees.into_iter().max_by(|one, other| size(one).total_cmp(&size(other)));
        match whole.filter(|it| size(it) >= (1.0 - REST) * size(&inner)) {
            Some(it) => inner = it,
            None => return vec![call],
        }
    }
}

/// A change that divides into these parts. They are complete if little of it is elsewhere.
fn divided(parts: Vec<Holder>, kernel: Call<'_, '_>) -> Divided {
    let is_in = |(frames, _): &Walked<'_>| {
        parts.iter().any(|it| calls_it(frames, it.within.as_deref(), &it.name))
    };
    let others: Vec<&Walked<'_>> = kernel.paths.iter().filter(|path| !is_in(path)).collect();
    // Paths are in order, so those with one callee of the kernel follow each other.
    let callees = others.chunk_by(|one, other| one.0.get(1) == other.0.get(1));
    let changes = callees.map(|paths| {
        let [base, new] = sums(paths.iter().map(|(_, path)| *path));
        (new - base) / kernel.change()
    });
    let [more, fewer] = changes.fold([0.0; 2], |[more, fewer], change: f64| {
        [more + change.max(0.0), fewer - change.min(0.0)]
    });
    let elsewhere = more - fewer;
    let offset_elsewhere = more.min(fewer);
    Divided { parts, complete: elsewhere.abs() <= REST, elsewhere, offset_elsewhere }
}

/// Names each function once. Calls in several places may be of one function. Figures of all its calls contain those within
/// a caller, and stand for them if they changed only there, in one direction.
fn each_once(phase: &Phase<'_>, kernel: Call<'_, '_>, all: Vec<Holder>) -> Vec<Holder> {
    let change = |it: &Holder| it.instructions[1] - it.instructions[0];
    let mut parts = Vec::<Holder>::new();
    for mut part in all {
        if let Some(place) = parts.iter().position(|it| it.name == part.name) {
            let whole = of_calls(phase, &part.name, None, kernel);
            let others = change(&whole) - change(&part) - change(&parts[place]);
            let is_one_way = change(&part) * change(&parts[place]) > 0.0;
            if is_one_way && others.abs() <= NEAR * kernel.change().abs() {
                parts.remove(place);
                part = whole;
            }
        }
        if parts.iter().any(|it| it.name == part.name && it.within.is_none()) {
            continue;
        }
        if part.within.is_none() {
            parts.retain(|it| it.name != part.name);
        }
        parts.push(part);
    }
    parts
}

/// Replaces two parts by the function that moved from one to the other, with all its calls, if it did not change elsewhere.
fn joined(phase: &Phase<'_>, kernel: Call<'_, '_>, mut parts: Vec<Holder>) -> Vec<Holder> {
    let change = |[base, new]: [f64; 2]| new - base;
    let moved = |one: &Holder, other: &Holder| {
        let (one, other) = (one.moved.as_ref()?, other.moved.as_ref()?);
        let [first, second] = [one, other].map(|it| change(it.inside));
        let others = change(one.instructions) - first - second;
        let is_one = one.name == other.name
            && first * second < 0.0
            && (others / kernel.change()).abs() <= SMALL;
        is_one.then(|| of_calls(phase, &one.name, None, kernel))
    };
    let mut place = 0;
    while place < parts.len() {
        let mut others = (place + 1)..parts.len();
        let found = others.find_map(|other| Some((other, moved(&parts[place], &parts[other])?)));
        if let Some((other, part)) = found {
            parts.remove(other);
            parts[place] = part;
        }
        place += 1;
    }
    parts
}

/// The innermost call that has the change of `call` and to which the cause may lead. It does not lead from a function that
/// is entered as often as before to one that is not, nor to one whose work another callee of its caller does on one side,
/// nor to a loop that copies or clears memory for its caller.
fn innermost<'w, 'a>(
    phase: &Phase<'_>,
    kernel: Call<'_, 'a>,
    call: Call<'w, 'a>,
    rest: f64,
) -> Call<'w, 'a> {
    let is_by_number = |it: &Call<'_, '_>| {
        let instructions = sums(kernel.paths_of(it.name(), None));
        let is_its = (instructions[1] - instructions[0]) / it.change() >= 1.0 - REST;
        let entries = entries(phase.section, it.name()).filter(|_| is_its)?;
        Some(is_by_number(entries, per_entry(instructions, entries)))
    };
    call.innermost(rest, |it, callee| {
        let goes_on = is_by_number(callee) != Some(true) || is_by_number(it) != Some(false);
        goes_on && !moved::is_beside(it, callee) && !is_copy_loop(callee.name())
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

/// The callees with the largest parts of the change `all` of the function that holds it. Empty if none has a quarter of the
/// change, and if work moved between them.
fn largest_within<'w, 'a>(call: Call<'w, 'a>, all: f64) -> Vec<Call<'w, 'a>> {
    let share = |it: &Call<'_, '_>| it.change() / all;
    let mut calls = call.callees();
    calls.truncate(PARTS);
    calls.retain(|it| share(it).abs() >= QUARTER);
    let is_clear = calls.first().is_some_and(|it| share(it) > 0.0)
        && calls.iter().all(|it| is_on_both(&it.sums()) && !moved::is_beside(&call, it));
    if is_clear { calls } else { Vec::new() }
}

/// The figures of a function with what it calls: of all its calls if their change is that of `call`, otherwise of those
/// in the innermost caller whose calls have that change. Functions by which the kernel is entered have their own cost.
/// `kernel` has all paths.
fn holder(phase: &Phase<'_>, call: Call<'_, '_>, kernel: Call<'_, '_>) -> Holder {
    let off = |within: &Option<&str>| {
        let [base, new] = sums(kernel.paths_of(call.name(), *within));
        (new - base - call.change()).abs()
    };
    let choices: Vec<Option<&str>> = [None].into_iter().chain(call.callers().map(Some)).collect();
    let agrees = |within: &&Option<&str>| off(within) <= NEAR * kernel.change().abs();
    let nearest = || choices.iter().min_by(|one, other| off(one).total_cmp(&off(other)));
    let within = choices.iter().find(agrees).or_else(nearest).copied().flatten();
    let found = of_calls(phase, call.name(), within, kernel);
    Holder {
        inner: inner(call).filter(|_| found.callee.is_none() && found.moved.is_none()),
        ..found
    }
}

/// The innermost callee that has half of the change of `call`, and not more than all of it.
fn inner(call: Call<'_, '_>) -> Option<Inner> {
    let leads = |it: &Call<'_, '_>, callee: &Call<'_, '_>| {
        !moved::is_beside(it, callee) && !is_copy_loop(callee.name())
    };
    let inner = call.innermost(1.0 - HALF, leads);
    let share = inner.change() / call.change();
    let name = inner.name().to_owned();
    (inner.depth > call.depth && share <= 1.0).then_some(Inner { name, share })
}

/// The figures of a function with what it calls: of its calls in `within`, or of all of them.
fn of_calls(phase: &Phase<'_>, name: &str, within: Option<&str>, kernel: Call<'_, '_>) -> Holder {
    let walked: Vec<&Walked<'_>> =
        kernel.paths.iter().filter(|(frames, _)| calls_it(frames, within, name)).collect();
    let paths: Vec<&Path> = walked.iter().map(|(_, path)| *path).collect();
    let instructions = sums(paths.iter().copied());
    let is_loop = |path: &&&Path| path.frames.last().is_some_and(|it| is_copy_loop(it));
    let in_loops = sums(paths.iter().filter(is_loop).copied());
    let entries = entries(phase.section, name).filter(|_| within.is_none());
    let parts_per_entry = entries.is_some_and(|it| are_alike(it) && !are_few(it));
    let mut parts = own_costs(phase.section, &paths, phase.pairs);
    if let Some(entries) = entries.filter(|_| parts_per_entry) {
        parts.iter_mut().for_each(|part| part.own = per_entry(part.own, entries));
    }
    let change = instructions[1] - instructions[0];
    let callee = match entries {
        None => callee(phase.section, (name, within), change, &parts, kernel),
        Some(_) => None,
    };
    Holder {
        inclusive: !is_entry(name),
        name: name.to_owned(),
        within: within.map(str::to_owned),
        instructions,
        without_loops: loops::others(instructions, in_loops),
        entries,
        share: change / kernel.change(),
        parts,
        parts_per_entry,
        callee,
        moved: moved::moved(name, walked, kernel, |it| self::entries(phase.section, it)),
        inner: None,
    }
}

/// The function whose own instructions have the largest part of the change of `holder`; `None` if that part is below
/// [`NOTABLE`], or only one side entered the function. A function that absorbed others is none: with what it calls, wherever
/// that is in the `kernel`, it changed otherwise than its own instructions. Nor is one that executes elsewhere too, unless
/// the figures of the holder are those `within` a caller, which is said: its entries are not those in the holder.
fn callee(
    section: &Section,
    (holder, within): (&str, Option<&str>),
    change: f64,
    parts: &[OwnCost],
    kernel: Call<'_, '_>,
) -> Option<Callee> {
    let is_notable = |[base, new]: &[f64; 2]| (new - base) / change >= NOTABLE;
    let alone = parts.iter().filter(|it| it.with.is_none());
    let mut others = alone.filter(|it| it.name != holder);
    let OwnCost { name, own, .. } = others.next().filter(|it| is_notable(&it.own))?;
    let function = function(section, name)?;
    let calls = function.calls.as_ref()?;
    let [before, now] = sums(kernel.paths_of(name, None));
    let Difference { base, new, .. } = function.instructions;
    let mut sides = own.iter().zip([base, new]);
    let is_here = within.is_some() || sides.all(|(own, all)| *own >= (1.0 - REST) * all);
    let is_its = is_here && (now - before) / function.instructions.change() >= HALF;
    let entries = entries(section, name).filter(|_| is_its)?;
    let Difference { base, new, .. } = calls.per_entry?;
    Some(Callee { name: name.clone(), entries, per_entry: [base, new] })
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
/// only offset its change.
pub fn own(section: &Section) -> Option<Holder> {
    dearest(section, &[]).filter(|it| it.share >= HALF)
}

/// The function whose own instructions per entry changed most. `None` if a function executed on one side only offsets its
/// change: it may have absorbed that function's code. The pairs `offset` offset each other.
pub fn dearest(section: &Section, offset: &[[String; 2]]) -> Option<Holder> {
    let first = section.contributions.get(*section.per_entry.first()?)?;
    let own = first.instructions.change();
    let makes_up = |it: &&Contribution| {
        let is_one_sided = it.calls.as_ref().is_some_and(|calls| calls.only.is_some());
        let is_paired = || offset.iter().flatten().any(|name| *name == it.subject.to_string());
        is_one_sided && it.instructions.change() / own < -HALF && !is_paired()
    };
    if section.contributions.iter().any(|it| makes_up(&it)) {
        return None;
    }
    let entries = first.calls.as_ref()?.entries;
    let [instructions, entries] = [first.instructions, entries].map(|it| [it.base, it.new]);
    Some(Holder {
        name: first.subject.to_string(),
        inclusive: false,
        within: None,
        instructions,
        without_loops: None,
        entries: Some(entries),
        share: own / section.totals.kernel.change(),
        parts: Vec::new(),
        parts_per_entry: false,
        callee: None,
        moved: None,
        inner: None,
    })
}

#[cfg(test)]
mod tests;
