//! What Faultline did. `-v` prints it. Commands that boot also write it to a file next to the store, which users can
//! attach to a report of a failure. The file also has what was printed.

use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use model::visible;
use tracing::Level;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, registry};

use crate::list::moment;
use crate::output::{self, SAID};

/// The number of files that are kept, the newest ones.
const KEPT: usize = 20;
/// The size at which a file ends, in bytes.
const MOST_BYTES: u64 = 64 << 20;

static FILE: OnceLock<File> = OnceLock::new();
static VERBOSE: OnceLock<()> = OnceLock::new();

/// Whether what Faultline does is printed.
pub fn is_verbose() -> bool {
    VERBOSE.get().is_some()
}

/// Begins to log, to standard error if `verbose`.
pub fn begin(verbose: bool) {
    if verbose {
        VERBOSE.get_or_init(|| ());
    }
    let printed = filter_fn(|event| is_verbose() && event.target() != SAID);
    let written = filter_fn(|event| FILE.get().is_some() && *event.level() <= Level::DEBUG);
    let to_terminal = layer().without_time().with_level(false).with_writer(|| Terminal);
    let to_file = layer().with_writer(|| Written);
    // This fails if there already is a subscriber, which only a test can have.
    let _ = registry()
        .with(to_terminal.with_ansi(false).with_target(false).with_filter(printed))
        .with(to_file.with_ansi(false).with_target(false).with_filter(written))
        .try_init();
}

/// Begins a file for this run of Faultline, and removes the oldest ones. If the host cannot write it, the run
/// continues.
pub fn to_file(store: &Path) {
    let mut directory = store.as_os_str().to_owned();
    directory.push(".logs");
    let directory = PathBuf::from(directory);
    match create(&directory) {
        Ok((path, file)) => {
            FILE.get_or_init(|| file);
            let version = env!("CARGO_PKG_VERSION");
            let words: Vec<_> = env::args_os().collect();
            tracing::debug!("log of faultline {version}: {words:?}: {}", path.display());
        }
        Err(error) => eprintln!("no log is written: {}: {error}", directory.display()),
    }
}

fn create(directory: &Path) -> io::Result<(PathBuf, File)> {
    fs::create_dir_all(directory)?;
    let mut old: Vec<PathBuf> = fs::read_dir(directory)?
        .map(|entry| entry.map(|it| it.path()))
        .collect::<Result<_, _>>()?;
    old.retain(|path| path.extension().is_some_and(|it| it == "log"));
    // The names of the files are times.
    old.sort();
    for path in old.iter().rev().skip(KEPT - 1) {
        // Another process may have removed it.
        let _ = fs::remove_file(path);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let time = moment(now).replace(' ', "T").replace(':', "");
    let path = directory.join(format!("{time}{:02}-{}.log", now % 60, process::id()));
    // The arguments of programs may be private.
    let file = File::options().append(true).create_new(true).mode(0o600).open(&path)?;
    Ok((path, file))
}

/// Writes events to standard error.
struct Terminal;

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        output::log(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes events to the file. They can have words of a guest.
struct Written;

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A log that cannot be written, or is too long, is not reported at each event.
        if let Some(mut file) = FILE.get()
            && file.metadata().is_ok_and(|file| file.len() < MOST_BYTES)
        {
            let _ = file.write_all(visible(&String::from_utf8_lossy(bytes)).as_bytes());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_logs_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let names: Vec<_> = (10..40).map(|day| format!("2026-11-{day}T000000-7.log")).collect();
        for name in names.iter().map(String::as_str).chain(["other.txt"]) {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let (path, _) = create(directory.path()).unwrap();
        assert!(path.exists() && directory.path().join("other.txt").exists());
        let left = |name: &&String| directory.path().join(name).exists();
        assert_eq!(names.iter().filter(left).count(), KEPT - 1);
        assert!(!left(&&names[10]) && left(&&names[11]));
    }
}
