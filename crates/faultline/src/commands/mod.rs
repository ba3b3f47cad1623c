//! The commands, one file each.

pub mod boot;
pub mod compare;
pub mod explain;
pub mod export;
pub mod kernel;
pub mod replay;
pub mod run;
pub mod show;
pub mod table;

use std::fs;
use std::io::{self, Write};
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

/// Writes results to a file, or prints them.
fn write_out(text: &str, file: Option<&Path>) -> Result<(), Failure> {
    match file {
        Some(path) => fs::write(path, text)
            .map_err(|error| Failure::Host(format!("{}: {error}", path.display()))),
        None => print(text),
    }
}

/// Prints results; a reader that went away is no failure.
fn print(text: &str) -> Result<(), Failure> {
    Ok(io::stdout().write_all(text.as_bytes())?)
}
