//! Reclaims the pages of a file from a memory cgroup, on request.
//!
//! | phase | what happens |
//! | --- | --- |
//! | `create` | the file is written to the disk |
//! | `fill` | a process in the cgroup maps the file and touches each page, or reads the file |
//! | `mapped` | most of the mapped pages are reclaimed through `memory.reclaim`: this is timed |
//! | `read` | most of the pages that were read are reclaimed: this is timed |

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use guest::arch::page;
use guest::clock::boot_time;
use guest::sys::own_time;
use guest::words::Words;

use super::cgroup::Memcg;
use super::reporter::Reporter;
use super::{Given, MIB, Result, While, Workload, files, refused, share_of};

pub struct Options {
    directory: PathBuf,
    tests: Vec<(&'static str, Test)>,
    /// The size of the file, in percent of the machine's memory.
    share: f64,
    /// How much to reclaim, in percent of the file.
    reclaim: f64,
    rounds: u32,
    memory: u64,
}

/// Brings the pages of a file into memory. They stay mapped while the returned mapping exists.
type Test = fn(&Path) -> io::Result<Option<Words>>;
const TESTS: [(&str, Test); 2] = [("mapped", mapped), ("read", read)];

impl Workload for Options {
    fn parse(given: &mut Given) -> Result<Self> {
        let found = Self {
            directory: given.text("directory")?.into(),
            tests: given.chosen("tests", &TESTS)?,
            share: given.percent("share", 70.0, "the file has to fit")?,
            reclaim: given.percent("reclaim", 100.0, "")?,
            rounds: given.within("rounds", 1, 1_000_000)?,
            memory: given.value("memory")?,
        };
        if found.bytes() < page() as u64 {
            return Err(refused("share", found.share, "less than a page"));
        }
        Ok(found)
    }

    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        let path = self.directory.join("filereclaim");
        reporter.phase("create")?;
        files::create(&path, self.bytes()).while_(path.display().to_string())?;
        let memcg = Memcg::new("filereclaim")?;
        memcg.join()?;
        for (name, test) in &self.tests {
            for _ in 0..self.rounds {
                reporter.phase("fill")?;
                files::drop_caches()?;
                let mapping = test(&path).while_(path.display().to_string())?;
                let charged = memcg.current()?;
                reporter.phase(name)?;
                let (start, before) = (Instant::now(), own_time());
                let all = memcg.reclaim(share_of(self.bytes(), self.reclaim))?;
                let (elapsed, spent) = (start.elapsed(), own_time().since(before));
                let ended = boot_time();
                reporter.phase("")?;
                let reclaimed = charged.saturating_sub(memcg.current()?);
                drop(mapping);
                for (metric, value) in [
                    ("Elapsed", elapsed.as_secs_f64()),
                    ("System", spent.system),
                    ("Reclaimed", reclaimed as f64 / MIB),
                ] {
                    reporter.timed(metric, name, value, ended)?;
                }
                if !all {
                    reporter.note("memory.reclaim reclaimed less than it was asked for")?;
                }
            }
        }
        memcg.leave()
    }
}

impl Options {
    fn bytes(&self) -> u64 {
        share_of(self.memory, self.share) / page() as u64 * page() as u64
    }
}

fn mapped(path: &Path) -> io::Result<Option<Words>> {
    let words = Words::shared(&File::options().read(true).write(true).open(path)?)?;
    for word in words.pages() {
        word.load(Relaxed);
    }
    Ok(Some(words))
}

fn read(path: &Path) -> io::Result<Option<Words>> {
    files::read_all(File::open(path)?, files::BLOCK).map(|_| None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{names, options};

    #[test]
    fn the_manifest_gives_options() {
        let options = options::<Options>("filereclaim", &[]).unwrap();
        assert_eq!(names(&options.tests), ["mapped", "read"]);
        assert_eq!((options.bytes(), options.reclaim), (512 << 20, 80.0));
    }

    #[test]
    fn all_pages_are_touched() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        files::create(&path, 5 * page() as u64).unwrap();
        let words = mapped(&path).unwrap().unwrap();
        assert_eq!(words.len(), 5 * page() / size_of::<u64>());
        assert!(read(&path).unwrap().is_none());
    }
}
