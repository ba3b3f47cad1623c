//! What a warm-up that is left out of metrics means for the counters and durations of the same
//! workload: they leave out the same iterations, and counters what was counted before the last of the
//! samples that are left out had ended.

use std::collections::HashMap;

use model::{Boot, Chunk, WorkloadUse};
use serde::Serialize;

use crate::Judging;
use crate::operations::{BootSamples, Operation};
use crate::warmup::{Repeated, WarmUp};

/// Of which part of its phases a table is, where samples at their begin are left out of the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Of what came after these samples. Counters are read at that moment between two samples of the
    /// sampler, as if they grew evenly there.
    Steady,
    /// Of whole phases: the workload does not say when its samples ended.
    Untimed,
    /// Of whole phases: in some there is no sample of the counters between their ends.
    Unsampled,
    /// Of whole iterations, as durations always are.
    Whole,
}

/// What of a chunk is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// All of it.
    All,
    /// What came after this moment of guest time.
    Since(u64),
    /// Nothing.
    Nothing,
}

/// The steady part of a workload's boots.
#[derive(Default)]
pub struct Steady {
    /// So many first iterations that count otherwise were found to be warm-up.
    pub iterations: u32,
    /// Where samples are left out: when these and the others ended, by boot and iteration.
    ends: HashMap<(*const Boot, u32), Ends>,
    /// Whether some that are left out do not say when they ended.
    untimed: bool,
}

/// When samples ended.
#[derive(Default)]
struct Ends {
    left_out: Vec<u64>,
    counted: Vec<u64>,
}

impl Steady {
    /// As `warm_ups` were found in `operations`, and are left out of them. Boots that a look has not
    /// seen have no say in what is possible.
    pub fn of(
        used: &WorkloadUse,
        operations: &[Operation<'_>],
        warm_ups: &[WarmUp],
        judging: &Judging,
    ) -> Self {
        let found = || warm_ups.iter().filter(|it| !it.asked && !it.counted);
        let iterations = found().filter(|it| it.of == Repeated::Iterations).map(|it| it.first);
        let mut steady =
            Self { iterations: iterations.max().unwrap_or(0) as u32, ..Self::default() };
        let cut: Vec<&str> = found()
            .filter(|it| it.of == Repeated::Samples && it.first > 0)
            .map(|it| &*it.metric)
            .collect();
        if !cut.is_empty() {
            for operation in operations {
                let is_cut = cut.contains(&&*operation.name);
                let boots = operation.columns.iter().flatten();
                boots.for_each(|boot| steady.add(used, boot, is_cut, judging));
            }
        }
        steady
    }

    fn add(
        &mut self,
        used: &WorkloadUse,
        samples: &BootSamples<'_>,
        is_cut: bool,
        judging: &Judging,
    ) {
        let BootSamples { boot, counted, left_out } = samples;
        let key = |iteration: u32| (std::ptr::from_ref(*boot), iteration);
        for (iteration, ended) in counted.iterations.iter().zip(&counted.ends) {
            self.ends.entry(key(*iteration)).or_default().counted.extend(*ended);
        }
        // What the experiment itself has left out is not counted anywhere.
        let left_out = left_out.iterations.iter().zip(&left_out.ends);
        let left_out = left_out.filter(|(iteration, _)| is_cut && used.counts(**iteration));
        for (iteration, ended) in left_out {
            self.ends.entry(key(*iteration)).or_default().left_out.extend(*ended);
            self.untimed |= ended.is_none() && judging.counts(boot.block);
        }
    }

    /// Of which part of their phases counters can be, given the chunks of them that count in the boots
    /// that do. None where no samples are left out.
    pub fn part<'a>(
        &self,
        chunks: impl IntoIterator<Item = (&'a Boot, &'a Chunk)>,
    ) -> Option<Part> {
        if !self.within() {
            return None;
        }
        let mut chunks = chunks.into_iter();
        Some(if self.untimed {
            Part::Untimed
        } else if chunks.any(|(boot, chunk)| self.share(boot, chunk).is_none()) {
            Part::Unsampled
        } else {
            Part::Steady
        })
    }

    /// Whether samples are left out.
    pub fn within(&self) -> bool {
        !self.ends.is_empty()
    }

    /// What of a chunk is to be counted: what came after the last of the samples that are left out and
    /// ended during it; nothing where no other one ended after that. None if a moment within it is
    /// wanted and nothing was sampled between its ends.
    pub fn share(&self, boot: &Boot, chunk: &Chunk) -> Option<Share> {
        let ends = self.ends.get(&(std::ptr::from_ref(boot), chunk.iteration));
        let (Some(ends), [first, inner @ .., last]) = (ends, &chunk.times[..]) else {
            return Some(Share::All);
        };
        let during = |ended: &&u64| first < *ended && *ended <= last;
        let Some(since) = ends.left_out.iter().filter(during).max() else {
            return Some(Share::All);
        };
        if !ends.counted.iter().filter(during).any(|ended| ended > since) {
            return Some(Share::Nothing);
        }
        (!inner.is_empty()).then_some(Share::Since(*since))
    }
}

#[cfg(test)]
mod tests {
    use model::{Column, Experiment, Mode, Usage};

    use super::*;
    use crate::testing::{boot, columns, deviations, experiment, manifest, sample, variant};
    use crate::{Kind, Results, Table, compare};

    /// Nanoseconds of a second.
    const SECOND: u64 = 1_000_000_000;

    /// A boot of so many samples, one every half second from the tenth on, of which the first four take
    /// twice as long. Faults are counted at these seconds: 1000 a second while it is so, then 100.
    fn warming(number: u32, samples: u32, timed: bool, seconds: &[u64]) -> Boot {
        let mut boot = Boot { block: number, ..boot(number) };
        let mut luck = deviations().skip(1000 * number as usize);
        for at in 0..u64::from(samples) {
            let value = if at < 4 { 40.0 } else { 20.0 };
            let mut sample = sample("Elapsed", "", 0, value + luck.next().unwrap() / 10.0);
            sample.ended = timed.then_some(10 * SECOND + (at + 1) * SECOND / 2);
            boot.samples.push(sample);
        }
        let faults = |second: &u64| {
            let (warm, steady) = (second.clamp(&10, &12) - 10, second.max(&12) - 12);
            Some((1000 * warm + 100 * steady) as i64)
        };
        boot.chunks.push(Chunk {
            workload: "autonuma".into(),
            iteration: 0,
            phase: "run".into(),
            source: "vmstat".into(),
            times: seconds.iter().map(|second| second * SECOND).collect(),
            columns: vec![Column {
                name: "pgmajfault".into(),
                values: seconds.iter().map(faults).collect(),
            }],
        });
        let elapsed = samples as f64 / 2.0;
        let workload = "autonuma".into();
        boot.usage = vec![Usage { workload, iteration: 0, user: 0.0, system: 0.0, elapsed }];
        boot
    }

    fn tables(experiment: &Experiment, boots: &[Boot], judging: &Judging) -> Vec<Table> {
        let variants = ["a", "b"].map(variant);
        let variants = columns(&variants, &[boots, boots]);
        compare(&Results { experiment, variants }, 0, judging).tables
    }

    /// Parts of the tables of durations and counters, and the faults counted.
    fn found(boots: &[Boot], judging: &Judging) -> ([Option<Part>; 2], Option<f64>) {
        let tables = tables(&experiment(Mode::Measured, 4, vec![manifest()]), boots, judging);
        let table = |kind| tables.iter().find(|table| table.kind == kind).unwrap();
        let [durations, counters] = [Kind::Duration, Kind::Counters].map(table);
        let faults = counters.rows.iter().find(|row| row.metric == "Major Faults").unwrap();
        ([durations.part, counters.part], faults.values[1])
    }

    fn boots(samples: u32, timed: bool, seconds: &[u64]) -> Vec<Boot> {
        (0..4).map(|number| warming(number, samples, timed, seconds)).collect()
    }

    const WHOLE: f64 = 2000.0 + 1800.0;

    #[test]
    fn counters_begin_where_the_samples_that_count_do() {
        let judging = Judging::default();
        // The kernel was looked at when the last sample of warm-up ended ...
        let exact = found(&boots(40, true, &[10, 12, 20, 30]), &judging);
        assert_eq!(exact, ([Some(Part::Whole), Some(Part::Steady)], Some(1800.0)));
        // ... and two seconds before and after: of 2000 and 200 half had come.
        let between = found(&boots(40, true, &[10, 14, 30]), &judging);
        assert_eq!(between.1, Some(WHOLE - (2000.0 + 200.0) / 2.0));
        let included = Judging { warm_up_counts: true, ..judging };
        let all = found(&boots(40, true, &[10, 12, 20, 30]), &included);
        assert_eq!(all, ([None, None], Some(WHOLE)));
    }

    #[test]
    fn counters_are_of_whole_phases_where_that_moment_is_not_known() {
        let judging = Judging::default();
        let untimed = found(&boots(40, false, &[10, 12, 20, 30]), &judging);
        assert_eq!(untimed, ([Some(Part::Whole), Some(Part::Untimed)], Some(WHOLE)));
        // It is the same for all boots.
        let mut boots = boots(40, true, &[10, 12, 20, 30]);
        boots[3] = warming(3, 40, true, &[10, 30]);
        let unsampled = found(&boots, &judging);
        assert_eq!(unsampled, ([Some(Part::Whole), Some(Part::Unsampled)], Some(WHOLE)));
        // A boot that a look has not seen has no say.
        let look = crate::Look { number: 1, of: 2, boots: 3, next: 6 };
        let seen = found(&boots, &Judging { look: Some(look), ..judging });
        assert_eq!(seen.0[1], Some(Part::Steady));
    }

    #[test]
    fn a_phase_of_warm_up_alone_does_not_count() {
        let judging = Judging::default();
        let mut boots = boots(40, true, &[10, 11, 12]);
        for boot in &mut boots {
            let later = warming(0, 0, true, &[12, 30]).chunks.remove(0);
            boot.chunks.push(later);
        }
        assert_eq!(
            found(&boots, &judging),
            ([Some(Part::Whole), Some(Part::Steady)], Some(1800.0))
        );
    }

    #[test]
    fn iterations_of_warm_up_are_left_out_of_all_tables() {
        let of = |number: u32| {
            let mut whole = boot(number);
            whole.block = number;
            let mut luck = deviations().skip(1000 * number as usize);
            for iteration in 0..30 {
                let value = if iteration < 4 { 40.0 } else { 20.0 };
                let value = value + luck.next().unwrap() / 10.0;
                whole.samples.push(sample("Elapsed", "", iteration, value));
                let mut one = warming(number, 0, true, &[10, if iteration < 4 { 12 } else { 11 }]);
                one.chunks[0].iteration = iteration;
                one.usage[0] = Usage { iteration, elapsed: 1.0, ..one.usage[0].clone() };
                whole.chunks.append(&mut one.chunks);
                whole.usage.append(&mut one.usage);
            }
            whole
        };
        let boots: Vec<Boot> = (0..4).map(of).collect();
        let mut experiment = experiment(Mode::Measured, 4, vec![manifest()]);
        experiment.workloads[0].iterations = 30;
        let judging = Judging::default();
        let tables = tables(&experiment, &boots, &judging);
        let value = |kind, name: &str| {
            let table = tables.iter().find(|table| table.kind == kind).unwrap();
            assert_eq!(
                (table.pooled[0].warmup, table.pooled[0].iterations[0], table.part),
                (4, 26, None)
            );
            table.rows.iter().find(|row| row.metric == name).unwrap().values[1]
        };
        assert_eq!(value(Kind::Duration, "Elapsed"), Some(26.0));
        assert_eq!(value(Kind::Counters, "Major Faults"), Some(26.0 * 1000.0));
    }
}
