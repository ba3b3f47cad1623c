//! Boots patched kernels that execute a known number of extra instructions in one known function, and checks
//! that exact mode reports them. Runs in `make check-long`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use kernels::Cache;
use model::{Boot, Build, ENTRIES, LOADS, Place, Privilege, STORES};
use serde_json::Value;

use crate::arm64::can_boot;
use crate::balancing::growth;
use crate::common::{Bench, experiment, quoted};

/// What `scripts/planted` does to a kernel.
struct Planted {
    kernel: &'static str,
    function: &'static str,
    /// The planted instruction, and how often each entry executes it.
    instruction: &'static str,
    count: usize,
    /// The number of loads for each entry.
    loads: u64,
    /// By how much the instructions per entry may differ from what was planted: luck varies how often the paths
    /// through the function are taken.
    error: f64,
}

pub const SOURCE: &str = "debian-source:6.1";
pub const BASE: &str = "base";
const DELAY: Planted = Planted {
    kernel: "delay",
    function: "page_add_new_anon_rmap",
    instruction: "lea (%rsp),%rsp",
    count: 200,
    loads: 0,
    error: 0.0, // with pages of one size there is one path through the function
};
const ACCESS: Planted = Planted {
    kernel: "access",
    function: "folio_add_lru_vma",
    instruction: "testb $0x0,0x(%rip) # <lru_disable_count>",
    count: 1,
    loads: 1,
    error: 0.01,
};
const WALK: Planted = Planted {
    kernel: "walk",
    function: "handle_mm_fault",
    instruction: "testb $0x0,0x(%rip) # <lru_disable_count>",
    count: 64,
    loads: 64,
    error: 0.05,
};

const TEN: Planted = Planted {
    kernel: "ten",
    function: "page_add_new_anon_rmap",
    instruction: "nop",
    count: 10,
    loads: 0,
    error: 0.0,
};

/// Pages of one size only, and programs that mostly cause faults.
const FAULTS: &str = "sysfs = { \"/sys/kernel/mm/transparent_hugepage/enabled\" = \"never\" }\n";
const WORKLOAD: &str = "[[workload]]\nname = \"autonuma\"\n\
                        parameters = { programs = \"NUMA01\", scale = 0.02 }\n";

/// The patch that makes a planted kernel.
pub fn patch(kernel: &str) -> PathBuf {
    let patches = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/planted");
    patches.join(kernel).with_extension("patch")
}

/// A variant with a planted kernel, or with the plain one.
pub fn variant(kernel: &str, more: &str) -> String {
    let patches = match kernel {
        BASE => String::new(),
        kernel => format!("patches = [{}]\n", quoted(&patch(kernel))),
    };
    format!("[[variant]]\nname = \"{kernel}\"\nkernel = \"{SOURCE}\"\n{patches}{more}")
}

/// The image of a planted kernel, or of the plain one.
pub fn image(kernel: &str) -> PathBuf {
    let patches = if kernel == BASE { vec![] } else { vec![patch(kernel)] };
    let build = Build { patches, ..Build::default() };
    let cache = Cache::open().unwrap();
    cache.build(&SOURCE.parse().unwrap(), &build, &|_| ()).unwrap().unwrap().image
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn exact_mode_finds_planted_instructions() {
    let bench = Bench::new();
    let planted = [DELAY, ACCESS, WALK];
    let base = functions(&image(BASE));
    for planted in &planted {
        differs_by_what_was_planted(&base, &functions(&image(planted.kernel)), planted);
    }
    let kernels = [BASE, DELAY.kernel, ACCESS.kernel, WALK.kernel];
    let variants = kernels.map(|kernel| variant(kernel, FAULTS));
    bench
        .run(&format!(
            "name = \"planted\"\nmode = \"exact\"\nseeds = 5\n[profile]\naccesses = true\n\
         [machine]\ncpus = 2\nmemory = \"512M\"\nnodes = 2\n{}{WORKLOAD}",
            variants.concat()
        ))
        .expect(0);
    let compared = bench.json(&["compare"]);
    let boots = bench.boots();
    for planted in &planted {
        println!("{}", bench.faultline(&["explain", BASE, planted.kernel]).out);
        let explained = bench.json(&["explain", BASE, planted.kernel]);
        is_explained(&explained["all"], planted);
    }
    // Luck of the total hides one more instruction per entry.
    for planted in [DELAY, WALK] {
        accesses_as_planted(&boots, &planted);
        assert_eq!(verdict(&compared, planted.kernel), "regression", "{}", planted.kernel);
    }
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn exact_mode_finds_planted_instructions_on_arm64() {
    if !can_boot() {
        return;
    }
    let bench = Bench::new();
    let variants = [BASE, TEN.kernel].map(|kernel| variant(kernel, FAULTS));
    bench
        .run(&format!(
            "name = \"planted\"\nmode = \"exact\"\nseeds = 5\n\
             [machine]\narch = \"arm64\"\ncpus = 2\nmemory = \"512M\"\nnodes = 2\n{}{WORKLOAD}",
            variants.concat()
        ))
        .expect(0);
    let explained = bench.json(&["explain", BASE, TEN.kernel]);
    is_explained(&explained["all"], &TEN);
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn planted_functions_differ_and_no_others() {
    let bench = Bench::new();
    let changed =
        [DELAY, ACCESS, WALK].map(|it| (it.kernel, vec![(it.function, "changed", it.count)]));
    let lines = ("harmless", vec![("planted_room", "new", 5001), ("planted_line", "new", 4)]);
    for (kernel, expected) in changed.into_iter().chain([lines, ("moved", vec![])]) {
        let images = [BASE, kernel].map(|kernel| image(kernel).display().to_string());
        let found = bench.json(&["diff", &images[0], &images[1]]);
        let found = found["functions"].as_array().unwrap().iter();
        let found = found.map(|it| {
            assert_eq!(it["removed"], 0, "{kernel}: {it}");
            let added = it["added"].as_u64().unwrap() as usize;
            (it["name"].as_str().unwrap(), it["change"].as_str().unwrap(), added)
        });
        assert_eq!(found.collect::<Vec<_>>(), expected, "{kernel}");
    }
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn a_series_is_walked_patch_by_patch() {
    let planted = [DELAY, ACCESS, WALK];
    let files = planted.each_ref().map(|it| quoted(&patch(it.kernel)));
    let bench = Bench::new();
    bench
        .run(&format!(
            "name = \"series\"\nmode = \"exact\"\nseeds = 5\n\
             [machine]\ncpus = 2\nmemory = \"512M\"\nnodes = 2\n\
             [[variant]]\nname = \"6.1\"\nkernel = \"{SOURCE}\"\neach = true\n\
             patches = [{}]\n{FAULTS}{WORKLOAD}",
            files.join(", ")
        ))
        .expect(0);
    let steps = ["6.1", "+1", "+1..2", "+1..3"];
    for (step, planted) in steps.windows(2).zip(&planted) {
        let explained = bench.json(&["explain", step[0], step[1]]);
        is_explained(&explained["all"], planted);
    }
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn kernels_that_only_moved_are_the_same() {
    let bench = Bench::new();
    let kernels = [BASE, "harmless", "moved"];
    let variants = kernels.map(|kernel| variant(kernel, ""));
    bench
        .run(&format!(
            "name = \"moved\"\nmode = \"exact\"\nseeds = 5\n\
         [machine]\ncpus = 2\nmemory = \"512M\"\nnodes = 2\n{}{WORKLOAD}",
            variants.concat()
        ))
        .expect(0);
    let compared = bench.json(&["compare", "--margin", "0"]);
    for kernel in &kernels[1..] {
        let verdict = verdict(&compared, kernel);
        assert!(["same", "undecided"].contains(&verdict), "{kernel}: {verdict}");
    }
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn planted_kernels_balance() {
    let bench = Bench::new();
    let rest = format!(
        "accel = \"tcg\"\n[[variant]]\nkernel = \"{SOURCE}\"\n[[workload]]\nname = \"autonuma\"\n\
         parameters = {{ programs = \"NUMA01\", scale = 0.3 }}\n"
    );
    bench.run(&experiment("planted", &rest)).expect(0);
    let boots = bench.boots();
    assert_eq!((boots[0].facts.cpus, boots[0].facts.nodes), (4, 2));
    for counter in ["numa_pte_updates", "numa_hint_faults", "numa_pages_migrated"] {
        assert!(growth(&boots[0], counter) > 0, "{counter}");
    }
}

/// The verdict on the kernel's instructions in the phase of the faults.
fn verdict<'a>(compared: &'a Value, kernel: &str) -> &'a str {
    let mut names = compared["variants"].as_array().unwrap().iter();
    let column = names.position(|name| name == kernel).unwrap();
    let tables = compared["tables"].as_array().unwrap().iter();
    let mut rows = tables.flat_map(|table| table["rows"].as_array().unwrap());
    // If luck hides the change of the total, the verdict is on the row of equal entries.
    let is_judged = |row: &&Value| {
        let metric = row["metric"].as_str().unwrap();
        metric.starts_with("instructions-kernel-NUMA01") && !row["verdicts"][column].is_null()
    };
    rows.find(is_judged).unwrap()["verdicts"][column].as_str().unwrap()
}

/// Checks that the patched function is the first by instructions per entry, with the planted number.
fn is_explained(section: &Value, planted: &Planted) {
    let first = section["per_entry"][0].as_u64().unwrap() as usize;
    let first = &section["contributions"][first];
    assert_eq!(first["name"], planted.function, "{}: {first:#}", planted.kernel);
    assert_eq!(first["code"], "differs", "{}: {first:#}", planted.kernel);
    let change = first["calls"]["per_entry"]["change"].as_f64().unwrap();
    let error = (change - planted.count as f64).abs();
    assert!(error <= planted.error, "{}: {change} more an entry", planted.kernel);
    assert_eq!(section["exact_change"], section["exact_sum_of_changes"]);
}

/// Checks that the kernel's loads rise by those planted times the entries, if luck does not hide that, and that its
/// stores do not rise.
fn accesses_as_planted(boots: &[Boot], planted: &Planted) {
    let of = |kernel: &str, figure: &dyn Fn(&Boot) -> u64| {
        let boots = boots.iter().filter(|boot| boot.variant == kernel);
        Seeds(boots.map(|boot| figure(boot) as f64).collect())
    };
    let rise = |figure: &dyn Fn(&Boot) -> u64| {
        let [base, new] = [BASE, planted.kernel].map(|kernel| of(kernel, figure));
        (new.mean() - base.mean(), base.range().max(new.range()))
    };
    let entries = of(planted.kernel, &|boot| entries(boot, planted.function)).mean();
    let expected = planted.loads as f64 * entries;
    let (loads, luck) = rise(&|boot| accesses(boot).0);
    println!("{}: {loads:+} loads, {expected} planted, floor {luck}", planted.kernel);
    assert!((loads - expected).abs() <= 2.0 * luck, "{}: {loads:+} loads", planted.kernel);
    let (stores, luck) = rise(&|boot| accesses(boot).1);
    assert!(stores.abs() <= 2.0 * luck, "{}: {stores:+} stores", planted.kernel);
}

/// One figure of each seed.
struct Seeds(Vec<f64>);

impl Seeds {
    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    fn range(&self) -> f64 {
        let highest = self.0.iter().copied().fold(f64::MIN, f64::max);
        highest - self.0.iter().copied().fold(f64::MAX, f64::min)
    }
}

fn entries(boot: &Boot, function: &str) -> u64 {
    let is_it =
        |place: &Place| matches!(place, Place::Function { name, .. } if **name == *function);
    boot.profiles.iter().map(|profile| profile.costs.sum(ENTRIES, is_it) as u64).sum()
}

/// The kernel's loads and stores.
fn accesses(boot: &Boot) -> (u64, u64) {
    let is_kernel = |place: &Place| matches!(place, Place::Memory(Privilege::Kernel, _));
    let of = |cost| boot.profiles.iter().map(|it| it.costs.sum(cost, is_kernel) as u64).sum();
    (of(LOADS), of(STORES))
}

/// The instructions of each function of a kernel, as `objdump` prints them, without addresses.
pub fn functions(vmlinux: &Path) -> BTreeMap<String, Vec<String>> {
    let said = Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(vmlinux).output();
    let said = String::from_utf8(said.unwrap().stdout).unwrap();
    let mut functions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut of = None;
    for line in said.lines() {
        if let Some((_, name)) = line.split_once(" <").filter(|_| line.ends_with(">:")) {
            of = Some(functions.entry(name.trim_end_matches(">:").into()).or_default());
        } else if let (Some((_, text)), Some(of)) = (line.split_once(":\t"), &mut of) {
            of.push(without_addresses(text));
        }
    }
    for instructions in functions.values_mut() {
        // Padding up to the next function belongs to no function.
        let fills = |it: &String| it.contains("nop") || it == "int3" || it == "xchg %ax,%ax";
        while instructions.last().is_some_and(fills) {
            instructions.pop();
        }
    }
    functions
}

/// An instruction without what changes if code before it grows: long numbers, which are addresses or distances to
/// them.
fn without_addresses(text: &str) -> String {
    let is_digit = |c: char| c.is_ascii_hexdigit();
    let parts = text.split_inclusive(|c| !is_digit(c));
    let parts = parts.map(|part| match part.find(|c| !is_digit(c)).unwrap_or(part.len()) {
        digits @ 5.. => &part[digits..],
        _ => part,
    });
    parts.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Checks that two kernels have the same instructions, except for those planted in one function.
fn differs_by_what_was_planted(
    base: &BTreeMap<String, Vec<String>>,
    new: &BTreeMap<String, Vec<String>>,
    planted: &Planted,
) {
    assert!(base.keys().eq(new.keys()), "{}", planted.kernel);
    let differ = base.keys().filter(|name| base[*name] != new[*name]);
    assert_eq!(differ.collect::<Vec<_>>(), [planted.function], "{}", planted.kernel);
    let [mut base, new] = [base, new].map(|kernel| places_cut(&kernel[planted.function]));
    let rest = new.iter().filter(|it| *it != planted.instruction);
    let mut rest: Vec<String> = rest.cloned().collect();
    assert_eq!(new.len() - rest.len(), planted.count, "{}", planted.kernel);
    // The compiler may put them in another order.
    base.sort();
    rest.sort();
    assert_eq!(base, rest, "{}", planted.kernel);
}

/// Instructions without the targets of jumps within the function.
fn places_cut(instructions: &[String]) -> Vec<String> {
    let cut = |it: &String| it.split_once('+').map_or(&**it, |(before, _)| before).to_owned();
    instructions.iter().map(cut).collect()
}
