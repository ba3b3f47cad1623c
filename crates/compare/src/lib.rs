//! Boots in, compared results out: tables of metrics, durations and counters with a column for
//! each variant, and notes on everything else by which the columns differ. Pure; printing is left
//! to the reports.
//!
//! Only complete boots count. What a variant has no figure for is absent, never 0.

mod config;
mod counters;
mod duration;
mod facts;
mod metrics;
mod notes;
mod table;
#[cfg(test)]
mod testing;

use model::{Boot, Manifest};
use serde::Serialize;

pub use notes::{Complaint, ConfigChange, ConfigDifference, Fact, HostRange, Mixed, Notes};
pub use table::{Kind, Pool, Row, Statistic, Table};

/// All boots of a variant, failed ones included.
#[derive(Clone, Copy, Debug)]
pub struct VariantBoots<'a> {
    /// The variant's name.
    pub name: &'a str,
    /// Its boots, in the order they were made.
    pub boots: &'a [Boot],
}

impl<'a> VariantBoots<'a> {
    fn complete(&self) -> impl Iterator<Item = &'a Boot> + use<'a> {
        self.boots.iter().filter(|boot| boot.outcome.is_complete())
    }
}

/// Variants compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The variants in the order of the columns. The first is the baseline.
    pub variants: Vec<Variant>,
    /// Whether a boot that counts ran under emulation (TCG), where times are not performance.
    pub emulated: bool,
    /// The tables, workload by workload.
    pub tables: Vec<Table>,
    /// What else there is to know of the columns.
    pub notes: Notes,
}

/// A variant and how its boots went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// Number of complete boots: those that count.
    pub complete: usize,
    /// The boots that do not count.
    pub failed: Vec<FailedBoot>,
}

/// A boot that did not complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedBoot {
    /// Which boot of its variant, from 0.
    pub boot: u32,
    /// How it ended.
    pub outcome: String,
}

/// Compares `variants` by `workloads`. The variant with index `baseline` becomes the first column,
/// against which gains are computed; the others keep their order.
pub fn compare(
    workloads: &[Manifest],
    variants: &[VariantBoots<'_>],
    baseline: usize,
) -> Comparison {
    let mut columns = variants.to_vec();
    if let Some(up_to_baseline) = columns.get_mut(..=baseline) {
        up_to_baseline.rotate_right(1);
    }
    let tables = workloads.iter().flat_map(|workload| {
        [
            metrics::table(workload, &columns),
            duration::table(&workload.name, &columns),
            counters::table(&workload.name, &columns),
        ]
    });
    Comparison {
        variants: columns.iter().map(variant).collect(),
        emulated: columns
            .iter()
            .flat_map(VariantBoots::complete)
            .any(|boot| boot.facts.accel == model::Accel::Tcg.name()),
        tables: tables.filter(|table| !table.rows.is_empty()).collect(),
        notes: notes::notes(&columns),
    }
}

fn variant(column: &VariantBoots<'_>) -> Variant {
    let failed = column.boots.iter().filter(|boot| !boot.outcome.is_complete());
    Variant {
        name: column.name.to_owned(),
        complete: column.complete().count(),
        failed: failed
            .map(|boot| FailedBoot { boot: boot.replicate, outcome: boot.outcome.to_string() })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{boot, failed, manifest, sample};

    #[test]
    fn the_baseline_becomes_the_first_column() {
        let names = ["a", "b", "c", "d"];
        let columns = names.map(|name| VariantBoots { name, boots: &[] });
        let order = |baseline| {
            let comparison = compare(&[], &columns, baseline);
            let names = comparison.variants.iter().map(|variant| &*variant.name);
            names.collect::<String>()
        };
        assert_eq!(order(0), "abcd");
        assert_eq!(order(2), "cabd");
        assert_eq!(order(4), "abcd");
    }

    #[test]
    fn failed_boots_are_named_and_do_not_count() {
        let mut bad = failed(1, "workload autonuma exited with 1");
        bad.samples.push(sample("Elapsed", "NUMA01", 0, 999.0));
        let mut good = boot(0);
        good.samples.push(sample("Elapsed", "NUMA01", 0, 2.0));
        let boots = [good, bad];
        let columns = [
            VariantBoots { name: "a", boots: &boots },
            VariantBoots { name: "b", boots: &boots[1..] },
        ];
        let comparison = compare(&[manifest()], &columns, 0);
        assert_eq!(comparison.variants[0].complete, 1);
        assert_eq!(comparison.variants[1].complete, 0);
        let outcome = "failed: workload autonuma exited with 1";
        assert_eq!(comparison.variants[1].failed[0].outcome, outcome);
        let max = comparison.tables[0].rows.last().unwrap();
        assert_eq!(max.values, [Some(2.0), None]);
    }

    #[test]
    fn a_workload_without_any_figure_has_no_table() {
        let boots = [boot(0)];
        let column = VariantBoots { name: "a", boots: &boots };
        assert_eq!(compare(&[manifest()], &[column], 0).tables, []);
    }
}
