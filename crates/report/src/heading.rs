//! The line above a table: what it is of, and how much stands behind it.

use compare::{Comparison, Kind, Pool, Table};
use model::count;

use crate::ascii::{escape, wrap};

/// The heading of `table`.
pub fn text(table: &Table, comparison: &Comparison) -> String {
    let pooled = pooled(table, comparison);
    let what = match table.kind {
        Kind::Metrics => format!("pooled over {pooled}{}", units(table)),
        Kind::Duration => {
            format!("seconds summed over iterations, mean of boots: {pooled}")
        }
        Kind::Counters => {
            format!("counters summed over iterations, mean of boots: {pooled}")
        }
    };
    wrap("", &format!("{}: {what}", escape(&table.workload)))
}

/// Boots and iterations, said once if they are the same for every column.
fn pooled(table: &Table, comparison: &Comparison) -> String {
    let amounts: Vec<String> = table.pooled.iter().map(amount).collect();
    match amounts.as_slice() {
        [only] => only.clone(),
        [first, rest @ ..] if rest.iter().all(|other| other == first) => {
            format!("{first} a column")
        }
        _ => {
            let variants = comparison.variants.iter();
            let columns = variants.zip(&amounts);
            columns
                .map(|(variant, amount)| format!("{amount} in {}", escape(&variant.name)))
                .collect::<Vec<_>>()
                .join(", ")
        }
    }
}

fn amount(pool: &Pool) -> String {
    let boots = pool.iterations.len();
    let least = pool.iterations.iter().min();
    let most = pool.iterations.iter().max();
    match (least, most) {
        (Some(least), Some(most)) if least == most => {
            format!("{} x {}", count(boots, "boot"), count(*most, "iteration"))
        }
        (Some(least), Some(most)) => {
            format!("{} x {least} to {most} iterations", count(boots, "boot"))
        }
        _ => "no boot".to_owned(),
    }
}

/// Units with the metrics that have them: `; Elapsed, System in s; CPU in %`.
fn units(table: &Table) -> String {
    let mut text = String::new();
    for metrics in table.units.chunk_by(|(_, a), (_, b)| a == b) {
        let names: Vec<_> = metrics.iter().map(|(name, _)| escape(name)).collect();
        let unit = escape(&metrics[0].1);
        text.push_str(&format!("; {} in {unit}", names.join(", ")));
    }
    text
}
