//! The effects of the axes of a matrix.

mod common;

use common::carried::{assert_short, mail};
use common::{blocks, boot, columns, experiment, measure_phase, variant};
use compare::{Comparison, Judging, Results, VariantBoots, compare};
use model::{Boot, Mode, Reading, Variant};
use serde_json::json;

/// Variants of a patch and a setting. The patch helps with one value of the setting.
const CELLS: [(&str, &str, f64); 4] = [
    ("none", "always", 1.0),
    ("none", "never", 1.1),
    ("fix", "always", 0.9),
    ("fix", "never", 1.1),
];

fn variants() -> [Variant; 4] {
    CELLS.map(|(patches, thp, _)| variant(&format!("6.12 {patches} {thp}")))
}

fn reading() -> Reading {
    let values = CELLS.map(|(patches, thp, _)| vec![patches.to_owned(), thp.to_owned()]);
    common::crossed(&["patches", "thp"], variants().iter().zip(values))
}

/// Compares variants in measured mode.
fn compare_columns(reading: &Reading, variants: Vec<VariantBoots<'_>>) -> Comparison {
    let experiment = experiment(Mode::Measured, 2);
    compare(&Results { experiment: &experiment, reading, variants }, 0, &Judging::default())
}

fn measured(number: usize) -> Comparison {
    let boots: Vec<Vec<Boot>> =
        (1..).zip(CELLS).map(|(seed, (.., scale))| blocks(5, scale, seed)).collect();
    let boots: Vec<&[Boot]> = boots.iter().take(number).map(Vec::as_slice).collect();
    let mut all = vec![&[][..]; 4];
    all[..number].copy_from_slice(&boots);
    compare_columns(&reading(), columns(&variants(), &all))
}

/// Returns the paragraph with the effects.
fn section(text: &str) -> &str {
    common::section(text, "Effects of ")
}

#[test]
fn effects_over_blocks() {
    let comparison = measured(4);
    assert_short(&mail(&comparison));
    insta::assert_snapshot!(section(&report::text(&comparison)));
    let document = common::document(&comparison);
    let table = &document["tables"][0];
    let effects = &table["effects"];
    assert_eq!(effects["axes"][0], json!({ "name": "patches", "values": ["none", "fix"] }));
    let interaction = &effects["effects"][2];
    assert_eq!(interaction["of"], json!([{ "axis": 0, "value": 1 }, { "axis": 1, "value": 1 }]));
    let row = interaction["row"].as_u64().unwrap() as usize;
    assert_eq!(table["rows"][row]["metric"], "System-NUMA01");
    assert_eq!(table["rows"][row]["statistic"], "Amean");
    assert_eq!(document["tables"][1].get("effects"), None);
}

#[test]
fn a_variant_without_boots_leaves_effects_unknown() {
    let comparison = measured(3);
    assert_short(&mail(&comparison));
    insta::assert_snapshot!(section(&report::text(&comparison)));
}

#[test]
fn plain_columns_have_no_effects() {
    let text =
        report::text(&common::compared(&[("a", &blocks(4, 1.0, 1)), ("b", &blocks(4, 1.0, 2))]));
    assert!(!text.contains("Effects"), "{text}");
}

#[test]
fn effects_over_seeds() {
    let seeds = |scale: f64| -> Vec<Boot> {
        let boot = |seed: u32| {
            let mut boot = boot(seed);
            boot.block = seed;
            let kernel = 3e8 * scale * (1.0 + f64::from(seed * seed % 5) / 1e3);
            measure_phase(&mut boot, "NUMA01", "instructions", "kernel", kernel.round());
            boot
        };
        (0..5).map(boot).collect()
    };
    let boots = CELLS.map(|(.., scale)| seeds(scale));
    let (experiment, variants) = (experiment(Mode::Exact, 5), variants());
    let columns = columns(&variants, &boots.each_ref().map(Vec::as_slice));
    let results = Results { experiment: &experiment, reading: &reading(), variants: columns };
    let comparison = compare(&results, 0, &Judging::default());
    assert_short(&mail(&comparison));
    insta::assert_snapshot!(section(&report::text(&comparison)));
    insta::assert_snapshot!("in_a_mail", section(&mail(&comparison)));
    // With another baseline, other values of the axes come first.
    let text = report::text(&compare(&results, 3, &Judging::default()));
    assert!(section(&text).contains("against patches=fix, thp=never, each"), "{text}");
}

/// With many values, most interactions are only counted.
#[test]
fn many_interactions_are_counted() {
    let (mut variants, mut values) = (Vec::new(), Vec::new());
    let mut boots = Vec::new();
    for a in 0..4 {
        for b in 0..4 {
            variants.push(variant(&format!("{a} {b}")));
            values.push(vec![format!("{a}"), format!("{b}")]);
            boots.push(blocks(3, 1.0, 4 * a + b));
        }
    }
    let boots: Vec<&[Boot]> = boots.iter().map(Vec::as_slice).collect();
    let reading = common::crossed(&["a", "b"], variants.iter().zip(values));
    let comparison = compare_columns(&reading, columns(&variants, &boots));
    assert_short(&mail(&comparison));
    let text = report::text(&comparison);
    let said = "    3 more interactions, independent or undecided\n";
    assert!(section(&text).contains(said), "{text}");
}
