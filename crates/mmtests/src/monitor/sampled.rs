//! Kernel files printed repeatedly: a line `time: SECONDS`, then the file. If each node has its own file, a line
//! `node: NUMBER` precedes each.

use model::Source;

use super::{Clock, stamped, time};
use crate::table::SeriesTable;

/// The longest text of a kernel file, in bytes.
const MAX_FILE: usize = 16 << 20;

/// Reads samples line by line.
pub struct SampledReader {
    source: Source,
    clock: Clock,
    begun: bool,
    /// The node whose file is read; empty if there is one file for all nodes.
    part: String,
    text: String,
}

impl SampledReader {
    /// A reader for `source`, whose times are relative to `clock`.
    pub fn new(source: Source, clock: Clock) -> Self {
        Self { source, clock, begun: false, part: String::new(), text: String::new() }
    }

    /// Reads a line. A line with a time or a node ends the file before it.
    pub fn line(&mut self, line: &str, table: &mut SeriesTable<'_>) {
        let (_, line) = stamped(line);
        if let Some((time, _)) = time(line) {
            self.finish(table);
            self.begun = true;
            self.part.clear();
            table.row(self.clock.at(time));
        } else if let Some(node) = line.strip_prefix("node: ") {
            self.finish(table);
            self.part = format!("node{}", node.trim());
        } else if self.begun && self.text.len() + line.len() < MAX_FILE {
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    /// Adds the file that ends here to the table.
    pub fn finish(&mut self, table: &mut SeriesTable<'_>) {
        for (name, value) in kernelfiles::counters(self.source, &self.part, &self.text) {
            table.set(&name, value);
        }
        self.text.clear();
    }
}
