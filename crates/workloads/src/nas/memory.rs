//! Arrays that the threads of a team share. They are mapped at once, and get pages when threads touch them. They are
//! anonymous memory, or shared mappings of files.
//!
//! Elements are atomics: a missing barrier can only cause a wrong result, which verification finds. Loads and stores
//! are relaxed, which are plain moves on x86. The barriers of the team order them.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use guest::words::{HalfWords, Words};

use super::super::{Result, While};

/// An element of a shared array.
pub trait Element {
    /// The type of its value.
    type Value;

    /// Loads the value of the element.
    fn get(&self) -> Self::Value;

    /// Stores a value in the element.
    fn set(&self, value: Self::Value);
}

/// Holds a real number.
impl Element for AtomicU64 {
    type Value = f64;

    fn get(&self) -> f64 {
        f64::from_bits(self.load(Relaxed))
    }

    fn set(&self, value: f64) {
        self.store(value.to_bits(), Relaxed);
    }
}

/// Holds a key, a count or an index.
impl Element for AtomicU32 {
    type Value = u32;

    fn get(&self) -> u32 {
        self.load(Relaxed)
    }

    fn set(&self, value: u32) {
        self.store(value, Relaxed);
    }
}

/// The directory of the files that arrays map; unset for anonymous memory.
pub static FILES: OnceLock<PathBuf> = OnceLock::new();

/// Maps an array of real numbers, all 0.
pub fn reals(count: usize) -> Result<Words> {
    mapped(count * size_of::<AtomicU64>(), Words::shared, Words::anonymous)
}

/// Maps an array of whole numbers, all 0.
pub fn integers(count: usize) -> Result<HalfWords> {
    mapped(count * size_of::<AtomicU32>(), HalfWords::shared, HalfWords::anonymous)
}

/// Maps a new file if [`FILES`] is set, otherwise anonymous memory.
fn mapped<W>(
    bytes: usize,
    shared: fn(&File) -> io::Result<W>,
    anonymous: fn(usize) -> io::Result<W>,
) -> Result<W> {
    let words = match FILES.get() {
        Some(directory) => shared(&file(directory, bytes)?),
        None => anonymous(bytes),
    };
    words.while_(format!("mapping {bytes} bytes"))
}

/// Makes a sparse file without a name, which exists as long as its mappings.
fn file(directory: &Path, bytes: usize) -> Result<File> {
    let mut options = File::options();
    options.read(true).write(true).custom_flags(libc::O_TMPFILE);
    let sized = options.open(directory).and_then(|it| it.set_len(bytes as u64).map(|()| it));
    sized.while_(format!("making a file of {bytes} bytes in {}", directory.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_can_be_files_without_a_name() {
        let directory = tempfile::tempdir().unwrap();
        let file = file(directory.path(), 12).unwrap();
        let words = HalfWords::shared(&file).unwrap();
        words[2].set(7);
        assert_eq!((words.len(), words[0].get(), words[2].get()), (3, 0, 7));
        assert_eq!(file.metadata().unwrap().len(), 12);
        assert_eq!(directory.path().read_dir().unwrap().count(), 0);
        drop(words);
        let gone = super::file(&directory.path().join("gone"), 4).unwrap_err();
        assert!(gone.to_string().contains("making a file of 4 bytes"), "{gone}");
    }
}
