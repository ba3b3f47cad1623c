use proptest::prelude::*;

use super::*;
use crate::testing::{boot, columns, experiment, failed, manifest, sample};

fn compare(
    workloads: &[model::Manifest],
    variants: &[VariantBoots<'_>],
    baseline: usize,
) -> Comparison {
    let experiment = experiment(Mode::Measured, 1, workloads.to_vec());
    let results =
        Results { experiment: &experiment, reading: Reading::USUAL, variants: variants.to_vec() };
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
        Results { experiment: &experiment, reading: Reading::USUAL, variants }.has_two_sides()
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
    assert_eq!((failed.boot, &*failed.outcome), (BootId(2), outcome));
    let max = comparison.tables[0].rows.last().unwrap();
    assert_eq!((max.value(0), max.value(1)), (Some(2.0), None));
}

#[test]
fn a_failed_workload_loses_only_its_own_rows() {
    let other = model::Manifest { name: "other".into(), ..manifest() };
    let of = |boot_index: u32, workloads: &[&str]| {
        let mut boot = Boot { block: boot_index, ..boot(boot_index) };
        for workload in workloads {
            let elapsed = 10.0 + f64::from(boot_index);
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
    let whole: Vec<Boot> = (0..2).map(|boot_index| of(boot_index, &both)).collect();
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
    assert_eq!(tables(&found, "other")[0].rows[0].value(1), Some(10.0));
    let rows = &tables(&found, "other")[0].rows;
    let max = rows.iter().find(|row| row.statistic == Statistic::Max).unwrap();
    assert_eq!((max.value(0), max.value(1)), (Some(12.0), Some(12.0)));
    let VariantOutcomes { complete, failed, .. } = &found.variants[0];
    assert!(*complete == 3 && failed[0].partial);
}

#[test]
fn declared_warm_up_is_left_out_in_both_modes() {
    let of = |boot_index: u32| {
        let mut boot = Boot { block: boot_index, ..boot(boot_index) };
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
        let results = Results { experiment: &experiment, reading: Reading::USUAL, variants };
        let tables = super::compare(&results, 0, &Judging::default()).tables;
        let [metrics, durations, counters] = &tables[..] else { panic!("{tables:?}") };
        assert!(tables.iter().all(|table| table.pooled[0].iterations == [2; 3]));
        let value = |table: &Table, statistic, metric: &str| {
            let mut rows = table.rows.iter();
            rows.find(|row| row.statistic == statistic && row.metric == metric).unwrap().value(1)
        };
        assert_eq!(value(metrics, Statistic::Amean, "Elapsed"), Some(11.0));
        assert_eq!(value(durations, Statistic::Amean, "Elapsed"), Some(22.0));
        assert_eq!(value(counters, Statistic::Amean, "Major Faults"), Some(22.0));
        let [told] = &metrics.warm_ups[..] else { panic!("{:?}", metrics.warm_ups) };
        assert_eq!((told.first, told.repeated, told.asked, told.counted), (2, [4; 2], true, false));
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
    let interrupted = |boot_index| Boot { outcome: Outcome::Interrupted, ..boot(boot_index) };
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
    let failed: Vec<_> = variant.failed.iter().map(|it| it.boot).collect();
    assert_eq!(failed, [BootId(5)]);
    let aside = variant.set_aside.iter().map(|it| (it.boot.0, it.done_again));
    let expected = [(0, true), (2, false), (3, false), (4, true)];
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
            super::compare(&Results { experiment: &experiment, reading: Reading::USUAL, variants }, 0, &Judging::default()).tables
        };
        let same = tables(&moved);
        prop_assert_eq!(&same, &tables(&base));
        let expected = |row: &Row| {
            let is_judged = row.statistic.is_mean() && row.metric == "instructions-kernel";
            is_judged.then_some(Verdict::Same)
        };
        prop_assert!(same[0].rows.iter().all(|row| row.verdict(1) == expected(row)));
    }
}
