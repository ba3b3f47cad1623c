//! The store's file: where it is, how it is opened, and the transactions on it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::{Error, Trouble, schema};

/// How long to wait for another process that writes. Keeping a boot takes well below a second.
const PATIENCE: Duration = Duration::from_secs(30);

/// Experiments and their boots, kept in one SQLite file. Several processes may use it at once.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    pub(crate) connection: Connection,
}

impl Store {
    /// Opens the store at `path`. A missing file is created with its directories, one of an
    /// older version is brought up to date.
    ///
    /// # Errors
    /// When the file cannot be opened or created, belongs to another program, or has a schema
    /// newer than this program's; such files are left as they are.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let connection =
            connect(path).map_err(|trouble| Error::Store { path: path.into(), trouble })?;
        Ok(Self { path: path.into(), connection })
    }

    /// Where results are kept unless told otherwise: `faultline/faultline.db` below
    /// `$XDG_DATA_HOME`, or below `$HOME/.local/share` (XDG Base Directory Specification).
    ///
    /// # Errors
    /// When neither variable gives a directory.
    pub fn default_path() -> Result<PathBuf, Error> {
        data_home(env::var_os("XDG_DATA_HOME"), env::var_os("HOME"))
            .map(|data| data.join("faultline/faultline.db"))
            .ok_or(Error::NoHome)
    }

    /// Runs `work` in one transaction: all that it writes is on the disk when this returns, or
    /// nothing is kept.
    pub(crate) fn write<T>(
        &mut self,
        work: impl FnOnce(&Transaction) -> Result<T, Trouble>,
    ) -> Result<T, Error> {
        let attempt = || {
            // Locked from the start: a transaction that first reads could not wait its turn.
            let behavior = TransactionBehavior::Immediate;
            let transaction = self.connection.transaction_with_behavior(behavior)?;
            let value = work(&transaction)?;
            transaction.commit()?;
            Ok(value)
        };
        attempt().map_err(|trouble| Error::Store { path: self.path.clone(), trouble })
    }

    /// Runs `work` on one state of the store, whatever others write meanwhile.
    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(&Transaction) -> Result<T, Trouble>,
    ) -> Result<T, Error> {
        let attempt = || work(&self.connection.unchecked_transaction()?);
        attempt().map_err(|trouble| Error::Store { path: self.path.clone(), trouble })
    }
}

fn connect(path: &Path) -> Result<Connection, Trouble> {
    if path.is_dir() {
        return Err(Trouble::IsDirectory);
    }
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(Trouble::Directory)?;
    }
    // Without SQLITE_OPEN_URI: a path is a path, whatever it begins with.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    schema::migrate(&mut connection)?;
    use_write_ahead_log(&connection)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

/// Lets others read while one writes. A file changes its mode once; SQLite does not wait for
/// locks then, so this does.
fn use_write_ahead_log(connection: &Connection) -> Result<(), Trouble> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()));
        match answer.map_err(Trouble::from) {
            Err(Trouble::Busy) if Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(5));
            }
            answer => return answer,
        }
    }
}

/// The user's data directory. Relative paths in `$XDG_DATA_HOME` are to be ignored, says its
/// specification.
fn data_home(xdg: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    xdg.and_then(absolute).or_else(|| home.and_then(absolute).map(|home| home.join(".local/share")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_go_where_the_environment_says() {
        let data = |xdg: Option<&str>, home: Option<&str>| {
            data_home(xdg.map(Into::into), home.map(Into::into))
        };
        let standard = Some("/home/mel/.local/share".into());
        assert_eq!(data(Some("/data"), Some("/home/mel")), Some("/data".into()));
        assert_eq!(data(None, Some("/home/mel")), standard);
        assert_eq!(data(Some("relative"), Some("/home/mel")), standard);
        assert_eq!(data(Some(""), Some("/home/mel")), standard);
        assert_eq!(data(None, None), None);
        assert_eq!(data(None, Some("")), None);
    }
}
