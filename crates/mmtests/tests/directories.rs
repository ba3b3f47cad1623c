//! Reads whole directories of synthetic logs in mmtests' layouts.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use mmtests::{Directory, Error, Summary, Told};
use model::{Boot, Chunk, Note, Outcome, ProblemKind};

const BEGIN: u64 = 1_700_000_000;
const SECOND: u64 = 1_000_000_000;

/// A directory in which a test puts files.
struct Logs(tempfile::TempDir);

impl Logs {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// The logs of a single iteration.
    fn one() -> Self {
        let logs = Self::new();
        logs.iteration("6.6.0", 0, 0);
        logs
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("log")
    }

    /// Writes a file, packed if its name says so.
    fn put(&self, place: &str, text: &str) {
        let path = self.path().join(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let bytes = if place.ends_with(".gz") { gzip(text) } else { text.as_bytes().to_vec() };
        fs::write(path, bytes).unwrap();
    }

    /// An iteration of autonumabench in which the counter grows from `begin` in steps of a hundred: a snapshot, three
    /// samples of the monitor, and a snapshot that is half a minute late.
    fn iteration(&self, run: &str, number: u32, faults: u64) {
        let begin = BEGIN + 1000 * u64::from(number);
        let place = |name: &str| format!("{run}/iter-{number}/{name}");
        let (test, end) = (begin + 10, begin + 70);
        let times =
            format!("time :: autonumabench 9.00 user 1.50 system 30.00 elapsed\nfinish :: {end}\n");
        let test_begin = format!("start :: {begin}\ntest begin :: autonumabench {test}\n");
        let test_end = format!("test end :: autonumabench {end} 0\n");
        self.put(&place("tests-timestamp"), &format!("{test_begin}{test_end}{times}"));
        let vmstat = |when, more| {
            let faults = faults + more;
            format!("file {when} :: /proc/vmstat\nnr_free_pages {more}\npgfault {faults}\n")
        };
        let memory = "file start :: /proc/meminfo\nMemTotal:  2048 kB\n";
        let state = [&test_begin, &vmstat("start", 0), memory, &vmstat("end", 900), &test_end];
        self.put(&place("tests-sysstate.gz"), &state.concat());
        let sample = |second: u64| {
            let faults = faults + 100 * second;
            format!("time: {}\nnr_free_pages 7\npgfault {faults}\n", test + second)
        };
        let samples: String = (1..4).map(sample).collect();
        self.put(&place("proc-vmstat-autonumabench.gz"), &samples);
        self.put(&place("tests-activity"), &format!("{begin} run-mmtests: Start\n"));
        self.put(&place("kernel.version"), "Linux h 6.6.0-x #1 SMP Wed Nov 1 2023 x86_64 GNU\n");
        self.time(run, number, &format!("0:0{}.25elapsed 99%CPU", number + 1));
    }

    /// Writes the time of the benchmark's only program.
    fn time(&self, run: &str, number: u32, elapsed: &str) {
        let text = format!("1.00user 0.50system {elapsed} (0avgtext+0avgdata 1maxresident)k\n");
        self.put(&format!("{run}/iter-{number}/autonumabench/logs/time-NUMA02-1"), &text);
    }

    fn read(&self) -> (Vec<Boot>, Summary) {
        let directory = Directory::read(&self.path()).unwrap();
        let mut summary = directory.summary();
        let boots = (0..directory.boots().len()).map(|number| {
            let (boot, series) = directory.boot(number, &mut summary);
            Boot { chunks: series.iter().map(Chunk::from).collect(), ..boot }
        });
        (boots.collect(), summary)
    }
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn chunk<'a>(boot: &'a Boot, source: &str) -> &'a Chunk {
    boot.chunks.iter().find(|chunk| chunk.source == source).unwrap()
}

fn column(chunk: &Chunk, name: &str) -> Vec<i64> {
    let column = chunk.columns.iter().find(|column| column.name == name).unwrap();
    column.values.iter().map(|value| value.unwrap()).collect()
}

#[test]
fn a_run_is_a_boot_with_its_samples_times_and_series() {
    let logs = Logs::new();
    logs.iteration("6.6.0-base", 0, 5000);
    logs.iteration("6.6.0-base", 1, 7000);
    let (boots, _) = logs.read();
    let [boot] = boots.try_into().unwrap();
    assert_eq!((&*boot.variant, boot.boot_index, boot.started), ("6.6.0-base", 0, BEGIN));
    assert_eq!(boot.outcome, Outcome::Complete);
    assert_eq!((&*boot.facts.release, boot.facts.memory), ("6.6.0-x", 2048 << 10));
    let elapsed = boot.samples.iter().filter(|sample| sample.metric == "Elapsed");
    let elapsed: Vec<_> = elapsed.map(|it| (it.iteration, &*it.label, it.value)).collect();
    assert_eq!(elapsed, [(0, "NUMA02", 1.25), (1, "NUMA02", 2.25)]);
    let usage: Vec<_> = boot.usage.iter().map(|it| (it.user, it.system, it.elapsed)).collect();
    assert_eq!(usage, [(9.0, 1.5, 30.0); 2]);
    let vmstat = chunk(&boot, "vmstat");
    assert_eq!(vmstat.times, [10, 11, 12, 13, 70].map(|second| second * SECOND));
    assert_eq!(column(vmstat, "pgfault"), [5000, 5100, 5200, 5300, 5900]);
    assert_eq!(vmstat.difference("pgfault"), Some(900));
    // The notes say what is missing and what came late.
    assert_eq!(boot.notes[0], Note::no_log());
    assert!(boot.notes[1].text.contains("span 30 s more"), "{:?}", boot.notes);
}

#[test]
fn runs_are_ordered_by_their_start_and_have_their_kernels() {
    let logs = Logs::new();
    logs.iteration("z-first", 0, 0);
    logs.iteration("a-second", 1, 0);
    let directory = Directory::read(&logs.path()).unwrap();
    let experiment = directory.experiment(Some("numa"));
    let variants: Vec<_> =
        experiment.variants.iter().map(|it| (&*it.name, &*it.kernel.name)).collect();
    assert_eq!(variants, [("z-first", "6.6.0-x"), ("a-second", "6.6.0-x")]);
    assert_eq!((&*experiment.name, experiment.boots), ("numa", 1));
    assert_eq!(experiment.workloads[0].manifest.name, "autonumabench");
    let imported = experiment.imported.unwrap();
    assert_eq!((&*imported.tool, imported.digest.len()), ("mmtests", 64));
    assert_eq!(imported.directory, fs::canonicalize(logs.path()).unwrap());
}

#[test]
fn changed_files_make_another_experiment_and_the_same_ones_do_not() {
    let logs = Logs::one();
    let experiment = || Directory::read(&logs.path()).unwrap().experiment(None);
    let first = experiment();
    assert_eq!(experiment(), first);
    logs.time("6.6.0", 0, "0:09.99elapsed 99%CPU");
    assert_ne!(experiment(), first);
}

#[test]
fn iterations_after_a_reboot_are_another_boot() {
    let logs = Logs::new();
    for (number, up) in [(0, 100), (1, 1100), (2, 50), (3, 1050)] {
        logs.iteration("6.6.0", number, 0);
        let start = BEGIN + 1000 * u64::from(number) + 11;
        let place = format!("6.6.0/iter-{number}/proc-vmstat-autonumabench.start");
        logs.put(&place, &format!("{start}\n{up}.00 10.00\n"));
    }
    let (boots, summary) = logs.read();
    assert_eq!(summary.runs[0].boots, [vec![0, 1], vec![2, 3]]);
    let places: Vec<_> = boots.iter().map(|it| (it.boot_index, it.block, it.started)).collect();
    assert_eq!(places, [(0, 0, BEGIN), (1, 1, BEGIN + 2000)]);
    assert_eq!(boots[1].samples[0].iteration, 2);
    assert_eq!(boots[1].chunks[0].times[0], 10 * SECOND);
}

/// Checks that a run which `spoil` has made useless is a failed boot without figures. Returns the reason.
fn refused(spoil: impl Fn(&Logs)) -> String {
    let logs = Logs::one();
    spoil(&logs);
    let (boots, summary) = logs.read();
    let [boot] = boots.try_into().unwrap();
    assert_eq!((boot.samples.len(), boot.usage.len(), boot.chunks.len()), (0, 0, 0));
    let Outcome::Failed(why) = boot.outcome else {
        panic!("{:?}", boot.outcome);
    };
    assert_eq!(summary.runs[0].left_out, std::slice::from_ref(&why));
    why
}

#[test]
fn a_program_that_refused_to_run_has_no_result() {
    let failed = refused(|logs| {
        let text =
            "Command exited with non-zero status 1\n0.05user 0.02system 0:00.08elapsed 95%CPU\n";
        logs.put("6.6.0/iter-0/autonumabench/logs/time-NUMA02-1", text);
    });
    assert!(failed.starts_with("autonumabench, iteration 0: "), "{failed}");
    let failed = refused(|logs| {
        logs.put("6.6.0/iter-0/fail.log", &format!("{} Out of disk\n", BEGIN + 20));
    });
    assert_eq!(failed, "autonumabench, iteration 0: mmtests failed: Out of disk");
    let failed = refused(|logs| {
        let notes = format!("test begin :: autonumabench {BEGIN}\n");
        logs.put("6.6.0/iter-0/tests-timestamp", &notes);
        logs.put("6.6.0/iter-0/tests-sysstate.gz", &notes);
    });
    assert_eq!(failed, "autonumabench, iteration 0: it did not come to its end");
    let failed = refused(|logs| {
        fs::remove_dir_all(logs.path().join("6.6.0/iter-0/autonumabench")).unwrap();
    });
    assert_eq!(failed, "autonumabench, iteration 0: it left no logs");
}

#[test]
fn an_iteration_that_failed_does_not_spoil_the_others() {
    let logs = Logs::one();
    logs.iteration("6.6.0", 1, 900);
    let notes = "test begin :: autonumabench 1\ntest end :: autonumabench 2 7\n";
    logs.put("6.6.0/iter-1/tests-timestamp", notes);
    let (boots, _) = logs.read();
    let boot = &boots[0];
    assert_eq!(boot.outcome, Outcome::Complete);
    assert!(boot.samples.iter().all(|sample| sample.iteration == 0) && !boot.samples.is_empty());
    let problem = &boot.problems[0];
    let text = "autonumabench, iteration 1: it exited with status 7";
    assert_eq!((problem.kind, &*problem.text), (ProblemKind::LeftOut, text));
}

#[test]
fn a_run_that_reports_its_failure_is_failed() {
    let logs = Logs::one();
    let activity = format!("{BEGIN} run-mmtests: Start\n{BEGIN} status :: 3\n");
    logs.put("6.6.0/mmtests-activity", &activity);
    let (boots, _) = logs.read();
    assert_eq!(boots[0].outcome, Outcome::Failed("mmtests ended with status 3".into()));
}

#[test]
fn the_kernels_complaints_are_found_in_its_log() {
    let logs = Logs::one();
    logs.iteration("6.6.0", 1, 900);
    let first = "[    0.000000] Linux version 6.6.0-y (me@h)\n[    0.000000] Command line: quiet\n";
    logs.put("6.6.0/iter-0/dmesg.gz", first);
    logs.put("6.6.0/iter-1/dmesg.gz", "[  900.000000] BUG: unable to handle page fault\n");
    let (boots, _) = logs.read();
    assert_eq!(boots[0].problems.len(), 1);
    assert_eq!(boots[0].problems[0].kind, ProblemKind::Bug);
    assert_eq!(boots[0].facts.cmdline, "quiet");
    assert_eq!(boots[0].console.lines().count(), 3);
}

#[test]
fn unread_files_are_listed() {
    let logs = Logs::one();
    logs.put("6.6.0/iter-0/sysctl-tuning.gz", "x");
    logs.put("6.6.0/iter-0/turbostat-autonumabench.gz", "x");
    logs.put("6.6.0/iter-0/mpstat-autonumabench", "no report");
    logs.put("6.6.0/iter-0/newbench/logs/figures", "1 2 3");
    logs.put("elsewhere/file", "x");
    logs.put("6.6.0/loop/file", "x");
    let whole = gzip(&"time: 1700000011\npgfault 1\n".repeat(1000));
    let place = logs.path().join("6.6.0/iter-0/proc-vmstat-autonumabench.gz");
    fs::write(place, &whole[..whole.len() / 2]).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", logs.path().join("6.6.0/iter-0/passwd")).unwrap();
    let (_, summary) = logs.read();
    let unread: BTreeMap<&str, &str> =
        summary.unread.keys().map(|(name, why)| (&**name, &**why)).collect();
    let expected = [
        ("elsewhere", "no run of mmtests"),
        ("mpstat-autonumabench", "holds no figure with a time"),
        ("passwd", "a symbolic link that leads out of the directory"),
        ("proc-vmstat-autonumabench", "cut off: read as far as it goes"),
        ("sysctl-tuning", "nothing in it is asked for"),
        ("turbostat-autonumabench", "a monitor that is not known here"),
    ];
    for (name, why) in expected {
        assert_eq!(unread.get(name), Some(&why), "{unread:?}");
    }
    assert_eq!(summary.runs[0].left_out.len(), 1, "{:?}", summary.runs[0].left_out);
    // What belongs to one iteration is told with its place.
    let places = |name: &str, why: &str| &summary.unread[&(name.to_owned(), why.to_owned())];
    assert!(places("elsewhere", "no run of mmtests").is_empty());
    let first = [("6.6.0".to_owned(), [0].into())].into();
    assert_eq!(places("mpstat-autonumabench", "holds no figure with a time"), &first);
    let nowhere = [("6.6.0".to_owned(), [].into())].into();
    assert_eq!(places("loop", "no iteration"), &nowhere);
}

/// A run of three iterations of pgbench, in which `spoil` has changed something. Returns its notes, and what the
/// summary lists as unread and as missing.
fn spoiled(spoil: impl Fn(&Logs)) -> (Vec<String>, [Told; 2]) {
    let logs = Logs::new();
    let log: String = (0..40).map(|second| format!("{} 100\n", BEGIN + second)).collect();
    for run in ["6.6.0", "6.7.0"] {
        for number in 0..3 {
            for clients in [1, 4, 8] {
                let file = format!("pgbench-transactions-{clients}.log.gz");
                logs.put(&format!("{run}/iter-{number}/pgbench/logs/{file}"), &log);
            }
            let notes = "test begin :: pgbench 1\ntest end :: pgbench 2 0\n";
            logs.put(&format!("{run}/iter-{number}/tests-timestamp"), notes);
        }
    }
    spoil(&logs);
    let (boots, summary) = logs.read();
    assert!(boots.iter().all(|boot| boot.outcome == Outcome::Complete));
    let notes = boots.iter().flat_map(|boot| &boot.notes).filter(|note| **note != Note::no_log());
    (notes.map(Note::to_string).collect(), [summary.unread, summary.missing])
}

/// What the summary says about one iteration of the second run.
fn told(name: &str, text: &str) -> Told {
    let places = [("6.7.0".to_owned(), [1].into())].into();
    [((name.to_owned(), text.to_owned()), places)].into()
}

#[test]
fn a_log_that_is_not_read_is_named_with_its_run_and_iteration() {
    let place = "6.7.0/iter-1/pgbench/logs/pgbench-transactions-8.log.gz";
    let (missing, others) =
        ("missing: pgbench, iteration 1: ", "which other iterations of the run have");
    let expected_missing = told("pgbench", &format!("txn-8, {others}"));
    let (notes, found) = spoiled(|logs| {
        let whole = fs::read(logs.path().join(place)).unwrap();
        fs::write(logs.path().join(place), &whole[..whole.len() / 2]).unwrap();
    });
    let [unread, lacking] = found;
    let ((name, why), _) = unread.first_key_value().unwrap();
    assert_eq!(name, "pgbench: pgbench-transactions-8.log");
    assert_eq!((&unread, &lacking), (&told(name, why), &expected_missing));
    let not_read = format!("not read: pgbench, iteration 1: pgbench-transactions-8.log: {why}");
    assert_eq!(notes, [not_read, format!("{missing}txn-8, {others}")]);

    // A file that is not read, in the directory of the benchmark, is a log as well.
    let (notes, [unread, _]) = spoiled(|logs| {
        fs::remove_file(logs.path().join(place)).unwrap();
        std::os::unix::fs::symlink("/dev/null", logs.path().join(place)).unwrap();
    });
    let why = "a symbolic link that leads out of the directory";
    assert_eq!(unread, told("pgbench: pgbench-transactions-8.log.gz", why));
    assert_eq!((notes.len(), notes[0].ends_with(why)), (2, true), "{notes:?}");
}

#[test]
fn what_only_other_iterations_of_a_run_have_is_missing() {
    let logs_of = |number: u32| format!("6.7.0/iter-{number}/pgbench");
    let others = "which other iterations of the run have";
    let (notes, [unread, missing]) = spoiled(|logs| {
        let place = logs_of(1) + "/logs/pgbench-transactions-4.log.gz";
        fs::remove_file(logs.path().join(place)).unwrap();
    });
    assert_eq!((unread, missing), (Told::new(), told("pgbench", &format!("txn-4, {others}"))));
    assert_eq!(notes, [format!("missing: pgbench, iteration 1: txn-4, {others}")]);
    // All logs are missing, and no note of mmtests says that the benchmark ran.
    let (notes, _) = spoiled(|logs| {
        fs::remove_dir_all(logs.path().join(logs_of(1))).unwrap();
        fs::remove_file(logs.path().join("6.7.0/iter-1/tests-timestamp")).unwrap();
    });
    assert_eq!(notes, [format!("missing: pgbench, iteration 1: txn-1, txn-4, txn-8, {others}")]);
    // No iteration of the run has the operation.
    let (notes, _) = spoiled(|logs| {
        for number in 0..3 {
            let place = logs_of(number) + "/logs/pgbench-transactions-4.log.gz";
            fs::remove_file(logs.path().join(place)).unwrap();
        }
    });
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn metrics_that_the_first_iteration_lacks_have_their_place_among_the_others() {
    let logs = Logs::new();
    for (number, programs) in [(0, &["bt", "sp"][..]), (1, &["bt", "cg", "sp"])] {
        for program in programs {
            let place = format!("6.6.0/iter-{number}/nas/logs/{program}.C.log.1");
            logs.put(&place, " Time in seconds =    12.34\n");
        }
    }
    let experiment = Directory::read(&logs.path()).unwrap().experiment(None);
    let metrics = experiment.workloads[0].manifest.metrics.iter();
    assert_eq!(metrics.map(|it| &*it.name).collect::<Vec<_>>(), ["bt.C", "cg.C", "sp.C"]);
}

#[test]
fn names_may_be_anything() {
    let logs = Logs::new();
    let name = "6.6 \u{1b}[2J\n\u{202e}'\"; DROP";
    logs.iteration(name, 0, 0);
    let (boots, summary) = logs.read();
    assert_eq!((&*boots[0].variant, &*summary.runs[0].name), (name, name));
}

#[test]
fn old_logs_hold_all_runs_in_one_directory() {
    let logs = Logs::new();
    for (run, begin) in [("4.0.0-rc1", BEGIN), ("3.19.0", BEGIN - 5000)] {
        let notes = format!(
            "start :: {begin}\narch :: x86_64\nnumactl :: configuration\nnode 0 cpus: 0 1\nnode 0 \
             size: 100 MB\ntest begin :: autonumabench {}\nfile start :: /proc/vmstat\npgfault 1\n\
             file end :: /proc/vmstat\npgfault 31\ntest end :: autonumabench {}\n\
             time :: autonumabench 9.00 user 1.50 system 30.00 elapsed\n",
            begin + 10,
            begin + 70
        );
        logs.put(&format!("tests-timestamp-{run}"), &notes);
        let time = "1.00user 0.50system 0:07.25elapsed 99%CPU (0avgtext+0avgdata 1maxresident)k\n";
        logs.put(&format!("autonumabench-{run}/noprofile/time.NUMA01"), time);
        let samples = format!("time: {}\npgfault 11\n", begin + 20);
        logs.put(&format!("proc-vmstat-{run}-autonumabench.gz"), &samples);
    }
    let (boots, summary) = logs.read();
    let names: Vec<_> = boots.iter().map(|boot| &*boot.variant).collect();
    assert_eq!((names, summary.unread.len()), (vec!["3.19.0", "4.0.0-rc1"], 0));
    for boot in &boots {
        assert_eq!(column(chunk(boot, "vmstat"), "pgfault"), [1, 11, 31]);
        assert_eq!((boot.facts.cpus, boot.usage.len(), boot.samples.is_empty()), (2, 1, false));
    }
}

#[test]
fn a_directory_without_runs_is_an_error() {
    let logs = Logs::new();
    assert!(matches!(Directory::read(&logs.path()), Err(Error::Unreadable { .. })));
    logs.put("file", "x");
    assert!(matches!(Directory::read(&logs.path()), Err(Error::NoRun { .. })));
    assert!(matches!(Directory::read(Path::new("/dev/null")), Err(Error::Unreadable { .. })));
}
