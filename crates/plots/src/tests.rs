//! The plot data of synthetic boots.

use std::num::NonZeroU32;

use compare::{KeptBoot, VariantBoots};
use model::{
    Better, Boot, BootId, Chunk, Column, Experiment, Manifest, Metric, Millis, Mode, ONCE, Outcome,
    Reading, Sample, Variant, WorkloadUse,
};
use proptest::prelude::*;

use super::*;

fn boot(boot_index: u32) -> Boot {
    Boot { boot_index, outcome: Outcome::Complete, ..Boot::default() }
}

fn sample(metric: &str, label: &str, iteration: u32, value: f64) -> Sample {
    Sample { iteration, label: label.into(), ..Sample::new("autonuma", metric, value) }
}

fn plotted(boots: &[&[Boot]]) -> Plots {
    plotted_on(boots, 0)
}

fn plotted_on(boots: &[&[Boot]], baseline: usize) -> Plots {
    let elapsed = Metric {
        name: "Elapsed".into(),
        unit: "s".into(),
        better: Some(Better::Lower),
        ..Metric::default()
    };
    let manifest =
        Manifest { name: "autonuma".into(), metrics: vec![elapsed], ..Manifest::default() };
    let experiment = Experiment {
        mode: Mode::Measured,
        workloads: vec![WorkloadUse::new(manifest, 1, Millis(1000))],
        boots: 2,
        ..Experiment::default()
    };
    let named = |number: usize| Variant { name: number.to_string(), ..Variant::default() };
    let variants: Vec<Variant> = (0..boots.len()).map(named).collect();
    let mut numbers = (0..).map(BootId);
    let mut kept = |boot| KeptBoot { id: numbers.next().unwrap(), superseded: false, boot };
    let columns = variants.iter().zip(boots).map(|(variant, boots)| VariantBoots {
        variant,
        boots: boots.iter().map(&mut kept).collect(),
    });
    let variants = columns.collect();
    let results = Results { experiment: &experiment, reading: Reading::USUAL, variants };
    plots(&results, baseline, &Judging::default()).remove(0)
}

/// A series of one source, a value a second from second `begin` on.
fn series(source: &str, phase: &str, begin: u64, named: &[(&str, &[i64])]) -> Chunk {
    let seconds = begin..begin + named[0].1.len() as u64;
    let column = |&(name, values): &(&str, &[i64])| {
        Column::new(name, values.iter().copied().map(Some).collect())
    };
    Chunk {
        workload: "autonuma".into(),
        iteration: 0,
        phase: phase.into(),
        source: source.into(),
        times: seconds.map(|second| second * 1_000_000_000).collect(),
        columns: named.iter().map(column).collect(),
    }
}

fn panel<'a>(plots: &'a Plots, title: &str) -> &'a Panel {
    plots.panels.iter().find(|panel| panel.title == title).unwrap()
}

#[test]
fn every_sample_stands_with_its_boot_and_its_mean() {
    let mut boots =
        [boot(0), Boot { outcome: Outcome::Failed("no answer".into()), ..boot(1) }, boot(2)];
    for (place, values) in [(0, [1.0, 3.0]), (1, [7.0, 7.0]), (2, [5.0, f64::NAN])] {
        boots[place].samples.extend(values.map(|value| sample("Elapsed", "A", 0, value)));
    }
    let plots = plotted(&[&boots]);
    let [scatter] = &plots.scatters[..] else { panic!("{plots:?}") };
    assert_eq!((&*scatter.name, &*scatter.unit, plots.scatters_left_out), ("Elapsed-A", "s", 0));
    let dots: Vec<_> = scatter.columns[0]
        .iter()
        .map(|it| (it.boot, it.mean, it.dots.iter().map(|dot| dot.value).collect::<Vec<_>>()))
        .collect();
    assert_eq!(dots, [(BootId(0), Some(2.0), vec![1.0, 3.0]), (BootId(2), None, vec![5.0])]);
    assert!(scatter.distributions.is_empty());
}

#[test]
fn many_samples_have_a_distribution_and_outliers_are_marked() {
    let mut base = boot(0);
    let values = (0..19).map(f64::from).chain([18.0, 900.0]);
    base.samples = values.map(|value| sample("Elapsed", "", 0, value)).collect();
    let new = Boot { samples: vec![sample("Elapsed", "", 0, 4.0)], ..boot(0) };
    let plots = plotted(&[&[base], &[new]]);
    let scatter = &plots.scatters[0];
    let far = scatter.columns[0][0].dots.iter().filter(|dot| dot.outlier);
    assert_eq!(far.map(|dot| dot.value).collect::<Vec<_>>(), [900.0]);
    let steps = &scatter.distributions[0];
    assert_eq!((steps.len(), steps[0], steps[19]), (20, [0.0, 1.0 / 21.0], [900.0, 1.0]));
    assert_eq!(steps[18], [18.0, 20.0 / 21.0]);
    assert_eq!(scatter.distributions[1], [[4.0, 1.0]]);
}

#[test]
fn the_baseline_comes_first() {
    let measured = |value| [Boot { samples: vec![sample("Elapsed", "", 0, value)], ..boot(0) }];
    let plots = plotted_on(&[&measured(1.0), &measured(2.0)], 1);
    let means = plots.scatters[0].columns.iter().map(|boots| boots[0].mean);
    assert_eq!(means.collect::<Vec<_>>(), [Some(2.0), Some(1.0)]);
}

#[test]
fn series_begin_with_their_iteration_and_phases_follow() {
    let mut base = boot(0);
    base.chunks = vec![
        series("meminfo", "", 100, &[("MemFree", &[2048, 1024])]),
        series("meminfo", "run", 101, &[("MemFree", &[1024, 1024, 3072])]),
        series("workload", "run", 102, &[("speed", &[1_500_000, 2_000_000])]),
    ];
    let plots = plotted(&[&[base]]);
    let free = &panel(&plots, "Free memory").curves[0];
    assert_eq!(free.runs, [[[0.0, 2.0], [1.0, 1.0], [2.0, 1.0], [3.0, 3.0]]]);
    assert!(free.chief && free.boot == BootId(0));
    assert_eq!(panel(&plots, "speed").curves[0].runs, [[[2.0, 1.5], [3.0, 2.0]]]);
    assert_eq!(plots.phases, [[PhaseTimes { name: "run".into(), begin: 1.0, end: 3.0 }]]);
}

#[test]
fn missing_values_split_a_curve() {
    let mut base = boot(0);
    base.chunks = vec![series("meminfo", "", 0, &[("MemFree", &[1024, 0, 2048, 3072])])];
    base.chunks[0].columns[0].values[1] = None;
    let plots = plotted(&[&[base]]);
    let runs = &panel(&plots, "Free memory").curves[0].runs;
    assert_eq!(*runs, [vec![[0.0, 1.0]], vec![[2.0, 2.0], [3.0, 3.0]]]);
}

#[test]
fn shares_are_of_growth() {
    let mut base = boot(0);
    let faults: [(&str, &[i64]); 2] = [
        ("numa_hint_faults", &[100, 200, 200, 204]),
        ("numa_hint_faults_local", &[90, 100, 100, 103]),
    ];
    base.chunks = vec![series("vmstat", "", 0, &faults)];
    let plots = plotted(&[&[base]]);
    let runs = &panel(&plots, "NUMA hinting faults that were local").curves[0].runs;
    assert_eq!(*runs, [vec![[0.5, 10.0]], vec![[2.5, 75.0]]]);
}

#[test]
fn counters_that_differ_beyond_their_boots_are_drawn_once() {
    let grown = |migrated: i64, noise: i64| {
        let vmstat: [(&str, &[i64]); 5] = [
            ("numa_pages_migrated", &[7, 7 + migrated]),
            ("pgmigrate_success", &[0, migrated]),
            ("nr_anon_pages", &[500, 500 + migrated / 2]),
            ("pgfault", &[0, noise]),
            ("pgfree", &[0, 1000]),
        ];
        Boot { chunks: vec![series("vmstat", "", 0, &vmstat)], ..boot(0) }
    };
    let base = [grown(1000, 50), grown(1010, 900)];
    let new = [grown(5000, 70), grown(5020, 800)];
    let plots = plotted(&[&base, &new]);
    let titles: Vec<_> = plots.panels.iter().map(|panel| &*panel.title).collect();
    assert_eq!(titles, ["numa_pages_migrated", "nr_anon_pages"]);
    let migrated = panel(&plots, "numa_pages_migrated");
    assert_eq!((migrated.growth, migrated.unit), (true, "pages"));
    assert!(!migrated.what.is_empty());
    assert_eq!(migrated.curves[0].runs, [[[0.0, 0.0], [1.0, 1000.0]]]);
    let groups: Vec<_> = migrated.curves.iter().map(|curve| curve.group).collect();
    assert_eq!(groups, [0, 0, 1, 1]);
    let level = panel(&plots, "nr_anon_pages");
    assert_eq!((level.growth, level.unit), (false, "pages"));
    assert_eq!(level.curves[3].runs, [[[0.0, 500.0], [1.0, 3010.0]]]);
}

#[test]
fn nodes_stand_side_by_side_for_each_variant() {
    let placed = |first: i64| {
        let shares: [(&str, &[i64]); 2] =
            [("memory-node0", &[first, 500_000]), ("memory-node1", &[0, 500_000])];
        let one: [(&str, &[i64]); 1] = [("node0 MemFree", &[1024, 2048])];
        let chunks = vec![series("workload", "", 0, &shares), series("node-meminfo", "", 0, &one)];
        [Boot { chunks, ..boot(0) }]
    };
    let plots = plotted(&[&placed(1_000_000), &placed(900_000)]);
    let [panels] = &plots.nodes[..] else { panic!("{plots:?}") };
    let starts = panels.iter().map(|panel| {
        let starts = panel.curves.iter().map(|curve| (curve.group, curve.runs[0][0][1]));
        (&*panel.title, starts.collect::<Vec<_>>())
    });
    assert_eq!(
        starts.collect::<Vec<_>>(),
        [
            ("memory by node", vec![(0, 1.0), (1, 0.0)]),
            ("memory by node", vec![(0, 0.9), (1, 0.0)]),
        ]
    );
    assert!(plots.panels.iter().all(|panel| panel.title != "memory-node0"));
}

#[test]
fn a_large_experiment_stays_small() {
    let ramp: Vec<i64> = (0..5000).map(|step| step * 31 % 977).collect();
    let boots: Vec<Boot> = (0..40)
        .map(|number| {
            let factor = |name: i64| (name + 1) * (1 + number / 20);
            let named: Vec<(String, Vec<i64>)> = (0..30)
                .map(|name| {
                    let values = ramp.iter().map(|it| it * factor(name)).collect();
                    (format!("counter{name}"), values)
                })
                .collect();
            let vmstat: Vec<(&str, &[i64])> =
                named.iter().map(|(name, values)| (&**name, &**values)).collect();
            let nodes: [(&str, &[i64]); 2] = [("memory-node0", &ramp), ("memory-node1", &ramp)];
            let samples = (0..60u32).flat_map(|label| {
                (0..20).map(move |value| Sample {
                    label: label.to_string(),
                    ..sample("Elapsed", "", value, f64::from(value))
                })
            });
            Boot {
                chunks: vec![series("vmstat", "", 0, &vmstat), series("workload", "", 0, &nodes)],
                samples: samples.collect(),
                ..boot(number as u32)
            }
        })
        .collect();
    let plots = plotted(&[&boots[..20], &boots[20..]]);
    assert_eq!((plots.scatters.len(), plots.scatters_left_out), (24, 36));
    let drawn = |group| plots.panels[0].curves.iter().filter(move |it| it.group == group);
    assert!((8..=9).contains(&drawn(0).count()) && drawn(1).filter(|it| it.chief).count() == 1);
    assert_eq!(plots.iterations_left_out[0], 20 - drawn(0).count());
    let panels = plots.panels.iter().chain(plots.nodes.iter().flatten());
    let points: usize =
        panels.flat_map(|panel| &panel.curves).flat_map(|it| &it.runs).map(Vec::len).sum();
    assert!((10_000..=200_000).contains(&points), "{points}");
    let boots = plots.scatters.iter().flat_map(|it| &it.columns).flatten();
    let dots: usize = boots.map(|boot| boot.dots.len()).sum();
    assert!((10_000..=40_000).contains(&dots), "{dots}");
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
                runs.map(move |(value, count)| Sample {
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
        let each = |it: &Sample| {
            let one = Sample { count: ONCE, ..it.clone() };
            std::iter::repeat_n(one, it.count.get() as usize)
        };
        Boot { samples: boot.samples.iter().flat_map(each).collect(), ..boot.clone() }
    };
    boots.iter().map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn repeated_values_have_the_plots_of_each_by_itself(base in repeated(), new in repeated()) {
        prop_assert_eq!(plotted(&[&base, &new]), plotted(&[&expanded(&base), &expanded(&new)]));
    }
}
