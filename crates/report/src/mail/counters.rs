//! The counters of a mail: those of the phase that the subject names, or of all measured phases together.

use compare::{Comparison, Counter, Explained, Kind, Row, Section, Table};
use kernelfiles::catalogue;
use model::{INSTRUCTIONS, Mode, count};

use super::tables;
use crate::ascii::{excerpt, few};
use crate::brief::{moved_most, with_rows};
use crate::document::{self, Block, Column, note, sentence};
use crate::exact;
use crate::explain::headline::within;
use crate::words::{Of, figure, short};

/// Most counters of a phase that are listed.
const MOST: usize = 6;
/// Most names of counters with the same figures.
const MOST_NAMES: usize = 3;
/// A mean number of events below this has a decimal if it is no whole number.
const FEW: f64 = 10.0;
/// Instructions of a class are left out if their change is a smaller share of the kernel's instructions: at a thousand
/// cycles each they would be less than 1 % of its time.
const RARE: f64 = 1e-5;

/// Lays out the counters of a table that changed. In exact mode those of `/proc/vmstat` in the phase of the change
/// `leading` stand instead, if `explained` has them, with the rows of instructions by class.
pub fn blocks(
    whole: &Table,
    comparison: &Comparison,
    explained: &[Explained],
    leading: Option<&[String; 3]>,
) -> Vec<Block> {
    let of_phase = leading.and_then(|[variant, workload, phase]| {
        let is_its = |it: &&Explained| it.variant == *variant && it.workload == *workload;
        let own = explained.iter().filter(|_| whole.workload == *workload).find(is_its)?;
        let section = own.explanation.section(Some(phase))?;
        let names = [&own.explanation.base, &own.explanation.new].map(|it| excerpt(&it.name));
        of_section(section, names, comparison.judging.margin)
    });
    let is_shown = |row: &&Row| match row.unit == INSTRUCTIONS {
        true => !is_rare(row, whole, comparison),
        false => of_phase.is_none(),
    };
    let rows: Vec<Row> = whole.rows.iter().filter(is_shown).cloned().collect();
    let rest = Table { rows, ..whole.clone() };
    let is_told = of_phase.is_none() || matches!(moved_most(&rest, comparison), Some(Ok(_)));
    let rest = is_told.then(|| moved(&rest, comparison));
    of_phase.into_iter().chain(rest).flatten().collect()
}

/// Whether the change of instructions of a class hardly matters for the kernel's time.
fn is_rare(row: &Row, whole: &Table, comparison: &Comparison) -> bool {
    let metrics = |it: &&Table| it.kind == Kind::Metrics && it.workload == whole.workload;
    let rows = comparison.tables.iter().filter(metrics).flat_map(|it| &it.rows);
    let judged = rows.filter(|it| it.is_judged() && it.unit == INSTRUCTIONS);
    let kernel: f64 = judged.filter_map(|it| it.value(0)).sum();
    let values: Vec<f64> = row.values().flatten().collect();
    let base = values.first().copied().unwrap_or_default();
    values.iter().all(|it| (it - base).abs() < RARE * kernel)
}

/// Lays out the counters of a section that count events and changed beyond luck by more than the margin, the largest change
/// first. `None` if luck is not known.
fn of_section(section: &Section, names: [String; 2], margin: f64) -> Option<Vec<Block>> {
    if section.compared.counters == 0 {
        return None;
    }
    let is_event = |it: &Counter| catalogue::find(&it.name).is_none_or(|it| !it.gauge);
    let is_large = |it: &Counter| {
        let [least, most] = [f64::min, f64::max].map(|of| of(it.growth.base, it.growth.new));
        most - least > margin * least
    };
    let counters = section.counters.iter();
    let changed = counters.filter(|it| it.growth.beyond_luck() == Some(true) && is_event(it));
    let mut changed: Vec<&Counter> = changed.filter(|it| is_large(it)).collect();
    changed.sort_by(|one, other| {
        let size = |it: &Counter| it.growth.change().abs();
        let sides = |it: &Counter| [it.growth.base, it.growth.new].map(f64::to_bits);
        size(other).total_cmp(&size(one)).then(sides(one).cmp(&sides(other)))
    });
    // Several counters count one thing, such as `pgalloc_dma32` and `numa_hit` on one node.
    let same = |one: &&Counter, other: &&Counter| {
        [one.growth.base, one.growth.new] == [other.growth.base, other.growth.new]
    };
    let groups: Vec<&[&Counter]> = changed.chunk_by(same).collect();
    let row = |group: &&[&Counter]| {
        let growth = &group[0].growth;
        let names = few(MOST_NAMES, group.iter().map(|it| excerpt(&it.name))).join(", ");
        let change = Of::Number.change([growth.base, growth.new], 2);
        let change = change.unwrap_or_else(|| "-".to_owned());
        // Rounded to a whole number, 0.2 of 5 seeds would be none.
        let sides = [growth.base, growth.new];
        let decimals = usize::from(sides.iter().any(|it| *it < FEW && it.fract() != 0.0));
        let [base, new] = sides.map(|it| figure(it, decimals));
        vec![names, base, new, change]
    };
    let within = within(section);
    let limit = format!("by more than {} %", short(100.0 * margin));
    if groups.is_empty() {
        let said = format!("No event counter of /proc/vmstat changed{within} beyond luck {limit}.");
        return Some(vec![sentence(said)]);
    }
    let said = format!(
        "Event counters of /proc/vmstat that changed{within} {limit}, beyond luck ({}):",
        exact::luck_list()
    );
    let heads = names.map(|name| Column::figures("").named(name));
    let columns = [Column::words("counter")].into_iter().chain(heads);
    let columns = columns.chain([Column::figures("change")]).collect::<Vec<_>>();
    // A single counter takes as much room as a line that says that there is one more.
    let shown = if groups.len() == MOST + 1 { MOST + 1 } else { MOST };
    let rows: Vec<Vec<String>> = groups.iter().take(shown).map(row).collect();
    let left = groups.len() - rows.len();
    let left = (left > 0).then(|| note(format!("{}.", count(left, "more counter"))));
    let table = document::table(columns, rows);
    Some([sentence(said), table].into_iter().chain(left).collect())
}

/// Lays out the counters that moved most.
fn moved(whole: &Table, comparison: &Comparison) -> Vec<Block> {
    let of = &whole.workload;
    match moved_most(whole, comparison) {
        None => Vec::new(),
        Some(Err(none)) => vec![sentence(format!("{of}: {none}"))],
        Some(Ok((table, more))) => {
            let beyond = match comparison.mode {
                Mode::Exact => format!("beyond luck ({})", exact::luck_list()),
                Mode::Measured => "significantly".to_owned(),
            };
            let more = more.map(|more| format!(" {more}")).unwrap_or_default();
            let said =
                format!("{of}: counters that changed {beyond}, largest changes first.{more}");
            // Several counters count one thing, such as `pgalloc_dma32` and `numa_hit` on one node.
            let rows = table.rows.iter();
            let is_first = |(place, row): &(usize, &Row)| {
                !table.rows[..*place].iter().any(|it| has_figures_of(it, row))
            };
            let rows: Vec<Row> =
                rows.enumerate().filter(is_first).map(|(_, row)| row.clone()).collect();
            let left = table.rows.len() - rows.len();
            let left = (left > 0)
                .then(|| note(format!("{} with the same figures.", count(left, "more counter"))));
            let table = with_rows(&table, rows);
            let rows = tables::rows(&table, comparison);
            [sentence(said), rows].into_iter().chain(left).collect()
        }
    }
}

/// Whether two rows have the same figures in all columns.
fn has_figures_of(one: &Row, other: &Row) -> bool {
    (0..one.cells.len()).all(|column| one.value(column) == other.value(column))
}
