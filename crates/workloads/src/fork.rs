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
use std::io;
use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Instant;

use guest::arch::PAGE;
use guest::clock::boot_time;
use guest::words::Words;
use rustix::process::{Pid, WaitOptions, waitpid};

use super::reporter::Reporter;
use super::{Given, Main, Result, While, Workload, refused, share_of};

/// The name under which this workload starts the program that only ends.
const EXIT: &str = "fork-exit";

pub struct Options {
    tests: Vec<(&'static str, Test)>,
    /// The memory of the process, in percent of the machine's.
    share: f64,
    operations: u32,
    rounds: u32,
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
            memory: given.value("memory")?,
        };
        match found.pages() {
            0 => Err(refused("share", found.share, "less than a page")),
            _ => Ok(found),
        }
    }

    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        reporter.phase("fill")?;
        let words = Words::anonymous(self.pages() * PAGE).while_("mapping memory")?;
        words.pages().for_each(|word| word.store(1, Relaxed));
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
    fn pages(&self) -> usize {
        share_of(self.memory, self.share) as usize / PAGE
    }
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
    let thread = thread::Builder::new().spawn(|| ())?;
    thread.join().map_err(|_| io::Error::other("the thread panicked"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{names, options};

    #[test]
    fn the_manifest_gives_options() {
        let options = options::<Options>("fork", &[]).unwrap();
        assert_eq!(names(&options.tests), ["fork", "exec", "thread"]);
        assert_eq!((options.operations, options.rounds), (100, 5));
        assert!(options.pages() > 0);
    }

    #[test]
    fn a_thread_ends() {
        thread().unwrap();
    }
}
