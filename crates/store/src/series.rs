//! Builds a series as differences. Most differences take a byte or two; values would take sixteen. A long series
//! therefore takes little memory while it grows, and is packed without conversion.

use model::{Chunk, Column};
use serde::{Deserialize, Serialize};

/// The series of one source in one phase of an iteration: a [`Chunk`] with its columns in [`Deltas`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The workload's name; empty outside workloads.
    pub workload: String,
    /// The iteration within the boot, from 0.
    pub iteration: u32,
    /// The phase; empty outside phases.
    pub phase: String,
    /// The source of the counters.
    pub source: String,
    /// The time of each sample in nanoseconds. All series of a boot have the same origin.
    pub times: Vec<u64>,
    /// The counters, each with a value or a gap for each time.
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

/// One counter over time. Each value is stored as its difference from the previous one (the first from 0),
/// encoded like an `i64` by postcard (<https://postcard.jamesmunns.com/wire-format>). Few counters have gaps,
/// so gaps are stored separately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deltas {
    name: String,
    bytes: Vec<u8>,
    /// The last value that was not missing.
    previous: i64,
    gaps: Vec<Gap>,
    /// The end of the last gap.
    gap_end: usize,
    length: usize,
}

/// A run of missing values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The number of values between the previous gap, or the start, and this one.
    pub after: usize,
    /// The number of missing values.
    pub missing: usize,
}

impl Deltas {
    /// A counter without values.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            bytes: Vec::new(),
            previous: 0,
            gaps: Vec::new(),
            gap_end: 0,
            length: 0,
        }
    }

    /// The counter's name within its source.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of values, including missing ones.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Appends a value.
    #[inline]
    pub fn push(&mut self, value: i64) {
        let delta = value.wrapping_sub(self.previous);
        self.previous = value;
        self.length += 1;
        // Encoded by hand because this is the hot path: a zigzag varint, which turns small differences of
        // either sign into small numbers.
        let mut rest = (delta << 1 ^ delta >> 63).cast_unsigned();
        while rest >= 1 << 7 {
            self.bytes.push(rest as u8 | 1 << 7);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
    }

    /// Appends missing values up to `length`.
    pub fn pad(&mut self, length: usize) {
        let missing = length.saturating_sub(self.length);
        if missing == 0 {
            return;
        }
        match self.gaps.last_mut() {
            Some(gap) if self.gap_end == self.length => gap.missing += missing,
            _ => self.gaps.push(Gap { after: self.length - self.gap_end, missing }),
        }
        self.length = length;
        self.gap_end = length;
    }

    /// The values, `None` where one is missing.
    pub fn values(&self) -> Vec<Option<i64>> {
        let mut rest = &*self.bytes;
        let deltas = std::iter::from_fn(move || {
            let (delta, after) = postcard::take_from_bytes(rest).ok()?;
            rest = after;
            Some(delta)
        });
        values(&self.gaps, deltas)
    }

    /// The encoded differences.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// The number of values that are not missing.
    pub(crate) fn there(&self) -> usize {
        self.length - self.gaps.iter().map(|gap| gap.missing).sum::<usize>()
    }

    /// The first and the last value, each of which may be missing. There must be at least two.
    pub(crate) fn ends(&self) -> Self {
        let begins = self.gaps.first().is_none_or(|gap| gap.after > 0);
        let first = postcard::take_from_bytes(&self.bytes).ok().filter(|_| begins);
        let last = (self.gap_end < self.length).then_some(self.previous);
        let values = vec![first.map(|(first, _)| first), last];
        Self::from(&Column { name: self.name.clone(), values })
    }
}

/// The values that `deltas` and gaps describe.
pub fn values(gaps: &[Gap], deltas: impl Iterator<Item = i64>) -> Vec<Option<i64>> {
    let mut value = 0i64;
    let mut there = deltas.map(|delta| {
        value = value.wrapping_add(delta);
        Some(value)
    });
    let mut values = Vec::new();
    for gap in gaps {
        values.extend(there.by_ref().take(gap.after));
        values.resize(values.len() + gap.missing, None);
    }
    values.extend(there);
    values
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
        Self { name: deltas.name.clone(), values: deltas.values() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_column_is_read_back_with_its_ends(
            values in prop::collection::vec(any::<Option<i64>>(), 2..40),
        ) {
            let column = Column { name: "pgfault".into(), values };
            let deltas = Deltas::from(&column);
            prop_assert_eq!(deltas.len(), column.values.len());
            prop_assert_eq!(&Column::from(&deltas), &column);
            let ends = [column.values.first(), column.values.last()];
            prop_assert_eq!(deltas.ends().values(), ends.map(|value| *value.unwrap()));
        }
    }
}
