//! Other differences between the variants, and conditions while they ran.

use compare::Comparison;
use model::Mode;

use crate::brief::tells;
use crate::document::{Block, part};
use crate::note::{Note, block};
use crate::{cross_check, exact, notes};

pub fn blocks(comparison: &Comparison) -> Vec<Block> {
    let (first, more): (Vec<Note>, Vec<Note>) = notes::all(comparison).into_iter().partition(tells);
    let exact = match comparison.mode {
        Mode::Exact => exact::notes(comparison),
        Mode::Measured => Vec::new(),
    };
    let more = [("Exact mode:", exact), ("Notes:", more)];
    let more = more.iter().filter(|(_, notes)| !notes.is_empty());
    let more: Vec<Block> = more.map(|(title, notes)| block(title, notes)).collect();
    let mut blocks = vec![block("Notes:", &first)];
    blocks.extend((!more.is_empty()).then(|| Block::Fold("More notes".to_owned(), more)));
    let clocks = cross_check::blocks(comparison);
    let title = "Time as measured beside instructions as counted";
    blocks.extend((!clocks.is_empty()).then(|| part(title, clocks)));
    blocks
}
