//! autonumabench: processor and elapsed time of programs that test NUMA balancing.
//!
//! Three layouts: `time-TEST-N` (since December 2025), `autonumabench-TEST-N.time` (since September 2019),
//! and a single `time.TEST` (since 2012).

use model::Metric;

use super::gather::{Gather, metric, primary, seconds};
use super::timed::{self, ALL, Timed};
use super::{Logs, Unreadable};

/// Reads the logs; false if there are none.
pub fn read(logs: &Logs, gather: &mut Gather) -> Result<bool, Unreadable> {
    for name in [["time-", "-", ""], ["autonumabench-", "-", ".time"]] {
        let mut files = timed::files(logs, name, gather);
        if files.is_empty() {
            continue;
        }
        refuse(logs, &mut files);
        if name[0] == "time-" {
            gather.metric(primary(seconds("Elapsed")));
            gather.metric(seconds("System"));
            gather.metric(seconds("User"));
            timed::add(&files, &ALL, gather)?;
        } else {
            gather.metric(seconds("syst"));
            gather.metric(primary(seconds("elsp")));
            timed::add(&files, &[("syst", |it| it.system), ("elsp", |it| it.elapsed)], gather)?;
        }
        return Ok(true);
    }
    single(logs, gather)
}

/// Drops the times of a program whose own log says that it did not run. On a machine with one node no program runs,
/// and `time` only measured the refusal.
fn refuse(logs: &Logs, files: &mut [Timed<'_>]) {
    for file in files {
        let log = logs.text(&format!("autonumabench-{}-{}.log", file.label, file.iteration));
        let mut lines = log.iter().flat_map(|log| log.lines());
        if let Some(abort) = lines.find(|line| line.starts_with("Abort:")) {
            file.times = Err(abort.chars().take(80).collect());
        }
    }
}

/// Reads the layout with one value of each time.
fn single(logs: &Logs, gather: &mut Gather) -> Result<bool, Unreadable> {
    let files = logs.between("time.", "");
    let files: Vec<_> = files.into_iter().map(|(test, text)| timed::timed(test, 0, text)).collect();
    gather.metric(seconds("User"));
    gather.metric(seconds("System"));
    gather.metric(primary(seconds("Elapsed")));
    gather.metric(Metric { better: None, ..metric("CPU", "%", model::Better::Lower, 2) });
    timed::add(&files, &ALL, gather)?;
    for file in &files {
        if let Some(cpu) = file.times.as_ref().ok().and_then(|times| times.cpu) {
            gather.sample("CPU", file.label, cpu)?;
        }
    }
    Ok(!files.is_empty())
}
