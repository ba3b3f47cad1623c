//! Searches commits with real boots. A small repository replaces that of a kernel: its Makefile copies a packaged
//! kernel, so a build takes no time.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use kernels::Cache;
use serde_json::Value;
use store::Detail;

use crate::common::{Bench, Said};

/// A repository whose kernel is named by `mm/a.c`, or by `mm/slow` if CONFIG_SLOW is set. CONFIG_SLOW depends on
/// CONFIG_DEBUG. The texts of `mm/level.c` and `mm/number.c` replace the builder's address in `/proc/version`. If
/// functions are aligned, `mm/aligned.c` is used instead of `mm/level.c`.
struct Tree(PathBuf);

impl Tree {
    fn new(directory: &Path) -> Self {
        let tree = Self(directory.join("linux"));
        fs::create_dir_all(tree.0.join("mm")).unwrap();
        tree.git(&["init", "-q", "-b", "main", "."]);
        let makefile = "VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 0\n\
            allnoconfig:\n\tcp $(KCONFIG_ALLCONFIG) $(O)/.config\n\
            olddefconfig:\n\tgrep -q DEBUG=y $(O)/.config || sed -i /SLOW=y/d $(O)/.config\n\
            vmlinux:\n\t@if grep -q broken mm/a.c; then echo '../mm/a.c:1:2: error: broken'; exit 1; fi\n\
            \t@mkdir -p $(O)/include/config $(O)/mm; echo 6.1.0 > $(O)/include/config/kernel.release\n\
             \t@level=mm/level.c; ! grep -q ALIGN_64B=y $(O)/.config || level=mm/aligned.c; \
             image=$$(head -1 mm/a.c); ! grep -q SLOW=y $(O)/.config || image=$$(cat mm/slow); \
             said=\"$$(cat $$level mm/number.c 2>/dev/null)\"; \
             sed \"s/debian-kernel@lists.debian.org/$${said:-&}/\" $$image > $(O)/vmlinux\n\
             \t@touch $(O)/vmlinux.o $(O)/modules.builtin $(O)/modules.builtin.modinfo\n\
             \t@echo 'source_mm/a.o := ../mm/a.c' > $(O)/mm/.a.o.cmd\n\
             \t@echo 'deps_mm/a.o := ../mm/level.c ../mm/number.c' >> $(O)/mm/.a.o.cmd\n";
        fs::write(tree.0.join("Makefile"), makefile).unwrap();
        tree
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=A U Thor", "-c", "user.email=author@example.com"]);
        let output =
            git.args(["-c", "commit.gpgsign=false"]).args(arguments).current_dir(&self.0).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// A commit that writes a file.
    fn commit(&self, subject: &str, path: &str, text: &str) -> String {
        fs::write(self.0.join(path), text).unwrap();
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", subject]);
        self.git(&["rev-parse", "HEAD"])
    }
}

/// The image of a packaged kernel, fetched if necessary.
fn image(kernel: &str) -> String {
    let kernel = Cache::open().unwrap().obtain(kernel, &|_| ()).unwrap();
    kernel.vmlinux.unwrap().display().to_string()
}

fn search(bench: &Bench, tree: &Tree, more: &[&str]) -> Said {
    bench.said(searching(bench, tree, more))
}

fn searching(bench: &Bench, tree: &Tree, more: &[&str]) -> Command {
    let tree = tree.0.display().to_string();
    let range =
        ["culprit", "--tree", &tree, "--good", "v1", "--bad", "main", "--workload", "mprotect"];
    let machine = ["--cpus", "1", "--nodes", "1", "--memory", "512M", "--boots", "2"];
    let mut command = bench.command(&[&range[..], &machine, more].concat());
    command.env("XDG_CACHE_HOME", bench.path("cache"));
    command
}

/// A range of 8 commits, and the hash of the one that changes everything.
fn changed_once(bench: &Bench) -> (Tree, String) {
    let [old, new] = ["debian:6.1", "debian:6.12"].map(image);
    let tree = Tree::new(bench.directory.path());
    tree.commit("first", "mm/a.c", &old);
    tree.git(&["tag", "v1"]);
    for number in 0..4 {
        tree.commit(&format!("other {number}"), "mm/other.c", &number.to_string());
    }
    tree.commit("broken", "mm/a.c", &format!("{old}\nbroken\n"));
    tree.commit("mended", "mm/a.c", &format!("{old}\n"));
    let culprit = tree.commit("mm: change everything", "mm/a.c", &format!("{new}\n"));
    tree.commit("comment", "mm/a.c", &format!("{new}\n/* comment */\n"));
    (tree, culprit)
}

#[test]
fn the_commit_that_changed_a_phase_is_found_and_named() {
    let bench = Bench::new();
    let (tree, culprit) = changed_once(&bench);
    let before = tree.git(&["count-objects", "-v"]);
    let log = bench.path("log");
    let more = [
        "--phase",
        "protect",
        "--no-proof",
        "--format",
        "json",
        "--bisect-log",
        log.to_str().unwrap(),
    ];
    let said = search(&bench, &tree, &more).expect(0);
    let found: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(found["culprits"][0]["commits"][0][0]["id"], culprit, "{}", said.out);
    assert_eq!((&found["commits"], &found["without_effect"]), (&8.into(), &4.into()));
    assert_eq!(tree.git(&["count-objects", "-v"]), before);
    // The same command finds all boots in the store, and gives the same answer.
    let again: Value = serde_json::from_str(&search(&bench, &tree, &more).expect(0).out).unwrap();
    assert_eq!(again, found);
    tree.git(&["bisect", "replay", log.to_str().unwrap()]);

    // Then the range has no change.
    tree.git(&["tag", "-f", "v1", "HEAD~1"]);
    let said = search(&bench, &tree, &["--phase", "protect"]).expect(0);
    assert!(said.out.starts_with("The ends do not differ beyond luck"), "{}", said.out);
    for figure in [["--phase", "nothing"], ["--function", "nothing"]] {
        let said = search(&bench, &tree, &figure).expect(2);
        assert!(said.err.contains(" has no ") && said.err.contains("nothing"), "{}", said.err);
    }
    let said = search(&bench, &tree, &["--phase", "protect", "--cost", "nothing"]).expect(2);
    let known = "there is no cost `nothing` in a search: there are: instructions, entries, locked, fences, invlpg";
    assert!(said.err.contains(known), "{}", said.err);
    let said = search(&bench, &tree, &["--metric", "nothing"]).expect(2);
    assert!(said.err.contains("no row is called `nothing`; there are: "), "{}", said.err);
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn the_commit_that_changed_another_cost_is_found() {
    let bench = Bench::new();
    let (tree, culprit) = changed_once(&bench);
    let more = ["--phase", "protect", "--cost", "entries", "--no-proof", "--format", "json"];
    let said = search(&bench, &tree, &more).expect(0);
    let found: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(found["culprits"][0]["commits"][0][0]["id"], culprit, "{}", said.out);
    assert!(said.err.contains("Figure: kernel entries in phase protect"), "{}", said.err);
}

/// Removes the results of earlier searches.
fn forget(bench: &Bench) {
    fs::remove_dir_all(bench.path("cache")).unwrap();
    for entry in fs::read_dir(bench.directory.path()).unwrap().flatten() {
        let path = entry.path();
        if entry.file_name().to_str().unwrap().starts_with("test.db") {
            let removed = if path.is_dir() { fs::remove_dir_all } else { fs::remove_file }(&path);
            removed.unwrap();
        }
    }
}

/// Number of complete boots in the store, if there is one.
fn complete_boots(bench: &Bench) -> usize {
    if !bench.store_path().exists() {
        return 0;
    }
    let store = store::open(&bench.store_path()).unwrap();
    let experiments = store.experiments().unwrap().into_iter();
    let boots = experiments.flat_map(|it| store.boots(it.id, Detail::Summary).unwrap());
    boots.filter(|kept| !kept.superseded && kept.boot.outcome.counts()).count()
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn a_search_that_is_killed_20_times_loses_nothing_and_gives_the_same_answer() {
    let bench = Bench::new();
    let (tree, _) = changed_once(&bench);
    let more = ["--phase", "protect", "--format", "json"];
    let begun = Instant::now();
    let answer = search(&bench, &tree, &more).expect(0).out;
    // The search is killed at times from its first instants to beyond a third of it.
    let step = begun.elapsed() / 60;
    forget(&bench);
    let (mut kills, mut ends, mut kept) = (0, 0, 0);
    while kills < 20 {
        let mut search = searching(&bench, &tree, &more);
        let mut search = search.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(step * (kills + 1));
        let has_ended = search.try_wait().unwrap().is_some();
        search.kill().unwrap();
        let output = search.wait_with_output().unwrap();
        bench.await_no_qemu();
        if has_ended {
            assert_eq!(String::from_utf8(output.stdout).unwrap(), answer);
            forget(&bench);
            (ends, kept) = (ends + 1, 0);
            continue;
        }
        let boots = complete_boots(&bench);
        assert!(boots >= kept, "{boots} boots are left of {kept}");
        (kills, kept) = (kills + 1, boots);
    }
    println!("{kills} kills, {ends} searches ended between them, {kept} boots kept");
    assert_eq!(search(&bench, &tree, &more).expect(0).out, answer);
}

/// A boot that the host spoils three times says nothing about a commit. The search ends, and the next one repeats the
/// boot.
#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn boots_that_the_host_spoilt_are_repeated_by_the_next_search() {
    let bench = Bench::new();
    let (tree, culprit) = changed_once(&bench);
    let more = ["--phase", "protect", "--no-proof", "--format", "json"];
    // Only boots have the option `-display`, not queries about QEMU.
    let killed = bench.path("killed");
    let script = format!(
        "#!/bin/sh\nreal=$(PATH=${{PATH#*:}} command -v qemu-system-x86_64)\n\
         case \"$*\" in *-display*) [ ! -e {0} ] || kill -KILL $$ ;; esac\nexec \"$real\" \"$@\"\n",
        killed.display()
    );
    let emulator = bench.write("qemu-system-x86_64", &script);
    fs::set_permissions(&emulator, Permissions::from_mode(0o755)).unwrap();
    let searching = || {
        let mut command = searching(&bench, &tree, &more);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", bench.directory.path().display()));
        bench.said(command)
    };
    fs::write(&killed, "").unwrap();
    let said = searching().expect(1);
    assert!(said.err.contains("a boot was invalid each time, because of the host"), "{}", said.err);
    fs::remove_file(&killed).unwrap();
    let found: Value = serde_json::from_str(&searching().expect(0).out).unwrap();
    assert_eq!(found["culprits"][0]["commits"][0][0]["id"], culprit);
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn the_option_that_changed_a_phase_is_found_before_commits_are_searched() {
    option_is_found(false);
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn the_option_that_changed_a_phase_is_found_before_commits_are_searched_and_proven() {
    option_is_found(true);
}

fn option_is_found(proves: bool) {
    let bench = Bench::new();
    let [old, new] = ["debian:6.1", "debian:6.12"].map(image);
    let tree = Tree::new(bench.directory.path());
    tree.commit("slow", "mm/slow", &new);
    tree.commit("first", "mm/a.c", &old);
    tree.git(&["tag", "v1"]);
    for number in 0..3 {
        tree.commit(&format!("other {number}"), "mm/a.c", &format!("{old}\n/* {number} */\n"));
    }
    let [good, bad] = ["good.config", "bad.config"].map(|name| bench.path(name));
    let options = ["A", "B", "SLOW", "C", "DEBUG", "D"].map(|name| format!("CONFIG_{name}"));
    let named = |name: &str| format!("CONFIG_64BIT=y\nCONFIG_LOCALVERSION=\"{name}\"\n");
    let off = options.each_ref().map(|name| format!("# {name} is not set\n")).concat();
    let on = options.each_ref().map(|name| format!("{name}=y\n")).concat();
    fs::write(&good, named("good") + &off).unwrap();
    fs::write(&bad, named("bad") + &on).unwrap();
    let [good, bad] = [&good, &bad].map(|path| path.to_str().unwrap());
    let ends = ["--good-config", good, "--bad-config", bad];

    let said = search(&bench, &tree, &[&ends[..], &["--dry-run"]].concat()).expect(0);
    let range = format!("3 commits and 6 options from v1 with {good} to main with {bad}\n");
    assert!(said.out.starts_with(&range), "{}", said.out);
    let figure = ["--phase", "protect", "--format", "json", "--no-proof"];
    let figure = &figure[..figure.len() - usize::from(proves)];
    let said = search(&bench, &tree, &[&ends[..], figure].concat()).expect(0);
    let found: Value = serde_json::from_str(&said.out).unwrap();
    let culprit = &found["culprits"][0];
    assert_eq!(culprit["commits"][0][0]["id"], "CONFIG_DEBUG", "{}", said.out);
    assert_eq!(culprit["commits"][0][0]["subject"], "n -> y");
    assert_eq!(culprit["with"], serde_json::json!(["CONFIG_SLOW: n -> y"]));
    assert_eq!(found["code"], culprit["levels"][0]);
    let places = found["tried"].as_array().unwrap().iter().map(|tried| &tried["commit"]["place"]);
    assert_eq!(places.map(|place| place.as_u64().unwrap()).collect::<Vec<_>>(), [0, 9, 3, 6, 7, 8]);
    if proves {
        // The proof sets the option back, which takes the step back.
        let change = |change: &Value| change[1].as_f64().unwrap() - change[0].as_f64().unwrap();
        let reverted = change(&culprit["proof"]["reverted"]["Ok"]["levels"]);
        let back = -reverted / change(&culprit["levels"]);
        assert!((0.95..1.05).contains(&back), "{}", said.out);
    }

    // If the ends are one commit, only options are searched.
    tree.git(&["tag", "-f", "v1", "main"]);
    let said = search(&bench, &tree, &[&ends[..], &["--dry-run"]].concat()).expect(0);
    assert!(said.out.starts_with("6 options from v1 with "), "{}", said.out);
    let said = search(&bench, &tree, &["--kconfig", good, "--bad-config", good]).expect(2);
    assert!(said.err.contains("`v1` and `main` are the same commit"), "{}", said.err);
    let log = bench.path("log");
    let log = ["--bisect-log", log.to_str().unwrap()];
    let said = search(&bench, &tree, &[&ends[..], &log].concat()).expect(2);
    assert!(said.err.contains("--bisect-log cannot tell git of options"), "{}", said.err);
}

/// A workload that reports the level in `/proc/version`, plus noise whose standard deviation is 1.
const NOISY: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    char version[512] = "";
    unsigned short drawn[12];
    double value = -6;
    int read_all = read(open("/proc/version", O_RDONLY), version, sizeof(version) - 1) > 0 &&
                   read(open("/dev/urandom", O_RDONLY), drawn, sizeof(drawn)) == sizeof(drawn);
    for (int i = 0; i < 12; i++)
        value += drawn[i] / 65536.0;
    if (!read_all || !strstr(version, "level "))
        return 1;
    value += atoi(strstr(version, "level ") + 6);
    dprintf(atoi(getenv("FAULTLINE_FD")), "sample Time %f\n", value);
    return 0;
}
"#;
const MANIFEST: &str = "name = \"noisy\"\ndescription = \"The kernel's level with noise\"\n\
    command = [\"noisy\"]\n[[metrics]]\nname = \"Time\"\nunit = \"s\"\nbetter = \"lower\"\nmean = \"amean\"\n";
const SEARCH: &str = "name = \"noisy\"\nmode = \"measured\"\nboots = 10\ntree = \"linux\"\n\
    [machine]\ncpus = 1\nmemory = \"512M\"\nnodes = 1\naccel = \"tcg\"\n\
    [[workload]]\nmanifest = \"noisy.toml\"\nprogram = \"noisy\"\n\
    [culprit]\ngood = \"v1\"\nbad = \"main\"\nconfidence = \"99.9%\"\n";

/// Searches a step of 3 standard deviations among 16 commits, each with its own image. Returns the proof.
fn measured([old, new]: [&str; 2], culprit: usize) -> Value {
    let bench = Bench::new();
    let source = bench.write("noisy.c", NOISY);
    let mut compiler = Command::new("gcc");
    let built = compiler.args(["-static", "-o"]).args([&bench.path("noisy"), &source]).status();
    assert!(built.unwrap().success());
    bench.write("noisy.toml", MANIFEST);
    let file = bench.write("search.toml", SEARCH);
    let tree = Tree::new(bench.directory.path());
    let write = |name: &str, text: &str| fs::write(tree.0.join("mm").join(name), text).unwrap();
    for name in ["level.c", "aligned.c"] {
        write(name, "level 100 of the ");
    }
    let mut named = String::new();
    for number in 0..=16 {
        if number == culprit {
            write("level.c", "level 103 of the ");
        } else {
            write("number.c", &format!("commit {number:06}"));
        }
        let image = image(if number < culprit { old } else { new });
        let commit = tree.commit(&format!("mm: change {number}"), "mm/a.c", &image);
        match number {
            0 => drop(tree.git(&["tag", "v1"])),
            _ if number == culprit => named = commit,
            _ => {}
        }
    }
    let mut command = bench.command(&["culprit", file.to_str().unwrap(), "-q", "--format", "json"]);
    command.env("XDG_CACHE_HOME", bench.path("cache"));
    let text = bench.said(command).expect(0).out;
    println!("{text}");
    let found: Value = serde_json::from_str(&text).unwrap();
    let step = &found["culprits"][0];
    assert_eq!(found["culprits"].as_array().unwrap().len(), 1, "{text}");
    assert_eq!(step["commits"][0][0]["id"], named, "{text}");
    assert!(step["commits"][0][1].as_f64().unwrap() >= 0.999, "{text}");
    step["proof"].clone()
}

/// The change of one part of a proof, and the floor that it must exceed.
fn change(part: &Value) -> (f64, f64) {
    let level = |place: usize| part["levels"][place].as_f64().unwrap();
    (level(1) - level(0), part["floor"].as_f64().unwrap())
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn a_step_of_three_standard_deviations_is_found_in_noise() {
    let proof = measured(["debian:6.1", "debian:6.12"], 11);
    let (step, floor) = change(&proof["step"]);
    assert!(step > floor && (step - 3.0).abs() < 1.8, "{proof}");
    let (back, floor) = change(&proof["reverted"]["Ok"]);
    assert!(-back > floor && (back + 3.0).abs() < 1.8, "{proof}");
    let (instructions, floor) = change(&proof["instructions"]["Ok"]);
    assert!(instructions.abs() > floor && proof["aligned"].is_null(), "{proof}");
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn a_step_without_other_instructions_is_layout() {
    let proof = measured(["debian:6.1"; 2], 6);
    assert!(change(&proof["step"]).0 > 1.2, "{proof}");
    // The kernels print different digits.
    assert!(change(&proof["instructions"]["Ok"]).0.abs() < 100.0, "{proof}");
    // With all functions aligned, both have the level of the parent.
    assert!(change(&proof["aligned"]["Ok"]).0.abs() < 1.8, "{proof}");
}
