//! Compares the names with those in mails to the kernel's lists.

use kernelfiles::derived;

use super::*;

fn of(name: &str) -> Manifest {
    let command = ["/faultline/workloads", name].map(str::to_owned).to_vec();
    // An experiment may give the workload another name.
    Manifest { name: "first".into(), command, ..Manifest::default() }
}

/// Our rows, and their names in mails.
#[test]
fn rows_of_workloads_are_called_as_in_mails() {
    for (at, workload, rows) in [
        // "mm: numa: Slow PTE scan rate if migration failures occur".
        (
            "2015-03",
            "xfsrepair",
            "Elapsed-fsmark real-fsmark, System-fsmark syst-fsmark, \
             Elapsed-xfsrepair real-xfsrepair, System-xfsrepair syst-xfsrepair, \
             User-xfsrepair User-xfsrepair",
        ),
        (
            "2015-03",
            "autonuma",
            "User-NUMA01_THREADLOCAL User-NUMA01_THEADLOCAL, \
             System-NUMA01_THREADLOCAL System-NUMA01_THEADLOCAL, \
             Elapsed-NUMA01_THREADLOCAL Elapsed-NUMA01_THEADLOCAL, \
             Elapsed-NUMA02_SMT Elapsed-NUMA02_SMT, CPU-NUMA01_THREADLOCAL CPU-NUMA01_THEADLOCAL",
        ),
        // "Move LRU page reclaim from zones to nodes v8".
        ("2016-07", "pgbench", "txn-1 1, txn-12 12, lat-p50-1 lat-p50-1"),
        ("2016-07", "paralleldd", "Elapsd-12 Elapsd-12"),
        ("2016-07", "pagealloc", "total-odr0-1 total-odr0-1"),
        ("2016-07", "tiobench", "SeqRead-MB/sec-1 SeqRead-MB/sec-1"),
        ("2016-07", "stutter", "mmap mmap"),
        // 09a913a7, "sched/numa: avoid trapping faults and attempting migration of file-backed
        // dirty pages".
        ("2018-04", "nas", "cg.D cg.D"),
        // "sched/numa: Fix disjoint set vma scan regression".
        (
            "2023-05",
            "autonuma",
            "System-NUMA01 syst-NUMA01, System-NUMA01_THREADLOCAL syst-NUMA01_THREADLOCAL, \
             Elapsed-NUMA02_SMT elsp-NUMA02_SMT, User-NUMA01 User-NUMA01",
        ),
        ("2023-05", "xfsrepair", "Elapsed-fsmark elapsd-fsmark, System system"),
    ] {
        let (manifest, at) = (of(workload), at.parse().unwrap());
        for (own, theirs) in rows.split(", ").map(|it| it.split_once(' ').unwrap()) {
            assert_eq!(super::theirs(own, Some(&manifest), at), theirs);
            // A name from a mail is translated, and logs of one month are named as in another.
            let known = ours(theirs, Some(&manifest));
            assert_eq!(known.as_deref().unwrap_or(theirs), own);
            let latest = if own == "Elapsd-12" { "12" } else { own };
            assert_eq!(super::theirs(theirs, Some(&manifest), Month::LATEST), latest);
        }
    }
}

#[test]
fn counters_are_called_as_in_mails() {
    for (at, rows) in [
        (
            "2015-03",
            "NUMA alloc hit, NUMA alloc miss, NUMA interleave hit, NUMA alloc local, \
             NUMA base PTE updates, NUMA huge PMD updates, NUMA hint faults, \
             NUMA hint local faults, NUMA hint local percent, NUMA pages migrated",
        ),
        (
            "2016-07",
            "Minor Faults, Major Faults, Swap Ins, Swap Outs, Allocation stalls, DMA allocs, \
             DMA32 allocs, Normal allocs, Movable allocs, Direct pages scanned, \
             Kswapd pages scanned, Kswapd pages reclaimed, Direct pages reclaimed, \
             Kswapd efficiency, Kswapd velocity, Direct efficiency, Direct velocity, \
             Percentage direct scans, Zone normal velocity, Zone dma32 velocity, \
             Zone dma velocity, Page writes by reclaim, Page writes file, Page writes anon, \
             Page reclaim immediate, Sector Reads, Sector Writes, Page rescued immediate, \
             Slabs scanned, Direct inode steals, Kswapd inode steals",
        ),
        // "per memcg lru_lock", v19.
        (
            "2020-09",
            "Fragmentation stalls, Kswapd efficiency %, Direct efficiency %, Sector Reads, \
             Sector Writes, Kswapd skipped wait, THP fault alloc, THP fault fallback, \
             THP collapse alloc, THP collapse fail, THP split, THP split failed, \
             Compaction stalls, Compaction success, Compaction failures, Compaction efficiency, \
             Page migrate success, Page migrate failure, Compaction pages isolated, \
             Compaction migrate scanned, Compaction free scanned, Compact scan efficiency, \
             Compaction cost, Kcompactd wake, Kcompactd migrate scanned, Kcompactd free scanned",
        ),
        (
            "2023-05",
            "NUMA alloc hit, NUMA alloc local, NUMA base-page range updates, NUMA PTE updates, \
             NUMA PMD updates, NUMA hint faults, NUMA hint local faults %, \
             NUMA hint local percent, NUMA pages migrated, AutoNUMA cost",
        ),
    ] {
        let at = at.parse().unwrap();
        let printed: Vec<String> = derived::rows().map(|row| theirs(row.label, None, at)).collect();
        for row in rows.split(", ") {
            assert!(printed.iter().any(|it| it == row), "{at}: {row}");
            let own = ours(&format!("Ops {}", row.to_uppercase()), None).unwrap();
            let own = derived::find(&own).unwrap_or_else(|| panic!("{row}"));
            assert_eq!(theirs(own.label, None, at), row);
        }
    }
}

#[test]
fn each_name_is_one_row_and_each_row_there() {
    for name in NAMES {
        assert!(name.until.is_none_or(|until| name.since < until), "{}", name.theirs);
        let alike = NAMES.iter().filter(|it| {
            it.workloads == name.workloads && it.theirs == name.theirs && it.ours != name.ours
        });
        assert_eq!(alike.count(), 0, "{}", name.theirs);
        let is_counter = name.workloads.is_empty();
        assert!(!is_counter || derived::find(name.ours).is_some(), "{}", name.ours);
        // Otherwise a name would mean two of our rows.
        assert!(!is_counter || derived::find(name.theirs).is_none(), "{}", name.theirs);
    }
}

#[test]
fn names_are_taken_as_they_are_copied() {
    let known = |name: &str, workload: &str| ours(name, Some(&of(workload)));
    assert_eq!(known("Amean    real-fsmark", "xfsrepair").unwrap(), "Elapsed-fsmark");
    assert_eq!(known("Time cg.D", "nas").unwrap(), "cg.D");
    assert_eq!(known("syst", "autonuma").unwrap(), "System");
    assert_eq!(known("elsp-NUMA0*", "autonuma").unwrap(), "Elapsed-NUMA0*");
    assert_eq!(known("1*", "pgbench").unwrap(), "txn-1*");
    for (name, workload) in [
        ("*", "pgbench"),
        ("", "pgbench"),
        ("1x", "pgbench"),
        ("syst-NUMA01", "nas"),
        ("-", "autonuma"),
    ] {
        assert_eq!(known(name, workload), None, "{name}");
    }
    assert_eq!(ours("sector reads", None).unwrap(), "KiB paged in");
    assert_eq!(ours("Sector", None), None);
}

#[test]
fn months_are_whole() {
    assert_eq!("2015-03".parse(), Ok(month(2015, 3)));
    for text in ["", "2015", "2015-3", "2015-13", "2015-00", "15-03", "+201-03", "2015-03-01"] {
        assert!(text.parse::<Month>().is_err(), "{text}");
    }
}
