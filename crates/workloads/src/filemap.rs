//! Readers that each map a file and read a word of each page. Together the files do not fit in memory, so the kernel
//! reclaims pages while it allocates others. The files are sparse: a page that is read is allocated and cleared, and
//! nothing is read from the disk.
//!
//! | phase | what happens |
//! | --- | --- |
//! | `create` | files of holes are made |
//! | `sequential-4` | 4 readers read their files in order |
//! | `random-4` | 4 readers read as many pages at random places |

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use guest::arch::page;
use guest::clock::boot_time;
use guest::sys::children_time;
use guest::words::Words;

use super::cgroup::Memcg;
use super::random::Random;
use super::reporter::Reporter;
use super::tasks::{Tasks, figures};
use super::{Given, MIB, Result, While, Workload, files, percent, refused, share_of};

pub struct Options {
    directory: PathBuf,
    tests: Vec<(&'static str, Test)>,
    tasks: Vec<Tasks>,
    /// The size of all files together, in percent of the machine's memory.
    share: f64,
    /// The limit of a memory cgroup, in percent of the machine's memory. Without it there is no cgroup.
    limit: Option<f64>,
    memory: u64,
}

/// Reads a word of each page of a mapped file. The number is that of the reader, so that readers differ.
type Test = fn(&Words, usize);
const TESTS: [(&str, Test); 2] = [("sequential", sequential), ("random", random)];

impl Workload for Options {
    fn parse(given: &mut Given) -> Result<Self> {
        let limit = given.optional("limit")?;
        let limit = limit.map(|it| percent("limit", &it, 80.0, "the machine needs the rest"));
        let found = Self {
            directory: given.text("directory")?.into(),
            tests: given.chosen("tests", &TESTS)?,
            tasks: Tasks::processes_given(given)?,
            share: given.above_zero("share")?,
            limit: limit.transpose()?,
            memory: given.value("memory")?,
        };
        match found.tasks.iter().map(|tasks| tasks.count).max() {
            Some(most) if found.pages(most) == 0 => {
                let why = format!("not a page for each of {most} readers");
                Err(refused("share", found.share, why))
            }
            _ => Ok(found),
        }
    }

    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        for &tasks in &self.tasks {
            let pages = self.pages(tasks.count);
            for (name, test) in &self.tests {
                reporter.phase("create")?;
                let path = |number: usize| self.directory.join(format!("filemap{number}"));
                let paths: Vec<PathBuf> = (0..tasks.count).map(path).collect();
                for path in &paths {
                    create(path, pages).while_(path.display().to_string())?;
                }
                files::drop_caches()?;
                let memcg = self.limit.map(|limit| self.memcg(limit)).transpose()?;
                let times = figures(tasks.count).while_("times")?;
                let work = |number: usize| {
                    let path = &paths[number];
                    let start = Instant::now();
                    let words = map(path).while_(path.display().to_string())?;
                    test(&words, number);
                    times[number].store(start.elapsed().as_nanos() as u64, Relaxed);
                    Ok(())
                };
                let label = format!("{name}-{}", tasks.count);
                reporter.phase(&label)?;
                let before = children_time();
                let elapsed = tasks.timed(work)?.as_secs_f64();
                let (spent, ended) = (children_time().since(before), boot_time());
                reporter.phase("")?;
                if let Some(memcg) = memcg {
                    memcg.leave()?;
                }
                let mut report =
                    |metric: &str, value: f64| reporter.timed(metric, &label, value, ended);
                let bytes = (pages * page()) as f64;
                report("Sum", bytes * tasks.count as f64 / MIB / elapsed)?;
                for time in times.iter() {
                    report("Throughput", bytes / MIB / (time.load(Relaxed) as f64 / 1e9))?;
                }
                report("System", spent.system)?;
                report("Elapsed", elapsed)?;
                for path in &paths {
                    fs::remove_file(path).while_(path.display().to_string())?;
                }
            }
        }
        Ok(())
    }
}

impl Options {
    /// The number of pages of each reader's file, if there are `readers` readers.
    fn pages(&self, readers: usize) -> usize {
        share_of(self.memory, self.share) as usize / readers / page()
    }

    /// Makes a cgroup with the limit. This process joins it, and so do the readers that it starts.
    fn memcg(&self, limit: f64) -> Result<Memcg> {
        let memcg = Memcg::limited("filemap", share_of(self.memory, limit))?;
        memcg.join()?;
        Ok(memcg)
    }
}

/// Makes a file that is one hole.
fn create(path: &Path, pages: usize) -> io::Result<()> {
    File::create(path)?.set_len((pages * page()) as u64)
}

fn map(path: &Path) -> io::Result<Words> {
    Words::shared(&File::options().read(true).write(true).open(path)?)
}

fn sequential(words: &Words, _: usize) {
    words.pages().for_each(read);
}

/// Reads as many pages as the file has, at random places.
fn random(words: &Words, number: usize) {
    let each = page() / size_of::<AtomicU64>();
    let pages = words.len() / each;
    let mut random = Random(number as u64);
    for _ in 0..pages {
        read(&words[random.below(pages as u64) as usize * each]);
    }
}

fn read(word: &AtomicU64) {
    word.load(Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{names, options};

    #[test]
    fn the_manifest_gives_options() {
        let options = options::<Options>("filemap", &[]).unwrap();
        assert_eq!((names(&options.tests), options.limit), (vec!["sequential"], None));
        assert_eq!(options.pages(4), 3 * 1024 * 1024 * 1024 / 4 / page());
    }

    #[test]
    fn files_of_holes_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        create(&path, 9).unwrap();
        let words = map(&path).unwrap();
        assert_eq!(words.pages().count(), 9);
        sequential(&words, 0);
        random(&words, 3);
    }
}
