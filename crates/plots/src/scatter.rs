//! Every sample of a metric, by boot, and their distribution.

use std::num::NonZeroU32;

use compare::{BootSamples, Judging, Operation, VariantBoots, steady_operations};
use model::{Better, BootId, Mode, Reading, WorkloadUse};
use stats::counted::count;
use stats::{RepeatedValue, outliers};

/// Most operations of a workload that are drawn; those with a direction come first.
const MAX_SCATTERS: usize = 24;
/// Fewest samples of a variant for a distribution curve.
const MIN_SAMPLES: usize = 20;

/// The samples of one operation: a metric with its label and phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Scatter {
    /// The operation's name, as in the rows of tables.
    pub name: String,
    /// The unit of the values.
    pub unit: String,
    /// The metric's direction; `None` if it has none.
    pub better: Option<Better>,
    /// For each variant, its complete boots in the order in which they were kept.
    pub columns: Vec<Vec<BootDots>>,
    /// For each variant, the share of samples at or below a value: steps of value and share, both ascending.
    /// Empty unless some variant has 20 samples.
    pub distributions: Vec<Vec<[f64; 2]>>,
    /// For each variant, the number of modes of its samples: 1 where there are few samples.
    pub modes: Vec<usize>,
}

/// The samples of one boot.
#[derive(Clone, Debug, PartialEq)]
pub struct BootDots {
    /// The boot's number.
    pub boot: BootId,
    /// Its samples in the order they were taken, including warm-up that does not count. Very many samples
    /// are reduced to the extremes, the outliers, and an even selection of the others.
    pub dots: Vec<Dot>,
    /// Number of samples before the reduction.
    pub samples: usize,
    /// The boot's own figure, the mean of the samples that count; `None` if there are none.
    pub mean: Option<f64>,
}

/// One sample, or equal ones in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dot {
    /// The value of these samples.
    pub value: f64,
    /// The number of samples; 1 on a page.
    pub count: NonZeroU32,
    /// Whether it lies far from the other samples of its variant. Never set where these have several modes.
    pub outlier: bool,
}

/// The operations that are drawn, and the number of those that are not.
pub fn scatters(
    used: &WorkloadUse,
    reading: &Reading,
    columns: &[VariantBoots<'_>],
    mode: Mode,
    judging: &Judging,
) -> (Vec<Scatter>, usize) {
    let (mut operations, _) = steady_operations(used, columns, mode, judging);
    let reading = reading.workload(used);
    let all = operations.len();
    if all > MAX_SCATTERS {
        operations.sort_by_key(|operation| {
            (
                operation.metric.better.is_none(),
                !reading.is_primary(&used.manifest, &operation.metric, &operation.name),
            )
        });
        operations.truncate(MAX_SCATTERS);
        operations.sort_by_key(|operation| operation.rank);
    }
    let scatters = operations.iter().map(scatter).collect();
    (scatters, all - operations.len())
}

fn scatter(operation: &Operation<'_>) -> Scatter {
    let samples: Vec<Vec<RepeatedValue>> =
        operation.columns.iter().map(|boots| finite(boots)).collect();
    let modes: Vec<usize> = samples.iter().map(|samples| modes(samples)).collect();
    let many = samples.iter().any(|samples| count(samples) >= MIN_SAMPLES);
    let own = operation.columns.iter().zip(samples.iter().zip(&modes));
    let dots = own.map(|(boots, (samples, &modes))| {
        let far = if modes == 1 { outliers(samples) } else { Vec::new() };
        dots(operation, boots, &far)
    });
    Scatter {
        name: operation.name.clone(),
        unit: operation.metric.unit.clone(),
        better: operation.metric.better,
        columns: dots.collect(),
        distributions: if many { samples.into_iter().map(distribution).collect() } else { vec![] },
        modes,
    }
}

/// The number of modes of the samples; 1 if there are fewer than [`MIN_SAMPLES`].
fn modes(samples: &[RepeatedValue]) -> usize {
    let many = count(samples) >= MIN_SAMPLES;
    many.then(|| stats::modes(samples)).flatten().map_or(1, |modes| modes.count())
}

/// The samples of each boot of a variant, with the outliers `far` marked. These are indices among the variant's
/// finite samples. Other values cannot be drawn and are left out.
fn dots(operation: &Operation<'_>, boots: &[BootSamples<'_>], far: &[usize]) -> Vec<BootDots> {
    let mut places = 0..;
    let mut dots = |it: &BootSamples<'_>| BootDots {
        boot: it.id,
        dots: {
            let finite = |run: &&RepeatedValue| run.value.is_finite();
            let dot = |&RepeatedValue { value, count }: &RepeatedValue, outlier| Dot {
                value,
                count,
                outlier,
            };
            let left_out = it.left_out.values.iter().filter(finite).map(|run| dot(run, false));
            let counted = it.counted.values.iter().filter(finite).zip(&mut places);
            let is_far = |place| far.binary_search(&place).is_ok();
            left_out.chain(counted.map(|(run, place)| dot(run, is_far(place)))).collect()
        },
        samples: count(&it.left_out.values) + count(&it.counted.values),
        mean: it.mean(operation.metric.mean).filter(|mean| mean.is_finite()),
    };
    boots.iter().map(&mut dots).collect()
}

fn finite(boots: &[BootSamples<'_>]) -> Vec<RepeatedValue> {
    let values = boots.iter().flat_map(|boot| &boot.counted.values);
    values.copied().filter(|run| run.value.is_finite()).collect()
}

/// The empirical distribution function of `values`: one step for each different value.
fn distribution(mut values: Vec<RepeatedValue>) -> Vec<[f64; 2]> {
    values.sort_by(|a, b| a.value.total_cmp(&b.value));
    let all = count(&values) as f64;
    let mut below = 0;
    let equal = values.chunk_by(|a, b| a.value == b.value);
    let steps = equal.map(|equal| {
        below += count(equal);
        [equal[0].value, below as f64 / all]
    });
    steps.collect()
}
