//! Reads one large file with several readers at once, from a cold cache.
//!
//! The phase `create` writes the file. Then each number of readers is a phase, named by that number. Each reader
//! reads the whole file, and its time is reported.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use super::reporter::Reporter;
use super::{Given, Result, While, Workload, files, list_within, share_of};

pub struct Options {
    directory: PathBuf,
    /// The size of the file, in percent of the machine's memory.
    size: f64,
    block: usize,
    readers: Vec<usize>,
    memory: u64,
}

impl Workload for Options {
    fn parse(given: &mut Given) -> Result<Self> {
        let (readers, cpus) = (given.optional("readers")?, given.value("cpus")?);
        Ok(Self {
            directory: given.text("directory")?.into(),
            size: given.above_zero("size")?,
            block: given.within("block", 512, 1 << 30)?,
            readers: readers
                .map_or_else(|| Ok(steps(cpus)), |it| list_within("readers", &it, 1, 4096))?,
            memory: given.value("memory")?,
        })
    }

    /// Writes the file, then reads it with each number of readers.
    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        let path = self.directory.join("source");
        reporter.phase("create")?;
        files::create(&path, self.bytes()).while_(path.display().to_string())?;
        for &readers in &self.readers {
            files::drop_caches()?;
            reporter.phase(&readers.to_string())?;
            let reading = format!("reading {}", path.display());
            for elapsed in read(&path, readers, self).while_(reading)? {
                reporter.sample("Elapsd", elapsed.as_secs_f64())?;
            }
        }
        Ok(())
    }
}

impl Options {
    fn bytes(&self) -> u64 {
        share_of(self.memory, self.size)
    }
}

/// The usual numbers of readers in tables: 1, 3, 5, 7, 12, 21, 30, then every 18. The last is the number of CPUs; the
/// others are smaller.
fn steps(cpus: usize) -> Vec<usize> {
    let steps = [1, 3, 5, 7, 12, 21].into_iter().chain((30..).step_by(18));
    steps.take_while(|&readers| readers < cpus).chain([cpus]).collect()
}

/// Reads the file with `readers` threads, and returns the time of each.
fn read(path: &Path, readers: usize, options: &Options) -> io::Result<Vec<Duration>> {
    let ready = Barrier::new(readers);
    let reader = || {
        let file = File::open(path);
        ready.wait();
        let start = Instant::now();
        let bytes = files::read_all(file?, options.block)?;
        match bytes == options.bytes() {
            true => Ok(start.elapsed()),
            false => Err(io::Error::other(format!("{bytes} bytes, not {}", options.bytes()))),
        }
    };
    thread::scope(|scope| {
        let readers: Vec<_> = (0..readers).map(|_| scope.spawn(reader)).collect();
        readers.into_iter().map(|reader| reader.join().expect("no reader panics")).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{manifest, options};

    #[test]
    fn the_manifest_gives_options() {
        let (manifest, _) = manifest("paralleldd");
        let options: Options = options("paralleldd", &[]).unwrap();
        assert_eq!((options.bytes(), &*options.readers), (4 << 30, &[1, 3, 4][..]));
        // Readers are reported in the order of their threads, not in that of their times.
        assert!(manifest.metrics.iter().all(|metric| metric.concurrent));
    }

    #[test]
    fn numbers_of_readers_are_the_usual_ones() {
        assert_eq!(steps(1), [1]);
        assert_eq!(steps(16), [1, 3, 5, 7, 12, 16]);
        assert_eq!(steps(80), [1, 3, 5, 7, 12, 21, 30, 48, 66, 80]);
    }

    #[test]
    fn every_reader_reads_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("source");
        let given = [("memory", "100000"), ("size", "200"), ("block", "512")];
        let options: Options = options("paralleldd", &given).unwrap();
        files::create(&path, options.bytes()).unwrap();
        assert_eq!(read(&path, 3, &options).unwrap().len(), 3);
        files::create(&path, 1).unwrap();
        assert!(read(&path, 3, &options).is_err());
    }
}
