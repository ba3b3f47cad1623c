//! Swap space and memory cgroups, on the oldest and the newest kernel: memory that does not fit is swapped out, and
//! files are reclaimed.

use model::{Boot, Source};

use crate::common::{Bench, OLDEST_AND_NEWEST, grown, phase};

/// A process that needs most of the memory that the machine itself does not need.
const EXPERIMENT: &str = r#"
[[machine.disk]]
size = "512M"
filesystem = "ext4"
[[workload]]
name = "stutter"
parameters = { hog = 90, file = 5, probe = 4 }
[[workload]]
name = "usemem"
parameters = { tasks = 1 }
[[workload]]
name = "filereclaim"
parameters = { rounds = 2 }
"#;

#[test]
fn memory_that_does_not_fit_is_swapped_out() {
    is_swapped_out("file");
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn memory_that_does_not_fit_is_swapped_to_zram() {
    is_swapped_out("zram");
}

fn is_swapped_out(kind: &str) {
    let bench = Bench::new();
    let swap = format!("kind = \"{kind}\", size = \"256M\"");
    // With several CPUs, each a thread, emulation hangs in one of several hundred boots.
    let machine = format!("cpus = 1\nmemory = \"512M\"\nswap = {{ {swap} }}");
    let text = format!("name = \"swap\"\nboots = 1\n[machine]\n{machine}\n{EXPERIMENT}");
    let run = bench.run(&(text + OLDEST_AND_NEWEST));
    let boots = bench.boots();
    assert_eq!(boots.len(), 2, "{}", run.err);
    for boot in &boots {
        let chunks = boot.chunks.iter().filter(|chunk| chunk.is_of(Source::Vmstat));
        let out: i64 = chunks.filter_map(|chunk| chunk.difference("pswpout")).sum();
        assert!(out > 0, "{swap}, {}: nothing went out", boot.variant);
        what_exceeds_the_limit_is_swapped(boot);
    }
    let [old, new] = &boots[..] else { unreachable!() };
    let told = "this kernel has no memory.reclaim, which came with Linux 5.19";
    assert!(old.outcome.to_string().ends_with(told), "{}", old.outcome);
    assert!(new.outcome.is_complete(), "{}", new.outcome);
    files_are_reclaimed(new);
}

/// The processes use 40 % of the memory, and are allowed 30 %.
fn what_exceeds_the_limit_is_swapped(boot: &Boot) {
    let out = grown(phase(boot, "usemem", "fill-1")[0], "pswpout");
    let exceeding = 0.1 * boot.facts.memory as f64 / 4096.0;
    assert!((0.8..2.0).contains(&(out / exceeding)), "{out} pages of {exceeding}");
}

/// The workload reclaims 80 % of a file that takes a quarter of the memory.
fn files_are_reclaimed(boot: &Boot) {
    let asked = 0.8 * 0.25 * boot.facts.memory as f64 / f64::from(1 << 20);
    let reclaimed = boot.samples.iter().filter(|sample| sample.metric == "Reclaimed");
    let reclaimed: Vec<f64> = reclaimed.map(|sample| sample.value / asked).collect();
    assert!(reclaimed.len() == 4 && reclaimed.iter().all(|it| *it > 0.95), "{reclaimed:?}");
}
