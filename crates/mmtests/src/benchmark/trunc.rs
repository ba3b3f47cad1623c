//! trunc: the time to read sparse files into the page cache, and to remove them.
//!
//! Two layouts: `time-fault-N` and `time-trunc-N` (since January 2026), and `fault-N.time` and
//! `trunc-N.time`.

use model::Better;

use super::gather::{FOUR, Gather, TWO, metric, primary, seconds};
use super::timed::{self, ALL};
use super::{Logs, Unreadable};

/// Reads the logs; false if there are none.
pub fn read(logs: &Logs, gather: &mut Gather) -> Result<bool, Unreadable> {
    let files = timed::files(logs, ["time-", "-", ""], gather);
    if files.is_empty() {
        return milliseconds(logs, gather);
    }
    for name in ["Elapsed", "System", "User"] {
        let mut metric = seconds(name);
        metric.primary = name == "Elapsed";
        metric.decimals = Some(FOUR);
        gather.metric(metric);
    }
    timed::add(&files, &ALL, gather)?;
    Ok(true)
}

/// Reads the older layout, in milliseconds. mmtests had one table for each file, with the same operation in both.
fn milliseconds(logs: &Logs, gather: &mut Gather) -> Result<bool, Unreadable> {
    let files = timed::files(logs, ["", "-", ".time"], gather);
    gather.metric(primary(metric("elapsed", "ms", Better::Lower, TWO)));
    for (step, label) in [("trunc", ""), ("fault", "fault")] {
        for file in files.iter().filter(|file| file.label == step) {
            if let Some(times) = file.counted(gather) {
                gather.sample("elapsed", label, times.elapsed * 1000.0)?;
            }
        }
    }
    Ok(!files.is_empty())
}
