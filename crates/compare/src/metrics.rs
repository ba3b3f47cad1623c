//! The table of a workload's metrics: statistics over all samples of a variant's complete boots.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::{Better, Boot, Manifest, Mean, Metric, Sample};
use stats::Summary;

use crate::table::gains;
use crate::{Kind, Pool, Row, Statistic, Table, VariantBoots};

/// Number of statistics printed of a metric.
const STATISTICS: usize = 5;

/// A metric with its label and phase: what a row is of.
struct Operation {
    name: String,
    metric: Metric,
    /// Where its metric stands in the manifest; after all others if nowhere.
    rank: usize,
    /// The samples of each column.
    pools: Vec<Vec<f64>>,
}

/// The table of `workload`, statistic by statistic as the field prints it. Operations come in the
/// order of the manifest's metrics, and within a metric in the order in which they were first
/// seen.
pub fn table(workload: &Manifest, columns: &[VariantBoots<'_>]) -> Table {
    let operations = operations(workload, columns);
    let decimals = decimals(&operations);
    let rows = (0..STATISTICS).flat_map(|number| {
        let decimals = &decimals;
        operations.iter().map(move |operation| {
            let statistic = statistics(operation.metric.mean)[number];
            row(operation, statistic, decimals[&operation.rank])
        })
    });
    Table {
        workload: workload.name.clone(),
        kind: Kind::Metrics,
        pooled: columns.iter().map(|column| pool(&workload.name, column)).collect(),
        units: units(&operations),
        rows: rows.collect(),
    }
}

/// The unit of each metric that has one.
fn units(operations: &[Operation]) -> Vec<(String, String)> {
    let metrics = operations.chunk_by(|a, b| a.metric == b.metric);
    let metrics = metrics.map(|operations| &operations[0].metric);
    metrics
        .filter(|metric| !metric.unit.is_empty())
        .map(|metric| (metric.name.clone(), metric.unit.clone()))
        .collect()
}

fn pool(workload: &str, column: &VariantBoots<'_>) -> Pool {
    let iterations = |boot: &Boot| {
        let samples = boot.samples.iter();
        let of_workload = samples.filter(|sample| sample.workload == workload);
        let numbers: BTreeSet<u32> = of_workload.map(|sample| sample.iteration).collect();
        numbers.len()
    };
    Pool { iterations: column.complete().map(iterations).filter(|&count| count > 0).collect() }
}

fn operations(workload: &Manifest, columns: &[VariantBoots<'_>]) -> Vec<Operation> {
    let mut operations: Vec<Operation> = Vec::new();
    let mut places: HashMap<[&str; 3], usize> = HashMap::new();
    for (number, column) in columns.iter().enumerate() {
        let samples = column.complete().flat_map(|boot| &boot.samples);
        for sample in samples.filter(|sample| sample.workload == workload.name) {
            let key = [&*sample.metric, &*sample.label, &*sample.phase];
            let place = *places.entry(key).or_insert_with(|| {
                operations.push(operation(workload, sample, columns.len()));
                operations.len() - 1
            });
            operations[place].pools[number].push(sample.value);
        }
    }
    operations.sort_by_key(|operation| operation.rank);
    operations
}

/// The operation that `sample` is of, without any samples yet. A metric that the manifest does
/// not declare is shown all the same, without a direction.
fn operation(workload: &Manifest, sample: &Sample, columns: usize) -> Operation {
    let Sample { metric, label, phase, .. } = sample;
    let mut name = metric.clone();
    for part in [label, phase] {
        if !part.is_empty() {
            name.push('-');
            name.push_str(part);
        }
    }
    let declared = workload.metrics.iter().position(|m| m.name == *metric);
    Operation {
        name,
        metric: declared.map_or_else(
            || Metric {
                name: metric.clone(),
                unit: String::new(),
                better: None,
                mean: Mean::Amean,
            },
            |place| workload.metrics[place].clone(),
        ),
        rank: declared.unwrap_or(workload.metrics.len()),
        pools: vec![Vec::new(); columns],
    }
}

/// Decimals of a percentage, whatever it is of.
const PERCENT_DECIMALS: usize = 2;

fn row(operation: &Operation, statistic: Statistic, decimals: usize) -> Row {
    let Metric { unit, better, .. } = &operation.metric;
    let values: Vec<Option<f64>> =
        operation.pools.iter().map(|pool| value(statistic, &Summary::of(pool)?)).collect();
    // Whatever the metric, less spread is better.
    let better = match statistic {
        Statistic::Stddev | Statistic::CoeffVar => better.map(|_| Better::Lower),
        _ => *better,
    };
    let (unit, decimals) = match statistic {
        Statistic::CoeffVar => ("%", PERCENT_DECIMALS),
        _ => (&**unit, decimals),
    };
    Row {
        metric: operation.name.clone(),
        unit: unit.to_owned(),
        better,
        statistic,
        gains: gains(better, &values),
        values,
        decimals,
    }
}

/// What is printed of a metric with this mean, in order.
fn statistics(mean: Mean) -> [Statistic; STATISTICS] {
    let mean = match mean {
        Mean::Amean => Statistic::Amean,
        Mean::Hmean => Statistic::Hmean,
        Mean::Gmean => Statistic::Gmean,
    };
    [Statistic::Min, mean, Statistic::Stddev, Statistic::CoeffVar, Statistic::Max]
}

fn value(statistic: Statistic, summary: &Summary) -> Option<f64> {
    match statistic {
        Statistic::Min => Some(summary.min),
        Statistic::Amean => Some(summary.amean),
        Statistic::Hmean => summary.hmean,
        Statistic::Gmean => summary.gmean,
        Statistic::Stddev => summary.stddev,
        Statistic::CoeffVar => summary.coeffvar,
        Statistic::Max => Some(summary.max),
    }
}

/// Decimals for each metric, by rank: 2 as the field has it, more where its smallest mean would
/// have fewer than two digits left.
fn decimals(operations: &[Operation]) -> BTreeMap<usize, usize> {
    let mut smallest: BTreeMap<usize, f64> = BTreeMap::new();
    for operation in operations {
        let pools = operation.pools.iter();
        let means = pools.filter_map(|pool| Some(Summary::of(pool)?.amean.abs()));
        let least = smallest.entry(operation.rank).or_insert(f64::INFINITY);
        *least = means.filter(|&mean| mean > 0.0).fold(*least, f64::min);
    }
    let needed = |least: f64| match least {
        0.1.. => 2,
        0.001.. => 4,
        0.00001.. => 6,
        _ => 9,
    };
    smallest.into_iter().map(|(rank, least)| (rank, needed(least))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{boot, columns, manifest, sample, variant};

    fn boots(values: &[(&str, &str, f64)]) -> [Boot; 1] {
        let mut boot = boot(0);
        let samples = values.iter().map(|&(metric, label, value)| sample(metric, label, 0, value));
        boot.samples.extend(samples);
        [boot]
    }

    fn compared(base: &[Boot], new: &[Boot]) -> Table {
        let variants = ["base", "new"].map(variant);
        table(&manifest(), &columns(&variants, &[base, new]))
    }

    fn names(table: &Table) -> Vec<String> {
        let rows = table.rows.iter();
        rows.map(|row| format!("{} {}", row.statistic, row.metric)).collect()
    }

    #[test]
    fn rows_come_statistic_by_statistic_in_the_order_of_the_manifest() {
        let base = boots(&[("Rate", "", 5.0), ("Elapsed", "B", 1.0)]);
        let new = boots(&[("Elapsed", "A", 1.0), ("Own", "", 1.0), ("Elapsed", "B", 1.0)]);
        let table = compared(&base, &new);
        let expected = [
            "Min Elapsed-B",
            "Min Elapsed-A",
            "Min Rate",
            "Min Own",
            "Amean Elapsed-B",
            "Amean Elapsed-A",
            "Hmean Rate",
            "Amean Own",
            "Stddev Elapsed-B",
        ];
        assert_eq!(names(&table)[..9], expected);
        assert_eq!(table.rows.len(), 20);
    }

    #[test]
    fn phases_end_the_name() {
        let mut base = boots(&[("Elapsed", "A", 1.0), ("Elapsed", "", 1.0)]);
        for sample in &mut base[0].samples {
            sample.phase = "steady".into();
        }
        let table = compared(&base, &[]);
        let names = names(&table);
        assert_eq!(names[..2], ["Min Elapsed-A-steady", "Min Elapsed-steady"]);
    }

    #[test]
    fn gains_follow_the_direction() {
        let base = boots(&[
            ("Elapsed", "", 2.0),
            ("Elapsed", "", 4.0),
            ("Rate", "", 10.0),
            ("CPU", "", 1.0),
        ]);
        let new = boots(&[
            ("Elapsed", "", 1.0),
            ("Elapsed", "", 5.0),
            ("Rate", "", 20.0),
            ("CPU", "", 2.0),
        ]);
        let table = compared(&base, &new);
        let gain = |statistic, metric: &str| {
            let mut rows = table.rows.iter();
            rows.find(|row| row.statistic == statistic && row.metric == metric).unwrap().gains[1]
        };
        assert_eq!(gain(Statistic::Min, "Elapsed"), Some(50.0));
        assert_eq!(gain(Statistic::Amean, "Elapsed"), Some(0.0));
        assert_eq!(gain(Statistic::Stddev, "Elapsed"), Some(-100.0));
        assert_eq!(gain(Statistic::Max, "Elapsed"), Some(-25.0));
        assert_eq!(gain(Statistic::Hmean, "Rate"), Some(100.0));
        assert_eq!(gain(Statistic::Amean, "CPU"), None);
    }

    #[test]
    fn what_is_missing_is_absent() {
        let base = boots(&[("Elapsed", "A", 2.0)]);
        let new = boots(&[("Elapsed", "B", 2.0)]);
        let table = compared(&base, &new);
        assert_eq!(table.rows[0].values, [Some(2.0), None]);
        assert_eq!(table.rows[0].gains, [Some(0.0), None]);
        assert_eq!(table.rows[1].values, [None, Some(2.0)]);
        assert_eq!(table.rows[1].gains, [None, None]);
    }

    #[test]
    fn boots_and_iterations_are_pooled() {
        let mut boots = [boot(0), boot(1)];
        let values = [1.0, 2.0, 4.0, 9.0];
        for (number, value) in values.into_iter().enumerate() {
            let iteration = number as u32 % 2;
            boots[number / 2].samples.push(sample("Elapsed", "", iteration, value));
        }
        let table = compared(&boots, &[]);
        assert_eq!(table.pooled[0].iterations, [2, 2]);
        assert_eq!(table.pooled[1].iterations, []);
        assert_eq!(table.rows[1].values[0], Some(4.0));
    }

    #[test]
    fn small_figures_get_more_decimals() {
        let base = boots(&[("Elapsed", "A", 120.0), ("Elapsed", "B", 0.02), ("Rate", "", 3.0)]);
        let table = compared(&base, &[]);
        let decimals: Vec<_> = table.rows[..3].iter().map(|row| row.decimals).collect();
        assert_eq!(decimals, [4, 4, 2]);
    }
}
