//! Writes one row for each sample, with its count, and three rows for the times of each iteration.

use std::io::{self, Write};

use model::{Better, Boot, Experiment, INSTRUCTIONS, Metric, Mode, ONCE, Sample, Usage};

use crate::cell::{Cell, Column, Kind};
use crate::{BootRows, Filter};

/// The columns between those of the boot and those of the machine.
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

/// Writes the samples of a boot, and the times of its iterations.
pub fn write<'a, W: Write + Send>(
    rows: &mut BootRows<'a, W>,
    filter: &Filter,
    experiment: &'a Experiment,
    boot: &'a Boot,
) -> io::Result<()> {
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
        rows.row(&cells, &[Cell::Integer(count.get().into())])?;
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
            rows.row(&cells, &[Cell::Integer(ONCE.get().into())])?;
        }
    }
    Ok(())
}

/// The unit and the better direction of a metric, if its workload declares it.
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
