//! Benchmarks whose commands run under `time`, with a file for each command.

use std::borrow::Cow;

use super::gather::Gather;
use super::logs::in_order;
use super::time::{Times, runs};
use super::{Logs, Unreadable};

/// The times of one command, or why they do not count.
pub struct Timed<'a> {
    /// The label of the command in tables.
    pub label: &'a str,
    /// The number of the repetition.
    pub iteration: u32,
    pub times: Result<Times, String>,
}

impl Timed<'_> {
    /// The times, if they count. If not, adds a remark.
    pub fn counted(&self, gather: &mut Gather) -> Option<Times> {
        let Self { label, iteration, times } = self;
        match times {
            Ok(times) => Some(*times),
            Err(why) => {
                gather.remark(format!("{label}, number {iteration}, does not count: {why}"));
                None
            }
        }
    }
}

/// The files whose names consist of `prefix`, a label, `separator`, a number and `suffix`, ordered by label, then by
/// number. Adds a remark about others that begin with `prefix` and end with `suffix`.
pub fn files<'a>(
    logs: &'a Logs,
    [prefix, separator, suffix]: [&str; 3],
    gather: &mut Gather,
) -> Vec<Timed<'a>> {
    let mut files = Vec::new();
    for (name, text) in logs.between(prefix, suffix) {
        let parts = name.rsplit_once(separator).filter(|(label, _)| !label.is_empty());
        let parts = parts.and_then(|(label, number)| Some((label, number.parse().ok()?)));
        match parts {
            Some((label, iteration)) => files.push(timed(label, iteration, text)),
            None => gather.remark(format!("{prefix}{name}{suffix} is not read")),
        }
    }
    files.sort_by(|a, b| in_order(a.label, b.label).then_with(|| a.iteration.cmp(&b.iteration)));
    files
}

/// The file of a command that ran only once.
pub fn timed<'a>(label: &'a str, iteration: u32, text: Cow<'_, str>) -> Timed<'a> {
    let times = match runs(&text).as_slice() {
        [times] => times.clone(),
        [] => Err("there is no time in its file".to_owned()),
        _ => Err("there is more than one time in its file".to_owned()),
    };
    Timed { label, iteration, times }
}

pub type Reading = fn(&Times) -> f64;

/// For each label, adds the times that count under the given names of metrics. Fails if there are too many.
pub fn add(
    files: &[Timed<'_>],
    metrics: &[(&str, Reading)],
    gather: &mut Gather,
) -> Result<(), Unreadable> {
    for file in files {
        if let Some(times) = file.counted(gather) {
            for (metric, time) in metrics {
                gather.sample(metric, file.label, time(&times))?;
            }
        }
    }
    Ok(())
}

/// Elapsed, system and user time, with the names and in the order that mmtests has used since December 2025.
pub const ALL: [(&str, Reading); 3] = [
    ("Elapsed", |times| times.elapsed),
    ("System", |times| times.system),
    ("User", |times| times.user),
];
