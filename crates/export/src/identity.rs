//! Columns that all rows of a boot share.

use chrono::DateTime;
use model::{Boot, Execution, Experiment, Kept, Provenance};

use crate::cell::{Cell, Column, Kind};

/// The outcome of a boot that does not count because it is or was repeated.
const SUPERSEDED: &str = "superseded";

/// The columns that identify the boot of a row; they come first.
pub const BOOT: [Column; 7] = [
    Column::full("experiment", Kind::Text),
    Column::full("variant", Kind::Text),
    Column::full("boot", Kind::Text),
    Column::full("replicate", Kind::Integer),
    Column::full("block", Kind::Integer),
    Column::nullable("started", Kind::Time),
    Column::full("outcome", Kind::Text),
];

/// The columns that describe the machine; they come last.
pub const MACHINE: [Column; 10] = [
    Column::nullable("release", Kind::Text),
    Column::nullable("cpus", Kind::Integer),
    Column::nullable("nodes", Kind::Integer),
    Column::nullable("memory", Kind::Integer),
    Column::full("mode", Kind::Text),
    Column::nullable("emulated", Kind::Flag),
    Column::nullable("execution", Kind::Text),
    Column::nullable("emulator", Kind::Text),
    Column::nullable("host", Kind::Text),
    Column::nullable("host_cpu", Kind::Text),
];

/// The cells of [`BOOT`].
pub fn boot<'a>(experiment: &'a Experiment, kept: &'a Kept, id: &'a str) -> [Cell<'a>; 7] {
    let Kept { superseded, boot, .. } = kept;
    [
        Cell::Text(&experiment.name),
        Cell::Text(&boot.variant),
        Cell::Text(id),
        Cell::Integer(boot.boot_index.into()),
        Cell::Integer(boot.block.into()),
        started(boot.started),
        Cell::Text(if *superseded { SUPERSEDED } else { boot.outcome.name() }),
    ]
}

/// The cells of [`MACHINE`].
pub fn machine<'a>(experiment: &Experiment, boot: &'a Boot) -> [Cell<'a>; 10] {
    let facts = &boot.facts;
    let Provenance { execution, emulator, host, .. } = &facts.provenance;
    [
        Cell::text(&facts.release),
        Cell::amount(facts.cpus.into()),
        Cell::amount(facts.nodes.into()),
        Cell::amount(facts.memory),
        Cell::Text(experiment.mode.name()),
        execution.map_or(Cell::Null, |it| Cell::Flag(it == Execution::Tcg)),
        Cell::text(facts.provenance.execution_name()),
        Cell::text(emulator),
        Cell::text(&host.id),
        Cell::text(&host.cpu),
    ]
}

/// A time that all formats can represent; no value if unknown.
fn started(seconds: u64) -> Cell<'static> {
    let known = i64::try_from(seconds).ok().filter(|seconds| *seconds != 0);
    // Other programs support times up to the year 9999, or up to 2262 if they use nanoseconds.
    known.filter(|seconds| *seconds < i64::MAX / 1_000_000_000).map_or(Cell::Null, Cell::Time)
}

/// A time as text (RFC 3339): `2026-03-07T12:00:00Z`.
pub fn rfc3339(seconds: i64) -> String {
    let time = DateTime::from_timestamp(seconds, 0).unwrap_or_default();
    time.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}
