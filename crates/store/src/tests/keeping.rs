//! Tests that kept data is read back unchanged, and of which boots count as done.

use model::{Boot, Experiment, Manifest, Outcome, Profile, Sequential, UserspaceLock};

use super::{StoreFile, as_kept, boot, experiment};
use crate::{Detail, Error, Store, Trouble};

fn failures() -> [Outcome; 6] {
    [
        Outcome::Partial("workload nas, iteration 0: signal 9 ended it".into()),
        Outcome::Failed("no sysctl `kernel.numa_balancign`".into()),
        Outcome::Panicked("Kernel panic - not syncing: VFS".into()),
        Outcome::TimedOut("boot: 180s".into()),
        Outcome::Died("signal 9".into()),
        Outcome::Invalid("signal 6".into()),
    ]
}

#[test]
fn a_boot_is_read_back_unchanged() {
    let (file, mut store, id) = StoreFile::with_numa();
    let outcomes = failures().into_iter().chain([Outcome::Complete, Outcome::Interrupted]);
    let boots: Vec<_> = (0..).zip(outcomes).map(|(n, outcome)| boot("6.1", n, outcome)).collect();
    let ids: Vec<_> = boots.iter().map(|boot| store.keep_boot(id, boot).unwrap()).collect();

    let store = file.open();
    let expected: Vec<_> = ids.into_iter().zip(&boots).map(|(id, it)| as_kept(id, it)).collect();
    assert_eq!(store.boots(id, Detail::Whole).unwrap(), expected);
    for kept in expected {
        assert_eq!(store.boot(kept.id).unwrap(), kept);
    }
}

#[test]
fn only_requested_parts_are_read() {
    let (_file, mut store, id) = StoreFile::with_numa();
    let whole = boot("6.1", 0, Outcome::Complete);
    store.keep_boot(id, &whole).unwrap();
    let read = |detail| store.boots(id, detail).unwrap().remove(0).boot;

    let summary =
        Boot { chunks: vec![], profiles: vec![], console: String::new(), ..whole.clone() };
    assert_eq!(read(Detail::Summary), summary);
    let wanted = ["workload", "vmstat", "absent"];
    let mut chunks = whole.chunks;
    chunks.retain(|chunk| wanted.contains(&&*chunk.source));
    assert_eq!(chunks.len(), 6);
    assert_eq!(read(Detail::Series(&wanted)), Boot { chunks, ..summary.clone() });
    assert_eq!(read(Detail::Series(&[])), summary);
    assert_eq!(read(Detail::Profiles(&[])), Boot { profiles: whole.profiles, ..summary });
}

#[test]
fn ends_of_series_give_their_differences() {
    let (_file, mut store, id) = StoreFile::with_numa();
    let whole = boot("6.1", 0, Outcome::Complete);
    assert!(whole.chunks.iter().all(|chunk| chunk.times.len() > 2));
    store.keep_boot(id, &whole).unwrap();
    let read = |store: &Store| store.boots(id, Detail::Ends(&["vmstat"])).unwrap().remove(0).boot;
    let ends = read(&store);
    let accesses = |profile: &Profile| Profile {
        workload: profile.workload.clone(),
        iteration: profile.iteration,
        phase: profile.phase.clone(),
        accesses: profile.accesses.clone(),
        ..Profile::default()
    };
    assert_eq!(ends.profiles, whole.profiles.iter().map(accesses).collect::<Vec<_>>());
    assert!(ends.profiles.iter().all(|profile| !profile.accesses.is_empty()));
    let chunks: Vec<_> = whole.chunks.iter().filter(|it| it.source == "vmstat").collect();
    assert_eq!(ends.chunks.len(), chunks.len());
    for (ends, whole) in ends.chunks.iter().zip(chunks) {
        assert_eq!(ends.times, [whole.times[0], *whole.times.last().unwrap()]);
        assert_eq!((&ends.workload, ends.iteration), (&whole.workload, whole.iteration));
        assert_eq!(ends.columns.len(), whole.columns.len());
        for column in &whole.columns {
            assert_eq!(ends.difference(&column.name), whole.difference(&column.name));
        }
    }
}

#[test]
fn subjects_of_patches_are_kept_and_no_part_of_the_identity() {
    let (_file, mut store, id) = StoreFile::with_numa();
    let mut series = store.experiment(id).unwrap();
    let step = |patch: &str| Some(model::Step { after: "6.1".into(), patch: patch.into() });
    for patch in ["mm: one", "mm: other words"] {
        series.variants[1].step = step(patch);
        assert_eq!(store.keep_experiment(&series).unwrap(), id);
        assert_eq!(store.experiment(id).unwrap().variants[1].step, step(patch));
    }
}

#[test]
fn an_empty_boot_and_odd_numbers_are_kept() {
    let (_file, mut store, id) = StoreFile::with_numa();
    let mut odd = boot("", u32::MAX, Outcome::Died(String::new()));
    odd.facts = Default::default();
    odd.chunks[0].times.clear();
    odd.chunks[0].columns.clear();
    odd.chunks.truncate(1);
    odd.samples[0].value = f64::INFINITY;
    odd.samples[1].value = f64::NAN;
    odd.host.steal = f64::NAN;
    odd.console.clear();
    let id = store.keep_boot(id, &odd).unwrap();
    let read = store.boot(id).unwrap().boot;
    assert!(read.samples[1].value.is_nan() && read.host.steal.is_nan());
    // NaN is not equal to itself, so the texts are compared.
    assert_eq!(format!("{read:?}"), format!("{odd:?}"));
}

#[test]
fn boots_share_texts() {
    let (file, mut store, id) = StoreFile::with_numa();
    for replicate in 0..3 {
        for variant in ["6.1", "7.3"] {
            let boot = boot(variant, replicate, Outcome::Complete);
            store.keep_boot(id, &boot).unwrap();
        }
    }
    let count = file.plain().query_row("SELECT count(*) FROM texts", [], |row| row.get(0));
    // One configuration each, and one package list for all.
    assert_eq!(count, Ok(3));
}

#[test]
fn a_boot_is_kept_once_unless_interrupted() {
    let (_file, mut store, id) = StoreFile::with_numa();
    for _ in 0..2 {
        store.keep_boot(id, &boot("6.1", 0, Outcome::Interrupted)).unwrap();
    }
    assert_eq!(store.done(id).unwrap(), []);
    store.keep_boot(id, &boot("6.1", 0, Outcome::Complete)).unwrap();
    store.keep_boot(id, &boot("7.3", 0, Outcome::Died("signal 9".into()))).unwrap();
    let done = [("6.1".into(), 0), ("7.3".into(), 0)];
    assert_eq!(store.done(id).unwrap(), done);

    for outcome in failures().into_iter().chain([Outcome::Complete]) {
        let error = store.keep_boot(id, &boot("7.3", 0, outcome)).unwrap_err();
        assert!(
            matches!(&error, Error::Store { trouble: Trouble::KeptAlready { .. }, .. }),
            "{error}"
        );
        assert!(error.to_string().ends_with("boot 0 of `7.3` in experiment 1 already exists"));
    }
    assert_eq!(store.boots(id, Detail::Summary).unwrap().len(), 4);
    let other = store.keep_experiment(&experiment("other")).unwrap();
    store.keep_boot(other, &boot("7.3", 0, Outcome::Complete)).unwrap();
    assert_eq!(store.done(id).unwrap(), done);
}

#[test]
fn failed_boots_count_until_they_are_replaced() {
    let (_file, mut store, id) = StoreFile::with_numa();
    let other = store.keep_experiment(&experiment("other")).unwrap();
    for (replicate, outcome) in (0..).zip(failures()) {
        store.keep_boot(id, &boot("6.1", replicate, outcome.clone())).unwrap();
        store.keep_boot(other, &boot("6.1", replicate, outcome)).unwrap();
    }
    store.keep_boot(id, &boot("7.3", 0, Outcome::Complete)).unwrap();
    store.keep_boot(id, &boot("7.3", 1, Outcome::Interrupted)).unwrap();

    let failed: Vec<(String, u32)> = (0..6).map(|replicate| ("6.1".into(), replicate)).collect();
    assert_eq!(store.failed(id).unwrap(), failed);
    for (replicate, outcome) in (0..).zip(failures()) {
        // All but the invalid and the interrupted one.
        assert_eq!(store.done(id).unwrap().len(), 6);
        store.keep_instead(id, &boot("6.1", replicate, outcome)).unwrap();
    }
    assert_eq!(store.done(id).unwrap().len(), 6);
    assert!(store.boots(other, Detail::Summary).unwrap().iter().all(|kept| !kept.superseded));
    // A complete boot is never replaced.
    assert!(store.keep_instead(id, &boot("7.3", 0, Outcome::Complete)).is_err());
    let boots = store.boots(id, Detail::Summary).unwrap();
    let superseded: Vec<bool> = boots.iter().map(|kept| kept.superseded).collect();
    assert_eq!(superseded, [[true; 6].as_slice(), &[false; 8]].concat());
    assert!(store.boot(boots[0].id).unwrap().superseded);

    let rows = store.experiments().unwrap();
    let row = rows.iter().find(|row| row.id == id).unwrap();
    let count = |word: &str| row.outcomes.get(word).copied();
    let words = "complete partial failed panicked timed-out died invalid interrupted";
    assert!(words.split(' ').all(|word| count(word) == Some(1)));
    assert_eq!(row.superseded, 6);
}

#[test]
fn a_boot_kept_aside_is_not_done() {
    let (_file, mut store, id) = StoreFile::with_numa();
    let invalid = boot("6.1", 0, Outcome::Invalid("signal 6".into()));
    let aside = store.keep_aside(id, &invalid).unwrap();
    assert_eq!(store.done(id).unwrap(), []);
    let kept = store.keep_boot(id, &boot("6.1", 0, Outcome::Complete)).unwrap();
    let boots = store.boots(id, Detail::Summary).unwrap();
    let found: Vec<_> = boots.iter().map(|kept| (kept.id, kept.superseded)).collect();
    assert_eq!(found, [(aside, true), (kept, false)]);
    assert!(store.keep_aside(id, &invalid).is_err());
}

#[test]
fn invalid_boots_are_set_aside_and_others_are_not() {
    let (_file, mut store, id) = StoreFile::with_numa();
    let outcomes = [
        Outcome::Complete,
        Outcome::Invalid("signal 9".into()),
        Outcome::Panicked("BUG".into()),
        Outcome::Invalid("signal 9".into()),
    ];
    for (replicate, outcome) in (0..).zip(outcomes) {
        store.keep_boot(id, &boot("6.1", replicate, outcome)).unwrap();
    }
    for _ in 0..2 {
        store.set_invalid_aside(id).unwrap();
        assert_eq!(store.done(id).unwrap(), [("6.1".into(), 0), ("6.1".into(), 2)]);
        let boots = store.boots(id, Detail::Summary).unwrap();
        let aside: Vec<bool> = boots.iter().map(|kept| kept.superseded).collect();
        assert_eq!(aside, [false, true, false, true]);
    }
}

#[test]
fn the_same_definition_is_the_same_experiment() {
    let (_file, mut store) = StoreFile::opened();
    let numa = experiment("numa");
    let with_boots = |boots| Experiment { boots, ..numa.clone() };
    let id = store.keep_experiment(&with_boots(3)).unwrap();
    for (boots, wanted) in [(3, 3), (7, 7), (2, 7)] {
        assert_eq!(store.keep_experiment(&with_boots(boots)).unwrap(), id);
        assert_eq!(store.experiment(id).unwrap(), with_boots(wanted));
    }
    let mut changed = numa.clone();
    changed.variants[1].cmdline.push_str(" nokaslr");
    let other = store.keep_experiment(&changed).unwrap();
    assert_ne!(other, id);
    assert_eq!(store.experiment(other).unwrap(), changed);
    assert_eq!(store.experiment(id).unwrap(), with_boots(7));
}

#[test]
fn other_readings_of_figures_are_the_same_experiment() {
    let (_file, mut store) = StoreFile::opened();
    let first = experiment("numa");
    let id = store.keep_experiment(&first).unwrap();
    let mut later = first.clone();
    let manifest = &mut later.workloads[0].manifest;
    manifest.description.push('.');
    manifest.preparation.clear();
    later.workloads[0].primary.clear();
    later.variants[0].axes.push(("thp".into(), "never".into()));
    let metric = &mut later.workloads[0].manifest.metrics[0];
    (metric.better, metric.mean, metric.primary) = (None, model::Mean::Gmean, true);
    (metric.rows, metric.decimals, metric.concurrent) = (model::Rows::Brief, Some(3), true);
    assert_eq!(store.keep_experiment(&later).unwrap(), id);
    assert_eq!(store.experiment(id).unwrap(), later);
    assert_eq!(store.keep_experiment(&first).unwrap(), id);
    assert_eq!(store.experiment(id).unwrap(), first);
    let changes: [fn(&mut Manifest); 4] = [
        |it| it.metrics[0].unit = "ms".into(),
        |it| it.metrics[0].name = "Time".into(),
        |it| it.command.push("--fast".into()),
        |it| it.packages.clear(),
    ];
    for change in changes {
        let mut other = first.clone();
        change(&mut other.workloads[0].manifest);
        assert_ne!(store.keep_experiment(&other).unwrap(), id);
    }
}

#[test]
fn a_name_means_the_experiment_last_kept() {
    let (_file, mut store) = StoreFile::opened();
    let error = store.find_experiment("numa").unwrap_err().to_string();
    assert!(error.ends_with("no experiment `numa`; the store is empty"), "{error}");

    let mut changed = experiment("numa");
    changed.variants.truncate(1);
    let first = store.keep_experiment(&experiment("numa")).unwrap();
    let second = store.keep_experiment(&changed).unwrap();
    let numbered = store.keep_experiment(&experiment("1")).unwrap();
    assert_eq!(store.find_experiment("numa").unwrap(), second);
    store.keep_experiment(&experiment("numa")).unwrap();
    assert_eq!(store.find_experiment("numa").unwrap(), first);
    assert_eq!(store.find_experiment("2").unwrap(), second);
    assert_eq!(store.find_experiment("1").unwrap(), numbered);

    let listed = store.experiments().unwrap();
    let ids: Vec<_> = listed.iter().map(|row| row.id).collect();
    assert_eq!(ids, [second, numbered, first]);
    assert_eq!((&*listed[0].name, listed[0].boots), ("numa", 2));
    assert_eq!(listed[0].variants, ["6.1"]);
    assert_eq!(listed[2].variants, ["6.1", "7.3"]);
    assert!(listed[0].outcomes.is_empty());

    let error = store.find_experiment("nuna").unwrap_err().to_string();
    assert!(
        error.ends_with("no experiment `nuna`; existing names: 1, numa (2 of that name)"),
        "{error}"
    );
}

#[test]
fn a_lock_does_not_change_the_experiment() {
    let (_file, mut store) = StoreFile::opened();
    let lock = |taken| UserspaceLock {
        architecture: "amd64".into(),
        suites: vec!["bookworm".into()],
        taken,
        packages: Vec::new(),
    };
    let free = experiment("numa");
    let pinned = Experiment { userspace: Some(lock(1)), ..free.clone() };
    let later = Experiment { userspace: Some(lock(2)), ..free.clone() };
    let auto = |of: &Experiment| Experiment {
        sequential: Some(Sequential { margin: 0.01, budget: None }),
        ..of.clone()
    };
    let id = store.keep_experiment(&free).unwrap();
    for (now, expected) in [
        (&free, &free),
        (&pinned, &pinned),
        (&free, &pinned),
        (&later, &later),
        (&auto(&free), &auto(&later)),
        (&auto(&pinned), &auto(&pinned)),
        (&free, &auto(&pinned)),
    ] {
        assert_eq!(store.keep_experiment(now).unwrap(), id);
        assert_eq!(&store.experiment(id).unwrap(), expected);
    }
    let other = Experiment { userspace_digest: "00".into(), ..pinned };
    assert_ne!(store.keep_experiment(&other).unwrap(), id);
}

#[test]
fn looks_do_not_change_the_experiment() {
    let (_file, mut store) = StoreFile::opened();
    let fixed = experiment("numa");
    let id = store.keep_experiment(&fixed).unwrap();
    let auto = |margin, boots| Experiment {
        boots,
        sequential: Some(Sequential { margin, budget: None }),
        ..fixed.clone()
    };
    for (now, expected) in [
        (auto(0.01, 32), auto(0.01, 32)),
        (auto(0.02, 8), auto(0.02, 32)),
        (fixed.clone(), auto(0.02, 32)),
    ] {
        assert_eq!(store.keep_experiment(&now).unwrap(), id);
        assert_eq!(store.experiment(id).unwrap(), expected);
    }
}
