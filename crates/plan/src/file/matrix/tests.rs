//! Tests of matrices of variants.

use std::fs;
use std::path::Path;

use model::{Experiment, PatchStep, Setting, Variant};

use super::super::tests::rendered;
use super::super::{parse, write};
use crate::request::Request;

fn file(matrix: &str) -> String {
    format!(
        "name = \"x\"\nboots = 3\ntree = \"/linux\"\nmachine = {{ cpus = 2, memory = \"1G\" }}\n\
         workload = [{{ name = \"mprotect\" }}]\n[matrix]\n{matrix}\n"
    )
}

fn read(matrix: &str) -> Request {
    let read = parse(Path::new("x.toml"), &file(matrix), None);
    read.unwrap_or_else(|error| panic!("{error:?}"))
}

fn names(matrix: &str) -> Vec<String> {
    read(matrix).experiment.variants.into_iter().map(|variant| variant.name).collect()
}

#[test]
fn kernels_and_settings_are_crossed() {
    let Request { experiment, reading, .. } = read(
        "kernel = [\"debian:6.1\", \"6.12\"]\nthp = [\"always\", \"never\"]\nmglru = [\"off\"]\n\
         numa_balancing = [\"tiering\"]\npreempt = [\"full\"]\ncmdline = [\"nokaslr\"]",
    );
    let names: Vec<_> = experiment.variants.iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["6.1 thp=always", "6.1 thp=never", "6.12 thp=always", "6.12 thp=never"]);
    let last = &experiment.variants[3];
    assert_eq!((&*last.kernel.name, &*last.cmdline), ("6.12", "preempt=full nokaslr"));
    let sysfs = |path: &str, value: &str| Setting::Sysfs { path: path.into(), value: value.into() };
    let settings = [
        Setting::Sysctl { name: "kernel.numa_balancing".into(), value: "2".into() },
        sysfs("/sys/kernel/mm/lru_gen/enabled", "n"),
        sysfs("/sys/kernel/mm/transparent_hugepage/enabled", "never"),
    ];
    assert_eq!(last.settings, settings);
    // Axes with one value are not axes.
    let axes = [("kernel".to_owned(), "6.12".to_owned()), ("thp".to_owned(), "never".to_owned())];
    assert_eq!(reading.variant(last).axes, axes);
}

#[test]
fn patches_are_crossed_with_settings() {
    let matrix = "kernel = [\"git:v6.12\"]\npatches = [\"\", \"a/fix.patch\", [\"one.patch\", \"two.mbox\"]]\n\
                  revert = [[], \"abc\"]\nsysctl = { \"vm.swappiness\" = [60, 200] }\n\
                  sysfs = { \"/sys/kernel/mm/ksm/run\" = [true] }";
    let Request { experiment, reading, builds } = read(matrix);
    assert_eq!(experiment.variants.len(), 12);
    let names: Vec<_> = experiment.variants.iter().map(|it| &*it.name).collect();
    assert_eq!(names[..3], ["vm.swappiness=60", "vm.swappiness=200", "+fix vm.swappiness=60"]);
    let last = &experiment.variants[11];
    assert_eq!(last.name, "+revert-abc+one+two vm.swappiness=200");
    let build = &builds[&last.name];
    assert_eq!(build.revert, ["abc"]);
    assert_eq!(build.patches, [Path::new("one.patch"), Path::new("two.mbox")]);
    let first = &builds[&experiment.variants[0].name];
    assert!(first.patches.is_empty() && first.revert.is_empty());
    let none = [("revert", "none"), ("patches", "none"), ("vm.swappiness", "60")];
    assert_eq!(
        reading.variant(&experiment.variants[0]).axes,
        none.map(|(a, b)| (a.to_owned(), b.to_owned()))
    );
}

#[test]
fn files_of_sysfs_have_short_names() {
    let of = |file: &str| {
        let matrix = format!("kernel = [\"6.1\"]\nsysfs = {{ \"{file}\" = [\"a\", \"b\"] }}");
        let Request { experiment, reading, .. } = read(&matrix);
        let first = &experiment.variants[0];
        (first.name.clone(), reading.variant(first).axes.clone())
    };
    let thp = "/sys/kernel/mm/transparent_hugepage/";
    for (file, name) in [
        (format!("{thp}enabled"), "transparent_hugepage"),
        (format!("{thp}hugepages-64kB/enabled"), "hugepages-64kB"),
        (format!("{thp}khugepaged/defrag"), "transparent_hugepage/khugepaged/defrag"),
        ("/sys/kernel/mm/ksm/run".into(), "ksm/run"),
        ("/sys/module/zswap/parameters/enabled".into(), "module/zswap/parameters/enabled"),
    ] {
        assert_eq!(of(&file), (format!("{name}=a"), vec![(name.into(), "a".into())]));
    }
}

/// Patches `1.patch` and `2.patch`, and a matrix that crosses their series.
fn series(more: &str) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let paths = ["1.patch", "2.patch"].map(|name| directory.path().join(name));
    for path in &paths {
        fs::write(path, "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n").unwrap();
    }
    let matrix = format!(
        "kernel = [\"git:v6.12\"]\npatches = {paths:?}\neach = true\n\
         thp = [\"always\", \"never\"]\n{more}"
    );
    (directory, matrix)
}

#[test]
fn the_steps_of_a_series_are_crossed_with_settings() {
    let (directory, matrix) = series("");
    let Request { experiment: Experiment { variants, .. }, reading, builds } = read(&matrix);
    let names: Vec<&str> = variants.iter().map(|it| &*it.name).collect();
    let expected = [
        "thp=always", "thp=never", "+1 thp=always", "+1 thp=never", "+1..2 thp=always",
        "+1..2 thp=never",
    ];
    assert_eq!(names, expected);
    let first = variants.iter().map(|it| builds[&it.name].first);
    assert_eq!(first.collect::<Vec<_>>(), [0, 0, 1, 1, 2, 2].map(Some));
    let paths = ["1.patch", "2.patch"].map(|name| directory.path().join(name));
    assert!(builds.values().all(|it| it.patches == paths));
    let own: Vec<_> = variants.iter().map(|it| reading.variant(it)).collect();
    let values = own.iter().map(|it| &*it.axes[0].1);
    assert_eq!(values.collect::<Vec<_>>(), ["none", "none", "1", "1", "1..2", "1..2"]);
    assert_eq!(own[5].axes[1], ("thp".to_owned(), "never".to_owned()));
    // Each step follows the one with the same setting.
    assert_eq!([&own[0].step, &own[1].step], [&None, &None]);
    let last = PatchStep { after: "+1 thp=never".into(), patch: "2.patch".into() };
    assert_eq!(own[5].step, Some(last));
}

#[test]
fn a_step_without_the_one_before_it_is_compared_with_none() {
    let (_directory, matrix) = series(
        "exclude = [{ patches = \"1\", thp = \"never\" }, { patches = \"+1..2\", thp = \"always\" }]",
    );
    let Request { experiment, reading, .. } = read(&matrix);
    let after = |it: &Variant| reading.variant(it).step.as_ref().map(|step| step.after.clone());
    let steps = experiment.variants.iter().map(|it| (it.name.clone(), after(it)));
    let expected = [
        ("thp=always", None),
        ("thp=never", None),
        ("+1 thp=always", Some("thp=always")),
        ("+1..2 thp=never", None),
    ];
    let expected = expected.map(|(name, after)| (name.to_owned(), after.map(str::to_owned)));
    assert_eq!(steps.collect::<Vec<_>>(), expected);
}

#[test]
fn combinations_are_taken_out() {
    let matrix = "kernel = [\"debian:6.1\", \"debian:6.12\"]\nthp = [\"always\", \"never\"]\n\
                  cmdline = [\"\", \"nokaslr\"]\n";
    let all = names(matrix);
    assert_eq!(all.len(), 8);
    let left = |exclude: &str| names(&format!("{matrix}exclude = [{exclude}]"));
    let own = left("{ kernel = \"6.1\", thp = \"never\" }");
    assert_eq!(own, [&all[..2], &all[4..]].concat());
    assert_eq!(
        left("{ kernel = \"debian:6.1\" }, { cmdline = \"\" }"),
        ["6.12 always/nokaslr", "6.12 never/nokaslr"]
    );
    assert_eq!(left("{ cmdline = \"none\" }").len(), 4);
}

#[test]
fn values_that_agree_or_are_taken_out_are_no_contradiction() {
    let left = |more: &str| {
        names(&format!(
            "kernel = [\"6.1\"]\npreempt = [\"none\", \"full\"]\ncmdline = [\"\", {more}"
        ))
    };
    let own =
        left("\"preempt=none\"]\nexclude = [{ preempt = \"full\", cmdline = \"preempt=none\" }]");
    assert_eq!(own, ["none/none", "none/preempt=none", "full/none"]);
    assert_eq!(left("\"console=tty0 console=ttyS0\"]").len(), 4);
}

#[test]
fn a_matrix_is_written_as_its_variants() {
    let request = read(
        "kernel = [\"6.1\", \"6.12\"]\nsysctl = { \"vm.swappiness\" = [60, 200] }\nthp = [\"never\", \"always\"]",
    );
    let text = write(&request.experiment, &request.reading).text;
    assert!(
        text.contains("axes = [\"kernel=6.12\", \"thp=always\", \"vm.swappiness=200\"]\n"),
        "{text}"
    );
    assert_eq!(parse(Path::new("x.toml"), &text, None).unwrap(), request);
}

#[test]
fn each_error_has_its_line_and_a_hint() {
    let cases = [
        "kernl = [\"6.1\"]",
        "thp = [\"never\"]",
        "kernel = []",
        "kernel = \"6.1\"",
        "kernel = [\"6.1\"]\nthp = []",
        "kernel = [\"6.1\"]\nthp = [\"nevr\"]",
        "kernel = [\"6.1\"]\nmglru = [true]",
        "kernel = [\"6.1\", \"debian:6.1\"]",
        "kernel = [\"git:a\"]\npatches = [\"a/fix.patch\", \"b/fix.patch\"]",
        "kernel = [\"git:a\"]\npatches = [1]",
        "kernel = [\"6.1\"]\npatches = [\"\", \"fix.patch\"]",
        "kernel = [\"git:a\"]\neach = true",
        "kernel = [\"git:a\"]\npatches = [\"\"]\neach = true",
        "kernel = [\"git:a\"]\npatches = [\"/no/fix.patch\"]\neach = true",
        "kernel = [\"6.1\"]\nsysctl = { \"vm.swappiness\" = 10 }",
        "kernel = [\"6.1\"]\nsysfs = { \"/proc/x\" = [1] }",
        "kernel = [\"6.1\"]\nthp = [\"never\"]\n\
         sysfs = { \"/sys/kernel/mm/transparent_hugepage/enabled\" = [\"always\"] }",
        "kernel = [\"6.1\", \"6.12\"]\nexclude = [{ kernl = \"6.1\" }]",
        "kernel = [\"6.1\", \"6.12\"]\nexclude = [{ thp = \"never\" }]",
        "kernel = [\"6.1\", \"6.12\"]\nexclude = [{ kernel = \"6.2\" }]",
        "kernel = [\"6.1\", \"6.12\"]\nexclude = [{}]",
        "kernel = [\"6.1\", \"6.12\"]\nexclude = [{ kernel = \"6.1\" }, { kernel = \"6.1\" }]",
        "kernel = [\"6.1\", \"6.12\"]\nexclude = [{ kernel = \"6.1\" }, { kernel = \"6.12\" }]",
        "kernel = [\"6.1\"]\n[[variant]]\nkernel = \"6.1\"",
        "kernel = [\"6.1\"]\npreempt = [\"none\", \"full\"]\ncmdline = [\"\", \"quiet preempt=none\"]",
        "kernel = [\"6.1\"]\nsysctl = { \"vm.swappiness\" = [60] }\ncmdline = [\"sysctl.vm.swappiness=1\"]",
        "kernel = [\"6.1\"]\nthp = [\"never\"]\ncmdline = [\"transparent-hugepage=always\"]",
        // Two different paths to one name.
        "kernel = [\"6.1\", \"6.1 thp=never\"]\nthp = [\"never\", \"always\"]\ncmdline = [\"\", \"thp=never\", \"x y\"]",
    ];
    let many =
        format!("kernel = [\"6.1\"]\nsysctl = {{ \"a.b\" = {0:?}, \"a.c\" = {0:?} }}", [1; 0]);
    let list: Vec<u32> = (0..40).collect();
    let many = many.replace("[]", &format!("{list:?}"));
    let complaints =
        cases.iter().map(|it| (*it).to_owned()).chain([many]).map(|matrix| {
            match parse(Path::new("x.toml"), &file(&matrix), None) {
                Err(error) => rendered(&error),
                Ok(_) => format!("no error: {matrix}"),
            }
        });
    insta::assert_snapshot!(complaints.collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_value_on_an_axis_has_the_name_of_the_axis() {
    for axes in ["thp", "", "=never", "thp=", "thp= never", "a\\nb=x"] {
        let text = file("").replace("[matrix]", "[[variant]]")
            + &format!("kernel = \"6.1\"\naxes = [\"{axes}\"]");
        let error = parse(Path::new("x.toml"), &text, None).unwrap_err();
        assert!(error.to_string().contains("is not a value on an axis"), "{error}");
    }
}
