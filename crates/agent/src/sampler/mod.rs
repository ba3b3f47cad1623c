//! Samples kernel files: reads them repeatedly and records what changed.
//!
//! Files are opened once and read with `pread`. No process is started and nothing is parsed. Events that perf
//! counts are read at the same moments, and have the form of a file ([`events`]). All records of
//! one sample have the same time. At a tick, files that did not change have no record. At a cut, where phases
//! begin and end, every file has a record, possibly an empty patch, so that the host knows that it was read.
//!
//! When the recorder is full, there are no further records, because a later patch would apply to a text that
//! the host does not have. The caller decides when to sample.

mod events;
pub mod profile;
mod programs;
pub mod sources;
pub(crate) mod symbols;

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use flight::Event;
use flight::event::File;
use flight::patch::{self, Content, MAX_TEXT, Record};
use model::Source;

use crate::recorder::Recorder;
use events::Events;
use guest::arch::page;

/// The shortest interval between two reads of a source that takes locks, except at cuts.
const LOCKED_INTERVAL: u64 = 1_000_000_000;

/// Why a sample is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The interval has passed.
    Tick,
    /// An iteration or a phase begins or ends.
    Cut,
}

/// Reads files of the kernel and records what changed.
pub struct Sampler {
    recorder: Arc<Recorder>,
    files: Vec<Sampled>,
    text: Vec<u8>,
    patch: Vec<u8>,
    locked_next: u64,
    dropped: bool,
}

struct Sampled {
    name: File,
    origin: Origin,
    takes_locks: bool,
    recorded: Option<Vec<u8>>,
}

/// Where a text is read.
enum Origin {
    File(fs::File),
    Events(Events),
}

impl Origin {
    /// Reads the text into `text`, which grows as needed, and returns its length.
    fn read(&mut self, text: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Self::File(file) => read(file, text),
            Self::Events(events) => Ok(events.print(text)),
        }
    }
}

impl Sampler {
    /// A sampler without files.
    pub fn new(recorder: Arc<Recorder>) -> Self {
        Self {
            recorder,
            files: Vec::new(),
            text: vec![0; 4 * page()],
            patch: Vec::new(),
            locked_next: 0,
            dropped: false,
        }
    }

    /// Opens the files of `sources` below `root`. Files that this kernel does not have are skipped.
    pub fn open(&mut self, root: &Path, sources: &[Source]) {
        for &source in sources {
            for (name, path) in sources::files(root, source) {
                let Ok(file) = fs::File::open(path) else {
                    continue;
                };
                if self.files.len() <= usize::from(u16::MAX) && read(&file, &mut self.text).is_ok()
                {
                    let takes_locks = source.takes_locks();
                    let origin = Origin::File(file);
                    self.files.push(Sampled { name, origin, takes_locks, recorded: None });
                }
            }
        }
    }

    /// Starts to count events. Returns a sentence for each event that cannot be counted.
    pub fn count(&mut self, root: &Path, names: &[String]) -> Vec<String> {
        if names.is_empty() {
            return Vec::new();
        }
        let (events, problems) = Events::open(root, names);
        if !events.is_empty() {
            let name = File { source: Source::Events.name().into(), part: String::new() };
            let origin = Origin::Events(events);
            self.files.push(Sampled { name, origin, takes_locks: false, recorded: None });
        }
        problems
    }

    /// How often an event could not be read.
    pub fn lost_events(&self) -> u64 {
        let of = |sampled: &Sampled| match &sampled.origin {
            Origin::Events(events) => events.lost(),
            Origin::File(_) => 0,
        };
        self.files.iter().map(of).sum()
    }

    /// The files, in the order of their numbers in records.
    pub fn files(&self) -> Vec<File> {
        self.files.iter().map(|sampled| sampled.name.clone()).collect()
    }

    /// Reads every file that is due and records the changes, all at `time`.
    pub fn sample(&mut self, time: u64, moment: Moment) {
        let locked = moment == Moment::Cut || time >= self.locked_next;
        if locked {
            self.locked_next = time + LOCKED_INTERVAL;
        }
        for index in 0..self.files.len() {
            if self.dropped {
                return;
            }
            if locked || !self.files[index].takes_locks {
                self.sample_file(index, time, moment);
            }
        }
    }

    fn sample_file(&mut self, index: usize, time: u64, moment: Moment) {
        let sampled = &mut self.files[index];
        // A file that has disappeared, such as one of an offline node, keeps its last text.
        let Ok(length) = sampled.origin.read(&mut self.text) else {
            return;
        };
        let text = &self.text[..length];
        let changed = match &sampled.recorded {
            Some(old) => patch::difference(old, text, &mut self.patch).then_some(&self.patch[..]),
            None => None,
        };
        let content = match changed {
            Some([]) if moment == Moment::Tick => return,
            Some(patch) if patch.len() <= length => Content::Patch(patch),
            _ => Content::Whole(text),
        };
        let record = Record { file: index as u16, content };
        if self.recorder.series(time, &record).is_err() {
            self.dropped = true;
            // Events may use more of the recorder than series. If that is full as well, nothing can report it.
            let _ = self.recorder.event(time, &Event::SeriesDropped);
            return;
        }
        let recorded = sampled.recorded.get_or_insert_default();
        recorded.clear();
        recorded.extend_from_slice(text);
    }
}

/// Reads all of `file` into `text`, which grows as needed, and returns its length. Bytes beyond [`MAX_TEXT`]
/// are left out. For most files the kernel fills a page at each read (`fs/seq_file.c`), so a read with a smaller
/// buffer is not worthwhile.
fn read(file: &fs::File, text: &mut Vec<u8>) -> io::Result<usize> {
    let mut length = 0;
    while length < MAX_TEXT {
        if text.len() < length + page() {
            text.resize((2 * text.len()).clamp(length + page(), MAX_TEXT + page()), 0);
        }
        match file.read_at(&mut text[length..], length as u64)? {
            0 => break,
            read => length += read,
        }
    }
    Ok(length.min(MAX_TEXT))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::recorder::tests::{Entry, Log};

    struct Bench {
        log: Log,
        root: tempfile::TempDir,
        sampler: Sampler,
    }

    impl Bench {
        fn new(capacity: u64, files: &[(&str, &str)], sources: &[Source]) -> Self {
            let log = Log::new(capacity);
            let root = tempfile::tempdir().unwrap();
            for (path, text) in files {
                let path = root.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            let mut sampler = Sampler::new(log.recorder.clone());
            sampler.open(root.path(), sources);
            Self { log, root, sampler }
        }

        fn path(&self, file: &str) -> PathBuf {
            self.root.path().join(file)
        }
    }

    #[test]
    fn changes_are_recorded_and_cuts_always() {
        let mut bench = Bench::new(1 << 20, &[("proc/vmstat", "pgfault 9\n")], &[Source::Vmstat]);
        bench.sampler.sample(1, Moment::Tick);
        bench.sampler.sample(2, Moment::Tick);
        fs::write(bench.path("proc/vmstat"), "pgfault 10\n").unwrap();
        bench.sampler.sample(3, Moment::Tick);
        bench.sampler.sample(4, Moment::Cut);
        let entries = bench.log.entries();
        assert_eq!(entries[0], Entry::Whole(1, 0, "pgfault 9\n".into()));
        let Entry::Patch(3, 0, patch) = &entries[1] else { panic!("{entries:?}") };
        assert_eq!(patch::apply(b"pgfault 9\n", patch).unwrap(), b"pgfault 10\n");
        assert_eq!(entries[2], Entry::Patch(4, 0, vec![]));
        assert_eq!(entries.len(), 3);
    }

    #[test]
    fn a_file_with_a_new_form_is_recorded_completely() {
        let mut bench = Bench::new(1 << 20, &[("proc/diskstats", "")], &[Source::Diskstats]);
        bench.sampler.sample(1, Moment::Tick);
        let grown = "vda 1\n".repeat(10_000);
        fs::write(bench.path("proc/diskstats"), &grown).unwrap();
        bench.sampler.sample(2, Moment::Tick);
        let expected = [Entry::Whole(1, 0, String::new()), Entry::Whole(2, 0, grown)];
        assert_eq!(bench.log.entries(), expected);
    }

    #[test]
    fn too_long_files_are_truncated() {
        let long = "x".repeat(MAX_TEXT + 1);
        let mut bench = Bench::new(4 << 20, &[("proc/interrupts", &long)], &[Source::Interrupts]);
        bench.sampler.sample(1, Moment::Cut);
        assert_eq!(bench.log.entries(), [Entry::Whole(1, 0, long[..MAX_TEXT].into())]);
    }

    #[test]
    fn missing_files_are_left_out() {
        let sources = [Source::Vmstat, Source::Schedstat, Source::Pressure, Source::NodeVmstat];
        let files = [
            ("proc/pressure/memory", "some 0\n"),
            ("sys/devices/system/node/node0/vmstat", "a 1\n"),
        ];
        let bench = Bench::new(1 << 20, &files, &sources);
        let names: Vec<_> =
            bench.sampler.files().into_iter().map(|file| (file.source, file.part)).collect();
        let expected =
            [("pressure", "memory"), ("node-vmstat", "node0")].map(|(s, p)| (s.into(), p.into()));
        assert_eq!(names, expected);
    }

    #[test]
    fn a_file_that_disappeared_does_not_stop_the_others() {
        // A directory can be opened and not read. The same holds for the file of a node that has disappeared.
        let mut bench = Bench::new(
            1 << 20,
            &[("proc/vmstat", "a 1\n"), ("proc/stat", "b 1\n")],
            &[Source::Vmstat, Source::Stat],
        );
        let directory = fs::File::open(bench.root.path()).unwrap();
        bench.sampler.files[0].origin = Origin::File(directory);
        bench.sampler.sample(1, Moment::Cut);
        assert_eq!(bench.log.entries(), [Entry::Whole(1, 1, "b 1\n".into())]);
    }

    #[test]
    fn files_that_take_locks_are_read_once_a_second_and_at_cuts() {
        let mut bench = Bench::new(1 << 20, &[("proc/slabinfo", "a 1\n")], &[Source::Slabinfo]);
        bench.sampler.sample(10, Moment::Tick);
        for (time, moment, text) in [
            (20, Moment::Tick, "a 2\n"),
            (30, Moment::Cut, "a 3\n"),
            (LOCKED_INTERVAL + 29, Moment::Tick, "a 4\n"),
            (LOCKED_INTERVAL + 30, Moment::Tick, "a 5\n"),
        ] {
            fs::write(bench.path("proc/slabinfo"), text).unwrap();
            bench.sampler.sample(time, moment);
        }
        let times = bench.log.entries().into_iter().map(|entry| match entry {
            Entry::Event(time, _) | Entry::Whole(time, ..) | Entry::Patch(time, ..) => time,
        });
        assert_eq!(times.collect::<Vec<_>>(), [10, 30, LOCKED_INTERVAL + 30]);
    }

    #[test]
    fn a_full_recorder_ends_series() {
        let mut bench = Bench::new(64 << 10, &[("proc/vmstat", "")], &[Source::Vmstat]);
        for (time, size) in [(1, 40 << 10), (2, 10 << 10), (3, 1), (4, 2)] {
            fs::write(bench.path("proc/vmstat"), "x".repeat(size)).unwrap();
            bench.sampler.sample(time, Moment::Cut);
        }
        let entries = bench.log.entries();
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[1], Entry::Event(2, Event::SeriesDropped));
    }
}
