//! stutter and stutterp: the time to map, touch and unmap memory under memory pressure.
//!
//! Files: `mmap-latency.log` and `mmap-latency-WORKERS.log`. Each line has a number of measurements and their average
//! in nanoseconds.

use std::num::NonZeroU32;

use model::{Better, Metric, Rows, count};

use super::gather::{FOUR, Gather, MAX_SAMPLES, metric, primary};
use super::{Logs, Unreadable};

/// The largest number of digits of a refused number that are printed.
const MAX_DIGITS: usize = 24;

/// Reads the logs of stutterp; false if there are none. The unit is a whole microsecond, as in mmtests' tables, whose
/// label says milliseconds.
pub fn read(logs: &Logs, gather: &mut Gather) -> Result<bool, Unreadable> {
    gather.metric(primary(metric("mmap", "us", Better::Lower, FOUR)));
    let files = logs.between("mmap-latency-", ".log");
    for (workers, text) in &files {
        let file = format!("mmap-latency-{workers}.log");
        add(&file, text, workers, |nanoseconds| (nanoseconds / 1000) as f64, gather)?;
    }
    Ok(!files.is_empty())
}

/// Reads the log of stutter, in milliseconds; false if there is none.
pub fn read_old(logs: &Logs, gather: &mut Gather) -> Result<bool, Unreadable> {
    const FILE: &str = "mmap-latency.log";
    let Some(text) = logs.text(FILE) else { return Ok(false) };
    let milliseconds = primary(metric("mmap", "ms", Better::Lower, FOUR));
    gather.metric(Metric { rows: Rows::Distribution, ..milliseconds });
    add(FILE, &text, "", |nanoseconds| nanoseconds as f64 / 1e6, gather)?;
    Ok(true)
}

/// Adds each average with the number of its measurements. Fails if that number is invalid, or larger than in any run.
fn add(
    file: &str,
    text: &str,
    label: &str,
    unit: fn(u64) -> f64,
    gather: &mut Gather,
) -> Result<(), Unreadable> {
    let mut bad = 0;
    for (place, line) in text.lines().enumerate() {
        let Some((measurements, nanoseconds)) = read_line(line) else {
            bad += 1;
            continue;
        };
        let refused = |why| Unreadable::Line { file: file.to_owned(), line: place + 1, why };
        let count = measurements.parse().ok().filter(|it: &NonZeroU32| it.get() <= MAX_SAMPLES);
        let count = count.ok_or_else(|| {
            let digits =
                measurements.get(..MAX_DIGITS).map_or(measurements.into(), |it| format!("{it}..."));
            refused(format!("{digits} measurements, not 1 to {MAX_SAMPLES}"))
        })?;
        let added = gather.samples(count, "mmap", label, unit(nanoseconds));
        added.map_err(|error| refused(error.to_string()))?;
    }
    if bad > 0 {
        gather.remark(format!("not read: {} of latencies", count(bad, "line")));
    }
    Ok(())
}

/// The digits of the number of measurements, and the average.
fn read_line(line: &str) -> Option<(&str, u64)> {
    let (measurements, nanoseconds) = line.split_once(' ')?;
    let is_number = !measurements.is_empty() && measurements.bytes().all(|it| it.is_ascii_digit());
    Some((measurements, nanoseconds.trim().parse().ok()?)).filter(|_| is_number)
}
