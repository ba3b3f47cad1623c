//! Reads the flight recorder's file while the guest writes it and afterwards.
//!
//! The file is copied by `pread`, and the copy is validated. The file is never mapped, because the guest may change
//! any byte at any time.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use flight::frame::{self, Frame};
use flight::log::Frames;

use crate::RECORDER_FILE;

/// The size of the copy, enough for all but the longest frames.
const COPY: usize = 64 << 10;
/// The size of the longest frame.
const LONGEST: usize = frame::size(frame::MAX_PAYLOAD);

/// A recorder's file, with a read position.
pub struct Tail {
    file: File,
    copy: Vec<u8>,
    offset: u64,
    sequence: u64,
}

impl Tail {
    /// A recorder's file, to be read from its start.
    pub fn new(file: File) -> Self {
        Self { file, copy: Vec::new(), offset: 0, sequence: 0 }
    }

    /// Passes every new complete frame to `each`. Fails when the file cannot be read.
    pub fn read(&mut self, mut each: impl FnMut(&Frame<'_>)) -> io::Result<()> {
        while let Some(run) = self.next_run()? {
            Frames::resume(run.bytes, run.sequence).for_each(|frame| each(&frame));
        }
        Ok(())
    }

    /// Copies the next complete frames; `None` if there is none.
    fn next_run(&mut self) -> io::Result<Option<Run<'_>>> {
        let mut length = self.copy(COPY)?;
        let (mut end, mut count) = self.frames(length);
        if count == 0 && length == COPY && self.copy.starts_with(&frame::MAGIC) {
            length = self.copy(LONGEST)?;
            (end, count) = self.frames(length);
        }
        if count == 0 {
            return Ok(None);
        }
        let sequence = self.sequence;
        self.offset += end as u64;
        self.sequence += count;
        let bytes = &self.copy[..end.min(length)];
        Ok(Some(Run { bytes, sequence }))
    }

    /// Copies up to `length` bytes from the read position; fewer at the end of the file.
    fn copy(&mut self, length: usize) -> io::Result<usize> {
        if self.copy.len() < length {
            self.copy.resize(length, 0);
        }
        self.file.read_at(&mut self.copy[..length], self.offset)
    }

    /// The end of the frames in the first `length` bytes of the copy, and their number.
    fn frames(&self, length: usize) -> (usize, u64) {
        let mut frames = Frames::resume(&self.copy[..length], self.sequence);
        let count = frames.by_ref().count();
        (frames.offset(), count as u64)
    }
}

/// The bytes of consecutive complete frames.
struct Run<'a> {
    bytes: &'a [u8],
    /// The sequence number of the first frame.
    sequence: u64,
}

/// A machine's recording: the bytes of its log up to the end of the last complete frame, for
/// [`flight::log::Frames`]. Empty if the machine had no recorder. Fails when the file cannot be read.
pub fn read_log(directory: &Path) -> io::Result<Vec<u8>> {
    let file = match File::open(directory.join(RECORDER_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file?,
    };
    let mut tail = Tail::new(file);
    let mut log = Vec::new();
    while let Some(run) = tail.next_run()? {
        log.extend_from_slice(run.bytes);
    }
    Ok(log)
}

#[cfg(test)]
mod tests {
    use flight::frame::Kind;
    use flight::log::Cursor;

    use super::*;

    /// A sparse recorder, and a writer like the agent.
    struct Recorder {
        directory: tempfile::TempDir,
        file: File,
        cursor: Cursor,
    }

    impl Recorder {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let file = File::create(directory.path().join(RECORDER_FILE)).unwrap();
            file.set_len(64 << 20).unwrap();
            let cursor = Cursor::new(64 << 20);
            Self { directory, file, cursor }
        }

        /// Writes a frame; without its magic if it is `unfinished`.
        fn write(&mut self, payload: &[u8], unfinished: bool) -> u64 {
            let reserved = self.cursor.reserve(Kind::Event, payload.len()).unwrap();
            let header = frame::header(Kind::Event, reserved.sequence, 7, payload);
            let offset = reserved.offset as u64;
            self.file.write_all_at(payload, offset + frame::HEADER as u64).unwrap();
            let skipped = if unfinished { frame::MAGIC.len() } else { 0 };
            self.file.write_all_at(&header[skipped..], offset + skipped as u64).unwrap();
            offset
        }

        fn tail(&self) -> Tail {
            Tail::new(File::open(self.directory.path().join(RECORDER_FILE)).unwrap())
        }
    }

    fn payloads(tail: &mut Tail) -> Vec<Vec<u8>> {
        let mut payloads = Vec::new();
        tail.read(|frame| payloads.push(frame.payload.to_vec())).unwrap();
        payloads
    }

    #[test]
    fn a_growing_file_is_read_as_it_grows() {
        let mut recorder = Recorder::new();
        let mut tail = recorder.tail();
        assert!(payloads(&mut tail).is_empty());
        recorder.write(b"one", false);
        recorder.write(b"two", false);
        assert_eq!(payloads(&mut tail), [b"one", b"two"]);
        assert!(payloads(&mut tail).is_empty());
        let unfinished = recorder.write(b"three", true);
        assert!(payloads(&mut tail).is_empty());
        recorder.file.write_all_at(&frame::MAGIC, unfinished).unwrap();
        assert_eq!(payloads(&mut tail), [b"three"]);
    }

    #[test]
    fn frames_of_every_length_are_read_across_copies() {
        let mut recorder = Recorder::new();
        let lengths = [0, COPY - frame::HEADER - 1, 1, COPY, 5, frame::MAX_PAYLOAD, 3];
        let written = lengths.map(|length| vec![length as u8 + 1; length]);
        for payload in &written {
            recorder.write(payload, false);
        }
        assert_eq!(payloads(&mut recorder.tail()), written);
        let log = read_log(recorder.directory.path()).unwrap();
        let read: Vec<_> = Frames::new(&log).map(|frame| frame.payload.to_vec()).collect();
        assert_eq!(read, written);
    }

    #[test]
    fn damage_ends_the_log_after_the_undamaged_frames() {
        let mut recorder = Recorder::new();
        recorder.write(b"whole", false);
        let torn = recorder.write(&[1; COPY], false);
        recorder.write(b"after", false);
        recorder.file.write_all_at(&[2], torn + 100).unwrap();
        assert_eq!(payloads(&mut recorder.tail()), [b"whole"]);
        let log = read_log(recorder.directory.path()).unwrap();
        assert_eq!(log.len(), frame::size(5));
    }

    #[test]
    fn a_machine_without_a_recorder_has_an_empty_recording() {
        let directory = tempfile::tempdir().unwrap();
        assert!(read_log(directory.path()).unwrap().is_empty());
    }
}
