//! Tests of full disks and damaged files.

use std::fs;

use model::{BootId, Experiment, Mode, Outcome};

use super::{StoreFile, as_kept, boot, experiment, place, reading};
use crate::parts::Kind;
use crate::{Archive, Detail, Error, Trouble};

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

/// The error when boot 1 is read after `sql` changed a row.
fn complaint(sql: &str) -> String {
    let (file, mut store, id) = StoreFile::with_numa();
    store.keep_boot(id, &boot("6.1", 0, Outcome::Complete)).unwrap();
    assert_eq!(file.plain().execute(sql, []), Ok(1), "{sql}");
    store.boot(BootId(1)).unwrap_err().to_string()
}

fn change(kind: Kind, number: usize) -> String {
    format!("UPDATE parts SET bytes = x'2a' WHERE place = {}", place(kind, number))
}

#[test]
fn damage_is_named() {
    let chunk = "chunk 4 of boot b1 (zoneinfo in iteration 1 of `autonuma`, phase `steady`)";
    let cases = [
        (change(Kind::Series, 4), chunk),
        (change(Kind::Head, 0), "the head of boot b1"),
        (change(Kind::Samples, 0), "the samples of boot b1"),
        (change(Kind::Console, 0), "the console of boot b1"),
        (change(Kind::Profile, 1), "profile 1 of boot b1"),
        (
            change(Kind::Series, 0).replace("x'2a'", "CAST(bytes || x'00' AS BLOB)"),
            "chunk 0 of boot b1 (vmstat",
        ),
        (
            change(Kind::Series, 0).replace("x'2a'", "substr(bytes, 2)"),
            "chunk 0 of boot b1 (vmstat",
        ),
        (
            format!("DELETE FROM parts WHERE place = {}", place(Kind::Samples, 0)),
            "the samples of boot b1: it is missing",
        ),
        ("UPDATE boots SET contents = x'2a'".into(), "the row of boot b1"),
        ("UPDATE boots SET experiment = 2".into(), "the row of boot b1"),
        ("DELETE FROM boots".into(), "the row of boot b1"),
        ("UPDATE experiments SET record = x'2a'".into(), "the record of experiment 1"),
    ];
    for (sql, expected) in cases {
        let error = complaint(&sql);
        assert!(error.contains(&format!("faultline.db: damage in {expected}")), "{sql}: {error}");
        assert!(error.contains("`faultline store check` lists all damage"), "{error}");
    }
}

#[test]
fn damage_of_shared_texts_is_named() {
    for (text, expected) in [
        (boot("6.1", 0, Outcome::Complete).facts.config, "the configuration of boot b1"),
        (
            boot("6.1", 0, Outcome::Complete).facts.userspace.join("\n"),
            "the list of packages of boot b1",
        ),
    ] {
        let (file, mut store, id) = StoreFile::with_numa();
        store.keep_boot(id, &boot("6.1", 0, Outcome::Complete)).unwrap();
        let packed = crate::packed::pack(text.as_bytes(), crate::packed::LEVEL).unwrap();
        let sql = "UPDATE texts SET bytes = x'2a' WHERE bytes = ?";
        assert_eq!(file.plain().execute(sql, [packed]), Ok(1));
        let error = store.boot(BootId(1)).unwrap_err().to_string();
        assert!(error.contains(&format!("faultline.db: damage in {expected}")), "{error}");
    }
}

#[test]
fn a_damaged_text_is_replaced_by_the_next_boot_that_has_it() {
    let (file, mut store, id) = StoreFile::with_numa();
    let first = store.keep_boot(id, &boot("6.1", 0, Outcome::Complete)).unwrap();
    let plain = file.plain();
    assert_eq!(plain.execute("UPDATE texts SET bytes = x'2a'", []), Ok(2));
    store.boot(first).unwrap_err();
    store.keep_boot(id, &boot("6.1", 1, Outcome::Complete)).unwrap();
    assert_eq!(store.boot(first).unwrap().1.boot, boot("6.1", 0, Outcome::Complete));
}

#[test]
fn damage_under_right_checksums_is_named() {
    let cases = [
        (change(Kind::Head, 0), "the head of boot b1: expected"),
        (change(Kind::Profile, 0), "profile 0 of boot b1: "),
        (change(Kind::Series, 0), "chunk 0 of boot b1 (vmstat in iteration 0"),
        (change(Kind::Samples, 0), "the samples of boot b1: "),
    ];
    for (sql, expected) in cases {
        let (file, mut store, id) = StoreFile::with_numa();
        store.keep_boot(id, &boot("6.1", 0, Outcome::Complete)).unwrap();
        drop(store);
        file.forge(&sql);
        let error = file.open().boot(BootId(1)).unwrap_err().to_string();
        assert!(error.contains(&format!("damage in {expected}")), "{error}");
    }
}

#[test]
fn damaged_rows_are_not_overwritten() {
    let (file, mut store, id) = StoreFile::with_numa();
    store.keep_boot(id, &boot("6.1", 0, Outcome::Failed("no".into()))).unwrap();
    let plain = file.plain();
    plain.execute("UPDATE definitions SET definition = x'2a'", []).unwrap();
    let definition =
        store.keep_experiment(&experiment("numa"), &reading()).unwrap_err().to_string();
    assert!(definition.contains("damage in the definition of experiment 1"), "{definition}");
    plain.execute("UPDATE experiments SET record = x'2a'", []).unwrap();
    let list = store.keep_boot(id, &boot("6.1", 2, Outcome::Complete)).unwrap_err().to_string();
    assert!(list.contains("damage in the record of experiment 1"), "{list}");
    let boots: i64 = plain.query_row("SELECT count(*) FROM boots", [], |row| row.get(0)).unwrap();
    assert_eq!(boots, 1);
}

#[test]
fn a_damaged_definition_is_named() {
    for definition in ["{", "[]", "{}", "7"] {
        let (file, store, id) = StoreFile::with_numa();
        let sql = format!("UPDATE definitions SET definition = CAST('{definition}' AS BLOB)");
        file.plain().execute(&sql, []).unwrap();
        let damage = "damage in the definition of experiment 1";
        let error = store.experiment(id).unwrap_err().to_string();
        assert!(error.contains(&format!("{damage}: the checksum")), "{error}");
        drop(store);
        file.forge(&sql);
        let error = file.open().experiment(id).unwrap_err().to_string();
        assert!(error.contains(damage) && !error.contains("checksum"), "{error}");
    }
}

#[test]
fn a_search_does_not_trust_a_damaged_list() {
    let (file, mut store, id) = StoreFile::with_numa();
    let newer = Experiment { mode: Mode::Exact, ..experiment("numa") };
    let newer = store.keep_experiment(&newer, &reading()).unwrap();
    assert_eq!(store.find_experiment("numa").unwrap(), newer);
    assert_eq!(store.find_experiment("numa~2").unwrap(), id);
    let plain = file.plain();
    let sql = "SELECT list FROM lists WHERE name = 'experiments'";
    let list: Vec<u8> = plain.query_row(sql, [], |row| row.get(0)).unwrap();
    for bit in 0..8 * list.len() {
        let mut damaged = list.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        plain.execute("UPDATE lists SET list = ? WHERE name = 'experiments'", [damaged]).unwrap();
        let error = store.find_experiment("numa").unwrap_err().to_string();
        assert!(error.contains("damage in the list of experiments"), "{bit}: {error}");
    }
}

#[test]
fn a_vanished_experiment_is_noticed() {
    let (file, mut store, id) = StoreFile::with_numa();
    let other = store.keep_experiment(&experiment("other"), &reading()).unwrap();
    file.plain().execute("DELETE FROM experiments WHERE id = 1", []).unwrap();
    let errors = [
        store.experiments().unwrap_err(),
        store.experiment(id).unwrap_err(),
        store.find_experiment("numa").unwrap_err(),
        store.find_experiment("nothing").unwrap_err(),
    ];
    for error in errors.map(|error| error.to_string()) {
        assert!(error.contains("damage in the record of experiment 1: it is missing"), "{error}");
    }
    assert!(store.experiment(other).is_ok());
    let lost = store.check().unwrap().lost;
    assert_eq!((lost.len(), &*lost[0].what), (1, "the record of experiment 1"));
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
        "UPDATE boots SET contents = x'2a' WHERE id = 2",
        "UPDATE boots SET experiment = 2 WHERE id = 2",
    ] {
        let (file, mut store, id) = StoreFile::with_numa();
        let other = store.keep_experiment(&experiment("other"), &reading()).unwrap();
        for boot_index in 0..2 {
            store.keep_boot(id, &boot("6.1", boot_index, Outcome::Complete)).unwrap();
        }
        assert!(store.listed(id).is_ok());
        let plain = file.plain();
        plain.execute_batch(&format!("PRAGMA foreign_keys = OFF; {sql}")).unwrap();
        let error = store.listed(id).unwrap_err().to_string();
        assert!(error.contains("damage in the row of boot b2"), "{sql}: {error}");
        assert!(store.listed(other).is_ok());
    }
}
