//! `iostat -x`: activity of devices each second. Columns are found by name, because versions of the tool order them
//! differently. Colours are ignored. Each line has a time stamp. The first report covers all the time since the boot,
//! and is skipped.

use super::{Clock, millionths, plain, stamped};
use crate::table::SeriesTable;

/// What the next lines hold.
#[derive(Default)]
enum ReportPart {
    #[default]
    Nothing,
    Cpu(Vec<String>),
    Devices(Vec<String>),
}

/// Reads reports line by line.
#[derive(Default)]
pub struct IostatReader {
    part: ReportPart,
    reports: usize,
    /// Whether this report has begun, with its CPU part.
    begun: bool,
}

impl IostatReader {
    /// Reads a line of a report.
    pub fn line(&mut self, line: &str, clock: Clock, table: &mut SeriesTable<'_>) {
        let line = plain(line);
        let (Some(time), line) = stamped(&line) else {
            return;
        };
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let Some((first, rest)) = words.split_first() else {
            self.part = ReportPart::Nothing;
            return;
        };
        let names = || rest.iter().map(|word| (*word).to_owned()).collect();
        match first.trim_end_matches(':') {
            "avg-cpu" => {
                self.begin(clock.at(time), table);
                self.begun = true;
                self.part = ReportPart::Cpu(names());
                return;
            }
            "Device" => {
                if !self.begun {
                    self.begin(clock.at(time), table);
                }
                self.begun = false;
                self.part = ReportPart::Devices(names());
                return;
            }
            _ => {}
        }
        let (owner, names, figures) = match &self.part {
            ReportPart::Cpu(names) => ("cpu", names, &*words),
            ReportPart::Devices(names) => (*first, names, rest),
            ReportPart::Nothing => return,
        };
        if self.reports > 1 && names.len() == figures.len() {
            for (name, word) in names.iter().zip(figures) {
                if let Some(value) = millionths(word) {
                    table.set(&format!("{owner} {name}"), value);
                }
            }
        }
    }

    fn begin(&mut self, time: u64, table: &mut SeriesTable<'_>) {
        self.reports += 1;
        if self.reports > 1 {
            table.row(time);
        }
    }
}
