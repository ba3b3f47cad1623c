//! Exact mode on arm64, which `make arm64` makes ready.

use std::collections::BTreeSet;
use std::path::Path;

use model::{Class, ENTRIES, INSTRUCTIONS, Place, Privilege, Profile};

use crate::common::Bench;

/// The text of an experiment with a workload that protects a mapping three times and restores it each time.
fn protecting(cpus: u32, nodes: u32, seeds: u32, profile: &str) -> String {
    format!(
        "name = \"arm64\"\nmode = \"exact\"\nseeds = {seeds}\n[profile]\nstacks = true\n{profile}\
         [machine]\narch = \"arm64\"\ncpus = {cpus}\nmemory = \"1G\"\nnodes = {nodes}\n\
         [[variant]]\nkernel = \"6.12\"\n\
         [[workload]]\nname = \"mprotect\"\nparameters = {{ rounds = 3, share = 1 }}\n"
    )
}

/// Whether the guest's programs for arm64 are built. Says so if they are not.
pub fn can_boot() -> bool {
    let guest = std::env::var_os("FAULTLINE_GUEST").unwrap();
    let is_built = Path::new(&guest).join("arm64/agent").is_file();
    if !is_built {
        println!("skipped: `make arm64` has not built the guest's programs");
    }
    is_built
}

fn is_function(place: &Place) -> bool {
    matches!(place, Place::Function { .. })
}

#[test]
fn an_arm64_kernel_is_counted_and_its_calls_are_followed() {
    if !can_boot() {
        return;
    }
    let bench = Bench::new();
    bench.run(&protecting(2, 1, 1, "")).expect(0);
    let boots = bench.boots();
    for phase in ["protect", "restore"] {
        let profiles = || boots[0].profiles.iter().filter(|it| it.phase == phase);
        profiles().for_each(agree);
        let sum = |cost: &str, wanted: &dyn Fn(&Place) -> bool| -> u128 {
            profiles().map(|it| it.costs.sum(cost, wanted)).sum()
        };
        let is_call = |it: &Place| matches!(it, Place::Function { name, .. } if **name == *"__arm64_sys_mprotect");
        assert_eq!(sum(ENTRIES, &is_call), 3, "{phase}");
        let number = |class: Class| sum(class.name(), &is_function);
        let [pages, ranges] = [Class::TlbiPage, Class::TlbiRange].map(number);
        assert!(pages + ranges >= 3, "{phase}: {pages} of pages, {ranges} of ranges");
        // A DSB waits for each flush.
        assert!(number(Class::Dsb) >= 3 && number(Class::Atomic) > 0, "{phase}");
        assert!(profiles().all(|it| it.costs.number(Class::Invlpg.name()).is_none()));
    }
}

#[test]
fn a_c_file_is_compiled_for_an_arm64_kernel() {
    if !can_boot() {
        return;
    }
    let bench = Bench::new();
    let text =
        "#include <unistd.h>\nint main(void) { for (int i = 0; i < 1000; i++) getppid(); }\n";
    let program = bench.write("calls.c", text).display().to_string();
    bench
        .faultline(&["try", "6.12@arm64", "--memory", "512M", "--quiet", "--", &program])
        .expect(0);
    let boots = bench.boots();
    let run = boots[0].profiles.iter().find(|it| it.phase == "run").unwrap();
    let is_call =
        |it: &Place| matches!(it, Place::Function { name, .. } if **name == *"__arm64_sys_getppid");
    assert_eq!(run.costs.sum(ENTRIES, is_call), 1000);
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn larger_pages_have_fewer_faults() {
    const MIB: u64 = 64;
    if !can_boot() {
        return;
    }
    let bench = Bench::new();
    let text = format!(
        "#include <sys/mman.h>\nint main(void) {{ unsigned long size = {MIB}UL << 20;\n\
         char *p = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n\
         for (unsigned long at = 0; at < size; at += 4096) ((volatile char *)p)[at] = 1; }}\n"
    );
    let program = bench.write("touch.c", &text).display().to_string();
    // A machine of this size has no transparent huge pages.
    let options =
        ["try", "6.12@arm64,6.12-16k", "--memory", "512M", "--seeds", "1", "--quiet", "--"];
    bench.faultline(&[&options[..], &[&program]].concat()).expect(0);
    let boots = bench.boots();
    let sizes: BTreeSet<u64> = boots.iter().map(|boot| boot.facts.page_size).collect();
    assert_eq!(sizes, BTreeSet::from([4 << 10, 16 << 10]));
    for boot in &boots {
        let size = boot.facts.page_size;
        let run = boot.profiles.iter().find(|it| it.phase == "run").unwrap();
        agree(run);
        let is_fault = |it: &Place| matches!(it, Place::Function { name, .. } if **name == *"do_anonymous_page");
        // The program's stack and data have a few pages too.
        let beyond = run.costs.sum(ENTRIES, is_fault) - u128::from((MIB << 20) / size);
        assert!(beyond < 40, "{beyond} faults more with pages of {size}");
    }
}

/// Checks that functions and call paths add up to what the CPUs counted.
fn agree(profile: &Profile) {
    let sum = |wanted: fn(&Place) -> bool| profile.costs.sum(INSTRUCTIONS, wanted);
    let all = sum(|it| *it == Place::All(Privilege::Kernel));
    assert!(all > 0);
    assert_eq!(sum(is_function), all);
    assert_eq!(sum(|it| matches!(it, Place::Path(_))), all);
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn boots_of_arm64_are_the_same_to_the_bit() {
    if !can_boot() {
        return;
    }
    let bench = Bench::new();
    bench.run(&protecting(4, 2, 2, "accesses = true\n")).expect(0);
    bench.boots().iter().flat_map(|boot| &boot.profiles).for_each(agree);
    let said = bench.faultline(&["replay", "b1", "b2", "--jobs", "2"]).expect(0);
    for boot in ["b1", "b2"] {
        assert!(said.out.contains(&format!("{boot} replayed: bit-identical\n")), "{}", said.out);
    }
}
