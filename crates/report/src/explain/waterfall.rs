//! The change as a waterfall: a bar for the baseline's cost, a bar for what each of the largest
//! contributions adds or takes away, and a bar for the other variant's cost.

use compare::{Calls, Contribution, Explanation, Only, Section};
use maud::{Markup, html};

use super::cause::changed;
use super::view::{self, signed};
use crate::ascii::excerpt;
use crate::document::svg::{Scale, bottom_axis, px};
use crate::document::{Chart, figure};
use crate::words;

/// Most contributions that have a bar of their own.
const MOST: usize = 12;
/// Contributions smaller than this share of the largest one have no bar of their own.
const LEAST: f64 = 0.005;
/// Width of the drawing.
const WIDTH: f64 = 760.0;
/// Left and right end of the bars.
const BARS: [f64; 2] = [250.0, 650.0];
/// Height of a row.
const ROW: f64 = 19.0;
/// Most characters of a name; longer names are cut.
const LETTERS: usize = 33;
/// The axis does not begin at 0 if every sum is at least this share of the largest one.
const CUT: f64 = 0.6;

/// The class of the bars for the costs of the two sides.
const TOTAL: &str = "total";

/// A row of the drawing.
struct Bar {
    name: String,
    /// Its two ends, as costs. The bar of a total begins at 0.
    ends: [f64; 2],
    class: String,
    figure: String,
    /// The text that is shown when the pointer is on the bar.
    title: String,
}

/// Draws the waterfall of a section; `None` if neither side executed anything.
pub fn waterfall(explanation: &Explanation, section: &Section) -> Option<Chart> {
    let bars = bars(explanation, section);
    let sums = || bars.iter().map(|bar| bar.ends[1]);
    let (least, most) = (sums().fold(f64::MAX, f64::min), sums().fold(0.0, f64::max));
    if most <= 0.0 {
        return None;
    }
    let is_cut = least > CUT * most;
    let begin = if is_cut { least - 0.2 * (most - least).max(0.001 * most) } else { 0.0 };
    let scale = Scale::between([begin, most], BARS);
    let bottom = bars.len() as f64 * ROW + 3.0;
    let shapes = html! {
        (bottom_axis(&scale, 0.0, bottom))
        @for (number, bar) in bars.iter().enumerate() { (row(bar, number as f64 * ROW, &scale)) }
    };
    let figures: Vec<_> = bars.iter().map(|bar| format!("{} {}", bar.name, bar.figure)).collect();
    let note = if is_cut { "The axis does not begin at 0." } else { "" };
    Some(Chart {
        title: String::new(),
        beside: String::new(),
        label: format!(
            "{} of both sides, and what functions contribute to the change",
            explanation.cost.unit
        ),
        figures: figures.join("; "),
        note: note.to_owned(),
        class: "waterfall",
        size: [WIDTH, bottom + 16.0],
        shapes,
    })
}

/// Returns the bars, from the baseline's total to the other variant's.
fn bars(explanation: &Explanation, section: &Section) -> Vec<Bar> {
    let unit = &explanation.cost.unit;
    let total = |name: &str, value: f64| Bar {
        name: excerpt(name),
        ends: [0.0, value],
        class: TOTAL.to_owned(),
        figure: figure(&view::figure(value)),
        title: format!("{}: {} {unit}", excerpt(name), words::figure(value, 0)),
    };
    let mut bars = vec![total(&explanation.base.name, section.totals.all.base)];
    let mut sum = section.totals.all.base;
    let mut bar = |name: String, change: f64, class: String, title: String| {
        let ends = [sum, sum + change];
        sum = ends[1];
        Bar { name, ends, class, figure: figure(&signed(change, 0)), title }
    };
    let moved = &section.contributions[..changed(section)];
    let size = |it: &Contribution| explanation.instructions(it.change);
    let least = moved.first().map_or(0.0, |it| LEAST * size(it).abs());
    let shown = moved.iter().take(MOST).take_while(|it| size(it).abs() >= least);
    bars.extend(shown.clone().map(|it| {
        let name = excerpt(&it.subject.to_string());
        let title = format!(
            "{name}{}: {} to {} {unit} of its own",
            note(it),
            words::figure(it.instructions.base, 0),
            words::figure(it.instructions.new, 0)
        );
        bar(name, size(it), class(it), title)
    }));
    let others = &moved[shown.count()..];
    if !others.is_empty() {
        let [more, fewer] = [f64::max, f64::min]
            .map(|part: fn(f64, f64) -> f64| others.iter().map(|it| part(size(it), 0.0)).sum());
        let title = format!("{} and {}", words::signed(more, 0), words::signed(fewer, 0));
        let name = format!("{} more", others.len());
        bars.push(bar(name, more + fewer, sign(more + fewer).to_owned(), title));
    }
    bars.push(total(&explanation.new.name, section.totals.all.new));
    bars
}

fn sign(change: f64) -> &'static str {
    if change < 0.0 { "fewer" } else { "more" }
}

/// Returns the class of a contribution's bar. It is hollow if only one side executes the function, and pale
/// if the change may be luck.
fn class(it: &Contribution) -> String {
    let hollow = if only(it).is_some() { " hollow" } else { "" };
    let pale = if it.instructions.beyond_luck() == Some(false) { " pale" } else { "" };
    format!("{}{hollow}{pale}", sign(it.instructions.change()))
}

fn note(it: &Contribution) -> &'static str {
    match only(it) {
        Some(Only::Base) if it.is_in_both() => " (only before)",
        Some(Only::New) if it.is_in_both() => " (only now)",
        Some(Only::Base) => " (gone)",
        Some(Only::New) => " (new)",
        None => "",
    }
}

fn only(it: &Contribution) -> Option<Only> {
    it.calls.as_ref().and_then(|calls: &Calls| calls.only)
}

fn row(bar: &Bar, top: f64, scale: &Scale) -> Markup {
    let [from, to] = bar.ends.map(|end| scale.at(end).max(BARS[0]));
    // The link starts where the bar above ends. For the last total that is the total itself.
    let before = if bar.class == TOTAL { to } else { from };
    let middle = top + 0.5 * ROW;
    html! {
        g {
            title { (bar.title) }
            text class="name" x=(px(BARS[0] - 8.0)) y=(px(middle + 4.0)) text-anchor="end" {
                (cut(&bar.name))
            }
            rect class=(bar.class) x=(px(from.min(to))) y=(px(top + 3.0))
                width=(px((to - from).abs().max(1.0))) height=(px(ROW - 5.0)) {}
            @if top > 0.0 { path class="link" d={ "M" (px(before)) " " (px(top - 2.0)) "v5" } {} }
            text x=(px(WIDTH - 4.0)) y=(px(middle + 4.0)) text-anchor="end" { (bar.figure) }
        }
    }
}

/// Cuts a name to the available room.
fn cut(name: &str) -> String {
    match name.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}..", &name[..end - 2]),
        None => name.to_owned(),
    }
}
