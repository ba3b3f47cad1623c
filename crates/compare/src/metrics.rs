//! The table of a workload's metrics: statistics over all samples of a variant's complete boots,
//! in exact mode over its seeds.

use std::collections::{BTreeMap, BTreeSet};

use model::{Better, Boot, INSTRUCTIONS, Manifest, Metric, Mode, Rows, WorkloadUse};

use crate::judge::judge;
use crate::luck::Seeds;
use crate::oddities::oddities;
use crate::operations::{BootSamples, Operation, operations};
use crate::rows::{Figures, statistics};
use crate::warmup::{WarmUp, asked, leave_out};
use crate::{Judging, Kind, Pool, Row, Statistic, Table, VariantBoots, Variation};

/// The operations of a workload without what is warm-up, and that.
pub fn steady<'a>(
    used: &'a WorkloadUse,
    columns: &[VariantBoots<'a>],
    mode: Mode,
    judging: &Judging,
) -> (Vec<Operation<'a>>, Vec<WarmUp>) {
    let mut operations = operations(used, columns, mode);
    let mut warm_ups = asked(&operations, used);
    if mode == Mode::Measured {
        warm_ups.extend(leave_out(&mut operations, judging));
    }
    (operations, warm_ups)
}

/// The table of a workload's `operations`, statistic by statistic as the field prints it. They come in
/// the order of the manifest's metrics, and within a metric in the order in which they were first
/// seen; `warm_ups` are left out of them. In exact mode, `seeds` says of how many each variant wants
/// figures.
pub fn table(
    used: &WorkloadUse,
    columns: &[VariantBoots<'_>],
    operations: &[Operation<'_>],
    warm_ups: Vec<WarmUp>,
    seeds: Option<u32>,
    judging: &Judging,
) -> Table {
    let mode = if seeds.is_some() { Mode::Exact } else { Mode::Measured };
    let workload = &used.manifest;
    let part = |operation| Part::of(operation, workload, seeds);
    let parts: Vec<Part> = operations.iter().map(part).collect();
    let decimals = decimals(&parts);
    let lines = lines(&parts, mode);
    let row = |&(part, statistic): &(&Part<'_>, Statistic)| {
        part.row(statistic, decimals[&part.operation.rank], judging)
    };
    let mut rows: Vec<Row> = lines.iter().map(row).collect();
    if mode == Mode::Measured {
        let judged = |number: usize| {
            let (part, statistic): (&Part<'_>, Statistic) = lines[number];
            let Operation { metric, name, .. } = part.operation;
            statistic.is_mean() && used.is_primary(metric, name)
        };
        judge(&mut rows, judged, judging);
    }
    Table {
        workload: workload.name.clone(),
        kind: Kind::Metrics,
        pooled: columns.iter().map(|column| pool(used, column)).collect(),
        left_out: Vec::new(),
        part: None,
        units: units(operations),
        warm_ups,
        oddities: match mode {
            Mode::Measured => oddities(operations, columns),
            Mode::Exact => Vec::new(),
        },
        rows,
    }
}

/// What is printed in each line: those of [`Rows::Usual`], then brief ones, means alone, and
/// distributions, statistic by statistic; at last luck.
fn lines<'a>(parts: &'a [Part<'a>], mode: Mode) -> Vec<(&'a Part<'a>, Statistic)> {
    let mut lines = Vec::new();
    for rows in [Rows::Usual, Rows::Brief, Rows::Mean, Rows::Distribution] {
        let parts = parts.iter().filter(|part| part.operation.metric.rows == rows);
        let parts: Vec<_> = parts.map(|part| (part, statistics(&part.operation.metric))).collect();
        let count = parts.iter().map(|(_, statistics)| statistics.len()).max().unwrap_or(0);
        for number in 0..count {
            let of_number = |(part, statistics): &(&'a Part<'a>, Vec<Statistic>)| {
                Some((*part, *statistics.get(number)?))
            };
            lines.extend(parts.iter().filter_map(of_number));
        }
    }
    if mode == Mode::Exact {
        lines.extend(parts.iter().map(|part| (part, Statistic::Luck)));
    }
    lines
}

/// The unit of each metric that has one.
fn units(operations: &[Operation<'_>]) -> Vec<(String, String)> {
    let metrics = operations.chunk_by(|a, b| a.metric == b.metric);
    let metrics = metrics.map(|operations| &operations[0].metric);
    metrics
        .filter(|metric| !metric.unit.is_empty())
        .map(|metric| (metric.name.clone(), metric.unit.clone()))
        .collect()
}

fn pool(used: &WorkloadUse, column: &VariantBoots<'_>) -> Pool {
    let iterations = |boot: &Boot| {
        let samples = boot.samples.iter();
        let of_workload = samples.filter(|sample| sample.workload == used.manifest.name);
        let of_workload = of_workload.filter(|sample| used.counts(sample.iteration));
        let numbers: BTreeSet<u32> = of_workload.map(|sample| sample.iteration).collect();
        numbers.len()
    };
    let iterations = column.complete().map(iterations).filter(|&count| count > 0);
    Pool { iterations: iterations.collect(), warmup: used.warmup }
}

/// Decimals of a percentage, whatever it is of.
const PERCENT_DECIMALS: usize = 2;

/// What the rows of an operation are made of.
struct Part<'a> {
    operation: &'a Operation<'a>,
    /// In exact mode, the seeds of each column.
    seeds: Option<Vec<Seeds>>,
    /// Whether it is the instructions of what only prepares what is measured.
    prepares: bool,
    /// What each column's statistics are over.
    figures: Vec<Option<Figures>>,
}

impl<'a> Part<'a> {
    fn of(operation: &'a Operation<'a>, workload: &Manifest, wanted: Option<u32>) -> Self {
        let Metric { mean, better, .. } = operation.metric;
        let prepares = operation.metric.name == INSTRUCTIONS && workload.prepares(operation.phase);
        let columns = operation.columns.iter();
        match wanted {
            None => {
                let samples =
                    columns.map(|boots| boots.iter().flat_map(|boot| &boot.counted.values));
                let pools = samples.map(|samples| samples.copied().collect());
                let figures = pools.map(|pool| Figures::of(pool, better)).collect();
                Self { operation, seeds: None, prepares, figures }
            }
            Some(wanted) => {
                let seeds = columns.map(|boots| {
                    Seeds::new(boots.iter().map(|it| (it.boot.replicate, it.mean(mean))), wanted)
                });
                let seeds: Vec<Seeds> = seeds.collect();
                let values = seeds.iter().map(|seeds| seeds.values().to_vec());
                let figures = values.map(|values| Figures::of(values, better)).collect();
                Self { operation, seeds: Some(seeds), prepares, figures }
            }
        }
    }

    fn row(&self, statistic: Statistic, decimals: usize, judging: &Judging) -> Row {
        let Metric { unit, better, decimals: wanted, .. } = &self.operation.metric;
        let figures = self.figures.iter();
        let values = figures.map(|figures| figures.as_ref()?.value(statistic)).collect();
        let better = match statistic {
            // Whatever the metric, less spread is better.
            Statistic::Stddev | Statistic::CoeffVar | Statistic::HStddev | Statistic::HCoeffVar => {
                better.map(|_| Better::Lower)
            }
            Statistic::Luck => None,
            _ => *better,
        };
        let (unit, decimals) = match statistic {
            Statistic::CoeffVar | Statistic::HCoeffVar => {
                ("%", wanted.map_or(PERCENT_DECIMALS, usize::from))
            }
            _ => (&**unit, decimals),
        };
        let row = Row::new(&self.operation.name, unit, better, statistic, values, decimals);
        if !statistic.is_mean() {
            return row;
        }
        match &self.seeds {
            Some(seeds) => {
                let mut row = row.against_luck(seeds);
                if self.prepares {
                    row.verdicts.fill(None);
                }
                row
            }
            None => {
                let groups = |boots: &Vec<BootSamples<'_>>| {
                    let values = boots.iter().map(|boot| boot.counted.values.clone());
                    Variation::of(&values.collect::<Vec<_>>())
                };
                let variation = self.operation.columns.iter().map(groups).collect();
                let row = row.against_boots(&self.operation.figures(), judging);
                Row { variation, ..row }
            }
        }
    }
}

/// Decimals for each metric, by rank: as many as it asks for. Of others 2 as the field has it, more
/// where its smallest mean would have fewer than two digits left; instructions are whole.
fn decimals(parts: &[Part<'_>]) -> BTreeMap<usize, usize> {
    let rank = |part: &Part<'_>| part.operation.rank;
    let metrics = parts.chunk_by(|a, b| rank(a) == rank(b));
    let decimals = metrics.map(|parts| {
        let figures = parts.iter().flat_map(|part| &part.figures).flatten();
        let means = figures.map(|figures| figures.amean().abs());
        let metric = &parts[0].operation.metric;
        let decimals = match (metric.decimals, metric.unit.as_str()) {
            (Some(wanted), _) => usize::from(wanted),
            (None, INSTRUCTIONS) => 0,
            _ => needed(means.filter(|&mean| mean > 0.0).fold(f64::INFINITY, f64::min)),
        };
        (rank(&parts[0]), decimals)
    });
    decimals.collect()
}

fn needed(least: f64) -> usize {
    match least {
        0.1.. => 2,
        0.001.. => 4,
        0.00001.. => 6,
        _ => 9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{boot, columns, manifest, sample, used, variant};

    fn table(
        used: &WorkloadUse,
        columns: &[VariantBoots<'_>],
        seeds: Option<u32>,
        judging: &Judging,
    ) -> Table {
        let mode = if seeds.is_some() { Mode::Exact } else { Mode::Measured };
        let (operations, warm_ups) = steady(used, columns, mode, judging);
        super::table(used, columns, &operations, warm_ups, seeds, judging)
    }

    fn boots(values: &[(&str, &str, f64)]) -> [Boot; 1] {
        let mut boot = boot(0);
        let samples = values.iter().map(|&(metric, label, value)| sample(metric, label, 0, value));
        boot.samples.extend(samples);
        [boot]
    }

    fn compared(base: &[Boot], new: &[Boot]) -> Table {
        let variants = ["base", "new"].map(variant);
        table(&used(manifest()), &columns(&variants, &[base, new]), None, &Judging::default())
    }

    fn names(table: &Table) -> Vec<String> {
        let rows = table.rows.iter();
        rows.map(|row| format!("{} {}", row.statistic, row.metric)).collect()
    }

    #[test]
    fn rows_come_statistic_by_statistic_in_the_order_of_the_manifest() {
        let base = boots(&[("Rate", "", 5.0), ("Elapsed", "B", 1.0)]);
        let new = boots(&[("Elapsed", "A", 1.0), ("Own", "", 1.0), ("Elapsed", "B", 1.0)]);
        let table = compared(&base, &new);
        let expected = [
            "Min Elapsed-B",
            "Min Elapsed-A",
            "Min Rate",
            "Min Own",
            "Amean Elapsed-B",
            "Amean Elapsed-A",
            "Hmean Rate",
            "Amean Own",
            "Stddev Elapsed-B",
        ];
        assert_eq!(names(&table)[..9], expected);
        assert_eq!(table.rows.len(), 4 * 6 - 1);
    }

    #[test]
    fn phases_end_the_name() {
        let mut base = boots(&[("Elapsed", "A", 1.0), ("Elapsed", "", 1.0)]);
        for sample in &mut base[0].samples {
            sample.phase = "steady".into();
        }
        let table = compared(&base, &[]);
        let names = names(&table);
        assert_eq!(names[..2], ["Min Elapsed-A-steady", "Min Elapsed-steady"]);
    }

    #[test]
    fn gains_follow_the_direction() {
        let base = boots(&[
            ("Elapsed", "", 2.0),
            ("Elapsed", "", 4.0),
            ("Rate", "", 10.0),
            ("CPU", "", 1.0),
        ]);
        let new = boots(&[
            ("Elapsed", "", 1.0),
            ("Elapsed", "", 5.0),
            ("Rate", "", 20.0),
            ("CPU", "", 2.0),
        ]);
        let table = compared(&base, &new);
        let gain = |statistic, metric: &str| {
            let mut rows = table.rows.iter();
            rows.find(|row| row.statistic == statistic && row.metric == metric).unwrap().gains[1]
        };
        assert_eq!(gain(Statistic::Min, "Elapsed"), Some(50.0));
        assert_eq!(gain(Statistic::Amean, "Elapsed"), Some(0.0));
        assert_eq!(gain(Statistic::Stddev, "Elapsed"), Some(-100.0));
        assert_eq!(gain(Statistic::Max, "Elapsed"), Some(-25.0));
        assert_eq!(gain(Statistic::Hmean, "Rate"), Some(100.0));
        assert_eq!(gain(Statistic::Amean, "CPU"), None);
    }

    #[test]
    fn what_is_missing_is_absent() {
        let base = boots(&[("Elapsed", "A", 2.0)]);
        let new = boots(&[("Elapsed", "B", 2.0)]);
        let table = compared(&base, &new);
        assert_eq!(table.rows[0].values, [Some(2.0), None]);
        assert_eq!(table.rows[0].gains, [Some(0.0), None]);
        assert_eq!(table.rows[1].values, [None, Some(2.0)]);
        assert_eq!(table.rows[1].gains, [None, None]);
    }

    #[test]
    fn boots_and_iterations_are_pooled() {
        let mut boots = [boot(0), boot(1)];
        let values = [1.0, 2.0, 4.0, 9.0];
        for (number, value) in values.into_iter().enumerate() {
            let iteration = number as u32 % 2;
            boots[number / 2].samples.push(sample("Elapsed", "", iteration, value));
        }
        let table = compared(&boots, &[]);
        assert_eq!(table.pooled[0].iterations, [2, 2]);
        assert_eq!(table.pooled[1].iterations, []);
        assert_eq!(table.rows[1].values[0], Some(4.0));
    }

    #[test]
    fn small_figures_get_more_decimals() {
        let base = boots(&[("Elapsed", "A", 120.0), ("Elapsed", "B", 0.02), ("Rate", "", 3.0)]);
        let table = compared(&base, &[]);
        let decimals: Vec<_> = table.rows[..3].iter().map(|row| row.decimals).collect();
        assert_eq!(decimals, [4, 4, 2]);
    }

    #[test]
    fn a_metric_can_ask_for_its_decimals() {
        let mut manifest = manifest();
        manifest.metrics[0].decimals = Some(4);
        manifest.metrics[1].decimals = Some(2);
        let base = boots(&[("Elapsed", "", 120.0), ("Rate", "", 0.02), ("CPU", "", 0.02)]);
        let variants = ["base"].map(variant);
        let table =
            table(&used(manifest), &columns(&variants, &[&base]), None, &Judging::default());
        let decimals = |statistic, metric| row(&table, statistic, metric).decimals;
        assert_eq!(decimals(Statistic::CoeffVar, "Elapsed"), 4);
        assert_eq!(decimals(Statistic::Hmean, "Rate"), 2);
        assert_eq!(decimals(Statistic::Min, "CPU"), 4);
        assert_eq!(decimals(Statistic::CoeffVar, "CPU"), 2);
    }

    #[test]
    fn means_alone_follow_the_usual_rows() {
        let mut manifest = manifest();
        manifest.metrics[0].rows = Rows::Mean;
        let base = seeds(&[("Elapsed", "", &[1.0, 2.0]), ("Rate", "", &[8.0, 8.0])]);
        let variants = ["base", "new"].map(variant);
        let table =
            table(&used(manifest), &columns(&variants, &[&base, &base]), None, &Judging::default());
        assert_eq!(names(&table)[5..], ["BHmean.95 Rate", "Amean Elapsed"]);
    }

    #[test]
    fn distributions_follow_the_usual_rows_and_luck_is_last() {
        let mut manifest = manifest();
        manifest.metrics[0].rows = Rows::Distribution;
        let base = seeds(&[("Elapsed", "", &[1.0, 2.0]), ("Rate", "", &[8.0, 8.0])]);
        let variants = ["base", "new"].map(variant);
        let table = table(
            &used(manifest),
            &columns(&variants, &[&base, &base]),
            Some(2),
            &Judging::default(),
        );
        let names = names(&table);
        assert_eq!(
            names[5..9],
            ["BHmean.95 Rate", "Min Elapsed", "1st-qrtle Elapsed", "2nd-qrtle Elapsed"]
        );
        assert_eq!(names[names.len() - 3..], ["Best1%Mean Elapsed", "Luck Elapsed", "Luck Rate"]);
        let mean = row(&table, Statistic::Mean, "Elapsed");
        assert_eq!(mean.verdicts[1], Some(crate::Verdict::Same));
    }

    /// Boots of the workload, each with its seed: one value an iteration of each metric.
    fn seeds(values: &[(&str, &str, &[f64])]) -> Vec<Boot> {
        let count = values.iter().map(|(_, _, values)| values.len()).max().unwrap_or(0);
        let mut boots: Vec<Boot> = (0..count as u32).map(boot).collect();
        for (metric, label, values) in values {
            for (boot, value) in boots.iter_mut().zip(*values) {
                boot.samples.push(sample(metric, label, 0, *value));
            }
        }
        boots
    }

    fn judged(base: &[Boot], new: &[Boot], wanted: u32) -> Table {
        let variants = ["base", "new"].map(variant);
        table(
            &used(manifest()),
            &columns(&variants, &[base, new]),
            Some(wanted),
            &Judging::default(),
        )
    }

    fn row<'a>(table: &'a Table, statistic: Statistic, metric: &str) -> &'a Row {
        let mut rows = table.rows.iter();
        rows.find(|row| row.statistic == statistic && row.metric == metric).unwrap()
    }

    #[test]
    fn instructions_come_last_and_are_whole() {
        let base = seeds(&[
            ("instructions", "total", &[1e9, 1e9 + 3.0]),
            ("Own", "", &[1.0, 1.0]),
            ("Elapsed", "", &[1.0, 2.0]),
        ]);
        let table = judged(&base, &[], 2);
        assert_eq!(names(&table)[..3], ["Min Elapsed", "Min Own", "Min instructions-total"]);
        let mean = row(&table, Statistic::Amean, "instructions-total");
        assert_eq!(
            (&*mean.unit, mean.better, mean.decimals),
            (INSTRUCTIONS, Some(Better::Lower), 0)
        );
        assert_eq!(mean.values[0], Some(1e9 + 1.5));
        let luck = row(&table, Statistic::Luck, "instructions-total");
        assert_eq!((luck.values[0], luck.better), (Some(3.0), None));
    }

    /// What is in no phase comes before, between and after phases.
    #[test]
    fn instructions_are_those_of_an_iteration() {
        let counts = [("", 2.0), ("run", 50.0), ("", 3.0), ("run", 40.0), ("", 5.0)];
        let mut boots = [boot(0), boot(1)];
        for (seed, boot) in boots.iter_mut().enumerate() {
            for iteration in 0..2 {
                let samples = counts.map(|(phase, count)| {
                    let count = count + f64::from(iteration) + seed as f64;
                    let sample = sample("instructions", "total", iteration, count);
                    model::Sample { phase: phase.into(), ..sample }
                });
                boot.samples.extend(samples);
            }
        }
        let table = judged(&boots, &[], 2);
        let mean = |metric| row(&table, Statistic::Amean, metric).values[0];
        // (2 + 3 + 5) + 3 (0 + 1) / 2 of the first seed, 3 more of the second one.
        assert_eq!(mean("instructions-total-no-phase"), Some(13.0));
        assert_eq!(mean("instructions-total-run"), Some(92.0));
        assert!(table.rows.iter().all(|row| row.metric != "instructions-total"));
    }

    #[test]
    fn no_verdict_rests_on_what_only_prepares() {
        let boots = |more: f64| {
            let mut boots = [boot(0), boot(1)];
            for (seed, boot) in boots.iter_mut().enumerate() {
                let samples = ["fill", "run"].map(|phase| {
                    let count = 100.0 + more + seed as f64;
                    let sample = sample("instructions", "total", 0, count);
                    model::Sample { phase: phase.into(), ..sample }
                });
                boot.replicate = seed as u32;
                boot.samples.extend(samples);
            }
            boots
        };
        let manifest = Manifest { preparation: vec!["fill".into()], ..manifest() };
        let variants = ["base", "new"].map(variant);
        let [base, new] = [boots(0.0), boots(50.0)];
        let columns = columns(&variants, &[&base[..], &new[..]]);
        let table = table(&used(manifest), &columns, Some(2), &Judging::default());
        let of = |phase: &str| {
            let name = format!("instructions-total-{phase}");
            let row = row(&table, Statistic::Amean, &name);
            (row.gains[1], row.beyond_luck[1], row.verdicts[1])
        };
        let gain = 100.0 - 100.0 * 150.5 / 100.5;
        assert_eq!(of("fill"), (Some(gain), Some(true), None));
        assert_eq!(of("run"), (Some(gain), Some(true), Some(crate::Verdict::Regression)));
    }

    #[test]
    fn measured_mode_knows_no_luck_and_no_instructions() {
        let base = seeds(&[("instructions", "total", &[1.0, 2.0])]);
        let table = compared(&base, &base);
        let mean = row(&table, Statistic::Amean, "instructions-total");
        assert_eq!((&*mean.unit, mean.better), ("", None));
        assert!(table.rows.iter().all(|row| row.statistic != Statistic::Luck));
        let nothing = |row: &Row| {
            row.verdicts == [None; 2] && row.floors == [None; 2] && row.beyond_luck == [None; 2]
        };
        assert!(table.rows.iter().all(nothing));
    }

    #[test]
    fn iterations_are_averaged_before_seeds() {
        let mut base = seeds(&[("Elapsed", "", &[1.0, 10.0])]);
        base[0].samples.push(sample("Elapsed", "", 1, 5.0));
        base[0].samples.extend([2.0, 6.0].map(|rate| sample("Rate", "", 0, rate)));
        base[1].samples.push(sample("Rate", "", 0, 0.0));
        let table = judged(&base, &[], 2);
        let value = |statistic, metric| row(&table, statistic, metric).values[0];
        assert_eq!(value(Statistic::Min, "Elapsed"), Some(3.0));
        assert_eq!(value(Statistic::Amean, "Elapsed"), Some(6.5));
        assert_eq!(value(Statistic::Luck, "Elapsed"), Some(7.0));
        assert_eq!(value(Statistic::Max, "Rate"), Some(3.0));
        assert_eq!(value(Statistic::Min, "Rate"), Some(0.0));
        assert_eq!(table.pooled[0].iterations, [2, 1]);
    }

    #[test]
    fn verdicts_stand_on_means_with_a_direction() {
        let base = seeds(&[
            ("Elapsed", "A", &[10.0, 12.0]),
            ("Elapsed", "B", &[10.0, 12.0]),
            ("Rate", "", &[8.0, 8.0]),
            ("CPU", "", &[1.0, 2.0]),
        ]);
        let new = seeds(&[
            ("Elapsed", "A", &[13.0, 14.0]),
            ("Elapsed", "B", &[12.0, 13.0]),
            ("Rate", "", &[9.0, 8.5]),
            ("CPU", "", &[8.0, 8.0]),
        ]);
        let table = judged(&base, &new, 2);
        let judged = |statistic, metric| {
            let Row { verdicts, floors, beyond_luck, .. } = row(&table, statistic, metric);
            assert_eq!((verdicts[0], floors[0], beyond_luck[0]), (None, None, None));
            (verdicts[1], floors[1], beyond_luck[1])
        };
        use crate::Verdict::{Improvement, Regression, Same};
        use Statistic::{Amean, Hmean, Luck, Max};
        assert_eq!(judged(Amean, "Elapsed-A"), (Some(Regression), Some(2.0), Some(true)));
        assert_eq!(judged(Amean, "Elapsed-B"), (Some(Same), Some(2.0), Some(false)));
        assert_eq!(judged(Hmean, "Rate"), (Some(Improvement), Some(0.5), Some(true)));
        assert_eq!(judged(Amean, "CPU"), (None, Some(1.0), Some(true)));
        for statistic in [Max, Luck] {
            assert_eq!(judged(statistic, "Elapsed-A"), (None, None, None));
        }
    }

    #[test]
    fn without_all_seeds_nothing_is_decided() {
        let one = seeds(&[("Elapsed", "", &[1.0])]);
        let two = seeds(&[("Elapsed", "", &[7.0, 7.0])]);
        let three = seeds(&[("Elapsed", "", &[1.0, 1.0, 1.0])]);
        for (base, new, wanted) in
            [(&one, &one, 1), (&one, &two, 2), (&three, &two, 3), (&two, &vec![], 2)]
        {
            let table = judged(base, new, wanted);
            let mean = row(&table, Statistic::Amean, "Elapsed");
            assert_eq!(mean.verdicts, [None, Some(crate::Verdict::Undecided)]);
            assert_eq!((mean.floors[1], mean.beyond_luck[1]), (None, None));
        }
    }
}
