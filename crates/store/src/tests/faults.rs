//! Full disks and damaged files.

use model::Outcome;

use super::{Place, as_kept, boot, experiment};
use crate::{BootId, Detail, Error, Trouble};

#[test]
fn a_full_disk_spares_what_was_kept() {
    let place = Place::new();
    let mut store = place.open();
    let id = store.keep_experiment(&experiment("numa")).unwrap();
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

    // With room again, the same boot is kept, by this store or the next.
    store.connection.pragma_update_and_check(None, "max_page_count", 1 << 30, |_| Ok(())).unwrap();
    for boot in &boots[kept.len()..] {
        kept.push(as_kept(store.keep_boot(id, boot).unwrap(), boot));
    }
    assert_eq!(place.open().boots(id, Detail::Whole).unwrap(), kept);
}

/// What is said when boot 1 is read after `sql` changed the file.
fn complaint(sql: &str) -> String {
    let place = Place::new();
    let mut store = place.open();
    let id = store.keep_experiment(&experiment("numa")).unwrap();
    store.keep_boot(id, &boot("6.1", 0, Outcome::Complete)).unwrap();
    assert_eq!(place.plain().execute(sql, []), Ok(1));
    store.boot(BootId(1)).unwrap_err().to_string()
}

#[test]
fn damage_is_named() {
    let cases = [
        (
            "UPDATE chunks SET packed = x'2a' WHERE place = 4",
            "chunk 4 of boot b1 (zoneinfo in iteration 1 of `autonuma`, phase `steady`) is damaged",
        ),
        (
            "UPDATE chunks SET packed = substr(packed, 1, length(packed) - 1) WHERE place = 0",
            "chunk 0 of boot b1 (vmstat in iteration 0",
        ),
        ("UPDATE boots SET console = x'2a'", "the console of boot b1 is damaged"),
        (
            "UPDATE texts SET packed = x'2a' WHERE id = (SELECT config FROM boots)",
            "the text config of boot b1 is damaged",
        ),
        (
            "UPDATE texts SET packed = x'2a' WHERE id = (SELECT userspace FROM boots)",
            "the text userspace of boot b1 is damaged",
        ),
        ("UPDATE boots SET outcome = 'lost'", "boot b1 is damaged: unknown outcome `lost`"),
        (
            "UPDATE problems SET kind = 'odd' WHERE place = 0",
            "a problem of boot b1 is damaged: unknown kind `odd`",
        ),
    ];
    for (sql, expected) in cases {
        let error = complaint(sql);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_damaged_definition_is_named() {
    for definition in ["{", "[]", "{}", "7"] {
        let place = Place::new();
        let mut store = place.open();
        let id = store.keep_experiment(&experiment("numa")).unwrap();
        let sql = "UPDATE experiments SET definition = ?";
        place.plain().execute(sql, [definition]).unwrap();
        let error = store.experiment(id).unwrap_err().to_string();
        assert!(error.contains("the definition of experiment 1 is damaged"), "{error}");
        assert_eq!(store.experiments().unwrap_err().to_string(), error);
    }
}

#[test]
fn what_is_not_there_is_named() {
    let place = Place::new();
    let mut store = place.open();
    let error = store.boot(BootId(3)).unwrap_err().to_string();
    assert!(error.contains("no boot `b3`;"), "{error}");
    let error = store.experiment(crate::ExperimentId(9)).unwrap_err().to_string();
    assert!(error.ends_with("no experiment `9`; the store is empty"), "{error}");
    let orphan = store.keep_boot(crate::ExperimentId(9), &boot("6.1", 0, Outcome::Complete));
    assert!(orphan.unwrap_err().to_string().contains("FOREIGN KEY"));
}
