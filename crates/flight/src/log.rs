//! The log of the flight recorder: consecutive frames from the start of the shared memory. It is not a ring; frames
//! are never overwritten. Series are rejected once three quarters of it are used, so that there is always room for
//! events.

use crate::frame::{self, Frame, Kind};

/// The writer's state: the position of the next frame, and whether there is room for it.
#[derive(Clone, Debug)]
pub struct Cursor {
    capacity: usize,
    offset: usize,
    sequence: u64,
}

/// Room reserved for one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Offset of the header in the log.
    pub offset: usize,
    /// The frame's sequence number.
    pub sequence: u64,
}

impl Cursor {
    /// A cursor at the start of an empty log of `capacity` bytes.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, offset: 0, sequence: 0 }
    }

    /// Reserves room for a frame; `None` if there is no room for one of this kind.
    pub fn reserve(&mut self, kind: Kind, payload: usize) -> Option<Reservation> {
        let limit = match kind {
            Kind::Series => self.capacity / 4 * 3,
            Kind::Event | Kind::Profile => self.capacity,
        };
        let end = self.offset.checked_add(frame::size(payload))?;
        if payload > frame::MAX_PAYLOAD || end > limit {
            return None;
        }
        let reserved = Reservation { offset: self.offset, sequence: self.sequence };
        self.offset = end;
        self.sequence += 1;
        Some(reserved)
    }
}

/// Iterates over the frames of a log, up to the first one that is missing, torn or damaged.
///
/// `bytes` must be the host's own copy, because the guest may still be writing the original.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    bytes: &'a [u8],
    offset: usize,
    sequence: u64,
}

impl<'a> Frames<'a> {
    /// All frames of a log.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self::resume(bytes, 0)
    }

    /// The frames from `sequence` on. The header of the first one is at the start of `bytes`.
    pub fn resume(bytes: &'a [u8], sequence: u64) -> Self {
        Self { bytes, offset: 0, sequence }
    }

    /// The number of bytes read so far.
    pub fn offset(&self) -> usize {
        self.offset
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        let frame = frame::read(self.bytes.get(self.offset..)?)?;
        if frame.sequence != self.sequence {
            return None;
        }
        self.sequence += 1;
        self.offset += frame::size(frame.payload.len());
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A log like the agent's.
    fn written(capacity: usize, payloads: &[Vec<u8>]) -> Vec<u8> {
        let mut log = vec![0; capacity];
        let mut cursor = Cursor::new(capacity);
        for payload in payloads {
            let reserved = cursor.reserve(Kind::Event, payload.len()).expect("room");
            let header = frame::header(Kind::Event, reserved.sequence, 7, payload);
            let start = reserved.offset + frame::HEADER;
            log[start..start + payload.len()].copy_from_slice(payload);
            log[reserved.offset..start].copy_from_slice(&header);
        }
        log
    }

    #[test]
    fn series_leave_room_for_events() {
        let mut cursor = Cursor::new(4 * frame::size(8));
        for _ in 0..3 {
            assert!(cursor.reserve(Kind::Series, 8).is_some());
        }
        assert_eq!(cursor.reserve(Kind::Series, 8), None);
        assert!(cursor.reserve(Kind::Event, 8).is_some());
        assert_eq!(cursor.reserve(Kind::Event, 8), None);
    }

    #[test]
    fn reading_can_go_on_where_it_stopped() {
        let log = written(1024, &[vec![1], vec![2; 9], vec![3]]);
        let mut frames = Frames::new(&log);
        frames.next().unwrap();
        let rest: Vec<_> = Frames::resume(&log[frames.offset()..], 1).collect();
        assert_eq!(rest.len(), 2);
        assert_eq!(rest[1].payload, [3]);
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..20)) {
            let log = written(4096, &payloads);
            let read: Vec<_> = Frames::new(&log).map(|frame| frame.payload.to_vec()).collect();
            prop_assert_eq!(read, payloads);
        }

        #[test]
        fn a_torn_frame_ends_the_log_and_spares_what_is_before(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..80), 2..20),
            pick in any::<prop::sample::Index>(), flip in any::<prop::sample::Index>(), bit in 0..8,
        ) {
            let mut log = written(4096, &payloads);
            let torn = pick.index(payloads.len());
            let start: usize = payloads[..torn].iter().map(|payload| frame::size(payload.len())).sum();
            let position = start + flip.index(frame::HEADER + payloads[torn].len());
            log[position] ^= 1u8 << bit;
            let read: Vec<_> = Frames::new(&log).map(|frame| frame.payload.to_vec()).collect();
            prop_assert_eq!(&read[..], &payloads[..torn]);
        }

        #[test]
        fn garbage_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
            let _ = Frames::new(&bytes).count();
        }
    }
}
