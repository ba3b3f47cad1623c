//! The store in one SQLite file: opens the file and runs transactions on it.

use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use std::{fs, thread};

use model::{Boot, BootId, Experiment, Kept, Mode, Reading};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use rustix::fs::{Access, access};
use rustix::io::Errno;

use crate::parts::Parts;
use crate::record::Record;
use crate::{
    Archive, BootEntry, Checked, Detail, Error, ExperimentId, ExperimentRow, Series, Standing,
    Trouble, boots, check, edit, experiments, schema,
};

/// How long to wait for another process that writes. Keeping a boot takes much less than a second.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long SQLite itself waits, without a message. Readers wait no longer than this. They do not wait for writers,
/// but only while another process opens a store that was not closed properly, or closes it.
const QUIETLY: Duration = Duration::from_millis(500);

/// Reports a wait for another process, and a migration.
static SAY: OnceLock<fn(&str)> = OnceLock::new();

/// Sets the function that reports waits of stores, and migrations. Without it they are silent.
pub fn say_waits(say: fn(&str)) {
    SAY.get_or_init(|| say);
}

/// Experiments and their boots in one SQLite file. Several processes may use it at once.
#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    pub(crate) connection: Connection,
    is_frozen: bool,
    /// Device and inode of the file.
    file: Option<(u64, u64)>,
    /// How long to wait for other processes.
    patience: Duration,
}

impl Sqlite {
    /// See [`open`](crate::open).
    pub fn open(path: &Path) -> Result<Self, Error> {
        let connection = connect(path, PATIENCE).map_err(|trouble| {
            let trouble = match trouble {
                // SQLite could not create its log beside the file.
                Trouble::Unopened if File::open(path).is_ok() => Trouble::ReadOnly,
                trouble => trouble,
            };
            Error::Store { path: path.into(), trouble }
        })?;
        let file = identity(path);
        Ok(Self { path: path.into(), connection, is_frozen: false, file, patience: PATIENCE })
    }

    /// See [`open_to_read`](crate::open_to_read).
    pub fn open_to_read(path: &Path) -> Result<Self, Error> {
        let (connection, is_frozen) =
            connect_to_read(path).map_err(|trouble| Error::Store { path: path.into(), trouble })?;
        let (file, patience) = (identity(path), QUIETLY);
        Ok(Self { path: path.into(), connection, is_frozen, file, patience })
    }

    /// Runs `work` in one transaction. When this returns, either everything that it wrote is on disk, or
    /// nothing.
    pub(crate) fn write<T>(
        &mut self,
        work: impl FnOnce(&Transaction) -> Result<T, Trouble>,
    ) -> Result<T, Error> {
        let attempt = || {
            // Takes the write lock at once, because a transaction that reads first could not wait for it.
            let behavior = TransactionBehavior::Immediate;
            let begin = || Ok(Transaction::new_unchecked(&self.connection, behavior)?);
            let transaction = patiently(&self.path, PATIENCE, begin)?;
            schema::check_version(&transaction)?;
            let value = work(&transaction)?;
            transaction.commit()?;
            // SQLite goes on to write to a file that was removed.
            match identity(&self.path) == self.file {
                true => Ok(value),
                false => Err(Trouble::Gone),
            }
        };
        attempt().map_err(|trouble| self.error(trouble))
    }

    /// Runs `work` on a consistent snapshot of the store.
    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(&Transaction) -> Result<T, Trouble>,
    ) -> Result<T, Error> {
        let begin = || {
            let transaction = self.connection.unchecked_transaction()?;
            // SQLite takes the lock at this first read.
            schema::check_version(&transaction)?;
            Ok(transaction)
        };
        let attempt = || work(&patiently(&self.path, self.patience, begin)?);
        attempt().map_err(|trouble| self.error(trouble))
    }

    /// An error of this store.
    pub(crate) fn error(&self, trouble: Trouble) -> Error {
        Error::Store { path: self.path.clone(), trouble }
    }
}

fn say(line: &str) {
    if let Some(say) = SAY.get() {
        say(line);
    }
}

impl Archive for Sqlite {
    fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    fn keep_experiment(
        &mut self,
        experiment: &Experiment,
        reading: &Reading,
    ) -> Result<ExperimentId, Error> {
        self.write(|transaction| experiments::keep(transaction, experiment, reading))
    }

    fn rename_experiment(&mut self, id: ExperimentId, name: &str) -> Result<(), Error> {
        self.write(|transaction| edit::rename(transaction, id, name))
    }

    fn note_experiment(&mut self, id: ExperimentId, note: &str) -> Result<(), Error> {
        self.write(|transaction| edit::note(transaction, id, note))
    }

    /// The file keeps its size. Later boots reuse the freed space.
    fn remove_experiment(&mut self, id: ExperimentId) -> Result<(), Error> {
        self.write(|transaction| edit::remove(transaction, id))
    }

    fn each_row(
        &self,
        named: Option<&str>,
        each: &mut dyn FnMut(ExperimentRow) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.read(|transaction| experiments::each_row(transaction, named, each))
    }

    fn row(&self, id: ExperimentId) -> Result<ExperimentRow, Error> {
        self.read(|transaction| Ok(experiments::row(id, Record::read(transaction, id)?)))
    }

    fn experiment(&self, id: ExperimentId) -> Result<Experiment, Error> {
        self.read(|transaction| Ok(experiments::find_and_read(transaction, id)?.0))
    }

    fn reading(&self, id: ExperimentId) -> Result<Reading, Error> {
        self.read(|transaction| Ok(experiments::find_and_read(transaction, id)?.1))
    }

    fn find_experiment(&self, name_or_id: &str) -> Result<ExperimentId, Error> {
        self.read(|transaction| experiments::find(transaction, name_or_id))
    }

    fn kin(&self, mode: Mode, of: &Experiment) -> Result<Vec<ExperimentId>, Error> {
        self.read(|transaction| experiments::kin(transaction, mode, of))
    }

    fn keep(
        &mut self,
        experiment: ExperimentId,
        boot: &Boot,
        series: &[Series],
        standing: Standing,
    ) -> Result<BootId, Error> {
        // Packing takes longer than writing, so it is done before the lock is taken.
        let parts = Parts::of(boot, series).map_err(|trouble| self.error(trouble))?;
        self.write(|transaction| boots::keep(transaction, experiment, boot, &parts, standing))
    }

    fn set_invalid_aside(&mut self, experiment: ExperimentId) -> Result<(), Error> {
        self.write(|transaction| boots::set_invalid_aside(transaction, experiment))
    }

    fn listed(&self, experiment: ExperimentId) -> Result<Vec<BootEntry>, Error> {
        self.read(|transaction| boots::listed(transaction, experiment))
    }

    fn each_boot(
        &self,
        experiment: ExperimentId,
        detail: Detail,
        each: &mut dyn FnMut(Kept) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.read(|transaction| {
            for entry in Record::read(transaction, experiment)?.boots {
                if each(boots::read(transaction, experiment, &entry, detail)?).is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    fn boot(&self, id: BootId) -> Result<(ExperimentId, Kept), Error> {
        self.read(|transaction| {
            let (experiment, entry) = boots::find(transaction, id)?;
            Ok((experiment, boots::read(transaction, experiment, &entry, Detail::Whole)?))
        })
    }

    fn check(&self) -> Result<Checked, Error> {
        self.read(|transaction| check::check(transaction))
    }
}

/// Calls `begin`, which needs a lock, again and again while another process holds the lock.
fn patiently<T>(
    path: &Path,
    patience: Duration,
    mut begin: impl FnMut() -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    let held = || {
        let files = ["", "-shm", "-wal"].map(|ending| beside(path, ending));
        lock::Held { path: path.to_owned(), holder: lock::holder(&files), span: None }
    };
    // SQLite waits for the lock.
    let attempt = |_| match begin() {
        Err(Trouble::Busy) => Ok(None),
        begun => begun.map(Some),
    };
    let begun = lock::wait(("for the store", patience), held, &say, attempt)?;
    begun.map_err(|held| Trouble::Held(held.by()))
}

fn connect(path: &Path, patience: Duration) -> Result<Connection, Trouble> {
    if path.is_dir() {
        return Err(Trouble::IsDirectory);
    }
    if !is_writable(path) {
        return Err(Trouble::ReadOnly);
    }
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(Trouble::Directory)?;
    }
    // Without SQLITE_OPEN_URI, so that a path that starts with `file:` is still a path.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(QUIETLY)?;
    let migrating = |line: &str| say(&format!("{}: {line}", path.display()));
    patiently(path, patience, || schema::create(&mut connection, &migrating))?;
    patiently(path, patience, || use_write_ahead_log(&connection))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

/// Connects to a store for reading. Also returns whether it is read as a file that does not change.
fn connect_to_read(path: &Path) -> Result<(Connection, bool), Trouble> {
    if path.exists() {
        let connection = match connect(path, QUIETLY) {
            // A full disk has no room for a migration either.
            Err(Trouble::Full) => match connect_alone(path) {
                Err(Trouble::Older { .. }) => return Err(Trouble::Full),
                connection => connection,
            },
            connection => connection,
        };
        match connection {
            Err(Trouble::ReadOnly | Trouble::Unopened | Trouble::Full) => {}
            connection => return Ok((connection?, false)),
        }
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // Another process has the file open, or was killed. `-shm` is the index of the log, so the log can be read.
    if beside(path, "-shm").exists() {
        match Connection::open_with_flags(path, flags).map_err(Trouble::from).and_then(checked) {
            Err(Trouble::ReadOnly | Trouble::Unopened | Trouble::Full) => {}
            connection => return Ok((connection?, false)),
        }
    }
    let log = beside(path, "-wal");
    if fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
        return Err(Trouble::Unmerged(log));
    }
    let flags = flags | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(immutable(path)?, flags)?;
    Ok((checked(connection)?, true))
}

/// Connects to a store on a full disk for reading. SQLite keeps the index of the log in memory if no other
/// process uses the file (<https://www.sqlite.org/wal.html>, section 8), so it needs no space for `-shm`.
fn connect_alone(path: &Path) -> Result<Connection, Trouble> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    checked(connection)
}

/// Returns the connection if the file has the latest version.
fn checked(connection: Connection) -> Result<Connection, Trouble> {
    connection.busy_timeout(QUIETLY)?;
    schema::check(&connection).map(|()| connection)
}

/// Whether the file and SQLite's files beside it can be written, as far as they exist. SQLite would create
/// files beside a store that it can only read, and the store's owner could not write them. The file is not
/// opened, because closing it would release this process's locks on it.
fn is_writable(path: &Path) -> bool {
    let refused = [Errno::ACCESS, Errno::PERM, Errno::ROFS];
    let may_write = |path: PathBuf| {
        access(&path, Access::WRITE_OK).map_or_else(|error| !refused.contains(&error), |()| true)
    };
    ["", "-wal", "-shm"].into_iter().all(|ending| may_write(beside(path, ending)))
}

/// Device and inode of a file; `None` if there is no such file.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// The file beside a store whose name has this ending.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// The URI with which SQLite reads a file without locks (`https://sqlite.org/uri.html`).
fn immutable(path: &Path) -> Result<String, Trouble> {
    let path = std::path::absolute(path).map_err(Trouble::Directory)?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    let escaped = path.as_os_str().as_bytes().iter().map(|&byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    Ok(format!("file://{}?immutable=1", escaped.collect::<String>()))
}

/// Sets write-ahead logging, which allows reads during a write. The journal mode of a file changes once. SQLite does
/// not wait for locks during the change, so this function does.
fn use_write_ahead_log(connection: &Connection) -> Result<(), Trouble> {
    let deadline = Instant::now() + QUIETLY;
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
