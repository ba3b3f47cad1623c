//! Sweeps: verdicts by point, in all formats but the page.

mod common;

use common::carried::{assert_short, mail as mail_of};
use common::{blocks, boot, columns, experiment};
use compare::{Comparison, Judging, Results, compare};
use model::{Boot, Experiment, Mode, Outcome, Reading, Sequential};
use report::Recipe;
use serde_json::json;

const VALUES: [&str; 4] = ["512M", "1G", "2G", "4G"];

/// Compares two kernels at four points, where the second is equal, slower, unknown and faster. The machines
/// of the points differ by the factors 1, 2, 3 and 4.
fn of(change: impl FnOnce(&Comparison, &Results<'_>)) {
    let variants = common::sweep(&["6.1", "6.12"], &VALUES);
    let mut boots: Vec<Vec<Boot>> = Vec::new();
    for (machine, scale) in (1..).zip([1.0, 1.08, 1.0, 0.9]) {
        let machine = f64::from(machine);
        boots.push(blocks(6, machine, 1));
        boots.push(blocks(6, machine * scale, if scale == 1.0 { 1 } else { 2 }));
    }
    let mut failed = boot(0);
    failed.outcome = Outcome::Panicked("Oops".into());
    boots[5] = vec![failed];
    let boots: Vec<&[Boot]> = boots.iter().map(Vec::as_slice).collect();
    let mut experiment = experiment(Mode::Measured, 6);
    experiment.variants = variants.clone();
    let parameters = &mut experiment.workloads[0].manifest.parameters;
    parameters.insert("memory".into(), "512M".into());
    let reading = common::on_rows(&["Elapsed-NUMA01", "None"]);
    let variants = columns(&variants, &boots);
    let results = Results { experiment: &experiment, reading: &reading, variants };
    change(&compare(&results, 0, &Judging::default()), &results);
}

/// Returns the paragraph with the points.
fn section(text: &str) -> &str {
    common::section(text, "By point")
}

#[test]
fn texts_have_verdicts_by_point() {
    of(|comparison, results| {
        assert_short(&mail_of(comparison));
        let text = report::text(comparison);
        insta::assert_snapshot!(section(&text));
        let brief = report::brief(comparison, "faultline compare 1 --point memory=4G --full");
        assert_eq!(section(&brief), section(&text));
        let full = "counters and notes of a point: faultline compare 1 --point memory=4G";
        assert!(brief.contains(full), "{brief}");
        let recipe = Recipe { version: "0.1.0", ..Recipe::default() };
        let mail = report::mail(comparison, results, &[], &recipe, &[]);
        assert!(mail.contains("memory of each point") && !mail.contains("memory 512M"), "{mail}");
        let subject = mail.split("\n\n").next().unwrap().to_owned();
        insta::assert_snapshot!(subject + "\n\n" + section(&mail));
    });
}

#[test]
fn the_points_of_a_run_that_may_end_early_say_so() {
    of(|_, results| {
        let sequential = Some(Sequential { margin: 0.02, budget: None });
        let auto = Experiment { sequential, ..results.experiment.clone() };
        let results = Results { experiment: &auto, ..results.clone() };
        let text = report::text(&compare(&results, 0, &Judging::of(&results)));
        let said = "(margin 2 %, 100 % intervals, sequential, before the first of 2 looks):";
        assert!(
            section(&text).split_whitespace().collect::<Vec<_>>().join(" ").contains(said),
            "{text}"
        );
    });
}

#[test]
fn seeds_are_those_of_each_point() {
    let variants = common::sweep(&["6.1", "6.12"], &VALUES[..2]);
    let seeds = blocks(4, 1.0, 1);
    let mut experiment = experiment(Mode::Exact, 4);
    experiment.variants = variants.clone();
    let results = Results {
        experiment: &experiment,
        reading: Reading::USUAL,
        variants: columns(&variants, &[&*seeds; 4]),
    };
    let text = report::text(&compare(&results, 0, &Judging::default()));
    assert!(text.contains("4 of each variant at each point\n"), "{text}");
}

#[test]
fn documents_have_verdicts_by_point() {
    of(|comparison, _| {
        let document = common::document(comparison);
        assert_eq!(document["tables"], json!([]));
        assert_eq!(document["points"][1]["point"], "memory=1G");
        assert_eq!(document["points"][1]["variants"], json!(["6.1", "6.12"]));
        let confidence = &document["points"][1]["judging"]["confidence"];
        assert!((confidence.as_f64().unwrap() - 0.9875).abs() < 1e-9);
        let along = &document["along"][0];
        assert_eq!(along["metric"], "Elapsed-NUMA01");
        assert_eq!(along["verdicts"], json!(["same", "regression", "undecided", "improvement"]));
        let turn = json!({ "after": "memory=512M", "from": "same", "at": "memory=1G", "to": "regression" });
        assert_eq!(along["turns"][0], turn);
        let csv = report::csv(comparison).unwrap();
        let short = csv.lines().map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            [0, 2, 6, 14].map(|field| fields[field]).join(",")
        });
        insta::assert_snapshot!(short.collect::<Vec<_>>().join("\n"));
    });
}
