//! Layout luck: time as measured beside instructions as counted. A kernel that takes another time
//! for the same instructions has not changed its code path: what changed is where its code and
//! data happen to lie, or what memory costs.

use std::collections::BTreeMap;

use model::{Accel, Better, Boot, Experiment, Manifest, Mode, WorkloadUse};
use serde::Serialize;

use crate::luck::Seeds;
use crate::operations::{INSTRUCTIONS, Operation, operations};
use crate::{Difference, Results, VariantBoots, Verdict};

/// The confidence of the intervals of measured gains.
const CONFIDENCE: f64 = 0.95;
/// The labels of instructions: of all, and of its parts.
const TOTAL: &str = "total";
const PARTS: [&str; 2] = ["user", "kernel"];

/// An operation of a variant against the baseline, by both clocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// The workload's name.
    pub workload: String,
    /// The operation: a metric with its label and phase.
    pub metric: String,
    /// The variant that is set against the baseline.
    pub variant: String,
    /// Number of blocks in which both variants gave a figure.
    pub blocks: usize,
    /// The measured gain in percent; positive is better. None for fewer than 3 blocks.
    pub gain: Option<Gain>,
    /// The instructions of the operation's phase, or of the whole iteration where it has none.
    pub instructions: Option<Instructions>,
    /// What both together mean.
    pub reading: Reading,
}

/// A gain in percent with the bounds of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// The gain: of the geometric mean of the blocks' ratios.
    pub gain: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

/// The instructions of both variants.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Instructions {
    /// How many, a seed.
    #[serde(flatten)]
    pub difference: Difference,
    /// The gain in percent; positive is better, which is fewer.
    pub gain: Option<f64>,
    /// The luck floor in percent of the baseline's.
    pub floor_percent: Option<f64>,
    /// The verdict on the difference.
    pub verdict: Verdict,
}

impl Instructions {
    fn of(difference: Difference) -> Self {
        let Difference { base, new, floor } = difference;
        Self {
            difference,
            gain: stats::gain(Better::Lower, new, base),
            floor_percent: floor.map(|floor| 100.0 * floor / base).filter(|it| it.is_finite()),
            verdict: Verdict::of(Better::Lower, Some(&difference)),
        }
    }
}

impl Gain {
    /// Whether the interval leaves no gain of 0.
    pub fn is_change(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// What a measured and an exact difference mean together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reading {
    /// Time changed, and instructions beyond luck.
    CodePath,
    /// Time changed, and neither the instructions nor the figure by guest time did: alignment,
    /// caches or memory latency, not the code path.
    LayoutOrMemory,
    /// Instructions changed beyond luck, and time was not seen to.
    Hidden,
    /// Neither was seen to change.
    Same,
    /// Not enough is known, or the instructions do not agree with their parts or with guest time.
    Undecided,
    /// The boots that were measured ran under emulation, where times are not performance.
    Withheld,
}

impl Reading {
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

/// Whether two experiments compare the same variants by the same work, so that what one measured
/// and the other counted can stand side by side: variants equal in name, kernel, command line,
/// settings and modules, in whatever order; the same topology; and at least one workload with the
/// same manifest and program. Kernels and programs are told apart as the experiments are kept:
/// with their digests.
pub fn comparable(a: &Experiment, b: &Experiment) -> bool {
    a.variants.len() == b.variants.len()
        && a.variants.iter().all(|variant| b.variants.contains(variant))
        && a.machine.topology == b.machine.topology
        && common(a, b).next().is_some()
}

/// The workloads of `a` that `b` runs too.
fn common<'a>(a: &'a Experiment, b: &'a Experiment) -> impl Iterator<Item = &'a Manifest> {
    let same =
        |a: &WorkloadUse, b: &WorkloadUse| a.manifest == b.manifest && a.program == b.program;
    let own = a.workloads.iter().filter(move |a| b.workloads.iter().any(|b| same(a, b)));
    own.map(|used| &used.manifest)
}

/// What a measured and an exact experiment of the same variants say together of each operation
/// with a good direction and each variant against `baseline`. Nothing without such a variant.
///
/// Measured: blocks pair the variants' boots, of which each gives one figure; see
/// [`stats::ratio_interval`]. Exact: a figure a seed against the luck floor.
pub fn beside(measured: &Results<'_>, exact: &Results<'_>, baseline: &str) -> Vec<Beside> {
    let (Some(time), Some(count)) = (measured.column(baseline), exact.column(baseline)) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for workload in common(measured.experiment, exact.experiment) {
        for new in measured.variants.iter().filter(|column| column.name() != baseline) {
            let Some(new_count) = exact.column(new.name()) else { continue };
            let pair = Pair {
                workload,
                variant: new.name(),
                times: [time.clone(), new.clone()],
                counts: [count.clone(), new_count.clone()],
                seeds: exact.experiment.boots,
            };
            all.extend(pair.beside());
        }
    }
    all
}

/// A variant against the baseline, the first of each pair of columns.
struct Pair<'a> {
    workload: &'a Manifest,
    variant: &'a str,
    times: [VariantBoots<'a>; 2],
    counts: [VariantBoots<'a>; 2],
    seeds: u32,
}

impl Pair<'_> {
    fn beside(&self) -> Vec<Beside> {
        let emulated = self.times.iter().flat_map(VariantBoots::complete);
        let emulated = emulated.map(|boot| &*boot.facts.accel).any(|it| it == Accel::Tcg.name());
        let guests = operations(self.workload, &self.counts, Mode::Exact);
        let times = operations(self.workload, &self.times, Mode::Measured);
        let directed = times.iter().filter_map(|time| Some((time, time.metric.better?)));
        directed
            .map(|(time, better)| {
                let guest = guests.iter().find(|guest| guest.is(time));
                let beside = self.operation(time, better, guest);
                let reading = if emulated { Reading::Withheld } else { beside.reading };
                Beside { reading, ..beside }
            })
            .collect()
    }

    /// `guest` is the same operation by guest time.
    fn operation(
        &self,
        time: &Operation<'_>,
        better: Better,
        guest: Option<&Operation<'_>>,
    ) -> Beside {
        let pairs = pairs(time);
        let gain = gain(better, &pairs);
        let [total, parts @ ..] = [TOTAL, PARTS[0], PARTS[1]].map(|label| {
            self.difference(|boot| instructions(boot, self.workload, label, time.phase))
        });
        let guest = guest.map(|guest| {
            self.difference(|boot| {
                let mut boots = guest.columns.iter().flatten();
                boots.find(|it| std::ptr::eq(it.boot, boot))?.mean(guest.metric.mean)
            })
        });
        let others = parts.into_iter().chain(guest);
        Beside {
            workload: self.workload.name.clone(),
            metric: time.name.clone(),
            variant: self.variant.to_owned(),
            blocks: pairs.len(),
            reading: reading(gain.as_ref(), beyond_luck(total), others.map(beyond_luck)),
            gain,
            instructions: total.map(Instructions::of),
        }
    }

    /// The difference of a figure that each boot of the exact experiment has.
    fn difference(&self, figure: impl Fn(&Boot) -> Option<f64>) -> Option<Difference> {
        let [base, new] = self.counts.each_ref().map(|column| {
            let figures = column.complete().map(|boot| (boot.replicate, figure(boot)));
            Seeds::new(figures, self.seeds)
        });
        let floor = base.floor(&new);
        Some(Difference { floor, ..Difference::of(base.values(), new.values())? })
    }
}

/// The figures of each block in which both columns have one.
fn pairs(time: &Operation<'_>) -> Vec<(f64, f64)> {
    let [base, new] = [0, 1].map(|column| {
        let boots = time.columns[column].iter();
        let figures = boots.filter_map(|it| Some((it.boot.block, it.mean(time.metric.mean)?)));
        figures.collect::<BTreeMap<u32, f64>>()
    });
    base.iter().filter_map(|(block, &base)| Some((base, *new.get(block)?))).collect()
}

fn gain(better: Better, pairs: &[(f64, f64)]) -> Option<Gain> {
    let interval = stats::ratio_interval(pairs, CONFIDENCE)?;
    let gain = |ratio| stats::gain(better, ratio, 1.0);
    let (low, high) = match better {
        Better::Higher => (interval.low, interval.high),
        Better::Lower => (interval.high, interval.low),
    };
    Some(Gain { gain: gain(interval.ratio)?, low: gain(low)?, high: gain(high)? })
}

/// Instructions that an iteration of `workload` took, in `phase` or in all of it: the mean over the
/// boot's iterations.
fn instructions(boot: &Boot, workload: &Manifest, label: &str, phase: &str) -> Option<f64> {
    let samples = boot.samples.iter().filter(|sample| {
        sample.workload == workload.name
            && sample.metric == INSTRUCTIONS
            && sample.label == label
            && (phase.is_empty() || sample.phase == phase)
    });
    let mut iterations: BTreeMap<u32, f64> = BTreeMap::new();
    for sample in samples {
        *iterations.entry(sample.iteration).or_default() += sample.value;
    }
    let total: f64 = iterations.values().sum();
    (!iterations.is_empty()).then(|| total / iterations.len() as f64)
}

fn beyond_luck(difference: Option<Difference>) -> Option<bool> {
    difference?.beyond_luck()
}

/// What a measured gain means beside what exact mode says: whether the instructions changed beyond
/// luck, and whether `others` did, which must not have done so where the code path is said to be
/// the same. A rate over a fixed time, and a change in the kernel's small share of all
/// instructions, show there alone.
fn reading(
    gain: Option<&Gain>,
    total: Option<bool>,
    mut others: impl Iterator<Item = Option<bool>>,
) -> Reading {
    let (Some(gain), Some(total)) = (gain, total) else {
        return Reading::Undecided;
    };
    let same_code = !total && others.all(|beyond_luck| beyond_luck == Some(false));
    match (gain.is_change(), total, same_code) {
        (true, true, _) => Reading::CodePath,
        (true, _, true) => Reading::LayoutOrMemory,
        (false, true, _) => Reading::Hidden,
        (false, _, true) => Reading::Same,
        _ => Reading::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use model::{Setting, Topology, Variant};

    use super::*;
    use crate::testing::{boot, columns, experiment, manifest, sample, variant};

    /// One boot a block, in which each operation takes so long.
    fn measured(values: &[(&str, &[f64])]) -> Vec<Boot> {
        let blocks = values.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
        let mut boots: Vec<Boot> =
            (0..blocks as u32).map(|block| Boot { block, ..boot(block) }).collect();
        for (metric, values) in values {
            for (boot, value) in boots.iter_mut().zip(*values) {
                boot.samples.push(sample(metric, "", 0, *value));
            }
        }
        boots
    }

    /// One boot a seed, with so many instructions in user mode and in the kernel.
    fn exact(instructions: &[[f64; 2]]) -> Vec<Boot> {
        let boots = instructions.iter().zip(0..).map(|([user, kernel], seed)| {
            let mut boot = boot(seed);
            let counts = [("total", user + kernel), ("user", *user), ("kernel", *kernel)];
            boot.samples.extend(counts.map(|(label, count)| sample(INSTRUCTIONS, label, 0, count)));
            boot
        });
        boots.collect()
    }

    fn together(times: [&[Boot]; 2], counts: [&[Boot]; 2]) -> Vec<Beside> {
        let variants = ["old", "new"].map(variant);
        let time = experiment(Mode::Measured, 3, vec![manifest()]);
        let count = experiment(Mode::Exact, 2, vec![manifest()]);
        let time = Results { experiment: &time, variants: columns(&variants, &times) };
        let count = Results { experiment: &count, variants: columns(&variants, &counts) };
        beside(&time, &count, "old")
    }

    const TIMES: [&[f64]; 3] = [&[10.0, 11.0, 12.0], &[10.1, 10.9, 12.1], &[12.0, 13.2, 14.5]];
    const COUNTS: [[[f64; 2]; 2]; 3] = [
        [[900.0, 100.0], [900.0, 102.0]],
        [[900.0, 101.0], [900.0, 102.0]],
        [[900.0, 150.0], [900.0, 151.0]],
    ];

    /// What is read of a change of time and of instructions, or of none.
    fn read(time: bool, code: bool) -> Reading {
        let times = [0, if time { 2 } else { 1 }].map(|it| measured(&[("Elapsed", TIMES[it])]));
        let counts = [0, if code { 2 } else { 1 }].map(|it| exact(&COUNTS[it]));
        let found = together(times.each_ref().map(|it| &**it), counts.each_ref().map(|it| &**it));
        let [found] = found.try_into().unwrap();
        assert_eq!((&*found.metric, &*found.variant, found.blocks), ("Elapsed", "new", 3));
        found.reading
    }

    #[test]
    fn time_and_instructions_are_read_together() {
        assert_eq!(read(true, true), Reading::CodePath);
        assert_eq!(read(true, false), Reading::LayoutOrMemory);
        assert_eq!(read(false, true), Reading::Hidden);
        assert_eq!(read(false, false), Reading::Same);
    }

    #[test]
    fn gains_are_of_blocks_and_of_seeds() {
        let (old, new) = (measured(&[("Elapsed", TIMES[0])]), measured(&[("Elapsed", TIMES[2])]));
        let found = together([&old, &new], [&exact(&COUNTS[0]), &exact(&COUNTS[2])]);
        let Beside { gain, instructions, .. } = found[0];
        // Blocks pair: 20 %, 20 % and 20.8 % longer.
        let Gain { gain, low, high } = gain.unwrap();
        assert!((gain + 20.277).abs() < 1e-3, "{gain}");
        assert!(low < gain && gain < high && high < -19.0, "{low} to {high}");
        let Instructions { difference, gain, floor_percent, verdict } = instructions.unwrap();
        assert_eq!(difference, Difference { base: 1001.0, new: 1050.5, floor: Some(2.0) });
        assert_eq!(gain, stats::gain(Better::Lower, 1050.5, 1001.0));
        assert_eq!((floor_percent, verdict), (Some(200.0 / 1001.0), Verdict::Regression));
    }

    #[test]
    fn a_higher_rate_is_a_gain() {
        let old = measured(&[("Rate", TIMES[0]), ("CPU", TIMES[0])]);
        let new = measured(&[("Rate", TIMES[2]), ("CPU", TIMES[2])]);
        let found = together([&old, &new], [&[], &[]]);
        let [found] = found.try_into().unwrap();
        let Gain { gain, low, high } = found.gain.unwrap();
        assert!((gain - 20.277).abs() < 1e-3 && low < gain && gain < high && low > 19.0);
        assert_eq!((found.instructions, found.reading), (None, Reading::Undecided));
    }

    #[test]
    fn too_little_leaves_it_undecided() {
        let times = [0, 2].map(|it| measured(&[("Elapsed", TIMES[it])]));
        let counts = [0, 2].map(|it| exact(&COUNTS[it]));
        let reading = |times: [&[Boot]; 2], counts: [&[Boot]; 2]| {
            let found = together(times, counts);
            (found[0].blocks, found[0].reading)
        };
        let [old, new] = &times;
        let [old_count, new_count] = &counts;
        let undecided = |blocks| (blocks, Reading::Undecided);
        assert_eq!(reading([&old[..2], new], [old_count, new_count]), undecided(2));
        assert_eq!(reading([old, new], [old_count, &new_count[..1]]), undecided(3));
        assert_eq!(reading([old, new], [old_count, new_count]), (3, Reading::CodePath));
    }

    #[test]
    fn layout_is_not_blamed_while_a_part_of_the_figures_changed() {
        let times = [0, 2].map(|it| measured(&[("Elapsed", TIMES[it])]));
        let reading = |counts: [&[Boot]; 2]| together([&times[0], &times[1]], counts)[0].reading;
        // What the kernel does more, user mode does less.
        let (old, new) = (exact(&COUNTS[0]), exact(&[[850.0, 150.0], [850.0, 152.0]]));
        assert_eq!(reading([&old, &new]), Reading::Undecided);
        // Guest time changed, by waiting.
        let (mut old, mut new) = (exact(&COUNTS[0]), exact(&COUNTS[1]));
        assert_eq!(reading([&old, &new]), Reading::LayoutOrMemory);
        for (boots, elapsed) in [(&mut old, 1.0), (&mut new, 2.0)] {
            boots.iter_mut().for_each(|boot| boot.samples.push(sample("Elapsed", "", 0, elapsed)));
        }
        assert_eq!(reading([&old, &new]), Reading::Undecided);
    }

    #[test]
    fn an_operation_has_the_instructions_of_its_phase_or_of_all() {
        let mut boot = boot(0);
        for (iteration, phase, count) in
            [(0, "a", 5.0), (0, "b", 7.0), (1, "a", 6.0), (1, "b", 8.0)]
        {
            let sample = sample(INSTRUCTIONS, "total", iteration, count);
            boot.samples.push(model::Sample { phase: phase.into(), ..sample });
        }
        let of = |phase| instructions(&boot, &manifest(), "total", phase);
        assert_eq!((of("a"), of("b"), of("")), (Some(5.5), Some(7.5), Some(13.0)));
        assert_eq!(of("c"), None);
    }

    #[test]
    fn nothing_is_read_from_times_under_emulation() {
        let mut times = [0, 2].map(|it| measured(&[("Elapsed", TIMES[it])]));
        times[1][2].facts.accel = "tcg".into();
        let counts = [0, 2].map(|it| exact(&COUNTS[it]));
        let found = together([&times[0], &times[1]], [&counts[0], &counts[1]]);
        assert_eq!(found[0].reading, Reading::Withheld);
        assert!(found[0].gain.is_some());
    }

    #[test]
    fn experiments_of_the_same_variants_and_work_are_comparable() {
        let mut a = experiment(Mode::Measured, 3, vec![manifest()]);
        a.variants = vec![variant("old"), variant("new")];
        let mut b = a.clone();
        (b.mode, b.boots) = (Mode::Exact, 5);
        b.variants.reverse();
        b.workloads[0].iterations = 7;
        b.workloads.push(WorkloadUse {
            manifest: Manifest { name: "other".into(), ..manifest() },
            ..b.workloads[0].clone()
        });
        assert!(comparable(&a, &b) && comparable(&b, &a));

        let changed = |change: &dyn Fn(&mut Experiment)| {
            let mut other = b.clone();
            change(&mut other);
            comparable(&a, &other) || comparable(&other, &a)
        };
        assert!(!changed(&|it| it.variants[0].kernel = "6.1 sha256:0".into()));
        assert!(!changed(&|it| it.variants[0].cmdline = "quiet".into()));
        assert!(!changed(&|it| it.variants[1].modules = vec!["ext4".into()]));
        let off = || Setting::Sysctl { name: "kernel.numa_balancing".into(), value: "0".into() };
        assert!(!changed(&|it| it.variants[1].settings = vec![off()]));
        assert!(!changed(&|it| it.variants.push(Variant { name: "third".into(), ..variant("") })));
        assert!(!changed(&|it| it.variants[0].name = "other".into()));
        let cpus = || Topology::even(2, model::Bytes::mib(512), 2).unwrap();
        assert!(!changed(&|it| it.machine.topology = cpus()));
        assert!(!changed(
            &|it| it.workloads[0].manifest.parameters = [("a".into(), "b".into())].into()
        ));
        assert!(!changed(&|it| it.workloads[0].program = Some("./a".into())));
    }
}
