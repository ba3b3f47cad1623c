//! The rows of the NUMA table, from differences of `/proc/vmstat` over a span.
//!
//! # Page table updates
//!
//! `numa_pte_updates` counts the base pages whose protection a NUMA scan changed, and a huge page is
//! [`PAGES_PER_PMD`] of them: `change_pmd_range()` in `mm/mprotect.c` adds `HPAGE_PMD_NR` to the pages it
//! returns and one to `numa_huge_pte_updates`, and `change_prot_numa()` in `mm/mempolicy.c` adds the
//! returned number to `numa_pte_updates`. This was read in the sources of Linux 5.10, 6.1, 6.12 and 7.3,
//! and holds since 3.13. So the range is `numa_pte_updates` itself, and base-page updates are the range
//! without the huge ones.
//!
//! Tables made before October 2019 count the huge updates twice: where they print 111407972 base PTE
//! updates, 206506 huge PMD updates and a range of 217139044, the range was 111407972, of which 5676900
//! were base pages.
//!
//! `numa_huge_pte_updates` is also incremented by an ordinary mprotect(2) of huge pages, `numa_pte_updates`
//! is not. Base-page updates below zero show that a workload does that.
//!
//! # AutoNUMA cost
//!
//! (7 `numa_pte_updates` + 5000 `numa_hint_faults` + 19 `numa_pages_migrated`) / 10^6, a dimensionless
//! figure: a scanned PTE costs 7, a fault 5000, a migrated page 19. This is what mmtests prints, so that
//! tables can be compared. It omits the copying of pages, and the 7 is for x86-64.

use super::Expr::{Counter, Millions, Sum};
use super::{Derived, Expr, Section};

/// Base pages mapped by one entry of the page middle directory: 2 MiB of 4 KiB pages on x86-64.
pub const PAGES_PER_PMD: i64 = 512;

/// The same as a weight in a sum.
const HUGE: f64 = PAGES_PER_PMD as f64;

const RANGE: Expr = Counter("numa_pte_updates");
const FAULTS: Expr = Counter("numa_hint_faults");
const LOCAL: Expr = Counter("numa_hint_faults_local");
const MIGRATED: Expr = Counter("numa_pages_migrated");

const fn row(
    label: &'static str,
    formula: Expr,
    unit: &'static str,
    note: &'static str,
) -> Derived {
    Derived::count(Section::Numa, label, formula, unit, note)
}

/// mmtests and the documentation say pages (`zone_statistics()` in `mm/page_alloc.c`).
const ALLOCATIONS: &str = "An allocation of any order counts once.";

pub(super) static ROWS: &[Derived] = &[
    row("NUMA alloc hit", Counter("numa_hit"), "allocations", ALLOCATIONS),
    row("NUMA alloc miss", Counter("numa_miss"), "allocations", ALLOCATIONS),
    row("NUMA interleave hit", Counter("numa_interleave"), "allocations", ALLOCATIONS),
    row("NUMA alloc local", Counter("numa_local"), "allocations", ALLOCATIONS),
    row(
        "NUMA base-page updates",
        Sum(&[(1.0, RANGE), (-HUGE, Counter("numa_huge_pte_updates"))]),
        "PTEs",
        "Below zero where a workload changes the protection of huge pages by mprotect(2).",
    ),
    row("NUMA huge PMD updates", Counter("numa_huge_pte_updates"), "PMDs", ""),
    row(
        "NUMA page range updates",
        RANGE,
        "PTEs",
        "In base pages, huge ones included. Tables made before October 2019 add the huge ones \
         once more.",
    ),
    row("NUMA hint faults", FAULTS, "faults", ""),
    row(
        "NUMA hint local faults",
        LOCAL,
        "faults",
        "A number of faults. mmtests prints a percent sign in its name.",
    ),
    Derived::percent(
        Section::Numa,
        "NUMA hint local percent",
        &LOCAL,
        &FAULTS,
        "Of the faults that balancing provoked, not of the accesses.",
    ),
    row("NUMA pages migrated", MIGRATED, "pages", ""),
    Derived {
        decimals: 2,
        ..row(
            "AutoNUMA cost",
            Millions(&Sum(&[(7.0, RANGE), (5000.0, FAULTS), (19.0, MIGRATED)])),
            "model units",
            "A model, and of x86-64, without the copying of pages. As mmtests prints it.",
        )
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derived::rows;
    use crate::derived::tests::{cell, printed as all};

    fn printed(counters: &[(&str, i64)]) -> Vec<(&'static str, String)> {
        let table = all(counters, None).into_iter().zip(rows());
        let own = table.filter(|(_, row)| row.section == Section::Numa);
        own.map(|(cells, _)| cells).collect()
    }

    /// Raghavendra K T's table of 31 May 2023, "sched/numa: Fix disjoint set vma scan regression".
    #[test]
    fn the_disjoint_vma_scan_table() {
        let columns = [
            (147_858_285, 150_531_983, 125_691_825, 13_535_786, "83.50", "753952.10"),
            (18_601, 18_254, 11_964, 2_207, "65.54", "91.44"),
            (42_043_107, 42_450_080, 32_993_313, 4_654_628, "77.72", "212633.14"),
        ];
        for (range, faults, local, migrated, percent, cost) in columns {
            let table = printed(&[
                ("numa_pte_updates", range),
                ("numa_huge_pte_updates", 0),
                ("numa_hint_faults", faults),
                ("numa_hint_faults_local", local),
                ("numa_pages_migrated", migrated),
            ]);
            assert_eq!(cell(&table, "NUMA base-page updates"), range.to_string());
            assert_eq!(cell(&table, "NUMA page range updates"), range.to_string());
            assert_eq!(cell(&table, "NUMA hint local faults"), local.to_string());
            assert_eq!(cell(&table, "NUMA hint local percent"), percent);
            assert_eq!(cell(&table, "AutoNUMA cost"), cost);
        }
    }

    /// Columns of Mel Gorman's tables in commit 09a913a7 (4.16) and in the thread "mm: numa: Slow
    /// PTE scan rate if migration failures occur" (4.0-rc1, 3.19).
    #[test]
    fn ranges_printed_before_2019_hold_huge_updates_twice() {
        for (pte_updates, huge, printed_range, base) in [
            (111_407_972, 206_506, 217_139_044, "5676900"),
            (242_201_535, 113_270, 300_195_775, "184207295"),
            (222_840_103, 434_894, 445_505_831, "174375"),
        ] {
            let table =
                printed(&[("numa_pte_updates", pte_updates), ("numa_huge_pte_updates", huge)]);
            assert_eq!(cell(&table, "NUMA base-page updates"), base);
            assert_eq!(cell(&table, "NUMA huge PMD updates"), huge.to_string());
            let range: i64 = cell(&table, "NUMA page range updates").parse().unwrap();
            assert_eq!(range + PAGES_PER_PMD * huge, printed_range);
        }
    }

    /// The same two tables, which print whole percents, truncated.
    #[test]
    fn local_percents_of_the_old_tables() {
        for (faults, local, percent) in [
            (180_388_025, 72_784_532, 40),
            (87_299_060, 32_939_258, 37),
            (147_235_021, 61_866_265, 42),
            (4_300_924, 3_012_539, 70),
            (3_719_784, 3_416_618, 91),
        ] {
            let table = printed(&[("numa_hint_faults", faults), ("numa_hint_faults_local", local)]);
            let share: f64 = cell(&table, "NUMA hint local percent").parse().unwrap();
            assert_eq!(share as i64, percent);
        }
    }

    #[test]
    fn what_is_missing_has_no_value() {
        let table = printed(&[("numa_hit", 7), ("numa_pte_updates", 9)]);
        assert_eq!(table.len(), 12);
        assert_eq!(cell(&table, "NUMA alloc hit"), "7");
        assert_eq!(cell(&table, "NUMA page range updates"), "9");
        let missing = table.iter().filter(|row| row.1 == "-").count();
        assert_eq!(missing, 10);
    }

    #[test]
    fn no_faults_have_no_local_share() {
        let table = printed(&[("numa_hint_faults", 0), ("numa_hint_faults_local", 0)]);
        assert_eq!(cell(&table, "NUMA hint local faults"), "0");
        assert_eq!(cell(&table, "NUMA hint local percent"), "-");
    }
}
