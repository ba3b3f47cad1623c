//! An explanation as one screen of text to paste into a mail.

use compare::{Explanation, Section};

use super::view::{self, Table};
use crate::ascii::{WIDTH, wrap};

/// Lines of a screen.
const LINES: usize = 45;
/// Phases that have a line of their own.
const MAX_PHASES: usize = 8;
/// Lines of a table's title and heads.
const HEADING: usize = 2;
/// How many rows each ranking (by entry, contributions, counters) gets in its turn.
const TURNS: [usize; 3] = [2, 2, 1];

/// Where the difference went, as plain text: ASCII, at most 100 columns where the figures allow,
/// about 45 lines. The rankings are those of the whole workload, or of `phase`; of each as much as
/// fits.
pub fn explain(explanation: &Explanation, phase: Option<&str>) -> String {
    if explanation.all.is_none() {
        return wrap("", &view::nothing(explanation));
    }
    let Some(section) = explanation.section(phase) else {
        return wrap("", &view::no_phase(explanation, phase.unwrap_or_default()));
    };
    let head = wrap("", &format!("{}:", view::title(explanation)));
    let totals = lay_out(&view::totals(explanation, MAX_PHASES));
    let notes = view::cautions(explanation, section).into_iter().chain(view::notes(explanation));
    let notes: String = notes.map(|note| wrap("", &note)).collect();
    let fixed = [&head, &totals, &notes].map(|part| part.lines().count() + 1);
    let room = LINES.saturating_sub(fixed.iter().sum());
    let rankings = rankings(explanation, section, room).map(|table| lay_out(&table)).join("\n");
    [head, totals, rankings, notes].join("\n")
}

/// The three rankings, each as long as `room` lines for all of them allow.
fn rankings(explanation: &Explanation, section: &Section, room: usize) -> [Table; 3] {
    let tables = |[functions, contributions, counters]: [usize; 3]| {
        [
            view::per_entry(explanation, section, functions),
            view::contributions(explanation, section, contributions),
            view::counters(explanation, section, counters),
        ]
    };
    let available = [section.per_entry.len(), view::changed(section), section.counters.len()];
    // With no row at all, what stands below a table is at its longest.
    let around = tables([0; 3]).map(|table| HEADING + table.foot.len() + 1);
    let mut left = room.saturating_sub(around.iter().sum());
    let mut limits = [0; 3];
    while left > 0 && limits != available {
        for (place, turn) in TURNS.into_iter().enumerate() {
            let more = turn.min(available[place] - limits[place]).min(left);
            limits[place] += more;
            left -= more;
        }
    }
    tables(limits)
}

/// A table with its columns aligned.
fn lay_out(table: &Table) -> String {
    let mut text = String::new();
    if !table.title.is_empty() {
        text.push_str(&wrap("", &format!("{}:", table.title)));
    }
    if !table.rows.is_empty() {
        let head: Vec<_> = table.head.iter().map(|&head| head.to_owned()).collect();
        let rows = || std::iter::once(&head).chain(&table.rows);
        let longest = |column: usize| rows().map(|row| row[column].len()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..head.len()).map(longest).collect();
        rows().for_each(|row| text.push_str(&line(row, &widths)));
    }
    for foot in &table.foot {
        text.push_str(&wrap("  ", foot));
    }
    text
}

/// One line: figures to the right, then the last cell, cut where the line ends.
fn line(cells: &[String], widths: &[usize]) -> String {
    let last = cells.len().saturating_sub(1);
    let cells = cells.iter().zip(widths).enumerate();
    let aligned = cells.map(|(column, (cell, width))| match column == last {
        true => format!("  {cell}"),
        false => format!("  {cell:>width$}"),
    });
    let mut line: String = aligned.collect();
    if line.len() > WIDTH {
        line.truncate(WIDTH - 2);
        line.push_str("..");
    }
    format!("{}\n", line.trim_end())
}
