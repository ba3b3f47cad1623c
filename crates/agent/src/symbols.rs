//! Records the kernel's symbols after the workloads. The host uses them to map addresses of the profile to
//! functions.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use flight::Event;
use flight::event::MAX_TEXT;
use guest::reason;

use crate::recorder::RecordError;
use crate::sampler::symbols::{address, code};
use crate::watch::Watch;

/// Why the symbols cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum SymbolsError {
    #[error("/proc/kallsyms cannot be read ({})", reason(.0))]
    Read(#[from] io::Error),
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Records the lines of `/proc/kallsyms` for code, in pieces that fit into an event. If `only` is given, it records
/// only the functions that begin at these addresses.
pub fn record(watch: &Watch, only: Option<&BTreeSet<u64>>) -> Result<(), SymbolsError> {
    let mut piece = String::new();
    for line in code(Path::new("/"))? {
        let line = line?;
        if only.is_some_and(|only| !address(&line).is_some_and(|it| only.contains(&it))) {
            continue;
        }
        if piece.len() + line.len() >= MAX_TEXT {
            watch.event(&Event::Symbols(std::mem::take(&mut piece)))?;
        }
        piece.push_str(&line);
        piece.push('\n');
    }
    Ok(watch.event(&Event::Symbols(piece))?)
}
