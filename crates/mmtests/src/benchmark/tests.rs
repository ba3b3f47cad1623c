//! Tests what is refused, what gets a remark, and hostile logs. `crates/faultline/tests/mmtests` compares tables with
//! those of mmtests.

use proptest::prelude::*;

use super::*;

const TIME: &str =
    "1.20user 2.30system 2:10.11elapsed 2%CPU (0avgtext+0avgdata 9000maxresident)k\n";
const FAILED: &str = "Command exited with non-zero status 1\n\
                      0.00user 0.08system 0:00.08elapsed 98%CPU (0avgtext+0avgdata 3000maxresident)k\n";

fn logs(files: &[(&str, &str)]) -> Logs {
    let files = files.iter().map(|&(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
    Logs { files: files.collect() }
}

fn parsed(benchmark: &str, files: &[(&str, &str)]) -> Parsed {
    read(benchmark, &logs(files)).unwrap()
}

/// The samples as text, with the operations as mmtests spells them: `OPERATION VALUE, OPERATION VALUE`.
fn operations(parsed: &Parsed) -> String {
    let operation = |ParsedSample { metric, label, value, .. }: &ParsedSample| match &**label {
        "" => format!("{metric} {value}"),
        label => format!("{metric}-{label} {value}"),
    };
    parsed.samples.iter().map(operation).collect::<Vec<_>>().join(", ")
}

#[test]
fn a_program_that_refused_to_run_has_no_figures() {
    let parsed = parsed(
        "autonumabench",
        &[
            ("time-NUMA01-1", FAILED),
            ("autonumabench-NUMA01-1.log", "AUTONUMA\nAbort: This machine has less than 2 nodes\n"),
            // A pipe lost the exit status, but the log shows the failure.
            ("time-NUMA02-1", TIME),
            ("autonumabench-NUMA02-1.log", "Abort: This machine has less than 2 nodes\n"),
            ("time-NUMA02-2", TIME),
        ],
    );
    let expected = "Elapsed-NUMA02 130.11, System-NUMA02 2.3, User-NUMA02 1.2";
    assert_eq!(operations(&parsed), expected);
    assert_eq!(
        parsed.remarks,
        [
            "NUMA01, number 1, does not count: Abort: This machine has less than 2 nodes",
            "NUMA02, number 1, does not count: Abort: This machine has less than 2 nodes",
        ]
    );
}

#[test]
fn a_run_that_failed_leaves_no_rates() {
    let lines: String =
        (0..40).map(|second| format!("{} 1000 1 1 1 1\n", 1_700_000_000 + second)).collect();
    let files = [
        ("pgbench-transactions-4.log", &*lines),
        ("time-4-1", FAILED),
        ("pgbench-transactions-16.log", &lines),
        ("time-16-1", TIME),
        ("pgbench-transactions-8.log", "1700000000 1000\n1700000001 cut o"),
    ];
    let parsed = parsed("pgbench", &files);
    assert_eq!(operations(&parsed), ["txn-16 1000"; 7].join(", "));
    assert_eq!(
        parsed.remarks,
        [
            "4 clients do not count: Command exited with non-zero status 1",
            "not read: 1 line of pgbench-transactions-8.log",
            "the run with 8 clients is too short for a sample",
        ]
    );
}

#[test]
fn a_wrong_result_does_not_count() {
    let wrong = " Time in seconds =    12.34\n Verification    =             UNSUCCESSFUL\n";
    let right = " Time in seconds =    12.34\n Verification    =               SUCCESSFUL\n";
    let new = [
        ("time-cg.C-1", TIME),
        ("cg.C.log.1", wrong),
        ("time-bt.C-1", TIME),
        ("bt.C.log.1", right),
    ];
    let parsed_new = parsed("nas-cg", &new);
    let expected = "Elapsed-bt.C 130.11, System-bt.C 2.3, User-bt.C 1.2";
    assert_eq!(operations(&parsed_new), expected);
    let old = parsed(
        "nas",
        &[("default/cg.D.log", right), ("default/lu.D.log", wrong), ("mmtests.log", "")],
    );
    assert_eq!(operations(&old), "cg.D 12.34");
    assert_eq!(old.remarks, ["lu.D.log does not count: the program found its own result wrong"]);
}

#[test]
fn labels_come_in_the_order_of_numbers() {
    let files =
        ["16", "4", "128"].map(|clients| (format!("mmap-latency-{clients}.log"), "1 2500\n"));
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, *text)).collect();
    let expected = "mmap-4 2, mmap-16 2, mmap-128 2";
    assert_eq!(operations(&parsed("stutterp", &files)), expected);
}

#[test]
fn older_rates_of_bonnie_are_read_too() {
    let line = "machine,16G,,,61725,26,31186,10,,,92371,9,201.5,1,16,+++++,+++,+++++,+++,+++++,+++,\
                17012,56,+++++,+++,18221,44\n";
    let parsed = parsed("bonnie++", &[("bonnie", line)]);
    let expected = "SeqOut block 61725, SeqOut rewrite 31186, SeqIn block 92371, Random seeks 201.5, \
        RandCreate ops 17012, RandCreate del 18221";
    assert_eq!(operations(&parsed), expected);
    let other = read("bonniepp", &logs(&[("bonnie", "1.95,1.95,machine,1,2\n")])).unwrap();
    assert_eq!(other.remarks, ["a format of bonnie++'s figures that is not known is not read"]);
}

#[test]
fn repetitions_of_bonnie_have_files_of_their_own() {
    let line = |rate: u32| format!("machine,16G,,,{rate},26\n");
    let (first, second, tenth) = (line(500), line(600), line(700));
    let files = [
        ("noprofile/bonnie.1", first.as_str()),
        ("noprofile/bonnie.10", tenth.as_str()),
        ("noprofile/bonnie.2", second.as_str()),
        ("noprofile/bonnie.time", "0.1user\n"),
        ("noprofile/bonnie-detail.1", "wr 71\n"),
        ("noprofile/bonnie-detail.2", "wr 72\n"),
    ];
    let expected = "latency-SeqOut:block 71, latency-SeqOut:block 72, SeqOut block 500, SeqOut block 600, \
        SeqOut block 700";
    assert_eq!(operations(&parsed("bonnie", &files)), expected);
}

#[test]
fn formats_of_bonnie_without_seeks_are_read() {
    // What bonnie++ 2.00a of Debian 12 prints for 64 MiB.
    let new = "1.98,2.00a,host,1,1795295477,64M,,8192,5,1309,34,+++++,+++,+++++,+++,2370,43,+++++,+++,\
               +++++,+++,1,,,,,+++++,+++,+++++,+++,+++++,+++,+++++,+++,512,12,+++++,+++,26168us,8106us,4079us\n";
    let old = new.replace("1.98,2.00a", "1.97,1.97").replace(",8192,5,", ",");
    let rates = |line: &str| parsed("bonnie", &[("bonnie", line)]);
    assert_eq!(operations(&rates(new)), "SeqOut char 1309, SeqIn char 2370, RandCreate read 512");
    assert_eq!(rates(&old).samples, rates(new).samples);
}

#[test]
fn older_truncations_are_in_milliseconds() {
    let parsed = parsed("truncate", &[("trunc-1.time", TIME)]);
    assert_eq!(operations(&parsed), format!("elapsed {}", 130.11 * 1000.0));
    assert_eq!(parsed.metrics[0].unit, "ms");
}

#[test]
fn earlier_readers_have_a_file_each() {
    let files = [("time-2-1-1", TIME), ("time-2-2-1", TIME), ("time-1-1-1", FAILED)];
    let parsed = parsed("paralleldd", &files);
    assert_eq!(operations(&parsed), "Elapsd-2 130.11, Elapsd-2 130.11");
    assert_eq!(parsed.remarks.len(), 1);
    assert!(parsed.metrics[0].concurrent);
}

#[test]
fn profiles_beside_the_logs_are_passed_over() {
    let files = [("perf-1/time-NUMA01-1", FAILED), ("noprofile/time.NUMA01", TIME)];
    let parsed = parsed("autonumabench", &files);
    let expected = "User-NUMA01 1.2, System-NUMA01 2.3, Elapsed-NUMA01 130.11, CPU-NUMA01 2";
    assert_eq!(operations(&parsed), expected);
}

#[test]
fn unknown_benchmarks_and_logs_are_errors() {
    let error = read("specjbb-single", &Logs::default()).unwrap_err();
    assert!(error.to_string().starts_with("`specjbb-single` is not one of the benchmarks"));
    let error = read("stutterp-noreaders", &logs(&[("mmtests.log", "")])).unwrap_err();
    assert_eq!(error.to_string(), "none of the files is a log that stutterp leaves");
}

#[test]
fn equal_measurements_are_kept_once_with_their_count() {
    let parsed = parsed("stutter", &[("mmap-latency.log", "500000 2000000\n1 3\n499999 7\n")]);
    let counts: Vec<u32> = parsed.samples.iter().map(|sample| sample.count.get()).collect();
    assert_eq!(counts, [500_000, 1, 499_999]);
}

#[test]
fn the_number_of_samples_is_bounded() {
    let refused = |text: &str| {
        read("stutterp", &logs(&[("mmap-latency-4.log", text)])).unwrap_err().to_string()
    };
    let long = "9".repeat(1000);
    for (count, told) in [
        ("0", "0"),
        ("1000001", "1000001"),
        ("4294967297", "4294967297"),
        ("18446744073709551615", "18446744073709551615"),
        (&*long, "999999999999999999999999..."),
    ] {
        let expected = "measurements, not 1 to 1000000";
        assert_eq!(
            refused(&format!("3 5\n{count} 1\n")),
            format!("mmap-latency-4.log, line 2: {told} {expected}")
        );
    }
    assert_eq!(
        refused("600000 5\n1 6\n400000 5\n"),
        "mmap-latency-4.log, line 3: there are more than 1000000 values"
    );
}

/// Names of logs, some for each benchmark.
const NAMES: &str = "time-NUMA01-1 time-4-1 time-4-1-1 time-4.log time.NUMA02 time.fsmark.1 \
    autonumabench-NUMA02-1.time bt.C.log.1 trunc-1.time pagealloc.log tiobench-4-1.log \
    disk-read.speed pgbench-transactions-4.log bonnie bonnie-detail mmap-latency-4.log";

/// Lines of logs, cut and joined at random.
fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        "[0-9]{1,25}user [0-9.:-]{1,12}system [0-9.:a-z]{1,12}elapsed ?[0-9?]{0,3}%CPU",
        Just(FAILED.to_owned()),
        "order [0-9]{1,3} batch [0-9]{1,22} alloc [0-9-]{1,25} free [0-9e]{1,3}",
        "(Sequential|Random) (Reads|Writes)",
        " ?[a-z0-9. ]{0,30}[0-9#.]{0,8}",
        "([0-9]{0,3}|[0-9]{15,25}) [0-9]{0,25}( [0-9]{0,20})?",
        "(1.98|1.97|machine|1e9)(,[0-9+.]{0,3}){0,40}",
        Just(format!("1.98{}", ",9".repeat(400))),
        "(wr|sk|dr) [0-9.a-z-]{0,9}",
        Just(format!("wr {}", "9".repeat(400))),
        ".{0,20}",
        " Time in seconds = *[0-9.]{0,9}",
        Just(format!("1:{}user 0system 0elapsed", "9".repeat(320))),
    ];
    prop::collection::vec(line, 0..8).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn hostile_logs_give_finite_values_or_an_error(
        texts in prop::collection::vec(text(), NAMES.split(' ').count()),
        bytes in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut files: std::collections::BTreeMap<_, _> =
            NAMES.split(' ').zip(texts).map(|(name, text)| (name.to_string(), text.into_bytes())).collect();
        files.insert("time-\u{1b}[31m-2".to_owned(), bytes.clone());
        files.insert("mmap-latency.log".to_owned(), bytes);
        let logs = Logs { files };
        for (benchmark, _) in KNOWN {
            match read(benchmark, &logs) {
                Ok(parsed) => {
                    prop_assert!(parsed.samples.iter().all(|sample| sample.value.is_finite()));
                    let known = |name: &str| parsed.metrics.iter().any(|it| it.name == name);
                    prop_assert!(parsed.samples.iter().all(|sample| known(&sample.metric)));
                    prop_assert!(parsed.remarks.len() <= 101);
                }
                Err(error) => {
                    let is_line = matches!(error, Unreadable::Line { .. });
                    prop_assert!(is_line || error == Unreadable::TooMany);
                }
            }
        }
    }
}
