//! Records the kernel's symbols after the workloads. The host uses them to map addresses of the profile to
//! functions.

use std::collections::BTreeSet;
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

/// Records the lines of `/proc/kallsyms` for code, in pieces that fit into an event. With `only`, those of functions
/// that begin there.
pub fn record(watch: &Watch, only: Option<&BTreeSet<u64>>) -> Result<(), SymbolsError> {
    let mut piece = String::new();
    for line in lines(Path::new("/"))? {
        let line = line?;
        let is_wanted = || {
            only.is_none_or(|only| address(&line).is_some_and(|address| only.contains(&address)))
        };
        if !is_code(&line) || !is_wanted() {
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

/// Where the kernel's functions begin, ascending; empty if the kernel does not tell.
pub fn functions(root: &Path) -> Vec<u64> {
    let lines = lines(root).into_iter().flatten().map_while(Result::ok);
    let code = lines.filter(|line| is_code(line));
    let mut begins: Vec<u64> =
        code.filter_map(|line| address(&line)).filter(|begin| *begin > 0).collect();
    begins.sort_unstable();
    begins.dedup();
    begins.shrink_to_fit();
    begins
}

fn lines(root: &Path) -> io::Result<io::Lines<BufReader<File>>> {
    // A large buffer, because the kernel finds its position again at each read.
    let file = File::open(root.join("proc/kallsyms"))?;
    Ok(BufReader::with_capacity(MAX_TEXT, file).lines())
}

fn address(line: &str) -> Option<u64> {
    u64::from_str_radix(line.split(' ').next()?, 16).ok()
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

    #[test]
    fn functions_begin_where_code_does() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(functions(root.path()), [0; 0]);
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let write = |text: &str| std::fs::write(root.path().join("proc/kallsyms"), text).unwrap();
        write("ffffffff81000010 T b\nffffffff81000000 T _text\nffffffff81000000 t a\nff D data\n");
        assert_eq!(functions(root.path()), [0xffff_ffff_8100_0000, 0xffff_ffff_8100_0010]);
        // Without permission addresses read as 0.
        write("0000000000000000 T _text\n");
        assert_eq!(functions(root.path()), [0; 0]);
    }
}
