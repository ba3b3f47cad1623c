//! Page faults of several tasks at once. Each task maps its memory, touches every page once and unmaps it.
//!
//! | phase | what happens |
//! | --- | --- |
//! | `prepare` | the files of the tasks are filled, in memory (tmpfs) |
//! | `anonymous-threads-4` | 4 threads write to private anonymous memory |
//! | `private-processes-1` | a process writes to a private mapping of its file: the page is copied |
//! | `shared-...` | a shared mapping of the file is written |
//! | `read-...` | a shared mapping of the file is read |

use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::Ordering::Relaxed;

use guest::arch::{LARGEST_PAGE, page};
use guest::words::Words;
use rustix::fs::{MemfdFlags, memfd_create};

use super::reporter::Reporter;
use super::tasks::Tasks;
use super::{Given, Result, While, Workload, refused, share_of};

pub struct Options {
    tests: Vec<(&'static str, Test)>,
    tasks: Vec<Tasks>,
    /// The memory of all tasks together, in percent of the machine's.
    share: f64,
    rounds: u32,
    memory: u64,
}

/// Maps this many pages, of the file or anonymous, touches each, and unmaps them.
type Test = fn(&File, usize) -> io::Result<()>;
const TESTS: [(&str, Test); 4] =
    [("anonymous", anonymous), ("private", private), ("shared", shared), ("read", read)];

impl Workload for Options {
    fn parse(given: &mut Given) -> Result<Self> {
        let found = Self {
            tests: given.chosen("tests", &TESTS)?,
            tasks: Tasks::given(given)?,
            share: given.percent("share", 40.0, "files and copies have to fit")?,
            rounds: given.within("rounds", 1, 1_000_000)?,
            memory: given.value("memory")?,
        };
        match found.tasks.iter().map(|tasks| tasks.count).max() {
            Some(most) if found.pages(most) == 0 => {
                let why = format!("not a page for each of {most} tasks");
                Err(refused("share", found.share, why))
            }
            _ => Ok(found),
        }
    }

    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        for &tasks in &self.tasks {
            reporter.phase("prepare")?;
            let pages = self.pages(tasks.count);
            let files: Vec<File> = (0..tasks.count)
                .map(|_| filled(pages))
                .collect::<io::Result<_>>()
                .while_("filling files")?;
            for (name, test) in &self.tests {
                reporter.phase(&format!("{name}-{tasks}"))?;
                let work = |number: usize| test(&files[number], pages).while_("touching memory");
                let rates = tasks.rates(self.rounds, (pages * tasks.count) as f64, work)?;
                reporter.rates(name, &tasks.to_string(), rates)?;
            }
        }
        Ok(())
    }
}

impl Options {
    /// The number of pages of each of `tasks` tasks.
    fn pages(&self, tasks: usize) -> usize {
        share_of(self.memory, self.share) as usize / tasks / page()
    }
}

fn anonymous(_: &File, pages: usize) -> io::Result<()> {
    Words::anonymous(pages * page()).map(write)
}

fn private(file: &File, _: usize) -> io::Result<()> {
    Words::private(file).map(write)
}

fn shared(file: &File, _: usize) -> io::Result<()> {
    Words::shared(file).map(write)
}

fn read(file: &File, _: usize) -> io::Result<()> {
    for word in Words::shared(file)?.pages() {
        word.load(Relaxed);
    }
    Ok(())
}

fn write(words: Words) {
    words.pages().for_each(|word| word.store(1, Relaxed));
}

/// A file in memory with `pages` pages.
fn filled(pages: usize) -> io::Result<File> {
    let mut file: File = memfd_create("pagefault", MemfdFlags::CLOEXEC)?.into();
    let bytes = [1; LARGEST_PAGE];
    for _ in 0..pages {
        file.write_all(&bytes[..page()])?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{names, options};

    #[test]
    fn the_manifest_gives_options() {
        let options = options::<Options>("pagefault", &[]).unwrap();
        assert_eq!(names(&options.tests), ["anonymous", "private", "shared", "read"]);
        let tasks: Vec<String> = options.tasks.iter().map(Tasks::to_string).collect();
        assert_eq!(tasks, ["processes-1", "processes-4", "threads-1", "threads-4"]);
        assert_eq!(options.pages(4), 2 * 1024 * 1024 * 1024 / 20 / 4 / page());
    }

    #[test]
    fn a_private_mapping_leaves_its_file_alone() {
        let file = filled(3).unwrap();
        private(&file, 3).unwrap();
        let words = Words::shared(&file).unwrap();
        assert_eq!(words[0].load(Relaxed), 0x0101_0101_0101_0101);
        shared(&file, 3).unwrap();
        assert_eq!(words[0].load(Relaxed), 1);
        assert_eq!(words.len(), 3 * page() / 8);
        anonymous(&file, 3).unwrap();
        read(&file, 3).unwrap();
    }
}
