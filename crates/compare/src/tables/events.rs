//! The table of events that perf counts: their rates per second by phase, with the spread over the intervals between
//! readings and over boots. Warm-up has rows of its own.

use std::collections::BTreeMap;

use kernelfiles::events::{ENABLED, RUNNING};
use model::{Boot, Chunk, Mode, PerfEvent, Source, WorkloadUse};
use stats::Summary;

use crate::figures::BootFigures;
use crate::figures::growth::lost_series;
use crate::figures::steady::{Part, Share, Steady};
use crate::verdicts::exact::{self, SeedRow};
use crate::verdicts::judge::judge;
use crate::{
    HostBlock, Judging, KeptBoot, Kind, Pool, Row, Spread, Statistic, Table, VariantBoots,
    Variation, Workload,
};

/// The suffix of the names of rows on warm-up.
const WARM_UP: &str = "-warm-up";
/// Intervals shorter than the longest one divided by this are left out of the spread. A cut makes such intervals.
const SHORTEST: f64 = 2.0;

/// The rates of `events` in the phases of `used`, the mean over complete boots. `beyond` is the same workload without
/// iterations of warm-up, and `steady` says which part of a phase is warm-up.
pub fn table(
    (used, beyond): (&WorkloadUse, Workload<'_>),
    events: &[String],
    columns: &[VariantBoots<'_>],
    steady: &Steady,
    mode: Mode,
    judging: &Judging,
) -> Table {
    if events.is_empty() {
        return Table::default();
    }
    let boots = columns.iter().flat_map(complete).filter(|it| judging.counts(it.boot.block));
    let part = steady.part(boots.flat_map(|kept| {
        let own = kept.boot.chunks.iter().filter(|it| is_steady(beyond, it));
        own.map(move |chunk| (kept, chunk))
    }));
    let share = |kept: KeptBoot<'_>, chunk: &Chunk| match part {
        Some(Part::Steady) => steady.share(kept, chunk).unwrap_or(Share::All),
        _ => Share::All,
    };
    let counted: Vec<Vec<Counted>> = columns
        .iter()
        .map(|column| complete(column).map(|it| boot(beyond, it, &share)).collect())
        .collect();
    let mut rows = Vec::new();
    let mut held = Vec::new();
    let mut phases = phases(&counted);
    let in_phases = phases.iter().filter(|(name, _)| !name.is_empty()).count();
    let is_outside = in_phases > 0 && in_phases < phases.len();
    phases.retain(|(name, _)| !(is_outside && name.is_empty()));
    for (phase, is_warm_up) in &phases {
        for event in events {
            let key =
                RowKey { phase: phase.clone(), is_warm_up: *is_warm_up, event: event.clone() };
            let row = row(&key, &counted);
            let figures = counted.iter().map(|boots| {
                boots.iter().map(|it| (it.boot, it.rates.get(&key).map(|it| it.mean())))
            });
            let is_known = row.values().any(|value| value.is_some());
            rows.push(match (is_known, mode) {
                (false, _) => row,
                (true, Mode::Exact) => {
                    held.push(SeedRow::listed(rows.len(), columns, figures));
                    row
                }
                (true, Mode::Measured) => {
                    let figures: Vec<_> = figures.map(BootFigures::of_boots).collect();
                    row.against_boots(&figures, judging)
                        .with_variation(counted.iter().map(|boots| variation(&key, boots)))
                }
            });
        }
    }
    match mode {
        Mode::Exact => exact::judge(&mut rows, &held, judging),
        Mode::Measured => judge(&mut rows, |_| false, judging),
    }
    let pooled = |boots: &Vec<Counted>| Pool {
        iterations: boots.iter().map(|boot| boot.iterations).collect(),
        warmup: used.warmup,
    };
    Table {
        workload: used.manifest.name.clone(),
        kind: Kind::Events,
        left_out: if is_outside { vec![String::new()] } else { Vec::new() },
        part: part.filter(|part| *part != Part::Steady),
        rows,
        pooled: counted.iter().map(pooled).collect(),
        ..Table::default()
    }
}

/// What identifies a row.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct RowKey {
    phase: String,
    is_warm_up: bool,
    event: String,
}

/// The rates of events in one boot.
struct Counted<'a> {
    boot: &'a Boot,
    iterations: usize,
    /// Phases in the order in which they began, each with its warm-up before it.
    phases: Vec<(String, bool)>,
    rates: BTreeMap<RowKey, Rate>,
}

/// The rate of an event in some chunks of a boot.
#[derive(Clone, Debug, Default)]
struct Rate {
    /// The number of events, scaled to the whole time ([`scaled`]).
    count: f64,
    seconds: f64,
    enabled: f64,
    running: f64,
    /// The length of each interval in seconds, and the rate in it.
    intervals: Vec<(f64, f64)>,
}

impl Rate {
    fn mean(&self) -> f64 {
        self.count / self.seconds
    }

    /// The rates in the intervals, without short ones.
    fn whole(&self) -> Vec<f64> {
        let longest = self.intervals.iter().map(|(length, _)| *length).fold(0.0, f64::max);
        let whole = self.intervals.iter().filter(|(length, _)| *length * SHORTEST >= longest);
        whole.map(|(_, rate)| *rate).collect()
    }

    /// The square of the standard error of the mean over intervals.
    fn error(&self) -> Option<f64> {
        let rates = self.whole();
        Some(Summary::of(&rates)?.stddev?.powi(2) / rates.len() as f64)
    }
}

/// The complete boots with all their series.
fn complete<'a>(column: &VariantBoots<'a>) -> impl Iterator<Item = KeptBoot<'a>> {
    column.complete_kept().filter(|it| !lost_series(it.boot)).copied()
}

/// Whether the phase and the iteration of a chunk of events count.
fn is_steady(beyond: Workload<'_>, chunk: &Chunk) -> bool {
    chunk.is_of(Source::Events) && is_of_phase(beyond, chunk) && beyond.used.counts(chunk.iteration)
}

fn is_of_phase(workload: Workload<'_>, chunk: &Chunk) -> bool {
    chunk.workload == workload.name() && !workload.leaves_out(&chunk.phase)
}

fn boot<'a>(
    beyond: Workload<'_>,
    kept: KeptBoot<'a>,
    share: &impl Fn(KeptBoot<'_>, &Chunk) -> Share,
) -> Counted<'a> {
    let boot = kept.boot;
    // There are phases even without a single event.
    let of_phase = boot.chunks.iter().filter(|chunk| is_of_phase(beyond, chunk));
    let mut phases: Vec<(String, bool)> = Vec::new();
    let mut iterations: Vec<u32> = of_phase.clone().map(|it| it.iteration).collect();
    iterations.retain(|iteration| beyond.used.counts(*iteration));
    iterations.sort_unstable();
    iterations.dedup();
    let mut rates: BTreeMap<RowKey, Option<Rate>> = BTreeMap::new();
    for chunk in of_phase {
        let parts = match beyond.used.counts(chunk.iteration) {
            false => vec![(true, 0..chunk.times.len())],
            true => match share(kept, chunk) {
                Share::All => vec![(false, 0..chunk.times.len())],
                Share::Nothing => vec![(true, 0..chunk.times.len())],
                Share::From { place, .. } => {
                    vec![(true, 0..place + 1), (false, place..chunk.times.len())]
                }
            },
        };
        for (is_warm_up, places) in parts {
            let phase = (chunk.phase.clone(), is_warm_up);
            if !phases.contains(&phase) {
                phases.push(phase);
            }
            let events = chunk.columns.iter().filter(|_| chunk.is_of(Source::Events));
            for event in events.filter(|it| PerfEvent::parse(&it.name).is_some()) {
                let (phase, event) = (chunk.phase.clone(), event.name.clone());
                let key = RowKey { phase, is_warm_up, event };
                let more = rate(chunk, &key.event, places.clone());
                let sum = rates.entry(key).or_insert_with(|| Some(Rate::default()));
                *sum = sum.take().zip(more).map(|(sum, more)| sum.with(more));
            }
        }
    }
    let known = rates.into_iter().filter_map(|(key, rate)| Some((key, rate?)));
    let rates = known.filter(|(_, rate)| rate.seconds > 0.0).collect();
    Counted { boot, iterations: iterations.len(), phases, rates }
}

impl Rate {
    fn with(mut self, more: Self) -> Self {
        self.count += more.count;
        self.seconds += more.seconds;
        self.enabled += more.enabled;
        self.running += more.running;
        self.intervals.extend(more.intervals);
        self
    }
}

/// The rate of an event from the first to the last of these readings of a chunk, and in each interval between
/// readings; `None` if it is missing at either end, or was never counted.
fn rate(chunk: &Chunk, event: &str, places: std::ops::Range<usize>) -> Option<Rate> {
    let column = |end: &str| {
        let mut columns = chunk.columns.iter();
        let named = |name: &str| name.strip_prefix(event) == Some(end);
        columns.find(|column| named(&column.name)).map(|column| &column.values)
    };
    let columns = [column("")?, column(ENABLED)?, column(RUNNING)?];
    let grown = |from: usize, to: usize| -> Option<[f64; 3]> {
        let mut grown = [0.0; 3];
        for (grown, values) in grown.iter_mut().zip(columns) {
            *grown = (*values.get(to)?)?.wrapping_sub((*values.get(from)?)?) as f64;
        }
        Some(grown)
    };
    let seconds = |from: usize, to: usize| {
        Some(chunk.times.get(to)?.saturating_sub(*chunk.times.get(from)?) as f64 / 1e9)
    };
    let (first, last) = (places.start, places.end.checked_sub(1)?);
    let [value, enabled, running] = grown(first, last)?;
    let count = scaled(value, enabled, running)?;
    let intervals = places.clone().zip(places.skip(1)).filter_map(|(from, to)| {
        let [value, enabled, running] = grown(from, to)?;
        let length = seconds(from, to).filter(|length| *length > 0.0)?;
        Some((length, scaled(value, enabled, running)? / length))
    });
    let intervals = intervals.collect();
    Some(Rate { count, seconds: seconds(first, last)?, enabled, running, intervals })
}

/// The estimated number of events over all the time, scaled as `perf stat` does. `None` if they were never counted.
fn scaled(value: f64, enabled: f64, running: f64) -> Option<f64> {
    (running > 0.0 && value >= 0.0).then(|| value * (enabled / running))
}

/// The phases of all boots in the order in which they began.
fn phases(counted: &[Vec<Counted>]) -> Vec<(String, bool)> {
    let mut phases: Vec<(String, bool)> = Vec::new();
    for phase in counted.iter().flatten().flat_map(|boot| &boot.phases) {
        if !phases.contains(phase) {
            phases.push(phase.clone());
        }
    }
    // The sort is stable, so phases keep their order within warm-up and within the rest.
    phases.sort_by_key(|(_, is_warm_up)| !is_warm_up);
    phases
}

/// The label of a row.
fn label(RowKey { phase, is_warm_up, event }: &RowKey) -> String {
    let phase = if phase.is_empty() { String::new() } else { format!("-{phase}") };
    format!("{event}{phase}{}", if *is_warm_up { WARM_UP } else { "" })
}

/// The variation of an event's rate between boots and within them, from interval to interval.
fn variation(key: &RowKey, boots: &[Counted]) -> Option<Variation> {
    let rates = boots.iter().filter_map(|it| Some((it.boot, it.rates.get(key)?)));
    Variation::within_hosts(rates.map(|(boot, rate)| (HostBlock::of(boot).host, rate.whole())))
}

fn row(key: &RowKey, counted: &[Vec<Counted>]) -> Row {
    let event = &key.event;
    let rates = |boots: &[Counted]| -> Vec<Rate> {
        boots.iter().filter_map(|boot| boot.rates.get(key).cloned()).collect()
    };
    let columns: Vec<Vec<Rate>> = counted.iter().map(|boots| rates(boots)).collect();
    let mean = |rates: &Vec<Rate>| {
        let means: Vec<f64> = rates.iter().map(Rate::mean).collect();
        Summary::of(&means).map(|it| it.amean)
    };
    let values: Vec<Option<f64>> = columns.iter().map(mean).collect();
    let largest = values.iter().flatten().copied().fold(0.0, f64::max);
    let decimals = match largest {
        100.0.. => 0,
        0.0 | 1.0.. => 2,
        _ => 4,
    };
    let is_time = PerfEvent::parse(event).is_some_and(PerfEvent::is_time);
    let unit = if is_time { "ns/s" } else { "/s" };
    let spreads = columns.iter().map(|rates| spread(rates));
    Row::new(&label(key), unit, None, Statistic::Amean, values, decimals).with_spreads(spreads)
}

fn spread(rates: &[Rate]) -> Option<Spread> {
    let means: Vec<f64> = rates.iter().map(Rate::mean).collect();
    let summary = Summary::of(&means)?;
    let share = |error: f64| Some(error.sqrt() / summary.amean).filter(|share| share.is_finite());
    let errors: Vec<f64> = rates.iter().filter_map(Rate::error).collect();
    let intervals = Summary::of(&errors).and_then(|errors| share(errors.amean));
    let boots = summary.stddev.and_then(|it| share(it.powi(2) / means.len() as f64));
    let sum = |of: fn(&Rate) -> f64| rates.iter().map(of).sum::<f64>();
    Some(Spread { intervals, boots, running: sum(|it| it.running) / sum(|it| it.enabled) })
}

#[cfg(test)]
mod tests {
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

    fn of(boots: &[&[Boot]], warmup: u32, events: &[&str]) -> Table {
        let variants = vec![variant(""); boots.len()];
        let used = WorkloadUse { warmup, ..used(manifest()) };
        let events: Vec<String> = events.iter().map(|event| (*event).to_owned()).collect();
        let columns = columns(&variants, boots);
        let (steady, judging) = (Steady::default(), Judging::default());
        table((&used, usual(&used)), &events, &columns, &steady, Mode::Measured, &judging)
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
        let expected =
            [("tlb:tlb_flush-run-warm-up", Some(900.0)), ("tlb:tlb_flush-run", Some(100.0))];
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
}
