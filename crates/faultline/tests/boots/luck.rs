//! Checks that variants of one kernel which differ in nothing that matters get no verdict in exact mode.

use serde_json::Value;

use crate::common::Bench;

/// The name of a variant, and how it differs from the others.
type Harmless = (&'static str, &'static str);

const PLAIN: Harmless = ("plain", "");
const UNKNOWN: Harmless =
    ("unknown", "cmdline = \"x=1 foo.x=1\"\nsysctl = { \"vm.swappiness\" = \"60\" }");
const MODULE: Harmless = ("module", "modules = [\"loop\"]");
const LONG: Harmless = ("long", "cmdline = \"a_word_that_no_kernel_has_ever_known_so_far=1\"");

const TRUNCATE: &str = "[[machine.disk]]\nkind = \"pmem\"\nsize = \"128M\"\nfilesystem = \"ext4\"\n\
                        [[workload]]\nname = \"truncate\"\n\
                        parameters = { files = 8, rounds = 1, share = 15 }\n";
const AUTONUMA: &str = "[[workload]]\nname = \"autonuma\"\n\
                        parameters = { programs = \"NUMA01\", scale = 0.05 }\n";

/// Boots the variants with five seeds each, and compares each with the first. There must be neither a regression nor
/// an improvement, and almost nothing in the lists.
fn are_the_same(name: &str, kernel: &str, machine: &str, workload: &str, variants: &[Harmless]) {
    let bench = Bench::new();
    let variant = |(name, more): &Harmless| {
        format!("[[variant]]\nname = \"{name}\"\nkernel = \"{kernel}\"\n{more}\n")
    };
    let variants_text: String = variants.iter().map(variant).collect();
    let text = format!(
        "name = \"{name}\"\nmode = \"exact\"\n[machine]\n{machine}\n{variants_text}{workload}"
    );
    bench.run(&text).expect(0);
    let compared = bench.json(&["compare", "--margin", "0"]);
    let tables = compared["tables"].as_array().unwrap().iter();
    let rows: Vec<&Value> = tables.flat_map(|it| it["rows"].as_array().unwrap()).collect();
    let verdicts = rows.iter().flat_map(|row| row["verdicts"].as_array().unwrap());
    let verdicts: Vec<&str> = verdicts.filter_map(Value::as_str).collect();
    assert_eq!(verdicts.len(), variants.len() - 1, "{name}");
    assert!(verdicts.iter().all(|it| ["same", "undecided"].contains(it)), "{name}: {verdicts:?}");
    // Boots with different seeds differ nevertheless.
    let luck = rows.iter().find(|row| row["statistic"] == "Luck").unwrap();
    assert!(luck["values"][1].as_f64().unwrap() > 0.0, "{name}");
    for (other, _) in &variants[1..] {
        let explained = bench.json(&["explain", variants[0].0, other]);
        for list in ["per_entry", "contributions", "counters"] {
            let [rows, beyond] = ["rows", "beyond_luck"]
                .map(|key| explained["all"]["compared"][list][key].as_u64().unwrap());
            println!("{name}, {other}: {beyond} of {rows} {list} beyond luck");
            assert!(100 * beyond <= 2 * rows, "{name}, {other}: {beyond} of {rows} {list}");
        }
    }
}

#[test]
fn irrelevant_words_and_settings_get_no_verdict() {
    let machine = "cpus = 1\nmemory = \"256M\"\nnodes = 1";
    are_the_same("harmless", "6.1", machine, TRUNCATE, &[PLAIN, UNKNOWN]);
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn other_machines_and_kernels_give_no_verdict_either() {
    let two = "cpus = 2\nmemory = \"512M\"\nnodes = 2";
    are_the_same("two-nodes", "6.1", two, AUTONUMA, &[PLAIN, UNKNOWN, MODULE, LONG]);
    let four = "cpus = 4\nmemory = \"512M\"\nnodes = 1";
    are_the_same("four-cpus", "newest", four, TRUNCATE, &[PLAIN, UNKNOWN, LONG]);
}
