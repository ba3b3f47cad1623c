//! The journal of changed settings: one line of JSON for each write, on the disk before the setting is written.

use std::fs::File;
use std::io::{self, Read, Seek, Write};

use serde::{Deserialize, Serialize};

/// The most bytes that are read of a journal. A session writes few lines.
const MAX_BYTES: u64 = 16 << 20;

/// A line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    /// A setting is about to be written.
    Write(Change),
    /// The setting written last reads so.
    Read(String),
}

/// What is written to a file, and what it had.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The running kernel (`/proc/sys/kernel/random/boot_id`).
    pub boot: String,
    /// The process that writes.
    pub pid: u32,
    /// The file, such as `/proc/sys/vm/swappiness`.
    pub path: String,
    /// Its former text.
    pub old: String,
    /// What is written to it.
    pub new: String,
    /// The file and the text by which the former state comes back, if that is another file: `vm.dirty_bytes` cannot be
    /// set to 0, but setting `vm.dirty_ratio` does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<(String, String)>,
    /// Whether the kernel changed it because another setting was written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub follows: bool,
    /// What it read after it was written; `None` if the process ended before.
    #[serde(skip)]
    pub read: Option<String>,
}

/// Appends a line, and returns when it is on the disk.
pub fn append(file: &mut File, line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    file.write_all(&text)?;
    match line {
        Line::Write(_) => file.sync_data(),
        // Without it the setting still counts as ours.
        Line::Read(_) => Ok(()),
    }
}

/// Reads all changes, in order. A last line that is cut off was not followed by a write. Also returns the number of
/// other lines that cannot be read.
pub fn read(file: &mut File) -> io::Result<(Vec<Change>, usize)> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    let (mut changes, mut damaged): (Vec<Change>, usize) = (Vec::new(), 0);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        match (serde_json::from_slice(line), changes.last_mut()) {
            (Ok(Line::Write(change)), _) => changes.push(change),
            (Ok(Line::Read(text)), Some(last)) => last.read = Some(text),
            _ => damaged += usize::from(line.ends_with(b"\n")),
        }
    }
    Ok((changes, damaged))
}

/// Leaves only these changes in the journal.
pub fn keep(file: &mut File, changes: &[Change]) -> io::Result<()> {
    file.set_len(0)?;
    for change in changes {
        append(file, &Line::Write(change.clone()))?;
        if let Some(text) = &change.read {
            append(file, &Line::Read(text.clone()))?;
        }
    }
    file.sync_data()
}
