//! The tables, and the version of their schema in a file (`PRAGMA user_version`).

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::Trouble;
use crate::checksums::{Numbers, StoreSums};

const SCHEMA: &str = include_str!("schema.sql");
/// The version of [`SCHEMA`]. The versions before were never released. A change of the schema raises the
/// version, and comes with a step that migrates a file of the version before.
const VERSION: i64 = 9;
/// `PRAGMA application_id` of a store: `FLdb`.
const APPLICATION: i32 = i32::from_be_bytes(*b"FLdb");

/// Creates the tables in a new file. A file of another program or of another version is rejected before
/// anything is written.
pub fn create(connection: &mut Connection) -> Result<(), Trouble> {
    // In a transaction, for a consistent view.
    if !is_new(&connection.transaction()?)? {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Checked again under the lock: another process may have created the tables.
    if is_new(&transaction)? {
        transaction.execute_batch(SCHEMA)?;
        StoreSums::default().keep(&transaction)?;
        Numbers::default().keep(&transaction)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
        transaction.commit()?;
    }
    Ok(())
}

/// Checks that a file which cannot be written has the tables.
pub fn check(connection: &Connection) -> Result<(), Trouble> {
    match is_new(&connection.unchecked_transaction()?)? {
        true => Err(Trouble::Foreign),
        false => Ok(()),
    }
}

/// Whether the file is empty. A file of another program or version is an error.
fn is_new(transaction: &Transaction) -> Result<bool, Trouble> {
    let number =
        |sql| -> Result<i64, Trouble> { Ok(transaction.query_row(sql, [], |row| row.get(0))?) };
    let application = number("PRAGMA application_id")?;
    if application == 0 && number("SELECT count(*) FROM sqlite_schema")? == 0 {
        return Ok(true);
    }
    if application != i64::from(APPLICATION) {
        return Err(Trouble::Foreign);
    }
    match number("PRAGMA user_version")? {
        VERSION => Ok(false),
        found => Err(Trouble::Version { found, known: VERSION }),
    }
}
