//! Rows derived from counters of `/proc/vmstat`: the activity of reclaim, huge pages, compaction and NUMA
//! balancing over a span, with the names used on the kernel's lists.
//!
//! A row is data: the same formula is evaluated, printed, and searched for counters, so these three always
//! agree. Names and formulas are those of mmtests, with these differences:
//!
//! - `Allocation stalls` adds up all zones. mmtests shows the zone that was printed last.
//! - `KiB paged in` and `KiB paged out` are its "Sector Reads" and "Sector Writes": `pgpgin` and `pgpgout`
//!   count KiB.
//! - `NUMA hint local faults` has no percent sign: it is a number.
//! - `Page writes file` subtracts what went to zswap, and pages of zeros that were not written.
//! - `Compaction cost` includes the scanning of the free scanner, as intended by mmtests.
//! - A share of 0 has no value, where mmtests has 100, 1 or 0.
//! - Velocities are over the time between the two readings of the counters, not over a benchmark's elapsed
//!   time that ended long before the second reading.
//! - Zone velocities exist only for kernels that scan by zone (before 4.8). Since then kernels scan by
//!   node.

mod compaction;
mod expr;
mod numa;
mod reclaim;
mod thp;

pub use expr::{Differences, Expr, ZONES};

/// What a row is about, in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// Faults, swapping, allocation and reclaim.
    Reclaim,
    /// Transparent huge pages.
    Thp,
    /// Compaction and migration.
    Compaction,
    /// NUMA placement and balancing.
    Numa,
}

impl Section {
    /// The heading in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reclaim => "Reclaim",
            Self::Thp => "THP",
            Self::Compaction => "Compaction",
            Self::Numa => "NUMA",
        }
    }
}

/// A row of the table of counters.
#[derive(Debug)]
pub struct Derived {
    /// What it is about.
    pub section: Section,
    /// The row's label.
    pub label: &'static str,
    /// The value's unit.
    pub unit: &'static str,
    /// Digits to print after the decimal point.
    pub decimals: usize,
    /// Its formula.
    pub formula: Expr,
    /// What a reader must know to interpret it; empty if nothing.
    pub note: &'static str,
}

impl Derived {
    const fn count(
        section: Section,
        label: &'static str,
        formula: Expr,
        unit: &'static str,
        note: &'static str,
    ) -> Self {
        Self { section, label, unit, decimals: 0, formula, note }
    }

    const fn percent(
        section: Section,
        label: &'static str,
        part: &'static Expr,
        whole: &'static Expr,
        note: &'static str,
    ) -> Self {
        let formula = Expr::Percent(part, whole);
        Self { section, label, unit: "%", decimals: 2, formula, note }
    }

    /// The value over a span; none if the kernel lacks a counter it needs, or if it is a share of 0.
    pub fn value(&self, differences: &Differences<'_>) -> Option<f64> {
        self.formula.value(differences)
    }

    /// Whether it is a share or a rate. These cannot be added up over spans.
    pub const fn is_ratio(&self) -> bool {
        matches!(self.formula, Expr::Percent(..) | Expr::PerSecond(_))
    }
}

/// Every row, in the order of the table.
pub fn rows() -> impl Iterator<Item = &'static Derived> {
    let sections: [&'static [Derived]; 4] =
        [reclaim::ROWS, thp::ROWS, compaction::ROWS, numa::ROWS];
    sections.into_iter().flatten()
}

/// The row of this name, case-insensitive.
pub fn find(label: &str) -> Option<&'static Derived> {
    rows().find(|row| row.label.eq_ignore_ascii_case(label))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The rows as printed, from counters by name; `-` where there is no value.
    pub fn printed(counters: &[(&str, i64)], seconds: Option<f64>) -> Vec<(&'static str, String)> {
        let difference = |name: &str| {
            let counter = counters.iter().find(|(counter, _)| *counter == name)?;
            Some(counter.1 as f64)
        };
        let differences = Differences { of: &difference, seconds };
        let text = |row: &Derived| match row.value(&differences) {
            Some(value) => format!("{value:.*}", row.decimals),
            None => "-".to_owned(),
        };
        rows().map(|row| (row.label, text(row))).collect()
    }

    pub fn cell(table: &[(&'static str, String)], label: &str) -> String {
        let row = table.iter().find(|row| row.0 == label);
        row.expect(label).1.clone()
    }

    #[test]
    fn labels_are_unique_and_sections_follow_each_other() {
        let labels: BTreeSet<_> = rows().map(|row| row.label).collect();
        assert_eq!(labels.len(), rows().count());
        assert!(rows().map(|row| row.section).is_sorted());
        assert_eq!(find("kswapd EFFICIENCY").map(|row| row.label), Some("Kswapd efficiency"));
        assert!(find("Kswapd").is_none());
    }

    #[test]
    fn without_counters_there_are_no_values() {
        assert!(printed(&[], Some(1.0)).iter().all(|(_, text)| text == "-"));
    }

    #[test]
    fn without_time_there_are_no_velocities() {
        let counters = [("pgscan_kswapd", 10), ("pgscan_direct", 10)];
        assert_eq!(cell(&printed(&counters, None), "Kswapd velocity"), "-");
        assert_eq!(cell(&printed(&counters, Some(4.0)), "Kswapd velocity"), "2.500");
    }
}
