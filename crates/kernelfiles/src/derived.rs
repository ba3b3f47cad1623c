//! Rows derived from counters of `/proc/vmstat`: the activity of reclaim, huge pages, compaction and NUMA
//! balancing over a span, with the names used on the kernel's lists.
//!
//! The rows are data (`derived.toml`). The same formula is evaluated, printed, and searched for counters, so these
//! three always agree. Names and formulas are those of mmtests, with these differences:
//!
//! - `Allocation stalls` adds up all zones. mmtests shows the zone that was printed last.
//! - `KiB paged in` and `KiB paged out` are its "Sector Reads" and "Sector Writes": `pgpgin` and `pgpgout`
//!   count KiB.
//! - `NUMA hint local faults` has no percent sign: it is a number.
//! - `Page writes file` subtracts pages that went to zswap, and pages of zeros that were not written.
//! - `Compaction cost` includes the scanning of the free scanner, as intended by mmtests.
//! - A share of 0 has no value, where mmtests has 100, 1 or 0.
//! - Velocities are over the time between the two readings of the counters. The elapsed time of a benchmark ends long
//!   before the second reading.
//! - Zone velocities exist only for kernels that scan by zone (before 4.8). Since then kernels scan by
//!   node.

mod expr;
mod parse;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

pub use expr::{Differences, Expr, ZONES};
pub use parse::Formula;

/// The section of the table that has a row, in the order of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Section {
    /// Faults, swapping, allocation and reclaim.
    #[default]
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
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Derived {
    /// The section of the table that has the row.
    #[serde(skip)]
    pub section: Section,
    /// The row's label.
    pub label: &'static str,
    /// The value's unit.
    pub unit: &'static str,
    /// Digits to print after the decimal point.
    #[serde(default)]
    pub decimals: usize,
    /// The formula of the value.
    pub formula: Formula,
    /// The size of base pages in bytes for which the formula holds; `None` if it holds for all.
    #[serde(default)]
    pub page_size: Option<u64>,
    /// What a reader must know to interpret it; empty if there is nothing.
    #[serde(default)]
    pub note: &'static str,
}

impl Derived {
    /// The value over a span; `None` if the kernel lacks a counter that it needs, or if it is a share of 0.
    pub fn value(&self, differences: &Differences<'_>) -> Option<f64> {
        self.formula.expr.value(differences)
    }

    /// Whether it holds for base pages of this size in bytes, or of a size that is not known (0).
    pub fn holds_for(&self, page_size: u64) -> bool {
        page_size == 0 || self.page_size.is_none_or(|it| it == page_size)
    }

    /// Whether it is a share or a rate. These cannot be added up over spans.
    pub const fn is_ratio(&self) -> bool {
        matches!(self.formula.expr, Expr::Percent(..) | Expr::PerSecond(_))
    }
}

static ROWS: LazyLock<Vec<Derived>> = LazyLock::new(|| {
    // The file is part of this program, and tests read it, so this cannot fail.
    let sections: BTreeMap<Section, Vec<Derived>> =
        toml::from_str(include_str!("derived.toml")).expect("sound rows");
    let of =
        |(section, rows): (_, Vec<_>)| rows.into_iter().map(move |row| Derived { section, ..row });
    sections.into_iter().flat_map(of).collect()
});

/// Every row, in the order of the table.
pub fn rows() -> impl Iterator<Item = &'static Derived> {
    ROWS.iter()
}

/// The row of this name, case-insensitive.
pub fn find(label: &str) -> Option<&'static Derived> {
    rows().find(|row| row.label.eq_ignore_ascii_case(label))
}
