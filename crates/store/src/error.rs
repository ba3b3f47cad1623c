//! What can go wrong with a store.

use std::io;
use std::path::PathBuf;

use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
use thiserror::Error;

use crate::ExperimentId;
use model::BootId;

/// Why the store failed, and in which file.
#[derive(Debug, Error)]
pub enum Error {
    /// There is no default location for a store.
    #[error("no place to keep results: set $HOME, or $XDG_DATA_HOME to an absolute path")]
    NoHome,
    /// A problem with one store.
    #[error("{}: {trouble}", path.display())]
    Store {
        /// The store's file.
        path: PathBuf,
        /// What is wrong.
        trouble: Trouble,
    },
}

/// What is wrong with a store, or with a request to it.
#[derive(Debug, Error)]
pub enum Trouble {
    /// The directory of the store cannot be made.
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
        "the file is damaged ({0}): take a copy of it that is whole, or save what can be read of it \
         with `sqlite3 FILE .recover`"
    )]
    Malformed(rusqlite::Error),
    /// No permission to write the file or its directory.
    #[error(
        "it cannot be written: let its file and its directory be written, or copy it to where you may, \
         and name the copy (--store)"
    )]
    ReadOnly,
    /// The file cannot be opened, or its log cannot be created beside it.
    #[error(
        "it cannot be opened, or its directory not be written: see who may read and write them, or name \
         another file (--store)"
    )]
    Unopened,
    /// The file cannot be written, and its write-ahead log was not merged.
    #[error(
        "it cannot be written, and {} beside it holds what was kept last: copy both to where you may \
         write, and name the copy (--store)", .0.display()
    )]
    Unmerged(PathBuf),
    /// The host's disk failed.
    #[error("the disk failed to read or write it: {0}")]
    Disk(rusqlite::Error),
    /// Another experiment has this name and the same definition.
    #[error(
        "experiment {other} is named `{name}` and runs the same: two of one name and definition cannot be \
         told apart; remove one, or choose another name"
    )]
    NameTaken {
        /// The name.
        name: String,
        /// The experiment that has it.
        other: ExperimentId,
    },
    /// The file is of another version of faultline.
    #[error(
        "its schema is version {found}, and this faultline knows only version {known}: use the faultline \
         that wrote it, or choose another file (--store)"
    )]
    Version {
        /// The version of the file.
        found: i64,
        /// The known version.
        known: i64,
    },
    /// The disk is full. The transaction was rolled back.
    #[error("no room is left on the disk; what was kept before is safe: make room and run again")]
    Full,
    /// Another process held the store for too long.
    #[error("another process keeps the store locked; try again when it has ended")]
    Busy,
    /// No experiment has this name or number.
    #[error("no experiment `{wanted}`; {}", listed(names))]
    NoExperiment {
        /// The requested name or number.
        wanted: String,
        /// The existing names, without duplicates.
        names: Vec<String>,
    },
    /// No boot has this number.
    #[error("no boot `{0}`; `faultline show` lists those of an experiment")]
    NoBoot(BootId),
    /// This boot was kept before.
    #[error("boot {replicate} of `{variant}` in experiment {experiment} is kept already")]
    KeptAlready {
        /// The experiment.
        experiment: ExperimentId,
        /// The variant's name.
        variant: String,
        /// Which boot of the variant.
        replicate: u32,
    },
    /// Something in the store is damaged.
    #[error(
        "damage in {what}: {why}; `faultline store check` lists all that is lost: take a copy of the \
         file that is whole, or set it aside and measure anew into another (--store)"
    )]
    Damaged {
        /// Which experiment, or which part of which boot.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// Something cannot be represented in the store.
    #[error("{what} cannot be kept: {why}")]
    Unkeepable {
        /// Which part of an experiment or a boot.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// Any other error of SQLite.
    #[error("{0}")]
    Sqlite(rusqlite::Error),
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
            // The queries are never wrong, so the tables are not the expected ones.
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::Unknown) => Self::Malformed(error),
            Some(ErrorCode::ReadOnly) => Self::ReadOnly,
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => Self::Unopened,
            Some(ErrorCode::SystemIoFailure) => Self::Disk(error),
            _ => Self::Sqlite(error),
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
        names => format!("there are {}", names.join(", ")),
    }
}
