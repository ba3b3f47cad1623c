//! The workloads on reclaim, huge pages, memory cgroups, tiers and vmalloc, on the oldest and the newest kernel. The
//! kernels' counters agree with what they report, and messages say what a kernel lacks.

use model::{Boot, NoteKind, Source};

use crate::common::{Bench, OLDEST_AND_NEWEST, grown, phase, values};

/// The machine has two nodes with CPUs and one with only memory. The workloads are small, so that all take seconds.
const EXPERIMENT: &str = r#"
name = "today"
boots = 1
[[machine.node]]
cpus = "0-1"
memory = "256M"
[[machine.node]]
cpus = "2-3"
memory = "256M"
[[machine.node]]
memory = "256M"
[machine.limits]
run = "15m"
[[machine.disk]]
size = "256M"
filesystem = "ext4"
[[workload]]
name = "filemap"
parameters = { tasks = 2, share = 30, limit = 10 }
[[workload]]
name = "thp"
parameters = { share = 5, rounds = 1 }
[[workload]]
name = "mglru"
parameters = { limit = 4, sets = "80,150", passes = 2, tests = "cyclic", tasks = 2 }
[[workload]]
name = "memcg"
parameters = { tasks = 2, operations = 2000, share = 2, rounds = 2 }
[[workload]]
name = "vmalloc"
parameters = { tests = "fix_size,long_busy_list,huge_fix_size", pages = "1,16,512", areas = 60, rounds = 2 }
[[workload]]
name = "compaction"
parameters = { share = 10, rounds = 1 }
[[workload]]
name = "tier"
"#;
/// The memory of the machine, in pages.
const MEMORY: f64 = 768.0 * PAGES;
/// The number of pages of a MiB, and of a huge page.
const PAGES: f64 = 256.0;
const HUGE: f64 = 512.0;

#[test]
fn kernel_counters_agree_with_workloads_of_today() {
    let bench = Bench::new();
    let run = bench.run(&[EXPERIMENT, OLDEST_AND_NEWEST].concat());
    let boots = bench.boots();
    let [old, new] = &boots[..] else { panic!("{}", run.err) };
    for boot in &boots {
        mapped_files_are_reclaimed(boot);
        huge_pages_are_touched_and_split(boot);
        working_sets_come_back(boot, "off");
        tasks_of_a_memcg_switch_and_fault(boot);
        areas_are_allocated(boot);
        memory_is_compacted(boot);
    }
    working_sets_come_back(new, "on");
    folios_are_smaller_and_collapse(new);
    memory_is_demoted_and_promoted(new);
    assert!(new.outcome.is_complete(), "{}", new.outcome);
    let told =
        "this kernel has no demotion to slow memory, which came with Linux 5.15 (CONFIG_MIGRATION)";
    assert!(old.outcome.to_string().ends_with(told), "{}", old.outcome);
    let notes = [
        "touch-64K: this kernel has no such folios",
        "collapse: this kernel has no MADV_COLLAPSE, which came with Linux 6.1",
        "on: this kernel has no multi-generational LRU",
        "huge_fix_size: this kernel has no vmalloc_huge()",
    ];
    let remarks = old.notes.iter().filter(|note| note.kind == NoteKind::Remark);
    assert_eq!(remarks.map(|note| &note.text).collect::<Vec<_>>(), notes);
    assert!(
        !new.notes.iter().any(|note| note.text.contains("this kernel has no")),
        "{:?}",
        new.notes
    );
}

/// How much counters of `/proc/vmstat` grew together in all phases with this name.
fn counted(boot: &Boot, workload: &str, name: &str, counters: &[&str]) -> f64 {
    let chunks = phase(boot, workload, name);
    assert!(!chunks.is_empty(), "no phase {name} of {workload}: {}", boot.outcome);
    let of_chunk = |chunk| counters.iter().map(move |counter| grown(chunk, counter)).sum::<f64>();
    chunks.into_iter().map(of_chunk).sum()
}

/// The number of pages that were allocated.
fn allocated(boot: &Boot, workload: &str, name: &str) -> f64 {
    let zones = ["dma", "dma32", "normal", "movable"].map(|zone| format!("pgalloc_{zone}"));
    counted(boot, workload, name, &zones.each_ref().map(String::as_str))
}

#[track_caller]
fn near(found: f64, expected: f64, most: f64) {
    let ratio = found / expected;
    assert!((0.99..most).contains(&ratio), "{found}, but expected {expected}");
}

fn mapped_files_are_reclaimed(boot: &Boot) {
    // Pages that were read ahead may be reclaimed before they are touched.
    near(allocated(boot, "filemap", "sequential-2"), 0.3 * MEMORY, 2.0);
    // As many pages stay in memory as the limit allows.
    let stays = counted(boot, "filemap", "sequential-2", &["nr_file_pages"]) / (0.1 * MEMORY);
    assert!((0.7..1.05).contains(&stays), "{stays} of the limit");
    let rates = values(boot, "Throughput", "sequential-2");
    assert!(rates.len() == 2 && rates.iter().all(|rate| *rate > 0.0), "{rates:?}");
}

/// The number of pages of the memory that `thp` touches, which are whole huge pages.
fn touched() -> f64 {
    (0.05 * MEMORY / HUGE).floor() * HUGE
}

fn huge_pages_are_touched_and_split(boot: &Boot) {
    near(counted(boot, "thp", "touch-4K", &["pgfault"]), touched(), 1.1);
    let huge = counted(boot, "thp", "touch-2M", &["thp_fault_alloc"]);
    assert_eq!(huge, touched() / HUGE);
    // The kernel counts also pages that it cannot split because something else holds them
    // (`split_huge_page_to_list`), but not one that something else has locked (`split_huge_pages_pid`).
    let tried = counted(boot, "thp", "split", &["thp_split_page", "thp_split_page_failed"]);
    assert!((huge - 1.0..=huge).contains(&tried), "{tried} of {huge}");
    assert_eq!(values(boot, "split", "").len(), 1);
}

fn folios_are_smaller_and_collapse(boot: &Boot) {
    near(counted(boot, "thp", "touch-64K", &["pgfault"]), touched() / 16.0, 1.5);
    // The workload tries a collapse again that failed because something held a page. Each attempt takes a huge page.
    let huge = touched() / HUGE;
    let allocated = counted(boot, "thp", "collapse", &["thp_collapse_alloc"]);
    assert!((huge..1.5 * huge).contains(&allocated), "{allocated} of {huge}");
}

/// Checks that the cgroup and the machine count the same.
fn working_sets_come_back(boot: &Boot, lru: &str) {
    for set in [80.0, 150.0] {
        let label = format!("{lru}-cyclic-{set}");
        let pages = 0.04 * MEMORY * set / 100.0;
        let told: f64 = values(boot, "Refaults", &label).iter().map(|it| it / 100.0 * pages).sum();
        let found = counted(boot, "mglru", &label, &["workingset_refault_file"]);
        assert!((found - told).abs() < 0.05 * pages, "{label}: {found}, but {told} told");
        assert!(set < 100.0 || found > 0.0, "{label}: {found} of {pages}");
    }
}

fn tasks_of_a_memcg_switch_and_fault(boot: &Boot) {
    let chunks = boot.chunks.iter().filter(|chunk| chunk.is_of(Source::Stat));
    for nodes in ["nodes-1", "nodes-2"] {
        let name = format!("switch-{nodes}");
        let mut stat = chunks.clone().filter(|it| it.workload == "memcg");
        let switches = grown(stat.find(|it| it.phase == name).unwrap(), "ctxt");
        // Each of two samples passes bytes to and fro.
        near(switches, 2.0 * 2.0 * 2000.0, 2.0);
        near(
            counted(boot, "memcg", &format!("fault-{nodes}"), &["pgfault"]),
            2.0 * 0.02 * MEMORY,
            1.3,
        );
        assert_eq!(values(boot, "switch", nodes).len(), 2);
    }
}

fn areas_are_allocated(boot: &Boot) {
    let has_huge = !boot.notes.iter().any(|note| note.text.contains("no vmalloc_huge()"));
    let tests = ["fix_size", "long_busy_list", "huge_fix_size"].into_iter();
    for test in tests.filter(|test| has_huge || *test != "huge_fix_size") {
        for (pages, most) in [(1.0, 3.0), (16.0, 1.5), (512.0, 1.1)] {
            near(allocated(boot, "vmalloc", &format!("{test}-{pages}")), 2.0 * 60.0 * pages, most);
            let times = values(boot, test, &pages.to_string());
            assert!(times.len() == 2 && times.iter().all(|time| *time > 0.0), "{times:?}");
        }
    }
}

fn memory_is_compacted(boot: &Boot) {
    let asked = (0.1 * MEMORY / HUGE).floor();
    assert_eq!(values(boot, "Fault", "").len() as f64, asked);
    let huge = counted(boot, "compaction", "fault", &["thp_fault_alloc"]);
    let share = values(boot, "Huge", "")[0];
    assert!((share - 100.0 * huge / asked).abs() < 1e-4, "{share} %, {huge} of {asked}");
    let moved = counted(boot, "compaction", "compact", &["pgmigrate_success"]);
    let blocks = values(boot, "Blocks", "");
    assert!(moved > 0.0 && blocks[0] > 0.0, "{moved} pages moved for {blocks:?} blocks");
}

fn memory_is_demoted_and_promoted(boot: &Boot) {
    let demoted: f64 = values(boot, "Demoted", "").iter().map(|mib| mib * PAGES).sum();
    let counters =
        ["pgdemote_kswapd", "pgdemote_direct", "pgdemote_khugepaged", "pgdemote_proactive"];
    let found = counted(boot, "tier", "demote", &counters);
    near(found, demoted, 1.05);
    near(demoted, 0.6 * 0.2 * MEMORY, 1.2);
    let promoted: f64 = values(boot, "Promoted", "").iter().map(|mib| mib * PAGES).sum();
    let found = counted(boot, "tier", "promote", &["pgpromote_success"]);
    near(found, promoted, 1.1);
    assert!(promoted > 0.1 * 0.2 * 0.2 * MEMORY, "{promoted} pages");
}
