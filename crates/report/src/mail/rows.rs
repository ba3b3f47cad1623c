//! The table of a mail: the rows with verdicts, or as many of them as there is room for.

use std::collections::BTreeSet;
use std::iter;

use compare::{Comparison, Explained, Kind, Row, Statistic, Table, VariantOutcomes, Verdict};
use model::{Mode, count, grouped};

use super::{tables, work};
use crate::ascii::{escape, few};
use crate::brief::with_rows;
use crate::document::{self, Block, Column, note, part, sentence};
use crate::words::{decimal, figure, name, phase_alone, short};
use crate::{exact, verdicts};

/// Most characters of a variant's name above a column. Longer names stand above the table.
const MAX_NAME: usize = 16;
/// Most characters of a phase's name and a variant's beside the columns of figures.
const MAX_NAMES: usize = 28;
/// The mark of a row at equal entries.
const EQUAL: &str = "*";
/// Most rows that are named as the same at equal entries, or as different without loops that copy and clear memory.
const MOST_SAME: usize = 4;

/// A row of the mail's table.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    /// The table that has it.
    pub table: &'a Table,
    /// The row.
    pub row: &'a Row,
}

/// Returns the rows with verdicts, in the order of the tables. Without any, returns all means.
pub fn rows(comparison: &Comparison) -> Vec<Shown<'_>> {
    let tables = comparison.tables.iter().filter(|table| table.kind == Kind::Metrics);
    let all = tables.flat_map(|table| table.rows.iter().map(move |row| Shown { table, row }));
    let (judged, others): (Vec<_>, Vec<_>) = all.partition(|it| it.row.is_judged());
    match judged.is_empty() {
        false => judged,
        true => others.into_iter().filter(|it| it.row.statistic.is_mean()).collect(),
    }
}

/// Lays out at most `most` of the rows. The row of the change `leading` is kept first, by its variant, workload and phase.
/// Regressions and improvements are kept before undecided rows, these before rows that are the same, and larger changes
/// before smaller ones. `explained` has the work of the phases.
pub fn sections(
    comparison: &Comparison,
    explained: &[Explained],
    all: &[Shown<'_>],
    leading: Option<&[String; 3]>,
    most: usize,
) -> Vec<Vec<Block>> {
    let shown = first(all, leading, most);
    let is_judged = shown.iter().any(|it| it.row.is_judged());
    let without = |said: String| {
        let said = [sentence(said)].into_iter();
        vec![said.collect(), figures(comparison, &shown)]
    };
    let mut sections = match (comparison.mode, comparison.variants.as_slice()) {
        (_, []) => vec![vec![sentence("There is no variant.")]],
        (_, [only]) => {
            without(format!("Figures of {}; there is nothing to compare with.", only.name))
        }
        _ if !is_judged => without("No verdict on any metric.".into()),
        (Mode::Exact, _) => vec![counted(comparison, explained, &shown)],
        (Mode::Measured, _) => vec![timed(comparison, &shown), figures(comparison, &shown)],
    };
    let number = |rows: &[Shown<'_>]| match comparison.mode {
        Mode::Measured => rows.len(),
        // A phase may have a row at equal entries as well.
        Mode::Exact => {
            let phase =
                |it: &Shown<'_>| (it.table.workload.clone(), phase_alone(it.row).to_owned());
            rows.iter().map(phase).collect::<BTreeSet<_>>().len()
        }
    };
    let left = number(all) - number(&shown);
    let left = (left > 0).then(|| sentence(left_out(comparison, explained, all, left)));
    sections.last_mut().expect("there is a section").extend(left);
    sections
}

/// Returns the `most` rows that matter most, in the order of the tables.
fn first<'a>(all: &[Shown<'a>], leading: Option<&[String; 3]>, most: usize) -> Vec<Shown<'a>> {
    let is_other = |it: &Shown<'_>| {
        leading.is_none_or(|[_, workload, phase]| {
            it.table.workload != *workload || phase_alone(it.row) != phase
        })
    };
    let verdict = |it: &Shown<'_>| {
        let verdicts = it.row.cells.iter().filter_map(|cell| cell.verdict);
        let rank = |verdict| match verdict {
            Verdict::Regression | Verdict::Improvement => 0,
            Verdict::Undecided => 1,
            Verdict::Same => 2,
        };
        verdicts.map(rank).min().unwrap_or(3)
    };
    let size = |it: &Shown<'_>| {
        let gains = (1..it.row.cells.len()).filter_map(|column| it.row.gain(column));
        gains.map(f64::abs).fold(0.0, f64::max)
    };
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|one, other| {
        let [one, other] = [&all[*one], &all[*other]];
        let rank = |it: &Shown<'_>| (is_other(it), verdict(it));
        rank(one).cmp(&rank(other)).then(size(other).total_cmp(&size(one)))
    });
    order.truncate(most);
    order.sort_unstable();
    order.into_iter().map(|place| all[place]).collect()
}

/// Returns a sentence on the rows that are left out.
fn left_out(
    comparison: &Comparison,
    explained: &[Explained],
    all: &[Shown<'_>],
    left: usize,
) -> String {
    let columns = 1..comparison.variants.len();
    let verdicts = all.iter().flat_map(|it| {
        columns.clone().filter_map(move |column| {
            let is_other = work::other(explained, comparison, (it.table, it.row), column).is_some();
            Some((it.row.verdict(column)?, is_other))
        })
    });
    let verdicts: Vec<(Verdict, bool)> = verdicts.collect();
    let of = |verdict| verdicts.iter().filter(|it| **it == (verdict, false)).count();
    let what = if comparison.mode == Mode::Exact { "more phase" } else { "more row" };
    let rows = count(left, what);
    let [worse, better] = [Verdict::Regression, Verdict::Improvement].map(of);
    let other = match verdicts.iter().filter(|it| it.1).count() {
        0 => String::new(),
        1 => ", and 1 change comes with other work".to_owned(),
        other => format!(", and {other} changes come with other work"),
    };
    match worse + better {
        0 => format!("{rows}."),
        _ => format!(
            "{rows}; of all {} {worse} are regressions, {better} improvements{other}.",
            count(verdicts.len(), "verdict")
        ),
    }
}

/// Returns `whole` with only those of its rows that are shown. `None` if there are none.
fn part_of(whole: &Table, shown: &[Shown<'_>]) -> Option<Table> {
    let own = shown.iter().filter(|it| std::ptr::eq(it.table, whole));
    let rows: Vec<Row> = own.map(|it| it.row.clone()).collect();
    (!rows.is_empty()).then(|| with_rows(whole, rows))
}

/// Lays out the figures of the rows in the layout of the kernel's lists.
fn figures(comparison: &Comparison, shown: &[Shown<'_>]) -> Vec<Block> {
    let tables = comparison.tables.iter().filter_map(|whole| part_of(whole, shown));
    let blocks: Vec<Block> = tables.map(|table| tables::plain(&table, comparison)).collect();
    match blocks.is_empty() && comparison.tables.is_empty() {
        true => vec![sentence(crate::table::NOTHING)],
        false => blocks,
    }
}

/// Lays out the verdicts of measured mode on the rows, with their evidence.
fn timed(comparison: &Comparison, shown: &[Shown<'_>]) -> Vec<Block> {
    let several = comparison.has_several_workloads();
    let of_table = |whole: &Table| {
        let part = part_of(whole, shown);
        let verdicts = part.map(|part| verdicts::of_rows(whole, &part, comparison));
        let title = verdicts.is_some() && several;
        let title = title.then(|| sentence(format!("{}:", whole.workload)));
        title.into_iter().chain(verdicts.into_iter().flatten()).collect::<Vec<Block>>()
    };
    comparison.tables.iter().flat_map(of_table).collect()
}

/// Lays out the kernel's instructions of each phase.
fn counted(comparison: &Comparison, explained: &[Explained], shown: &[Shown<'_>]) -> Vec<Block> {
    let is_other = |it: &Shown<'_>, column| {
        work::other(explained, comparison, (it.table, it.row), column).is_some()
    };
    let table = match comparison.variants.len() {
        2 => of_two(comparison, shown).into(),
        _ => of_several(comparison, shown),
    };
    let columns = 1..comparison.variants.len();
    let others = shown.iter().filter(|it| columns.clone().any(|column| is_other(it, column)));
    let others = few(MOST_SAME, others.map(|it| phase(comparison, it)));
    let other = (!others.is_empty()).then(|| {
        let names = others.join(", ");
        note(format!(
            "Other work in {names}: a part of the change comes from how often a call ran."
        ))
    });
    let open = undecided(comparison, shown);
    let same = same_at_equal_entries(comparison, &open).map(sentence);
    let more = what_undecided_needs(comparison, &open).map(sentence);
    let has_equal = shown.iter().any(|it| it.row.statistic == Statistic::Equal);
    let equal = has_equal.then(|| {
        let counted = as_counted(comparison, shown);
        note(format!(
            "{EQUAL} At equal entries: as if functions had been entered equally often on both sides, and without \
             functions whose entries cost by luck.{counted}"
        ))
    });
    let without = without_loops(comparison, shown).map(sentence);
    table.into_iter().chain(other).chain(without).chain(same).chain(more).chain(equal).collect()
}

/// Returns a sentence on the rows whose verdict would be another one without loops that copy and clear memory. `None` if
/// there are none.
fn without_loops(comparison: &Comparison, shown: &[Shown<'_>]) -> Option<String> {
    let of = |it: &Shown<'_>, column: usize| {
        let with = format!("with {}", escape(&comparison.variants[column].name));
        let change = exact::change_without_loops(it.row, column, 2, &with)?;
        Some(format!("{} {change}", phase(comparison, it)))
    };
    let columns = 1..comparison.variants.len();
    let rows = shown.iter().flat_map(|it| columns.clone().filter_map(move |column| of(it, column)));
    let rows: Vec<String> = few(MOST_SAME, rows);
    (!rows.is_empty()).then(|| {
        format!(
            "Without loops that copy and clear memory, whose work a real machine usually does by fast string \
             instructions: {}.",
            rows.join("; ")
        )
    })
}

/// Returns the words above a table.
fn title(comparison: &Comparison, which: &str) -> Block {
    let pairs = comparison.variants.iter().filter_map(|it| it.pairs);
    let [least, most] = [pairs.clone().min(), pairs.max()].map(|it| it.unwrap_or_default());
    let seeds =
        if least == most { count(most, "seed") } else { format!("{least} to {most} seeds") };
    let margin = short(100.0 * comparison.judging.margin);
    sentence(format!(
        "Kernel instructions of each phase, mean of {seeds}, and what luck can change{which}; margin {margin} %:"
    ))
}

/// The columns with the evidence.
fn evidence() -> [Column; 3] {
    [Column::figures("change"), Column::figures("luck"), Column::words("verdict")]
}

/// Lays out the table of two variants, a line for each phase.
fn of_two(comparison: &Comparison, shown: &[Shown<'_>]) -> [Block; 2] {
    let names = [0, 1].map(|column| &*comparison.variants[column].name);
    let is_short = names.iter().all(|name| name.len() <= MAX_NAME);
    let heads = if is_short { names } else { ["before", "now"] };
    let which = match is_short {
        true => String::new(),
        false => format!("; before: {}, now: {}", names[0], names[1]),
    };
    let figures = heads.map(|head| Column::figures("").named(head.to_owned()));
    let columns = [Column::words("phase")].into_iter().chain(figures).chain(evidence());
    let lines = shown.iter().filter_map(|it| {
        let values = [value(it.row, 0), value(it.row, 1)].into_iter();
        Some([phase(comparison, it)].into_iter().chain(values).chain(judged(it.row, 1)?).collect())
    });
    [
        title(comparison, &which),
        document::table(columns.collect::<Vec<_>>(), lines.collect::<Vec<Vec<String>>>()),
    ]
}

/// Lays out the table of several variants, a line for each variant in each phase. The baseline is the first one. Long
/// names get a table for each phase.
fn of_several(comparison: &Comparison, shown: &[Shown<'_>]) -> Vec<Block> {
    let lines = |it: &Shown<'_>| -> Vec<Vec<String>> {
        let variants = comparison.variants.iter().enumerate();
        let line = |(column, variant): (usize, &VariantOutcomes)| {
            let judged = if column == 0 { Vec::new() } else { judged(it.row, column)?.into() };
            let own = [escape(&variant.name), value(it.row, column)];
            Some(own.into_iter().chain(judged).collect())
        };
        variants.filter_map(line).collect()
    };
    let phases: Vec<(String, Vec<Vec<String>>)> =
        shown.iter().map(|it| (phase(comparison, it), lines(it))).collect();
    let columns =
        || [Column::words("variant"), Column::figures("mean")].into_iter().chain(evidence());
    let title = title(comparison, &format!(" against {}", escape(&comparison.variants[0].name)));
    let longest = |names: &mut dyn Iterator<Item = usize>| names.max().unwrap_or(0);
    let names = longest(&mut phases.iter().map(|(phase, _)| phase.len()))
        + longest(&mut comparison.variants.iter().map(|it| it.name.len()));
    if names > MAX_NAMES {
        let tables = phases.into_iter().map(|(phase, lines)| {
            part(format!("{phase}:"), [document::table(columns().collect::<Vec<_>>(), lines)])
        });
        return [title].into_iter().chain(tables).collect();
    }
    // The first line of a phase has its name.
    let lines = phases.into_iter().flat_map(|(phase, lines)| {
        let first = [phase].into_iter().chain(iter::repeat(String::new()));
        first.zip(lines).map(|(phase, line)| [phase].into_iter().chain(line).collect())
    });
    let columns = [Column::words("phase")].into_iter().chain(columns());
    let lines: Vec<Vec<String>> = lines.collect();
    vec![title, document::table(columns.collect::<Vec<_>>(), lines)]
}

/// Returns the figure of a column.
fn value(row: &Row, column: usize) -> String {
    row.value(column).map_or("-".to_owned(), |it| grouped(&decimal(Some(it), 0)))
}

/// Returns the change of a column, its luck floor and the verdict. `None` without a verdict.
fn judged(row: &Row, column: usize) -> Option<[String; 3]> {
    let verdict = row.verdict(column)?;
    let percent = |number: Option<f64>| number.map(|it| format!("{} %", decimal(Some(it), 2)));
    let change = exact::percent(row, column);
    let sign = if change.is_some_and(|it| it > 0.0) { "+" } else { "" };
    let change = percent(change).map_or("-".to_owned(), |said| format!("{sign}{said}"));
    let floor = percent(exact::floor_percent(row, column));
    let is_beyond = verdict == Verdict::Same && row.beyond_luck(column) == Some(true);
    let said = if is_beyond { "same, beyond luck" } else { verdict.name() };
    Some([change, floor.unwrap_or_else(|| "unknown".to_owned()), said.to_owned()])
}

/// Returns the name of a row. One at equal entries has a mark, which a note below the table explains.
fn phase(comparison: &Comparison, shown: &Shown<'_>) -> String {
    let mark = if shown.row.statistic == Statistic::Equal { EQUAL } else { "" };
    let row = Row { metric: format!("{}{mark}", phase_alone(shown.row)), ..shown.row.clone() };
    name(comparison, shown.table, &row)
}

/// Returns a sentence on the figures as counted of the rows at equal entries, for the first rows; empty if they are not
/// known.
fn as_counted(comparison: &Comparison, shown: &[Shown<'_>]) -> String {
    let of = |it: &Shown<'_>| {
        let phase = phase_alone(it.row);
        let is_total = |row: &&Row| row.statistic == Statistic::Amean && phase_alone(row) == phase;
        let row = it.table.rows.iter().find(is_total)?;
        let figures = row.values().map(|value| Some(figure(value?, 0)));
        let figures: Vec<String> = figures.collect::<Option<_>>()?;
        let figures = figures.join(if figures.len() == 2 { " and " } else { ", " });
        let row = Row { metric: phase.to_owned(), ..row.clone() };
        Some(format!("{} {figures}", name(comparison, it.table, &row)))
    };
    let equal = shown.iter().filter(|it| it.row.statistic == Statistic::Equal);
    let rows: Vec<String> = few(MOST_SAME, equal.filter_map(of));
    match rows.is_empty() {
        true => String::new(),
        false => format!(" As counted, where luck hides the change: {}.", rows.join("; ")),
    }
}

/// Returns the undecided rows, each with its column.
fn undecided<'a>(comparison: &Comparison, shown: &[Shown<'a>]) -> Vec<(Shown<'a>, usize)> {
    let columns = 1..comparison.variants.len();
    let open = shown.iter().flat_map(|it| columns.clone().map(move |column| (*it, column)));
    open.filter(|(it, column)| it.row.verdict(*column) == Some(Verdict::Undecided)).collect()
}

/// Returns a sentence on the undecided rows that are the same at equal entries. `None` if there are none.
fn same_at_equal_entries(comparison: &Comparison, open: &[(Shown<'_>, usize)]) -> Option<String> {
    let same = open.iter().filter_map(|(it, column)| {
        let change = exact::change_at_equal_entries(it.row, *column)?;
        let which = match comparison.variants.len() {
            2 => String::new(),
            _ => format!("{}: ", escape(&comparison.variants[*column].name)),
        };
        Some(format!("{which}{} {change}", phase(comparison, it)))
    });
    let mut same: Vec<String> = same.collect();
    let more = same.len().saturating_sub(MOST_SAME);
    same.truncate(MOST_SAME);
    same.extend((more > 0).then(|| format!("{more} more")));
    (!same.is_empty())
        .then(|| format!("The same at equal entries, within the margin: {}.", same.join(", ")))
}

/// Returns a sentence on what undecided rows need: the seeds for the row that needs most. `None` without
/// undecided rows.
fn what_undecided_needs(comparison: &Comparison, open: &[(Shown<'_>, usize)]) -> Option<String> {
    let open: Vec<(&Row, usize)> = open.iter().map(|(it, column)| (it.row, *column)).collect();
    let floor = |(row, column): &(&Row, usize)| exact::floor_percent(row, *column);
    let widest = open.iter().filter(|it| floor(it).is_some());
    let widest = widest.max_by(|a, b| floor(a).unwrap_or(0.0).total_cmp(&floor(b).unwrap_or(0.0)));
    match widest {
        _ if open.is_empty() => None,
        None => {
            let has_both = |(row, column): &(&Row, usize)| {
                row.value(0).is_some() && row.value(*column).is_some()
            };
            Some(match open.iter().any(has_both) {
                true => "Undecided: the luck floor needs 2 seeds that are complete on both sides."
                    .into(),
                false => "Undecided: only one side has these phases.".into(),
            })
        }
        Some((row, column)) => {
            let more = exact::more(row, comparison, *column)?;
            Some(format!("Undecided: luck may hide a change. For the row that needs most: {more}."))
        }
    }
}
