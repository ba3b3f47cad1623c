//! Swap space, on the oldest and the newest kernel: memory that does not fit is swapped out.

use model::Source;

use crate::common::Bench;

/// A process that needs most of the memory, besides what the machine itself needs.
const EXPERIMENT: &str = r#"
[[machine.disk]]
size = "512M"
filesystem = "ext4"
[[variant]]
kernel = "5.10"
[[variant]]
kernel = "newest"
[[workload]]
name = "stutter"
parameters = { hog = 90, file = 5, probe = 4 }
"#;

#[test]
fn memory_that_does_not_fit_is_swapped_out() {
    let bench = Bench::new();
    for swap in ["kind = \"file\", size = \"256M\"", "kind = \"zram\", size = \"256M\""] {
        // With several CPUs in threads, emulation hangs in one of some hundred boots.
        let machine = format!("cpus = 1\nmemory = \"512M\"\nswap = {{ {swap} }}");
        let text = format!("name = \"swap\"\nboots = 1\n[machine]\n{machine}\n{EXPERIMENT}");
        bench.run(&text).expect(0);
        let boots = bench.boots();
        assert_eq!(boots.len(), 2);
        for boot in &boots {
            let chunks = boot.chunks.iter().filter(|chunk| chunk.is_of(Source::Vmstat));
            let out: i64 = chunks.filter_map(|chunk| chunk.difference("pswpout")).sum();
            assert!(out > 0, "{swap}, {}: nothing went out", boot.variant);
        }
    }
}
