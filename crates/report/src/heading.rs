//! The line above a table: its workload, its kind, and the data in it.

use compare::{Comparison, Kind, Part, Pool, Table};
use model::{Mode, count};

use crate::ascii::escape;

/// The caveat on times of exact mode.
const NOT_TIME: &str = "; guest time is not performance";

/// Returns the heading of a table, on one line.
pub fn words(table: &Table, comparison: &Comparison) -> String {
    format!("{}: {}", escape(&table.workload), what(table, comparison))
}

/// Returns the heading without the workload.
pub fn what(table: &Table, comparison: &Comparison) -> String {
    let part = match table.part.filter(|_| table.kind != Kind::Metrics) {
        None => "",
        Some(Part::Steady) => "; without the warm-up left out above",
        Some(Part::Untimed) => {
            "; whole phases with their warm-up, because the ends of samples \
                                are not known"
        }
        Some(Part::Unsampled) => {
            "; whole phases with their warm-up, because no counters were sampled soon after it"
        }
        Some(Part::Mixed) => {
            "; whole phases with their warm-up, because one metric warms up after another has \
             ended"
        }
        Some(Part::Whole) => "; whole iterations with their warm-up",
    };
    let pooled = pooled(table, comparison);
    let gains = match table.pooled.len() > 1 && table.rows.iter().any(|row| row.better.is_some()) {
        true => "; positive gains are better",
        false => "",
    };
    let whole = if table.with_preparation { ", preparation included" } else { "" };
    let what = match (table.kind, comparison.mode) {
        (Kind::Metrics, Mode::Measured) => {
            format!("pooled over {pooled}{}{gains}", units(table, ""))
        }
        (Kind::Metrics, Mode::Exact) => {
            let has_times = table.units.iter().any(|(name, unit)| name != unit && is_time(unit));
            let caveat = if has_times { NOT_TIME } else { "" };
            format!("over {pooled}{}{gains}{caveat}", units(table, " of guest time"))
        }
        (Kind::Duration, Mode::Measured) => {
            format!("seconds summed over iterations{whole}, mean of boots: {pooled}")
        }
        (Kind::Duration, Mode::Exact) => {
            format!(
                "guest seconds summed over iterations{whole}, mean of seeds: {pooled}{NOT_TIME}"
            )
        }
        (Kind::Counters, Mode::Measured) => {
            format!("counters summed over iterations, mean of boots: {pooled}{}", left_out(table))
        }
        (Kind::Counters, Mode::Exact) => {
            format!("counters summed over iterations, mean of seeds: {pooled}{}", left_out(table))
        }
        (Kind::Events, Mode::Measured) => {
            format!(
                "events per iteration and per second (/s), mean of boots: {pooled}{}",
                left_out(table)
            )
        }
        (Kind::Events, Mode::Exact) => {
            let without = left_out(table);
            format!(
                "events per iteration and per second of guest time (/s), mean of seeds: {pooled}{without}"
            )
        }
    };
    what + part
}

/// Most phases that are named individually.
const FEW: usize = 4;

/// Returns the phases that a table of counters leaves out:
/// `; without create, fill and time outside phases`.
pub(crate) fn left_out(table: &Table) -> String {
    let named = table.left_out.iter().filter(|phase| !phase.is_empty());
    let mut phases: Vec<String> = named.map(|phase| escape(phase)).collect();
    let is_all = phases.len() == table.left_out.len();
    if phases.len() > FEW {
        let by_end = folded(&phases, |(_, end)| format!("*-{end}"));
        let by_begin = folded(&phases, |(begin, _)| format!("{begin}-*"));
        phases = if by_end.len() <= by_begin.len() { by_end } else { by_begin };
    }
    if !is_all {
        phases.push("time outside phases".to_owned());
    }
    match phases.as_slice() {
        [] => String::new(),
        [only] => format!("; without {only}"),
        [rest @ .., last] => format!("; without {} and {last}", rest.join(", ")),
    }
}

/// Replaces phases of the same pattern by the pattern and their number: `*-fill (5)`. `pattern` gets the parts of a name
/// before and after the first hyphen. A phase without a hyphen has no pattern.
fn folded<'a>(phases: &'a [String], pattern: impl Fn((&'a str, &'a str)) -> String) -> Vec<String> {
    let mut groups: Vec<(Option<_>, Vec<&String>)> = Vec::new();
    for phase in phases {
        let pattern = phase.split_once('-').map(&pattern);
        let known = groups.iter_mut().find(|(known, _)| pattern.is_some() && *known == pattern);
        match known {
            Some((_, group)) => group.push(phase),
            None => groups.push((pattern, vec![phase])),
        }
    }
    let named = groups.into_iter().map(|(pattern, group)| match (pattern, group.as_slice()) {
        (Some(pattern), [_, _, ..]) => format!("{pattern} ({})", group.len()),
        _ => group[0].clone(),
    });
    named.collect()
}

/// Returns the numbers of boots and iterations. They are printed once if they are the same for every
/// column.
fn pooled(table: &Table, comparison: &Comparison) -> String {
    let boot = match comparison.mode {
        Mode::Measured => "boot",
        Mode::Exact => "seed",
    };
    let amounts: Vec<String> = table.pooled.iter().map(|pool| amount(pool, boot)).collect();
    match amounts.as_slice() {
        [only] => only.clone(),
        [first, rest @ ..] if rest.iter().all(|other| other == first) => {
            format!("{first} a column")
        }
        _ => {
            let variants = comparison.variants.iter();
            let columns = variants.zip(&amounts);
            columns
                .map(|(variant, amount)| format!("{amount} in {}", escape(&variant.name)))
                .collect::<Vec<_>>()
                .join(", ")
        }
    }
}

fn amount(pool: &Pool, boot: &str) -> String {
    let boots = pool.iterations.len();
    let least = pool.iterations.iter().min();
    let most = pool.iterations.iter().max();
    let warmup = match pool.warmup {
        0 => String::new(),
        warmup => format!(" after {warmup} of warm-up"),
    };
    match (least, most) {
        (Some(least), Some(most)) if least == most => {
            format!("{} x {}{warmup}", count(boots, boot), count(*most, "iteration"))
        }
        (Some(least), Some(most)) => {
            format!("{} x {least} to {most} iterations{warmup}", count(boots, boot))
        }
        _ => format!("no {boot}"),
    }
}

/// Returns whether a unit is one of time.
pub(crate) fn is_time(unit: &str) -> bool {
    matches!(unit, "s" | "ms" | "us" | "ns")
}

/// Returns the units with their metrics: `; Elapsed, System in s; CPU in %`. `of` follows a unit of time. A
/// metric whose unit has the metric's name is left out.
fn units(table: &Table, of: &str) -> String {
    let mut text = String::new();
    for metrics in table.units.chunk_by(|(_, a), (_, b)| a == b) {
        let names: Vec<_> = metrics.iter().map(|(name, _)| escape(name)).collect();
        let (names, unit) = (names.join(", "), escape(&metrics[0].1));
        let in_unit = match unit.as_str() {
            own if own == names => String::new(),
            own if is_time(own) => format!(" in {unit}{of}"),
            _ => format!(" in {unit}"),
        };
        text.push_str(&format!("; {names}{in_unit}"));
    }
    text
}
