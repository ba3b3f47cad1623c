//! Tests of full disks and damaged files.

use std::fs;

use model::{BootId, Outcome};

use super::{StoreFile, as_kept, boot, experiment};
use crate::{Detail, Error, Trouble};

#[test]
fn a_full_disk_does_not_damage_kept_boots() {
    let (file, mut store, id) = StoreFile::with_numa();
    let boots: Vec<_> = (0..20).map(|n| boot("6.1", n, Outcome::Complete)).collect();
    let first = store.keep_boot(id, &boots[0]).unwrap();

    let pages: i64 =
        store.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    store
        .connection
        .pragma_update_and_check(None, "max_page_count", pages + 12, |_| Ok(()))
        .unwrap();
    let mut kept = vec![as_kept(first, &boots[0])];
    let error = boots[1..]
        .iter()
        .find_map(|boot| match store.keep_boot(id, boot) {
            Ok(id) => {
                kept.push(as_kept(id, boot));
                None
            }
            Err(error) => Some(error),
        })
        .expect("the limit is reached");
    assert!(matches!(error, Error::Store { trouble: Trouble::Full, .. }), "{error}");
    assert!(kept.len() < boots.len());
    assert_eq!(store.boots(id, Detail::Whole).unwrap(), kept);

    // With space again, the same boot can be kept by this store or the next.
    store.connection.pragma_update_and_check(None, "max_page_count", 1 << 30, |_| Ok(())).unwrap();
    for boot in &boots[kept.len()..] {
        kept.push(as_kept(store.keep_boot(id, boot).unwrap(), boot));
    }
    assert_eq!(file.open().boots(id, Detail::Whole).unwrap(), kept);
}

#[test]
fn a_file_that_is_gone_keeps_nothing() {
    for replace in [false, true] {
        let (file, mut store, id) = StoreFile::with_numa();
        store.keep_boot(id, &boot("6.1", 0, Outcome::Complete)).unwrap();
        fs::remove_file(&file.path).unwrap();
        if replace {
            fs::write(&file.path, "").unwrap();
        }
        let error = store.keep_boot(id, &boot("6.1", 1, Outcome::Complete)).unwrap_err();
        assert!(matches!(error, Error::Store { trouble: Trouble::Gone, .. }), "{error}");
    }
}

/// The error when boot 1 is read after `sql` changed the file.
fn complaint(sql: &str) -> String {
    let (file, mut store, id) = StoreFile::with_numa();
    store.keep_boot(id, &boot("6.1", 0, Outcome::Complete)).unwrap();
    assert_eq!(file.plain().execute(sql, []), Ok(1));
    store.boot(BootId(1)).unwrap_err().to_string()
}

#[test]
fn damage_is_named() {
    let cases = [
        (
            "UPDATE chunks SET packed = x'2a' WHERE place = 4",
            "chunk 4 of boot b1 (zoneinfo in iteration 1 of `autonuma`, phase `steady`)",
        ),
        (
            "UPDATE chunks SET packed = substr(packed, 1, length(packed) - 1) WHERE place = 0",
            "chunk 0 of boot b1 (vmstat in iteration 0",
        ),
        ("UPDATE chunks SET source = 'x' WHERE place = 0", "the list of series of boot b1"),
        ("UPDATE boots SET console = x'2a'", "the console of boot b1"),
        (
            "UPDATE texts SET packed = x'2a' WHERE id = (SELECT config FROM boots)",
            "the configuration of boot b1",
        ),
        (
            "UPDATE texts SET packed = x'2a' WHERE id = (SELECT userspace FROM boots)",
            "the list of packages of boot b1",
        ),
        ("UPDATE boots SET outcome = 'lost'", "the row of boot b1"),
        ("UPDATE problems SET kind = 'odd' WHERE place = 0", "the problems of boot b1"),
        ("UPDATE notes SET text = '' WHERE place = 0", "the notes of boot b1"),
        ("UPDATE samples SET value = 7.0 WHERE place = 2", "the samples of boot b1"),
        ("DELETE FROM samples WHERE place = 3", "the samples of boot b1"),
        ("DELETE FROM boots", "the row of boot b1"),
        ("UPDATE usage SET elapsed = 7.0 WHERE place = 1", "the usage of boot b1"),
        ("UPDATE profiles SET packed = x'2a' WHERE place = 1", "the profiles of boot b1"),
        (
            "DELETE FROM checksums WHERE of = 'boot b1'",
            "the checksums of boot b1: they are missing",
        ),
        ("UPDATE checksums SET sums = x'2a' WHERE of = 'store'", "the checksums of store"),
    ];
    for (sql, expected) in cases {
        let error = complaint(sql);
        assert!(error.contains(&format!("faultline.db: damage in {expected}")), "{error}");
        assert!(error.contains("`faultline store check` lists all damage"), "{error}");
    }
}

#[test]
fn damage_under_right_checksums_is_named() {
    let cases = [
        ("UPDATE boots SET outcome = 'lost'", "the row of boot b1: the outcome: `lost` is unknown"),
        (
            "UPDATE boots SET accel = 'lost'",
            "the row of boot b1: the accelerator: `lost` is unknown",
        ),
        (
            "UPDATE problems SET kind = 'odd'",
            "the problems of boot b1: a problem: unknown kind `odd`",
        ),
        ("UPDATE profiles SET packed = x'2a'", "the profiles of boot b1: profile 0: "),
        ("UPDATE chunks SET packed = x'2a'", "chunk 0 of boot b1 (vmstat in iteration 0"),
    ];
    for (sql, expected) in cases {
        let (file, mut store, id) = StoreFile::with_numa();
        store.keep_boot(id, &boot("6.1", 0, Outcome::Complete)).unwrap();
        drop(store);
        file.forge(sql);
        let error = file.open().boot(BootId(1)).unwrap_err().to_string();
        assert!(error.contains(&format!("damage in {expected}")), "{error}");
    }
}

#[test]
fn damaged_rows_are_not_overwritten() {
    let (file, mut store, id) = StoreFile::with_numa();
    store.keep_boot(id, &boot("6.1", 0, Outcome::Failed("no".into()))).unwrap();
    let plain = file.plain();
    plain.execute_batch("UPDATE boots SET release = 'x'; UPDATE texts SET packed = x'2a'").unwrap();
    let again = boot("6.1", 0, Outcome::Complete);
    let row = store.keep_instead(id, &again).unwrap_err().to_string();
    assert!(row.contains("damage in the row of boot b1"), "{row}");
    let text = store.keep_boot(id, &boot("6.1", 1, Outcome::Complete)).unwrap_err().to_string();
    assert!(text.contains("damage in text 1, which boots share"), "{text}");
    plain.execute_batch("UPDATE experiments SET boots = 1").unwrap();
    let definition = store.keep_experiment(&experiment("numa")).unwrap_err().to_string();
    assert!(definition.contains("damage in the definition of experiment 1"), "{definition}");
    plain.execute_batch("DELETE FROM checksums WHERE of = 'experiment 1'").unwrap();
    let list = store.keep_boot(id, &boot("6.1", 2, Outcome::Complete)).unwrap_err().to_string();
    assert!(list.contains("damage in the checksums of experiment 1"), "{list}");
    let boots: i64 = plain.query_row("SELECT count(*) FROM boots", [], |row| row.get(0)).unwrap();
    assert_eq!(boots, 1);
}

#[test]
fn a_damaged_definition_is_named() {
    for definition in ["{", "[]", "{}", "7"] {
        let (file, store, id) = StoreFile::with_numa();
        let sql = "UPDATE experiments SET definition = ?";
        file.plain().execute(sql, [definition]).unwrap();
        let error = store.experiment(id).unwrap_err().to_string();
        assert!(error.contains("damage in the definition of experiment 1"), "{error}");
        assert_eq!(store.experiments().unwrap_err().to_string(), error);
    }
}

#[test]
fn a_missing_boot_or_experiment_is_named() {
    let (_file, mut store) = StoreFile::opened();
    let error = store.boot(BootId(3)).unwrap_err().to_string();
    assert!(error.contains("no boot `b3`;"), "{error}");
    let error = store.experiment(crate::ExperimentId(9)).unwrap_err().to_string();
    assert!(error.ends_with("no experiment `9`; the store is empty"), "{error}");
    let orphan = store.keep_boot(crate::ExperimentId(9), &boot("6.1", 0, Outcome::Complete));
    assert!(orphan.unwrap_err().to_string().contains("no experiment `9`"));
}

#[test]
fn a_missing_or_changed_boot_is_detected_in_lists() {
    for sql in [
        "DELETE FROM boots WHERE id = 2",
        "UPDATE boots SET outcome = 'failed' WHERE id = 2",
        "UPDATE boots SET superseded = TRUE WHERE id = 2",
        "UPDATE boots SET experiment = 2 WHERE id = 2",
    ] {
        let (file, mut store, id) = StoreFile::with_numa();
        let other = store.keep_experiment(&experiment("other")).unwrap();
        for replicate in 0..2 {
            store.keep_boot(id, &boot("6.1", replicate, Outcome::Complete)).unwrap();
        }
        assert!(store.check_listed(id).is_ok());
        let plain = file.plain();
        plain.execute_batch(&format!("PRAGMA foreign_keys = OFF; {sql}")).unwrap();
        let error = store.check_listed(id).unwrap_err().to_string();
        assert!(error.contains("damage in the row of boot b2"), "{sql}: {error}");
        assert!(store.check_listed(other).is_ok());
    }
}
