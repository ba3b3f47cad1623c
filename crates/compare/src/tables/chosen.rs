//! Finds rows that `primary` chooses for verdicts, but that no boot has. They cannot be checked before a run, because
//! labels and phases are known only from figures of boots.

use model::{Experiment, Reading, WorkloadReading, WorkloadUse};
use serde::Serialize;

use crate::{Kind, Row, Table};

/// A choice of rows for verdicts that matches no row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unmet {
    /// The workload's name.
    pub workload: String,
    /// The choice, as written in the experiment.
    pub row: String,
}

impl Row {
    /// Whether verdicts of measured mode can rest on it: a mean with a direction.
    pub fn can_be_judged(&self) -> bool {
        self.statistic.is_mean() && self.better.is_some()
    }
}

/// The choices of the experiment that match no row of `tables`.
pub fn unmet(experiment: &Experiment, reading: &Reading, tables: &[Table]) -> Vec<Unmet> {
    let is_met = |used: &WorkloadUse, chosen: &str| {
        let own =
            |table: &&Table| table.kind == Kind::Metrics && table.workload == used.manifest.name;
        let mut rows = tables.iter().filter(own).flat_map(|table| &table.rows);
        rows.any(|row| row.can_be_judged() && WorkloadReading::covers(chosen, &row.metric))
    };
    let unmet = experiment.workloads.iter().flat_map(|used| {
        let unmet =
            reading.workload(used).primary.iter().filter(move |chosen| !is_met(used, chosen));
        unmet.map(|row| Unmet { workload: used.manifest.name.clone(), row: row.clone() })
    });
    unmet.collect()
}

#[cfg(test)]
mod tests {
    use model::Mode;

    use crate::testing::{boot, columns, experiment, failed, manifest, on_rows, sample, variant};
    use crate::{Judging, Results, compare};

    #[test]
    fn a_choice_without_a_row_is_reported() {
        let unmet = |mode: Mode, with: fn(&mut model::Boot)| {
            let experiment = experiment(mode, 1, vec![manifest()]);
            let primary = ["Elapsed-NUMA01", "Elapsed-N*2", "Elapsed-NUMA", "Elapsed"];
            let reading = on_rows(&primary);
            let variants = ["a", "b"].map(variant);
            let mut boots = [boot(0)];
            with(&mut boots[0]);
            let variants = columns(&variants, &[&boots, &boots]);
            let results = Results { experiment: &experiment, reading: &reading, variants };
            let unmet = compare(&results, 0, &Judging::default()).unmet;
            unmet.into_iter().map(|it| it.row).collect::<Vec<String>>()
        };
        let with_row = |boot: &mut model::Boot| {
            boot.samples.push(sample("Elapsed", "NUMA01", 0, 2.0));
        };
        assert_eq!(unmet(Mode::Measured, with_row), ["Elapsed-N*2", "Elapsed-NUMA"]);
        assert_eq!(unmet(Mode::Measured, |_| ()).len(), 4);
        // All rows have verdicts, or there is none to know.
        assert!(unmet(Mode::Exact, with_row).is_empty());
        assert!(unmet(Mode::Measured, |boot| *boot = failed(0, "no answer")).is_empty());
    }
}
