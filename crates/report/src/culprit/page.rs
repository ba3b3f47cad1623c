//! The findings as a page: the answer, the figure of each commit, the steps and the commits tried.

use culprit::{Culprit, Findings, Tried};
use maud::html;

use super::{answer, blocks, in_order, kind, of_hundred, problem, value};
use crate::ascii::escape;
use crate::document::frame::{BLOCKS, Policy, frame};
use crate::document::svg::{Path, Scale, bottom_axis, left_axis, px};
use crate::document::{self, Block, Chart, note, part};

const STYLE: &str = include_str!("page.css");
/// Width of a drawing.
const WIDTH: f64 = 760.0;
/// Left and right end of a plot.
const ACROSS: [f64; 2] = [64.0, 748.0];
/// Bottom and top of the plot of figures.
const DOWN: [f64; 2] = [222.0, 12.0];
/// Bottom and top of the plot of probabilities.
const LIKELY: [f64; 2] = [92.0, 8.0];
/// Height of the values of the axis below a plot.
const BELOW: f64 = 18.0;

/// Returns the findings as an HTML page, which loads nothing.
pub fn culprit_page(found: &Findings) -> String {
    let [good, bad] = found.names.each_ref().map(|name| escape(name));
    let title = format!("{}: {good} to {bad}", escape(&found.workload));
    let drawn = drawing(found).into_iter().chain(probabilities(found)).collect();
    // The first sentence is already the heading.
    let said = blocks(found, drawn).concat();
    let body = html! {
        header {
            p class="kicker" { "faultline culprit" }
            h1 { (escape(&answer(found))) }
        }
        (document::html(&said[1..], 1))
    };
    let style = format!("{BLOCKS}{STYLE}");
    frame(&title, &style, Policy::Nothing, &body.into_string())
}

/// Draws the figures and the level of each commit that was tried, in the order of the history.
fn drawing(found: &Findings) -> Option<Block> {
    let tried = in_order(found);
    let figures = tried.iter().flat_map(|tried| tried.figures.iter().copied());
    let bars = tried.iter().filter_map(|tried| interval(tried)).flatten();
    let down = Scale::around(figures.chain(bars), DOWN)?;
    let across = across(found);
    let x = |tried: &Tried| across.at(tried.commit.place as f64);
    let points = line(found, &tried);
    let mut path = Path::default();
    for (number, [place, level]) in points.into_iter().enumerate() {
        let point = [across.at(place), down.at(level)];
        if number == 0 { path.move_to(point) } else { path.line_to(point) }
    }
    let place = |culprit: &Culprit| {
        let places = || culprit.commits.iter().map(|(commit, _)| commit.place);
        let ends = [places().min().unwrap_or(0), places().max().unwrap_or(0)];
        ends.map(|place| across.at(place as f64))
    };
    let shapes = html! {
        (left_axis(&down, ACROSS[0], ACROSS[1]))
        (bottom_axis(&across, DOWN[1], DOWN[0]))
        @for culprit in &found.culprits {
            @let [begin, end] = place(culprit);
            rect class="culprit" x=(px(begin - 1.5)) y=(px(DOWN[1])) width=(px(end - begin + 3.0))
                height=(px(DOWN[0] - DOWN[1])) {
                title { (super::name(culprit)) }
            }
        }
        path class="line g0" d=(path.d()) {}
        @for tried in &tried {
            @if let Some([least, most]) = interval(tried) {
                @let [low, high] = [least, most].map(|end| px(down.at(end)));
                path class="interval" d={ "M" (px(x(tried) - 3.0)) " " (low) "h6m-3 0V" (high) "m-3 0h6" } {
                    title { (tried.commit.short()) ": " (value(least)) " to " (value(most)) }
                }
            }
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
    };
    let mut how = "Each dot is a boot. Left is the good end, right the bad end; numbers are places between them."
        .to_owned();
    if tried.iter().any(|tried| interval(tried).is_some()) {
        let (share, by) = if found.exact { ("99.9", "luck") } else { ("95", "noise") };
        how += &format!(
            " Vertical lines are {share} % intervals of the levels, by the {by} of all boots."
        );
    }
    if !found.culprits.is_empty() {
        how += " Bars are the culprits.";
    }
    if found.tried.iter().any(|tried| tried.problem.is_some()) {
        how += " Crosses have no figure.";
    }
    let levels =
        tried.iter().filter_map(|it| Some(format!("{} {}", it.commit.short(), value(it.level()?))));
    let chart = Chart {
        title: String::new(),
        beside: String::new(),
        label: format!("The figure of each {} that was tried", kind(found)),
        figures: levels.collect::<Vec<_>>().join("; "),
        note: String::new(),
        class: "history",
        size: [WIDTH, DOWN[0] + BELOW],
        shapes,
    };
    Some(part(found.signal.clone(), [Block::Chart(chart), note(how)]))
}

/// Returns the points of the line. In measured mode, where levels have noise, the line goes from step to
/// step; otherwise it goes through the levels that were read.
fn line(found: &Findings, tried: &[&Tried]) -> Vec<[f64; 2]> {
    // A step is drawn at the first commit that can be its culprit.
    let steps = found.culprits.iter().filter_map(|culprit| {
        let place = culprit.commits.first()?.0.place as f64;
        Some(culprit.levels.map(|level| [place, level]))
    });
    let mut points: Vec<[f64; 2]> = steps.flatten().collect();
    match (found.exact, &points[..]) {
        (false, [[_, first], .., [_, last]]) => {
            let ends = [[0.0, *first], [found.changes() as f64, *last]];
            points.extend(ends);
        }
        _ => points.extend(
            tried.iter().filter_map(|tried| Some([tried.commit.place as f64, tried.level()?])),
        ),
    }
    // The sort is stable, so the two levels of a step stay in order.
    points.sort_by(|one, other| one[0].total_cmp(&other[0]));
    points
}

/// Returns the scale of the places of commits.
fn across(found: &Findings) -> Scale {
    Scale::between([0.0, found.changes() as f64], ACROSS)
}

/// Returns the ends of the interval of a level; `None` if either is not known.
fn interval(tried: &Tried) -> Option<[f64; 2]> {
    let (level, reach) = (tried.level()?, tried.reach?);
    Some([level - reach, level + reach])
}

/// Draws the probability of each commit to be a step, in measured mode.
fn probabilities(found: &Findings) -> Option<Block> {
    if found.posterior.is_empty() {
        return None;
    }
    let across = across(found);
    let down = Scale::between([0.0, 1.0], LIKELY);
    let width = (0.8 * (ACROSS[1] - ACROSS[0]) / found.changes() as f64).clamp(1.0, 12.0);
    let commits = || found.posterior.iter().enumerate().filter(|(_, share)| **share >= 0.001);
    let shapes = html! {
        (left_axis(&down, ACROSS[0], ACROSS[1]))
        (bottom_axis(&across, LIKELY[1], LIKELY[0]))
        @for (place, share) in commits() {
            @let top = down.at(*share);
            rect class="likely" x=(px(across.at(place as f64) - width / 2.0)) y=(px(top)) width=(px(width))
                height=(px(LIKELY[0] - top)) {
                title { (kind(found)) " " (place) ": " (of_hundred(*share)) }
            }
        }
    };
    let figures = commits().map(|(place, share)| format!("{place}: {}", of_hundred(*share)));
    let chart = Chart {
        title: String::new(),
        beside: String::new(),
        label: format!("How likely each {} is a step", kind(found)),
        figures: figures.collect::<Vec<_>>().join("; "),
        note: String::new(),
        class: "history",
        size: [WIDTH, LIKELY[0] + BELOW],
        shapes,
    };
    let none =
        (found.commits > 0).then(|| note("Commits that change nothing that is built have none."));
    let blocks: Vec<Block> = [Block::Chart(chart)].into_iter().chain(none).collect();
    Some(part(format!("Probability of each {} to be the step", kind(found)), blocks))
}
