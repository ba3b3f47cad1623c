//! Series by node: where a workload's memory and threads are over time.

use std::collections::BTreeSet;

use compare::VariantBoots;
use model::Source;

use super::series::{Curve, MIB, MILLION, Panel, WORKLOAD, node_in};
use super::tracks::Tracks;

/// Most of the workload's own figures by node that are drawn.
const MAX_OWN: usize = 4;
/// Nodes beyond this number are not drawn: lines could not be told apart.
const MAX_NODES: usize = 8;
/// Series of node-meminfo that are drawn: title, and the part of the counter's name after the node.
const MEMORY: [(&str, &str); 3] = [
    ("Free memory by node", "MemFree"),
    ("Anonymous memory by node", "AnonPages"),
    ("Page cache by node", "FilePages"),
];

/// For each figure that some variant has by node, a panel per variant with a curve per node. Empty on a
/// machine with one node.
pub fn panels(columns: &[VariantBoots<'_>], tracks: &[Tracks<'_>]) -> Vec<Vec<Panel>> {
    let own = own(tracks);
    let own = own.iter().take(MAX_OWN).map(|(before, after)| {
        let title = format!("{} by node", format!("{before}{after}").trim_matches('-'));
        let name = move |node: usize| format!("{before}node{node}{after}");
        family(&title, "", columns, tracks, WORKLOAD, &name, MILLION)
    });
    let memory = MEMORY.into_iter().map(|(title, counter)| {
        let name = move |node: usize| format!("node{node} {counter}");
        let source = Source::NodeMeminfo.name();
        family(title, "MiB", columns, tracks, source, &name, MIB)
    });
    let families = own.chain(memory);
    families.filter(|panels| panels.iter().any(has_nodes) && panels.iter().any(changes)).collect()
}

/// Whether some curve of the panel changes.
fn changes(panel: &Panel) -> bool {
    let mut runs = panel.curves.iter().map(|curve| curve.runs.concat());
    runs.any(|points| points.iter().any(|point| point[1] != points[0][1]))
}

fn has_nodes(panel: &Panel) -> bool {
    let nodes: BTreeSet<usize> = panel.curves.iter().map(|curve| curve.group).collect();
    nodes.len() > 1
}

fn family(
    title: &str,
    unit: &'static str,
    columns: &[VariantBoots<'_>],
    tracks: &[Tracks<'_>],
    source: &str,
    name: &dyn Fn(usize) -> String,
    divisor: f64,
) -> Vec<Panel> {
    let panel = |tracks: &Tracks<'_>| {
        let curves = (0..MAX_NODES).flat_map(|node| {
            let name = name(node);
            let curves = tracks.drawn.iter().filter_map(move |track| {
                Curve::of(node, track, track.runs(source, &name, divisor))
            });
            curves.collect::<Vec<_>>()
        });
        Panel { title: title.to_owned(), unit, what: "", growth: false, curves: curves.collect() }
    };
    columns.iter().zip(tracks).map(|(_, tracks)| panel(tracks)).collect()
}

/// The parts before and after the node in the names of the workload's own series.
fn own<'a>(tracks: &'a [Tracks<'_>]) -> BTreeSet<(&'a str, &'a str)> {
    let tracks = tracks.iter().flat_map(|tracks| &tracks.drawn);
    let columns = tracks.flat_map(|track| track.chunks(WORKLOAD)).flat_map(|it| &it.columns);
    columns.filter_map(|column| node_in(&column.name)).collect()
}
