//! Operations. Each has rows in a table of metrics, and may have a verdict.

use std::cmp::Ordering;
use std::collections::HashMap;

use model::{
    Better, Boot, BootId, INSTRUCTIONS, Manifest, Mean, Metric, Mode, NO_PHASE, Sample, WorkloadUse,
};
use stats::{Counted, RepeatedValue, Summary};

use super::BootFigures;
use super::host_block::HostBlock;
use crate::{KeptBoot, VariantBoots};

/// A metric with its label and phase.
pub struct Operation<'a> {
    /// Metric, label and phase as one name.
    pub name: String,
    /// The metric as the manifest declares it. One that it does not declare has no direction.
    pub metric: Metric,
    /// The label of its samples; empty if they have none.
    pub label: &'a str,
    /// The phase of its samples; empty outside all phases.
    pub phase: &'a str,
    /// Whether it is outside all phases, in a workload that has phases.
    pub in_no_phase: bool,
    /// The place of its metric in the table: the manifest's order, then undeclared metrics, then the
    /// instructions of exact mode.
    pub rank: usize,
    /// For each column, the boots that have samples of it.
    pub columns: Vec<Vec<BootSamples<'a>>>,
}

impl Operation<'_> {
    /// Whether `other` is the same operation. Its boots and the reading of its figures may differ.
    pub(crate) fn is(&self, other: &Operation<'_>) -> bool {
        (&self.metric.name, self.label, self.phase)
            == (&other.metric.name, other.label, other.phase)
    }

    /// For each column, one figure per boot: the boot's samples in the mean that the metric declares.
    pub(crate) fn figures(&self) -> Vec<BootFigures> {
        let figure = |it: &BootSamples<'_>| (HostBlock::of(it.boot), it.mean(self.metric.mean));
        self.columns.iter().map(|boots| BootFigures::new(boots.iter().map(figure))).collect()
    }
}

/// The samples that one boot has of an operation.
pub struct BootSamples<'a> {
    /// The boot's number in the store.
    pub id: BootId,
    /// The boot as it was recorded.
    pub boot: &'a Boot,
    /// The samples that count; at least one.
    pub counted: OrderedSamples,
    /// The samples that do not count because they are warm-up ([`crate::figures::warmup`]).
    pub left_out: OrderedSamples,
}

/// Samples in the order they were taken.
#[derive(Clone, Debug, Default)]
pub struct OrderedSamples {
    /// The values, as runs of equal ones.
    pub values: Vec<RepeatedValue>,
    /// The iteration of each run.
    pub iterations: Vec<u32>,
    /// The end time of the last sample of each run; `None` where unknown.
    pub ends: Vec<Option<u64>>,
}

impl OrderedSamples {
    /// Appends a run of equal samples.
    pub(crate) fn push(&mut self, value: RepeatedValue, iteration: u32, ended: Option<u64>) {
        self.values.push(value);
        self.iterations.push(iteration);
        self.ends.push(ended);
    }

    /// Appends the runs of `others`.
    pub(crate) fn extend(&mut self, others: Self) {
        self.values.extend(others.values);
        self.iterations.extend(others.iterations);
        self.ends.extend(others.ends);
    }
}

impl<'a> BootSamples<'a> {
    /// The boot without samples.
    fn none(id: BootId, boot: &'a Boot) -> Self {
        Self { id, boot, counted: OrderedSamples::default(), left_out: OrderedSamples::default() }
    }

    /// The boot's own figure, the mean of its samples. `None` if they have no such mean.
    pub fn mean(&self, mean: Mean) -> Option<f64> {
        mean_of(&self.counted.values, mean)
    }
}

/// The mean of some values; `None` if they have no such mean.
pub fn mean_of<V: Counted>(values: &[V], mean: Mean) -> Option<f64> {
    // A rate of 0 has no harmonic mean. The mean of a single value is that value.
    if let [only] = values
        && only.count() == 1
    {
        return Some(only.value());
    }
    let summary = Summary::of(values)?;
    match mean {
        Mean::Amean => Some(summary.amean),
        Mean::Hmean => summary.hmean,
        Mean::Gmean => summary.gmean,
    }
}

/// The operations of `workload` in the complete boots of `columns`, in the order of their ranks, and within
/// a metric in the order of the iterations ([`Order`]). Iterations before those that count are left out.
/// Instructions are per iteration, summed over all spans of a phase.
pub fn operations<'a>(
    used: &'a WorkloadUse,
    columns: &[VariantBoots<'a>],
    mode: Mode,
) -> Vec<Operation<'a>> {
    let workload = &used.manifest;
    let mut operations: Vec<Operation<'a>> = Vec::new();
    let mut places: HashMap<[&str; 3], usize> = HashMap::new();
    let mut order = Order::default();
    for (number, column) in columns.iter().enumerate() {
        for &KeptBoot { id, boot, .. } in column.complete_kept() {
            let mut iteration = None;
            for sample in boot.samples.iter().filter(|sample| sample.workload == workload.name) {
                let key = [&*sample.metric, &*sample.label, &*sample.phase];
                if iteration.replace(sample.iteration) != Some(sample.iteration) {
                    order.begin();
                }
                let place = *places.entry(key).or_insert_with(|| {
                    order.add(sample);
                    operations.push(operation(workload, sample, columns.len(), mode));
                    operations.len() - 1
                });
                order.pass(place);
                let boots = &mut operations[place].columns[number];
                if boots.last().is_none_or(|last| last.id != id) {
                    boots.push(BootSamples::none(id, boot));
                }
                let Some(known) = boots.last_mut() else { continue };
                let taken = match used.counts(sample.iteration) {
                    true => &mut known.counted,
                    false => &mut known.left_out,
                };
                let again = is_instructions(&sample.metric, mode)
                    && taken.iterations.last() == Some(&sample.iteration);
                let run = RepeatedValue { value: sample.value, count: sample.count };
                match taken.values.last_mut().filter(|_| again) {
                    Some(sum) => sum.value += sample.value,
                    None => taken.push(run, sample.iteration, sample.ended),
                }
            }
        }
    }
    let mut operations = order.sorted(operations);
    for boots in operations.iter_mut().flat_map(|operation| &mut operation.columns) {
        boots.retain(|boot| !boot.counted.values.is_empty());
    }
    operations.retain(|operation| operation.columns.iter().any(|boots| !boots.is_empty()));
    operations.sort_by_key(|operation| operation.rank);
    tell_from_all(&mut operations, mode);
    operations
}

/// The order of operations, which is that of the first iteration. An operation that the first iteration lacks comes
/// after the operations that precede it in its own iteration, or at the end if none does. If labels are numbers, such
/// as numbers of clients, it comes between the lower and the higher numbers.
#[derive(Default)]
struct Order<'a> {
    /// Numbers of operations, in order.
    sequence: Vec<usize>,
    /// For each operation, its index in the sequence and one of its samples.
    operations: Vec<(usize, &'a Sample)>,
    /// The index after the last operation that the current iteration had so far.
    next: usize,
}

impl<'a> Order<'a> {
    /// Begins an iteration.
    fn begin(&mut self) {
        self.next = 0;
    }

    /// Adds the operation that `sample` of the current iteration belongs to.
    fn add(&mut self, sample: &'a Sample) {
        let number = |sample: &Sample| sample.label.parse::<u64>().ok();
        // How another operation of the same metric compares by number.
        let other = |operation: &usize| {
            let other = self.operations[*operation].1;
            let is_same = (&other.metric, &other.phase) == (&sample.metric, &sample.phase);
            is_same.then(|| Some(number(other)?.cmp(&number(sample)?))).flatten()
        };
        let place = match self.next {
            0 => self.sequence.iter().position(|it| other(it) == Some(Ordering::Greater)),
            next => {
                let after = self.sequence[next..].iter();
                Some(next + after.take_while(|it| other(it) == Some(Ordering::Less)).count())
            }
        };
        let place = place.unwrap_or(self.sequence.len());
        self.sequence.insert(place, self.operations.len());
        self.operations.push((place, sample));
        for (place, operation) in self.sequence.iter().enumerate().skip(place + 1) {
            self.operations[*operation].0 = place;
        }
    }

    /// Moves `next` behind an operation of the current iteration.
    fn pass(&mut self, operation: usize) {
        self.next = self.next.max(self.operations[operation].0 + 1);
    }

    /// The operations in order.
    fn sorted<T>(&self, operations: Vec<T>) -> Vec<T> {
        let mut placed: Vec<_> = operations.into_iter().zip(&self.operations).collect();
        placed.sort_by_key(|(_, (place, _))| *place);
        placed.into_iter().map(|(operation, _)| operation).collect()
    }
}

/// Marks the instructions outside all phases if other instructions are in a phase, because they are not the total.
fn tell_from_all(operations: &mut [Operation<'_>], mode: Mode) {
    let instructions: Vec<&mut Operation<'_>> = operations
        .iter_mut()
        .filter(|operation| is_instructions(&operation.metric.name, mode))
        .collect();
    if instructions.iter().any(|operation| !operation.phase.is_empty()) {
        for operation in instructions.into_iter().filter(|operation| operation.phase.is_empty()) {
            operation.name.push_str(NO_PHASE);
            operation.in_no_phase = true;
        }
    }
}

/// Whether exact mode counts this metric itself.
fn is_instructions(metric: &str, mode: Mode) -> bool {
    mode == Mode::Exact && metric == INSTRUCTIONS
}

/// The operation of `sample`, without any samples yet.
fn operation<'a>(
    workload: &Manifest,
    sample: &'a Sample,
    columns: usize,
    mode: Mode,
) -> Operation<'a> {
    let Sample { metric, label, phase, .. } = sample;
    let (rank, metric) = metric_named(metric, workload, mode);
    let mut name = metric.name.clone();
    for part in [label, phase] {
        if !part.is_empty() {
            name.push('-');
            name.push_str(part);
        }
    }
    let columns = (0..columns).map(|_| Vec::new()).collect();
    Operation { name, metric, label, phase, in_no_phase: false, rank, columns }
}

/// The metric of this name, and its rank. A metric that the manifest does not declare has no direction.
fn metric_named(name: &str, workload: &Manifest, mode: Mode) -> (usize, Metric) {
    let declared = workload.metrics.iter().enumerate().find(|(_, metric)| metric.name == name);
    if let Some((rank, metric)) = declared {
        return (rank, metric.clone());
    }
    let metric = |unit: &str, better| Metric {
        name: name.to_owned(),
        unit: unit.to_owned(),
        better,
        ..Metric::default()
    };
    let undeclared = workload.metrics.len();
    if is_instructions(name, mode) {
        return (undeclared + 1, metric(INSTRUCTIONS, Some(Better::Lower)));
    }
    (undeclared, metric("", None))
}
