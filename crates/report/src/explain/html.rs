//! An explanation as one self-contained page of HTML: what happened, in words and graphs, then the tables.

use compare::{Explanation, Headline, Paths, SampledDifference, Section};
use maud::{Markup, html};

use super::cause;
use super::flame::{self, Widths};
use super::headline;
use super::view::{self, TextTable};
use super::waterfall::waterfall;
use super::{SCRIPT, STYLE, sampled};
use crate::ascii::{escape, excerpt};
use crate::document::figure;
use crate::document::frame::{Policy, frame};
use crate::document::markup::sentence;
use crate::page;

/// Rows of each ranking.
const MAX_ROWS: usize = 30;

/// The attribution of the difference as a page. For the measured phases or for `phase`: a waterfall of the
/// contributions, a flame graph of `paths`, which must be of the same phases, and the rankings. Then the
/// rankings of everything else. Sampled profiles of the same variants stand below, with their own paths. Every name is
/// escaped; nothing is loaded.
pub fn explain_html(
    explanation: &Explanation,
    headlines: &[Headline],
    paths: &Paths,
    phase: Option<&str>,
    beside: Option<(&SampledDifference, &Paths)>,
) -> String {
    let all = explanation.section(None);
    let body = html! {
        header {
            p class="kicker" { "faultline explain" }
            h1 { (view::title(explanation)) }
        }
        main {
            @match all.map(|all| (all, explanation.section(phase))) {
                None => p { (view::nothing(explanation)) }
                Some((_, None)) => p { (view::no_phase(explanation, phase.unwrap_or_default())) }
                Some((all, Some(section))) => {
                    @for line in headline::headlines(headlines, phase) { p class="lead" { (line) } }
                    @if let Some(line) = cause::causes(section) { p class="lead" { (line) } }
                    @if let Some(line) = view::unjudged(explanation, phase) { p class="note" { (sentence(&line)) } }
                    (contributions(explanation, section))
                    (graphs(explanation, headlines, paths, section))
                    (table(&view::totals(explanation, usize::MAX)))
                    (rankings(explanation, section))
                    @let others = std::iter::once(all).chain(&explanation.phases);
                    @for other in others.filter(|other| other.phase != section.phase) {
                        (folded(explanation, other))
                    }
                    @for note in view::notes(explanation) { p class="note" { (sentence(&note)) } }
                }
            }
            @if let Some((difference, paths)) = beside {
                h2 { "Sampled: " (sampled::title(difference)) }
                (sampled::section(difference, paths))
            }
        }
    };
    let name = format!("faultline explain {}", escape(&explanation.workload));
    let style = format!("{}{STYLE}", page::STYLE);
    frame(&name, &style, Policy::Only(SCRIPT), &body.into_string())
}

/// The contributions of a section, drawn.
fn contributions(explanation: &Explanation, section: &Section) -> Markup {
    let [base, new] = names(explanation);
    html! {
        @if let Some(drawing) = waterfall(explanation, section) {
            h2 { "From " (base) " to " (new) " in " (covered(explanation, section)) ": instructions by function" }
            p class="note" {
                "A bar is the change of a function's own instructions, without those of what it \
                 calls. Where work moved from a function into others, its bar points back and \
                 theirs point forward. Hollow: only one side executes the function; it may be \
                 new, gone, renamed, inlined or split off. Pale: the change may be luck."
            }
            (drawing)
        }
    }
}

fn rankings(explanation: &Explanation, section: &Section) -> Markup {
    html! {
        (table(&view::per_entry(explanation, section, MAX_ROWS)))
        (table(&view::contributions(explanation, section, MAX_ROWS)))
        (table(&view::counters(explanation, section, MAX_ROWS)))
        @for caution in view::cautions(explanation, section) { p { (caution) } }
    }
}

/// A section that was not asked for, folded.
fn folded(explanation: &Explanation, section: &Section) -> Markup {
    html! {
        details {
            summary { "In " (covered(explanation, section)) }
            (contributions(explanation, section))
            (rankings(explanation, section))
        }
    }
}

/// What a section covers.
fn covered(explanation: &Explanation, section: &Section) -> String {
    match &section.phase {
        Some(phase) => format!("phase {}", view::phase_name(phase)),
        None if explanation.measured.is_some() => "the measured phases".to_owned(),
        None => "all phases".to_owned(),
    }
}

/// A table. The first column says what a line is about, and stays in sight while figures are scrolled.
pub fn table(table: &TextTable) -> Markup {
    html! {
        @if !table.title.is_empty() { h2 { (table.title) } }
        @if !table.rows.is_empty() {
            div class="table" {
                table {
                    @if let Some((of, figures)) = table.head.split_last() {
                        thead {
                            tr {
                                th scope="col" { (of) }
                                @for head in figures { th scope="col" { (head) } }
                            }
                        }
                    }
                    tbody {
                        @for (of, figures) in table.rows.iter().filter_map(|row| row.split_last()) {
                            tr {
                                th scope="row" { (of) }
                                @for cell in figures { td { (figure(cell)) } }
                            }
                        }
                    }
                }
            }
        }
        @for foot in &table.foot { p class="note" { (foot) } }
    }
}

/// The flame graph by the widths of either side.
fn graphs(
    explanation: &Explanation,
    headlines: &[Headline],
    paths: &Paths,
    section: &Section,
) -> Markup {
    let [base, new] = names(explanation);
    let floor = section.totals.kernel.floor.unwrap_or(0.0);
    let phase = section.phase.as_deref();
    let asked = headlines.iter().filter(|it| phase.is_none_or(|phase| it.phase == phase));
    let named: Vec<&str> = asked.filter_map(|it| Some(&*it.function.as_ref()?.name)).collect();
    let graph = |widths, of: &str| {
        let title = format!("Flame graph, as wide as the instructions of {of}");
        html! {
            @match flame::differential(paths, widths, floor, &named, &title) {
                Some(graph) => (graph),
                None => p { "Nothing was executed." }
            }
        }
    };
    html! {
        h2 { "Who calls whom in " (covered(explanation, section)) ": a differential flame graph" }
        p class="note" {
            "A frame is as wide as the instructions that " (new) " executes in it and in what it calls. \
             Its colour is their change: " span class="key more8" { "more" } " or "
            span class="key fewer8" { "fewer" } " than " (base) ", the larger the deeper. \
            Instructions that only moved count as "
            span class="key same" { "no change" }
            ": to another call path of the same function, between a function and its callees, or \
             between callees of which one is new or gone."
            @if !named.is_empty() { " Framed: the functions named at the top." }
        }
        @if !paths.followed {
            p {
                (sentence("Not all boots recorded call paths, so functions stand alone. With \
                           `stacks = true` boots record them, and the graph shows who calls whom."))
            }
        }
        (graph(Widths::New, &new))
        details {
            summary { "As wide as the instructions of " (base) ", to see what " (new) " no longer executes" }
            (graph(Widths::Base, &base))
        }
    }
}

/// The two sides.
fn names(explanation: &Explanation) -> [String; 2] {
    [&explanation.base, &explanation.new].map(|side| excerpt(&side.name))
}
