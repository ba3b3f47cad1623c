//! The figures of a function that holds a change, as a continuation of a sentence.

use compare::{Holder, Inner, Moved};

use crate::ascii::excerpt;
use crate::words::{self, Of};

/// Formats the figures of the function that holds a change: its cost, its entries, and its cost per entry if they are not
/// few. At equal entries only the cost per entry is comparable and printed. A holder without entries has the
/// figures of a callee. A callee with much of the change is named. A sentence says what it calls on one side only.
pub fn figures(holder: &Holder, at_equal_entries: bool) -> String {
    let costs = holder.per_entry().map(|costs| cost_of(costs, " per entry"));
    if let Some(costs) = costs.clone().filter(|_| at_equal_entries) {
        return costs + ".";
    }
    let printed = holder.instructions.map(|it| words::figure(it, 0));
    let change = changed(holder).filter(|_| printed[0] != printed[1]);
    let change = change.map(|it| format!(" ({it})"));
    let total = sides(printed, "");
    let total = total + &change.unwrap_or_default();
    let entries = holder.entries.map(entered);
    let costs = costs.filter(|_| !holder.has_few_entries());
    let callee = holder.callee.as_ref().map(|callee| {
        let figures = match callee.is_by_number() {
            true => entered(callee.entries),
            false => cost_of(callee.per_entry, " of its own per entry"),
        };
        // Entries are not known by call path.
        let scope = if holder.within.is_some() { ", wherever it is called" } else { "" };
        format!("{}{scope}: {figures}", excerpt(&callee.name))
    });
    let inner = holder.inner.as_ref().map(|Inner { name, share }| {
        let share = words::decimal(Some(100.0 * share), 1);
        format!("{share} % of this change in {} and what it calls", excerpt(name))
    });
    let said = [Some(total), entries, costs, callee, inner];
    let figures = said.into_iter().flatten().collect::<Vec<_>>().join("; ");
    let moved = holder.moved.as_ref().map(|it| format!(" {}", moved(it)));
    format!("{figures}.{}", moved.unwrap_or_default())
}

/// Formats the change of a holder as a share of what it was, and without loops that copy and clear memory if these have a
/// large part of it. `None` if it is printed as 0.
pub fn changed(holder: &Holder) -> Option<String> {
    let change = Of::Number.change(holder.instructions, 2).filter(|it| it != "0.00 %")?;
    let others = holder.without_loops.and_then(|it| Of::Number.change(it, 2));
    let others = others.map(|it| format!("; {it} without loops that copy and clear memory"));
    Some(change + &others.unwrap_or_default())
}

/// Returns a sentence on a callee that moved from or to other callers.
fn moved(Moved { name, inside, instructions, entries }: &Moved) -> String {
    let [base, new] = *inside;
    let side = match (base < new, base.min(new) == 0.0) {
        (true, true) => "is called there only now",
        (true, false) => "executes more there",
        (false, true) => "is called there only before",
        (false, false) => "executes less there",
    };
    let all = sides(instructions.map(|it| words::figure(it, 0)), "");
    let entries = entries.map(|it| format!("; {}", entered(it))).unwrap_or_default();
    format!(
        "{} {side}: {}. Wherever it is called: {all}{entries}.",
        excerpt(name),
        words::signed(new - base, 0)
    )
}

/// Formats a cost per entry on both sides. Small costs have decimals.
pub fn cost_of(costs: [f64; 2], of: &str) -> String {
    let decimals = if costs[0].max(costs[1]) < 100_000.0 { 2 } else { 0 };
    sides(costs.map(|it| words::figure(it, decimals)), of)
}

/// Numbers of entries below this have decimals if a mean over seeds is not whole.
const FEW_ENTRIES: f64 = 1000.0;

/// Formats the number of entries on both sides.
pub fn entered(entries: [f64; 2]) -> String {
    numbers(entries, [" entry", " entries"])
}

/// Formats the number of calls on both sides.
pub fn called(calls: [f64; 2]) -> String {
    numbers(calls, [" call", " calls"])
}

/// Formats a number on both sides, followed by the words for one and for several.
pub fn numbers(numbers: [f64; 2], [one, several]: [&str; 2]) -> String {
    let is_exact = numbers.iter().all(|it| it.fract() == 0.0 || *it >= FEW_ENTRIES);
    let decimals = |it: f64| if is_exact || it >= FEW_ENTRIES { 0 } else { 2 };
    let numbers = numbers.map(|it| words::figure(it, decimals(it)));
    let noun = if numbers[0] == "1" { one } else { several };
    sides(numbers, noun)
}

/// Formats a figure on both sides; once if both sides are the same. `of` follows the figure.
pub fn sides([base, new]: [String; 2], of: &str) -> String {
    match base == new {
        true => format!("{base}{of}"),
        false => format!("{base}{of} before, {new} now"),
    }
}
