//! Tests of the command line of `faultline table`: files, standard input, exit codes.

use std::io::Write;
use std::process::{Command, Output, Stdio};

const THREAD: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../import/fixtures/patchwork-thread.txt");

fn table(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_faultline"))
        .arg("table")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The program may end before it has read everything; some tests want that.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn printed(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

#[test]
fn standard_input_is_read_if_no_file_is_named() {
    let text = std::fs::read(THREAD).unwrap();
    let from_input = table(&["--format", "json"], &text);
    let from_file = table(&["--format", "json", THREAD], b"");
    assert!(from_input.status.success());
    let named = serde_json::to_string(THREAD).unwrap();
    assert_eq!(printed(&from_file).replace(&named, "\"-\""), printed(&from_input));
}

#[test]
fn tables_without_the_baseline_stay_as_they_are_and_say_so() {
    let output = table(&["--baseline", "5.3.0-vanilla", THREAD], b"");
    assert!(output.status.success());
    let text = printed(&output);
    assert!(text.contains("computed from the printed, rounded values"));
    assert!(text.contains("No column of that name: percentages are as printed."));
}

#[test]
fn a_file_or_a_baseline_that_is_not_there_is_wrong_usage() {
    for arguments in [&["/nowhere/mail.txt"][..], &["--baseline", "7.1", THREAD]] {
        let output = table(arguments, b"");
        assert_eq!(output.status.code(), Some(2));
        assert!(!output.stderr.is_empty() && output.stdout.is_empty());
    }
}

#[test]
fn an_input_without_an_end_is_wrong_usage() {
    let output = table(&["/dev/zero"], b"");
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with("faultline: /dev/zero: more than 256 MiB"), "{error}");
}

#[test]
fn findings_and_texts_without_tables_are_results() {
    let wrong = table(&["--check"], b"Amean x 10.00 (0.00%) 8.00 (21.00%)\n");
    assert!(wrong.status.success());
    assert!(printed(&wrong).contains("21.00% is printed"));
    let none = table(&[], b"no table here\n");
    assert!(none.status.success());
    assert_eq!(printed(&none), "No table found.\n");
}
