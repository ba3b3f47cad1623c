//! The self-test of a machine. It compares boots of one kernel as if they were of two, so every claimed difference is
//! a false alarm. It also tells how small a change the machine can show.

mod splits;

use std::collections::BTreeMap;

use model::{Boot, Kept, Mode};
use serde::Serialize;

use crate::figures::BootFigures;
use crate::figures::operations::operations;
use crate::figures::warmup::leave_out;
use crate::{
    Comparison, HostRange, Judging, KeptBoot, Kind, Results, Row, Table, VariantBoots, Verdict,
};

pub use splits::Splits;

/// The result of a self-test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SelfTest {
    /// How the comparison was judged.
    pub judging: Judging,
    /// Numbers of complete boots of both sides.
    pub boots: [usize; 2],
    /// Number of boots that failed.
    pub failed: usize,
    /// Whether a boot ran under emulation (TCG), where times are not performance.
    pub emulated: bool,
    /// The metrics, workload by workload.
    pub metrics: Vec<Resolution>,
    /// Numbers of claimed differences, by family of figures.
    pub claims: Vec<Claims>,
    /// Claims with other splits of the boots into two sides, by workload.
    pub splits: Vec<Splits>,
    /// The load of the host during the boots; `None` if it is not known.
    pub host: Option<HostRange>,
}

/// The resolution of a machine for a metric. Shares are of the metric's figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Resolution {
    /// The workload's name.
    pub workload: String,
    /// The metric with its label and phase.
    pub metric: String,
    /// The unit of the metric.
    pub unit: String,
    /// Whether verdicts rest on the metric.
    pub primary: bool,
    /// Its mean over all boots.
    pub mean: Option<f64>,
    /// Number of decimals to print.
    #[serde(skip)]
    pub decimals: usize,
    /// Standard deviation from boot to boot, both sides together.
    pub between: Option<f64>,
    /// Standard deviation within a boot.
    pub within: Option<f64>,
    /// The smallest change that would be seen in four of five cases with the same number of boots.
    pub visible: Option<f64>,
    /// Boots of each variant needed to see a change as large as the margin. Known only for metrics on which verdicts
    /// rest.
    pub needed: Option<u32>,
    /// The verdict, if there is one: `same` or `undecided` if all is well.
    pub verdict: Option<Verdict>,
    /// The p-value as if this were the only comparison.
    pub p: Option<f64>,
    /// The drift of the figure from one block of boots to the next; `None` if unknown.
    pub drift: Option<Drift>,
}

/// The drift of a figure from block to block.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Drift {
    /// The change from one block to the next, as a share of the figure's mean.
    pub per_block: f64,
    /// The p-value of the slope.
    pub p: f64,
}

/// Figures that are judged together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Metrics on which verdicts rest.
    Primary,
    /// Other metrics, and durations.
    Secondary,
    /// Counters of the kernel.
    Counters,
}

/// Numbers of claimed differences in a family of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Claims {
    /// The family that the numbers are of.
    pub family: Family,
    /// Number of figures that were compared.
    pub compared: usize,
    /// Number of figures called different, which are false alarms.
    pub different: usize,
    /// Number of figures called the same. Only primary metrics can be.
    pub same: usize,
    /// Number of figures that would be called different if each were the only comparison.
    pub alone: usize,
}

/// Compares the first two variants of `results`, which must be of the same kernel.
pub fn selftest(results: &Results<'_>) -> SelfTest {
    let judging = Judging::of(results);
    let comparison = crate::compare(results, 0, &judging);
    let pooled = pooled(results);
    let together = crate::compare(&pooled, 0, &judging);
    let columns = &results.variants;
    SelfTest {
        judging,
        boots: [0, 1].map(|side| columns.get(side).map_or(0, |it| it.complete().count())),
        failed: comparison.variants.iter().map(|variant| variant.failed.len()).sum(),
        emulated: comparison.emulated,
        metrics: resolutions(results, &comparison, &together),
        claims: [Family::Primary, Family::Secondary, Family::Counters]
            .map(|family| claims(&comparison, family))
            .into_iter()
            .filter(|claims| claims.compared > 0)
            .collect(),
        splits: splits::splits(results, &judging),
        host: together.notes.host.into_iter().next(),
    }
}

/// The boots of one variant as if they were of two. Each two consecutive boots of the schedule form a block;
/// the side of its first boot alternates from block to block. The last boot of an odd number is left out.
pub fn halves(boots: &[KeptBoot<'_>]) -> [Vec<Kept>; 2] {
    let counted = boots.iter().filter(|kept| kept.stands() && kept.boot.outcome.counts());
    let mut counted: Vec<_> = counted.collect();
    counted.sort_by_key(|kept| (kept.boot.block, kept.boot.started));
    let mut sides = [Vec::new(), Vec::new()];
    for (block, pair) in (0..).zip(counted.chunks_exact(2)) {
        for (place, kept) in pair.iter().enumerate() {
            let side = (place + block as usize) % 2;
            let boot = Boot { block, boot_index: block, ..kept.boot.clone() };
            sides[side].push(Kept { id: kept.id, superseded: false, boot });
        }
    }
    sides
}

/// All boots as boots of the first variant.
fn pooled<'a>(results: &Results<'a>) -> Results<'a> {
    let boots = results.variants.iter().flat_map(|column| column.boots.iter().cloned());
    let first = results.variants.first();
    let variants =
        first.map(|column| VariantBoots { variant: column.variant, boots: boots.collect() });
    Results { variants: variants.into_iter().collect(), ..*results }
}

fn resolutions(
    results: &Results<'_>,
    comparison: &Comparison,
    together: &Comparison,
) -> Vec<Resolution> {
    let of_metrics = |table: &&Table| table.kind == Kind::Metrics;
    let tables = comparison.tables.iter().filter(of_metrics);
    let rows = tables.flat_map(|table| {
        let pool =
            together.tables.iter().filter(of_metrics).find(|it| it.workload == table.workload);
        let drifts = drifts(results, &table.workload, &comparison.judging);
        let means = table.rows.iter().filter(|row| row.statistic.is_mean());
        means.map(move |row| {
            let same = |it: &&Row| (&it.metric, it.statistic) == (&row.metric, row.statistic);
            let pooled = pool.and_then(|table| table.rows.iter().find(same));
            let variation = pooled.and_then(|row| row.variation(0)).unwrap_or_default();
            let evidence = row.evidence(1);
            let verdict = row.verdict(1);
            Resolution {
                workload: table.workload.clone(),
                metric: row.metric.clone(),
                unit: row.unit.clone(),
                primary: verdict.is_some(),
                mean: pooled.and_then(|row| row.value(0)),
                decimals: row.decimals,
                between: variation.between,
                within: variation.within,
                visible: evidence.and_then(|it| it.visible),
                needed: evidence.and_then(|it| it.needed),
                verdict,
                p: evidence.map(|it| it.p_alone),
                drift: drifts.get(&row.metric).copied(),
            }
        })
    });
    rows.collect()
}

/// The drift of each operation of a workload, by name.
fn drifts(results: &Results<'_>, workload: &str, judging: &Judging) -> BTreeMap<String, Drift> {
    let mut workloads = results.experiment.workloads.iter();
    let Some(used) = workloads.find(|used| used.manifest.name == workload) else {
        return BTreeMap::new();
    };
    let mut operations = operations(used, &results.variants, Mode::Measured);
    leave_out(&mut operations, judging);
    let drifts = operations.into_iter().filter_map(|operation| {
        let figures = operation.figures();
        let values = figures.iter().flat_map(BootFigures::by_block);
        let points: Vec<(f64, f64)> =
            values.map(|(it, value)| (f64::from(it.block), value)).collect();
        let mean = points.iter().map(|(_, value)| value).sum::<f64>() / points.len() as f64;
        let slope = stats::trend(&points).filter(|_| mean > 0.0)?;
        Some((operation.name, Drift { per_block: slope.value / mean, p: slope.p_apart(0.0) }))
    });
    drifts.collect()
}

fn claims(comparison: &Comparison, family: Family) -> Claims {
    let mut claims = Claims { family, compared: 0, different: 0, same: 0, alone: 0 };
    let alpha = comparison.judging.alpha();
    for table in &comparison.tables {
        for row in &table.rows {
            let verdict = row.verdict(1);
            let own = match (table.kind, verdict) {
                (Kind::Counters | Kind::Events, _) => Family::Counters,
                (_, Some(_)) => Family::Primary,
                (_, None) => Family::Secondary,
            };
            let Some(evidence) = row.evidence(1) else { continue };
            if own != family {
                continue;
            }
            claims.compared += 1;
            claims.alone += usize::from(evidence.p_alone < alpha);
            match verdict {
                Some(Verdict::Same) => claims.same += 1,
                Some(Verdict::Undecided) => {}
                Some(Verdict::Regression | Verdict::Improvement) => claims.different += 1,
                None => claims.different += usize::from(evidence.p < alpha),
            }
        }
    }
    claims
}

#[cfg(test)]
mod tests {
    use model::Reading;

    use super::*;
    use crate::testing::{boot, columns, deviations, experiment, manifest, sample, variant};

    /// Boots of both sides, of blocks from 0 on: one value each.
    fn sides(values: [&[f64]; 2]) -> [Vec<Boot>; 2] {
        values.map(|values| {
            let boots = (0..).zip(values).map(|(block, value)| Boot {
                block,
                samples: vec![sample("Elapsed", "", 0, *value)],
                ..boot(block)
            });
            boots.collect()
        })
    }

    fn test(sides: &[Vec<Boot>; 2]) -> SelfTest {
        let experiment = experiment(Mode::Measured, 5, vec![manifest()]);
        let variants = ["A", "B"].map(variant);
        let variants = columns(&variants, &[&sides[0], &sides[1]]);
        selftest(&Results { experiment: &experiment, reading: Reading::USUAL, variants })
    }

    const BASE: [f64; 5] = [62.44, 64.0, 61.9, 63.3, 62.7];

    #[test]
    fn alike_boots_give_no_alarm() {
        let found = test(&sides([&BASE, &[62.9, 63.1, 62.6, 62.2, 63.4]]));
        assert_eq!((found.boots, found.failed), ([5, 5], 0));
        let primary = found.claims[0];
        assert_eq!((primary.family, primary.compared, primary.different), (Family::Primary, 1, 0));
        let [metric] = found.metrics.as_slice() else { panic!("{:?}", found.metrics) };
        assert!(metric.primary && metric.between.is_some() && metric.visible.is_some());
        // Each of the 5 pairs can be exchanged or not, and mirror images are the same: 2^5 / 2.
        assert_eq!((found.splits[0].splits, found.splits[0].all), (16, true));
    }

    /// Boots that do differ are claimed to differ, so claims are counted at all.
    #[test]
    fn an_alarm_is_counted() {
        let new = BASE.map(|value| value * 1.05);
        let found = test(&sides([&BASE, &new]));
        let primary = found.claims[0];
        assert_eq!((primary.different, primary.alone), (1, 1));
        assert_eq!(found.metrics[0].verdict, Some(Verdict::Regression));
        // If some pairs are exchanged, the differences contradict each other.
        assert_eq!(found.splits[0].different, 1);
    }

    /// In the long run 5 % of the splits of like boots claim a difference, give or take 4 standard
    /// errors of 100 self-tests.
    #[test]
    fn splits_claim_as_many_as_verdicts_may() {
        let mut deviations = deviations();
        let mut draw = || -> Vec<f64> {
            (0..6).map(|_| 100.0 * (0.02 * deviations.next().unwrap()).exp()).collect()
        };
        let shares: Vec<f64> = (0..100)
            .map(|_| {
                let found = test(&sides([&draw(), &draw()]));
                found.splits[0].different as f64 / found.splits[0].splits as f64
            })
            .collect();
        let all = stats::Summary::of(&shares).unwrap();
        assert!((all.amean - 0.05).abs() < 4.0 * all.stddev.unwrap() / 10.0, "{}", all.amean);
    }

    #[test]
    fn many_blocks_are_split_at_random() {
        let values: Vec<f64> = (0..20).map(|block| 100.0 + f64::from(block * 7 % 5)).collect();
        let other: Vec<f64> = (0..20).map(|block| 100.0 + f64::from(block * 3 % 7)).collect();
        let found = test(&sides([&values, &other]));
        assert_eq!((found.splits[0].splits, found.splits[0].all), (4096, false));
    }

    #[test]
    fn drift_is_reported() {
        let rising: Vec<f64> = (0..5).map(|block| 100.0 + f64::from(block)).collect();
        let drift = test(&sides([&rising, &rising])).metrics[0].drift.unwrap();
        assert!((drift.per_block - 1.0 / 102.0).abs() < 1e-12 && drift.p < 1e-6, "{drift:?}");
        let steady = test(&sides([&BASE, &BASE])).metrics[0].drift.unwrap();
        assert!(steady.p > 0.5, "{steady:?}");
    }

    #[test]
    fn boots_of_one_variant_make_two_sides() {
        let mut boots: Vec<Boot> =
            (0..7).map(|block| Boot { block, started: block.into(), ..boot(block) }).collect();
        boots[3].outcome = model::Outcome::Interrupted;
        boots.reverse();
        let variants = [variant("only")];
        let [a, b] = halves(&columns(&variants, &[&boots])[0].boots);
        let of = |half: &[Kept]| half.iter().map(|it| it.boot.block).collect::<Vec<_>>();
        assert_eq!((of(&a), of(&b)), (vec![0, 1, 2], vec![0, 1, 2]));
        let from = |half: &[Kept]| half.iter().map(|it| it.boot.started).collect::<Vec<_>>();
        assert_eq!((from(&a), from(&b)), (vec![0, 4, 5], vec![1, 2, 6]));
    }
}
