//! Compares sampled profiles of two variants, as text, as a part of a page, and as JSON.

use compare::{
    Evidence, Part, Paths, SampledDifference, SampledFigure, SampledRow, SampledSide, Subject,
};
use model::count;
use serde::Serialize;

use super::flame::{self, Graphs};
use super::headline::phase_name;
use super::page;
use super::view::{ranking, signed};
use crate::ascii::excerpt;
use crate::document::{Block, TEXT, lead, note, sections, sentence};
use crate::words::{self, decimal};

/// Most rows of each ranking on a page.
const MAX_ROWS: usize = 30;

/// Returns the comparison of sampled profiles as plain text, with `top` rows in each ranking.
pub fn sampled(difference: &SampledDifference, top: usize) -> String {
    let title = vec![sentence(format!("{}:", title(difference)))];
    let all = [title].into_iter().chain(blocks(difference, top, None));
    sections(&all.collect::<Vec<_>>(), &TEXT)
}

/// Returns the comparison of sampled profiles as a page, with a flame graph of `paths`, which must be of
/// the same phases.
pub fn sampled_html(difference: &SampledDifference, paths: &Paths) -> String {
    let blocks = blocks(difference, MAX_ROWS, Some(paths)).concat();
    page(&difference.workload, &title(difference), &blocks)
}

/// Returns the blocks below the title, in sections, with at most `rows` rows in each ranking. With `paths`
/// they include the flame graphs of a page.
pub fn blocks(
    difference: &SampledDifference,
    rows: usize,
    paths: Option<&Paths>,
) -> Vec<Vec<Block>> {
    let [totals, rankings @ ..] = tables(difference, rows);
    let drawn = paths.map(|paths| vec![graphs(difference, paths)]);
    let rankings = rankings.into_iter().map(|ranking| vec![ranking]);
    let found = headlines(difference).into_iter().map(lead).collect();
    let notes = notes(difference).into_iter().map(note).collect();
    [found, vec![totals]].into_iter().chain(drawn).chain(rankings).chain([notes]).collect()
}

/// Writes the title: the variants that are compared, with their numbers of boots.
pub fn title(difference: &SampledDifference) -> String {
    let side =
        |side: &SampledSide| format!("{} ({})", excerpt(&side.name), count(side.boots, "boot"));
    let phase = difference.phase.as_deref().map(phase_name);
    let [base, new] = difference.sides.each_ref().map(side);
    format!(
        "{}, samples{}: {new} against {base}; means over boots",
        excerpt(&difference.workload),
        phase.map_or(String::new(), |phase| format!(" in phase {phase}")),
    )
}

/// Returns sentences on the change of all samples, and on the functions whose share changed most.
fn headlines(difference: &SampledDifference) -> Vec<String> {
    let all = &difference.totals[0].samples;
    let change = match (relative(all), interval(all)) {
        (Some(change), Some(interval)) => format!("{change} ({interval})"),
        (Some(change), None) => format!("{change}; fewer than three boots a side have no interval"),
        (None, _) => "none in base".to_owned(),
    };
    let differs = |row: &&SampledRow| row.share.differs(difference.rate) == Some(true);
    let found: Vec<String> = difference
        .rows
        .iter()
        .filter(differs)
        .take(3)
        .map(|row| {
            let [base, new] = [row.share.base, row.share.new].map(percent);
            format!("{} has {base} of the samples before and {new} now", name(row))
        })
        .collect();
    let found = match found.as_slice() {
        [] if difference.rows.iter().any(|row| row.share.evidence.is_some()) => {
            let none = "No function's share differs for certain.";
            let fewest = difference.fewest;
            match difference.sides.iter().any(|side| side.boots < fewest) {
                true => format!(
                    "{none} With so few boots a single function could not: that takes {fewest} a side."
                ),
                false => none.to_owned(),
            }
        }
        [] => String::new(),
        found => format!("{}.", found.join("; ")),
    };
    let lines = [format!("Samples per iteration: {change}."), found];
    lines.into_iter().filter(|line| !line.is_empty()).collect()
}

/// Lays out three tables: the totals, the ranking by share, and the ranking by samples per iteration.
fn tables(difference: &SampledDifference, top: usize) -> [Block; 3] {
    let names = ["all", "  kernel", "  user"];
    let totals = difference.totals.iter().zip(names);
    let by_share: Vec<&SampledRow> = difference.rows.iter().collect();
    let mut by_samples = by_share.clone();
    let rate = difference.rate;
    let differs = |row: &SampledRow| row.samples.differs(rate) == Some(true);
    by_samples.sort_by(|one, other| {
        let size = |row: &SampledRow| row.samples.change().abs();
        differs(other).cmp(&differs(one)).then(size(other).total_cmp(&size(one)))
    });
    let head = |p, of| ["base", "new", "change", "%", "interval", p, of];
    let by_size = |title: &str, rows: &[&SampledRow], cells: fn(&SampledRow) -> Vec<String>| {
        let left = rows.len().saturating_sub(top);
        let title = format!("{title}: those that differ first, by the size of the change");
        let rows = rows.iter().take(top).map(|row| cells(row)).collect();
        let more = (left > 0).then(|| format!("{left} more")).into_iter().collect();
        ranking(&title, &head("rate", "function"), rows, more)
    };
    let totals = totals.map(|(row, name)| cells(&row.samples, figures, name.into())).collect();
    [
        ranking("Samples per iteration", &head("p", "of"), totals, Vec::new()),
        by_size("Functions by their share of the samples", &by_share, |row| {
            cells(&row.share, shares, name(row))
        }),
        by_size("Functions by their samples per iteration", &by_samples, |row| {
            cells(&row.samples, figures, name(row))
        }),
    ]
}

/// Returns the cells of a row. `print` formats both sides and the change; `of` is the subject.
fn cells(it: &SampledFigure, print: fn(&SampledFigure) -> [String; 3], of: String) -> Vec<String> {
    let rate = it.evidence.filter(Evidence::moved);
    let rate = rate.map_or_else(|| "-".to_owned(), |it| format!("{:.3}", it.p));
    let none = || "-".to_owned();
    let change = relative(it).unwrap_or_else(none);
    let [base, new, difference] = print(it);
    vec![base, new, difference, change, interval(it).unwrap_or_else(none), rate, of]
}

fn figures(it: &SampledFigure) -> [String; 3] {
    let [base, new] = [it.base, it.new].map(|value| decimal(Some(value), 1));
    [base, new, signed(it.change(), 1)]
}

fn shares(it: &SampledFigure) -> [String; 3] {
    [percent(it.base), percent(it.new), format!("{} pp", signed(100.0 * it.change(), 2))]
}

fn percent(share: f64) -> String {
    format!("{} %", decimal(Some(100.0 * share), 2))
}

/// Formats the change in percent of the baseline; `None` if the baseline is 0.
fn relative(it: &SampledFigure) -> Option<String> {
    let percent = 100.0 * it.change() / it.base;
    percent.is_finite().then(|| format!("{}%", signed(percent, 1)))
}

/// Formats the interval of the change, in percent of the baseline.
fn interval(it: &SampledFigure) -> Option<String> {
    let Evidence { low, high, .. } = it.evidence?;
    // The lower end of an interval of differences can be a negative ratio.
    let [low, high] = [low, high].map(|ratio| 100.0 * (ratio.max(0.0) - 1.0));
    (low.is_finite() && high.is_finite())
        .then(|| format!("{}% to {}%", signed(low, 1), signed(high, 1)))
}

fn name(row: &SampledRow) -> String {
    row.subject.as_ref().map_or(String::new(), |subject| excerpt(&subject.to_string()))
}

/// Returns sentences on what was sampled and what is missing, and on the terms of the tables.
fn notes(difference: &SampledDifference) -> Vec<String> {
    let side = |SampledSide { name, samples, lost, seconds, events, .. }: &SampledSide| {
        let lost = match *lost {
            0 => String::new(),
            lost => format!(", and {lost} lost or without room"),
        };
        format!(
            "{}: {} samples in {} s of its phases{lost}, by {}",
            excerpt(name),
            words::figure(*samples as f64, 0),
            decimal(Some(*seconds), 1),
            excerpt(&events.join(", ")),
        )
    };
    let [base, new] = difference.sides.each_ref().map(side);
    let confidence = 100.0 * difference.confidence;
    let part = match difference.part {
        None => "",
        Some(Part::Steady) => " They cover what came after warm-up.",
        Some(_) => {
            " They cover whole phases, warm-up included: the series do not tell when it ended."
        }
    };
    vec![
        format!("{base}. {new}.{part}"),
        format!(
            "Intervals hold the relative change with a probability of {confidence:.0} %; boots are the independent \
             samples. Rate: the false discovery rate at which the function would be called different; below {:.0} % \
             it differs. Functions with fewer than 5 samples per boot are not tested (-).",
            100.0 * difference.rate
        ),
        "A function's samples are its own, without those of what it calls. Shares add up to 100 %: where one grows, \
         others shrink, although their samples per iteration are the same. Code that runs with interrupts disabled \
         is sampled by cpu-clock where it enables them. Idle CPUs have no samples."
            .to_owned(),
    ]
}

/// Draws the flame graphs of the sampled call paths.
fn graphs(difference: &SampledDifference, paths: &Paths) -> Block {
    let all = &difference.totals[0].samples;
    // A change of half the width of the total's interval can be luck.
    let least = all.evidence.map_or(0.0, |it| all.base * (it.high - it.low) / 2.0);
    let differing =
        difference.rows.iter().filter(|row| row.share.differs(difference.rate) == Some(true));
    let named = differing.take(3).filter_map(|row| match &row.subject {
        Some(compare::Subject::Function { name, .. }) => Some(&**name),
        _ => None,
    });
    let graphs = Graphs {
        title: "Who calls whom: a differential flame graph of the samples".to_owned(),
        names: difference.sides.each_ref().map(|side| excerpt(&side.name)),
        unit: "samples",
        moved: "",
        least: if least.is_finite() { least } else { 0.0 },
        marked: named.collect(),
        marks: "the functions whose share differs most",
    };
    flame::graphs(paths, &graphs)
}

/// The version of the format.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
pub struct Document<'a> {
    schema: u32,
    workload: &'a str,
    phase: Option<&'a str>,
    phases: &'a [String],
    part: Option<Part>,
    base: &'a SampledSide,
    new: &'a SampledSide,
    confidence: f64,
    false_discovery_rate: f64,
    total: RowDocument<'a>,
    kernel: RowDocument<'a>,
    user: RowDocument<'a>,
    functions: Vec<RowDocument<'a>>,
}

#[derive(Serialize)]
struct RowDocument<'a> {
    #[serde(flatten)]
    subject: Option<&'a Subject>,
    share: FigureDocument,
    samples_per_iteration: FigureDocument,
}

#[derive(Serialize)]
struct FigureDocument {
    base: f64,
    new: f64,
    differs: Option<bool>,
    evidence: Option<Evidence>,
}

/// Returns the comparison of sampled profiles as one JSON object, with all functions. No comparison causes
/// an error.
pub fn sampled_json(difference: &SampledDifference) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&difference_document(difference))
}

pub fn difference_document(difference: &SampledDifference) -> Document<'_> {
    let [base, new] = &difference.sides;
    let row = |row| row_document(row, difference.rate);
    let [total, kernel, user] = difference.totals.each_ref().map(row);
    Document {
        schema: SCHEMA,
        workload: &difference.workload,
        phase: difference.phase.as_deref(),
        phases: &difference.phases,
        part: difference.part,
        base,
        new,
        confidence: difference.confidence,
        false_discovery_rate: difference.rate,
        total,
        kernel,
        user,
        functions: difference.rows.iter().map(row).collect(),
    }
}

fn row_document(row: &SampledRow, rate: f64) -> RowDocument<'_> {
    let figure = |it: &SampledFigure| FigureDocument {
        base: it.base,
        new: it.new,
        differs: it.differs(rate),
        evidence: it.evidence,
    };
    RowDocument {
        subject: row.subject.as_ref(),
        share: figure(&row.share),
        samples_per_iteration: figure(&row.samples),
    }
}
