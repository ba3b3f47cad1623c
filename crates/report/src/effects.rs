//! Effects of the axes of a matrix. Their section is below the verdicts on variants.

use compare::{Comparison, Effect, Effects, Table, Term, Verdict};
use model::{Mode, count};

use crate::ascii::{escape, few};
use crate::document::{Block, Cell, Column, Holds, bare, part, sentence};
use crate::exact;
use crate::forest::{Gain, forest, gain_word, reach, ruler};
use crate::words::{Of, decimal, phase_alone, probability, short};

/// The column of verdicts in text.
pub const VERDICT: Column = Column::words("").at_least("improvement".len());
/// Most interactions that are printed for a row although they change nothing.
const MAX_OTHERS: usize = 6;
/// Most rows that are named because they have no effects.
const MAX_NAMES: usize = 12;

/// Lays out the effects on the rows of all tables. With several workloads, each has a title.
pub fn of_all(comparison: &Comparison) -> Vec<Block> {
    let all = comparison.tables.iter().flat_map(|table| {
        let blocks = blocks(table, comparison);
        let is_part = comparison.has_several_workloads() && !blocks.is_empty();
        if is_part { vec![part(&*table.workload, blocks)] } else { blocks }
    });
    all.collect()
}

/// Lays out the effects on the rows of a table; nothing if its variants are not a complete matrix.
pub fn blocks(table: &Table, comparison: &Comparison) -> Vec<Block> {
    let Some(effects) = &table.effects else { return Vec::new() };
    let mut blocks = Vec::new();
    if !effects.effects.is_empty() {
        let reach = reach(effects.effects.iter().filter_map(gain));
        let rows = effects.effects.chunk_by(|one, other| one.row == other.row).map(|row| {
            part(&*table.rows[row[0].row].metric, on_row(row, effects, comparison, reach))
        });
        let heading = format!("{}:", heading(effects, comparison));
        blocks.push(part(heading, rows.collect::<Vec<_>>()));
    }
    blocks.extend(unknown(effects, table, comparison).map(sentence));
    blocks
}

/// Returns a sentence on what effects are, one for each row on those that change it, and one on unknown ones; nothing if
/// the table's variants are not a complete matrix. The row of the phase that is `leading` is first.
pub fn sentences(table: &Table, comparison: &Comparison, leading: Option<&str>) -> Vec<String> {
    let Some(effects) = &table.effects else { return Vec::new() };
    let changes = |it: &&Effect| matches!(it.verdict, Verdict::Regression | Verdict::Improvement);
    let mut rows: Vec<&[Effect]> =
        effects.effects.chunk_by(|one, other| one.row == other.row).collect();
    rows.sort_by_key(|row| Some(phase_alone(&table.rows[row[0].row])) != leading);
    let rows = rows.into_iter().filter_map(|row| {
        let said = row.iter().filter(changes).map(|it| {
            let reasons = reasons(it, effects, comparison);
            // What an interaction of two axes is names them.
            if it.apart.is_some() { reasons } else { format!("{} {reasons}", name(it, effects)) }
        });
        let said: Vec<String> = said.collect();
        let of = escape(phase_alone(&table.rows[row[0].row]));
        (!said.is_empty()).then(|| format!("{of}: {}.", said.join("; ")))
    });
    let mut rows: Vec<String> = rows.collect();
    // Where there is room for few sentences, the heading is not alone.
    if let Some(first) = rows.first_mut() {
        *first = format!("{}. On {first}", heading(effects, comparison));
    }
    rows.into_iter().chain(unknown(effects, table, comparison)).collect()
}

/// Returns a sentence on the rows whose effects are unknown; `None` if there are none.
fn unknown(effects: &Effects, table: &Table, comparison: &Comparison) -> Option<String> {
    let names = effects.unknown.iter().map(|row| &table.rows[*row].metric);
    let need = match comparison.mode {
        Mode::Measured => "3 blocks in which each variant has figures, all above 0",
        Mode::Exact => "2 seeds that are complete in each variant, with figures above 0",
    };
    let names = few(MAX_NAMES, names).join(", ");
    let said = format!("on {names} are unknown: they need {need}.");
    (!names.is_empty()).then(|| format!("Effects of {} {said}", axes(effects)))
}

/// Lays out the effects on one row. Text leaves out most of the interactions that change nothing; a page
/// folds them.
fn on_row(row: &[Effect], effects: &Effects, comparison: &Comparison, reach: f64) -> Vec<Block> {
    let is_other = |effect: &Effect| {
        let changes = matches!(effect.verdict, Verdict::Regression | Verdict::Improvement);
        effect.of.len() > 1 && !changes
    };
    let mut others = 0;
    let (shown, folded): (Vec<&Effect>, Vec<&Effect>) = row.iter().partition(|effect| {
        others += usize::from(is_other(effect));
        !is_other(effect) || others <= MAX_OTHERS
    });
    let lines = |all: &[&Effect]| {
        let lines = all.iter().map(|it| line(it, effects, comparison, reach));
        let columns = [
            VERDICT.in_text(),
            Column::words("Setting"),
            Column::drawings(ruler(reach, comparison)),
            Column::on_page(Holds::Verdicts, "Verdict"),
            Column::sentences(gain_word(comparison)),
        ];
        bare(columns, lines.collect())
    };
    let more = (!folded.is_empty()).then(|| {
        let more = count(folded.len(), "more interaction");
        Block::More(format!("{more}, independent or undecided"), vec![lines(&folded)])
    });
    [lines(&shown)].into_iter().chain(more).collect()
}

fn line(effect: &Effect, effects: &Effects, comparison: &Comparison, reach: f64) -> Vec<Cell> {
    let class = effect.verdict.name();
    let plot = gain(effect).map(|gain| forest(gain, reach, class, comparison));
    let verdict = Cell::from(word(effect).to_owned());
    vec![
        verdict.clone(),
        name(effect, effects).into(),
        plot.into(),
        Cell { verdict: Some(effect.verdict), ..verdict },
        reasons(effect, effects, comparison).into(),
    ]
}

/// Returns the effect with its interval; in exact mode, the change with its luck floor.
fn gain(effect: &Effect) -> Option<Gain> {
    if let Some(evidence) = &effect.evidence {
        let [low, high] = evidence.gains(effect.better)?;
        return Some(Gain { gain: effect.gain(effect.ratio)?, low, high });
    }
    let (gain, floor) = (100.0 * (effect.ratio - 1.0), 100.0 * effect.floor?);
    let is_known = gain.is_finite() && floor.is_finite();
    is_known.then_some(Gain { gain, low: gain - floor, high: gain + floor })
}

fn axes(effects: &Effects) -> String {
    effects.axes.iter().map(|axis| escape(&axis.name)).collect::<Vec<_>>().join(" x ")
}

/// Returns a sentence on what is compared, and how it is judged.
fn heading(effects: &Effects, comparison: &Comparison) -> String {
    let base = effects.axes.iter().map(|axis| value(&axis.name, &axis.values[0]));
    let base = base.collect::<Vec<_>>().join(", ");
    let margin = short(100.0 * comparison.judging.margin);
    let number = effects.effects.len();
    let how = match effects.effects.first().and_then(|first| first.evidence.as_ref()) {
        Some(evidence) => format!(
            "gains (positive is better) with {} % intervals, p adjusted for {number} effects (Holm), {}",
            short(100.0 * comparison.judging.confidence),
            count(evidence.boots[0], "block"),
        ),
        None => format!("{number} effects judged together"),
    };
    let has_loops = effects.effects.iter().any(|it| it.without_loops.is_some());
    let loops = if has_loops { ", also without loops that copy and clear memory" } else { "" };
    format!(
        "Effects of {} against {base}, each the geometric mean over the values of the other axes{loops}: margin \
         {margin} %, {how}",
        axes(effects)
    )
}

fn value(axis: &str, value: &str) -> String {
    format!("{}={}", escape(axis), escape(value))
}

fn term(term: Term, effects: &Effects) -> String {
    let axis = &effects.axes[term.axis];
    value(&axis.name, &axis.values[term.value])
}

/// Returns the values whose effect it is, such as `thp=never`. Those of an interaction are joined by
/// `with`.
fn name(effect: &Effect, effects: &Effects) -> String {
    let terms = effect.of.iter().map(|it| term(*it, effects));
    terms.collect::<Vec<_>>().join(" with ")
}

/// Returns the verdict. For an interaction, returns whether the effect of one axis depends on the other.
fn word(effect: &Effect) -> &'static str {
    match (effect.of.len(), effect.verdict) {
        (1, verdict) => verdict.name(),
        (_, Verdict::Regression | Verdict::Improvement) => "depends",
        (_, Verdict::Same) => "independent",
        (_, Verdict::Undecided) => Verdict::Undecided.name(),
    }
}

/// Formats the size of an effect, with its interval and p-value or its luck floor.
fn reasons(effect: &Effect, effects: &Effects, comparison: &Comparison) -> String {
    let change = |ratio: f64| match comparison.mode {
        Mode::Measured => format!("{} %", decimal(effect.gain(ratio), 2)),
        // Exact mode judges numbers of instructions.
        Mode::Exact => Of::Number.change([1.0, ratio], 2).unwrap_or_else(|| "-".to_owned()),
    };
    let mut said = change(effect.ratio);
    if let Some(evidence) = &effect.evidence {
        if let Some([low, high]) = evidence.gains(effect.better) {
            said.push_str(&format!(" ({} to {})", decimal(Some(low), 2), decimal(Some(high), 2)));
        }
        said.push_str(&format!(", p {}", probability(evidence.p)));
    }
    if let Some(floor) = effect.floor {
        said.push_str(&format!(", luck floor {} %", decimal(Some(100.0 * floor), 2)));
        let seeds = comparison.variants.iter().filter_map(|it| it.pairs).min();
        if let (Verdict::Undecided, Some(seeds)) = (effect.verdict, seeds) {
            let more = exact::more_seeds(floor, comparison.judging.margin, seeds);
            said.push_str(&format!("; {more}"));
        }
    }
    let without = effect
        .without_loops
        .and_then(|it| exact::left_without_loops(it, Of::Number, 2, "without loops"));
    if let Some(without) = without {
        said.push_str(&format!(", {without}"));
    }
    let ([one, other], Some(apart)) = (&effect.of[..], effect.apart) else { return said };
    if effect.verdict == Verdict::Same {
        return said;
    }
    let base = Term { value: 0, ..*other };
    let [at_base, at_other] = apart.map(change);
    format!(
        "{} is {at_base} with {}, {at_other} with {}: from one to the other {said}",
        term(*one, effects),
        term(base, effects),
        term(*other, effects)
    )
}
