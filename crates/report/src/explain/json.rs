//! An explanation as JSON. The format is stable: keys may be added without a new version.

use std::borrow::Cow;

use compare::{
    BuildDifference, ClassCost, Contribution, Counter, Explanation, Fact, FieldCost, Headline,
    LayoutChange, Reason, SampledDifference, Section, Side, Totals,
};
use model::{Cost, ENTRIES};
use serde::Serialize;

use super::sampled;
use super::view::{beyond, by_luck};
use crate::exact::not_modelled;

/// The version of the format.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    workload: &'a str,
    base: &'a Side,
    new: &'a Side,
    wanted_seeds: u32,
    cost: &'a Cost,
    denominator: i128,
    not_modelled: &'static [&'static str],
    code_unknown: Option<&'a str>,
    lines_unknown: &'a [String],
    build: Option<&'a BuildDifference>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    states: &'a [Fact],
    headlines: &'a [Headline],
    #[serde(skip_serializing_if = "Option::is_none")]
    reasons: Option<&'a [Reason]>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    classes: &'a [ClassCost],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    fields: &'a [FieldCost],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    layouts: &'a [LayoutChange],
    #[serde(skip_serializing_if = "Option::is_none")]
    layouts_unknown: Option<&'a str>,
    all: Option<SectionDocument<'a>>,
    measured: Option<SectionDocument<'a>>,
    phases: Vec<SectionDocument<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<sampled::Document<'a>>,
}

/// How many figures were compared with luck, how many of these are beyond it, and the most of the latter
/// that are expected to be luck.
#[derive(Serialize)]
struct ComparedDocument {
    rows: usize,
    beyond_luck: usize,
    beyond_by_luck: Option<f64>,
}

#[derive(Serialize)]
struct AllComparedDocument {
    per_entry: ComparedDocument,
    contributions: ComparedDocument,
    counters: ComparedDocument,
}

/// A section, with sums and counts that are computed from its rows.
#[derive(Serialize)]
struct SectionDocument<'a> {
    phase: Option<&'a str>,
    #[serde(flatten)]
    totals: &'a Totals,
    exact_change: i128,
    exact_sum_of_changes: i128,
    in_no_function: i128,
    contributions: Cow<'a, [Contribution]>,
    per_entry: &'a [usize],
    counters: &'a [Counter],
    compared: AllComparedDocument,
}

/// Returns the explanation as one JSON object: figures in full precision, every row of every phase, names
/// as the guest gave them. `cost` is the cost that is explained; keys named `instructions` hold it. Keys
/// with `exact` in their names hold a numerator over `denominator`; `per_entry` lists indices into
/// `contributions`. `sampled` has the sampled profiles of the same variants. No explanation causes an
/// error.
pub fn explain_json(
    explanation: &Explanation,
    headlines: &[Headline],
    beside: Option<&SampledDifference>,
) -> Result<String, serde_json::Error> {
    let document = Document {
        schema: SCHEMA,
        workload: &explanation.workload,
        base: &explanation.base,
        new: &explanation.new,
        wanted_seeds: explanation.wanted,
        cost: &explanation.cost,
        denominator: explanation.denominator,
        not_modelled: not_modelled(explanation.arch),
        code_unknown: explanation.unmarked.as_deref(),
        lines_unknown: &explanation.unlined,
        build: explanation.build.as_ref(),
        states: &explanation.states,
        headlines,
        reasons: explanation.reasons.as_deref(),
        classes: &explanation.classes,
        fields: &explanation.fields,
        layouts: &explanation.layouts,
        layouts_unknown: explanation.no_layouts.as_deref(),
        all: explanation.all.as_ref().map(|all| section(explanation, all)),
        measured: explanation.measured.as_ref().map(|measured| section(explanation, measured)),
        phases: explanation.phases.iter().map(|phase| section(explanation, phase)).collect(),
        sampled: beside.map(sampled::difference_document),
    };
    serde_json::to_string_pretty(&document)
}

/// Returns the rows of a section. If the cost itself is entries, the entries of functions are those of the cost.
fn contributions<'a>(explanation: &Explanation, section: &'a Section) -> Cow<'a, [Contribution]> {
    if explanation.cost.name != ENTRIES {
        return Cow::Borrowed(&section.contributions);
    }
    let mut contributions = section.contributions.clone();
    for it in &mut contributions {
        if let Some(calls) = &mut it.calls {
            calls.entries = it.instructions;
        }
    }
    Cow::Owned(contributions)
}

fn section<'a>(explanation: &Explanation, section: &'a Section) -> SectionDocument<'a> {
    let compared = |rows, beyond_luck| ComparedDocument {
        rows,
        beyond_luck,
        beyond_by_luck: by_luck(explanation, beyond_luck),
    };
    let [cost, change, counted] = beyond(section);
    SectionDocument {
        phase: section.phase.as_deref(),
        totals: &section.totals,
        exact_change: section.change,
        exact_sum_of_changes: section.contributions.iter().map(|it| it.change).sum(),
        in_no_function: section.in_no_function,
        contributions: contributions(explanation, section),
        per_entry: &section.per_entry,
        counters: &section.counters,
        compared: AllComparedDocument {
            per_entry: compared(section.compared.per_entry, cost),
            contributions: compared(section.compared.contributions, change),
            counters: compared(section.compared.counters, counted),
        },
    }
}
