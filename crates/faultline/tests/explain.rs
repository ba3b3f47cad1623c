//! Tests of the command line of `faultline explain`.

mod said;

use std::path::Path;
use std::process::{Command, Output};

use model::{
    Boot, Cell, ENTRIES, Experiment, INSTRUCTIONS, Manifest, Millis, Mode, Outcome, Place,
    Privilege, Profile, Reading, Variant, WorkloadUse, exact_cost,
};
use said::Said;
use tempfile::TempDir;

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

/// A store with an exact experiment of two variants, where the second one enters `f` more often.
fn keep(store: &Path) {
    let named = |name: &str| Variant { name: name.into(), ..Variant::default() };
    let manifest = Manifest { name: "fault".into(), ..Manifest::default() };
    let experiment = Experiment {
        name: "x".into(),
        mode: Mode::Exact,
        variants: ["old", "new"].map(named).into(),
        workloads: vec![WorkloadUse::new(manifest, 1, Millis(1))],
        boots: 1,
        ..Experiment::default()
    };
    let mut store = store::open(store).unwrap();
    let id = store.keep_experiment(&experiment, Reading::USUAL).unwrap();
    store.keep_boot(id, &boot("old", 0, 100)).unwrap();
    store.keep_boot(id, &boot("new", 0, 150)).unwrap();
}

/// A seed of a variant that enters `f` so often.
fn boot(variant: &str, seed: u32, entries: u64) -> Boot {
    let mut costs = exact_cost::table(false);
    let place = Place::Function { name: "f".into(), module: "".into() };
    let instructions = Cell::new(exact_cost::INSTRUCTIONS, 0, 10 * entries);
    costs.push(place, [instructions, Cell::new(exact_cost::ENTRIES, 0, entries)]);
    costs.push(Place::All(Privilege::Kernel), [instructions]);
    let profile = |phase: &str| Profile {
        workload: "fault".into(),
        phase: phase.into(),
        costs: costs.clone(),
        ..Profile::default()
    };
    Boot {
        variant: variant.into(),
        boot_index: seed,
        outcome: Outcome::Complete,
        profiles: vec![profile("run"), profile("")],
        ..Boot::default()
    }
}

/// A store of its own with the experiment of [`keep`].
struct Stored(TempDir);

impl Stored {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        keep(&place.path().join("store.db"));
        Self(place)
    }

    fn faultline(&self, arguments: &[&str]) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_faultline"));
        command.arg("--store").arg(self.0.path().join("store.db")).args(arguments);
        Said::of(command.env("XDG_CACHE_HOME", self.0.path()))
    }
}

#[test]
fn a_cost_that_boots_have_is_explained() {
    let store = Stored::new();
    let explain =
        |options: &[&str]| store.faultline(&[&["explain", "old", "new"], options].concat());
    let usual = explain(&[]).expect(0);
    assert_eq!(explain(&["--cost", INSTRUCTIONS]).out, usual.out);
    assert!(usual.out.contains("Own instructions per entry"), "{}", usual.out);
    let entries = explain(&["--cost", ENTRIES]).expect(0);
    assert!(entries.out.contains("50.00 % more entries of kernel functions"), "{}", entries.out);
    for senseless in ["entries per entry", "functions per entry", "By cost", "--profile stacks"] {
        assert!(!entries.out.contains(senseless), "{}", entries.out);
    }
    let json: serde_json::Value =
        serde_json::from_str(&explain(&["--cost", ENTRIES, "--format", "json"]).out).unwrap();
    assert_eq!(
        (&json["cost"]["name"], &json["all"]["kernel"]["change"]),
        (&ENTRIES.into(), &100.0.into())
    );
    for other in ["misses", "samples"] {
        let refused = explain(&["--cost", other]);
        assert_eq!((refused.code, &*refused.out), (Some(2), ""));
        let told = format!("no `{other}` by function; they have: entries, instructions");
        assert!(refused.err.contains(&told), "{}", refused.err);
    }
}

#[test]
fn two_seeds_of_one_variant_are_compared() {
    let store = Stored::new();
    let explain = |arguments: &[&str]| store.faultline(&[&["explain"], arguments].concat());
    let same = explain(&["old", "old"]).expect(2);
    assert!(same.err.contains("two seeds of it with --seeds"), "{}", same.err);
    explain(&["old", "old", "--seeds", "0,0"]).expect(2);
    let other = explain(&["old", "old", "--seeds", "0,7"]).expect(2);
    assert_eq!(other.err, "faultline: `old` has no complete boot of seed 7; it has: 0\n");
    let both = explain(&["old", "new", "--seeds", "0,0"]).expect(0);
    assert!(both.out.contains("new, seed 0 (1 seed) against old, seed 0 (1 seed)"), "{}", both.out);
    let paths = explain(&["old", "new", "--by-syscall"]).expect(2);
    assert!(
        paths.err.contains("not all boots of experiment 1 recorded call paths"),
        "{}",
        paths.err
    );
    let entries = explain(&["old", "new", "--by-syscall", "--cost", ENTRIES]).expect(2);
    assert!(entries.err.contains("`entries` is not counted by call path"), "{}", entries.err);
    explain(&["old", "new", "--seeds", "0"]).expect(2);
    let mut kept = store::open(&store.0.path().join("store.db")).unwrap();
    kept.keep_boot(store::ExperimentId(1), &boot("old", 1, 120)).unwrap();
    drop(kept);
    let by_luck = explain(&["old", "old", "--seeds", "0,1"]).expect(0);
    assert!(by_luck.out.contains("the seeds differ by luck"), "{}", by_luck.out);
}

#[test]
fn lines_need_boots_that_kept_them() {
    let store = Stored::new();
    let faultline = |arguments: &[&str]| store.faultline(arguments);
    let refused = |arguments: &[&str], told: &str| {
        let refused = faultline(arguments);
        assert_eq!((refused.code, &*refused.out), (Some(2), ""), "{}", refused.err);
        assert!(refused.err.contains(told), "{}", refused.err);
    };
    let lines = ["explain", "old", "new", "--lines", "f"];
    let path = store.0.path().join("store.db");
    let again = format!("`faultline --store {} run --again 1 --lines f` boots", path.display());
    refused(&lines, &again);
    let near = "no boot of experiment 1 executed `ff`; similar ones that were executed: f.";
    refused(&[&lines[..4], &["ff"]].concat(), near);
    refused(&[&lines[..], &["--phase", "walk"]].concat(), "fault has no phase `walk`; there are");
    refused(&[&lines[..], &["--source", "/none"]].concat(), "--source: /none is no directory");
    refused(&[&lines[..], &["--format", "html"]].concat(), "1 --lines f");
    let again = ["run", "--again", "x", "--dry-run", "--lines"];
    refused(&again[..4], "--lines");
    refused(&[&again[..], &["f.isra.0"]].concat(), "lines is not a list of at most 100 names");
    refused(&[&again[..], &["ff"]].concat(), near);
    refused(&[&again[..], &["f"]].concat(), "the cache no longer has the kernel of old");
}

#[test]
fn what_is_outside_all_phases_is_asked_for_by_its_printed_name() {
    let store = Stored::new();
    let explain = |phase: &str| store.faultline(&["explain", "old", "new", "--phase", phase]);
    let outside = explain("(no phase)").expect(0);
    assert!(outside.out.contains("Contributions in phase (no phase)"), "{}", outside.out);
    let refused = explain("rnu").expect(2);
    assert_eq!(refused.err, "faultline: fault has no phase `rnu`; there are: run, (no phase)\n");
}
