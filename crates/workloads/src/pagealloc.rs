//! Measures allocation and freeing of pages in the kernel, by order and batch size. MM Tests has a
//! microbenchmark for this that needs SystemTap. Here a kernel module runs and times the batches
//! (`workloads/pagealloc/pagealloc.c`).
//!
//! Each order and batch is a phase with the usual name of its rows: `odr3-128` has batches of 128 blocks of order 3.
//! Each round of it gives a sample of each metric. Rounds before it, in a phase `warm-up`, give none.

use std::fs;
use std::io;
use std::path::Path;

use guest::clock::boot_time;
use rustix::io::Errno;
use rustix::thread::CpuSet;

use super::reporter::Reporter;
use super::tasks::pin;
use super::{Given, Result, While, Workload, list_within, refused};

/// The module's control file.
const RUN: &str = "/sys/module/pagealloc/parameters/run";
/// The largest order and batch of the module.
const MAX_ORDER: u32 = 10;
const MAX_BATCH: u64 = 16384;

pub struct Options {
    orders: Vec<u32>,
    batches: Vec<u64>,
    /// The number of pages of a round.
    pages: u64,
    rounds: u32,
    warm_up: u32,
    /// The size of the largest batch, in percent of the machine's memory.
    share: f64,
    cpu: usize,
    memory: u64,
}

impl Workload for Options {
    fn parse(given: &mut Given) -> Result<Self> {
        let batches = given.optional("batches")?;
        let all = || (0..=MAX_BATCH.ilog2()).map(|power| 1 << power).collect();
        let found = Self {
            orders: list_within("orders", &given.text("orders")?, 0, MAX_ORDER)?,
            batches: batches
                .map_or_else(|| Ok(all()), |it| list_within("batches", &it, 1, MAX_BATCH))?,
            pages: given.within("pages", 1, 1 << 24)?,
            rounds: given.within("rounds", 1, 1_000_000)?,
            warm_up: given.within("warm-up", 0, 1_000_000)?,
            share: given.above_zero("share")?,
            cpu: given.within("cpu", 0, CpuSet::MAX_CPU - 1)?,
            memory: given.value("memory")?,
        };
        let mut all = found.orders.iter().map(|&order| Batch { order, blocks: found.least() });
        if !all.any(|batch| found.fits(batch)) {
            let why = "no batch is small enough for so little memory";
            return Err(refused("share", found.share, why));
        }
        Ok(found)
    }

    /// Times every batch of every order.
    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        pin(self.cpu).while_(format!("running on CPU {}", self.cpu))?;
        for &order in &self.orders {
            let batches = self.batches.iter().map(|&blocks| Batch { order, blocks });
            let (fitting, large): (Vec<_>, Vec<_>) = batches.partition(|batch| self.fits(*batch));
            for &batch in &fitting {
                if !time(batch, self, Path::new(RUN), reporter)? {
                    reporter.note(&format!("{}: not enough memory", batch.name()))?;
                }
            }
            if let [first, ..] = large[..] {
                let share = self.share;
                reporter.note(&format!(
                    "{} batches from {} on are left out: more than {share} % of memory",
                    large.len(),
                    first.name()
                ))?;
            }
        }
        Ok(())
    }
}

impl Options {
    /// The number of blocks of the smallest batch.
    fn least(&self) -> u64 {
        self.batches.iter().copied().min().unwrap_or(1)
    }

    /// Whether a batch is small enough for the machine.
    fn fits(&self, batch: Batch) -> bool {
        let bytes = (batch.blocks << batch.order) * rustix::param::page_size() as u64;
        bytes as f64 <= self.memory as f64 * self.share / 100.0
    }

    /// The number of batches of a round.
    fn times(&self, batch: Batch) -> u64 {
        ((self.pages >> batch.order) / batch.blocks).max(1)
    }
}

/// How many blocks of an order are held at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Batch {
    order: u32,
    blocks: u64,
}

/// The times of a round, in nanoseconds per block.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Round {
    alloc: f64,
    free: f64,
}

/// Runs the rounds of one kind of batch. False if there was not enough memory; then the round is not reported.
fn time(batch: Batch, options: &Options, run: &Path, reporter: &mut Reporter) -> Result<bool> {
    let times = options.times(batch);
    reporter.phase("warm-up")?;
    for _ in 0..options.warm_up {
        if round(batch, times, run)?.is_none() {
            return Ok(false);
        }
    }
    reporter.phase(&batch.name())?;
    let mut rounds = Vec::new();
    for _ in 0..options.rounds {
        let Some(round) = round(batch, times, run)? else {
            break;
        };
        rounds.push((round, boot_time()));
    }
    for (Round { alloc, free }, ended) in &rounds {
        for (metric, value) in [("alloc", *alloc), ("free", *free), ("total", alloc + free)] {
            reporter.timed(metric, "", value, *ended)?;
        }
    }
    Ok(rounds.len() == options.rounds as usize)
}

/// Makes the module run a round; `None` if there was not enough memory.
fn round(batch: Batch, times: u64, run: &Path) -> Result<Option<Round>> {
    let Batch { order, blocks } = batch;
    match fs::write(run, format!("{order} {blocks} {times}")) {
        Err(error) if error.raw_os_error() == Some(Errno::NOMEM.raw_os_error()) => return Ok(None),
        wrote => wrote.while_(run.display().to_string())?,
    }
    let text = fs::read_to_string(run).while_(run.display().to_string())?;
    let round = Round::read(&text, blocks * times);
    let wrong = || io::Error::other(format!("{blocks} x {times} blocks gave `{}`", text.trim()));
    round.ok_or_else(wrong).while_(batch.name()).map(Some)
}

impl Batch {
    /// The usual name of the batch's rows in tables.
    fn name(self) -> String {
        format!("odr{}-{}", self.order, self.blocks)
    }
}

impl Round {
    /// Parses the module's output: the number of blocks, which must be `wanted`, and the nanoseconds for allocation
    /// and for freeing.
    fn read(text: &str, wanted: u64) -> Option<Self> {
        let figures: Vec<u64> =
            text.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let [blocks, alloc, free] = figures[..] else { return None };
        let each = |all: u64| all as f64 / blocks as f64;
        (blocks == wanted && blocks > 0).then(|| Self { alloc: each(alloc), free: each(free) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::options;

    #[test]
    fn the_manifest_gives_options() {
        let options = options::<Options>("pagealloc", &[]).unwrap();
        assert_eq!(options.orders, [0, 1]);
        assert_eq!((options.batches[0], options.batches.len()), (1, 15));
        assert_eq!(options.batches.last(), Some(&MAX_BATCH));
        let batch = |order, blocks| Batch { order, blocks };
        assert_eq!(batch(3, 128).name(), "odr3-128");
        // A tenth of 2 GiB is 52428 pages.
        let fits = [(0, 16384), (1, 16384), (2, 16384), (10, 32), (10, 64)]
            .map(|(order, blocks)| options.fits(batch(order, blocks)));
        assert_eq!(fits, [true, true, false, true, false]);
        let times = [(0, 1), (0, 4096), (0, 16384), (10, 1), (10, 4), (10, 8)]
            .map(|(order, blocks)| options.times(batch(order, blocks)));
        assert_eq!(times, [4096, 1, 1, 4, 1, 1]);
    }

    #[test]
    fn times_are_per_block() {
        let round = Round::read("100 2000 500\n", 100);
        assert_eq!(round, Some(Round { alloc: 20.0, free: 5.0 }));
        for text in ["99 2000 500", "100 2000", "100 2000 500 1", "", "100 x 500", "-1 0 0"] {
            assert_eq!(Round::read(text, 100), None, "{text}");
        }
        assert_eq!(Round::read("0 0 0", 0), None);
    }

    #[test]
    fn a_missing_module_is_named() {
        let run = Path::new("/nonexistent/run");
        let error = round(Batch { order: 0, blocks: 1 }, 1, run).unwrap_err().to_string();
        assert!(error.starts_with("/nonexistent/run: No such file"), "{error}");
    }
}
