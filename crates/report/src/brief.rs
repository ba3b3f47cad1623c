//! The short form of a comparison, which fits on one screen: the rows with verdicts, then the counters that
//! moved most. The full tables have the rest. It is plain text like that of [`crate::text`].

use compare::{Comparison, Explained, FEWEST_FOR_LISTS, Kind, Row, Table};
use model::{INSTRUCTIONS, Mode, count, grouped};

use crate::ascii::excerpt;
use crate::document::{self, Block, TEXT, sections, sentence};
use crate::explain::{apart, headline, transfers};
use crate::heading::{is_time, left_out};
use crate::note::{self, Note};
use crate::verdicts::{self};
use crate::words::short;
use crate::{build, cross_check, exact, failing, notes, oddities, steps, sweep, table};

/// Most rows that are shown of a table without verdicts, and most counters that are shown of any table.
const MOST: usize = 8;
/// Topics of notes that are left out if all variants are the same in them.
const USUAL: [&str; 5] = ["preemption", "HZ", notes::COMPILER, "command line", "configuration"];
/// Topics of notes that matter only for repeating the boots.
const DETAILS: [&str; 2] = [notes::ORIGIN, "host"];

/// Returns the comparison in short. `full` is the command that prints all of it.
pub fn brief(comparison: &Comparison, full: &str) -> String {
    let nothing = comparison.tables.is_empty() && comparison.points.is_empty();
    let tables = comparison.tables.iter().map(|table| match table.kind {
        Kind::Metrics => metrics(table, comparison),
        Kind::Duration => Vec::new(),
        Kind::Counters => counters(table, comparison),
        Kind::Events => table::blocks(table, comparison),
    });
    let of = if comparison.points.is_empty() { "" } else { " of a point" };
    let more = Block::Code(format!("All rows, counters and notes{of}: {full}"));
    let parts = [
        notes::states_block(comparison).into_iter().collect(),
        exact::head(comparison, false).into_iter().collect(),
        nothing.then(|| sentence(table::NOTHING)).into_iter().collect(),
        failing::sentences(comparison).into_iter().map(sentence).collect(),
    ];
    let rest = [
        sweep::blocks(comparison),
        steps::block(comparison).into_iter().collect(),
        build::split(comparison),
        cross_check::blocks(comparison),
        vec![note::block("Notes:", &few_notes(comparison))],
        vec![more],
    ];
    let all: Vec<Vec<Block>> = parts.into_iter().chain(tables).chain(rest).collect();
    sections(&all, &TEXT)
}

/// Returns the states that differ, the rows with verdicts, the verdicts, and what to beware of in them; empty if
/// there are none.
pub fn verdicts(comparison: &Comparison) -> String {
    let is_judged =
        |table: &&Table| table.kind == Kind::Metrics && table.rows.iter().any(Row::is_judged);
    let tables = comparison.tables.iter().filter(is_judged);
    let states = notes::states_block(comparison).into_iter().collect();
    let tables = tables.flat_map(|table| metrics(table, comparison)).collect();
    let cautions = exact::cautions(comparison);
    let cautions = (!cautions.is_empty()).then(|| note::block("Beware:", &cautions));
    sections(&[states, tables, cautions.into_iter().collect()], &TEXT)
}

/// Returns a sentence for each measured phase on the functions in which its change is, and what an entry is; empty if
/// there are none.
pub fn headlines(explained: &[Explained]) -> String {
    let several = explained.len() > 1;
    let said = explained.iter().flat_map(|it| {
        let first = if several { format!("{}: ", excerpt(&it.variant)) } else { String::new() };
        let said = headline::headlines(&it.headlines, None).into_iter();
        let said = said.chain(headline::by_kernel(it)).chain(headline::start(it));
        let said = said
            .chain(apart::sentences(&it.explanation, it.headlines.iter(), |_| true))
            .chain(it.headlines.iter().filter_map(apart::threads))
            .chain(headline::offset_reasons(it))
            .chain(transfers::sentences(it));
        said.map(move |line| format!("{first}{line}"))
    });
    let by_reason = headline::by_reason(explained.iter().flat_map(|it| &it.headlines));
    let said: Vec<String> = said.chain(by_reason).collect();
    let legend = headline::legend(&said);
    document::text(&said.into_iter().chain(legend).map(sentence).collect::<Vec<_>>(), &TEXT)
}

/// Returns the means of the workloads' own metrics that have no verdict. Instructions are left out, unless there is
/// only one variant, whose instructions have no verdict. Times of exact mode are left out, because they are those of the
/// guest's clock.
pub fn figures(comparison: &Comparison) -> String {
    let is_alone = comparison.variants.len() == 1;
    let tables = comparison.tables.iter().filter(|table| table.kind == Kind::Metrics);
    let blocks = tables.filter_map(|table| {
        let is_figure = |row: &&Row| {
            let is_shown = is_alone || row.unit != INSTRUCTIONS;
            let is_guest_time = comparison.mode == Mode::Exact && is_time(&row.unit);
            row.statistic.is_mean() && !row.is_judged() && is_shown && !is_guest_time
        };
        let mut rows: Vec<Row> = table.rows.iter().filter(is_figure).cloned().collect();
        rows.iter_mut().for_each(|row| row.better = None);
        let is_known = !rows.is_empty();
        is_known.then(|| table::plain(&with_rows(table, rows), comparison, false))
    });
    document::text(&blocks.collect::<Vec<_>>(), &TEXT)
}

/// Returns a table with these rows of `whole`, and with the units of these rows alone.
pub(crate) fn with_rows(whole: &Table, rows: Vec<Row>) -> Table {
    let is_of = |name: &str, row: &Row| {
        row.metric.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    // One metric's name can begin with another's: the longest name that fits is the row's.
    let own = |row: &Row| {
        let named = whole.units.iter().filter(|(name, _)| is_of(name, row));
        named.max_by_key(|(name, _)| name.len())
    };
    // Some rows have only a number as their name in mmtests.
    let has =
        |row: &Row, unit: &(String, String)| own(row).map_or(row.unit == unit.1, |own| own == unit);
    let units = whole.units.iter().filter(|unit| rows.iter().any(|row| has(row, unit)));
    let units = units.cloned().collect();
    Table { rows, units, ..whole.clone() }
}

/// Lays out the rows of a table of metrics that have verdicts, and their evidence. Without verdicts, lays
/// out the first means.
fn metrics(whole: &Table, comparison: &Comparison) -> Vec<Block> {
    let has_verdict = Row::is_judged;
    let mut rows: Vec<Row> = whole.rows.iter().filter(|row| has_verdict(row)).cloned().collect();
    let mut more = 0;
    if rows.is_empty() {
        let means = || whole.rows.iter().filter(|row| row.statistic.is_mean());
        rows = means().take(MOST).cloned().collect();
        more = means().count() - rows.len();
    }
    // Gains are printed with the verdicts only. Those are gains over boots, while a table has gains over
    // pooled values.
    rows.iter_mut().filter(|row| has_verdict(row)).for_each(|row| row.better = None);
    let more = (more > 0).then(|| sentence(format!("{more} more rows.")));
    let unmet = verdicts::unmet(whole, comparison).map(sentence);
    let rows = table::plain(&with_rows(whole, rows), comparison, false);
    let below = more.into_iter().chain(verdicts::on_columns(whole, comparison)).chain(unmet);
    [rows].into_iter().chain(below).chain(oddities::blocks(whole, comparison)).collect()
}

/// Lays out the counters that moved most; nothing if it is not known which counters differ.
pub fn counters(whole: &Table, comparison: &Comparison) -> Vec<Block> {
    match moved_most(whole, comparison) {
        None => Vec::new(),
        Some(Err(none)) => vec![sentence(format!("{}: {none}", whole.workload))],
        Some(Ok((table, more))) => {
            let rows = table::plain(&table, comparison, true);
            // These rows are those of the field's tables, which lack many of the kernel's counters.
            let all = "`explain` compares all counters of /proc/vmstat.";
            let all = (comparison.mode == Mode::Exact).then(|| all.to_owned());
            [rows].into_iter().chain(more.into_iter().chain(all).map(sentence)).collect()
        }
    }
}

/// Returns the counters that moved most among those that differ beyond luck or chance, and a sentence on
/// the number of further ones. An error is a sentence that none differs. `None` if it is not known which
/// counters differ.
pub fn moved_most(
    whole: &Table,
    comparison: &Comparison,
) -> Option<Result<(Table, Option<String>), String>> {
    let is_known = |row: &Row| {
        let mut columns = 1..row.cells.len();
        columns.any(|column| table::differs(row, column, comparison).is_some())
    };
    if !whole.rows.iter().any(is_known) {
        return None;
    }
    let mut rows: Vec<(f64, Row)> = whole
        .rows
        .iter()
        .filter_map(|row| {
            let moved = (1..row.cells.len()).filter_map(|column| moved(row, column, comparison));
            Some((moved.reduce(f64::max)?, Row { section: None, ..row.clone() }))
        })
        .collect();
    if rows.is_empty() {
        return Some(Err(match comparison.mode {
            Mode::Exact if exact::most_pairs(comparison) < FEWEST_FOR_LISTS as usize => {
                format!(
                    "changes of counters can be told from luck only with {FEWEST_FOR_LISTS} \
                         seeds or more that are complete on both sides."
                )
            }
            Mode::Exact => {
                let compared = count(whole.rows.len(), "counter");
                format!("none of the {compared} compared changed beyond luck{}.", left_out(whole))
            }
            Mode::Measured => "no counter differs significantly.".to_owned(),
        }));
    }
    rows.sort_by(|one, other| other.0.total_cmp(&one.0));
    let found = rows.len();
    let margin = comparison.judging.margin;
    rows.retain(|(factor, _)| *factor > 1.0 + margin);
    // A single counter takes as much room as a sentence that says that there is one more.
    if rows.len() > MOST + 1 {
        rows.truncate(MOST);
    }
    if rows.is_empty() {
        let changed = match comparison.mode {
            Mode::Exact => "changed beyond luck",
            Mode::Measured => "differ significantly",
        };
        let (counters, least) = (count(found, "counter"), short(100.0 * margin));
        let of = grouped(&whole.rows.len().to_string());
        return Some(Err(format!("{counters} of {of} {changed}, none by more than {least} %.")));
    }
    let left = found - rows.len();
    let differ = if left == 1 { "differs" } else { "differ" };
    let more = (left > 0).then(|| format!("{} {differ}.", count(left, "more counter")));
    let rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
    Some(Ok((Table { rows, ..whole.clone() }, more)))
}

/// Returns the ratio of the larger to the smaller figure of the two sides. `None` if they do not differ
/// beyond luck or chance.
fn moved(row: &Row, column: usize, comparison: &Comparison) -> Option<f64> {
    let differs = table::differs(row, column, comparison)?;
    let (base, new) = (row.base(column)?.abs(), row.value(column)?.abs());
    // One is added to both figures, because a counter of 0 and one of 1 are not infinitely far apart.
    differs.then(|| (base.max(new) + 1.0) / (base.min(new) + 1.0))
}

/// Returns whether a note belongs in the short form: it reports a difference or another finding, and is no
/// detail.
pub fn tells(note: &Note) -> bool {
    let is_usual = USUAL.contains(&note.topic) && note.variant.is_none();
    // The release tells packaged kernels apart. The origin of kernels that were built names their source, patches and
    // configuration.
    let is_package = note.text.starts_with(notes::DEBIAN) && !note.text.contains("; ");
    let is_source = note.topic == notes::ORIGIN && note.variant.is_some() && !is_package;
    is_source || !is_usual && !DETAILS.contains(&note.topic)
}

/// Returns the notes that [`tells`] keeps, with long texts cut.
fn few_notes(comparison: &Comparison) -> Vec<Note> {
    let short =
        |note: Note| match notes::CHANGED.contains(&note.topic) || note.topic == notes::PARTIAL {
            true => Note { text: excerpt(&note.text), ..note },
            false => note,
        };
    notes::all(comparison).into_iter().filter(tells).map(short).collect()
}

#[cfg(test)]
mod tests {
    use compare::Statistic;

    use super::*;

    #[test]
    fn a_row_has_the_unit_of_the_longest_name() {
        let row = Row {
            section: None,
            metric: "Elapsed-max-4".into(),
            unit: "ms".into(),
            better: None,
            statistic: Statistic::Amean,
            cells: Vec::new(),
            decimals: 2,
        };
        let units = [("Elapsed", "s"), ("Elapsed-max", "ms"), ("El", "h")];
        let units = units.map(|(name, unit)| (name.into(), unit.into())).to_vec();
        let whole = Table { units, ..Table::default() };
        assert_eq!(with_rows(&whole, vec![row.clone()]).units, whole.units[1..2]);
        let row = Row { metric: "4".into(), ..row };
        assert_eq!(with_rows(&whole, vec![row]).units, whole.units[1..2]);
    }
}
