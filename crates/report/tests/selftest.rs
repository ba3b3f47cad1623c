//! The output of a self-test.

use compare::selftest::{Claims, Drift, Family, Resolution, SelfTest, Splits};
use compare::{HostRange, Judging, Verdict};

fn metric(name: &str, verdict: Option<Verdict>) -> Resolution {
    Resolution {
        workload: "autonuma".into(),
        metric: name.into(),
        unit: "s".into(),
        primary: verdict.is_some(),
        mean: Some(12.345),
        decimals: 2,
        between: Some(0.018),
        within: None,
        visible: Some(0.0212),
        needed: verdict.map(|_| 24),
        verdict,
        p: Some(0.0313),
        drift: Some(Drift { per_block: -0.004, p: 0.003 }),
    }
}

fn claims(family: Family, compared: usize, different: usize) -> Claims {
    Claims { family, compared, different, same: 1, alone: 3 }
}

fn tested() -> SelfTest {
    SelfTest {
        judging: Judging::default(),
        boots: [6, 5],
        failed: 1,
        emulated: true,
        metrics: vec![
            metric("Elapsed-NUMA01", Some(Verdict::Regression)),
            metric("Elapsed-NUMA02", Some(Verdict::Same)),
            Resolution {
                unit: String::new(),
                mean: None,
                between: None,
                visible: None,
                drift: None,
                ..metric("\u{1b}[2J", None)
            },
        ],
        claims: vec![
            claims(Family::Primary, 2, 1),
            claims(Family::Secondary, 9, 0),
            claims(Family::Counters, 131, 0),
        ],
        splits: vec![
            Splits { workload: "autonuma".into(), splits: 16, all: true, different: 1 },
            Splits { workload: "stutter".into(), splits: 4096, all: false, different: 150 },
        ],
        host: Some(HostRange {
            variant: "A".into(),
            load: Some([0.3, 2.15]),
            steal: Some([0.0, 1.2]),
        }),
    }
}

#[test]
fn a_self_test_as_text() {
    let text = report::selftest::text(&tested());
    assert!(text.lines().all(|line| line.len() <= 100 && !line.ends_with(' ')), "{text}");
    assert!(text.chars().all(|letter| matches!(letter, '\n' | ' '..='~')), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_self_test_without_measurements_says_so() {
    let none = SelfTest {
        boots: [0, 0],
        failed: 6,
        metrics: Vec::new(),
        claims: Vec::new(),
        splits: Vec::new(),
        host: None,
        ..tested()
    };
    let text = report::selftest::text(&none);
    for said in ["6 more failed", "No complete boot has a measurement"] {
        assert!(text.contains(said), "{text}");
    }
    assert!(!text.contains("False alarms"), "{text}");
}

#[test]
fn a_self_test_as_json() {
    let json = report::selftest::json(&tested()).unwrap();
    let found: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(found["schema"], 1);
    assert_eq!(found["metrics"][0]["verdict"], "regression");
    assert_eq!(found["claims"][2]["family"], "counters");
    assert_eq!(found["splits"][1]["different"], 150);
}
