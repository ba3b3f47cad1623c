//! The table of durations: what a boot spent on a workload.

use model::{Boot, Usage};

use crate::table::gains;
use crate::{Kind, Pool, Row, Statistic, Table, VariantBoots};

/// A row: its label and which of the times it is.
type Time = (&'static str, fn(&Usage) -> f64);

const TIMES: [Time; 3] = [
    ("User", |usage| usage.user),
    ("System", |usage| usage.system),
    ("Elapsed", |usage| usage.elapsed),
];

/// User, System and Elapsed of `workload`: the sum over a boot's iterations, the mean over the
/// complete boots. No direction: what a workload does in a fixed time costs more when more is
/// done.
pub fn table(workload: &str, columns: &[VariantBoots<'_>]) -> Table {
    let pools: Vec<Vec<Vec<&Usage>>> =
        columns.iter().map(|column| boots(workload, column)).collect();
    let rows = TIMES.map(|(label, time)| {
        let mean = |boots: &Vec<Vec<&Usage>>| {
            let total: f64 = boots.iter().flatten().map(|usage| time(usage)).sum();
            (!boots.is_empty() && total.is_finite()).then(|| total / boots.len() as f64)
        };
        let values: Vec<_> = pools.iter().map(mean).collect();
        Row {
            metric: label.to_owned(),
            unit: "s".to_owned(),
            better: None,
            statistic: Statistic::Amean,
            gains: gains(None, &values),
            values,
            decimals: 2,
        }
    });
    let pooled =
        |boots: &Vec<Vec<&Usage>>| Pool { iterations: boots.iter().map(Vec::len).collect() };
    Table {
        workload: workload.to_owned(),
        kind: Kind::Duration,
        pooled: pools.iter().map(pooled).collect(),
        units: Vec::new(),
        rows: rows.into_iter().filter(|row| row.values.iter().any(Option::is_some)).collect(),
    }
}

/// The iterations of `workload` in each complete boot that ran it.
fn boots<'a>(workload: &str, column: &VariantBoots<'a>) -> Vec<Vec<&'a Usage>> {
    let iterations = |boot: &'a Boot| -> Vec<&'a Usage> {
        let usage = boot.usage.iter();
        usage.filter(|usage| usage.workload == workload).collect()
    };
    column.complete().map(iterations).filter(|iterations| !iterations.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{boot, columns, variant};

    fn usage(workload: &str, iteration: u32, user: f64) -> Usage {
        Usage { workload: workload.into(), iteration, user, system: 0.0, elapsed: 2.0 * user }
    }

    #[test]
    fn iterations_add_up_and_boots_are_averaged() {
        let mut boots = [boot(0), boot(1), boot(2)];
        boots[0].usage =
            vec![usage("autonuma", 0, 1.0), usage("autonuma", 1, 2.0), usage("other", 0, 50.0)];
        boots[1].usage = vec![usage("autonuma", 0, 4.0), usage("autonuma", 1, 5.0)];
        let variants = ["a", "b"].map(variant);
        let table = table("autonuma", &columns(&variants, &[&boots, &[]]));
        let values: Vec<_> = table.rows.iter().map(|row| row.values[0]).collect();
        assert_eq!(values, [Some(6.0), Some(0.0), Some(12.0)]);
        assert_eq!(table.rows[0].values[1], None);
        assert_eq!(table.pooled[0].iterations, [2, 2]);
    }

    #[test]
    fn without_usage_there_are_no_rows() {
        let boots = [boot(0)];
        let variants = [variant("a")];
        assert_eq!(table("autonuma", &columns(&variants, &[&boots])).rows, []);
    }
}
