//! The text below a table of measured mode: the verdicts with their evidence, other differences, the
//! smallest change that could have been seen, the spread of boots, outliers and multiple peaks.

use compare::{Comparison, Evidence, Kind, Look, NoEvidence, Row, Table, VariantOutcomes, Verdict};
use model::{Better, Mode, count};

use crate::ascii::{escape, excerpt, few};
use crate::document::{self, Block, Column, part, sentence};
use crate::effects;
use crate::effects::VERDICT;
use crate::exact;
use crate::oddities;
use crate::table::signed;
use crate::words::{Of, decimal, in_percent, more_of, probability, scope, short};

/// Most differences without a verdict that are named; the others are counted.
const MAX_NAMES: usize = 12;
/// Printed before the smallest change that could have been seen.
const SEEN: &str = "smallest change that these boots detect";
/// Printed instead if the boots are too few for any change to be seen.
const TOO_FEW: &str = "too few boots to find a difference among so many rows";
/// The fewest boots of each side that a verdict needs.
const MIN_BOOTS: usize = 3;

/// Lays out the evidence about all columns of `table`, whose values have marks; empty if there is none.
pub fn blocks(table: &Table, comparison: &Comparison) -> Vec<Block> {
    let unmet = unmet(table, comparison).map(sentence);
    let verdicts = on_columns(table, comparison).into_iter().chain(unmet);
    verdicts.chain(beside(table, comparison, true)).collect()
}

/// Returns a sentence on the rows that were chosen for verdicts but are not in `table`, and on those that
/// could be chosen. `None` if all are in it.
pub fn unmet(table: &Table, comparison: &Comparison) -> Option<String> {
    let own = comparison.unmet.iter().filter(|unmet| unmet.workload == table.workload);
    let chosen: Vec<String> = own.map(|unmet| excerpt(&unmet.row)).collect();
    if chosen.is_empty() || table.kind != Kind::Metrics {
        return None;
    }
    let mut rows: Vec<&str> = Vec::new();
    for row in table.rows.iter().filter(|row| row.can_be_judged()) {
        if !rows.contains(&&*row.metric) {
            rows.push(&row.metric);
        }
    }
    let there = match rows.is_empty() {
        true => "no row can be judged".to_owned(),
        false => format!("rows that can be judged: {}", few(MAX_NAMES, rows).join(", ")),
    };
    Some(format!(
        "No verdict on {}: chosen as primary, but there is no such row; {there}. A choice is the name of a \
         row, or its beginning up to a `-`; `*` stands for anything.",
        few(MAX_NAMES, chosen).join(", ")
    ))
}

/// Lays out the verdicts on all columns with their evidence, and the effects of axes; empty if there are
/// none.
pub fn on_columns(table: &Table, comparison: &Comparison) -> Vec<Block> {
    let verdicts = of_rows(table, table, comparison);
    verdicts.into_iter().chain(effects::blocks(table, comparison)).collect()
}

/// Lays out the verdicts on the rows of `shown` in all columns. What is said of all verdicts is of those in
/// `whole`.
pub fn of_rows(whole: &Table, shown: &Table, comparison: &Comparison) -> Vec<Block> {
    let columns = 1..comparison.variants.len();
    columns.filter_map(|column| on_column(whole, shown, comparison, column)).collect()
}

/// Lays out differences without a verdict, the spread of boots, and oddities; in exact mode only oddities.
/// `marks` says whether values that differ have marks in the table.
pub fn beside(table: &Table, comparison: &Comparison, marks: bool) -> Vec<Block> {
    let odd = oddities::blocks(table, comparison);
    match comparison.mode {
        Mode::Measured => {
            let others = others(table, comparison, marks).map(sentence);
            others.into_iter().chain(variation(table, comparison)).chain(odd).collect()
        }
        Mode::Exact => odd,
    }
}

/// Returns the rows that have a verdict on a column, and the verdict.
fn judged(table: &Table, column: usize) -> impl Iterator<Item = (&Row, Verdict)> {
    table.rows.iter().filter_map(move |row| Some((row, row.verdict(column)?)))
}

/// Lays out the verdicts on a column, each on a line, and the smallest change that could have been seen.
/// `None` if there are no verdicts.
fn on_column(
    table: &Table,
    shown: &Table,
    comparison: &Comparison,
    column: usize,
) -> Option<Block> {
    let rows: Vec<(&Row, Verdict)> = judged(table, column).collect();
    let mut lacking: Vec<Option<NoEvidence>> =
        rows.iter().map(|(row, _)| row.no_evidence(column)).collect();
    lacking.dedup();
    let heading = heading(table, comparison, column);
    if let [Some(same)] = lacking.as_slice() {
        let why = lack(Some(*same), comparison, column);
        let row = vec![Verdict::Undecided.name().to_owned(), why];
        let columns = [Column::words(""), Column::sentences("")];
        return Some(part(heading, [document::table(columns, vec![row])]));
    }
    let visible = rows.iter().filter_map(|(row, _)| Some((*row, row.evidence(column)?.visible?)));
    let seen = range(visible.collect(), 2).map(|range| sentence(format!("{SEEN}: {range}")));
    let rows = judged(shown, column).map(|(row, verdict)| {
        let said = evidence(row, verdict, comparison, column);
        vec![verdict.name().to_owned(), row.metric.clone(), said]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let columns = [VERDICT, Column::words(""), Column::sentences("")];
    let blocks: Vec<Block> = [document::table(columns, rows)].into_iter().chain(seen).collect();
    (!lacking.is_empty()).then(|| part(heading, blocks))
}

/// Formats the change that a verdict is about, and how certain it is.
pub fn evidence(row: &Row, verdict: Verdict, comparison: &Comparison, column: usize) -> String {
    match comparison.mode {
        Mode::Measured => reasons(row, verdict, comparison, column),
        Mode::Exact => exact::reasons(row, verdict, comparison, column),
    }
}

/// Returns the settings of measured mode: the margin, the confidence of intervals, and the look.
pub fn level(comparison: &Comparison) -> String {
    let Judged { margin, confidence } = Judged::of(comparison);
    format!("margin {margin} %, {confidence} % intervals{}", look(comparison))
}

fn heading(table: &Table, comparison: &Comparison, column: usize) -> String {
    let [base, new] = [0, column].map(|column| &comparison.variants[column].name);
    let Judged { margin, confidence } = Judged::of(comparison);
    // Exact mode gives no verdicts on times.
    let scope = match (comparison.emulated && comparison.mode == Mode::Measured, scope(comparison))
    {
        (true, _) => " (emulated times: not performance)".to_owned(),
        (false, Some(scope)) => format!(" ({scope})"),
        (false, None) => String::new(),
    };
    let look = look(comparison);
    let verdicts = format!("Verdicts on {new} against {base}{scope}: margin {margin} %{look}");
    let known =
        |column: usize| judged(table, column).filter_map(move |(row, _)| row.evidence(column));
    let Some(evidence) = known(column).next() else {
        return verdicts + ":";
    };
    let comparisons: usize =
        (1..comparison.variants.len()).map(|column| known(column).count()).sum();
    let among = if comparisons > 1 {
        format!(", p adjusted for {comparisons} comparisons (Holm)")
    } else {
        String::new()
    };
    let boots = boots_of(&evidence);
    format!(
        "{verdicts}, gains of means over boots (positive is better) with {confidence} % \
         intervals{among}, {boots}:"
    )
}

/// Returns the current look of a run that may end early; empty for other runs.
fn look(comparison: &Comparison) -> String {
    match comparison.judging.look {
        None => String::new(),
        Some(Look { number: 0, of, .. }) => format!(", sequential, before the first of {of} looks"),
        Some(Look { number, of, .. }) => {
            let level = short(100.0 * comparison.judging.alpha());
            format!(", sequential, look {number} of {of}, level {level} %")
        }
    }
}

/// The settings of verdicts, in percent.
struct Judged {
    margin: String,
    confidence: String,
}

impl Judged {
    fn of(comparison: &Comparison) -> Self {
        let percent = |share: f64| short(100.0 * share);
        let judging = &comparison.judging;
        Self { margin: percent(judging.margin), confidence: percent(judging.confidence) }
    }
}

fn boots_of(evidence: &Evidence) -> String {
    let [base, new] = evidence.boots;
    let boots = match base == new {
        true => format!("{} a side", count(base, "boot")),
        false => format!("{base} and {}", count(new, "boot")),
    };
    if evidence.paired { format!("{boots} in blocks") } else { format!("{boots}, not in blocks") }
}

/// Formats the gain with its interval. `same` also has the worst gain that is still possible; other
/// verdicts have the p-value, and `undecided` has what a decision needs.
fn reasons(row: &Row, verdict: Verdict, comparison: &Comparison, column: usize) -> String {
    let better = row.better.unwrap_or(Better::Lower);
    let Some(evidence) = row.evidence(column) else {
        return lack(row.no_evidence(column), comparison, column);
    };
    let gain = signed(evidence.gain(better), Some(verdict));
    let interval = match evidence.gains(better) {
        Some([low, high]) => format!(" ({} to {})", decimal(Some(low), 2), decimal(Some(high), 2)),
        None => String::new(),
    };
    let times = Of::unit(&row.unit).times(evidence.ratio, Some([evidence.low, evidence.high]));
    let gain = times.unwrap_or_else(|| format!("{gain:>7} %{interval}"));
    match verdict {
        Verdict::Same => {
            let worst = evidence.no_worse_than(better, comparison.judging.confidence);
            let worst =
                worst.map_or(String::new(), |it| format!(", no worse than {} %", bound(it)));
            format!("{gain}{worst}")
        }
        Verdict::Regression | Verdict::Improvement => {
            format!("{gain}, p {}", probability(evidence.p))
        }
        Verdict::Undecided => {
            let more = more(&evidence, comparison);
            format!("{gain}, p {}; {more}", probability(evidence.p))
        }
    }
}

/// Where a change of the size that was seen takes so many times fewer boots than the margin, its number is printed.
const FEWER: u32 = 4;

/// Returns how many more boots a decision needs.
fn more(evidence: &Evidence, comparison: &Comparison) -> String {
    let Judged { margin, .. } = Judged::of(comparison);
    let least = evidence.boots.into_iter().min().unwrap_or_default();
    let this = evidence.needed_for_this(&comparison.judging);
    let is_less = |this: &u32| evidence.needed.is_none_or(|needed| needed / FEWER > *this);
    if let Some(needed) = this.filter(is_less) {
        let more = (needed as usize).saturating_sub(least).max(1);
        return format!("{} to tell a change of this size from none", more_of(more, "boot"));
    }
    needed(evidence, comparison).unwrap_or_else(|| match evidence.needed {
        None => format!("how many boots resolve {margin} % is unknown"),
        // A decision was as likely as not with these boots, so the difference is near the margin.
        Some(_) => format!("a few more boots to resolve {margin} %"),
    })
}

/// Returns how many more boots a decision needs. `None` if that is not known, or if there are enough boots.
pub fn needed(evidence: &Evidence, comparison: &Comparison) -> Option<String> {
    let least = evidence.boots.into_iter().min()?;
    let more = (evidence.needed? as usize).saturating_sub(least);
    let margin = Judged::of(comparison).margin;
    (more > 0).then(|| format!("{} to resolve {margin} %", more_of(more, "boot")))
}

/// Returns when the first look is. `None` if it is over, or if the run has no looks.
fn first_look(comparison: &Comparison) -> Option<String> {
    let Look { next, .. } = comparison.judging.look.filter(|look| look.number == 0)?;
    Some(format!("the first look is at {} of each variant", count(next as usize, "boot")))
}

/// Returns why there is no evidence.
pub fn lack(lack: Option<NoEvidence>, comparison: &Comparison, column: usize) -> String {
    let [base, new] = [0, column].map(|column| escape(&comparison.variants[column].name));
    match lack {
        Some(NoEvidence::Boots([of_base, of_new])) => first_look(comparison).unwrap_or_else(|| {
            format!(
                "{} of {base}, {of_new} of {new}: at least {MIN_BOOTS} each are needed",
                count(of_base, "boot")
            )
        }),
        Some(NoEvidence::Figure) => "the values of a boot have no such mean".to_owned(),
        Some(NoEvidence::Hosts) => several_hosts(),
        Some(NoEvidence::Share) => format!("the mean of {base} is below 0"),
        None => "no data".to_owned(),
    }
}

fn several_hosts() -> String {
    format!("the boots are of several hosts, and none has {MIN_BOOTS} boots of both")
}

/// Returns a sentence on differences in rows without a verdict, the most certain first, and on the smallest
/// change that could have been seen there. Without evidence, returns why there is none.
fn others(table: &Table, comparison: &Comparison, marks: bool) -> Option<String> {
    let columns = 1..comparison.variants.len();
    let without = |column: usize| {
        let rows = table.rows.iter().filter(move |row| row.verdict(column).is_none());
        rows.filter_map(move |row| Some((column, row, row.evidence(column)?)))
    };
    let all: Vec<(usize, &Row, Evidence)> = columns.clone().flat_map(without).collect();
    if all.is_empty() {
        let means = table.rows.iter().any(|row| row.statistic.is_mean());
        let judged = columns.clone().any(|column| judged(table, column).next().is_some());
        let lacks = |row: &Row| {
            let mut lacks = columns.clone().map(|column| row.no_evidence(column));
            lacks.any(|lack| lack == Some(NoEvidence::Hosts))
        };
        let few = || match table.rows.iter().any(lacks) {
            true => several_hosts(),
            false => format!("at least {MIN_BOOTS} boots of each variant are needed"),
        };
        let why = || format!("No evidence: {}.", first_look(comparison).unwrap_or_else(few));
        return (means && !judged && !columns.is_empty()).then(why);
    }
    let alpha = comparison.judging.alpha();
    let mut differing: Vec<&(usize, &Row, Evidence)> =
        all.iter().filter(|(.., evidence)| evidence.p < alpha).collect();
    differing.sort_by(|a, b| a.2.p_alone.total_cmp(&b.2.p_alone));
    let named = differing
        .iter()
        .map(|(column, row, evidence)| difference(row, evidence, comparison, *column));
    let named = few(MAX_NAMES, named);
    let rate = format!("false discovery rate {} %", short(100.0 * alpha));
    let rows = match (table.kind, marks) {
        (Kind::Metrics, _) => "Rows without a verdict",
        (_, true) => "Rows in [brackets]",
        (_, false) => "These rows",
    };
    let found = match (table.kind, named.is_empty()) {
        (Kind::Metrics, true) => format!("{rows}: no significant difference ({rate})"),
        (Kind::Metrics, false) => {
            format!("{rows} that differ significantly ({rate}): {}", named.join("; "))
        }
        (_, true) => format!("No significant difference ({rate})"),
        (_, false) => format!("{rows} differ significantly ({rate}): {}", named.join("; ")),
    };
    let visible = all.iter().filter_map(|(_, row, evidence)| Some((*row, evidence.visible?)));
    let seen = match range(visible.collect(), 2) {
        Some(range) => format!("; {SEEN}: {range}"),
        None if all.iter().any(|(.., evidence)| evidence.moved()) => format!("; {TOO_FEW}"),
        None => String::new(),
    };
    Some(found + &seen)
}

/// Formats a difference without a verdict; as a gain if the row has a good direction.
fn difference(row: &Row, evidence: &Evidence, comparison: &Comparison, column: usize) -> String {
    let name = match comparison.variants.len() {
        0..=2 => row.metric.clone(),
        _ => format!("{} {}", comparison.variants[column].name, row.metric),
    };
    let of = Of::unit(&row.unit);
    let change = of.times(evidence.ratio, None).or_else(|| match row.better {
        Some(better) => evidence.gain(better).map(|gain| format!("{} %", decimal(Some(gain), 2))),
        None => of.change([1.0, evidence.ratio], 2),
    });
    format!("{name} {}", change.as_deref().unwrap_or("from 0"))
}

/// Lays out the spread of each column's boots, over the rows with verdicts if there are any, otherwise over
/// all rows. `None` if it is not known.
fn variation(table: &Table, comparison: &Comparison) -> Option<Block> {
    let judged = |row: &&Row| row.is_judged();
    let primary = table.rows.iter().any(|row| judged(&row));
    let rows: Vec<&Row> = table.rows.iter().filter(|row| !primary || judged(row)).collect();
    let of_column = |(column, variant): (usize, &VariantOutcomes)| {
        let known = |of: fn(&compare::Variation) -> Option<f64>| -> Vec<(&Row, f64)> {
            let known = rows.iter().filter_map(|row| Some((*row, of(&row.variation(column)?)?)));
            known.collect()
        };
        let between = range(known(|it| it.between), 1).map(|it| format!("between boots {it}"));
        let within = range(known(|it| it.within), 1).map(|it| format!("within boots {it}"));
        let parts: Vec<String> = between.into_iter().chain(within).collect();
        let cells = || vec!["Variation:".to_owned(), variant.name.clone(), parts.join(", ")];
        (!parts.is_empty()).then(cells)
    };
    let spreads: Vec<Vec<String>> =
        comparison.variants.iter().enumerate().filter_map(of_column).collect();
    let columns = [oddities::TOPIC, Column::words(""), Column::sentences("")];
    (!spreads.is_empty()).then(|| document::table(columns, spreads))
}

/// Formats the range of shares in percent, and names the row with the largest: `1.8 %`, or
/// `0.3 to 1.8 % (most: Elapsed-NUMA02)`. `None` without shares.
fn range(shares: Vec<(&Row, f64)>, decimals: usize) -> Option<String> {
    let percent = |share: f64| in_percent(share, decimals);
    let least = shares.iter().map(|(_, share)| *share).reduce(f64::min)?;
    let (row, most) = shares.iter().copied().reduce(|a, b| if b.1 > a.1 { b } else { a })?;
    let (least, most) = (percent(least), percent(most));
    Some(match least == most {
        true => format!("{most} %"),
        false => format!("{least} to {most} % (most: {})", row.metric),
    })
}

/// Formats an upper bound with two decimals. It is rounded up, because a smaller bound would promise more
/// than was shown. A tiny excess is ignored, because it can be a rounding error of the arithmetic.
fn bound(percent: f64) -> String {
    // Adding zero turns -0 into 0.
    short((100.0 * percent - 1e-9).ceil() / 100.0 + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_rounded_up() {
        // 100 x 0.07 is above 7 in floating point.
        let bounds = [0.0, 0.07, 0.0701, 0.29, 1.0, 1.001, 100.0 * (1.0011 - 1.0)].map(bound);
        assert_eq!(bounds, ["0", "0.07", "0.08", "0.29", "1", "1.01", "0.11"]);
    }
}
