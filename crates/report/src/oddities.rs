//! Below a table of metrics: what means do not tell of the values behind them.

use compare::{Comparison, Odd, Oddity, Peak, Table};
use model::count;

use crate::ascii::escape;
use crate::table::decimal;
use crate::verdicts::Layout;

/// Oddities of one kind that are named; the others are counted.
const MAX_NAMES: usize = 8;
/// Boots of a mode that are named.
const MAX_BOOTS: usize = 10;

/// What is said below them.
pub const ALL_COUNT: &str = "All of these count in the figures. Iterations are numbered from 0.";

/// The oddities of `table` by kind, escaped, a sentence each without its point. Kinds of which there
/// are none are left out.
pub fn topics(
    table: &Table,
    comparison: &Comparison,
) -> impl Iterator<Item = (&'static str, Vec<String>)> {
    let topics = ["Outliers:", "Modes:", "Warm-up:", "Not steady:"];
    let named = topics.map(|topic| {
        let oddities = table.oddities.iter().filter(|it| self::topic(&it.what) == topic);
        let mut named: Vec<String> = oddities.map(|it| sentence(it, table, comparison)).collect();
        if let Some(more @ 1..) = named.len().checked_sub(MAX_NAMES) {
            named.truncate(MAX_NAMES);
            named.push(format!("{more} more"));
        }
        (topic, named)
    });
    named.into_iter().filter(|(_, named)| !named.is_empty())
}

/// The same as text. Nothing where there are none.
pub fn text(table: &Table, comparison: &Comparison, layout: &Layout) -> String {
    let topics = topics(table, comparison);
    let mut text: String = topics
        .map(|(topic, named)| layout.lines(&format!("{topic:<12}"), &named.join("; ")))
        .collect();
    if !text.is_empty() {
        text.push_str(&layout.lines("", ALL_COUNT));
    }
    text
}

fn topic(what: &Odd) -> &'static str {
    match what {
        Odd::OutlyingBoot { .. } | Odd::OutlyingIteration { .. } => "Outliers:",
        Odd::Modes { .. } => "Modes:",
        Odd::WarmUp { .. } => "Warm-up:",
        Odd::NeverSteady { .. } => "Not steady:",
    }
}

fn sentence(oddity: &Oddity, table: &Table, comparison: &Comparison) -> String {
    let decimals = table.rows.iter().find(|row| row.metric == oddity.metric && row.unit != "%");
    let decimals = decimals.map_or(2, |row| row.decimals);
    let figure = |value: &f64| decimal(Some(*value), decimals);
    let metric = escape(&oddity.metric);
    let of = match comparison.variants.len() {
        1 => metric,
        _ => format!("{} {metric}", escape(&oddity.variant)),
    };
    match &oddity.what {
        Odd::OutlyingBoot { boot, value, median } => {
            format!("{of}: {boot} {}, median of boots {}", figure(value), figure(median))
        }
        Odd::OutlyingIteration { boot, iteration, value, median } => format!(
            "{of}: {boot} iteration {iteration} {}, median of its boot {}",
            figure(value),
            figure(median)
        ),
        Odd::Modes { modes } => {
            let peaks: Vec<String> = modes.iter().map(|peak| mode(peak, &figure)).collect();
            format!("{of}: {}", peaks.join(", "))
        }
        Odd::WarmUp { boot, iterations, first, steady } => {
            let verb = if *iterations == 1 { "is" } else { "are" };
            format!(
                "{of}: first {} of {boot} {verb} warm-up, {} on average, then {}",
                count(*iterations, "iteration"),
                figure(first),
                figure(steady)
            )
        }
        Odd::NeverSteady { boot } => format!("{of}: {boot} still changes at its end"),
    }
}

/// A mode, with the boots that are wholly in it.
fn mode(peak: &Peak, figure: &dyn Fn(&f64) -> String) -> String {
    let named = &peak.boots[..peak.boots.len().min(MAX_BOOTS)];
    let more = if named.len() < peak.boots.len() { " ..." } else { "" };
    let boots = count(peak.boots.len(), "boot");
    format!("{boots} near {} ({}{more})", figure(&peak.centre), named.join(" "))
}
