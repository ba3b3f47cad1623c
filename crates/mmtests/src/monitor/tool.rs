//! `vmstat`, the tool: one line per second below a header. Each line has a time stamp. The first line covers all the
//! time since the boot, and is skipped.

use super::{Clock, millionths, stamped};
use crate::table::SeriesTable;

/// Reads the tool's output line by line.
#[derive(Default)]
pub struct VmstatToolReader {
    names: Vec<String>,
    lines: usize,
}

impl VmstatToolReader {
    /// Reads a line: a header, which names the columns, or figures.
    pub fn line(&mut self, line: &str, clock: Clock, table: &mut SeriesTable<'_>) {
        let (Some(time), line) = stamped(line) else {
            return;
        };
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if words.starts_with(&["r", "b"]) {
            self.names = words.iter().map(|word| (*word).to_owned()).collect();
            return;
        }
        let figures: Option<Vec<i64>> = words.iter().map(|word| millionths(word)).collect();
        let Some(figures) = figures.filter(|it| !it.is_empty() && it.len() == self.names.len())
        else {
            return;
        };
        self.lines += 1;
        if self.lines > 1 {
            table.row(clock.at(time));
            for (name, value) in self.names.iter().zip(figures) {
                table.set(name, value);
            }
        }
    }
}
