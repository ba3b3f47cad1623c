//! Tests of migrations: what was kept is there afterwards, a damaged file is refused, and a killed migration leaves the
//! old file or the new one.

use std::env;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use model::{BootId, Outcome, PatchStep, Point, PointChange, Variant};

use super::fixture::{contents, file_of, fill};
use super::{StoreFile, boot, experiment, reading};
use crate::experiments::{definition, identity, parse, read, records};
use crate::record::digest;
use crate::sqlite::Sqlite;
use crate::{Archive, Trouble};

/// The versions that have a file in `fixtures/`.
const VERSIONS: [i64; 4] = [9, 10, 11, 12];
const STORE: &str = "FAULTLINE_TEST_MIGRATED";
/// How often a migration is killed.
const KILLS: u32 = 20;

fn version(file: &StoreFile) -> i64 {
    file.plain().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[test]
fn a_file_of_each_version_has_all_that_was_kept() {
    let (new, mut store) = StoreFile::opened();
    fill(&mut store);
    let expected = contents(&store);
    assert_eq!(expected.len(), 3 + 2 * 23);
    assert_eq!(VERSIONS.last(), Some(&version(&new)), "a version has no file");
    for version in VERSIONS {
        let file = file_of(version);
        let mut store = file.open();
        assert_eq!(contents(&store), expected, "{version}");
        assert_eq!(store.check().unwrap().lost, [], "{version}");
        // Numbers of removed experiments and boots are not used again.
        let next = store.keep_experiment(&experiment("next"), &reading()).unwrap();
        let kept = store.keep_boot(next, &boot("6.1", 0, Outcome::Complete)).unwrap();
        assert_eq!((next.0, kept), (6, BootId(25)), "{version}");
        drop(store);
        assert_eq!(file.open().check().unwrap().lost, [], "{version}");
    }
}

/// An experiment that was begun is continued only if its identity is the same to the byte.
#[test]
fn experiments_of_each_version_have_the_identities_that_they_had() {
    for version in VERSIONS {
        let file = file_of(version);
        drop(file.open());
        let plain = file.plain();
        let identities = records(&plain).unwrap().into_iter().map(|(id, record)| {
            let (experiment, reading) = read(&plain, id, &record).unwrap();
            let written = definition(&experiment, &reading).unwrap();
            assert_eq!(digest(written.as_bytes()), record.definition, "{version}");
            let identity = digest(identity(&experiment).unwrap().as_bytes());
            identity.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        });
        assert_eq!(
            identities.collect::<Vec<_>>(),
            [
                "428565a3f01f8496d18847c7de2f3d209b9867b4e42c10585126fb513749a2c2",
                "5c37db407e6dbc3ec71942d8a3637e2722654c6b7f5e21735a964ed13af55bc7",
                "f916823fb7f056b0120e752fc44c12a2a2cdeab38d6ac738eb5c4e95d71434cf",
            ],
            "{version}"
        );
    }
}

/// The layout of stored definitions: each variant and workload has its reading, at all points of a sweep.
#[test]
fn a_definition_has_how_figures_are_read_beside_what_runs() {
    let mut sweep = experiment("numa");
    let change = PointChange::Cmdline("x".into());
    let points = ["1", "2"].map(|value| {
        let (variant, key, value) = ("7.3".into(), "cmdline".into(), value.into());
        Some(Point { variant, key, value, change: change.clone() })
    });
    sweep.variants = points
        .map(|point| Variant { name: format!("{point:?}"), point, ..Variant::default() })
        .into();
    let mut own = reading();
    let step = PatchStep { after: "6.1".into(), patch: "mm: one".into() };
    own.variants.get_mut("7.3").unwrap().step = Some(step);
    let written = definition(&sweep, &own).unwrap();
    let keys: serde_json::Value = serde_json::from_str(&written).unwrap();
    for variant in keys["variants"].as_array().unwrap() {
        assert_eq!(variant["axes"].to_string(), r#"[["kernel","7.3"]]"#);
        assert_eq!(variant["step"].to_string(), r#"{"after":"6.1","patch":"mm: one"}"#);
    }
    assert_eq!(keys["workloads"][0]["primary"].to_string(), r#"["Elapsed"]"#);
    own.variants.remove("6.1");
    assert_eq!(parse(written.as_bytes(), 2).unwrap(), (sweep, own));
}

#[test]
fn a_damaged_file_is_refused_and_remains_as_it_was() {
    for (damage, named) in [
        ("UPDATE samples SET value = 7.0 WHERE boot = 5 AND place = 2", "the samples of boot b5"),
        ("DELETE FROM notes WHERE boot = 22", "the notes of boot b22"),
        ("UPDATE boots SET superseded = 1 WHERE id = 1", "the row of boot b1"),
        ("UPDATE chunks SET packed = x'2a' WHERE boot = 1 AND place = 3", "chunk 3 of boot b1"),
        ("DELETE FROM chunk_ends WHERE boot = 1 AND place = 3", "chunk 3 of boot b1"),
        ("DELETE FROM chunks WHERE boot = 1 AND place = 8", "the list of series of boot b1"),
        ("UPDATE profiles SET packed = x'2a' WHERE boot = 18", "the profiles of boot b18"),
        ("UPDATE texts SET packed = x'2a'", "the configuration of boot b1"),
        ("UPDATE boots SET console = x'2a' WHERE id = 4", "the console of boot b4"),
        ("UPDATE experiments SET note = 'x' WHERE id = 3", "the definition of experiment 3"),
        ("DELETE FROM checksums WHERE of = 'experiment 4'", "the checksums of experiment 4"),
        ("DELETE FROM checksums WHERE of = 'numbers'", "the checksums of numbers"),
        ("UPDATE boots SET experiment = 3 WHERE id = 17", "the row of boot b17"),
        (
            "INSERT INTO experiments VALUES (9, 'x', '', x'', 1, 1, 9, '')",
            "the experiments: 1 rows are in no list",
        ),
    ] {
        let file = file_of(9);
        file.plain().execute_batch(damage).unwrap();
        let before = fs::read(&file.path).unwrap();
        let error = Sqlite::open(&file.path).unwrap_err().to_string();
        assert!(error.contains("it is damaged, so it was not migrated to version 12"), "{error}");
        assert!(error.contains(&format!("as it was: {named}")), "{damage}: {error}");
        assert_eq!(version(&file), 9);
        assert!(fs::read(&file.path).unwrap() == before, "{damage}");
    }
}

#[test]
fn a_migration_on_a_full_disk_changes_nothing() {
    let file = file_of(9);
    let before = fs::read(&file.path).unwrap();
    let mut full = file.plain();
    let pages: i64 = full.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    full.pragma_update_and_check(None, "max_page_count", pages + 4, |_| Ok(())).unwrap();
    let error = crate::schema::create(&mut full, &|_| ()).unwrap_err();
    assert!(matches!(error, Trouble::Full), "{error}");
    drop(full);
    assert!(fs::read(&file.path).unwrap() == before);
    assert_eq!(file.open().check().unwrap().lost, []);
}

#[test]
fn an_old_file_that_cannot_be_written_is_refused() {
    let file = file_of(9);
    let frozen = Permissions::from_mode(0o444);
    fs::set_permissions(&file.path, frozen).unwrap();
    // The file is opened read-only, so that it cannot be written even by root.
    let connection = rusqlite::Connection::open_with_flags(
        &file.path,
        rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY,
    );
    let error = crate::schema::check(&connection.unwrap()).unwrap_err().to_string();
    assert!(error.starts_with("its schema is version 9, and it cannot be written"), "{error}");
    assert_eq!(version(&file), 9);
}

/// Migrates a store. Runs only in a process that a test below starts.
#[test]
fn migrator() {
    let Ok(path) = env::var(STORE) else { return };
    println!("\nbegins");
    Sqlite::open(Path::new(&path)).unwrap();
}

/// Starts a process that migrates, and returns when it is about to begin.
fn begun(file: &StoreFile) -> Child {
    let mut process = Command::new(env::current_exe().unwrap())
        .args(["--exact", "tests::migration::migrator", "--nocapture"])
        .env(STORE, &file.path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.as_mut().unwrap()).lines();
    lines.map(Result::unwrap).find(|line| line == "begins").unwrap();
    process
}

#[test]
fn a_killed_migration_leaves_the_old_file_or_the_new_one() {
    let (_new, mut store) = StoreFile::opened();
    fill(&mut store);
    let expected = contents(&store);
    let file = file_of(9);
    let mut whole = begun(&file);
    let begin = Instant::now();
    assert!(whole.wait().unwrap().success());
    let whole = begin.elapsed();
    let mut versions = Vec::new();
    for kill in 1..=KILLS {
        let file = file_of(9);
        let mut process = begun(&file);
        thread::sleep(whole * kill / KILLS);
        process.kill().unwrap();
        process.wait().unwrap();
        versions.push(version(&file));
        // An old file is migrated now, which verifies all of it.
        let store = file.open();
        assert_eq!(contents(&store), expected);
        assert_eq!(store.check().unwrap().lost, []);
    }
    assert!(versions.contains(&9), "{versions:?} of {whole:?}");
}

#[test]
fn processes_that_open_an_old_file_at_once_migrate_it_once() {
    let file = file_of(9);
    let mut processes = [(); 3].map(|()| begun(&file));
    assert!(processes.iter_mut().all(|process| process.wait().unwrap().success()));
    assert_eq!(file.open().check().unwrap().lost, []);
}

#[test]
fn a_store_that_another_process_migrated_is_not_written() {
    let (file, mut store, id) = StoreFile::with_numa();
    file.plain().pragma_update(None, "user_version", 13).unwrap();
    let read = store.experiment(id).unwrap_err().to_string();
    let kept = store.keep_boot(id, &boot("6.1", 0, Outcome::Complete)).unwrap_err().to_string();
    for error in [read, kept] {
        assert!(error.contains("its schema is version 13"), "{error}");
    }
}
