//! Generates a directory like those of mmtests, identical to the byte each time: runs of `autonumabench`
//! with the monitor `proc-vmstat`.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use rayon::prelude::*;

/// Counters as printed by a recent kernel.
const VMSTAT: &str =
    include_str!("../../../crates/kernelfiles/fixtures/7.3.4+deb13-cloud-amd64/vmstat.txt");
const ZONEINFO: &str =
    include_str!("../../../crates/kernelfiles/fixtures/7.3.4+deb13-cloud-amd64/zoneinfo.txt");
const MEMINFO: &str =
    include_str!("../../../crates/kernelfiles/fixtures/7.3.4+deb13-cloud-amd64/meminfo.txt");
/// The programs of the benchmark, with the approximate seconds of each.
const TESTS: [(&str, f64); 4] =
    [("NUMA01", 180.0), ("NUMA01_THREADLOCAL", 62.0), ("NUMA02", 3.2), ("NUMA02_SMT", 3.9)];
/// Number of repetitions of each program.
const TIMES: usize = 7;
/// The time when the first run began, in seconds since 1970.
const BEGIN: u64 = 1_700_000_000;

/// The size of a directory.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The number of runs.
    pub kernels: usize,
    /// The number of iterations of each run.
    pub iterations: usize,
    /// The number of samples of the monitor in each iteration.
    pub samples: usize,
}

impl Size {
    /// The name of each run.
    pub fn names(self) -> Vec<String> {
        (0..self.kernels).map(|kernel| format!("6.{kernel}.0-vanilla")).collect()
    }
}

/// Makes the directory at `path`. Returns the number of bytes that the monitors printed.
pub fn generate(path: &Path, size: Size) -> io::Result<u64> {
    let counters: Vec<(&str, u64)> = VMSTAT.lines().filter_map(counter).collect();
    let places: Vec<(usize, usize)> = (0..size.kernels)
        .flat_map(|kernel| (0..size.iterations).map(move |iteration| (kernel, iteration)))
        .collect();
    for (kernel, name) in size.names().iter().enumerate() {
        let run = path.join(name);
        fs::create_dir_all(&run)?;
        let (begin, end) = (start(kernel, 0, size), start(kernel, size.iterations, size) - 1);
        let activity = format!("{begin} run-mmtests: Start\n{end} status :: 0\n");
        fs::write(run.join("mmtests-activity"), activity)?;
    }
    let text = places.par_iter().map(|&(kernel, number)| {
        let directory = path.join(&size.names()[kernel]).join(format!("iter-{number}"));
        iteration(&directory, kernel, number, size, &counters)
    });
    text.sum()
}

fn counter(line: &'static str) -> Option<(&'static str, u64)> {
    let (name, value) = line.split_once(' ')?;
    Some((name, value.parse().ok()?))
}

/// The time when an iteration begins. Each lasts as long as its samples, plus a minute.
fn start(kernel: usize, iteration: usize, size: Size) -> u64 {
    BEGIN + ((kernel * size.iterations + iteration) * (size.samples + 60)) as u64
}

fn iteration(
    directory: &Path,
    kernel: usize,
    number: usize,
    size: Size,
    counters: &[(&str, u64)],
) -> io::Result<u64> {
    let logs = directory.join("autonumabench/logs");
    fs::create_dir_all(&logs)?;
    let mut random = Random((kernel * 1000 + number) as u64);
    for (test, seconds) in TESTS {
        for time in 1..=TIMES {
            let elapsed = seconds * (1.0 + 0.01 * kernel as f64 + 0.05 * random.share());
            let text = time_text(elapsed * 2.1, elapsed * 0.07, elapsed);
            fs::write(logs.join(format!("time-{test}-{time}")), text)?;
            let log = logs.join(format!("autonumabench-{test}-{time}.log"));
            fs::write(log, format!("{test}\n"))?;
        }
    }
    let begin = start(kernel, number, size) + 20;
    let end = begin + size.samples as u64 + 10;
    let marks = |text: &str| {
        format!(
            "start :: {}\n{text}test end :: autonumabench {end} 0\ntime :: autonumabench 3510.00 \
             user 117.50 system {}.00 elapsed\nfinish :: {end}\n",
            begin - 20,
            size.samples
        )
    };
    let test = format!("test begin :: autonumabench {begin}\n");
    fs::write(directory.join("tests-timestamp"), marks(&test))?;
    let activity = format!("{} run-mmtests: Start\n", begin - 20);
    fs::write(directory.join("tests-activity"), activity)?;
    let uname = format!(
        "Linux host {}-vanilla #1 SMP PREEMPT_DYNAMIC Wed Nov  1 12:00:00 UTC 2023 x86_64 GNU/Linux\n",
        size.names()[kernel].trim_end_matches("-vanilla")
    );
    fs::write(directory.join("kernel.version"), uname)?;
    let up = format!("{}\n{}.50 1.00\n", begin + 1, begin - start(kernel, 0, size) + 101);
    fs::write(directory.join("proc-vmstat-autonumabench.start"), up)?;

    let mut monitor = Monitor::new(counters, Random((kernel * 1000 + number) as u64 + 1));
    let before = snapshots("start", &monitor.text());
    let text =
        monitor.write(&directory.join("proc-vmstat-autonumabench.gz"), begin + 1, size.samples)?;
    monitor.step();
    let after = snapshots("end", &monitor.text());
    let mut sysstate = gzip(&directory.join("tests-sysstate.gz"))?;
    sysstate.write_all(marks(&(test + &before + &after)).as_bytes())?;
    sysstate.finish()?;
    Ok(text)
}

/// The times as GNU time prints them.
fn time_text(user: f64, system: f64, elapsed: f64) -> String {
    let (minutes, seconds) = ((elapsed / 60.0).floor(), elapsed % 60.0);
    format!(
        "{user:.2}user {system:.2}system {minutes:.0}:{seconds:05.2}elapsed 217%CPU \
         (0avgtext+0avgdata 3148788maxresident)k\n0inputs+8outputs (0major+787000minor)pagefaults \
         0swaps\n"
    )
}

fn snapshots(when: &str, vmstat: &str) -> String {
    format!(
        "file {when} :: /proc/vmstat\n{vmstat}file {when} :: /proc/zoneinfo\n{ZONEINFO}\
         file {when} :: /proc/meminfo\n{MEMINFO}"
    )
}

fn gzip(path: &Path) -> io::Result<GzEncoder<File>> {
    Ok(GzEncoder::new(File::create(path)?, Compression::default()))
}

/// Counters that change like those of a busy machine. Of ten, five are constant, three rise by about a thousand each
/// second, one rises slowly, and one goes up and down.
struct Monitor<'a> {
    counters: Vec<(&'a str, u64)>,
    random: Random,
}

impl<'a> Monitor<'a> {
    fn new(counters: &[(&'a str, u64)], random: Random) -> Self {
        Self { counters: counters.to_vec(), random }
    }

    fn step(&mut self) {
        for (place, (_, value)) in self.counters.iter_mut().enumerate() {
            *value += match place % 10 {
                0..5 => 0,
                5..8 => 900 + self.random.next() % 200,
                8 => self.random.next() % 3,
                _ => {
                    let (up, down) = (self.random.next() % 100, self.random.next() % 100);
                    *value = value.saturating_sub(down);
                    up
                }
            };
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.counters {
            let _ = writeln!(text, "{name} {value}");
        }
        text
    }

    /// Writes one sample per second. Returns the number of bytes before compression.
    fn write(&mut self, path: &Path, begin: u64, samples: usize) -> io::Result<u64> {
        let mut file = gzip(path)?;
        let mut bytes = 0;
        for time in (begin..).take(samples) {
            self.step();
            let text = format!("time: {time}\n{}", self.text());
            file.write_all(text.as_bytes())?;
            bytes += text.len() as u64;
        }
        file.finish()?;
        Ok(bytes)
    }
}

/// Pseudorandom numbers, by the generator splitmix64 (<https://prng.di.unimi.it/splitmix64.c>).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number from 0 to 1.
    fn share(&mut self) -> f64 {
        (self.next() % 1_000_000) as f64 / 1e6
    }
}
