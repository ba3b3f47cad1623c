//! Changes the protection of shared memory. A shared mapping of dirty base pages is made read-only and
//! writable again, several times. The kernel changes each page's entry in the page table.
//!
//! | phase | what happens |
//! | --- | --- |
//! | `fill` | each page is written |
//! | `protect` | the mapping is made read-only by `mprotect(2)`: this is timed |
//! | `restore` | it is made writable again: this is timed |

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use guest::arch::page;
use guest::clock::boot_time;
use guest::words::Words;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::MprotectFlags;

use super::reporter::Reporter;
use super::{Given, Result, While, Workload, refused, share_of};

pub struct Options {
    /// The size of the mapping, in percent of the machine's memory.
    share: f64,
    rounds: u32,
    memory: u64,
}

impl Workload for Options {
    fn parse(given: &mut Given) -> Result<Self> {
        let found = Self {
            share: given.percent("share", 90.0, "the mapping has to fit")?,
            rounds: given.within("rounds", 1, 1_000_000)?,
            memory: given.value("memory")?,
        };
        if found.pages() == 0 {
            return Err(refused("share", found.share, "less than a page"));
        }
        Ok(found)
    }

    /// Fills, then protects and restores, once for each round.
    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        reporter.phase("fill")?;
        let words = shared(self.pages()).while_("mapping shared memory")?;
        words.pages().for_each(|word| word.store(1, Relaxed));
        for _ in 0..self.rounds {
            for (phase, flags) in [
                ("protect", MprotectFlags::READ),
                ("restore", MprotectFlags::READ | MprotectFlags::WRITE),
            ] {
                reporter.phase(phase)?;
                let start = Instant::now();
                words.protect(flags).while_(phase)?;
                let elapsed = start.elapsed();
                let ended = boot_time();
                let each = elapsed.as_nanos() as f64 / self.pages() as f64;
                reporter.timed(phase, "", each, ended)?;
            }
        }
        // This keeps the exit of the process out of the last phase.
        reporter.phase("")
    }
}

impl Options {
    fn pages(&self) -> usize {
        share_of(self.memory, self.share) as usize / page()
    }
}

/// A shared mapping of `pages` pages.
fn shared(pages: usize) -> std::io::Result<Words> {
    let file = memfd_create("mprotect", MemfdFlags::CLOEXEC)?;
    ftruncate(&file, (pages * page()) as u64)?;
    Words::shared(&file.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::options;

    #[test]
    fn the_manifest_gives_options() {
        let options = options::<Options>("mprotect", &[]).unwrap();
        assert_eq!((options.share, options.rounds), (12.5, 5));
        assert!(options.pages() > 0);
    }

    #[test]
    fn a_mapping_can_be_written_after_protection() {
        let words = shared(3).unwrap();
        words[0].store(7, Relaxed);
        words.protect(MprotectFlags::READ).unwrap();
        assert_eq!(words[0].load(Relaxed), 7);
        words.protect(MprotectFlags::READ | MprotectFlags::WRITE).unwrap();
        words[0].store(8, Relaxed);
        assert_eq!((words[0].load(Relaxed), words.len()), (8, 3 * page() / 8));
    }
}
