//! Compares two recordings that should be equal.

use std::fmt::{self, Display};

use crate::Event;
use crate::event::File;
use crate::frame::{Frame, Kind};
use crate::log::Frames;
use crate::patch::{Content, Record};

/// The largest number of characters of a frame's content in a message.
const MAX_SHOWN: usize = 160;
/// The largest number of these characters before the first difference.
const MAX_SHARED: usize = 60;

/// The first frame in which two recordings differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDifference {
    /// The frame's sequence number.
    pub sequence: u64,
    /// The frame in each recording; `None` if that recording has ended.
    pub frames: [Option<Side>; 2],
    /// The first byte in which the payloads differ; `None` if they are equal or one frame is missing.
    pub byte: Option<usize>,
}

/// A frame of one of two recordings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// Guest time in nanoseconds.
    pub time: u64,
    /// The number of its kind.
    pub kind: u16,
    /// The number of bytes of its payload.
    pub length: usize,
    /// The payload in printable characters. If it is long, only the part around the first difference.
    pub content: String,
}

/// Compares two logs of the recorder, frame by frame: time, kind and payload. `None` if they are equal up to and
/// including the last frame, [`Event::Bye`], or up to the end of both if they have no such frame. The caller must
/// check whether that frame exists.
pub fn compare_logs(a: &[u8], b: &[u8]) -> Option<LogDifference> {
    let (mut a, mut b) = (Frames::new(a), Frames::new(b));
    let mut files = Vec::new();
    loop {
        let pair = [a.next(), b.next()];
        let first = pair.iter().flatten().next()?;
        if pair[0] != pair[1] {
            return Some(LogDifference::new(first.sequence, &pair, &files));
        }
        match event(first) {
            Some(Event::Bye { .. }) => return None,
            Some(Event::Files(list)) => files = list,
            _ => {}
        }
    }
}

fn event(frame: &Frame<'_>) -> Option<Event> {
    let is_event = frame.kind == Kind::Event as u16;
    is_event.then(|| Event::decode(frame.payload).ok()).flatten()
}

impl LogDifference {
    fn new(sequence: u64, pair: &[Option<Frame<'_>>; 2], files: &[File]) -> Self {
        let [a, b] = pair;
        let payloads = a.as_ref().zip(b.as_ref()).map(|(a, b)| (a.payload, b.payload));
        let byte = payloads.and_then(|(a, b)| {
            let same = shared(a.iter(), b.iter());
            (same < a.len().max(b.len())).then_some(same)
        });
        let contents = pair.each_ref().map(|frame| frame.as_ref().map(|it| content(it, files)));
        let same = match &contents {
            [Some(a), Some(b)] if byte.is_some() => shared(a.chars(), b.chars()),
            _ => 0,
        };
        let side = |number: usize| {
            let (frame, content) = pair[number].as_ref().zip(contents[number].as_ref())?;
            Some(Side {
                time: frame.time,
                kind: frame.kind,
                length: frame.payload.len(),
                content: around(content, same),
            })
        };
        Self { sequence, frames: [side(0), side(1)], byte }
    }
}

/// The length of the common prefix.
fn shared<T: PartialEq>(a: impl Iterator<Item = T>, b: impl Iterator<Item = T>) -> usize {
    a.zip(b).take_while(|(a, b)| a == b).count()
}

/// The content of a frame as one line of printable characters.
fn content(frame: &Frame<'_>, files: &[File]) -> String {
    let content = match Kind::from_number(frame.kind) {
        Some(Kind::Event) => event(frame).map(|event| format!("{event:?}")),
        Some(Kind::Series) => {
            postcard::from_bytes(frame.payload).ok().map(|record| series(&record, files))
        }
        Some(Kind::Profile) | None => None,
    };
    content.unwrap_or_else(|| "unreadable".to_owned())
}

fn series(record: &Record<'_>, files: &[File]) -> String {
    let file = match files.get(usize::from(record.file)) {
        Some(File { source, part }) if part.is_empty() => format!("{source:?}"),
        Some(File { source, part }) => format!("{source:?} {part:?}"),
        None => format!("file {}", record.file),
    };
    let (form, bytes) = match record.content {
        Content::Whole(bytes) => ("text", bytes),
        Content::Patch(bytes) => ("change", bytes),
    };
    format!("{form} of {file}: {:?}", String::from_utf8_lossy(bytes))
}

/// The part of a text around a character.
fn around(text: &str, middle: usize) -> String {
    let length = text.chars().count();
    if length <= MAX_SHOWN {
        return text.to_owned();
    }
    let start = middle.saturating_sub(MAX_SHARED).min(length - MAX_SHOWN);
    let part: String = text.chars().skip(start).take(MAX_SHOWN).collect();
    let before = if start > 0 { "..." } else { "" };
    let after = if start + MAX_SHOWN < length { "..." } else { "" };
    format!("{before}{part}{after}")
}

impl Display for LogDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frame {}", self.sequence)?;
        if let Some(byte) = self.byte {
            write!(f, ", byte {byte}")?;
        }
        let [a, b] = &self.frames;
        f.write_str(":\n")?;
        show(f, a.as_ref())?;
        f.write_str("\nagainst ")?;
        show(f, b.as_ref())
    }
}

fn show(f: &mut fmt::Formatter<'_>, side: Option<&Side>) -> fmt::Result {
    match side {
        Some(side) => side.fmt(f),
        None => f.write_str("the recording's end"),
    }
}

impl Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanoseconds) = (self.time / 1_000_000_000, self.time % 1_000_000_000);
        write!(f, "[{seconds}.{nanoseconds:09}] ")?;
        match Kind::from_number(self.kind) {
            Some(Kind::Event) => f.write_str("event")?,
            Some(Kind::Series) => f.write_str("series")?,
            Some(Kind::Profile) => f.write_str("profile")?,
            None => write!(f, "kind {}", self.kind)?,
        }
        write!(f, ", {} bytes: {}", self.length, self.content)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::frame::{self, ALIGNMENT};
    use crate::patch::Content;

    fn push(log: &mut Vec<u8>, kind: Kind, sequence: u64, time: u64, payload: &[u8]) {
        log.extend(frame::header(kind, sequence, time, payload));
        log.extend(payload);
        log.resize(log.len().next_multiple_of(ALIGNMENT), 0);
    }

    /// A log of these events, at these times.
    fn log(events: &[(u64, Event)]) -> Vec<u8> {
        let mut log = Vec::new();
        for (sequence, (time, event)) in events.iter().enumerate() {
            push(&mut log, Kind::Event, sequence as u64, *time, &event.encode().unwrap());
        }
        log
    }

    fn note(text: &str) -> Event {
        Event::Note(text.into())
    }

    const BYE: Event = Event::Bye { tainted: 0 };

    fn shown(a: &[u8], b: &[u8]) -> String {
        compare_logs(a, b).map(|difference| difference.to_string()).unwrap_or_default()
    }

    #[test]
    fn equal_logs_do_not_differ() {
        let one = log(&[(1, note("a")), (2, BYE)]);
        assert_eq!(compare_logs(&one, &one), None);
        assert_eq!(compare_logs(&[], &[]), None);
    }

    #[test]
    fn bytes_after_the_last_frame_are_ignored() {
        let one = log(&[(1, note("a")), (2, BYE)]);
        let two = log(&[(1, note("a")), (2, BYE), (3, note("b"))]);
        assert_eq!(compare_logs(&one, &two), None);
    }

    #[test]
    fn an_event_of_another_content() {
        let one = log(&[(1, note("a")), (1_500_000_000, note("left")), (9, BYE)]);
        let two = log(&[(1, note("a")), (1_500_000_000, note("lift\u{1b}[m")), (9, BYE)]);
        assert_eq!(
            shown(&one, &two),
            "frame 1, byte 1:\n[1.500000000] event, 6 bytes: Note(\"left\")\n\
             against [1.500000000] event, 9 bytes: Note(\"lift\\u{1b}[m\")"
        );
    }

    #[test]
    fn an_event_at_another_time() {
        let long = || note(&"a".repeat(200));
        let one = log(&[(1, long())]);
        let two = log(&[(2, long())]);
        let start = format!("Note(\"{}...", "a".repeat(MAX_SHOWN - 6));
        assert_eq!(
            shown(&one, &two),
            format!(
                "frame 0:\n[0.000000001] event, 203 bytes: {start}\n\
                 against [0.000000002] event, 203 bytes: {start}"
            )
        );
    }

    #[test]
    fn a_log_that_ends_early() {
        let two = log(&[(1, note("a"))]);
        assert_eq!(
            shown(&[], &two),
            "frame 0:\nthe recording's end\n\
             against [0.000000001] event, 3 bytes: Note(\"a\")"
        );
    }

    #[test]
    fn a_file_with_another_number() {
        let list = vec![File { source: "node-vmstat".into(), part: "node1".into() }];
        let files = Event::Files(list).encode().unwrap();
        let recording = |text: &[u8]| {
            let mut log = Vec::new();
            let record = Record { file: 0, content: Content::Whole(text) };
            push(&mut log, Kind::Event, 0, 5, &files);
            push(&mut log, Kind::Series, 1, 5, &postcard::to_stdvec(&record).unwrap());
            log
        };
        assert_eq!(
            shown(&recording(b"nr_free_pages 7\n"), &recording(b"nr_free_pages 8\n")),
            "frame 1, byte 17:\n\
             [0.000000005] series, 19 bytes: text of \"node-vmstat\" \"node1\": \"nr_free_pages 7\\n\"\n\
             against [0.000000005] series, 19 bytes: text of \"node-vmstat\" \"node1\": \"nr_free_pages 8\\n\""
        );
    }

    #[test]
    fn bytes_that_are_no_record() {
        let record = Record { file: 3, content: Content::Patch(b"\x01\x02") };
        let (mut one, mut two) = (Vec::new(), Vec::new());
        push(&mut one, Kind::Series, 0, 5, &postcard::to_stdvec(&record).unwrap());
        push(&mut two, Kind::Series, 0, 5, b"\x03\x07");
        assert_eq!(
            shown(&one, &two),
            "frame 0, byte 1:\n[0.000000005] series, 5 bytes: change of file 3: \"\\u{1}\\u{2}\"\n\
             against [0.000000005] series, 2 bytes: unreadable"
        );
    }

    #[test]
    fn a_long_event_is_shown_around_the_difference() {
        let text = |middle: &str| note(&format!("{0}{middle}{0}", "\u{e4}".repeat(30_000)));
        let one = log(&[(1, text("one"))]);
        let two = log(&[(1, text("two"))]);
        let difference = compare_logs(&one, &two).unwrap();
        for (side, word) in difference.frames.iter().zip(["one", "two"]) {
            let content = &side.as_ref().unwrap().content;
            assert!(content.starts_with("...\u{e4}") && content.ends_with("\u{e4}..."));
            assert!(content.contains(word));
            assert_eq!(content.chars().count(), MAX_SHOWN + 6);
        }
        let content = compare_logs(&one, &[]).unwrap().frames[0].clone().unwrap().content;
        assert!(content.starts_with("Note(") && content.ends_with("\u{e4}..."));
    }

    proptest! {
        #[test]
        fn hostile_payloads_are_survived(
            kind in 0..3_usize, a in prop::collection::vec(any::<u8>(), 0..200),
            b in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let kind = [Kind::Event, Kind::Series, Kind::Profile][kind];
            let (mut one, mut two) = (Vec::new(), Vec::new());
            push(&mut one, kind, 0, 1, &a);
            push(&mut two, kind, 0, 1, &b);
            let difference = compare_logs(&one, &two);
            prop_assert_eq!(difference.is_some(), a != b);
            let printed = difference.map(|difference| difference.to_string()).unwrap_or_default();
            prop_assert!(!printed.replace('\n', "").contains(char::is_control));
        }

        #[test]
        fn garbage_is_survived(
            a in prop::collection::vec(any::<u8>(), 0..512),
            b in prop::collection::vec(any::<u8>(), 0..512),
        ) {
            prop_assert_eq!(compare_logs(&a, &b), None);
        }
    }
}
