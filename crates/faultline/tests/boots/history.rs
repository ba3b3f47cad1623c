//! Searches commits in a repository made from Debian's packaged source of 6.1. It has planted culprits, commits that
//! do not build or boot, and a merge. Runs in `make check-long`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use kernels::Cache;
use serde_json::Value;

use crate::common::Bench;
use crate::planted::{BASE, SOURCE, image, patch};

const VMSCAN: &str = "mm/vmscan.c";
const VMSTAT: &str = "mm/vmstat.c";
const MAIN: &str = "init/main.c";
const INIT: &str = "static int __ref kernel_init(void *unused)\n{\n\tint ret;\n";
const DELAY: Change = ("mm: rmap: delay page_add_new_anon_rmap", "delay", &[]);
const NO_DELAY: Change = ("mm: rmap: do not delay page_add_new_anon_rmap", "delay", &["-R"]);
const WALK: Change = ("mm: look at the LRU in handle_mm_fault", "walk", &[]);
const ACCESS: Change = ("mm: swap: look at the LRU once more", "access", &[]);

/// The subject of a commit, its planted patch, and options of `git apply`.
type Change = (&'static str, &'static str, &'static [&'static str]);

/// A repository that is written by `git fast-import` (git-fast-import(1)).
struct Repository {
    directory: PathBuf,
    /// The tree of the first commit.
    tree: String,
    stream: String,
    commits: usize,
}

/// A branch that is being made: its last commit, and the files in which it differs from the first commit.
#[derive(Clone)]
struct Branch {
    tip: usize,
    files: BTreeMap<String, String>,
}

impl Repository {
    /// The packaged source as the first commit, v1. The objects stay in the cache.
    fn new(directory: PathBuf) -> (Self, Branch) {
        image(BASE);
        let builds = Cache::open().unwrap().root().join("build");
        let sources = fs::read_to_string(builds.join("sources.json")).unwrap();
        let sources: Value = serde_json::from_str(&sources).unwrap();
        let tree = sources[SOURCE].as_str().unwrap().to_owned();
        let made = Command::new("git").args(["init", "-q"]).arg(&directory).status().unwrap();
        assert!(made.success());
        let objects = builds.join("repository/objects").display().to_string() + "\n";
        fs::write(directory.join(".git/objects/info/alternates"), objects).unwrap();
        let mut repository = Self { directory, tree, stream: String::new(), commits: 0 };
        repository.begin("Linux 6.1", &[]);
        let root = format!("M 040000 {} \"\"\n\nreset refs/tags/v1\nfrom :1\n\n", repository.tree);
        repository.stream += &root;
        (repository, Branch { tip: 1, files: BTreeMap::new() })
    }

    fn begin(&mut self, subject: &str, parents: &[usize]) {
        self.commits += 1;
        let (number, length) = (self.commits, subject.len());
        write!(
            self.stream,
            "commit refs/heads/work\nmark :{number}\ncommitter A U Thor <a@example.com> 1700000000 +0000\n\
             data {length}\n{subject}\n"
        )
        .unwrap();
        for (word, parent) in ["from", "merge"].into_iter().zip(parents) {
            writeln!(self.stream, "{word} :{parent}").unwrap();
        }
    }

    fn put(&mut self, path: &str, text: &str) {
        write!(self.stream, "M 100644 inline {path}\ndata {}\n{text}\n", text.len()).unwrap();
    }

    /// A commit that edits a file.
    fn edit(
        &mut self,
        branch: &mut Branch,
        subject: &str,
        path: &str,
        edit: impl FnOnce(&str) -> String,
    ) {
        let before = branch.files.get(path).cloned().unwrap_or_else(|| self.source(path));
        let text = edit(&before);
        assert_ne!(text, before, "{subject}");
        self.begin(subject, &[branch.tip]);
        self.put(path, &text);
        branch.tip = self.commits;
        branch.files.insert(path.into(), text);
    }

    /// A commit with a planted patch, or its revert.
    fn plant(&mut self, branch: &mut Branch, change: Option<Change>) {
        let Some((subject, name, more)) = change else { return };
        let patch = patch(name);
        let text = fs::read_to_string(&patch).unwrap();
        let path = text.lines().find_map(|line| line.strip_prefix("+++ b/")).unwrap();
        let apply = |before: &str| {
            let directory = tempfile::tempdir().unwrap();
            let file = directory.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, before).unwrap();
            let mut git = Command::new("git");
            git.arg("apply").args(more).arg(&patch).current_dir(directory.path());
            assert!(git.status().unwrap().success(), "{name}");
            fs::read_to_string(file).unwrap()
        };
        self.edit(branch, subject, path, apply);
    }

    /// Commits that change no figure: they change documentation, a driver that is not built, comments, or code that
    /// never runs.
    fn harmless(&mut self, branch: &mut Branch, commits: usize) {
        for _ in 0..commits {
            let number = self.commits;
            let (subject, path, line) = match number * 3 % 8 {
                0..=2 => ("Documentation: mm: note", "Documentation/mm/index.rst", "note"),
                3 | 4 => {
                    ("e1000: comment", "drivers/net/ethernet/intel/e1000/e1000_main.c", "/* */")
                }
                5 | 6 => ("mm: vmscan: comment", VMSCAN, "/* comment */"),
                _ => ("mm: vmscan: add a function", VMSCAN, "int note_0(void) { return 0; }"),
            };
            let line = line.replace('0', &number.to_string());
            let edit = |before: &str| format!("{before}\n{line}\n");
            self.edit(branch, &format!("{subject} {number}"), path, edit);
        }
    }

    /// Merges a branch that changed other files.
    fn merge(&mut self, branch: &mut Branch, side: &Branch, fork: &Branch) {
        self.begin("Merge branch 'mm'", &[branch.tip, side.tip]);
        for (path, text) in side.files.iter().filter(|it| fork.files.get(it.0) != Some(it.1)) {
            assert_eq!(branch.files.get(path), fork.files.get(path), "{path}");
            self.put(path, text);
            branch.files.insert(path.clone(), text.clone());
        }
        branch.tip = self.commits;
    }

    /// A file of the packaged source.
    fn source(&self, path: &str) -> String {
        let object = format!("{}:{path}", self.tree);
        let mut git = Command::new("git");
        let output = git.args(["cat-file", "blob", &object]).current_dir(&self.directory).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    }

    /// Writes the commits; `main` is the last one of the branch.
    fn write(mut self, branch: &Branch) -> PathBuf {
        write!(self.stream, "reset refs/heads/main\nfrom :{}\n\n", branch.tip).unwrap();
        let mut git = Command::new("git");
        git.args(["fast-import", "--quiet"]).current_dir(&self.directory).stdin(Stdio::piped());
        let mut git = git.spawn().unwrap();
        git.stdin.take().unwrap().write_all(self.stream.as_bytes()).unwrap();
        assert!(git.wait().unwrap().success());
        self.directory
    }
}

/// Searches a history with one culprit early, one in a merged branch and one late, and returns what was found.
fn search([early, side, late]: [Option<Change>; 3], more: &[&str]) -> Value {
    let bench = Bench::new();
    let (mut repository, mut main) = Repository::new(bench.path("linux"));
    repository.harmless(&mut main, 14);
    repository.plant(&mut main, early);
    repository.harmless(&mut main, 5);
    repository.edit(&mut main, "mm: vmstat: half a change", VMSTAT, |it| format!("{it}\nbroken\n"));
    repository.harmless(&mut main, 2);
    let mend = |it: &str| it.replace("\nbroken\n", "");
    repository.edit(&mut main, "mm: vmstat: the other half", VMSTAT, mend);
    repository.harmless(&mut main, 4);
    let fork = main.clone();
    for number in 1..4 {
        let edit = |it: &str| format!("{it}\n/* {number} */\n");
        repository.edit(&mut main, &format!("mm: util: comment {number}"), "mm/util.c", edit);
    }
    let mut branch = fork.clone();
    repository.harmless(&mut branch, 6);
    repository.plant(&mut branch, side);
    repository.harmless(&mut branch, 5);
    repository.merge(&mut main, &branch, &fork);
    repository.harmless(&mut main, 8);
    let stop = |it: &str| it.replace(INIT, &format!("{INIT}\n\tpanic(\"half a change\");\n"));
    repository.edit(&mut main, "init: stop", MAIN, stop);
    repository.harmless(&mut main, 2);
    let go = |it: &str| it.replace("\n\tpanic(\"half a change\");\n", "");
    repository.edit(&mut main, "init: go on", MAIN, go);
    repository.harmless(&mut main, 9);
    repository.plant(&mut main, late);
    repository.harmless(&mut main, 4);
    let tree = repository.write(&main).display().to_string();
    let range = ["culprit", "--tree", &tree, "--good", "v1", "--bad", "main", "--format", "json"];
    let workload = ["--workload", "autonuma", "--set", "programs=NUMA01", "--set", "scale=0.02"];
    let machine = ["--cpus", "2", "--memory", "512M"];
    let begun = Instant::now();
    let said = bench.faultline(&[&range[..], &workload, &machine, more].concat()).expect(0);
    println!("{}\n{}\n{} s", said.err, said.out, begun.elapsed().as_secs());
    let found: Value = serde_json::from_str(&said.out).unwrap();
    assert!(found["commits"].as_u64().unwrap() >= 64);
    // The search tries both ends, and for each culprit as many commits as it takes to halve this history. Proofs are
    // not counted.
    let most = 2 + 8 * found["culprits"].as_array().unwrap().len().max(1);
    assert!(found["kernels"].as_u64().unwrap() <= most as u64, "{}", found["kernels"]);
    found
}

/// Checks that the culprits are the planted ones, in this order, and that the proof of each holds.
fn are_proven(found: &Value, planted: &[(Change, &str)]) {
    let culprits = found["culprits"].as_array().unwrap();
    assert_eq!(culprits.len(), planted.len(), "{culprits:#?}");
    for (culprit, ((subject, ..), function)) in culprits.iter().zip(planted) {
        let commits = culprit["commits"].as_array().unwrap();
        assert_eq!((commits.len(), &commits[0][0]["subject"]), (1, &(*subject).into()));
        let proof = &culprit["proof"];
        let [step, back] = [&proof["step"], &proof["reverted"]["Ok"]].map(|change| {
            let level = |place: usize| change["levels"][place].as_f64().unwrap();
            let step = level(1) - level(0);
            assert!(step.abs() > change["floor"].as_f64().unwrap(), "{subject}: {change}");
            step
        });
        let luck = 2.0 * proof["step"]["floor"].as_f64().unwrap();
        assert!((step + back).abs() <= luck + 0.1 * step, "{subject}: {step} and back {back}");
        assert_eq!(proof["functions"]["Ok"], serde_json::json!([function]), "{subject}");
    }
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn one_culprit_in_a_merged_branch_is_found_and_proven() {
    let found = search([None, Some(DELAY), None], &[]);
    are_proven(&found, &[(DELAY, "page_add_new_anon_rmap")]);
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn two_culprits_are_found_and_proven() {
    let found = search([Some(WALK), Some(DELAY), None], &["--all"]);
    are_proven(&found, &[(WALK, "handle_mm_fault"), (DELAY, "page_add_new_anon_rmap")]);
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn a_small_step_between_offsetting_ones_is_found() {
    let found = search([Some(DELAY), Some(ACCESS), Some(NO_DELAY)], &[]);
    are_proven(&found, &[(ACCESS, "folio_add_lru_vma")]);
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn a_history_without_a_culprit_has_no_difference() {
    let found = search([None; 3], &[]);
    assert_eq!(found["ending"]["ending"], "no-difference");
}
