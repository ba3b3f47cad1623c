//! Workloads without packages, on the oldest and the newest kernel. The tables have mmtests' rows, and the kernels'
//! counters agree with what the workloads report.

use std::process::Command;

use model::{Boot, Source};

use crate::common::{Bench, experiment, grown, phase, small_experiment, values_in};

/// The workloads are small, so that all take seconds.
const EXPERIMENT: &str = r#"
[[machine.disk]]
size = "1G"
filesystem = "ext4"
[[workload]]
name = "truncate"
parameters = { files = 4, share = 10, rounds = 2 }
[[workload]]
name = "paralleldd"
parameters = { size = 20, readers = "1,2" }
[[workload]]
name = "stutter"
parameters = { hog = 50, file = 20, probe = 8 }
[[workload]]
name = "pagealloc"
parameters = { orders = "0,3", batches = "1,64,16384", pages = 1024, rounds = 3, share = 20 }
[[workload]]
name = "nas"
parameters = { benchmarks = "is,cg" }
[[workload]]
name = "pagefault"
parameters = { tests = "private,shared", tasks = 2, share = 2, rounds = 2 }
[[workload]]
name = "mmap"
parameters = { tasks = 2, operations = 1000, rounds = 1 }
[[workload]]
name = "fork"
parameters = { operations = 20, rounds = 2 }
"#;
/// The memory of the machine, in MiB.
const MEMORY: f64 = 512.0;
const KIB: f64 = 1024.0;

#[test]
fn kernel_counters_agree_with_workloads() {
    counters_agree("newest");
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn the_oldest_kernels_counters_agree_with_workloads() {
    counters_agree("5.10");
}

fn counters_agree(kernel: &str) {
    let bench = Bench::new();
    let variant = format!("[[variant]]\nkernel = \"{kernel}\"\n");
    bench.run(&(small_experiment("io", EXPERIMENT) + &variant)).expect(0);
    let boots = bench.boots();
    assert_eq!(boots.len(), 1);
    for boot in &boots {
        truncation_clears_shadow_entries(boot);
        readers_read_from_the_disk(boot);
        a_copy_is_written_while_memory_is_mapped(boot);
        pages_are_allocated_and_freed(boot);
        arrays_are_touched_before_the_time_is_taken(boot);
        tasks_fault_and_start(boot);
    }
    let table = bench.faultline(&["compare", "--full"]).expect(0).out;
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let rows: Vec<String> = table.lines().map(words).collect();
    for row in [
        "Amean Elapsed-truncate", "Amean Elapsd-1", "Amean Elapsd-2", "1st-qrtle mmap",
        "Best99%Mean mmap", "Min alloc-odr0-1 ", "Min free-odr3-64", "Min total-odr0-16384",
        "Amean is.S", "Amean System-cg.S", "Hmean private-threads-2 ", "Hmean brk-processes-2 ",
        "Hmean fork ",
    ] {
        assert!(rows.iter().any(|found| found.starts_with(row)), "{row}:\n{table}");
    }
}

fn truncation_clears_shadow_entries(boot: &Boot) {
    // A node of the tree has 64 entries.
    let nodes = MEMORY * 0.1 * KIB / 4.0 / 64.0;
    let [fills, truncations] = ["fill", "truncate"].map(|name| phase(boot, "truncate", name));
    assert_eq!((fills.len(), truncations.len()), (2, 2));
    for (fill, truncation) in fills.into_iter().zip(truncations) {
        // A CPU holds back up to 18 counts of this counter.
        assert!(grown(fill, "workingset_nodes") > 0.75 * nodes, "of {nodes}");
        assert!(grown(truncation, "workingset_nodes") < -0.75 * nodes, "of {nodes}");
    }
    let times = values_in(boot, "Elapsed", "truncate");
    assert!(times.len() == 2 && times.iter().all(|time| *time > 0.0), "{times:?}");
}

fn readers_read_from_the_disk(boot: &Boot) {
    for readers in [1, 2] {
        let name = readers.to_string();
        let times = values_in(boot, "Elapsd", &name);
        assert!(times.len() == readers && times.iter().all(|time| *time > 0.0), "{times:?}");
        // Figures are in KiB. The file is read from the disk once, by any number of readers.
        let read = grown(phase(boot, "paralleldd", &name)[0], "pgpgin") / (0.2 * MEMORY * KIB);
        assert!((0.99..1.5).contains(&read), "{read} times the file");
    }
}

fn a_copy_is_written_while_memory_is_mapped(boot: &Boot) {
    let copy = phase(boot, "stutter", "copy")[0];
    assert!(grown(copy, "pgpgout") > 0.99 * 0.2 * MEMORY * KIB);
    let times = values_in(boot, "mmap", "");
    assert!(times.len() > 2 && times.iter().all(|time| *time > 0.0), "{times:?}");
    // Each mapping touches 8 MiB, which is one fault for each page without huge pages.
    let faults = grown(copy, "pgfault");
    assert!(faults > times.len() as f64 * 4.0, "{faults} faults for {} maps", times.len());
    let hog = grown(phase(boot, "stutter", "fill")[0], "nr_anon_pages");
    assert!(hog > 0.49 * MEMORY * KIB / 4.0, "{hog} pages held");
}

fn pages_are_allocated_and_freed(boot: &Boot) {
    // The number of pages of a round: 1024, or one batch if that is larger.
    for (name, pages) in [
        ("odr0-1", 1024.0),
        ("odr0-64", 1024.0),
        ("odr0-16384", 16384.0),
        ("odr3-1", 1024.0),
        ("odr3-64", 1024.0),
    ] {
        let chunk = phase(boot, "pagealloc", name)[0];
        let zones = ["dma", "dma32", "normal", "movable"];
        let counters = zones.map(|zone| format!("pgalloc_{zone}"));
        let allocated: f64 = counters.iter().map(|counter| grown(chunk, counter)).sum();
        // Other processes allocate a few pages.
        for counted in [allocated, grown(chunk, "pgfree")] {
            assert!((1.0..1.5).contains(&(counted / (3.0 * pages))), "{name}: {counted}");
        }
        for metric in ["alloc", "free", "total"] {
            let times = values_in(boot, metric, name);
            assert!(times.len() == 3 && times.iter().all(|time| *time > 0.0), "{times:?}");
        }
    }
    // 16384 blocks of order 3 are 512 MiB, which is all the memory.
    assert!(phase(boot, "pagealloc", "odr3-16384").is_empty());
    assert!(boot.notes.iter().any(|note| note.text.contains("odr3-16384")), "{:?}", boot.notes);
    assert!(boot.problems.is_empty(), "{:?}", boot.problems);
}

/// The end of the output of an NPB program called `cg.S.x`. With another name the program does not verify its result.
const NPB: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
    const char *name = strrchr(argv[0], '/') + 1;
    printf(" %c%c Benchmark Completed.\n", name[0] - 32, name[1] - 32);
    printf(" Class           = S\n Time in seconds = %s.25\n", getenv("OMP_NUM_THREADS"));
    printf(" Mop/s total     = 1.5\n Verification    = %s\n",
           strcmp(name, "cg.S.x") ? "UNSUCCESSFUL" : "SUCCESSFUL");
    return 0;
}
"#;

#[test]
fn programs_of_a_directory_are_run_and_counted_if_verified() {
    let bench = Bench::new();
    let source = bench.write("npb.c", NPB);
    std::fs::create_dir(bench.path("bin")).unwrap();
    for name in ["cg.S.x", "ft.S.x"] {
        let program = bench.path("bin").join(name);
        let mut compiler = Command::new("gcc");
        let built = compiler.args(["-static", "-o"]).args([&program, &source]).status();
        assert!(built.unwrap().success());
    }
    let workload =
        "[[variant]]\nkernel = \"6.1\"\n[[workload]]\nname = \"nas\"\nbinaries = \"bin\"\n";
    let text = experiment("npb", workload);
    let refused =
        bench.run(&format!("{text}parameters = {{ benchmarks = \"cg,is\" }}\n")).expect(2);
    assert!(refused.err.contains("bin has no program is.S.x"), "{}", refused.err);
    bench.run(&text).expect(0);
    let [boot] = &bench.boots()[..] else { panic!("not one boot") };
    assert_eq!(values_in(boot, "cg.S", ""), [4.25]);
    assert_eq!(values_in(boot, "ft.S", ""), [0.0; 0]);
    let notes: String = boot.notes.iter().map(|note| format!("{note}\n")).collect();
    assert!(
        notes.contains("ft.S.x cannot be used: it did not verify its result: UNSUCC"),
        "{notes}"
    );
    let phases: Vec<&str> = boot.chunks.iter().map(|chunk| chunk.phase.as_str()).collect();
    assert!(phases.contains(&"cg.S.x") && phases.contains(&"ft.S.x"), "{phases:?}");
}

fn arrays_are_touched_before_the_time_is_taken(boot: &Boot) {
    // IS has 65536 keys of 4 bytes twice. CG has at least half of the largest possible number of elements.
    for (name, bytes) in [("is.S", 2.0 * 65536.0 * 4.0), ("cg.S", 1400.0 * 32.0 * 12.0)] {
        assert!(values_in(boot, name, "").iter().all(|time| *time > 0.0));
        assert_eq!(values_in(boot, name, "").len(), 1);
        let [fill, steady] = ["fill", "steady"].map(|stage| format!("{name}-{stage}"));
        let touched = |name| grown(phase(boot, "nas", name)[0], "nr_anon_pages");
        let pages = bytes / 4096.0;
        // Each CPU holds back a dozen counts of this counter, and other processes take and free some pages.
        assert!(touched(&fill) > 0.6 * pages, "{name}: {} of {pages} pages", touched(&fill));
        assert!(touched(&steady) < 0.5 * pages, "{name}: {} more pages", touched(&steady));
    }
    let notes: Vec<_> = boot.notes.iter().filter(|note| note.text.contains("verified")).collect();
    assert_eq!(notes.len(), 2, "{:?}", boot.notes);
}

fn tasks_fault_and_start(boot: &Boot) {
    // Every page is touched once in each round. The start and the end of a task take some faults too.
    let pages = (0.02 * MEMORY * KIB / 4.0).floor() * 2.0;
    for name in ["private-processes-2", "shared-threads-2"] {
        let faults = grown(phase(boot, "pagefault", name)[0], "pgfault") / pages;
        assert!((0.99..1.15).contains(&faults), "{name}: {faults} of {pages}");
    }
    // Each operation writes a page that the previous one dropped.
    let faults = grown(phase(boot, "mmap", "madvise-threads-2")[0], "pgfault");
    assert!((1000.0..1200.0).contains(&faults), "{faults} faults");
    assert!(phase(boot, "mmap", "brk-threads-2").is_empty());
    let chunks = boot.chunks.iter().filter(|chunk| chunk.is_of(Source::Stat));
    for name in ["fork", "exec", "thread"] {
        let started = chunks.clone().find(|it| it.workload == "fork" && it.phase == name).unwrap();
        let started = grown(started, "processes");
        assert!((40.0..50.0).contains(&started), "{name}: {started}");
    }
    for (metric, rates) in [("private", 4), ("shared", 4), ("map", 2), ("brk", 1), ("fork", 2)] {
        let found = values_in(boot, metric, "");
        assert!(found.len() == rates && found.iter().all(|rate| *rate > 0.0), "{found:?}");
    }
}
