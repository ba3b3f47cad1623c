//! Tests of several processes on one store, and of killed processes. The test binary starts itself for them.

use std::env;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use model::{Boot, BootId, Kept, Outcome};

use super::{StoreFile, boot, experiment};
use crate::{Detail, Store};

const STORE: &str = "FAULTLINE_TEST_STORE";
const VARIANT: &str = "FAULTLINE_TEST_VARIANT";
const FIRST: &str = "FAULTLINE_TEST_FIRST";
const COUNT: &str = "FAULTLINE_TEST_COUNT";

/// A boot that takes a while to keep, because its chunks and samples are repeated many times.
fn large(variant: &str, replicate: u32) -> Boot {
    let mut boot = boot(variant, replicate, Outcome::Complete);
    boot.chunks = (0..8).flat_map(|_| boot.chunks.clone()).collect();
    boot.samples = (0..100).flat_map(|_| boot.samples.clone()).collect();
    boot
}

/// Keeps boots and reports them. Runs only in a process that a test below starts.
#[test]
fn writer() {
    let Ok(path) = env::var(STORE) else { return };
    let number = |name| env::var(name).unwrap().parse::<u32>().unwrap();
    let (variant, first, count) = (env::var(VARIANT).unwrap(), number(FIRST), number(COUNT));
    let mut store = Store::open(Path::new(&path)).unwrap();
    let id = store.keep_experiment(&experiment("numa")).unwrap();
    for replicate in first..first.saturating_add(count) {
        let kept = store.keep_boot(id, &large(&variant, replicate)).unwrap();
        println!("\nkept {} {replicate}", kept.0);
    }
}

struct Writer {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Writer {
    fn start(file: &StoreFile, variant: &str, first: u32, count: u32) -> Self {
        let mut process = Command::new(env::current_exe().unwrap())
            .args(["--exact", "tests::processes::writer", "--nocapture"])
            .env(STORE, &file.path)
            .env(VARIANT, variant)
            .env(FIRST, first.to_string())
            .env(COUNT, count.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    /// The next boot that it reports, with its replicate; `None` after its end.
    fn report(&mut self) -> Option<(BootId, u32)> {
        self.lines.find_map(|line| {
            let line = line.unwrap();
            let (id, replicate) = line.strip_prefix("kept ")?.split_once(' ')?;
            Some((BootId(id.parse().unwrap()), replicate.parse().unwrap()))
        })
    }
}

/// The test cannot choose the instruction at which the writer is killed, so it kills the writer many times.
#[test]
fn every_reported_boot_survives_a_kill() {
    let file = StoreFile::new();
    let mut reported = Vec::new();
    let mut first = 0;
    for round in 0..12 {
        let mut writer = Writer::start(&file, "6.1", first, u32::MAX);
        for _ in 0..=round % 3 {
            reported.push(writer.report().expect("the writer reports"));
        }
        // A random moment within the next one or two boots.
        let moment = RandomState::new().hash_one(round) % 30_000;
        thread::sleep(Duration::from_micros(moment));
        writer.process.kill().unwrap();
        writer.process.wait().unwrap();
        reported.extend(std::iter::from_fn(|| writer.report()));

        let store = file.open();
        let id = store.find_experiment("numa").unwrap();
        let kept = store.boots(id, Detail::Whole).unwrap();
        for report in &reported {
            assert!(kept.iter().any(|kept| (kept.id, kept.boot.replicate) == *report));
        }
        for Kept { boot, .. } in &kept {
            assert!(*boot == large("6.1", boot.replicate), "boot {} is incomplete", boot.replicate);
        }
        // A boot can be kept and not reported, at most once a round.
        assert!(kept.len() <= reported.len() + round + 1);
        first = kept.len() as u32;
        check_integrity(&file);
    }
}

fn check_integrity(file: &StoreFile) {
    let connection = file.plain();
    let verdict: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
    let mut orphans = connection.prepare("PRAGMA foreign_key_check").unwrap();
    assert!(!orphans.exists([]).unwrap());
}

#[test]
fn two_processes_write_while_a_third_reads() {
    let file = StoreFile::new();
    let store = file.open();
    let mut writers = ["6.1", "7.3"].map(|variant| Writer::start(&file, variant, 0, 10));
    let mut seen = 0;
    for writer in &mut writers {
        while let Some((id, _)) = writer.report() {
            store.boot(id).unwrap();
            seen += 1;
        }
        assert!(writer.process.wait().unwrap().success());
    }
    assert_eq!(seen, 20);
    let id = store.find_experiment("numa").unwrap();
    assert_eq!(store.experiments().unwrap().len(), 1);
    assert_eq!(store.done(id).unwrap().len(), 20);
    check_integrity(&file);
}

#[test]
fn several_processes_can_create_a_store_at_once() {
    for _ in 0..10 {
        let file = StoreFile::new();
        let start = Barrier::new(8);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    file.open().keep_experiment(&experiment("numa")).unwrap();
                });
            }
        });
        assert_eq!(file.open().experiments().unwrap().len(), 1);
    }
}
