//! Keeps experiments, boots, samples and series. [`Archive`] is the interface of a store. Its implementation is one
//! SQLite file.
//!
//! A boot is one transaction: the file has all of it or nothing, even if the program is killed. Checksums are
//! verified at each read. A boot is a list of parts: its head, samples, and series as compressed column chunks by
//! source and phase. Means and verdicts are computed by other crates.

use std::env;
use std::path::{Path, PathBuf};

use model::base_directory;
use sqlite::Sqlite;

mod archive;
mod boots;
mod check;
mod chunk;
mod edit;
mod error;
mod experiments;
mod nine;
mod packed;
mod parts;
pub mod profile;
mod record;
mod samples;
mod schema;
mod series;
mod sqlite;
#[cfg(test)]
mod tests;

pub use archive::{Archive, Standing};
pub use check::{Checked, Lost};
pub use error::{Error, Trouble};
pub use experiments::{ExperimentId, ExperimentRow, runs_the_same};
pub use parts::Detail;
pub use record::BootEntry;
pub use series::{Deltas, Series};
pub use sqlite::say_waits;

/// Opens the store at `path`. A missing file is created with its directories; a file of an older
/// version is migrated. Fails when the file cannot be opened or created, belongs to another program, or
/// has a newer schema than this program. Such files remain unchanged.
pub fn open(path: &Path) -> Result<Box<dyn Archive>, Error> {
    Ok(Box::new(Sqlite::open(path)?))
}

/// Opens the store at `path` for reading, even if it cannot be written. Fails as [`open`] does, and, without waiting,
/// when another process has locked the whole file. A file that cannot be written is also an error if it has an older
/// version, or a write-ahead log that cannot be read without writing.
pub fn open_to_read(path: &Path) -> Result<Box<dyn Archive>, Error> {
    Ok(Box::new(Sqlite::open_to_read(path)?))
}

/// The default location: `faultline/faultline.db` below `$XDG_DATA_HOME`, or below `$HOME/.local/share`
/// (XDG Base Directory Specification). Fails when neither variable names a directory.
pub fn default_path() -> Result<PathBuf, Error> {
    base_directory(env::var_os("XDG_DATA_HOME"), env::var_os("HOME"), ".local/share")
        .map(|data| data.join("faultline/faultline.db"))
        .ok_or(Error::NoHome)
}
