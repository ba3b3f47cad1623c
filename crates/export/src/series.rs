//! Writes one row for each value of a counter at a time.

use std::collections::BTreeMap;
use std::io::{self, Write};

use model::{Chunk, Experiment, Kept, TOOL_SOURCES, WORKLOAD_SOURCE};

use crate::Filter;
use crate::cell::{Cell, Column, Kind};
use crate::identity;
use crate::sink::Sink;

/// The columns between those of the boot and those of its machine.
pub const COLUMNS: &[Column] = &[
    Column::nullable("workload", Kind::Text),
    Column::full("iteration", Kind::Integer),
    Column::nullable("phase", Kind::Text),
    Column::full("span", Kind::Integer),
    Column::full("source", Kind::Text),
    Column::full("counter", Kind::Text),
    Column::full("time", Kind::Integer),
    Column::nullable("value", Kind::Number),
];

/// Values of workloads and tools are stored in millionths.
const MILLION: f64 = 1e6;

/// Writes the rows of a boot by span, then by counter, then by time.
pub fn write<W: Write + Send>(
    sink: &mut Sink<W>,
    filter: &Filter,
    experiment: &Experiment,
    kept: &Kept,
) -> io::Result<()> {
    let (id, boot) = (kept.id.to_string(), &kept.boot);
    let before = identity::boot(experiment, kept, &id);
    let after = identity::machine(experiment, boot);
    let mut cells: Vec<Cell<'_>> = Vec::new();
    let mut spans = BTreeMap::<_, i64>::new();
    let wanted = |chunk: &&Chunk| filter.wants(&chunk.workload, &chunk.phase);
    for chunk in boot.chunks.iter().filter(wanted) {
        // Without a number, a span would seem to continue until the phase occurs again.
        let next = spans
            .entry((&chunk.workload, chunk.iteration, &chunk.phase, &chunk.source))
            .or_default();
        let span = *next;
        *next += 1;
        let of_program = chunk.source == WORKLOAD_SOURCE || TOOL_SOURCES.contains(&&*chunk.source);
        let unit = if of_program { MILLION } else { 1.0 };
        for column in &chunk.columns {
            for (time, value) in chunk.times.iter().zip(&column.values) {
                cells.clear();
                cells.extend(before);
                cells.extend([
                    Cell::text(&chunk.workload),
                    Cell::Integer(chunk.iteration.into()),
                    Cell::text(&chunk.phase),
                    Cell::Integer(span),
                    Cell::Text(&chunk.source),
                    Cell::Text(&column.name),
                    Cell::Integer(i64::try_from(*time).unwrap_or(i64::MAX)),
                    value.map_or(Cell::Null, |value| Cell::Number(value as f64 / unit)),
                ]);
                cells.extend(after);
                sink.row(&cells)?;
            }
        }
    }
    Ok(())
}
