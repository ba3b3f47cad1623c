//! Searches a commit with real boots. The repository stands in for a kernel's: its Makefile copies one of two
//! packaged kernels, so building takes no time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kernels::Cache;
use serde_json::Value;

use crate::common::{Bench, Said};

/// A repository whose kernel is named by `mm/a.c`.
struct Tree(PathBuf);

impl Tree {
    fn new(directory: &Path) -> Self {
        let tree = Self(directory.join("linux"));
        fs::create_dir_all(tree.0.join("mm")).unwrap();
        tree.git(&["init", "-q", "-b", "main", "."]);
        let makefile = "VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 0\n\
            allnoconfig:\n\tcp $(KCONFIG_ALLCONFIG) $(O)/.config\n\
            vmlinux:\n\t@if grep -q broken mm/a.c; then echo '../mm/a.c:1:2: error: broken'; exit 1; fi\n\
            \t@mkdir -p $(O)/include/config $(O)/mm; echo 6.1.0 > $(O)/include/config/kernel.release\n\
            \t@cp $$(head -1 mm/a.c) $(O)/vmlinux; touch $(O)/vmlinux.o $(O)/modules.builtin\n\
            \t@echo 'source_mm/a.o := ../mm/a.c' > $(O)/mm/.a.o.cmd; touch $(O)/modules.builtin.modinfo\n";
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
    let tree = tree.0.display().to_string();
    let range =
        ["culprit", "--tree", &tree, "--good", "v1", "--bad", "main", "--workload", "mprotect"];
    let machine = ["--cpus", "1", "--nodes", "1", "--memory", "512M", "--boots", "2"];
    let mut command = bench.command(&[&range[..], &machine, more].concat());
    command.env("XDG_CACHE_HOME", bench.path("cache"));
    bench.said(command)
}

#[test]
fn the_commit_that_changed_a_phase_is_found_and_named() {
    let bench = Bench::new();
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
    // The same command finds everything kept, and answers the same.
    let again: Value = serde_json::from_str(&search(&bench, &tree, &more).expect(0).out).unwrap();
    assert_eq!(again, found);
    tree.git(&["bisect", "replay", log.to_str().unwrap()]);

    // A range without a change.
    tree.git(&["tag", "-f", "v1", "HEAD~1"]);
    let said = search(&bench, &tree, &["--phase", "protect"]).expect(0);
    assert!(said.out.starts_with("The ends do not differ beyond luck"), "{}", said.out);
    for figure in [["--phase", "nothing"], ["--function", "nothing"]] {
        let said = search(&bench, &tree, &figure).expect(2);
        assert!(said.err.contains(" has no ") && said.err.contains("nothing"), "{}", said.err);
    }
    let said = search(&bench, &tree, &["--metric", "nothing"]).expect(2);
    assert!(said.err.contains("no row is called `nothing`; there are: "), "{}", said.err);
}
