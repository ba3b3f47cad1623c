//! paralleldd: the time of each of several readers of one file.
//!
//! Two layouts: `time-READERS.log` with the times of all readers in all iterations (since 2022),
//! and `time-READERS-READER-N`.

use model::Metric;

use super::gather::{Gather, primary, seconds};
use super::time::runs;
use super::{Logs, Unreadable};

/// Reads the logs; false if there are none.
pub fn read(logs: &Logs, gather: &mut Gather) -> Result<bool, Unreadable> {
    let mut files = logs.between("time-", ".log");
    if files.is_empty() {
        files = logs.between("time-", "");
    }
    gather.metric(Metric { concurrent: true, ..primary(seconds("Elapsd")) });
    for (name, text) in &files {
        let readers = name.split('-').next().unwrap_or_default();
        if readers.is_empty() || !readers.bytes().all(|digit| digit.is_ascii_digit()) {
            gather.remark(format!("time-{name} is not read"));
            continue;
        }
        for run in runs(text) {
            match run {
                Ok(times) => gather.sample("Elapsd", readers, times.elapsed)?,
                Err(why) => gather.remark(format!("a reader of {readers} does not count: {why}")),
            }
        }
    }
    Ok(!files.is_empty())
}
