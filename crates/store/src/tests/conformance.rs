//! The tests that every implementation of [`Archive`] passes. `suite!` makes them for one implementation.

use std::ops::ControlFlow;

use model::{
    Boot, Experiment, Manifest, Mode, Outcome, Privilege, Profile, Sequential, Target,
    UserspaceLock,
};

use super::{as_kept, boot, experiment, reading};
use crate::{Archive, Detail, Error, ExperimentId, ExperimentRow, Standing, Trouble};

/// A place with a store for one test. The store is empty at first.
pub trait Place {
    /// Opens the store.
    fn open(&self) -> Box<dyn Archive>;
}

/// Makes the tests of an implementation. Each test evaluates the expression to get its place.
macro_rules! suite {
    ($place:expr) => {
        suite! { $place =>
            a_boot_is_read_back_unchanged
            only_requested_parts_are_read
            ends_of_series_give_their_differences
            subjects_of_patches_are_kept_and_no_part_of_the_identity
            an_empty_boot_and_odd_numbers_are_kept
            a_boot_is_kept_once_unless_interrupted
            failed_boots_count_until_they_are_replaced
            a_boot_kept_aside_is_not_done
            invalid_boots_are_set_aside_and_others_are_not
            the_same_definition_is_the_same_experiment
            other_readings_of_figures_are_the_same_experiment
            a_name_means_the_experiment_last_kept
            a_lock_does_not_change_the_experiment
            looks_do_not_change_the_experiment
            a_name_means_the_most_recent_experiment
            a_renamed_experiment_is_found_by_its_new_name
            the_size_of_an_experiment_is_the_size_of_its_boots
            remarks_are_part_of_rows
            numbers_of_removed_ones_are_not_used_again
            rows_are_passed_most_recent_first_until_it_breaks
            kin_have_the_same_kernels_in_a_mode
        }
    };
    ($place:expr => $($name:ident)*) => {
        $(#[test]
        fn $name() {
            crate::tests::conformance::$name(&$place);
        })*
    };
}
pub(super) use suite;

/// A store with the experiment `numa`.
fn with_numa(place: &dyn Place) -> (Box<dyn Archive>, ExperimentId) {
    let mut store = place.open();
    let id = store.keep_experiment(&experiment("numa"), &reading()).unwrap();
    (store, id)
}

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

pub fn a_boot_is_read_back_unchanged(place: &dyn Place) {
    let (mut store, id) = with_numa(place);
    let outcomes = failures().into_iter().chain([Outcome::Complete, Outcome::Interrupted]);
    let boots: Vec<_> = (0..).zip(outcomes).map(|(n, outcome)| boot("6.1", n, outcome)).collect();
    let ids: Vec<_> = boots.iter().map(|boot| store.keep_boot(id, boot).unwrap()).collect();

    let store = place.open();
    let expected: Vec<_> = ids.into_iter().zip(&boots).map(|(id, it)| as_kept(id, it)).collect();
    assert_eq!(store.boots(id, Detail::Whole).unwrap(), expected);
    for kept in expected {
        assert_eq!(store.boot(kept.id).unwrap(), (id, kept));
    }
}

pub fn only_requested_parts_are_read(place: &dyn Place) {
    let (mut store, id) = with_numa(place);
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

pub fn ends_of_series_give_their_differences(place: &dyn Place) {
    let (mut store, id) = with_numa(place);
    let whole = boot("6.1", 0, Outcome::Complete);
    assert!(whole.chunks.iter().all(|chunk| chunk.times.len() > 2));
    store.keep_boot(id, &whole).unwrap();
    let read =
        |store: &dyn Archive| store.boots(id, Detail::Ends(&["vmstat"])).unwrap().remove(0).boot;
    let ends = read(&*store);
    assert_eq!(ends.profiles.len(), whole.profiles.len());
    for (own, whole) in ends.profiles.iter().zip(&whole.profiles) {
        let id = |it: &Profile| (it.workload.clone(), it.iteration, it.phase.clone());
        assert_eq!(id(own), id(whole));
        assert_eq!(own.costs.costs(), whole.costs.costs());
        assert_eq!(own.costs.places(), [model::Place::Memory(Privilege::User, Target::Node(1))]);
        assert_eq!(own.costs.cells(), &whole.costs.cells()[..2]);
    }
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

pub fn subjects_of_patches_are_kept_and_no_part_of_the_identity(place: &dyn Place) {
    let (mut store, id) = with_numa(place);
    let mut series = reading();
    let step = |patch: &str| Some(model::PatchStep { after: "6.1".into(), patch: patch.into() });
    for patch in ["mm: one", "mm: other words"] {
        series.variants.get_mut("7.3").unwrap().step = step(patch);
        assert_eq!(store.keep_experiment(&experiment("numa"), &series).unwrap(), id);
        assert_eq!(store.reading(id).unwrap(), series);
    }
}

pub fn an_empty_boot_and_odd_numbers_are_kept(place: &dyn Place) {
    let (mut store, id) = with_numa(place);
    let mut odd = boot("", u32::MAX, Outcome::Died(String::new()));
    odd.facts = Default::default();
    let to = vec![model::MailAddress { name: "\u{e9}".into(), address: "a@b".into() }];
    let mail = model::PatchMail { message_id: "<1@b>".into(), to, ..Default::default() };
    odd.facts.patched = Some(model::Patched { mail: Some(mail), ..Default::default() });
    odd.chunks[0].times.clear();
    odd.chunks[0].columns.clear();
    odd.chunks.truncate(1);
    odd.samples[0].value = f64::INFINITY;
    odd.samples[1].value = f64::NAN;
    odd.host.steal = f64::NAN;
    odd.console.clear();
    let kept = store.keep_boot(id, &odd).unwrap();
    let read = store.boot(kept).unwrap().1.boot;
    assert!(read.samples[1].value.is_nan() && read.host.steal.is_nan());
    // NaN is not equal to itself, so the texts are compared.
    assert_eq!(format!("{read:?}"), format!("{odd:?}"));
}

pub fn a_boot_is_kept_once_unless_interrupted(place: &dyn Place) {
    let (mut store, id) = with_numa(place);
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
    let other = store.keep_experiment(&experiment("other"), &reading()).unwrap();
    store.keep_boot(other, &boot("7.3", 0, Outcome::Complete)).unwrap();
    assert_eq!(store.done(id).unwrap(), done);
}

pub fn failed_boots_count_until_they_are_replaced(place: &dyn Place) {
    let (mut store, id) = with_numa(place);
    let other = store.keep_experiment(&experiment("other"), &reading()).unwrap();
    for (boot_index, outcome) in (0..).zip(failures()) {
        store.keep_boot(id, &boot("6.1", boot_index, outcome.clone())).unwrap();
        store.keep_boot(other, &boot("6.1", boot_index, outcome)).unwrap();
    }
    store.keep_boot(id, &boot("7.3", 0, Outcome::Complete)).unwrap();
    store.keep_boot(id, &boot("7.3", 1, Outcome::Interrupted)).unwrap();

    let failed: Vec<(String, u32)> = (0..6).map(|boot_index| ("6.1".into(), boot_index)).collect();
    assert_eq!(store.failed(id).unwrap(), failed);
    for (boot_index, outcome) in (0..).zip(failures()) {
        // The invalid and the interrupted boot are not done.
        assert_eq!(store.done(id).unwrap().len(), 6);
        store.keep(id, &boot("6.1", boot_index, outcome), &[], Standing::Instead).unwrap();
    }
    assert_eq!(store.done(id).unwrap().len(), 6);
    assert!(store.boots(other, Detail::Summary).unwrap().iter().all(|kept| !kept.superseded));
    // A complete boot is never replaced.
    assert!(store.keep(id, &boot("7.3", 0, Outcome::Complete), &[], Standing::Instead).is_err());
    let boots = store.boots(id, Detail::Summary).unwrap();
    let superseded: Vec<bool> = boots.iter().map(|kept| kept.superseded).collect();
    assert_eq!(superseded, [[true; 6].as_slice(), &[false; 8]].concat());
    assert!(store.boot(boots[0].id).unwrap().1.superseded);

    let rows = store.experiments().unwrap();
    let row = rows.iter().find(|row| row.id == id).unwrap();
    let count = |word: &str| row.outcomes.get(word).copied();
    let words = "complete partial failed panicked timed-out died invalid interrupted";
    assert!(words.split(' ').all(|word| count(word) == Some(1)));
    assert_eq!(row.superseded, 6);
}

pub fn a_boot_kept_aside_is_not_done(place: &dyn Place) {
    let (mut store, id) = with_numa(place);
    let invalid = boot("6.1", 0, Outcome::Invalid("signal 6".into()));
    let aside = store.keep(id, &invalid, &[], Standing::Aside).unwrap();
    assert_eq!(store.done(id).unwrap(), []);
    let kept = store.keep_boot(id, &boot("6.1", 0, Outcome::Complete)).unwrap();
    let boots = store.boots(id, Detail::Summary).unwrap();
    let found: Vec<_> = boots.iter().map(|kept| (kept.id, kept.superseded)).collect();
    assert_eq!(found, [(aside, true), (kept, false)]);
    assert!(store.keep(id, &invalid, &[], Standing::Aside).is_err());
    // The repeat of a failed boot can be invalid, too. The failed boot keeps its place until a repeat succeeds.
    store.keep_boot(id, &boot("6.1", 1, Outcome::Failed("no sysctl".into()))).unwrap();
    let invalid = boot("6.1", 1, Outcome::Invalid("signal 6".into()));
    store.keep(id, &invalid, &[], Standing::Aside).unwrap();
    assert_eq!(store.failed(id).unwrap(), [("6.1".to_owned(), 1)]);
    store.keep(id, &boot("6.1", 1, Outcome::Complete), &[], Standing::Instead).unwrap();
    assert_eq!(store.failed(id).unwrap(), []);
}

pub fn invalid_boots_are_set_aside_and_others_are_not(place: &dyn Place) {
    let (mut store, id) = with_numa(place);
    let outcomes = [
        Outcome::Complete,
        Outcome::Invalid("signal 9".into()),
        Outcome::Panicked("BUG".into()),
        Outcome::Invalid("signal 9".into()),
    ];
    for (boot_index, outcome) in (0..).zip(outcomes) {
        store.keep_boot(id, &boot("6.1", boot_index, outcome)).unwrap();
    }
    for _ in 0..2 {
        store.set_invalid_aside(id).unwrap();
        assert_eq!(store.done(id).unwrap(), [("6.1".into(), 0), ("6.1".into(), 2)]);
        let boots = store.boots(id, Detail::Summary).unwrap();
        let aside: Vec<bool> = boots.iter().map(|kept| kept.superseded).collect();
        assert_eq!(aside, [false, true, false, true]);
    }
}

pub fn the_same_definition_is_the_same_experiment(place: &dyn Place) {
    let mut store = place.open();
    let numa = experiment("numa");
    let with_boots = |boots| Experiment { boots, ..numa.clone() };
    let id = store.keep_experiment(&with_boots(3), &reading()).unwrap();
    for (boots, wanted) in [(3, 3), (7, 7), (2, 7)] {
        assert_eq!(store.keep_experiment(&with_boots(boots), &reading()).unwrap(), id);
        assert_eq!(store.experiment(id).unwrap(), with_boots(wanted));
    }
    let mut changed = numa.clone();
    changed.variants[1].cmdline.push_str(" nokaslr");
    let other = store.keep_experiment(&changed, &reading()).unwrap();
    assert_ne!(other, id);
    assert_eq!(store.experiment(other).unwrap(), changed);
    assert_eq!(store.experiment(id).unwrap(), with_boots(7));
}

pub fn other_readings_of_figures_are_the_same_experiment(place: &dyn Place) {
    let mut store = place.open();
    let first = experiment("numa");
    let id = store.keep_experiment(&first, &reading()).unwrap();
    let (mut later, mut other) = (first.clone(), reading());
    let manifest = &mut later.workloads[0].manifest;
    manifest.description.push('.');
    manifest.preparation.clear();
    other.workloads.get_mut("autonuma").unwrap().primary.clear();
    other.variants.get_mut("6.1").unwrap().axes.push(("thp".into(), "never".into()));
    let metric = &mut later.workloads[0].manifest.metrics[0];
    (metric.better, metric.mean, metric.primary) = (None, model::Mean::Gmean, true);
    (metric.rows, metric.decimals, metric.concurrent) = (model::Rows::Brief, Some(3), true);
    for (experiment, reading) in [(&later, &other), (&first, &reading())] {
        assert_eq!(store.keep_experiment(experiment, reading).unwrap(), id);
        assert_eq!(store.experiment(id).unwrap(), *experiment);
        assert_eq!(store.reading(id).unwrap(), *reading);
    }
    let changes: [fn(&mut Manifest); 4] = [
        |it| it.metrics[0].unit = "ms".into(),
        |it| it.metrics[0].name = "Time".into(),
        |it| it.command.push("--fast".into()),
        |it| it.packages.clear(),
    ];
    for change in changes {
        let mut other = first.clone();
        change(&mut other.workloads[0].manifest);
        assert_ne!(store.keep_experiment(&other, &reading()).unwrap(), id);
    }
}

pub fn a_name_means_the_experiment_last_kept(place: &dyn Place) {
    let mut store = place.open();
    let error = store.find_experiment("numa").unwrap_err().to_string();
    assert!(error.ends_with("no experiment `numa`; the store is empty"), "{error}");

    let mut changed = experiment("numa");
    changed.variants.truncate(1);
    let first = store.keep_experiment(&experiment("numa"), &reading()).unwrap();
    let second = store.keep_experiment(&changed, &reading()).unwrap();
    let numbered = store.keep_experiment(&experiment("1"), &reading()).unwrap();
    assert_eq!(store.find_experiment("numa").unwrap(), second);
    store.keep_experiment(&experiment("numa"), &reading()).unwrap();
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

pub fn a_lock_does_not_change_the_experiment(place: &dyn Place) {
    let mut store = place.open();
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
    let id = store.keep_experiment(&free, &reading()).unwrap();
    for (now, expected) in [
        (&free, &free),
        (&pinned, &pinned),
        (&free, &pinned),
        (&later, &later),
        (&auto(&free), &auto(&later)),
        (&auto(&pinned), &auto(&pinned)),
        (&free, &auto(&pinned)),
    ] {
        assert_eq!(store.keep_experiment(now, &reading()).unwrap(), id);
        assert_eq!(&store.experiment(id).unwrap(), expected);
    }
    let other = Experiment { userspace_digest: "00".into(), ..pinned };
    assert_ne!(store.keep_experiment(&other, &reading()).unwrap(), id);
}

pub fn looks_do_not_change_the_experiment(place: &dyn Place) {
    let mut store = place.open();
    let fixed = experiment("numa");
    let id = store.keep_experiment(&fixed, &reading()).unwrap();
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
        assert_eq!(store.keep_experiment(&now, &reading()).unwrap(), id);
        assert_eq!(store.experiment(id).unwrap(), expected);
    }
}

pub fn a_name_means_the_most_recent_experiment(place: &dyn Place) {
    let (mut store, [first, second]) = two(place);
    let tilde = store.keep_experiment(&experiment("numa~7"), &reading()).unwrap();
    let found = |name: &str| store.find_experiment(name).ok();
    assert_eq!(
        [found("numa"), found("numa~1"), found("numa~2")],
        [Some(second), Some(second), Some(first)]
    );
    assert_eq!(found("numa~7"), Some(tilde));
    assert_eq!([found("numa~3"), found("numa~0"), found("numa~x"), found("~1")], [None; 4]);
    let error = store.find_experiment("numa~3").unwrap_err().to_string();
    assert!(error.contains("existing names: numa (2 of that name), numa~7"), "{error}");
}

pub fn a_renamed_experiment_is_found_by_its_new_name(place: &dyn Place) {
    let (mut store, [first, second]) = two(place);
    store.rename_experiment(first, "before").unwrap();
    assert_eq!(store.check().unwrap().lost, []);
    assert_eq!(store.experiment(first).unwrap(), experiment("before"));
    assert_eq!(store.find_experiment("before").unwrap(), first);
    assert_eq!(store.find_experiment("numa").unwrap(), second);
    assert_eq!(store.experiments().unwrap().last().unwrap().id, second, "the order is unchanged");
    assert_eq!(store.keep_experiment(&experiment("before"), &reading()).unwrap(), first);
    // The old name makes another experiment.
    let again = store.keep_experiment(&experiment("numa"), &reading()).unwrap();
    assert!(again != first && again != second);
    let error = store.rename_experiment(first, "numa").unwrap_err().to_string();
    assert!(error.contains(&format!("experiment {again} has the name `numa` and the same")));
    assert_eq!(store.find_experiment("before").unwrap(), first);
    assert_eq!(store.check().unwrap().lost, []);
}

pub fn the_size_of_an_experiment_is_the_size_of_its_boots(place: &dyn Place) {
    let (mut store, [first, second]) = two(place);
    let size = |store: &dyn Archive, id| {
        store.experiments().unwrap().into_iter().find(|row| row.id == id).unwrap().size
    };
    let one = size(&*store, first);
    assert!(one > 500, "{one}");
    store.keep_boot(second, &boot("6.1", 1, Outcome::Complete)).unwrap();
    assert_eq!(size(&*store, first), one);
    assert!(size(&*store, second) > one + one / 2);
}

pub fn remarks_are_part_of_rows(place: &dyn Place) {
    let (mut store, [first, second]) = two(place);
    store.note_experiment(first, "with the \u{fc}ber-patch").unwrap();
    store.keep_experiment(&experiment("numa"), &reading()).unwrap();
    let note = |store: &dyn Archive, id| store.row(id).unwrap().note;
    let notes = [note(&*store, first), note(&*store, second)];
    assert_eq!(notes, ["with the \u{fc}ber-patch", ""]);
    store.note_experiment(first, "").unwrap();
    assert_eq!(note(&*store, first), "");
    assert!(store.note_experiment(ExperimentId(99), "x").is_err());
}

pub fn numbers_of_removed_ones_are_not_used_again(place: &dyn Place) {
    let (mut store, [first, second]) = two(place);
    let before = store.boots(first, Detail::Whole).unwrap();
    store.remove_experiment(second).unwrap();
    assert_eq!(store.boots(first, Detail::Whole).unwrap(), before);
    assert!(store.remove_experiment(second).is_err() && store.row(second).is_err());
    let next = store.keep_experiment(&experiment("other"), &reading()).unwrap();
    assert_eq!(next.0, second.0 + 1);
    let id = store.keep_boot(next, &boot("6.1", 0, Outcome::Complete)).unwrap();
    assert_eq!(id.0, 3);
    assert_eq!(store.boot(id).unwrap().0, next);
    assert_eq!(store.check().unwrap().lost, []);
}

pub fn rows_are_passed_most_recent_first_until_it_breaks(place: &dyn Place) {
    let (mut store, [first, second]) = two(place);
    let other = store.keep_experiment(&experiment("other"), &reading()).unwrap();
    let passed = |named: Option<&str>, most: usize| {
        let mut ids = Vec::new();
        let mut each = |row: ExperimentRow| {
            ids.push(row.id);
            if ids.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        store.each_row(named, &mut each).unwrap();
        ids
    };
    assert_eq!(passed(None, 9), [other, second, first]);
    assert_eq!(passed(None, 2), [other, second]);
    assert_eq!(passed(Some("numa"), 9), [second, first]);
    assert_eq!(passed(Some("none"), 9), []);
    for id in [first, second, other] {
        assert_eq!(store.row(id).unwrap().id, id);
    }
    let mut boots = 0;
    let mut each = |_| {
        boots += 1;
        ControlFlow::Break(())
    };
    store.keep_boot(first, &boot("7.3", 0, Outcome::Complete)).unwrap();
    store.each_boot(first, Detail::Summary, &mut each).unwrap();
    assert_eq!(boots, 1);
}

pub fn kin_have_the_same_kernels_in_a_mode(place: &dyn Place) {
    let (mut store, [first, second]) = two(place);
    let exact = |name: &str| Experiment { mode: Mode::Exact, ..experiment(name) };
    let mut turned = exact("turned");
    turned.variants.reverse();
    let turned = store.keep_experiment(&turned, &reading()).unwrap();
    let mut other = exact("other");
    other.variants[1].kernel = "debian:6.9".to_owned().into();
    store.keep_experiment(&other, &reading()).unwrap();
    let kin = |mode| store.kin(mode, &experiment("any")).unwrap();
    assert_eq!(kin(Mode::Measured), [second, first]);
    assert_eq!(kin(Mode::Exact), [turned]);
}

/// A store with two experiments that have the same name but different definitions, and a boot of each.
fn two(place: &dyn Place) -> (Box<dyn Archive>, [ExperimentId; 2]) {
    let mut store = place.open();
    let mut other = experiment("numa");
    other.workloads[0].iterations = 9;
    let ids = [experiment("numa"), other].map(|experiment| {
        let id = store.keep_experiment(&experiment, &reading()).unwrap();
        store.keep_boot(id, &boot("6.1", 0, Outcome::Complete)).unwrap();
        id
    });
    (store, ids)
}
