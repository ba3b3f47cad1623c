//! Exports kept boots as tidy data for other tools: one row for each value, with all its attributes, as Parquet, CSV
//! or JSON. `docs/export.md` defines the columns. The caller chooses the boots. Each is written at once, so only one
//! is in memory.

mod cell;
mod columnar;
mod identity;
mod samples;
mod series;
mod sink;

use std::io::{self, Write};

use model::{Experiment, Kept};

use cell::Cell;
use identity::{BOOT, MACHINE};
use sink::Sink;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Apache Parquet, compressed with zstd.
    Parquet,
    /// RFC 4180, with a header line. Missing values are empty.
    Csv,
    /// An array of objects, one on each line. Missing values are null.
    Json,
}

/// The kind of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Samples of metrics, and the times of iterations.
    Samples,
    /// Values of counters over time.
    Series,
}

/// Which rows of a boot are written; all by default.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only rows of this workload.
    pub workload: Option<String>,
    /// Only rows of this phase.
    pub phase: Option<String>,
}

impl Filter {
    fn wants(&self, workload: &str, phase: &str) -> bool {
        self.workload.as_ref().is_none_or(|wanted| wanted == workload)
            && self.phase.as_ref().is_none_or(|wanted| wanted == phase)
    }
}

/// A file that is being written.
pub struct Export<W: Write + Send> {
    rows: Rows,
    filter: Filter,
    sink: Sink<W>,
}

impl<W: Write + Send> Export<W> {
    /// Begins a file. Fails when `out` fails.
    pub fn new(format: Format, rows: Rows, filter: Filter, out: W) -> io::Result<Self> {
        let columns = match rows {
            Rows::Samples => [&BOOT, samples::COLUMNS, &MACHINE, &[samples::COUNT]].concat(),
            Rows::Series => [&BOOT, series::COLUMNS, &MACHINE, &[series::UNIT]].concat(),
        };
        Ok(Self { rows, filter, sink: Sink::new(format, columns, out)? })
    }

    /// Writes the rows of a boot. Fails when the output fails.
    pub fn boot(&mut self, experiment: &Experiment, kept: &Kept) -> io::Result<()> {
        let (id, boot) = (kept.id.to_string(), &kept.boot);
        let mut rows = BootRows {
            sink: &mut self.sink,
            before: identity::boot(experiment, kept, &id),
            after: identity::machine(experiment, boot),
            cells: Vec::new(),
        };
        match self.rows {
            Rows::Samples => samples::write(&mut rows, &self.filter, experiment, boot),
            Rows::Series => series::write(&mut rows, &self.filter, boot),
        }
    }

    /// Ends the file, which cannot be read without this. Fails when the output fails.
    pub fn finish(self) -> io::Result<()> {
        self.sink.finish()
    }
}

/// Writes rows that begin and end with what identifies a boot and its machine.
struct BootRows<'a, W: Write + Send> {
    sink: &'a mut Sink<W>,
    before: [Cell<'a>; BOOT.len()],
    after: [Cell<'a>; MACHINE.len()],
    /// The row that is made, kept to reuse its memory.
    cells: Vec<Cell<'a>>,
}

impl<'a, W: Write + Send> BootRows<'a, W> {
    /// Writes a row: `own` stands before the cells of the machine, `last` after them.
    fn row(&mut self, own: &[Cell<'a>], last: &[Cell<'a>]) -> io::Result<()> {
        self.cells.clear();
        for part in [&self.before, own, &self.after, last] {
            self.cells.extend(part);
        }
        self.sink.row(&self.cells)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use model::{Boot, BootId, Execution, Host, Provenance};
    use model::{Bytes, Chunk, Column, Machine, Topology};

    use super::*;

    const FORMATS: [Format; 3] = [Format::Parquet, Format::Csv, Format::Json];

    fn experiment() -> Experiment {
        Experiment {
            name: "numa".into(),
            machine: Machine::new(Topology::even(1, Bytes::mib(128), 1).unwrap()),
            boots: 1,
            ..Experiment::default()
        }
    }

    /// A boot with a series of this many incompressible values.
    fn boot(values: u64) -> Boot {
        let noise = |value: u64| value.wrapping_mul(0x9e37_79b9_7f4a_7c15).cast_signed();
        let column =
            Column::new("numa_pte_updates", (0..values).map(|value| Some(noise(value))).collect());
        let chunk = Chunk {
            workload: "autonuma".into(),
            iteration: 0,
            phase: String::new(),
            source: "vmstat".into(),
            times: (0..values).collect(),
            columns: vec![column],
        };
        Boot { chunks: vec![chunk], ..Boot::default() }
    }

    /// Counts the bytes written, up to a limit.
    #[derive(Clone)]
    struct Out {
        bytes: Arc<Mutex<usize>>,
        limit: usize,
    }

    impl Out {
        fn with_limit(limit: usize) -> Self {
            Self { bytes: Arc::default(), limit }
        }
    }

    impl Write for Out {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut count = self.bytes.lock().unwrap();
            *count += bytes.len();
            match *count > self.limit {
                true => Err(io::ErrorKind::BrokenPipe.into()),
                false => Ok(bytes.len()),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn write(format: Format, boots: u64, out: Out) -> io::Result<()> {
        let mut export = Export::new(format, Rows::Series, Filter::default(), out.clone())?;
        for number in (1..=boots).map(i64::try_from).map(Result::unwrap) {
            let kept = Kept { id: BootId(number), superseded: false, boot: boot(100_000) };
            export.boot(&experiment(), &kept)?;
            // Half of the data is written: at most one group of rows is in memory.
            let least = 50_000 * 8 * number as usize;
            assert!(*out.bytes.lock().unwrap() > least, "{format:?}");
        }
        export.finish()
    }

    #[test]
    fn rows_are_not_kept() {
        for format in FORMATS {
            write(format, 2, Out::with_limit(usize::MAX)).unwrap();
        }
    }

    /// One column of the exported rows of the boot's series.
    fn column(boot: &Boot, name: &str) -> Vec<String> {
        let mut out = Vec::new();
        let mut export =
            Export::new(Format::Csv, Rows::Series, Filter::default(), &mut out).unwrap();
        let kept = Kept { id: BootId(1), superseded: false, boot: boot.clone() };
        export.boot(&experiment(), &kept).unwrap();
        export.finish().unwrap();
        let text = String::from_utf8(out).unwrap();
        let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let names = lines.next().unwrap();
        let place = names.iter().position(|known| *known == name).unwrap();
        lines.map(|cells| cells[place].to_owned()).collect()
    }

    #[test]
    fn spans_of_a_repeated_phase_are_distinguished() {
        let mut boot = boot(2);
        let chunk = boot.chunks[0].clone();
        let of = |phase: &str, source: &str| Chunk {
            phase: phase.into(),
            source: source.into(),
            ..chunk.clone()
        };
        let phases = [("", "vmstat"), ("", "meminfo"), ("run", "vmstat"), ("", "vmstat")];
        boot.chunks = phases.map(|(phase, source)| of(phase, source)).to_vec();
        boot.chunks.push(Chunk { iteration: 1, ..of("", "vmstat") });
        let spans: Vec<_> = column(&boot, "span").into_iter().step_by(2).collect();
        assert_eq!(spans, ["0", "0", "0", "1", "0"]);
    }

    #[test]
    fn figures_of_programs_have_their_own_unit() {
        let mut boot = boot(0);
        let chunk = boot.chunks[0].clone();
        let values = vec![Column { name: "x".into(), values: vec![Some(12_340_000)] }];
        boot.chunks = ["vmstat", "workload", "mpstat", "iostat", "top", "vmstat-tool"]
            .map(|source| Chunk {
                source: source.into(),
                times: vec![0],
                columns: values.clone(),
                ..chunk.clone()
            })
            .to_vec();
        let values = column(&boot, "value").into_iter().map(|value| value.parse().unwrap());
        let values: Vec<f64> = values.collect();
        assert_eq!(values, [12_340_000.0, 12.34, 12.34, 12.34, 12.34, 12.34]);
    }

    #[test]
    fn the_export_says_what_executed_a_boot_and_where() {
        let host = |digit: &str| Host {
            id: digit.repeat(64),
            cpu: "EPYC, 9354".into(),
            ..Host::default()
        };
        let of = |execution, host| {
            let mut boot = boot(1);
            let emulator = "QEMU 10.0.2".to_owned();
            boot.facts.provenance =
                Provenance { execution, emulator, host, ..Provenance::default() };
            ["emulated", "execution", "emulator", "host"].map(|name| column(&boot, name).remove(0))
        };
        let native = of(Some(Execution::Native), host("1"));
        assert_eq!(native, ["false", "native", "QEMU 10.0.2", &"1".repeat(64)]);
        assert_eq!(of(Some(Execution::Kvm), host("2"))[..2], ["false", "kvm"]);
        assert_eq!(of(Some(Execution::Tcg), host("2"))[..2], ["true", "tcg"]);
        assert_eq!(of(None, Host::default()), ["", "", "QEMU 10.0.2", ""]);
    }

    #[test]
    fn an_output_that_fails_keeps_its_error() {
        for format in FORMATS {
            for limit in [0, 1 << 19] {
                let error = write(format, 2, Out::with_limit(limit)).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::BrokenPipe, "{format:?}, {limit}");
            }
        }
    }
}
