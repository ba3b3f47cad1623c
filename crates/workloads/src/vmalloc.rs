//! Measures vmalloc and vfree in the kernel, by the size of areas and by what else is allocated. A kernel module runs
//! and times the tests (`workloads/vmalloc/timevmalloc.c`).
//!
//! | phase | what happens |
//! | --- | --- |
//! | `fix_size-16` | areas of 16 pages, each freed before the next one is allocated |
//! | `random_size-16` | the same with areas of 1 to 16 pages |
//! | `long_busy_list-16` | all areas are allocated, then all are freed |
//! | `full_fit-16` | areas are allocated and freed that fit exactly into holes between others |
//! | `huge_fix_size-512` | like `fix_size`, by `vmalloc_huge` |

use std::fs;
use std::io;

use guest::arch::page;
use guest::clock::boot_time;
use rustix::io::Errno;
use rustix::thread::CpuSet;

use super::reporter::Reporter;
use super::tasks::pin;
use super::{Given, Result, While, Workload, WorkloadError, list_within, refused, share_of};

/// The module's control file.
const RUN: &str = "/sys/module/timevmalloc/parameters/run";
/// The tests, with the numbers by which the module knows them.
const TESTS: [(&str, u32); 5] = [
    ("fix_size", 0),
    ("random_size", 1),
    ("long_busy_list", 2),
    ("full_fit", 3),
    (HUGE, HUGE_NUMBER),
];
/// The test that kernels before Linux 5.18 cannot do.
const HUGE: &str = "huge_fix_size";
const HUGE_NUMBER: u32 = 4;
const NO_HUGE: &str = "this kernel has no vmalloc_huge()";

pub struct Options {
    tests: Vec<(&'static str, u32)>,
    /// The sizes of areas, in pages.
    pages: Vec<u64>,
    /// The number of areas of a sample.
    areas: u64,
    rounds: u32,
    /// The largest size of all areas together, in percent of the machine's memory.
    share: f64,
    cpu: usize,
    memory: u64,
}

impl Workload for Options {
    fn parse(given: &mut Given) -> Result<Self> {
        let found = Self {
            tests: given.chosen("tests", &TESTS)?,
            pages: list_within("pages", &given.text("pages")?, 1, 65536)?,
            areas: given.within("areas", 1, 100_000)?,
            rounds: given.within("rounds", 1, 1_000_000)?,
            share: given.percent("share", 70.0, "the memory has to fit")?,
            cpu: given.within("cpu", 0, CpuSet::MAX_CPU - 1)?,
            memory: given.value("memory")?,
        };
        if !found.pages.iter().any(|pages| found.fits(*pages)) {
            let why = format!("too little for {} areas", found.areas);
            return Err(refused("share", found.share, why));
        }
        Ok(found)
    }

    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        pin(self.cpu).while_(format!("running on CPU {}", self.cpu))?;
        let asks_for_huge = self.tests.iter().any(|(name, _)| *name == HUGE);
        let lacks_huge = asks_for_huge && !has_huge().while_(HUGE)?;
        if lacks_huge {
            reporter.note(&format!("{HUGE}: {NO_HUGE}"))?;
            if self.tests.iter().all(|(name, _)| *name == HUGE) {
                return Err(WorkloadError::Unsupported(NO_HUGE));
            }
        }
        for &(name, test) in self.tests.iter().filter(|(name, _)| !(lacks_huge && *name == HUGE)) {
            for &pages in &self.pages {
                let label = format!("{name}-{pages}");
                if !self.fits(pages) {
                    let share = self.share;
                    reporter.note(&format!("{label}: more than {share} % of memory"))?;
                    continue;
                }
                reporter.phase(&label)?;
                let round = |number| {
                    let time = time(test, pages, self.areas, number).while_(&label)?;
                    Ok((time, boot_time()))
                };
                let rounds = (0..self.rounds).map(round).collect::<Result<Vec<_>>>()?;
                reporter.rates(name, &pages.to_string(), rounds)?;
            }
        }
        Ok(())
    }
}

/// Whether the module can ask for huge pages. Tries it with an area of one page.
fn has_huge() -> io::Result<bool> {
    match time(HUGE_NUMBER, 1, 1, 0) {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) => Ok(false),
        Err(error) => Err(error),
    }
}

impl Options {
    /// Whether all areas fit if they have this size.
    fn fits(&self, pages: u64) -> bool {
        pages * self.areas * page() as u64 <= share_of(self.memory, self.share)
    }
}

/// Makes the module run a test. Returns how many microseconds an area takes.
fn time(test: u32, pages: u64, areas: u64, seed: u32) -> io::Result<f64> {
    fs::write(RUN, format!("{test} {pages} {areas} {seed}"))?;
    let text = fs::read_to_string(RUN)?;
    of_area(&text, areas)
        .ok_or_else(|| io::Error::other(format!("{areas} areas gave `{}`", text.trim())))
}

/// The microseconds for an area, from the module's output: the number of areas, and the nanoseconds of all together.
fn of_area(text: &str, wanted: u64) -> Option<f64> {
    let (areas, nanoseconds) = text.trim().split_once(' ')?;
    let areas = areas.parse::<u64>().ok().filter(|areas| *areas == wanted && *areas > 0)?;
    Some(nanoseconds.parse::<u64>().ok()? as f64 / 1e3 / areas as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::options;

    #[test]
    fn the_manifest_gives_options() {
        let options = options::<Options>("vmalloc", &[]).unwrap();
        assert_eq!((&options.pages[..], options.tests.len()), (&[1, 16][..], 4));
        assert!(options.fits(16) && !options.fits(512));
    }

    #[test]
    fn times_are_per_area() {
        assert_eq!(of_area("100 250000\n", 100), Some(2.5));
        for text in ["99 2000", "100", "", "100 x", "0 0"] {
            assert_eq!(of_area(text, 100), None, "{text}");
        }
        let error = time(0, 1, 1, 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
