//! The page of a comparison.

#[path = "../common/mod.rs"]
mod common;
mod designs;
#[path = "../explain/kernels.rs"]
mod kernels;
mod made_up;

use std::path::Path;

use compare::{Comparison, Difference, Explained, Holder, Verdict};
use made_up::{Chance, Side, judged, of, page, sides};
use model::{Chunk, Column, Experiment, INSTRUCTIONS, Millis, Mode, Outcome, Sample, WorkloadUse};
use scraper::{Html, Selector};

/// Most bytes of a page.
const MAX_SIZE: usize = 5 << 20;

/// Parses a page, after the checks that every page must pass. A copy stays in the build directory for
/// viewing.
fn checked(name: &str, page: &str) -> Html {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.html"));
    std::fs::write(copy, page).unwrap();
    assert!(page.len() < MAX_SIZE, "{} bytes", page.len());
    let document = Html::parse_document(page);
    assert!(document.errors.is_empty(), "{name}: {:?}", document.errors);
    let all =
        |selector: &str| document.select(&Selector::parse(selector).unwrap()).collect::<Vec<_>>();
    assert_eq!(all("script").len(), 1);
    for loading in ["[src]", "[srcset]", "link", "iframe", "object", "embed", "img", "base", "form"]
    {
        assert!(all(loading).is_empty(), "{loading}");
    }
    assert!(all("[style]").is_empty());
    for element in all("*") {
        for (name, value) in element.value().attrs() {
            assert!(!name.starts_with("on"), "{name}");
            assert!(name != "href" || value.starts_with('#'), "{value}");
        }
    }
    for style in all("style") {
        let text: String = style.text().collect();
        assert!(!text.contains("url(") && !text.contains("@import"));
    }
    let policy = all("meta[http-equiv]")[0].value().attr("content").unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
    let ids: Vec<&str> = all("[id]").iter().filter_map(|it| it.value().attr("id")).collect();
    for link in all("a") {
        let target = link.value().attr("href").unwrap().trim_start_matches('#');
        assert_eq!(ids.iter().filter(|id| **id == target).count(), 1, "{target}");
    }
    for plot in all("figure > svg, .forest") {
        assert!(plot.child_elements().any(|child| child.value().name() == "title"));
    }
    for heading in all("table th") {
        assert!(heading.value().attr("scope").is_some());
    }
    document
}

/// Returns the text of each element that a selector finds, with single spaces between words.
fn texts(document: &Html, selector: &str) -> Vec<String> {
    let selector = Selector::parse(selector).unwrap();
    let found = document.select(&selector);
    found.map(|it| common::words(&it.text().collect::<Vec<_>>().join(" "))).collect()
}

/// Gives rows verdicts of each kind that a page has text for.
fn verdicts(comparison: &mut Comparison) {
    let rows = comparison.tables.iter_mut().flat_map(|table| &mut table.rows);
    for row in rows.filter(|row| row.statistic.is_mean()) {
        row.cells[1].verdict = match &*row.metric {
            "Elapsed-NUMA01" => Some(Verdict::Regression),
            "System-NUMA01" => Some(Verdict::Improvement),
            "Rate-NUMA01" => Some(Verdict::Undecided),
            _ => None,
        };
        let undecided = row.verdict(1) == Some(Verdict::Undecided);
        if let Some(evidence) = row.cells[1].evidence_mut() {
            evidence.needed = undecided.then_some(14);
            evidence.visible = Some(0.0125);
        }
    }
}

#[test]
fn a_page_leads_from_verdicts_to_reproduction() {
    let sides = sides(6);
    let experiment = of(&sides, Mode::Measured);
    let document = checked("page", &judged(&sides, &experiment, verdicts));
    assert_eq!(
        texts(&document, "h1, h2, h3").join(", "),
        "numa-slowscan, Verdicts, autonuma, Every sample, Counters that moved most, Distributions, \
         Over time, Node by node, All figures, Machine and kernels, Failed boots, \
         How to reproduce"
    );
    insta::assert_snapshot!(texts(&document, "#verdicts > p, #verdicts tr").join("\n"));
}

#[test]
fn every_row_of_the_text_is_there() {
    let sides = sides(6);
    let experiment = of(&sides, Mode::Measured);
    let document = checked("rows", &page(&sides, &experiment));
    let rows = texts(&document, "details .figures tbody th");
    assert_eq!(
        rows[..5].join(", "),
        "Min System-NUMA01, Min Elapsed-NUMA01, Min Rate-NUMA01, Min CPU-NUMA01, \
         Amean System-NUMA01"
    );
    for row in [
        "HCoeffVar Rate-NUMA01", "Max CPU-NUMA01", "Elapsed s", "NUMA hint faults faults",
        "AutoNUMA cost model units",
    ] {
        assert!(rows.iter().any(|it| it == row), "{row}: {rows:?}");
    }
}

#[test]
fn every_sample_and_every_series_is_drawn() {
    let sides = sides(6);
    let experiment = of(&sides, Mode::Measured);
    let document = checked("drawn", &page(&sides, &experiment));
    let lanes = texts(&document, "figure g > title");
    let of_boot = |boot: &str| {
        lanes.iter().filter(|it| it.starts_with(&format!("{boot}: 5 samples"))).count()
    };
    // Each boot has samples of four metrics. The fourth boot of the second variant, b10, failed.
    assert_eq!([of_boot("b1"), of_boot("b9"), of_boot("b10")], [4, 4, 0]);
    let said = texts(&document, "text");
    for words in ["1 outlier \u{b7} n = 30", "2 peaks \u{b7} n = 30"] {
        assert!(said.iter().any(|it| it.contains(words)), "{words}: {said:?}");
    }
    let notes = texts(&document, ".note, .notes tr, section > p");
    let outlier = "Outliers: 6.12-slowscan-v2 Elapsed-NUMA01: b9 iteration 3 ";
    assert!(notes.iter().any(|it| it.starts_with(outlier)), "{notes:?}");
    assert!(notes.iter().any(|it| it.starts_with("All of these are included")));
    let titles = texts(&document, "figcaption b");
    for title in [
        "NUMA hinting faults that were local",
        "Free memory",
        "GB moved a second",
        "numa_pages_migrated",
    ] {
        assert!(titles.iter().any(|it| it == title), "{title}: {titles:?}");
    }
    assert_eq!(texts(&document, "h4")[0], "memory by node");
    assert!(texts(&document, ".whole text").iter().any(|it| it == "steady"));
}

#[test]
fn boots_that_failed_show_the_end_of_their_consoles() {
    let sides = sides(6);
    let experiment = of(&sides, Mode::Measured);
    let document = checked("failed", &page(&sides, &experiment));
    let summary = texts(&document, "#failed summary");
    assert_eq!(
        summary,
        ["b10, 6.12-slowscan-v2: kernel panic: Kernel panic - not syncing: Fatal exception"]
    );
    // In print only consoles stay folded.
    assert_eq!(texts(&document, "#failed details summary"), summary);
    let console = &texts(&document, "#failed pre")[0];
    assert!(console.ends_with("Kernel panic - not syncing: Fatal exception"));
    assert_eq!(texts(&document, "#failed .note"), ["10 lines before: faultline show b10"]);
}

#[test]
fn exact_mode_shows_floors_instead_of_intervals() {
    let mut sides = sides(6);
    sides[1].boots.remove(3);
    for (side, scale) in sides.iter_mut().zip([1.0, 0.9]) {
        for (seed, boot) in side.boots.iter_mut().enumerate() {
            let kernel = scale * 1e9 + seed as f64;
            common::measure(boot, "instructions", "kernel", &[kernel]);
        }
    }
    let experiment = of(&sides, Mode::Exact);
    let document = checked("exact", &page(&sides, &experiment));
    assert!(texts(&document, "#verdicts thead th").contains(&"Luck floor".to_owned()));
    let verdicts = texts(&document, "#verdicts td.said");
    assert_eq!(verdicts, ["\u{25b2} improvement"]);
    assert!(!document.select(&Selector::parse(".floor").unwrap()).collect::<Vec<_>>().is_empty());
    assert!(texts(&document, "header").join("").contains("not modelled"));
    assert_eq!(texts(&document, "#verdicts td.gain"), ["10.00 % fewer"]);
    // Samples without a verdict are folded, and so are all tables.
    let samples = texts(&document, "#w0 summary");
    assert!(samples[0].starts_with("Samples of "), "{samples:?}");
    assert!(texts(&document, "details[open]").is_empty());
}

#[test]
fn an_undecided_change_says_how_many_seeds_are_needed() {
    let mut sides = sides(5);
    sides[1].boots.remove(3);
    for (side, scale) in sides.iter_mut().zip([1.0, 1.005]) {
        for (seed, boot) in side.boots.iter_mut().enumerate() {
            let kernel = scale * (1e9 + 2e7 * seed as f64);
            common::measure(boot, "instructions", "kernel", &[kernel]);
        }
    }
    let document = checked("undecided", &page(&sides, &of(&sides, Mode::Exact)));
    let said = texts(&document, "#verdicts td.said");
    assert_eq!(said, ["? undecided about 210 more seeds to resolve 1 %"]);
}

#[test]
fn functions_that_changed_stand_below_the_verdicts() {
    let sides = sides(6);
    let experiment = of(&sides, Mode::Exact);
    let phase = |name: &str| {
        let holder = Holder {
            name: format!("<b>{name}"),
            inclusive: true,
            within: None,
            instructions: [100.0, 250.0],
            without_loops: None,
            entries: Some([10.0, 10.0]),
            share: 1.0,
            parts: Vec::new(),
            parts_per_entry: true,
            callee: None,
            moved: None,
            inner: None,
        };
        let kernel = Difference { base: 100.0, new: 250.0, floor: Some(1.0) };
        common::headline(name, kernel, Some(holder))
    };
    let phases = ["a", "b", "c", "d", "e"];
    let boots = [kernels::old(), kernels::new()];
    let variants = ["6.12-vanilla", "6.12-slowscan-v2"].map(common::variant);
    let columns = common::columns(&variants, &[&boots[0], &boots[1]]);
    let used = WorkloadUse::new(common::manifest(), 1, Millis(1));
    let [base, new] = [&columns[0], &columns[1]];
    let explained = Explained {
        workload: "autonuma".into(),
        variant: "6.12-slowscan-v2".into(),
        headlines: phases.map(phase).into(),
        explanation: compare::explain(base, new, &used, boots[0].len() as u32, INSTRUCTIONS),
        paths: compare::paths(base, new, &used, (None, INSTRUCTIONS)),
        ..Explained::default()
    };
    let page = made_up::explained(&sides, &experiment, &[explained]);
    let document = checked("functions", &page);
    // A graph as wide as each side.
    assert_eq!(texts(&document, "#cause .flame").len(), 2);
    let waterfall = texts(&document, "#cause .waterfall desc");
    assert!(waterfall[0].contains(kernels::PLANTED), "{waterfall:?}");
    let said = texts(&document, "#cause tbody tr");
    assert_eq!(said.len(), phases.len());
    assert_eq!(
        said[0],
        "a 150.00 % more kernel instructions, 100.0 % of the change in <b>a and what it calls 100 before, 250 now \
         (150.00 % more); 10 entries; 10.00 per entry before, 25.00 now."
    );
    let command = "All functions, counters and phases: faultline explain 6.12-vanilla 6.12-slowscan-v2 \
                   numa-slowscan --format html .";
    assert_eq!(texts(&document, "#cause p").last().unwrap(), command);
}

const HOSTILE: &str =
    "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u{202e}\u{1b}[2J&lt;";

/// Returns an experiment in which everything that a guest, a file or a user names is hostile.
fn hostile() -> (Vec<Side>, Experiment) {
    let mut sides = sides(6);
    let long = format!("{HOSTILE}{}", "x".repeat(5000));
    for side in &mut sides {
        side.variant.name.push_str(HOSTILE);
        side.variant.kernel = long.clone().into();
        for boot in &mut side.boots {
            for text in [
                &mut boot.facts.release,
                &mut boot.facts.kernel_origin,
                &mut boot.facts.kernel_digest,
                &mut boot.facts.cmdline,
                &mut boot.facts.provenance.emulator,
                &mut boot.facts.banner,
            ] {
                text.push_str(&long);
            }
            for sample in &mut boot.samples {
                sample.label = long.clone();
            }
            for problem in &mut boot.problems {
                problem.text = long.clone();
            }
            for chunk in &mut boot.chunks {
                chunk.phase.push_str(HOSTILE);
                for column in &mut chunk.columns {
                    column.name.push_str(&long);
                }
            }
            if !boot.outcome.is_complete() {
                boot.outcome = Outcome::Died(long.clone());
            }
        }
    }
    let mut experiment = of(&sides, Mode::Measured);
    experiment.name = long;
    for metric in &mut experiment.workloads[0].manifest.metrics {
        metric.unit = HOSTILE.into();
    }
    (sides, experiment)
}

#[test]
fn hostile_names_do_nothing() {
    let (sides, experiment) = hostile();
    let page = page(&sides, &experiment);
    checked("hostile", &page);
    assert!(!page.contains("<script>alert") && !page.contains("<img"));
    assert!(!page.contains('\u{202e}') && !page.contains('\u{1b}'));
    // The name is escaped, not dropped.
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
}

/// Returns an experiment with 3 workloads, 2 variants, 30 boots and 10 iterations. Each iteration has
/// series of 12,000 values.
fn large() -> (Vec<Side>, Experiment) {
    let mut sides = sides(1);
    let mut chance = Chance(7);
    for side in &mut sides {
        let mut first = side.boots.remove(0);
        first.chunks.clear();
        first.samples.clear();
        side.boots = vec![first; 30];
        for (boot, workload, iteration) in
            (0..30).flat_map(|b| (0..3).flat_map(move |w| (0..10).map(move |i| (b, w, i))))
        {
            let workload = format!("workload-{workload}");
            let sample = |label: usize, value: f64| Sample {
                iteration,
                label: label.to_string(),
                ..Sample::new(workload.clone(), "Elapsed", value)
            };
            let values = (0..40).map(|label| sample(label, chance.next()));
            side.boots[boot].samples.extend(values);
            let column = |number: usize| {
                Column::new(
                    format!("counter{number}"),
                    (0..600)
                        .map(|step| Some((step * 100) as i64 + (1e4 * chance.next()) as i64))
                        .collect(),
                )
            };
            side.boots[boot].chunks.push(Chunk {
                workload,
                iteration,
                phase: "run".into(),
                source: "vmstat".into(),
                times: (0..600).map(|step| step * 100_000_000).collect(),
                columns: (0..20).map(column).collect(),
            });
        }
    }
    let mut experiment = of(&sides, Mode::Measured);
    let used = experiment.workloads[0].clone();
    experiment.workloads = (0..3)
        .map(|number| {
            let mut used = WorkloadUse { ..used.clone() };
            used.manifest.name = format!("workload-{number}");
            used
        })
        .collect();
    (sides, experiment)
}

#[test]
fn a_large_experiment_makes_a_small_page() {
    let (sides, experiment) = large();
    let page = page(&sides, &experiment);
    checked("large", &page);
    assert!(page.len() > 1 << 20, "{} bytes", page.len());
}

#[test]
fn a_page_without_a_comparison_says_so() {
    let mut sides = sides(1);
    for side in &mut sides {
        side.boots.clear();
    }
    let experiment = of(&sides, Mode::Measured);
    let document = checked("empty", &page(&sides, &experiment));
    let said = texts(&document, "#verdicts p");
    assert_eq!(said[1], "No complete boot has a measurement: there is nothing to compare.");
}
