//! An explanation as text to paste into a mail.

use compare::{Explanation, Headline};

use super::cause;
use super::headline;
use super::view::{self, TextTable};
use crate::ascii::{WIDTH, wrap};

/// Most phases that have a line of their own.
const MAX_PHASES: usize = 8;

/// The attribution of the difference as plain text: ASCII, at most 100 columns where the figures allow. It
/// begins with a sentence for each measured phase. The rankings are those of the measured phases, or of
/// `phase`, with `top` rows each.
pub fn explain(
    explanation: &Explanation,
    headlines: &[Headline],
    phase: Option<&str>,
    top: usize,
) -> String {
    if explanation.all.is_none() {
        return wrap("", &view::nothing(explanation));
    }
    let Some(section) = explanation.section(phase) else {
        return wrap("", &view::no_phase(explanation, phase.unwrap_or_default()));
    };
    let mut parts = vec![wrap("", &format!("{}:", view::title(explanation)))];
    let mut head = headline::headlines(headlines, phase);
    head.extend(cause::causes(section));
    head.extend(view::unjudged(explanation, phase));
    let said: String = head.iter().map(|line| wrap("", line)).collect();
    parts.extend(Some(said).filter(|said| !said.is_empty()));
    parts.push(lay_out(&view::totals(explanation, MAX_PHASES)));
    let rankings = [
        view::per_entry(explanation, section, top),
        view::contributions(explanation, section, top),
        view::counters(explanation, section, top),
    ];
    parts.extend(rankings.iter().map(lay_out));
    let notes = view::cautions(explanation, section).into_iter().chain(view::notes(explanation));
    parts.push(notes.map(|note| wrap("", &note)).collect());
    parts.join("\n")
}

/// A table with its columns aligned.
pub fn lay_out(table: &TextTable) -> String {
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
