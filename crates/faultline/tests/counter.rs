//! Tests of the command line of `faultline explain --counter`.

use std::process::{Command, Output};

fn explain(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_faultline"));
    // The store does not exist, and is not needed.
    command.args(["--store", "/nonexistent/store.db", "explain"]).args(arguments);
    command.output().unwrap()
}

#[test]
fn counters_and_rows_are_explained_without_a_store() {
    for (name, expected) in [
        ("pgpgin", "KiB, in spite of its name"),
        ("allocstall_normal", "before   allocstall"),
        ("Kswapd efficiency", "pgsteal_kswapd[_ZONE]"),
        // These are rows as mails name them.
        ("Ops Sector Reads", "KiB paged in: KiB"),
        ("NUMA base PTE updates", "NUMA page range updates: PTEs"),
    ] {
        let output = explain(&["--counter", name]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{name}");
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn unknown_names_get_suggestions() {
    let output = explain(&["--counter", "pgscan_kswpad"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("`pgscan_kswpad`; did you mean pgscan_kswapd"), "{error}");
    assert!(output.stdout.is_empty());
    let error = String::from_utf8(explain(&["--counter", "Sector Read"]).stderr).unwrap();
    assert!(error.contains("did you mean Sector Reads"), "{error}");
}

#[test]
fn a_counter_and_variants_exclude_each_other() {
    assert_eq!(explain(&["--counter", "pgfault", "6.1", "6.12"]).status.code(), Some(2));
    assert_eq!(explain(&["6.1"]).status.code(), Some(2));
}
