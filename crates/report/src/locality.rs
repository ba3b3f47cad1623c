//! The share of memory accesses to the CPU's own node, over time.

use plots::Interval;

use crate::document::{Column, TEXT, sentence, table, text};

/// Lays out the intervals of a workload in one boot as a small table; empty if there are none.
pub fn locality(workload: &str, intervals: &[Interval]) -> String {
    if intervals.is_empty() {
        return String::new();
    }
    let heading = format!(
        "{workload}: percent of accesses to the CPU's own node, and of NUMA hinting faults that were local"
    );
    let percent = |share: &Option<f64>| share.map_or("-".to_owned(), |share| format!("{share:.2}"));
    let rows = intervals.iter().map(|Interval { iteration, end, user, total, hint }| {
        let time = [iteration.to_string(), format!("{end:.2}")];
        time.into_iter().chain([user, total, hint].map(percent)).collect()
    });
    let columns = ["iteration", "until s", "user", "total", "hint"].map(Column::figures);
    text(&[sentence(heading), table(columns, rows.collect())], &TEXT)
}
