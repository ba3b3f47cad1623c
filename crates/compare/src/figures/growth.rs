//! The growth of counters over a set of chunks.

use std::collections::BTreeMap;

use model::{Boot, Chunk, Column, ProblemKind};

use super::steady::Share;

/// The growth of counters, and the time it took.
#[derive(Clone, Debug, Default)]
pub struct Growth<'a> {
    /// Growth by counter; `None` for a counter that a chunk lacks. The type is i128, because a guest may claim any
    /// difference.
    counters: BTreeMap<&'a str, Option<i128>>,
    nanoseconds: u128,
}

impl<'a> Growth<'a> {
    /// The growth over all of these chunks together.
    pub fn of(chunks: impl IntoIterator<Item = &'a Chunk>) -> Self {
        Self::over(chunks.into_iter().map(|chunk| (chunk, Share::All)))
    }

    /// The growth over the given share of each of these chunks.
    pub fn over(chunks: impl IntoIterator<Item = (&'a Chunk, Share)>) -> Self {
        let mut growth = Self::default();
        let mut seen = BTreeMap::<&str, usize>::new();
        let mut all = 0;
        for (chunk, share) in chunks {
            let (place, since) = match share {
                Share::All => (0, chunk.times.first().copied()),
                Share::From { place, time } => (place, Some(time)),
                Share::Nothing => continue,
            };
            all += 1;
            for column in &chunk.columns {
                let grown = grown_from(column, place);
                let sum = growth.counters.entry(&*column.name).or_insert(Some(0));
                *sum = sum.zip(grown).map(|(sum, grown)| sum + grown);
                *seen.entry(&column.name).or_default() += 1;
            }
            if let (Some(since), Some(last)) = (since, chunk.times.last()) {
                growth.nanoseconds += u128::from(last.saturating_sub(since));
            }
        }
        for (name, sum) in &mut growth.counters {
            *sum = sum.filter(|_| seen.get(name) == Some(&all));
        }
        growth
    }

    /// The growth of a counter; `None` if a chunk lacks it, or there is no chunk.
    pub fn get(&self, counter: &str) -> Option<i128> {
        self.counters.get(counter).copied().flatten()
    }

    /// The counters and their growth, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, Option<i128>)> {
        self.counters.iter().map(|(name, grown)| (*name, *grown))
    }

    /// The total length of the chunks in seconds, each from its first cut to its last.
    pub fn seconds(&self) -> f64 {
        self.nanoseconds as f64 / 1e9
    }
}

/// The growth of a counter from the reading with index `place` to the last one; `None` if either value is missing.
fn grown_from(column: &Column, place: usize) -> Option<i128> {
    let (first, last) = ((*column.values.get(place)?)?, (*column.values.last()?)?);
    Some(last.wrapping_sub(first).into())
}

/// Whether a part of the boot's series is missing, so that sums over them would be too small.
pub fn lost_series(boot: &Boot) -> bool {
    let mut problems = boot.problems.iter();
    problems.any(|problem| problem.kind == ProblemKind::SeriesDropped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::chunk;

    #[test]
    fn chunks_add_up_where_all_have_the_counter() {
        let chunks = [chunk(0, "", &[("a", 1), ("b", 2)]), chunk(0, "run", &[("a", 10)])];
        let growth = Growth::of(&chunks);
        assert_eq!((growth.get("a"), growth.get("b"), growth.get("c")), (Some(11), None, None));
        assert_eq!(growth.seconds(), 2.0);
        assert_eq!(Growth::of(&[]).iter().count(), 0);
    }
}
