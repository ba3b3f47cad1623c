//! The commands, one file each.

pub mod boot;
pub mod compare;
pub mod explain;
pub mod export;
pub mod kernel;
pub mod replay;
pub mod run;
pub mod selftest;
pub mod show;
pub mod table;

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use model::Topology;
use store::Store;

use crate::args::MachineArgs;
use crate::failure::Failure;

/// The store that was named, or the user's own.
fn store_path(named: Option<PathBuf>) -> Result<PathBuf, store::Error> {
    named.map_or_else(Store::default_path, Ok)
}

/// The store for reading: one that does not exist is not created.
fn existing_store(named: Option<PathBuf>) -> Result<Store, Failure> {
    let path = store_path(named)?;
    if !path.exists() {
        let message = format!("there is no store {}: `faultline run` makes it", path.display());
        return Err(Failure::Usage(message));
    }
    Ok(Store::open(&path)?)
}

fn topology(args: &MachineArgs) -> Result<Topology, Failure> {
    Topology::even(args.cpus, args.memory, args.nodes)
        .map_err(|error| Failure::Usage(error.to_string()))
}

/// Writes results to a file, or prints them. A file is there whole or as it was.
fn write_out(text: &str, file: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = file else { return print(text) };
    let special = fs::metadata(path).is_ok_and(|known| !known.is_file());
    let written = if special { fs::write(path, text) } else { replace(path, text) };
    written.map_err(|error| Failure::Host(format!("{}: {error}", path.display())))
}

/// Puts a new file in the place of `path`, or of what it leads to.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    // As of any new file, less what the umask takes.
    let builder = builder.permissions(fs::Permissions::from_mode(0o666));
    let mut new = builder.tempfile_in(directory.unwrap_or(Path::new(".")))?;
    new.write_all(text.as_bytes())?;
    new.as_file().sync_all()?;
    new.persist(path)?;
    Ok(())
}

/// Prints results; a reader that went away is no failure.
fn print(text: &str) -> Result<(), Failure> {
    Ok(io::stdout().write_all(text.as_bytes())?)
}
