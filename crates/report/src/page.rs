//! The comparison as one self-contained page of HTML. It has the verdicts first. For each workload it then
//! draws every sample, and has all figures, folded. The data and the commands to repeat the run follow. The
//! page can be read without scripts; its only script zooms into series.

mod convergence;
mod details;
mod distribution;
mod dots;
mod failed;
mod judgement;
mod reproduce;
mod series;
mod summary;
pub mod svg;
mod sweep;
mod tables;
mod time;
mod workload;

use compare::{Comparison, Explained, Results};
use maud::{Markup, html};
use model::{BootId, Mode, count};
use plots::Plots;

use crate::ascii::{escape, excerpt};
use crate::document::frame::{Policy, frame};
use crate::document::{self, Block};
use crate::exact::{NANOSECONDS, NOT_MODELLED};
use crate::mail::Recipe;
use crate::{effects, notes, steps, words};

pub use failed::MAX_CONSOLES;

/// The style sheet of the page.
pub const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/zoom.js");

/// The input of a page.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The compared variants, with their tables and verdicts.
    pub comparison: &'a Comparison,
    /// The input of the comparison.
    pub results: &'a Results<'a>,
    /// The plot data of each workload.
    pub plots: &'a [Plots],
    /// The functions in which the changes are; only in exact mode.
    pub explained: &'a [Explained],
    /// The output of boots that failed.
    pub consoles: &'a [Console],
    /// The files and the version that are needed to run the experiment again.
    pub recipe: &'a Recipe<'a>,
}

/// The console of a boot that failed.
#[derive(Clone, Debug)]
pub struct Console {
    /// The number of the boot in the store.
    pub boot: BootId,
    /// The kernel's log, followed by the console.
    pub text: String,
}

/// Returns the page. Every text from a guest or a file is escaped; nothing is loaded.
pub fn page(page: &Page<'_>) -> String {
    let Page { comparison, results, plots, .. } = page;
    let name = &results.experiment.name;
    let mut workloads: Vec<&str> = Vec::new();
    for name in comparison.tables.iter().map(|table| &table.workload) {
        if !workloads.contains(&&**name) {
            workloads.push(name);
        }
    }
    let effects = effects::of_all(comparison);
    let body = html! {
        (head(page))
        nav aria-label="Sections" {
            a href="#verdicts" { "Verdicts" }
            @if !effects.is_empty() { a href="#effects" { "Effects" } }
            @if !comparison.steps.is_empty() { a href="#series" { "By patch" } }
            @for (number, name) in workloads.iter().enumerate() {
                a href={ "#w" (number) } { (short(name)) }
            }
            a href="#details" { "Machine and kernels" }
            a href="#failed" { "Failed boots" }
            a href="#reproduce" { "Reproduce" }
        }
        main {
            @if let Some(states) = notes::states_block(comparison) {
                section id="states" { (document::html(&[states], 2)) }
            }
            @if comparison.points.is_empty() {
                (section("verdicts", "Verdicts", &summary::blocks(comparison, page.explained), 2))
                (section("effects", "Effects of each setting", &effects, 3))
                (section("series", "By patch", steps::block(comparison).as_slice(), 2))
            } @else {
                (section("verdicts", "Verdicts along the sweep", &sweep::blocks(comparison), 2))
            }
            @for (number, name) in workloads.iter().enumerate() {
                @let plots = plots.iter().find(|plots| plots.workload == *name);
                (workload::section(number, name, comparison, plots))
            }
            (section("details", "Machine and kernels", &details::blocks(comparison), 2))
            (failed::section(page))
            (section("reproduce", "How to reproduce", &reproduce::blocks(page), 3))
        }
        footer { p { "faultline " (escape(page.recipe.version)) ". This page is one file and loads nothing." } }
    };
    let title = format!("{}: faultline compare", excerpt(name));
    frame(&title, STYLE, Policy::Only(SCRIPT), &body.into_string())
}

/// Lays out a section; nothing if there are no blocks. `level` is that of the heading above them.
fn section(id: &str, title: &str, blocks: &[Block], level: u8) -> Markup {
    html! {
        @if !blocks.is_empty() {
            section id=(id) {
                h2 { (title) }
                (document::html(blocks, level))
            }
        }
    }
}

fn head(page: &Page<'_>) -> Markup {
    let Page { comparison, results, .. } = page;
    let boot = boot_word(comparison);
    html! {
        header {
            p class="kicker" { "faultline compare" }
            h1 { (excerpt(&results.experiment.name)) }
            ul class="keys" {
                @for (column, variant) in comparison.variants.iter().enumerate() {
                    li {
                        (svg::key(column)) " "
                        b { (excerpt(&variant.name)) }
                        @if column == 0 && comparison.variants.len() > 1 { " (baseline)" }
                        ": " (count(variant.complete, boot))
                        @let (partial, failed): (Vec<_>, Vec<_>) =
                            variant.failed.iter().partition(|boot| boot.partial);
                        @if !failed.is_empty() {
                            ", " strong class="bad" { (failed.len()) " failed" }
                        }
                        @if !partial.is_empty() {
                            ", " strong class="bad" { (partial.len()) " failed in part" }
                        }
                    }
                }
            }
            @if comparison.mode == Mode::Exact {
                p class="caution" {
                    "Exact mode counts instructions. A difference counts if it exceeds the luck \
                     floor of its seeds and the margin of " (words::short(100.0 * comparison.judging.margin))
                    " %. Times are guest time, " (NANOSECONDS) " ns per \
            instruction. Not modelled: "
                    (NOT_MODELLED.join(", ")) "."
                }
            } @else if comparison.emulated {
                p class="caution" { "Times under emulation (TCG) are not performance." }
            }
        }
    }
}

/// Returns the word for a boot: in exact mode, `seed`.
fn boot_word(comparison: &Comparison) -> &'static str {
    match comparison.mode {
        Mode::Measured => "boot",
        Mode::Exact => "seed",
    }
}

/// Most characters of a name where there is little room.
const SHORT: usize = 28;

/// Escapes a name, and cuts it to [`SHORT`] characters.
fn short(name: &str) -> String {
    let name = excerpt(name);
    match name.char_indices().nth(SHORT) {
        Some((end, _)) => format!("{}\u{2026}", &name[..end]),
        None => name,
    }
}
