//! Other differences between the variants, and conditions while they ran.

use compare::Comparison;

use crate::brief::tells;
use crate::document::{Block, part};
use crate::note::{Note, block};
use crate::{cross_check, notes};

pub fn blocks(comparison: &Comparison) -> Vec<Block> {
    let (first, more): (Vec<Note>, Vec<Note>) = notes::all(comparison).into_iter().partition(tells);
    let mut blocks = vec![block("Notes:", &first)];
    if !more.is_empty() {
        blocks.push(Block::Fold("More notes".to_owned(), vec![block("Notes:", &more)]));
    }
    let clocks = cross_check::blocks(comparison);
    let title = "Time as measured beside instructions as counted";
    blocks.extend((!clocks.is_empty()).then(|| part(title, clocks)));
    blocks
}
