//! Measures the CPU time of a sample on this host: the guest's sampler, including comparing and recording, against
//!
//! - a bare `pread` of the same files, the default ones, and
//! - a shell loop of `date; cat /proc/vmstat | gzip`, the usual way, for `/proc/vmstat` alone.
//!
//! The contestants take turns at the sampler's shortest interval, so that counters and caches are realistic, and a
//! host that gets slower does so for all. Prints the median round of each and the ratios. `bench/README.md` has
//! figures.

use std::error::Error;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use agent::recorder::Recorder;
use agent::sampler::{Moment, Sampler, sources};
use guest::sys::children_time;
use guest::words::Words;
use model::Source;
use rustix::time::{ClockId, clock_gettime};

/// Rounds of each contestant.
const ROUNDS: usize = 21;
/// Samples of a round.
const SAMPLES: usize = 20;
/// Time between two samples.
const INTERVAL: Duration = Duration::from_millis(10);
/// Bytes for all records, more than enough. The log is in memory, as in the guest.
const LOG: usize = 256 << 20;
/// Bytes for the longest of the files.
const BUFFER: usize = 1 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut default = Contest::new(&model::Sampler::default().sources)?;
    let mut vmstat = Contest::new(&[Source::Vmstat])?;
    let mut shell = Vec::new();
    for _ in 0..ROUNDS {
        default.round()?;
        vmstat.round()?;
        shell.push(shell_loop()?);
    }
    println!("CPU time of one sample, median of {ROUNDS} rounds of {SAMPLES} samples");
    default.print("default sources");
    vmstat.print("vmstat alone");
    let shell = median(&mut shell);
    println!("{:<16} shell loop {:9.1} us", "vmstat alone", shell * 1e6);
    let cheaper = shell / median(&mut vmstat.sampled);
    println!("{:<16} sampler / shell loop = 1/{cheaper:.0}, to be below 1/100", "vmstat alone");
    Ok(())
}

/// The sampler and a bare read of the same files.
struct Contest {
    sampler: Sampler,
    files: Vec<File>,
    buffer: Vec<u8>,
    clock: u64,
    sampled: Vec<f64>,
    read: Vec<f64>,
}

impl Contest {
    fn new(sources: &[Source]) -> Result<Self, Box<dyn Error>> {
        let mut sampler = Sampler::new(Arc::new(Recorder::new(Words::anonymous(LOG)?)));
        sampler.open(Path::new("/"), sources);
        let mut buffer = vec![0; BUFFER];
        let paths = sources.iter().flat_map(|source| sources::files(Path::new("/"), *source));
        let files = paths.filter_map(|(_, path)| open(path, &mut buffer)).collect::<Vec<_>>();
        if files.len() != sampler.files().len() {
            return Err("the contestants read different files".into());
        }
        let (sampled, read) = (Vec::new(), Vec::new());
        Ok(Self { sampler, files, buffer, clock: 0, sampled, read })
    }

    /// A round of both, taking turns.
    fn round(&mut self) -> Result<(), Box<dyn Error>> {
        let (mut sampled, mut read) = (0.0, 0.0);
        for _ in 0..SAMPLES {
            thread::sleep(INTERVAL);
            self.clock += 1;
            let start = cpu_time();
            self.sampler.sample(self.clock, Moment::Tick);
            sampled += cpu_time() - start;
            thread::sleep(INTERVAL);
            let start = cpu_time();
            for file in &self.files {
                read_whole(file, &mut self.buffer)?;
            }
            read += cpu_time() - start;
        }
        self.sampled.push(sampled / SAMPLES as f64);
        self.read.push(read / SAMPLES as f64);
        Ok(())
    }

    fn print(&mut self, what: &str) {
        // The ratios are computed first, because `median` sorts its values.
        let rounds = self.sampled.iter().zip(&self.read);
        let ratio = median(&mut rounds.map(|(sampled, read)| sampled / read).collect::<Vec<_>>());
        let (sampled, read) = (median(&mut self.sampled), median(&mut self.read));
        println!("{what:<16} sampler    {:9.1} us", sampled * 1e6);
        println!("{what:<16} bare pread {:9.1} us", read * 1e6);
        println!("{what:<16} sampler / bare pread = {ratio:.2}, to be within 1.3");
    }
}

fn open(path: PathBuf, buffer: &mut [u8]) -> Option<File> {
    let file = File::open(path).ok()?;
    read_whole(&file, buffer).ok()?;
    Some(file)
}

/// Reads all of a file and does nothing with it.
fn read_whole(file: &File, buffer: &mut [u8]) -> std::io::Result<()> {
    let mut length = 0;
    loop {
        match file.read_at(&mut buffer[length..], length as u64)? {
            0 => return Ok(()),
            read => length += read,
        }
    }
}

/// The CPU seconds of one sample of a shell loop, all its processes together.
fn shell_loop() -> Result<f64, Box<dyn Error>> {
    let script = format!(
        "i=0; while [ $i -lt {SAMPLES} ]; do date; cat /proc/vmstat | gzip; i=$((i+1)); done"
    );
    let before = children_time();
    let status = Command::new("sh").args(["-c", &script]).stdout(Stdio::null()).status()?;
    if !status.success() {
        return Err(format!("the shell loop: {status}").into());
    }
    Ok(children_time().since(before).total() / SAMPLES as f64)
}

/// CPU seconds of this thread.
fn cpu_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
