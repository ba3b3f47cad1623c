//! A series in the making, in the form in which it is kept: differences, of which most take a byte
//! or two, where values would take sixteen. So a long one grows in little memory, and is ready to
//! be packed.

use model::{Chunk, Column};

/// The series of one source in one phase of an iteration: a [`Chunk`] with its columns in [`Deltas`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The workload's name; empty outside any.
    pub workload: String,
    /// Which repetition within the boot, from 0.
    pub iteration: u32,
    /// The phase; empty outside any.
    pub phase: String,
    /// Where the counters come from.
    pub source: String,
    /// Time of each sample in nanoseconds, from the same beginning in all of a boot.
    pub times: Vec<u64>,
    /// The counters, each with a value, or none, for each time.
    pub columns: Vec<Deltas>,
}

impl From<&Chunk> for Series {
    fn from(chunk: &Chunk) -> Self {
        Self {
            workload: chunk.workload.clone(),
            iteration: chunk.iteration,
            phase: chunk.phase.clone(),
            source: chunk.source.clone(),
            times: chunk.times.clone(),
            columns: chunk.columns.iter().map(Deltas::from).collect(),
        }
    }
}

impl From<&Series> for Chunk {
    fn from(series: &Series) -> Self {
        Self {
            workload: series.workload.clone(),
            iteration: series.iteration,
            phase: series.phase.clone(),
            source: series.source.clone(),
            times: series.times.clone(),
            columns: series.columns.iter().map(Column::from).collect(),
        }
    }
}

/// One counter over time. Each value is the difference from the one before (the first from 0; what
/// is missing is passed over), as postcard writes an `Option<i64>`
/// (<https://postcard.jamesmunns.com/wire-format>).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deltas {
    name: String,
    bytes: Vec<u8>,
    length: usize,
    /// The last value that was not missing.
    previous: i64,
    /// The last value.
    last: Option<i64>,
}

impl Deltas {
    /// A counter of this name without values.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), bytes: Vec::new(), length: 0, previous: 0, last: None }
    }

    /// The counter's name within its source.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of values, with those that are missing.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Adds a value.
    pub fn push(&mut self, value: i64) {
        let delta = value.wrapping_sub(self.previous);
        self.previous = value;
        self.last = Some(value);
        self.length += 1;
        // By hand, for there is none that comes as often: that it is there, and a varint in which
        // small differences of either sign are small numbers.
        self.bytes.push(1);
        let mut rest = (delta << 1 ^ delta >> 63).cast_unsigned();
        while rest >= 1 << 7 {
            self.bytes.push(rest as u8 | 1 << 7);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
    }

    /// Lets values be missing until there are `length`.
    pub fn pad(&mut self, length: usize) {
        if let Some(missing) = length.checked_sub(self.length).filter(|missing| *missing > 0) {
            self.bytes.resize(self.bytes.len() + missing, 0);
            self.length = length;
            self.last = None;
        }
    }

    /// The values in the form in which they are kept.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The values.
    pub fn values(&self) -> impl Iterator<Item = Option<i64>> {
        let mut rest = &*self.bytes;
        let mut value = 0i64;
        std::iter::from_fn(move || {
            let (delta, after) = postcard::take_from_bytes::<Option<i64>>(rest).ok()?;
            rest = after;
            Some(delta.map(|delta| {
                value = value.wrapping_add(delta);
                value
            }))
        })
    }

    /// The first and the last value alone, each of which may be missing. There are two at least.
    pub(crate) fn ends(&self) -> Self {
        let mut ends = Self::new(&self.name);
        for (place, value) in [self.values().next().flatten(), self.last].into_iter().enumerate() {
            match value {
                Some(value) => ends.push(value),
                None => ends.pad(place + 1),
            }
        }
        ends
    }
}

impl From<&Column> for Deltas {
    fn from(column: &Column) -> Self {
        let mut deltas = Self::new(&column.name);
        for (place, value) in column.values.iter().enumerate() {
            match value {
                Some(value) => deltas.push(*value),
                None => deltas.pad(place + 1),
            }
        }
        deltas
    }
}

impl From<&Deltas> for Column {
    fn from(deltas: &Deltas) -> Self {
        Self { name: deltas.name.clone(), values: deltas.values().collect() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_column_comes_back_and_so_do_its_ends(
            values in prop::collection::vec(any::<Option<i64>>(), 2..40),
        ) {
            let column = Column { name: "pgfault".into(), values };
            let deltas = Deltas::from(&column);
            prop_assert_eq!(deltas.len(), column.values.len());
            prop_assert_eq!(&Column::from(&deltas), &column);
            let ends = [column.values.first(), column.values.last()];
            prop_assert!(deltas.ends().values().eq(ends.map(|value| *value.unwrap())));
        }
    }
}
