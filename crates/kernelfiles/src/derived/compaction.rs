//! Rows of compaction and migration.
//!
//! # Compaction cost
//!
//! (7 `compact_migrate_scanned` + 7 `compact_free_scanned` + 19 `compact_isolated` + 1038
//! `pgmigrate_success` + 14 `pgmigrate_fail`) / 10^6, a dimensionless figure. This is the formula that
//! mmtests intends. By mistake mmtests omits the free scanner, so its tables show less.

use super::Expr::{Counter, Millions, Sum};
use super::{Derived, Expr, Section};

const MIGRATE_SCANNED: Expr = Counter("compact_migrate_scanned");
const FREE_SCANNED: Expr = Counter("compact_free_scanned");
const MIGRATION_NOTE: &str =
    "Every kind of migration: for compaction, NUMA balancing, demotion, move_pages(2).";

const fn row(
    label: &'static str,
    formula: Expr,
    unit: &'static str,
    note: &'static str,
) -> Derived {
    Derived::count(Section::Compaction, label, formula, unit, note)
}

pub(super) static ROWS: &[Derived] = &[
    row("Compaction stalls", Counter("compact_stall"), "events", ""),
    row("Compaction success", Counter("compact_success"), "events", ""),
    row("Compaction failures", Counter("compact_fail"), "events", ""),
    Derived::percent(
        Section::Compaction,
        "Compaction efficiency",
        &Counter("compact_success"),
        &Counter("compact_stall"),
        "Stalls after which the allocation succeeded.",
    ),
    row("Page migrate success", Counter("pgmigrate_success"), "pages", MIGRATION_NOTE),
    row("Page migrate failure", Counter("pgmigrate_fail"), "pages", MIGRATION_NOTE),
    row("Compaction pages isolated", Counter("compact_isolated"), "pages", ""),
    row("Compaction migrate scanned", MIGRATE_SCANNED, "pages", ""),
    row("Compaction free scanned", FREE_SCANNED, "pages", ""),
    Derived::percent(
        Section::Compaction,
        "Compact scan efficiency",
        &MIGRATE_SCANNED,
        &FREE_SCANNED,
        "Above 100 where free pages are easier to find than pages to move.",
    ),
    Derived {
        decimals: 2,
        ..row(
            "Compaction cost",
            Millions(&Sum(&[
                (7.0, MIGRATE_SCANNED),
                (7.0, FREE_SCANNED),
                (19.0, Counter("compact_isolated")),
                (1038.0, Counter("pgmigrate_success")),
                (14.0, Counter("pgmigrate_fail")),
            ])),
            "model units",
            "A model, and of x86-64. Migrations of every kind are in it. mmtests leaves out the \
             free scanner by a slip.",
        )
    },
    row("Kcompactd wake", Counter("compact_daemon_wake"), "events", ""),
    row("Kcompactd migrate scanned", Counter("compact_daemon_migrate_scanned"), "pages", ""),
    row("Kcompactd free scanned", Counter("compact_daemon_free_scanned"), "pages", ""),
];

#[cfg(test)]
mod tests {
    use crate::derived::tests::{cell, printed};

    #[test]
    fn the_free_scanner_costs_too() {
        let counters = [
            ("compact_stall", 8),
            ("compact_success", 6),
            ("compact_fail", 2),
            ("compact_migrate_scanned", 1_000_000),
            ("compact_free_scanned", 4_000_000),
            ("compact_isolated", 500_000),
            ("pgmigrate_success", 200_000),
            ("pgmigrate_fail", 10_000),
        ];
        let table = printed(&counters, None);
        assert_eq!(cell(&table, "Compaction efficiency"), "75.00");
        assert_eq!(cell(&table, "Compact scan efficiency"), "25.00");
        // 7 + 28 + 9.5 + 207.6 + 0.14
        assert_eq!(cell(&table, "Compaction cost"), "252.24");
    }

    #[test]
    fn the_old_name_of_splits() {
        assert_eq!(cell(&printed(&[("thp_split", 3)], None), "THP split"), "3");
        assert_eq!(cell(&printed(&[("thp_split_page", 4)], None), "THP split"), "4");
    }
}
