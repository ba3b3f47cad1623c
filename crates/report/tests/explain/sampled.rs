//! Tests of comparisons of sampled profiles.

use compare::{Judging, Part, Paths, SampledDifference};
use model::{Boot, Millis, Place, Profile, SAMPLES, Sampled, WorkloadUse};
use report::{sampled, sampled_html, sampled_json};

use super::common::{self, boot, columns, variant, words};
use super::{WORKLOAD, explained, kernels};

/// Returns a boot with a phase of 10 seconds.
fn sampled_boot(number: u32, planted: u64, lost: u64) -> Boot {
    let luck = [0, 3, 1, 4][number as usize];
    let path = |functions: &[&str], samples| {
        (Place::Path(functions.iter().map(|&name| name.into()).collect()), samples)
    };
    let process = Place::Process { id: 7, name: "numa\x1b01".into(), functions: Vec::new() };
    let taken = [
        path(&["asm_exc_page_fault", "handle_mm_fault", "clear_page_erms"], 400 + 2 * luck),
        path(&["asm_exc_page_fault", "handle_mm_fault", "planted<b>"], planted + luck),
        path(&["asm_exc_page_fault", "rare"], 1),
        (process, 100),
    ];
    let profile = Profile {
        workload: WORKLOAD.into(),
        phase: "steady".into(),
        costs: Profile::sampled_costs(taken, |_| "".into()),
        sampled: Some(Sampled {
            event: "cpu-clock".into(),
            frequency: 99,
            begun: 1_000_000_000,
            ended: 11_000_000_000,
            lost,
            ..Sampled::default()
        }),
        ..Profile::default()
    };
    Boot { block: number, profiles: vec![profile], ..boot(number) }
}

fn side(planted: u64, lost: u64) -> Vec<Boot> {
    (0..4).map(|number| sampled_boot(number, planted, lost)).collect()
}

fn compared(base: &[Boot], new: &[Boot]) -> (SampledDifference, Paths) {
    let variants = ["6.1", "6.12"].map(variant);
    let columns = columns(&variants, &[base, new]);
    let used = WorkloadUse::new(common::manifest(), 1, Millis(1));
    let sides = [&columns[0], &columns[1]];
    (
        compare::sampled(sides, &used, None, &Judging::default()),
        compare::paths(&columns[0], &columns[1], &used, (None, SAMPLES)),
    )
}

fn text(difference: &SampledDifference, top: usize) -> String {
    let text = sampled(difference, top);
    common::assert_plain(&text);
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    text
}

#[test]
fn two_kernels() {
    let (difference, _) = compared(&side(20, 0), &side(60, 3));
    insta::assert_snapshot!(
        "sampled",
        text(&SampledDifference { part: Some(Part::Steady), ..difference }, 10)
    );
}

#[test]
fn few_boots_have_no_intervals() {
    let (difference, _) = compared(&side(20, 0)[..1], &side(60, 0)[..1]);
    let text = words(&text(&difference, 2));
    assert!(text.contains("fewer than three boots a side have no interval"), "{text}");
    assert!(text.contains("2 more") && !text.contains("differs for certain"), "{text}");
}

#[test]
fn the_page_has_a_flame_graph_and_escapes_names() {
    let (difference, paths) = compared(&side(20, 0), &side(60, 0));
    let page = sampled_html(&difference, &paths);
    assert!(page.contains("class=\"flame\"") && page.contains("more8 marked"), "{page}");
    assert!(page.contains("planted&lt;b&gt;") && !page.contains("planted<b>"));
    assert!(!page.contains('\x1b'));
}

#[test]
fn json_has_all_functions() {
    let (difference, _) = compared(&side(20, 0), &side(60, 0));
    let json: serde_json::Value =
        serde_json::from_str(&sampled_json(&difference).unwrap()).unwrap();
    let first = &json["functions"][0];
    assert_eq!((&first["kind"], &first["name"]), (&"function".into(), &"planted<b>".into()));
    assert_eq!(first["share"]["differs"], true);
    assert_eq!(json["functions"].as_array().unwrap().len(), 4);
    assert_eq!((&json["new"]["samples"], &json["new"]["boots"]), (&2268.into(), &4.into()));
    assert_eq!(json["total"]["samples_per_iteration"]["base"], 527.0);
}

#[test]
fn sampled_profiles_stand_beside_exact_ones() {
    let (explanation, exact) = explained(&kernels::old(), &kernels::new());
    let (difference, paths) = compared(&side(20, 0), &side(60, 0));
    let page = report::explain_html(&explanation, &[], &exact, None, Some((&difference, &paths)));
    assert!(
        page.contains("Sampled: autonuma, samples: 6.12 (4 boots) against 6.1 (4 boots)"),
        "{page}"
    );
    let json = report::explain_json(&explanation, &[], Some(&difference)).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["sampled"]["base"]["boots"], 4);
}
