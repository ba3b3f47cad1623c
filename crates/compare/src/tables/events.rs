//! The table of events that perf counts, by phase: their numbers per iteration, then their rates per second, with the
//! spread over the intervals between readings and over boots. Warm-up has rows of its own. Under emulation a rate is
//! one of emulated time, so it is printed and not compared.

use std::collections::{BTreeMap, BTreeSet};

use kernelfiles::events::{ENABLED, RUNNING};
use model::{Boot, Chunk, Execution, Mode, PerfEvent, Source, WorkloadUse};
use stats::Summary;

use super::counters::left_out;
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
/// The suffix of the names of rows per second.
const PER_SECOND: &str = "/s";
/// Intervals shorter than the longest one divided by this are left out of the spread. A cut makes such intervals.
const SHORTEST: f64 = 2.0;

/// The numbers and rates of `events` in the phases of `used`, the mean over complete boots. `beyond` is the same workload
/// without iterations of warm-up, and `steady` says which part of a phase is warm-up.
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
    let phases = phases(&counted);
    let is_emulated = counted
        .iter()
        .flatten()
        .any(|it| it.boot.facts.provenance.execution == Some(Execution::Tcg));
    let keys = phases.iter().flat_map(|(phase, is_warm_up)| {
        let key = move |event: &String| RowKey {
            phase: phase.clone(),
            is_warm_up: *is_warm_up,
            event: event.clone(),
        };
        [Figure::Number, Figure::Rate]
            .into_iter()
            .flat_map(move |figure| events.iter().map(move |event| (key(event), figure)))
    });
    for (key, figure) in keys {
        let row = row(&key, figure, &counted);
        let figures = counted.iter().map(|boots| {
            boots.iter().map(|it| (it.boot, it.rates.get(&key).and_then(|it| figure.of(it))))
        });
        let is_known = row.values().any(|value| value.is_some());
        let is_compared =
            is_known && (figure == Figure::Number || mode.is_measured() && !is_emulated);
        rows.push(match (is_compared, mode) {
            // The rate says that nothing is known.
            (false, _) if !is_known && figure == Figure::Number => continue,
            (false, _) => row,
            (true, Mode::Exact) => {
                held.push(SeedRow::listed(rows.len(), columns, figures));
                row
            }
            (true, Mode::Measured) => {
                let figures: Vec<_> = figures.map(BootFigures::of_boots).collect();
                let row = row.against_boots(&figures, judging);
                match figure {
                    Figure::Number => row,
                    Figure::Rate => {
                        row.with_variation(counted.iter().map(|boots| variation(&key, boots)))
                    }
                }
            }
        });
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
        left_out: left_out(beyond, columns),
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

/// What a row has of an event.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Figure {
    /// Its number per iteration.
    Number,
    /// Its rate per second.
    Rate,
}

impl Figure {
    fn of(self, rate: &Rate) -> Option<f64> {
        match self {
            Self::Number => rate.per_iteration(),
            Self::Rate => Some(rate.mean()),
        }
    }
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
    iterations: BTreeSet<u32>,
    /// Whether some chunk is counted only from a moment within its phase.
    is_part: bool,
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

    /// The number of events in an iteration; `None` if parts of phases were counted.
    fn per_iteration(&self) -> Option<f64> {
        (!self.is_part).then(|| self.count / self.iterations.len() as f64)
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
        let parts: Vec<(bool, std::ops::Range<usize>)> = match beyond.used.counts(chunk.iteration) {
            false => vec![(true, 0..chunk.times.len())],
            true => match share(kept, chunk) {
                Share::All => vec![(false, 0..chunk.times.len())],
                Share::Nothing => vec![(true, 0..chunk.times.len())],
                Share::From { place, .. } => {
                    vec![(true, 0..place + 1), (false, place..chunk.times.len())]
                }
            },
        };
        let is_part = parts.len() > 1;
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
                let more = more.map(|more| Rate { is_part, ..more });
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
        self.iterations.extend(more.iterations);
        self.is_part |= more.is_part;
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
    let (iterations, seconds) = (BTreeSet::from([chunk.iteration]), seconds(first, last)?);
    Some(Rate { count, iterations, is_part: false, seconds, enabled, running, intervals })
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

fn row(key: &RowKey, figure: Figure, counted: &[Vec<Counted>]) -> Row {
    let event = &key.event;
    let rates = |boots: &[Counted]| -> Vec<Rate> {
        boots.iter().filter_map(|boot| boot.rates.get(key).cloned()).collect()
    };
    let columns: Vec<Vec<Rate>> = counted.iter().map(|boots| rates(boots)).collect();
    let mean = |rates: &Vec<Rate>| {
        let means: Option<Vec<f64>> = rates.iter().map(|it| figure.of(it)).collect();
        Summary::of(&means?).map(|it| it.amean)
    };
    let values: Vec<Option<f64>> = columns.iter().map(mean).collect();
    let largest = values.iter().flatten().copied().fold(0.0, f64::max);
    let decimals = match largest {
        100.0.. => 0,
        0.0 | 1.0.. => 2,
        _ => 4,
    };
    let is_time = PerfEvent::parse(event).is_some_and(PerfEvent::is_time);
    let (unit, suffix) = match (figure, is_time) {
        (Figure::Number, true) => ("ns", ""),
        (Figure::Number, false) => ("", ""),
        (Figure::Rate, true) => ("ns/s", PER_SECOND),
        (Figure::Rate, false) => ("/s", PER_SECOND),
    };
    let spreads = columns.iter().map(|rates| spread(rates, figure));
    Row::new(&(label(key) + suffix), unit, None, Statistic::Amean, values, decimals)
        .with_spreads(spreads)
}

fn spread(rates: &[Rate], figure: Figure) -> Option<Spread> {
    let means: Option<Vec<f64>> = rates.iter().map(|it| figure.of(it)).collect();
    let means = means?;
    let summary = Summary::of(&means)?;
    let share = |error: f64| Some(error.sqrt() / summary.amean).filter(|share| share.is_finite());
    let errors: Vec<f64> = rates.iter().filter_map(Rate::error).collect();
    let intervals = Summary::of(&errors).and_then(|errors| share(errors.amean));
    let intervals = intervals.filter(|_| figure == Figure::Rate);
    let boots = summary.stddev.and_then(|it| share(it.powi(2) / means.len() as f64));
    let sum = |of: fn(&Rate) -> f64| rates.iter().map(of).sum::<f64>();
    Some(Spread { intervals, boots, running: sum(|it| it.running) / sum(|it| it.enabled) })
}

#[cfg(test)]
mod tests;
