//! Rates of threads that each read and write a file, sequentially and at random: the old benchmark tiobench (threaded
//! I/O bench). Here fio does its work.
//!
//! For each number of threads the files have the same total size, and there is a phase for each test, named
//! by the test and the number of threads: `SeqWrite-4`, then `RandWrite-4`, `SeqRead-4`, `RandRead-4`. The
//! page cache is not dropped between them: how long pages stay is the question. Written data is on the disk
//! when a test ends. The preceding phase `potential` measures the rate of one reader, from a cold cache and
//! in large blocks. All figures are reported between phases, because the names of phases would otherwise
//! become part of their names.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Instant;

use model::NoteKind;
use serde::Deserialize;

use super::program::{Program, ProgramError};
use super::reporter::Reporter;
use super::{Given, Result, While, Workload, files, list_within, refused, share_of};

/// The megabyte of all figures, as in tiobench.
const MEGABYTE: f64 = (1 << 20) as f64;
/// The largest amount of data that the phase `potential` reads, in bytes.
const POTENTIAL: u64 = 256 << 20;
/// fio prints times in whole milliseconds, rounded up. The rate of a test shorter than this is not reported:
/// its error would exceed 2 %.
const SHORTEST: u64 = 50;
/// The largest number of threads of one test.
const THREADS: u64 = 1024;

pub struct Options {
    directory: PathBuf,
    /// The size of all files together, in percent of the machine's memory.
    size: f64,
    block: u64,
    /// The number of operations of a random test, of all threads together.
    random: u64,
    threads: Vec<u64>,
    memory: u64,
}

impl Workload for Options {
    fn parse(given: &mut Given) -> Result<Self> {
        let found = Self {
            directory: given.text("directory")?.into(),
            size: given.above_zero("size")?,
            block: given.value("block")?,
            random: given.value("random")?,
            threads: list_within("threads", &given.text("threads")?, 1, THREADS)?,
            memory: given.value("memory")?,
        };
        if !(512..=1 << 20).contains(&found.block) || !found.block.is_power_of_two() {
            let why = "a power of two from 512 bytes to 1 MiB";
            return Err(refused("block", found.block, why));
        }
        let most = found.threads.iter().copied().max().unwrap_or(1);
        if found.bytes(most) == 0 {
            let why = format!("too little for a block for each of {most} threads");
            return Err(refused("size", found.size, why));
        }
        if found.random < most {
            let why = format!("too few for an operation for each of {most} threads");
            return Err(refused("random", found.random, why));
        }
        Ok(found)
    }

    /// Runs all tests with each number of threads.
    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        reporter.phase("potential")?;
        let potential = potential(self)?;
        reporter.phase("")?;
        reporter.sample("PotentialReadSpeed", potential)?;
        for &threads in &self.threads {
            let mut rates = Vec::new();
            for test in TESTS {
                reporter.phase(&format!("{}-{threads}", test.name))?;
                let output = Program::new("fio").args(test.arguments(threads, self)).run()?;
                let rate = rate(&output.text, test, threads * test.work(threads, self))
                    .map_err(|problem| ProgramError::Garbage { program: "fio".into(), problem })?;
                rates.push((test.name, rate));
            }
            reporter.phase("")?;
            for (name, rate) in &rates {
                if let Some(rate) = rate {
                    reporter.labelled(&format!("{name}-MB/sec"), &threads.to_string(), *rate)?;
                }
            }
            let quick = rates.iter().filter(|(_, rate)| rate.is_none());
            let quick: Vec<String> = quick.map(|(name, _)| format!("{name}-{threads}")).collect();
            if !quick.is_empty() {
                reporter.note(&NoteKind::TooQuick.note(quick.join(", ")).to_string())?;
            }
            for thread in 0..threads {
                let path = self.directory.join(format!("tiobench.{thread}"));
                fs::remove_file(&path).while_(path.display().to_string())?;
            }
        }
        Ok(())
    }
}

impl Options {
    /// The size of all files together, in bytes.
    fn total(&self) -> u64 {
        share_of(self.memory, self.size)
    }

    /// The size of each thread's file, in bytes: a multiple of the block size.
    fn bytes(&self, threads: u64) -> u64 {
        let bytes = self.total() / threads;
        bytes - bytes % self.block
    }
}

#[derive(Clone, Copy, Debug)]
struct Test {
    /// The name of the test in tables.
    name: &'static str,
    /// fio's name of the test (`rw`).
    pattern: &'static str,
    writes: bool,
    random: bool,
}

/// The tests in order.
const TESTS: [Test; 4] = [
    Test { name: "SeqWrite", pattern: "write", writes: true, random: false },
    Test { name: "RandWrite", pattern: "randwrite", writes: true, random: true },
    Test { name: "SeqRead", pattern: "read", writes: false, random: false },
    Test { name: "RandRead", pattern: "randread", writes: false, random: true },
];

impl Test {
    /// The number of bytes that each thread reads or writes.
    fn work(self, threads: u64, options: &Options) -> u64 {
        match self.random {
            true => options.random / threads * options.block,
            false => options.bytes(threads),
        }
    }

    /// The arguments for fio (fio(1)).
    fn arguments(self, threads: u64, options: &Options) -> Vec<String> {
        let mut arguments = vec![
            "--name=tiobench".into(),
            format!("--directory={}", options.directory.display()),
            "--filename_format=tiobench.$jobnum".into(),
            format!("--numjobs={threads}"),
            format!("--rw={}", self.pattern),
            format!("--filesize={}", options.bytes(threads)),
            format!("--bs={}", options.block),
        ];
        if self.random {
            // A random test may read the same data twice.
            arguments.push(format!("--io_size={}", self.work(threads, options)));
            arguments.push("--norandommap".into());
        }
        if self.writes {
            arguments.push("--end_fsync=1".into());
        }
        let always = "--thread --group_reporting --ioengine=psync --invalidate=0 --fallocate=none \
                      --randrepeat=1 --clocksource=clock_gettime --output-format=json";
        arguments.extend(always.split_whitespace().map(str::to_owned));
        arguments
    }
}

/// The rate of one reader, in megabytes per second.
fn potential(options: &Options) -> Result<f64> {
    let path = options.directory.join("potential");
    let name = path.display().to_string();
    let bytes = options.total().min(POTENTIAL);
    files::create(&path, bytes).while_(&name)?;
    files::drop_caches()?;
    let file = File::open(&path).while_(&name)?;
    let start = Instant::now();
    files::read_all(file, files::BLOCK).while_(&name)?;
    let elapsed = start.elapsed().as_secs_f64();
    fs::remove_file(&path).while_(&name)?;
    Ok(bytes as f64 / MEGABYTE / elapsed)
}

/// The relevant part of fio's output (fio(1), JSON output).
#[derive(Deserialize)]
struct Printed {
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    error: i64,
    read: Side,
    write: Side,
}

#[derive(Deserialize)]
struct Side {
    io_bytes: u64,
    bw_bytes: u64,
    runtime: u64,
}

/// Megabytes per second of all threads together, from fio's output for a test that had to read or write `bytes`;
/// `None` if the test was too quick to measure. The error says what is wrong with the output.
fn rate(text: &str, test: Test, bytes: u64) -> Result<Option<f64>, String> {
    // fio may print remarks before the JSON.
    let start = if text.starts_with('{') { Some(0) } else { text.find("\n{").map(|at| at + 1) };
    let json = &text[start.ok_or("there is no JSON")?..];
    let printed: Printed = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let [job] = printed.jobs.as_slice() else {
        return Err(format!("{} jobs instead of 1", printed.jobs.len()));
    };
    if job.error != 0 {
        return Err(format!("error {}", job.error));
    }
    let side = if test.writes { &job.write } else { &job.read };
    if side.io_bytes != bytes {
        return Err(format!("{} did {} of {bytes} bytes", test.name, side.io_bytes));
    }
    if side.runtime < SHORTEST {
        return Ok(None);
    }
    match side.bw_bytes {
        0 => Err("its rate is 0".into()),
        rate => Ok(Some(rate as f64 / MEGABYTE)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tests::{manifest, options};

    /// What fio 3.33 printed, shortened.
    const PRINTED: &str = include_str!("tiobench/fio-3.33.json");

    #[test]
    fn the_manifest_gives_options_and_rows() {
        let (manifest, _) = manifest("tiobench");
        let options: Options = options("tiobench", &[]).unwrap();
        assert_eq!((options.total(), options.bytes(16)), (4 << 30, 256 << 20));
        assert_eq!(options.threads, [1, 2, 4, 8, 16]);
        let names: Vec<_> = manifest.metrics.iter().map(|metric| metric.name.as_str()).collect();
        let expected = [
            "PotentialReadSpeed", "SeqRead-MB/sec", "RandRead-MB/sec", "SeqWrite-MB/sec",
            "RandWrite-MB/sec",
        ];
        assert_eq!(names, expected);
        for test in TESTS {
            assert!(names.contains(&&*format!("{}-MB/sec", test.name)), "{test:?}");
        }
    }

    #[test]
    fn work_is_shared_by_the_threads() {
        let given = [("memory", "1000000000"), ("directory", "/mnt/a")];
        let options: Options = options("tiobench", &given).unwrap();
        let [write, _, _, random] = TESTS;
        assert_eq!(write.work(16, &options), 124_997_632);
        assert_eq!(random.work(16, &options), 250 * 4096);
        let words = random.arguments(16, &options).join(" ");
        assert!(words.contains("--filesize=124997632 --bs=4096 --io_size=1024000 --norandommap"));
        assert!(!words.contains("fsync") && words.contains("--directory=/mnt/a "), "{words}");
    }

    #[test]
    fn the_rate_is_read_from_fio() {
        let [write, _, read, _] = TESTS;
        let told = rate(PRINTED, write, 12 << 20).unwrap();
        let expected = 12.0 / 0.144;
        assert!((told.unwrap() - expected).abs() < 1e-6, "{told:?}");
        let remark = format!("fio: a remark\n{PRINTED}");
        assert_eq!(rate(&remark, write, 12 << 20), Ok(told));
        let problem = rate(PRINTED, read, 12 << 20).unwrap_err();
        assert_eq!(problem, "SeqRead did 0 of 12582912 bytes");
        let problem = rate(PRINTED, write, 24 << 20).unwrap_err();
        assert_eq!(problem, "SeqWrite did 12582912 of 25165824 bytes");
        assert_eq!(rate("nothing", write, 1).unwrap_err(), "there is no JSON");
        assert_eq!(rate("{\"jobs\": []}", write, 1).unwrap_err(), "0 jobs instead of 1");
        let failed = PRINTED.replace("\"error\" : 0", "\"error\" : 28");
        assert_eq!(rate(&failed, write, 12 << 20).unwrap_err(), "error 28");
    }

    #[test]
    fn too_quick_tests_have_no_rate() {
        let took = |ms: u32| PRINTED.replace("\"runtime\" : 144", &format!("\"runtime\" : {ms}"));
        assert!(rate(&took(50), TESTS[0], 12 << 20).unwrap().is_some());
        for quick in [0, 1, 49] {
            assert_eq!(rate(&took(quick), TESTS[0], 12 << 20), Ok(None));
            // Even a test that is too quick must have done all its work.
            assert!(rate(&took(quick), TESTS[0], 24 << 20).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in ".{0,200}", cut in 0_usize..3000) {
            let _ = rate(&text, TESTS[0], 1);
            let cut = (0..=cut.min(PRINTED.len())).rev().find(|at| PRINTED.is_char_boundary(*at));
            let whole = cut == Some(PRINTED.len());
            prop_assert!(rate(&PRINTED[..cut.unwrap()], TESTS[0], 12 << 20).is_ok() == whole);
        }
    }
}
