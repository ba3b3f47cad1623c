use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::scan::expected;

/// The rows as printed, from counters by name; `-` where there is no value.
fn printed(counters: &str, seconds: Option<f64>) -> Vec<(&'static str, String)> {
    let counters = counters.split_terminator(", ").flat_map(expected);
    let counters: BTreeMap<_, _> = counters.collect();
    let difference = |name: &str| counters.get(name).map(|value| *value as f64);
    let differences = Differences { of: &difference, seconds };
    let text = |row: &Derived| match row.value(&differences) {
        Some(value) => format!("{value:.*}", row.decimals),
        None => "-".to_owned(),
    };
    rows().map(|row| (row.label, text(row))).collect()
}

fn cell(table: &[(&'static str, String)], label: &str) -> String {
    let row = table.iter().find(|row| row.0 == label);
    row.expect(label).1.clone()
}

/// Rows as `label value, label value`.
fn assert_rows(table: &[(&'static str, String)], rows: &str) {
    for row in rows.split(", ") {
        let (label, expected) = row.rsplit_once(' ').unwrap();
        assert_eq!(cell(table, label), expected, "{label}");
    }
}

#[test]
fn a_row_with_a_size_of_huge_pages_holds_for_one_size_of_pages() {
    let holds = |label: &str| [0, 4096, 16384].map(|size| find(label).unwrap().holds_for(size));
    assert_eq!(holds("NUMA base-page updates"), [true, true, false]);
    assert_eq!(holds("NUMA huge PMD updates"), [true; 3]);
    for row in rows() {
        let has_huge = row.formula.to_string().contains("512");
        assert_eq!(row.page_size.is_some(), has_huge, "{}", row.label);
    }
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
    assert!(printed("", Some(1.0)).iter().all(|(_, text)| text == "-"));
}

#[test]
fn without_time_there_are_no_velocities() {
    let counters = "pgscan_kswapd 10, pgscan_direct 10";
    assert_eq!(cell(&printed(counters, None), "Kswapd velocity"), "-");
    assert_eq!(cell(&printed(counters, Some(4.0)), "Kswapd velocity"), "2.500");
}

/// The stutter table of Mel Gorman's "Move LRU page reclaim from zones to nodes v8" (1 July
/// 2016): the counters as printed there, of a kernel that counts by zone and of one that counts
/// by node. Scans by zone are those that its zone velocities come from.
#[test]
fn the_node_lru_table() {
    let seconds = 50_719_775.0 / 16_859.554;
    let by_zone = "pswpin 163, pswpout 0, allocstall 2603, pgscan_direct_dma 0, \
        pgscan_direct_dma32 107000, pgscan_direct_normal 109787, pgscan_kswapd_dma 0, \
        pgscan_kswapd_dma32 25463848, pgscan_kswapd_normal 25255927, \
        pgsteal_kswapd_normal 41541765, pgsteal_direct_normal 209159, nr_vmscan_write 6215049";
    let table = printed(by_zone, Some(seconds));
    assert_rows(
        &table,
        "Swap Ins 163, Allocation stalls 2603, Direct pages scanned 216787, \
         Kswapd pages scanned 50719775, Kswapd pages reclaimed 41541765, \
         Direct pages reclaimed 209159, Kswapd efficiency 81.90, Kswapd velocity 16859.554, \
         Direct efficiency 96.48, Direct velocity 72.061, Percentage direct scans 0.43, \
         Zone dma velocity 0.000, Zone highmem velocity -, Page writes by reclaim 6215049, \
         Page writes file 6215049, Page writes anon 0",
    );
    let zones = ["Zone normal velocity", "Zone dma32 velocity"];
    let sum: f64 = zones.map(|label| cell(&table, label).parse::<f64>().unwrap()).iter().sum();
    // The mail's 8431.777 and 8499.838 add up to the velocities of kswapd and of direct reclaim.
    assert!((sum - (16_859.554 + 72.061)).abs() < 0.01, "{sum}");
    assert!((sum - (8431.777 + 8499.838)).abs() < 0.01, "{sum}");

    let by_node = "allocstall_dma32 12, allocstall_movable 31, pgscan_kswapd 41732250, \
        pgsteal_kswapd 41731168, pgscan_direct 3173, pgsteal_direct 3173";
    let table = printed(by_node, Some(41_732_250.0 / 14_231.043));
    assert_rows(
        &table,
        "Allocation stalls 43, Direct pages scanned 3173, Kswapd efficiency 100.00, \
         Direct velocity 1.082, Direct efficiency 100.00, Zone normal velocity -, \
         Zone dma32 velocity -",
    );
}

/// Its tiobench table: kswapd scanned 93375144 pages at 13741.015 a second.
#[test]
fn tiobench_in_the_node_lru_thread() {
    let counters = "pgscan_kswapd_dma 0, pgscan_kswapd_normal 93375144, \
        pgsteal_kswapd_normal 93372243, pgscan_direct_normal 10969, pgsteal_direct_normal 10969";
    let table = printed(counters, Some(93_375_144.0 / 13_741.015));
    assert_rows(&table, "Direct velocity 1.614, Percentage direct scans 0.01");
}

#[test]
fn before_3_4_steals_of_kswapd_are_within_all_steals() {
    let counters = "pgsteal_normal 900, pgsteal_dma32 100, kswapd_steal 700";
    let table = printed(counters, None);
    assert_rows(&table, "Kswapd pages reclaimed 700, Direct pages reclaimed 300");
}

#[test]
fn pages_in_zswap_are_no_file_writes() {
    let written = "nr_vmscan_write 100, pswpout 30";
    assert_eq!(cell(&printed(written, None), "Page writes file"), "70");
    let counters = format!("{written}, zswpout 40, zswpwb 10, swpout_zero 5");
    assert_eq!(cell(&printed(&counters, None), "Page writes file"), "35");
}

#[test]
fn nothing_scanned_is_no_efficiency() {
    let counters = "pgscan_kswapd 0, pgsteal_kswapd 0, pgscan_direct 0";
    let table = printed(counters, Some(1.0));
    assert_rows(&table, "Kswapd efficiency -, Percentage direct scans -, Kswapd velocity 0.000");
}

#[test]
fn the_free_scanner_costs_too() {
    let counters = "compact_stall 8, compact_success 6, compact_fail 2, \
        compact_migrate_scanned 1000000, compact_free_scanned 4000000, compact_isolated 500000, \
        pgmigrate_success 200000, pgmigrate_fail 10000";
    let table = printed(counters, None);
    assert_rows(&table, "Compaction efficiency 75.00, Compact scan efficiency 25.00");
    // 7 + 28 + 9.5 + 207.6 + 0.14
    assert_eq!(cell(&table, "Compaction cost"), "252.24");
}

#[test]
fn the_old_name_of_splits() {
    assert_eq!(cell(&printed("thp_split 3", None), "THP split"), "3");
    assert_eq!(cell(&printed("thp_split_page 4", None), "THP split"), "4");
}

fn numa(counters: &str) -> Vec<(&'static str, String)> {
    let table = printed(counters, None).into_iter().zip(rows());
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
        let table = numa(&format!(
            "numa_pte_updates {range}, numa_huge_pte_updates 0, numa_hint_faults {faults}, \
             numa_hint_faults_local {local}, numa_pages_migrated {migrated}"
        ));
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
        let table = numa(&format!("numa_pte_updates {pte_updates}, numa_huge_pte_updates {huge}"));
        assert_eq!(cell(&table, "NUMA base-page updates"), base);
        assert_eq!(cell(&table, "NUMA huge PMD updates"), huge.to_string());
        let range: i64 = cell(&table, "NUMA page range updates").parse().unwrap();
        assert_eq!(range + 512 * huge, printed_range);
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
        let table = numa(&format!("numa_hint_faults {faults}, numa_hint_faults_local {local}"));
        let share: f64 = cell(&table, "NUMA hint local percent").parse().unwrap();
        assert_eq!(share as i64, percent);
    }
}

#[test]
fn what_is_missing_has_no_value() {
    let table = numa("numa_hit 7, numa_pte_updates 9");
    assert_eq!(table.len(), 12);
    assert_rows(&table, "NUMA alloc hit 7, NUMA page range updates 9");
    let missing = table.iter().filter(|row| row.1 == "-").count();
    assert_eq!(missing, 10);
}

#[test]
fn no_faults_have_no_local_share() {
    let table = numa("numa_hint_faults 0, numa_hint_faults_local 0");
    assert_rows(&table, "NUMA hint local faults 0, NUMA hint local percent -");
}
