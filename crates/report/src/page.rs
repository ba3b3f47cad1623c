//! The comparison as one self-contained page of HTML. It has the verdicts first. For each workload it then
//! draws every sample, and has all figures, folded. The data and the commands to repeat the run follow. The
//! page can be read without scripts; its only script zooms into series.

mod cause;
mod convergence;
mod details;
mod distribution;
mod dots;
mod failed;
mod judgement;
mod reproduce;
mod series;
mod summary;
mod sweep;
mod time;
mod workload;

use compare::{Comparison, Explained, Results};
use maud::{Markup, html};
use model::{BootId, Mode, count};
use plots::Plots;

use crate::ascii::{escape, excerpt};
use crate::build;
use crate::document::frame::{BLOCKS, Policy, frame};
use crate::document::{self, Block, Tone, svg};
use crate::mail::Recipe;
use crate::words::scope_sentence;
use crate::{effects, exact, explain, notes, steps, table};

pub use failed::MAX_CONSOLES;

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
    whole(&keys(page), &sections(page), page)
}

/// Returns the page of comparisons of which each is for another architecture: the verdicts side by side, and then what
/// the page of each has.
pub fn architectures(all: &[Page<'_>]) -> String {
    let Some(first) = all.first() else { return String::new() };
    let comparisons: Vec<&Comparison> = all.iter().map(|it| it.comparison).collect();
    let blocks = crate::architectures::blocks(&comparisons).concat();
    let title = "Verdicts by architecture".to_owned();
    let mut sections = vec![Section { id: "architectures".to_owned(), title, level: 2, blocks }];
    for page in all {
        let arch = page.comparison.arch.name();
        sections.extend(self::sections(page).into_iter().map(|it| Section {
            id: format!("{arch}-{}", it.id),
            title: if it.title.is_empty() { it.title } else { format!("{arch}: {}", it.title) },
            ..it
        }));
    }
    sections.retain(|section| !section.blocks.is_empty());
    let keys = html! {
        @for page in all {
            p class="kicker" { (page.comparison.arch.name()) }
            (keys(page))
        }
    };
    whole(&keys, &sections, first)
}

/// Returns a page with these keys and sections.
fn whole(keys: &Markup, sections: &[Section], page: &Page<'_>) -> String {
    let name = &page.results.experiment.name;
    let body = html! {
        header {
            p class="kicker" { "faultline compare" }
            h1 { (excerpt(name)) }
            (keys)
        }
        nav aria-label="Sections" {
            @for Section { id, title, .. } in sections.iter().filter(|it| !it.title.is_empty()) {
                a href={ "#" (id) } { (short(title)) }
            }
        }
        main {
            @for Section { id, title, level, blocks } in sections {
                section id=(id) {
                    @if !title.is_empty() { h2 { (title) } }
                    (document::html(blocks, *level))
                }
            }
        }
        footer { p { "faultline " (escape(page.recipe.version)) ". This page is one file and loads nothing." } }
    };
    let title = format!("{}: faultline compare", excerpt(name));
    let style = format!("{BLOCKS}{}", explain::GRAPHS);
    let script = format!("{SCRIPT}{}", explain::SCRIPT);
    frame(&title, &style, Policy::Only(&script), &body.into_string())
}

/// A section of the page.
struct Section {
    /// The target of links to it.
    id: String,
    /// Its heading; empty if it has none.
    title: String,
    /// The level of the heading above its blocks.
    level: u8,
    blocks: Vec<Block>,
}

/// Returns the sections of the page that are not empty.
fn sections(page: &Page<'_>) -> Vec<Section> {
    let Page { comparison, plots, .. } = page;
    let section = |id: &str, title: &str, level, blocks: Vec<Block>| {
        let (id, title) = (id.to_owned(), title.to_owned());
        Section { id, title, level, blocks }
    };
    let states = notes::states_block(comparison).into_iter().collect();
    let series = steps::block(comparison).into_iter().collect();
    let verdicts = match comparison.points.is_empty() {
        true => section("verdicts", "Verdicts", 2, summary::blocks(comparison)),
        false => section(
            "verdicts",
            "Verdicts along the sweep",
            2,
            sweep::blocks(comparison, &page.results.experiment.name),
        ),
    };
    let mut all = vec![
        section("states", "", 2, states),
        verdicts,
        section("cause", "Where the changes are", 2, cause::blocks(page)),
        section("effects", "Effects of each setting", 3, effects::of_all(comparison)),
        section("series", "By patch", 2, series),
        section("split", "By source and build", 2, build::split(comparison)),
    ];
    let mut workloads: Vec<&str> = Vec::new();
    for name in comparison.tables.iter().map(|table| &table.workload) {
        if !workloads.contains(&&**name) {
            workloads.push(name);
        }
    }
    all.extend(workloads.into_iter().enumerate().map(|(number, name)| {
        let plots = plots.iter().find(|plots| plots.workload == *name);
        let blocks = workload::blocks(name, comparison, plots);
        section(&format!("w{number}"), &excerpt(name), 2, blocks)
    }));
    all.extend([
        section("details", "Machine and kernels", 2, details::blocks(comparison)),
        section("failed", "Failed boots", 2, failed::blocks(page)),
        section("reproduce", "How to reproduce", 3, reproduce::blocks(page)),
    ]);
    all.retain(|section| !section.blocks.is_empty());
    all
}

/// Returns the variants with the numbers of their boots, and what limits the meaning of all figures.
fn keys(page: &Page<'_>) -> Markup {
    let Page { comparison, .. } = page;
    let boot = boot_word(comparison);
    html! {
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
        (document::html(&cautions(comparison), 2))
    }
}

/// Returns what limits the meaning of all figures.
fn cautions(comparison: &Comparison) -> Vec<Block> {
    let emulated = comparison.emulated && comparison.mode == Mode::Measured;
    let emulated = emulated.then(|| Block::Sentence(Tone::Caution, table::EMULATED.to_owned()));
    let scope = scope_sentence(comparison).map(|it| Block::Sentence(Tone::Caution, it));
    exact::head(comparison, false).into_iter().chain(emulated).chain(scope).collect()
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
        Some((end, _)) => format!("{}..", &name[..end]),
        None => name,
    }
}
