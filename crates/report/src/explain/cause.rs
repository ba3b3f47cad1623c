//! Sentences and remarks on functions whose machine code differs, and which can therefore be causes of the
//! change.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use code::{ChangedLine, Instrumentation};
use compare::{
    Calls, Code, Contribution, Difference, Headline, Only, Section, Split, Subject, are_one_loop,
    do_offset,
};
use model::{count, grouped};

use super::figures;
use super::headline::within;
use crate::ascii::excerpt;
use crate::words;

/// Most functions that are named because their code differs.
const MAX_CAUSES: usize = 5;

/// Returns a sentence on the executed functions whose code differs, with the change of each. Functions
/// whose change is beyond luck come first. Two that may be one function, or that offset each other, have the change of
/// both. `None` if it is not known whose code differs.
pub fn causes(section: &Section, unit: &str, moved: &Moved<'_>) -> Option<String> {
    let marked = section.contributions.iter().filter(|it| it.code.is_some()).count();
    let causes = section.causes();
    let of = format!("of the {} executed{}", count(marked, "function"), within(section));
    match (marked, causes.as_slice()) {
        (0, _) => None,
        (_, []) => Some(format!("The code of none {of} differs.")),
        (_, [only]) => {
            let said = match &only.line {
                Some(line) => format!(". {}", found(only, line, unit)),
                None => format!("; own {unit}: {}", part(only)),
            };
            Some(format!("The code of one {of} differs{said}. `explain --lines` prints its lines."))
        }
        (_, many) => Some(format!(
            "{}; own {unit}: {}.{}",
            counted(many, marked, &within(section)),
            largest(many, section, moved).join(", "),
            differ_in_instrumentation(many).unwrap_or_default()
        )),
    }
}

/// Names the functions with the largest changes, and counts the others.
fn largest(causes: &[&Contribution], section: &Section, moved: &Moved<'_>) -> Vec<String> {
    let joined = joined(causes, section, moved);
    let (named, others) = joined.split_at(joined.len().min(MAX_CAUSES));
    let is_cause = |it: &Contribution| it.code.is_some();
    let left: usize = others.iter().map(|it| 1 + usize::from(it.1.is_some_and(is_cause))).sum();
    let more = (left > 0).then(|| format!("{} more", grouped(&left.to_string())));
    named.iter().map(part_of).chain(more).collect()
}

/// Joins each function with the one that it may be on the other side, or that offsets its change. The other one can be in
/// a module, whose code is not compared. Changes beyond luck are first, in each part the largest one.
fn joined<'a>(
    causes: &[&'a Contribution],
    section: &'a Section,
    moved: &Moved<'_>,
) -> Vec<(&'a Contribution, Option<&'a Contribution>)> {
    let other_of = |it: &Contribution| {
        let maybe = it.calls.as_ref().and_then(|calls| calls.maybe.as_ref());
        let offset = || match &it.subject {
            Subject::Function { name, .. } => moved.get(&**name).map(|it| (*it).to_owned()),
            _ => None,
        };
        maybe.map(Subject::to_string).or_else(offset)
    };
    let mut alone = causes.to_vec();
    let mut joined = Vec::new();
    while !alone.is_empty() {
        let one = alone.remove(0);
        let other = other_of(one);
        // They may offset each other in another phase alone.
        let offsets = |it: &&Contribution| {
            it.instructions.change().signum() != one.instructions.change().signum()
        };
        let is_it = |it: &&Contribution| match &other {
            Some(other) => it.subject.to_string() == *other,
            None => replaces(one, it),
        };
        let other = alone.iter().position(|it| is_it(it) && offsets(it));
        let in_module = || {
            let mut unmarked = section.contributions.iter().filter(|it| it.code.is_none());
            unmarked.find(|it| is_it(it) && offsets(it))
        };
        joined.push((one, other.map(|place| alone.remove(place)).or_else(in_module)));
    }
    let size = |it: &(&Contribution, Option<&Contribution>)| own_change(*it).abs();
    let is_beyond = |it: &(&Contribution, Option<&Contribution>)| match it.1 {
        None => it.0.is_beyond_luck() == Some(true),
        Some(other) => {
            let floors = [it.0, other].map(|it| it.instructions.floor.unwrap_or(f64::INFINITY));
            size(it) > floors.iter().sum()
        }
    };
    joined.sort_by(|one, other| {
        is_beyond(other).cmp(&is_beyond(one)).then(size(other).total_cmp(&size(one)))
    });
    joined
}

/// Whether one of these loops that copy or clear memory is in one kernel only, and the other one in the other.
fn replaces(one: &Contribution, other: &Contribution) -> bool {
    let sides = [one.code, other.code];
    let names = [one, other].map(|it| it.subject.to_string());
    sides.contains(&Some(Code::New))
        && sides.contains(&Some(Code::Gone))
        && are_one_loop(&names[0], &names[1])
}

/// Returns the change of a function's own instructions, or of those of both functions.
fn own_change((one, other): (&Contribution, Option<&Contribution>)) -> f64 {
    one.instructions.change() + other.map_or(0.0, |it| it.instructions.change())
}

/// Names a function with its change, or two functions with that of both.
fn part_of(pair: &(&Contribution, Option<&Contribution>)) -> String {
    let (one, Some(other)) = pair else { return part(pair.0) };
    let [one, other] = [one, other].map(|it| excerpt(&it.subject.to_string()));
    format!("{one} with {other} {}", words::signed(own_change(*pair), 0))
}

/// Returns those of the functions that both kernels have.
fn of_both<'a>(causes: &[&'a Contribution]) -> Vec<&'a Contribution> {
    causes.iter().copied().filter(|it| it.code == Some(Code::Differs)).collect()
}

/// Says in how many of the executed functions that both kernels have the code differs, and how many only one of them has.
/// `marked` is the number of executed functions.
fn counted(causes: &[&Contribution], marked: usize, within: &str) -> String {
    let differ = of_both(causes).len();
    let alone = causes.len() - differ;
    let number = if differ == 0 { "none".to_owned() } else { grouped(&differ.to_string()) };
    let of = grouped(&(marked - alone).to_string());
    let (both, alone) = match alone {
        0 => ("", String::new()),
        1 => (" that both kernels have", "; 1 more is in one kernel only".to_owned()),
        _ => (
            " that both kernels have",
            format!("; {} more are in one kernel only", grouped(&alone.to_string())),
        ),
    };
    format!("The code of {number} of the {of} functions executed{within}{both} differs{alone}")
}

/// Returns a sentence on how many of the executed functions have other code. Few of them are named, with their entries
/// and their cost. `None` if it is not known whose code differs.
pub fn differing(section: &Section) -> Option<String> {
    let marked = section.contributions.iter().filter(|it| it.code.is_some()).count();
    let causes = section.causes();
    let both = of_both(&causes);
    let named = match both.len() {
        1..=MAX_CAUSES => {
            let named = both.into_iter().map(|it| executed(it, &section.totals.kernel));
            let named: Vec<String> = named.collect();
            format!(": {}", named.join("; "))
        }
        _ => String::new(),
    };
    (marked > 0).then(|| {
        let instrumented = differ_in_instrumentation(&causes).unwrap_or_default();
        format!("{}{named}.{instrumented}", counted(&causes, marked, ""))
    })
}

/// Names a function, with what its difference in code comes from, as far as that is known. One that a side did not execute
/// can be another function of the same name there.
fn with_origin(it: &Contribution) -> String {
    let name = excerpt(&it.subject.to_string());
    let is_on_both = it.calls.as_ref().is_none_or(|calls| calls.only.is_none());
    let instrumented = instrumented(&it.instrumentation).filter(|_| is_on_both);
    let parts: Vec<_> = origin(it).into_iter().chain(instrumented).collect();
    if parts.is_empty() { name } else { format!("{name} ({})", parts.join(", ")) }
}

/// Names a function, how often it was entered, what an entry costs, and what its change is of the `kernel`'s cost.
fn executed(it: &Contribution, kernel: &Difference) -> String {
    let name = with_origin(it);
    let Some(calls) = &it.calls else { return name };
    let entries = figures::entered([calls.entries.base, calls.entries.new]);
    let cost =
        it.per_entry().map(|it| figures::cost_of([it.base, it.new], " own instructions per entry"));
    let cost = cost.map(|it| format!(", {it}")).unwrap_or_default();
    let change = it.instructions.change();
    let share = 100.0 * change.abs() / kernel.base;
    let share = share.is_finite().then(|| words::decimal(Some(share), 2));
    let share = share.map(|it| format!(", {it} % of all in the kernel")).unwrap_or_default();
    format!("{name}, {entries}{cost}; {} in all{share}", words::signed(change, 0))
}

/// Says how many functions differ in instrumentation, and in which; `None` if there are none. Their part of the change is not
/// known: a function that gained a check also changed otherwise.
fn differ_in_instrumentation(causes: &[&Contribution]) -> Option<String> {
    let kinds = |it: &Contribution| &it.instrumentation.gained | &it.instrumentation.lost;
    let them = causes.iter().map(|it| kinds(it)).filter(|kinds| !kinds.is_empty());
    let number = them.clone().count();
    let mut kinds = BTreeMap::<&str, usize>::new();
    them.flatten().for_each(|kind| *kinds.entry(kind).or_default() += 1);
    let mut kinds: Vec<(&str, usize)> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    let named = kinds.iter().map(|(kind, number)| format!("{kind} ({number})"));
    let named = named.collect::<Vec<_>>().join(", ");
    let verb = if number == 1 { "differs" } else { "differ" };
    let [number, of] = [number, of_both(causes).len()].map(|it| grouped(&it.to_string()));
    (!kinds.is_empty())
        .then(|| format!(" {number} of these {of} functions {verb} in instrumentation: {named}."))
}

/// Names the line at which the code of a function differs, with the change of the function.
fn found(it: &Contribution, line: &ChangedLine, unit: &str) -> String {
    let function = it.subject.to_string();
    let cost = it.per_entry().map(|it| more_per_entry(it.change()) + "; ").unwrap_or_default();
    let change = words::signed(it.instructions.change(), 0);
    let place = place(line);
    match line.mostly {
        true => {
            let named = named(&function, it.inlined.as_deref(), &place);
            format!("{named}: {cost}own {unit} {change}")
        }
        // The instructions that differ most need not be those that were executed more.
        false => format!(
            "{}: {cost}own {unit} {change}; its code differs in several places, most at {}, which need not be the cause",
            excerpt(&function),
            excerpt(&place)
        ),
    }
}

/// Names a place in the source: the function, where it is inlined, and the line.
pub fn named(function: &str, inlined: Option<&str>, place: &str) -> String {
    let function = excerpt(function);
    let function = match inlined {
        Some(inlined) => format!("{}, inlined in {function}", excerpt(inlined)),
        None => function,
    };
    format!("{function}, {}", excerpt(place))
}

/// Formats a change of the cost of an entry.
pub fn more_per_entry(change: f64) -> String {
    let more = if change < 0.0 { "fewer" } else { "more" };
    format!("{} {more} an entry", words::figure(change.abs(), 2))
}

/// Formats a line. One of the baseline has other numbers than the newer source.
fn place(line: &ChangedLine) -> String {
    format!("{}{}", line.place, if line.of_base { " before" } else { "" })
}

/// Says from where the differing code of a function is: the inlined function and the line, as far as they are known. A
/// line with less than half of it need not be the cause, and is not named.
fn origin(it: &Contribution) -> Vec<String> {
    let is_sure = it.line.as_ref().is_none_or(|line| line.mostly);
    if !is_sure {
        return vec!["in several places".to_owned()];
    }
    let inlined = it.inlined.as_ref().map(|name| format!("inlined from {}", excerpt(name)));
    let line = it.line.as_ref().map(|line| excerpt(&place(line)));
    inlined.into_iter().chain(line).collect()
}

/// Formats a function whose code differs: its name, its change, and the change per entry, or the entries if most of the
/// change comes from their number.
fn part(it: &Contribution) -> String {
    let is_by_number = |it: &Split| it.by_number.unsigned_abs() > it.by_cost.unsigned_abs();
    let of = it.calls.as_ref().and_then(|calls| match (calls.split.as_ref(), calls.per_entry) {
        (Some(split), _) if is_by_number(split) => {
            Some(figures::entered([calls.entries.base, calls.entries.new]))
        }
        (_, cost) => cost.map(|it| format!("{} per entry", words::signed(it.change(), 2))),
    });
    let of = of.map(|of| format!(" ({of})")).unwrap_or_default();
    format!("{} {}{of}", with_origin(it), words::signed(it.instructions.change(), 0))
}

/// Returns what the code of only one side is instrumented with; `None` if both have the same.
pub fn instrumented(it: &Instrumentation) -> Option<String> {
    let said = |word: &str, kinds: &BTreeSet<&str>| {
        let kinds: Vec<&str> = kinds.iter().copied().collect();
        (!kinds.is_empty()).then(|| format!("{word} {}", kinds.join(" and ")))
    };
    let said = [said("now with", &it.gained), said("now without", &it.lost)];
    let said: Vec<String> = said.into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join(", "))
}

/// Functions whose changes offset each other, each with the other one.
pub type Moved<'a> = BTreeMap<&'a str, &'a str>;

/// Returns the functions whose changes offset each other in a phase of these headlines, and in `section` too.
pub fn moved<'a>(headlines: impl Iterator<Item = &'a Headline>, section: &Section) -> Moved<'a> {
    let changes = section.contributions.iter().filter_map(|it| match &it.subject {
        Subject::Function { name, .. } => Some((&**name, it.instructions.change())),
        _ => None,
    });
    let changes: BTreeMap<&str, f64> = changes.collect();
    let change = |name: &str| changes.get(name).copied().unwrap_or_default();
    let pairs = headlines.flat_map(|it| &it.offset).map(|it| it.each_ref().map(String::as_str));
    let pairs = pairs.filter(|[one, other]| do_offset(change(one), change(other)));
    pairs.flat_map(|[one, other]| [(one, other), (other, one)]).collect()
}

/// Returns the first contributions that are not 0, the largest first, and those that follow. Two functions that may be one,
/// or offset each other, stand together, by the change of both. The first are `most`, or one more if it belongs to the
/// last of them.
pub fn ranked<'a>(
    section: &'a Section,
    moved: &Moved<'_>,
    most: usize,
) -> [Vec<&'a Contribution>; 2] {
    let all = &section.contributions[..changed(section)];
    let names = all.iter().enumerate().filter_map(|(place, it)| match &it.subject {
        Subject::Function { name, .. } => Some((&**name, place)),
        _ => None,
    });
    let names: BTreeMap<&str, usize> = names.collect();
    let other = |it: &Contribution| match &it.subject {
        Subject::Function { name, .. } => {
            match it.calls.as_ref().and_then(|it| it.maybe.as_ref()) {
                Some(Subject::Function { name, .. }) => names.get(&**name),
                _ => names.get(moved.get(&**name)?),
            }
        }
        _ => None,
    };
    let keyed = all.iter().enumerate().map(|(place, it)| match other(it) {
        Some(other) => {
            let both = it.change + all[*other].change;
            ((Reverse(both.unsigned_abs()), place.min(*other)), place)
        }
        None => ((Reverse(it.change.unsigned_abs()), place), place),
    });
    let mut ranked: Vec<_> = keyed.collect();
    ranked.sort_unstable();
    let mut first = most.min(ranked.len());
    if first > 0 && ranked.get(first).is_some_and(|(pair, _)| *pair == ranked[first - 1].0) {
        first += 1;
    }
    let left = ranked.split_off(first);
    [ranked, left].map(|them| them.into_iter().map(|(_, place)| &all[place]).collect())
}

/// Returns the number of contributions that are not 0. They come first.
pub fn changed(section: &Section) -> usize {
    section.contributions.partition_point(|it| it.change != 0)
}

/// Returns the remarks on a function: how its code differs, that only one side executed it, that it was entered in
/// parts, or which other function's change offsets its own. With `one_kernel` on both sides no side inlines what the other
/// one calls.
pub fn remark(it: &Contribution, moved: &Moved<'_>, one_kernel: bool) -> String {
    let is_in_both = it.is_in_both();
    let executed = match &it.calls {
        Some(Calls { only: Some(only), maybe, .. }) => {
            let other = maybe.as_ref().map(|it| excerpt(&it.to_string()));
            Some(match (only, other) {
                (Only::Base, _) if one_kernel => "called only before".to_owned(),
                (Only::New, _) if one_kernel => "called only now".to_owned(),
                (Only::Base, None) if is_in_both => "called only before, or inlined now".to_owned(),
                (Only::New, None) if is_in_both => "called only now, or inlined before".to_owned(),
                (Only::Base, Some(other)) if is_in_both => {
                    format!("called only before, maybe now {other}")
                }
                (Only::New, Some(other)) if is_in_both => {
                    format!("called only now, maybe was {other}")
                }
                (Only::Base, None) => "gone".to_owned(),
                (Only::New, None) => "new".to_owned(),
                (Only::Base, Some(other)) => format!("gone, maybe now {other}"),
                (Only::New, Some(other)) => format!("new, maybe was {other}"),
            })
        }
        Some(Calls { in_parts: true, .. }) => Some("in parts".to_owned()),
        _ => None,
    };
    let code = it.code.and_then(|code| match code {
        Code::Same => Some("code same".to_owned()),
        Code::Differs => {
            let parts = ["code differs".to_owned()].into_iter().chain(origin(it));
            let parts = parts.chain(instrumented(&it.instrumentation));
            Some(parts.collect::<Vec<_>>().join(", "))
        }
        // The other side cannot have executed it.
        Code::New | Code::Gone => None,
    });
    let is_renamed = it.calls.as_ref().is_some_and(|calls| calls.maybe.is_some());
    let offset = match &it.subject {
        Subject::Function { name, .. } if !is_renamed => moved.get(&**name),
        _ => None,
    };
    let offset = offset.map(|other| format!("offset by {}", excerpt(other)));
    let remarks: Vec<_> = code.into_iter().chain(executed).chain(offset).collect();
    if remarks.is_empty() { String::new() } else { format!(" ({})", remarks.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instrumentation_of_one_side_is_said() {
        let of = |gained: &[&'static str], lost: &[&'static str]| Instrumentation {
            gained: gained.iter().copied().collect(),
            lost: lost.iter().copied().collect(),
        };
        let said = instrumented(&of(&["retpolines", "the stack protector"], &["KCOV"]));
        let expected = "now with retpolines and the stack protector, now without KCOV";
        assert_eq!(said.as_deref(), Some(expected));
        assert_eq!(instrumented(&of(&[], &[])), None);
    }
}
