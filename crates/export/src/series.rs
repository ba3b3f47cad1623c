//! Writes one row for each value of a series.

use std::collections::BTreeMap;
use std::io::{self, Write};

use model::{Boot, Chunk, TOOL_SOURCES, WORKLOAD_SOURCE};

use crate::cell::{Cell, Column, Kind};
use crate::{BootRows, Filter};

/// The columns between those of the boot and those of the machine.
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

/// The store keeps values of workloads and tools in millionths.
const MILLION: f64 = 1e6;

/// Writes the rows of a boot, ordered by span, then by counter, then by time.
pub fn write<'a, W: Write + Send>(
    rows: &mut BootRows<'a, W>,
    filter: &Filter,
    boot: &'a Boot,
) -> io::Result<()> {
    let mut spans = BTreeMap::<_, i64>::new();
    let wanted = |chunk: &&Chunk| filter.wants(&chunk.workload, &chunk.phase);
    for chunk in boot.chunks.iter().filter(wanted) {
        // A span without a number would seem to continue until its phase occurs again.
        let next = spans
            .entry((&chunk.workload, chunk.iteration, &chunk.phase, &chunk.source))
            .or_default();
        let span = *next;
        *next += 1;
        let of_program = chunk.source == WORKLOAD_SOURCE || TOOL_SOURCES.contains(&&*chunk.source);
        let unit = if of_program { MILLION } else { 1.0 };
        for column in &chunk.columns {
            for (time, value) in chunk.times.iter().zip(&column.values) {
                let cells = [
                    Cell::text(&chunk.workload),
                    Cell::Integer(chunk.iteration.into()),
                    Cell::text(&chunk.phase),
                    Cell::Integer(span),
                    Cell::Text(&chunk.source),
                    Cell::Text(&column.name),
                    Cell::Integer(i64::try_from(*time).unwrap_or(i64::MAX)),
                    value.map_or(Cell::Null, |value| Cell::Number(value as f64 / unit)),
                ];
                rows.row(&cells, &[])?;
            }
        }
    }
    Ok(())
}
