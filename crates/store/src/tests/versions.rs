//! Tests of files of other versions and of other programs.

use std::fs;

use model::{Mode, Outcome};

use super::{StoreFile, boot, experiment};
use crate::sqlite::Sqlite;
use crate::{Archive, Detail};

fn refusal(file: &StoreFile) -> String {
    let before = fs::read(&file.path).unwrap();
    let error = Sqlite::open(&file.path).unwrap_err().to_string();
    assert_eq!(fs::read(&file.path).unwrap(), before, "the file was changed");
    assert!(error.starts_with(&file.path.display().to_string()), "{error}");
    error
}

#[test]
fn opening_again_changes_nothing() {
    let (file, mut store, id) = StoreFile::with_numa();
    store.keep_boot(id, &boot("6.1", 0, Outcome::Complete)).unwrap();
    drop(store);
    let before = fs::read(&file.path).unwrap();
    let store = file.open();
    assert_eq!(store.boots(id, Detail::Whole).unwrap().len(), 1);
    drop(store);
    assert_eq!(fs::read(&file.path).unwrap(), before);
}

#[test]
fn another_version_is_refused_untouched() {
    let file = StoreFile::new();
    drop(file.open());
    for version in [-1, 0, 8, 13, 99] {
        file.plain().pragma_update(None, "user_version", version).unwrap();
        let expected = format!("version {version}, and this faultline knows only version 12");
        let error = refusal(&file);
        assert!(error.contains(&expected), "{error}");
        let error = Sqlite::open_to_read(&file.path).unwrap_err().to_string();
        assert!(error.contains(&expected), "{error}");
    }
}

/// A field that did not exist when an experiment was kept has its default.
#[test]
fn a_definition_without_later_fields_is_read() {
    let (file, store, id) = StoreFile::with_numa();
    drop(store);
    let mut definition = serde_json::to_value(experiment("numa")).unwrap();
    let keys = definition.as_object_mut().unwrap();
    assert!(!keys.contains_key("mode") && !keys.contains_key("profile"));
    keys.remove("boots");
    let sql = format!("UPDATE definitions SET definition = CAST('{definition}' AS BLOB)");
    file.forge(&sql);
    assert_eq!(file.open().experiment(id).unwrap().mode, Mode::Measured);
}

#[test]
fn databases_of_other_programs_are_unchanged() {
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
fn an_unusable_file_is_an_error_with_a_hint() {
    let file = StoreFile::new();
    let directory = file.path.parent().unwrap();
    fs::create_dir_all(directory).unwrap();
    let error = Sqlite::open(directory).unwrap_err().to_string();
    assert!(error.ends_with("this is a directory; name a file in it"), "{error}");
    drop(file.open());
    let opened = fs::OpenOptions::new().write(true).open(&file.path).unwrap();
    opened.set_len(opened.metadata().unwrap().len() / 2).unwrap();
    let read = Sqlite::open(&file.path).and_then(|store| store.experiments());
    let error = read.unwrap_err().to_string();
    assert!(error.contains("the file is damaged (") && error.contains(".recover"), "{error}");
    let error = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(8), None);
    assert!(matches!(crate::Trouble::from(error), crate::Trouble::ReadOnly));
}

#[test]
fn a_path_is_not_a_uri() {
    let file = StoreFile::new();
    let path = file.path.with_file_name("file:x?mode=memory");
    drop(Sqlite::open(&path).unwrap());
    assert!(path.exists());
}

#[test]
fn a_directory_that_cannot_be_is_an_error() {
    let file = StoreFile::new();
    drop(file.open());
    let error = Sqlite::open(&file.path.join("below/a.db")).unwrap_err().to_string();
    assert!(error.contains("its directory cannot be created"), "{error}");
}
