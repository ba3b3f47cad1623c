//! The small files of one iteration: mmtests' notes, the results of its benchmarks, facts of kernel and machine.
//! Files of monitors are listed here, and read later.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use model::{BootFacts, Topology};
use sha2::{Digest, Sha256};

use super::benchmark::{self, Logs, Parsed, Unreadable};
use super::files;
use super::layout::{self, Benchmark};
use super::machine::{self, Texts};
use super::monitor::Monitor;
use super::reboots::{self, Traces};
use super::state::{self, State};

/// Longest note, log or configuration.
const MAX_TEXT: usize = 64 << 20;
/// The largest total size of the files of one benchmark that are read, in bytes.
const MAX_LOGS: usize = 512 << 20;
/// The longest failure message of mmtests that is kept, in characters.
const MAX_REASON: usize = 300;

/// Files with facts on kernel and machine.
const FACTS: [&str; 5] = ["kernel.version", "dmesg", "preempt-dynamic", "lscpu.txt", "numactl.txt"];
const NOTES: [&str; 4] = ["tests-timestamp", "tests-sysstate", "tests-activity", "fail.log"];

#[derive(Debug)]
pub struct Iteration {
    pub number: u32,
    /// When the iteration began, in seconds since 1970, if known.
    pub started: Option<u64>,
    pub state: State,
    /// The traces that show to which boot the iteration belongs.
    pub traces: Traces,
    pub facts: BootFacts,
    /// The machine, if it is known completely.
    pub topology: Option<Topology>,
    pub log: String,
    /// By benchmark: what it measured, or why it has no result.
    pub benchmarks: BTreeMap<String, Result<Parsed, String>>,
    /// The monitors that can be read.
    pub monitors: Vec<MonitorFile>,
    /// Files of benchmarks that were not read: benchmark, file, reason.
    pub unread_logs: Vec<[String; 3]>,
    /// Benchmarks that lack operations, and which operations these are.
    pub missing: Vec<(String, String)>,
    /// Other things that were not read, with the reason.
    pub unread: Vec<(String, String)>,
    /// SHA-256 over the names and contents of all files.
    pub digest: [u8; 32],
}

/// The file that a monitor wrote.
#[derive(Debug)]
pub struct MonitorFile {
    /// The benchmark that ran at the same time.
    pub benchmark: String,
    pub name: String,
    pub monitor: Monitor,
    pub path: PathBuf,
}

/// Reads an iteration. What cannot be read is listed.
pub fn read(files: &layout::Iteration) -> Iteration {
    let passed_over = files.passed_over.iter();
    let mut unread: Vec<(String, String)> =
        passed_over.map(|(name, why)| (name.clone(), (*why).to_owned())).collect();
    let mut text = |name: &str| {
        let read = files::read(&files.files.get(name)?.path, MAX_TEXT);
        match read {
            Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) => {
                unread.push((name.to_owned(), error.to_string()));
                None
            }
        }
    };
    let mut state = text("tests-timestamp").map(|text| state::parse(&text)).unwrap_or_default();
    let noted = !state.tests.is_empty();
    if let Some(more) = text("tests-sysstate") {
        state.complete(state::parse(&more));
    }
    let active = text("tests-activity").and_then(|text| state::activity(&text).0);
    let failure = text("fail.log");
    let mut texts: Texts = FACTS.iter().filter_map(|name| Some((*name, text(name)?))).collect();
    for (tool, name) in [("lscpu", "lscpu.txt"), ("numactl", "numactl.txt")] {
        if let Some(text) = state.machine.get(tool) {
            texts.entry(name).or_insert_with(|| text.clone());
        }
    }
    let config = files.files.keys().find(|name| is_config(name));
    let config = config.and_then(|name| text(name)).unwrap_or_default();
    let starts = files.files.keys().filter(|name| name.ends_with(".start"));
    let uptime = starts
        .filter_map(|name| reboots::uptime(&text(name)?))
        .reduce(|first, other| if other.0 < first.0 { other } else { first });

    let kernel_file = |path: &str, after: bool| {
        let tests = state.tests.values();
        let mut texts =
            tests.filter_map(move |test| if after { &test.after } else { &test.before }.get(path));
        texts.next().map_or("", |text| &**text)
    };
    let mut facts = BootFacts { config, ..machine::kernel(&texts) };
    let (meminfo, zoneinfo) =
        (kernel_file("/proc/meminfo", false), kernel_file("/proc/zoneinfo", false));
    machine::shape(&mut facts, &texts, meminfo, zoneinfo);
    let log = texts.remove("dmesg").unwrap_or_default();
    let traces = Traces {
        uptime,
        last: last(&state),
        faults: reboots::faults(kernel_file("/proc/vmstat", false))
            .zip(reboots::faults(kernel_file("/proc/vmstat", true))),
        log_end: log.lines().rev().find_map(reboots::stamp),
    };
    let started = [active, state.start].into_iter().flatten().min();
    let mut iteration = Iteration {
        number: files.number,
        started,
        traces,
        facts,
        topology: machine::topology(&texts),
        log,
        benchmarks: BTreeMap::new(),
        monitors: Vec::new(),
        unread_logs: Vec::new(),
        missing: Vec::new(),
        unread,
        digest: digest(files),
        state,
    };
    iteration.read_benchmarks(files, noted, failure.as_deref());
    iteration.find_monitors(files);
    iteration
}

impl Iteration {
    fn read_benchmarks(&mut self, files: &layout::Iteration, noted: bool, failure: Option<&str>) {
        for (name, left) in &files.benchmarks {
            let read = match refused(&self.state, name, noted, failure) {
                Some(why) => Err(why),
                None => self.read_benchmark(name, left),
            };
            self.benchmarks.insert(name.clone(), read);
        }
        for name in self.state.tests.keys() {
            if !self.benchmarks.contains_key(name) {
                let why = refused(&self.state, name, noted, failure);
                let why = why.unwrap_or_else(|| "it left no logs".to_owned());
                self.benchmarks.insert(name.clone(), Err(why));
            }
        }
    }

    fn read_benchmark(
        &mut self,
        name: &str,
        Benchmark { files, passed_over }: &Benchmark,
    ) -> Result<Parsed, String> {
        let mut logs = Logs::default();
        let mut left = MAX_LOGS;
        let mut unread = |file: &str, why| {
            self.unread_logs.push([name.to_owned(), file.to_owned(), why]);
        };
        passed_over.iter().for_each(|(file, why)| unread(file, (*why).to_owned()));
        for (file, entry) in files {
            match files::read(&entry.path, left) {
                Ok(bytes) => {
                    left -= bytes.len();
                    logs.files.insert(file.clone(), bytes);
                }
                Err(error) => unread(file, error.to_string()),
            }
        }
        match benchmark::read(name, &logs) {
            Ok(parsed) if parsed.samples.is_empty() => Err(match parsed.remarks.as_slice() {
                [] => "there is no figure in its logs".to_owned(),
                remarks => remarks.join("; "),
            }),
            Ok(parsed) => Ok(parsed),
            // The counters and the duration of an unknown benchmark can still be compared.
            Err(unknown @ Unreadable::Unknown { .. }) => {
                self.unread.push((format!("logs of {name}"), unknown.to_string()));
                Ok(Parsed::default())
            }
            Err(unreadable) => Err(unreadable.to_string()),
        }
    }

    fn find_monitors(&mut self, files: &layout::Iteration) {
        for (name, entry) in &files.files {
            let is_known = NOTES.contains(&&**name) || FACTS.contains(&&**name) || is_config(name);
            if is_known || name.ends_with(".start") {
                continue;
            }
            let benchmarks = self.benchmarks.keys().filter_map(|benchmark| {
                let monitor = name.strip_suffix(&**benchmark)?.strip_suffix('-')?;
                Some((monitor, benchmark))
            });
            match benchmarks.max_by_key(|(_, benchmark)| benchmark.len()) {
                None => self.unread.push((name.clone(), "nothing in it is asked for".into())),
                Some((monitor, benchmark)) => match Monitor::named(monitor) {
                    None => {
                        self.unread.push((name.clone(), "a monitor that is not known here".into()))
                    }
                    Some(known) => self.monitors.push(MonitorFile {
                        benchmark: benchmark.clone(),
                        name: monitor.to_owned(),
                        monitor: known,
                        path: entry.path.clone(),
                    }),
                },
            }
        }
    }
}

/// Whether a file is the kernel's configuration, which is named after the release.
fn is_config(name: &str) -> bool {
    name.starts_with("kconfig-")
}

/// The latest time at which the iteration is known to have run.
fn last(state: &State) -> Option<u64> {
    let ends = state.tests.values().flat_map(|test| [test.begin, test.end]);
    ends.chain([state.start, state.finish]).flatten().max()
}

/// Why a benchmark has no result, as far as mmtests' notes say. `noted` says whether there are notes on benchmarks at
/// all; `failure` is mmtests' own message about the end of this one.
fn refused(state: &State, name: &str, noted: bool, failure: Option<&str>) -> Option<String> {
    let test = state.tests.get(name).cloned().unwrap_or_default();
    if let Some(failure) = failure {
        let (time, reason) = failure.trim().split_once(' ').unwrap_or(("", failure.trim()));
        let ended_before = test.end.zip(time.parse().ok()).is_some_and(|(end, fail)| end <= fail);
        if !ended_before {
            let reason = reason.lines().next().unwrap_or_default();
            return Some(format!("mmtests failed: {}", excerpt(reason)));
        }
    }
    match test.status {
        Some(0) => None,
        Some(status) => Some(format!("it exited with status {status}")),
        None if test.end.is_some() => None,
        None if noted && test.begin.is_some() => Some("it did not come to its end".to_owned()),
        None if noted => Some("mmtests has not noted that it ran".to_owned()),
        None => None,
    }
}

fn excerpt(text: &str) -> String {
    text.chars().take(MAX_REASON).collect()
}

/// SHA-256 over the names and contents of all files of an iteration. A file that can't be read is left out;
/// the error is reported where its contents are needed.
fn digest(files: &layout::Iteration) -> [u8; 32] {
    let mut digest = Sha256::new();
    let mut add = |name: &str, path: &Path| {
        if let Ok(content) = files::digest(path) {
            digest.update(name.as_bytes());
            digest.update([0]);
            digest.update(content);
        }
    };
    files.files.iter().for_each(|(name, entry)| add(name, &entry.path));
    for (benchmark, left) in &files.benchmarks {
        for (name, entry) in &left.files {
            add(&format!("{benchmark}/{name}"), &entry.path);
        }
    }
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_benchmarks_are_refused() {
        let reason = |notes: &str, failure| {
            let state = state::parse(notes);
            refused(&state, "nas", !state.tests.is_empty(), failure)
        };
        let well = "test begin :: nas 10\ntest end :: nas 20 0\n";
        assert_eq!(reason(well, None), None);
        assert_eq!(reason("", None), None);
        assert_eq!(reason("test begin :: nas 10\ntest end :: nas 20\n", None), None);
        let status = reason("test begin :: nas 10\ntest end :: nas 20 1\n", None);
        assert_eq!(status.as_deref(), Some("it exited with status 1"));
        let cut_off = reason("test begin :: nas 10\n", None);
        assert_eq!(cut_off.as_deref(), Some("it did not come to its end"));
        let other = reason("test begin :: pgbench 10\ntest end :: pgbench 20 0\n", None);
        assert_eq!(other.as_deref(), Some("mmtests has not noted that it ran"));
        let failed = reason(well, Some("15 Unable to mount\nmore"));
        assert_eq!(failed.as_deref(), Some("mmtests failed: Unable to mount"));
        assert_eq!(reason(well, Some("25 Unable to mount")), None);
    }
}
