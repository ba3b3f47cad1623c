//! Compares boots: tables of metrics, durations and counters with a column for each variant, and notes on
//! everything else in which the columns differ. In exact mode, verdicts on differences beyond the luck of
//! the seeds. Pure; printing is left to the reports.
//!
//! Only complete boots count. A figure that a variant lacks is absent, never 0.

mod accesses;
mod chosen;
mod config;
mod consistency;
mod counters;
mod cross_check;
mod duration;
mod equal;
mod evidence;
mod exact;
mod explain;
mod facts;
mod figures;
mod growth;
mod independent;
mod judge;
mod locality;
mod luck;
mod metrics;
mod names;
mod notes;
mod oddities;
mod operations;
mod phases;
mod plots;
mod rows;
pub mod selftest;
mod sequential;
mod steady;
mod table;
#[cfg(test)]
mod testing;
mod warmup;

use model::{Boot, Experiment, Mode, Outcome, WorkloadUse};
use serde::Serialize;
use steady::Steady;

pub use chosen::Unmet;
pub use consistency::{Counting, Finding, Relation, Severity};
pub use cross_check::{CrossCheck, Gain, Instructions, Reading, Sources, comparable, cross_check};
pub use evidence::{Evidence, Judging, NoEvidence, Variation};

pub use explain::{
    Calls, Compared, Contribution, Counter, Explanation, Headline, Holder, Only, Path, Paths,
    Section, Side, Split, Subject, Totals, explain, headlines, paths,
};
pub use figures::BootFigures;
pub use judge::false_discovery_rates;
pub use locality::{Interval, locality};
pub use luck::{Difference, FEWEST_FOR_LISTS, LEVEL, RATE, RESOLUTION, Verdict};
pub use names::{Month, of_counter, others, ours};
pub use notes::{
    Complaint, ConfigChange, ConfigDifference, Fact, HostRange, Mixed, Notes, Unmeasured,
};
pub use oddities::{Odd, Oddity, Peak};
pub use phases::{NoPhase, with_phases};
pub use plots::{BootDots, Curve, Dot, PLOT_SOURCES, Panel, Plots, Scatter, Span, plots};
pub use sequential::Look;
pub use steady::Part;
pub use table::{Kind, Pool, Row, Statistic, Table};
pub use warmup::{Beginnings, Repeated, WarmUp};

/// A boot as it was kept.
#[derive(Clone, Debug)]
pub struct KeptBoot<'a> {
    /// Its name in the store, such as `b3`.
    pub name: String,
    /// Whether it failed and is to be repeated, or has been.
    pub superseded: bool,
    /// The boot.
    pub boot: &'a Boot,
}

impl KeptBoot<'_> {
    /// Whether it occupies its place in the schedule. An interrupted or superseded boot does not: another
    /// boot can take that place.
    fn stands(&self) -> bool {
        !self.superseded && self.boot.outcome != Outcome::Interrupted
    }
}

/// A variant with all its boots, failed ones included.
#[derive(Clone, Debug)]
pub struct VariantBoots<'a> {
    /// The variant.
    pub variant: &'a model::Variant,
    /// Its boots, in the order they were kept.
    pub boots: Vec<KeptBoot<'a>>,
}

impl<'a> VariantBoots<'a> {
    fn name(&self) -> &'a str {
        &self.variant.name
    }

    /// The boots that occupy their places, complete or not.
    fn standing(&self) -> impl Iterator<Item = &KeptBoot<'a>> {
        self.boots.iter().filter(|kept| kept.stands())
    }

    /// The boots that count.
    fn complete(&self) -> impl Iterator<Item = &'a Boot> {
        self.standing().map(|kept| kept.boot).filter(|boot| boot.outcome.counts())
    }

    /// Without the boots in which `workload` failed while others did not.
    fn of_workload(&self, workload: &str) -> Self {
        let ran = |kept: &&KeptBoot<'_>| {
            !matches!(kept.boot.outcome, Outcome::Partial(_))
                || kept.boot.usage.iter().any(|usage| usage.workload == workload)
        };
        Self { variant: self.variant, boots: self.boots.iter().filter(ran).cloned().collect() }
    }
}

/// An experiment with the boots that it has so far.
#[derive(Clone, Debug)]
pub struct Results<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Its variants with their boots, in the order of the experiment.
    pub variants: Vec<VariantBoots<'a>>,
}

impl<'a> Results<'a> {
    /// Whether there is something to compare: two variants have complete boots.
    pub fn has_two_sides(&self) -> bool {
        self.variants.iter().filter(|column| column.complete().next().is_some()).count() > 1
    }

    fn column(&self, variant: &str) -> Option<&VariantBoots<'a>> {
        self.variants.iter().find(|column| column.name() == variant)
    }
}

/// Variants compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// By which clock.
    pub mode: Mode,
    /// Boots wanted of each variant; in exact mode each has a seed of its own.
    pub boots: u32,
    /// How differences of measured mode are judged.
    pub judging: Judging,
    /// The variants in the order of the columns. The first is the baseline.
    pub variants: Vec<Variant>,
    /// Whether a boot that counts ran under emulation (TCG), where times are not performance.
    pub emulated: bool,
    /// The tables, workload by workload.
    pub tables: Vec<Table>,
    /// Chosen rows for verdicts of measured mode that no complete boot has.
    pub unmet: Vec<Unmet>,
    /// The same variants in the other mode, where the caller has found such an experiment; see
    /// [`cross_check()`].
    pub cross_checks: Vec<CrossCheck>,
    /// The experiments of [`Comparison::cross_checks`], set by the caller.
    pub cross_check_sources: Option<Sources>,
    /// Notes on the columns.
    pub notes: Notes,
    /// The month whose mmtests names the rows have; `None` where they have our own names. See
    /// [`Comparison::use_mmtests_names`].
    pub names: Option<Month>,
}

/// A variant and the outcomes of its boots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// Number of complete boots: those that count.
    pub complete: usize,
    /// The boots that failed.
    pub failed: Vec<FailedBoot>,
    /// The boots that were interrupted, or failed and are repeated.
    pub set_aside: Vec<SetAside>,
}

/// A boot that did not complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedBoot {
    /// Its name, such as `b3`.
    pub boot: String,
    /// How it ended.
    pub outcome: String,
    /// Whether only some of its workloads failed, and the others count.
    pub partial: bool,
}

/// A boot that does not count, and does not occupy its place in the schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SetAside {
    /// Its name, such as `b3`.
    pub boot: String,
    /// How it ended.
    pub outcome: String,
    /// Whether another boot has taken its place.
    pub done_again: bool,
}

impl Comparison {
    /// Whether a table of counters could be limited to the steady part, had the series between the ends of
    /// phases been read.
    pub fn lacks_series(&self) -> bool {
        self.tables.iter().any(|table| table.part == Some(Part::Unsampled))
    }

    /// The verdicts on a column, with the row of means that each is on and its table.
    pub fn verdicts(&self, column: usize) -> impl Iterator<Item = (&Table, &Row, Verdict)> {
        self.tables.iter().flat_map(move |table| {
            let rows = table.rows.iter();
            rows.filter_map(move |row| Some((table, row, (*row.verdicts.get(column)?)?)))
        })
    }
}

/// Compares the variants of an experiment. The one with index `baseline` becomes the first column, against
/// which gains are computed and verdicts are given; the others keep their order. `judging` is for measured
/// mode.
pub fn compare(results: &Results<'_>, baseline: usize, judging: &Judging) -> Comparison {
    let Results { experiment, variants } = results;
    let columns = baseline_first(variants, baseline);
    let topology = &experiment.machine.topology;
    let seeds = (experiment.mode == Mode::Exact).then_some(experiment.boots);
    let workloads = || experiment.workloads.iter().map(|used| &*used.manifest.name);
    let tables = experiment.workloads.iter().flat_map(|used| {
        let columns: Vec<_> =
            columns.iter().map(|column| column.of_workload(&used.manifest.name)).collect();
        let (operations, warm_ups) = metrics::steady(used, &columns, experiment.mode, judging);
        let steady = Steady::of(used, &operations, &warm_ups);
        let warmup = used.warmup.saturating_add(steady.iterations);
        let beyond = WorkloadUse { warmup, ..used.clone() };
        [
            Table {
                part: (steady.within && steady.single).then_some(Part::Whole),
                ..metrics::table(used, &columns, &operations, warm_ups, seeds, judging)
            },
            duration::table(&beyond, &columns, &steady, seeds, judging),
            counters::table(&beyond, &columns, topology, &steady, seeds, judging),
        ]
    });
    let tables: Vec<Table> = tables.filter(|table| !table.rows.is_empty()).collect();
    let is_known = columns.iter().any(|column| column.complete().next().is_some());
    let unmet = match experiment.mode {
        Mode::Measured if is_known => chosen::unmet(experiment, &tables),
        _ => Vec::new(),
    };
    Comparison {
        mode: experiment.mode,
        boots: experiment.boots,
        judging: *judging,
        variants: columns.iter().map(variant).collect(),
        emulated: columns
            .iter()
            .flat_map(VariantBoots::complete)
            .any(|boot| boot.facts.accel == model::Accel::Tcg.name()),
        tables,
        unmet,
        cross_checks: Vec::new(),
        cross_check_sources: None,
        notes: Notes {
            findings: workloads().flat_map(|it| consistency::findings(it, &columns)).collect(),
            counting: consistency::counting(&columns),
            ..notes::notes(&columns)
        },
        names: None,
    }
}

/// The variants with the baseline before the others.
fn baseline_first<'a>(variants: &[VariantBoots<'a>], baseline: usize) -> Vec<VariantBoots<'a>> {
    let mut columns = variants.to_vec();
    if let Some(up_to_baseline) = columns.get_mut(..=baseline) {
        up_to_baseline.rotate_right(1);
    }
    columns
}

fn variant(column: &VariantBoots<'_>) -> Variant {
    let failed = column.standing().filter(|kept| !kept.boot.outcome.is_complete());
    let aside = column.boots.iter().filter(|kept| !kept.stands());
    Variant {
        name: column.name().to_owned(),
        complete: column.complete().count(),
        failed: failed
            .map(|kept| FailedBoot {
                boot: kept.name.clone(),
                outcome: kept.boot.outcome.to_string(),
                partial: kept.boot.outcome.counts(),
            })
            .collect(),
        set_aside: aside
            .map(|kept| SetAside {
                boot: kept.name.clone(),
                outcome: kept.boot.outcome.to_string(),
                done_again: column
                    .standing()
                    .any(|other| other.boot.replicate == kept.boot.replicate),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{boot, columns, experiment, failed, manifest, sample};

    fn compare(
        workloads: &[model::Manifest],
        variants: &[VariantBoots<'_>],
        baseline: usize,
    ) -> Comparison {
        let experiment = experiment(Mode::Measured, 1, workloads.to_vec());
        let results = Results { experiment: &experiment, variants: variants.to_vec() };
        super::compare(&results, baseline, &Judging::default())
    }

    #[test]
    fn the_baseline_becomes_the_first_column() {
        let variants = ["a", "b", "c", "d"].map(testing::variant);
        let none: &[Boot] = &[];
        let columns = columns(&variants, &[none; 4]);
        let order = |baseline| {
            let comparison = compare(&[], &columns, baseline);
            let names = comparison.variants.iter().map(|variant| &*variant.name);
            names.collect::<String>()
        };
        assert_eq!(order(0), "abcd");
        assert_eq!(order(2), "cabd");
        assert_eq!(order(4), "abcd");
    }

    #[test]
    fn two_sides_have_a_complete_boot_each() {
        let experiment = experiment(Mode::Exact, 1, vec![manifest()]);
        let variants = ["a", "b"].map(testing::variant);
        let has_two_sides = |new: &[Boot]| {
            let old = [boot(0), boot(1)];
            let variants = columns(&variants, &[&old, new]);
            Results { experiment: &experiment, variants }.has_two_sides()
        };
        assert!(has_two_sides(&[failed(0, "no answer"), boot(0)]));
        assert!(!has_two_sides(&[failed(0, "no answer")]) && !has_two_sides(&[]));
    }

    #[test]
    fn failed_boots_are_named_and_do_not_count() {
        let mut bad = failed(1, "workload autonuma exited with 1");
        bad.samples.push(sample("Elapsed", "NUMA01", 0, 999.0));
        let mut good = boot(0);
        good.samples.push(sample("Elapsed", "NUMA01", 0, 2.0));
        let boots = [good, bad];
        let variants = ["a", "b"].map(testing::variant);
        let columns = columns(&variants, &[&boots, &boots[1..]]);
        let comparison = compare(&[manifest()], &columns, 0);
        assert_eq!(comparison.variants[0].complete, 1);
        assert_eq!(comparison.variants[1].complete, 0);
        let outcome = "failed: workload autonuma exited with 1";
        let failed = &comparison.variants[1].failed[0];
        assert_eq!((&*failed.boot, &*failed.outcome), ("b0", outcome));
        let max = comparison.tables[0].rows.last().unwrap();
        assert_eq!(max.values, [Some(2.0), None]);
    }

    #[test]
    fn a_workload_that_failed_costs_its_own_rows_alone() {
        let other = model::Manifest { name: "other".into(), ..manifest() };
        let of = |replicate: u32, workloads: &[&str]| {
            let mut boot = Boot { block: replicate, ..boot(replicate) };
            for workload in workloads {
                let elapsed = 10.0 + f64::from(replicate);
                let workload = (*workload).to_owned();
                let sample = sample("Elapsed", "", 0, elapsed);
                boot.samples.push(model::Sample { workload: workload.clone(), ..sample });
                let (iteration, user, system) = (0, 0.0, 0.0);
                let usage = model::Usage { workload, iteration, user, system, elapsed };
                boot.usage.push(usage);
            }
            boot
        };
        let both = ["autonuma", "other"];
        let partial = Boot { outcome: Outcome::Partial("no answer".into()), ..of(2, &both[1..]) };
        let whole: Vec<Boot> = (0..2).map(|replicate| of(replicate, &both)).collect();
        let all: Vec<Boot> = whole.iter().cloned().chain([partial]).collect();
        let variants = ["a", "b"].map(testing::variant);
        let workloads = [manifest(), other];
        let compared = |boots: &[Boot]| compare(&workloads, &columns(&variants, &[boots; 2]), 0);
        let (found, without) = (compared(&all), compared(&whole));
        let tables = |comparison: &Comparison, workload: &str| -> Vec<Table> {
            let tables = comparison.tables.iter().filter(|table| table.workload == workload);
            tables.cloned().collect()
        };
        assert_eq!(tables(&found, "autonuma"), tables(&without, "autonuma"));
        assert_eq!(tables(&found, "other")[0].rows[0].values, [Some(10.0); 2]);
        let rows = &tables(&found, "other")[0].rows;
        let max = rows.iter().find(|row| row.statistic == Statistic::Max).unwrap();
        assert_eq!(max.values, [Some(12.0); 2]);
        let Variant { complete, failed, .. } = &found.variants[0];
        assert!(*complete == 3 && failed[0].partial);
    }

    /// In both modes, whatever is looked at.
    #[test]
    fn iterations_before_those_that_count_are_told_apart() {
        let of = |replicate: u32| {
            let mut boot = Boot { block: replicate, ..boot(replicate) };
            for (iteration, time) in [(0, 50.0), (1, 30.0), (2, 10.0), (3, 12.0)] {
                boot.samples.push(sample("Elapsed", "", iteration, time));
                boot.chunks.push(testing::chunk(iteration, "", &[("pgmajfault", time as i64)]));
                boot.usage.push(model::Usage {
                    workload: "autonuma".into(),
                    iteration,
                    user: 0.0,
                    system: 0.0,
                    elapsed: time,
                });
            }
            boot
        };
        let boots: Vec<Boot> = (0..3).map(of).collect();
        for mode in [Mode::Measured, Mode::Exact] {
            let mut experiment = experiment(mode, 3, vec![manifest()]);
            experiment.workloads[0].iterations = 2;
            experiment.workloads[0].warmup = 2;
            let variants = ["a", "b"].map(testing::variant);
            let variants = columns(&variants, &[&boots, &boots]);
            let results = Results { experiment: &experiment, variants };
            let tables = super::compare(&results, 0, &Judging::default()).tables;
            let [metrics, durations, counters] = &tables[..] else { panic!("{tables:?}") };
            assert!(tables.iter().all(|table| table.pooled[0].iterations == [2; 3]));
            let value = |table: &Table, statistic, metric: &str| {
                let mut rows = table.rows.iter();
                rows.find(|row| row.statistic == statistic && row.metric == metric).unwrap().values
                    [1]
            };
            assert_eq!(value(metrics, Statistic::Amean, "Elapsed"), Some(11.0));
            assert_eq!(value(durations, Statistic::Amean, "Elapsed"), Some(22.0));
            assert_eq!(value(counters, Statistic::Amean, "Major Faults"), Some(22.0));
            let [told] = &metrics.warm_ups[..] else { panic!("{:?}", metrics.warm_ups) };
            assert_eq!(
                (told.first, told.repeated, told.asked, told.counted),
                (2, [4; 2], true, false)
            );
            let column = &told.columns[1];
            assert_eq!((column.before, column.steady), (Some(40.0), Some(11.0)));
        }
    }

    #[test]
    fn a_workload_without_any_figure_has_no_table() {
        let boots = [boot(0)];
        let variants = [testing::variant("a")];
        let comparison = compare(&[manifest()], &columns(&variants, &[&boots]), 0);
        assert_eq!(comparison.tables, []);
    }

    #[test]
    fn interrupted_and_superseded_boots_are_no_failures() {
        let interrupted = |replicate| Boot { outcome: Outcome::Interrupted, ..boot(replicate) };
        let boots = [
            interrupted(0),
            boot(0),
            failed(1, "no answer"),
            interrupted(1),
            failed(2, "no answer"),
            failed(2, "no answer either"),
        ];
        let variants = [testing::variant("a")];
        let mut columns = columns(&variants, &[&boots]);
        for superseded in [2, 4] {
            columns[0].boots[superseded].superseded = true;
        }
        let comparison = compare(&[], &columns, 0);
        let variant = &comparison.variants[0];
        assert_eq!(variant.complete, 1);
        let failed: Vec<_> = variant.failed.iter().map(|it| &*it.boot).collect();
        assert_eq!(failed, ["b5"]);
        let aside = variant.set_aside.iter().map(|it| (&*it.boot, it.done_again));
        let expected = [("b0", true), ("b2", false), ("b3", false), ("b4", true)];
        assert_eq!(aside.collect::<Vec<_>>(), expected);
    }

    proptest! {
        /// Neither the order of boots nor which seed had which luck changes a table.
        #[test]
        fn a_permutation_of_seeds_changes_nothing(
            (figures, order) in (2..6usize).prop_flat_map(|seeds| {
                let figures = prop::collection::vec((0.1..9.0_f64, 1..1000_i64, 1..1000_i64), seeds);
                (figures, Just((0..seeds as u32).collect::<Vec<_>>()).prop_shuffle())
            }),
            renumber in any::<bool>(),
        ) {
            let boot = |(seed, (time, count, local)): (u32, (f64, i64, i64))| {
                let mut boot = boot(seed);
                let count_all = [("numa_hint_faults", count), ("numa_hint_faults_local", local)];
                boot.chunks = vec![testing::chunk(0, "", &count_all)];
                boot.samples = vec![
                    sample("Elapsed", "", 0, time),
                    sample("instructions", "kernel", 0, count as f64),
                ];
                boot.usage = vec![model::Usage {
                    workload: "autonuma".into(),
                    iteration: 0,
                    user: time / 3.0,
                    system: time / 7.0,
                    elapsed: time,
                }];
                boot
            };
            let base: Vec<Boot> = (0..).zip(figures.clone()).map(boot).collect();
            let moved: Vec<Boot> = order
                .iter()
                .zip(0..)
                .map(|(&from, to)| {
                    boot((if renumber { to } else { from }, figures[from as usize]))
                })
                .collect();
            let experiment = experiment(Mode::Exact, figures.len() as u32, vec![manifest()]);
            let variants = ["a", "b"].map(testing::variant);
            let tables = |new: &[Boot]| {
                let variants = columns(&variants, &[&base, new]);
                super::compare(&Results { experiment: &experiment, variants }, 0, &Judging::default()).tables
            };
            let same = tables(&moved);
            prop_assert_eq!(&same, &tables(&base));
            let expected = |row: &Row| {
                let is_judged = row.statistic.is_mean() && row.metric == "instructions-kernel";
                is_judged.then_some(Verdict::Same)
            };
            prop_assert!(same[0].rows.iter().all(|row| row.verdicts[1] == expected(row)));
        }
    }
}
