//! Writes one row for each value of a series.

use std::collections::BTreeMap;
use std::io::{self, Write};

use kernelfiles::catalogue;
use model::{Boot, Chunk, Source, TOOL_SOURCES, WORKLOAD_SOURCE};

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

/// The column after those of the machine.
pub const UNIT: Column = Column::nullable("unit", Kind::Text);

/// The sources whose counters are in the catalogue.
const CATALOGUED: [&str; 4] = [
    Source::Vmstat.name(),
    Source::Zoneinfo.name(),
    Source::NodeVmstat.name(),
    Source::NodeNumastat.name(),
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
        let divisor = if of_program { MILLION } else { 1.0 };
        for column in &chunk.columns {
            let unit = unit_of(&chunk.source, &column.name);
            for (time, value) in chunk.times.iter().zip(&column.values) {
                let cells = [
                    Cell::text(&chunk.workload),
                    Cell::Integer(chunk.iteration.into()),
                    Cell::text(&chunk.phase),
                    Cell::Integer(span),
                    Cell::Text(&chunk.source),
                    Cell::Text(&column.name),
                    Cell::Integer(i64::try_from(*time).unwrap_or(i64::MAX)),
                    value.map_or(Cell::Null, |value| Cell::Number(value as f64 / divisor)),
                ];
                rows.row(&cells, &[Cell::text(unit)])?;
            }
        }
    }
    Ok(())
}

/// The unit of a counter; empty where the catalogue does not know it. The names of counters of nodes and zones begin
/// with these.
fn unit_of(source: &str, counter: &str) -> &'static str {
    let name = counter.rsplit(' ').next().filter(|_| CATALOGUED.contains(&source));
    name.and_then(catalogue::find).map_or("", |known| &known.unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_the_catalogue_have_units() {
        for (source, counter, unit) in [
            ("vmstat", "numa_pte_updates", "PTEs"),
            ("zoneinfo", "0 Normal nr_free_pages", "pages"),
            ("vmstat", "unheard_of", ""),
            ("workload", "numa_pte_updates", ""),
        ] {
            assert_eq!(unit_of(source, counter), unit, "{source} {counter}");
        }
    }
}
