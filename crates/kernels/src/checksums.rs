//! Computes and checks digests of all files of a cached kernel before it is booted. They are in the format of
//! `sha256sum`, so `sha256sum -c sha256sums` checks them too.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::Error;
use crate::assemble::{digest, names};
use crate::error::Doing;

/// The file with the digests, in the kernel's directory.
const SUMS: &str = "sha256sums";
/// That file while it is written. A killed process may leave it behind.
const UNFINISHED: &str = "sha256sums.new";
/// The directory of modules that are built for the kernel later. They have their own digests.
pub(crate) const EXTERNAL: &str = "external";
/// The file whose modification time tells when the kernel was last used.
pub(crate) const USED: &str = "used";

/// Writes the digests of a kernel's files.
pub(crate) fn write(home: &Path) -> Result<(), Error> {
    let path = home.join(SUMS);
    let is_own =
        |place: &Path| ![SUMS, UNFINISHED, EXTERNAL, USED].iter().any(|it| place.starts_with(it));
    let files = digests(home)?.into_iter().filter(|(place, _)| is_own(place));
    let text: String =
        files.map(|(place, digest)| format!("{digest}  {}\n", place.display())).collect();
    replace(&path, text.as_bytes())
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

/// Whether a kernel has digests. Old caches have none.
pub(crate) fn exist(home: &Path) -> bool {
    home.join(SUMS).exists()
}

/// Checks that no file of a kernel has changed since it was added. The error is the first file that is
/// missing or differs.
pub(crate) fn check(home: &Path, name: &str) -> Result<(), Error> {
    let path = home.join(SUMS);
    let text = fs::read_to_string(&path).doing("read", &path)?;
    for (line, number) in text.lines().zip(1..) {
        let (sum, place) = line.split_once("  ").ok_or_else(|| {
            damaged(&path, name, format!("line {number} is not a digest of a file"))
        })?;
        let file = home.join(place);
        let bytes = match fs::read(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(damaged(&file, name, "it is missing"));
            }
            bytes => bytes.doing("read", &file)?,
        };
        if digest(&bytes) != sum {
            return Err(changed(&file, name));
        }
    }
    Ok(())
}

/// The error for a file of the kernel `name` that is not what was added.
pub(crate) fn changed(path: &Path, name: &str) -> Error {
    damaged(path, name, "it has changed since it was added: its SHA-256 differs")
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
