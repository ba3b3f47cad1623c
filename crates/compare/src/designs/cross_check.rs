//! Compares the change in time with the change in instructions. If only the time changed, the cause is not
//! the number of instructions. It may be the placement of code and data, memory latency, contention or
//! waiting.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use model::{Better, Boot, Execution, Experiment, INSTRUCTIONS, Mode, WorkloadUse};
use serde::{Serialize, Serializer};

use crate::figures::operations::{Operation, operations};
use crate::figures::warmup::leave_out;
use crate::verdicts::luck::Seeds;
use crate::{
    Difference, HostBlock, Judging, KeptBoot, Results, VariantBoots, Verdict, baseline_first,
};

/// The code path counts as unchanged only if luck can hide at most this share of the measured gain.
const MAX_UNSEEN: f64 = 0.5;
/// Labels of instructions: the total, and its parts.
const TOTAL: &str = "total";
const PARTS: [&str; 2] = ["user", "kernel"];

/// The two experiments that are cross-checked, as the caller names them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sources {
    /// The experiment of measured mode.
    pub measured: String,
    /// The experiment of exact mode.
    pub exact: String,
}

/// An operation of a variant against the baseline, by measured time and by instructions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CrossCheck {
    /// The name of the workload that has the operation.
    pub workload: String,
    /// The operation: a metric with its label and phase.
    pub metric: String,
    /// The variant that is set against the baseline.
    pub variant: String,
    /// Number of blocks that count and in which both variants gave a figure.
    pub blocks: usize,
    /// The measured gain in percent; positive is better. `None` for fewer than 3 blocks.
    pub gain: Option<Gain>,
    /// The instructions of the operation's phase, or of the whole iteration if the operation has no phase. `None` if
    /// the phase or the iteration has other operations too.
    pub instructions: Option<Instructions>,
    /// The widest luck floor, in percent of the baseline's figure, of four figures: all instructions, those
    /// of user mode, those of the kernel, and the operation by guest time. A smaller change would not have
    /// been seen. `None` if one of these floors is not known.
    pub unseen: Option<f64>,
    /// The conclusion from time and instructions.
    pub conclusion: Conclusion,
}

/// A gain in percent with the bounds of its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// The gain of the geometric mean of the blocks' ratios.
    pub gain: f64,
    /// The lower bound in percent.
    pub low: f64,
    /// The upper bound in percent.
    pub high: f64,
    /// The confidence of the interval: that of the measured experiment's tables.
    pub confidence: f64,
}

/// The instructions of both variants.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Instructions {
    /// Instructions per iteration, with one figure per seed.
    #[serde(flatten, serialize_with = "figures")]
    pub difference: Difference,
    /// The gain in percent; positive is better, that is, fewer.
    pub gain: Option<f64>,
    /// The luck floor in percent of the baseline's instructions.
    pub floor_percent: Option<f64>,
    /// The verdict on the difference.
    pub verdict: Verdict,
}

/// The figures of a difference alone.
fn figures<S: Serializer>(it: &Difference, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Figures {
        base: f64,
        new: f64,
        floor: Option<f64>,
    }
    let &Difference { base, new, floor } = it;
    Figures { base, new, floor }.serialize(to)
}

impl Instructions {
    fn of(difference: Difference, margin: f64) -> Self {
        let Difference { base, new, .. } = difference;
        Self {
            difference,
            gain: stats::gain(Better::Lower, new, base),
            floor_percent: floor_percent(&difference),
            verdict: Verdict::of(Better::Lower, Some(&difference), margin),
        }
    }
}

/// The luck floor in percent of the baseline's figure; 0 where the floor is 0.
fn floor_percent(difference: &Difference) -> Option<f64> {
    let &Difference { base, floor, .. } = difference;
    let percent = if floor? == 0.0 { 0.0 } else { 100.0 * floor? / base.abs() };
    percent.is_finite().then_some(percent)
}

impl Gain {
    /// Whether the interval excludes a gain of 0.
    pub fn is_change(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// The conclusion from a measured and an exact difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conclusion {
    /// Time changed, and instructions changed beyond luck.
    CodePath,
    /// Time changed, but neither the instructions nor the figure by guest time did, although a change half as large
    /// would have been seen there. The cause is alignment, caches or memory latency, not the code path.
    LayoutOrMemory,
    /// Instructions changed beyond luck, and no change of time was seen.
    Hidden,
    /// No change was seen in time or in instructions.
    Same,
    /// Not enough is known, luck is too wide to tell, or the instructions do not agree with their
    /// parts or with guest time.
    Undecided,
    /// The measured boots ran under emulation, where times are not performance.
    Withheld,
}

impl Conclusion {
    /// The name used in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CodePath => "code path",
            Self::LayoutOrMemory => "layout or memory",
            Self::Hidden => "hidden",
            Self::Same => "same",
            Self::Undecided => "undecided",
            Self::Withheld => "withheld",
        }
    }
}

/// Whether two experiments compare the same variants by the same work, so that they can be cross-checked: variants
/// equal in name, kernel, command line, settings and modules, in any order; the same topology and disks; and at least
/// one workload that runs alike ([`Manifest::as_run`](model::Manifest::as_run)), with the same program. False for
/// sweeps. Kernels and programs are compared as the experiments are kept: with their digests.
pub fn comparable(a: &Experiment, b: &Experiment) -> bool {
    [a, b].iter().all(|it| it.points().is_empty())
        && a.variants.len() == b.variants.len()
        && a.variants.iter().all(|own| b.variants.contains(own))
        && a.machine.topology == b.machine.topology
        && a.machine.disks == b.machine.disks
        && common(a, b).next().is_some()
}

/// The workloads of `a` that `b` also runs, as each of them uses it.
fn common<'a>(a: &'a Experiment, b: &'a Experiment) -> impl Iterator<Item = [&'a WorkloadUse; 2]> {
    let same = |a: &WorkloadUse, b: &WorkloadUse| {
        a.manifest.as_run() == b.manifest.as_run() && a.files().eq(b.files())
    };
    let own = a.workloads.iter();
    own.filter_map(move |a| Some([a, b.workloads.iter().find(|b| same(a, b))?]))
}

/// Conclusions from a measured and an exact experiment of the same variants, for each operation with a direction and
/// each variant against `baseline`. Empty if no variant is named `baseline`. `judging` is that of the measured
/// experiment's tables. It says which boots count if the run may end early, and whether warm-up counts.
///
/// Measured: blocks pair the variants' boots, with one figure per boot; see [`stats::ratio_interval`].
/// Exact: one figure per seed, against the luck floor.
pub fn cross_check(
    measured: &Results<'_>,
    exact: &Results<'_>,
    baseline: &str,
    judging: &Judging,
) -> Vec<CrossCheck> {
    let place = measured.variants.iter().position(|column| column.name() == baseline);
    let (Some(place), Some(count)) = (place, exact.column(baseline)) else {
        return Vec::new();
    };
    let columns = baseline_first(&measured.variants, place);
    let mut all = Vec::new();
    for workload in common(measured.experiment, exact.experiment) {
        // As in tables, warm-up is sought in all columns together: the warm-up of one column is left out of all.
        let mut times = operations(workload[0], &columns, Mode::Measured);
        leave_out(&mut times, judging);
        let guests = operations(workload[1], &exact.variants, Mode::Exact);
        for (number, new) in columns.iter().enumerate().skip(1) {
            let Some(new_count) = exact.column(new.name()) else { continue };
            let pair = Pair {
                workload,
                numbers: [0, number],
                times: [&columns[0], new],
                counts: [count, new_count],
                judging,
            };
            all.extend(pair.cross_check(&times, &guests));
        }
    }
    all
}

/// A variant against the baseline, which is the first of each pair.
struct Pair<'a> {
    /// The workload as the measured experiment uses it, and as the exact one does.
    workload: [&'a WorkloadUse; 2],
    /// Indices of the two variants' columns in measured operations.
    numbers: [usize; 2],
    times: [&'a VariantBoots<'a>; 2],
    counts: [&'a VariantBoots<'a>; 2],
    judging: &'a Judging,
}

impl Pair<'_> {
    /// `times` and `guests` are the operations of all columns, measured and by guest time.
    fn cross_check(&self, times: &[Operation<'_>], guests: &[Operation<'_>]) -> Vec<CrossCheck> {
        let mut boots = self.times.iter().flat_map(|column| column.complete());
        let emulated = boots.any(|boot| boot.facts.provenance.execution == Some(Execution::Tcg));
        let is_own = |time: &&Operation<'_>| {
            self.numbers.iter().any(|&number| !time.columns[number].is_empty())
        };
        let own: Vec<&Operation<'_>> = times.iter().filter(is_own).collect();
        let directed = own.iter().filter_map(|&time| Some((time, time.metric.better?)));
        directed
            .map(|(time, better)| {
                let guest = guests.iter().find(|guest| guest.is(time));
                let beside = self.operation(time, better, guest, is_alone(time, &own));
                let conclusion = if emulated { Conclusion::Withheld } else { beside.conclusion };
                CrossCheck { conclusion, ..beside }
            })
            .collect()
    }

    /// Cross-checks one operation. `guest` is the same operation by guest time. Instructions are counted over its
    /// span. They are its own only if the span has no other operation (`alone`).
    fn operation(
        &self,
        time: &Operation<'_>,
        better: Better,
        guest: Option<&Operation<'_>>,
        alone: bool,
    ) -> CrossCheck {
        let mut pairs = pairs(time, self.numbers);
        pairs.retain(|block, _| self.judging.counts(block.block));
        let gain = gain(better, &pairs.values().copied().collect::<Vec<_>>(), self.judging);
        let [total, user, kernel] = [TOTAL, PARTS[0], PARTS[1]].map(|label| {
            let figure =
                |kept: &KeptBoot<'_>| instructions(kept.boot, self.workload[1], label, time.phase);
            alone.then(|| self.difference(figure)).flatten()
        });
        let guest = guest.and_then(|guest| {
            self.difference(|kept| {
                let mut boots = guest.columns.iter().flatten();
                boots.find(|it| it.id == kept.id)?.mean(guest.metric.mean)
            })
        });
        let counted = [total, user, kernel, guest];
        let unseen = unseen(&counted);
        CrossCheck {
            workload: self.workload[0].manifest.name.clone(),
            metric: time.name.clone(),
            variant: self.times[1].name().to_owned(),
            blocks: pairs.len(),
            conclusion: conclusion(gain.as_ref(), counted.map(beyond_luck), unseen),
            gain,
            instructions: total.map(|it| Instructions::of(it, self.judging.margin)),
            unseen,
        }
    }

    /// The difference of a figure that each boot of the exact experiment has.
    fn difference(&self, figure: impl Fn(&KeptBoot<'_>) -> Option<f64>) -> Option<Difference> {
        let [base, new] = self.counts.map(|column| {
            let figures = column.complete_kept().map(|kept| (kept.boot.boot_index, figure(kept)));
            Seeds::new(figures, column.seeds())
        });
        new.against(&base)
    }
}

/// Whether the span of `time` has no other operation of its metric: the operation has its own phase, or it is the
/// metric's only operation of an iteration.
fn is_alone(time: &Operation<'_>, all: &[&Operation<'_>]) -> bool {
    let others = all.iter().filter(|other| other.metric == time.metric && !other.is(time));
    others.into_iter().all(|other| !time.phase.is_empty() && other.phase != time.phase)
}

/// The figures of both columns, for each block in which both have one.
fn pairs(time: &Operation<'_>, numbers: [usize; 2]) -> BTreeMap<HostBlock, (f64, f64)> {
    let [base, new] = numbers.map(|number| {
        let boots = time.columns[number].iter();
        let figures =
            boots.filter_map(|it| Some((HostBlock::of(it.boot), it.mean(time.metric.mean)?)));
        figures.collect::<BTreeMap<_, f64>>()
    });
    base.iter().filter_map(|(block, &base)| Some((*block, (base, *new.get(block)?)))).collect()
}

fn gain(better: Better, pairs: &[(f64, f64)], judging: &Judging) -> Option<Gain> {
    let confidence = judging.confidence;
    let interval = stats::ratio_interval(pairs, confidence)?;
    let gain = |ratio| stats::gain(better, ratio, 1.0);
    let (low, high) = match better {
        Better::Higher => (interval.low, interval.high),
        Better::Lower => (interval.high, interval.low),
    };
    Some(Gain { gain: gain(interval.ratio)?, low: gain(low)?, high: gain(high)?, confidence })
}

/// Instructions per iteration of `workload`, in `phase` or in the whole iteration: the mean over the boot's
/// iterations.
fn instructions(boot: &Boot, used: &WorkloadUse, label: &str, phase: &str) -> Option<f64> {
    let samples = boot.samples.iter().filter(|sample| {
        sample.workload == used.manifest.name
            && used.counts(sample.iteration)
            && sample.metric == INSTRUCTIONS
            && sample.label == label
            && (phase.is_empty() || sample.phase == phase)
    });
    let mut iterations: BTreeMap<u32, f64> = BTreeMap::new();
    for sample in samples {
        *iterations.entry(sample.iteration).or_default() +=
            sample.value * f64::from(sample.count.get());
    }
    let total: f64 = iterations.values().sum();
    (!iterations.is_empty()).then(|| total / iterations.len() as f64)
}

fn beyond_luck(difference: Option<Difference>) -> Option<bool> {
    difference?.beyond_luck()
}

/// The widest floor in percent; `None` if one is not known.
fn unseen(counted: &[Option<Difference>]) -> Option<f64> {
    let floors = counted.iter().map(|it| floor_percent(it.as_ref()?));
    floors.reduce(|one, other| Some(one?.max(other?))).flatten()
}

/// The conclusion from the measured gain and from exact mode. `counted` says whether the instructions, their parts,
/// and the figure by guest time changed beyond luck. The code path counts as unchanged only if neither the parts nor
/// guest time changed: a rate over a fixed time, and a change in the kernel's small share of all instructions, show
/// only there. In addition, the change that luck may hide, up to `unseen` percent, must be small compared with the
/// gain.
fn conclusion(gain: Option<&Gain>, counted: [Option<bool>; 4], unseen: Option<f64>) -> Conclusion {
    let (Some(gain), [Some(total), ..]) = (gain, counted) else {
        return Conclusion::Undecided;
    };
    let same_code = counted.iter().all(|beyond_luck| *beyond_luck == Some(false));
    let is_narrow = unseen.is_some_and(|unseen| unseen <= MAX_UNSEEN * gain.gain.abs());
    match (gain.is_change(), total, same_code) {
        (true, true, _) => Conclusion::CodePath,
        (true, _, true) if is_narrow => Conclusion::LayoutOrMemory,
        (false, true, _) => Conclusion::Hidden,
        (false, _, true) => Conclusion::Same,
        _ => Conclusion::Undecided,
    }
}
