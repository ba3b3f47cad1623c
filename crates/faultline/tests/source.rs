//! `faultline run` and `kernel add` on a git repository whose kernels cannot be built.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A Makefile whose configuration has none of the requested options.
const MAKEFILE: &str = "VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 0\nEXTRAVERSION =\nallnoconfig:\n\ttouch $(O)/.config\n";

struct Setup {
    directory: TempDir,
}

impl Setup {
    fn new() -> Self {
        let setup = Self { directory: TempDir::new().unwrap() };
        fs::create_dir(setup.tree()).unwrap();
        fs::write(setup.tree().join("Makefile"), MAKEFILE).unwrap();
        for words in ["init -q -b main", "add -A", "commit -q -m first", "tag v1"] {
            let git = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"];
            let mut command = Command::new("git");
            command.args(git).args(words.split(' ')).current_dir(setup.tree());
            assert!(command.status().unwrap().success());
        }
        setup
    }

    fn tree(&self) -> PathBuf {
        self.directory.path().join("linux")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_faultline"));
        command.arg("--store").arg(self.directory.path().join("store.db")).args(arguments);
        command.env("XDG_CACHE_HOME", self.directory.path().join("cache"));
        command
    }

    /// The lock of builds, held by this process.
    fn build_lock(&self) -> File {
        let builds = self.directory.path().join("cache/faultline/build");
        fs::create_dir_all(&builds).unwrap();
        let file = File::create(builds.join("lock")).unwrap();
        file.lock().unwrap();
        file
    }

    /// The exit code and all output.
    fn faultline(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.command(arguments).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(text).unwrap())
    }
}

#[test]
fn boots_of_a_kernel_that_cannot_be_built_fail_with_the_reason() {
    let setup = Setup::new();
    let tree = setup.tree().display().to_string();
    let run = ["run", "--tree", &tree, "--kernels", "v1,worktree", "--workload", "mprotect"];
    let exact =
        ["--mode", "exact", "--cpus", "1", "--nodes", "1", "--memory", "512M", "--seeds", "1"];
    let (code, said) = setup.faultline(&[&run[..], &exact].concat());
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("v1 cannot be configured as requested: "), "{said}");
    assert!(said.contains("2 boots done, 2 of them failed"), "{said}");
    let (_, shown) = setup.faultline(&["show", "b1"]);
    assert!(shown.contains("does not allow CONFIG_64BIT=y (it has n)"), "{shown}");
    let (code, said) = setup.faultline(&[&run[..], &exact].concat());
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("2 boots failed before: --retry-failed repeats them"), "{said}");
}

#[test]
fn sources_are_refused_where_a_built_kernel_is_needed() {
    let setup = Setup::new();
    let tree = setup.tree().display().to_string();
    for arguments in [&["boot", "git:v1"][..], &["diff", "git:v1", "git:v1"]] {
        let (code, said) = setup.faultline(arguments);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("`faultline kernel add` builds; use the name"), "{said}");
    }
    let (code, said) = setup.faultline(&["kernel", "add", "v1", "--tree", &tree]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("cannot be configured as requested"), "{said}");
    let (code, said) = setup.faultline(&["kernel", "add", "6.1", "--patch", "x"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("only for kernels") || said.contains("built from source"), "{said}");
}

#[test]
fn a_dry_run_looks_into_sources() {
    let setup = Setup::new();
    let tree = setup.tree().display().to_string();
    let plan = |kernels: &str, patch: &str| {
        let patch = setup.directory.path().join(patch).display().to_string();
        let run = ["run", "--dry-run", "--tree", &tree, "--kernels", kernels, "--patch", &patch];
        setup.faultline(&[&run[..], &["--workload", "mprotect", "--mode", "exact"]].concat())
    };
    let diff = |from: &str| {
        let rest = " PATCHLEVEL = 1\n SUBLEVEL = 0\n EXTRAVERSION =\n";
        format!("--- a/Makefile\n+++ b/Makefile\n@@ -1,4 +1,4 @@\n-{from}\n+VERSION = 7\n{rest}")
    };
    let write = |name: &str, from: &str| {
        fs::write(setup.directory.path().join(name), diff(from)).unwrap();
    };
    write("good.patch", "VERSION = 6");
    write("bad.patch", "VERSION = 5");
    let (code, said) = plan("v1", "good.patch");
    assert!(code == 0 && said.starts_with("mprotect"), "{said}");
    let (code, said) = plan("v1", "bad.patch");
    let first = said.lines().next().unwrap();
    assert!(code == 0 && first.contains("bad.patch") && first.contains("does not apply"), "{said}");
    let (code, said) = plan("v7", "good.patch");
    assert!(code == 2 && said.contains("`v7`") && !said.contains("exact mode:"), "{said}");
    let (code, said) = plan("v1", "none.patch");
    assert!(code == 2 && said.contains("none.patch") && !said.contains("exact mode:"), "{said}");
    // The plan builds nothing.
    assert!(!setup.directory.path().join("cache/faultline/build/linux").exists());
}

#[test]
fn patches_come_from_standard_input() {
    let setup = Setup::new();
    let tree = setup.tree().display().to_string();
    let plan = |arguments: &[&str], input: &str| {
        let run = ["run", "--dry-run", "--tree", &tree, "--kernels", "v1", "--patch", "-"];
        let mut command =
            setup.command(&[&run[..], &["--workload", "mprotect"], arguments].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut run = command.spawn().unwrap();
        run.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = run.wait_with_output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code().unwrap(), text)
    };
    let mail = |subject: &str, from: u32| {
        let rest = " PATCHLEVEL = 1\n SUBLEVEL = 0\n EXTRAVERSION =\n";
        format!(
            "From git@z Thu Jan  1 00:00:00 1970\nFrom: A B <a@b>\nSubject: {subject}\n\ntext\n---\n\
             --- a/Makefile\n+++ b/Makefile\n@@ -1,4 +1,4 @@\n-VERSION = {from}\n+VERSION = {}\n{rest}\n",
            from + 1
        )
    };
    let series =
        mail("[PATCH v3 2/2] mm: second", 7) + &mail("[PATCH v3 1/2] mm: First, of two", 6);
    let (code, said) = plan(&[], &series);
    assert!(code == 0 && said.contains("v1+mm-first-of-two"), "{said}");
    assert!(said.contains("patch standard") && !said.contains("does not apply"), "{said}");
    let (code, said) = plan(&["--each"], &series);
    assert!(code == 0 && said.contains("  +1..2  kernel git:v1"), "{said}");
    let (code, said) = plan(&[], &mail("[PATCH] mm: other", 8));
    assert!(code == 0 && said.contains("\"[PATCH] mm: other\" does not apply"), "{said}");
    let (code, said) = plan(&[], "");
    assert!(code == 2 && said.contains("standard input: it has no patch"), "{said}");
}

#[test]
fn further_seeds_of_a_kernel_that_failed_are_left_out() {
    let setup = Setup::new();
    let tree = setup.tree().display().to_string();
    let run = |options: &[&str]| {
        let run = ["run", "--tree", &tree, "--kernels", "v1,worktree", "--workload", "mprotect"];
        let exact = ["--mode", "exact", "--cpus", "1", "--nodes", "1", "--memory", "512M"];
        let seeds = ["--seeds", "3", "--jobs", "1"];
        setup.faultline(&[&run[..], &exact, &seeds, options].concat())
    };
    let left_out = |boots: &str| {
        format!("; {boots} left out after a failure (v1, worktree: failed: cannot be configured")
    };
    let (code, said) = run(&[]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("v1: 2 further boots left out, because seed 0 failed\n"), "{said}");
    let summary = said.lines().find(|line| line.starts_with("experiment ")).unwrap();
    assert!(summary.contains("2 boots done, 2 of them failed"), "{summary}");
    assert!(summary.contains(&left_out("4 boots")), "{summary}");
    assert_eq!(summary.matches("cannot be configured").count(), 1, "{summary}");
    assert!(summary.contains("): --keep-going makes them; see "), "{summary}");
    // The plan names what is left out, and so does a run that makes no boot.
    let (code, plan) = run(&["--dry-run"]);
    assert!(code == 0 && plan.contains("\n4 boots left out after a failure (v1, "), "{plan}");
    let (code, said) = run(&[]);
    assert_eq!(code, 3, "{said}");
    let before = "no boots done; 2 boots failed before: --retry-failed repeats them";
    assert!(said.contains(&format!("{before}{}", left_out("4 boots"))), "{said}");
    // If the repeated boot fails too, the kernel is given up again.
    let (_, said) = run(&["--retry-failed"]);
    assert!(said.contains("2 boots done, 2 of them failed"), "{said}");
    assert!(said.contains(&left_out("4 boots")), "{said}");
    let (code, said) = run(&["--keep-going"]);
    assert_eq!(code, 3, "{said}");
    assert!(
        said.contains("4 boots done, 4 of them failed") && !said.contains("left out"),
        "{said}"
    );
    let (code, said) = run(&[]);
    assert!(code == 3 && said.contains("all boots were already done; 6 boots failed"), "{said}");
}

#[test]
fn a_dry_run_does_not_wait_for_a_build() {
    let setup = Setup::new();
    let tree = setup.tree().display().to_string();
    let _lock = setup.build_lock();
    let run = ["run", "--dry-run", "--tree", &tree, "--kernels", "v1", "--workload", "mprotect"];
    let (code, said) = setup.faultline(&run);
    assert_eq!(code, 0, "{said}");
    let first = said.lines().next().unwrap();
    let begin = "whether the sources can be read and patched is not known yet: ";
    assert!(
        first.starts_with(begin) && first.contains("/build/lock has been locked for "),
        "{said}"
    );
    assert!(first.contains(&format!(" by process {} (`", std::process::id())), "{said}");
    assert!(said.contains("\nmprotect-v1, measured mode: "), "{said}");
}

/// The files of this directory are no kernel, so it could not be added.
#[test]
fn a_dry_run_adds_no_kernel() {
    let setup = Setup::new();
    let built = setup.directory.path().join("built");
    fs::create_dir_all(built.join("include/config")).unwrap();
    for file in ["vmlinux", ".config", "modules.builtin", "modules.builtin.modinfo"] {
        fs::write(built.join(file), "").unwrap();
    }
    fs::write(built.join("include/config/kernel.release"), "6.1.0\n").unwrap();
    fs::write(built.join("modules.order"), "").unwrap();
    let kernel = format!("dir:{}", built.display());
    let run = ["run", "--dry-run", "--kernels", &kernel, "--workload", "mprotect"];
    let events = [&run[..], &["--events", "tlb:tlb_flush"]].concat();
    for run in [&run[..], &events] {
        let (code, said) = setup.faultline(run);
        assert!(code == 0 && said.contains("mprotect-built, measured mode: "), "{said}");
    }
    assert_eq!(setup.faultline(&["kernel", "add", &kernel]).0, 2);
}

#[test]
fn a_build_that_waits_says_for_whom() {
    let setup = Setup::new();
    let tree = setup.tree().display().to_string();
    let lock = setup.build_lock();
    let mut command = setup.command(&["kernel", "add", "v1", "--tree", &tree]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let process = format!(" by process {} (`", std::process::id());
    assert!(
        first.starts_with("Waiting to build a kernel: ") && first.contains(&process),
        "{first}"
    );
    drop(lock);
    let rest: String = lines.map(Result::unwrap).collect();
    assert!(rest.contains("cannot be configured as requested"), "{rest}");
    assert_eq!(child.wait().unwrap().code(), Some(2));
}
