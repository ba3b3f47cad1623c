//! Tests of removing and renaming experiments, and of remarks.

use std::env;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use model::Outcome;

use super::{StoreFile, boot, experiment, reading};
use crate::sqlite::Sqlite;
use crate::{Archive, Detail, Error, ExperimentId, Trouble};

fn whole(store: &Sqlite) {
    assert_eq!(store.check().unwrap().lost, []);
}

/// A store with two experiments that have the same name but different definitions, and a boot of each.
fn two(file: &StoreFile) -> (Sqlite, [ExperimentId; 2]) {
    let mut store = file.open();
    let mut other = experiment("numa");
    other.workloads[0].iterations = 9;
    let ids = [experiment("numa"), other].map(|experiment| {
        let id = store.keep_experiment(&experiment, &reading()).unwrap();
        store.keep_boot(id, &boot("6.1", 0, Outcome::Complete)).unwrap();
        id
    });
    (store, ids)
}

#[test]
fn boots_share_texts() {
    let (file, mut store, id) = StoreFile::with_numa();
    for boot_index in 0..3 {
        for variant in ["6.1", "7.3"] {
            let boot = boot(variant, boot_index, Outcome::Complete);
            store.keep_boot(id, &boot).unwrap();
        }
    }
    let count = file.plain().query_row("SELECT count(*) FROM texts", [], |row| row.get(0));
    // Each boot has its own configuration. All share a list of packages.
    assert_eq!(count, Ok(3));
}

#[test]
fn removal_deletes_all_rows_and_numbers_are_not_reused() {
    let file = StoreFile::new();
    let (mut store, [first, second]) = two(&file);
    let before = store.boots(first, Detail::Whole).unwrap();
    store.remove_experiment(second).unwrap();
    whole(&store);
    assert_eq!(store.boots(first, Detail::Whole).unwrap(), before);
    assert!(matches!(
        store.remove_experiment(second),
        Err(Error::Store { trouble: Trouble::NoExperiment { .. }, .. })
    ));
    let next = store.keep_experiment(&experiment("other"), &reading()).unwrap();
    assert_eq!(next.0, second.0 + 1);
    let id = store.keep_boot(next, &boot("6.1", 0, Outcome::Complete)).unwrap();
    assert_eq!(id.0, 3);
    store.remove_experiment(first).unwrap();
    store.remove_experiment(next).unwrap();
    whole(&store);
    let plain = file.plain();
    let tables = "SELECT name FROM sqlite_schema WHERE type = 'table'";
    let mut tables = plain.prepare(tables).unwrap();
    for table in tables.query_map([], |row| row.get::<_, String>(0)).unwrap() {
        let table = table.unwrap();
        let sql = format!("SELECT count(*) FROM {table}");
        let left: i64 = plain.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(left, 2 * i64::from(table == "lists"), "{table}");
    }
}

#[test]
fn remarks_are_kept_with_their_experiment() {
    let file = StoreFile::new();
    let (mut store, [first, second]) = two(&file);
    store.note_experiment(first, "with the \u{fc}ber-patch").unwrap();
    store.keep_experiment(&experiment("numa"), &reading()).unwrap();
    whole(&store);
    let note = |store: &Sqlite, id| {
        store.experiments().unwrap().into_iter().find(|row| row.id == id).unwrap().note
    };
    assert_eq!([note(&store, first), note(&store, second)], ["with the \u{fc}ber-patch", ""]);
    store.note_experiment(first, "").unwrap();
    assert_eq!(note(&store, first), "");
    let forged = "UPDATE experiments SET record = CAST(record || x'00' AS BLOB)";
    file.plain().execute(forged, []).unwrap();
    assert_eq!(store.check().unwrap().lost.len(), 2);
    for result in [store.note_experiment(first, "x"), store.rename_experiment(first, "x")] {
        assert!(matches!(result, Err(Error::Store { trouble: Trouble::Damaged { .. }, .. })));
    }
}

#[test]
fn numbers_that_were_given_are_never_forgotten_unnoticed() {
    for damage in [
        "DELETE FROM lists WHERE name = 'numbers'",
        "UPDATE lists SET list = x'0202' WHERE name = 'numbers'",
    ] {
        let file = StoreFile::new();
        let (mut store, [first, second]) = two(&file);
        store.remove_experiment(second).unwrap();
        file.plain().execute(damage, []).unwrap();
        assert_eq!(store.check().unwrap().lost[0].what, "the list of numbers", "{damage}");
        let kept = store.keep_boot(first, &boot("6.1", 1, Outcome::Complete));
        assert!(matches!(kept, Err(Error::Store { trouble: Trouble::Damaged { .. }, .. })));
    }
}

const STORE: &str = "FAULTLINE_TEST_EDITED";

/// Changes a store in a loop, in a process that the test below started; does nothing elsewhere.
#[test]
fn editor() {
    let Ok(path) = env::var(STORE) else { return };
    let mut store = Sqlite::open(Path::new(&path)).unwrap();
    let name = format!("passing {}", std::process::id());
    for round in 0.. {
        let id = store.keep_experiment(&experiment(&name), &reading()).unwrap();
        store.keep_boot(id, &boot("6.1", 0, Outcome::Complete)).unwrap();
        store.note_experiment(id, &format!("round {round}")).unwrap();
        store.rename_experiment(id, &format!("{name}, {round}")).unwrap();
        store.remove_experiment(id).unwrap();
        println!("\nround {round}");
    }
}

#[test]
fn a_killed_editor_leaves_an_undamaged_store() {
    let file = StoreFile::new();
    let (store, [first, second]) = two(&file);
    drop(store);
    for round in 0..12_u64 {
        let mut process = Command::new(env::current_exe().unwrap())
            .args(["--exact", "tests::edit::editor", "--nocapture"])
            .env(STORE, &file.path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        lines.map(Result::unwrap).find(|line| line.starts_with("round ")).unwrap();
        thread::sleep(Duration::from_micros(RandomState::new().hash_one(round) % 30_000));
        process.kill().unwrap();
        process.wait().unwrap();
        let store = file.open();
        whole(&store);
        let kept: Vec<_> = store.experiments().unwrap().into_iter().map(|row| row.id).collect();
        assert!(kept.contains(&first) && kept.contains(&second));
        assert_eq!(store.boots(second, Detail::Summary).unwrap().len(), 1);
    }
}
