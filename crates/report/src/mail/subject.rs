//! The subject of a mail: what a comparison found, in one line.

use compare::{
    Comparison, Explained, Holder, Results, Row, RowVerdict, Statistic, Subject, Table,
    VariantBoots, VariantOutcomes, Verdict, verdicts_by_point,
};
use model::{Better, Mode, count};

use super::{clipped, names, reproduce, work};
use crate::ascii::{escape, few};
use crate::document::{MAIL, Medium};
use crate::explain::apart;
use crate::words::{Of, decimal, phase_alone, phase_of, times};
use crate::{exact, failing};

/// Most characters of a name in a subject.
const MAX_NAME: usize = 30;
/// Most characters of a name in a subject that has settings of both sides with one of them.
const MAX_NAME_AND_SETTINGS: usize = 48;
/// Most characters of a patch's subject in a subject.
const MAX_PATCH: usize = 70;
/// Most variants that are named as failing, or as not failing.
const MAX_FAILING: usize = 2;
/// Most characters of a line in a mail's header (RFC 5322, section 2.1.1).
pub const WIDTH: usize = 78;

/// A row with its verdict on a column.
struct JudgedRow<'a> {
    column: usize,
    table: &'a Table,
    row: &'a Row,
    verdict: Verdict,
}

/// Returns the header with the subject. A long header is folded as RFC 5322 allows.
pub fn header(words: &str) -> String {
    // Text that looks like an encoded word would be decoded (RFC 2047), so it is escaped.
    let words = escape(words).replace("=?", "=\\u{3f}");
    Medium { width: WIDTH, ..MAIL }.wrapped("Subject: ", " ", &words)
}

/// Returns the finding as a sentence, without the area that begins a subject.
pub fn as_sentence(words: &str) -> String {
    format!("{}.", words.strip_prefix("mm: ").unwrap_or(words))
}

/// Returns the patches by which alone a column differs from the baseline, by their subject and, of several, with their
/// number. `None` if it has none, or the kernels differ otherwise.
fn patch(comparison: &Comparison, results: &Results<'_>, column: usize) -> Option<String> {
    let variant = |column: usize| results.column(&comparison.variants[column].name);
    let patched = reproduce::patches(variant(0)?, variant(column)?)?;
    let more = match patched.patches {
        0 | 1 => String::new(),
        several => format!(" ({several} patches)"),
    };
    Some(format!("\"{}\"{more}", clipped(&patched.subject, MAX_PATCH)))
}

/// Returns the short name of a variant ([`full_name`]).
fn name(comparison: &Comparison, results: &Results<'_>, column: usize) -> String {
    clipped(&full_name(comparison, results, column), MAX_NAME)
}

/// Returns the name of a variant. One that begins with the version of a package of Debian says so.
fn full_name(comparison: &Comparison, results: &Results<'_>, column: usize) -> String {
    let Some(variant) = comparison.variants.get(column) else { return "nothing".to_owned() };
    let booted = results.variants.iter().find(|it| it.variant.name == variant.name);
    booted.map_or_else(|| variant.name.clone(), names::of_subject)
}

/// Returns what a comparison found, in a few words. `explained` has the function that holds most of a change.
pub fn words(comparison: &Comparison, results: &Results<'_>, explained: &[Explained]) -> String {
    if !comparison.points.is_empty() {
        return of_sweep(comparison, results);
    }
    let failing = failing::variants(comparison);
    if !failing.is_empty() {
        return fails(comparison, results, &failing);
    }
    let found = judged(comparison);
    let Some(change) = first(comparison, results, &found) else {
        let open = found.iter().filter(|it| it.verdict == Verdict::Undecided).count();
        return unchanged(comparison, results, &found, open);
    };
    // The names in the subject are those of one column.
    let work =
        |it: &JudgedRow<'_>| work::other(explained, comparison, (it.table, it.row), it.column);
    let others = || {
        let own = found.iter().filter(|it| it.column == change.column);
        own.filter(|it| !std::ptr::eq(it.row, change.row))
    };
    let of = |verdict| others().filter(|it| it.verdict == verdict && work(it).is_none()).count();
    let [worse, better] = [Verdict::Regression, Verdict::Improvement].map(of);
    let open = others().filter(|it| it.verdict == Verdict::Undecided).count();
    let other = others().filter(|it| work(it).is_some()).count();
    let workloads = workloads(comparison, Some(&change.table.workload));
    let names = names(comparison, results, Some(change.column), &said(&workloads));
    let tag = match change.verdict {
        _ if comparison.emulated && comparison.mode == Mode::Measured => "[EMULATED]",
        Verdict::Improvement => "[IMPROVEMENT]",
        _ => "[REGRESSION]",
    };
    let others = match change.verdict {
        Verdict::Regression => [(worse, "other worse"), (better, "better")],
        _ => [(worse, "worse"), (better, "other better")],
    };
    let others = others.into_iter().chain([(other, "with other work"), (open, "undecided")]);
    let others = others.filter(|(number, _)| *number > 0);
    let others: Vec<String> = others.map(|(number, what)| format!("{number} {what}")).collect();
    let others = match others.is_empty() {
        true => String::new(),
        false => format!(", {}", others.join(", ")),
    };
    if comparison.mode == Mode::Exact {
        let patch = patch(comparison, results, change.column);
        let names = [0, change.column].map(|column| full_name(comparison, results, column));
        let names = with_settings_once(names).map(|it| {
            let clipped = clipped(&it, MAX_NAME_AND_SETTINGS);
            let is_open = clipped.contains('(') && !clipped.contains(')');
            if is_open { clipped + ")" } else { clipped }
        });
        let mut workloads = results.experiment.workloads.iter().map(|it| &it.manifest);
        let own = workloads.find(|it| it.name == change.table.workload);
        let kind = if own.is_some_and(|it| it.plain) { "program " } else { "" };
        let modules = own.map_or(&[][..], |it| &it.modules);
        let new = &comparison.variants[change.column].name;
        let is_its = |it: &&Explained| it.workload == change.table.workload && it.variant == *new;
        let explained = explained.iter().find(is_its);
        let mostly = mostly(change, explained, modules);
        let landings = change_without_landings(change, explained);
        let work = work(change).and_then(work::in_subject);
        let work = work.map(|work| format!(", {work}")).unwrap_or_default();
        return counted(change, kind, &names, patch.as_deref(), landings)
            + &work
            + &mostly
            + &others;
    }
    let metric = clipped(&change.row.metric, MAX_NAME);
    // With several workloads, the metric is preceded by its workload.
    let metric = match workloads.as_slice() {
        [own, _, ..] => format!("{} {metric}", clipped(own, MAX_NAME)),
        _ => metric,
    };
    format!("{tag} {names}: {metric} {}{others}", gain(change))
}

/// A function is named in a subject if it has at least this share of the change.
const MOSTLY: f64 = 0.5;
/// Most functions that a subject names, if they make up the change together.
const MOST_PARTS: usize = 2;

/// Names the function that holds most of a change, or the two that make it up; empty if there are none. Functions of the
/// workload's own `modules` only call those that are asked for. Nothing is named if others offset much of the change.
fn mostly(change: &JudgedRow<'_>, explained: Option<&Explained>, modules: &[String]) -> String {
    let Some(explained) = explained else { return String::new() };
    let phase = phase_alone(change.row);
    let Some(headline) = explained.headlines.iter().find(|it| it.phase == phase) else {
        return String::new();
    };
    let section = explained.explanation.section(Some(phase));
    let is_of_kernel = |holder: &&Holder| {
        let mut functions = section.into_iter().flat_map(|it| &it.contributions);
        !functions.any(|it| match &it.subject {
            Subject::Function { name, module } => *name == holder.name && modules.contains(module),
            _ => false,
        })
    };
    let divided = headline.divided.iter().filter(|it| it.complete);
    let parts: Vec<&Holder> = divided.flat_map(|it| &it.parts).collect();
    let offset: f64 = parts.iter().map(|it| it.share).filter(|share| *share < 0.0).sum();
    if offset < -MOSTLY {
        return String::new();
    }
    let function = headline.function.iter().filter(is_of_kernel);
    // A part is closer to the cause than the function that has it.
    let one = parts.iter().copied().chain(function).find(|it| it.share >= MOSTLY);
    let named = match one {
        Some(one) => vec![one],
        None if parts.len() <= MOST_PARTS => parts,
        None => Vec::new(),
    };
    let names: Vec<String> = named.iter().map(|it| clipped(&it.name, MAX_NAME)).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(", mostly in {}", names.join(" and ")),
    }
}

/// Returns the change without the `endbr64` of IBT. `None` if they are a small part of it.
fn change_without_landings(
    change: &JudgedRow<'_>,
    explained: Option<&Explained>,
) -> Option<String> {
    let section = explained?.explanation.section(Some(phase_alone(change.row)))?;
    let is_total = change.row.statistic != Statistic::Equal;
    apart::change_without_landings(section, 1, " without endbr64").filter(|_| is_total)
}

/// Removes settings with which both names end, and puts them in parentheses behind the first name, which is printed
/// last.
fn with_settings_once(names: [String; 2]) -> [String; 2] {
    let [base, new] = names.each_ref().map(|it| it.split(' ').collect::<Vec<&str>>());
    let pairs = base.iter().rev().zip(new.iter().rev());
    let is_setting = |word: &str| word.contains(['=', '/']) && !word.ends_with("...");
    let shared = pairs.take_while(|(one, other)| one == other && is_setting(one)).count();
    if shared == 0 || shared == base.len().min(new.len()) {
        return names;
    }
    let (base, settings) = base.split_at(base.len() - shared);
    let new = new[..new.len() - shared].join(" ");
    [format!("{} ({})", base.join(" "), settings.join(" ")), new]
}

/// Returns a finding of exact mode in words:
/// `mm: mprotect protect 139.9 % more kernel instructions with 7.3 than with 6.1`, or `with "mm: faster"` for a patch.
fn counted(
    change: &JudgedRow<'_>,
    kind: &str,
    [base, new]: &[String; 2],
    patch: Option<&str>,
    without_landings: Option<String>,
) -> String {
    let JudgedRow { column, table, row, .. } = *change;
    let clip = |name: &str| clipped(name, MAX_NAME);
    // A workload with a single phase needs no name of it.
    let judged = table.rows.iter().filter(|row| row.is_judged()).count();
    let phase = phase_of(row);
    let is_named = judged > 1 && phase != table.workload;
    let phase = if is_named { format!(" {}", clip(&phase)) } else { String::new() };
    let by = exact::change(row, column, 1).unwrap_or_else(|| "from no".to_owned());
    let workload = clip(&table.workload);
    let with = patch.map_or_else(|| format!("{new} than with {base}"), str::to_owned);
    let without = exact::change_without_loops(row, column, 1, "without clearing and copying");
    let without: Vec<String> = without.into_iter().chain(without_landings).collect();
    let without = match without.is_empty() {
        true => String::new(),
        false => format!(" ({})", without.join("; ")),
    };
    format!("mm: {kind}{workload}{phase} {by} kernel instructions{without} with {with}")
}

/// Returns all rows with verdicts.
fn judged(comparison: &Comparison) -> Vec<JudgedRow<'_>> {
    let columns = 1..comparison.variants.len();
    let of = |column: usize| {
        let given = comparison.verdicts(column);
        given.map(move |RowVerdict { table, row, verdict }| JudgedRow {
            column,
            table,
            row,
            verdict,
        })
    };
    columns.flat_map(of).collect()
}

/// Returns the finding that the subject names. Columns with the fewest changed axes come first, then regressions.
/// `None` if nothing changed.
fn first<'a, 'b>(
    comparison: &Comparison,
    results: &Results<'_>,
    found: &'b [JudgedRow<'a>],
) -> Option<&'b JudgedRow<'a>> {
    let far = |it: &JudgedRow<'_>| axes_changed(results, &comparison.variants[it.column].name);
    let kinds = [Verdict::Regression, Verdict::Improvement];
    let nearest = found.iter().filter(|it| kinds.contains(&it.verdict)).map(far).min()?;
    let of = |verdict| {
        lead(found.iter().filter(move |it| it.verdict == verdict).filter(|it| far(it) == nearest))
    };
    kinds.into_iter().find_map(of)
}

/// Returns the variant, the workload and the phase of the finding that the subject names.
pub fn leading(comparison: &Comparison, results: &Results<'_>) -> Option<[String; 3]> {
    let found = judged(comparison);
    let JudgedRow { column, table, row, .. } = first(comparison, results, &found)?;
    let phase = phase_alone(row).to_owned();
    Some([comparison.variants[*column].name.clone(), table.workload.clone(), phase])
}

/// The axis of a matrix that has the kernels.
const KERNEL: &str = "kernel";

/// Returns the number of axes but the kernel's on which a variant differs from the baseline, and whether it does on the
/// kernel's. Two kernels with one setting are compared before other settings are, and these on one kernel before two.
fn axes_changed(results: &Results<'_>, variant: &str) -> (usize, bool) {
    let axes = |it: &VariantBoots<'_>| &*results.reading.variant(it.variant).axes;
    let base = results.variants.first().map(axes).unwrap_or_default();
    let own = results.column(variant).map(axes).unwrap_or_default();
    let changed = |(name, value): &&(String, String)| {
        base.iter().any(|(other, it)| other == name && it != value)
    };
    let (kernel, settings): (Vec<_>, Vec<_>) =
        own.iter().filter(changed).partition(|(name, _)| name == KERNEL);
    (settings.len(), !kernel.is_empty())
}

/// Returns the finding that the subject names: the one with the largest gain on the first metric of the
/// workload that has any. `None` if nothing was found.
fn lead<'a, 'b>(found: impl Iterator<Item = &'b JudgedRow<'a>>) -> Option<&'b JudgedRow<'a>> {
    let rank = |it: &JudgedRow<'_>| {
        let mut units = it.table.units.iter();
        units.position(|(name, _)| it.row.metric.starts_with(name.as_str())).unwrap_or(usize::MAX)
    };
    // Sizes are compared as printed. Among equal sizes the first finding is taken.
    let size = |it: &JudgedRow<'_>| (100.0 * it.row.gain(it.column).unwrap_or(0.0).abs()).round();
    found.min_by(|a, b| rank(a).cmp(&rank(b)).then(size(b).total_cmp(&size(a))))
}

/// Formats a gain of measured mode with its interval. It says better or worse, since the sign of a gain is not always that
/// of the change.
fn gain(JudgedRow { column, row, .. }: &JudgedRow<'_>) -> String {
    let one = |percent: f64| decimal(Some(percent), 1);
    let better = row.better.unwrap_or(Better::Lower);
    let evidence = row.evidence(*column);
    let times =
        evidence.and_then(|it| Of::unit(&row.unit).times(it.ratio, Some([it.low, it.high])));
    if let Some(times) = times {
        return times;
    }
    // With evidence, the gain is one of means over boots, as its interval is.
    let Some(gain) = evidence.and_then(|it| it.gain(better)).or(row.gain(*column)) else {
        return "from nothing".to_owned();
    };
    let said = |gain: f64, bounds: Option<[f64; 2]>, word: &str| {
        let bounds = bounds.map(|it| it.map(one));
        let bounds = bounds.map(|[low, high]| format!(" [{low}, {high}]")).unwrap_or_default();
        format!("{} % {word}{bounds}", one(gain))
    };
    let bounds = evidence.and_then(|it| it.gains(better));
    match gain > 0.0 {
        true => said(gain, bounds, "better"),
        false => said(-gain, bounds.map(|[low, high]| [-high, -low]), "worse"),
    }
}

/// Returns the subject of a sweep: how often each verdict was given, and where a verdict first changes.
fn of_sweep(comparison: &Comparison, results: &Results<'_>) -> String {
    let all = verdicts_by_point(&comparison.points);
    let verdicts = || all.iter().flat_map(|along| &along.points).filter_map(|place| place.found);
    let kinds = [Verdict::Regression, Verdict::Improvement, Verdict::Same, Verdict::Undecided];
    let given = kinds.map(|kind| (kind, verdicts().filter(|it| it.verdict == kind).count()));
    let given = given.into_iter().filter(|(_, number)| *number > 0);
    let given: Vec<String> = given.map(|(kind, number)| times(kind, number)).collect();
    let said = if given.is_empty() { "no verdict".to_owned() } else { given.join(", ") };
    let turn = all.iter().find_map(|along| Some((along, *along.changes().first()?)));
    let turn = turn.map_or(String::new(), |(along, turn)| {
        let metric = clipped(along.metric, MAX_NAME);
        format!("; {metric} turns to {} at {}", turn.to.name(), clipped(turn.at, MAX_NAME))
    });
    let points = &comparison.points;
    let first = &points[0].comparison;
    let workloads = workloads(first, None);
    let column = (first.variants.len() == 2).then_some(1);
    let names = names(first, results, column, &self::said(&workloads));
    format!("[SWEEP] {names} at {}: {said}{turn}", count(points.len(), "point"))
}

/// Returns the subject if nothing changed.
fn unchanged(
    comparison: &Comparison,
    results: &Results<'_>,
    found: &[JudgedRow<'_>],
    open: usize,
) -> String {
    let column = (comparison.variants.len() == 2).then_some(1);
    let names = names(comparison, results, column, &said(&workloads(comparison, None)));
    let seen = match comparison.mode {
        _ if comparison.variants.len() < 2 => "figures".to_owned(),
        Mode::Measured if comparison.emulated => "emulated, no verdict on times".to_owned(),
        _ if found.is_empty() => "no verdict".to_owned(),
        _ if open > 0 => format!("undecided in {open} of {}", found.len()),
        Mode::Exact if !found.iter().any(|it| it.row.beyond_luck(it.column) == Some(true)) => {
            format!("no change of totals beyond luck{}", largest_floor(found))
        }
        Mode::Exact | Mode::Measured => {
            let margin = 100.0 * comparison.judging.margin;
            format!("no change seen beyond {margin} %")
        }
    };
    let area = match comparison.mode {
        Mode::Exact => area(results),
        Mode::Measured => "",
    };
    format!("{area}{names}: {seen}")
}

/// Returns the first words of a subject of exact mode.
fn area(results: &Results<'_>) -> &'static str {
    let plain = results.experiment.workloads.iter().all(|it| it.manifest.plain);
    if plain { "mm: program " } else { "mm: " }
}

/// Returns the finding that all boots of some variants failed.
fn fails(comparison: &Comparison, results: &Results<'_>, failing: &[&VariantOutcomes]) -> String {
    let with = |fails: bool| {
        let columns = 0..comparison.variants.len();
        let is_it = |column: &usize| {
            failing.iter().any(|it| it.name == comparison.variants[*column].name) == fails
        };
        let names: Vec<String> =
            columns.filter(is_it).map(|column| name(comparison, results, column)).collect();
        few(MAX_FAILING, names).join(", ")
    };
    let used = results.experiment.workloads.iter().map(|it| &*it.manifest.name);
    let workloads = said(&used.collect::<Vec<_>>());
    let but = match comparison.variants.len() - failing.len() {
        0 => String::new(),
        _ => format!(", not with {}", with(false)),
    };
    format!("{}{workloads} fails with {}{but}", area(results), with(true))
}

/// Returns the largest luck floor of these rows, in parentheses: a larger change would have been beyond luck. Empty if
/// one is not known.
fn largest_floor(found: &[JudgedRow<'_>]) -> String {
    let floors = found.iter().map(|it| exact::floor_percent(it.row, it.column));
    let largest = floors.collect::<Option<Vec<f64>>>().map(|it| it.into_iter().fold(0.0, f64::max));
    largest.map_or(String::new(), |it| format!(" ({} %)", decimal(Some(it), 2)))
}

/// Returns the workloads of the tables, `first` before the others.
fn workloads<'a>(comparison: &'a Comparison, first: Option<&'a str>) -> Vec<&'a str> {
    let mut workloads: Vec<&str> = first.into_iter().collect();
    for table in &comparison.tables {
        if !workloads.contains(&&*table.workload) {
            workloads.push(&table.workload);
        }
    }
    workloads
}

/// Names at most two workloads, and counts the others: `autonuma, truncate and 2 more`.
fn said(workloads: &[&str]) -> String {
    let name = |name: &str| clipped(name, MAX_NAME);
    match workloads {
        [] => "nothing".to_owned(),
        [only] => name(only),
        [one, other] => format!("{} and {}", name(one), name(other)),
        [one, other, more @ ..] => {
            format!("{}, {} and {} more", name(one), name(other), more.len())
        }
    }
}

/// Returns the beginning of the subject: `autonuma: 7.3 vs 6.1`, or `autonuma: "mm: faster" on 6.1` for a patch. Without
/// a column, the variants are counted.
fn names(
    comparison: &Comparison,
    results: &Results<'_>,
    column: Option<usize>,
    workloads: &str,
) -> String {
    let name = |column| name(comparison, results, column);
    match (column, comparison.variants.len()) {
        (_, 0 | 1) => format!("{workloads}: {}", name(0)),
        (Some(column), _) => match patch(comparison, results, column) {
            Some(patch) => format!("{workloads}: {patch} on {}", name(0)),
            None => format!("{workloads}: {} vs {}", name(column), name(0)),
        },
        (None, all) => format!("{workloads}: {} variants vs {}", all - 1, name(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_both_sides_stand_once() {
        let said =
            |base: &str, new: &str| with_settings_once([base.into(), new.into()]).join(" | ");
        assert_eq!(
            said("Debian 6.1 thp=on a=1", "7.3 thp=on a=1"),
            "Debian 6.1 (thp=on a=1) | 7.3"
        );
        assert_eq!(said("6.1 thp=on a=1", "7.3 thp=off a=1"), "6.1 thp=on (a=1) | 7.3 thp=off");
        assert_eq!(said("Debian 6.1", "Debian 6.1"), "Debian 6.1 | Debian 6.1");
    }
}
