//! Measures the time of mmap(2) in one process while another holds most of the memory and a third copies a
//! large file. Desktop users notice this as stutter.
//!
//! | phase | what happens |
//! | --- | --- |
//! | `create` | the file is written |
//! | `fill` | a process touches its share of the memory and holds it |
//! | `copy` | the file is copied and synced; meanwhile memory is repeatedly mapped, a word of each page written, and unmapped: each time is a sample |
//!
//! The samples are reported when the copy has ended, outside any phase.

use std::env;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use guest::clock::boot_time;
use guest::words::Words;

use super::reporter::Reporter;
use super::{
    Given, Main, Result, While, Workload, WorkloadError, files, refused, share_of, value_of,
};

/// The name under which this workload starts the process that holds memory.
const HOG: &str = "stutter-hog";
/// The name under which this workload starts the process that copies.
const COPY: &str = "stutter-copy";
/// The pause between two probes, as in the original program.
const PAUSE: Duration = Duration::from_millis(5);
/// The largest probe in MiB.
const MAX_PROBE: usize = 1 << 20;

pub struct Options {
    directory: PathBuf,
    /// How much memory the hog holds, in percent of the machine's memory.
    hog: f64,
    /// The size of the file, in percent of the machine's memory.
    file: f64,
    /// The number of bytes that each probe maps.
    probe: usize,
    memory: u64,
}

impl Workload for Options {
    const PARTS: &[(&str, Main)] = &[(HOG, hog), (COPY, copy)];

    fn parse(given: &mut Given) -> Result<Self> {
        let found = Self {
            directory: given.text("directory")?.into(),
            hog: given.within("hog", 0.0, 95.0)?,
            file: given.above_zero("file")?,
            probe: given.within("probe", 1, MAX_PROBE)? << 20,
            memory: given.value("memory")?,
        };
        let most = found.memory as f64 * 0.95;
        if found.share(found.hog) as f64 + found.probe as f64 > most {
            let (probe, memory) = (found.probe >> 20, found.memory >> 20);
            let why = format!(
                "the hog and a probe of {probe} MiB together take at most 95 % of {memory} MiB"
            );
            return Err(refused("hog", found.hog, why));
        }
        Ok(found)
    }

    /// Holds memory, copies a file, and measures mmap(2) during the copy.
    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        let [source, target] = ["source", "target"].map(|name| self.directory.join(name));
        reporter.phase("create")?;
        files::create(&source, self.share(self.file)).while_(source.display().to_string())?;
        files::drop_caches()?;

        reporter.phase("fill")?;
        let mut hog = start(HOG, [self.share(self.hog).to_string()]).while_("starting the hog")?;
        wait_for_word(&mut hog).while_("waiting for the hog")?;

        reporter.phase("copy")?;
        let begun = Instant::now();
        let mut copy = start(COPY, [&source, &target]).while_("starting the copy")?;
        let mut probes = Vec::new();
        let status = loop {
            let probe = probe(self.probe).while_("mapping memory")?;
            probes.push((probe, boot_time()));
            if let Some(status) = copy.try_wait().while_("waiting for the copy")? {
                break status;
            }
            thread::sleep(PAUSE);
        };
        let copied = begun.elapsed();
        reporter.phase("")?;
        if !status.success() {
            return Err(WorkloadError::Child(format!("the copy: {status}")));
        }
        match hog.try_wait().while_("looking at the hog")? {
            Some(status) => return Err(WorkloadError::Child(format!("the hog: {status}"))),
            None => drop(hog.stdin.take()),
        }
        hog.wait().while_("waiting for the hog")?;
        for path in [source, target] {
            fs::remove_file(&path).while_(path.display().to_string())?;
        }
        for (probe, ended) in probes {
            reporter.timed("mmap", "", 1e3 * probe.as_secs_f64(), ended)?;
        }
        reporter.sample("Copy", copied.as_secs_f64())
    }
}

impl Options {
    fn share(&self, percent: f64) -> u64 {
        share_of(self.memory, percent)
    }
}

/// Maps memory, writes a word of each page, unmaps it, and returns the time.
fn probe(bytes: usize) -> io::Result<Duration> {
    let start = Instant::now();
    let words = Words::anonymous(bytes)?;
    touch(&words);
    drop(words);
    Ok(start.elapsed())
}

fn touch(words: &Words) {
    for word in words.pages() {
        word.store(1, Relaxed);
    }
}

/// Starts a separate process, so that the probes have an address space of their own.
fn start<A: AsRef<std::ffi::OsStr>>(
    name: &str,
    arguments: impl IntoIterator<Item = A>,
) -> io::Result<Child> {
    let mut command = Command::new(env::current_exe()?);
    command.arg(name).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
}

/// Waits for a line of the process. The end of its output is an error.
fn wait_for_word(process: &mut Child) -> io::Result<()> {
    let output = process.stdout.take().expect("piped");
    let mut line = String::new();
    match BufReader::new(output).read_line(&mut line)? {
        0 => Err(io::Error::other(format!("it ended: {}", process.wait()?))),
        _ => Ok(()),
    }
}

/// Touches a given number of bytes, reports that, and holds them until its input ends.
fn hog(mut arguments: lexopt::Parser) -> Result<()> {
    let bytes = value_of(HOG, &arguments.value()?.to_string_lossy())?;
    let words = Words::anonymous(bytes).while_("mapping memory")?;
    touch(&words);
    println!("full");
    io::stdin().read_to_end(&mut Vec::new()).while_("waiting for the end")?;
    Ok(())
}

/// Copies a file to the disk.
fn copy(mut arguments: lexopt::Parser) -> Result<()> {
    let mut source = File::open(arguments.value()?).while_("the file to copy")?;
    let mut target = File::create(arguments.value()?).while_("the copy")?;
    let mut buffer = vec![0; files::BLOCK];
    loop {
        match source.read(&mut buffer).while_("the file to copy")? {
            0 => return target.sync_all().while_("the copy"),
            bytes => io::Write::write_all(&mut target, &buffer[..bytes]).while_("the copy")?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{manifest, options};
    use guest::arch::page;

    #[test]
    fn the_manifest_gives_options() {
        let (manifest, _) = manifest("stutter");
        let options: Options = options("stutter", &[]).unwrap();
        assert_eq!((options.share(options.hog), options.probe), (3 << 29, 128 << 20));
        assert_eq!(manifest.metrics[0].rows, model::Rows::Distribution);
    }

    #[test]
    fn a_probe_takes_time() {
        assert!(probe(64 * page()).unwrap() > Duration::ZERO);
    }
}
