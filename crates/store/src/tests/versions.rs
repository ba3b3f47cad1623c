//! Files of other versions and of other programs.

use std::fs;

use model::{BootId, Mode, Outcome};

use super::{StoreFile, boot, experiment};
use crate::{Detail, Store};

fn refusal(file: &StoreFile) -> String {
    let before = fs::read(&file.path).unwrap();
    let error = Store::open(&file.path).unwrap_err().to_string();
    assert_eq!(fs::read(&file.path).unwrap(), before, "the file was touched");
    assert!(error.starts_with(&file.path.display().to_string()), "{error}");
    error
}

#[test]
fn opening_again_changes_nothing() {
    let file = StoreFile::new();
    let mut store = file.open();
    let id = store.keep_experiment(&experiment("numa")).unwrap();
    store.keep_boot(id, &boot("6.1", 0, Outcome::Complete)).unwrap();
    drop(store);
    let before = fs::read(&file.path).unwrap();
    let store = file.open();
    assert_eq!(store.boots(id, Detail::Whole).unwrap().len(), 1);
    drop(store);
    assert_eq!(fs::read(&file.path).unwrap(), before);
}

#[test]
fn a_newer_version_is_refused_untouched() {
    let file = StoreFile::new();
    drop(file.open());
    file.plain().pragma_update(None, "user_version", 99).unwrap();
    let error = refusal(&file);
    assert!(error.contains("version 99, and this faultline knows versions up to 9"), "{error}");
}

#[test]
fn a_version_that_the_tables_are_not_of_is_damage() {
    let file = StoreFile::new();
    drop(file.open());
    for version in [0, 7, 8] {
        file.plain().pragma_update(None, "user_version", version).unwrap();
        let error = refusal(&file);
        assert!(
            error.contains(&format!("damage in the number of its version, {version}")),
            "{error}"
        );
    }
}

/// A store as version 1 left it, with one boot.
const FIRST: &str = "PRAGMA application_id = 0x464c6462; PRAGMA user_version = 1;
    INSERT INTO boots (id, experiment, variant, replicate, block, started, outcome, detail,
        release, version, banner, cmdline, preemption, cpus, nodes, memory, page_size, accel,
        emulator, kernel_origin, kernel_digest, console)
    VALUES (7, 1, '6.1', 0, 0, 1790000000, 'complete', '', '6.1.0', '', '', '', '', 4, 2, 0, 4096,
        'tcg', 'QEMU 10.0.2', '', 'abcd', zeroblob(0));";

#[test]
fn a_store_of_the_first_version_is_migrated() {
    let file = StoreFile::new();
    fs::create_dir_all(file.path.parent().unwrap()).unwrap();
    let plain = file.plain();
    plain.execute_batch(include_str!("../schema/1.sql")).unwrap();
    plain
        .execute(
            "INSERT INTO experiments (id, name, definition, digest, boots, used)
            VALUES (1, 'numa', ?, x'00', 2, 1)",
            [serde_json::to_string(&old_definition()).unwrap()],
        )
        .unwrap();
    plain.execute_batch(FIRST).unwrap();
    drop(plain);
    let store = file.open();
    let id = store.find_experiment("numa").unwrap();
    assert_eq!(store.experiment(id).unwrap().mode, Mode::Measured);
    let kept = store.boots(id, Detail::Profiles(&[])).unwrap().remove(0);
    assert_eq!((kept.id, kept.boot.facts.kernel_digest.as_str()), (BootId(7), "abcd"));
    assert_eq!((kept.boot.facts.recording_digest.as_str(), kept.boot.profiles.len()), ("", 0));
    assert_eq!(store.experiment_of(BootId(7)).unwrap(), id);
    assert!(store.experiment_of(BootId(8)).is_err());
}

#[test]
fn a_store_without_checksums_gets_them() {
    let file = StoreFile::new();
    let mut store = file.open();
    let id = store.keep_experiment(&experiment("numa")).unwrap();
    store.keep_experiment(&experiment("other")).unwrap();
    store.keep_boot(id, &boot("6.1", 0, Outcome::Complete)).unwrap();
    store.keep_aside(id, &boot("6.1", 1, Outcome::Invalid("signal 6".into()))).unwrap();
    let told = |store: &Store| {
        (
            store.experiments().unwrap(),
            store.boots(id, Detail::Whole),
            store.done(id),
            store.check(),
        )
    };
    let before = format!("{:?}", told(&store));
    drop(store);
    file.as_of_old("");
    let store = file.open();
    assert_eq!(format!("{:?}", told(&store)), before);
    file.plain()
        .execute("UPDATE samples SET value = 7.0 WHERE place = 1 AND boot = 1", [])
        .unwrap();
    assert!(store.boots(id, Detail::Summary).is_err());
}

#[test]
fn a_damaged_store_without_checksums_is_refused_untouched() {
    let damages = [
        // An index that lacks a row.
        "PRAGMA writable_schema = on; DROP INDEX boots_of_experiment;
            CREATE INDEX boots_of_experiment ON boots (experiment) WHERE id > 1;
            UPDATE sqlite_schema SET sql = 'CREATE INDEX boots_of_experiment ON boots (experiment)'
            WHERE name = 'boots_of_experiment'",
        "UPDATE boots SET experiment = 9 WHERE id = 1",
    ];
    for damage in damages {
        let file = StoreFile::new();
        let mut store = file.open();
        let id = store.keep_experiment(&experiment("numa")).unwrap();
        for replicate in 0..2 {
            store.keep_boot(id, &boot("6.1", replicate, Outcome::Complete)).unwrap();
        }
        drop(store);
        file.as_of_old(damage);
        let error = refusal(&file);
        assert!(error.contains("damage in "), "{error}");
    }
}

/// The definition of an experiment as version 1 wrote it, without a mode.
fn old_definition() -> serde_json::Value {
    let mut definition = serde_json::to_value(experiment("numa")).unwrap();
    let keys = definition.as_object_mut().unwrap();
    assert!(!keys.contains_key("mode") && !keys.contains_key("profile"));
    keys.remove("boots");
    definition
}

#[test]
fn databases_of_others_are_refused_untouched() {
    let file = StoreFile::new();
    fs::create_dir_all(file.path.parent().unwrap()).unwrap();
    file.plain().execute_batch("CREATE TABLE bookmarks (url)").unwrap();
    assert!(refusal(&file).contains("of another program"));
    file.plain().pragma_update(None, "application_id", 7).unwrap();
    file.plain().execute_batch("DROP TABLE bookmarks").unwrap();
    assert!(refusal(&file).contains("of another program"));
    fs::write(&file.path, "[variant]\nthis is a text\n".repeat(100)).unwrap();
    assert!(refusal(&file).contains("not a database"));
}

#[test]
fn what_can_be_no_store_is_told_with_what_to_do() {
    let file = StoreFile::new();
    let directory = file.path.parent().unwrap();
    fs::create_dir_all(directory).unwrap();
    let error = Store::open(directory).unwrap_err().to_string();
    assert!(error.ends_with("this is a directory; name a file in it"), "{error}");
    drop(file.open());
    let opened = fs::OpenOptions::new().write(true).open(&file.path).unwrap();
    opened.set_len(opened.metadata().unwrap().len() / 2).unwrap();
    let read = Store::open(&file.path).and_then(|store| store.experiments());
    let error = read.unwrap_err().to_string();
    assert!(error.contains("the file is damaged (") && error.contains(".recover"), "{error}");
    let error = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(8), None);
    assert!(matches!(crate::Trouble::from(error), crate::Trouble::ReadOnly));
}

#[test]
fn a_path_is_not_a_uri() {
    let file = StoreFile::new();
    let path = file.path.with_file_name("file:x?mode=memory");
    drop(Store::open(&path).unwrap());
    assert!(path.exists());
}

#[test]
fn a_directory_that_cannot_be_is_an_error() {
    let file = StoreFile::new();
    drop(file.open());
    let error = Store::open(&file.path.join("below/a.db")).unwrap_err().to_string();
    assert!(error.contains("its directory cannot be created"), "{error}");
}
