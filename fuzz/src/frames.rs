//! Recordings and profiles. Their frames have checksums, which a damaged input would rarely pass. So the frames of an
//! input get right checksums and numbers before they are read.

use flight::frame::{self, HEADER, Kind, MAX_PAYLOAD};
use flight::log::Frames;
use flight::{Event, patch};

/// A recording: events, and contents of kernel files as patches.
pub fn events(_name: &str, bytes: &[u8]) -> bool {
    let mut text = Vec::new();
    let mut events = 0;
    for frame in Frames::new(&with_sums(bytes)) {
        if let Ok(event) = Event::decode(frame.payload) {
            let _ = event.encode();
            events += 1;
        }
        if let Some(patched) = patch::apply(&text, frame.payload) {
            text = patched;
        }
    }
    events > 0
}

/// The profile of an exact boot.
pub fn profile(_name: &str, bytes: &[u8]) -> bool {
    flight::profile::read(&with_sums(bytes)).is_ok()
}

/// The same frames with right headers. The length of each frame is the one in its header, limited to the bytes that
/// there are.
fn with_sums(bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    let mut rest = bytes;
    for sequence in 0.. {
        let Some((header, after)) = rest.split_at_checked(HEADER) else { break };
        let number = |place: usize| -> usize {
            header[place..place + 4].iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte))
        };
        let length = number(8).min(after.len()).min(MAX_PAYLOAD);
        let (payload, next) = after.split_at(length);
        let kind = Kind::from_number(number(12) as u16).unwrap_or(Kind::Event);
        whole.extend(frame::header(kind, sequence, number(24) as u64, payload));
        whole.extend(payload);
        whole.resize(whole.len().next_multiple_of(frame::ALIGNMENT), 0);
        rest = next.get(frame::size(length) - HEADER - length..).unwrap_or_default();
    }
    whole
}
