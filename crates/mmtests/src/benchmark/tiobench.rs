//! tiobench: rates of threads that read and write a file, in sequence and at random.
//!
//! Files: `tiobench-THREADS-N.log`, and `disk-read.speed` with the rate of the disk itself.

use benchmarks::number;
use model::Better;

use super::gather::{Gather, TWO, metric, primary};
use super::{Logs, Unreadable};

/// The headings of a log, each with the metric of the line after it, in the order of the table.
const HEADINGS: [(&str, &str); 4] = [
    ("Sequential Reads", "SeqRead-MB/sec"),
    ("Random Reads", "RandRead-MB/sec"),
    ("Sequential Writes", "SeqWrite-MB/sec"),
    ("Random Writes", "RandWrite-MB/sec"),
];
/// The index of the rate in a line of figures, after file size, block size and threads.
const RATE: usize = 4;

/// Reads the logs; false if there are none.
pub fn read(logs: &Logs, gather: &mut Gather) -> Result<bool, Unreadable> {
    let rate = |name: &str| metric(name, "MB/s", Better::Higher, TWO);
    let speed = logs.text("disk-read.speed");
    if let Some(speed) = &speed {
        match speed.split_whitespace().next().and_then(number) {
            Some(value) => {
                gather.metric(rate("PotentialReadSpeed"));
                gather.sample("PotentialReadSpeed", "", value)?;
            }
            None => gather.remark("disk-read.speed has no number".to_owned()),
        }
    }
    for (_, name) in HEADINGS {
        gather.metric(primary(rate(name)));
    }
    let files = logs.between("tiobench-", ".log");
    for (name, text) in &files {
        let Some((threads, _)) = name.split_once('-') else {
            gather.remark(format!("tiobench-{name}.log is not read"));
            continue;
        };
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let Some((_, metric)) = HEADINGS.iter().find(|(heading, _)| *heading == line) else {
                continue;
            };
            // A line that begins with blanks has an empty field first.
            let figures = lines.next().unwrap_or_default();
            let place = RATE - usize::from(figures.starts_with(char::is_whitespace));
            match figures.split_whitespace().nth(place).and_then(number) {
                Some(value) => gather.sample(metric, threads, value)?,
                None => gather.remark(format!("no rate after `{line}` in tiobench-{name}.log")),
            }
        }
    }
    Ok(speed.is_some() || !files.is_empty())
}
