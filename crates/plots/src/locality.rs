//! The share of memory accesses that are local, over time: as counted, and as the kernel estimates it from
//! NUMA hinting faults.

use std::collections::BTreeMap;

use model::{ACCESSES_COLUMNS, ACCESSES_SOURCE, Boot, Chunk, Source};

/// Most intervals of one iteration.
const MAX_INTERVALS: usize = 20;

/// The local share in one span of an iteration, in percent; `None` without accesses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The iteration, from 0.
    pub iteration: u32,
    /// Its end, in seconds since the iteration began. It begins where the previous one ends.
    pub end: f64,
    /// The share of accesses to node memory made in user mode.
    pub user: Option<f64>,
    /// The share of accesses to node memory made in user mode and by the kernel.
    pub total: Option<f64>,
    /// The kernel's own figure: the share of NUMA hinting faults that found the page on the node of their
    /// CPU (`numa_hint_faults_local` / `numa_hint_faults` of `/proc/vmstat`).
    pub hint: Option<f64>,
}

/// The intervals of each iteration of `workload`: at most 20 per iteration, with equal numbers of readings.
/// Empty if accesses were not counted over time.
pub fn locality(boot: &Boot, workload: &str) -> Vec<Interval> {
    let of = |source: &str| {
        let chunks = boot.chunks.iter();
        let chunks = chunks.filter(|chunk| chunk.workload == workload && chunk.source == source);
        let mut iterations: BTreeMap<u32, Vec<&Chunk>> = BTreeMap::new();
        for chunk in chunks {
            iterations.entry(chunk.iteration).or_default().push(chunk);
        }
        iterations
    };
    let hints = of(Source::Vmstat.name());
    let iterations = of(ACCESSES_SOURCE).into_iter().flat_map(|(iteration, chunks)| {
        let hints = hints.get(&iteration).map_or(&[][..], |chunks| chunks);
        intervals(iteration, &chunks, hints)
    });
    iterations.collect()
}

fn intervals(iteration: u32, accesses: &[&Chunk], hints: &[&Chunk]) -> Vec<Interval> {
    let counted = steps(accesses, ACCESSES_COLUMNS);
    let hinted = steps(hints, ["numa_hint_faults_local", "numa_hint_faults"]);
    let Some(first) = counted.first() else {
        return Vec::new();
    };
    let began = first.begin;
    let size = counted.len().div_ceil(MAX_INTERVALS);
    let intervals = counted.chunks(size).map(|steps| {
        let (begin, end) = (steps[0].begin, steps[steps.len() - 1].end);
        let within = hinted.iter().filter(|step| step.end > begin && step.end <= end);
        let [user_local, user_remote, kernel_local, kernel_remote] = sum(steps);
        let [hint_local, hint_all] = sum(within);
        Interval {
            iteration,
            end: (end - began) as f64 / 1e9,
            user: share(user_local, plus(user_local, user_remote)),
            total: share(
                plus(user_local, kernel_local),
                plus(plus(user_local, kernel_local), plus(user_remote, kernel_remote)),
            ),
            hint: share(hint_local, hint_all),
        }
    });
    intervals.collect()
}

/// The growth of some counters from one reading to the next; `None` where one of the two values is missing.
pub(crate) struct Step<const N: usize> {
    pub begin: u64,
    pub end: u64,
    grown: [Option<i128>; N],
}

/// The steps of some chunks, in order of time. Steps are within a chunk, because counts start again with the next
/// chunk. Two readings between which time does not advance make no step.
pub(crate) fn steps<const N: usize>(chunks: &[&Chunk], counters: [&str; N]) -> Vec<Step<N>> {
    let mut steps = Vec::new();
    for chunk in chunks {
        let columns = counters.map(|name| chunk.columns.iter().find(|it| it.name == name));
        for (number, times) in chunk.times.windows(2).enumerate().filter(|(_, it)| it[0] < it[1]) {
            let grown = columns.map(|column| {
                let value = |place: usize| column?.values.get(place).copied().flatten();
                Some(i128::from(value(number + 1)?) - i128::from(value(number)?))
            });
            steps.push(Step { begin: times[0], end: times[1], grown });
        }
    }
    steps.sort_by_key(|step| step.end);
    steps
}

/// The growth of each counter over all steps; `None` if a step lacks it, or there is no step.
pub(crate) fn sum<'a, const N: usize>(
    steps: impl IntoIterator<Item = &'a Step<N>>,
) -> [Option<i128>; N] {
    let steps = steps.into_iter().map(|step| step.grown);
    let both = |one: [Option<i128>; N], other: [Option<i128>; N]| {
        std::array::from_fn(|place| plus(one[place], other[place]))
    };
    steps.reduce(both).unwrap_or([None; N])
}

fn plus(one: Option<i128>, other: Option<i128>) -> Option<i128> {
    Some(one? + other?)
}

pub(crate) fn share(part: Option<i128>, whole: Option<i128>) -> Option<f64> {
    let (part, whole) = (part?, whole?);
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use model::Column;
    use proptest::prelude::*;

    use super::*;

    const COLUMNS: [&str; 4] = ["user-local", "user-remote", "kernel-local", "kernel-remote"];
    const HINTS: [&str; 2] = ["numa_hint_faults_local", "numa_hint_faults"];

    /// A chunk with a row for each time in seconds.
    fn series<const N: usize>(
        source: &str,
        iteration: u32,
        names: [&str; N],
        rows: &[(u64, [i64; N])],
    ) -> Chunk {
        let column = |(place, name): (usize, &str)| {
            Column::new(name, rows.iter().map(|(_, values)| Some(values[place])).collect())
        };
        Chunk {
            workload: "autonuma".into(),
            iteration,
            phase: String::new(),
            source: source.into(),
            times: rows.iter().map(|(time, _)| time * 1_000_000_000).collect(),
            columns: names.into_iter().enumerate().map(column).collect(),
        }
    }

    fn located(chunks: Vec<Chunk>) -> Vec<Interval> {
        locality(&Boot { chunks, ..Boot::default() }, "autonuma")
    }

    #[test]
    fn shares_are_of_the_growth_in_each_interval() {
        let rows = [(10, [100, 300, 0, 0]), (12, [110, 330, 10, 50]), (13, [200, 340, 10, 50])];
        let hints = [(10, [5, 9]), (12, [6, 13]), (13, [6, 13])];
        let found = located(vec![
            series("accesses", 1, COLUMNS, &rows),
            series("vmstat", 1, HINTS, &hints),
        ]);
        let interval = |end, user, total, hint| Interval { iteration: 1, end, user, total, hint };
        assert_eq!(
            found,
            [
                interval(2.0, Some(25.0), Some(20.0), Some(25.0)),
                interval(3.0, Some(90.0), Some(90.0), None),
            ]
        );
    }

    #[test]
    fn phases_follow_each_other_and_iterations_start_again() {
        let mut chunks = vec![
            series("accesses", 0, COLUMNS, &[(1, [0; 4]), (2, [1, 0, 0, 0])]),
            series("accesses", 0, COLUMNS, &[(2, [1, 0, 0, 0]), (4, [1, 1, 0, 0])]),
            series("accesses", 1, COLUMNS, &[(7, [1, 1, 0, 0]), (8, [1, 1, 0, 0])]),
        ];
        chunks[1].phase = "run".into();
        let found = located(chunks);
        let found: Vec<_> = found.iter().map(|it| (it.iteration, it.end, it.user)).collect();
        assert_eq!(found, [(0, 1.0, Some(100.0)), (0, 3.0, Some(0.0)), (1, 1.0, None)]);
    }

    #[test]
    fn each_phase_counts_from_0() {
        let phase = |name: &str, chunk| Chunk { phase: name.into(), ..chunk };
        let fill = [(1, [0; 4]), (2, [30, 10, 0, 40]), (3, [40, 40, 10, 40])];
        let run = [(3, [0; 4]), (5, [9, 1, 10, 0])];
        let hints = [[(1, [2, 4]), (3, [3, 6])], [(3, [3, 6]), (5, [6, 9])]];
        let found = located(vec![
            phase("fill", series("accesses", 0, COLUMNS, &fill)),
            phase("fill", series("vmstat", 0, HINTS, &hints[0])),
            phase("run", series("accesses", 0, COLUMNS, &run)),
            phase("run", series("vmstat", 0, HINTS, &hints[1])),
        ]);
        let of = |it: &Interval| (it.end, it.user, it.total, it.hint);
        assert_eq!(
            found.iter().map(of).collect::<Vec<_>>(),
            [
                (1.0, Some(75.0), Some(37.5), None),
                (2.0, Some(25.0), Some(40.0), Some(50.0)),
                (4.0, Some(90.0), Some(95.0), Some(100.0)),
            ]
        );
    }

    #[test]
    fn missing_values_have_no_share() {
        let mut chunk = series("accesses", 0, COLUMNS, &[(0, [0; 4]), (1, [1; 4]), (2, [2; 4])]);
        chunk.columns[3].values[2] = None;
        let found = located(vec![chunk]);
        assert_eq!((found[0].total, found[1].total), (Some(50.0), None));
        assert_eq!((found[1].user, found[1].hint), (Some(50.0), None));
        assert_eq!(located(vec![]), []);
    }

    proptest! {
        #[test]
        fn whatever_was_recorded_there_are_few_intervals_in_order(
            times in prop::collection::vec(any::<u64>(), 0..100),
            values in prop::collection::vec(any::<Option<i64>>(), 0..100),
        ) {
            let names = COLUMNS.into_iter().chain(HINTS);
            let columns: Vec<Column> =
                names.map(|name| Column { name: name.into(), values: values.clone() }).collect();
            let chunk = |source: &str| Chunk {
                source: source.into(),
                times: times.clone(),
                columns: columns.clone(),
                ..series("", 0, COLUMNS, &[])
            };
            let found = located(vec![chunk("accesses"), chunk("vmstat"), chunk("accesses")]);
            prop_assert!(found.len() <= MAX_INTERVALS);
            prop_assert!(found.iter().all(|it| it.end.is_finite()));
            prop_assert!(found.windows(2).all(|pair| pair[0].end <= pair[1].end));
        }
    }
}
