//! By how much counters grew over some chunks.

use std::collections::BTreeMap;

use model::{Boot, Chunk, Column, ProblemKind};

use crate::steady::Share;

/// The growth of counters, and the time it took.
#[derive(Clone, Debug, Default)]
pub struct Growth<'a> {
    /// None for a counter that a chunk lacks. As i128: a guest may claim any difference.
    counters: BTreeMap<&'a str, Option<i128>>,
    nanoseconds: u128,
}

impl<'a> Growth<'a> {
    /// Over all of these chunks together.
    pub fn of(chunks: impl IntoIterator<Item = &'a Chunk>) -> Self {
        Self::over(chunks.into_iter().map(|chunk| (chunk, Share::All)))
    }

    /// Over so much of each of these chunks.
    pub fn over(chunks: impl IntoIterator<Item = (&'a Chunk, Share)>) -> Self {
        let mut growth = Self::default();
        let mut seen = BTreeMap::<&str, usize>::new();
        let mut all = 0;
        for (chunk, share) in chunks {
            let since = match share {
                Share::All => None,
                Share::Since(since) => Some(since),
                Share::Nothing => continue,
            };
            all += 1;
            for column in &chunk.columns {
                let before = since.map_or(Some(0), |since| grown_until(chunk, column, since));
                let grown = chunk.difference(&column.name).map(i128::from);
                let grown = grown.zip(before).map(|(all, before)| all - before);
                let sum = growth.counters.entry(&*column.name).or_insert(Some(0));
                *sum = sum.zip(grown).map(|(sum, grown)| sum + grown);
                *seen.entry(&column.name).or_default() += 1;
            }
            if let (Some(first), Some(last)) = (chunk.times.first(), chunk.times.last()) {
                let first = since.unwrap_or(*first);
                growth.nanoseconds += u128::from(last.saturating_sub(first));
            }
        }
        for (name, sum) in &mut growth.counters {
            *sum = sum.filter(|_| seen.get(name) == Some(&all));
        }
        growth
    }

    /// By how much a counter grew; none if a chunk lacks it, or there is no chunk.
    pub fn get(&self, counter: &str) -> Option<i128> {
        self.counters.get(counter).copied().flatten()
    }

    /// The counters and their growth, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, Option<i128>)> {
        self.counters.iter().map(|(name, grown)| (*name, *grown))
    }

    /// How long the chunks are together, from the cut at which each begins to the one at which it
    /// ends, in seconds.
    pub fn seconds(&self) -> f64 {
        self.nanoseconds as f64 / 1e9
    }
}

/// By how much a counter had grown since the chunk began, at a moment within it: between two samples
/// as if it grew evenly. None where it was not there.
fn grown_until(chunk: &Chunk, column: &Column, moment: u64) -> Option<i128> {
    let next = chunk.times.partition_point(|time| *time <= moment);
    let value = |place: usize| Some(i128::from((*column.values.get(place)?)?));
    let last = next.checked_sub(1)?;
    let [first, before] = [value(0)?, value(last)?];
    let Some(after) = chunk.times.get(next) else {
        return Some(before - first);
    };
    let [passed, all] = [moment, *after].map(|it| it.saturating_sub(chunk.times[last]) as f64);
    let since = ((value(next)? - before) as f64 * (passed / all).clamp(0.0, 1.0)).round();
    Some(before - first + since as i128)
}

/// Whether a part of the series is missing: sums over them would be too small.
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
