//! Tests which values of boots with warm-up count in `faultline compare`.

use std::path::{Path, PathBuf};
use std::process::Command;

use model::{
    Boot, Chunk, Column, Experiment, INSTRUCTIONS, Imported, Mode, Outcome, Reading, Sample, Usage,
};
use serde_json::{Value, json};

const MANIFEST: &str = "name = \"serve\"\ndescription = \"\"\ncommand = [\"/faultline/serve\"]\n\
                        [[metrics]]\nname = \"Latency\"\nunit = \"ms\"\nbetter = \"lower\"\n\
                        mean = \"amean\"\nprimary = true\n";
const EXPERIMENT: &str = "name = \"warm\"\nboots = 4\n[machine]\ncpus = 2\nmemory = \"512M\"\n\
                          [[variant]]\nname = \"a\"\nkernel = \"debian:6.1\"\n\
                          [[variant]]\nname = \"b\"\nkernel = \"debian:6.1\"\n\
                          [[workload]]\nmanifest = \"serve.toml\"\niterations = 1\nwarmup = 1\n";

/// The values of iterations in the warm-up, of the first three samples of the other iterations, and of the rest.
const COLD: f64 = 90.0;
const WARMING: f64 = 30.0;
const WARM: f64 = 10.0;
const SAMPLES: u32 = 40;

/// A second, and the time at which samples begin to count, in nanoseconds of guest time.
const SECOND: u64 = 1_000_000_000;
const BEGIN: u64 = 100 * SECOND;

fn experiment(directory: &Path) -> Experiment {
    std::fs::write(directory.join("serve.toml"), MANIFEST).unwrap();
    plan::file::parse(&directory.join("warm.toml"), EXPERIMENT, None).unwrap().experiment
}

/// A store with boots of the experiment, imported or not.
fn store(directory: &Path, imported: bool) -> PathBuf {
    let mut experiment = experiment(directory);
    experiment.imported = imported.then(|| Imported {
        tool: "mmtests".into(),
        directory: directory.to_owned(),
        digest: String::new(),
    });
    store_of(&experiment, directory.join(format!("{imported}.db")))
}

fn store_of(experiment: &Experiment, path: PathBuf) -> PathBuf {
    let mut store = store::open(&path).unwrap();
    let id = store.keep_experiment(experiment, Reading::USUAL).unwrap();
    for block in 0..experiment.boots {
        for variant in ["a", "b"] {
            store.keep_boot(id, &boot(variant, block)).unwrap();
        }
    }
    path
}

fn boot(variant: &str, block: u32) -> Boot {
    let sample = |iteration, value| Sample { iteration, ..Sample::new("serve", "Latency", value) };
    let usage = |iteration| Usage {
        workload: "serve".into(),
        iteration,
        user: 1.0,
        system: 1.0,
        elapsed: if iteration == 0 { COLD } else { WARM },
    };
    let level = |at| if at < 3 { WARMING } else { WARM };
    let counted = (0..SAMPLES).map(|at| {
        let luck = f64::from((7 * at + 3 * block) % 11) - 5.0;
        let ended = Some(BEGIN + u64::from(at + 1) * SECOND / 4);
        Sample { ended, ..sample(1, level(at) + luck / 100.0) }
    });
    // There are 1000 faults per second in the warm-up, the first three quarters of a second; then 100.
    let faults = |second: u64| if second == 0 { 0 } else { 750 + 100 * second as i64 - 75 };
    let chunk = Chunk {
        workload: "serve".into(),
        iteration: 1,
        phase: String::new(),
        source: "vmstat".into(),
        times: (0..=10).map(|second| BEGIN + second * SECOND).collect(),
        columns: vec![Column::new(
            "pgmajfault",
            (0..=10).map(|second| Some(faults(second))).collect(),
        )],
    };
    Boot {
        variant: variant.into(),
        boot_index: block,
        block,
        outcome: Outcome::Complete,
        samples: [sample(0, COLD)].into_iter().chain(counted).collect(),
        usage: [0, 1].map(usage).into(),
        chunks: vec![chunk],
        ..Boot::default()
    }
}

fn compare(store: &Path, arguments: &[&str]) -> Vec<u8> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_faultline"));
    command.arg("--store").arg(store).arg("compare").args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn document(store: &Path, arguments: &[&str]) -> Value {
    let output = compare(store, &[&["--format", "json"], arguments].concat());
    serde_json::from_slice(&output).unwrap()
}

/// The tables of metrics, of durations and of counters.
fn tables(store: &Path, arguments: &[&str]) -> [Value; 3] {
    let document = document(store, arguments);
    [0, 1, 2].map(|place| document["tables"][place].clone())
}

fn value(table: &Value, statistic: &str, metric: &str) -> f64 {
    let mut rows = table["rows"].as_array().unwrap().iter();
    let row = rows.find(|row| row["statistic"] == statistic && row["metric"] == metric).unwrap();
    assert_eq!(row["values"].as_array().unwrap().len(), 2);
    row["values"][1].as_f64().unwrap()
}

fn is_near(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 0.1
}

/// The mean of the samples of an iteration.
const MIXED: f64 = (3.0 * WARMING + (SAMPLES - 3) as f64 * WARM) / SAMPLES as f64;

#[test]
fn the_steady_state_is_what_counts() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path(), false);
    let [metrics, durations, counters] = tables(&store, &[]);
    assert!(is_near(value(&metrics, "Amean", "Latency"), WARM));
    assert!(is_near(value(&metrics, "Max", "Latency"), WARM));
    assert_eq!(value(&durations, "Amean", "Elapsed"), WARM);
    // Of the 1675 faults, those after second 1 count. That is the first reading after the warm-up.
    assert_eq!(value(&counters, "Amean", "Major Faults"), 900.0);
    assert_eq!([&durations["part"], &counters["part"]], ["whole", "steady"]);
    let text = String::from_utf8(compare(&store, &["--full"])).unwrap();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!text.contains("rows with one value per iteration"), "{text}");
    for said in ["whole iterations with their warm-up", "without the warm-up left out above"] {
        assert!(text.contains(said), "{text}");
    }
    assert_eq!(durations["pooled"][1], json!({ "iterations": [1, 1, 1, 1], "warmup": 1 }));
    let told = metrics["warm_ups"].as_array().unwrap();
    let said = told.iter().map(|it| [&it["of"], &it["first"], &it["asked"], &it["counted"]]);
    let [iterations, samples] = said.collect::<Vec<_>>().try_into().unwrap();
    assert_eq!(iterations, [&json!("iterations"), &json!(1), &json!(true), &json!(false)]);
    assert_eq!(samples, [&json!("samples"), &json!(3), &json!(false), &json!(false)]);
    assert_eq!(told[0]["columns"][1]["before"], COLD);
    assert!(is_near(told[1]["columns"][1]["before"].as_f64().unwrap(), WARMING));
}

#[test]
fn warm_up_counts_if_requested() {
    let directory = tempfile::tempdir().unwrap();
    let asked = ["--warmup", "include"];
    let [metrics, durations, counters] = tables(&store(directory.path(), false), &asked);
    assert_eq!(value(&metrics, "Max", "Latency"), COLD);
    assert_eq!(value(&durations, "Amean", "Elapsed"), COLD + WARM);
    assert_eq!(value(&counters, "Amean", "Major Faults"), 1675.0);
    assert_eq!([&durations["part"], &counters["part"]], [&Value::Null; 2]);
    let told = metrics["warm_ups"].as_array().unwrap();
    assert!(!told.is_empty() && told.iter().all(|it| it["counted"] == true), "{told:?}");
}

/// Either of the two experiments can be compared.
#[test]
fn both_sides_of_a_cross_check_leave_out_warm_up() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("both.db");
    let mut store = store::open(&path).unwrap();
    let measured = experiment(directory.path());
    let exact = Experiment { name: "exact".into(), mode: Mode::Exact, ..measured.clone() };
    let ids = [&measured, &exact].map(|it| store.keep_experiment(it, Reading::USUAL).unwrap());
    for (block, (variant, scale)) in (0..4).flat_map(|it| [(it, ("a", 1.0)), (it, ("b", 1.5))]) {
        let mut boot = boot(variant, block);
        let counted = |iteration, value| Sample {
            metric: INSTRUCTIONS.into(),
            label: "total".into(),
            iteration,
            value,
            ..boot.samples[0].clone()
        };
        let counted = Boot { samples: vec![counted(0, 900.0), counted(1, 100.0)], ..boot.clone() };
        store.keep_boot(ids[1], &counted).unwrap();
        boot.samples.iter_mut().skip(4).for_each(|sample| sample.value *= scale);
        store.keep_boot(ids[0], &boot).unwrap();
    }
    drop(store);
    let all = [1.0, 1.5].map(|scale| COLD + 3.0 * WARMING + (SAMPLES - 3) as f64 * scale * WARM);
    let included = 100.0 * (1.0 - all[1] / all[0]);
    for name in ["warm", "exact"] {
        let both = |arguments: &[&str]| {
            let beside = &document(&path, &[&[name], arguments].concat())["beside"][0];
            let found = [&beside["gain"]["gain"], &beside["instructions"]["base"]];
            found.map(|it| it.as_f64().unwrap())
        };
        for (arguments, [gain, instructions]) in
            [(&[][..], [-50.0, 100.0]), (&["--warmup", "include"][..], [included, 500.0])]
        {
            let found = both(arguments);
            assert!(is_near(found[0], gain), "{name} {arguments:?}: {found:?}");
            assert_eq!(found[1], instructions, "{name} {arguments:?}");
        }
    }
}

/// The plots of a page. It has no other drawings.
fn drawings(store: &Path, arguments: &[&str]) -> Vec<String> {
    let page = compare(store, &[&["--format", "html"], arguments].concat());
    let page = String::from_utf8(page).unwrap();
    let drawings = page.split("<svg").skip(1);
    drawings.map(|it| it.split("</svg>").next().unwrap().to_owned()).collect()
}

#[test]
fn plots_count_what_tables_count() {
    let directory = tempfile::tempdir().unwrap();
    let asked = store(directory.path(), false);
    let mut experiment = experiment(directory.path());
    experiment.workloads[0].warmup = 0;
    let none = store_of(&experiment, directory.path().join("none.db"));
    let all = drawings(&none, &["--warmup", "include"]);
    assert!(!all.is_empty());
    assert_eq!(drawings(&asked, &["--warmup", "include"]), all);
    assert_ne!(drawings(&asked, &[]), all);
}

/// Rows of another tool are defined over all samples.
#[test]
fn imported_results_count_as_in_the_other_tool() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path(), true);
    let [metrics, ..] = tables(&store, &[]);
    assert!(is_near(value(&metrics, "Amean", "Latency"), MIXED));
    assert_eq!(metrics["warm_ups"].as_array().unwrap().last().unwrap()["counted"], true);
    let [metrics, ..] = tables(&store, &["--warmup", "exclude"]);
    assert!(is_near(value(&metrics, "Amean", "Latency"), WARM));
}
