//! Writes the flight recorder: frames in memory that outlives the guest. It is independent of the device: the
//! agent maps the PCI device, and tests map files.

use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;

use flight::Event;
use flight::event::EventError;
use flight::frame::{self, HEADER, Kind};
use flight::log::{Cursor, Reservation};
use flight::patch::Record;
use guest::cut;
use guest::words::Words;

/// Space at the log's end that is reserved for the last records: why the job failed, and `Bye`.
const RESERVE: usize = 8 << 10;
/// The longest text of a failure, so that it fits in the reserve.
const MAX_FAILURE: usize = 4 << 10;
/// Bytes of a word of the log.
const WORD: usize = 8;

/// Why a record was not written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The log is full.
    #[error(
        "the flight recorder is full: set fewer `sources` or a longer `interval` in [sampler], or let the workload report less"
    )]
    Full,
    /// The job has ended, and the log with it.
    #[error("the flight recorder is closed")]
    Closed,
    /// A boot has as many records of this kind as it may have.
    #[error("a boot cannot record more than {most} {what}: report fewer")]
    TooMany {
        /// The kind of record.
        what: &'static str,
        /// How many records of this kind a boot may have.
        most: usize,
    },
    /// The event cannot be encoded.
    #[error(transparent)]
    Event(#[from] EventError),
    /// The record cannot be encoded.
    #[error("a sampled file cannot be recorded: {0}")]
    Record(#[from] postcard::Error),
}

/// Writes the log. Threads may share it.
pub struct Recorder {
    words: Words,
    state: Mutex<State>,
}

struct State {
    cursor: Cursor,
    used: usize,
    closed: bool,
    payload: Vec<u8>,
}

impl Recorder {
    /// An empty log over `words`, which must be zero.
    pub fn new(words: Words) -> Self {
        let state = State {
            cursor: Cursor::new(words.len() * WORD),
            used: 0,
            closed: false,
            payload: Vec::new(),
        };
        Self { words, state: Mutex::new(state) }
    }

    /// The size of the log in bytes.
    pub fn capacity(&self) -> usize {
        self.words.len() * WORD
    }

    /// Records an event at `time`, nanoseconds of `CLOCK_BOOTTIME`. Nothing is recorded after `Bye`. Fails
    /// when only the space reserved for `Failed` and `Bye` is left.
    pub fn event(&self, time: u64, event: &Event) -> Result<(), RecordError> {
        self.record_event(&mut self.lock(), time, event)
    }

    /// Records a sampled file at `time`. Fails when there is no space for series.
    pub fn series(&self, time: u64, record: &Record<'_>) -> Result<(), RecordError> {
        let mut state = self.lock();
        let mut payload = std::mem::take(&mut state.payload);
        payload.clear();
        let payload = postcard::to_extend(record, payload)?;
        let written = self.write(&mut state, Kind::Series, time, &payload);
        state.payload = payload;
        written
    }

    /// Records the agent's own failure, and `Bye`. Records nothing if the calling thread panicked while it held the
    /// log's lock.
    pub fn last_words(&self, time: u64, failure: &str, tainted: u64) {
        for _ in 0..1000 {
            let mut state = match self.state.try_lock() {
                Ok(state) => state,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    thread::yield_now();
                    continue;
                }
            };
            // If this fails too, nothing is left to report it.
            let _ = self.record_event(&mut state, time, &Event::Failed(failure.into()));
            let _ = self.record_event(&mut state, time, &Event::Bye { tainted });
            return;
        }
    }

    fn record_event(&self, state: &mut State, time: u64, event: &Event) -> Result<(), RecordError> {
        let (payload, reserve) = match event {
            Event::Failed(text) => (Event::Failed(cut(text, MAX_FAILURE).into()).encode()?, 0),
            Event::Bye { .. } => (event.encode()?, 0),
            _ => (event.encode()?, RESERVE),
        };
        let end = state.used + frame::size(payload.len()) + reserve;
        if end > self.capacity() && !state.closed {
            return Err(RecordError::Full);
        }
        self.write(state, Kind::Event, time, &payload)?;
        state.closed = matches!(event, Event::Bye { .. });
        Ok(())
    }

    fn write(
        &self,
        state: &mut State,
        kind: Kind,
        time: u64,
        payload: &[u8],
    ) -> Result<(), RecordError> {
        if state.closed {
            return Err(RecordError::Closed);
        }
        let reserved = state.cursor.reserve(kind, payload.len()).ok_or(RecordError::Full)?;
        state.used = reserved.offset + frame::size(payload.len());
        let header = frame::header(kind, reserved.sequence, time, payload);
        self.store(reserved, &header, payload);
        Ok(())
    }

    /// Writes the frame from its end. Its first word, with the magic and the checksum, is written last and
    /// atomically, so a reader never finds an incomplete frame.
    fn store(&self, reserved: Reservation, header: &[u8; HEADER], payload: &[u8]) {
        let frame = &self.words[reserved.offset / WORD..];
        let (head, body) = frame.split_at(HEADER / WORD);
        let (whole, rest) = payload.as_chunks::<WORD>();
        for (word, bytes) in body.iter().zip(whole) {
            word.store(u64::from_ne_bytes(*bytes), Relaxed);
        }
        if !rest.is_empty() {
            let mut padded = [0; WORD];
            padded[..rest.len()].copy_from_slice(rest);
            body[whole.len()].store(u64::from_ne_bytes(padded), Relaxed);
        }
        let (header, _) = header.as_chunks::<WORD>();
        for (word, bytes) in head.iter().zip(header).skip(1) {
            word.store(u64::from_ne_bytes(*bytes), Relaxed);
        }
        head[0].store(u64::from_ne_bytes(header[0]), Release);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use flight::log::Frames;
    use flight::patch::Content;

    use super::*;

    /// A log in a temporary file.
    pub struct Log {
        file: File,
        pub recorder: std::sync::Arc<Recorder>,
    }

    /// An event with its time, or a file's record with its index and whether it is complete.
    #[derive(Debug, PartialEq)]
    pub enum Entry {
        Event(u64, Event),
        Whole(u64, u16, String),
        Patch(u64, u16, Vec<u8>),
    }

    impl Log {
        pub fn new(capacity: u64) -> Self {
            let file = tempfile::tempfile().unwrap();
            file.set_len(capacity).unwrap();
            let recorder = Recorder::new(Words::shared(&file).unwrap());
            Self { file, recorder: recorder.into() }
        }

        pub fn entries(&self) -> Vec<Entry> {
            let mut bytes = vec![0; self.file.metadata().unwrap().len() as usize];
            self.file.read_exact_at(&mut bytes, 0).unwrap();
            let entry = |frame: frame::Frame<'_>| match Kind::from_number(frame.kind) {
                Some(Kind::Event) => {
                    Entry::Event(frame.time, Event::decode(frame.payload).unwrap())
                }
                _ => {
                    let record: Record<'_> = postcard::from_bytes(frame.payload).unwrap();
                    match record.content {
                        Content::Whole(text) => Entry::Whole(
                            frame.time,
                            record.file,
                            String::from_utf8(text.to_vec()).unwrap(),
                        ),
                        Content::Patch(patch) => {
                            Entry::Patch(frame.time, record.file, patch.to_vec())
                        }
                    }
                }
            };
            Frames::new(&bytes).map(entry).collect()
        }

        pub fn events(&self) -> Vec<Event> {
            let event = |entry| match entry {
                Entry::Event(_, event) => Some(event),
                _ => None,
            };
            self.entries().into_iter().filter_map(event).collect()
        }
    }

    #[test]
    fn the_host_reads_the_records() {
        let log = Log::new(1 << 16);
        // These lengths have all remainders modulo a word.
        let notes = (0..8).map(|length| Event::Note("nine bytes"[..length].into()));
        for note in notes.clone() {
            log.recorder.event(5, &note).unwrap();
        }
        let record = Record { file: 3, content: Content::Whole(b"a 1\n") };
        log.recorder.series(6, &record).unwrap();
        log.recorder.event(7, &Event::Bye { tainted: 1 }).unwrap();
        let mut expected: Vec<_> = notes.map(|note| Entry::Event(5, note)).collect();
        expected.push(Entry::Whole(6, 3, "a 1\n".into()));
        expected.push(Entry::Event(7, Event::Bye { tainted: 1 }));
        assert_eq!(log.entries(), expected);
    }

    #[test]
    fn a_full_log_has_space_for_the_last_records() {
        let log = Log::new(16 << 10);
        let note = Event::Note("x".repeat(1000));
        while log.recorder.event(0, &note).is_ok() {}
        assert!(matches!(log.recorder.event(0, &note), Err(RecordError::Full)));
        let long = Event::Failed("y".repeat(1 << 20));
        log.recorder.event(1, &long).unwrap();
        log.recorder.event(2, &Event::Bye { tainted: 0 }).unwrap();
        assert!(matches!(log.recorder.event(3, &note), Err(RecordError::Closed)));
        assert_eq!(log.events().last(), Some(&Event::Bye { tainted: 0 }));
    }

    #[test]
    fn the_last_records_are_written_unless_the_panic_held_the_lock() {
        let log = Log::new(16 << 10);
        let held = log.recorder.lock();
        log.recorder.last_words(1, "unheard", 0);
        drop(held);
        let poisoner = log.recorder.clone();
        let panicked = thread::spawn(move || {
            let _state = poisoner.state.lock();
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(panicked.join().is_err());
        log.recorder.last_words(2, "heard", 4);
        assert_eq!(log.events(), [Event::Failed("heard".into()), Event::Bye { tainted: 4 }]);
    }

    #[test]
    fn threads_share_a_log() {
        let log = Log::new(1 << 20);
        thread::scope(|scope| {
            for thread in 0..4 {
                let recorder = &log.recorder;
                scope.spawn(move || {
                    for _ in 0..100 {
                        recorder.event(thread, &Event::Note("n".into())).unwrap();
                    }
                });
            }
        });
        assert_eq!(log.entries().len(), 400);
    }
}
