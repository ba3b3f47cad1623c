//! Starts and ends of processes and threads. The process that forks has memory, so that page tables are copied.
//!
//! | phase | what is repeated |
//! | --- | --- |
//! | `fill` | each page of the memory is written |
//! | `fork` | a process forks, the child exits, the parent waits for it |
//! | `exec` | a process starts a small program and waits for its end |
//! | `thread` | a thread is created, and joined |

#![expect(unsafe_code, reason = "fork(2)")]

use std::env;
use std::fs;
use std::io;
use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Instant;

use guest::arch::{huge, page};
use guest::clock::boot_time;
use guest::reason;
use guest::words::Words;
use rustix::process::{Pid, WaitOptions, waitpid};

use super::reporter::Reporter;
use super::tasks::STACK;
use super::{Given, Main, Result, While, Workload, refused, share_of};

/// The name under which this workload starts the program that only ends.
const EXIT: &str = "fork-exit";

pub struct Options {
    tests: Vec<(&'static str, Test)>,
    /// The memory of the process, in percent of the machine's.
    share: f64,
    operations: u32,
    rounds: u32,
    /// Whether all of the memory is huge pages; otherwise none is.
    huge: bool,
    memory: u64,
}

/// The operation that a phase repeats.
type Test = fn() -> io::Result<()>;
const TESTS: [(&str, Test); 3] = [("fork", fork), ("exec", exec), ("thread", thread)];

impl Workload for Options {
    const PARTS: &[(&str, Main)] = &[(EXIT, |_| Ok(()))];

    fn parse(given: &mut Given) -> Result<Self> {
        let found = Self {
            tests: given.chosen("tests", &TESTS)?,
            share: given.percent("share", 80.0, "the memory has to fit")?,
            operations: given.within("operations", 1, 1_000_000_000)?,
            rounds: given.within("rounds", 1, 1_000_000)?,
            huge: match &*given.text("huge")? {
                "none" => false,
                "all" => true,
                other => return Err(refused("huge", other, "neither none nor all")),
            },
            memory: given.value("memory")?,
        };
        match found.bytes() {
            0 => Err(refused("share", found.share, "less than a page of this size")),
            _ => Ok(found),
        }
    }

    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        reporter.phase("fill")?;
        let _words = self.filled(reporter)?;
        for (name, test) in &self.tests {
            reporter.phase(name)?;
            let round = |_| {
                let start = Instant::now();
                (0..self.operations).try_for_each(|_| test()).while_(*name)?;
                Ok((f64::from(self.operations) / start.elapsed().as_secs_f64(), boot_time()))
            };
            let rates = (0..self.rounds).map(round).collect::<Result<_>>()?;
            reporter.rates(name, "", rates)?;
        }
        Ok(())
    }
}

impl Options {
    /// The size of the memory in bytes, whole pages of its size.
    fn bytes(&self) -> usize {
        let page = if self.huge { huge() } else { page() };
        share_of(self.memory, self.share) as usize / page * page
    }

    /// Maps the memory and writes each page. Notes how much of it is in huge pages, if all of it should be and is not.
    fn filled(&self, reporter: &mut Reporter) -> Result<Words> {
        let (words, range) = Words::huge(self.bytes()).while_("mapping memory")?;
        if !self.huge {
            words.without_huge_pages().while_("MADV_NOHUGEPAGE")?;
        } else if let Err(error) = words.advise(range.clone(), libc::MADV_HUGEPAGE) {
            reporter.note(&format!("the memory cannot be in huge pages: {}", reason(&error)))?;
        }
        let before = in_huge_pages()?;
        for byte in range.clone().step_by(page()) {
            words[byte / size_of::<u64>()].store(1, Relaxed);
        }
        let huge = in_huge_pages()?.saturating_sub(before);
        if self.huge && huge < range.len() as u64 {
            let (huge, all) = (huge >> 10, range.len() >> 10);
            reporter.note(&format!("{huge} of {all} KiB of the memory are in huge pages"))?;
        }
        Ok(words)
    }
}

/// The memory of this process in huge pages, in bytes. 0 on a kernel that does not say it.
fn in_huge_pages() -> Result<u64> {
    const FILE: &str = "/proc/self/smaps_rollup";
    let text = fs::read_to_string(FILE).while_(FILE)?;
    let kib =
        |line: &str| line.strip_prefix("AnonHugePages:")?.split_whitespace().next()?.parse().ok();
    Ok(text.lines().find_map(kib).map_or(0, |kib: u64| kib << 10))
}

/// Forks. The child exits at once.
fn fork() -> io::Result<()> {
    // SAFETY: this process has one thread here, and the child calls nothing but _exit(2).
    let id = unsafe {
        match libc::fork() {
            0 => libc::_exit(0),
            id => Pid::from_raw(id).ok_or_else(io::Error::last_os_error)?,
        }
    };
    match waitpid(Some(id), WaitOptions::empty())? {
        Some((_, status)) if status.exit_status() == Some(0) => Ok(()),
        _ => Err(io::Error::other("the child did not exit")),
    }
}

/// Starts a program that exits at once.
fn exec() -> io::Result<()> {
    match Command::new(env::current_exe()?).arg(EXIT).status()? {
        status if status.success() => Ok(()),
        status => Err(io::Error::other(status.to_string())),
    }
}

/// Starts a thread that ends at once.
fn thread() -> io::Result<()> {
    let thread = thread::Builder::new().stack_size(STACK).spawn(|| ())?;
    thread.join().map_err(|_| io::Error::other("the thread panicked"))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _};

    use super::*;
    use crate::tests::{names, options};

    #[test]
    fn the_manifest_gives_options() {
        let options = options::<Options>("fork", &[]).unwrap();
        assert_eq!(names(&options.tests), ["fork", "exec", "thread"]);
        assert_eq!((options.operations, options.rounds), (100, 5));
        assert!(options.bytes() > 0 && !options.huge);
    }

    #[test]
    fn memory_is_in_huge_pages_or_is_not() {
        let filled = |which: &str| {
            let given = [("huge", which), ("memory", "67108864"), ("share", "10")];
            let options = options::<Options>("fork", &given).unwrap();
            let mut said = tempfile::tempfile().unwrap();
            let mut reporter = Reporter::to(said.try_clone().unwrap());
            let words = options.filled(&mut reporter).unwrap();
            assert_eq!(words[huge() / 8].load(Relaxed), 1);
            let mut text = String::new();
            said.rewind().unwrap();
            said.read_to_string(&mut text).unwrap();
            text
        };
        assert_eq!(filled("none"), "");
        // Whether this host has huge pages is luck too.
        let all = filled("all");
        assert!(all.is_empty() || all.contains("huge pages"), "{all}");
        assert!(options::<Options>("fork", &[("huge", "some")]).is_err());
    }

    #[test]
    fn a_thread_ends() {
        thread().unwrap();
    }
}
