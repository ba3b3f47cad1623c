//! Other differences between the variants, and conditions while they ran.

use compare::Comparison;
use maud::{Markup, html};
use model::Mode;

use crate::brief::tells;
use crate::document;
use crate::note::{Note, block};
use crate::{cross_check, exact, notes};

pub fn section(comparison: &Comparison) -> Markup {
    let (first, more): (Vec<Note>, Vec<Note>) = notes::all(comparison).into_iter().partition(tells);
    let exact = match comparison.mode {
        Mode::Exact => exact::notes(comparison),
        Mode::Measured => Vec::new(),
    };
    let more = [("Exact mode:", exact), ("Notes:", more)];
    let more = more.iter().filter(|(_, notes)| !notes.is_empty());
    let more: Vec<_> = more.map(|(title, notes)| block(title, notes)).collect();
    let clocks = cross_check::blocks(comparison);
    html! {
        section id="details" {
            h2 { "Machine and kernels" }
            (document::html(&[block("Notes:", &first)], 2))
            @if !more.is_empty() {
                details {
                    summary { "More notes" }
                    (document::html(&more, 2))
                }
            }
            @if !clocks.is_empty() {
                h3 { "Time as measured beside instructions as counted" }
                (document::html(&clocks, 3))
            }
        }
    }
}

/// The states in which the kernels differ, before the verdicts; nothing if there are none.
pub fn states(comparison: &Comparison) -> Markup {
    let states = notes::states_block(comparison);
    html! {
        @if let Some(states) = states {
            section id="states" { (document::html(&[states], 2)) }
        }
    }
}
