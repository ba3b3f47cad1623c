//! Compares tables of synthetic logs with those of mmtests, cell by cell. `expected` has the output of mmtests, which
//! `record` made.

mod logs;

use compare::{Comparison, Judging, KeptBoot, Results, Row, VariantBoots, compare};
use mmtests::benchmark::{self, Logs};
use model::{
    Boot, BootId, Bytes, Experiment, Machine, Manifest, Millis, Outcome, Reading, Sample, Topology,
    Variant, WorkloadUse,
};
use results::use_mmtests_names;

use logs::{FORMS, Form, RUNS};

const WORKLOAD: &str = "benchmark";

/// Reads all runs of a form and compares them. Rows have the names of mmtests in `month`.
fn compared(form: &Form, month: &str) -> Comparison {
    let mut metrics = Vec::new();
    let boots: Vec<Boot> = (0..RUNS.len())
        .map(|run| {
            let mut boot = Boot { outcome: Outcome::Complete, ..Boot::default() };
            for iteration in 0..form.iterations {
                let logs = Logs { files: form.logs(run, iteration) };
                let parsed = benchmark::read(form.benchmark, &logs).unwrap();
                metrics = parsed.metrics;
                let sample = |sample: benchmark::ParsedSample| Sample {
                    iteration,
                    label: sample.label,
                    count: sample.count,
                    ..Sample::new(WORKLOAD, sample.metric, sample.value)
                };
                boot.samples.extend(parsed.samples.into_iter().map(sample));
            }
            boot
        })
        .collect();
    let experiment = experiment(form.benchmark, metrics);
    let variants: Vec<Variant> = RUNS.iter().map(|(name, _)| variant(name)).collect();
    let columns = variants.iter().zip(&boots).zip(1..).map(|((variant, boot), number)| {
        let kept = KeptBoot { id: BootId(number), superseded: false, boot };
        VariantBoots { variant, boots: vec![kept] }
    });
    let results =
        Results { experiment: &experiment, reading: Reading::USUAL, variants: columns.collect() };
    let mut comparison = compare(&results, 0, &Judging::default());
    use_mmtests_names(&mut comparison, &experiment, month.parse().unwrap());
    comparison
}

fn variant(name: &str) -> Variant {
    Variant { name: name.into(), ..Variant::default() }
}

fn experiment(benchmark: &str, metrics: Vec<model::Metric>) -> Experiment {
    let manifest = Manifest {
        name: WORKLOAD.into(),
        // A workload of our own has such a command too.
        command: vec![String::new(), benchmark.to_owned()],
        metrics,
        ..Manifest::default()
    };
    Experiment {
        name: "test".into(),
        machine: Machine::new(Topology::even(1, Bytes::mib(128), 1).unwrap()),
        workloads: vec![WorkloadUse::new(manifest, 1, Millis(1000))],
        boots: 1,
        ..Experiment::default()
    }
}

/// A row as it is printed: statistic, operation, and for each run a value and a gain.
#[derive(Debug, PartialEq)]
struct Printed {
    statistic: String,
    operation: String,
    cells: Vec<[String; 2]>,
}

/// The rows of a table that mmtests printed. Marks of significance are left out, because they mean nothing.
fn recorded(text: &str) -> Vec<Printed> {
    let rows = text.lines().skip(2).map(|line| {
        let (statistic, line) = line.split_once(' ').unwrap();
        let plain = line.replace(['(', ')', '*', '%'], " ");
        let mut words: Vec<&str> = plain.split_whitespace().collect();
        let figures = words.split_off(words.len() - 2 * RUNS.len());
        let cells = figures.chunks(2).map(|cell| [cell[0].to_owned(), cell[1].to_owned()]);
        Printed {
            statistic: statistic.to_owned(),
            operation: words.join(" "),
            cells: cells.collect(),
        }
    });
    rows.collect()
}

/// A row of ours, its figures as C's `printf` would print them.
fn printed(row: &Row) -> Printed {
    let cell = |cell: &compare::Cell| {
        let figure = |figure: Option<f64>, decimals| match figure {
            Some(figure) => format!("{figure:.decimals$}"),
            None => "-".to_owned(),
        };
        [figure(cell.value, row.decimals), figure(cell.gain, 2)]
    };
    Printed {
        statistic: row.statistic.to_string(),
        operation: row.metric.clone(),
        cells: row.cells.iter().map(cell).collect(),
    }
}

/// Checks that mmtests printed each row that we print, in the same order. `renamed` gives a row of mmtests our name,
/// and is false for a row that we do not print.
fn check(form: &str, month: &str, text: &str, renamed: impl Fn(&mut Printed) -> bool) {
    let comparison = compared(FORMS.iter().find(|known| known.name == form).unwrap(), month);
    let ours: Vec<Printed> = comparison.tables[0].rows.iter().map(printed).collect();
    let mut theirs = recorded(text);
    assert!(!theirs.is_empty());
    theirs.retain_mut(renamed);
    let operations = |rows: &[Printed], statistic: &str| -> Vec<String> {
        let of_statistic = rows.iter().filter(|row| row.statistic == statistic);
        of_statistic.map(|row| row.operation.clone()).collect()
    };
    for row in &theirs {
        let own = ours
            .iter()
            .find(|own| (&own.statistic, &own.operation) == (&row.statistic, &row.operation));
        let own = own.unwrap_or_else(|| panic!("{form}: no row {row:?}"));
        for (own, cell) in own.cells.iter().zip(&row.cells) {
            let [value, gain] = cell.each_ref().map(|text| text.parse::<f64>().unwrap());
            // A missing value is 0 in mmtests' tables, and a percentage of 0 is -99 or 100.
            let absent = own == &["-", "-"] && (value, gain) == (0.0, 0.0);
            let of_nothing = own[0] == cell[0] && own[1] == "-" && [-99.0, 100.0].contains(&gain);
            assert!(own == cell || absent || of_nothing, "{form}: {row:?}, not {own:?}");
        }
        let statistic = &row.statistic;
        let known = operations(&theirs, statistic);
        let mut own = operations(&ours, statistic);
        own.retain(|operation| known.contains(operation));
        assert_eq!(own, known, "{form}");
    }
    assert!(ours.len() >= theirs.len());
}

/// Keeps all rows and their names.
fn all(_: &mut Printed) -> bool {
    true
}

/// Drops the means of the best 50 % and 99 %, which mmtests had before 2026.
fn older(row: &mut Printed) -> bool {
    row.statistic = row.statistic.replace("mean-95", "mean.95");
    !["-50", "-99"].iter().any(|suffix| row.statistic.ends_with(suffix))
}

#[test]
fn autonumabench() {
    check("autonumabench", "2026-06", include_str!("expected/autonumabench.txt"), all);
    check("autonumabench-2019", "2020-01", include_str!("expected/autonumabench-2019.txt"), older);
    // There is one value, which is its own mean.
    check(
        "autonumabench-2012",
        "2019-05",
        include_str!("expected/autonumabench-2012.txt"),
        |row| {
            assert_eq!(row.statistic, "Time");
            row.statistic = "Amean".into();
            // mmtests' script had a slip in the name of the test, which our logs do not have.
            row.operation = row.operation.replace("THREADLOCAL", "THEADLOCAL");
            // mmtests takes a higher share of processor time for worse.
            !row.operation.starts_with("CPU")
        },
    );
}

#[test]
fn bonniepp() {
    // The means of random subsets differ from one print to the next.
    let certain = |row: &mut Printed| !row.statistic.starts_with("Sub");
    check("bonniepp", "2026-06", include_str!("expected/bonniepp.txt"), certain);
    check("bonniepp", "2026-06", include_str!("expected/bonniepp-tput.txt"), certain);
}

#[test]
fn nas() {
    check("nas", "2026-06", include_str!("expected/nas.txt"), all);
    check("nas-2018", "2018-12", include_str!("expected/nas-2018.txt"), older);
}

#[test]
fn pagealloc() {
    check("pagealloc", "2025-11", include_str!("expected/pagealloc.txt"), older);
}

#[test]
fn paralleldd() {
    check("paralleldd", "2025-11", include_str!("expected/paralleldd.txt"), older);
}

#[test]
fn pgbench() {
    check("pgbench", "2026-06", include_str!("expected/pgbench.txt"), all);
    check("pgbench-2018", "2018-12", include_str!("expected/pgbench-2018.txt"), |row| {
        older(row) && !["Stddev", "CoeffVar"].contains(&&*row.statistic)
    });
}

#[test]
fn stutter() {
    check("stutter", "2022-01", include_str!("expected/stutter.txt"), all);
    check("stutterp", "2026-06", include_str!("expected/stutterp.txt"), all);
}

#[test]
fn tiobench() {
    // Until 2024 the spread was taken about the arithmetic mean.
    check("tiobench", "2019-04", include_str!("expected/tiobench.txt"), |row| {
        older(row) && !["Stddev", "CoeffVar"].contains(&&*row.statistic)
    });
}

#[test]
fn trunc() {
    check("trunc", "2026-06", include_str!("expected/trunc.txt"), all);
    check("trunc-2022", "2024-11", include_str!("expected/trunc-2022.txt"), older);
    check("trunc-2022", "2024-11", include_str!("expected/trunc-2022-fault.txt"), |row| {
        row.operation.push_str("-fault");
        older(row)
    });
}

#[test]
fn xfsrepair() {
    check("xfsrepair", "2026-06", include_str!("expected/xfsrepair.txt"), all);
    check("xfsrepair-2015", "2016-01", include_str!("expected/xfsrepair-2015.txt"), older);
}
