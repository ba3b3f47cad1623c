//! Computes and checks digests of all files of a cached kernel before it is booted. They are in the format of
//! `sha256sum`, so `sha256sum -c sha256sums` checks them too.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::assemble::{digest, names};
use crate::error::Doing;

/// The file with the digests, in the kernel's directory.
const SUMS: &str = "sha256sums";
/// The directory of modules that are built for the kernel later. They have their own digests.
pub(crate) const EXTERNAL: &str = "external";

/// Writes the digests of a kernel's files.
pub(crate) fn write(home: &Path) -> Result<(), Error> {
    let path = home.join(SUMS);
    let is_own = |place: &Path| ![SUMS, EXTERNAL].iter().any(|it| place.starts_with(it));
    let files = digests(home)?.into_iter().filter(|(place, _)| is_own(place));
    let text: String =
        files.map(|(place, digest)| format!("{digest}  {}\n", place.display())).collect();
    let new = path.with_extension("new");
    fs::write(&new, text).and_then(|()| fs::rename(&new, &path)).doing("write", &path)
}

/// Checks that no file of a kernel has changed since it was added. If the digests are missing, as in old
/// caches, they are written.
///
/// # Errors
/// The first file that is missing or differs.
pub(crate) fn check(home: &Path, name: &str) -> Result<(), Error> {
    let path = home.join(SUMS);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return write(home),
        text => text.doing("read", &path)?,
    };
    for (line, number) in text.lines().zip(1..) {
        let damaged = |path: &Path, what: &str| Error::Damaged {
            path: path.to_owned(),
            problem: what.to_owned(),
            name: name.to_owned(),
        };
        let (sum, place) = line
            .split_once("  ")
            .ok_or_else(|| damaged(&path, &format!("line {number} is not a digest of a file")))?;
        let file = home.join(place);
        let bytes = match fs::read(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(damaged(&file, "it is missing"));
            }
            bytes => bytes.doing("read", &file)?,
        };
        if digest(&bytes) != sum {
            return Err(damaged(&file, "it has changed since it was added: its SHA-256 differs"));
        }
    }
    Ok(())
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
