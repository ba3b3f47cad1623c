//! Counting by segments gives what a call at each instruction gives, in all workloads that need no packages.

use crate::common::Bench;

/// Workloads and parameters by which they take seconds.
const WORKLOADS: [(&str, &str); 18] = [
    ("autonuma", r#"programs = "NUMA01", scale = 0.05"#),
    ("compaction", "share = 10, rounds = 1"),
    ("filemap", "tasks = 2, share = 110"),
    ("filereclaim", "share = 10"),
    ("fork", "operations = 20, rounds = 2"),
    ("memcg", "operations = 2000, share = 2, rounds = 2"),
    ("mglru", r#"limit = 4, sets = "80,110", passes = 1"#),
    ("mmap", "tasks = 2, operations = 2000, rounds = 1"),
    ("mprotect", "share = 5"),
    ("nas", r#"benchmarks = "is""#),
    ("pagealloc", r#"orders = "0,3", batches = "1,64", rounds = 3, warm_up = 1"#),
    ("pagefault", "tasks = 2, share = 5, rounds = 1"),
    ("paralleldd", "size = 25, readers = 2"),
    ("stutter", "hog = 50, file = 25, probe = 8"),
    ("thp", "share = 5, rounds = 1"),
    ("truncate", "files = 8, rounds = 1, share = 15"),
    ("usemem", "tasks = 2, share = 20, limit = 15"),
    ("vmalloc", "areas = 60, rounds = 1"),
];
/// It runs on CPUs of two nodes.
const ON_NODES: &str = "memcg";
/// The memory of a node.
const MEMORY: &str = "384M";

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn segments_and_instructions_give_the_same_counts() {
    let bench = Bench::new();
    for cpus in 1..=4 {
        let file = bench.write("x.toml", &experiment(cpus));
        let said = bench.faultline(&["run", "--verify", file.to_str().unwrap()]).expect(0);
        let done = "1 boot done, 1 boot repeated with bit-identical results";
        assert!(said.out.contains(done), "{}", said.out);
        println!("{cpus} CPUs: {}", said.out);
    }
}

/// An experiment with all workloads, on a node for each CPU. `--verify` counts each boot in both ways.
fn experiment(cpus: u32) -> String {
    let node = |cpu| format!("[[machine.node]]\ncpus = \"{cpu}\"\nmemory = \"{MEMORY}\"\n");
    let mut text = format!("name = \"counts-{cpus}\"\nmode = \"exact\"\nseeds = 1\n");
    text.extend((0..cpus).map(node));
    if cpus == 1 {
        text += &format!("[[machine.node]]\nmemory = \"{MEMORY}\"\n");
    }
    text += "[[machine.disk]]\nkind = \"pmem\"\nsize = \"2G\"\nfilesystem = \"ext4\"\n\
             [machine.swap]\nkind = \"zram\"\nsize = \"256M\"\n[[variant]]\nkernel = \"6.12\"\n";
    let used = WORKLOADS.iter().filter(|(name, _)| cpus > 1 || *name != ON_NODES);
    text.extend(used.map(|(name, parameters)| {
        format!("[[workload]]\nname = \"{name}\"\nparameters = {{ {parameters} }}\n")
    }));
    text
}
