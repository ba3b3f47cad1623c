//! Exact mode: reads the counts of a boot, and compares two boots that must be the same.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use flight::difference::compare_logs;
use flight::profile::{self as counted, BEYOND, PathCount, Phase};
use machine::{CONSOLE_FILE, PROFILE_FILE};

/// Why the counts of a boot cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CountsError {
    /// The plugin's file does not exist or cannot be read.
    #[error("{PROFILE_FILE}: {0}")]
    File(#[from] io::Error),
    /// The plugin's file is damaged.
    #[error("{PROFILE_FILE}: {0}")]
    Profile(#[from] counted::ProfileError),
}

/// Reads the counts that the plugin wrote into a machine's directory. Fails when the file is
/// missing or damaged.
pub fn read_counted(directory: &Path) -> Result<counted::Profile, CountsError> {
    let file = File::open(directory.join(PROFILE_FILE))?;
    let mut bytes = Vec::new();
    // Reads one byte more than the limit, to detect a file over the limit.
    file.take(counted::MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(counted::read(&bytes)?)
}

/// Returns the first difference between two boots, whose files are in the directories `one` and
/// `other`: in their recordings, consoles or counts. `None` if these are the same. Counts that are
/// missing or damaged are a difference. Fails when a recording or a console cannot be read.
pub fn difference(one: &Path, other: &Path) -> io::Result<Option<String>> {
    let logs = (machine::read_log(one)?, machine::read_log(other)?);
    if let Some(difference) = compare_logs(&logs.0, &logs.1) {
        return Ok(Some(difference.to_string()));
    }
    let consoles = (console(one)?, console(other)?);
    let lines = (consoles.0.split(is_newline), consoles.1.split(is_newline));
    if let Some(line) = lines.0.zip(lines.1).position(|(a, b)| a != b) {
        return Ok(Some(format!("their consoles differ from line {} on", line + 1)));
    }
    if consoles.0.len() != consoles.1.len() {
        return Ok(Some("one console is longer than the other".to_owned()));
    }
    Ok(match (read_counted(one), read_counted(other)) {
        (Ok(one), Ok(other)) => counts(&one, &other),
        (Err(error), _) | (_, Err(error)) => Some(error.to_string()),
    })
}

/// Reads the output of a machine's console; empty if there is no file.
fn console(directory: &Path) -> io::Result<Vec<u8>> {
    match fs::read(directory.join(CONSOLE_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        bytes => bytes,
    }
}

fn is_newline(byte: &u8) -> bool {
    *byte == b'\n'
}

/// Returns the first difference between the counts of two boots. Counts after the last mark are not
/// exact, so they are not compared.
fn counts(one: &counted::Profile, other: &counted::Profile) -> Option<String> {
    let slices = one.marked().iter().zip(other.marked());
    if let Some(slice) = slices.clone().position(|(a, b)| !are_same(a, b)) {
        return Some(format!("their counts differ after {} cuts", slice.div_ceil(2)));
    }
    if one.marked().len() != other.marked().len() {
        return Some("one boot has more cuts than the other".to_owned());
    }
    // The inexact counts after the last mark may have additional paths.
    let counted = one.marked().iter().flat_map(|slice| &slice.stacks);
    let paths = counted.filter_map(|it| it.node).max().map_or(0, |last| last as usize + 1);
    let same = one.nodes.get(..paths) == other.nodes.get(..paths);
    (!same).then(|| "their call paths differ".to_owned())
}

/// Whether two slices have the same counts. The blocks of a path are taken together, because QEMU ends a long block
/// earlier if the plugin is called more often in it. What had no room is apart.
fn are_same(one: &Phase, other: &Phase) -> bool {
    let Phase { cpus, ticks, stacks } = one;
    *cpus == other.cpus && *ticks == other.ticks && by_path(stacks) == by_path(&other.stacks)
}

fn by_path(stacks: &[PathCount]) -> BTreeMap<(Option<u32>, bool), u64> {
    let mut paths = BTreeMap::new();
    for PathCount { node, address, count } in stacks {
        *paths.entry((*node, *address == BEYOND)).or_default() += count;
    }
    paths
}

#[cfg(test)]
mod tests {
    use counted::{Cpu, Executed};

    use super::*;

    #[test]
    fn blocks_may_end_earlier_but_paths_and_instructions_are_the_same() {
        let slice = |stacks: &[(Option<u32>, u64, u64)], executed: u64| {
            let stacks = stacks.iter();
            let stacks = stacks.map(|&(node, address, count)| PathCount { node, address, count });
            let kernel = vec![Executed { address: 7, count: executed }];
            let cpus = vec![Cpu { kernel, ..Cpu::default() }];
            Phase { cpus, stacks: stacks.collect(), ..Phase::default() }
        };
        let whole = slice(&[(None, 7, 3), (Some(1), 20, 9)], 3);
        assert!(are_same(&whole, &slice(&[(None, 7, 3), (Some(1), 20, 5), (Some(1), 30, 4)], 3)));
        for other in [
            slice(&[(None, 7, 3), (Some(1), 20, 8)], 3),
            slice(&[(None, 7, 3), (Some(2), 20, 9)], 3),
            slice(&[(None, BEYOND, 3), (Some(1), 20, 9)], 3),
            slice(&[(None, 7, 3), (Some(1), 20, 9)], 4),
        ] {
            assert!(!are_same(&whole, &other), "{other:?}");
        }
    }
}
