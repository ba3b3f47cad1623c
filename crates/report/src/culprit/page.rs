//! The findings as a page: the answer, the figure along the commits, the steps and the commits tried.

use culprit::{Culprit, Findings, Tried};
use maud::{Markup, html};

use super::{
    answer, effort, in_order, kind, of_culprit, parts, percent, problem, reference, rest, share,
    subjects, value,
};
use crate::ascii::escape;
use crate::document::{Policy, document};
use crate::page;
use crate::page::svg::{Path, Scale, bottom_axis, left_axis, px};

const STYLE: &str = include_str!("page.css");
/// Size of the drawing, and where the plot lies in it.
const SIZE: [f64; 2] = [760.0, 260.0];
const ACROSS: [f64; 2] = [64.0, 748.0];
const DOWN: [f64; 2] = [222.0, 12.0];

/// The findings as an HTML page, which loads nothing.
pub fn culprit_page(found: &Findings) -> String {
    let [good, bad] = found.names.each_ref().map(|name| escape(name));
    let title = format!("{}: {good} to {bad}", escape(&found.workload));
    let lines = answer(found);
    let (head, lead) = lines.split_once('\n').unwrap_or((&lines, ""));
    let notes = [rest(found), parts(found), share(found), reference(found), effort(found)];
    let body = html! {
        header {
            h1 { (head) }
            p class="lead" { (lead) }
        }
        (drawing(found))
        @for culprit in &found.culprits {
            pre class="step" { (of_culprit(culprit, found)) }
        }
        @for note in notes.iter().map(|note| note.trim()).filter(|note| !note.is_empty()) {
            p class="note" { (note) }
        }
        (table(found))
    };
    let style = format!("{}{STYLE}", page::STYLE);
    document(&title, &style, Policy::Nothing, &body.into_string())
}

/// The levels of the commits that were tried, in the order of the history.
fn drawing(found: &Findings) -> Markup {
    let tried = in_order(found);
    let levels = tried.iter().flat_map(|tried| tried.figures.iter().copied());
    let Some(down) = Scale::around(levels, DOWN) else { return html! {} };
    let across = Scale::between([0.0, (found.commits + found.options) as f64], ACROSS);
    let x = |tried: &Tried| across.at(tried.commit.place as f64);
    // A step is drawn at its culprit, wherever it was noticed.
    let mut points: Vec<[f64; 2]> = tried
        .iter()
        .filter_map(|tried| Some([tried.commit.place as f64, tried.level()?]))
        .collect();
    for culprit in &found.culprits {
        let Some((first, _)) = culprit.commits.first() else { continue };
        points.extend(culprit.levels.map(|level| [first.place as f64, level]));
    }
    points.sort_by(|one, other| one[0].total_cmp(&other[0]));
    let mut line = Path::default();
    for (number, [place, level]) in points.into_iter().enumerate() {
        let point = [across.at(place), down.at(level)];
        if number == 0 { line.move_to(point) } else { line.line_to(point) }
    }
    let place = |culprit: &Culprit| {
        let places = || culprit.commits.iter().map(|(commit, _)| commit.place);
        let ends = [places().min().unwrap_or(0), places().max().unwrap_or(0)];
        ends.map(|place| across.at(place as f64))
    };
    html! {
        figure class="history" {
            svg viewBox={ "0 0 " (px(SIZE[0])) " " (px(SIZE[1])) } role="img" {
                title { "The figure of each " (kind(found)) " that was tried" }
                (left_axis(&down, ACROSS[0], ACROSS[1]))
                (bottom_axis(&across, DOWN[1], DOWN[0]))
                @for culprit in &found.culprits {
                    @let [begin, end] = place(culprit);
                    rect class="culprit" x=(px(begin - 1.5)) y=(px(DOWN[1])) width=(px(end - begin + 3.0))
                        height=(px(DOWN[0] - DOWN[1])) {
                        title { (super::name(culprit)) }
                    }
                }
                path class="line g0" d=(line.d()) {}
                @for tried in &tried {
                    @for figure in &tried.figures {
                        circle class="boot" cx=(px(x(tried))) cy=(px(down.at(*figure))) r="3" {
                            title { (tried.commit.short()) ": " (value(*figure)) }
                        }
                    }
                    @if tried.problem.is_some() {
                        path class="lost" d={ "M" (px(x(tried) - 4.0)) " " (px(DOWN[0] - 8.0)) "l8 8m-8 0l8-8" } {
                            title { (tried.commit.short()) ": " (problem(tried)) }
                        }
                    }
                }
            }
            figcaption {
                small {
                    "Each dot is a boot. Left is the good end, right the bad end; numbers are places between them. "
                    @if !found.culprits.is_empty() { "Bars are the culprits. " }
                    @if found.tried.iter().any(|tried| tried.problem.is_some()) {
                        "Crosses have no figure."
                    }
                }
            }
        }
    }
}

fn table(found: &Findings) -> Markup {
    html! {
        table {
            caption { "What was tried" }
            thead {
                tr {
                    @for head in ["place", kind(found), "level", "boots", "left", subjects(found)] {
                        th class="head" { (head) }
                    }
                }
            }
            tbody {
                @for tried in in_order(found) {
                    tr {
                        td { (tried.commit.place) }
                        th scope="row" { code { (tried.commit.short()) } }
                        td { (tried.level().map_or("\u{2013}".into(), value)) }
                        td { (tried.figures.len()) }
                        td { (tried.left) }
                        td class="text" { (escape(&tried.commit.subject)) " " small { (problem(tried)) } }
                    }
                }
            }
        }
        @if let Some([good, bad]) = found.levels() {
            p class="note" { "From the good to the bad end: " (percent([good, bad])) "." }
        }
    }
}
