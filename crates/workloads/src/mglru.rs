//! Working sets around the size of memory: a file is read repeatedly in a memory cgroup whose limit is a little
//! larger or smaller than the file. What the kernel evicts too early must be read from the disk again.
//!
//! | phase | what happens |
//! | --- | --- |
//! | `create` | the file is written to the disk |
//! | `fill` | the working set is read once |
//! | `on-cyclic-110` | with the multi-generational LRU, 110 % of the limit is read in order, several times |
//! | `off-random-80` | without it, pages of 80 % of the limit are read at random places |
//!
//! Several threads can read the file together: in order, each its own part; at random, each its share of the pages.
//!
//! The kernel's own choice of LRU is restored afterwards.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use guest::arch::{LARGEST_PAGE, page};
use guest::clock::boot_time;

use super::cgroup::Memcg;
use super::files;
use super::random::Random;
use super::reporter::Reporter;
use super::setting::Setting;
use super::tasks::{MOST, share, side_by_side};
use super::{Given, Result, While, Workload, WorkloadError, list_within, refused, share_of};

/// Where the multi-generational LRU is enabled and disabled.
const ENABLED: &str = "/sys/kernel/mm/lru_gen/enabled";

pub struct Options {
    directory: PathBuf,
    lru: Vec<(&'static str, bool)>,
    tests: Vec<(&'static str, Test)>,
    /// Working sets in percent of the limit.
    sets: Vec<u32>,
    /// The limit of the cgroup, in percent of the machine's memory.
    limit: f64,
    passes: u32,
    /// The number of threads that read.
    tasks: usize,
    memory: u64,
}

/// Reads pages of a file whose first pages are the working set: the part with these indices, or as many pages at
/// random.
type Test = fn(&File, Range<usize>, u64, &mut Random) -> io::Result<()>;
const TESTS: [(&str, Test); 2] = [("cyclic", cyclic), ("random", random)];

impl Workload for Options {
    fn parse(given: &mut Given) -> Result<Self> {
        let found = Self {
            directory: given.text("directory")?.into(),
            lru: given.chosen("lru", &[("off", false), ("on", true)])?,
            tests: given.chosen("tests", &TESTS)?,
            sets: list_within("sets", &given.text("sets")?, 1, 1000)?,
            limit: given.percent("limit", 80.0, "the machine needs the rest")?,
            passes: given.within("passes", 1, 1_000_000)?,
            tasks: given.within("tasks", 1, MOST)?,
            memory: given.value("memory")?,
        };
        if found.sets.iter().any(|set| found.pages(*set) == 0) {
            return Err(refused("limit", found.limit, "less than a page for a working set"));
        }
        Ok(found)
    }

    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        let has_mglru = Path::new(ENABLED).exists();
        if !has_mglru && self.lru.iter().all(|(_, is_on)| *is_on) {
            let why = "this kernel has no multi-generational LRU, which came with Linux 6.1 (CONFIG_LRU_GEN)";
            return Err(WorkloadError::Unsupported(why));
        }
        reporter.phase("create")?;
        let path = self.directory.join("mglru");
        let name = path.display().to_string();
        let most = self.sets.iter().map(|set| self.pages(*set)).max().unwrap_or_default();
        files::create(&path, most * page() as u64).while_(&name)?;
        for &(lru, is_on) in &self.lru {
            if is_on && !has_mglru {
                reporter.note("on: this kernel has no multi-generational LRU")?;
                continue;
            }
            let set = || Setting::new(ENABLED, if is_on { "y" } else { "n" });
            let _setting = has_mglru.then(set).transpose()?;
            for &(test, read) in &self.tests {
                for &set in &self.sets {
                    let label = format!("{lru}-{test}-{set}");
                    self.measure(&path, self.pages(set), read, &label, reporter)?;
                }
            }
        }
        fs::remove_file(&path).while_(name)
    }
}

impl Options {
    /// The number of pages of a working set.
    fn pages(&self, set: u32) -> u64 {
        share_of(self.memory, self.limit * f64::from(set) / 100.0) / page() as u64
    }

    /// Reads a working set several times, in a cgroup of its own.
    fn measure(
        &self,
        path: &Path,
        pages: u64,
        read: Test,
        label: &str,
        reporter: &mut Reporter,
    ) -> Result<()> {
        let name = path.display().to_string();
        reporter.phase("fill")?;
        files::drop_caches()?;
        let memcg = Memcg::limited("mglru", share_of(self.memory, self.limit))?;
        memcg.join()?;
        let file = File::open(path).while_(&name)?;
        let random = |task: usize| Mutex::new(Random(task as u64));
        let randoms: Vec<Mutex<Random>> = (0..self.tasks).map(random).collect();
        let pass = || {
            side_by_side(self.tasks, |task| {
                let part = share(pages as usize, task, self.tasks);
                let mut random = randoms[task].lock().unwrap_or_else(PoisonError::into_inner);
                read(&file, part, pages, &mut random).while_(&name)
            })
        };
        pass()?;
        reporter.phase(label)?;
        let mut passes = Vec::new();
        for _ in 0..self.passes {
            let before = refaults(&memcg)?;
            let rate = pages as f64 / pass()?.as_secs_f64();
            passes.push((rate, refaults(&memcg)? - before, boot_time()));
        }
        reporter.phase("")?;
        memcg.leave()?;
        for (rate, refaults, ended) in passes {
            reporter.timed("Reads", label, rate, ended)?;
            reporter.timed("Refaults", label, refaults as f64 / pages as f64 * 100.0, ended)?;
        }
        Ok(())
    }
}

/// How many pages came back soon after they were evicted.
fn refaults(memcg: &Memcg) -> Result<u64> {
    memcg.stat("workingset_refault_file")
}

fn cyclic(file: &File, mut part: Range<usize>, _: u64, _: &mut Random) -> io::Result<()> {
    let mut bytes = [0; LARGEST_PAGE];
    part.try_for_each(|number| file.read_exact_at(&mut bytes[..page()], (number * page()) as u64))
}

fn random(file: &File, mut part: Range<usize>, pages: u64, random: &mut Random) -> io::Result<()> {
    let mut bytes = [0; LARGEST_PAGE];
    part.try_for_each(|_| {
        file.read_exact_at(&mut bytes[..page()], random.below(pages) * page() as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::options;

    #[test]
    fn the_manifest_gives_options() {
        let options = options::<Options>("mglru", &[]).unwrap();
        let lru: Vec<bool> = options.lru.iter().map(|(_, is_on)| *is_on).collect();
        assert_eq!((lru, &options.sets[..]), (vec![false, true], &[80, 110, 150][..]));
        let limit = options.pages(100);
        assert_eq!(options.pages(200) / 2, limit);
    }

    #[test]
    fn only_the_working_set_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        files::create(&path, 3 * page() as u64).unwrap();
        let file = File::open(&path).unwrap();
        for read in [cyclic, random] {
            read(&file, 1..3, 3, &mut Random(0)).unwrap();
        }
        assert!(cyclic(&file, 3..4, 4, &mut Random(0)).is_err());
    }
}
