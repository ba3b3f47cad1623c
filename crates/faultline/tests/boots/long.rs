//! Slow tests, run by `make check-long`.

use std::collections::BTreeSet;

use model::Source;

use crate::common::Bench;

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn old_and_new_kernels_run_every_program_on_an_odd_machine_sampled_at_10_ms() {
    let bench = Bench::new();
    let files = || Source::ALL.iter().copied().filter(|source| *source != Source::Events);
    let sources: Vec<String> = files().map(|source| format!("\"{}\"", source.name())).collect();
    let kernels = ["5.10", "6.1", "6.12", "newest"];
    let variants = kernels.map(|kernel| format!("[[variant]]\nkernel = \"{kernel}\"\n"));
    let text = format!(
        "name = \"odd\"\nboots = 1\n\
         [[machine.node]]\ncpus = \"0-2\"\nmemory = \"1G\"\ndistances = [10, 21, 31]\n\
         [[machine.node]]\ncpus = \"3\"\nmemory = \"768M\"\ndistances = [21, 10, 41]\n\
         [[machine.node]]\nmemory = \"256M\"\ndistances = [31, 41, 10]\n\
         [sampler]\ninterval = \"10ms\"\nsources = [{}]\n{}\
         [[workload]]\nname = \"autonuma\"\niterations = 2\nparameters = {{ scale = 0.3 }}\n",
        sources.join(", "),
        variants.concat(),
    );
    bench.run(&text).expect(0);
    for boot in bench.boots() {
        let kernel = &boot.variant;
        assert_eq!((boot.facts.cpus, boot.facts.nodes), (4, 3), "{kernel}");
        assert_eq!(boot.problems, [], "{kernel}");
        // Four metrics of four programs, in two iterations.
        assert_eq!(boot.samples.len(), 32, "{kernel}");
        let sampled: BTreeSet<&str> = boot.chunks.iter().map(|chunk| &*chunk.source).collect();
        for source in files() {
            // `/proc/diskstats` is empty without disks, and older kernels print no header.
            let expected = source != Source::Diskstats;
            assert!(!expected || sampled.contains(source.name()), "{kernel}: {}", source.name());
        }
        let ticks: usize = boot
            .chunks
            .iter()
            .filter(|chunk| chunk.is_of(Source::Vmstat))
            .map(|chunk| chunk.times.len())
            .sum();
        let seconds: f64 = boot.usage.iter().map(|usage| usage.elapsed).sum();
        // A busy host misses ticks. The default interval would give at most one reading a second.
        assert!(ticks as f64 > 2.0 * seconds, "{kernel}: {ticks} samples in {seconds} s");
    }
    let compared = bench.faultline(&["compare", "--full"]).expect(0).out;
    println!("{compared}");
}
