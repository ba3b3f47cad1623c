use std::num::NonZeroU32;

use proptest::prelude::*;

use model::WorkloadReading;

use super::*;
use crate::testing::{boot, columns, executing, manifest, sample, used, variant};

fn table(used: &WorkloadUse, columns: &[VariantBoots<'_>], mode: Mode, judging: &Judging) -> Table {
    let (operations, warm_ups) = steady(used, columns, mode, judging);
    super::table(used, Reading::USUAL, columns, &operations, warm_ups, mode, judging)
}

fn boots(values: &[(&str, &str, f64)]) -> [Boot; 1] {
    let mut boot = boot(0);
    let samples = values.iter().map(|&(metric, label, value)| sample(metric, label, 0, value));
    boot.samples.extend(samples);
    [boot]
}

fn compared(base: &[Boot], new: &[Boot]) -> Table {
    let variants = ["base", "new"].map(variant);
    table(&used(manifest()), &columns(&variants, &[base, new]), Mode::Measured, &Judging::default())
}

fn names(table: &Table) -> Vec<String> {
    let rows = table.rows.iter();
    rows.map(|row| format!("{} {}", row.statistic, row.metric)).collect()
}

#[test]
fn what_the_first_iteration_lacks_has_its_place_among_the_others() {
    let order = |iterations: &[&[&str]]| {
        let mut boot = boot(0);
        for (number, labels) in (0..).zip(iterations) {
            let samples = labels.iter().map(|label| sample("Elapsed", label, number, 1.0));
            boot.samples.extend(samples);
        }
        let rows = names(&compared(&[boot], &[]));
        let of_mean = rows.iter().filter_map(|row| row.strip_prefix("Amean Elapsed-"));
        of_mean.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(order(&[&["1", "8"], &["1", "4", "8"]]), "1 4 8");
    assert_eq!(order(&[&["4", "8"], &["1", "8"], &["16"]]), "1 4 8 16");
    // No iteration has both 1 and 4.
    assert_eq!(order(&[&["1", "8"], &["4", "8"]]), "1 4 8");
    assert_eq!(order(&[&["z", "a"], &["z", "b", "a", "a", "c"]]), "z b a c");
    // An order of its own is kept.
    assert_eq!(order(&[&["8", "1", "8", "4"], &["1", "8"]]), "8 1 4");
}

#[test]
fn rows_come_statistic_by_statistic_in_the_order_of_the_manifest() {
    let base = boots(&[("Rate", "", 5.0), ("Elapsed", "B", 1.0)]);
    let new = boots(&[("Elapsed", "A", 1.0), ("Own", "", 1.0), ("Elapsed", "B", 1.0)]);
    let table = compared(&base, &new);
    assert_eq!(
        names(&table)[..9].join(", "),
        "Min Elapsed-B, Min Elapsed-A, Min Rate, Min Own, \
         Amean Elapsed-B, Amean Elapsed-A, Hmean Rate, Amean Own, Stddev Elapsed-B"
    );
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
    let base =
        boots(&[("Elapsed", "", 2.0), ("Elapsed", "", 4.0), ("Rate", "", 10.0), ("CPU", "", 1.0)]);
    let new =
        boots(&[("Elapsed", "", 1.0), ("Elapsed", "", 5.0), ("Rate", "", 20.0), ("CPU", "", 2.0)]);
    let table = compared(&base, &new);
    let gain = |statistic, metric: &str| row(&table, statistic, metric).gain(1);
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
    let cells = |row: usize| [0, 1].map(|it| (table.rows[row].value(it), table.rows[row].gain(it)));
    assert_eq!(cells(0), [(Some(2.0), Some(0.0)), (None, None)]);
    assert_eq!(cells(1), [(None, None), (Some(2.0), None)]);
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
    assert_eq!(table.rows[1].value(0), Some(4.0));
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
        table(&used(manifest), &columns(&variants, &[&base]), Mode::Measured, &Judging::default());
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
    let table = table(
        &used(manifest),
        &columns(&variants, &[&base, &base]),
        Mode::Measured,
        &Judging::default(),
    );
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
        Mode::Exact,
        &Judging::default(),
    );
    let names = names(&table);
    assert_eq!(
        names[5..9],
        ["BHmean.95 Rate", "Min Elapsed", "1st-qrtle Elapsed", "2nd-qrtle Elapsed"]
    );
    assert_eq!(names[names.len() - 3..], ["Best1%Mean Elapsed", "Luck Elapsed", "Luck Rate"]);
    let mean = row(&table, Statistic::Mean, "Elapsed");
    assert_eq!((mean.verdict(1), mean.beyond_luck(1)), (None, Some(false)));
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

fn judged(base: &[Boot], new: &[Boot]) -> Table {
    let variants = ["base", "new"].map(variant);
    table(&used(manifest()), &columns(&variants, &[base, new]), Mode::Exact, &Judging::default())
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
    let table = judged(&base, &[]);
    assert_eq!(names(&table)[..3], ["Min Elapsed", "Min Own", "Min instructions-total"]);
    let mean = row(&table, Statistic::Amean, "instructions-total");
    assert_eq!((&*mean.unit, mean.better, mean.decimals), (INSTRUCTIONS, Some(Better::Lower), 0));
    assert_eq!(mean.value(0), Some(1e9 + 1.5));
    let luck = row(&table, Statistic::Luck, "instructions-total");
    // The difference of a row with one side has no floor.
    assert_eq!((luck.value(0), luck.value(1), luck.better), (None, None, None));
}

/// Instructions outside phases come before, between and after phases.
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
    let table = judged(&boots, &[]);
    let mean = |metric| row(&table, Statistic::Amean, metric).value(0);
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
                let sample = sample("instructions", "kernel", 0, count);
                model::Sample { phase: phase.into(), ..sample }
            });
            boot.boot_index = seed as u32;
            boot.samples.extend(samples);
        }
        boots
    };
    let manifest = Manifest { preparation: vec!["fill".into()], ..manifest() };
    let variants = ["base", "new"].map(variant);
    let [base, new] = [boots(0.0), boots(50.0)];
    let columns = columns(&variants, &[&base[..], &new[..]]);
    let (used, judging) = (used(manifest), Judging::default());
    let table = table(&used, &columns, Mode::Exact, &judging);
    // It does not matter which phases tables of counters leave out.
    let own = WorkloadReading { left_out: Some(vec!["run".into()]), ..WorkloadReading::default() };
    let asked = Reading { workloads: [("autonuma".into(), own)].into(), ..Reading::default() };
    let (operations, warm_ups) = steady(&used, &columns, Mode::Exact, &judging);
    let other = super::table(&used, &asked, &columns, &operations, warm_ups, Mode::Exact, &judging);
    assert_eq!(table, other);
    let of = |phase: &str| {
        let name = format!("instructions-kernel-{phase}");
        let row = row(&table, Statistic::Amean, &name);
        (row.gain(1), row.beyond_luck(1), row.verdict(1))
    };
    let gain = 100.0 - 100.0 * 150.5 / 100.5;
    // Two seeds per side are too few for a list.
    assert_eq!(of("fill"), (Some(gain), Some(false), None));
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
        !row.cells.iter().any(|cell| matches!(cell.basis, crate::Basis::Exact { .. }))
            && !row.is_judged()
    };
    assert!(table.rows.iter().all(nothing));
}

#[test]
fn iterations_are_averaged_before_seeds() {
    let mut base = seeds(&[("Elapsed", "", &[1.0, 10.0])]);
    base[0].samples.push(sample("Elapsed", "", 1, 5.0));
    base[0].samples.extend([2.0, 6.0].map(|rate| sample("Rate", "", 0, rate)));
    base[1].samples.push(sample("Rate", "", 0, 0.0));
    let table = judged(&base, &[]);
    let value = |statistic, metric| row(&table, statistic, metric).value(0);
    assert_eq!(value(Statistic::Min, "Elapsed"), Some(3.0));
    assert_eq!(value(Statistic::Amean, "Elapsed"), Some(6.5));
    assert_eq!(value(Statistic::Max, "Rate"), Some(3.0));
    assert_eq!(value(Statistic::Min, "Rate"), Some(0.0));
    assert_eq!(table.pooled[0].iterations, [2, 1]);
}

#[test]
fn verdicts_rest_on_the_kernels_instructions_and_other_means_are_a_list() {
    let base = seeds(&[
        ("Elapsed", "", &[10.0, 10.1, 10.2, 10.1]),
        ("instructions", "kernel", &[1000.0, 1010.0, 1005.0, 1003.0]),
        ("instructions", "user", &[500.0, 500.0, 500.0, 500.0]),
    ]);
    let new = seeds(&[
        ("Elapsed", "", &[13.0, 13.1, 13.2, 13.1]),
        ("instructions", "kernel", &[1100.0, 1110.0, 1105.0, 1103.0]),
        ("instructions", "user", &[500.0, 500.0, 500.0, 500.0]),
    ]);
    use crate::Verdict::{Regression, Same};
    let table = judged(&base, &new);
    let of = |table: &Table, statistic, metric| {
        let row = row(table, statistic, metric);
        assert_eq!((row.verdict(0), row.floor(0), row.beyond_luck(0)), (None, None, None));
        (row.verdict(1), row.beyond_luck(1))
    };
    let mean = |metric| of(&table, Statistic::Amean, metric);
    assert_eq!(mean("instructions-kernel"), (Some(Regression), Some(true)));
    assert_eq!(mean("instructions-user"), (None, Some(false)));
    assert_eq!(mean("Elapsed"), (None, Some(true)));
    assert_eq!(of(&table, Statistic::Max, "instructions-kernel"), (None, None));
    let luck = row(&table, Statistic::Luck, "instructions-kernel").value(1);
    assert_eq!(luck, row(&table, Statistic::Amean, "instructions-kernel").floor(1));
    let back = judged(&base, &base);
    let kernel = of(&back, Statistic::Amean, "instructions-kernel");
    assert_eq!(kernel, (Some(Same), Some(false)));
}

/// One boot per seed, with these entries of a function, and `cost` instructions per entry.
fn entering(entries: [u64; 5], cost: u64) -> Vec<Boot> {
    let boot = |(seed, entries): (u32, u64)| {
        let kernel = cost * entries;
        let counted = sample(INSTRUCTIONS, KERNEL, 0, kernel as f64);
        Boot {
            samples: vec![model::Sample { phase: "run".into(), ..counted }],
            profiles: vec![executing(0, "run", &[("f", "", entries, kernel)])],
            ..boot(seed)
        }
    };
    (0..).zip(entries).map(boot).collect()
}

/// The mean of both sides' entries is 1900, so both sides differ from what they executed.
#[test]
fn equal_entries_are_those_of_the_explanation() {
    let base = entering([1000, 3000, 2000, 1500, 2500], 100);
    let new = entering([2400, 1400, 900, 2900, 1400], 103);
    let dear = entering([2400, 1400, 900, 2900, 1400], 200);
    let variants = ["base", "new", "dear"].map(variant);
    let columns = columns(&variants, &[&base, &new, &dear]);
    let explanation = crate::explain(&columns[0], &columns[1], &used(manifest()), 5, INSTRUCTIONS);
    let explained = explanation.section(Some("run")).unwrap().totals.equal.unwrap();
    let equal = |columns: &[VariantBoots<'_>]| {
        let table = table(&used(manifest()), columns, Mode::Exact, &Judging::default());
        row(&table, Statistic::Equal, "instructions-kernel-run-equal-entries").clone()
    };
    let pair = equal(&columns[..2]);
    assert_eq!([0, 1].map(|column| pair.value(column)), [explained.base, explained.new].map(Some));
    assert_eq!(explained.base, 190_000.0);
    assert_eq!(pair.gain(1).map(f64::round), Some(-3.0));
    // With a third variant only the percentages stay the same.
    let more = equal(&columns);
    assert!((more.gain(1).unwrap() - pair.gain(1).unwrap()).abs() < 1e-9);
    let share = |row: &Row| row.floor(1).unwrap() / row.value(0).unwrap();
    assert!(more.floor(1) > Some(0.0) && share(&more) < 0.01);
}

/// The loops have 800 of 1000 instructions, later 400 of 800, and the kernel is compared without them if that changes
/// the verdict.
#[test]
fn a_verdict_that_rests_on_copy_loops_is_said() {
    let boots = |loops: u64, others: u64| -> Vec<Boot> {
        let of = |seed| Boot {
            samples: vec![model::Sample {
                phase: "run".into(),
                ..sample(INSTRUCTIONS, KERNEL, 0, (loops + others) as f64)
            }],
            profiles: vec![executing(
                0,
                "run",
                &[("clear_page_orig", "", 1, loops), ("f", "", 1, others)],
            )],
            ..boot(seed)
        };
        (0..5).map(of).collect()
    };
    let base = boots(800, 200);
    let between = |base: &[Boot], new: &[Boot]| {
        let table = judged(base, new);
        Some(row(&table, Statistic::Amean, "instructions-kernel-run").without_loops(1)?.share)
    };
    let share = |loops, others| between(&base, &boots(loops, others));
    assert_eq!(share(400, 400), Some(1.0), "fewer with, more without");
    assert_eq!(share(400, 200), Some(0.0), "fewer with, the same without");
    assert_eq!(share(800, 201), None, "the same with and without");
    assert_eq!(between(&boots(100, 900), &boots(90, 800)), None, "fewer with and without");
    assert_eq!(share(790, 100), Some(-0.5), "11 % fewer with, far more without");
    assert_eq!(share(700, 100), Some(-0.5), "half of the change is theirs");
    // What is left varies with the seed.
    let varied = |loops, others: u64| -> Vec<Boot> {
        let of = |seed: usize| boots(loops, others + 60 * (seed as u64 % 2)).swap_remove(seed);
        (0..5).map(of).collect()
    };
    let table = judged(&varied(800, 200), &varied(500, 190));
    let total = row(&table, Statistic::Amean, "instructions-kernel-run");
    assert!(total.verdict(1) == Some(crate::Verdict::Improvement));
    assert!(total.without_loops(1).unwrap().is_luck);
}

#[test]
fn without_two_seeds_on_both_sides_nothing_is_decided() {
    let count = |values| seeds(&[("instructions", "kernel", values)]);
    let [one, two] = [&[1.0][..], &[7.0, 7.0]].map(count);
    for (base, new) in [(&one, &one), (&one, &two), (&two, &vec![])] {
        let table = judged(base, new);
        let mean = row(&table, Statistic::Amean, "instructions-kernel");
        assert_eq!((mean.verdict(0), mean.verdict(1)), (None, Some(crate::Verdict::Undecided)));
        assert_eq!((mean.floor(1), mean.beyond_luck(1)), (None, None));
    }
}

/// A column that lacks a seed is compared with the baseline's other seeds, and its gain is that of these seeds.
#[test]
fn a_column_that_lacks_a_seed_is_compared_with_the_same_seeds() {
    let count = |values| seeds(&[("instructions", "kernel", values)]);
    let base = count(&[100.0, 300.0, 101.0, 102.0]);
    let (whole, mut part) =
        (count(&[200.0, 600.0, 202.0, 204.0]), count(&[150.0, 0.0, 151.0, 152.0]));
    part.remove(1);
    let variants = ["base", "whole", "part"].map(variant);
    let columns = columns(&variants, &[&base, &whole, &part]);
    let of = |columns: &[VariantBoots<'_>]| {
        let columns = crate::pairs::paired(columns);
        let table = table(&used(manifest()), &columns, Mode::Exact, &Judging::default());
        row(&table, Statistic::Amean, "instructions-kernel").clone()
    };
    let all = of(&columns);
    assert_eq!([0, 1, 2].map(|column| all.base(column)), [150.75, 150.75, 101.0].map(Some));
    assert_eq!(all.value(2), Some(151.0));
    let alone = of(&[columns[0].clone(), columns[2].clone()]);
    assert_eq!([0, 1].map(|column| alone.value(column)), [101.0, 151.0].map(Some));
    assert_eq!((alone.cells[1].base, alone.gain(1)), (None, all.gain(2)));
    assert_eq!(all.verdict(2), Some(crate::Verdict::Regression));
    // The other seeds of the baseline scatter too much.
    assert_eq!(all.verdict(1), Some(crate::Verdict::Undecided));
}

/// Boots of two iterations of values that come up to 40 times in a row, and begin with a warm-up: whole
/// numbers, whose sums are exact.
fn repeated() -> impl Strategy<Value = Vec<Boot>> {
    let run = (prop_oneof![1..12_i32, Just(7), Just(300)], 1..40_u32);
    let iteration = prop::collection::vec(run, 4..12);
    let boots = prop::collection::vec(prop::collection::vec(iteration, 2), 4);
    (boots, 0..60_i32).prop_map(|(boots, warm)| {
        let of = |(number, runs): (u32, Vec<Vec<(i32, u32)>>)| {
            let samples = runs.into_iter().zip(0..).flat_map(|(runs, iteration)| {
                let runs = [(60 + warm, 3)].into_iter().chain(runs);
                runs.map(move |(value, count)| model::Sample {
                    count: NonZeroU32::new(count).unwrap(),
                    ..sample("Elapsed", "", iteration, f64::from(value))
                })
            });
            Boot { samples: samples.collect(), block: number, ..boot(number) }
        };
        (0..).zip(boots).map(of).collect()
    })
}

/// The same boots with a sample for each value.
fn expanded(boots: &[Boot]) -> Vec<Boot> {
    let of = |boot: &Boot| {
        let each = |it: &model::Sample| {
            let one = model::Sample { count: model::ONCE, ..it.clone() };
            std::iter::repeat_n(one, it.count.get() as usize)
        };
        Boot { samples: boot.samples.iter().flat_map(each).collect(), ..boot.clone() }
    };
    boots.iter().map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn repeated_values_have_the_figures_of_each_by_itself(base in repeated(), new in repeated()) {
        let all = [expanded(&base), expanded(&new)];
        let (found, expected) = (compared(&base, &new), compared(&all[0], &all[1]));
        prop_assert_eq!(&found.warm_ups, &expected.warm_ups);
        prop_assert_eq!(&found.oddities, &expected.oddities);
        prop_assert_eq!(names(&found), names(&expected));
        for (one, other) in found.rows.iter().zip(&expected.rows) {
            prop_assert_eq!(one.verdict(1), other.verdict(1));
            for (a, b) in one.values().zip(other.values()) {
                let near = a.zip(b).map_or(a == b, |(a, b)| (a - b).abs() <= 1e-12 * a.abs());
                prop_assert!(near, "{}: {a:?}, not {b:?}", one.statistic);
            }
        }
    }
}
