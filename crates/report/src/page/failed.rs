//! Boots that failed, each with the end of its console.

use compare::FailedBoot;

use super::{Console, Page};
use crate::ascii::excerpt;
use crate::document::{Block, note, sentence};

/// Most consoles that are shown. Other failed boots are listed with their outcome only.
pub const MAX_CONSOLES: usize = 20;
/// Most lines that are shown of a console; they are the last ones.
const MAX_LINES: usize = 150;
/// Most characters of a line.
const MAX_LINE: usize = 400;

pub fn blocks(page: &Page<'_>) -> Vec<Block> {
    let variants = page.comparison.variants.iter();
    let failed = variants.flat_map(|it| it.failed.iter().map(|boot| (&it.name, boot)));
    let blocks = failed.enumerate().map(|(number, (variant, FailedBoot { boot, outcome, .. }))| {
        let console = page.consoles.iter().find(|console| console.boot == *boot);
        let below = match console.filter(|_| number < MAX_CONSOLES) {
            Some(console) => end_of(console),
            None => vec![sentence(format!("Its console: `faultline show {boot}`"))],
        };
        Block::Fold(format!("{boot}, {}: {}", excerpt(variant), excerpt(outcome)), below)
    });
    let blocks: Vec<Block> = blocks.collect();
    if blocks.is_empty() { vec![sentence("None.")] } else { blocks }
}

/// Lays out the last lines of a console.
fn end_of(console: &Console) -> Vec<Block> {
    let lines: Vec<&str> = console.text.lines().collect();
    if lines.is_empty() {
        return vec![sentence("It printed nothing.")];
    }
    let left_out = lines.len().saturating_sub(MAX_LINES);
    let cut = |line: &&str| {
        let line = line.replace('\t', "    ");
        match line.char_indices().nth(MAX_LINE) {
            Some((end, _)) => format!("{}...", &line[..end]),
            None => line,
        }
    };
    let shown = lines[left_out..].iter().map(cut).collect::<Vec<_>>().join("\n");
    let before = format!("{left_out} lines before: `faultline show {}`", console.boot);
    let before = (left_out > 0).then(|| note(before));
    before.into_iter().chain([Block::Code(shown)]).collect()
}
