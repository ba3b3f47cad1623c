//! The result of a self-test, which shows how small a change a machine can resolve, as text and as JSON.

use compare::selftest::{Claims, Drift, Family, Resolution, SelfTest, Splits};
use compare::{HostRange, Verdict};
use model::{Share, count};
use serde::Serialize;

use crate::document::{Block, Column, TEXT, note, part, sections, sentence, table};

/// The version of the JSON.
const SCHEMA: u32 = 1;
/// A slope is called a drift if its p-value is below this.
const DRIFT: f64 = 0.01;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    #[serde(flatten)]
    selftest: &'a SelfTest,
}

/// Returns the self-test as JSON. No self-test causes an error.
pub fn json(selftest: &SelfTest) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(&Document { schema: SCHEMA, selftest })? + "\n")
}

/// Returns the self-test as plain text: ASCII, at most 100 columns where the names allow.
pub fn text(selftest: &SelfTest) -> String {
    let parts = [head(selftest), alarms(selftest), resolution(selftest), host(selftest)];
    sections(&parts, &TEXT)
}

fn head(selftest: &SelfTest) -> Vec<Block> {
    let SelfTest { judging, boots: [a, b], failed, emulated, .. } = selftest;
    let failed = match failed {
        0 => String::new(),
        failed => format!(", {failed} more failed"),
    };
    let what = format!(
        "Self-test: one kernel compared with itself, {a} and {b} boots{failed}; margin {}, level {}",
        Share(judging.margin),
        Share(judging.alpha()),
    );
    let warning = emulated.then_some(
        "Times under emulation (TCG) are not performance: this is the resolution of this host's emulation",
    );
    [sentence(what)].into_iter().chain(warning.map(sentence)).collect()
}

fn alarms(selftest: &SelfTest) -> Vec<Block> {
    if selftest.claims.is_empty() {
        return Vec::new();
    }
    let level = selftest.judging.alpha();
    let alarm = |metric: &Resolution| {
        let verdict = metric.verdict?;
        if !matches!(verdict, Verdict::Regression | Verdict::Improvement) {
            return None;
        }
        let p = metric.p.map_or(String::new(), |p| format!(" (p {p:.2})"));
        let said = format!(
            "{} {} was called {}{p}. Chance causes this in {} of self-tests. If it happens \
             again, boots of this machine are not alike",
            metric.workload,
            metric.metric,
            a(verdict),
            Share(level),
        );
        Some(vec!["!".to_owned(), said])
    };
    let claims = selftest.claims.iter().map(|claims| sentence(claimed(claims, level)));
    let alarms: Vec<_> = selftest.metrics.iter().filter_map(alarm).collect();
    let alarms = table([Column::words(""), Column::sentences("")], alarms);
    let splits = selftest.splits.iter().map(|splits| sentence(split(splits, level)));
    let all = claims.chain([alarms]).chain(splits).collect::<Vec<_>>();
    vec![part("False alarms: differences found although there are none", all)]
}

fn claimed(claims: &Claims, level: f64) -> String {
    let Claims { family, compared, different, same, alone } = *claims;
    let (name, method) = match family {
        Family::Primary => ("metrics with verdicts", "Holm"),
        Family::Secondary => ("other metrics and durations", "false discovery rate"),
        Family::Counters => ("counters", "false discovery rate"),
    };
    let same = match family {
        Family::Primary => {
            format!(", {same} the same, {} undecided", compared.saturating_sub(different + same))
        }
        _ => String::new(),
    };
    format!(
        "{name}: {different} of {compared} called different ({method}){same}; {alone} without \
         correction, {:.1} expected",
        compared as f64 * level
    )
}

fn a(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Improvement => "an improvement",
        Verdict::Regression => "a regression",
        Verdict::Same | Verdict::Undecided => verdict.name(),
    }
}

fn split(splits: &Splits, level: f64) -> String {
    let Splits { workload, splits, all, different } = splits;
    let which = match all {
        true => format!("all {splits} ways to split these boots into two sides"),
        false => format!("{splits} of the ways to split these boots into two sides, at random"),
    };
    format!(
        "{}: {which}: in {different} a metric with a verdict would be called different ({:.1}%; \
         up to {} is expected)",
        workload,
        100.0 * *different as f64 / (*splits).max(1) as f64,
        Share(level),
    )
}

fn resolution(selftest: &SelfTest) -> Vec<Block> {
    if selftest.metrics.is_empty() {
        return vec![sentence("No complete boot has a measurement.")];
    }
    let boots = selftest.boots[0].min(selftest.boots[1]);
    let margin = Share(selftest.judging.margin);
    let figures = ["mean", "between", "within", "visible", "boots", "drift"];
    let columns = [Column::words("")].into_iter().chain(figures.map(Column::figures));
    let rows = selftest.metrics.iter().map(|metric| {
        let mean = metric.mean.map(|value| format!("{value:.*} {}", metric.decimals, metric.unit));
        vec![
            name(metric),
            mean.map_or("-".to_owned(), |mean| mean.trim_end().to_owned()),
            percent(metric.between),
            percent(metric.within),
            percent(metric.visible),
            metric.needed.map_or("-".to_owned(), |boots| boots.to_string()),
            metric.drift.map_or("-".to_owned(), drifting),
        ]
    });
    let legend = format!(
        "*: has a verdict. between, within: standard deviation between and within boots. \
         visible: the smallest change that is detected in four of five cases. boots: how many of \
         each variant detect {margin} so often. drift: from one block of boots to the next; !: \
         more than chance explains."
    );
    let title = format!("What this machine detects with {} of each variant", count(boots, "boot"));
    vec![part(title, [table(columns.collect::<Vec<_>>(), rows.collect()), note(legend)])]
}

fn name(metric: &Resolution) -> String {
    let mark = if metric.primary { " *" } else { "" };
    format!("{} {}{mark}", metric.workload, metric.metric)
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.2}%", 100.0 * share))
}

fn drifting(drift: Drift) -> String {
    let mark = if drift.p < DRIFT { " !" } else { "" };
    format!("{:+.2}%{mark}", 100.0 * drift.per_block)
}

fn host(selftest: &SelfTest) -> Vec<Block> {
    let Some(HostRange { load, steal, .. }) = &selftest.host else {
        return Vec::new();
    };
    let range = |what: &str, range: &Option<[f64; 2]>, unit: &str| {
        range.map(|[least, most]| format!("{what} {least:.2} to {most:.2}{unit}"))
    };
    let ranges = [range("load", load, ""), range("CPU time stolen", steal, "%")];
    let ranges: Vec<String> = ranges.into_iter().flatten().collect();
    let said = (!ranges.is_empty()).then(|| format!("Host: {}", ranges.join("; ")));
    said.into_iter().map(sentence).collect()
}
