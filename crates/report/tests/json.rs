//! The contract of `--format json`.

mod common;

use common::{boot, boots, compared, measure};
use serde_json::{Value, json};

fn document(variants: &[(&str, &[model::Boot])]) -> Value {
    serde_json::from_str(&report::json(&compared(variants)).unwrap()).unwrap()
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
            for key in ["values", "gains", "verdicts", "intervals"] {
                assert_eq!(row[key].as_array().unwrap().len(), 2, "{key}");
            }
            for key in ["metric", "unit", "statistic"] {
                assert!(row[key].is_string(), "{key}");
            }
            assert_eq!(row["verdicts"], json!([null, null]));
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
            "intervals": [null, null],
        })
    );
    assert_eq!(rows[1]["better"], Value::Null);
}

#[test]
fn the_whole_document() {
    let (mut old, mut new) = (boot(0), boot(0));
    measure(&mut old, "Elapsed", "", &[1.0, 2.0]);
    measure(&mut new, "Elapsed", "", &[1.5, 1.5]);
    new.facts.release = "6.12.57".into();
    new.outcome = model::Outcome::Interrupted;
    let comparison = compared(&[("old", &[old]), ("new", &[new])]);
    insta::assert_snapshot!(report::json(&comparison).unwrap());
}
