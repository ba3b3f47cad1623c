//! The contract of `--format json`.

mod common;

use common::{blocks, boot, boots, compared, count, measure};
use serde_json::{Value, json};

fn document(variants: &[(&str, &[model::Boot])]) -> Value {
    common::document(&compared(variants))
}

#[test]
fn the_core_is_as_promised() {
    let (old, new) = (boots(1.0), boots(0.5));
    let document = document(&[("6.1", &old), ("6.12", &new)]);
    assert_eq!(document["schema"], 1);
    assert_eq!(document["baseline"], "6.1");
    assert_eq!(document["variants"], json!(["6.1", "6.12"]));
    assert_eq!(document["emulated"], false);
    let tables = document["tables"].as_array().unwrap();
    let kinds: Vec<_> = tables.iter().map(|table| &table["kind"]).collect();
    assert_eq!(kinds, ["metrics", "duration", "counters"]);
    for table in tables {
        assert_eq!(table["workload"], "autonuma");
        for row in table["rows"].as_array().unwrap() {
            for key in ["values", "gains", "verdicts", "intervals", "evidence", "variation"] {
                assert_eq!(row[key].as_array().unwrap().len(), 2, "{key}");
            }
            for key in ["metric", "unit", "statistic"] {
                assert!(row[key].is_string(), "{key}");
            }
            // Two boots of each variant are too few for a verdict. `Elapsed` of the workload is not
            // primary.
            let metric = row["metric"].as_str().unwrap();
            let judged = metric.starts_with("System-") && row["statistic"] == "Amean";
            let verdict = if judged { json!("undecided") } else { Value::Null };
            assert_eq!(row["verdicts"], json!([null, verdict]));
            assert_eq!(row["intervals"], json!([null, null]));
        }
    }
}

#[test]
fn figures_keep_their_precision() {
    let third = 1.0 / 3.0;
    let (mut old, mut new) = (boot(0), boot(0));
    measure(&mut old, "Elapsed", "", &[third]);
    measure(&mut new, "CPU", "", &[2.0]);
    let document = document(&[("old", &[old]), ("new", &[new])]);
    let rows = &document["tables"][0]["rows"];
    assert_eq!(
        rows[0],
        json!({
            "metric": "Elapsed", "unit": "s", "better": "lower", "statistic": "Min",
            "values": [third, null], "gains": [0.0, null],
            "verdicts": [null, null], "floors": [null, null], "beyond_luck": [null, null],
            "evidence": [null, null], "lacking": [null, null], "variation": [null, null],
            "intervals": [null, null],
        })
    );
    assert_eq!(rows[1]["better"], Value::Null);
}

#[test]
fn verdicts_come_with_their_intervals_and_evidence() {
    let (old, new) = (blocks(6, 1.0, 1), blocks(6, 1.08, 2));
    let document = document(&[("6.1", &old), ("6.12", &new)]);
    let judging =
        json!({ "margin": 0.01, "confidence": 0.95, "look": null, "warm_up_counts": false });
    assert_eq!(document["judging"], judging);
    let rows = document["tables"][0]["rows"].as_array().unwrap();
    let mean = |metric: &str| {
        rows.iter().find(|row| row["metric"] == metric && row["statistic"] == "Amean").unwrap()
    };
    let worse = mean("System-NUMA01");
    assert_eq!(worse["verdicts"], json!([null, "regression"]));
    let [low, high] = [0, 1].map(|bound| worse["intervals"][1][bound].as_f64().unwrap());
    // Less is better, so the gain of 8 % more is negative, and so are its bounds.
    assert!(-8.5 < low && low < high && high < -7.0, "{low} to {high}");
    let evidence = &worse["evidence"][1];
    let of = |key: &str| evidence[key].as_f64().unwrap();
    assert!((100.0 - 100.0 * of("high") - low).abs() < 1e-9);
    assert_eq!((&evidence["boots"], &evidence["paired"]), (&json!([6, 6]), &json!(true)));
    assert!(of("p") >= of("p_alone"));
    assert!(worse["variation"][0]["between"].is_f64() && worse["variation"][0]["within"].is_f64());
    let beside = mean("Elapsed-NUMA01");
    assert_eq!(beside["verdicts"], json!([null, null]));
    assert!(beside["intervals"][1].is_array() && beside["evidence"][1]["needed"].is_null());
}

#[test]
fn sections_findings_and_what_is_counted_otherwise() {
    let (mut old, mut new) = (boot(0), boot(0));
    count(&mut old, 0, &[("allocstall", 5), ("pgscan_direct_normal", 9), ("oom_kill", -1)]);
    count(&mut new, 0, &[("allocstall_normal", 5), ("pgscan_direct", 9), ("swpout_zero", 0)]);
    let document = document(&[("4.7", &[old]), ("4.8", &[new])]);
    let rows = document["tables"][0]["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["section"] == "Reclaim"));
    assert!(rows.iter().any(|row| row["metric"] == "Allocation stalls"));
    let finding = &document["notes"]["findings"][0];
    assert_eq!((&finding["variant"], &finding["boots"]), (&json!("4.7"), &json!(["b1"])));
    assert_eq!(finding["severity"], "contradiction");
    assert_eq!(
        document["notes"]["counting"][0],
        json!({
            "variant": "4.8", "rows": ["Allocation stalls"], "relation": "renamed",
            "baseline": ["allocstall"], "counters": ["allocstall_ZONE"],
        })
    );
}

#[test]
fn the_whole_document() {
    let (mut old, mut new) = (boot(0), boot(0));
    measure(&mut old, "Elapsed", "", &[1.0, 2.0]);
    measure(&mut new, "Elapsed", "", &[1.5, 1.5]);
    new.facts.release = "6.12.57".into();
    new.outcome = model::Outcome::Interrupted;
    let comparison = compared(&[("old", &[old]), ("new", &[new])]);
    insta::assert_snapshot!(report::json(&comparison, &[]).unwrap());
}
