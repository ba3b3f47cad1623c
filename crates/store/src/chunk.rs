//! The form in which a chunk's times and columns are kept.
//!
//! Counters mostly stand still or rise steadily, so each value is kept as its difference from the
//! one before (the first from 0; nulls are passed over), and so are times. The bytes are a format
//! number, then [`Kept`] in postcard's wire format (<https://postcard.jamesmunns.com>), all of it
//! packed.

use std::io;

use model::Column;
use serde::{Deserialize, Serialize};

use crate::packed;
use crate::series::Deltas;

/// Number of the only format so far.
const FORMAT: u8 = 1;
/// Room enough for a number.
const ROOM: usize = 10;

#[derive(Deserialize)]
struct Kept<'a> {
    times: Vec<i64>,
    #[serde(borrow)]
    columns: Vec<KeptColumn<'a>>,
}

#[derive(Deserialize)]
struct KeptColumn<'a> {
    name: &'a str,
    values: Vec<Option<i64>>,
}

/// The packed bytes of a series.
pub fn encode(times: &[u64], columns: &[Deltas]) -> io::Result<Vec<u8>> {
    let length = columns.iter().map(|column| column.name().len() + column.bytes().len() + ROOM);
    let mut bytes = Vec::with_capacity(ROOM * (1 + times.len()) + length.sum::<usize>());
    bytes.push(FORMAT);
    let mut previous = 0;
    let deltas = times.iter().map(|&time| {
        let delta = time.wrapping_sub(previous).cast_signed();
        previous = time;
        delta
    });
    let mut bytes = extend(bytes, &deltas.collect::<Vec<i64>>())?;
    bytes = extend(bytes, &columns.len())?;
    for column in columns {
        bytes = extend(bytes, &(column.name(), column.len()))?;
        bytes.extend_from_slice(column.bytes());
    }
    packed::pack(&bytes)
}

fn extend(bytes: Vec<u8>, what: &impl Serialize) -> io::Result<Vec<u8>> {
    postcard::to_extend(what, bytes).map_err(io::Error::other)
}

/// The first and the last sample of a series; all of it if it has no more than two.
pub fn ends(times: &[u64], columns: &[Column]) -> (Vec<u64>, Vec<Column>) {
    fn both<T: Copy>(all: &[T]) -> Vec<T> {
        match all {
            [first, _, .., last] => vec![*first, *last],
            few => few.to_vec(),
        }
    }
    let columns = columns.iter();
    let columns =
        columns.map(|column| Column { name: column.name.clone(), values: both(&column.values) });
    (both(times), columns.collect())
}

/// The series that [`encode`] was given; an error for bytes that it never returned.
pub fn decode(packed: &[u8]) -> io::Result<(Vec<u64>, Vec<Column>)> {
    parse(&packed::unpack(packed)?)
}

fn parse(bytes: &[u8]) -> io::Result<(Vec<u64>, Vec<Column>)> {
    let series = match bytes {
        [FORMAT, series @ ..] => series,
        [other, ..] => return Err(io::Error::other(format!("unknown format {other}"))),
        [] => return Err(io::Error::other("it is empty")),
    };
    let (deltas, rest): (Kept, _) = postcard::take_from_bytes(series).map_err(io::Error::other)?;
    if !rest.is_empty() {
        return Err(io::Error::other(format!("{} bytes too many", rest.len())));
    }
    let mut time = 0u64;
    let times = deltas.times.into_iter().map(|delta| {
        time = time.wrapping_add(delta.cast_unsigned());
        time
    });
    Ok((times.collect(), deltas.columns.into_iter().map(column).collect()))
}

fn column(deltas: KeptColumn<'_>) -> Column {
    let mut value = 0i64;
    let values = deltas.values.into_iter().map(|delta| {
        delta.map(|delta| {
            value = value.wrapping_add(delta);
            value
        })
    });
    Column { name: deltas.name.into(), values: values.collect() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 0 to 63 by the finalizer of splitmix64, which zstd cannot see through.
    fn noise(seed: u64) -> u64 {
        let seed = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let seed = (seed ^ seed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (seed ^ seed >> 31) % 64
    }

    fn encoded(times: &[u64], columns: &[Column]) -> Vec<u8> {
        encode(times, &columns.iter().map(Deltas::from).collect::<Vec<_>>()).unwrap()
    }

    /// Counters as a busy guest has them, sampled each second with some jitter: of ten, five stand
    /// still, three rise by about a thousand, one wanders and one is missing at first.
    fn vmstat(counters: u64, samples: u64) -> (Vec<u64>, Vec<Column>) {
        let value = |counter: u64, sample: u64| {
            let jitter = noise(counter << 32 | sample);
            match counter % 10 {
                0..5 => Some(counter * 1000),
                5..8 => Some(sample * 1000 + jitter),
                8 => Some(100_000 + jitter),
                _ => (sample >= 5).then_some(sample * 10),
            }
        };
        let columns = (0..counters).map(|counter| Column {
            name: format!("nr_counter_{counter}"),
            values: (0..samples)
                .map(|sample| value(counter, sample).map(u64::cast_signed))
                .collect(),
        });
        let times = (0..samples).map(|sample| sample * 1_000_000_000 + noise(sample) * 1000);
        (times.collect(), columns.collect())
    }

    #[test]
    fn series_take_a_small_part_of_their_plain_size() {
        let (times, columns) = vmstat(180, 600);
        let plain = 8 * times.len() * (1 + columns.len());
        let kept = encoded(&times, &columns).len();
        assert!(kept * 12 < plain, "{kept} of {plain} bytes");
    }

    #[test]
    fn any_flipped_bit_is_seen() {
        let (times, columns) = vmstat(10, 20);
        let packed = encoded(&times, &columns);
        for byte in 0..packed.len() {
            let mut damaged = packed.clone();
            damaged[byte] ^= 1;
            let read = decode(&damaged).ok();
            assert!(read.is_none_or(|read| read == (times.clone(), columns.clone())));
        }
        assert!(decode(&packed[..packed.len() - 1]).is_err());
        assert!(decode(&[]).is_err());
    }

    #[test]
    fn other_formats_and_surplus_bytes_are_refused() {
        assert!(parse(&[FORMAT, 0, 0]).is_ok());
        assert!(parse(&[FORMAT, 0, 0, 0]).is_err());
        assert!(parse(&[FORMAT + 1, 0, 0]).is_err());
    }

    prop_compose! {
        fn any_column()(
            name in ".{0,12}",
            values in prop::collection::vec(any::<Option<i64>>(), 0..40),
        ) -> Column {
            Column { name, values }
        }
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(
            times in prop::collection::vec(any::<u64>(), 0..40),
            columns in prop::collection::vec(any_column(), 0..8),
        ) {
            let packed = encoded(&times, &columns);
            prop_assert_eq!(decode(&packed).unwrap(), (times, columns));
        }

        #[test]
        fn garbage_is_survived(mut bytes in prop::collection::vec(any::<u8>(), 1..256)) {
            let _ = decode(&bytes);
            bytes[0] = FORMAT;
            let _ = parse(&bytes);
            let _ = decode(&packed::pack(&bytes).unwrap());
        }
    }
}
