//! Migrates a store of schema version 9, in which a boot was rows of many tables. All reads are verified against the
//! checksums of that version.

mod boot;
mod sums;

use model::BootId;
use rusqlite::{Connection, Row};

use self::sums::{BootEntry, ExperimentSums, Numbers, StoreSums};
use crate::record::{self, Record};
use crate::{ExperimentId, Trouble, boots, experiments};

/// The tables whose names the new schema uses too.
const RENAMED: [&str; 3] = ["experiments", "boots", "texts"];
/// The tables with rows of boots.
const PARTS: [&str; 7] =
    ["chunk_ends", "chunks", "profiles", "usage", "samples", "notes", "problems"];
const EXPERIMENT: &str = "SELECT id, name, definition, digest, boots, created, used, note
    FROM nine_experiments WHERE id = ?";

/// Moves everything into the tables of `schema`. Fails when something is damaged, or SQLite fails; then the caller rolls
/// the transaction back.
pub fn migrate(connection: &Connection, schema: &str) -> Result<(), Trouble> {
    // Foreign keys are checked at the end, because rows of an experiment or a boot refer to it until all are moved.
    connection.pragma_update(None, "defer_foreign_keys", true)?;
    for table in RENAMED {
        connection.execute_batch(&format!("ALTER TABLE {table} RENAME TO nine_{table}"))?;
    }
    connection.execute_batch(schema)?;
    record::Experiments::default().keep(connection)?;
    // The list has the most recent experiment last, which is the order of the new store.
    for entry in &StoreSums::read(connection)?.experiments {
        let sums = ExperimentSums::read(connection, entry)?;
        experiment(connection, ExperimentId(entry.id), sums)?;
    }
    let Numbers { experiment, boot } = Numbers::read(connection)?;
    record::Numbers { experiment, boot }.keep(connection)?;
    for (table, what) in [("nine_boots", "boot"), ("nine_experiments", "experiment")] {
        let left = format!("SELECT count(*) FROM {table}");
        let left: i64 = connection.query_row(&left, [], |row| row.get(0))?;
        if left != 0 {
            let why = format!("{left} rows are in no list");
            return Err(Trouble::damaged(format!("the {what}s"), why));
        }
    }
    for table in PARTS.iter().chain(&["checksums", "nine_boots", "nine_texts", "nine_experiments"])
    {
        connection.execute_batch(&format!("DROP TABLE {table}"))?;
    }
    Ok(())
}

/// Moves an experiment and its boots.
fn experiment(
    connection: &Connection,
    id: ExperimentId,
    sums: ExperimentSums,
) -> Result<(), Trouble> {
    let what = || format!("the definition of experiment {id}");
    let rows = sums::verified(connection, EXPERIMENT, id.0, (&sums.row, what), |row| {
        let definition: String = row.get("definition")?;
        let (experiment, _) = experiments::parse(definition.as_bytes(), row.get("boots")?)
            .map_err(|error| Trouble::damaged("its text", error))?;
        let record = Record {
            created: row.get("created")?,
            note: row.get("note")?,
            ..experiments::new(&experiment, &definition)
        };
        Ok((record, definition))
    });
    let (mut record, definition) =
        rows?.pop().ok_or_else(|| Trouble::damaged(what(), "it is missing"))?;
    experiments::write(connection, id, &record, &definition)?;
    for entry in &sums.boots {
        record.boots.push(moved(connection, id, entry)?);
    }
    connection.execute("DELETE FROM nine_experiments WHERE id = ?", [id.0])?;
    record.update(connection, id)
}

/// Moves a boot. Its old rows are removed at once, so that the file does not grow.
fn moved(
    connection: &Connection,
    experiment: ExperimentId,
    entry: &BootEntry,
) -> Result<record::BootEntry, Trouble> {
    let id = BootId(entry.id);
    let boot::Old { boot, parts, superseded } = boot::read(connection, experiment, entry)?;
    for table in PARTS {
        connection
            .prepare_cached(&format!("DELETE FROM {table} WHERE boot = ?"))?
            .execute([id.0])?;
    }
    connection.prepare_cached("DELETE FROM nine_boots WHERE id = ?")?.execute([id.0])?;
    Ok(record::BootEntry {
        id,
        variant: boot.variant,
        boot_index: boot.boot_index,
        outcome: boot.outcome.name().into(),
        superseded,
        size: parts.size(),
        contents: boots::write(connection, experiment, id, &parts)?,
    })
}

/// A number; NaN for NULL.
fn float(row: &Row, column: &str) -> rusqlite::Result<f64> {
    Ok(row.get::<_, Option<f64>>(column)?.unwrap_or(f64::NAN))
}

/// A u64 that was stored as the i64 with the same bits.
fn unsigned(row: &Row, column: &str) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)?.cast_unsigned())
}
