//! The programs that `faultline workload new` writes run unchanged.

use std::process::Command;

use crate::common::{Bench, Said};

/// What a check of a new workload prints.
fn checked(bench: &Bench, language: &str) -> String {
    let command = |arguments: &[&str]| {
        let mut command = bench.command(arguments);
        command.current_dir(bench.directory.path());
        bench.said(command)
    };
    command(&["workload", "new", "mine", "--language", language]).expect(0);
    if language == "c" {
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-static", "-o", "workloads/mine", "workloads/mine.c"]);
        let status = compiler.current_dir(bench.directory.path()).status().unwrap();
        assert!(status.success());
    }
    let machine = ["--mode", "exact", "--cpus", "1", "--nodes", "1", "--memory", "512M"];
    let Said { out, .. } =
        command(&[&["workload", "check", "mine"], &machine[..]].concat()).expect(0);
    out
}

#[test]
fn the_c_program_is_checked() {
    let bench = Bench::new();
    let out = checked(&bench, "c");
    assert!(out.contains("phases: map, touch\n"), "{out}");
    assert!(out.lines().any(|line| line.starts_with("Elapsed") && line.ends_with(" s")), "{out}");
    assert!(!bench.store_path().exists());
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn the_scripts_are_checked() {
    for (language, phases) in [("shell", "phases: fork\n"), ("python", "phases: map, touch\n")] {
        let out = checked(&Bench::new(), language);
        assert!(out.contains(phases) && out.contains("\nElapsed"), "{language}: {out}");
    }
}
