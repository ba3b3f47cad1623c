//! Other differences between the variants, and conditions while they ran.

use compare::Comparison;
use maud::{Markup, html};
use model::Mode;

use crate::brief::tells;
use crate::notes::{self, Note};
use crate::{cross_check, exact};

pub fn section(comparison: &Comparison) -> Markup {
    let exact = match comparison.mode {
        Mode::Exact => exact::notes(comparison),
        Mode::Measured => Vec::new(),
    };
    html! {
        section id="details" {
            h2 { "Machine and kernels" }
            @let (first, more): (Vec<Note>, Vec<Note>) =
                notes::all(comparison).into_iter().partition(tells);
            (table("Notes", &first))
            @if !exact.is_empty() || !more.is_empty() {
                details {
                    summary { "More notes" }
                    @if !exact.is_empty() { (table("Exact mode", &exact)) }
                    @if !more.is_empty() { (table("Notes", &more)) }
                }
            }
            @if let Some(clocks) = cross_check::text(comparison) {
                h3 { "Time as measured beside instructions as counted" }
                pre tabindex="0" { (clocks) }
            }
        }
    }
}

/// The states in which the kernels differ, before the verdicts; nothing if there are none.
pub fn states(comparison: &Comparison) -> Markup {
    let states = notes::states(comparison);
    html! {
        @if !states.is_empty() {
            section id="states" { (table(notes::STATES.trim_end_matches(':'), &states)) }
        }
    }
}

/// Notes, each topic printed once.
fn table(caption: &str, notes: &[Note]) -> Markup {
    let topics = notes.chunk_by(|a, b| a.topic == b.topic);
    html! {
        div class="table" {
            table class="notes" {
                caption { (caption) }
                @for notes in topics {
                    tbody {
                        @for (number, note) in notes.iter().enumerate() {
                            tr {
                                @if number == 0 {
                                    th scope="rowgroup" rowspan=(notes.len()) { (note.topic) }
                                }
                                @match &note.variant {
                                    Some(variant) => { td { b { (variant) } } td { (note.text) } }
                                    None => td colspan="2" { (note.text) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
