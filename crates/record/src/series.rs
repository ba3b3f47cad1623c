//! Builds series: restores the texts of sampled files from recorded differences, and parses them.

use std::collections::BTreeMap;

use flight::event::File;
use flight::patch::{self, Content, Record};
use model::{Column, Source, WORKLOAD_SOURCE};

use crate::table::{Budget, SeriesTable};

/// Values of workloads are stored as millionths; this is the factor.
const MILLION: f64 = 1e6;
/// The largest amount of text that is parsed for one boot, in bytes. It is enough for hours of
/// sampling every 10 ms.
const MAX_PARSED: usize = 8 << 30;

/// The largest number of values of one boot. It is enough for 10 minutes of all default sources
/// every 10 ms.
const MAX_VALUES: usize = 64 << 20;

/// The series of one source during one phase.
#[derive(Debug)]
pub struct Cut {
    /// The name of the source in the store.
    pub source: String,
    /// The times of the rows, in nanoseconds since the guest started.
    pub times: Vec<u64>,
    /// A column for each counter of the source.
    pub columns: Vec<Column>,
}

/// All series of a boot since the last cut.
#[derive(Debug)]
pub struct Series {
    files: Vec<Watched>,
    tables: BTreeMap<Source, SeriesTable>,
    points: SeriesTable,
    parsed: usize,
    budget: Budget,
    overflowed: bool,
}

impl Default for Series {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            tables: BTreeMap::new(),
            points: SeriesTable::default(),
            parsed: 0,
            budget: Budget::new(MAX_VALUES),
            overflowed: false,
        }
    }
}

/// A sampled file and its text as last recorded.
#[derive(Debug)]
struct Watched {
    /// `None` if this version does not know the source; its records are ignored.
    source: Option<Source>,
    part: String,
    text: Option<Vec<u8>>,
}

impl Series {
    /// Sets the list of sampled files. Records refer to files by their index in it.
    pub fn files(&mut self, files: Vec<File>) {
        let watched = files.into_iter().map(|file| Watched {
            source: Source::of_name(&file.source),
            part: file.part,
            text: None,
        });
        self.files = watched.collect();
    }

    /// Adds one record of the sampler. Damaged records are ignored.
    pub fn record(&mut self, payload: &[u8], time: u64) {
        let Ok(Record { file, content }) = postcard::from_bytes::<Record>(payload) else {
            return;
        };
        let file = usize::from(file);
        let Some(watched) = self.files.get_mut(file) else {
            return;
        };
        let Some(source) = watched.source else { return };
        let text = match content {
            Content::Whole(text) => Some(text.to_vec()),
            Content::Patch(patch) => {
                watched.text.as_deref().and_then(|old| patch::apply(old, patch))
            }
        };
        let Some(text) = text else { return };
        self.parsed = self.parsed.saturating_add(text.len());
        if self.parsed > MAX_PARSED {
            self.overflowed = true;
            return;
        }
        let counters =
            kernelfiles::counters(source, &watched.part, &String::from_utf8_lossy(&text));
        watched.text = Some(text);
        let table = self.tables.entry(source).or_default();
        self.overflowed |= !table.sampled(file, counters, time, &mut self.budget);
    }

    /// Adds one point of a workload's series.
    pub fn point(&mut self, name: &str, value: f64, time: u64) {
        let millionths = (value * MILLION).round() as i64;
        self.overflowed |= !self.points.point(name, millionths, time, &mut self.budget);
    }

    /// Ends the current phase and returns its series. The last sample of a kernel source also
    /// begins the next phase. Kernel sources with a single sample are left out.
    pub fn cut(&mut self) -> Vec<Cut> {
        let mut cuts = Vec::new();
        for (source, table) in &mut self.tables {
            match table.cut(true, &mut self.budget) {
                Some((times, columns)) if times.len() > 1 => {
                    cuts.push(Cut { source: source.name().to_owned(), times, columns });
                }
                Some(_) => {}
                None => self.overflowed = true,
            }
        }
        match self.points.cut(false, &mut self.budget) {
            Some((times, columns)) if !times.is_empty() => {
                cuts.push(Cut { source: WORKLOAD_SOURCE.to_owned(), times, columns });
            }
            Some(_) => {}
            None => self.overflowed = true,
        }
        cuts
    }

    /// Returns whether values were dropped because they exceeded a limit.
    pub fn overflowed(&self) -> bool {
        self.overflowed
    }
}
