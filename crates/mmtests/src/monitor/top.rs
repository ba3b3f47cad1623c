//! `top -b`: CPU shares of processes, in percent. Processes with the same name are added up. A line `time: SECONDS
//! short|full` precedes each report; a short report omits idle processes.

use std::collections::BTreeMap;

use super::{Clock, millionths, plain, time};
use crate::table::SeriesTable;

const SHARE: &str = "%CPU";
/// The largest number of names of one report.
const MAX_NAMES: usize = 4096;

/// Reads reports line by line.
#[derive(Default)]
pub struct TopReader {
    report: Option<Report>,
}

/// The part of a report that has been read.
struct Report {
    time: f64,
    /// Whether processes that are not listed were idle.
    short: bool,
    /// The indices of the share and the command, once the header is read.
    places: Option<(usize, usize)>,
    shares: BTreeMap<String, i64>,
}

impl TopReader {
    /// Reads a line. A line with a time ends the report before it.
    pub fn line(&mut self, line: &str, clock: Clock, table: &mut SeriesTable<'_>) {
        if let Some((seconds, form)) = time(line) {
            self.finish(clock, table);
            let short = form.trim() == "short";
            self.report =
                Some(Report { time: seconds, short, places: None, shares: BTreeMap::new() });
            return;
        }
        let Some(report) = &mut self.report else {
            return;
        };
        let line = plain(line);
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let place = |wanted| words.iter().position(|word| *word == wanted);
        if let (Some(_), Some(share), Some(command)) =
            (place("PID"), place(SHARE), place("COMMAND"))
        {
            report.places = Some((share, command));
        } else if let Some((share, command)) = report.places
            && let (Some(share), Some(command)) = (words.get(share), words.get(command))
            && words[0].parse::<u32>().is_ok()
            && let Some(share) = millionths(share)
            && (report.shares.len() < MAX_NAMES || report.shares.contains_key(*command))
        {
            let sum = report.shares.entry((*command).to_owned()).or_default();
            *sum = sum.saturating_add(share);
        }
    }

    /// Adds the report that ends here to the table.
    pub fn finish(&mut self, clock: Clock, table: &mut SeriesTable<'_>) {
        let Some(report) = self.report.take().filter(|report| report.places.is_some()) else {
            return;
        };
        table.row(clock.at(report.time));
        for (command, share) in report.shares {
            table.set(&format!("{command} {SHARE}"), share);
        }
        if report.short {
            table.fill();
        }
    }
}
