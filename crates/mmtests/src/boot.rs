//! Makes a boot from the iterations that ran in it.

use std::collections::BTreeMap;
use std::io;

use kernelfiles::klog;
use model::{
    Boot, HostLoad, Note, NoteKind, Outcome, Problem, ProblemKind, Sample, Source, Usage, count,
};
use rayon::prelude::*;
use store::Series;

use super::files;
use super::iteration::Iteration;
use super::monitor::{self, Clock};
use super::reboots;
use super::state::Test;
use super::table::{Budget, SeriesTable};

/// The largest number of values that are kept of a boot: a day of `/proc/vmstat` every second, four times.
const MAX_VALUES: usize = 64 << 20;
/// The largest part of the kernel's log that is kept, in bytes.
const MAX_LOG: usize = 8 << 20;
/// The largest number of unread files of an iteration's benchmarks that notes name; the others are counted.
const MAX_UNREAD: usize = 20;
/// Kernel files of which mmtests keeps a copy from before and after each benchmark.
const SNAPSHOTS: [(&str, Source); 5] = [
    ("/proc/vmstat", Source::Vmstat),
    ("/proc/zoneinfo", Source::Zoneinfo),
    ("/proc/meminfo", Source::Meminfo),
    ("/proc/schedstat", Source::Schedstat),
    ("/proc/diskstats", Source::Diskstats),
];

/// What was read of the files of monitors.
#[derive(Debug, Default)]
pub struct Watched {
    pub series: Vec<Series>,
    /// By monitor, the number of its files and the number of its samples.
    pub monitors: BTreeMap<String, (usize, usize)>,
    /// Files that were not read to the end, each with the iteration and the reason.
    pub unread: Vec<(u32, (String, String))>,
}

/// What is known of a boot apart from its iterations.
#[derive(Clone, Copy, Debug)]
pub struct BootHeader<'a> {
    /// The name of its run.
    pub variant: &'a str,
    /// The number of the boot in its run, from 0.
    pub boot_index: u32,
    /// The number of the boot among all boots. Each is a block of its own, because mmtests does not alternate between
    /// kernels.
    pub block: u32,
    /// Where the kernel comes from, for people.
    pub origin: &'a str,
    /// The exit status of the whole run, if reported and nonzero.
    pub status: Option<i64>,
}

/// Makes a boot from the iterations that ran in it, without its series, and reads what monitors saw.
pub fn boot(header: BootHeader<'_>, iterations: &[&Iteration]) -> (Boot, Watched) {
    let started = iterations.iter().filter_map(|it| it.started).min();
    let clock = Clock(started.unwrap_or_else(|| earliest(iterations)));
    let budget = Budget::new(MAX_VALUES);
    let read: Vec<_> = iterations.par_iter().map(|it| watch(it, clock, &budget)).collect();

    let mut boot = Boot {
        variant: header.variant.to_owned(),
        boot_index: header.boot_index,
        block: header.block,
        started: clock.0,
        host: host(iterations, clock),
        ..Boot::default()
    };
    if let Some(first) = iterations.first() {
        boot.facts = first.facts.clone();
    }
    boot.facts.kernel_origin = header.origin.to_owned();
    let mut watched = Watched::default();
    let mut overflowed = false;
    for (iteration, read) in iterations.iter().zip(read) {
        watched.series.extend(read.series);
        overflowed |= read.overflowed;
        watched.unread.extend(read.unread.into_iter().map(|what| (iteration.number, what)));
        for (name, samples) in read.monitors {
            let (files, known) = watched.monitors.entry(name).or_default();
            *files += 1;
            *known += samples;
        }
    }
    let log = log(iterations);
    if log.is_empty() {
        boot.notes.push(Note::no_log());
    }
    boot.problems = klog::problems(&log);
    boot.console = log;
    if overflowed {
        let text = "monitors printed more than is kept: series end early, samples are whole";
        boot.problems.push(Problem { kind: ProblemKind::SeriesDropped, text: text.to_owned() });
    }
    for iteration in iterations {
        results(iteration, &mut boot);
    }
    boot.notes.extend(spans(iterations).into_iter().map(|it| NoteKind::Remark.note(it)));
    boot.outcome = outcome(&boot, header, iterations);
    (boot, watched)
}

/// The earliest time that is recorded, for iterations whose beginning is not.
fn earliest(iterations: &[&Iteration]) -> u64 {
    let tests = iterations.iter().flat_map(|it| it.state.tests.values());
    tests.filter_map(|test| test.begin).min().unwrap_or(0)
}

fn host(iterations: &[&Iteration], clock: Clock) -> HostLoad {
    let last = iterations.iter().filter_map(|it| it.traces.last).max();
    let wall = last.map_or(f64::NAN, |last| last.saturating_sub(clock.0) as f64);
    HostLoad { load_before: f64::NAN, load_after: f64::NAN, steal: f64::NAN, wall }
}

/// The parts of the kernel's log that the iterations kept, joined.
fn log(iterations: &[&Iteration]) -> String {
    let mut log = String::new();
    for iteration in iterations {
        if log.is_empty() {
            log.clone_from(&iteration.log);
        } else {
            reboots::extend_log(&mut log, &iteration.log);
        }
    }
    if log.len() > MAX_LOG {
        let end = (0..=MAX_LOG).rev().find(|end| log.is_char_boundary(*end)).unwrap_or(0);
        log.truncate(end);
        log.push_str("\n...\n");
    }
    log
}

/// Adds what the benchmarks measured. A failed benchmark becomes a problem. Unread files and missing operations of
/// the others become notes.
fn results(iteration: &Iteration, boot: &mut Boot) {
    let number = iteration.number;
    let unread = iteration.unread_logs.iter();
    boot.notes.extend(unread.take(MAX_UNREAD).map(|[benchmark, file, why]| {
        NoteKind::NotRead.note(format!("{benchmark}, iteration {number}: {file}: {why}"))
    }));
    if let Some(more) = iteration.unread_logs.len().checked_sub(MAX_UNREAD).filter(|it| *it > 0) {
        let text = format!("iteration {number}: {}", count(more, "more file"));
        boot.notes.push(NoteKind::NotRead.note(text));
    }
    let missing = iteration.missing.iter();
    boot.notes.extend(missing.map(|(benchmark, operations)| {
        NoteKind::Missing.note(format!("{benchmark}, iteration {number}: {operations}"))
    }));
    for (name, read) in &iteration.benchmarks {
        let parsed = match read {
            Ok(parsed) => parsed,
            Err(why) => {
                let text = format!("{name}, iteration {number}: {why}");
                boot.problems.push(Problem { kind: ProblemKind::LeftOut, text });
                continue;
            }
        };
        boot.samples.extend(parsed.samples.iter().map(|sample| Sample {
            iteration: number,
            label: sample.label.clone(),
            count: sample.count,
            ..Sample::new(name.clone(), sample.metric.clone(), sample.value)
        }));
        let spent = iteration.state.tests.get(name).and_then(|test| test.spent);
        boot.usage.extend(spent.map(|[user, system, elapsed]| Usage {
            workload: name.clone(),
            iteration: number,
            user,
            system,
            elapsed,
        }));
        let remarks = parsed.remarks.iter();
        boot.notes.extend(
            remarks.map(|it| NoteKind::Remark.note(format!("{name}, iteration {number}: {it}"))),
        );
    }
}

/// The outcome of a boot. Without any result it has failed.
fn outcome(boot: &Boot, header: BootHeader<'_>, iterations: &[&Iteration]) -> Outcome {
    let left_out = || boot.problems.iter().filter(|it| it.kind == ProblemKind::LeftOut);
    let mut benchmarks = iterations.iter().flat_map(|it| it.benchmarks.values());
    if benchmarks.all(Result::is_err) {
        let why = left_out().next().map(|problem| problem.text.clone());
        return Outcome::Failed(why.unwrap_or_else(|| "no benchmark left anything".to_owned()));
    }
    match header.status {
        Some(status) if left_out().next().is_none() => {
            Outcome::Failed(format!("mmtests ended with status {status}"))
        }
        _ => Outcome::Complete,
    }
}

/// How much longer counters ran than their benchmarks. mmtests reads the counters again after it stopped its
/// monitors, so they include what the kernel did in between.
fn spans(iterations: &[&Iteration]) -> Vec<String> {
    let mut more: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for iteration in iterations {
        let tests = &iteration.state.tests;
        for (name, test) in tests.iter().filter(|(_, test)| !test.after.is_empty()) {
            if let (Some(begin), Some(end), Some([.., elapsed])) =
                (test.begin, test.end, test.spent)
            {
                more.entry(name).or_default().push(end.saturating_sub(begin) as f64 - elapsed);
            }
        }
    }
    let notes = more.into_iter().map(|(name, seconds)| {
        let least = seconds.iter().copied().fold(f64::INFINITY, f64::min).max(0.0);
        let most = seconds.iter().copied().fold(0.0, f64::max);
        let [least, most] = [least, most].map(|seconds| format!("{seconds:.0}"));
        let range = if least == most { most } else { format!("{least} to {most}") };
        format!(
            "{name}: its counters span {range} s more than the benchmark: mmtests reads them before \
             it starts its monitors, and again after it has stopped them"
        )
    });
    notes.collect()
}

/// What was read of the monitors of one iteration.
struct Read {
    series: Vec<Series>,
    monitors: Vec<(String, usize)>,
    unread: Vec<(String, String)>,
    overflowed: bool,
}

fn watch(iteration: &Iteration, clock: Clock, budget: &Budget) -> Read {
    let mut all =
        Read { series: Vec::new(), monitors: Vec::new(), unread: Vec::new(), overflowed: false };
    let results = iteration.benchmarks.iter().filter(|(_, read)| read.is_ok());
    for (name, _) in results {
        let test = iteration.state.tests.get(name).cloned().unwrap_or_default();
        let mut tables: BTreeMap<&str, SeriesTable<'_>> = BTreeMap::new();
        snapshot(&test, false, clock, budget, &mut tables);
        for found in iteration.monitors.iter().filter(|found| found.benchmark == *name) {
            let source = found.monitor.source();
            let table = tables.entry(source).or_insert_with(|| SeriesTable::new(budget));
            let before = table.rows();
            let read = files::open(&found.path)
                .and_then(|text| monitor::read(found.monitor, text, clock, table));
            let file = format!("{}-{name}", found.name);
            match read {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    all.unread.push((file, "cut off: read as far as it goes".to_owned()));
                }
                Err(error) => all.unread.push((file, format!("read in part: {error}"))),
                Ok(()) if table.rows() == before || table.is_empty() => {
                    all.unread.push((file, "holds no figure with a time".to_owned()));
                }
                Ok(()) => {}
            }
            all.monitors.push((found.name.clone(), table.rows() - before));
        }
        snapshot(&test, true, clock, budget, &mut tables);
        for (source, table) in tables {
            all.overflowed |= table.overflowed();
            let (times, columns) = table.finish();
            // A single reading is no series.
            if times.len() > 1 && !columns.is_empty() {
                all.series.push(Series {
                    workload: name.clone(),
                    iteration: iteration.number,
                    phase: String::new(),
                    source: source.to_owned(),
                    times,
                    columns,
                });
            }
        }
    }
    all
}

/// Adds the kernel files that mmtests kept from before or after a benchmark. The text from before begins each series
/// and the text from after ends it, so the differences are those of the benchmark.
fn snapshot<'a>(
    test: &Test,
    after: bool,
    clock: Clock,
    budget: &'a Budget,
    tables: &mut BTreeMap<&str, SeriesTable<'a>>,
) {
    let (texts, time) = if after { (&test.after, test.end) } else { (&test.before, test.begin) };
    let time = time.map_or(0, |time| clock.at(time as f64));
    for (path, source) in SNAPSHOTS {
        let Some(text) = texts.get(path) else {
            continue;
        };
        let table = tables.entry(source.name()).or_insert_with(|| SeriesTable::new(budget));
        table.row(time);
        for (name, value) in kernelfiles::counters(source, "", text) {
            table.set(&name, value);
        }
    }
}
