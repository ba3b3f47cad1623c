//! An autonuma experiment on real kernels: the stored counters equal the kernel's files.

use std::collections::BTreeMap;
use std::fs;

use crate::common::{Bench, experiment, quoted};
use model::{Boot, Execution};

const NUMA01: &str = "[[workload]]\nname = \"autonuma\"\n\
                      parameters = { programs = \"NUMA01\", interval = 100 }\n";

/// The growth of a counter of `/proc/vmstat` over the workload.
pub fn growth(boot: &Boot, counter: &str) -> i64 {
    let chunks = boot.chunks.iter().filter(|chunk| chunk.source == "vmstat");
    let chunks = chunks.filter(|chunk| !chunk.workload.is_empty());
    chunks.map(|chunk| chunk.difference(counter).unwrap()).sum()
}

/// The growth of a counter of `/proc/vmstat` over some phases.
fn growth_in(boot: &Boot, counter: &str, phases: &[&str]) -> i64 {
    let chunks = boot.chunks.iter().filter(|chunk| chunk.source == "vmstat");
    let chunks = chunks.filter(|chunk| phases.contains(&&*chunk.phase));
    chunks.map(|chunk| chunk.difference(counter).unwrap()).sum()
}

#[test]
fn numa_counters_grow_with_balancing_and_not_without() {
    let bench = Bench::new();
    let variants = "[[variant]]\nname = \"on\"\nkernel = \"newest\"\n\
                    [[variant]]\nname = \"off\"\nkernel = \"6.1\"\n\
                    sysctl = { \"kernel.numa_balancing\" = 0 }\n";
    let said = bench.run(&experiment("balancing", &format!("{variants}{NUMA01}"))).expect(0);
    assert!(said.out.contains("2 boots done"), "{}", said.out);
    let boots = bench.boots();
    let of = |name: &str| boots.iter().find(|boot| boot.variant == name).unwrap();
    for counter in ["numa_pte_updates", "numa_hint_faults", "numa_pages_migrated"] {
        assert!(growth(of("on"), counter) > 0, "{counter}");
        assert_eq!(growth(of("off"), counter), 0, "{counter}");
    }
    assert_ne!(of("on").facts.release, of("off").facts.release);
    assert_eq!((of("on").facts.cpus, of("on").facts.nodes), (4, 2));
    converges(of("on"));
    resumes(&bench);
    prints(&bench);
}

/// The shares of memory and of threads over the nodes add up to 1 at every instant.
fn converges(boot: &Boot) {
    let mut chunks = boot.chunks.iter().filter(|chunk| chunk.source == model::WORKLOAD_SOURCE);
    let chunk = chunks.find(|chunk| chunk.phase == "NUMA01").expect("series of the workload");
    assert!(chunk.times.len() > 2, "{} instants", chunk.times.len());
    for kind in ["memory", "threads"] {
        let columns: Vec<_> =
            chunk.columns.iter().filter(|column| column.name.starts_with(kind)).collect();
        assert_eq!(columns.len(), 2, "{kind}");
        for row in 0..chunk.times.len() {
            let whole: i64 = columns.iter().filter_map(|column| column.values[row]).sum();
            assert!(whole == 0 || (whole - 1_000_000).abs() <= 2, "{kind} {whole} at {row}");
        }
    }
}

fn resumes(bench: &Bench) {
    let file = bench.path("x.toml");
    let said = bench.faultline(&["run", file.to_str().unwrap()]).expect(0);
    assert!(said.out.contains("all boots were already done"), "{}", said.out);
    assert_eq!(bench.boots().len(), 2);
}

fn prints(bench: &Bench) {
    let text =
        bench.faultline(&["compare", "balancing", "--full", "--baseline", "off"]).expect(0).out;
    assert!(text.contains("Amean") && text.contains("Elapsed-NUMA01"), "{text}");
    assert!(text.lines().all(|line| line.len() <= 100 && line.is_ascii()), "{text}");
    let json = bench.json(&["compare"]);
    assert_eq!(json["schema"], 1);
    assert_eq!(json["baseline"], "on");
    let emulated =
        bench.boots().iter().any(|boot| boot.facts.provenance.execution == Some(Execution::Tcg));
    assert_eq!(json["emulated"], emulated);
    let kinds: Vec<_> =
        json["tables"].as_array().unwrap().iter().map(|table| table["kind"].clone()).collect();
    assert_eq!(kinds, ["metrics", "duration", "counters"]);
}

#[test]
fn stored_counters_agree_with_another_reader() {
    let bench = Bench::new();
    let shell = kernels::Cache::open().unwrap().shell(&|_| {}).unwrap();
    fs::copy(shell, bench.path("busybox")).unwrap();
    // A second reader reads the counters before and after the program, outside of two cuts.
    let script = "look() { sed \"s/^/note $1 /\" /proc/vmstat | grep -e numa_ -e thp_fault_alloc \
                  >&$FAULTLINE_FD; }; \
                  cut() { echo phase $1 >&$FAULTLINE_FD; \
                  dd bs=1 count=1 of=/dev/null <&$FAULTLINE_ACK_FD; }; \
                  set -e; look before; cut inside; \
                  /faultline/workloads autonuma --programs NUMA01 --passes 50,100,800,800 --scale 1 \
                  --share 30 --first-node 0 --bound NUMA01 --interval 1000 --cpus 4 --memory 2147483648; \
                  cut outside; look after";
    let manifest = format!(
        "name = \"witness\"\ndescription = \"reads vmstat itself\"\n\
         command = [\"busybox\", \"sh\", \"-c\", {script:?}]\nmetrics = []\n"
    );
    let manifest = bench.write("witness.toml", &manifest);
    let text = format!(
        "[[variant]]\nkernel = \"6.1\"\n[[workload]]\nmanifest = {}\nprogram = \"busybox\"\n",
        quoted(&manifest)
    );
    bench.run(&experiment("witness", &text)).expect(0);
    let boot = &bench.boots()[0];
    let mut read: BTreeMap<&str, [i64; 2]> = BTreeMap::new();
    for note in &boot.notes {
        if let [when, counter, value] = note.text.split(' ').collect::<Vec<_>>()[..] {
            read.entry(counter).or_default()[usize::from(when == "after")] = value.parse().unwrap();
        }
    }
    for counter in ["numa_pte_updates", "numa_hint_faults", "numa_pages_migrated"] {
        let [before, after] = read[counter];
        let seen = after - before;
        let between_cuts = growth_in(boot, counter, &["inside", "NUMA01"]);
        assert!(between_cuts > 0, "{counter}");
        // The pages of the shell also fault and migrate.
        assert!(between_cuts <= seen && seen <= growth(boot, counter), "{counter}: {seen}");
        assert!(growth(boot, counter) - between_cuts <= between_cuts / 20 + 2048, "{counter}");
    }
}
