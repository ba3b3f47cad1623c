//! System calls that change an address space, by several tasks at once. Each task repeats one of these:
//!
//! | phase | what is repeated |
//! | --- | --- |
//! | `map-threads-4` | 4 threads map memory without touching it, and unmap it |
//! | `brk-...` | the heap grows by a page and shrinks again; processes only |
//! | `mprotect-...` | a page in the middle of a mapping is made read-only and writable again |
//! | `madvise-...` | a page is written, and dropped by `MADV_DONTNEED` |

#![expect(unsafe_code, reason = "system calls on mappings")]

use std::io;
use std::ptr;

use guest::arch::page;
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap,
};

use super::reporter::Reporter;
use super::tasks::Tasks;
use super::{Given, Result, While, Workload, refused};

/// The size of a mapping in bytes.
const MAPPING: usize = 128 << 20;

pub struct Options {
    tests: Vec<(&'static str, Test)>,
    tasks: Vec<Tasks>,
    /// The number of operations of all tasks together.
    operations: u64,
    rounds: u32,
}

/// Repeats an operation this many times.
type Test = fn(u64) -> io::Result<()>;
const BRK: &str = "brk";
const TESTS: [(&str, Test); 4] =
    [("map", map), (BRK, brk), ("mprotect", protect), ("madvise", write_and_drop)];

impl Workload for Options {
    fn parse(given: &mut Given) -> Result<Self> {
        let found = Self {
            tests: given.chosen("tests", &TESTS)?,
            tasks: Tasks::given(given)?,
            operations: given.within("operations", 1, 1_000_000_000)?,
            rounds: given.within("rounds", 1, 1_000_000)?,
        };
        let is_alone = found.tests.iter().all(|(name, _)| *name == BRK);
        if is_alone && !found.tasks.iter().any(|tasks| tasks.are_processes()) {
            return Err(refused("by", "threads", "brk is for processes only"));
        }
        Ok(found)
    }

    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        for (name, test) in &self.tests {
            // Threads share one heap, so `brk` is for processes only.
            let of_test = self.tasks.iter().filter(|it| *name != BRK || it.are_processes());
            for tasks in of_test {
                let each = self.operations.div_ceil(tasks.count as u64);
                reporter.phase(&format!("{name}-{tasks}"))?;
                let work = |_| test(each).while_(*name);
                let rates = tasks.rates(self.rounds, (each * tasks.count as u64) as f64, work)?;
                reporter.rates(name, &tasks.to_string(), rates)?;
            }
        }
        Ok(())
    }
}

fn map(operations: u64) -> io::Result<()> {
    (0..operations).try_for_each(|_| Mapping::new().map(drop))
}

fn protect(operations: u64) -> io::Result<()> {
    let mapping = Mapping::new()?;
    (0..operations).try_for_each(|_| {
        mapping.protect(MprotectFlags::READ)?;
        mapping.protect(MprotectFlags::READ | MprotectFlags::WRITE)
    })
}

fn write_and_drop(operations: u64) -> io::Result<()> {
    let mapping = Mapping::new()?;
    (0..operations).try_for_each(|_| mapping.write_and_drop())
}

/// A private anonymous mapping of [`MAPPING`] bytes.
struct Mapping(*mut u8);

impl Mapping {
    fn new() -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // Nothing is reserved, so that tasks do not reach a limit of the kernel.
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: the kernel chooses the place, so nothing else is replaced.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), MAPPING, access, flags) }?;
        Ok(Self(start.cast()))
    }

    /// The page in the middle. It does not begin a huge page.
    fn page(&self) -> *mut u8 {
        // SAFETY: it is within the mapping.
        unsafe { self.0.add(MAPPING / 2 + page()) }
    }

    fn protect(&self, flags: MprotectFlags) -> io::Result<()> {
        // SAFETY: the page is this mapping's, and nobody refers to it.
        Ok(unsafe { mprotect(self.page().cast(), page(), flags) }?)
    }

    fn write_and_drop(&self) -> io::Result<()> {
        // SAFETY: as above; the mapping is writable.
        unsafe {
            self.page().write_volatile(1);
            Ok(madvise(self.page().cast(), page(), Advice::LinuxDontNeed)?)
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping, and nobody refers to it.
        let _ = unsafe { munmap(self.0.cast(), MAPPING) };
    }
}

/// Lets the heap grow by a page and shrink again.
fn brk(operations: u64) -> io::Result<()> {
    // SAFETY: the end never lies before the current one, so all of the heap stays. The C library does not
    // allocate meanwhile: this process has one thread.
    let set = |end: usize| unsafe { libc::syscall(libc::SYS_brk, end) as usize };
    let end = set(0);
    for _ in 0..operations {
        if set(end + page()) != end + page() || set(end) != end {
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{names, options};

    #[test]
    fn the_manifest_gives_options() {
        let options = options::<Options>("mmap", &[]).unwrap();
        assert_eq!(names(&options.tests), ["map", "brk", "mprotect", "madvise"]);
        assert_eq!((options.tasks.len(), options.operations, options.rounds), (4, 10_000, 3));
    }

    #[test]
    fn mappings_are_changed_and_gone() {
        for test in [map, protect, write_and_drop] {
            test(3).unwrap();
        }
        let mapping = Mapping::new().unwrap();
        // SAFETY: the page is mapped and writable.
        unsafe { mapping.page().write_volatile(7) };
        mapping.write_and_drop().unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { mapping.page().read_volatile() }, 0);
    }
}
