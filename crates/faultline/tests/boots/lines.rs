//! Instructions planted in a function that is inlined into another, found by the line. Runs in `make check-long`.

use model::{Boot, Place};

use crate::common::{Bench, quoted};
use crate::entries::patch;

/// A function that the compiler inlines into `copy_page_range`.
const INLINED: &str = "copy_present_pte(struct vm_area_struct *dst_vma, struct vm_area_struct *src_vma,\n\
                       \t\t pte_t *dst_pte, pte_t *src_pte, unsigned long addr, int *rss,\n\
                       \t\t struct page **prealloc)\n{\n\tstruct mm_struct *src_mm = src_vma->vm_mm;\n";

/// A function that is inlined into `do_wp_page`, after [`INLINE`].
const COPY: &str = "static __always_inline vm_fault_t wp_page_copy(struct vm_fault *vmf)\n{\n\
                    \tconst bool unshare = vmf->flags & FAULT_FLAG_UNSHARE;\n";
/// Has the compiler inline a function, which compilers do with some configurations and not with others.
const INLINE: &str = "--- a/mm/memory.c\n+++ b/mm/memory.c\n@@ -1000,3 +1000,3 @@\n\
                      -static vm_fault_t wp_page_copy(struct vm_fault *vmf)\n\
                      +static __always_inline vm_fault_t wp_page_copy(struct vm_fault *vmf)\n \
                      {\n \tconst bool unshare = vmf->flags & FAULT_FLAG_UNSHARE;\n";

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
    let plant = quoted(&bench.write("plant.patch", &patch("memory.c", INLINED)));
    let copy = quoted(&bench.write("copy.patch", &patch("memory.c", COPY)));
    let inline = quoted(&bench.write("inline.patch", INLINE));
    let variant = |name: &str, patch: &str| {
        let patches = format!("[{inline}{patch}]");
        format!(
            "[[variant]]\nname = \"{name}\"\nkernel = \"debian-source:6.1\"\npatches = {patches}\n"
        )
    };
    bench
        .run(&format!(
            "name = \"lines\"\nmode = \"exact\"\nseeds = 1\n\
             [machine]\ncpus = 1\nmemory = \"512M\"\nnodes = 1\n{}{}{}[[workload]]\nname = \"fork\"\n",
            variant("base", ""),
            variant("planted", &format!(", {plant}")),
            variant("copy", &format!(", {copy}")),
        ))
        .expect(0);
    for (variant, place) in [
        ("planted", "copy_present_pte, inlined in copy_page_range, mm/memory.c:"),
        ("copy", "wp_page_copy, inlined in do_wp_page, mm/memory.c:"),
    ] {
        let text = bench.faultline(&["explain", "base", variant]).expect(0).out;
        let text = text.replace('\n', " ");
        let told = format!("functions executed differs. {place}");
        assert!(text.contains(&told), "{text}");
    }
    let without = bench.boots();
    let explain = ["explain", "base", "planted", "--lines", "copy_page_range"];
    bench.faultline(&["run", "--again", "lines", "--lines", "copy_page_range", "-q"]).expect(0);
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
    // The object is compiled again with line tables. The line is the one with the largest change.
    let each = |row: &serde_json::Value, side: usize| {
        let entries = lines["sides"][side]["entries"].as_f64().unwrap();
        row["sides"][side]["instructions"].as_f64().unwrap_or(0.0) / entries
    };
    let change = |row: &serde_json::Value| (each(row, 1) - each(row, 0)).abs();
    let rows = lines["lines"].as_array().unwrap().iter();
    let row = rows.max_by(|one, other| change(one).total_cmp(&change(other))).unwrap();
    let planted = &row["sides"][1];
    assert!(row["sides"][0].is_null() && planted["inlined"] == "copy_present_pte", "{row}");
    let [instructions, executions] =
        ["instructions", "executions"].map(|it| planted[it].as_u64().unwrap());
    assert!(instructions == 10 * executions && executions > 0, "{row}");
    assert!(planted["place"].as_str().unwrap().starts_with("mm/memory.c:"), "{row}");
    assert!(planted["text"].as_str().unwrap().contains("lea (%rsp), %rsp"), "{row}");
    let text = bench.faultline(&explain).expect(0).out;
    let told = "The largest change: copy_present_pte, inlined in copy_page_range, mm/memory.c:";
    assert!(text.replace('\n', " ").contains(told), "{text}");
    // The functions that changed need no names.
    let said =
        bench.faultline(&["run", "--again", "lines~2", "--lines", "changed", "-q"]).expect(0);
    assert!(said.err.contains("Keeping the lines of 2 functions: "), "{}", said.err);
    let text = bench.faultline(&["explain", "base", "copy", "--lines", "changed"]).expect(0).out;
    let text = text.replace('\n', " ");
    assert!(text.starts_with("The lines of 1 function whose code differs"), "{text}");
    assert!(text.contains("wp_page_copy, inlined in do_wp_page, mm/memory.c:"), "{text}");
    assert!(text.contains(" more an entry."), "{text}");
    let page = bench.faultline(&["explain", "base", "copy", "--format", "html"]).expect(0).out;
    assert!(page.contains("Lines of do_wp_page. The largest change: wp_page_copy, inlined"));
}
