//! Checks how much memory it takes to read files from strangers: a small file must not use up the machine's.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// Runs the program to its end, and returns its peak memory in bytes, except for its last millisecond (`VmHWM`,
/// proc_pid_status(5)).
fn peak(args: &[&str], files: &[&Path]) -> u64 {
    let mut command = Command::new(env!("CARGO_BIN_EXE_faultline"));
    let mut child = command.args(args).args(files).stdout(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        peak = peak.max(kib.unwrap_or(0) << 10);
        if let Some(ended) = child.try_wait().unwrap() {
            assert!(ended.success(), "{args:?}: {ended}");
            assert!(peak > 0, "no memory was ever seen");
            return peak;
        }
        sleep(Duration::from_millis(1));
    }
}

/// A directory with two runs of `stutter`. Each iteration has as many latencies as are allowed.
fn many_latencies(log: &Path) {
    for run in ["a", "b"] {
        for iteration in 0..2 {
            let directory = log.join(format!("{run}/iter-{iteration}"));
            fs::create_dir_all(directory.join("stutter/logs")).unwrap();
            let begin = 1_700_000_000 + 1000 * iteration;
            let put = |name: &str, text: &str| fs::write(directory.join(name), text).unwrap();
            put("tests-activity", &format!("{begin} run-mmtests: Start\n"));
            put("kernel.version", "Linux h 6.6.0-x #1 SMP Wed Nov 1 2023 x86_64 GNU\n");
            let test = format!("test begin :: stutter {begin}\ntest end :: stutter {begin} 0\n");
            put("tests-timestamp", &format!("start :: {begin}\n{test}finish :: {begin}\n"));
            let mut latencies = format!("500000 {}\n", 2_000_000 + iteration);
            for at in 0..100 {
                writeln!(latencies, "1 {}", 3_000_000 + 1000 * at).unwrap();
            }
            latencies.push_str("499900 7000000\n");
            put("stutter/logs/mmap-latency.log", &latencies);
        }
    }
}

#[test]
fn repeated_latencies_are_kept_once() {
    let directory = tempfile::tempdir().unwrap();
    let [log, store, page] = ["log", "store.db", "page.html"].map(|it| directory.path().join(it));
    many_latencies(&log);
    let store_name = store.to_str().unwrap();
    let import = peak(&["--store", store_name, "import", "mmtests"], &[&log]);
    let kept = fs::metadata(&store).unwrap().len();
    let compare = ["--store", store_name, "compare", "--format", "html", "-o"];
    let draw = peak(&compare, &[&page]);
    assert!(fs::read_to_string(&page).unwrap().contains("n = 2000000"));
    assert!(import < 100 * MIB && draw < 300 * MIB, "import {import}, draw {draw}");
    assert!(kept < MIB, "{kept} bytes are kept");
}

#[test]
fn a_mailbox_takes_no_more_memory_than_its_mails() {
    let directory = tempfile::tempdir().unwrap();
    let of = |mails: usize| {
        let path = directory.path().join(format!("{mails}.mbox"));
        let mail = format!("From a Sat Mar  7 15:20:00 2015\n\n{}", "ok\n".repeat(10_000));
        fs::write(&path, mail.repeat(mails)).unwrap();
        peak(&["table"], &[&path])
    };
    let (one, many) = (of(1), of(20));
    assert!(many < one + 10 * MIB, "{one} bytes for a mail, {many} for 20");
}

#[test]
fn a_mail_that_is_too_large_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("large");
    fs::write(&path, "no line ends here ".repeat(1 << 20)).unwrap();
    let refused = |command: &mut Command| {
        let output = command.output().unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
        String::from_utf8(output.stderr).unwrap()
    };
    let what = "the mail that begins on line 1 is larger than 16 MiB: split it";
    let faultline = || Command::new(env!("CARGO_BIN_EXE_faultline"));
    assert!(refused(faultline().arg("table").arg(&path)).contains(what));
    let input = fs::File::open(&path).unwrap();
    assert!(refused(faultline().arg("table").stdin(input)).contains(what));
}
