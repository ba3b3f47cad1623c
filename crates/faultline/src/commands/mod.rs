//! The commands, one file each.

pub mod architectures;
pub mod attempt;
pub mod boot;
pub mod build;
pub mod chosen;
pub mod compare;
pub mod culprit;
pub mod diff;
pub mod edit;
pub mod event;
pub mod explain;
pub mod export;
pub mod generate;
pub mod import;
pub mod kernel;
pub mod lines;
pub mod machine;
pub mod new_directory;
pub mod options;
pub mod plan;
pub mod record;
pub mod replay;
pub mod run;
pub mod selftest;
pub mod show;
pub mod split;
pub mod store;
pub mod table;
pub mod userspace;
pub mod workload;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ::store::Archive;
use model::visible;
use report::shell_word;

use crate::failure::Failure;
use crate::output;

/// The store that `--store` names, or the default one.
fn store_path(named: Option<PathBuf>) -> Result<PathBuf, ::store::Error> {
    named.map_or_else(::store::default_path, Ok)
}

/// The option `--store` as a user would type it; empty for the default store.
fn store_option(named: Option<&PathBuf>) -> String {
    let word = |path: &PathBuf| shell_word(path.as_os_str().as_bytes());
    named.map_or(String::new(), |path| format!(" --store {}", word(path)))
}

/// Opens the store to read it. A store that does not exist is not created.
fn existing_store(named: Option<PathBuf>) -> Result<Box<dyn Archive>, Failure> {
    let path = existing_path(named)?;
    let store = ::store::open_to_read(&path)?;
    if store.is_frozen() {
        let path = path.display();
        eprintln!("{path} is read-only and is read without locks: do not write to it meanwhile");
    }
    Ok(store)
}

/// Opens the store to read it, like [`existing_store`]. `None` without a store: prints that there is nothing yet.
fn store_or_nothing(named: Option<PathBuf>) -> Result<Option<Box<dyn Archive>>, Failure> {
    let path = store_path(named)?;
    if path.exists() {
        return existing_store(Some(path)).map(Some);
    }
    print(&format!("Nothing yet: {}\n", no_store(&path)))?;
    Ok(None)
}

/// Says that there is no store, and what creates it.
fn no_store(path: &Path) -> String {
    let path = path.display();
    format!("there is no store {path}; `faultline try` and `faultline run` create it")
}

/// Length of the header of a SQLite file in bytes (<https://www.sqlite.org/fileformat.html>, 1.3).
const SHORTEST_STORE: u64 = 100;

/// The path of the store, which must exist.
fn existing_path(named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let path = store_path(named)?;
    if !path.exists() {
        return Err(Failure::Usage(no_store(&path)));
    }
    // SQLite would treat such a file as a new database, and write to it.
    if fs::metadata(&path)?.len() < SHORTEST_STORE {
        let message = format!("{} is not a store, or it is truncated", path.display());
        return Err(Failure::Host(message));
    }
    Ok(path)
}

/// Writes results to a file or to standard output. A file is replaced as a whole or not at all.
fn write_out(text: &str, file: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = file else { return print(text) };
    write_file(path, |file| Ok(file.write_all(visible(text).as_bytes())?))
}

/// Writes a file, a pipe or a device by `fill`. A file is replaced as a whole or not at all.
fn write_file(
    path: &Path,
    fill: impl FnOnce(&mut File) -> Result<(), WriteError>,
) -> Result<(), Failure> {
    if is_database(path) {
        let path = path.display();
        return Err(Failure::Usage(format!(
            "{path} is a database, perhaps a store: name another file"
        )));
    }
    let written = match fs::metadata(path).is_ok_and(|known| !known.is_file()) {
        true => File::options()
            .write(true)
            .open(path)
            .map_err(WriteError::from)
            .and_then(|mut it| fill(&mut it)),
        false => replace(path, fill),
    };
    written.map_err(|error| match error {
        WriteError::Output(error) => Failure::Host(format!("{}: {error}", path.display())),
        WriteError::Other(failure) => failure,
    })
}

/// Whether a file belongs to a SQLite database.
fn is_database(path: &Path) -> bool {
    const MAGIC: &[u8; 16] = b"SQLite format 3\0";
    let mut head = [0; MAGIC.len()];
    let is_file = fs::metadata(path).is_ok_and(|known| known.is_file());
    is_file
        && File::open(path).is_ok_and(|mut it| it.read_exact(&mut head).is_ok())
        && head == *MAGIC
}

/// Why a file was not written.
enum WriteError {
    /// The file failed.
    Output(io::Error),
    /// The results could not be read.
    Other(Failure),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<::store::Error> for WriteError {
    fn from(error: ::store::Error) -> Self {
        Self::Other(error.into())
    }
}

/// Replaces the file at `path`, and keeps its permissions. Follows symbolic links.
fn replace(
    path: &Path,
    fill: impl FnOnce(&mut File) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    // These are the usual permissions of a new file; the umask applies.
    let builder = builder.permissions(fs::Permissions::from_mode(0o666));
    let mut new = builder.tempfile_in(directory.unwrap_or(Path::new("."))).map_err(without_path)?;
    fill(new.as_file_mut())?;
    if let Ok(old) = fs::metadata(&path) {
        new.as_file().set_permissions(old.permissions())?;
    }
    new.as_file().sync_all()?;
    new.persist(path).map_err(io::Error::from)?;
    Ok(())
}

/// The kernel's error without the name of the temporary file, which `tempfile` adds.
fn without_path(error: io::Error) -> io::Error {
    let text = error.to_string();
    let answer = text.split_once(" at path ").map_or(&*text, |(answer, _)| answer);
    io::Error::new(error.kind(), answer)
}

/// Prints a line of progress to standard error.
fn say(line: &str) {
    eprintln!("{}", report::escape(line));
}

/// Prints results to standard output.
fn print(text: &str) -> Result<(), Failure> {
    Ok(output::print(text)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn files_are_replaced_whole_and_keep_their_permissions() {
        let directory = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| directory.path().join(name));
        write_out("first, and long", Some(&file)).unwrap();
        assert_ne!(mode(&file) & 0o400, 0);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        let reader = fs::File::open(&file).unwrap();
        write_out("second", Some(&link)).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "second");
        assert_eq!(io::read_to_string(reader).unwrap(), "first, and long");
        assert_eq!(mode(&file), 0o640);
        assert!(link.is_symlink());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_can_not_be_written_is_named() {
        let failure = write_out("", Some(Path::new("/proc/none/file"))).unwrap_err();
        assert!(failure.to_string().contains("/proc/none/file"), "{failure}");
        write_out("gone", Some(Path::new("/dev/null"))).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
