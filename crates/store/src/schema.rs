//! The tables, and the version of their schema in a file (`PRAGMA user_version`).

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::record::{Experiments, Numbers};
use crate::{Trouble, nine};

const SCHEMA: &str = include_str!("schema.sql");
/// The version of [`SCHEMA`]. A change of the schema raises the version, and comes with a step that migrates a file
/// of the version before, and with a file of the new version in `tests/fixtures`.
const VERSION: i64 = 12;
/// The oldest version that can be migrated. Earlier versions were never released.
const OLDEST: i64 = 9;
/// `PRAGMA application_id` of a store: `FLdb`.
const APPLICATION: i32 = i32::from_be_bytes(*b"FLdb");

/// The state of a file.
#[derive(PartialEq, Eq)]
enum State {
    Empty,
    Older(i64),
    Current,
}

/// Creates the tables in a new file, and migrates a file of an older version in one transaction. A file of another
/// program or of a newer version is rejected before anything is written. `say` is called when a migration begins.
pub fn create(connection: &mut Connection, say: &dyn Fn(&str)) -> Result<(), Trouble> {
    // A transaction gives a consistent view.
    if state(&connection.transaction()?)? == State::Current {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // The state is read again under the lock, because another process may have created or migrated the tables.
    match state(&transaction)? {
        State::Current => return Ok(()),
        State::Empty => {
            transaction.execute_batch(SCHEMA)?;
            Experiments::default().keep(&transaction)?;
            Numbers::default().keep(&transaction)?;
            transaction.pragma_update(None, "application_id", APPLICATION)?;
        }
        State::Older(found) => {
            say(&format!(
                "migrating the store from schema version {found} to {VERSION}: older versions of Faultline cannot \
                 read it afterwards"
            ));
            // Versions 11 and 12 have the tables of version 10. Each has a format of profiles that the version
            // before cannot read.
            if found == 9 {
                nine::migrate(&transaction, SCHEMA)
                    .map_err(|trouble| not_migrated(found, trouble))?;
            }
        }
    }
    transaction.pragma_update(None, "user_version", VERSION)?;
    Ok(transaction.commit()?)
}

fn not_migrated(found: i64, trouble: Trouble) -> Trouble {
    let (what, why) = match trouble {
        Trouble::Damaged { what, why } => (what, why),
        Trouble::Malformed(why) | Trouble::Sqlite(why) => ("the file".into(), why),
        other => return other,
    };
    Trouble::NotMigrated { found, known: VERSION, what, why }
}

/// Checks that a file has the tables of this version. It is for files that cannot be written.
pub fn check(connection: &Connection) -> Result<(), Trouble> {
    match state(&connection.unchecked_transaction()?)? {
        State::Current => Ok(()),
        State::Older(found) => Err(Trouble::Older { found, known: VERSION }),
        State::Empty => Err(Trouble::Foreign),
    }
}

/// Checks in a transaction that the file still has the version that it had when it was opened.
pub fn check_version(transaction: &Transaction) -> Result<(), Trouble> {
    match transaction.pragma_query_value(None, "user_version", |row| row.get(0))? {
        VERSION => Ok(()),
        found => Err(Trouble::Version { found, known: VERSION }),
    }
}

/// The state of the file. A file of another program or of an unknown version is an error.
fn state(transaction: &Transaction) -> Result<State, Trouble> {
    let number =
        |sql| -> Result<i64, Trouble> { Ok(transaction.query_row(sql, [], |row| row.get(0))?) };
    let application = number("PRAGMA application_id")?;
    if application == 0 && number("SELECT count(*) FROM sqlite_schema")? == 0 {
        return Ok(State::Empty);
    }
    if application != i64::from(APPLICATION) {
        return Err(Trouble::Foreign);
    }
    match number("PRAGMA user_version")? {
        VERSION => Ok(State::Current),
        found @ OLDEST..VERSION => Ok(State::Older(found)),
        found => Err(Trouble::Version { found, known: VERSION }),
    }
}
