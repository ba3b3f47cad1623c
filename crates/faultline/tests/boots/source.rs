//! Builds Debian's packaged sources with the small configuration, and boots them. Runs in `make check-long`.

use model::Outcome;

use crate::common::Bench;

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn kernels_from_5_10_to_the_newest_are_built_and_run_workloads_in_both_modes() {
    let bench = Bench::new();
    let kernels = ["5.10", "6.1", "6.12", "newest"];
    let variants: String = kernels
        .map(|kernel| format!("[[variant]]\nkernel = \"debian-source:{kernel}\"\n"))
        .concat();
    for (mode, accel) in
        [("mode = \"exact\"\nseeds = 1\n", ""), ("boots = 1\n", "accel = \"tcg\"\n")]
    {
        bench.run(&format!(
            "name = \"sources\"\n{mode}[machine]\ncpus = 2\nnodes = 2\nmemory = \"1G\"\n{accel}\
             [[machine.disk]]\nsize = \"512M\"\nkind = \"pmem\"\nfilesystem = \"ext4\"\n{variants}\
             [[workload]]\nname = \"autonuma\"\nparameters = {{ programs = \"NUMA01\", scale = 0.05 }}\n\
             [[workload]]\nname = \"truncate\"\nparameters = {{ files = 8, share = 20, rounds = 1 }}\n\
             [[workload]]\nname = \"pagealloc\"\n"
        ))
        .expect(0);
        let boots = bench.boots();
        assert_eq!(boots.len(), kernels.len());
        for boot in boots {
            assert_eq!(boot.outcome, Outcome::Complete, "{}", boot.variant);
            assert_eq!(boot.problems, [], "{}", boot.variant);
            // Without BTF, the build itself says where a task's name is.
            let mut places = boot.profiles.iter().flat_map(|it| it.costs.places());
            let is_named = places.any(
                |it| matches!(it, model::Place::Process { name, .. } if **name == *"workloads"),
            );
            assert_eq!(is_named, !boot.profiles.is_empty(), "{}", boot.variant);
        }
    }
}
