//! High orders under fragmentation. All free memory is filled with base pages, then some of each few pages are freed.
//! The free pages are scattered, so only compaction can give a free huge page.
//!
//! | phase | what happens |
//! | --- | --- |
//! | `fill` | memory is filled and fragmented |
//! | `fault` | other memory is touched, by one thread or several, which may have huge pages; the kernel compacts when it has none |
//! | `compact` | all memory is compacted by `vm.compact_memory` |

use std::fs;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use guest::arch::{huge, page};
use guest::clock::boot_time;
use guest::words::Words;

use super::reporter::Reporter;
use super::setting::Setting;
use super::tasks::{MOST, side_by_side};
use super::{Given, Result, While, Workload, WorkloadError, files, refused, share_of};

/// The kernel's settings of huge pages: whether they are used, and whether the kernel compacts if none is free.
const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const DEFRAG: &str = "/sys/kernel/mm/transparent_hugepage/defrag";
/// The file by which the kernel is told to compact.
const COMPACT: &str = "/proc/sys/vm/compact_memory";

pub struct Options {
    tests: Vec<(&'static str, Test)>,
    /// One page of this many stays.
    every: usize,
    /// The size of the memory that is touched, in percent of the machine's memory.
    share: f64,
    rounds: u32,
    /// The number of threads that touch memory.
    tasks: usize,
    memory: u64,
}

/// Takes one sample of a test.
type Test = fn(&Options, &mut Reporter) -> Result<()>;
const TESTS: [(&str, Test); 2] = [("fault", fault), ("compact", compact)];

impl Workload for Options {
    fn parse(given: &mut Given) -> Result<Self> {
        let found = Self {
            tests: given.chosen("tests", &TESTS)?,
            every: given.within("every", 2, huge() / page())?,
            share: given.percent("share", 40.0, "no more memory than that is free")?,
            rounds: given.within("rounds", 1, 1_000_000)?,
            tasks: given.within("tasks", 1, MOST)?,
            memory: given.value("memory")?,
        };
        match found.huge_pages() {
            0 => Err(refused("share", found.share, "less than a huge page")),
            _ => Ok(found),
        }
    }

    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        if !fs::exists(ENABLED).while_(ENABLED)? || !fs::exists(COMPACT).while_(COMPACT)? {
            let why = "this kernel has no transparent huge pages or no compaction (CONFIG_TRANSPARENT_HUGEPAGE, CONFIG_COMPACTION)";
            return Err(WorkloadError::Unsupported(why));
        }
        for (_, test) in &self.tests {
            for _ in 0..self.rounds {
                test(self, reporter)?;
            }
        }
        Ok(())
    }
}

impl Options {
    /// The number of huge pages that are wanted.
    fn huge_pages(&self) -> usize {
        share_of(self.memory, self.share) as usize / huge()
    }

    /// Fills the free memory and frees part of it. The rest stays until the result is dropped.
    fn fragment(&self) -> Result<Words> {
        files::drop_caches()?;
        fs::write(COMPACT, "1").while_(COMPACT)?;
        let free = number("/proc/meminfo", "MemFree:")? << 10;
        let least = number("/proc/sys/vm/min_free_kbytes", "")? << 10;
        // With less than twice the least amount free, the kernel would look for memory to reclaim, and find none.
        let bytes =
            free.saturating_sub(2 * least).saturating_sub(free / 50) as usize / page() * page();
        let words = Words::anonymous(bytes).while_("mapping memory")?;
        words.without_huge_pages().while_("MADV_NOHUGEPAGE")?;
        words.pages().for_each(|word| word.store(1, Relaxed));
        for kept in (0..bytes).step_by(self.every * page()) {
            let freed = kept + page()..(kept + self.every * page()).min(bytes);
            words.advise(freed, libc::MADV_DONTNEED).while_("MADV_DONTNEED")?;
        }
        Ok(words)
    }
}

fn fault(options: &Options, reporter: &mut Reporter) -> Result<()> {
    reporter.phase("fill")?;
    let _fragmented = options.fragment()?;
    let _enabled = Setting::new(ENABLED, "always")?;
    let _defrag = Setting::new(DEFRAG, "always")?;
    let pages = options.huge_pages();
    let (words, range) = Words::huge(pages * huge()).while_("mapping memory")?;
    let before = number("/proc/self/smaps_rollup", "AnonHugePages:")?;
    reporter.phase("fault")?;
    let all = Mutex::new(Vec::new());
    side_by_side(options.tasks, |task| {
        let mut times = Vec::new();
        for page in (task..pages).step_by(options.tasks) {
            let start = Instant::now();
            words[(range.start + page * huge()) / size_of::<u64>()].store(1, Relaxed);
            times.push((start.elapsed().as_secs_f64() * 1e6, boot_time()));
        }
        all.lock().unwrap_or_else(PoisonError::into_inner).append(&mut times);
        Ok(())
    })?;
    reporter.phase("")?;
    let in_huge = number("/proc/self/smaps_rollup", "AnonHugePages:")?.saturating_sub(before);
    let share = 100.0 * (in_huge << 10) as f64 / (pages * huge()) as f64;
    for (time, ended) in all.into_inner().unwrap_or_else(PoisonError::into_inner) {
        reporter.timed("Fault", "", time, ended)?;
    }
    reporter.sample("Huge", share)
}

fn compact(options: &Options, reporter: &mut Reporter) -> Result<()> {
    reporter.phase("fill")?;
    let _fragmented = options.fragment()?;
    let before = free_huge_pages()?;
    reporter.phase("compact")?;
    let start = Instant::now();
    fs::write(COMPACT, "1").while_(COMPACT)?;
    let (elapsed, ended) = (start.elapsed().as_secs_f64(), boot_time());
    reporter.phase("")?;
    reporter.timed("Compact", "", elapsed, ended)?;
    reporter.timed("Blocks", "", free_huge_pages()? - before, ended)
}

/// The number after a word in a file of the kernel.
fn number(file: &str, name: &str) -> Result<u64> {
    let text = fs::read_to_string(file).while_(file)?;
    let found = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok());
    found.ok_or_else(|| io::Error::other(format!("it has no {name}"))).while_(file)
}

/// The number of free blocks of the order of huge pages. A larger block counts as several.
fn free_huge_pages() -> Result<f64> {
    let text = fs::read_to_string("/proc/buddyinfo").while_("/proc/buddyinfo")?;
    Ok(text.lines().map(huge_pages_of_zone).sum())
}

/// The free huge pages in a line of `/proc/buddyinfo`: `Node 0, zone DMA32 5 4 ...`, a number for each order.
fn huge_pages_of_zone(line: &str) -> f64 {
    let order = (huge() / page()).ilog2() as usize;
    let orders = line.split_whitespace().skip(4 + order).enumerate();
    orders.map(|(order, blocks)| blocks.parse().unwrap_or(0.0) * f64::from(1 << order)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{names, options};

    #[test]
    fn the_manifest_gives_options() {
        let options = options::<Options>("compaction", &[]).unwrap();
        assert_eq!(names(&options.tests), ["fault", "compact"]);
        assert!(options.huge_pages() > 0);
    }

    #[test]
    fn large_blocks_count_as_several() {
        let line = "Node 0, zone    DMA32      5      4      3      2      1      1      1      1      1      7      3";
        assert_eq!(huge_pages_of_zone(line), 7.0 + 2.0 * 3.0);
        assert_eq!(huge_pages_of_zone(""), 0.0);
        assert!(number("/proc/meminfo", "MemFree:").unwrap() > 0);
    }
}
