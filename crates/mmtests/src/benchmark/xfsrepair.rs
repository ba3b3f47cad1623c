//! xfsrepair: the time to fill a large file system with `fs_mark`, and to repair it.
//!
//! Two layouts: `time-STEP-N` (since January 2026) and `time.STEP.N` (since 2015).

use super::gather::{Gather, primary, seconds};
use super::timed;
use super::{Logs, Unreadable};

/// The steps of the older layout that tables have, in order.
const STEPS: [&str; 2] = ["fsmark", "xfsrepair"];

/// Reads the logs; false if there are none.
pub fn read(logs: &Logs, gather: &mut Gather) -> Result<bool, Unreadable> {
    let files = timed::files(logs, ["time-", "-", ""], gather);
    if !files.is_empty() {
        gather.metric(primary(seconds("Elapsed")));
        gather.metric(seconds("System"));
        timed::add(&files, &timed::ALL[..2], gather)?;
        return Ok(true);
    }
    let mut files = timed::files(logs, ["time.", ".", ""], gather);
    files.retain(|file| STEPS.contains(&file.label));
    // The name of the metric has the step, because the table has one step after the other.
    for step in STEPS {
        gather.metric(primary(seconds(&format!("elapsd-{step}"))));
        gather.metric(seconds(&format!("system-{step}")));
    }
    for file in &files {
        if let Some(times) = file.counted(gather) {
            gather.sample(&format!("elapsd-{}", file.label), "", times.elapsed)?;
            gather.sample(&format!("system-{}", file.label), "", times.system)?;
        }
    }
    Ok(!files.is_empty())
}
