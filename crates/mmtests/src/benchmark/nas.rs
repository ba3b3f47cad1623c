//! The NAS parallel benchmarks, with OpenMP or MPI.
//!
//! Two layouts: `time-KERNEL.CLASS-N` (since December 2025). Before, the time was what each program prints itself in
//! `KERNEL.CLASS.log.N` or, until 2018, in `KERNEL.CLASS.log`. A program that reports a wrong result does not count.

use benchmarks::nas::{TIME, field};

use super::gather::{Gather, primary, seconds};
use super::timed::{self, ALL};
use super::{Logs, Unreadable};

/// Reads the logs; false if there are none.
pub fn read(logs: &Logs, gather: &mut Gather) -> Result<bool, Unreadable> {
    let mut files = timed::files(logs, ["time-", "-", ""], gather);
    if files.is_empty() {
        return printed(logs, gather);
    }
    for file in &mut files {
        let log = logs.text(&format!("{}.log.{}", file.label, file.iteration));
        if log.is_some_and(|log| !is_right(&log)) {
            file.times = Err(WRONG.to_owned());
        }
    }
    gather.metric(primary(seconds("Elapsed")));
    gather.metric(seconds("System"));
    gather.metric(seconds("User"));
    timed::add(&files, &ALL, gather)?;
    Ok(true)
}

/// Why a time does not count.
const WRONG: &str = "the program found its own result wrong";

/// Whether a program's log reports no wrong result.
fn is_right(log: &str) -> bool {
    !log.lines().any(|line| line.contains("UNSUCCESSFUL") || line.contains("VERIFICATION FAILED"))
}

/// Reads the layouts with the programs' own times. A metric is a kernel with its class, as in the names of the
/// operations.
fn printed(logs: &Logs, gather: &mut Gather) -> Result<bool, Unreadable> {
    let mut any = false;
    for (name, log) in logs.between("", "") {
        let Some((kernel, number)) = name.split_once(".log") else { continue };
        if !is_kernel(kernel) || !(number.is_empty() || number.starts_with('.')) {
            continue;
        }
        any = true;
        let time =
            field(&log, TIME).and_then(|it| benchmarks::number(it.split_whitespace().next()?));
        match time.filter(|_| is_right(&log)) {
            Some(value) => {
                gather.metric(primary(seconds(kernel)));
                gather.sample(kernel, "", value)?;
            }
            None if is_right(&log) => gather.remark(format!("{name} has no time")),
            None => gather.remark(format!("{name} does not count: {WRONG}")),
        }
    }
    Ok(any)
}

/// Whether `name` is that of a program, such as `bt.C`.
fn is_kernel(name: &str) -> bool {
    let letters = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    name.split_once('.').is_some_and(|(kernel, class)| {
        (1..=4).contains(&kernel.len()) && class.len() == 1 && letters(kernel) && letters(class)
    })
}
