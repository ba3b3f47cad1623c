//! Records the kernel's symbols after the workloads. The host uses them to map addresses of the profile to
//! functions.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use flight::Event;
use flight::event::MAX_TEXT;

use crate::reason;
use crate::recorder::RecordError;
use crate::watch::Watch;

/// Why the symbols cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum SymbolsError {
    #[error("/proc/kallsyms cannot be read ({})", reason(.0))]
    Read(#[from] io::Error),
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Records the lines of `/proc/kallsyms` for code, in pieces that fit into an event.
pub fn record(watch: &Watch) -> Result<(), SymbolsError> {
    // A large buffer, because the kernel finds its position again at each read.
    let file = BufReader::with_capacity(MAX_TEXT, File::open(Path::new("/proc/kallsyms"))?);
    let mut piece = String::new();
    for line in file.lines() {
        let line = line?;
        if !is_code(&line) {
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

/// Whether a line is a symbol in a code section (`nm(1)`).
fn is_code(line: &str) -> bool {
    matches!(line.split(' ').nth(1), Some("t" | "T" | "w" | "W"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_distinguished_from_data() {
        assert!(is_code("ffffffff81000000 T _text"));
        assert!(is_code("ffffffffc0201000 t ext4_da_map_blocks\t[ext4]"));
        assert!(!is_code("ffffffff82000000 D jiffies"));
        assert!(!is_code(""));
    }
}
