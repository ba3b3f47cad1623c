//! The parts of a page on sweeps, series and matrices.

use model::{Mode, Reading, Variant};

use crate::common::{self, blocks};
use crate::made_up::{Side, of, read};
use crate::{checked, texts};

/// Returns the page of these variants, with boots of measured mode. `scales` has the factor of each
/// variant's times.
fn drawn(name: &str, variants: Vec<Variant>, scales: &[f64], reading: &Reading) -> scraper::Html {
    let sides = variants
        .into_iter()
        .zip(scales)
        .zip(1..)
        .map(|((variant, scale), seed)| Side { variant, boots: blocks(5, *scale, seed) });
    let sides: Vec<Side> = sides.collect();
    checked(name, &read(&sides, &of(&sides, Mode::Measured), reading))
}

#[test]
fn a_sweep_is_drawn_along_its_points() {
    let variants = common::sweep(&["6.1", "6.12"], &["512M", "1G", "2G", "4G"]);
    let scales = [1.0, 1.0, 2.0, 2.16, 3.0, 3.0, 4.0, 3.6];
    let document = drawn("sweep", variants, &scales, &common::on_rows(&["Elapsed-NUMA01"]));
    insta::assert_snapshot!(
        texts(&document, "#verdicts > p, #verdicts h3, #verdicts tr").join("\n")
    );
    assert_eq!(texts(&document, ".ticks.across text"), ["512M", "1G", "2G", "4G"]);
    // Each point has a mark and an interval.
    let marks = document.select(&scraper::Selector::parse(".along .bar").unwrap()).next().unwrap();
    assert_eq!(marks.value().attr("d").unwrap().matches('V').count(), 4);
    assert!(texts(&document, "h2").iter().all(|heading| heading != "Every sample"));
}

/// The sweep has several variants with long names, several figures, many points with long names, and a
/// point without boots.
#[test]
fn a_large_sweep_is_drawn() {
    let long = "6.12+a-patch-with-a-rather-long-name vm.swappiness=200 thp=always";
    let values: Vec<String> =
        (1..13).map(|number| format!("{}M:{}M", 128 * number, 4096 - 128 * number)).collect();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let variants = common::sweep(&["6.1", "6.12", long], &values);
    let mut scales: Vec<f64> = Vec::new();
    for point in 0..12 {
        scales.extend([1.0, 1.0 + 0.01 * f64::from(point), 1.1 - 0.02 * f64::from(point)]);
    }
    let document =
        drawn("sweep-large", variants, &scales[..35], &common::on_rows(&["Elapsed", "System"]));
    assert_eq!(texts(&document, "#verdicts h3").len(), 6);
    let unknown = texts(&document, "#verdicts .verdict.undecided");
    assert!(unknown.len() > 5, "{unknown:?}");
    assert_eq!(texts(&document, "#verdicts .keys li")[1], "6.12+a-patch-with-a-rather-l..");
}

#[test]
fn a_series_has_a_line_for_each_patch() {
    let mut patches = vec!["mm: a patch that does what its rather long subject says, and more"; 9];
    patches[1] = "mm: <b>two</b>";
    let (variants, reading) = common::series(&patches);
    let scales = [1.0, 1.05, 1.05, 1.0, 1.0, 1.1, 1.1, 1.0, 1.0, 1.0];
    let document = drawn("series", variants, &scales, &reading);
    insta::assert_snapshot!(texts(&document, "#series caption, #series tr").join("\n"));
}

#[test]
fn the_effects_of_a_matrix_are_drawn() {
    let cells = [("none", "always"), ("none", "never"), ("fix", "always"), ("fix", "never")];
    let variants = cells.map(|(patches, thp)| common::variant(&format!("6.12 {patches} {thp}")));
    let values = cells.map(|(patches, thp)| vec![patches.to_owned(), thp.to_owned()]);
    let reading = Reading {
        workloads: common::on_rows(&["Elapsed-NUMA01"]).workloads,
        ..common::crossed(&["patches", "thp"], variants.iter().zip(values))
    };
    let document = drawn("matrix", variants.into(), &[1.0, 1.1, 0.9, 1.1], &reading);
    insta::assert_snapshot!(
        texts(&document, "#effects h4, #effects caption, #effects tr").join("\n")
    );
    assert_eq!(texts(&document, "#effects td .forest").len(), 3);
}
