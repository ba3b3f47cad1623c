//! The layout of a directory of logs: its runs, their iterations, and the benchmarks of these.
//!
//! There are three layouts. Since May 2019 a run is a directory with subdirectories `iter-0`, `iter-1` and so on. For
//! some days before that, it was a directory without them. Earlier, all runs lay in one directory, and the names of
//! files contained the name of the run: `tests-timestamp-RUN`, `BENCHMARK-RUN`, `MONITOR-RUN-BENCHMARK`.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use super::files::{Entry, Listing, Root};

/// The greatest depth of a benchmark's files.
const MAX_DEPTH: usize = 4;
/// The largest number of files of one benchmark.
const MAX_FILES: usize = 20_000;
/// The largest number of directories below those of the benchmarks.
const MAX_DIRECTORIES: usize = 20_000;
/// The largest number of iterations of one run.
const MAX_ITERATIONS: usize = 10_000;
/// Where the files of a benchmark are in its directory, now and in old logs.
const LOGS: [&str; 2] = ["logs", "noprofile"];
/// A file that every iteration has.
const TIMESTAMP: &str = "tests-timestamp";
/// The reason why some directories are not read.
const NO_LOGS: &str = "a directory without logs of a benchmark";
const NO_RUN: &str = "belongs to no run";

/// The names of entries that are not read, with the reason.
pub type PassedOver = Vec<(String, &'static str)>;

/// One run of mmtests, which measured one kernel.
#[derive(Debug, Default)]
pub struct Run {
    pub name: String,
    /// The iterations in order.
    pub iterations: Vec<Iteration>,
    /// The files that belong to the run as a whole.
    pub files: BTreeMap<String, Entry>,
    /// The entries of the run's directory that are not read.
    pub passed_over: PassedOver,
}

/// One iteration of a run.
#[derive(Debug, Default)]
pub struct Iteration {
    /// The number of the iteration, from 0.
    pub number: u32,
    /// Its files. If the name of an old log contains the run's name, that part is removed.
    pub files: BTreeMap<String, Entry>,
    /// What each benchmark left, by name.
    pub benchmarks: BTreeMap<String, Benchmark>,
    /// The other entries, which are not read.
    pub passed_over: PassedOver,
}

/// What a benchmark left in one iteration.
#[derive(Debug, Default)]
pub struct Benchmark {
    /// The files, by their path from where the logs begin.
    pub files: BTreeMap<String, Entry>,
    /// The entries next to them that are not read.
    pub passed_over: PassedOver,
}

/// The runs of mmtests in a directory.
#[derive(Debug, Default)]
pub struct Layout {
    /// The runs, ordered by name.
    pub runs: Vec<Run>,
    /// The entries that belong to no run, or cannot be reached.
    pub passed_over: PassedOver,
}

/// Finds the runs in `root`. Fails if a directory can't be listed.
pub fn find(root: &Root) -> io::Result<Layout> {
    let mut finder = Finder { root, directories: 0 };
    let listing = root.list(root.path())?;
    if is_run(&listing) {
        let name = root.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Ok(Layout { runs: vec![finder.run(name, listing)?], ..Layout::default() });
    }
    if listing.files.iter().any(|file| old_run(&file.name).is_some()) {
        return finder.old_runs(listing);
    }
    let mut layout = Layout::default();
    for (name, path) in listing.directories {
        let inner = root.list(&path)?;
        match is_run(&inner) {
            true => layout.runs.push(finder.run(name, inner)?),
            false => layout.passed_over.push((name, "no run of mmtests")),
        }
    }
    layout.passed_over.extend(listing.files.into_iter().map(|file| (file.name, NO_RUN)));
    layout.passed_over.extend(listing.passed_over);
    Ok(layout)
}

/// Whether a directory holds one run.
fn is_run(listing: &Listing) -> bool {
    listing.directories.keys().any(|name| iteration_number(name).is_some())
        || listing.files.iter().any(|file| file.name == TIMESTAMP)
}

fn iteration_number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("iter-")?;
    let plain = digits.bytes().all(|digit| digit.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

/// The run to which a file of the oldest layout belongs.
fn old_run(name: &str) -> Option<&str> {
    name.strip_prefix(TIMESTAMP)?.strip_prefix('-').filter(|run| !run.is_empty())
}

struct Finder<'a> {
    root: &'a Root,
    directories: usize,
}

impl Finder<'_> {
    fn run(&mut self, name: String, listing: Listing) -> io::Result<Run> {
        let mut numbered: Vec<_> = listing
            .directories
            .iter()
            .filter_map(|(name, path)| Some((iteration_number(name)?, path)))
            .collect();
        numbered.sort_unstable();
        numbered.dedup_by_key(|(number, _)| *number);
        if numbered.is_empty() {
            let iteration = self.iteration(0, listing)?;
            return Ok(Run { name, iterations: vec![iteration], ..Run::default() });
        }
        let mut passed_over = PassedOver::new();
        if numbered.len() > MAX_ITERATIONS {
            let why = "it has too many iterations: the first ones are read";
            passed_over.push((name.clone(), why));
            numbered.truncate(MAX_ITERATIONS);
        }
        let mut iterations = Vec::new();
        for (number, path) in numbered {
            iterations.push(self.iteration(number, self.root.list(path)?)?);
        }
        let others = listing.directories.keys().filter(|name| iteration_number(name).is_none());
        passed_over.extend(others.map(|name| (name.clone(), "no iteration")));
        passed_over.extend(listing.passed_over);
        let files = by_name(listing.files, &mut passed_over);
        Ok(Run { name, iterations, files, passed_over })
    }

    fn iteration(&mut self, number: u32, listing: Listing) -> io::Result<Iteration> {
        let (mut benchmarks, mut passed_over) = (BTreeMap::new(), PassedOver::new());
        for (name, path) in listing.directories {
            match self.benchmark(&path)? {
                Some(benchmark) => {
                    benchmarks.insert(name, benchmark);
                }
                None => passed_over.push((name, NO_LOGS)),
            }
        }
        passed_over.extend(listing.passed_over);
        let files = by_name(listing.files, &mut passed_over);
        Ok(Iteration { number, files, benchmarks, passed_over })
    }

    /// What a benchmark left in a directory; `None` if the directory is not that of a benchmark.
    fn benchmark(&mut self, path: &Path) -> io::Result<Option<Benchmark>> {
        let listing = self.root.list(path)?;
        let Some(logs) = LOGS.iter().find_map(|name| listing.directories.get(*name)) else {
            return Ok(None);
        };
        let (mut files, mut passed_over) = (Vec::new(), PassedOver::new());
        self.gather(logs, "", MAX_DEPTH, &mut files, &mut passed_over)?;
        Ok(Some(Benchmark { files: by_name(files, &mut passed_over), passed_over }))
    }

    /// Adds all files below `path`. Their names are their paths from there.
    fn gather(
        &mut self,
        path: &Path,
        prefix: &str,
        depth: usize,
        files: &mut Vec<Entry>,
        passed_over: &mut PassedOver,
    ) -> io::Result<()> {
        self.directories += 1;
        let listing = self.root.list(path)?;
        for Entry { name, path } in listing.files {
            let name = format!("{prefix}{name}");
            match files.len() < MAX_FILES {
                true => files.push(Entry { name, path }),
                false => passed_over.push((name, "one of too many files")),
            }
        }
        for (name, path) in listing.directories {
            let name = format!("{prefix}{name}");
            match depth > 0 && self.directories < MAX_DIRECTORIES {
                true => self.gather(&path, &format!("{name}/"), depth - 1, files, passed_over)?,
                false => passed_over.push((name, "too deep a directory, or one of too many")),
            }
        }
        let of_listing = listing.passed_over.into_iter();
        passed_over.extend(of_listing.map(|(name, why)| (format!("{prefix}{name}"), why)));
        Ok(())
    }

    fn old_runs(&mut self, listing: Listing) -> io::Result<Layout> {
        let mut passed_over = PassedOver::new();
        let names: BTreeSet<String> = listing
            .files
            .iter()
            .filter_map(|file| old_run(&file.name))
            .map(str::to_owned)
            .collect();
        let mut iterations: BTreeMap<&str, Iteration> =
            names.iter().map(|name| (&**name, Iteration::default())).collect();
        for (name, path) in &listing.directories {
            let place = ending(name, &names)
                .and_then(|(benchmark, run)| Some((benchmark, iterations.get_mut(run)?)));
            let left = self.benchmark(path)?;
            match place.zip(left) {
                Some(((benchmark, iteration), left)) => {
                    iteration.benchmarks.insert(benchmark.to_owned(), left);
                }
                None => passed_over.push((name.clone(), NO_LOGS)),
            }
        }
        let mut files: BTreeMap<&str, Vec<Entry>> = BTreeMap::new();
        for file in listing.files {
            let monitors = names.iter().filter_map(|run| {
                let benchmarks = iterations[&**run].benchmarks.keys();
                Some((without_run(&file.name, run, benchmarks)?, &**run))
            });
            let monitor = monitors.max_by_key(|(_, run)| run.len());
            let place = ending(&file.name, &names).map(|(name, run)| (name.to_owned(), run));
            match place.or(monitor) {
                Some((name, run)) => {
                    files.entry(run).or_default().push(Entry { name, path: file.path });
                }
                None => passed_over.push((file.name, NO_RUN)),
            }
        }
        passed_over.extend(listing.passed_over);
        let runs = iterations.into_iter().map(|(name, mut iteration)| {
            let files = files.remove(name).unwrap_or_default();
            iteration.files = by_name(files, &mut iteration.passed_over);
            Run { name: name.to_owned(), iterations: vec![iteration], ..Run::default() }
        });
        Ok(Layout { runs: runs.collect(), passed_over })
    }
}

/// The files by name. If two have one name, the first is used.
fn by_name(files: Vec<Entry>, passed_over: &mut PassedOver) -> BTreeMap<String, Entry> {
    let mut named = BTreeMap::new();
    for file in files {
        if named.contains_key(&file.name) {
            passed_over.push((file.name, "it is there packed and plain: one of them is read"));
        } else {
            named.insert(file.name.clone(), file);
        }
    }
    named
}

/// Splits `REST-RUN`. If the names of several runs match, the longest one is used.
fn ending<'a, 'b>(name: &'a str, runs: &'b BTreeSet<String>) -> Option<(&'a str, &'b str)> {
    let fits = |run: &'b String| {
        let rest = name.strip_suffix(&**run)?.strip_suffix('-')?;
        (!rest.is_empty()).then_some((rest, &**run))
    };
    runs.iter().filter_map(fits).max_by_key(|(_, run)| run.len())
}

/// The name `MONITOR-BENCHMARK` of a file called `MONITOR-RUN-BENCHMARK`, if it belongs to one of the benchmarks.
fn without_run<'a>(
    name: &str,
    run: &str,
    benchmarks: impl Iterator<Item = &'a String>,
) -> Option<String> {
    let mut fits = benchmarks.filter_map(|benchmark| {
        let monitor = name.strip_suffix(&format!("-{run}-{benchmark}"))?;
        Some(format!("{monitor}-{benchmark}"))
    });
    fits.next()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A directory with these files. The contents of each file is its name.
    fn directory(files: &str) -> (tempfile::TempDir, Root) {
        let directory = tempfile::tempdir().unwrap();
        for file in files.split(' ') {
            let path = directory.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        let root = Root::open(directory.path()).unwrap();
        (directory, root)
    }

    fn names<T>(map: &BTreeMap<String, T>) -> Vec<&str> {
        map.keys().map(|name| &**name).collect()
    }

    #[test]
    fn runs_with_iterations() {
        let (_directory, root) = directory(
            "6.1-base/mmtests-activity 6.1-base/iter-10/tests-timestamp \
             6.1-base/iter-2/tests-timestamp 6.1-base/iter-2/proc-vmstat-pgbench.gz \
             6.1-base/iter-2/pgbench/logs/pgbench-1.log.gz \
             6.1-base/iter-2/pgbench/logs/inner/deep 6.1-base/iter-2/odd/file \
             6.1-base/iter-x/tests-timestamp notes/file report.html",
        );
        let layout = find(&root).unwrap();
        let [run] = layout.runs.try_into().unwrap();
        assert_eq!((&*run.name, names(&run.files)), ("6.1-base", vec!["mmtests-activity"]));
        let numbers: Vec<_> = run.iterations.iter().map(|it| it.number).collect();
        assert_eq!(numbers, [2, 10]);
        let first = &run.iterations[0];
        assert_eq!(names(&first.files), ["proc-vmstat-pgbench", "tests-timestamp"]);
        assert_eq!(names(&first.benchmarks["pgbench"].files), ["inner/deep", "pgbench-1.log"]);
        let passed_over =
            |of: &PassedOver| -> Vec<String> { of.iter().map(|(name, _)| name.clone()).collect() };
        assert_eq!(passed_over(&first.passed_over), ["odd"]);
        assert_eq!(passed_over(&run.passed_over), ["iter-x"]);
        assert_eq!(passed_over(&layout.passed_over), ["notes", "report.html"]);
    }

    #[test]
    fn one_run_alone() {
        let (_directory, root) = directory("iter-0/tests-timestamp");
        let layout = find(&root).unwrap();
        assert_eq!(layout.runs.len(), 1);
        let (_directory, root) = directory("tests-timestamp nas/noprofile/time.cg.D");
        let run = &find(&root).unwrap().runs[0];
        assert_eq!(names(&run.iterations[0].benchmarks["nas"].files), ["time.cg.D"]);
    }

    #[test]
    fn old_runs_share_a_directory() {
        let (_directory, root) = directory(
            "tests-timestamp-4.0 tests-timestamp-rc1-4.0 dmesg-4.0.gz dmesg-rc1-4.0.gz \
             autonumabench-rc1-4.0/noprofile/time.NUMA01 nas-omp-4.0/noprofile/time.cg.D \
             autonumabench-4.0/noprofile/time.NUMA01 proc-vmstat-rc1-4.0-autonumabench.gz \
             proc-vmstat-4.0-nas-omp kconfig.txt",
        );
        let layout = find(&root).unwrap();
        let [plain, candidate] = layout.runs.try_into().unwrap();
        assert_eq!((&*plain.name, &*candidate.name), ("4.0", "rc1-4.0"));
        let files = ["dmesg", "proc-vmstat-nas-omp", "tests-timestamp"];
        assert_eq!(names(&plain.iterations[0].files), files);
        let files = ["dmesg", "proc-vmstat-autonumabench", "tests-timestamp"];
        assert_eq!(names(&candidate.iterations[0].files), files);
        assert_eq!(names(&plain.iterations[0].benchmarks), ["autonumabench", "nas-omp"]);
        assert_eq!(names(&candidate.iterations[0].benchmarks), ["autonumabench"]);
        assert_eq!(layout.passed_over, [("kconfig.txt".to_owned(), "belongs to no run")]);
    }

    #[test]
    fn a_cycle_of_links_ends() {
        let (directory, root) = directory("r/iter-0/b/logs/file");
        let link = directory.path().join("r/iter-0/b/logs/again");
        std::os::unix::fs::symlink(directory.path(), link).unwrap();
        let layout = find(&root).unwrap();
        let benchmark = &layout.runs[0].iterations[0].benchmarks["b"];
        assert!(benchmark.files.len() < 10);
        let told = "too deep a directory, or one of too many";
        assert!(benchmark.passed_over.iter().any(|(_, why)| *why == told));
    }
}
