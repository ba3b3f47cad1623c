//! Tests of `faultline export`: pandas and DuckDB read its files as the documentation says.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use model::{
    Better, Boot, BootFacts, Bytes, Chunk, Column, Execution, Experiment, Kept, Machine, Manifest,
    Metric, Millis, Outcome, Provenance, Reading, Sample, Topology, Usage, Variant, WorkloadUse,
};
use serde_json::{Value, json};
use store::Detail;
use tempfile::TempDir;

/// How often samples with a label were measured in a row.
const MANY: NonZeroU32 = NonZeroU32::new(500_000).unwrap();
const DOCUMENTATION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/export.md");
const READER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/export/read.py");
const STARTED: u64 = 1_772_884_800;
/// This is more rows than a group of a Parquet file has.
const LONG: u64 = 40_000;

/// One label for each way in which a reader may misinterpret text.
const ODD: [&str; 15] = [
    "", "p99", "6.10", "NA", "null", "true", "1e5", " lead, \"quoted\"", "two\nlines",
    "caf\u{e9} \u{1f980}", "2026-03-07", "=1+1", "-1.5", "'@a", r"a\n\",
];

fn experiment() -> Experiment {
    let metric = |name: &str, unit: &str, better| Metric {
        name: name.into(),
        unit: unit.into(),
        better,
        ..Metric::default()
    };
    let manifest = Manifest {
        name: "autonuma, \"odd\"".into(),
        metrics: vec![
            metric("Elapsed", "s", Some(Better::Lower)),
            metric("Rate", "MB/s", Some(Better::Higher)),
            metric("CPU", "%", None),
        ],
        ..Manifest::default()
    };
    let variant = |name: &str| Variant { name: name.into(), ..Variant::default() };
    Experiment {
        name: "numa".into(),
        variants: vec![variant("6.1"), variant("6.10")],
        machine: Machine::new(Topology::even(4, Bytes::mib(2048), 2).unwrap()),
        workloads: vec![WorkloadUse::new(manifest, 1, Millis(1000))],
        boots: 3,
        ..Experiment::default()
    }
}

fn boot(experiment: &Experiment, variant: &str, boot_index: u32) -> Boot {
    let workload = &experiment.workloads[0].manifest.name;
    let sample = |phase: &str, metric: &str, label: &str, value| Sample {
        workload: workload.clone(),
        iteration: boot_index,
        phase: phase.into(),
        metric: metric.into(),
        label: label.into(),
        value,
        count: if label.is_empty() { model::ONCE } else { MANY },
        ended: (phase == "fill").then_some(81_250_000_000),
    };
    let mut samples = vec![
        sample("fill", "Elapsed", "", 0.1 + 0.2),
        sample("", "Rate", "", 1e300),
        sample("", "Rate", "", f64::NAN),
        sample("", "Rate", "", f64::NEG_INFINITY),
        sample("", "undeclared", "", -1.25e-9),
    ];
    samples.extend(ODD.map(|label| sample("steady", "CPU", label, f64::from(boot_index) + 97.5)));
    let usage = Usage {
        workload: workload.clone(),
        iteration: 0,
        user: 1.5,
        system: f64::NAN,
        elapsed: 2.25,
    };
    Boot {
        variant: variant.into(),
        boot_index,
        block: boot_index,
        started: STARTED + 61 * u64::from(boot_index),
        outcome: Outcome::Complete,
        facts: BootFacts {
            release: "6.1.0-49-cloud-amd64".into(),
            cpus: 4,
            nodes: 2,
            memory: 2048 << 20,
            provenance: Provenance {
                execution: Some(Execution::Kvm),
                emulator: "QEMU 10.0.2".into(),
                ..Provenance::default()
            },
            ..BootFacts::default()
        },
        samples,
        usage: vec![usage],
        chunks: chunks(workload),
        ..Boot::default()
    }
}

fn chunks(workload: &str) -> Vec<Chunk> {
    let column = |name: &str, value: &dyn Fn(i64) -> Option<i64>| Column {
        name: name.into(),
        values: (0..LONG as i64).map(value).collect(),
    };
    let times = || (0..LONG).map(|time| 7_000_000_000 + time * 10_000_000).collect();
    let of = |source: &str, columns| Chunk {
        workload: workload.into(),
        iteration: 0,
        phase: "steady".into(),
        source: source.into(),
        times: times(),
        columns,
    };
    vec![
        of(
            "vmstat",
            vec![
                column("numa_pte_updates", &|time| Some(3 * time)),
                column("sometimes", &|time| (time % 3 == 0).then_some(-time)),
            ],
        ),
        of("workload", vec![column("memory, node 0", &|time| Some(time * 500_000))]),
    ]
}

/// A store with an experiment whose boots ended in several ways.
fn store(directory: &Path) -> (PathBuf, Experiment, Vec<Kept>) {
    let path = directory.join("x.db");
    let mut store = store::open(&path).unwrap();
    let experiment = experiment();
    let id = store.keep_experiment(&experiment, Reading::USUAL).unwrap();
    let mut failed = boot(&experiment, "6.10", 1);
    failed.outcome = Outcome::Panicked("Kernel panic, \"not\" syncing".into());
    let unknown = Boot {
        variant: "6.1".into(),
        boot_index: 1,
        samples: boot(&experiment, "6.1", 1).samples,
        ..Boot::default()
    };
    let [mut old, new] = ["6.1", "6.10"].map(|variant| boot(&experiment, variant, 0));
    old.facts.provenance.execution = Some(Execution::Tcg);
    for boot in [old, new, failed, unknown] {
        store.keep_boot(id, &boot).unwrap();
    }
    let kept = store.boots(id, Detail::AllSeries).unwrap();
    (path, experiment, kept)
}

fn faultline(store: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_faultline"));
    let directory = store.parent().unwrap();
    command.current_dir(directory).arg("--store").arg(store).args(arguments).output().unwrap()
}

/// The Python that `make python` sets up.
fn python() -> PathBuf {
    let usual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/python/bin/python");
    let path = std::env::var_os("FAULTLINE_PYTHON").map_or_else(|| usual.into(), PathBuf::from);
    assert!(
        path.exists(),
        "there is no {}: `make python` installs pandas and DuckDB, which this test reads with; \
         FAULTLINE_PYTHON names another Python that has them",
        path.display()
    );
    path
}

/// Writes files by the commands that the documentation shows.
fn export_as_documented(store: &Path) {
    let documentation = std::fs::read_to_string(DOCUMENTATION).unwrap();
    let commands = documentation.lines().filter_map(|line| line.strip_prefix("faultline export "));
    let mut number = 0;
    for command in commands {
        let words: Vec<&str> = command.split(' ').collect();
        let output = faultline(store, &[&["export"], &*words].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && output.stdout.is_empty(), "{command}: {error}");
        number += 1;
    }
    assert_eq!(number, 4);
}

/// Every row of samples that the store gives.
fn expected(experiment: &Experiment, kept: &[Kept]) -> Vec<Value> {
    let metrics = &experiment.workloads[0].manifest.metrics;
    let number = |value: f64| if value.is_finite() { json!(value) } else { Value::Null };
    let text = |text: &str| if text.is_empty() { Value::Null } else { json!(text) };
    let mut rows = Vec::new();
    for Kept { id, boot, .. } in kept {
        let known = boot.started != 0;
        let or_null = |value: Value| if known { value } else { Value::Null };
        let outcome = match &boot.outcome {
            Outcome::Complete => "complete",
            Outcome::Panicked(_) => "panicked",
            Outcome::Interrupted => "interrupted",
            other => panic!("{other}"),
        };
        let made = &boot.facts.provenance;
        let mut row = |own: Value| {
            let mut row = json!({
                "experiment": "numa",
                "variant": boot.variant,
                "boot": id.to_string(),
                "replicate": boot.boot_index,
                "block": boot.block,
                "started": or_null(json!(boot.started)),
                "outcome": outcome,
                "release": or_null(json!("6.1.0-49-cloud-amd64")),
                "cpus": or_null(json!(4)),
                "nodes": or_null(json!(2)),
                "memory": or_null(json!(2u64 << 30)),
                "mode": "measured",
                "emulated": or_null(json!(made.execution == Some(Execution::Tcg))),
                "execution": or_null(json!(made.execution_name())),
                "emulator": or_null(json!(made.emulator)),
                "host": null,
                "host_cpu": null,
            });
            row.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
            rows.push(row);
        };
        for sample in &boot.samples {
            let metric = metrics.iter().find(|metric| metric.name == sample.metric);
            let better = match sample.metric.as_str() {
                "Elapsed" => json!("lower"),
                "Rate" => json!("higher"),
                _ => Value::Null,
            };
            row(json!({
                "kind": "metric",
                "count": sample.count,
                "workload": sample.workload,
                "iteration": sample.iteration,
                "phase": text(&sample.phase),
                "metric": sample.metric,
                "label": text(&sample.label),
                "unit": metric.map(|metric| &metric.unit),
                "better": better,
                "value": number(sample.value),
                "ended": sample.ended,
            }));
        }
        for usage in &boot.usage {
            let times =
                [("User", usage.user), ("System", usage.system), ("Elapsed", usage.elapsed)];
            for (name, value) in times {
                row(json!({
                    "kind": "duration",
                    "count": 1,
                    "workload": usage.workload,
                    "iteration": usage.iteration,
                    "phase": null,
                    "metric": name,
                    "label": null,
                    "unit": "s",
                    "better": "lower",
                    "value": number(value),
                    "ended": null,
                }));
            }
        }
    }
    rows
}

/// For each series of each boot: name, rows, values, sum, first and last time.
fn expected_series(kept: &[Kept]) -> Vec<Value> {
    let mut series = Vec::new();
    for Kept { id, boot, .. } in kept {
        for chunk in &boot.chunks {
            let unit = if chunk.source == "workload" { 1e6 } else { 1.0 };
            for column in &chunk.columns {
                let known: Vec<f64> =
                    column.values.iter().flatten().map(|value| *value as f64 / unit).collect();
                series.push(json!([
                    id.to_string(),
                    chunk.source,
                    column.name,
                    chunk.times.len(),
                    known.len(),
                    known.iter().sum::<f64>(),
                    chunk.times.first(),
                    chunk.times.last(),
                ]));
            }
        }
    }
    series
}

/// Whether two documents are equal. A whole number equals the same value with a fraction.
fn alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| alike(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|it| alike(one, it)))
        }
        _ => one == other,
    }
}

#[test]
fn a_misspelt_name_is_reported_and_no_file_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _, kept) = store(directory.path());
    let file = directory.path().join("x.csv");
    std::fs::write(&file, "of old").unwrap();
    let workload = &*kept[0].boot.samples[0].workload;
    for (filter, said) in [
        (["--workload", "nix"], format!("there is no workload `nix`; there are: {workload}")),
        (["--phase", "nix"], "no workload has a phase `nix`; there are: ".to_owned()),
    ] {
        for series in [&[][..], &["--series"]] {
            let arguments = [&["export", "--format", "csv", "-o", "x.csv"], &filter[..], series];
            let output = faultline(&store, &arguments.concat());
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.code() == Some(2) && error.contains(&said), "{error}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), "of old");
        }
    }
    let output = faultline(&store, &["export", "--format", "csv", "-o", "/dev/full"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/dev/full: "), "{output:?}");
}

#[test]
fn pandas_and_duckdb_read_what_the_store_holds() {
    let directory = TempDir::new().unwrap();
    let (path, experiment, kept) = store(directory.path());
    export_as_documented(&path);
    let output = Command::new(python())
        .args([READER, DOCUMENTATION])
        .current_dir(directory.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();

    let expected = expected(&experiment, &kept);
    for (reader, rows) in found["samples"].as_object().unwrap() {
        let rows = rows.as_array().unwrap();
        assert_eq!(rows.len(), expected.len(), "{reader}");
        for (row, expected) in rows.iter().zip(&expected) {
            assert!(alike(row, expected), "{reader}: {row:#}\ninstead of {expected:#}");
        }
    }
    let expected = expected_series(&kept);
    for (reader, series) in found["series"].as_object().unwrap() {
        assert!(alike(series, &json!(expected)), "{reader}: {series:#}\n{expected:#?}");
    }
    for (column, pandas, duckdb) in [
        ("variant", "str", "VARCHAR"),
        ("replicate", "int64", "BIGINT"),
        ("started", "datetime64[ms, UTC]", "TIMESTAMP WITH TIME ZONE"),
        ("value", "float64", "DOUBLE"),
        ("emulated", "object", "BOOLEAN"),
    ] {
        assert_eq!(found["types"]["pandas"][column], pandas, "{column}");
        assert_eq!(found["types"]["duckdb"][column], duckdb, "{column}");
    }
}

#[test]
fn rows_are_chosen_by_workload_and_phase() {
    let directory = TempDir::new().unwrap();
    let (path, ..) = store(directory.path());
    let rows = |arguments: &[&str]| {
        let output =
            faultline(&path, &[&["export", "numa", "--format", "json"], arguments].concat());
        assert!(output.status.success());
        serde_json::from_slice::<Vec<Value>>(&output.stdout).unwrap()
    };
    let fill = rows(&["--phase", "fill"]);
    assert_eq!(fill.len(), 4);
    assert!(fill.iter().all(|row| row["metric"] == "Elapsed" && row["phase"] == "fill"));
    let whole = rows(&[]);
    assert_eq!(rows(&["--workload", "autonuma, \"odd\""]), whole);
}

#[test]
fn samples_and_series_have_the_documented_columns_and_their_units() {
    let directory = TempDir::new().unwrap();
    let (path, ..) = store(directory.path());
    let documentation = std::fs::read_to_string(DOCUMENTATION).unwrap();
    let (samples, series) = documentation.split_once("\n## Series").unwrap();
    let documented = |text: &str| {
        let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
        rows.map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
    };
    let csv = |arguments: &[&str]| {
        let all = [&["export", "numa", "--format", "csv"], arguments].concat();
        String::from_utf8(faultline(&path, &all).stdout).unwrap()
    };
    let head =
        |text: &str| text.lines().next().unwrap().split(',').map(str::to_owned).collect::<Vec<_>>();
    let of_samples = documented(samples);
    assert_eq!(head(&csv(&[])), of_samples);
    let (mut of_series, machine) = (documented(series), &of_samples[of_samples.len() - 11..]);
    let last = of_series.split_off(of_series.len() - 1);
    let all = [&of_samples[..7], &of_series, &machine[..10], &last].concat();
    let text = csv(&["--series"]);
    assert_eq!(head(&text), all);
    for (counter, unit) in [("numa_pte_updates", "PTEs"), ("sometimes", "")] {
        let row = text.lines().find(|line| line.contains(&format!(",{counter},"))).unwrap();
        assert_eq!(row.rsplit(',').next(), Some(unit), "{row}");
    }
}

#[test]
fn an_unsuitable_format_is_refused() {
    let directory = TempDir::new().unwrap();
    let (path, ..) = store(directory.path());
    for (arguments, complaint) in [
        (&["b1", "--format", "csv"][..], "b1 is a boot: export its profile"),
        (
            &["numa", "--format", "collapsed"],
            "export the profile of one boot: name it, such as b12",
        ),
        (&["b1", "--format", "collapsed", "--series"], "--series exports an experiment"),
        (&["b1", "--format", "collapsed"], "b1 has no profile"),
        (&["nuna", "--format", "csv"], "no experiment `nuna`"),
        (&["numa", "--format", "csv", "-o", "no/such/place"], "no/such/place: No such file"),
    ] {
        let output = faultline(&path, &[&["export"], arguments].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(complaint), "{error}");
    }
}
