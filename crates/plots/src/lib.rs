//! Data for plots: every sample by boot, distributions of samples, and chosen series over time. The size is bounded
//! for any experiment, so that a page with all plots stays small. Counts say how much the bounds leave out.

mod counters;
mod locality;
mod nodes;
mod scatter;
mod series;
#[cfg(test)]
mod tests;
mod thin;
mod tracks;

use compare::{Judging, Results, baseline_first};
use model::{ACCESSES_SOURCE, Source};

pub use locality::{Interval, locality};
pub use scatter::{BootDots, Dot, Scatter};
pub use series::{Curve, Panel};
pub use tracks::PhaseTimes;

/// Sources of series that plots are drawn from.
pub const PLOT_SOURCES: [&str; 5] = [
    Source::Vmstat.name(),
    Source::Meminfo.name(),
    Source::NodeMeminfo.name(),
    series::WORKLOAD,
    ACCESSES_SOURCE,
];

/// The plot data of one workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Plots {
    /// The workload's name.
    pub workload: String,
    /// The samples of its operations, one plot each.
    pub scatters: Vec<Scatter>,
    /// Number of operations without a plot of samples.
    pub scatters_left_out: usize,
    /// For each variant, the phases of the iteration that is drawn in front, which is the one of median length. Empty
    /// without series.
    pub phases: Vec<Vec<PhaseTimes>>,
    /// Series, with the variants overlaid.
    pub panels: Vec<Panel>,
    /// Series by node: for each figure, a panel per variant.
    pub nodes: Vec<Vec<Panel>>,
    /// For each variant, the number of iterations whose series are not drawn.
    pub iterations_left_out: Vec<usize>,
}

/// The plot data of each workload, in the order of the experiment, with the variant `baseline` first, judged
/// as in [`compare::compare()`].
pub fn plots(results: &Results<'_>, baseline: usize, judging: &Judging) -> Vec<Plots> {
    let columns = baseline_first(&results.variants, baseline);
    let mode = results.experiment.mode;
    let mut all: Vec<Plots> = results
        .experiment
        .workloads
        .iter()
        .map(|used| {
            let name = &used.manifest.name;
            let (scatters, scatters_left_out) =
                scatter::scatters(used, results.reading, &columns, mode, judging);
            let tracks: Vec<_> = columns.iter().map(|it| tracks::tracks(name, it)).collect();
            Plots {
                workload: name.clone(),
                scatters,
                scatters_left_out,
                phases: tracks.iter().map(|it| it.chief_phases()).collect(),
                panels: series::panels(used, &columns, &tracks),
                nodes: nodes::panels(&columns, &tracks),
                iterations_left_out: tracks.iter().map(|it| it.left_out).collect(),
            }
        })
        .collect();
    thin::fit_page(&mut all);
    all
}
