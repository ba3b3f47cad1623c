//! The effects of the axes of a matrix.

use compare::{Comparison, Effect, Effects, Table, Verdict};
use maud::{Markup, html};

use super::judgement::{Gain, forest, gain_word, reach, ruler};
use crate::ascii::{escape, excerpt};
use crate::effects;

/// Whether there are any.
pub fn are_known(comparison: &Comparison) -> bool {
    let mut effects = comparison.tables.iter().filter_map(|table| table.effects.as_ref());
    effects.any(|effects| !effects.effects.is_empty())
}

/// The effects on the rows of all tables; nothing if the variants are no full cross.
pub fn section(comparison: &Comparison) -> Markup {
    let known = comparison.tables.iter().filter_map(|table| {
        let effects = table.effects.as_ref().filter(|it| !it.effects.is_empty())?;
        Some((table, effects))
    });
    let known: Vec<(&Table, &Effects)> = known.collect();
    let all = known.iter().flat_map(|(_, effects)| &effects.effects);
    let reach = reach(all.filter_map(gain));
    html! {
        @if are_known(comparison) {
            section id="effects" {
                h2 { "Effects of each setting" }
                @for (table, effects) in &known {
                    @if known.len() > 1 { h3 { (excerpt(&table.workload)) } }
                    p class="note" { (effects::heading(effects, comparison)) "." }
                    (one(table, effects, comparison, reach))
                }
            }
        }
    }
}

fn one(table: &Table, effects: &Effects, comparison: &Comparison, reach: f64) -> Markup {
    let rows = effects.effects.chunk_by(|one, other| one.row == other.row);
    html! {
        div class="table" {
            table class="summary" role="table" {
                thead role="rowgroup" { tr role="row" {
                    th scope="col" role="columnheader" { "Setting" }
                    th scope="col" role="columnheader" class="plot" { (ruler(reach, comparison)) }
                    th scope="col" role="columnheader" class="said" { "Verdict" }
                    th scope="col" role="columnheader" class="said" { (gain_word(comparison)) }
                } }
                @for row in rows {
                    tbody role="rowgroup" {
                        tr role="row" {
                            th scope="rowgroup" role="rowheader" colspan="4" {
                                b { (escape(&table.rows[row[0].row].metric)) }
                            }
                        }
                        @for effect in row { (line(effect, effects, comparison, reach)) }
                    }
                }
            }
        }
    }
}

fn line(effect: &Effect, effects: &Effects, comparison: &Comparison, reach: f64) -> Markup {
    let class = effect.verdict.name();
    html! {
        tr class=(class) role="row" {
            th scope="row" role="rowheader" { (effects::name(effect, effects)) }
            td role="cell" class="plot" {
                @if let Some(gain) = gain(effect) { (forest(gain, reach, class, comparison)) }
            }
            td role="cell" class="said" {
                span class={ "verdict " (class) } { (effects::word(effect)) }
            }
            td role="cell" class="said" { (effects::reasons(effect, effects, comparison)) }
        }
    }
}

/// The effect with its interval, or the change with its luck floor.
fn gain(effect: &Effect) -> Option<Gain> {
    if let Some(evidence) = &effect.evidence {
        let [low, high] = evidence.gains(effect.better)?;
        return Some(Gain { gain: effect.gain(effect.ratio)?, low, high });
    }
    let (gain, floor) = (100.0 * (effect.ratio - 1.0), 100.0 * effect.floor.unwrap_or(0.0));
    let is_known = gain.is_finite() && effect.verdict != Verdict::Undecided || floor.is_finite();
    is_known.then_some(Gain { gain, low: gain - floor, high: gain + floor })
}
