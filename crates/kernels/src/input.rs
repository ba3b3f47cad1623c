//! Reads files that the user named (regular files up to a size limit, and packages) and files of the cache.

use std::fs::{self, FileType};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::error::Doing;

/// The largest image: a `vmlinux` with full debug information is smaller.
pub(crate) const MAX_IMAGE: u64 = 1 << 30;

/// Reads a regular file of at most `limit` bytes. Fails, without reading it, when it does not exist, cannot be
/// opened, is not a regular file, or is larger.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    let wrong = |problem| Error::NoKernel { path: path.to_owned(), problem };
    let unreadable = |error| wrong(format!("cannot be read: {error}"));
    // Opening a FIFO would block.
    let found = fs::metadata(path).map_err(unreadable)?;
    if !found.is_file() {
        return Err(wrong(format!("it is {}, not a regular file", kind(found.file_type()))));
    }
    if found.len() > limit {
        let problem = format!("it has {} bytes, but the limit is {limit}", found.len());
        return Err(wrong(problem));
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(unreadable)?;
    file.take(limit + 1).read_to_end(&mut bytes).doing("read", path)?;
    if bytes.len() as u64 > limit {
        return Err(wrong(format!("it grew beyond {limit} bytes while it was read")));
    }
    Ok(bytes)
}

/// Reads a file of the cache. Fails when it is not a regular file, because opening a FIFO would block.
pub(crate) fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let found = fs::metadata(path)?;
    if !found.is_file() {
        let problem = format!("it is {}, not a regular file", kind(found.file_type()));
        return Err(io::Error::new(ErrorKind::InvalidInput, problem));
    }
    fs::read(path)
}

/// The absolute path of a package that the user names. Fails when it does not exist or is not a regular file.
pub(crate) fn package(path: &Path) -> Result<PathBuf, Error> {
    let wrong = |problem| Error::NoKernel { path: path.to_owned(), problem };
    let unreadable = |error| {
        wrong(format!("cannot be read: {error}; name a package that is there, or debian:6.1"))
    };
    let found = fs::metadata(path).map_err(unreadable)?;
    match found.is_file() {
        true => std::path::absolute(path).doing("find", path),
        false => Err(wrong(format!("it is {}, not a package", kind(found.file_type())))),
    }
}

fn kind(file: FileType) -> &'static str {
    match file {
        kind if kind.is_dir() => "a directory",
        kind if kind.is_fifo() => "a FIFO",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    }
}
