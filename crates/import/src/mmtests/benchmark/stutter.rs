//! stutter and stutterp: how long it takes to map, touch and unmap memory while others use it up.
//!
//! Files `mmap-latency.log` and `mmap-latency-WORKERS.log`: lines of a number of measurements and
//! what each took on average, in nanoseconds.

use model::{Better, Metric, Rows};

use super::gather::{FOUR, Gather, metric, primary};
use super::{Logs, Unreadable};

/// Reads the logs of stutterp; false if there are none. Whole microseconds, as mmtests prints them;
/// it says that they are milliseconds.
pub fn read(logs: &Logs, gather: &mut Gather) -> Result<bool, Unreadable> {
    gather.metric(primary(metric("mmap", "us", Better::Lower, FOUR)));
    let files = logs.between("mmap-latency-", ".log");
    for (workers, text) in &files {
        add(text, workers, |nanoseconds| (nanoseconds / 1000) as f64, gather)?;
    }
    Ok(!files.is_empty())
}

/// Reads the log of stutter; false if there is none. Milliseconds.
pub fn read_old(logs: &Logs, gather: &mut Gather) -> Result<bool, Unreadable> {
    let Some(text) = logs.text("mmap-latency.log") else { return Ok(false) };
    let milliseconds = primary(metric("mmap", "ms", Better::Lower, FOUR));
    gather.metric(Metric { rows: Rows::Distribution, ..milliseconds });
    add(&text, "", |nanoseconds| nanoseconds as f64 / 1e6, gather)?;
    Ok(true)
}

/// Adds each average as many times as there were measurements.
fn add(
    text: &str,
    label: &str,
    unit: fn(u64) -> f64,
    gather: &mut Gather,
) -> Result<(), Unreadable> {
    let mut bad = 0;
    for line in text.lines() {
        match read_line(line) {
            Some((measurements, nanoseconds)) => {
                gather.samples(measurements, "mmap", label, unit(nanoseconds))?;
            }
            None => bad += 1,
        }
    }
    if bad > 0 {
        gather.remark(format!("{bad} lines of latencies are not read"));
    }
    Ok(())
}

fn read_line(line: &str) -> Option<(u64, u64)> {
    let (measurements, nanoseconds) = line.split_once(' ')?;
    Some((measurements.parse().ok()?, nanoseconds.trim().parse().ok()?))
}
