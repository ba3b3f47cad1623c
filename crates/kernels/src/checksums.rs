//! Computes digests of all files of a cached kernel, and checks them before it is booted. Also checks other files
//! that a run needs. Lists are in the format of `sha256sum`, so `sha256sum -c sha256sums` checks them too.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use model::Kernel;

use crate::Error;
use crate::assemble::{digest, file_digest, names};
use crate::error::Doing;
use crate::input::read_regular;

/// The file with the digests, in the directory of the files.
const SUMS: &str = "sha256sums";
/// That file while it is written. A killed process may leave it behind.
const UNFINISHED: &str = "sha256sums.new";
/// The directory of modules that are built for the kernel later. They have their own digests.
pub(crate) const EXTERNAL: &str = "external";
/// The file whose modification time tells when the kernel was last used.
pub(crate) const USED: &str = "used";
/// Messages for a kernel's file whose content was not recorded, and for a program of ours whose content was not
/// built.
const CHANGED: &str = "it has changed since it was added: its SHA-256 differs";
const NOT_AS_LISTED: &str = "its SHA-256 is not the one in sha256sums beside it";

/// A file whose content is not the recorded one.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct Damaged {
    /// The file, or the list of digests.
    pub path: PathBuf,
    /// The problem in words.
    pub problem: String,
}

/// Writes the digests of a kernel's files.
pub(crate) fn write(home: &Path) -> Result<(), Error> {
    let files = own_files(home)?.into_iter();
    let text: String =
        files.map(|(place, digest)| format!("{digest}  {}\n", place.display())).collect();
    replace(&home.join(SUMS), text.as_bytes())
}

/// The digests of a kernel's files, by their paths below its directory.
fn own_files(home: &Path) -> Result<BTreeMap<PathBuf, String>, Error> {
    let is_own =
        |place: &Path| ![SUMS, UNFINISHED, EXTERNAL, USED].iter().any(|it| place.starts_with(it));
    Ok(digests(home)?.into_iter().filter(|(place, _)| is_own(place)).collect())
}

/// Writes a file of a kernel completely or not at all. The cache's lock must be held.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let new = path.with_extension("new");
    let written = File::create(&new).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&new, path)).doing("write", path)
}

/// Checks that no file of a kernel has changed since it was added: the list has all files of the directory and their
/// digests, and the digests in the kernel's record are the same. Reads each file once.
pub(crate) fn check(home: &Path, kernel: &Kernel) -> Result<(), Error> {
    let home = &std::path::absolute(home).doing("find", home)?;
    let damaged = |Damaged { path, problem }| damaged(&path, &kernel.name, problem);
    let listed = read(home).map_err(damaged)?;
    let files = own_files(home)?;
    for (place, digest) in &listed {
        is_same(&home.join(place), digest, files.get(place), CHANGED).map_err(damaged)?;
    }
    let recorded = [
        (Some(&kernel.image), Some(&kernel.digest)),
        (kernel.vmlinux.as_ref(), None),
        (kernel.config.as_ref(), kernel.digests.get("config")),
        (kernel.map.as_ref(), kernel.digests.get("map")),
    ];
    for (path, digest) in recorded {
        let Some(place) = path.and_then(|path| path.strip_prefix(home).ok()) else { continue };
        let path = home.join(place);
        match (listed.get(place), digest) {
            (None, _) => return Err(damaged(not_listed(path))),
            (Some(found), Some(digest)) if found != digest => {
                let problem = "its SHA-256 differs from that in kernel.json".into();
                return Err(damaged(Damaged { path, problem }));
            }
            _ => {}
        }
    }
    match files.keys().find(|place| !listed.contains_key(*place)) {
        Some(place) => Err(damaged(not_listed(home.join(place)))),
        None => Ok(()),
    }
}

/// Checks files of a directory against its list of digests, which must have all of them.
///
/// # Errors
/// The list, if it is missing or damaged, or else the first file that the list lacks, or that is missing or has
/// changed.
pub fn check_files(directory: &Path, names: &[&str]) -> Result<(), Damaged> {
    let listed = read(directory)?;
    for name in names {
        let path = directory.join(name);
        let digest = listed.get(Path::new(name)).ok_or_else(|| not_listed(path.clone()))?;
        is_same(&path, digest, found(&path)?.as_ref(), NOT_AS_LISTED)?;
    }
    Ok(())
}

/// The digest of a file, if it exists.
fn found(path: &Path) -> Result<Option<String>, Damaged> {
    match file_digest(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        digest => digest.map(Some).map_err(|error| unreadable(path, &error)),
    }
}

/// The digests of a directory's list, by path.
fn read(directory: &Path) -> Result<BTreeMap<PathBuf, String>, Damaged> {
    let path = directory.join(SUMS);
    let text = read_regular(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            let problem = "it is missing, so the files beside it cannot be checked".into();
            Damaged { path: path.clone(), problem }
        }
        _ => unreadable(&path, &error),
    })?;
    let text = String::from_utf8_lossy(&text);
    let lines = text.lines().zip(1..).map(|(line, number)| {
        let parts = line.split_once("  ").filter(|(sum, _)| sum.len() == 64);
        let problem = || format!("line {number} is not a digest of a file");
        let (sum, place) =
            parts.ok_or_else(|| Damaged { path: path.clone(), problem: problem() })?;
        Ok((PathBuf::from(place), sum.to_owned()))
    });
    lines.collect()
}

fn is_same(
    path: &Path,
    digest: &str,
    found: Option<&String>,
    changed: &str,
) -> Result<(), Damaged> {
    let problem = match found {
        Some(found) if found == digest => return Ok(()),
        Some(_) => changed,
        None => "it is missing",
    };
    Err(Damaged { path: path.to_owned(), problem: problem.into() })
}

fn not_listed(path: PathBuf) -> Damaged {
    Damaged { path, problem: format!("it is not listed in {SUMS}") }
}

fn unreadable(path: &Path, error: &io::Error) -> Damaged {
    Damaged { path: path.to_owned(), problem: format!("cannot be read: {error}") }
}

/// The file with the SHA-256 of a single file.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".sha256");
    name.into()
}

/// Whether a file exists and has the SHA-256 that is recorded beside it.
pub(crate) fn is_whole(path: &Path) -> Result<bool, Error> {
    let read = |path: &Path| match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some).doing("read", path),
    };
    let (bytes, sum) = (read(path)?, read(&beside(path))?);
    Ok(bytes.is_some_and(|bytes| sum == Some(digest(&bytes).into_bytes())))
}

/// Copies a file, possibly from another disk, to its place beside its SHA-256.
pub(crate) fn keep(made: &Path, path: &Path) -> Result<(), Error> {
    let bytes = fs::read(made).doing("read", made)?;
    replace(&beside(path), digest(&bytes).as_bytes())?;
    replace(path, &bytes)
}

/// The error for a file of the kernel `name` that is not what was added.
pub(crate) fn changed(path: &Path, name: &str) -> Error {
    damaged(path, name, CHANGED)
}

fn damaged(path: &Path, name: &str, problem: impl Into<String>) -> Error {
    Error::Damaged { path: path.to_owned(), problem: problem.into(), name: name.to_owned() }
}

/// The SHA-256 of all regular files below a directory, sorted by name. Links are left out.
pub(crate) fn digests(root: &Path) -> Result<Vec<(PathBuf, String)>, Error> {
    let root = &root.canonicalize().doing("read", root)?;
    let mut digests = Vec::new();
    let mut wanted = vec![PathBuf::new()];
    while let Some(place) = wanted.pop() {
        let path = root.join(&place);
        let kind = path.symlink_metadata().doing("read", &path)?.file_type();
        if kind.is_dir() {
            wanted.extend(names(&path)?.iter().rev().map(|name| place.join(name)));
        } else if kind.is_file() {
            let bytes = fs::read(&path).doing("read", &path)?;
            digests.push((place, digest(&bytes)));
        }
    }
    Ok(digests)
}
