//! Boots in, compared results out: tables of metrics, durations and counters with a column for
//! each variant, and notes on everything else by which the columns differ. Pure; printing is left
//! to the reports.
//!
//! Only complete boots count. What a variant has no figure for is absent, never 0.

mod config;
mod counters;
mod duration;
mod facts;
mod luck;
mod metrics;
mod notes;
mod table;
#[cfg(test)]
mod testing;

use model::{Boot, Manifest, Outcome};
use serde::Serialize;

pub use luck::Difference;
pub use notes::{Complaint, ConfigChange, ConfigDifference, Fact, HostRange, Mixed, Notes};
pub use table::{Kind, Pool, Row, Statistic, Table};

/// A boot as it was kept.
#[derive(Clone, Debug)]
pub struct KeptBoot<'a> {
    /// The name by which it is found again, such as `b3`.
    pub name: String,
    /// Whether it failed and is to be done again, or has been.
    pub superseded: bool,
    /// The boot.
    pub boot: &'a Boot,
}

impl KeptBoot<'_> {
    /// Whether it stands for its place in the schedule. An interrupted or superseded boot does
    /// not: that place is free for another one.
    fn stands(&self) -> bool {
        !self.superseded && self.boot.outcome != Outcome::Interrupted
    }
}

/// A variant with all its boots, failed ones included.
#[derive(Clone, Debug)]
pub struct VariantBoots<'a> {
    /// The variant.
    pub variant: &'a model::Variant,
    /// Its boots, in the order they were kept.
    pub boots: Vec<KeptBoot<'a>>,
}

impl<'a> VariantBoots<'a> {
    fn name(&self) -> &'a str {
        &self.variant.name
    }

    /// The boots that stand for their places, complete or not.
    fn standing(&self) -> impl Iterator<Item = &KeptBoot<'a>> {
        self.boots.iter().filter(|kept| kept.stands())
    }

    /// The boots that count.
    fn complete(&self) -> impl Iterator<Item = &'a Boot> {
        self.standing().map(|kept| kept.boot).filter(|boot| boot.outcome.is_complete())
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
    /// The boots that failed.
    pub failed: Vec<FailedBoot>,
    /// The boots that were interrupted, or failed and are done again.
    pub set_aside: Vec<SetAside>,
}

/// A boot that did not complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedBoot {
    /// Its name, such as `b3`.
    pub boot: String,
    /// How it ended.
    pub outcome: String,
}

/// A boot that neither counts nor stands for its place in the schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SetAside {
    /// Its name, such as `b3`.
    pub boot: String,
    /// How it ended.
    pub outcome: String,
    /// Whether another boot has taken its place since.
    pub done_again: bool,
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
    let failed = column.standing().filter(|kept| !kept.boot.outcome.is_complete());
    let aside = column.boots.iter().filter(|kept| !kept.stands());
    Variant {
        name: column.name().to_owned(),
        complete: column.complete().count(),
        failed: failed
            .map(|kept| FailedBoot {
                boot: kept.name.clone(),
                outcome: kept.boot.outcome.to_string(),
            })
            .collect(),
        set_aside: aside
            .map(|kept| SetAside {
                boot: kept.name.clone(),
                outcome: kept.boot.outcome.to_string(),
                done_again: column
                    .standing()
                    .any(|other| other.boot.replicate == kept.boot.replicate),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{boot, columns, failed, manifest, sample};

    #[test]
    fn the_baseline_becomes_the_first_column() {
        let variants = ["a", "b", "c", "d"].map(testing::variant);
        let none: &[Boot] = &[];
        let columns = columns(&variants, &[none; 4]);
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
        let variants = ["a", "b"].map(testing::variant);
        let columns = columns(&variants, &[&boots, &boots[1..]]);
        let comparison = compare(&[manifest()], &columns, 0);
        assert_eq!(comparison.variants[0].complete, 1);
        assert_eq!(comparison.variants[1].complete, 0);
        let outcome = "failed: workload autonuma exited with 1";
        let failed = &comparison.variants[1].failed[0];
        assert_eq!((&*failed.boot, &*failed.outcome), ("b0", outcome));
        let max = comparison.tables[0].rows.last().unwrap();
        assert_eq!(max.values, [Some(2.0), None]);
    }

    #[test]
    fn a_workload_without_any_figure_has_no_table() {
        let boots = [boot(0)];
        let variants = [testing::variant("a")];
        let comparison = compare(&[manifest()], &columns(&variants, &[&boots]), 0);
        assert_eq!(comparison.tables, []);
    }

    #[test]
    fn interrupted_and_superseded_boots_are_no_failures() {
        let interrupted = |replicate| Boot { outcome: Outcome::Interrupted, ..boot(replicate) };
        let boots = [
            interrupted(0),
            boot(0),
            failed(1, "no answer"),
            interrupted(1),
            failed(2, "no answer"),
            failed(2, "no answer either"),
        ];
        let variants = [testing::variant("a")];
        let mut columns = columns(&variants, &[&boots]);
        for superseded in [2, 4] {
            columns[0].boots[superseded].superseded = true;
        }
        let comparison = compare(&[], &columns, 0);
        let variant = &comparison.variants[0];
        assert_eq!(variant.complete, 1);
        let failed: Vec<_> = variant.failed.iter().map(|it| &*it.boot).collect();
        assert_eq!(failed, ["b5"]);
        let aside = variant.set_aside.iter().map(|it| (&*it.boot, it.done_again));
        let expected = [("b0", true), ("b2", false), ("b3", false), ("b4", true)];
        assert_eq!(aside.collect::<Vec<_>>(), expected);
    }
}
