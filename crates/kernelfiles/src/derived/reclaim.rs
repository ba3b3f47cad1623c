//! Rows of faults, swapping, allocation and reclaim.
//!
//! Reclaim was counted by zone until 4.7 and is counted by node since 4.8. `pgsteal` distinguishes who
//! reclaimed since 3.4; before, `pgsteal_ZONE` included the pages stolen by kswapd.

use super::Expr::{Counter, First, OrZero, PerSecond, Sum, Zones};
use super::{Derived, Expr, Section};

const KSWAPD_SCANNED: Expr = Zones("pgscan_kswapd");
const DIRECT_SCANNED: Expr = Zones("pgscan_direct");
const KSWAPD_RECLAIMED: Expr = First(&[Counter("kswapd_steal"), Zones("pgsteal_kswapd")]);
const DIRECT_RECLAIMED: Expr = First(&[
    Zones("pgsteal_direct"),
    Sum(&[(1.0, Zones("pgsteal")), (-1.0, Counter("kswapd_steal"))]),
]);

const NORMAL_SCANNED: Expr =
    Sum(&[(1.0, Counter("pgscan_kswapd_normal")), (1.0, Counter("pgscan_direct_normal"))]);
const DMA32_SCANNED: Expr =
    Sum(&[(1.0, Counter("pgscan_kswapd_dma32")), (1.0, Counter("pgscan_direct_dma32"))]);
const DMA_SCANNED: Expr =
    Sum(&[(1.0, Counter("pgscan_kswapd_dma")), (1.0, Counter("pgscan_direct_dma"))]);
const HIGH_SCANNED: Expr =
    Sum(&[(1.0, Counter("pgscan_kswapd_high")), (1.0, Counter("pgscan_direct_high"))]);
const MOVABLE_SCANNED: Expr =
    Sum(&[(1.0, Counter("pgscan_kswapd_movable")), (1.0, Counter("pgscan_direct_movable"))]);

/// Pages handed to swap: written, stored by zswap, or all zeros and only noted. A later writeback by zswap
/// is not counted again.
const SWAPPED: Expr = Sum(&[
    (1.0, Counter("pswpout")),
    (1.0, OrZero(&Counter("zswpout"))),
    (1.0, OrZero(&Counter("swpout_zero"))),
    (-1.0, OrZero(&Counter("zswpwb"))),
]);

const APART_NOTE: &str = "Scans of khugepaged (since 6.2) and of proactive reclaim (since 6.15) \
    are counted apart; before, they are in the direct scans.";

const fn row(
    label: &'static str,
    formula: Expr,
    unit: &'static str,
    note: &'static str,
) -> Derived {
    Derived::count(Section::Reclaim, label, formula, unit, note)
}

const fn percent(
    label: &'static str,
    part: &'static Expr,
    whole: &'static Expr,
    note: &'static str,
) -> Derived {
    Derived::percent(Section::Reclaim, label, part, whole, note)
}

const fn velocity(label: &'static str, pages: &'static Expr, note: &'static str) -> Derived {
    Derived { decimals: 3, ..row(label, PerSecond(pages), "pages/s", note) }
}

const ZONE_NOTE: &str = "Only kernels before 4.8 scan by zone. Since then a scan is of a node and \
    takes pages of all its zones: no zone's velocity is known, which is not 0.";

pub(super) static ROWS: &[Derived] = &[
    row(
        "Minor Faults",
        Sum(&[(1.0, Counter("pgfault")), (-1.0, Counter("pgmajfault"))]),
        "faults",
        "Includes NUMA hinting faults, which are faults that NUMA balancing itself provokes.",
    ),
    row("Major Faults", Counter("pgmajfault"), "faults", ""),
    row("Swap Ins", Counter("pswpin"), "pages", ""),
    row("Swap Outs", Counter("pswpout"), "pages", "Without what zswap stored."),
    row(
        "Allocation stalls",
        Zones("allocstall"),
        "events",
        "Allocations that entered direct reclaim, all zones together. A tool that reads only \
         `allocstall` shows 0 for kernels since 4.8, which count by zone.",
    ),
    row(
        "Fragmentation stalls",
        Counter("fragment_stall"),
        "events",
        "Only some patched kernels count these.",
    ),
    row("DMA allocs", Counter("pgalloc_dma"), "pages", ""),
    row("DMA32 allocs", Counter("pgalloc_dma32"), "pages", ""),
    row("Normal allocs", Counter("pgalloc_normal"), "pages", ""),
    row("High allocs", Counter("pgalloc_high"), "pages", ""),
    row("Movable allocs", Counter("pgalloc_movable"), "pages", ""),
    row("Direct pages scanned", DIRECT_SCANNED, "pages", APART_NOTE),
    row("Kswapd pages scanned", KSWAPD_SCANNED, "pages", ""),
    row("Kswapd pages reclaimed", KSWAPD_RECLAIMED, "pages", ""),
    row(
        "Direct pages reclaimed",
        DIRECT_RECLAIMED,
        "pages",
        "Before 3.4: all that was reclaimed, less what kswapd reclaimed.",
    ),
    row("Khugepaged pages scanned", Counter("pgscan_khugepaged"), "pages", APART_NOTE),
    row("Khugepaged pages reclaimed", Counter("pgsteal_khugepaged"), "pages", APART_NOTE),
    row("Proactive pages scanned", Counter("pgscan_proactive"), "pages", APART_NOTE),
    row("Proactive pages reclaimed", Counter("pgsteal_proactive"), "pages", APART_NOTE),
    percent(
        "Kswapd efficiency",
        &KSWAPD_RECLAIMED,
        &KSWAPD_SCANNED,
        "Pages reclaimed of those scanned. With the multi-generational LRU, scanning is counted \
         where pages are isolated, not where generations are aged.",
    ),
    velocity("Kswapd velocity", &KSWAPD_SCANNED, ""),
    percent("Direct efficiency", &DIRECT_RECLAIMED, &DIRECT_SCANNED, ""),
    velocity("Direct velocity", &DIRECT_SCANNED, ""),
    percent(
        "Percentage direct scans",
        &DIRECT_SCANNED,
        &Sum(&[(1.0, DIRECT_SCANNED), (1.0, KSWAPD_SCANNED)]),
        APART_NOTE,
    ),
    velocity("Zone normal velocity", &NORMAL_SCANNED, ZONE_NOTE),
    velocity("Zone dma32 velocity", &DMA32_SCANNED, ZONE_NOTE),
    velocity("Zone dma velocity", &DMA_SCANNED, ZONE_NOTE),
    velocity("Zone highmem velocity", &HIGH_SCANNED, ZONE_NOTE),
    velocity("Zone movable velocity", &MOVABLE_SCANNED, ZONE_NOTE),
    row(
        "Page writes by reclaim",
        Counter("nr_vmscan_write"),
        "pages",
        "Pages for which reclaim started a write, of files or to swap.",
    ),
    row(
        "Page writes file",
        Sum(&[(1.0, Counter("nr_vmscan_write")), (-1.0, SWAPPED)]),
        "pages",
        "A remainder: below zero where pages went to swap that reclaim did not write, or where a \
         kernel before 5.18 counts a huge page as one write. Kernels before 5.19 do not tell what \
         zswap stored.",
    ),
    row(
        "Page writes anon",
        Counter("pswpout"),
        "pages",
        "As Swap Outs: without what zswap stored.",
    ),
    row(
        "Page reclaim immediate",
        Counter("nr_vmscan_immediate_reclaim"),
        "pages",
        "Pages found at the end of the list still under the write that reclaim wants, which are \
         marked to be freed as soon as it ends.",
    ),
    row("Page rescued immediate", Counter("pgrescued"), "pages", "Only some patched kernels."),
    row("KiB paged in", Counter("pgpgin"), "KiB", "KiB, though mmtests calls them sectors."),
    row("KiB paged out", Counter("pgpgout"), "KiB", "KiB, though mmtests calls them sectors."),
    row("Slabs scanned", Counter("slabs_scanned"), "objects", ""),
    row(
        "Direct inode steals",
        Counter("pginodesteal"),
        "pages",
        "Page-cache pages freed with the inodes that a shrinker let go, not inodes.",
    ),
    row(
        "Kswapd inode steals",
        Counter("kswapd_inodesteal"),
        "pages",
        "Page-cache pages freed with the inodes that a shrinker let go, not inodes.",
    ),
    row(
        "Kswapd skipped wait",
        Counter("kswapd_skip_congestion_wait"),
        "events",
        "Kernels up to 3.8 only.",
    ),
];

#[cfg(test)]
mod tests {
    use crate::derived::tests::{cell, printed};

    /// The stutter table of Mel Gorman's "Move LRU page reclaim from zones to nodes v8" (1 July
    /// 2016): the counters as printed there, of a kernel that counts by zone and of one that counts
    /// by node. Scans by zone are those that its zone velocities come from.
    #[test]
    fn the_node_lru_table() {
        let seconds = 50_719_775.0 / 16_859.554;
        let by_zone = [
            ("pswpin", 163),
            ("pswpout", 0),
            ("allocstall", 2603),
            ("pgscan_direct_dma", 0),
            ("pgscan_direct_dma32", 107_000),
            ("pgscan_direct_normal", 109_787),
            ("pgscan_kswapd_dma", 0),
            ("pgscan_kswapd_dma32", 25_463_848),
            ("pgscan_kswapd_normal", 25_255_927),
            ("pgsteal_kswapd_normal", 41_541_765),
            ("pgsteal_direct_normal", 209_159),
            ("nr_vmscan_write", 6_215_049),
        ];
        let table = printed(&by_zone, Some(seconds));
        for (label, expected) in [
            ("Swap Ins", "163"),
            ("Allocation stalls", "2603"),
            ("Direct pages scanned", "216787"),
            ("Kswapd pages scanned", "50719775"),
            ("Kswapd pages reclaimed", "41541765"),
            ("Direct pages reclaimed", "209159"),
            ("Kswapd efficiency", "81.90"),
            ("Kswapd velocity", "16859.554"),
            ("Direct efficiency", "96.48"),
            ("Direct velocity", "72.061"),
            ("Percentage direct scans", "0.43"),
            ("Zone dma velocity", "0.000"),
            ("Zone highmem velocity", "-"),
            ("Page writes by reclaim", "6215049"),
            ("Page writes file", "6215049"),
            ("Page writes anon", "0"),
        ] {
            assert_eq!(cell(&table, label), expected, "{label}");
        }
        let zones = ["Zone normal velocity", "Zone dma32 velocity"];
        let sum: f64 = zones.map(|label| cell(&table, label).parse::<f64>().unwrap()).iter().sum();
        // The mail's 8431.777 and 8499.838 add up to the velocities of kswapd and of direct reclaim.
        assert!((sum - (16_859.554 + 72.061)).abs() < 0.01, "{sum}");
        assert!((sum - (8431.777 + 8499.838)).abs() < 0.01, "{sum}");

        let by_node = [
            ("allocstall_dma32", 12),
            ("allocstall_movable", 31),
            ("pgscan_kswapd", 41_732_250),
            ("pgsteal_kswapd", 41_731_168),
            ("pgscan_direct", 3173),
            ("pgsteal_direct", 3173),
        ];
        let table = printed(&by_node, Some(41_732_250.0 / 14_231.043));
        for (label, expected) in [
            ("Allocation stalls", "43"),
            ("Direct pages scanned", "3173"),
            ("Kswapd efficiency", "100.00"),
            ("Direct velocity", "1.082"),
            ("Direct efficiency", "100.00"),
            ("Zone normal velocity", "-"),
            ("Zone dma32 velocity", "-"),
        ] {
            assert_eq!(cell(&table, label), expected, "{label}");
        }
    }

    /// Its tiobench table: kswapd scanned 93375144 pages at 13741.015 a second.
    #[test]
    fn tiobench_in_the_node_lru_thread() {
        let counters = [
            ("pgscan_kswapd_dma", 0),
            ("pgscan_kswapd_normal", 93_375_144),
            ("pgsteal_kswapd_normal", 93_372_243),
            ("pgscan_direct_normal", 10_969),
            ("pgsteal_direct_normal", 10_969),
        ];
        let table = printed(&counters, Some(93_375_144.0 / 13_741.015));
        assert_eq!(cell(&table, "Direct velocity"), "1.614");
        assert_eq!(cell(&table, "Percentage direct scans"), "0.01");
    }

    #[test]
    fn before_3_4_steals_of_kswapd_are_within_all_steals() {
        let counters = [("pgsteal_normal", 900), ("pgsteal_dma32", 100), ("kswapd_steal", 700)];
        let table = printed(&counters, None);
        assert_eq!(cell(&table, "Kswapd pages reclaimed"), "700");
        assert_eq!(cell(&table, "Direct pages reclaimed"), "300");
    }

    #[test]
    fn pages_in_zswap_are_no_file_writes() {
        let written = [("nr_vmscan_write", 100), ("pswpout", 30)];
        assert_eq!(cell(&printed(&written, None), "Page writes file"), "70");
        let mut counters = written.to_vec();
        counters.extend([("zswpout", 40), ("zswpwb", 10), ("swpout_zero", 5)]);
        assert_eq!(cell(&printed(&counters, None), "Page writes file"), "35");
    }

    #[test]
    fn nothing_scanned_is_no_efficiency() {
        let counters = [("pgscan_kswapd", 0), ("pgsteal_kswapd", 0), ("pgscan_direct", 0)];
        let table = printed(&counters, Some(1.0));
        assert_eq!(cell(&table, "Kswapd efficiency"), "-");
        assert_eq!(cell(&table, "Percentage direct scans"), "-");
        assert_eq!(cell(&table, "Kswapd velocity"), "0.000");
    }
}
