//! Packs a chunk's times and columns.
//!
//! Most counters are constant or rise steadily, so each value is stored as its difference from the previous one (the
//! first from 0; missing values are skipped). Times are stored the same way. The bytes are a format number, then
//! [`Kept`] in postcard's wire format (<https://postcard.jamesmunns.com>), packed by zstd.

use std::io;

use model::Column;
use serde::{Deserialize, Serialize};

use crate::packed;
use crate::series::{Deltas, Gap, values};

/// The number of the format.
const FORMAT: u8 = 2;
/// The number of the format of old stores, which can still be read.
const FIRST_FORMAT: u8 = 1;
/// The level of zstd. A low level is enough for differences. A higher one takes three times as long and saves half a
/// percent.
const LEVEL: i32 = 1;
/// The largest number of missing values in one chunk. They take no space in the file, but do in memory.
const MAX_MISSING: usize = 1 << 28;
/// The largest size of an encoded number, in bytes.
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
    gaps: Vec<Gap>,
    /// The differences of the values that are not missing.
    deltas: Vec<i64>,
}

#[derive(Deserialize)]
struct FirstKept<'a> {
    times: Vec<i64>,
    #[serde(borrow)]
    columns: Vec<FirstKeptColumn<'a>>,
}

#[derive(Deserialize)]
struct FirstKeptColumn<'a> {
    name: &'a str,
    deltas: Vec<Option<i64>>,
}

/// Packs a series.
pub fn encode(times: &[u64], columns: &[Deltas]) -> io::Result<Vec<u8>> {
    bound(columns.iter().flat_map(Deltas::gaps))?;
    let mut previous = 0;
    let times = times.iter().map(|&time| {
        let delta = time.wrapping_sub(previous).cast_signed();
        previous = time;
        delta
    });
    let times: Vec<i64> = times.collect();
    let length: usize = columns.iter().map(|column| column.bytes().len()).sum();
    let bytes = Vec::with_capacity(length + ROOM * (times.len() + 4 * columns.len()));
    let mut bytes = extend(bytes, &(FORMAT, times, columns.len()))?;
    for column in columns {
        bytes = extend(bytes, &(column.name(), column.gaps(), column.there()))?;
        bytes.extend_from_slice(column.bytes());
    }
    packed::pack(&bytes, LEVEL)
}

fn extend(bytes: Vec<u8>, what: &impl Serialize) -> io::Result<Vec<u8>> {
    postcard::to_extend(what, bytes).map_err(io::Error::other)
}

/// The first and last sample of a series, or the entire series if it has no more than two.
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

/// Decodes the result of [`encode`]. Other bytes are an error.
pub fn decode(packed: &[u8]) -> io::Result<(Vec<u64>, Vec<Column>)> {
    parse(&packed::unpack(packed)?)
}

fn parse(bytes: &[u8]) -> io::Result<(Vec<u64>, Vec<Column>)> {
    match bytes {
        [FORMAT, series @ ..] => {
            let Kept { times, columns } = packed::whole(series)?;
            bound(columns.iter().flat_map(|column| &column.gaps))?;
            let columns = columns.into_iter().map(|column| Column {
                name: column.name.into(),
                values: values(&column.gaps, column.deltas.into_iter()),
            });
            Ok((all_times(times), columns.collect()))
        }
        [FIRST_FORMAT, series @ ..] => {
            let FirstKept { times, columns } = packed::whole(series)?;
            Ok((all_times(times), columns.into_iter().map(first_column).collect()))
        }
        [other, ..] => Err(io::Error::other(format!("unknown format {other}"))),
        [] => Err(io::Error::other("no data")),
    }
}

fn bound<'a>(gaps: impl Iterator<Item = &'a Gap>) -> io::Result<()> {
    match gaps.map(|gap| gap.missing).fold(0, usize::saturating_add) {
        0..=MAX_MISSING => Ok(()),
        _ => Err(io::Error::other("too many values are missing")),
    }
}

fn all_times(deltas: Vec<i64>) -> Vec<u64> {
    let mut time = 0u64;
    let times = deltas.into_iter().map(|delta| {
        time = time.wrapping_add(delta.cast_unsigned());
        time
    });
    times.collect()
}

fn first_column(column: FirstKeptColumn<'_>) -> Column {
    let mut value = 0i64;
    let values = column.deltas.into_iter().map(|delta| {
        delta.map(|delta| {
            value = value.wrapping_add(delta);
            value
        })
    });
    Column { name: column.name.into(), values: values.collect() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A number from 0 to 63 by the finalizer of splitmix64, which zstd cannot compress.
    fn noise(seed: u64) -> u64 {
        let seed = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let seed = (seed ^ seed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (seed ^ seed >> 31) % 64
    }

    fn encoded(times: &[u64], columns: &[Column]) -> Vec<u8> {
        encode(times, &columns.iter().map(Deltas::from).collect::<Vec<_>>()).unwrap()
    }

    /// Counters of a busy guest, sampled each second with some jitter. Of ten counters, five are constant,
    /// three rise by about a thousand, one varies and one is missing at first.
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
    fn series_are_compressed_well() {
        let (times, columns) = vmstat(180, 600);
        let plain = 8 * times.len() * (1 + columns.len());
        let kept = encoded(&times, &columns).len();
        assert!(kept * 12 < plain, "{kept} of {plain} bytes");
    }

    #[test]
    fn any_flipped_bit_is_detected() {
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
    fn other_formats_and_trailing_bytes_are_errors() {
        assert!(parse(&[FORMAT, 0, 0]).is_ok());
        assert!(parse(&[FORMAT, 0, 0, 0]).is_err());
        assert!(parse(&[FORMAT + 1, 0, 0]).is_err());
    }

    #[test]
    fn series_of_old_stores_are_read() {
        let column = [1, b'a', 4, 1, 14, 0, 1, 0, 1, 3];
        let series = [&[FIRST_FORMAT, 2, 20, 2, 1][..], &column].concat();
        let (times, columns) = parse(&series).unwrap();
        assert_eq!(times, [10, 11]);
        let values = vec![Some(7), None, Some(7), Some(5)];
        assert_eq!(columns, [Column { name: "a".into(), values }]);
    }

    #[test]
    fn too_many_missing_values_are_an_error() {
        let gap = |missing: usize| {
            let columns = vec![("a", vec![Gap { after: 0, missing }], vec![3i64])];
            parse(&extend(Vec::new(), &(FORMAT, Vec::<i64>::new(), columns)).unwrap())
        };
        assert_eq!(gap(2).unwrap().1[0].values, [None, None, Some(3)]);
        assert!(gap(usize::MAX).is_err());
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
        fn decoding_reverses_encoding(
            times in prop::collection::vec(any::<u64>(), 0..40),
            columns in prop::collection::vec(any_column(), 0..8),
        ) {
            let packed = encoded(&times, &columns);
            prop_assert_eq!(decode(&packed).unwrap(), (times, columns));
        }

        #[test]
        fn random_bytes_do_not_panic(mut bytes in prop::collection::vec(any::<u8>(), 1..256)) {
            let _ = decode(&bytes);
            bytes[0] = FORMAT;
            let _ = parse(&bytes);
            let _ = decode(&packed::pack(&bytes, LEVEL).unwrap());
            bytes[0] = FIRST_FORMAT;
            let _ = parse(&bytes);
        }
    }
}
