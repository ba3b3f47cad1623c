//! Workloads with programs of the distribution, on the newest kernel and, in long tests, on the oldest one too. The
//! tables have mmtests' rows, and the kernels' counters agree with what the programs print.

use model::{Boot, Source};

use crate::common::{self, Bench, small_experiment, values_in};

const DISK: &str = r#"
[[machine.disk]]
size = "1G"
filesystem = "xfs"
"#;
/// Small, so that each takes less than a minute.
const TIOBENCH: &str = r#"
[[workload]]
name = "tiobench"
parameters = { size = 20, random = 400, threads = "1,2" }
"#;
const OTHERS: &str = r#"
[[workload]]
name = "xfsrepair"
parameters = { files = 4, rounds = 2, damage = 1 }
[[workload]]
name = "bonnie"
parameters = { size = 40, characters = 0, files = 1 }
"#;
/// PostgreSQL is a large package, so it has its own test.
const PGBENCH: &str = r#"
[[machine.disk]]
size = "1G"
filesystem = "ext4"
[[variant]]
kernel = "6.1"
[[workload]]
name = "pgbench"
parameters = { size = 10, clients = "1,2", warmup = 1, steady = 4 }
"#;
/// stress-ng, Redis and the compiler have their own test as well.
const STRESS: &str = r#"
[machine.swap]
kind = "zram"
size = "128M"
[[machine.disk]]
size = "256M"
filesystem = "ext4"
[[variant]]
kernel = "6.1"
[[workload]]
name = "stressng"
parameters = { stressors = "fork,mmap", tasks = 2, operations = 40, seconds = 60 }
[[workload]]
name = "keyvalue"
parameters = { requests = 2000 }
[[workload]]
name = "kernbuild"
parameters = { jobs = 2, files = 4 }
"#;
/// The number of files that fs_mark makes: 4 for each MiB.
const FILES: f64 = 4.0 * 512.0;
/// The size of bonnie++'s file in KiB: 40 % of the memory in whole MiB.
const SIZE: f64 = 204.0 * 1024.0;
/// The size of tiobench's files in KiB: 20 % of the memory.
const FILES_SIZE: f64 = 512.0 * 1024.0 / 5.0;

fn small(kernel: &str, workloads: &str) -> String {
    small_experiment("packaged", &format!("{DISK}[[variant]]\nkernel = \"{kernel}\"\n{workloads}"))
}

#[test]
fn kernel_counters_agree_with_a_packaged_program() {
    let bench = Bench::new();
    bench.run(&small("newest", TIOBENCH)).expect(0);
    files_are_written_once_and_read_from_memory(&bench.boots()[0]);
    let table = bench.faultline(&["compare", "--full"]).expect(0).out;
    assert!(table.contains("Hmean     PotentialReadSpeed"), "{table}");
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn kernel_counters_agree_with_packaged_programs() {
    for kernel in ["5.10", "newest"] {
        counters_agree(kernel);
    }
}

fn counters_agree(kernel: &str) {
    let bench = Bench::new();
    bench.run(&small(kernel, &format!("{OTHERS}{TIOBENCH}"))).expect(0);
    let boots = bench.boots();
    let [boot] = &boots[..] else { panic!("{} boots", boots.len()) };
    an_image_is_filled_and_repaired(boot);
    a_file_is_written_twice_and_read_twice(boot);
    files_are_written_once_and_read_from_memory(boot);
    let table = bench.faultline(&["compare", "--full"]).expect(0).out;
    for row in [
        "Amean     Elapsed-fsmark",
        "Amean     Elapsed-xfsrepair",
        "Amean     System-fsmark",
        "Amean     System-xfsrepair",
        "Hmean     Files/sec-fsmark",
        "Amean     CacheHit%-xfsrepair",
        "Amean     latency-SeqOut:block",
        "Amean     latency-RandCreate:del",
        "Hmean     PotentialReadSpeed",
    ] {
        assert!(table.contains(row), "{row}:\n{table}");
    }
}

/// The text of all notes, one line each.
fn noted(boot: &Boot) -> String {
    boot.notes.iter().map(|note| format!("{note}\n")).collect()
}

/// How much a counter of `/proc/vmstat` grew in a phase.
fn grown(boot: &Boot, workload: &str, phase: &str, counter: &str) -> f64 {
    common::grown(common::phase(boot, workload, phase)[0], counter)
}

fn an_image_is_filled_and_repaired(boot: &Boot) {
    let rates = values_in(boot, "Files/sec", "fsmark");
    assert!(rates.len() == 2 && rates.iter().all(|rate| *rate > 0.0), "{rates:?}");
    // By the rates, all files were made within the elapsed time.
    let seconds: f64 = rates.iter().map(|rate| FILES / 2.0 / rate).sum();
    let [elapsed] = values_in(boot, "Elapsed", "fsmark")[..] else { panic!("not one time") };
    assert!(seconds < elapsed, "{seconds} s of {elapsed} s");
    // The report for 16 GiB has 101073 buckets; this is the same share of the memory.
    assert_eq!(values_in(boot, "CacheBuckets", "xfsrepair"), [3158.0]);
    // Everything in the cache was once missed, and then read from the disk with its inodes of 512 bytes.
    let [entries, misses] =
        ["CacheEntries", "CacheMisses"].map(|metric| values_in(boot, metric, "xfsrepair")[0]);
    assert!(entries > 0.0 && entries <= misses, "{entries} entries after {misses} misses");
    let read = grown(boot, "xfsrepair", "xfsrepair", "pgpgin");
    assert!(read > FILES / 2.0, "{read} KiB for {FILES} inodes");
    let notes = noted(boot);
    assert!(notes.contains("damaged: the header of inodes in 1 allocation groups"), "{notes}");
    assert!(
        notes.contains("2048 files; after the repair xfs_repair -n finds no damage"),
        "{notes}"
    );
}

fn a_file_is_written_twice_and_read_twice(boot: &Boot) {
    let latencies = boot.samples.iter().filter(|sample| sample.metric == "latency");
    let labels: Vec<&str> = latencies.map(|sample| sample.label.as_str()).collect();
    let expected = [
        "SeqOut:block", "SeqOut:rewrite", "SeqIn:block", "Random:seeks", "SeqCreate:create",
        "SeqCreate:read", "SeqCreate:del", "RandCreate:create", "RandCreate:read",
        "RandCreate:del",
    ];
    assert_eq!(labels, expected);
    let written = grown(boot, "bonnie", "io", "pgpgout") / SIZE;
    assert!((1.9..3.0).contains(&written), "{written} times the file");
    let rates: Vec<f64> = ["SeqOut block", "SeqOut rewrite"]
        .iter()
        .flat_map(|metric| values_in(boot, metric, ""))
        .collect();
    // Figures are in KiB per second. The parts that were measured took no longer than the whole.
    let usage = boot.usage.iter().find(|usage| usage.workload == "bonnie").unwrap();
    let seconds: f64 = rates.iter().map(|rate| SIZE / rate).sum();
    assert!(seconds < usage.elapsed, "{seconds} s of {} s", usage.elapsed);
}

fn files_are_written_once_and_read_from_memory(boot: &Boot) {
    let read = grown(boot, "tiobench", "potential", "pgpgin") / FILES_SIZE;
    assert!((0.99..1.5).contains(&read), "{read} times the file");
    let notes = noted(boot);
    for threads in ["1", "2"] {
        let written = grown(boot, "tiobench", &format!("SeqWrite-{threads}"), "pgpgout");
        let written = written / FILES_SIZE;
        assert!((0.99..1.5).contains(&written), "{written} times the files");
        // The files fit into the page cache, which is not dropped.
        let read = grown(boot, "tiobench", &format!("SeqRead-{threads}"), "pgpgin") / FILES_SIZE;
        assert!(read < 0.5, "{read} times the files");
        for test in ["SeqWrite", "RandWrite", "SeqRead", "RandRead"] {
            let metric = format!("{test}-MB/sec");
            let samples = boot.samples.iter().filter(|sample| sample.metric == metric);
            let rates = samples.filter(|sample| sample.label == threads).count();
            let quick = usize::from(notes.contains(&format!("{test}-{threads}")));
            assert_eq!(rates + quick, 1, "{metric} {threads}: {notes}");
        }
    }
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn the_server_counters_agree_with_pgbench() {
    let bench = Bench::new();
    bench.run(&small_experiment("pgbench", PGBENCH)).expect(0);
    let [boot] = &bench.boots()[..] else { panic!("not one boot") };
    assert_eq!(boot.notes.len(), 2, "{:?}", boot.notes);
    for ((note, label), clients) in boot.notes.iter().zip(["1", "2"]).zip(["1 client", "2 clients"])
    {
        let words = note.text.strip_prefix(clients).unwrap();
        let numbers: Vec<f64> =
            words.split([' ', ':', ',']).filter_map(|word| word.parse().ok()).collect();
        let [done, counted] = numbers[..] else { panic!("{note}") };
        assert!(done > 0.0 && (done..=done * 1.01 + 100.0).contains(&counted), "{note}");
        // There are two windows of 2 seconds.
        let samples = boot.samples.iter();
        let rates = samples.filter(|sample| sample.metric == "txn" && sample.label == label);
        let rates: Vec<f64> = rates.map(|sample| sample.value).collect();
        assert_eq!((rates.len(), rates.iter().sum::<f64>() * 2.0), (2, done), "{note}");
    }
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn kernel_counters_agree_with_stressors_a_server_and_a_compiler() {
    let bench = Bench::new();
    bench.run(&small_experiment("stress", STRESS)).expect(0);
    let [boot] = &bench.boots()[..] else { panic!("not one boot") };
    let labels = |metric: &str| {
        let samples = boot.samples.iter().filter(|sample| sample.metric == metric);
        samples.map(|sample| sample.label.clone()).collect::<Vec<_>>()
    };
    assert_eq!(labels("Rate"), ["fork-2", "mmap-2"]);
    // An operation of this stressor is a fork. stress-ng itself starts a few processes too.
    let started = |phase: &str| {
        let mut stat = boot.chunks.iter().filter(|chunk| chunk.is_of(Source::Stat));
        stat.find(|chunk| chunk.phase == phase).unwrap().difference("processes").unwrap()
    };
    assert!((40..60).contains(&started("fork-2")), "{} processes", started("fork-2"));

    assert_eq!(labels("Requests"), ["get", "set", "get-save", "set-save"]);
    // Figures are in KiB. All keys are written to the disk.
    let keys = 512.0 * 1024.0 / 10.0 * 1024.0 / (1024.0 + 120.0);
    let written = grown(boot, "keyvalue", "set-save", "pgpgout") / keys;
    assert!((0.99..1.2).contains(&written), "{written} times the keys");
    // Each page that the server copied took a fault.
    let copied = boot.samples.iter().filter(|sample| sample.metric == "Copied");
    let copied: Vec<f64> = copied.map(|sample| sample.value * 256.0).collect();
    let faults = grown(boot, "keyvalue", "set-save", "pgfault");
    assert!(copied[0] < copied[1] && copied[1] < faults, "{copied:?} pages, {faults} faults");

    // Each of 4 files starts gcc, cc1 and as. Then there are make, and gcc and ld for all files.
    assert!((15..40).contains(&started("build-2")), "{} processes", started("build-2"));
    assert_eq!(
        (labels("OOM"), labels("System")[2..].to_vec()),
        (vec!["2".into()], vec!["2".to_owned()])
    );
    assert!(grown(boot, "kernbuild", "build-2", "pswpout") > 0.0);
}
