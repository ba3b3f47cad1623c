//! Sampled profiles of two variants: each function's share of the samples, and its samples per iteration, with
//! evidence over boots.
//!
//! Boots are the independent units. Samples of one boot are not independent: they are taken in step with each other,
//! and of the same memory. So a boot gives one value of each figure, and [`BootFigures::against`] compares these
//! values like those of any other figure. Shares are one list of comparisons and samples per iteration another, each
//! with its false discovery rate ([`false_discovery_rates`]).

use std::collections::BTreeSet;

use model::{Boot, BootId, Mode, Profile, SAMPLES, WORKLOAD_SOURCE, WorkloadUse};
use serde::Serialize;
use stats::least_p;

use crate::explain::{Identity, Span, Subject, Tally, profiles};
use crate::figures::steady::{Part, Share, Steady};
use crate::tables::metrics;
use crate::{
    BootFigures, Evidence, HostBlock, Judging, KeptBoot, VariantBoots, false_discovery_rates,
};

/// Functions with fewer samples per boot than this, over both sides, are not tested: they hardly ever differ
/// significantly. The sum of both sides does not depend on their difference (Bourgon, Gentleman and Huber,
/// "Independent filtering increases detection power for high-throughput experiments", PNAS 107, 2010).
const FEWEST: f64 = 5.0;

/// The sampled profiles of a workload on two sides.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledDifference {
    /// The workload's name.
    pub workload: String,
    /// The phase; `None` for the measured phases together.
    pub phase: Option<String>,
    /// The part of the phases that the samples cover, if warm-up limits it, from [`steady_profiles`].
    pub part: Option<Part>,
    /// Names of all phases, in order of first appearance.
    pub phases: Vec<String>,
    /// The baseline and the other variant.
    pub sides: [SampledSide; 2],
    /// Three totals: all samples, samples in the kernel, samples in user mode.
    pub totals: [SampledRow; 3],
    /// Functions and processes: first those whose share differs, then the others, each by descending change of the
    /// share.
    pub rows: Vec<SampledRow>,
    /// The confidence of intervals.
    pub confidence: f64,
    /// The false discovery rate up to which a difference counts, such as 0.05.
    pub rate: f64,
    /// The fewest boots a side with which a single function of those tested can differ at this rate ([`least_p`]).
    pub fewest: usize,
}

/// The samples of a variant.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SampledSide {
    /// The variant's name.
    pub name: String,
    /// Number of complete boots with a sampled profile.
    pub boots: usize,
    /// Number of samples in all boots.
    pub samples: u128,
    /// Number of samples lost in all boots because the kernel or the agent had no room for them.
    pub lost: u128,
    /// Length of the phases in all boots, in seconds.
    pub seconds: f64,
    /// The sampled events, such as `cpu-clock at 99 Hz`: several if boots differ.
    pub events: Vec<String>,
}

/// A total, a function, or a process in user mode.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledRow {
    /// The function or process; `None` for a total.
    pub subject: Option<Subject>,
    /// Its share of all samples, from 0 to 1.
    pub share: SampledFigure,
    /// Its samples per iteration.
    pub samples: SampledFigure,
}

/// A figure on both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SampledFigure {
    /// The mean over boots of the baseline.
    pub base: f64,
    /// The mean over boots of the other variant.
    pub new: f64,
    /// The evidence for a difference. Its `p` is the false discovery rate. `None` with fewer than three boots a side,
    /// or with too few samples.
    pub evidence: Option<Evidence>,
}

impl SampledFigure {
    /// The other variant's figure less that of the baseline.
    pub fn change(&self) -> f64 {
        self.new - self.base
    }

    /// Whether the figure differs at this false discovery rate; `None` if that is not known.
    pub fn differs(&self, rate: f64) -> Option<bool> {
        self.evidence.map(|it| it.p < rate)
    }
}

/// The profiles of a workload that count, by boot: without iterations of warm-up, and from the steady state on. Also
/// returns the part of their phases that they cover, if warm-up limits it.
pub fn steady_profiles(
    columns: &[VariantBoots<'_>],
    used: &WorkloadUse,
    judging: &Judging,
) -> (Vec<(BootId, Vec<Profile>)>, Option<Part>) {
    let columns: Vec<_> = columns.iter().map(|it| it.of_workload(&used.manifest.name)).collect();
    let (operations, warm_ups) = metrics::steady(used, &columns, Mode::Measured, judging);
    let steady = Steady::of(used, &operations, &warm_ups);
    let warmup = used.warmup.saturating_add(steady.iterations);
    let beyond = WorkloadUse { warmup, ..used.clone() };
    let boots = || columns.iter().flat_map(|column| column.complete_kept().copied());
    let chunks = boots().flat_map(|kept| {
        let own = profiles(kept.boot, &beyond, Span::All);
        own.filter_map(move |profile| Some((kept, chunk(kept.boot, profile)?)))
    });
    let part = steady.part(chunks);
    let counted = |kept: KeptBoot<'_>| {
        let own = profiles(kept.boot, &beyond, Span::All);
        let own = own.filter_map(|profile| match part {
            Some(Part::Steady) => cut(profile, kept, &steady),
            _ => Some(profile.clone()),
        });
        (kept.id, own.collect())
    };
    (boots().map(counted).collect(), part)
}

/// A series that covers the phase of a profile.
fn chunk<'a>(boot: &'a Boot, profile: &Profile) -> Option<&'a model::Chunk> {
    boot.chunks.iter().find(|it| {
        it.source != WORKLOAD_SOURCE
            && (&it.workload, it.iteration, &it.phase)
                == (&profile.workload, profile.iteration, &profile.phase)
    })
}

/// The steady part of a profile; `None` if no part is steady.
fn cut(profile: &Profile, kept: KeptBoot<'_>, steady: &Steady) -> Option<Profile> {
    match chunk(kept.boot, profile).and_then(|chunk| steady.share(kept, chunk).ok()) {
        None | Some(Share::All) => Some(profile.clone()),
        Some(Share::From { time, .. }) => profile.since(time),
        Some(Share::Nothing) => None,
    }
}

/// Compares the sampled profiles of two variants in one phase, or in the measured phases together. Only the profiles
/// that [`steady_profiles`] returns count; the caller puts them into the boots.
pub fn sampled(
    [base, new]: [&VariantBoots<'_>; 2],
    used: &WorkloadUse,
    phase: Option<&str>,
    judging: &Judging,
) -> SampledDifference {
    let sides = [base, new].map(|side| boots(side, used));
    let all = || sides.iter().flatten().copied();
    let span = match phase {
        Some(phase) => Span::Phase(phase),
        None => Span::measured(all(), used),
    };
    let taken = sides.each_ref().map(|boots| {
        boots.iter().map(|boot| SampledBoot::of(boot, used, span)).collect::<Vec<SampledBoot<'_>>>()
    });
    let totals = [
        row(None, &taken, |tally| tally.total(), judging),
        row(None, &taken, |tally| tally.kernel, judging),
        row(None, &taken, |tally| tally.user, judging),
    ];
    let mut rows = rows(&taken, judging);
    adjust(&mut rows, |row| &mut row.share);
    adjust(&mut rows, |row| &mut row.samples);
    let rate = judging.alpha();
    rows.sort_by(|one, other| {
        let differs = |row: &SampledRow| row.share.differs(rate) == Some(true);
        let size = |row: &SampledRow| row.share.change().abs();
        (differs(other).cmp(&differs(one)))
            .then(size(other).total_cmp(&size(one)))
            .then_with(|| one.subject.cmp(&other.subject))
    });
    let mut phases: Vec<String> = Vec::new();
    for profile in all().flat_map(|boot| profiles(boot, used, Span::All)) {
        if !phases.contains(&profile.phase) {
            phases.push(profile.phase.clone());
        }
    }
    let tested = rows.iter().filter(|row| row.share.evidence.is_some()).count() as f64;
    let fewest = (3..).find(|boots| least_p(*boots) * tested < rate).unwrap_or(usize::MAX);
    SampledDifference {
        workload: used.manifest.name.clone(),
        phase: phase.map(str::to_owned),
        part: None,
        phases,
        sides: [(base, &taken[0]), (new, &taken[1])].map(|(side, taken)| self::side(side, taken)),
        totals,
        rows,
        confidence: judging.confidence,
        rate,
        fewest,
    }
}

/// The complete boots with a sampled profile of the workload.
fn boots<'a>(side: &VariantBoots<'a>, used: &WorkloadUse) -> Vec<&'a Boot> {
    let is_sampled =
        |boot: &&Boot| profiles(boot, used, Span::All).any(|profile| profile.sampled.is_some());
    side.complete().filter(is_sampled).collect()
}

/// The sums of the samples of one boot.
struct SampledBoot<'a> {
    block: HostBlock,
    iterations: usize,
    tally: Tally<'a>,
    side: SampledSide,
}

impl<'a> SampledBoot<'a> {
    fn of(boot: &'a Boot, used: &WorkloadUse, span: Span<'_>) -> Self {
        let own = || profiles(boot, used, span).filter(|it| it.sampled.is_some());
        let iterations: BTreeSet<u32> = own().map(|profile| profile.iteration).collect();
        let tally = Tally::of(own(), SAMPLES);
        let mut side = SampledSide { samples: count(tally.total()), ..SampledSide::default() };
        for sampled in own().filter_map(|profile| profile.sampled.as_ref()) {
            side.lost += u128::from(sampled.lost) + u128::from(sampled.dropped);
            side.seconds += sampled.seconds();
            let event = match sampled.frequency {
                0 => sampled.event.clone(),
                frequency => format!("{} at {frequency} Hz", sampled.event),
            };
            if !side.events.contains(&event) {
                side.events.push(event);
            }
        }
        Self { block: HostBlock::of(boot), iterations: iterations.len(), tally, side }
    }
}

fn count(samples: i128) -> u128 {
    samples.try_into().unwrap_or(0)
}

fn side(variant: &VariantBoots<'_>, taken: &[SampledBoot<'_>]) -> SampledSide {
    let mut all = SampledSide { name: variant.name().to_owned(), ..SampledSide::default() };
    for SampledBoot { side, .. } in taken {
        all.boots += 1;
        all.samples += side.samples;
        all.lost += side.lost;
        all.seconds += side.seconds;
        let new = side.events.iter().filter(|event| !all.events.contains(event));
        let new: Vec<String> = new.cloned().collect();
        all.events.extend(new);
    }
    all
}

/// One row for each function and process that has samples on either side.
fn rows(taken: &[Vec<SampledBoot<'_>>; 2], judging: &Judging) -> Vec<SampledRow> {
    let tallies = || taken.iter().flatten().map(|it| &it.tally);
    let functions: BTreeSet<Identity<'_>> =
        tallies().flat_map(|tally| tally.functions.keys().copied()).collect();
    let processes: BTreeSet<&str> =
        tallies().flat_map(|tally| tally.processes.keys().copied()).collect();
    let functions = functions.into_iter().map(|identity| {
        let Identity { name, module } = identity;
        let subject = Subject::Function { name: name.to_owned(), module: module.to_owned() };
        row(Some(subject), taken, |tally| tally.executed(identity).cost, judging)
    });
    let processes = processes.into_iter().map(|name| {
        let own = |tally: &Tally<'_>| tally.processes.get(name).copied().unwrap_or_default();
        row(Some(Subject::Process(name.to_owned())), taken, own, judging)
    });
    functions.chain(processes).filter(|row| row.share.base + row.share.new > 0.0).collect()
}

fn row(
    subject: Option<Subject>,
    taken: &[Vec<SampledBoot<'_>>; 2],
    samples: impl Fn(&Tally<'_>) -> i128,
    judging: &Judging,
) -> SampledRow {
    let own: i128 = taken.iter().flatten().map(|it| samples(&it.tally)).sum();
    let boots = taken.iter().map(Vec::len).sum::<usize>();
    let is_tested = own as f64 >= FEWEST * boots as f64;
    let share = |it: &SampledBoot<'_>| samples(&it.tally) as f64 / it.tally.total() as f64;
    let per_iteration = |it: &SampledBoot<'_>| samples(&it.tally) as f64 / it.iterations as f64;
    SampledRow {
        subject,
        share: figure(taken, share, is_tested, judging),
        samples: figure(taken, per_iteration, is_tested, judging),
    }
}

fn figure(
    taken: &[Vec<SampledBoot<'_>>; 2],
    of: impl Fn(&SampledBoot<'_>) -> f64,
    is_tested: bool,
    judging: &Judging,
) -> SampledFigure {
    let values = taken
        .each_ref()
        .map(|boots| boots.iter().map(|boot| (boot.block, Some(of(boot)))).collect::<Vec<_>>());
    let mean = |values: &[(HostBlock, Option<f64>)]| {
        let known: Vec<f64> =
            values.iter().filter_map(|(_, value)| *value).filter(|it| it.is_finite()).collect();
        known.iter().sum::<f64>() / known.len().max(1) as f64
    };
    let [base, new] = values.each_ref().map(|values| mean(values));
    let [one, other] = values.map(BootFigures::new);
    let evidence = is_tested.then(|| one.against(&other, judging).ok()).flatten();
    SampledFigure { base, new, evidence }
}

/// Sets the false discovery rates of one figure, over all rows.
fn adjust(rows: &mut [SampledRow], figure: impl Fn(&mut SampledRow) -> &mut SampledFigure) {
    let mut tested: Vec<&mut Evidence> = rows
        .iter_mut()
        .filter_map(|row| figure(row).evidence.as_mut())
        .filter(|evidence| evidence.moved())
        .collect();
    let known: Vec<Evidence> = tested.iter().map(|evidence| **evidence).collect();
    for (evidence, rate) in tested.iter_mut().zip(false_discovery_rates(&known)) {
        evidence.p = rate;
    }
}

#[cfg(test)]
mod tests {
    use model::{Place, Sampled, Slice};

    use super::*;
    use crate::testing::{boot, columns, manifest, sample, used, variant};

    const SECOND: u64 = 1_000_000_000;

    /// A phase of four seconds with these samples in each, by function.
    fn profile(iteration: u32, phase: &str, samples: &[(&str, [u32; 4])], user: u32) -> Profile {
        let of_second = |second: usize| {
            let kernel = (0..).zip(samples).map(|(place, (_, counts))| (place, counts[second]));
            Slice {
                ended: (second as u64 + 1) * SECOND,
                samples: kernel.chain([(samples.len() as u32, user)]).collect(),
            }
        };
        let path = |(name, counts): &(&str, [u32; 4])| {
            let path = Place::Path(vec!["entry".into(), (*name).into()]);
            (path, counts.iter().copied().map(u64::from).sum())
        };
        let process = Place::Process { id: 7, name: "numa01".into(), functions: Vec::new() };
        let taken = samples.iter().map(path).chain([(process, 4 * u64::from(user))]);
        Profile {
            workload: "autonuma".into(),
            iteration,
            phase: phase.into(),
            costs: Profile::sampled_costs(taken, |_| "".into()),
            sampled: Some(Sampled {
                event: "cpu-clock".into(),
                frequency: 99,
                begun: 0,
                ended: 4 * SECOND,
                lost: 1,
                dropped: 1,
                slices: (0..4).map(of_second).collect(),
            }),
        }
    }

    fn compared(base: &[Boot], new: &[Boot], phase: Option<&str>) -> SampledDifference {
        let variants = ["6.1", "6.12"].map(variant);
        let columns = columns(&variants, &[base, new]);
        sampled([&columns[0], &columns[1]], &used(manifest()), phase, &Judging::default())
    }

    fn of<'a>(difference: &'a SampledDifference, name: &str) -> &'a SampledRow {
        let is_it = |row: &&SampledRow| row.subject.as_ref().unwrap().to_string() == name;
        difference.rows.iter().find(is_it).unwrap()
    }

    /// Five boots; a planted function gets more samples, another one scatters.
    fn side(planted: u32) -> Vec<Boot> {
        let boot = |number: u32| {
            let luck = [0, 3, 1, 4, 2][number as usize];
            let samples = [("planted", [planted + luck; 4]), ("other.isra.0", [50 + 2 * luck; 4])];
            let profiles = vec![profile(0, "run", &samples, 25), profile(0, "after", &[], 1)];
            Boot { block: number, profiles, ..boot(number) }
        };
        (0..5).map(boot).collect()
    }

    #[test]
    fn a_planted_function_is_first_with_share_and_samples() {
        let found = compared(&side(20), &side(40), Some("run"));
        let planted = &found.rows[0];
        assert_eq!(planted.subject.as_ref().unwrap().to_string(), "planted");
        let [share, samples] = [planted.share, planted.samples];
        assert_eq!((samples.base, samples.new), (88.0, 168.0));
        assert!((share.base - 22.0 / 101.0).abs() < 0.005, "{share:?}");
        assert_eq!([share, samples].map(|it| it.differs(found.rate)), [Some(true); 2]);
        let Evidence { low, high, paired, boots, .. } = samples.evidence.unwrap();
        assert!(low < 168.0 / 88.0 && 168.0 / 88.0 < high && paired && boots == [5, 5]);
        // Its samples are the same, but it has a smaller share of more.
        let other = of(&found, "other");
        assert_eq!((other.samples.change(), other.samples.differs(found.rate)), (0.0, Some(false)));
        assert!(other.share.change() < 0.0);
        assert_eq!(of(&found, "numa01 (user)").samples.base, 100.0);
        assert_eq!(found.totals[0].samples.new - found.totals[0].samples.base, 80.0);
        assert_eq!(found.phases, ["run", "after"]);
        // 2 / 4^4 for each of three is below 5 %, 2 / 4^3 is not.
        assert_eq!(found.fewest, 4);
        let side = &found.sides[1];
        assert_eq!((side.boots, side.lost, side.seconds), (5, 10, 20.0));
        assert_eq!(side.events, ["cpu-clock at 99 Hz"]);
    }

    #[test]
    fn few_boots_or_samples_have_no_evidence() {
        let few = compared(&side(20)[..2], &side(40)[..2], None);
        assert!(few.rows.iter().all(|row| row.share.evidence.is_none()));
        assert_eq!(few.rows[0].subject.as_ref().unwrap().to_string(), "planted");
        let mut base = side(20);
        base.iter_mut()
            .for_each(|boot| boot.profiles.push(profile(0, "run", &[("rare", [1; 4])], 0)));
        let found = compared(&base, &side(20), Some("run"));
        let rare = of(&found, "rare");
        assert_eq!((rare.samples.base, rare.samples.new, rare.samples.evidence), (4.0, 0.0, None));
    }

    #[test]
    fn boots_without_samples_do_not_count() {
        let nothing = compared(&[boot(0)], &side(20), None);
        assert_eq!((nothing.sides[0].boots, nothing.sides[1].boots), (0, 5));
    }

    /// Half-second samples take twice as long in the first two seconds.
    #[test]
    fn profiles_begin_where_the_steady_state_does() {
        let warming = |number: u32| {
            let mut boot = Boot { block: number, ..boot(number) };
            for at in 0..40 {
                let value =
                    if at < 20 { 40.0 } else { 20.0 } + f64::from((at * 7 + number) % 5) / 10.0;
                let ended = Some(u64::from(at + 1) * SECOND / 10);
                boot.samples.push(model::Sample {
                    phase: "run".into(),
                    ended,
                    ..sample("Elapsed", "", 0, value)
                });
            }
            let times: Vec<u64> = (0..=4).map(|second| second * SECOND).collect();
            boot.chunks = vec![model::Chunk {
                workload: "autonuma".into(),
                iteration: 0,
                phase: "run".into(),
                source: "vmstat".into(),
                columns: vec![model::Column::new("pgfault", vec![Some(1); times.len()])],
                times,
            }];
            boot.profiles =
                vec![profile(0, "run", &[("early", [9, 9, 0, 0]), ("late", [0, 0, 5, 5])], 1)];
            boot
        };
        let boots: Vec<Boot> = (0..4).map(warming).collect();
        let variants = ["6.1"].map(variant);
        let columns = columns(&variants, &[&boots]);
        let (profiles, part) = steady_profiles(&columns, &used(manifest()), &Judging::default());
        assert_eq!((profiles.len(), part), (4, Some(Part::Steady)));
        let own = |profile: &Profile| {
            let is_function = |place: &Place| matches!(place, Place::Function { .. });
            let functions = profile.costs.rows().filter(|row| is_function(row.place));
            functions.map(|row| row.sum(Some(0))).collect::<Vec<_>>()
        };
        assert_eq!(own(&profiles[0].1[0]), [0, 10]);
    }
}
