//! The text above and below the tables of exact mode: its results, and what it cannot show.

use std::collections::BTreeSet;

use compare::{
    Comparison, FEWEST_FOR_LISTS, Kind, LEVEL, MissingSeed, RATE, RESOLUTION, Row, RowVerdict,
    Statistic, Table, VariantOutcomes, Verdict, WithoutLoops,
};
use model::{Architecture, INSTRUCTIONS, Mode, grouped};

use crate::ascii::{escape, few};
use crate::document::{Block, Cell};
use crate::note::{Note, block};
use crate::words::{Of, decimal, more_of, name, phase_of, short, times};

/// Nanoseconds by which the guest's clock advances for each instruction of any CPU. QEMU's option
/// `-icount shift=1` sets 2^1.
pub const NANOSECONDS: u32 = 2;
/// What affects time on a real machine, but is not modelled in exact mode.
pub const fn not_modelled(arch: Architecture) -> &'static [&'static str] {
    match arch {
        Architecture::X86_64 => &[
            "caches",
            "TLBs",
            "memory latency",
            "contention in time between CPUs (they take turns)",
            "fast string instructions (loops clear and copy instead, or a rep, which counts as one)",
            "read-modify-writes that touch a page first (a read fault, then a write fault, instead of one)",
        ],
        Architecture::Arm64 => &[
            "caches",
            "TLBs",
            "memory latency",
            "contention in time between CPUs (they take turns)",
            "instructions that copy and set memory (MOPS, replaced by loops)",
        ],
    }
}
/// Most metrics that are named for a verdict; the others are counted.
const MAX_NAMES: usize = 4;
/// Most metrics that are named for a verdict; the others are counted.
const MAX_GIVEN: usize = 4;
/// The topic of notes on seeds.
const SEEDS: &str = "seeds";

/// Returns the block at the head of a report: the seeds, how often each verdict was given if `verdicts` is
/// set, and what exact mode does not show. `None` in measured mode.
pub fn head(comparison: &Comparison, verdicts: bool) -> Option<Block> {
    let columns = if verdicts { 1..comparison.variants.len() } else { 1..1 };
    let given = columns.filter_map(|column| self::verdicts(comparison, column));
    let (transfers, misses) = (transfers(comparison), misses(comparison));
    let notes = || {
        let notes = seeds(comparison).into_iter().chain(cautions(comparison)).chain(given);
        let notes = notes.chain(transfers).chain(misses);
        notes.chain(limits(comparison.arch))
    };
    (comparison.mode == Mode::Exact).then(|| block("Exact mode:", &notes().collect::<Vec<_>>()))
}

/// The least luck floor of a row, as a share of its figure, at which it is worth fixing addresses.
const LARGE_FLOOR: f64 = 0.05;

/// Kernel instructions below which a phase is short. Its begin and end are up to [`ENDS`] of them.
const SHORT: f64 = 200_000.0;
/// Kernel instructions of a phase's begin and end, at most, in a test on one CPU: system calls of the program and of the
/// agent (docs/own-workload.md).
const ENDS: u64 = 20_000;

/// Returns what to beware of in verdicts: random addresses where luck is large, and short phases that changed.
pub fn cautions(comparison: &Comparison) -> Vec<Note> {
    addresses(comparison).into_iter().chain(short_phases(comparison)).collect()
}

/// Returns a note on the phases with a change beyond luck that are short on both sides.
fn short_phases(comparison: &Comparison) -> Option<Note> {
    let is_change =
        |verdict: &Verdict| matches!(verdict, Verdict::Regression | Verdict::Improvement);
    let is_short = |row: &Row, column| {
        let sides = [row.base(column), row.value(column)];
        row.unit == INSTRUCTIONS && sides.into_iter().flatten().all(|it| it < SHORT)
    };
    let columns = 1..comparison.variants.len();
    let judged = columns.flat_map(|column| comparison.verdicts(column).map(move |it| (column, it)));
    let is_noted = |(column, it): &(usize, RowVerdict<'_>)| {
        is_change(&it.verdict) && is_short(it.row, *column)
    };
    let phases: BTreeSet<String> =
        judged.filter(is_noted).map(|(_, it)| phase_of(it.row)).collect();
    let phases = few(MAX_NAMES, phases);
    (comparison.mode == Mode::Exact && !phases.is_empty()).then(|| {
        let text = format!(
            "{}: below {} instructions, of which up to {} are the phase's begin and end; what an earlier phase left \
             can be a part of the change too",
            phases.join(", "),
            grouped(&SHORT.to_string()),
            grouped(&ENDS.to_string()),
        );
        Note::on_all("short", text)
    })
}

/// Returns a note on random addresses of programs, if they may be what makes luck floors large.
fn addresses(comparison: &Comparison) -> Option<Note> {
    // Fewer seeds make a floor large by themselves.
    let is_known = |column: usize| {
        let sides = [0, column].map(|side| comparison.variants[side].complete);
        sides.into_iter().all(|complete| complete >= FEWEST_FOR_LISTS as usize)
    };
    let is_large = |row: &Row, column| {
        let share = || Some(row.floor(column)? / row.base(column)?);
        share().is_some_and(|share| share >= LARGE_FLOOR)
    };
    let any_large = |column: usize| comparison.verdicts(column).any(|it| is_large(it.row, column));
    let text = "random; luck is large here, and where a kernel puts the program's memory can be a part of the \
                change: `setarch -R PROGRAM ARGUMENT...` fixes them";
    let is_exact = comparison.mode == Mode::Exact;
    let any = (1..comparison.variants.len()).any(|it| is_known(it) && any_large(it));
    (is_exact && comparison.random_addresses && any)
        .then(|| Note::on_all("addresses", text.to_owned()))
}

/// What exact mode does not model, and a memory model does.
pub const MODELLED: [&str; 2] = ["caches", "TLBs"];

/// What numbers of transfers of lines do not show.
pub const TRANSFERS: &str = "caches have no limits, so a line that was written long ago is taken too; a line is taken \
                             once a turn of a CPU at most; boots have slab_nomerge, which changes where objects lie";

/// What numbers of transfers of pairs do not show.
pub const PAIRS: &str = "a machine may fetch the other line of aligned 128 bytes, or leave it; where that saves a \
                         transfer of a line, nothing is subtracted";

/// Returns a note on what numbers of transfers do not show. `None` if they were not counted, or there were none.
pub fn transfers(comparison: &Comparison) -> Option<Note> {
    has_rows(comparison, compare::TRANSFERS)
        .then(|| Note::on_all("transfers", TRANSFERS.to_owned()))
}

/// What numbers of misses do not show.
pub const MISSES: &str = "those of a model with true LRU, and not of a machine: without instruction fetches, prefetches, \
                          speculation and page-walk caches, and with a TLB that is flushed at each switch of processes";

/// Returns a note on what numbers of misses do not show. `None` if they were not counted, or there were none.
pub fn misses(comparison: &Comparison) -> Option<Note> {
    has_rows(comparison, compare::MISSES).then(|| Note::on_all("misses", MISSES.to_owned()))
}

fn has_rows(comparison: &Comparison, section: &str) -> bool {
    let mut rows = comparison.tables.iter().flat_map(|table| &table.rows);
    rows.any(|row| row.section == Some(section))
}

/// Returns notes on what exact mode does not show.
pub fn limits(arch: Architecture) -> [Note; 2] {
    let times = format!(
        "guest time, {NANOSECONDS} ns per instruction and no caches: not \
                         performance"
    );
    [Note::on_all("times", times), Note::on_all("not modelled", not_modelled(arch).join(", "))]
}

/// Returns notes on the number of seeds, and on what it means for verdicts.
pub fn seeds(comparison: &Comparison) -> Vec<Note> {
    let whole = [("", comparison)];
    let points: Vec<(&str, &Comparison)> =
        comparison.points.iter().map(|it| (&*it.name, &it.comparison)).collect();
    let compared = if points.is_empty() { &whole[..] } else { &points };
    let mut notes: Vec<Note> =
        compared.iter().flat_map(|(point, compared)| missing(point, compared)).collect();
    if notes.is_empty() {
        let each = compared[0].1.boots;
        let at = if points.is_empty() { "" } else { " at each point" };
        let text = match each {
            1 => format!("1 of each variant{at}; luck is unknown"),
            _ if !points.is_empty() => format!("{each} of each variant{at}"),
            _ => format!("{each} of each variant; {} of tables", level()),
        };
        notes.push(Note::on_all(SEEDS, text));
    }
    notes
}

/// Returns a note on each variant that lacks seeds, or is compared with a baseline that does. `point` is the point of
/// a sweep, or empty.
fn missing(point: &str, comparison: &Comparison) -> Vec<Note> {
    let Some((baseline, others)) = comparison.variants.split_first() else { return Vec::new() };
    let at = if point.is_empty() { String::new() } else { format!(" at {}", escape(point)) };
    let wanted = comparison.boots;
    if others.is_empty() && !baseline.missing.is_empty() {
        let text = format!(
            "{} of {wanted} are complete{at}; {}",
            baseline.complete,
            lacks(&escape(&baseline.name), &baseline.missing)
        );
        return vec![Note::on(SEEDS, &baseline.name, text)];
    }
    let short = others.iter().filter(|own| own.pairs.is_some_and(|it| it < wanted as usize));
    let note = |own: &VariantOutcomes| {
        let pairs = own.pairs.unwrap_or(0);
        let lacking = match own.missing == baseline.missing {
            true => vec![lacks("both", &own.missing)],
            false => {
                let lacking = [baseline, own].into_iter().filter(|it| !it.missing.is_empty());
                lacking.map(|it| lacks(&escape(&it.name), &it.missing)).collect()
            }
        };
        let verb = if pairs == 1 { "is" } else { "are" };
        let luck = match pairs {
            0 | 1 => "; luck is unknown: that takes 2",
            // The baseline's figures are of all seeds that another variant has.
            _ if pairs < most_pairs(comparison) => "; percentages are of these",
            _ => "",
        };
        let text = format!(
            "{pairs} of {wanted} seeds {verb} complete on both sides{at}{luck}; {}",
            lacking.join("; ")
        );
        Note::on(SEEDS, &own.name, text)
    };
    short.map(note).collect()
}

/// Returns the largest number of seeds that are complete in the baseline and in another variant.
pub fn most_pairs(comparison: &Comparison) -> usize {
    let others = comparison.variants.iter().skip(1);
    others.filter_map(|it| it.pairs).max().unwrap_or(0)
}

/// Says which seeds a variant lacks, and why: `seed 3 of 6.12 is missing: timed out`.
fn lacks(name: &str, missing: &[MissingSeed]) -> String {
    let why = |it: &MissingSeed| it.outcome.map_or("not booted".into(), |it| it.replace('-', " "));
    let mut missing = missing.to_vec();
    missing.sort_by_key(|it| (it.outcome.is_none(), it.outcome));
    let alike = missing.chunk_by(|one, other| one.outcome == other.outcome);
    let each = alike.map(|seeds| {
        let numbers = few(MAX_NAMES, seeds.iter().map(|it| it.seed)).join(", ");
        let (s, verb) = if seeds.len() == 1 { ("", "is") } else { ("s", "are") };
        format!("seed{s} {numbers} of {name} {verb} missing: {}", why(&seeds[0]))
    });
    each.collect::<Vec<_>>().join("; ")
}

/// Returns how often luck causes a verdict. The caller appends of what, such as ` of series`.
pub fn level() -> String {
    format!("luck alone causes a verdict in at most {:.0} %", 100.0 * LEVEL)
}

/// Says how often each verdict was given on a column, and on which metrics.
pub fn given(comparison: &Comparison, column: usize) -> Vec<Cell> {
    let of = |verdict| {
        let given = comparison.verdicts(column).filter(move |it| it.verdict == verdict);
        given.map(|it| (it.table, it.row)).collect::<Vec<_>>()
    };
    let mut all: Vec<Cell> = Vec::new();
    let mut say = |verdict, said| all.push(Cell { verdict: Some(verdict), ..Cell::from(said) });
    for verdict in [Verdict::Regression, Verdict::Improvement] {
        let rows = of(verdict);
        let names = few(MAX_GIVEN, rows.iter().map(|(table, row)| name(comparison, table, row)));
        if !rows.is_empty() {
            say(verdict, format!("{} ({})", times(verdict, rows.len()), names.join(", ")));
        }
    }
    let is_beyond = |it: &(&Table, &Row)| it.1.beyond_luck(column) == Some(true);
    let (beyond, same): (Vec<_>, Vec<_>) = of(Verdict::Same).into_iter().partition(is_beyond);
    if !beyond.is_empty() {
        let named = beyond.iter().map(|(table, row)| {
            let change = change(row, column, 2).unwrap_or_default();
            format!("{} {change}", name(comparison, table, row))
        });
        let names = few(MAX_GIVEN, named).join(", ");
        let said = format!("{} same: beyond luck, within the margin ({names})", beyond.len());
        say(Verdict::Same, said);
    }
    let undecided = of(Verdict::Undecided).len();
    for (number, verdict) in [(same.len(), Verdict::Same), (undecided, Verdict::Undecided)] {
        if number > 0 {
            say(verdict, times(verdict, number));
        }
    }
    all
}

/// Returns a note on how often each verdict was given on a column, and on which metrics. `None` if there is
/// nothing to say.
fn verdicts(comparison: &Comparison, column: usize) -> Option<Note> {
    let given = given(comparison, column).into_iter().map(|it| it.said);
    let given = given.collect::<Vec<_>>().join(", ");
    let (variant, baseline) = (&comparison.variants[column].name, &comparison.variants[0].name);
    let text = format!("against {}: {given}", escape(baseline));
    (!given.is_empty()).then(|| Note::on("verdicts", variant, text))
}

/// Formats the change that a verdict is about, and its luck floor.
pub fn reasons(row: &Row, verdict: Verdict, comparison: &Comparison, column: usize) -> String {
    if let Some(lacking) = [0, column].into_iter().find(|side| row.value(*side).is_none()) {
        return no_value(comparison, lacking);
    }
    let mut said = change(row, column, 2).unwrap_or_else(|| "-".to_owned());
    match floor_percent(row, column) {
        Some(floor) => said.push_str(&format!(", luck floor {} %", decimal(Some(floor), 2))),
        None => {
            said.push_str(", luck floor unknown: it needs 2 seeds that are complete on both sides")
        }
    }
    match verdict {
        Verdict::Same if row.beyond_luck(column) == Some(true) => {
            said.push_str(": beyond luck, within the margin");
        }
        Verdict::Undecided => {
            said.extend(change_at_equal_entries(row, column).map(|change| {
                format!("; same at equal entries, {change}: how often functions ran may be luck")
            }));
            said.extend(more(row, comparison, column).map(|more| format!("; {more}")));
        }
        Verdict::Regression | Verdict::Improvement => {
            let often = if row.value(column) > row.value(0) { "more" } else { "less" };
            said.extend(change_at_equal_entries(row, column).map(|change| {
                format!("; same at equal entries, {change}: functions ran {often} often")
            }));
        }
        Verdict::Same => {}
    }
    if let Some(change) = change_without_loops(row, column, 2, WITHOUT_LOOPS) {
        said.push_str(&format!("; {change}"));
    }
    said
}

/// Returns that a column has no value in a row.
pub fn no_value(comparison: &Comparison, column: usize) -> String {
    format!("no value of {}", escape(&comparison.variants[column].name))
}

/// What is left out of a change.
pub const WITHOUT_LOOPS: &str = "without loops that copy and clear memory";

/// Formats the change of a row without loops that copy and clear memory, followed by `words` and whether it may be luck.
/// `None` unless the verdict would be another one, or the loops have a large part in the change.
pub fn change_without_loops(
    row: &Row,
    column: usize,
    decimals: usize,
    words: &str,
) -> Option<String> {
    let without = row.without_loops(column)?;
    left_without_loops(without, Of::unit(&row.unit), decimals, words)
}

/// Formats what a change is without loops, followed by `words` and whether it may be luck.
pub fn left_without_loops(
    WithoutLoops { share, is_luck }: WithoutLoops,
    of: Of,
    decimals: usize,
    words: &str,
) -> Option<String> {
    let change = of.change([1.0, 1.0 + share], decimals)?;
    let luck = if is_luck { ", which may be luck" } else { "" };
    Some(format!("{change} {words}{luck}"))
}

/// Formats the change of a row at equal entries. `None` unless it is the same at equal entries, and the row's verdict is
/// another one.
pub fn change_at_equal_entries(row: &Row, column: usize) -> Option<String> {
    let share = row.same_at_equal_entries(column)?;
    Of::unit(&row.unit).change([1.0, 1.0 + share], 2)
}

/// Fewest seeds of both sides from whose luck floor more seeds are estimated. The floor of fewer seeds rests mostly on
/// Student's t at 1 to 4 degrees of freedom, and the next seed can lower it tenfold.
const FEWEST_FOR_ESTIMATE: usize = 4;

/// Returns how many more seeds would lower the luck floor of a row to the margin. `None` if the floor is not known.
pub fn more(row: &Row, comparison: &Comparison, column: usize) -> Option<String> {
    let seeds = comparison.variants.get(column)?.pairs?;
    Some(more_seeds(floor_percent(row, column)? / 100.0, comparison.judging.margin, seeds))
}

/// Returns how many more seeds than these would lower a luck floor, as a share, to the margin. The floor falls with the
/// square root of the number of seeds.
pub fn more_seeds(floor: f64, margin: f64, seeds: usize) -> String {
    let margin = margin.max(RESOLUTION);
    let (times, margin) = (floor / margin, short(100.0 * margin));
    if seeds < FEWEST_FOR_ESTIMATE {
        return format!(
            "at least {FEWEST_FOR_ESTIMATE} seeds are needed to say how many resolve {margin} %"
        );
    }
    let more = (seeds as f64 * (times * times - 1.0)).ceil() as usize;
    format!("{} to resolve {margin} %", more_of(more.max(1), "seed"))
}

/// Formats the change of a column's figure against the baseline's: `139.97 % more`. `None` without both
/// figures.
pub fn change(row: &Row, column: usize, decimals: usize) -> Option<String> {
    Of::unit(&row.unit).change([row.base(column)?, row.value(column)?], decimals)
}

/// Returns the change of a column's figure, in percent of the baseline's. `None` without both figures, or
/// if the baseline's is 0.
pub fn percent(row: &Row, column: usize) -> Option<f64> {
    let (base, new) = (row.base(column)?, row.value(column)?);
    Some(100.0 * (new - base) / base.abs()).filter(|percent| percent.is_finite())
}

/// Returns the luck floor in percent of the baseline's figure. `None` if it is not known, or if the figure
/// is 0.
pub fn floor_percent(row: &Row, column: usize) -> Option<f64> {
    let percent = 100.0 * row.floor(column)? / row.base(column)?.abs();
    percent.is_finite().then_some(percent)
}

/// Returns how many of the rows beyond luck are expected to be luck.
pub fn luck_list() -> String {
    format!("at most {:.0} % of these are expected to be luck", 100.0 * RATE)
}

/// Returns sentences on the meaning of the marks in `table`; none without a second column.
pub fn legend(table: &Table) -> Vec<String> {
    let list = luck_list();
    match (table.kind, table.pooled.len()) {
        (_, 0 | 1) => Vec::new(),
        (Kind::Metrics, _) => {
            let marks = "[Brackets]: regression or improvement. (Parentheses): same, or not \
                         judged. ?Question marks?: undecided. Luck: the floor that a change must \
                         exceed.";
            let equal = "Equal: instructions as they would be if functions were entered as often \
                         on both sides. The verdict stands in this row if luck hides the change \
                         of the mean.";
            let has_equal = table.rows.iter().any(|row| row.statistic == Statistic::Equal);
            let equal = has_equal.then(|| equal.to_owned());
            [marks.to_owned()].into_iter().chain(equal).collect()
        }
        _ => vec![format!("[Brackets]: beyond luck; {list}. ?Question marks?: undecided.")],
    }
}
