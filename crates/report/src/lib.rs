//! Prints compared results as text to paste into a mail, as a mail, and as JSON, CSV and HTML. This crate
//! does layout only: every figure comes from the comparison, and the caller decides where the output goes.
//! Text from a guest or a file is escaped wherever it is printed ([`escape`]).

mod architectures;
mod ascii;
mod brief;
mod build;
mod code;
mod consistency;
mod counter;
mod cover;
mod cross_check;
mod csv;
mod culprit;
mod document;
mod effects;
mod exact;
mod explain;
mod failing;
mod foreign;
mod forest;
mod header;
mod heading;
mod json;
mod locality;
mod mail;
mod note;
mod notes;
mod oddities;
mod page;
pub mod selftest;
mod stacks;
mod steps;
mod sweep;
mod table;
mod verdicts;
mod words;

use compare::Comparison;
use document::{Block, TEXT, sections, sentence};

pub use self::csv::csv;
pub use architectures::architectures;
pub use ascii::{escape, excerpt, shell_word};
pub use brief::{brief, figures, headlines, verdicts};
pub use build::builds;
pub use code::{code, code_json, listings, listings_json};
pub use counter::counter;
pub use cover::{cover, cover_json};
pub use culprit::{bisect_log, culprit, culprit_json, culprit_mail, culprit_page};
pub use explain::{
    changed_lines, changed_lines_json, explain, explain_html, explain_json, lines, lines_json,
    sampled, sampled_html, sampled_json,
};
pub use failing::sentences as failing;
pub use foreign::{
    Foreign, ForeignTable, ForeignUnread, foreign, foreign_check, foreign_csv, foreign_html,
    foreign_json,
};
pub use json::{architectures_json, json};
pub use locality::locality;
pub use mail::{OfArchitecture, Recipe, architectures as architectures_mail, mail, source_name};
pub use page::{Console, MAX_CONSOLES, Page, architectures as architectures_page, page};
pub use stacks::{collapsed, perf_script};

/// Returns the comparison as plain text: ASCII, at most 100 columns where the data allow, no trailing
/// spaces. Tables are in the layout of the kernel's lists, as mmtests prints them.
pub fn text(comparison: &Comparison) -> String {
    let nothing = comparison.tables.is_empty() && comparison.points.is_empty();
    let head = [
        notes::states_block(comparison).into_iter().collect(),
        exact::head(comparison, true).into_iter().collect(),
        nothing.then(|| sentence(table::NOTHING)).into_iter().collect(),
    ];
    let tables = comparison.tables.iter().map(|table| {
        let figures = table::blocks(table, comparison).into_iter();
        figures.chain(verdicts::blocks(table, comparison)).collect()
    });
    let rest = [
        sweep::blocks(comparison),
        steps::block(comparison).into_iter().collect(),
        build::split(comparison),
        cross_check::blocks(comparison),
        vec![note::block("Notes:", &notes::all(comparison))],
    ];
    let all: Vec<Vec<Block>> = head.into_iter().chain(tables).chain(rest).collect();
    sections(&all, &TEXT)
}
