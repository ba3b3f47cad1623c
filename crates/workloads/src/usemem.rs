//! Processes that together use more anonymous memory than their memory cgroup allows, so that the kernel swaps.
//!
//! The phase `fill-4` has 4 processes that write each page of their memory in order, `passes` times, and free it.

use std::fs;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use guest::arch::page;
use guest::clock::boot_time;
use guest::sys::children_time;
use guest::words::Words;

use super::cgroup::Memcg;
use super::reporter::Reporter;
use super::tasks::{Tasks, figures};
use super::{Given, MIB, Result, While, Workload, WorkloadError, refused, share_of};

const NANOSECONDS: f64 = 1e9;

pub struct Options {
    tasks: Vec<Tasks>,
    /// The memory of all processes together, in percent of the machine's.
    share: f64,
    /// The limit of the cgroup, in percent of the machine's memory.
    limit: f64,
    passes: u32,
    memory: u64,
}

impl Workload for Options {
    fn parse(given: &mut Given) -> Result<Self> {
        let found = Self {
            tasks: Tasks::processes_given(given)?,
            share: given.above_zero("share")?,
            limit: given.percent("limit", 80.0, "the machine needs the rest")?,
            passes: given.within("passes", 1, 1_000_000)?,
            memory: given.value("memory")?,
        };
        match found.tasks.iter().map(|tasks| tasks.count).max() {
            Some(most) if found.pages(most) == 0 => {
                let why = format!("not a page for each of {most} processes");
                Err(refused("share", found.share, why))
            }
            _ => Ok(found),
        }
    }

    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        if self.share > self.limit && !has_swap() {
            let why =
                "more memory than the limit needs swap: give the machine some ([machine.swap])";
            return Err(WorkloadError::Arguments(why.into()));
        }
        for &tasks in &self.tasks {
            let memcg = Memcg::limited("usemem", share_of(self.memory, self.limit))?;
            let (pages, times) =
                (self.pages(tasks.count), figures(2 * tasks.count).while_("times")?);
            let work = |number: usize| {
                memcg.join()?;
                let [filled, freed] = [2 * number, 2 * number + 1].map(|at| &times[at]);
                let start = Instant::now();
                let words = Words::anonymous(pages * page()).while_("mapping memory")?;
                for pass in 0..self.passes {
                    let pages = words.pages();
                    pages.for_each(|word| word.store(u64::from(pass) + 1, Relaxed));
                }
                filled.store(start.elapsed().as_nanos() as u64, Relaxed);
                let start = Instant::now();
                drop(words);
                freed.store(start.elapsed().as_nanos() as u64, Relaxed);
                memcg.leave()
            };
            reporter.phase(&format!("fill-{}", tasks.count))?;
            let (before, bytes) =
                (children_time(), (pages * page()) as f64 * f64::from(self.passes));
            let elapsed = tasks.timed(work)?;
            let spent = children_time().since(before);
            reporter.phase("")?;
            let label = tasks.count.to_string();
            let mut report =
                |metric: &str, value: f64| reporter.timed(metric, &label, value, boot_time());
            report("Elapsed", elapsed.as_secs_f64())?;
            report("System", spent.system)?;
            report("Sum", bytes * tasks.count as f64 / MIB / elapsed.as_secs_f64())?;
            let seconds = |at: usize| times[at].load(Relaxed) as f64 / NANOSECONDS;
            for number in 0..tasks.count {
                report("Throughput", bytes / MIB / seconds(2 * number))?;
                report("Free", seconds(2 * number + 1))?;
            }
        }
        Ok(())
    }
}

impl Options {
    /// The number of pages of each of `processes` processes.
    fn pages(&self, processes: usize) -> usize {
        share_of(self.memory, self.share) as usize / processes / page()
    }
}

/// Whether the machine has swap space (`/proc/swaps` has a heading, and a line for each).
fn has_swap() -> bool {
    fs::read_to_string("/proc/swaps").is_ok_and(|text| text.lines().count() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::options;

    #[test]
    fn the_manifest_gives_options() {
        let options = options::<Options>("usemem", &[]).unwrap();
        let tasks: Vec<String> = options.tasks.iter().map(Tasks::to_string).collect();
        assert_eq!(tasks, ["processes-1", "processes-4"]);
        assert_eq!((options.share, options.limit, options.passes), (40.0, 30.0, 1));
    }
}
