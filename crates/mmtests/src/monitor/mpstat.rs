//! `mpstat -P ALL -u`: how each CPU's time was spent, in percent. A `time:` line precedes each report.

use super::{Clock, millionths, plain, time};
use crate::table::SeriesTable;

/// Reads reports line by line.
#[derive(Default)]
pub struct MpstatReader {
    time: Option<f64>,
    /// The words of the header, and the index of the CPU among them; `None` outside a report.
    header: Option<(Vec<String>, usize)>,
}

impl MpstatReader {
    /// Reads a line. A line with a time and a blank line end a report.
    pub fn line(&mut self, line: &str, clock: Clock, table: &mut SeriesTable<'_>) {
        if let Some((seconds, _)) = time(line) {
            self.time = Some(seconds);
            self.header = None;
            return;
        }
        let line = plain(line);
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if words.is_empty() || words[0] == "Average:" {
            self.header = None;
        } else if let Some(place) = words.iter().position(|word| *word == "CPU") {
            if words[place + 1..].iter().all(|word| word.starts_with('%'))
                && let Some(time) = self.time
            {
                self.header = Some((words.iter().map(|word| (*word).to_owned()).collect(), place));
                table.row(clock.at(time));
            }
        } else if let Some((header, place)) = &self.header
            && words.len() == header.len()
        {
            let cpu = match words[*place] {
                number if number.parse::<u32>().is_ok() => format!("cpu{number}"),
                "all" => "all".to_owned(),
                _ => return,
            };
            for (name, word) in header.iter().zip(&words).skip(place + 1) {
                if let Some(value) = millionths(word) {
                    table.set(&format!("{cpu} {name}"), value);
                }
            }
        }
    }
}
