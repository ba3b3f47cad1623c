//! Warm-up within boots, which is left out of the figures.
//!
//! If boots surely warm up ([`stats::warm_up`]), the same number of first values is left out of every boot of every
//! variant: the number of the longest warm-up. If only one side left out its start-up, that alone would make a
//! difference between the sides. If each boot left out its own number of values, boots would be compared over
//! different spans. Reports say what is left out.

use std::collections::BTreeMap;

use model::{Mean, WorkloadUse};
use serde::Serialize;
use stats::counted::count;
use stats::{Counted, RepeatedValue, Summary, warm_up};

use super::operations::{BootSamples, Operation, OrderedSamples, mean_of};
use crate::Judging;

/// Fewest samples of an iteration in which warm-up is sought. With fewer, the boot's iterations are examined instead.
const MIN_SAMPLES: usize = 20;

/// The warm-up of an operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WarmUp {
    /// The operation, as rows name it.
    pub metric: String,
    /// Whether iterations or samples are repeated.
    pub of: Repeated,
    /// Fewest and most repetitions in any boot that counts.
    pub repeated: [usize; 2],
    /// Number of first repetitions that are surely warm-up; 0 if unsure.
    pub first: usize,
    /// Whether the user asked to count them nevertheless.
    pub counted: bool,
    /// Whether the experiment declares them warm-up; otherwise they were found to be.
    pub asked: bool,
    /// How the boots of each variant begin.
    pub columns: Vec<Beginnings>,
}

/// What is repeated and may begin with a warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Repeated {
    /// The iterations of a boot.
    Iterations,
    /// The samples of an iteration, in the order they were taken.
    Samples,
}

/// How the boots of a variant begin.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Beginnings {
    /// Number of boots that are long enough to tell.
    pub boots: usize,
    /// Number of these boots that begin with a warm-up.
    pub warm: usize,
    /// Number of repetitions in the longest warm-up.
    pub longest: usize,
    /// Number of these boots that still change at their end.
    pub never: usize,
    /// Mean over boots of the values before the steady state; `None` where warm-up is not sure.
    pub before: Option<f64>,
    /// Mean over boots of the steady state; `None` where warm-up is not sure.
    pub steady: Option<f64>,
}

/// The iterations that are left out of `operations` because the experiment declares them warm-up.
pub fn asked(operations: &[Operation<'_>], used: &WorkloadUse) -> Vec<WarmUp> {
    let left_out = |operation: &&Operation<'_>| {
        operation.columns.iter().flatten().any(|boot| !boot.left_out.values.is_empty())
    };
    let warm_up = |operation: &Operation<'_>| {
        let beginnings = |boots: &Vec<BootSamples<'_>>| {
            let means = boots.iter().map(|boot| {
                [&boot.left_out, &boot.counted].map(|it| mean_of(&it.values, operation.metric.mean))
            });
            let mean = |part: usize| {
                let means: Vec<f64> = means.clone().filter_map(|means| means[part]).collect();
                Summary::of(&means).map(|it| it.amean)
            };
            Beginnings {
                boots: boots.len(),
                warm: boots.len(),
                longest: used.warmup as usize,
                never: 0,
                before: mean(0),
                steady: mean(1),
            }
        };
        WarmUp {
            metric: operation.name.clone(),
            of: Repeated::Iterations,
            repeated: [used.repetitions() as usize; 2],
            first: used.warmup as usize,
            counted: false,
            asked: true,
            columns: operation.columns.iter().map(beginnings).collect(),
        }
    };
    operations.iter().filter(left_out).map(warm_up).collect()
}

/// Finds the warm-up of `operations`, and leaves it out unless `judging` counts it. Returns the warm-ups to report.
/// Warm-up by iterations is reported only if it is sure; otherwise `oddities` reports it by boot.
pub fn leave_out(operations: &mut [Operation<'_>], judging: &Judging) -> Vec<WarmUp> {
    operations.iter_mut().filter_map(|operation| of_operation(operation, judging)).collect()
}

fn of_operation(operation: &mut Operation<'_>, judging: &Judging) -> Option<WarmUp> {
    let mean = operation.metric.mean;
    // Boots after a look must not change what it found.
    let is_seen = |boot: &&BootSamples<'_>| judging.counts(boot.boot.block);
    let mut seen = operation.columns.iter().flatten().filter(is_seen);
    let is_long = |boot| by_iteration(boot).values().any(|it| count(it) >= MIN_SAMPLES);
    let of = match !operation.metric.concurrent && seen.any(is_long) {
        true => Repeated::Samples,
        false => Repeated::Iterations,
    };
    let series = |boots: &Vec<BootSamples<'_>>| -> Vec<Series> {
        boots.iter().filter(is_seen).map(|boot| series(boot, of, mean)).collect()
    };
    let all: Vec<Vec<Series>> = operation.columns.iter().map(series).collect();
    let found: Vec<stats::WarmUp> = all.iter().map(|boots| warm_up(boots)).collect();
    let lengths = || all.iter().flatten().flatten().map(|it| count(it));
    let repeated = [lengths().min()?, lengths().max()?];
    // No boot may lose more values than this, as within one variant.
    let longest =
        found.iter().map(|it| it.until).filter(|first| may_lose(repeated[0], *first)).max();
    let first = longest.unwrap_or(0);
    let is_odd = found.iter().any(|it| it.warm + it.never > 0);
    if first == 0 && !(is_odd && of == Repeated::Samples) {
        return None;
    }
    let beginnings = |(boots, found): (&mut Vec<BootSamples<'_>>, &stats::WarmUp)| {
        let mut means = [Vec::new(), Vec::new()];
        for boot in boots {
            let [before, steady] = split(boot, first, of);
            if is_seen(&&*boot) {
                means[0].extend(mean_of(&before.values, mean));
                means[1].extend(mean_of(&steady.values, mean));
            }
            if !judging.warm_up_counts {
                boot.left_out.extend(before);
                boot.counted = steady;
            }
        }
        let [before, steady] = means.map(|means| Summary::of(&means).map(|it| it.amean));
        let &stats::WarmUp { units, warm, longest, never, .. } = found;
        let sure = |mean: Option<f64>| mean.filter(|_| first > 0);
        Beginnings {
            boots: units,
            warm,
            longest,
            never,
            before: sure(before),
            steady: sure(steady),
        }
    };
    Some(WarmUp {
        metric: operation.name.clone(),
        of,
        repeated,
        first,
        counted: judging.warm_up_counts,
        asked: false,
        columns: operation.columns.iter_mut().zip(&found).map(beginnings).collect(),
    })
}

/// Series of values of a boot, each in order of time.
type Series = Vec<Vec<RepeatedValue>>;

fn series(boot: &BootSamples<'_>, of: Repeated, mean: Mean) -> Series {
    let iterations = by_iteration(boot).into_values();
    match of {
        Repeated::Samples => iterations.collect(),
        // Values without a mean prove nothing.
        Repeated::Iterations => {
            vec![iterations.map(|it| mean_of(&it, mean).unwrap_or(f64::NAN).run()).collect()]
        }
    }
}

fn by_iteration(boot: &BootSamples<'_>) -> BTreeMap<u32, Vec<RepeatedValue>> {
    let mut iterations: BTreeMap<u32, Vec<RepeatedValue>> = BTreeMap::new();
    for (iteration, value) in boot.counted.iterations.iter().zip(&boot.counted.values) {
        iterations.entry(*iteration).or_default().push(*value);
    }
    iterations
}

/// Whether at least a quarter of the repetitions remains without the first ones.
fn may_lose(repeated: usize, first: usize) -> bool {
    4 * first <= 3 * repeated
}

/// Splits samples into the first `first` repetitions and the others. A boot that is too short keeps all; it can only
/// be one that the look has not seen.
fn split(boot: &BootSamples<'_>, first: usize, of: Repeated) -> [OrderedSamples; 2] {
    let mut parts = [OrderedSamples::default(), OrderedSamples::default()];
    let iterations = by_iteration(boot);
    let shortest = match of {
        Repeated::Samples => iterations.values().map(|it| count(it)).min().unwrap_or(0),
        Repeated::Iterations => iterations.len(),
    };
    let first = if may_lose(shortest, first) { first } else { 0 };
    let numbers: Vec<u32> = iterations.into_keys().collect();
    let mut seen: BTreeMap<u32, usize> = BTreeMap::new();
    let OrderedSamples { values, iterations, ends } = &boot.counted;
    for ((run, iteration), ended) in values.iter().zip(iterations).zip(ends) {
        let seen = seen.entry(*iteration).or_default();
        let left = match of {
            Repeated::Samples => first.saturating_sub(*seen),
            Repeated::Iterations => {
                let place = numbers.partition_point(|number| number < iteration);
                if place < first { run.count() } else { 0 }
            }
        };
        *seen += run.count();
        for (part, run) in parts.iter_mut().zip(run.split_at(left)) {
            run.into_iter().for_each(|run| part.push(run, *iteration, *ended));
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use model::{Boot, Manifest, Mode};

    use super::*;
    use crate::figures::operations::operations;
    use crate::testing::{boot, columns, deviations, manifest, sample, used, variant};
    use crate::{Look, VariantBoots};

    /// Boots of `iterations` iterations of `samples` samples around 100, plus `more` by boot and sample.
    fn boots(
        count: u32,
        iterations: u32,
        samples: usize,
        seed: usize,
        more: impl Fn(u32, usize, u32) -> f64,
    ) -> Vec<Boot> {
        let mut deviations = deviations().skip(1000 * seed);
        let of = |number: u32| {
            let mut boot = Boot { block: number, ..boot(number) };
            for iteration in 0..iterations {
                for at in 0..samples {
                    let value = 100.0 + deviations.next().unwrap() + more(number, at, iteration);
                    boot.samples.push(sample("Elapsed", "", iteration, value));
                }
            }
            boot
        };
        (0..count).map(of).collect()
    }

    fn no_more(_: u32, _: usize, _: u32) -> f64 {
        0.0
    }

    /// The reported warm-ups, and how many samples remain in each boot.
    fn found(sides: [&[Boot]; 2], judging: &Judging) -> (Vec<WarmUp>, Vec<Vec<usize>>) {
        found_in(manifest(), sides, judging)
    }

    fn found_in(
        manifest: Manifest,
        sides: [&[Boot]; 2],
        judging: &Judging,
    ) -> (Vec<WarmUp>, Vec<Vec<usize>>) {
        let (variants, used) = (["a", "b"].map(variant), used(manifest));
        let columns: Vec<VariantBoots<'_>> = columns(&variants, &sides);
        let mut operations = operations(&used, &columns, Mode::Measured);
        let told = leave_out(&mut operations, judging);
        let left =
            |boots: &Vec<BootSamples<'_>>| boots.iter().map(|it| it.counted.values.len()).collect();
        (told, operations[0].columns.iter().map(left).collect())
    }

    #[test]
    fn the_warm_up_of_one_side_is_left_out_of_both() {
        let warm = |_, at, _| if at < 3 { 20.0 } else { 0.0 };
        let (base, new) = (boots(4, 2, 40, 1, no_more), boots(4, 2, 40, 2, warm));
        let (told, left) = found([&base, &new], &Judging::default());
        assert_eq!(left, [vec![74; 4], vec![74; 4]]);
        let [WarmUp { of, repeated, first, counted, columns, .. }] = &told[..] else {
            panic!("{told:?}");
        };
        assert_eq!((*of, *repeated, *first), (Repeated::Samples, [40, 40], 3));
        assert!(!counted && columns[0].warm == 0 && columns[1].warm == 4);
        let near = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 1.0;
        assert!(near(columns[0].before, 100.0) && near(columns[1].before, 120.0));
        assert!(near(columns[0].steady, 100.0) && near(columns[1].steady, 100.0));
    }

    #[test]
    fn samples_taken_at_the_same_time_have_no_start() {
        let ahead = |_, at, _| if at < 3 { -20.0 } else { 0.0 };
        let side = boots(4, 1, 40, 1, ahead);
        let mut manifest = manifest();
        let judging = Judging::default();
        assert_eq!(found_in(manifest.clone(), [&side, &side], &judging).0[0].first, 3);
        manifest.metrics[0].concurrent = true;
        assert_eq!(found_in(manifest.clone(), [&side, &side], &judging).0, []);
        // Iterations of it follow each other all the same.
        let side = boots(3, 30, 20, 3, |_, _, iteration| if iteration < 4 { 30.0 } else { 0.0 });
        let (told, left) = found_in(manifest, [&side, &side], &judging);
        assert_eq!((told[0].of, told[0].first), (Repeated::Iterations, 4));
        assert_eq!(left[0], [26 * 20; 3]);
    }

    #[test]
    fn warm_up_counts_if_requested() {
        let warm = |_, at, _| if at < 3 { 20.0 } else { 0.0 };
        let side = boots(4, 1, 40, 1, warm);
        let judging = Judging { warm_up_counts: true, ..Judging::default() };
        let (told, left) = found([&side, &side], &judging);
        assert_eq!(left, [vec![40; 4], vec![40; 4]]);
        assert!(told[0].counted && told[0].first == 3);
    }

    #[test]
    fn first_iterations_are_left_out_where_they_are_many() {
        let warm = |_, _, iteration| if iteration < 4 { 30.0 } else { 0.0 };
        let side = boots(3, 30, 2, 3, warm);
        let (told, left) = found([&side, &side], &Judging::default());
        assert_eq!(left, [vec![52; 3], vec![52; 3]]);
        assert_eq!((told[0].of, told[0].first), (Repeated::Iterations, 4));
    }

    #[test]
    fn a_warm_up_in_few_boots_is_reported_and_counts() {
        let one = |boot, at, _| if boot == 1 && at < 5 { 20.0 } else { 0.0 };
        let (base, new) = (boots(5, 1, 40, 1, no_more), boots(5, 1, 40, 2, one));
        let (told, left) = found([&base, &new], &Judging::default());
        assert_eq!(left, [vec![40; 5], vec![40; 5]]);
        assert_eq!((told[0].first, told[0].columns[1].warm, told[0].columns[1].longest), (0, 1, 5));
        assert_eq!(told[0].columns[1].before, None);
        // The oddities report warm-up iterations.
        let one = |boot, _, iteration| if boot == 1 && iteration < 5 { 20.0 } else { 0.0 };
        let side = boots(5, 40, 1, 2, one);
        assert_eq!(found([&side, &side], &Judging::default()).0, []);
    }

    #[test]
    fn steady_boots_and_short_ones_keep_all() {
        let warm = |_, at, _| if at < 3 { 20.0 } else { 0.0 };
        let (long, short) = (boots(4, 1, 40, 1, no_more), boots(4, 1, 12, 2, warm));
        assert_eq!(found([&long, &long], &Judging::default()).0, []);
        assert_eq!(found([&short, &short], &Judging::default()).0, []);
        // A warm-up that is too long for one boot is left out of none.
        let warm = boots(4, 1, 40, 2, warm);
        let tiny = boots(4, 1, 3, 1, no_more);
        let (told, left) = found([&tiny, &warm], &Judging::default());
        assert_eq!((told[0].first, &left[1]), (0, &vec![40; 4]));
    }

    /// Boots after the current look do not affect the result, and are cut like the others.
    #[test]
    fn a_look_rests_on_its_own_boots() {
        let warm = |boot, at, _| if boot >= 4 && at < 3 { 20.0 } else { 0.0 };
        let side = boots(12, 1, 40, 1, warm);
        let look = Look { number: 1, of: 3, boots: 4, next: 6 };
        let judging = Judging { look: Some(look), ..Judging::default() };
        assert_eq!(found([&side, &side], &judging).0, []);
        assert_eq!(found([&side, &side], &Judging::default()).0[0].first, 3);
    }

    #[test]
    fn a_boot_after_a_look_changes_nothing_of_it() {
        let warm = |_, at, _| if at < 3 { 20.0 } else { 0.0 };
        let look = Look { number: 1, of: 3, boots: 4, next: 6 };
        let judging = Judging { look: Some(look), ..Judging::default() };
        let side = boots(4, 1, 40, 1, warm);
        let (before, _) = found([&side, &side], &judging);
        assert_eq!(before[0].first, 3);
        for samples in [1, 3, 4, 40] {
            let later = Boot { block: 4, ..boots(1, 1, samples, 2, warm).remove(0) };
            let more = [&side[..], &[later]].concat();
            let (after, left) = found([&more, &side], &judging);
            assert_eq!(after, before);
            // What is too short keeps all.
            assert_eq!(left[0][4], if samples < 4 { samples } else { samples - 3 });
        }
        // A later boot with many samples has no effect either.
        let warm = |_, _, iteration| if iteration < 4 { 30.0 } else { 0.0 };
        let side = boots(4, 30, 2, 3, warm);
        let (before, _) = found([&side, &side], &judging);
        assert_eq!((before[0].of, before[0].first), (Repeated::Iterations, 4));
        let later = Boot { block: 4, ..boots(1, 1, 40, 2, no_more).remove(0) };
        let more = [&side[..], &[later]].concat();
        let (after, left) = found([&more, &side], &judging);
        assert_eq!((after, left[0][4]), (before, 40));
    }
}
