//! Checks call paths through jumps from one function to another: gcc replaces a call at the end of a function by a
//! jump. The same kernel is also built without such jumps, and must have the same paths. Runs in `make check-long`.

use std::collections::{BTreeMap, BTreeSet};

use model::{Boot, INSTRUCTIONS, Place, Profile};

use crate::common::Bench;
use crate::planted::{BASE, functions, image, variant};

/// The name of the kernel without jumps to other functions.
const CALLED: &str = "called";
/// A function that ends with a jump to another one in the kernel with jumps, and that other function.
const JUMP: (&str, &str) = ("x64_sys_call", "__x64_sys_mprotect");
/// An edge that has at least this share of a phase's instructions in one kernel must be in both. Smaller edges differ
/// by luck, such as how often slabs are filled. If the plugin did not follow a jump, its edge would be missing.
const SHARE: f64 = 0.01;

/// A caller and its callee.
type Edge = (String, String);

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn jumps_to_other_functions_count_as_calls() {
    for (kernel, instruction) in [(BASE, "jmp"), (CALLED, "call")] {
        let code = &functions(&image(kernel))[JUMP.0];
        let target = format!("<{}>", JUMP.1);
        let mut to = code.iter().filter(|line| line.ends_with(&target));
        assert!(to.all(|line| line.starts_with(instruction)), "{kernel}: {code:?}");
    }
    let bench = Bench::new();
    let variants = [BASE, CALLED].map(|kernel| variant(kernel, ""));
    bench
        .run(&format!(
            "name = \"calls\"\nmode = \"exact\"\nseeds = 1\n[profile]\nstacks = true\n\
             [machine]\ncpus = 1\nmemory = \"512M\"\nnodes = 1\n{}\
             [[workload]]\nname = \"mmap\"\n\
             parameters = {{ by = \"processes\", operations = 2000, rounds = 1 }}\n",
            variants.concat()
        ))
        .expect(0);
    let boots = bench.boots();
    let [jumps, calls] = [BASE, CALLED].map(|kernel| phases(&boots, kernel));
    assert!(jumps.keys().eq(calls.keys()));
    let mut compared = BTreeSet::new();
    for (phase, jumps) in jumps {
        compared.extend(agree(jumps, calls[phase]));
    }
    assert!(compared.contains(&(JUMP.0.to_owned(), JUMP.1.to_owned())), "{compared:?}");
}

/// The phases of a kernel's boot.
fn phases<'a>(boots: &'a [Boot], kernel: &str) -> BTreeMap<&'a str, &'a Profile> {
    let boot = boots.iter().find(|boot| boot.variant == kernel).unwrap();
    let phases = boot.profiles.iter().map(|profile| (&*profile.phase, profile));
    phases.filter(|(phase, _)| !phase.is_empty()).collect()
}

/// Checks that two profiles have the same edges, and returns them.
fn agree(jumps: &Profile, calls: &Profile) -> Vec<Edge> {
    let all = [jumps, calls].map(|profile| profile.totals().kernel as f64);
    let [jumps, calls] = [jumps, calls].map(edges);
    let edges: BTreeSet<&Edge> = jumps.keys().chain(calls.keys()).collect();
    let edges = edges.into_iter().filter(|edge| {
        let sums = [&jumps, &calls].map(|edges| edges.get(*edge).copied().unwrap_or(0) as f64);
        let is_large = sums[0] >= SHARE * all[0] || sums[1] >= SHARE * all[1];
        assert!(!is_large || (sums[0] > 0.0 && sums[1] > 0.0), "{edge:?}: {sums:?} of {all:?}");
        is_large
    });
    edges.cloned().collect()
}

/// The number of instructions of each callee under its caller, including what the callee calls.
fn edges(profile: &Profile) -> BTreeMap<Edge, u64> {
    let mut edges = BTreeMap::new();
    let cost = profile.costs.number(INSTRUCTIONS);
    for row in profile.costs.rows() {
        let Place::Path(functions) = row.place else { continue };
        let pairs = functions.windows(2);
        let of: BTreeSet<Edge> =
            pairs.map(|pair| (pair[0].to_string(), pair[1].to_string())).collect();
        for edge in of {
            *edges.entry(edge).or_default() += row.sum(cost) as u64;
        }
    }
    edges
}
