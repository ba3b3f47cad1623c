//! Iterations on one axis of time, whose zero is the beginning of each iteration.

use std::collections::BTreeMap;

use compare::VariantBoots;
use model::{Boot, BootId, Chunk};

/// Most iterations of a variant that are drawn. Of more, an even selection is drawn.
const MAX_TRACKS: usize = 8;
/// Most phases that are shaded; more would be too narrow.
const MAX_PHASES: usize = 24;
const NANOSECONDS: f64 = 1e9;

/// A phase of an iteration, in seconds since the iteration began.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseTimes {
    /// The phase's name.
    pub name: String,
    /// The beginning of the phase.
    pub begin: f64,
    /// The end of the phase.
    pub end: f64,
}

/// The iterations of a variant that are drawn.
pub struct Tracks<'a> {
    /// In the order of boots.
    pub drawn: Vec<Track<'a>>,
    /// Number of iterations that are not drawn.
    pub left_out: usize,
}

/// One iteration of a workload in one boot.
pub struct Track<'a> {
    pub boot: &'a Boot,
    /// The boot's number in the store.
    pub id: BootId,
    /// Number of the iteration in the boot, from 0.
    pub iteration: u32,
    /// Whether it is of median length among those of its variant.
    pub chief: bool,
    /// The chunks of the iteration, in order of time.
    chunks: Vec<&'a Chunk>,
    begin: u64,
    end: u64,
}

impl Tracks<'_> {
    /// The phases of the iteration of median length.
    pub fn chief_phases(&self) -> Vec<PhaseTimes> {
        self.drawn.iter().find(|track| track.chief).map_or_else(Vec::new, Track::phases)
    }
}

/// The iterations of `workload` in the complete boots of a variant.
pub fn tracks<'a>(workload: &str, column: &'a VariantBoots<'_>) -> Tracks<'a> {
    let complete = column.standing().filter(|kept| kept.boot.outcome.counts());
    let mut all = Vec::new();
    for kept in complete {
        let mut iterations: BTreeMap<u32, Vec<&Chunk>> = BTreeMap::new();
        let chunks = kept.boot.chunks.iter();
        for chunk in chunks.filter(|it| it.workload == workload && !it.times.is_empty()) {
            iterations.entry(chunk.iteration).or_default().push(chunk);
        }
        all.extend(iterations.into_iter().map(|(iteration, mut chunks)| {
            chunks.sort_by_key(|chunk| chunk.times[0]);
            let times = || chunks.iter().flat_map(|chunk| &chunk.times).copied();
            let (begin, end) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
            let (boot, id) = (kept.boot, kept.id);
            Track { boot, id, iteration, chief: false, chunks, begin, end }
        }));
    }
    let count = all.len();
    let mut by_length: Vec<usize> = (0..count).collect();
    by_length.sort_by_key(|&place| all[place].end - all[place].begin);
    let chief = by_length.get(count.saturating_sub(1) / 2).copied();
    let drawn = count.min(MAX_TRACKS);
    let even: Vec<usize> = (0..drawn).map(|number| number * count / drawn).collect();
    let mut kept = Vec::new();
    for (place, mut track) in all.into_iter().enumerate() {
        track.chief = Some(place) == chief;
        if track.chief || even.contains(&place) {
            kept.push(track);
        }
    }
    let left_out = count - kept.len();
    Tracks { drawn: kept, left_out }
}

impl Track<'_> {
    /// A moment in seconds since the iteration began.
    pub fn seconds(&self, time: u64) -> f64 {
        time.saturating_sub(self.begin) as f64 / NANOSECONDS
    }

    /// The length of the iteration in seconds.
    pub fn length(&self) -> f64 {
        self.seconds(self.end)
    }

    /// The chunks of one source, in order of time.
    pub fn chunks(&self, source: &str) -> impl Iterator<Item = &Chunk> {
        self.chunks.iter().copied().filter(move |chunk| chunk.source == source)
    }

    /// The phases that have a name, in the order in which they began.
    pub fn phases(&self) -> Vec<PhaseTimes> {
        let mut phases: Vec<PhaseTimes> = Vec::new();
        for chunk in self.chunks.iter().filter(|chunk| !chunk.phase.is_empty()) {
            let time = |place: Option<&u64>| self.seconds(place.copied().unwrap_or(self.begin));
            let (begin, end) = (time(chunk.times.first()), time(chunk.times.last()));
            match phases.iter().position(|phase| phase.name == chunk.phase) {
                Some(place) => phases[place].end = phases[place].end.max(end),
                None if phases.len() < MAX_PHASES => {
                    phases.push(PhaseTimes { name: chunk.phase.clone(), begin, end });
                }
                None => {}
            }
        }
        phases
    }

    /// A counter over time, divided by `unit`: runs of seconds and values, split where the counter is missing.
    pub fn runs(&self, source: &str, counter: &str, unit: f64) -> Vec<Vec<[f64; 2]>> {
        let mut runs = vec![Vec::new()];
        for chunk in self.chunks(source) {
            let Some(column) = chunk.columns.iter().find(|column| column.name == counter) else {
                runs.push(Vec::new());
                continue;
            };
            for (&time, value) in chunk.times.iter().zip(&column.values) {
                let point = value.map(|value| [self.seconds(time), value as f64 / unit]);
                let run: Option<&mut Vec<[f64; 2]>> = runs.last_mut();
                match (point, run) {
                    (None, _) => runs.push(Vec::new()),
                    (Some(point), Some(run)) if run.last() != Some(&point) => run.push(point),
                    _ => {}
                }
            }
        }
        // A guest may claim times in any order.
        for run in &mut runs {
            run.sort_by(|a, b| a[0].total_cmp(&b[0]));
        }
        runs.retain(|run| !run.is_empty());
        runs
    }
}
