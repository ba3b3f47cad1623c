//! Transparent huge pages and smaller folios of anonymous memory.
//!
//! | phase | what happens |
//! | --- | --- |
//! | `touch-64K` | each base page of the memory is written once, and the kernel may use folios of 64 KiB alone |
//! | `unmap-64K` | that memory is unmapped |
//! | `fill` | memory is filled with base pages for `collapse`, with huge pages for `split` |
//! | `collapse` | base pages become huge pages by `MADV_COLLAPSE` |
//! | `split` | each huge page is split, by `MADV_FREE` of a base page in it |
//!
//! Several threads can do this together, each with its part of the memory. One of them unmaps all.
//!
//! For each phase the settings in `/sys/kernel/mm/transparent_hugepage` are changed, and restored afterwards.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use guest::arch::{huge, page};
use guest::clock::boot_time;
use guest::words::Words;
use rustix::io::Errno;

use super::reporter::Reporter;
use super::setting::Setting;
use super::tasks::{MOST, share, side_by_side};
use super::{Given, MIB, Result, While, Workload, WorkloadError, list, refused, share_of};

/// Where the kernel's settings are.
const SETTINGS: &str = "/sys/kernel/mm/transparent_hugepage";
/// How often a collapse is tried if the kernel returns `EAGAIN`.
const TRIES: u32 = 10;

pub struct Options {
    tests: Vec<(&'static str, Test)>,
    /// The sizes of folios of `touch`, in bytes.
    sizes: Vec<usize>,
    /// The number of threads.
    tasks: usize,
    /// The size of the memory, in percent of the machine's.
    share: f64,
    rounds: u32,
    memory: u64,
}

/// Takes the samples of a test. Returns false and writes a note if the kernel cannot do the test.
type Test = fn(&Options, &mut Reporter) -> Result<bool>;
const TESTS: [(&str, Test); 3] = [("touch", touch), ("collapse", collapse), ("split", split)];

impl Workload for Options {
    fn parse(given: &mut Given) -> Result<Self> {
        let sizes: Vec<usize> = list("sizes", &given.text("sizes")?)?;
        let in_range = |size: &usize| size.is_power_of_two() && (4..=huge() >> 10).contains(size);
        if let Some(wrong) = sizes.iter().find(|size| !in_range(size)) {
            return Err(refused(
                "sizes",
                wrong,
                format!("a power of two from 4 to {}", huge() >> 10),
            ));
        }
        let found = Self {
            tests: given.chosen("tests", &TESTS)?,
            sizes: sizes.into_iter().map(|size| size << 10).collect(),
            tasks: given.within("tasks", 1, MOST)?,
            share: given.percent("share", 70.0, "the memory has to fit")?,
            rounds: given.within("rounds", 1, 1_000_000)?,
            memory: given.value("memory")?,
        };
        if found.bytes() / huge() < found.tasks {
            return Err(refused("share", found.share, "less than a huge page for each thread"));
        }
        Ok(found)
    }

    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        if !Path::new(SETTINGS).exists() {
            let why = "this kernel has no transparent huge pages (CONFIG_TRANSPARENT_HUGEPAGE)";
            return Err(WorkloadError::Unsupported(why));
        }
        let mut done = false;
        for (_, test) in &self.tests {
            done |= test(self, reporter)?;
        }
        match done {
            true => Ok(()),
            false => Err(WorkloadError::Unsupported("this kernel can do none of these tests")),
        }
    }
}

impl Options {
    /// The size of the memory in bytes: a multiple of a huge page.
    fn bytes(&self) -> usize {
        share_of(self.memory, self.share) as usize / huge() * huge()
    }

    fn huge_pages(&self) -> f64 {
        (self.bytes() / huge()) as f64
    }

    /// Runs `work` in each thread on its part of the memory. Returns the time until the last thread ends.
    fn timed(
        &self,
        memory: &Memory,
        work: impl Fn(Range<usize>) -> Result<()> + Sync,
    ) -> Result<Duration> {
        let at = |page| memory.range.start + page * huge();
        side_by_side(self.tasks, |thread| {
            let pages = share(self.bytes() / huge(), thread, self.tasks);
            work(at(pages.start)..at(pages.end))
        })
    }
}

fn touch(options: &Options, reporter: &mut Reporter) -> Result<bool> {
    let mut done = false;
    for &size in &options.sizes {
        let name = name(size);
        let Some(_settings) = Settings::only(size, Path::new(SETTINGS))? else {
            reporter.note(&format!("touch-{name}: this kernel has no such folios"))?;
            continue;
        };
        for _ in 0..options.rounds {
            reporter.phase(&format!("touch-{name}"))?;
            let memory = Memory::new(options.bytes())?;
            let touch = |part| {
                memory.fill(part);
                Ok(())
            };
            let (touched, ended) = (options.timed(&memory, touch)?.as_secs_f64(), boot_time());
            reporter.phase(&format!("unmap-{name}"))?;
            let start = Instant::now();
            drop(memory);
            let unmapped = start.elapsed().as_secs_f64();
            reporter.phase("")?;
            let mib = options.bytes() as f64 / MIB;
            reporter.timed("touch", &name, mib / touched, ended)?;
            reporter.timed("unmap", &name, mib / unmapped, boot_time())?;
        }
        done = true;
    }
    Ok(done)
}

fn collapse(options: &Options, reporter: &mut Reporter) -> Result<bool> {
    let memory = Memory::new(options.bytes())?;
    // The kernel checks the advice even for no pages.
    if memory.words.advise(0..0, libc::MADV_COLLAPSE).is_err() {
        reporter.note("collapse: this kernel has no MADV_COLLAPSE, which came with Linux 6.1")?;
        return Ok(false);
    }
    drop(memory);
    for _ in 0..options.rounds {
        reporter.phase("fill")?;
        let memory = Memory::filled(options.bytes(), page())?;
        let _settings = Settings::only(huge(), Path::new(SETTINGS))?;
        reporter.phase("collapse")?;
        let collapse = |part| {
            huge_pages(part).try_for_each(|page| memory.collapse(page).while_("MADV_COLLAPSE"))
        };
        let (elapsed, ended) = (options.timed(&memory, collapse)?, boot_time());
        reporter.phase("")?;
        let each = elapsed.as_secs_f64() * 1e6 / options.huge_pages();
        reporter.timed("collapse", "", each, ended)?;
    }
    Ok(true)
}

fn split(options: &Options, reporter: &mut Reporter) -> Result<bool> {
    for _ in 0..options.rounds {
        reporter.phase("fill")?;
        let memory = Memory::filled(options.bytes(), huge())?;
        reporter.phase("split")?;
        let split = |part| {
            huge_pages(part).try_for_each(|whole| {
                let last = whole.end - page()..whole.end;
                memory.words.advise(last, libc::MADV_FREE).while_("MADV_FREE")
            })
        };
        let (elapsed, ended) = (options.timed(&memory, split)?, boot_time());
        reporter.phase("")?;
        let each = elapsed.as_secs_f64() * 1e6 / options.huge_pages();
        reporter.timed("split", "", each, ended)?;
    }
    Ok(true)
}

/// A size as the names of rows have it: `64K`, `2M`.
fn name(bytes: usize) -> String {
    match bytes >> 10 {
        kib if kib < 1024 => format!("{kib}K"),
        kib => format!("{}M", kib >> 10),
    }
}

/// Anonymous memory that begins at a huge page.
struct Memory {
    words: Words,
    range: Range<usize>,
}

impl Memory {
    fn new(bytes: usize) -> Result<Self> {
        let (words, range) = Words::huge(bytes).while_("mapping memory")?;
        Ok(Self { words, range })
    }

    /// Memory of which each page was written, in folios of this size.
    fn filled(bytes: usize, size: usize) -> Result<Self> {
        let _settings = Settings::only(size, Path::new(SETTINGS))?;
        let memory = Self::new(bytes)?;
        memory.fill(memory.range.clone());
        Ok(memory)
    }

    /// Writes a word of each base page of a part.
    fn fill(&self, part: Range<usize>) {
        let pages = part.step_by(page());
        pages.for_each(|byte| self.words[byte / size_of::<u64>()].store(1, Relaxed));
    }

    /// Makes a huge page of base pages.
    fn collapse(&self, page: Range<usize>) -> io::Result<()> {
        let again = Errno::AGAIN.raw_os_error();
        for _ in 1..TRIES {
            match self.words.advise(page.clone(), libc::MADV_COLLAPSE) {
                Err(error) if error.raw_os_error() == Some(again) => {}
                result => return result,
            }
        }
        self.words.advise(page, libc::MADV_COLLAPSE)
    }
}

fn huge_pages(part: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    part.step_by(huge()).map(|start| start..start + huge())
}

/// Settings of the kernel that allow folios of only one size. The former settings are restored when this is dropped.
struct Settings(#[expect(dead_code, reason = "restored when dropped")] Vec<Setting>);

impl Settings {
    /// Allows anonymous folios of `size` bytes, besides base pages. `None` if the kernel has no folios of this size.
    fn only(size: usize, settings: &Path) -> Result<Option<Self>> {
        let of_sizes = sizes(settings).while_(settings.display().to_string())?;
        let is_there = of_sizes.iter().any(|(found, _)| *found == size);
        let word = |is_allowed| if is_allowed { "always" } else { "never" };
        let files: Vec<(PathBuf, bool)> = match of_sizes.is_empty() {
            // Kernels before 6.8 have only huge pages.
            true if size == page() || size == huge() => vec![(settings.to_owned(), size == huge())],
            false if size == page() || is_there => {
                of_sizes.into_iter().map(|(found, path)| (path, found == size)).collect()
            }
            _ => return Ok(None),
        };
        let set = |(path, is_allowed): (PathBuf, bool)| {
            Setting::new(path.join("enabled"), word(is_allowed))
        };
        files.into_iter().map(set).collect::<Result<_>>().map(|all| Some(Self(all)))
    }
}

/// The sizes of folios, each with the directory of its settings.
fn sizes(settings: &Path) -> io::Result<Vec<(usize, PathBuf)>> {
    let size = |path: PathBuf| {
        let kib: usize = path
            .file_name()?
            .to_str()?
            .strip_prefix("hugepages-")?
            .strip_suffix("kB")?
            .parse()
            .ok()?;
        // Folios of some sizes are only for files.
        path.join("enabled").exists().then_some((kib << 10, path))
    };
    let paths = fs::read_dir(settings)?.map(|entry| Ok(entry?.path()));
    Ok(paths.collect::<io::Result<Vec<_>>>()?.into_iter().filter_map(size).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{names, options};

    #[test]
    fn the_manifest_gives_options() {
        let options = options::<Options>("thp", &[]).unwrap();
        assert_eq!(names(&options.tests), ["touch", "collapse", "split"]);
        let sizes: Vec<String> = options.sizes.iter().map(|size| name(*size)).collect();
        assert_eq!(sizes, ["4K", "64K", "2M"]);
        assert!(options.bytes() > 0 && options.bytes().is_multiple_of(huge()));
    }

    #[test]
    fn threads_have_parts_of_the_memory() {
        let options = options::<Options>("thp", &[("tasks", "3"), ("share", "0.5")]).unwrap();
        let memory = Memory::new(options.bytes()).unwrap();
        let parts = std::sync::Mutex::new(Vec::new());
        let work = |part| {
            parts.lock().unwrap().push(part);
            Ok(())
        };
        options.timed(&memory, work).unwrap();
        let mut parts: Vec<Range<usize>> = parts.into_inner().unwrap();
        parts.sort_by_key(|part| part.start);
        assert_eq!((parts.len(), parts[0].start), (3, memory.range.start));
        assert_eq!(parts[2].end, memory.range.end);
        assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start && !pair[0].is_empty()));
        let error = super::super::tests::options::<Options>("thp", &[("tasks", "900")]);
        assert!(error.is_err());
    }

    #[test]
    fn one_size_is_allowed_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
        fs::write(root.join("enabled"), "[always] madvise never").unwrap();
        let old = Settings::only(page(), root).unwrap();
        assert!(old.is_some() && read("enabled") == "never");
        drop(old);
        assert_eq!(read("enabled"), "always");
        assert!(Settings::only(64 << 10, root).unwrap().is_none());

        for size in ["64", "2048"] {
            let place = root.join(format!("hugepages-{size}kB"));
            fs::create_dir(&place).unwrap();
            fs::write(place.join("enabled"), "always [inherit] never").unwrap();
        }
        let enabled = || ["64", "2048"].map(|size| read(&format!("hugepages-{size}kB/enabled")));
        let new = Settings::only(64 << 10, root).unwrap();
        assert!(new.is_some() && enabled() == ["always", "never"]);
        drop(new);
        assert_eq!(enabled(), ["inherit", "inherit"]);
        assert!(Settings::only(32 << 10, root).unwrap().is_none());
    }

    #[test]
    fn memory_begins_a_huge_page() {
        let memory = Memory::new(2 * huge()).unwrap();
        let first = &memory.words[memory.range.start / size_of::<u64>()];
        assert!(std::ptr::from_ref(first).addr().is_multiple_of(huge()));
        memory.fill(memory.range.clone());
        assert_eq!(huge_pages(memory.range.clone()).count(), 2);
        memory.words.advise(memory.range.end - page()..memory.range.end, libc::MADV_FREE).unwrap();
    }
}
