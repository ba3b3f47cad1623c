//! The sentences and tables of an explanation.

use std::cmp::Ordering;

use compare::{
    Compared, Contribution, Difference, Explanation, FEWEST_FOR_LISTS, LEVEL, RATE, RESOLUTION,
    Section, Side, Totals,
};
use model::{Class, ENTRIES, OUTSIDE_PHASES, count, grouped};

use super::cause::{Moved, ranked, remark};
use super::headline::{phase_name, within};
use crate::ascii::excerpt;
use crate::document::{Block, Column, note, part, table};
use crate::exact::{MISSES, MODELLED, PAIRS, TRANSFERS, not_modelled};
use crate::words::{self, decimal, listed};

/// Lays out a table with a title. The last of `heads` is the column of subjects, the others are columns of
/// figures. `foot` is printed below, such as the number of rows left out, or a sum.
pub fn ranking(
    title: &str,
    heads: &[&'static str],
    rows: Vec<Vec<String>>,
    foot: Vec<String>,
) -> Block {
    let last = heads.len() - 1;
    let columns = heads.iter().enumerate().map(|(place, head)| match place == last {
        true => Column::subject(head),
        false => Column::figures(head),
    });
    // A table without rows needs no names of columns.
    let rows = (!rows.is_empty()).then(|| table(columns.collect::<Vec<_>>(), rows));
    let below = rows.into_iter().chain(foot.into_iter().map(note));
    part(format!("{title}:"), below.collect::<Vec<_>>())
}

/// Writes the title: the variants that are compared, with their numbers of seeds.
pub fn title(explanation: &Explanation) -> String {
    let side = |side: &Side| {
        let seeds = match side.complete {
            true => count(side.seeds, "seed"),
            false => format!("{} of {}", side.seeds, count(explanation.wanted as usize, "seed")),
        };
        format!("{} ({seeds})", excerpt(&side.name))
    };
    format!(
        "{}, {}: {} against {}; means over seeds",
        excerpt(&explanation.workload),
        explanation.cost.unit,
        side(&explanation.new),
        side(&explanation.base),
    )
}

/// Returns a note on the phases that the rankings leave out because they only prepare. `None` if no phase
/// does, or if the rankings are those of `phase`.
pub fn unjudged(explanation: &Explanation, phase: Option<&str>) -> Option<String> {
    let names: Vec<_> = explanation.preparation.iter().map(|phase| phase_name(phase)).collect();
    let has_rest = explanation.measured.is_some() && phase.is_none() && !names.is_empty();
    has_rest.then(|| {
        format!(
            "The rankings are of the measured phases. `--phase NAME` ranks one that only prepares: {}.",
            names.join(", ")
        )
    })
}

/// Returns why there is nothing to explain.
pub fn nothing(explanation: &Explanation) -> String {
    let sides = [&explanation.base, &explanation.new].into_iter().filter(|side| side.seeds == 0);
    let names: Vec<_> = sides.map(|side| excerpt(&side.name)).collect();
    let workload = excerpt(&explanation.workload);
    format!(
        "Nothing to explain: no complete boot of {} has an exact profile of {workload}.",
        names.join(" and of ")
    )
}

/// Returns that the workload has no such phase, and lists its phases.
pub fn no_phase(explanation: &Explanation, phase: &str) -> String {
    let phases = explanation.phases.iter().filter_map(|section| section.phase.as_deref());
    let phases: Vec<_> = phases.map(phase_name).collect();
    format!(
        "{} has no phase {}; its phases: {}.",
        excerpt(&explanation.workload),
        phase_name(phase),
        phases.join(", ")
    )
}

/// What no floor covers if there are several measured phases.
const LEFT_BEHIND: &str = "Floors do not cover what earlier phases left behind, such as the shape of a tree of mappings: \
                           it is the same for all seeds of a kernel, and a part of a phase's change. Work that the \
                           kernel defers, such as RCU callbacks, counts in the phase in which it runs.";

/// Returns notes on luck, and on the terms of the tables.
pub fn notes(explanation: &Explanation) -> Vec<String> {
    let luck = if explanation.of_one_variant {
        "Both sides are seeds of one variant: luck alone makes them differ.".to_owned()
    } else if explanation.knows_luck() && explanation.pairs < FEWEST_FOR_LISTS as usize {
        format!(
            "A change within its floor may be luck (`within`). With {} a side no function, \
             contribution or counter can be told from luck; that takes {FEWEST_FOR_LISTS}.",
            count(explanation.pairs, "seed")
        )
    } else if explanation.knows_luck() {
        format!(
            "A change within its floor may be luck (`within`). Luck alone exceeds the floor of a \
             total in {:.0} % of comparisons; no such floor is below {} %. The kernel's in \
             measured phases are judged together; `compare` of more than two variants has wider ones. At equal entries: \
             what the kernel would have executed had each function been entered as often on both \
             sides. It is shown where luck hides a change of the kernel's instructions. Of the \
             functions, contributions and counters beyond luck, at most {:.0} % are expected to \
             be luck (false discovery rate, by relabelling the seeds).",
            100.0 * LEVEL,
            100.0 * RESOLUTION,
            100.0 * RATE
        )
    } else {
        "Luck is unknown until two seeds are complete on both sides. Any of these changes may be \
         luck."
            .to_owned()
    };
    let split = match is_per_entry(explanation) {
        true => "By cost and by number add up to the change (Bennet 1920). ",
        false => "",
    };
    let words = "New, gone: only one side executed the function; it may be new, renamed or inlined. \
                 Maybe: a function of the other side with a similar name that was entered as often, at \
                 a similar cost. Offset by: work may have moved between the two functions, or one may be inlined \
                 in the other. In parts: entered at its beginning, and by others at a `.part`, so \
                 not compared per entry.";
    let code = match &explanation.unmarked {
        None if explanation.all.iter().flat_map(|all| &all.contributions).any(|it| it.code.is_some()) => {
            "Code differs: the function's own machine code differs (`faultline diff`), so it can be \
             a cause. Code same: its change is luck or a consequence of others."
                .to_owned()
        }
        None => String::new(),
        Some(why) => format!("Functions are not marked by their code: {}.", excerpt(why)),
    };
    let cuts = format!(
        "Left out: {} at the cuts between phases, which are the sampler's own.",
        explanation.cost.unit
    );
    let class = Class::named(&explanation.cost.name);
    let has_model = class.is_some_and(Class::is_miss);
    let unmodelled = not_modelled(explanation.arch).iter().copied();
    let unmodelled: Vec<&str> =
        unmodelled.filter(|it| !has_model || !MODELLED.contains(it)).collect();
    let limits = format!("Not modelled: {}.", unmodelled.join(", "));
    let unlined = explanation.unlined.first();
    let unlined = unlined.map(|why| format!("Not every line is named: {}.", excerpt(why)));
    let unlined = unlined.unwrap_or_default();
    let measured = explanation.phases.iter().filter_map(|it| it.phase.as_ref());
    let measured = measured.filter(|it| !it.is_empty() && !explanation.preparation.contains(it));
    let has_several = explanation.knows_luck() && measured.count() > 1;
    let left = if has_several { LEFT_BEHIND.to_owned() } else { String::new() };
    let lines = match class {
        Some(Class::PairTransfer) => format!("Transfers: {TRANSFERS}. Pairs: {PAIRS}."),
        Some(class) if class.is_transfer() => format!("Transfers: {TRANSFERS}."),
        Some(class) if class.is_miss() => format!("Misses: {MISSES}."),
        _ => String::new(),
    };
    let notes =
        [luck, left, format!("{split}{words}"), code, unlined, lines, format!("{cuts} {limits}")];
    notes.into_iter().filter(|note| !note.is_empty()).collect()
}

/// Returns how many of `beyond` figures beyond luck are expected to be luck, at most. `None` if luck is not
/// known.
pub fn by_luck(explanation: &Explanation, beyond: usize) -> Option<f64> {
    explanation.knows_luck().then_some(RATE * beyond as f64)
}

/// Returns cautions about a section: how many rows were compared with luck, how many are beyond it, and how
/// many of these may be luck; and errors in the profile.
pub fn cautions(explanation: &Explanation, section: &Section) -> Vec<String> {
    let Compared { per_entry, contributions, counters } = section.compared;
    let [cost, change, counter] = beyond(section);
    let compared = by_luck(explanation, cost).map(|_| {
        let mut lists = vec![
            (change, count(contributions, "contribution")),
            (counter, count(counters, "counter")),
        ];
        if is_per_entry(explanation) {
            lists.insert(0, (cost, count(per_entry, "function") + " per entry"));
        }
        let found: Vec<String> = lists
            .iter()
            .map(|(beyond, of)| format!("{} of {of}", grouped(&beyond.to_string())))
            .collect();
        let expected = lists.iter().map(|(beyond, _)| decimal(by_luck(explanation, *beyond), 1));
        format!(
            "Beyond luck{}: {}. Expected false positives: at most {}.",
            within(section),
            found.join(", "),
            listed(&expected.collect::<Vec<_>>())
        )
    });
    error(section, &explanation.cost.unit).into_iter().chain(compared).collect()
}

/// Returns whether the cost can be divided by entries. Entries themselves cannot.
pub fn is_per_entry(explanation: &Explanation) -> bool {
    explanation.cost.name != ENTRIES
}

/// Counts the figures beyond luck: costs per entry, contributions and counters.
pub fn beyond(section: &Section) -> [usize; 3] {
    let is_beyond = |it: &&Difference| it.beyond_luck() == Some(true);
    let costs = section.contributions.iter().filter_map(|it| it.calls.as_ref()?.per_entry.as_ref());
    let contributions = section.contributions.iter().map(|it| &it.instructions);
    let counters = section.counters.iter().map(|it| &it.growth);
    [
        costs.filter(is_beyond).count(),
        contributions.filter(is_beyond).count(),
        counters.filter(is_beyond).count(),
    ]
}

/// Returns the error in the profiles of a section: functions that do not add up to the kernel's total.
/// `None` if they do.
fn error(section: &Section, unit: &str) -> Option<String> {
    let number = section.in_no_function;
    let size = grouped(&number.unsigned_abs().to_string());
    let what = match number.signum() {
        0 => return None,
        1 => format!("{size} {unit} of the kernel are in no function"),
        _ => format!("the kernel's functions have {size} {unit} more than the CPUs counted"),
    };
    Some(format!("ERROR{}: the profile of a seed is wrong: {what}.", within(section)))
}

/// The heads of the columns of [`row`].
pub const HEADS: [&str; 7] = ["base", "new", "change", "%", "floor", "luck", "of"];

/// Means over seeds below this have decimals if they are not whole.
const FEW: f64 = 100.0;

/// Returns the cells of a difference.
pub fn row(name: String, it: &Difference) -> Vec<String> {
    let sides = [it.base, it.new];
    let is_small = sides.iter().all(|it| *it < FEW) && sides.iter().any(|it| it.fract() != 0.0);
    let decimals = if is_small { 2 } else { 0 };
    let [base, new] = sides.map(|it| decimal(Some(it), decimals));
    let change = signed(it.change(), decimals);
    vec![base, new, change, percent(it), floor(it, decimals), luck(it).to_owned(), name]
}

/// Lays out the totals: those of the measured phases, by who executed, then those of the `limit` phases whose kernel
/// instructions changed most, in their order, of `phase`, and of those that only one side has.
pub fn totals(explanation: &Explanation, phase: Option<&str>, limit: usize) -> Block {
    let equal = |of: &str, totals: &Totals| {
        totals.hidden().map(|it| row(format!("  kernel of {of}, at equal entries"), it))
    };
    let mut rows = Vec::new();
    if let Some(Section { totals, .. }) = explanation.section(None) {
        let name = if explanation.measured.is_some() { "measured phases" } else { "total" };
        rows.push(row(name.into(), &totals.all));
        rows.push(row("  user".into(), &totals.user));
        rows.push(row("  kernel".into(), &totals.kernel));
        rows.extend(equal(name, totals));
        rows.push(row("  firmware".into(), &totals.firmware));
    }
    let size = |it: &&Section| it.totals.hidden().unwrap_or(&it.totals.kernel).change().abs();
    let mut by_size: Vec<&Section> = explanation.phases.iter().collect();
    by_size.sort_by(|one, other| size(other).total_cmp(&size(one)));
    let largest = &by_size[..by_size.len().min(limit)];
    let is_shown = |it: &&Section| {
        let is_asked = phase.is_some() && it.phase.as_deref() == phase;
        is_asked || it.is_of_one_side() || largest.iter().any(|large| std::ptr::eq(*large, *it))
    };
    let shown: Vec<&Section> = explanation.phases.iter().filter(is_shown).collect();
    for section in &shown {
        let name = phase_name(section.phase.as_deref().unwrap_or_default());
        let name = format!("phase {name}");
        rows.push(row(name.clone(), &section.totals.all));
        rows.extend(equal(&name, &section.totals));
    }
    let left = explanation.phases.len() - shown.len();
    let more = (left > 0).then(|| format!("{} more, with smaller changes", count(left, "phase")));
    let foot = more.into_iter().chain(outside(explanation)).collect();
    ranking("Totals", &HEADS, rows, foot)
}

/// Returns a note on what is outside all phases, which is not the workload's alone. `None` if nothing is, or everything.
fn outside(explanation: &Explanation) -> Option<String> {
    let phases = &explanation.phases;
    let has_rest = phases.len() > 1 && phases.iter().any(|it| it.phase.as_deref() == Some(""));
    has_rest.then(|| {
        format!("{OUTSIDE_PHASES}: the agent itself, and the program before its first and after its last phase")
    })
}

/// Lays out the first `limit` functions of the ranking by cost per entry.
pub fn per_entry(
    explanation: &Explanation,
    section: &Section,
    moved: &Moved<'_>,
    limit: usize,
) -> Block {
    let ranked = section.per_entry.iter().filter_map(|&place| section.contributions.get(place));
    let rows: Vec<_> =
        ranked.take(limit).filter_map(|it| cost(it, moved, explanation.one_kernel)).collect();
    let left = section.per_entry.len().saturating_sub(rows.len());
    let functions = section.contributions.iter().filter(|it| it.calls.is_some()).count();
    let foot = match (rows.len() + left, left) {
        (0, _) => vec![format!("none of {}", count(functions, "function"))],
        (_, 0) => vec![],
        (_, left) => vec![format!("{left} more of {}", count(functions, "function"))],
    };
    let ranked = match explanation.knows_luck() {
        true => "changes beyond luck, ranked by (change - floor) x entries, at most by total",
        false => "all changes, luck or not, ranked by change x entries, at most by total",
    };
    let first = match section.contributions.iter().any(Contribution::is_cause) {
        true => ", code that differs first",
        false => "",
    };
    let title =
        format!("Own {} per entry{}: {ranked}{first}", explanation.cost.unit, within(section));
    let heads = ["base", "new", "change", "floor", "entries", "now", "total", "function"];
    ranking(&title, &heads, rows, foot)
}

/// Returns the cells of a function in the ranking per entry.
fn cost(it: &Contribution, moved: &Moved<'_>, one_kernel: bool) -> Option<Vec<String>> {
    let calls = it.calls.as_ref()?;
    let cost = calls.per_entry?;
    Some(vec![
        decimal(Some(cost.base), 2),
        decimal(Some(cost.new), 2),
        signed(cost.change(), 2),
        floor(&cost, 2),
        figure(calls.entries.base),
        figure(calls.entries.new),
        signed(it.instructions.change(), 0),
        format!("{}{}", excerpt(&it.subject.to_string()), remark(it, moved, one_kernel)),
    ])
}

/// Lays out the first `limit` contributions, and a check that all contributions add up to the change of the
/// total.
pub fn contributions(
    explanation: &Explanation,
    section: &Section,
    moved: &Moved<'_>,
    limit: usize,
) -> Block {
    let unit = explanation.denominator.max(1);
    let mut sum = 0;
    // Figures are rounded so that the printed column adds up.
    let mut rounded = |change: i128| {
        let before = whole(sum, unit);
        sum += change;
        whole(sum, unit) - before
    };
    let [shown, others] = ranked(section, moved, limit);
    let shown = shown.iter();
    let row = |it: &&Contribution| {
        let remark = remark(it, moved, explanation.one_kernel);
        contribution(it, rounded(it.change), unit, &remark)
    };
    let rows: Vec<_> = shown.map(row).collect();
    let left = rounded(others.iter().map(|it| it.change).sum());
    let more = section.contributions.len() - rows.len();
    let mut foot = Vec::new();
    if more > 0 {
        foot.push(format!("{left:+} by {more} more"));
    }
    foot.push(proof(section, sum, unit));
    let title = format!("Contributions{} to the change, the largest first", within(section));
    let heads = ["change", "by cost", "by number", "floor", "luck", "of"];
    if is_per_entry(explanation) {
        return ranking(&title, &heads, rows, foot);
    }
    let rows = rows.into_iter().map(|row| [&row[..1], &row[3..]].concat()).collect();
    ranking(&title, &[&heads[..1], &heads[3..]].concat(), rows, foot)
}

fn contribution(it: &Contribution, change: i128, unit: i128, remark: &str) -> Vec<String> {
    let split = it.calls.as_ref().and_then(|calls| calls.split);
    let split = split.map(|split| {
        let by_cost = whole(split.by_cost, unit);
        [by_cost, change - by_cost].map(|part| format!("{part:+}"))
    });
    let [by_cost, by_number] = split.unwrap_or_else(|| ["-".into(), "-".into()]);
    let floor = floor(&it.instructions, 0);
    let luck = luck(&it.instructions).to_owned();
    let of = excerpt(&it.subject.to_string());
    vec![format!("{change:+}"), by_cost, by_number, floor, luck, of + remark]
}

/// Writes the sum of the contributions, and whether it equals the change of the total. Both are exact.
fn proof(section: &Section, sum: i128, unit: i128) -> String {
    let exactly = |numerator: i128| match unit {
        1 => format!("{numerator:+}"),
        _ => format!("{numerator:+}/{unit}"),
    };
    let check = match sum == section.change {
        true => "adds up to the change of the total exactly".to_owned(),
        false => format!(
            "does NOT add up to the change of the total, {:+} ({} is not {})",
            whole(section.change, unit),
            exactly(sum),
            exactly(section.change)
        ),
    };
    format!("{:+} by all {}: {check}", whole(sum, unit), section.contributions.len())
}

/// Lays out the first `limit` counters.
pub fn counters(explanation: &Explanation, section: &Section, limit: usize) -> Block {
    let rows = section.counters.iter().take(limit).map(|it| {
        let growth = &it.growth;
        vec![
            decimal(Some(growth.base), 1),
            decimal(Some(growth.new), 1),
            signed(growth.change(), 1),
            floor(growth, 1),
            luck(growth).to_owned(),
            excerpt(&it.name),
        ]
    });
    let rows: Vec<_> = rows.collect();
    let left = &section.counters[rows.len()..];
    let beyond = left.iter().filter(|it| it.growth.beyond_luck() == Some(true)).count();
    let foot = match (section.counters.len(), left.len()) {
        (0, _) => vec!["none".to_owned()],
        (_, 0) => vec![],
        (_, left) if explanation.knows_luck() => {
            vec![format!("{left} more, {beyond} of them beyond luck")]
        }
        (_, left) => vec![format!("{left} more")],
    };
    let title =
        format!("Counters of /proc/vmstat{} that grew by different amounts", within(section));
    ranking(&title, &["base", "new", "change", "floor", "luck", "counter"], rows, foot)
}

/// Changes are factors from this one on.
const TENFOLD: f64 = 10.0;

/// Formats a figure without decimals.
pub fn figure(value: f64) -> String {
    decimal(Some(value), 0)
}

/// Formats a figure with its sign, even if it rounds to 0.
pub fn signed(value: f64, decimals: usize) -> String {
    let sign = if value < 0.0 { '-' } else { '+' };
    format!("{sign}{}", decimal(Some(value.abs()), decimals))
}

/// Formats a change in percent; from tenfold on as a factor.
fn percent(it: &Difference) -> String {
    let times = it.new / it.base;
    match times.is_finite() {
        false => "-".to_owned(),
        true if times >= TENFOLD => format!("x{}", words::figure(times, 1)),
        true => format!("{}%", signed(100.0 * it.change() / it.base, 2)),
    }
}

fn floor(it: &Difference, decimals: usize) -> String {
    decimal(it.floor, decimals)
}

fn luck(it: &Difference) -> &'static str {
    match it.beyond_luck() {
        Some(true) => "beyond",
        Some(false) => "within",
        None => "?",
    }
}

/// Rounds a number of `1 / unit` to whole numbers; halves are rounded to even, as [`decimal`] does.
fn whole(numerator: i128, unit: i128) -> i128 {
    let (below, rest) = (numerator.div_euclid(unit), numerator.rem_euclid(unit));
    match (2 * rest).cmp(&unit) {
        Ordering::Less => below,
        Ordering::Equal => below + below.rem_euclid(2),
        Ordering::Greater => below + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_rounded_alike_in_all_tables() {
        for unit in 1..7 {
            for numerator in -40..40 {
                let mean = numerator as f64 / unit as f64;
                let printed = signed(mean, 0).replace("-0", "+0");
                assert_eq!(format!("{:+}", whole(numerator, unit)), printed, "{numerator}/{unit}");
            }
        }
    }
}
