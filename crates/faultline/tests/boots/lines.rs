//! Instructions planted in a function that is inlined into another, found by the line. Runs in `make check-long`.

use model::{Boot, Place};

use crate::common::{Bench, quoted};
use crate::entries::{DEBUG, patch};

/// The function, which the compiler inlines into `do_wp_page`.
const SOURCE: &str = "static vm_fault_t wp_page_copy(struct vm_fault *vmf)\n{\n\
                      \tconst bool unshare = vmf->flags & FAULT_FLAG_UNSHARE;\n";

/// The costs of a boot other than those of single instructions.
fn costs(boot: &Boot) -> Vec<String> {
    let rows = boot.profiles.iter().flat_map(|it| it.costs.rows());
    let others = rows.filter(|row| !matches!(row.place, Place::Instruction { .. }));
    let cells = others.map(|row| {
        let cells = row.cells.iter().map(|it| (it.cost, it.cpu, it.value));
        format!("{:?} {:?}", row.place, cells.collect::<Vec<_>>())
    });
    cells.collect()
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn planted_instructions_are_found_by_the_line() {
    let bench = Bench::new();
    let debug = quoted(&bench.write("debug.patch", DEBUG));
    let plant = quoted(&bench.write("plant.patch", &patch("memory.c", SOURCE)));
    let variant = |name: &str, patches: &str| {
        format!(
            "[[variant]]\nname = \"{name}\"\nkernel = \"debian-source:6.1\"\npatches = [{patches}]\n"
        )
    };
    bench
        .run(&format!(
            "name = \"lines\"\nmode = \"exact\"\nseeds = 1\n\
             [machine]\ncpus = 1\nmemory = \"512M\"\nnodes = 1\n{}{}[[workload]]\nname = \"fork\"\n",
            variant("base", &debug),
            variant("planted", &format!("{debug}, {plant}")),
        ))
        .expect(0);
    let without = bench.boots();
    let explain = ["explain", "base", "planted", "--lines", "do_wp_page"];
    bench.faultline(&["run", "--again", "lines", "--lines", "do_wp_page", "-q"]).expect(0);
    let with = bench.boots();
    for boot in &without {
        let again = with.iter().find(|it| it.variant == boot.variant).unwrap();
        assert_eq!(costs(again), costs(boot), "{}", boot.variant);
    }
    let lines = bench.json(&explain);
    assert_eq!(lines["by_source"], true);
    for side in [0, 1] {
        let rows = lines["lines"].as_array().unwrap().iter();
        let sum: u64 = rows.filter_map(|row| row["sides"][side]["instructions"].as_u64()).sum();
        assert_eq!(lines["sides"][side]["instructions"], sum);
    }
    let new = &lines["sides"][1];
    let is_planted = |row: &&serde_json::Value| {
        let side = &row["sides"][1];
        row["sides"][0].is_null() && side["inlined"] == "wp_page_copy"
    };
    let rows = lines["lines"].as_array().unwrap().iter();
    let planted: Vec<_> = rows.filter(is_planted).collect();
    let [row] = planted[..] else { panic!("{planted:?}") };
    let instructions = row["sides"][1]["instructions"].as_u64().unwrap();
    let executions = row["sides"][1]["executions"].as_u64().unwrap();
    assert!(instructions == 10 * executions && executions > 0, "{row}");
    assert!(executions <= new["entries"].as_u64().unwrap(), "{new}");
    assert!(row["sides"][1]["place"].as_str().unwrap().starts_with("mm/memory.c:"), "{row}");
}
