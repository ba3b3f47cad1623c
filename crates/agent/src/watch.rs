//! Runs the sampler and the reader of the kernel's log at every tick and every cut, beside the workloads. One
//! lock orders them, so that a cut is between two samples and never within one.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use flight::Event;
use flight::event::{MAX_CUTS, MAX_NOTES, MAX_SAMPLES, MAX_TEXT};
use flight::profile::{self, MARK, TICK};
use guest::arch;
use guest::clock::{Ticks, boot_time};
use guest::kmsg::{KernelLog, MAX_PIECE};
use model::{Millis, NoteKind};

use crate::recorder::{RecordError, Recorder};
use crate::sampler::profile::Profiler;
use crate::sampler::{Moment, Sampler};

/// The ticker's stack. It is small because all of it is locked in memory.
const STACK: usize = 128 << 10;
/// The shortest interval. With a shorter one the sampler would dominate the measurement.
const MIN_INTERVAL: Duration = Duration::from_millis(10);

// A piece of the kernel's log fits into an event.
const _: () = assert!(MAX_PIECE <= MAX_TEXT);

/// The sampler and the reader of the kernel's log, which share a recorder.
pub struct Watch {
    recorder: Arc<Recorder>,
    root: PathBuf,
    sources: Mutex<Sources>,
}

struct Sources {
    sampler: Sampler,
    profiler: Option<Profiler>,
    log: KernelLog,
    tally: Tally,
}

/// How many records of limited kinds a boot has made.
#[derive(Default)]
struct Tally {
    cuts: usize,
    samples: usize,
    note_bytes: usize,
}

impl Tally {
    /// Counts an event. Fails if a boot cannot have more of its kind.
    fn admit(&mut self, event: &Event) -> Result<(), RecordError> {
        let (count, more, what, most) = match event {
            Event::Begin { .. } | Event::Phase(_) | Event::End(_) | Event::WorkloadFailed(_) => {
                (&mut self.cuts, 1, "phases", MAX_CUTS)
            }
            Event::Sample { .. } => (&mut self.samples, 1, "samples", MAX_SAMPLES),
            Event::Note(note) => (&mut self.note_bytes, note.len(), "bytes of notes", MAX_NOTES),
            _ => return Ok(()),
        };
        if *count + more > most {
            return Err(RecordError::TooMany { what, most });
        }
        *count += more;
        Ok(())
    }
}

impl Watch {
    /// Begins to read the kernel's log. [`Watch::open`] opens files. `root` is `/` except in tests.
    pub fn new(recorder: Arc<Recorder>, root: &Path) -> Self {
        // Boot logs are well below a MiB. A kernel that never stops logging gets an eighth of the space.
        let log = KernelLog::open(recorder.capacity() / 8);
        let sampler = Sampler::new(recorder.clone());
        let sources = Mutex::new(Sources { sampler, profiler: None, log, tally: Tally::default() });
        Self { recorder, root: root.into(), sources }
    }

    /// Leaves out what the kernel's log has so far.
    pub fn skip_log(&self) {
        self.lock().log = KernelLog::from_now(self.recorder.capacity() / 8);
    }

    /// Opens the files and events to sample, and records their list. If `frequency` is given, starts the profile.
    /// Notes say what cannot be counted or sampled. Fails if the recorder is full.
    pub fn open(&self, wanted: &model::Sampler, frequency: Option<u32>) -> Result<(), RecordError> {
        let problems = {
            let sampler = &mut self.lock().sampler;
            sampler.open(&self.root, &wanted.sources);
            let problems = sampler.count(&self.root, &wanted.events);
            self.recorder.event(boot_time(), &Event::Files(sampler.files()))?;
            problems
        };
        problems.iter().try_for_each(|problem| self.note(NoteKind::NotCounted, problem))?;
        frequency.map_or(Ok(()), |frequency| self.profile(frequency, wanted.interval))
    }

    /// Starts the profile and records what it samples, or a note on why it cannot be made.
    fn profile(&self, frequency: u32, interval: Millis) -> Result<(), RecordError> {
        let interval = Duration::from_millis(interval.0).max(MIN_INTERVAL);
        match Profiler::start(&self.root, frequency, interval, &self.recorder) {
            Err(why) => self.note(NoteKind::Profile, &format!("there is none: {why}")),
            Ok(profiler) => {
                self.event(&profiler.description())?;
                if !profiler.has_names() {
                    let why = "functions have no names: /proc/kallsyms does not tell addresses";
                    self.note(NoteKind::Profile, why)?;
                }
                self.lock().profiler = Some(profiler);
                Ok(())
            }
        }
    }

    /// Notes how often events could not be read, and how many samples are missing. Fails when the recorder is full.
    pub fn report_lost(&self) -> Result<(), RecordError> {
        let lost = self.lock().sampler.lost_events();
        if lost > 0 {
            let lost = format!(
                "{lost} readings failed: figures of phases that they begin or end are missing"
            );
            self.note(NoteKind::NotCounted, &lost)?;
        }
        let missing = self.lock().profiler.as_ref().map(Profiler::missing);
        missing.iter().flatten().try_for_each(|missing| self.note(NoteKind::Profile, missing))
    }

    /// Ends the profile, if there is one. Returns the beginnings of the functions in it.
    pub fn stop_profile(&self) -> Option<BTreeSet<u64>> {
        Some(self.lock().profiler.take()?.functions())
    }

    fn note(&self, kind: NoteKind, text: &str) -> Result<(), RecordError> {
        self.event(&Event::Note(kind.note(text).to_string()))
    }

    /// Samples at every `interval` in its own thread, until the machine ends. Fails when the kernel cannot
    /// start a thread.
    pub fn tick_every(self: &Arc<Self>, interval: Duration) -> io::Result<()> {
        let watch = self.clone();
        let mut ticks = Ticks::every(interval.max(MIN_INTERVAL));
        let ticker = thread::Builder::new().name(profile::SAMPLER.into()).stack_size(STACK);
        ticker.spawn(move || {
            loop {
                ticks.wait();
                watch.tick();
            }
        })?;
        Ok(())
    }

    fn tick(&self) {
        let mut sources = self.lock();
        let time = boot_time();
        arch::mark_with::<TICK>(time);
        sources.sampler.sample(time, Moment::Tick);
        if let Some(profiler) = &mut sources.profiler {
            profiler.tick(&self.recorder, time);
        }
        self.drain(&mut sources.log);
    }

    /// Records an event now. It waits for a running sample, so that frames are in the order of their times.
    /// Fails when the recorder is full, or the event exceeds a limit of a boot.
    pub fn event(&self, event: &Event) -> Result<(), RecordError> {
        let mut ordered = self.lock();
        ordered.tally.admit(event)?;
        self.recorder.event(boot_time(), event)
    }

    /// Records every file and then the event, with the same time. The profile is cut before and after, so that none
    /// of its phases contains this work. Fails if the recorder is full, or if a boot may not have more cuts.
    pub fn cut(&self, event: &Event) -> Result<(), RecordError> {
        let mut sources = self.lock();
        sources.tally.admit(event)?;
        arch::mark::<MARK>();
        if let Some(profiler) = &mut sources.profiler {
            profiler.cut(&self.recorder, boot_time());
        }
        self.drain(&mut sources.log);
        let time = self.cut_time();
        sources.sampler.sample(time, Moment::Cut);
        let recorded = self.recorder.event(time, event);
        if let Some(profiler) = &mut sources.profiler {
            profiler.skip();
        }
        arch::mark::<MARK>();
        recorded
    }

    /// Records the rest of the kernel's log.
    pub fn drain_log(&self) {
        self.drain(&mut self.lock().log);
    }

    fn drain(&self, log: &mut KernelLog) {
        // If the recorder is full, the workload's own events report that. The console has the lines too.
        log.drain(|lines| drop(self.recorder.event(boot_time(), &Event::Log(lines))));
    }

    /// The time of a cut, taken after the counters of CPUs were folded. Otherwise figures by node lag by up to
    /// `vm.stat_interval` (`mm/vmstat.c`). On kernels without this file they lag.
    fn cut_time(&self) -> u64 {
        let _ = fs::write(self.root.join("proc/sys/vm/stat_refresh"), "1");
        boot_time()
    }

    fn lock(&self) -> MutexGuard<'_, Sources> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use model::Source;

    use super::*;
    use crate::recorder::tests::{Entry, Log};

    #[test]
    fn records_over_the_limit_of_a_boot_are_errors() {
        let log = Log::new(16 << 20);
        let root = tempfile::tempdir().unwrap();
        let watch = Watch::new(log.recorder.clone(), root.path());
        watch.lock().log = KernelLog::default();
        let phase = Event::Phase("p".into());
        watch.cut(&Event::Begin { workload: 0, iteration: 0 }).unwrap();
        for _ in 1..MAX_CUTS {
            watch.cut(&phase).unwrap();
        }
        let told = watch.cut(&phase).unwrap_err().to_string();
        assert_eq!(told, "a boot cannot record more than 32767 phases: report fewer");
        for _ in 0..MAX_NOTES / 4096 {
            watch.event(&Event::Note("x".repeat(4096))).unwrap();
        }
        let told = watch.event(&Event::Note("x".into())).unwrap_err().to_string();
        assert!(
            told.starts_with("a boot cannot record more than 1048576 bytes of notes"),
            "{told}"
        );
        // Records with another limit are still accepted.
        watch
            .event(&Event::Sample { metric: "x".into(), label: "".into(), value: 1.0, ended: None })
            .unwrap();
        assert_eq!(log.events().len(), MAX_CUTS + MAX_NOTES / 4096 + 1);
    }

    #[test]
    fn a_cut_has_one_time_and_its_event_comes_after_the_files() {
        let log = Log::new(1 << 20);
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc")).unwrap();
        fs::write(root.path().join("proc/stat"), "cpu 1\n").unwrap();
        let watch = Watch::new(log.recorder.clone(), root.path());
        watch.lock().log = KernelLog::default();
        let wanted = model::Sampler { sources: vec![Source::Stat], ..Default::default() };
        watch.open(&wanted, None).unwrap();
        watch.cut(&Event::Begin { workload: 0, iteration: 0 }).unwrap();
        watch.cut(&Event::Phase("steady".into())).unwrap();
        let entries = log.entries();
        let [
            Entry::Event(_, Event::Files(files)),
            Entry::Whole(first, 0, _),
            Entry::Event(begun, Event::Begin { .. }),
            Entry::Patch(second, 0, _),
            Entry::Event(ended, Event::Phase(_)),
        ] = entries.as_slice()
        else {
            panic!("{entries:?}")
        };
        assert_eq!(files.len(), 1);
        assert!(begun == first && second == ended && first <= second);
    }
}
