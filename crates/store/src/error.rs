//! Errors of a store.

use std::io;
use std::path::PathBuf;

use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
use thiserror::Error;

use crate::ExperimentId;
use model::BootId;

/// A failure of a store, with its file.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what fields are")]
pub enum Error {
    /// There is no default location for a store.
    #[error("there is no directory for results: set $HOME, or $XDG_DATA_HOME to an absolute path")]
    NoHome,
    /// An error of one store.
    #[error("{}: {trouble}", path.display())]
    Store { path: PathBuf, trouble: Trouble },
}

/// An error of a store, or of a request to it.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what fields are")]
pub enum Trouble {
    /// The directory of the store cannot be created.
    #[error("its directory cannot be created: {0}")]
    Directory(io::Error),
    /// The file is an SQLite database, but not a store.
    #[error("this is the database of another program; choose another file")]
    Foreign,
    /// The file is not a database.
    #[error("this is not a database, and was not touched; choose another file")]
    NoDatabase,
    /// The path is a directory.
    #[error("this is a directory; name a file in it")]
    IsDirectory,
    /// Pages of the file are damaged.
    #[error(
        "the file is damaged ({0}): restore it from an undamaged copy, or save the readable rows with \
         `sqlite3 FILE .recover`"
    )]
    Malformed(String),
    /// No permission to write the file or its directory.
    #[error(
        "it cannot be written: make the file and its directory writable, or copy the file to another \
         directory and name the copy (--store)"
    )]
    ReadOnly,
    /// The file cannot be opened, or its log cannot be created beside it.
    #[error(
        "it cannot be opened, or its directory cannot be written: check their permissions, or name \
         another file (--store)"
    )]
    Unopened,
    /// The file cannot be written, and its write-ahead log was not merged.
    #[error(
        "it cannot be written, and the latest data is in {} beside it: copy both files to a writable \
         directory and name the copy (--store)", .0.display()
    )]
    Unmerged(PathBuf),
    /// The host's disk failed.
    #[error("the disk failed to read or write it: {0}")]
    Disk(String),
    /// Another experiment has this name and the same definition.
    #[error(
        "experiment {other} has the name `{name}` and the same definition, so the two could not be \
         distinguished: remove one, or choose another name"
    )]
    NameTaken { name: String, other: ExperimentId },
    /// The file is of another version of faultline.
    #[error(
        "its schema is version {found}, and this faultline knows only version {known}: use the faultline \
         that wrote it, or choose another file (--store)"
    )]
    Version { found: i64, known: i64 },
    /// The file is of an older version, and cannot be written.
    #[error(
        "its schema is version {found}, and it cannot be written, so it is not migrated to version {known}: make the \
         file and its directory writable, or copy the file to another directory and name the copy (--store)"
    )]
    Older { found: i64, known: i64 },
    /// The file is of an older version, and damaged.
    #[error(
        "its schema is version {found}, and it is damaged, so it was not migrated to version {known} and remains as it \
         was: {what}: {why}. Restore the file from an undamaged copy, or use the faultline that wrote it"
    )]
    NotMigrated { found: i64, known: i64, what: String, why: String },
    /// The file was removed, renamed or replaced while it was open.
    #[error(
        "it was removed, renamed or replaced while it was in use, and what was kept meanwhile is not in it; \
         put it back if it was renamed, and run again"
    )]
    Gone,
    /// The disk is full. The transaction was rolled back.
    #[error("the disk is full; what was kept before is safe: free some space and run again")]
    Full,
    /// Another process holds the lock on the store.
    #[error("it is locked by another process; try again when that has ended")]
    Busy,
    /// Another process, which is named, held the lock on the store for too long.
    #[error("it is locked by {0}; try again when that has ended")]
    Held(String),
    /// No experiment has this name or number.
    #[error("no experiment `{wanted}`; {}", listed(names))]
    NoExperiment { wanted: String, names: Vec<String> },
    /// No boot has this number.
    #[error("no boot `{0}`; `faultline show` lists those of an experiment")]
    NoBoot(BootId),
    /// This boot was kept before.
    #[error("boot {boot_index} of `{variant}` in experiment {experiment} already exists")]
    KeptAlready { experiment: ExperimentId, variant: String, boot_index: u32 },
    /// Something in the store is damaged.
    #[error(
        "damage in {what}: {why}; `faultline store check` lists all damage. Restore the file from an \
         undamaged copy, or choose another file and measure again (--store)"
    )]
    Damaged { what: String, why: String },
    /// A value cannot be represented in the store.
    #[error("{what} cannot be stored: {why}")]
    Unkeepable { what: String, why: String },
    /// Any other error of SQLite.
    #[error("{0}")]
    Sqlite(String),
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        // The index of the log, `-shm`, cannot grow.
        if error.sqlite_error().is_some_and(|it| it.extended_code == SQLITE_IOERR_SHMSIZE) {
            return Self::Full;
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::DatabaseBusy) => Self::Busy,
            Some(ErrorCode::NotADatabase) => Self::NoDatabase,
            // Our queries are valid, so such an error means that the tables are not the expected ones.
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::Unknown) => Self::Malformed(match error {
                // The text of a query means nothing to a user.
                rusqlite::Error::SqlInputError { msg, .. } => msg,
                error => error.to_string(),
            }),
            Some(ErrorCode::ReadOnly) => Self::ReadOnly,
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => Self::Unopened,
            Some(ErrorCode::SystemIoFailure) => Self::Disk(error.to_string()),
            _ => Self::Sqlite(error.to_string()),
        }
    }
}

impl Trouble {
    pub(crate) fn damaged(what: impl Into<String>, why: impl ToString) -> Self {
        Self::Damaged { what: what.into(), why: why.to_string() }
    }

    pub(crate) fn unkeepable(what: impl Into<String>, why: impl ToString) -> Self {
        Self::Unkeepable { what: what.into(), why: why.to_string() }
    }
}

fn listed(names: &[String]) -> String {
    match names {
        [] => "the store is empty".into(),
        names => format!("existing names: {}", names.join(", ")),
    }
}
