use model::Column;

use super::*;
use crate::testing::{boot as complete, columns, manifest, used, usual, variant};

const SECOND: u64 = 1_000_000_000;

/// Readings every second: value, and milliseconds enabled and running.
fn chunk(iteration: u32, phase: &str, event: &str, readings: &[Option<[i64; 3]>]) -> Chunk {
    let column = |end: &str, place: usize, unit: i64| {
        let values = readings.iter().map(|reading| Some(reading.as_ref()?[place] * unit));
        Column::new(format!("{event}{end}"), values.collect())
    };
    Chunk {
        workload: "autonuma".into(),
        iteration,
        phase: phase.into(),
        source: "events".into(),
        times: (0..readings.len() as u64).map(|at| at * SECOND).collect(),
        columns: vec![
            column("", 0, 1),
            column(ENABLED, 1, 1_000_000),
            column(RUNNING, 2, 1_000_000),
        ],
    }
}

/// A chunk with a reading each second of an event that is counted all the time.
fn counting(iteration: u32, phase: &str, values: &[i64]) -> Chunk {
    let reading = |(at, value): (i64, &i64)| Some([*value, 1000 * at, 1000 * at]);
    let readings: Vec<_> = (0..).zip(values).map(reading).collect();
    chunk(iteration, phase, "tlb:tlb_flush", &readings)
}

/// The table with the rows per second alone, which have the names of the others.
fn of(boots: &[&[Boot]], warmup: u32, events: &[&str]) -> Table {
    let mut table = whole(boots, warmup, events);
    table.rows.retain(|row| row.metric.ends_with(PER_SECOND));
    table.rows.iter_mut().for_each(|row| row.metric.truncate(row.metric.len() - PER_SECOND.len()));
    table
}

fn whole(boots: &[&[Boot]], warmup: u32, events: &[&str]) -> Table {
    let variants = vec![variant(""); boots.len()];
    let used = WorkloadUse { warmup, ..used(manifest()) };
    let events: Vec<String> = events.iter().map(|event| (*event).to_owned()).collect();
    let columns = columns(&variants, boots);
    let (steady, judging) = (Steady::default(), Judging::default());
    table((&used, usual(&used, &columns)), &events, &columns, &steady, Mode::Measured, &judging)
}

fn with(number: u32, chunks: Vec<Chunk>) -> Boot {
    Boot { chunks, block: number, ..complete(number) }
}

fn near(found: Option<f64>, expected: f64) {
    assert!((found.unwrap() / expected - 1.0).abs() < 1e-12, "{found:?}, not {expected}");
}

#[test]
fn values_are_scaled_as_perf_does_it() {
    // Counted 250 ms of 1 s: perf prints 4 x 300 and (25.00%).
    near(scaled(300.0, 1e9, 25e7), 1200.0);
    assert_eq!(scaled(7.0, 3.0, 3.0), Some(7.0));
    assert_eq!((scaled(0.0, 1e9, 0.0), scaled(-1.0, 1.0, 1.0)), (None, None));
}

#[test]
fn rates_are_over_a_phase_and_spreads_over_intervals_and_boots() {
    let boots = [
        with(0, vec![counting(0, "run", &[0, 90, 200, 300])]),
        with(1, vec![counting(0, "run", &[0, 130, 250, 360])]),
    ];
    let table = of(&[&boots], 0, &["tlb:tlb_flush"]);
    let row = &table.rows[0];
    assert_eq!(row.metric, "tlb:tlb_flush-run");
    // By hand: 100 and 120 a second.
    near(row.value(0), 110.0);
    let spread = row.cells[0].spread.unwrap();
    // Both boots have deviations -10, 10 and 0: variance 100, of the mean 100 / 3.
    near(spread.intervals, (100.0f64 / 3.0).sqrt() / 110.0);
    // Standard deviation of 100 and 120 over the root of 2: 10.
    near(spread.boots, 10.0 / 110.0);
    assert_eq!(spread.running, 1.0);
}

#[test]
fn multiplexed_values_are_scaled_by_phase_and_interval() {
    let readings = [[100, 0, 0], [150, 1000, 500], [170, 2000, 1500]].map(Some);
    let boots = [with(0, vec![chunk(0, "run", "cycles", &readings)])];
    let table = of(&[&boots], 0, &["cycles"]);
    // 70 counted in 1.5 of 2 s.
    near(table.rows[0].value(0), 70.0 * 2.0 / 1.5 / 2.0);
    let spread = table.rows[0].cells[0].spread.unwrap();
    near(Some(spread.running), 0.75);
    // Intervals: 100 and 20 a second.
    near(spread.intervals, 40.0 / (70.0 / 1.5));
}

#[test]
fn warm_up_has_rows_of_its_own() {
    let chunks = vec![counting(0, "run", &[0, 900]), counting(1, "run", &[900, 1000])];
    let table = of(&[&[with(0, chunks)]], 1, &["tlb:tlb_flush"]);
    let rows: Vec<_> = table.rows.iter().map(|row| (&*row.metric, row.value(0))).collect();
    let expected = [("tlb:tlb_flush-run-warm-up", Some(900.0)), ("tlb:tlb_flush-run", Some(100.0))];
    assert_eq!(rows, expected);
}

#[test]
fn what_is_missing_is_not_zero() {
    let whole = with(0, vec![counting(0, "run", &[0, 5])]);
    let gap = [Some([0, 0, 0]), Some([9, 1000, 1000]), None];
    let lost = with(0, vec![chunk(0, "run", "tlb:tlb_flush", &gap)]);
    let events = ["tlb:tlb_flush", "cycles"];
    let table = of(&[&[whole], &[lost]], 0, &events);
    let values: Vec<Vec<_>> = table.rows.iter().map(|row| row.values().collect()).collect();
    assert_eq!(values, [[Some(5.0), None], [None, None]]);
    assert_eq!(table.rows[1].metric, "cycles-run");
}

#[test]
fn time_outside_phases_is_left_out_beside_phases() {
    let chunks = vec![counting(0, "", &[0, 5]), counting(0, "run", &[5, 9])];
    let named = |chunks: &[Chunk]| {
        let table = of(&[&[with(0, chunks.to_vec())]], 0, &["tlb:tlb_flush"]);
        let names = table.rows.into_iter().map(|row| row.metric).collect::<Vec<_>>();
        (names, table.left_out)
    };
    assert_eq!(named(&chunks), (vec!["tlb:tlb_flush-run".into()], vec![String::new()]));
    assert_eq!(named(&chunks[..1]), (vec!["tlb:tlb_flush".into()], vec![]));
}

#[test]
fn short_intervals_before_cuts_are_left_out_of_the_spread() {
    let mut chunk = counting(0, "run", &[0, 100, 200, 290]);
    chunk.times[3] = 2 * SECOND + SECOND / 10;
    let spread = of(&[&[with(0, vec![chunk])]], 0, &["tlb:tlb_flush"]).rows[0].cells[0].spread;
    assert_eq!(spread.unwrap().intervals, Some(0.0));
}

#[test]
fn numbers_per_iteration_come_first_and_emulated_rates_are_not_compared() {
    let boot = |number, scale: i64| {
        let chunks = (0..2).map(|iteration| counting(iteration, "run", &[0, 20, 30 * scale]));
        with(number, chunks.collect())
    };
    let boots = |execution: Execution, scale| {
        let mut boots: Vec<Boot> =
            (0..4).map(|number| boot(number, scale + i64::from(number))).collect();
        boots.iter_mut().for_each(|it| it.facts.provenance.execution = Some(execution));
        boots
    };
    for (execution, is_compared) in [(Execution::Kvm, true), (Execution::Tcg, false)] {
        let (base, new) = (boots(execution, 10), boots(execution, 40));
        let rows = whole(&[&base, &new], 0, &["tlb:tlb_flush"]).rows;
        let [number, rate] = &rows[..] else { panic!("{rows:?}") };
        let names = [&*number.metric, &*rate.metric];
        assert_eq!(names, ["tlb:tlb_flush-run", "tlb:tlb_flush-run/s"]);
        // Two seconds each: 30 x 11.5 an iteration on average.
        near(number.value(0), 345.0);
        near(rate.value(0), 172.5);
        assert!(number.evidence(1).is_some());
        assert_eq!(rate.evidence(1).is_some(), is_compared);
    }
}
