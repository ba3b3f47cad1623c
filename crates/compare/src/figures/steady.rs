//! Applies the warm-up of metrics to the counters and durations of the same workload. Both leave out the same
//! iterations. Counters also leave out what was counted before the end of the last left-out sample.

use crate::KeptBoot;
use std::collections::{BTreeMap, HashMap, HashSet};

use model::{Boot, BootId, Chunk, WORKLOAD_SOURCE, WorkloadUse};
use serde::Serialize;
use stats::Counted;

use super::operations::{BootSamples, Operation};
use super::warmup::{Repeated, WarmUp};

/// The part of its phases that a table covers if the metrics leave out the first samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// The part after these samples: counters from the first reading after them on.
    Steady,
    /// Whole phases, because the workload does not say when its samples ended.
    Untimed,
    /// Whole phases, because in some of them the sampler took no reading soon after these samples had ended.
    Unsampled,
    /// Whole phases, because in some of them the left-out samples of one metric ended after all counted samples of
    /// another.
    Mixed,
    /// Whole iterations. This is always so for durations, and for metrics with one value per iteration.
    Whole,
}

/// The share of a chunk that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    All,
    /// The part after a reading.
    From {
        /// The index of the reading's values.
        place: usize,
        /// The time of the reading.
        time: u64,
    },
    Nothing,
}

/// The first reading after warm-up must be taken before the steady time divided by this has passed.
const MAX_MISSED: u64 = 10;

/// The steady part of a workload's boots.
#[derive(Default)]
pub struct Steady {
    /// Number of first iterations found to be warm-up, besides those that the experiment leaves out.
    pub iterations: u32,
    /// Whether the first samples of iterations are left out.
    pub within: bool,
    /// Whether some operation has only one value per iteration.
    pub single: bool,
    /// End times of the left-out and the counted samples, by boot and iteration.
    ends: HashMap<(BootId, u32), Ends>,
    /// Boots in which the end times are not known.
    untimed: HashSet<BootId>,
}

/// End times of samples.
#[derive(Default)]
struct Ends {
    left_out: Vec<u64>,
    /// Number of the operation, and the end time.
    counted: Vec<(usize, u64)>,
}

impl Steady {
    /// The steady part that remains of `operations` after `warm_ups` were found in them and left out.
    pub fn of(used: &WorkloadUse, operations: &[Operation<'_>], warm_ups: &[WarmUp]) -> Self {
        let found = || warm_ups.iter().filter(|it| !it.asked && !it.counted && it.first > 0);
        let iterations = found().filter(|it| it.of == Repeated::Iterations).map(|it| it.first);
        let cut: Vec<&str> =
            found().filter(|it| it.of == Repeated::Samples).map(|it| &*it.metric).collect();
        let mut steady = Self {
            iterations: iterations.max().unwrap_or(0) as u32,
            within: !cut.is_empty(),
            single: operations.iter().any(is_single),
            ..Self::default()
        };
        if steady.within {
            for (number, operation) in operations.iter().enumerate() {
                let is_cut = cut.contains(&&*operation.name);
                let boots = operation.columns.iter().flatten();
                boots.for_each(|boot| steady.add(used, boot, number, is_cut));
            }
        }
        steady
    }

    fn add(&mut self, used: &WorkloadUse, samples: &BootSamples<'_>, number: usize, is_cut: bool) {
        let BootSamples { id, counted, left_out, .. } = samples;
        // Iterations that the experiment itself leaves out are not counted anywhere.
        let left_out = left_out.iterations.iter().zip(&left_out.ends);
        let left_out = left_out.filter(|(iteration, _)| is_cut && used.counts(**iteration));
        for (iteration, ended) in left_out.clone() {
            self.ends.entry((*id, *iteration)).or_default().left_out.extend(*ended);
        }
        let counted = counted.iterations.iter().zip(&counted.ends);
        for (iteration, ended) in counted.clone() {
            let ends = self.ends.entry((*id, *iteration)).or_default();
            ends.counted.extend(ended.map(|ended| (number, ended)));
        }
        if is_cut && left_out.chain(counted).any(|(_, ended)| ended.is_none()) {
            self.untimed.insert(*id);
        }
    }

    /// The part of their phases that counters can cover, given the chunks that count in the boots that the look
    /// judges. `None` if nothing is left out.
    pub fn part<'a>(
        &self,
        chunks: impl IntoIterator<Item = (KeptBoot<'a>, &'a Chunk)>,
    ) -> Option<Part> {
        let mut part = None;
        for (kept, chunk) in chunks {
            match self.share(kept, chunk) {
                Ok(Share::All) => {}
                Ok(Share::From { .. } | Share::Nothing) => part = Some(Part::Steady),
                Err(whole) => return Some(whole),
            }
        }
        part
    }

    /// The share of a chunk that counts: the part after the last left-out sample that ended during the chunk, or
    /// nothing if no counted sample ended during it. The error says why the share is unknown: [`Part::Untimed`],
    /// [`Part::Unsampled`] or [`Part::Mixed`].
    pub fn share(&self, kept: KeptBoot<'_>, chunk: &Chunk) -> Result<Share, Part> {
        let ends = self.ends.get(&(kept.id, chunk.iteration));
        let (Some(ends), [first, .., last]) = (ends, &chunk.times[..]) else {
            return Ok(Share::All);
        };
        if self.untimed.contains(&kept.id) {
            return Err(Part::Untimed);
        }
        let during = |ended: u64| *first < ended && ended <= *last;
        let Some(since) = ends.left_out.iter().copied().filter(|ended| during(*ended)).max() else {
            return Ok(Share::All);
        };
        let mut latest: BTreeMap<usize, u64> = BTreeMap::new();
        for (operation, ended) in ends.counted.iter().filter(|(_, ended)| during(*ended)) {
            let latest = latest.entry(*operation).or_default();
            *latest = (*latest).max(*ended);
        }
        if latest.is_empty() {
            return Ok(Share::Nothing);
        }
        if latest.values().any(|ended| *ended <= since) {
            return Err(Part::Mixed);
        }
        let time = first_reading(kept.boot, chunk, since).unwrap_or(*last);
        if (time - since).saturating_mul(MAX_MISSED) > last - since {
            return Err(Part::Unsampled);
        }
        let place = chunk.times.partition_point(|sampled| *sampled <= time).saturating_sub(1);
        Ok(Share::From { place, time })
    }
}

/// The time of the sampler's first reading at or after `since`, which is within `chunk`. A reading covers all files,
/// but a file that has not changed is not recorded.
fn first_reading(boot: &Boot, chunk: &Chunk, since: u64) -> Option<u64> {
    let place =
        |it: &'_ Chunk| (it.workload == chunk.workload, it.iteration, it.phase == chunk.phase);
    let own = boot.chunks.iter().filter(|it| it.source != WORKLOAD_SOURCE);
    let together = own.filter(|it| place(it) == (true, chunk.iteration, true));
    let readings = together.flat_map(|it| &it.times).copied().filter(|time| *time >= since);
    readings.min().filter(|time| chunk.times.last().is_some_and(|last| time <= last))
}

/// Whether no iteration has more than one value of the operation.
fn is_single(operation: &Operation<'_>) -> bool {
    let mut taken = operation.columns.iter().flatten().map(|boot| &boot.counted);
    taken.all(|it| {
        it.values.iter().all(|run| run.count() == 1)
            && it.iterations.windows(2).all(|pair| pair[0] != pair[1])
    })
}

#[cfg(test)]
mod tests {
    use model::{Column, Experiment, Mode, Reading, Sample, Usage};

    use super::*;
    use crate::testing::{boot, columns, deviations, experiment, manifest, sample, variant};
    use crate::{Judging, Kind, Results, Table, compare};

    /// Nanoseconds of a second.
    const SECOND: u64 = 1_000_000_000;

    /// A boot with this many samples, one every half second from second 10 on. The first four take twice as
    /// long. The sampler reads faults at `seconds`: 1000 per second until second 12, then 100.
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
            let (warm, steady) = ((*second).clamp(10, 12) - 10, (*second).max(12) - 12);
            Some((1000 * warm + 100 * steady) as i64)
        };
        boot.chunks.push(Chunk {
            workload: "autonuma".into(),
            iteration: 0,
            phase: "run".into(),
            source: "vmstat".into(),
            times: seconds.iter().map(|second| second * SECOND).collect(),
            columns: vec![Column::new("pgmajfault", seconds.iter().map(faults).collect())],
        });
        let elapsed = samples as f64 / 2.0;
        let workload = "autonuma".into();
        boot.usage = vec![Usage { workload, iteration: 0, user: 0.0, system: 0.0, elapsed }];
        boot
    }

    fn tables(experiment: &Experiment, boots: &[Boot], judging: &Judging) -> Vec<Table> {
        let variants = ["a", "b"].map(variant);
        let variants = columns(&variants, &[boots, boots]);
        compare(&Results { experiment, reading: Reading::USUAL, variants }, 0, judging).tables
    }

    /// Parts of the tables of durations and counters, and the faults counted.
    fn found(boots: &[Boot], judging: &Judging) -> ([Option<Part>; 2], Option<f64>) {
        let tables = tables(&experiment(Mode::Measured, 4, vec![manifest()]), boots, judging);
        let table = |kind| tables.iter().find(|table| table.kind == kind).unwrap();
        let [durations, counters] = [Kind::Duration, Kind::Counters].map(table);
        let faults = counters.rows.iter().find(|row| row.metric == "Major Faults").unwrap();
        ([durations.part, counters.part], faults.value(1))
    }

    fn boots(samples: u32, timed: bool, seconds: &[u64]) -> Vec<Boot> {
        (0..4).map(|number| warming(number, samples, timed, seconds)).collect()
    }

    const WHOLE: f64 = 2000.0 + 1800.0;

    #[test]
    fn counters_begin_where_the_samples_that_count_do() {
        let judging = Judging::default();
        // There is a reading when the last sample of warm-up ends ...
        let exact = found(&boots(40, true, &[10, 12, 20, 30]), &judging);
        assert_eq!(exact, ([Some(Part::Whole), Some(Part::Steady)], Some(1800.0)));
        // ... and one a second later, after 100 more faults.
        let after = found(&boots(40, true, &[10, 13, 30]), &judging);
        assert_eq!(after, (exact.0, Some(1700.0)));
        let included = Judging { warm_up_counts: true, ..judging };
        let all = found(&boots(40, true, &[10, 12, 20, 30]), &included);
        assert_eq!(all, ([None, None], Some(WHOLE)));
    }

    #[test]
    fn events_have_rates_before_and_after_that_moment() {
        let mut boots = boots(40, true, &[10, 12, 20, 30]);
        for chunk in boots.iter_mut().map(|boot| &mut boot.chunks) {
            let mut events = chunk[0].clone();
            events.source = "events".into();
            let times: Vec<_> = events.times.iter().map(|time| Some(*time as i64)).collect();
            let [enabled, running] = ["enabled", "running"].map(|it| format!("cycles {it}"));
            events.columns[0].name = "cycles".into();
            events.columns.push(Column::new(enabled, times.clone()));
            events.columns.push(Column::new(running, times));
            chunk.push(events);
        }
        let mut experiment = experiment(Mode::Measured, 4, vec![manifest()]);
        experiment.sampler.events = vec!["cycles".into()];
        let tables = tables(&experiment, &boots, &Judging::default());
        let rows = &tables.iter().find(|table| table.kind == Kind::Events).unwrap().rows;
        let rows: Vec<_> = rows.iter().map(|row| (&*row.metric, row.value(1))).collect();
        let expected = [("cycles-run-warm-up/s", Some(1000.0)), ("cycles-run/s", Some(100.0))];
        assert_eq!(rows, expected);
    }

    #[test]
    fn counters_cover_whole_phases_if_the_moment_is_unknown() {
        let judging = Judging::default();
        let untimed = found(&boots(40, false, &[10, 12, 20, 30]), &judging);
        assert_eq!(untimed, ([Some(Part::Whole), Some(Part::Untimed)], Some(WHOLE)));
        let late = found(&boots(40, true, &[10, 14, 30]), &judging);
        assert_eq!(late, ([Some(Part::Whole), Some(Part::Unsampled)], Some(WHOLE)));
        // It is the same for all boots.
        let mut boots = boots(40, true, &[10, 12, 20, 30]);
        boots[3] = warming(3, 40, true, &[10, 30]);
        let unsampled = found(&boots, &judging);
        assert_eq!(unsampled, ([Some(Part::Whole), Some(Part::Unsampled)], Some(WHOLE)));
        // A boot after the current look does not count, and is left out.
        let look = crate::Look { number: 1, of: 2, boots: 3, next: 6 };
        let seen = found(&boots, &Judging { look: Some(look), ..judging });
        assert_eq!(seen, ([Some(Part::Whole), Some(Part::Steady)], Some(1800.0)));
    }

    /// The sampler took a reading at each of these seconds.
    #[test]
    fn a_reading_without_changes_still_counts() {
        let mut boots = boots(40, true, &[10, 11, 30]);
        for boot in &mut boots {
            let times = (10..=30).map(|second| second * SECOND).collect();
            let columns = Vec::new();
            let unchanged =
                Chunk { source: "stat".into(), times, columns, ..boot.chunks[0].clone() };
            boot.chunks.push(unchanged);
        }
        let found = found(&boots, &Judging::default());
        assert_eq!(found, ([Some(Part::Whole), Some(Part::Steady)], Some(WHOLE - 1000.0)));
    }

    #[test]
    fn warm_up_of_one_metric_does_not_cost_another_its_samples() {
        let mut boots = boots(40, true, &[10, 12, 20, 30]);
        for boot in &mut boots {
            let early = |at: u64| Sample {
                ended: Some(10 * SECOND + at * SECOND / 10),
                ..sample("Elapsed", "early", 0, 5.0)
            };
            boot.samples.extend((1..=10).map(early));
        }
        let mixed = found(&boots, &Judging::default());
        assert_eq!(mixed, ([Some(Part::Whole), Some(Part::Mixed)], Some(WHOLE)));
    }

    #[test]
    fn metrics_with_one_value_per_iteration_are_reported() {
        let experiment = experiment(Mode::Measured, 4, vec![manifest()]);
        let judging = Judging::default();
        let mut boots = boots(40, true, &[10, 12, 20, 30]);
        assert_eq!(tables(&experiment, &boots, &judging)[0].part, None);
        boots.iter_mut().for_each(|boot| boot.samples.push(sample("Elapsed", "once", 0, 5.0)));
        assert_eq!(tables(&experiment, &boots, &judging)[0].part, Some(Part::Whole));
    }

    #[test]
    fn phases_without_warm_up_have_no_part() {
        let mut boots = boots(40, true, &[10, 12, 20, 30]);
        boots.iter_mut().for_each(|boot| boot.chunks = warming(0, 0, true, &[1, 2, 9]).chunks);
        assert_eq!(found(&boots, &Judging::default()).0, [Some(Part::Whole), None]);
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
            table.rows.iter().find(|row| row.metric == name).unwrap().value(1)
        };
        assert_eq!(value(Kind::Duration, "Elapsed"), Some(26.0));
        assert_eq!(value(Kind::Counters, "Major Faults"), Some(26.0 * 1000.0));
    }
}
