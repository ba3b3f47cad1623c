//! The results of checking percentages, as text.

use import::{Check, Clue, Finding};
use model::count;

use super::{Foreign, ForeignTable, column, label};
use crate::ascii::excerpt;

/// Returns a line for each table with percentages, below it the percentages that do not follow from the
/// values, and a summary.
pub fn check(found: &Foreign) -> String {
    let checked = || found.tables.iter().filter_map(|table| Some((table, table.check.as_ref()?)));
    let mut text = String::new();
    for (table, check) in checked().filter(|(_, check)| check.printed > 0) {
        text.push_str(&format!("{}: {}\n", table.heading(), summary(check)));
        text.extend(check.findings.iter().map(|it| format!("  {}\n", finding(table, it))));
    }
    let sum = checked().fold(Check::default(), |mut sum, (_, check)| {
        sum.printed += check.printed;
        sum.derived += check.derived;
        sum.cut += check.cut;
        sum.untold += check.untold;
        sum.findings.extend(check.findings.iter().cloned());
        sum
    });
    format!("{text}{}: {}\n", count(found.tables.len(), "table"), summary(&sum))
}

fn summary(check: &Check) -> String {
    let mut summary = format!("{}, {} follow", count(check.printed, "percentage"), check.derived);
    if check.cut > 0 {
        summary.push_str(&format!(" ({} of them cut off, not rounded)", check.cut));
    }
    if !check.findings.is_empty() {
        let not = check.findings.len();
        summary.push_str(&format!(", {not} {} not", if not == 1 { "does" } else { "do" }));
    }
    if check.untold > 0 {
        summary.push_str(&format!(", {} can't be told", check.untold));
    }
    summary
}

/// Writes a printed percentage, and the one that follows from the values.
pub fn finding(found: &ForeignTable, finding: &Finding) -> String {
    let Finding { line, printed, follows: (low, high), .. } = finding;
    let follows = match (low.is_finite(), high.is_finite()) {
        (false, _) => format!("at most {high:.2}%"),
        (_, false) => format!("at least {low:.2}%"),
        _ => range(*low, *high),
    };
    let clue = match finding.clue {
        Some(Clue::OtherDirection) => {
            "; with the other sign it would, unless this row's good direction is unlike the others'"
        }
        Some(Clue::CutOff) => "; cut off, not rounded, it would",
        Some(Clue::BaselinePlusOne) => "; from the baseline plus 1 it would",
        None => "",
    };
    let of = excerpt(&label(&found.table.rows[finding.row]));
    let under = excerpt(&column(&found.table, finding.column));
    format!("line {line}: {of}, {under}: {}% is printed, {follows} follows{clue}", excerpt(printed))
}

fn range(low: f64, high: f64) -> String {
    match format!("{low:.2}") == format!("{high:.2}") {
        true => format!("{low:.2}%"),
        false => format!("{low:.2}% to {high:.2}%"),
    }
}
