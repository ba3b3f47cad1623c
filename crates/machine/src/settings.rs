//! Changes settings of this host for a session, and puts them back: at its end, after Ctrl-C, and after faultline was
//! killed, at its next start. A journal has what to put back. It is written before each setting.
//!
//! The former text is written only while a file still has what we wrote. What somebody else changed meanwhile is
//! reported and left alone.

mod journal;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use guest::settings::{ACTIONS, SettingError, apply};
use guest::{chosen, reason};
use model::Setting;

use journal::{Change, Line};

/// The journal, and the file whose lock a run holds while it changes settings.
const JOURNAL: &str = "settings.journal";
const LOCK: &str = "settings.lock";
/// The identity of the running kernel (random(4)).
const BOOT_ID: &str = "proc/sys/kernel/random/boot_id";
/// Pairs of files. Writing one sets the other to 0 (`Documentation/admin-guide/sysctl/vm.rst`).
const PAIRS: [[&str; 2]; 2] = [
    ["/proc/sys/vm/dirty_bytes", "/proc/sys/vm/dirty_ratio"],
    ["/proc/sys/vm/dirty_background_bytes", "/proc/sys/vm/dirty_background_ratio"],
];
/// The setting that the kernel changes with those of huge pages (`mm/khugepaged.c`, `set_recommended_min_free_kbytes`),
/// and their directories.
const FOLLOWER: &str = "/proc/sys/vm/min_free_kbytes";
const LEADERS: [&str; 2] = ["/sys/kernel/mm/transparent_hugepage/", "/sys/kernel/mm/hugepages/"];

/// Why settings cannot be changed or put back.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The journal or its lock cannot be used. Nothing was changed.
    #[error("{path}, which keeps the former values of settings: {error}")]
    Journal {
        /// The file.
        path: PathBuf,
        /// What the system reported.
        error: io::Error,
    },
    /// Another run changes settings of this host.
    #[error("another run on this host has changed settings: {0}. Try again when it has ended")]
    Busy(lock::Held),
    /// A setting cannot be applied.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// Nobody may write a setting.
    #[error(
        "{path} cannot be written: it is no file, or the kernel only lets it be read. Leave the setting out"
    )]
    ReadOnly {
        /// The file.
        path: String,
    },
    /// This user may not write a setting.
    #[error(
        "{path} cannot be written by this user ({error}): run as root, or leave the setting out"
    )]
    Forbidden {
        /// The file.
        path: String,
        /// What the kernel answered.
        error: String,
    },
}

/// What was put back, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PutBack {
    /// Each setting that has its former value again: the file and the value.
    pub restored: Vec<(String, String)>,
    /// A sentence on each setting that was left alone or cannot be written.
    pub left: Vec<String>,
    /// How many changes were void, because the kernel was started anew since.
    pub void: usize,
}

impl PutBack {
    /// All of it as sentences.
    pub fn lines(&self) -> Vec<String> {
        let restored = self.restored.iter().map(|(path, value)| format!("{path} is {value} again"));
        restored.chain(self.left.iter().cloned()).collect()
    }
}

/// The settings of this host. Threads may share it.
pub struct HostSettings {
    /// The directory of the journal.
    directory: PathBuf,
    /// `/`, except in tests.
    root: PathBuf,
    open: Mutex<Option<Open>>,
}

/// The lock of a run that changes settings.
pub struct Held(Arc<HostSettings>);

impl Drop for Held {
    fn drop(&mut self) {
        // What cannot be put back stays in the journal, for the next start.
        let _ = self.0.put_back();
        *self.0.lock() = None;
    }
}

/// The journal of a run that holds its lock.
struct Open {
    journal: File,
    _lock: File,
}

impl HostSettings {
    /// The settings of this host, with the journal of this user: in `$XDG_STATE_HOME/faultline`; by default in
    /// `/var/lib/faultline` for root, and in `~/.local/state/faultline` for others.
    pub fn of_user() -> Self {
        let absolute = |name: &str| {
            Some(PathBuf::from(std::env::var_os(name)?)).filter(|path| path.is_absolute())
        };
        let is_root = rustix::process::geteuid().is_root();
        let base = absolute("XDG_STATE_HOME").unwrap_or_else(|| match absolute("HOME") {
            _ if is_root => PathBuf::from("/var/lib"),
            Some(home) => home.join(".local/state"),
            None => std::env::temp_dir()
                .join(format!("faultline-{}", rustix::process::geteuid().as_raw())),
        });
        Self::at(base.join("faultline"), Path::new("/"))
    }

    /// The settings below `root`, with a journal in `directory`.
    pub fn at(directory: PathBuf, root: &Path) -> Self {
        Self { directory, root: root.to_owned(), open: Mutex::new(None) }
    }

    /// Checks, before anything is changed, that this user may write a setting.
    pub fn check(&self, setting: &Setting) -> Result<(), SettingsError> {
        let path = setting.file();
        let below = self.below(&path);
        // Root may open a file that the kernel does not let be written.
        if fs::metadata(&below).is_ok_and(|it| !it.is_file() || it.permissions().readonly()) {
            return Err(SettingsError::ReadOnly { path });
        }
        match OpenOptions::new().write(true).open(below) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(SettingError::Absent { name: path.clone(), path, error }.into())
            }
            Err(error) => Err(SettingsError::Forbidden { path, error: reason(&error) }),
            Ok(_) => Ok(()),
        }
    }

    /// Puts back what a killed run left. Does nothing while another run holds the lock, or if there is no journal.
    pub fn recover(&self) -> Result<PutBack, SettingsError> {
        if !self.directory.join(JOURNAL).exists() {
            return Ok(PutBack::default());
        }
        match self.begin(Duration::ZERO, &|_| ()) {
            Ok(put_back) => {
                *self.lock() = None;
                Ok(put_back)
            }
            Err(SettingsError::Busy(_)) => Ok(PutBack::default()),
            Err(error) => Err(error),
        }
    }

    /// As [`HostSettings::begin`], with the lock held until the guard is dropped, which puts back what is still changed.
    pub fn hold(
        self: &Arc<Self>,
        patience: Duration,
        say: &dyn Fn(&str),
    ) -> Result<(PutBack, Held), SettingsError> {
        Ok((self.begin(patience, say)?, Held(self.clone())))
    }

    /// Takes the lock, for which it waits at most for `patience`, and puts back what a killed run left.
    fn begin(&self, patience: Duration, say: &dyn Fn(&str)) -> Result<PutBack, SettingsError> {
        let mut open = self.lock();
        fs::create_dir_all(&self.directory).map_err(self.failed(""))?;
        let lock = ::lock::take_within(
            &self.directory.join(LOCK),
            ("for another run on this host", patience),
            say,
        )
        .map_err(self.failed(LOCK))?
        .map_err(SettingsError::Busy)?;
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        let journal = options.open(self.directory.join(JOURNAL)).map_err(self.failed(JOURNAL))?;
        let opened = open.insert(Open { journal, _lock: lock });
        self.put_back_of(opened).map_err(self.failed(JOURNAL))
    }

    /// For `map_err`: adds the path of a file in the directory of the journal.
    fn failed(&self, name: &str) -> impl Fn(io::Error) -> SettingsError + use<> {
        let path = self.directory.join(name);
        move |error| SettingsError::Journal { path: path.clone(), error }
    }

    /// Applies settings, in order. After an error, those before it stay until [`HostSettings::put_back`].
    pub fn apply(&self, settings: &[Setting]) -> Result<(), SettingsError> {
        if settings.is_empty() {
            return Ok(());
        }
        let mut open = self.lock();
        let open = open.as_mut().expect("a run that changes settings holds the lock");
        settings.iter().try_for_each(|setting| self.apply_one(open, setting))
    }

    fn apply_one(&self, open: &mut Open, setting: &Setting) -> Result<(), SettingsError> {
        let path = setting.file();
        let (Setting::Sysctl { value, .. } | Setting::Sysfs { value, .. }) = setting;
        let is_action = ACTIONS.iter().any(|name| Path::new(&path).ends_with(name));
        let Some(old) = self.text(&path).filter(|_| !is_action) else {
            return Ok(apply(&self.root, setting)?);
        };
        if means(&old, value) {
            return Ok(());
        }
        let follower =
            LEADERS.iter().any(|it| path.starts_with(it)).then(|| self.text(FOLLOWER)).flatten();
        let by = self.counterpart(&path).filter(|_| means(&old, "0"));
        let new = value.clone();
        self.write_down(open, &Line::Write(Change { by, ..self.change(&path, old, new) }))?;
        apply(&self.root, setting)?;
        self.write_down(open, &Line::Read(self.text(&path).unwrap_or_default()))?;
        let now = self.text(FOLLOWER);
        if let (Some(old), Some(now)) = (follower, now)
            && !means(&old, &now)
        {
            let change = Change { follows: true, ..self.change(FOLLOWER, old, now.clone()) };
            self.write_down(open, &Line::Write(change))?;
            self.write_down(open, &Line::Read(now))?;
        }
        Ok(())
    }

    fn change(&self, path: &str, old: String, new: String) -> Change {
        let boot = self.text(BOOT_ID).unwrap_or_default();
        Change { boot, pid: process::id(), path: path.to_owned(), old, new, ..Change::default() }
    }

    fn write_down(&self, open: &mut Open, line: &Line) -> Result<(), SettingsError> {
        journal::append(&mut open.journal, line).map_err(self.failed(JOURNAL))
    }

    /// The other file of a pair, with its text.
    fn counterpart(&self, path: &str) -> Option<(String, String)> {
        let other = PAIRS
            .iter()
            .find_map(|pair| Some(pair[1 - pair.iter().position(|it| *it == path)?]))?;
        Some((other.to_owned(), self.text(other)?))
    }

    /// Puts back what this run changed. Does nothing if it holds no lock.
    pub fn put_back(&self) -> Result<PutBack, SettingsError> {
        let mut open = self.lock();
        let Some(open) = open.as_mut() else { return Ok(PutBack::default()) };
        self.put_back_of(open).map_err(self.failed(JOURNAL))
    }

    /// Puts back what this run changed, for the last time: nothing can be changed afterwards. For the end of the process.
    pub fn put_back_for_good(&self) -> PutBack {
        let mut open = self.lock();
        let put_back = open.as_mut().and_then(|open| self.put_back_of(open).ok());
        // Whoever waits for the guard waits until the process ends.
        std::mem::forget(open);
        put_back.unwrap_or_default()
    }

    fn put_back_of(&self, open: &mut Open) -> io::Result<PutBack> {
        let (mut changes, damaged) = journal::read(&mut open.journal)?;
        let mut put_back = PutBack::default();
        changes.retain(|it| {
            let is_setting =
                is_setting(&it.path) && it.by.as_ref().is_none_or(|by| is_setting(&by.0));
            if !is_setting {
                put_back.left.push(format!("{} is no setting, so it was left alone", it.path));
            }
            is_setting
        });
        if damaged > 0 {
            put_back.left.push(format!(
                "{damaged} lines of {} are damaged",
                self.directory.join(JOURNAL).display()
            ));
        }
        let boot = self.text(BOOT_ID).unwrap_or_default();
        let (valid, void): (Vec<Change>, Vec<Change>) =
            changes.into_iter().partition(|it| it.boot == boot);
        put_back.void = void.len();
        let (followers, changes): (Vec<Change>, Vec<Change>) =
            valid.into_iter().partition(|it| it.follows);
        // Whether a follower is still ours is known only before its leader is written.
        let followers: Vec<(Change, bool)> = followers
            .into_iter()
            .map(|it| (self.is_ours(&it), it))
            .map(|(ours, it)| (it, ours))
            .collect();
        let mut failed = Vec::new();
        for change in changes.into_iter().rev() {
            let is_ours = self.is_ours(&change);
            self.put_back_one(change, is_ours, &mut put_back, &mut failed);
        }
        for (change, is_ours) in followers.into_iter().rev() {
            self.put_back_one(change, is_ours, &mut put_back, &mut failed);
        }
        failed.reverse();
        journal::keep(&mut open.journal, &failed)?;
        Ok(put_back)
    }

    /// Whether a file has what we wrote. If the process ended before it read the file, it has.
    fn is_ours(&self, change: &Change) -> bool {
        let Some(now) = self.text(&change.path) else { return false };
        means(&now, &change.new) || change.read.as_ref().is_none_or(|read| means(&now, read))
    }

    fn put_back_one(
        &self,
        change: Change,
        is_ours: bool,
        put_back: &mut PutBack,
        failed: &mut Vec<Change>,
    ) {
        let Change { path, old, new, by, .. } = &change;
        let value = chosen(old).to_owned();
        match self.text(path) {
            None => put_back.left.push(format!("{path} is gone; it was {value}")),
            Some(now) if means(&now, old) => {}
            Some(now) if !is_ours => put_back.left.push(format!(
                "{path} was left alone: it is {}, which is not the {new} of this run; before it was {value}",
                chosen(&now)
            )),
            Some(_) => {
                let (file, text) = by.as_ref().map_or((path, &value), |(file, text)| (file, text));
                // The kernel takes no write of nothing, so an empty text needs the end of its line.
                match fs::write(self.below(file), format!("{}\n", chosen(text))) {
                    Ok(()) if self.text(path).is_some_and(|now| means(&now, old)) => {
                        put_back.restored.push((path.clone(), value));
                    }
                    Ok(()) => {
                        let now = self.text(path).unwrap_or_default();
                        put_back.left.push(format!("{path} is {} after {value} was written to it", chosen(&now)));
                    }
                    Err(error) => {
                        put_back.left.push(format!("{path} could not be set to {value} again: {}", reason(&error)));
                        failed.push(change);
                    }
                }
            }
        }
    }

    fn text(&self, path: &str) -> Option<String> {
        Some(fs::read_to_string(self.below(path)).ok()?.trim().to_owned())
    }

    fn below(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a path of a journal, which anybody may have written, is below `/proc/sys` or `/sys`.
fn is_setting(path: &str) -> bool {
    let is_below = ["/proc/sys/", "/sys/"].iter().any(|home| path.starts_with(home));
    is_below && !path.split('/').any(|part| part == "..")
}

/// Whether a file that reads `text` has the value `value`: the word in brackets, numbers in any notation, any blanks
/// between words.
fn means(text: &str, value: &str) -> bool {
    let words =
        |text: &str| -> Vec<String> { chosen(text).split_whitespace().map(plain).collect() };
    words(text) == words(value)
}

/// A number without the marks of its notation; other words as they are.
fn plain(word: &str) -> String {
    let number = match word.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    };
    number.map_or(word.to_owned(), |number| number.to_string())
}

#[cfg(test)]
mod tests;
