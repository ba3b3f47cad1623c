//! Renames the rows of compared results to the names that mmtests has for them.

use benchmarks::names::{Month, counter, theirs};
use compare::{Comparison, Kind};
use model::{Experiment, Manifest};
use plots::Plots;

/// Gives rows, counters and steps' rows the names that mmtests had for them in the month `at`. Rows
/// that it does not have keep their names.
pub fn use_mmtests_names(comparison: &mut Comparison, experiment: &Experiment, at: Month) {
    let of = |workload: &str| manifest(experiment, workload);
    for table in &mut comparison.tables {
        let known = of(&table.workload).filter(|_| table.kind == Kind::Metrics);
        if matches!(table.kind, Kind::Duration | Kind::Events)
            || (table.kind == Kind::Metrics && known.is_none())
        {
            continue;
        }
        let named = |name: &mut String| *name = theirs(name, known, at);
        table.rows.iter_mut().for_each(|row| named(&mut row.metric));
        table.units.iter_mut().for_each(|(metric, _)| named(metric));
        table.warm_ups.iter_mut().for_each(|it| named(&mut it.metric));
        table.oddities.iter_mut().for_each(|it| named(&mut it.metric));
    }
    for row in comparison.notes.counting.iter_mut().flat_map(|it| &mut it.rows) {
        *row = counter(row, at).unwrap_or(row);
    }
    for unmet in &mut comparison.unmet {
        unmet.row = theirs(&unmet.row, of(&unmet.workload), at);
    }
    for check in &mut comparison.cross_checks {
        check.metric = theirs(&check.metric, of(&check.workload), at);
    }
    for step in &mut comparison.steps {
        use_mmtests_names(&mut step.comparison, experiment, at);
    }
    comparison.names = Some(at);
}

/// Renames the plotted samples of a workload as [`use_mmtests_names`] renames rows.
pub fn rename_samples(plots: &mut Plots, experiment: &Experiment, at: Month) {
    if let Some(manifest) = manifest(experiment, &plots.workload) {
        for scatter in &mut plots.scatters {
            scatter.name = theirs(&scatter.name, Some(manifest), at);
        }
    }
}

fn manifest<'a>(experiment: &'a Experiment, workload: &str) -> Option<&'a Manifest> {
    let mut used = experiment.workloads.iter().map(|used| &used.manifest);
    used.find(|manifest| manifest.name == workload)
}
