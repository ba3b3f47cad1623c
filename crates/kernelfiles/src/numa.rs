//! The rows of the NUMA table, from differences of `/proc/vmstat` over a span.
//!
//! # Page table updates
//!
//! `numa_pte_updates` counts the base pages whose protection a NUMA scan changed, and a huge page
//! is [`PAGES_PER_PMD`] of them: `change_pmd_range()` in `mm/mprotect.c` adds `HPAGE_PMD_NR` to the
//! pages it returns and one to `numa_huge_pte_updates`, and `change_prot_numa()` in
//! `mm/mempolicy.c` books what was returned as `numa_pte_updates`. So read in the sources of Linux
//! 5.10, 6.1, 6.12 and 7.3; it has been so since 3.13. Hence the range is `numa_pte_updates` as it
//! is, and base-page updates are what remains without the huge ones.
//!
//! Tables made before October 2019 add the huge updates once more: where they print 111407972 base
//! PTE updates, 206506 huge PMD updates and a range of 217139044, the range was 111407972, of which
//! 5676900 were base pages.
//!
//! `numa_huge_pte_updates` is also raised by an ordinary mprotect(2) of huge pages, which leaves
//! `numa_pte_updates` alone. Base-page updates below zero say that a workload does that.
//!
//! # AutoNUMA cost
//!
//! (7 `numa_pte_updates` + 5000 `numa_hint_faults` + 19 `numa_pages_migrated`) / 10^6, in no unit
//! but its own: a scanned PTE is taken for 7, a fault for 5000, a migrated page for 19. This is
//! what mmtests prints, so that tables can be compared; it leaves out the copying of pages, and the
//! 7 belongs to x86-64.

/// Base pages mapped by one entry of the page middle directory: 2 MiB of 4 KiB pages on x86-64.
pub const PAGES_PER_PMD: i64 = 512;

/// One row of the NUMA table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What stands before the value.
    pub label: &'static str,
    /// The value; none if the kernel lacks a counter it needs, or it is a share of nothing.
    pub value: Option<f64>,
    /// What the value counts.
    pub unit: &'static str,
    /// Digits to print after the decimal point.
    pub decimals: usize,
}

/// All rows in the order of the table. `difference` gives the growth of a counter of
/// `/proc/vmstat` over the span, and none where the kernel has no such counter.
///
/// `NUMA hint local faults` is a number of faults; its share is the row after it.
pub fn rows(difference: &dyn Fn(&str) -> Option<i64>) -> Vec<Row> {
    let count = |counter| difference(counter).map(|value| value as f64);
    let range = count("numa_pte_updates");
    let huge = count("numa_huge_pte_updates");
    let faults = count("numa_hint_faults");
    let local = count("numa_hint_faults_local");
    let migrated = count("numa_pages_migrated");

    let base = range.zip(huge).map(|(range, huge)| range - PAGES_PER_PMD as f64 * huge);
    let local_share = local
        .zip(faults)
        .filter(|&(_, faults)| faults > 0.0)
        .map(|(local, faults)| 100.0 * local / faults);
    let cost = range
        .zip(faults.zip(migrated))
        .map(|(range, (faults, migrated))| (7.0 * range + 5000.0 * faults + 19.0 * migrated) / 1e6);

    vec![
        whole("NUMA alloc hit", count("numa_hit"), "pages"),
        whole("NUMA alloc miss", count("numa_miss"), "pages"),
        whole("NUMA interleave hit", count("numa_interleave"), "pages"),
        whole("NUMA alloc local", count("numa_local"), "pages"),
        whole("NUMA base-page updates", base, "PTEs"),
        whole("NUMA huge PMD updates", huge, "PMDs"),
        whole("NUMA page range updates", range, "PTEs"),
        whole("NUMA hint faults", faults, "faults"),
        whole("NUMA hint local faults", local, "faults"),
        fraction("NUMA hint local percent", local_share, "%"),
        whole("NUMA pages migrated", migrated, "pages"),
        fraction("AutoNUMA cost", cost, "model units"),
    ]
}

fn whole(label: &'static str, value: Option<f64>, unit: &'static str) -> Row {
    Row { label, value, unit, decimals: 0 }
}

fn fraction(label: &'static str, value: Option<f64>, unit: &'static str) -> Row {
    Row { decimals: 2, ..whole(label, value, unit) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table as printed, from counters by name; `-` where there is no value.
    fn printed(counters: &[(&str, i64)]) -> Vec<(&'static str, String)> {
        let difference = |name: &str| {
            let counter = counters.iter().find(|(counter, _)| *counter == name)?;
            Some(counter.1)
        };
        let text = |row: &Row| match row.value {
            Some(value) => format!("{value:.*}", row.decimals),
            None => "-".to_owned(),
        };
        let rows = rows(&difference);
        rows.iter().map(|row| (row.label, text(row))).collect()
    }

    fn cell(table: &[(&'static str, String)], label: &str) -> String {
        let row = table.iter().find(|row| row.0 == label);
        row.expect(label).1.clone()
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
