//! Sentences on the functions between which a change divides.

use compare::{Divided, Headline, Holder};

use super::figures;
use crate::ascii::excerpt;
use crate::words;

/// A function that exceeds the change by at most this share of it has the change.
pub const ALL: f64 = 0.1;

/// The least share of a change by which changes elsewhere offset each other that is mentioned.
const HIDDEN: f64 = 0.05;
/// If the sum of the shares as printed differs from 100 % by this much or more, one of the functions calls another.
const OVERLAP: f64 = 0.05;
/// If the parts exceed the change by this share of it or more, or one offsets that much, they are given as they are: shares
/// of a difference between large changes mislead.
const EXCESS: f64 = 0.1;

/// Names the functions between which a change divides with their parts of it, and the rest.
pub fn shares(it: &Headline, divided: &Divided) -> String {
    let Divided { parts, complete, elsewhere, offset_elsewhere } = divided;
    let is_exceeded = !complete && *elsewhere <= -EXCESS;
    let offset = parts.iter().any(|it| it.share <= -EXCESS);
    let over = tenths(elsewhere + parts.iter().map(|it| it.share).sum::<f64>() - 1.0);
    let hides = *offset_elsewhere >= HIDDEN;
    let named = match (is_exceeded || offset) && !it.at_equal_entries {
        true => amounts(it, parts, elsewhere * it.kernel.change()),
        false => percentages(it, parts, over, hides),
    };
    let hidden = if hides { ", where larger changes offset each other" } else { "" };
    let overlap = if over.abs() >= OVERLAP { " (one of them calls another)" } else { "" };
    let largest = if parts.len() == 1 { "the largest part" } else { "the largest parts" };
    let named = format!("{named}{hidden}{overlap}");
    match complete {
        true => named,
        // What is elsewhere is small, its parts are not.
        false if elsewhere.abs() <= ALL && *elsewhere <= 0.0 => {
            format!("{largest}, which others offset: {named}")
        }
        false => format!("{largest}: {named}"),
    }
}

/// A share in percent, as printed.
fn tenths(share: f64) -> f64 {
    (1000.0 * share).round() / 10.0
}

/// Formats the changes of the parts, each also as a share of what it was, and that of the `rest`.
fn amounts(it: &Headline, parts: &[Holder], rest: f64) -> String {
    let change = |it: &Holder| {
        let signed = words::signed(it.instructions[1] - it.instructions[0], 0);
        let own = figures::changed(it);
        own.map_or(signed.clone(), |own| format!("{signed} ({own})"))
    };
    let parts = parts.iter().map(|it| format!("{} {}, ", called(it), change(it)));
    // After a function it could be read as elsewhere in that function.
    let elsewhere = if it.function.is_some() { "elsewhere in the phase" } else { "elsewhere" };
    format!("{}{elsewhere} {}", parts.collect::<String>(), words::signed(rest, 0))
}

/// Formats the shares of the parts and that of the rest, which is left out if it is 0 and `hides` nothing. They add up to
/// 100 % as printed, and `over` more if one of the functions calls another.
fn percentages(it: &Headline, parts: &[Holder], over: f64, hides: bool) -> String {
    // After a function the change could be read as that function's.
    let change = if it.function.is_some() { "the phase's change" } else { "the change" };
    let mut rest = 100.0 + over;
    let mut shares = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        let share = tenths(part.share);
        rest -= share;
        let of = if place == 0 { format!(" of {change}") } else { String::new() };
        shares.push(format!("{share:.1} %{of} in {}", called(part)));
    }
    if rest.abs() >= 0.05 || hides {
        shares.push(format!("{rest:.1} % elsewhere"));
    }
    shares.join(", ")
}

/// Returns the name of a function or reason that holds a change, and whether what it calls is included.
pub fn called(holder: &Holder) -> String {
    // Functions that one kernel alone executes count as a part of their caller.
    let has_others = holder.parts.iter().any(|it| it.name != holder.name || it.with.is_some());
    let calls = match (holder.inclusive, has_others) {
        (true, _) if holder.is_reason() => "",
        (true, _) => " and what it calls",
        (false, true) => " and what one kernel alone calls there",
        (false, false) => "",
    };
    let within = holder.within.as_ref().map(|it| format!(" (within {})", excerpt(it)));
    format!("{}{calls}{}", excerpt(&holder.name), within.unwrap_or_default())
}
