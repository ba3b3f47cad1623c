//! Truncation of files whose pages were reclaimed. Their shadow entries in the page cache have to be cleared one by
//! one. It follows the programs of Jan Kara's report of 2019 against the conversion of truncate to the XArray: 64
//! files, truncated together, several times.
//!
//! | phase | what happens |
//! | --- | --- |
//! | `fill` | files of holes are read, and their pages reclaimed by `madvise(2)` with `MADV_PAGEOUT`, which leaves shadow entries without any shortage of memory (Linux 5.4) |
//! | `truncate` | all files are truncated to nothing: this is timed |

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use guest::arch::page;
use guest::clock::boot_time;
use guest::sys::own_time;
use guest::words::Words;

use super::reporter::Reporter;
use super::{Given, Result, While, Workload, refused, share_of};

pub struct Options {
    directory: PathBuf,
    files: u64,
    /// The size of all files together, in percent of the machine's memory.
    share: f64,
    rounds: u32,
    memory: u64,
}

impl Workload for Options {
    fn parse(given: &mut Given) -> Result<Self> {
        let found = Self {
            directory: given.text("directory")?.into(),
            files: given.within("files", 1, 100_000)?,
            share: given.above_zero("share")?,
            rounds: given.within("rounds", 1, 1_000_000)?,
            memory: given.value("memory")?,
        };
        if found.pages() == 0 {
            let why = format!(
                "of {} bytes that is not a page for each of {} files",
                found.memory, found.files
            );
            return Err(refused("share", found.share, why));
        }
        Ok(found)
    }

    /// Fills and truncates, once for each round.
    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        for _ in 0..self.rounds {
            reporter.phase("fill")?;
            let nodes = shadow_nodes();
            let files = (0..self.files).map(|number| {
                let path = self.directory.join(format!("file{number}"));
                fill(&path, self.pages()).while_(path.display().to_string())
            });
            let files: Vec<File> = files.collect::<Result<_, _>>()?;
            if let (Some(before), Some(after)) = (nodes, shadow_nodes()) {
                reporter.note(&format!(
                    "{} files of {} pages; tree nodes with shadow entries: {before}, then {after}",
                    self.files,
                    self.pages()
                ))?;
            }
            reporter.phase("truncate")?;
            let (start, before) = (Instant::now(), own_time());
            for file in &files {
                file.set_len(0).while_("truncating")?;
            }
            let (elapsed, spent) = (start.elapsed(), own_time().since(before));
            let ended = boot_time();
            reporter.timed("Elapsed", "", elapsed.as_secs_f64(), ended)?;
            reporter.timed("System", "", spent.system, ended)?;
        }
        Ok(())
    }
}

impl Options {
    /// The number of pages of one file.
    fn pages(&self) -> usize {
        share_of(self.memory, self.share) as usize / self.files as usize / page()
    }
}

/// Makes a sparse file whose pages have all been in the page cache and have been reclaimed.
fn fill(path: &Path, pages: usize) -> std::io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
    file.set_len((pages * page()) as u64)?;
    let words = Words::shared(&file)?;
    for word in words.pages() {
        word.load(Relaxed);
    }
    words.page_out()?;
    Ok(file)
}

/// The number of page cache nodes with shadow entries, from `/proc/vmstat` since Linux 4.20.
fn shadow_nodes() -> Option<u64> {
    let vmstat = fs::read_to_string("/proc/vmstat").ok()?;
    let line = vmstat.lines().find_map(|line| line.strip_prefix("workingset_nodes "))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::options;

    #[test]
    fn the_manifest_gives_options() {
        let options = options::<Options>("truncate", &[]).unwrap();
        assert_eq!((options.files, options.pages()), (64, 4096));
        assert_eq!(options.directory, Path::new("/mnt/disk0"));
    }

    #[test]
    fn a_filled_file_is_sparse() {
        let directory = tempfile::tempdir().unwrap();
        let file = fill(&directory.path().join("file"), 100).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 100 * page() as u64);
    }
}
