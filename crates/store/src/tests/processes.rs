//! Tests of several processes on one store, and of killed processes. The test binary starts itself for them.

use std::env;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

use model::{Boot, BootId, Kept, Outcome};
use rusqlite::Connection;

use super::{StoreFile, boot, experiment, reading};
use crate::sqlite::Sqlite;
use crate::{Archive, Detail, say_waits};

const STORE: &str = "FAULTLINE_TEST_STORE";
const VARIANT: &str = "FAULTLINE_TEST_VARIANT";
const FIRST: &str = "FAULTLINE_TEST_FIRST";
const COUNT: &str = "FAULTLINE_TEST_COUNT";
const HOLD: &str = "FAULTLINE_TEST_HOLD";

/// A boot that takes a while to keep, because its chunks and samples are repeated many times.
fn large(variant: &str, boot_index: u32) -> Boot {
    let mut boot = boot(variant, boot_index, Outcome::Complete);
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
    let mut store = Sqlite::open(Path::new(&path)).unwrap();
    let id = store.keep_experiment(&experiment("numa"), &reading()).unwrap();
    for boot_index in first..first.saturating_add(count) {
        let kept = store.keep_boot(id, &large(&variant, boot_index)).unwrap();
        println!("\nkept {} {boot_index}", kept.0);
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

    /// The next boot that it reports, with its boot index; `None` after its end.
    fn report(&mut self) -> Option<(BootId, u32)> {
        self.lines.find_map(|line| {
            let line = line.unwrap();
            let (id, boot_index) = line.strip_prefix("kept ")?.split_once(' ')?;
            Some((BootId(id.parse().unwrap()), boot_index.parse().unwrap()))
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
            assert!(kept.iter().any(|kept| (kept.id, kept.boot.boot_index) == *report));
        }
        for Kept { boot, .. } in &kept {
            assert!(
                *boot == large("6.1", boot.boot_index),
                "boot {} is incomplete",
                boot.boot_index
            );
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
                    file.open().keep_experiment(&experiment("numa"), &reading()).unwrap();
                });
            }
        });
        assert_eq!(file.open().experiments().unwrap().len(), 1);
    }
}

/// Holds a lock on the store until its standard input ends. Runs only in a process that a test below starts.
#[test]
fn locker() {
    let Ok(hold) = env::var(HOLD) else { return };
    let connection = Connection::open(env::var(STORE).unwrap()).unwrap();
    connection.execute_batch(&hold).unwrap();
    println!("\nheld");
    std::io::stdin().lines().for_each(drop);
}

/// A process that holds a lock by these statements, and its standard input.
fn locked(file: &StoreFile, hold: &str) -> (Child, ChildStdin) {
    let mut process = Command::new(env::current_exe().unwrap())
        .args(["--exact", "tests::processes::locker", "--nocapture"])
        .env(STORE, &file.path)
        .env(HOLD, hold)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap() == "held").unwrap().unwrap();
    let input = process.stdin.take().unwrap();
    (process, input)
}

/// The messages so far, and the standard input whose end ends the process that holds the lock.
static SAID: Mutex<(Vec<String>, Option<ChildStdin>)> = Mutex::new((Vec::new(), None));

#[test]
fn a_writer_says_for_whom_it_waits() {
    say_waits(|line| {
        let mut said = SAID.lock().unwrap();
        said.0.push(line.to_owned());
        // Other tests migrate stores meanwhile, which is said too.
        if line.starts_with("Waiting") {
            said.1 = None;
        }
    });
    let (file, mut store) = StoreFile::opened();
    let (mut process, input) = locked(&file, "BEGIN IMMEDIATE");
    SAID.lock().unwrap().1 = Some(input);
    // Reading does not wait.
    assert!(Sqlite::open_to_read(&file.path).unwrap().experiments().unwrap().is_empty());
    store.keep_experiment(&experiment("numa"), &reading()).unwrap();
    process.wait().unwrap();
    let path = file.path.display().to_string();
    let begin = format!("Waiting for the store: {path} is locked by process {} (`", process.id());
    let mut said = std::mem::take(&mut SAID.lock().unwrap().0);
    said.retain(|line| line.contains(&path));
    assert!(said.len() == 1 && said[0].starts_with(&begin), "{said:?}");
    assert!(said[0].contains("tests::processes::locker"), "{said:?}");
}

#[test]
fn a_reader_of_a_locked_store_is_told_who_has_it() {
    let file = StoreFile::new();
    drop(file.open());
    let hold = "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE";
    let (mut process, input) = locked(&file, hold);
    let error = Sqlite::open_to_read(&file.path).unwrap_err().to_string();
    let expected = format!("{}: it is locked by process {} (`", file.path.display(), process.id());
    assert!(error.starts_with(&expected), "{error}");
    drop(input);
    process.wait().unwrap();
    Sqlite::open_to_read(&file.path).unwrap();
}
