//! Turns a boot's recording into samples, usage and series.
//!
//! A recording is untrusted: the checksum of each frame was checked, but its contents may be
//! anything. Work and memory are limited. Series over their limit are dropped, and kernel messages
//! over theirs are cut; the boot reports both. The boot fails if anything else exceeds its limit,
//! or if a frame is not one that the agent would write at that place ([`crate::order`]).

use flight::event::{Event, Hello, MAX_CUTS, MAX_NOTES, MAX_SAMPLES};
use flight::frame::Kind;
use flight::log::Frames;
use flight::protocol::{is_metric, is_name};
use model::{
    Chunk, Note, NoteKind, ONCE, Sample, StatesFound, Usage, is_reserved, is_reserved_phase,
};

use crate::order::Order;
use crate::sampled::Sampling;
use crate::series::Series;
use crate::span::{PhaseId, Span};

/// The largest number of iterations of a boot.
const MAX_ITERATIONS: usize = 100_000;
/// The largest part of the kernel's log that is stored, in bytes.
const MAX_LOG: usize = 8 << 20;
/// The longest note on what a workload left, in bytes.
const MAX_LEFT: usize = 1024;
/// The largest number of notes on what workloads left, per workload of the job.
const MOST_LEFT: usize = 16;

/// The largest size of a kernel's symbols, in bytes.
pub const MAX_SYMBOLS: usize = 64 << 20;

/// The contents of a recording.
#[derive(Debug, Default)]
pub struct Recording {
    /// The latest time of a frame, in nanoseconds since the guest started.
    pub lived: u64,
    /// What the agent reported about the guest; `None` if the agent never started.
    pub hello: Option<Hello>,
    /// The samples of all workloads, in the order in which they were recorded.
    pub samples: Vec<Sample>,
    /// The times of each completed iteration.
    pub usage: Vec<Usage>,
    /// The series, one chunk for each source and phase.
    pub chunks: Vec<Chunk>,
    /// The spans between cuts, including the one before the first cut.
    pub spans: Vec<Span>,
    /// The samples of the profile; `None` if the guest was not profiled.
    pub sampling: Option<Sampling>,
    /// The lines of the guest's `/proc/kallsyms`; empty if they were not recorded.
    pub symbols: String,
    /// Notes on the states that each workload found when it started.
    pub found: Vec<Note>,
    /// Notes on what workloads left behind, such as a mount.
    pub left: Vec<Note>,
    /// Notes that the workloads reported.
    pub notes: Vec<Note>,
    /// The kernel's log as the agent read it.
    pub log: String,
    /// Whether the end of the log is missing, because it was too long.
    pub log_cut: bool,
    /// The workloads that failed, each with the reason.
    pub failures: Vec<(String, String)>,
    /// Why the job ended early; `None` if it did not.
    pub failed: Option<String>,
    /// Why the recording cannot be used: it is damaged or contradicts itself. `None` if it can.
    pub unsound: Option<String>,
    /// The kernel's taint flags at the end; `None` if the agent did not finish.
    pub bye: Option<u64>,
    /// Whether series are missing because the recorder was full or the recording exceeded a limit.
    pub series_dropped: bool,
}

/// Reads a recording. `workloads` are the names of the job's workloads, in order, each with its number of
/// iterations.
pub fn collect(log: &[u8], workloads: &[(String, u32)]) -> Recording {
    let mut collector = Collector { workloads, ..Collector::default() };
    let mut order = Order::new(workloads);
    for frame in Frames::new(log) {
        collector.recording.lived = collector.recording.lived.max(frame.time);
        let event = match Kind::from_number(frame.kind) {
            Some(Kind::Event) => Event::decode(frame.payload).map(Some).ok(),
            Some(Kind::Series) => Some(None),
            Some(Kind::Profile) | None => None,
        };
        collector.accept(event.is_some(), "the content of a frame");
        let Some(event) = event else { continue };
        if let Err(why) = order.take(frame.time, event.as_ref()) {
            let why = format!("the recording contradicts itself: {why}");
            collector.recording.unsound.get_or_insert(why);
        }
        match event {
            Some(event) => collector.event(event, frame.time),
            None => collector.series.record(frame.payload, frame.time),
        }
    }
    collector.cut();
    let span = std::mem::take(&mut collector.span);
    collector.recording.spans.push(span);
    let dropped = collector.series.overflowed();
    collector.recording.series_dropped |= dropped;
    collector.recording
}

#[derive(Default)]
struct Collector<'a> {
    workloads: &'a [(String, u32)],
    recording: Recording,
    current: PhaseId,
    span: Span,
    series: Series,
    note_bytes: usize,
}

impl Collector<'_> {
    fn event(&mut self, event: Event, time: u64) {
        let recording = &mut self.recording;
        match event {
            Event::Hello(hello) => recording.hello = Some(hello),
            Event::Files(files) => self.series.files(files),
            Event::Begin { workload, iteration } => {
                self.cut();
                let name = self.workloads.get(usize::from(workload)).map(|(name, _)| name.clone());
                let workload = name.unwrap_or_default();
                self.current = PhaseId { workload, iteration, phase: String::new() };
                self.begin(Some(self.current.clone()), time);
            }
            Event::Phase(phase) => {
                self.cut();
                let named = phase.is_empty() || is_name(&phase) && !is_reserved_phase(&phase);
                if self.accept(named, "the name of a phase") {
                    self.current.phase = phase;
                }
                self.begin(Some(self.current.clone()), time);
            }
            Event::Sample { metric, label, value, ended } => {
                self.sample(metric, label, value, ended);
            }
            Event::Point { series, value } => {
                let sound = is_name(&series) && value.is_finite();
                if self.accept(sound, "the name or the value of a series") {
                    self.series.point(&series, value, time);
                }
            }
            Event::Note(note) => {
                self.note_bytes = self.note_bytes.saturating_add(note.len());
                if self.accept(self.note_bytes <= MAX_NOTES, "the length of its notes") {
                    self.recording.notes.push(match Note::from(&*note) {
                        // Such notes are the agent's.
                        Note { kind: NoteKind::Left | NoteKind::Found, .. } => {
                            NoteKind::Remark.note(format!("note: {note}"))
                        }
                        note => Note { workload: self.current.workload.clone(), ..note },
                    });
                }
            }
            Event::End(usage) => self.end(usage, time),
            Event::WorkloadFailed(why) => {
                let room = self.recording.failures.len() < self.workloads.len();
                if self.accept(room, "the number of failures") {
                    self.recording.failures.push((self.current.workload.clone(), why));
                }
                self.leave(time);
            }
            Event::Log(text) => {
                if recording.log.len() + text.len() <= MAX_LOG {
                    recording.log.push_str(&text);
                } else {
                    recording.log_cut = true;
                }
            }
            Event::Sampling { event, frequency } => {
                if self.accept(is_name(&event), "the name of an event") {
                    self.recording.sampling.get_or_insert(Sampling::new(event, frequency));
                }
            }
            Event::Samples(samples) => {
                let place = recording.spans.len();
                let taken = recording.sampling.as_mut().map(|it| it.add(place, time, samples));
                self.accept(taken.unwrap_or(false), "the number of samples of its profile");
            }
            Event::Found { workload, states } => {
                let room = recording.found.len() < self.workloads.len();
                let name = self.workloads.get(usize::from(workload)).filter(|_| room);
                if self.accept(name.is_some(), "the number of workloads with states")
                    && let Some((name, _)) = name
                {
                    let found = StatesFound::new(name, &states);
                    let note = (!found.states.is_empty()).then(|| found.note());
                    self.recording.found.extend(note);
                }
            }
            Event::Left(left) => {
                let note = Note::from(&*left);
                let sound = note.kind == NoteKind::Left && left.len() <= MAX_LEFT;
                let room = self.recording.left.len() < MOST_LEFT * self.workloads.len();
                if self.accept(sound && room, "a note on what a workload left") {
                    self.recording.left.push(note);
                }
            }
            Event::SeriesDropped => recording.series_dropped = true,
            Event::Failed(reason) => {
                recording.failed.get_or_insert(reason);
            }
            Event::Bye { tainted } => recording.bye = Some(tainted),
            Event::Symbols(lines) => {
                let room = recording.symbols.len() + lines.len() <= MAX_SYMBOLS;
                if self.accept(room, "the length of its symbols") {
                    self.recording.symbols.push_str(&lines);
                }
            }
        }
    }

    fn sample(&mut self, metric: String, label: String, value: f64, ended: Option<u64>) {
        let named =
            is_metric(&metric) && !is_reserved(&metric) && (label.is_empty() || is_name(&label));
        let room = self.recording.samples.len() < MAX_SAMPLES;
        if self.accept(named, "the name of a metric")
            && self.accept(value.is_finite(), "a value")
            && self.accept(room, "the number of samples")
        {
            let PhaseId { workload, iteration, phase } = self.current.clone();
            let count = ONCE;
            let sample = Sample { workload, iteration, phase, metric, label, value, count, ended };
            self.recording.samples.push(sample);
        }
    }

    fn end(&mut self, usage: flight::event::Usage, time: u64) {
        let room = self.recording.usage.len() < MAX_ITERATIONS;
        if self.accept(room, "the number of iterations") {
            self.recording.usage.push(Usage {
                workload: self.current.workload.clone(),
                iteration: self.current.iteration,
                user: usage.user,
                system: usage.system,
                elapsed: usage.elapsed,
            });
        }
        self.leave(time);
    }

    /// Ends the current iteration.
    fn leave(&mut self, time: u64) {
        self.cut();
        self.current = PhaseId::default();
        self.begin(None, time);
    }

    /// Ends the current span at `time` and begins the next one.
    fn begin(&mut self, phase: Option<PhaseId>, time: u64) {
        let room = self.recording.spans.len() < MAX_CUTS;
        if self.accept(room, "the number of cuts") {
            let next = Span { phase, begun: time, ended: time };
            let ended = std::mem::replace(&mut self.span, next);
            self.recording.spans.push(Span { ended: time, ..ended });
        }
    }

    /// Checks a condition that every recording of the agent satisfies, and returns it. If it is
    /// false, the recording is unsound and the boot fails.
    fn accept(&mut self, sound: bool, what: &str) -> bool {
        if !sound {
            let reason =
                || format!("the recording is damaged: {what} is invalid or over its limit");
            self.recording.unsound.get_or_insert_with(reason);
        }
        sound
    }

    /// Ends the series of the current phase. Their last sample also begins the next phase: both
    /// phases contain the instant of the cut, so that differences of phases add up.
    fn cut(&mut self) {
        let PhaseId { workload, iteration, phase } = &self.current;
        let chunks = self.series.cut().into_iter().map(|cut| Chunk {
            workload: workload.clone(),
            iteration: *iteration,
            phase: phase.clone(),
            source: cut.source,
            times: cut.times,
            columns: cut.columns,
        });
        self.recording.chunks.extend(chunks);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use flight::event::File;
    use flight::frame;
    use flight::log::Cursor;
    use flight::patch::{Content, Record};
    use proptest::prelude::*;

    use super::*;

    /// Writes a recording in the agent's format.
    pub struct Writer {
        pub log: Vec<u8>,
        cursor: Cursor,
    }

    impl Writer {
        pub fn new() -> Self {
            Self::with_room(1 << 16)
        }

        fn with_room(bytes: usize) -> Self {
            Self { log: vec![0; bytes], cursor: Cursor::new(bytes) }
        }

        fn frame(&mut self, kind: Kind, time: u64, payload: &[u8]) {
            let reserved = self.cursor.reserve(kind, payload.len()).unwrap();
            let start = reserved.offset + frame::HEADER;
            self.log[reserved.offset..start]
                .copy_from_slice(&frame::header(kind, reserved.sequence, time, payload));
            self.log[start..start + payload.len()].copy_from_slice(payload);
        }

        pub fn event(&mut self, time: u64, event: Event) {
            self.frame(Kind::Event, time, &event.encode().unwrap());
        }

        fn vmstat(&mut self, time: u64, text: &str) {
            let record = Record { file: 0, content: Content::Whole(text.as_bytes()) };
            self.frame(Kind::Series, time, &postcard::to_stdvec(&record).unwrap());
        }
    }

    /// Returns the workloads of the job whose recording [`recorded`] returns.
    pub fn job() -> [(String, u32); 1] {
        [("autonuma".to_owned(), 2)]
    }

    pub fn recorded() -> Vec<u8> {
        let mut writer = Writer::new();
        writer.event(1, Event::Hello(Hello { release: "6.1.0".into(), ..Hello::default() }));
        writer.event(2, Event::Files(vec![File { source: "vmstat".into(), part: String::new() }]));
        for iteration in 0..2 {
            let time = 100 * u64::from(iteration);
            writer.vmstat(10 + time, &format!("pgfault {}\n", 10 + time));
            writer.event(11 + time, Event::Begin { workload: 0, iteration });
            writer.vmstat(20 + time, &format!("pgfault {}\n", 15 + time));
            writer.event(21 + time, Event::Phase("fill".into()));
            let metric = "SeqIn block".to_owned();
            let (label, ended) = (String::new(), Some(22 + time));
            writer.event(25 + time, Event::Sample { metric, label, value: 1.5, ended });
            writer.vmstat(30 + time, &format!("pgfault {}\n", 40 + time));
            let usage = flight::event::Usage { user: 1.0, system: 2.0, elapsed: 3e-9 };
            writer.event(31 + time, Event::End(usage));
        }
        writer.event(400, Event::Bye { tainted: 0 });
        writer.log
    }

    #[test]
    fn samples_and_series_are_assigned_to_their_phases() {
        let recording = collect(&recorded(), &job());
        assert_eq!((recording.bye, recording.unsound), (Some(0), None));
        assert_eq!((recording.samples.len(), recording.usage.len()), (2, 2));
        let sample = &recording.samples[1];
        assert_eq!((sample.phase.as_str(), sample.iteration), ("fill", 1));
        assert_eq!(sample.ended, Some(122));
        let differences: Vec<_> = recording
            .chunks
            .iter()
            .map(|chunk| {
                let difference = chunk.difference("pgfault").unwrap();
                (chunk.workload.as_str(), chunk.iteration, chunk.phase.as_str(), difference)
            })
            .collect();
        let expected = [
            ("autonuma", 0, "", 5),
            ("autonuma", 0, "fill", 25),
            ("", 0, "", 70),
            ("autonuma", 1, "", 5),
            ("autonuma", 1, "fill", 25),
        ];
        assert_eq!(differences, expected);
        let phases = recording.spans.iter().map(|span| {
            let phase = span.phase.as_ref();
            let phase = phase.map(|id| (id.iteration, &*id.phase));
            (phase, span.begun, span.ended)
        });
        let expected = [
            (None, 0, 11),
            (Some((0, "")), 11, 21),
            (Some((0, "fill")), 21, 31),
            (None, 31, 111),
            (Some((1, "")), 111, 121),
            (Some((1, "fill")), 121, 131),
            (None, 131, 131),
        ];
        assert_eq!(phases.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn only_the_agent_notes_what_was_found_and_left() {
        let mut writer = Writer::new();
        writer.event(1, Event::Hello(Hello::default()));
        let job = [("autonuma".to_owned(), 1)];
        let states = vec![("THP".to_owned(), "never".to_owned()), ("other".into(), "1".into())];
        writer.event(1, Event::Found { workload: 0, states });
        writer.event(2, Event::Note("found by autonuma: THP = always".into()));
        writer.event(3, Event::Note("left by autonuma: nothing".into()));
        writer.event(4, Event::Note("found by chance: nothing".into()));
        writer.event(5, Event::Left("left by autonuma: a mount on /x".into()));
        let sound = collect(&writer.log, &job);
        assert_eq!(sound.found, ["found by autonuma: THP = never".into()]);
        assert_eq!(sound.left, ["left by autonuma: a mount on /x".into()]);
        let expected = [
            "note: found by autonuma: THP = always",
            "note: left by autonuma: nothing",
            "found by chance: nothing",
        ];
        let expected = expected.map(|text| NoteKind::Remark.note(text));
        assert_eq!((&sound.notes[..], sound.failed), (&expected[..], None));
        for bad in [
            Event::Found { workload: 1, states: Vec::new() },
            Event::Left("of another kind".into()),
            Event::Left(format!("left by w: {}", "x".repeat(MAX_LEFT))),
        ] {
            let mut writer = Writer::new();
            writer.event(1, Event::Hello(Hello::default()));
            writer.event(2, bad);
            let bad = collect(&writer.log, &job);
            assert!(bad.failed.or(bad.unsound).is_some());
        }
    }

    #[test]
    fn a_reading_without_an_event_is_a_gap() {
        let mut writer = Writer::new();
        writer.event(1, Event::Files(vec![File { source: "events".into(), part: String::new() }]));
        writer.vmstat(10, "cs 0 1 10 10\ncs 1 2 10 10\nfaults 0 5 10 10\n");
        writer.event(11, Event::Begin { workload: 0, iteration: 0 });
        writer.vmstat(20, "faults 0 9 20 20\n");
        let usage = flight::event::Usage { user: 1.0, system: 2.0, elapsed: 3e-9 };
        writer.event(21, Event::End(usage));
        let chunks = collect(&writer.log, &job()).chunks;
        let grown = |event| chunks[0].difference(event);
        assert_eq!(
            (grown("cs"), grown("faults"), grown("faults enabled")),
            (None, Some(4), Some(10))
        );
        let switches = chunks[0].columns.iter().find(|column| column.name == "cs").unwrap();
        assert_eq!(switches.values, [Some(3), None]);
    }

    #[test]
    fn a_recording_with_too_many_cuts_fails() {
        let cut = |count| {
            let mut writer = Writer::with_room(count * 64);
            writer.event(0, Event::Hello(Hello::default()));
            writer.event(0, Event::Begin { workload: 0, iteration: 0 });
            for time in 1..count as u64 {
                writer.event(time, Event::Phase("fill".into()));
            }
            collect(&writer.log, &job())
        };
        let (most, beyond) = (cut(MAX_CUTS), cut(MAX_CUTS + 100));
        assert_eq!((most.spans.len(), most.unsound), (MAX_CUTS + 1, None));
        assert_eq!(beyond.spans.len(), MAX_CUTS + 1);
        assert!(
            beyond.unsound.unwrap().contains("the number of cuts is invalid or over its limit")
        );
    }

    #[test]
    fn a_sample_of_faultlines_own_metric_is_refused() {
        let mut writer = Writer::new();
        writer.event(1, Event::Hello(Hello::default()));
        writer.event(2, Event::Begin { workload: 0, iteration: 0 });
        let (metric, label) = ("instructions".to_owned(), "kernel".to_owned());
        writer.event(3, Event::Sample { metric, label, value: 1e8, ended: None });
        let usage = flight::event::Usage { user: 0.0, system: 0.0, elapsed: 0.0 };
        writer.event(4, Event::End(usage));
        writer.event(5, Event::Bye { tainted: 0 });
        let recording = collect(&writer.log, &[("forger".into(), 1)]);
        assert_eq!(recording.samples, []);
        let why = recording.unsound.unwrap();
        assert!(why.contains("the name of a metric is invalid"), "{why}");
    }

    proptest! {
        #[test]
        fn a_damaged_recording_is_read_as_far_as_it_holds(position in 0_usize..2000, byte in any::<u8>()) {
            let mut log = recorded();
            log[position] = byte;
            let recording = collect(&log, &job());
            prop_assert!(recording.samples.len() <= 2);
        }

        #[test]
        fn hostile_frames_are_survived(payloads in prop::collection::vec((1_u16..3, prop::collection::vec(any::<u8>(), 0..60)), 0..40)) {
            let mut writer = Writer::new();
            writer.event(2, Event::Files(vec![File { source: "vmstat".into(), part: String::new() }]));
            for (kind, payload) in payloads {
                writer.frame(Kind::from_number(kind).unwrap(), 3, &payload);
            }
            collect(&writer.log, &[]);
        }
    }
}
