//! The comparison as JSON. The format is stable: keys may be added without a new version.

use std::collections::BTreeMap;

use benchmarks::names::Month;
use compare::{
    Comparison, CrossCheck, Explained, Judging, Notes, PointComparison, PointVerdicts, Sources,
    Step, Table, Unmet, UserNote, VariantOutcomes, Verdict, VerdictChange, verdicts_by_point,
};
use model::Mode;
use serde::Serialize;

use crate::words::scope_sentence;
use crate::{architectures, exact};

/// The version of the format.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    baseline: Option<&'a str>,
    variants: Vec<&'a str>,
    tables: &'a [Table],
    mode: Mode,
    exact: Option<Exact>,
    /// How verdicts of measured mode are judged.
    judging: Option<&'a Judging>,
    emulated: bool,
    /// For which boots of a host verdicts hold, if boots are sessions on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    boots: &'a [VariantOutcomes],
    /// Rows that were chosen for verdicts, but do not exist.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    unmet: &'a [Unmet],
    #[serde(rename = "beside")]
    cross_checks: &'a [CrossCheck],
    #[serde(rename = "beside_of")]
    cross_check_sources: Option<&'a Sources>,
    /// The patches of a series.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<StepDocument<'a>>,
    /// The points of a sweep.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    points: Vec<PointDocument<'a>>,
    /// The verdicts along a sweep, for each figure of a variant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    along: Vec<AlongDocument<'a>>,
    /// The functions that hold the changes, in exact mode.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    explained: &'a [Explained],
    notes: &'a Notes,
    /// The user's own notes on the experiments.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    user_notes: &'a [UserNote],
    /// The version of mmtests whose names the rows have; left out if the names are ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<Month>,
}

/// Comparisons of several architectures.
#[derive(Serialize)]
struct SeveralDocument<'a> {
    schema: u32,
    /// The verdicts side by side.
    verdicts: Vec<BesideDocument<'a>>,
    /// Each comparison, by its architecture.
    architectures: BTreeMap<&'static str, Document<'a>>,
}

/// A row with verdicts on a variant.
#[derive(Serialize)]
struct BesideDocument<'a> {
    variant: &'a str,
    workload: &'a str,
    metric: &'a str,
    /// By architecture. One that lacks the row has none.
    on: BTreeMap<&'static str, OnArchitecture>,
}

#[derive(Serialize)]
struct OnArchitecture {
    /// The change in percent of the baseline's figure.
    percent: Option<f64>,
    verdict: Verdict,
}

/// A patch of a series. Its tables have two columns: the step before the patch, and the step with it.
#[derive(Serialize)]
struct StepDocument<'a> {
    patch: &'a str,
    variants: Vec<&'a str>,
    tables: &'a [Table],
}

/// A point of a sweep, with the variants at that point.
#[derive(Serialize)]
struct PointDocument<'a> {
    point: &'a str,
    variants: Vec<&'a str>,
    boots: &'a [VariantOutcomes],
    #[serde(skip_serializing_if = "Option::is_none")]
    judging: Option<&'a Judging>,
    tables: &'a [Table],
}

/// The verdicts on a figure of a variant at each point, and the points at which they change.
#[derive(Serialize)]
struct AlongDocument<'a> {
    workload: &'a str,
    metric: &'a str,
    variant: &'a str,
    verdicts: Vec<Option<Verdict>>,
    turns: Vec<VerdictChange<'a>>,
}

/// Keys that only exact mode has.
#[derive(Serialize)]
struct Exact {
    /// The number of seeds that was asked for.
    seeds: u32,
    /// How often each verdict was given on each variant, the baseline included.
    verdicts: Vec<Tally>,
    /// Guest time per instruction, in nanoseconds.
    instruction_ns: u32,
    /// What affects time on a real machine, but is not modelled.
    not_modelled: &'static [&'static str],
}

#[derive(Serialize)]
struct Tally {
    regression: usize,
    improvement: usize,
    same: usize,
    undecided: usize,
}

/// Returns the comparison as one JSON object, with figures in full precision. `explained` names the functions behind
/// its verdicts. `baseline` is null only if
/// there is no variant. No comparison causes an error.
pub fn json(comparison: &Comparison, explained: &[Explained]) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&document(comparison, explained))
}

/// Returns comparisons of which each is for another architecture as one JSON object: the verdicts side by side, and the
/// object of each comparison as [`json`] has it. No comparison causes an error.
pub fn architectures_json(
    all: &[(&Comparison, &[Explained])],
) -> Result<String, serde_json::Error> {
    let comparisons: Vec<&Comparison> = all.iter().map(|(it, _)| *it).collect();
    let names = || comparisons.iter().map(|it| it.arch.name());
    let on = |column: usize| {
        let named = comparisons.iter().find_map(|it| it.variants.get(column));
        let variant = named.map_or("", |it| &*it.name);
        let rows = architectures::rows(&comparisons, column).into_iter();
        rows.map(move |it| {
            let on = it.on.iter().zip(names()).filter_map(|(found, arch)| {
                let found = found.as_ref()?;
                let percent = exact::percent(found.row, column);
                Some((arch, OnArchitecture { percent, verdict: found.verdict }))
            });
            let on = on.collect();
            BesideDocument { variant, workload: it.workload, metric: it.metric, on }
        })
    };
    let verdicts = (1..architectures::columns(&comparisons)).flat_map(on).collect();
    let documents = all.iter().map(|(comparison, explained)| document(comparison, explained));
    let architectures = names().zip(documents).collect();
    serde_json::to_string_pretty(&SeveralDocument { schema: SCHEMA, verdicts, architectures })
}

fn document<'a>(comparison: &'a Comparison, explained: &'a [Explained]) -> Document<'a> {
    let variants = comparison.variants.iter();
    Document {
        schema: SCHEMA,
        baseline: comparison.variants.first().map(|first| &*first.name),
        variants: variants.map(|variant| &*variant.name).collect(),
        tables: &comparison.tables,
        mode: comparison.mode,
        exact: (comparison.mode == Mode::Exact).then(|| exact(comparison)),
        judging: (comparison.mode == Mode::Measured).then_some(&comparison.judging),
        emulated: comparison.emulated,
        scope: scope_sentence(comparison),
        boots: &comparison.variants,
        unmet: &comparison.unmet,
        cross_checks: &comparison.cross_checks,
        cross_check_sources: comparison.cross_check_sources.as_ref(),
        steps: comparison.steps.iter().map(step).collect(),
        points: comparison.points.iter().map(point).collect(),
        along: verdicts_by_point(&comparison.points).iter().map(of_figure).collect(),
        explained,
        notes: &comparison.notes,
        user_notes: &comparison.user_notes,
        names: comparison.names,
    }
}

fn exact(comparison: &Comparison) -> Exact {
    let tally = |column| {
        let given = |verdict: Verdict| {
            comparison.verdicts(column).filter(|it| it.verdict == verdict).count()
        };
        Tally {
            regression: given(Verdict::Regression),
            improvement: given(Verdict::Improvement),
            same: given(Verdict::Same),
            undecided: given(Verdict::Undecided),
        }
    };
    Exact {
        seeds: comparison.boots,
        verdicts: (0..comparison.variants.len()).map(tally).collect(),
        instruction_ns: exact::NANOSECONDS,
        not_modelled: exact::not_modelled(comparison.arch),
    }
}

fn step(Step { patch, comparison }: &Step) -> StepDocument<'_> {
    StepDocument {
        patch,
        variants: comparison.variants.iter().map(|variant| &*variant.name).collect(),
        tables: &comparison.tables,
    }
}

fn point(PointComparison { name, comparison }: &PointComparison) -> PointDocument<'_> {
    PointDocument {
        point: name,
        variants: comparison.variants.iter().map(|variant| &*variant.name).collect(),
        boots: &comparison.variants,
        judging: (comparison.mode == Mode::Measured).then_some(&comparison.judging),
        tables: &comparison.tables,
    }
}

fn of_figure<'a>(along: &PointVerdicts<'a>) -> AlongDocument<'a> {
    let verdicts = along.points.iter().map(|place| Some(place.found?.verdict));
    AlongDocument {
        workload: along.workload,
        metric: along.metric,
        variant: along.variant,
        verdicts: verdicts.collect(),
        turns: along.changes(),
    }
}
