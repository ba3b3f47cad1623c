//! The table of durations: the time that a boot spent on a workload.

use model::{Boot, Mode, Usage, WorkloadUse};
use stats::Summary;

use crate::figures::BootFigures;
use crate::figures::steady::{Part, Steady};
use crate::verdicts::exact::{self, SeedRow};
use crate::verdicts::judge::judge;
use crate::{HostBlock, Judging, Kind, Pool, Row, Statistic, Table, VariantBoots, Variation};

/// A row's label, and the time that it shows.
type Time = (&'static str, fn(&Usage) -> f64);

const TIMES: [Time; 3] = [
    ("User", |usage| usage.user),
    ("System", |usage| usage.system),
    ("Elapsed", |usage| usage.elapsed),
];

/// The rows User, System and Elapsed of a workload. A value is a sum over a boot's iterations that count, as the mean
/// over complete boots. The rows have no direction, because a workload that runs for a fixed time uses more CPU time
/// if it does more.
pub fn table(
    used: &WorkloadUse,
    columns: &[VariantBoots<'_>],
    steady: &Steady,
    mode: Mode,
    judging: &Judging,
) -> Table {
    let pools: Vec<Vec<Spent>> = columns.iter().map(|column| boots(used, column)).collect();
    let mut held = Vec::new();
    let rows = TIMES.into_iter().enumerate().map(|(number, (label, time))| {
        let values = pools.iter().map(|boots| mean(boots, time)).collect();
        let row = Row::new(label, "s", None, Statistic::Amean, values, 2);
        let totals = pools
            .iter()
            .map(|boots| boots.iter().map(|spent| (spent.boot, Some(spent.total(time)))));
        match mode {
            Mode::Exact => {
                held.push(SeedRow::listed(number, columns, totals));
                row
            }
            Mode::Measured => {
                let figures: Vec<_> = totals.map(BootFigures::of_boots).collect();
                let row = row.against_boots(&figures, judging);
                let variation = pools.iter().map(|boots| {
                    let host = |spent: &Spent<'_>| HostBlock::of(spent.boot).host;
                    Variation::within_hosts(boots.iter().map(|it| (host(it), it.times(time))))
                });
                row.with_variation(variation)
            }
        }
    });
    let mut rows: Vec<Row> = rows.collect();
    match mode {
        Mode::Exact => exact::judge(&mut rows, &held, judging),
        Mode::Measured => judge(&mut rows, |_| false, judging),
    }
    let pooled = |boots: &Vec<Spent>| Pool {
        iterations: boots.iter().map(|boot| boot.iterations.len()).collect(),
        warmup: used.warmup,
    };
    Table {
        workload: used.manifest.name.clone(),
        kind: Kind::Duration,
        pooled: pools.iter().map(pooled).collect(),
        with_preparation: used.manifest.preparation.iter().any(|it| !it.is_empty()),
        part: steady.within.then_some(Part::Whole),
        rows: rows.into_iter().filter(|row| row.values().any(|value| value.is_some())).collect(),
        ..Table::default()
    }
}

/// The times that one boot spent.
struct Spent<'a> {
    boot: &'a Boot,
    iterations: Vec<&'a Usage>,
}

impl Spent<'_> {
    /// One time per iteration.
    fn times(&self, time: fn(&Usage) -> f64) -> Vec<f64> {
        self.iterations.iter().map(|usage| time(usage)).collect()
    }

    fn total(&self, time: fn(&Usage) -> f64) -> f64 {
        self.times(time).iter().sum()
    }
}

/// The mean over boots of their totals. `None` without boots, or if a total is not finite.
fn mean(boots: &[Spent<'_>], time: fn(&Usage) -> f64) -> Option<f64> {
    let mut totals: Vec<f64> = boots.iter().map(|boot| boot.total(time)).collect();
    // Sorted, so that the sum does not depend on the order of boots.
    totals.sort_by(f64::total_cmp);
    Some(Summary::of(&totals)?.amean)
}

/// The complete boots that ran the workload.
fn boots<'a>(used: &WorkloadUse, column: &VariantBoots<'a>) -> Vec<Spent<'a>> {
    let spent = |boot: &'a Boot| {
        let usage = boot.usage.iter().filter(|usage| usage.workload == used.manifest.name);
        Spent { boot, iterations: usage.filter(|usage| used.counts(usage.iteration)).collect() }
    };
    column.complete().map(spent).filter(|spent| !spent.iterations.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{boot, columns, manifest, used, variant};

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
        let (used, columns) = (used(manifest()), columns(&variants, &[&boots, &[]]));
        let table = table(&used, &columns, &Steady::default(), Mode::Measured, &Judging::default());
        let values: Vec<_> = table.rows.iter().map(|row| row.value(0)).collect();
        assert_eq!(values, [Some(6.0), Some(0.0), Some(12.0)]);
        assert_eq!(table.rows[0].value(1), None);
        assert_eq!(table.pooled[0].iterations, [2, 2]);
    }

    #[test]
    fn without_usage_there_are_no_rows() {
        let boots = [boot(0)];
        let variants = [variant("a")];
        let (used, columns) = (used(manifest()), columns(&variants, &[&boots]));
        let table = table(&used, &columns, &Steady::default(), Mode::Measured, &Judging::default());
        assert_eq!(table.rows, []);
    }
}
