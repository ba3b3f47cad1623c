//! A figure of a variant compared with the baseline's, as a line of a table with a little plot.

use compare::{Comparison, Evidence, NoEvidence, Row, Statistic, Table, Verdict};
use maud::{Markup, html};
use model::{Better, Mode, count};

use super::short;
use super::svg::{Scale, px};
use crate::ascii::excerpt;
use crate::document::figure;
use crate::exact;
use crate::table::signed;
use crate::verdicts;
use crate::words::{decimal, in_percent, more_of, name, short as rounded};

/// Size of the little plot of a gain.
const FOREST: [f64; 2] = [200.0, 16.0];
/// The range of the little plots, as a multiple of the median range, so that one huge change does not
/// flatten the others.
const REACH: f64 = 5.0;

/// A figure of a variant compared with the baseline's.
#[derive(Clone, Copy)]
pub struct Judgement<'a> {
    pub comparison: &'a Comparison,
    pub table: &'a Table,
    pub row: &'a Row,
    pub column: usize,
    /// The point of a sweep, which then stands in place of the metric.
    pub point: Option<&'a str>,
}

/// A gain in percent and its uncertainty, positive where better. In exact mode it is the change, positive
/// where there is more.
#[derive(Clone, Copy)]
pub struct Gain {
    pub gain: f64,
    pub low: f64,
    pub high: f64,
}

impl Judgement<'_> {
    pub fn verdict(&self) -> Option<Verdict> {
        self.row.verdict(self.column)
    }

    fn evidence(&self) -> Option<Evidence> {
        self.row.evidence(self.column)
    }

    fn value(&self, column: usize) -> Option<f64> {
        self.row.value(column)
    }

    /// The verdict in words, as in texts.
    pub fn said(&self) -> String {
        let verdict = self.verdict().unwrap_or(Verdict::Undecided);
        let evidence = verdicts::evidence(self.row, verdict, self.comparison, self.column);
        let name = name(self.comparison, self.table, self.row);
        format!("{} {name} {}", verdict.name(), evidence.trim_start())
    }

    pub fn is_known(&self) -> bool {
        self.value(0).is_some() && self.value(self.column).is_some()
    }

    /// The gain with its interval of 95 %, or the change with its luck floor.
    pub fn gain(&self) -> Option<Gain> {
        if let Some((evidence, better)) = self.evidence().zip(self.row.better) {
            let (gain, [low, high]) = (evidence.gain(better)?, evidence.gains(better)?);
            return Some(Gain { gain, low, high });
        }
        let gain = match self.comparison.mode {
            Mode::Measured => self.row.gain(self.column)?,
            Mode::Exact => exact::percent(self.row, self.column)?,
        };
        let floor = exact::floor_percent(self.row, self.column).unwrap_or(0.0);
        Some(Gain { gain, low: gain - floor, high: gain + floor })
    }
}

/// The range of the little plots to both sides, in percent.
pub fn reach(gains: impl Iterator<Item = Gain>) -> f64 {
    let ends = gains.map(|it| it.low.abs().max(it.high.abs())).filter(|end| end.is_finite());
    let mut ends: Vec<f64> = ends.collect();
    ends.sort_by(f64::total_cmp);
    let middle = ends.get(ends.len() / 2).copied().unwrap_or(1.0);
    let most = ends.last().copied().unwrap_or(1.0);
    most.min(REACH * middle).max(1.0)
}

/// A sign with the same meaning as the word, for quick reading.
pub fn symbol(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Regression => "\u{25bc}",
        Verdict::Improvement => "\u{25b2}",
        Verdict::Same => "=",
        Verdict::Undecided => "?",
    }
}

pub fn table(judgements: &[Judgement<'_>], reach: f64) -> Markup {
    let Some(Judgement { comparison, point, .. }) = judgements.first() else { return html! {} };
    let several = comparison.variants.len() > 2;
    let first = if point.is_some() { "Point" } else { "Metric" };
    html! {
        div class="table" {
            table class="summary" role="table" {
                thead role="rowgroup" {
                    tr role="row" {
                        th scope="col" role="columnheader" { (first) }
                        @if several { th scope="col" role="columnheader" { "Variant" } }
                        th scope="col" role="columnheader" class="value" { "Baseline" }
                        th scope="col" role="columnheader" class="value" { "New" }
                        th scope="col" role="columnheader" { (gain_word(comparison)) }
                        th scope="col" role="columnheader" { (uncertainty_of(comparison)) }
                        th scope="col" role="columnheader" class="plot" { (ruler(reach, comparison)) }
                        th scope="col" role="columnheader" { "Verdict" }
                    }
                }
                @for of_workload in judgements.chunk_by(|a, b| a.table.workload == b.table.workload) {
                    tbody role="rowgroup" {
                        @for judgement in of_workload { (line(judgement, several, reach)) }
                    }
                }
            }
        }
    }
}

fn line(it: &Judgement<'_>, several: bool, reach: f64) -> Markup {
    let comparison = it.comparison;
    let Row { unit, better, decimals, .. } = it.row;
    let value = |column| figure(&decimal(it.value(column), *decimals));
    let gain = match comparison.mode {
        Mode::Exact => exact::change(it.row, it.column, 2).unwrap_or_else(|| "-".to_owned()),
        Mode::Measured => match signed(it.gain().map(|gain| gain.gain), it.verdict()) {
            none if none == "-" => none,
            gain => format!("{gain} %"),
        },
    };
    let class = it.verdict().map_or("none", Verdict::name);
    let better = match better {
        Some(Better::Higher) => "higher is better",
        _ => "lower is better",
    };
    html! {
        tr class=(class) role="row" {
            th scope="row" role="rowheader" {
                @if let Some(point) = it.point {
                    (excerpt(point))
                    @if it.row.statistic == Statistic::Equal { small { "at equal entries" } }
                } @else {
                    @if comparison.has_several_workloads() {
                        span class="of" { (excerpt(&it.table.workload)) } " "
                    }
                    (excerpt(&it.row.metric))
                    small { @if !unit.is_empty() { (excerpt(unit)) ", " } (better) }
                }
            }
            @if several { td role="cell" { (short(&comparison.variants[it.column].name)) } }
            td role="cell" class="value" { (value(0)) }
            td role="cell" class="value" { (value(it.column)) }
            td role="cell" class="gain" { (figure(&gain)) }
            td role="cell" class="uncertain" data-label=(uncertainty_of(comparison)) { (uncertainty(it)) }
            td role="cell" class="plot" { @if let Some(gain) = it.gain() { (forest(gain, reach, class, comparison)) } }
            td role="cell" class="said" {
                @match it.verdict() {
                    Some(verdict) => span class={ "verdict " (verdict.name()) } {
                        (symbol(verdict)) " " (verdict.name())
                    }
                    None => span class="verdict none" { "not judged" }
                }
                @for more in more(it) { small { (more) } }
            }
        }
    }
}

/// The meaning of a column of figures: a gain is positive where better, a change where there is more.
pub fn gain_word(comparison: &Comparison) -> &'static str {
    match comparison.mode {
        Mode::Measured => "Gain",
        Mode::Exact => "Change",
    }
}

/// The name of a gain's uncertainty.
pub fn uncertainty_of(comparison: &Comparison) -> String {
    match comparison.mode {
        Mode::Measured => {
            format!("{} % interval", rounded(100.0 * comparison.judging.confidence))
        }
        Mode::Exact => "Luck floor".to_owned(),
    }
}

/// The interval of the gain, or the luck floor.
fn uncertainty(it: &Judgement<'_>) -> String {
    match (it.evidence(), it.gain(), exact::floor_percent(it.row, it.column)) {
        (Some(_), Some(Gain { low, high, .. }), _) => {
            let [low, high] = [low, high].map(|end| figure(&decimal(Some(end), 2)));
            format!("{low} to {high} %")
        }
        (None, _, Some(floor)) => format!("{} %", decimal(Some(floor), 3)),
        _ => "-".to_owned(),
    }
}

/// The evidence for a verdict, and what is needed to know more.
fn more(it: &Judgement<'_>) -> Vec<String> {
    let comparison = it.comparison;
    let Some(evidence) = it.evidence() else {
        return lack(it, comparison).into_iter().collect();
    };
    let mut said = Vec::new();
    let boots = evidence.boots[0].min(evidence.boots[1]);
    let margin = rounded(100.0 * comparison.judging.margin);
    let needed = evidence.needed.map(|needed| (needed as usize).saturating_sub(boots));
    if let Some(more) = needed.filter(|&more| more > 0) {
        said.push(format!("{} a side to resolve {margin} %", more_of(more, "boot")));
    }
    let p = match evidence.p {
        p if p < 0.001 => "p < 0.001".to_owned(),
        p => format!("p = {p:.3}"),
    };
    let visible = evidence.visible.filter(|visible| visible.is_finite());
    said.push(match visible.map(|it| in_percent(it, 2)) {
        Some(visible) => format!("{p} \u{b7} detects changes from {visible} %"),
        None => p,
    });
    said
}

/// Why evidence is missing.
fn lack(it: &Judgement<'_>, comparison: &Comparison) -> Option<String> {
    if comparison.mode == Mode::Exact {
        let undecided = it.verdict() == Some(Verdict::Undecided);
        let more = || exact::more(it.row, comparison, it.column);
        return undecided.then(|| more().unwrap_or_else(|| "a seed is missing".to_owned()));
    }
    Some(match it.row.no_evidence(it.column)? {
        NoEvidence::Boots([base, new]) if base == new => {
            format!("{} a side: too few", count(base, "boot"))
        }
        NoEvidence::Boots([base, new]) => format!("{base} and {}: too few", count(new, "boot")),
        NoEvidence::Figure => "a boot without a figure".to_owned(),
        NoEvidence::Hosts => "several hosts, none with enough boots of both".to_owned(),
        NoEvidence::Share => "a baseline below 0".to_owned(),
    })
}

/// The margin in percent; in exact mode luck decides instead.
pub fn margin(comparison: &Comparison) -> f64 {
    match comparison.mode {
        Mode::Measured => 100.0 * comparison.judging.margin,
        Mode::Exact => 0.0,
    }
}

/// A gain and its interval on a line; its middle means no change.
pub fn forest(gain: Gain, reach: f64, class: &str, comparison: &Comparison) -> Markup {
    let (margin, word) = (margin(comparison), gain_word(comparison));
    let [width, height] = FOREST;
    let scale = Scale::between([-reach, reach], [4.0, width - 4.0]);
    let middle = height / 2.0;
    let at = |value: f64| scale.at(value.clamp(-1.04 * reach, 1.04 * reach));
    let [low, here, high] = [gain.low, gain.gain, gain.high].map(at);
    let cap = |x: f64, beyond: bool, tip: f64| {
        match beyond {
            true => format!("M{0} {1}l{2} 3.5-{2} 3.5", px(x), px(middle - 3.5), px(tip)),
            false => format!("M{} {}v6", px(x), px(middle - 3.0)),
        }
        .replace("--", "")
    };
    let title = format!("{word} {:.2}%, from {:.2} to {:.2}%", gain.gain, gain.low, gain.high);
    html! {
        svg class={ "forest " (class) } viewBox={ "0 0 " (px(width)) " " (px(height)) }
            width=(px(width)) height=(px(height)) role="img" {
            title { (title) }
            @if margin > 0.0 {
                rect class="margin" x=(px(at(-margin))) y="0"
                    width=(px(at(margin) - at(-margin))) height=(px(height)) {}
            }
            path class="zero" d={ "M" (px(scale.at(0.0))) " 0V" (px(height)) } {}
            path class="interval" d={ "M" (px(low)) " " (px(middle)) "H" (px(high)) } {}
            path class="caps" d={
                (cap(low, gain.low < -reach, -3.5)) (cap(high, gain.high > reach, 3.5))
            } {}
            path class="point" d={ "M" (px(here)) " " (px(middle - 3.5)) "l3.5 3.5-3.5 3.5-3.5-3.5z" } {}
        }
    }
}

/// The legend of the little plots' line.
pub fn ruler(reach: f64, comparison: &Comparison) -> Markup {
    let right = match comparison.mode {
        Mode::Measured => "better",
        Mode::Exact => "more",
    };
    let [width, height] = FOREST;
    let end = decimal(Some(reach), if reach < 10.0 { 1 } else { 0 });
    html! {
        svg class="forest" viewBox={ "0 0 " (px(width)) " " (px(height)) }
            width=(px(width)) height=(px(height)) role="img" {
            title { (gain_word(comparison)) " from \u{2212}" (end) " to +" (end) " percent; " (right) " is to the right" }
            text x="0" y="12" { "\u{2212}" (end) "%" }
            text x=(px(width / 2.0)) y="12" text-anchor="middle" { "0" }
            text x=(px(width)) y="12" text-anchor="end" { "+" (end) "%" }
        }
    }
}
