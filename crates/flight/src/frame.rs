//! Encodes and reads one frame of the flight recorder.
//!
//! A frame is a header of 32 bytes, a payload, and padding to 8 bytes. All numbers are
//! little-endian.
//!
//! | offset | bytes | field |
//! | --- | --- | --- |
//! | 0 | 4 | magic `FLfr` |
//! | 4 | 4 | CRC-32 (IEEE) of bytes 8 to 32 and of the payload |
//! | 8 | 4 | length of the payload |
//! | 12 | 2 | kind |
//! | 14 | 2 | zero |
//! | 16 | 8 | sequence number, from 0, without gaps |
//! | 24 | 8 | guest time: nanoseconds of `CLOCK_BOOTTIME` |
//!
//! The writer stores the magic last, so that a reader does not take an incomplete frame for a complete one.
//! The checksum also detects torn frames.

/// The first bytes of a frame.
pub const MAGIC: [u8; 4] = *b"FLfr";
/// The size of a header.
pub const HEADER: usize = 32;
/// Frames begin at multiples of this number of bytes.
pub const ALIGNMENT: usize = 8;
/// The longest payload in bytes. A longer length in a header is damage.
pub const MAX_PAYLOAD: usize = 4 << 20;

/// The kind of a frame's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Kind {
    /// An [`crate::Event`].
    Event = 1,
    /// A [`crate::patch::Record`]: the contents of a kernel file. Not recorded when the recorder is nearly
    /// full.
    Series = 2,
    /// A part of a [`crate::profile::Phase`]. Only in a profile's file, not in the recorder's log.
    Profile = 3,
}

impl Kind {
    /// The kind with this number, if there is one.
    pub const fn from_number(number: u16) -> Option<Self> {
        match number {
            1 => Some(Self::Event),
            2 => Some(Self::Series),
            3 => Some(Self::Profile),
            _ => None,
        }
    }
}

/// A frame as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The number of its kind. Readers skip unknown numbers.
    pub kind: u16,
    /// Its sequence number.
    pub sequence: u64,
    /// Guest time in nanoseconds.
    pub time: u64,
    /// The payload's bytes.
    pub payload: &'a [u8],
}

/// The size of a frame with `payload` bytes, including padding.
pub const fn size(payload: usize) -> usize {
    (HEADER + payload).next_multiple_of(ALIGNMENT)
}

/// The header of a frame, including the magic. The caller must reject payloads above [`MAX_PAYLOAD`].
pub fn header(kind: Kind, sequence: u64, time: u64, payload: &[u8]) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[0..4].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    bytes[12..14].copy_from_slice(&(kind as u16).to_le_bytes());
    bytes[16..24].copy_from_slice(&sequence.to_le_bytes());
    bytes[24..32].copy_from_slice(&time.to_le_bytes());
    let sum = checksum(&bytes, payload);
    bytes[4..8].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn checksum(header: &[u8; HEADER], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&header[8..]);
    hasher.update(payload);
    hasher.finalize()
}

/// Reads the frame at the start of `bytes`. `None` if it is incomplete or damaged.
pub fn read(bytes: &[u8]) -> Option<Frame<'_>> {
    let header: &[u8; HEADER] = bytes.first_chunk()?;
    if header[0..4] != MAGIC {
        return None;
    }
    let length = number(&header[8..12]) as usize;
    if length > MAX_PAYLOAD {
        return None;
    }
    let payload = bytes.get(HEADER..HEADER + length)?;
    if u64::from(checksum(header, payload)) != number(&header[4..8]) {
        return None;
    }
    Some(Frame {
        kind: number(&header[12..14]) as u16,
        sequence: number(&header[16..24]),
        time: number(&header[24..32]),
        payload,
    })
}

/// A little-endian number of up to 8 bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}
