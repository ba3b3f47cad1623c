//! Writes one row for each value of a metric, with its count, and three for the times of each iteration.

use std::io::{self, Write};
use std::num::NonZeroU32;

use model::{Better, Experiment, INSTRUCTIONS, Kept, Metric, Mode, ONCE, Sample, Usage};

use crate::Filter;
use crate::cell::{Cell, Column, Kind};
use crate::identity;
use crate::sink::Sink;

/// The columns between those of the boot and those of its machine.
pub const COLUMNS: &[Column] = &[
    Column::full("kind", Kind::Text),
    Column::full("workload", Kind::Text),
    Column::full("iteration", Kind::Integer),
    Column::nullable("phase", Kind::Text),
    Column::full("metric", Kind::Text),
    Column::nullable("label", Kind::Text),
    Column::nullable("unit", Kind::Text),
    Column::nullable("better", Kind::Text),
    Column::nullable("value", Kind::Number),
    Column::nullable("ended", Kind::Integer),
];

/// The column after those of the machine.
pub const COUNT: Column = Column::full("count", Kind::Integer);

const METRIC: &str = "metric";
const DURATION: &str = "duration";
const SECONDS: &str = "s";

/// Writes the rows of a boot.
pub fn write<W: Write + Send>(
    sink: &mut Sink<W>,
    filter: &Filter,
    experiment: &Experiment,
    kept: &Kept,
) -> io::Result<()> {
    let (id, boot) = (kept.id.to_string(), &kept.boot);
    let before = identity::boot(experiment, kept, &id);
    let after = identity::machine(experiment, boot);
    let mut row = |cells: [Cell<'_>; 10], count: NonZeroU32| {
        let count = Cell::Integer(count.get().into());
        let cells = before.iter().chain(&cells).chain(&after).chain([&count]);
        let cells: Vec<Cell<'_>> = cells.copied().collect();
        sink.row(&cells)
    };
    let samples = boot.samples.iter();
    for sample in samples.filter(|sample| filter.wants(&sample.workload, &sample.phase)) {
        let Sample { workload, iteration, phase, metric, label, value, count, ended } = sample;
        let (unit, better) = meaning(experiment, workload, metric);
        let cells = [
            Cell::Text(METRIC),
            Cell::Text(workload),
            Cell::Integer((*iteration).into()),
            Cell::text(phase),
            Cell::Text(metric),
            Cell::text(label),
            Cell::text(unit),
            better.map_or(Cell::Null, |better| Cell::Text(better.name())),
            Cell::number(*value),
            ended.map_or(Cell::Null, |ended| Cell::Integer(ended.cast_signed())),
        ];
        row(cells, *count)?;
    }
    for usage in boot.usage.iter().filter(|usage| filter.wants(&usage.workload, "")) {
        let Usage { workload, iteration, user, system, elapsed } = usage;
        for (metric, value) in [("User", user), ("System", system), ("Elapsed", elapsed)] {
            let cells = [
                Cell::Text(DURATION),
                Cell::Text(workload),
                Cell::Integer((*iteration).into()),
                Cell::Null,
                Cell::Text(metric),
                Cell::Null,
                Cell::Text(SECONDS),
                Cell::Text(Better::Lower.name()),
                Cell::number(*value),
                Cell::Null,
            ];
            row(cells, ONCE)?;
        }
    }
    Ok(())
}

/// The unit and the good direction of a metric, if its workload declares it.
fn meaning<'a>(
    experiment: &'a Experiment,
    workload: &str,
    metric: &str,
) -> (&'a str, Option<Better>) {
    let used = experiment.workloads.iter().find(|used| used.manifest.name == workload);
    let mut declared = used.into_iter().flat_map(|used| &used.manifest.metrics);
    match declared.find(|it| it.name == metric) {
        Some(Metric { unit, better, .. }) => (unit, *better),
        None if experiment.mode == Mode::Exact && metric == INSTRUCTIONS => {
            (INSTRUCTIONS, Some(Better::Lower))
        }
        None => ("", None),
    }
}
