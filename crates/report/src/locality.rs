//! The true local-access share over time.

use std::fmt::Write;

use compare::Interval;

use crate::ascii::{escape, wrap};

/// The intervals of a workload in one boot as a small table; empty without any.
pub fn locality(workload: &str, intervals: &[Interval]) -> String {
    if intervals.is_empty() {
        return String::new();
    }
    let heading = format!(
        "{}: percent of accesses to the CPU's own node, and of NUMA hinting faults that were local",
        escape(workload)
    );
    let mut text = wrap("", &heading);
    let _ = writeln!(
        text,
        "{:>9}{:>10}{:>10}{:>10}{:>10}",
        "iteration", "until s", "user", "total", "hint"
    );
    let percent = |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{share:.2}"));
    for Interval { iteration, end, user, total, hint } in intervals {
        let [user, total, hint] = [user, total, hint].map(|share| percent(*share));
        let _ = writeln!(text, "{iteration:>9}{end:>10.2}{user:>10}{total:>10}{hint:>10}");
    }
    text
}
