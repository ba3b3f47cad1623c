//! Events that perf counts, as text, mail, JSON and page.

mod common;

use common::{boot, columns, document, experiment, judged, section, variant};
use compare::{Comparison, Results};
use model::{Boot, Chunk, Column, Mode, NoteKind, Reading, Sampler, Variant};
use report::Recipe;

const SECOND: u64 = 1_000_000_000;
const EVENTS: [&str; 3] = ["tlb:tlb_flush", "cycles", "LLC-loads"];

/// Returns a boot with two iterations of 2 s, and a reading each second. Flushes grow by `flushes` in the
/// first second, and by a little more in the next; cycles are counted in three of four seconds.
fn counting(number: u32, flushes: i64, has_cycles: bool) -> Boot {
    let chunk = |iteration: u32| {
        let grown = [0, flushes, 2 * flushes + 3 + i64::from(number)];
        let times = [0, 1, 2];
        let column = |name: &str, values: [i64; 3], unit: i64| {
            Column::new(name, values.map(|value| Some(value * unit)).into())
        };
        let mut columns = vec![
            column("tlb:tlb_flush", grown, 1),
            column("tlb:tlb_flush enabled", times, SECOND as i64),
            column("tlb:tlb_flush running", times, SECOND as i64),
        ];
        if has_cycles {
            columns.push(column("cycles", times, 75_000_000));
            columns.push(column("cycles enabled", times, SECOND as i64));
            columns.push(column("cycles running", times, SECOND as i64 / 4 * 3));
        }
        Chunk {
            workload: "autonuma".into(),
            iteration,
            phase: "run".into(),
            source: "events".into(),
            times: times.map(|at| at as u64 * SECOND).into(),
            columns,
        }
    };
    let notes = ["LLC-loads is not counted: the machine has no hardware counter for it"];
    Boot {
        block: number,
        chunks: vec![chunk(0), chunk(1)],
        notes: notes.map(|note| NoteKind::NotCounted.note(note)).into(),
        ..boot(number)
    }
}

fn of(mode: Mode, shown: impl Fn(&Comparison, &Results<'_>) -> String) -> String {
    let variants: Vec<Variant> = ["6.1", "6.12"].map(variant).into();
    let boots = [(1000, true), (2000, false)]
        .map(|(flushes, has)| (0..4).map(|it| counting(it, flushes, has)).collect::<Vec<_>>());
    let columns = columns(&variants, &[&boots[0], &boots[1]]);
    let events = EVENTS.map(String::from).into();
    let mut experiment = experiment(mode, 4);
    experiment.sampler = Sampler { events, ..Sampler::default() };
    experiment.workloads[0].iterations = 1;
    experiment.workloads[0].warmup = 1;
    let comparison = judged(&experiment, columns.clone());
    shown(
        &comparison,
        &Results { experiment: &experiment, reading: Reading::USUAL, variants: columns },
    )
}

#[test]
fn the_text_has_rates_and_spreads_by_warm_up() {
    let text = of(Mode::Measured, |comparison, _| report::text(comparison));
    insta::assert_snapshot!(text);
    let brief = of(Mode::Measured, |comparison, _| report::brief(comparison, "all"));
    let rows = section(&text, "autonuma: events").split("Rows in").next().unwrap();
    assert!(brief.contains(rows), "{brief}");
}

#[test]
fn a_mail_has_what_the_text_has() {
    let recipe = Recipe { version: "0.1.0", ..Recipe::default() };
    let mail = of(Mode::Measured, |comparison, results| {
        report::mail(comparison, results, &[], &recipe, &[])
    });
    insta::assert_snapshot!(section(&mail, "autonuma: events"));
    assert!(mail.lines().all(|line| line.len() <= 78), "{mail}");
}

#[test]
fn figures_are_in_the_document() {
    let text = of(Mode::Measured, |comparison, _| document(comparison).to_string());
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let table = &document["tables"][0];
    assert_eq!(table["kind"], "events");
    let row = |name: &str| {
        let rows = table["rows"].as_array().unwrap();
        rows.iter().find(|row| row["metric"] == name).unwrap().clone()
    };
    let cycles = row("cycles-run/s");
    assert_eq!(cycles["values"], serde_json::json!([100_000_000.0, null]));
    assert_eq!(cycles["spreads"][0]["running"], 0.75);
    assert_eq!(cycles["spreads"][1], serde_json::Value::Null);
    let flushes = row("tlb:tlb_flush-run-warm-up/s");
    assert!(flushes["evidence"][1]["p"].as_f64().unwrap() < 0.05, "{flushes}");
    assert!(row("LLC-loads-run/s")["values"][0].is_null());
}

#[test]
fn the_page_has_the_table() {
    let page = of(Mode::Measured, |comparison, results| {
        report::page(&report::Page {
            comparison,
            results,
            plots: &[],
            consoles: &[],
            explained: &[],
            recipe: &Recipe { version: "0.1.0", ..Recipe::default() },
        })
    });
    assert!(page.contains("<h3>Events</h3>"), "{page}");
    assert!(page.contains("( +-") && page.contains("(multiplexed), and is scaled"), "{page}");
}

#[test]
fn exact_mode_has_rates_of_guest_time() {
    let text = of(Mode::Exact, |comparison, _| report::text(comparison));
    assert!(
        text.contains("events per iteration and per second of guest time (/s), mean of seeds"),
        "{text}"
    );
}
