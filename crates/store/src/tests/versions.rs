//! Files of other versions and of other programs.

use std::fs;

use model::Outcome;

use super::{Place, boot, experiment};
use crate::{Detail, Store};

fn refusal(place: &Place) -> String {
    let before = fs::read(&place.path).unwrap();
    let error = Store::open(&place.path).unwrap_err().to_string();
    assert_eq!(fs::read(&place.path).unwrap(), before, "the file was touched");
    assert!(error.starts_with(&place.path.display().to_string()), "{error}");
    error
}

#[test]
fn opening_again_changes_nothing() {
    let place = Place::new();
    let mut store = place.open();
    let id = store.keep_experiment(&experiment("numa")).unwrap();
    store.keep_boot(id, &boot("6.1", 0, Outcome::Complete)).unwrap();
    drop(store);
    let before = fs::read(&place.path).unwrap();
    let store = place.open();
    assert_eq!(store.boots(id, Detail::Whole).unwrap().len(), 1);
    drop(store);
    assert_eq!(fs::read(&place.path).unwrap(), before);
}

#[test]
fn a_newer_version_is_refused_untouched() {
    let place = Place::new();
    drop(place.open());
    place.plain().pragma_update(None, "user_version", 2).unwrap();
    let error = refusal(&place);
    assert!(error.contains("version 2, and this faultline knows versions up to 1"), "{error}");
}

#[test]
fn databases_of_others_are_refused_untouched() {
    let place = Place::new();
    fs::create_dir_all(place.path.parent().unwrap()).unwrap();
    place.plain().execute_batch("CREATE TABLE bookmarks (url)").unwrap();
    assert!(refusal(&place).contains("of another program"));
    place.plain().pragma_update(None, "application_id", 7).unwrap();
    place.plain().execute_batch("DROP TABLE bookmarks").unwrap();
    assert!(refusal(&place).contains("of another program"));
    fs::write(&place.path, "[variant]\nthis is a text\n".repeat(100)).unwrap();
    assert!(refusal(&place).contains("not a database"));
}

#[test]
fn a_path_is_not_a_uri() {
    let place = Place::new();
    let path = place.path.with_file_name("file:x?mode=memory");
    drop(Store::open(&path).unwrap());
    assert!(path.exists());
}

#[test]
fn a_directory_that_cannot_be_is_an_error() {
    let place = Place::new();
    drop(place.open());
    let error = Store::open(&place.path.join("below/a.db")).unwrap_err().to_string();
    assert!(error.contains("its directory cannot be created"), "{error}");
}
