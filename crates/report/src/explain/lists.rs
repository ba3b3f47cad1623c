//! Tables of the kernel's cost by what made it execute, and of its instructions by class.

use compare::{ClassCost, Explanation, Reason, Section};

use super::headline::within;
use super::view::{HEADS, ranking, row};
use crate::ascii::excerpt;
use crate::document::Block;

/// The reason why numbers of locked instructions on one CPU are not comparable.
pub const LOCKED_ON_ONE_CPU: &str = "On one CPU some kernels replace their `lock` prefixes when they boot, and others do \
                                     not: locked instructions are comparable with `--cpus 2`.";

/// Lays out the kernel's cost by system call, exception, interrupt, softirq and kernel thread, at most `limit` of them.
pub fn reasons(
    explanation: &Explanation,
    section: &Section,
    reasons: &[Reason],
    limit: usize,
) -> Block {
    let row = |it: &Reason| row(excerpt(&it.name), &it.cost);
    let title = format!(
        "Kernel {}{} by system call, exception, interrupt, softirq and kernel thread",
        explanation.cost.unit,
        within(section)
    );
    let more = reasons.len().checked_sub(limit).filter(|more| *more > 0);
    let foot = more.map(|more| format!("{more} more")).into_iter().collect();
    ranking(&title, &HEADS, reasons.iter().take(limit).map(row).collect(), foot)
}

/// Lays out the kernel's instructions of each class. `None` if none is known.
pub fn classes(explanation: &Explanation, section: &Section) -> Option<Block> {
    let all = &explanation.classes;
    let title = format!("Kernel instructions{} by class", within(section));
    let of = |it: &ClassCost| format!("{} (--cost {})", it.cost.unit, it.cost.name);
    let rows = all.iter().map(|it| row(of(it), &it.instructions)).collect();
    (!all.is_empty()).then(|| ranking(&title, &HEADS, rows, Vec::new()))
}
