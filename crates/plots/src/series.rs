//! Series of a workload, with the variants overlaid: the share of local NUMA hinting faults, free memory, the
//! workload's own series, and the counters in which the variants differ most.

use std::collections::BTreeSet;

use compare::VariantBoots;
use model::{ACCESSES_SOURCE, BootId, Source, WorkloadUse};

use super::counters;
use super::locality::{share, steps, sum};
use super::tracks::{Track, Tracks};

/// Most of the workload's own series that are drawn.
const MAX_OWN: usize = 6;
/// The name of the source of a workload's own series.
pub const WORKLOAD: &str = "workload";
/// Series of a workload are kept in millionths.
pub const MILLION: f64 = 1e6;
/// A MiB in kB, as the kernel calls 1024 bytes.
pub const MIB: f64 = 1024.0;
/// Number of parts of an iteration over which shares are taken. Shares between single readings would jump.
const PARTS: usize = 40;

/// One figure over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// The name of the figure.
    pub title: String,
    /// The unit of the values; empty if there is none, or it is not known.
    pub unit: &'static str,
    /// The counter's meaning in words; empty if it is not known.
    pub what: &'static str,
    /// Whether values are the growth since the iteration began.
    pub growth: bool,
    /// The curves of the panel, one per iteration that is drawn, or per node.
    pub curves: Vec<Curve>,
}

/// One figure over time in one iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The variant's place among the columns; in series by node, the number of the node.
    pub group: usize,
    /// The boot's number.
    pub boot: BootId,
    /// Number of the iteration in the boot, from 0.
    pub iteration: u32,
    /// Whether it is drawn in front, because its iteration has the median length.
    pub chief: bool,
    /// Seconds since the iteration began, and values; split where values are missing.
    pub runs: Vec<Vec<[f64; 2]>>,
}

impl Curve {
    /// A curve from `runs`; `None` if they have fewer than two points.
    pub fn of(group: usize, track: &Track<'_>, runs: Vec<Vec<[f64; 2]>>) -> Option<Self> {
        let points: usize = runs.iter().map(Vec::len).sum();
        (points > 1).then_some(Self {
            group,
            boot: track.id,
            iteration: track.iteration,
            chief: track.chief,
            runs,
        })
    }
}

/// The panels of a workload; those without any curve are left out.
pub fn panels(
    used: &WorkloadUse,
    columns: &[VariantBoots<'_>],
    tracks: &[Tracks<'_>],
) -> Vec<Panel> {
    let vmstat = Source::Vmstat.name();
    let mut panels = vec![
        panel("True local accesses, user", "%", tracks, |track| {
            shares(track, ACCESSES_SOURCE, "user-local", Of::Both("user-remote"))
        }),
        panel("NUMA hinting faults that were local", "%", tracks, |track| {
            shares(track, vmstat, "numa_hint_faults_local", Of::Whole("numa_hint_faults"))
        }),
        panel("Free memory", "MiB", tracks, |track| {
            track.runs(Source::Meminfo.name(), "MemFree", MIB)
        }),
    ];
    for name in own(tracks).into_iter().take(MAX_OWN) {
        panels.push(panel(name, "", tracks, |track| track.runs(WORKLOAD, name, MILLION)));
    }
    for counter in counters::most_different(used, columns) {
        let level = counters::is_level(counter);
        let (unit, what) = counters::meaning(counter);
        let mut panel = panel(counter, unit, tracks, |track| {
            let runs = track.runs(vmstat, counter, 1.0);
            if level { runs } else { since_the_beginning(runs) }
        });
        (panel.growth, panel.what) = (!level, what);
        panels.push(panel);
    }
    panels.retain(|panel| !panel.curves.is_empty());
    panels
}

fn panel(
    title: &str,
    unit: &'static str,
    tracks: &[Tracks<'_>],
    runs: impl Fn(&Track<'_>) -> Vec<Vec<[f64; 2]>>,
) -> Panel {
    let all = tracks.iter().enumerate();
    let all = all.flat_map(|(group, tracks)| tracks.drawn.iter().map(move |it| (group, it)));
    let curves = all.filter_map(|(group, track)| Curve::of(group, track, runs(track)));
    Panel { title: title.to_owned(), unit, what: "", growth: false, curves: curves.collect() }
}

/// Names of the workload's own series, without those of single nodes.
fn own<'a>(tracks: &'a [Tracks<'_>]) -> BTreeSet<&'a str> {
    let tracks = tracks.iter().flat_map(|tracks| &tracks.drawn);
    let columns = tracks.flat_map(|track| track.chunks(WORKLOAD)).flat_map(|it| &it.columns);
    columns.map(|column| &*column.name).filter(|name| node_in(name).is_none()).collect()
}

/// The parts of a name before and after `node0`, `node1` and so on; `None` without such a word.
pub fn node_in(name: &str) -> Option<(&str, &str)> {
    let (before, rest) = name.split_once("node")?;
    let after = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let starts_word = before.chars().next_back().is_none_or(|letter| !letter.is_alphanumeric());
    let ends_word = after.chars().next().is_none_or(|letter| !letter.is_alphanumeric());
    (starts_word && ends_word && after.len() < rest.len()).then_some((before, after))
}

fn since_the_beginning(mut runs: Vec<Vec<[f64; 2]>>) -> Vec<Vec<[f64; 2]>> {
    let first = runs.first().and_then(|run| run.first()).map_or(0.0, |point| point[1]);
    for point in runs.iter_mut().flatten() {
        point[1] -= first;
    }
    runs
}

/// The counter that makes the whole of a share.
#[derive(Clone, Copy)]
enum Of {
    /// This counter is the whole; it counts the part too.
    Whole(&'static str),
    /// The whole is the part plus this counter.
    Both(&'static str),
}

/// The growth of `part` in percent of the growth of the whole, over equal parts of an iteration. It has gaps where
/// the whole did not grow.
fn shares(track: &Track<'_>, source: &str, part: &str, of: Of) -> Vec<Vec<[f64; 2]>> {
    let (Of::Whole(other) | Of::Both(other)) = of;
    let chunks: Vec<_> = track.chunks(source).collect();
    let steps = steps(&chunks, [part, other]);
    let length = track.length();
    let part_of = |time: u64| (PARTS as f64 * track.seconds(time) / length) as usize;
    let parts = steps.chunk_by(|a, b| part_of(a.end) == part_of(b.end));
    let mut runs = vec![Vec::new()];
    for steps in parts {
        let [part, other] = sum(steps);
        let whole = match of {
            Of::Whole(_) => other,
            Of::Both(_) => part.zip(other).map(|(part, rest)| part + rest),
        };
        let middle =
            (track.seconds(steps[0].begin) + track.seconds(steps[steps.len() - 1].end)) / 2.0;
        match (share(part, whole), runs.last_mut()) {
            (Some(share), Some(run)) => run.push([middle, share]),
            _ => runs.push(Vec::new()),
        }
    }
    runs.retain(|run: &Vec<_>| !run.is_empty());
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_found_in_names() {
        assert_eq!(node_in("memory-node0"), Some(("memory-", "")));
        assert_eq!(node_in("NUMA01 node12 pages"), Some(("NUMA01 ", " pages")));
        for name in ["nodes", "anode1", "node1x", "memory", "node"] {
            assert_eq!(node_in(name), None, "{name}");
        }
    }
}
