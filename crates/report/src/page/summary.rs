//! The verdicts at the top of the page: for each workload and metric what changed, how sure that is, and
//! how many boots or seeds a decision needs.

use compare::{Comparison, Kind, Row, Statistic, Table, Verdict};
use model::{Mode, count};

use super::judgement::{Judgement, table};
use crate::ascii::excerpt;
use crate::document::{self, Block, note, sentence};
use crate::exact;
use crate::forest::reach;
use crate::table::NOTHING;
use crate::words::short;

/// At least this many judgements are not folded, if there are as many. Regressions and improvements come
/// first, then undecided ones.
const SHOWN: usize = 10;
/// At most this many regressions and improvements are not folded.
const MAX_SHOWN: usize = 40;

pub fn blocks(comparison: &Comparison) -> Vec<Block> {
    let all = judgements(comparison);
    let reach = reach(all.iter().filter_map(Judgement::gain));
    let rank = |it: &Judgement<'_>| match it.verdict() {
        Some(Verdict::Regression | Verdict::Improvement) => 0,
        Some(Verdict::Undecided) => 1,
        Some(Verdict::Same) | None => 2,
    };
    let mut by_rank: Vec<usize> = (0..all.len()).collect();
    by_rank.sort_by_key(|&place| rank(&all[place]));
    let changes = all.iter().filter(|it| rank(it) == 0).count();
    let shown = &by_rank[..all.len().min(changes.clamp(SHOWN, MAX_SHOWN))];
    let (shown, folded): (Vec<usize>, Vec<usize>) =
        (0..all.len()).partition(|place| shown.contains(place));
    let table = |places: &[usize]| {
        table(&places.iter().map(|&place| all[place]).collect::<Vec<_>>(), reach)
    };
    let columns = 1..comparison.variants.len();
    let mut blocks: Vec<Block> = columns.map(|column| lead(comparison, column)).collect();
    match table(&shown) {
        None => blocks.push(sentence(nothing(comparison))),
        Some(first) => {
            blocks.push(first);
            let more = count(folded.len(), "more comparison");
            blocks.extend(table(&folded).map(|rest| Block::Fold(more, vec![rest])));
            blocks.push(note(legend(comparison)));
        }
    }
    blocks
}

/// Returns a sentence on why there are no judgements.
fn nothing(comparison: &Comparison) -> &'static str {
    match (comparison.tables.is_empty(), comparison.variants.len()) {
        (true, _) => NOTHING,
        (_, 0 | 1) => "There is only one variant, so there is nothing to compare.",
        _ => {
            "No metric that both sides measured has a direction (higher or lower is better), so \
              there is no verdict."
        }
    }
}

/// Returns the rows to judge: means, and instructions at equal entries, that have a good direction. If
/// there is any verdict, only rows with one are returned, otherwise those with a value on both sides.
fn judgements(comparison: &Comparison) -> Vec<Judgement<'_>> {
    let columns = 1..comparison.variants.len();
    let of_row = |table, row| {
        let of = move |column| Judgement { comparison, table, row, column, point: None };
        columns.clone().map(of)
    };
    let means = |table: &'_ Table| table.kind == Kind::Metrics;
    let tables = comparison.tables.iter().filter(|table| means(table));
    let rows = tables.flat_map(|table| table.rows.iter().map(move |row| (table, row)));
    let is_judged = |row: &Row| row.statistic.is_mean() || row.statistic == Statistic::Equal;
    let rows = rows.filter(|(_, row)| is_judged(row) && row.better.is_some());
    let all: Vec<_> = rows.flat_map(|(table, row)| of_row(table, row)).collect();
    let any = all.iter().any(|it| it.verdict().is_some());
    all.into_iter().filter(|it| if any { it.verdict().is_some() } else { it.is_known() }).collect()
}

/// Says how often each verdict was given on a variant.
fn lead(comparison: &Comparison, column: usize) -> Block {
    let [base, new] = [0, column].map(|column| excerpt(&comparison.variants[column].name));
    let given = exact::given(comparison, column);
    match given.is_empty() {
        true => document::lead(format!("{new} against {base}: no verdict.")),
        false => Block::Verdicts(format!("{new} against {base}:"), given),
    }
}

fn legend(comparison: &Comparison) -> String {
    match comparison.mode {
        Mode::Measured => format!(
            "Gains are of means over boots; positive is better. Intervals of {} % rest on \
             boots, not on single samples. The band around 0 is the margin: within {} % of the baseline is the \
             same.",
            short(100.0 * comparison.judging.confidence),
            short(100.0 * comparison.judging.margin)
        ),
        Mode::Exact => format!(
            "Changes are of means over seeds, in percent of the baseline. Bars show the luck \
             floor on both sides. A change counts if it exceeds the floor and the margin of {} %.",
            short(100.0 * comparison.judging.margin)
        ),
    }
}
