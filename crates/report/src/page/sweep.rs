//! The verdicts along a sweep, with a chart and a table for each figure.

use compare::{Comparison, PointVerdicts, verdicts_by_point};
use maud::{Markup, html};

use super::judgement::{self, Judgement};
use super::short;
use crate::ascii::{excerpt, shell_word};
use crate::document::svg::{GROUPS, Scale, WIDTH, left_axis, marks, px};
use crate::document::{self, Block, Chart, Tone, note, part};
use crate::forest::{Gain, gain_word, margin, reach};
use crate::sweep;
use crate::words::decimal;

/// The left and right ends of the chart's points.
const ACROSS: [f64; 2] = [40.0, WIDTH - 8.0];
/// The bottom and top ends of the chart's gains.
const UPWARDS: [f64; 2] = [150.0, 6.0];
/// Approximate width of a character below the chart.
const LETTER: f64 = 5.6;
/// Most characters of a point's name below the chart.
const MAX_LETTERS: usize = 24;
/// The distance between the marks of two variants at a point.
const APART: f64 = 7.0;
/// The size of a mark.
const MARK: f64 = 3.2;

/// Lays out the changes of verdicts along the sweep, then a chart and a table for each figure.
pub fn blocks(comparison: &Comparison, experiment: &str) -> Vec<Block> {
    let all = verdicts_by_point(&comparison.points);
    let mut figures: Vec<(&str, &str)> = Vec::new();
    for it in &all {
        if !figures.contains(&(it.workload, it.metric)) {
            figures.push((it.workload, it.metric));
        }
    }
    let gains = all.iter().flat_map(judgements).flatten();
    let reach = reach(gains.filter_map(|it| it.gain()));
    let several = figures.iter().any(|it| it.0 != figures[0].0);
    let parts = figures.iter().map(|&(workload, metric)| {
        let own = all.iter().filter(|it| (it.workload, it.metric) == (workload, metric));
        let own: Vec<&PointVerdicts<'_>> = own.collect();
        let workload = if several { format!("{workload} ") } else { String::new() };
        part(format!("{workload}{metric}"), of_figure(&own, comparison, reach))
    });
    let mut blocks: Vec<Block> = sweep::turns(&all).into_iter().map(document::lead).collect();
    blocks.push(note(sweep::heading(comparison) + "."));
    blocks.extend(parts);
    blocks.extend(sweep::unmet(comparison));
    if let Some(first) = comparison.points.first() {
        let [name, point] = [experiment, &first.name].map(|it| shell_word(it.as_bytes()));
        let command = format!("faultline compare {name} --point {point} --format html");
        blocks.push(note(format!("All figures of a point, such as the first: `{command}`.")));
    }
    blocks
}

/// Returns the judgement at each point; `None` where the point has no such figure.
fn judgements<'a>(along: &PointVerdicts<'a>) -> Vec<Option<Judgement<'a>>> {
    let at = |place: &compare::PointFigure<'a>| {
        let (comparison, found) = (&place.point.comparison, place.found?);
        let compare::PointVerdict { table, row, column, .. } = found;
        Some(Judgement { comparison, table, row, column, point: Some(&place.point.name) })
    };
    along.points.iter().map(at).collect()
}

/// Lays out the chart and the table of a figure, and a sentence for each point without the figure.
fn of_figure(own: &[&PointVerdicts<'_>], comparison: &Comparison, reach: f64) -> Vec<Block> {
    let lines: Vec<Judgement<'_>> = own.iter().flat_map(|it| judgements(it)).flatten().collect();
    let unknown = own.iter().flat_map(|along| {
        let unknown = along.points.iter().filter(|place| place.found.is_none());
        unknown.map(|place| format!("{}: {}", place.point.name, sweep::said(place)))
    });
    let chart = chart(own, comparison, reach);
    let unknown = unknown.map(|said| Block::Sentence(Tone::Bad, said));
    chart.into_iter().chain(judgement::table(&lines, reach)).chain(unknown).collect()
}

/// Draws the gain of each variant at each point, with its interval or its luck floor.
fn chart(own: &[&PointVerdicts<'_>], comparison: &Comparison, reach: f64) -> Option<Block> {
    let first = own.first()?;
    let gains: Vec<Vec<Option<Gain>>> = own
        .iter()
        .map(|it| judgements(it).iter().map(|it| it.as_ref()?.gain()).collect())
        .collect();
    let margin = margin(&comparison.points[0].comparison);
    let ends = gains.iter().flatten().flatten().flat_map(|it| [it.low, it.gain, it.high]);
    let ends = ends.map(|end| end.clamp(-reach, reach)).chain([-margin, 0.0, margin]);
    let scale = Scale::around(ends, UPWARDS)?;
    let names: Vec<String> = first.points.iter().map(|place| label(&place.point.name)).collect();
    let step = (ACROSS[1] - ACROSS[0]) / names.len() as f64;
    let at = |point: usize| ACROSS[0] + (point as f64 + 0.5) * step;
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0) as f64 * LETTER;
    let is_slanted = longest > step - 2.0;
    let height = UPWARDS[0] + if is_slanted { 16.0 + 0.6 * longest } else { 16.0 };
    let word = gain_word(&comparison.points[0].comparison);
    let shapes = html! {
        (left_axis(&scale, ACROSS[0], ACROSS[1]))
        @if margin > 0.0 {
            rect class="phase" x=(px(ACROSS[0])) y=(px(scale.at(margin)))
                width=(px(ACROSS[1] - ACROSS[0]))
                height=(px(scale.at(-margin) - scale.at(margin))) {}
        }
        path class="base" d={ "M" (px(ACROSS[0])) " " (px(scale.at(0.0))) "H" (px(ACROSS[1])) } {}
        g class="ticks across" {
            @for (point, name) in names.iter().enumerate() {
                @let (x, y) = (px(at(point)), px(UPWARDS[0] + 11.0));
                @if is_slanted {
                    text x=(x) y=(y) text-anchor="end"
                        transform={ "rotate(-35 " (x) " " (y) ")" } { (name) }
                } @else {
                    text x=(x) y=(y) text-anchor="middle" { (name) }
                }
            }
        }
        @for (number, (along, gains)) in own.iter().zip(&gains).enumerate() {
            @let aside = APART * (number as f64 - (own.len() - 1) as f64 / 2.0);
            (line(group(along), gains, &scale, &|point| at(point) + aside))
        }
    };
    let figures = own.iter().zip(&gains).map(|(along, gains)| {
        let gains = gains.iter().zip(&first.points).filter_map(|(gain, place)| {
            Some(format!(
                "{} {} %",
                excerpt(&place.point.name),
                decimal(Some(gain.as_ref()?.gain), 2)
            ))
        });
        format!("{}: {}", short(along.variant), gains.collect::<Vec<_>>().join(", "))
    });
    let chart = Chart {
        title: format!("{word} in percent by {}", key_of(&first.points[0].point.name)),
        beside: String::new(),
        label: format!("{word} of {} at each point", excerpt(first.metric)),
        figures: figures.collect::<Vec<_>>().join("; "),
        note: String::new(),
        class: "along",
        size: [WIDTH, height],
        shapes,
    };
    let keys = own.iter().map(|along| (group(along), short(along.variant)));
    Some(Block::Charts(keys.collect(), vec![chart]))
}

/// Draws the line of a variant through its points, and the interval at each point.
fn line(group: usize, gains: &[Option<Gain>], scale: &Scale, at: &dyn Fn(usize) -> f64) -> Markup {
    let [bottom, top] = UPWARDS;
    let y = |gain: f64| scale.at(gain).clamp(top, bottom);
    let known: Vec<(f64, &Gain)> = gains
        .iter()
        .enumerate()
        .filter_map(|(point, gain)| Some((at(point), gain.as_ref()?)))
        .collect();
    let path = known.iter().enumerate().map(|(number, (x, gain))| {
        let word = if number == 0 { "M" } else { "L" };
        format!("{word}{} {}", px(*x), px(y(gain.gain)))
    });
    let bars = known.iter().map(|(x, gain)| {
        let (x, cap) = (px(*x), px(x - 3.0));
        let [low, high] = [gain.low, gain.high].map(|end| px(y(end)));
        format!("M{x} {low}V{high}M{cap} {low}h6M{cap} {high}h6")
    });
    html! {
        path class={ "line faint g" (group % GROUPS) } d=(path.collect::<String>()) {}
        path class={ "bar s" (group % GROUPS) } d=(bars.collect::<String>()) {}
        (marks(group, known.iter().map(|(x, gain)| [*x, y(gain.gain)]), MARK))
    }
}

/// Returns the group of a variant, which determines its colour and shape. It is the variant's column.
fn group(along: &PointVerdicts<'_>) -> usize {
    along.points.iter().find_map(|place| Some(place.found?.column)).unwrap_or(1)
}

/// Returns the key that differs from point to point, such as `memory`.
fn key_of(point: &str) -> String {
    let (key, _) = point.split_once('=').unwrap_or((point, ""));
    excerpt(key.strip_prefix("no ").unwrap_or(key))
}

/// Returns the value of a point as it is printed below the chart.
fn label(point: &str) -> String {
    let value = point.split_once('=').map_or(point, |(_, value)| value);
    let value = excerpt(value);
    match value.char_indices().nth(MAX_LETTERS) {
        Some((end, _)) => format!("{}..", &value[..end]),
        None => value,
    }
}
