//! Tests that damage is never read as data: bits flip, sectors are overwritten, rows are changed, removed,
//! duplicated or moved. Every read then returns either the kept data or an error.

use std::fs;

use model::{Boot, Outcome};

use super::{StoreFile, boot, experiment, place, reading};
use crate::parts::Kind;
use crate::sqlite::Sqlite;
use crate::{Archive, Detail, Error};

/// Bytes of a sector.
const SECTOR: usize = 512;

/// An undamaged small store with rows in every table, and the result of reading it.
struct Sound {
    file: StoreFile,
    bytes: Vec<u8>,
    contents: String,
}

impl Sound {
    fn new() -> Self {
        let (file, mut store) = StoreFile::opened();
        for name in ["numa", "other"] {
            let id = store.keep_experiment(&experiment(name), &reading()).unwrap();
            let outcomes = [Outcome::Complete, Outcome::Failed("no".into())];
            for (variant, outcome) in ["6.1", "7.3"].into_iter().zip(outcomes) {
                store.keep_boot(id, &small(variant, id.0 as u32, outcome)).unwrap();
            }
        }
        let contents = contents(&store).unwrap();
        assert_eq!(store.check().unwrap().lost, []);
        drop(store);
        let bytes = fs::read(&file.path).unwrap();
        Self { file, bytes, contents }
    }

    /// Restores the file, then changes it.
    fn with(&self, change: impl FnOnce(&mut Vec<u8>)) {
        for ending in ["-wal", "-shm"] {
            let _ = fs::remove_file(format!("{}{ending}", self.file.path.display()));
        }
        let mut bytes = self.bytes.clone();
        change(&mut bytes);
        fs::write(&self.file.path, bytes).unwrap();
    }

    /// Whether reading fails. If it does, a check must find the damage too. If not, it must return the kept
    /// data.
    fn is_noticed(&self, change: &str) -> bool {
        let store = match Sqlite::open(&self.file.path) {
            Ok(store) => store,
            Err(_) => return true,
        };
        match contents(&store) {
            Ok(contents) => {
                assert_eq!(contents, self.contents, "{change}: other data is read");
                false
            }
            Err(error) => {
                let found = store.check().is_ok_and(|checked| checked.lost.is_empty());
                assert!(!found, "{change}: a check finds no damage, but {error}");
                true
            }
        }
    }
}

/// A small boot, because many pages are tried. Its values differ from those of other boots.
fn small(variant: &str, boot_index: u32, outcome: Outcome) -> Boot {
    let mut boot = boot(variant, boot_index, outcome);
    boot.notes[0].text += &format!("{variant} {boot_index}");
    boot.profiles[0].phase = boot.notes[0].text.clone();
    boot.problems[0].text += variant;
    boot.samples[0].label = variant.into();
    boot.usage[0].elapsed += if variant == "6.1" { 0.7 } else { 0.8 };
    boot.chunks[0].phase = variant.into();
    boot.chunks.truncate(2);
    for chunk in &mut boot.chunks {
        chunk.columns.truncate(2);
    }
    boot.profiles.truncate(1);
    boot.samples = (0..8).flat_map(|_| boot.samples.clone()).collect();
    // No integers, because SQLite stores them differently.
    boot.samples.iter_mut().for_each(|sample| sample.value += 0.21);
    boot
}

/// Everything in a store, read by every function that reads.
fn contents(store: &Sqlite) -> Result<String, Error> {
    let mut contents = format!("{:?}", store.experiments()?);
    for name in ["numa", "other"] {
        let id = store.find_experiment(name)?;
        contents += &format!("{id} {:?} {:?}", store.experiment(id)?, store.done(id)?);
        for detail in [Detail::Whole, Detail::Ends(&["zoneinfo", "vmstat"])] {
            let boots = store.boots(id, detail)?;
            for kept in &boots {
                assert_eq!(store.boot(kept.id)?.0, id);
            }
            contents += &format!("{boots:?}");
        }
    }
    Ok(contents)
}

#[test]
fn flipped_bits_are_detected() {
    let sound = Sound::new();
    let mut noticed = 0;
    let places: Vec<usize> = (0..sound.bytes.len()).step_by(89).collect();
    for &place in &places {
        let bit = place / 89 % 8;
        sound.with(|bytes| bytes[place] ^= 1 << bit);
        noticed += usize::from(sound.is_noticed(&format!("bit {bit} of byte {place}")));
    }
    // Much of a page is free, and some pages are entirely free.
    assert!(noticed * 10 > places.len(), "{noticed} of {}", places.len());
}

#[test]
fn every_flipped_bit_of_a_figure_is_detected() {
    let sound = Sound::new();
    let boot = small("6.1", 1, Outcome::Complete);
    let samples = crate::samples::encode(&boot.samples, &boot.usage).unwrap();
    let is_row = |at: &usize| {
        sound.bytes[*at..].starts_with(&samples) && {
            sound.with(|bytes| bytes[*at] ^= 1);
            sound.is_noticed("the samples")
        }
    };
    let row = (0..sound.bytes.len()).find(is_row).expect("samples are in the file");
    for place in row..row + samples.len() {
        for bit in [place % 8, (place + 3) % 8] {
            sound.with(|bytes| bytes[place] ^= 1 << bit);
            assert!(sound.is_noticed("a sample"), "bit {bit} of byte {place}, row at {row}");
        }
    }
}

#[test]
fn overwritten_sectors_are_detected() {
    let sound = Sound::new();
    let sectors = sound.bytes.len() / SECTOR;
    for sector in 0..sectors {
        let at = sector * SECTOR;
        sound.with(|bytes| bytes[at..at + SECTOR].fill(0));
        sound.is_noticed(&format!("sector {sector} of zeros"));
        // The sector gets the content of another one, in the same page or far away.
        for distance in [1, sectors / 2] {
            let other = (sector + distance) % sectors * SECTOR;
            sound.with(|bytes| bytes.copy_within(other..other + SECTOR, at));
            sound.is_noticed(&format!("sector {sector} replaced by the one {distance} further"));
        }
    }
}

#[test]
fn every_column_of_every_table_is_covered() {
    let sound = Sound::new();
    let plain = sound.file.plain();
    let columns: Vec<(String, String, String)> = plain
        .prepare(
            "SELECT tables.name, columns.name, columns.type
            FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
            WHERE tables.type = 'table'",
        )
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    drop(plain);
    assert!(columns.len() > 15, "{}", columns.len());
    for (table, column, kind) in columns {
        let other = match kind.as_str() {
            "INTEGER" | "REAL" => format!("ifnull({column}, 0) + 1000"),
            "TEXT" => format!("{column} || 'x'"),
            "BLOB" => format!("CAST({column} || x'2a' AS BLOB)"),
            other => panic!("{other}"),
        };
        sound.with(|_| ());
        // The other list, that of numbers, is read only when something is kept.
        let which = match &*table {
            "lists" => "name = 'experiments'".to_owned(),
            table => format!("{column} IN (SELECT {column} FROM {table} ORDER BY 1 DESC LIMIT 1)"),
        };
        let sql = format!("UPDATE {table} SET {column} = {other} WHERE {which}");
        assert_ne!(sound.file.plain().execute(&sql, []).unwrap(), 0, "{sql}");
        assert!(sound.is_noticed(&sql), "{sql}");
    }
}

#[test]
fn removed_duplicated_and_moved_rows_are_detected() {
    let sound = Sound::new();
    let mut changes = Vec::new();
    for condition in ["boot = 2 AND place = 0", "boot = 1 AND place = 3", "boot = 1"] {
        changes.push(format!("DELETE FROM parts WHERE {condition}"));
    }
    let last = "(SELECT max(place) FROM parts WHERE boot = 1)";
    changes.push(format!("UPDATE parts SET place = 99 WHERE boot = 1 AND place = {last}"));
    changes.push("UPDATE parts SET boot = 3, place = 99 WHERE boot = 1 AND place = 0".into());
    changes.push("UPDATE parts SET boot = boot % 4 + 11; UPDATE parts SET boot = boot - 10".into());
    for (table, number) in [("experiments", "id"), ("boots", "id"), ("definitions", "experiment")] {
        changes.push(format!("DELETE FROM {table} WHERE {number} = 1"));
        changes.push(format!("UPDATE {table} SET {number} = 1000 WHERE {number} = 1"));
    }
    changes.push("DELETE FROM texts WHERE digest = (SELECT min(digest) FROM texts)".into());
    changes.push("DELETE FROM lists WHERE name = 'experiments'".into());
    // Moves a boot to another experiment.
    changes.push("UPDATE boots SET experiment = 2 WHERE id = 1".into());
    // Swaps the rows of two boots.
    changes.push(
        "UPDATE boots SET id = 77 WHERE id = 1; UPDATE boots SET id = 1 WHERE id = 3;
            UPDATE boots SET id = 3 WHERE id = 77"
            .into(),
    );
    // Swaps the records of two experiments.
    changes.push(
        "UPDATE experiments SET id = 77 WHERE id = 1; UPDATE experiments SET id = 1 WHERE id = 2;
            UPDATE experiments SET id = 2 WHERE id = 77"
            .into(),
    );
    for change in changes {
        sound.with(|_| ());
        sound.file.plain().execute_batch(&change).unwrap();
        assert!(sound.is_noticed(&change), "{change}");
    }
}

#[test]
fn a_damaged_boot_does_not_affect_other_experiments() {
    let sound = Sound::new();
    let sql = format!(
        "UPDATE parts SET bytes = x'2a' WHERE boot = 1 AND place = {}",
        place(Kind::Samples, 0)
    );
    sound.file.plain().execute(&sql, []).unwrap();
    let store = sound.file.open();
    assert_eq!(store.experiments().unwrap().len(), 2);
    let [numa, other] = ["numa", "other"].map(|name| store.find_experiment(name).unwrap());
    assert!(store.boots(numa, Detail::Summary).is_err());
    assert_eq!(store.boots(other, Detail::Summary).unwrap().len(), 2);
    let checked = store.check().unwrap();
    assert_eq!((checked.experiments, checked.boots, checked.lost.len()), (2, 4, 1));
    let lost = &checked.lost[0];
    assert_eq!(lost.experiment.as_deref(), Some("numa"));
    assert_eq!(lost.boot, Some((model::BootId(1), "6.1".into())));
    assert_eq!(lost.what, "the samples of boot b1");
}
