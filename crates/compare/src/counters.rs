//! The table of counters: what the kernel did for a workload.

use std::collections::BTreeSet;

use kernelfiles::numa;
use model::{Boot, Chunk, ProblemKind, Source};

use crate::table::gains;
use crate::{Kind, Pool, Row, Statistic, Table, VariantBoots};

/// The unit of rows that are a share of others.
const PERCENT: &str = "%";

/// The NUMA rows of `workload`: the sum over the phases and iterations of a boot, the mean over
/// the complete boots. Percentages are taken of the means, for percentages do not average.
pub fn table(workload: &str, columns: &[VariantBoots<'_>]) -> Table {
    let pools: Vec<Vec<Vec<&Chunk>>> =
        columns.iter().map(|column| boots(workload, column)).collect();
    let derived: Vec<Vec<numa::Row>> = pools.iter().map(|boots| means(boots)).collect();
    let rows = derived.first().map_or(0, Vec::len);
    let rows = (0..rows).filter_map(|number| {
        let values: Vec<_> = derived.iter().map(|rows| rows[number].value).collect();
        let row = &derived[0][number];
        values.iter().any(Option::is_some).then(|| Row {
            metric: row.label.to_owned(),
            unit: row.unit.to_owned(),
            better: None,
            statistic: Statistic::Amean,
            gains: gains(None, &values),
            values,
            decimals: row.decimals,
        })
    });
    Table {
        workload: workload.to_owned(),
        kind: Kind::Counters,
        units: Vec::new(),
        rows: rows.collect(),
        pooled: pools.iter().map(|boots| pool(boots)).collect(),
    }
}

/// The chunks of `/proc/vmstat` in each complete boot that has all of them.
fn boots<'a>(workload: &str, column: &VariantBoots<'a>) -> Vec<Vec<&'a Chunk>> {
    let chunks = |boot: &'a Boot| -> Vec<&'a Chunk> {
        let chunks = boot.chunks.iter();
        chunks.filter(|chunk| chunk.workload == workload && chunk.is_of(Source::Vmstat)).collect()
    };
    column
        .complete()
        .filter(|boot| !lost_series(boot))
        .map(chunks)
        .filter(|chunks| !chunks.is_empty())
        .collect()
}

fn lost_series(boot: &Boot) -> bool {
    let mut problems = boot.problems.iter();
    problems.any(|problem| problem.kind == ProblemKind::SeriesDropped)
}

/// The rows of all `boots` together, a boot's share of each. A percentage is no sum to be shared.
fn means(boots: &[Vec<&Chunk>]) -> Vec<numa::Row> {
    let mut rows = numa::rows(&|counter| total(boots, counter));
    for row in rows.iter_mut().filter(|row| row.unit != PERCENT) {
        row.value = row.value.map(|total| total / boots.len() as f64);
    }
    rows
}

/// By how much a counter grew in all boots. None if some chunk lacks it, or there is no boot.
fn total(boots: &[Vec<&Chunk>], counter: &str) -> Option<i64> {
    if boots.is_empty() {
        return None;
    }
    let chunks = boots.iter().flatten();
    // Added up as i128: a guest may claim any difference.
    let differences = chunks.map(|chunk| chunk.difference(counter).map(i128::from));
    let total: Option<i128> = differences.sum();
    i64::try_from(total?).ok()
}

fn pool(boots: &[Vec<&Chunk>]) -> Pool {
    let iterations = |chunks: &Vec<&Chunk>| {
        let numbers = chunks.iter().map(|chunk| chunk.iteration);
        numbers.collect::<BTreeSet<u32>>().len()
    };
    Pool { iterations: boots.iter().map(iterations).collect() }
}

#[cfg(test)]
mod tests {
    use model::Problem;

    use super::*;
    use crate::testing::{boot, chunk, columns, variant};

    fn faults(all: i64, local: i64) -> [(&'static str, i64); 2] {
        [("numa_hint_faults", all), ("numa_hint_faults_local", local)]
    }

    fn table_of(boots: &[&[Boot]]) -> Table {
        let variants = vec![variant(""); boots.len()];
        table("autonuma", &columns(&variants, boots))
    }

    fn values(table: &Table, label: &str) -> Vec<Option<f64>> {
        let row = table.rows.iter().find(|row| row.metric == label);
        row.map(|row| row.values.clone()).unwrap_or_default()
    }

    #[test]
    fn phases_and_iterations_add_up_and_boots_are_averaged() {
        let mut boots = [boot(0), boot(1)];
        boots[0].chunks = vec![
            chunk(0, "", &faults(1, 1)),
            chunk(0, "run", &faults(10, 1)),
            chunk(1, "run", &faults(89, 8)),
        ];
        boots[1].chunks = vec![chunk(0, "", &faults(300, 290))];
        let mut elsewhere = chunk(0, "", &faults(7, 7));
        elsewhere.workload = "other".into();
        boots[1].chunks.push(elsewhere);

        let table = table_of(&[&boots]);
        assert_eq!(values(&table, "NUMA hint faults"), [Some(200.0)]);
        // 150 of 200, not the mean of 10 % and 97 %.
        assert_eq!(values(&table, "NUMA hint local percent"), [Some(75.0)]);
        assert_eq!(table.pooled[0].iterations, [2, 1]);
    }

    #[test]
    fn what_a_kernel_does_not_count_is_absent() {
        let mut with = boot(0);
        with.chunks = vec![chunk(0, "", &faults(4, 1))];
        let mut without = boot(0);
        without.chunks = vec![chunk(0, "", &[("pgfault", 4)])];
        let table = table_of(&[&[with], &[without]]);
        assert_eq!(values(&table, "NUMA hint faults"), [Some(4.0), None]);
        assert_eq!(values(&table, "NUMA pages migrated"), []);
    }

    #[test]
    fn boots_that_lost_series_do_not_count() {
        let mut boots = [boot(0), boot(1)];
        for (boot, all) in boots.iter_mut().zip([4, 1000]) {
            boot.chunks = vec![chunk(0, "", &faults(all, 0))];
        }
        boots[1].problems.push(Problem { kind: ProblemKind::SeriesDropped, text: String::new() });
        let table = table_of(&[&boots]);
        assert_eq!(values(&table, "NUMA hint faults"), [Some(4.0)]);
        assert_eq!(table.pooled[0].iterations, [1]);
    }

    #[test]
    fn differences_beyond_all_bounds_are_survived() {
        let mut boots = [boot(0)];
        boots[0].chunks = vec![chunk(0, "", &faults(i64::MAX - 1000, 0)); 3];
        assert_eq!(table_of(&[&boots]).rows.len(), 1);
    }
}
