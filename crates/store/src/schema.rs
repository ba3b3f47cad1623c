//! The tables and their versions. `PRAGMA user_version` numbers the schema of a file; each step
//! of [`MIGRATIONS`] leads from one version to the next.

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};

use crate::{Trouble, checksums};

/// Step `n` turns version `n` into version `n + 1`. Steps are never changed once released, only added.
const MIGRATIONS: [&str; 9] = [
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
    include_str!("schema/5.sql"),
    include_str!("schema/6.sql"),
    include_str!("schema/7.sql"),
    include_str!("schema/8.sql"),
    include_str!("schema/9.sql"),
];

/// The first version with checksums.
const CHECKSUMS: usize = 8;
/// The first version whose experiments have remarks, covered by their checksums.
const REMARKS: usize = 9;

/// `PRAGMA application_id` of a store: `FLdb`.
const APPLICATION: i32 = i32::from_be_bytes(*b"FLdb");

/// Migrates the file to the latest version. A file of another program, or of an unknown version, is
/// rejected before anything is written.
pub fn migrate(connection: &mut Connection) -> Result<(), Trouble> {
    // In a transaction, for a consistent view.
    if version(&connection.transaction()?)? == MIGRATIONS.len() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Checked again under the lock: another process may have migrated it.
    let found = version(&transaction)?;
    for step in &MIGRATIONS[found..] {
        transaction.execute_batch(step).map_err(|error| match error {
            // The tables do not match the version in the file.
            rusqlite::Error::SqlInputError { msg, .. } => of_another_version(found, msg),
            error if error.sqlite_error_code() == Some(ErrorCode::Unknown) => {
                of_another_version(found, error)
            }
            error => error.into(),
        })?;
    }
    if found < CHECKSUMS {
        checksums::make(&transaction)?;
    } else if found < REMARKS {
        checksums::take_in_remarks(&transaction)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", MIGRATIONS.len())?;
    Ok(transaction.commit()?)
}

fn of_another_version(found: usize, why: impl ToString) -> Trouble {
    Trouble::damaged(format!("the number of its version, {found}"), why)
}

/// Checks that a file which cannot be written has the latest version.
pub fn check(connection: &Connection) -> Result<(), Trouble> {
    let found = version(&connection.unchecked_transaction()?)?;
    match found == MIGRATIONS.len() {
        true => Ok(()),
        false => Err(Trouble::Older { found, known: MIGRATIONS.len() }),
    }
}

/// The version of the file, 0 if it is new. A version above the last step is an error.
fn version(transaction: &Transaction) -> Result<usize, Trouble> {
    let number =
        |sql| -> Result<i64, Trouble> { Ok(transaction.query_row(sql, [], |row| row.get(0))?) };
    let application = number("PRAGMA application_id")?;
    let is_new = application == 0 && number("SELECT count(*) FROM sqlite_schema")? == 0;
    if application != i64::from(APPLICATION) && !is_new {
        return Err(Trouble::Foreign);
    }
    let known = MIGRATIONS.len();
    match usize::try_from(number("PRAGMA user_version")?) {
        Ok(found) if found <= known => Ok(found),
        Ok(found) => Err(Trouble::Newer { found, known }),
        Err(_) => Err(Trouble::Foreign),
    }
}
