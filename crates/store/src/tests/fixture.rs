//! Contents with every kind of experiment and boot. The files in `fixtures/` have them, each in its version of the
//! schema. The contents never change. Fields that were added later have their defaults.

use std::fs;

use model::{Boot, Experiment, Mode, Outcome, Place, Profile, Sampled, Slice};

use super::{StoreFile, boot, experiment, reading};
use crate::sqlite::Sqlite;
use crate::{Archive, Detail, ExperimentRow, Standing};

/// Keeps the contents in an empty store.
pub fn fill(store: &mut Sqlite) {
    let numa = store.keep_experiment(&experiment("numa"), &reading()).unwrap();
    let outcomes = [
        Outcome::Complete,
        Outcome::Interrupted,
        Outcome::Partial("workload nas, iteration 0: signal 9 ended it".into()),
        Outcome::Panicked("Kernel panic - not syncing: VFS".into()),
        Outcome::TimedOut("boot: 180s".into()),
        Outcome::Died("signal 9".into()),
    ];
    for (boot_index, outcome) in (0..).zip(outcomes) {
        store.keep_boot(numa, &boot("6.1", boot_index, outcome)).unwrap();
        store.keep_boot(numa, &boot("7.3", boot_index, Outcome::Complete)).unwrap();
    }
    store
        .keep(numa, &boot("6.1", 6, Outcome::Invalid("signal 6".into())), &[], Standing::Aside)
        .unwrap();
    store.keep_boot(numa, &boot("6.1", 6, Outcome::Complete)).unwrap();
    store.keep(numa, &boot("6.1", 3, Outcome::Complete), &[], Standing::Instead).unwrap();
    store.keep_boot(numa, &boot("6.1", 1, Outcome::Failed("no sysctl".into()))).unwrap();
    store.keep_boot(numa, &odd()).unwrap();
    store.note_experiment(numa, "with the \u{fc}ber-patch").unwrap();

    let removed = store.keep_experiment(&experiment("removed"), &reading()).unwrap();
    let exact = Experiment { mode: Mode::Exact, boots: 3, ..experiment("exact") };
    let exact = store.keep_experiment(&exact, &reading()).unwrap();
    for (variant, boot_index) in [("6.1", 0), ("7.3", 0), ("6.1", 1), ("7.3", 1)] {
        store.keep_boot(exact, &boot(variant, boot_index, Outcome::Complete)).unwrap();
    }
    let sampled = store.keep_experiment(&experiment("samples"), &reading()).unwrap();
    for (boot_index, has_programs) in [(0, false), (1, true)] {
        store.keep_boot(sampled, &with_samples(boot_index, has_programs)).unwrap();
    }
    store.rename_experiment(sampled, "sampled").unwrap();
    let last = store.keep_experiment(&experiment("last"), &reading()).unwrap();
    store.keep_boot(last, &boot("6.1", 0, Outcome::Complete)).unwrap();
    store.remove_experiment(removed).unwrap();
    store.remove_experiment(last).unwrap();
    // The most recent experiment is not the one with the highest number.
    store.keep_experiment(&experiment("numa"), &reading()).unwrap();
}

/// A boot with extreme numbers, and without texts, series and profiles.
fn odd() -> Boot {
    let mut odd = boot("7.3", u32::MAX, Outcome::Complete);
    odd.facts = Default::default();
    odd.chunks[0].times.clear();
    odd.chunks[0].columns.clear();
    odd.chunks.truncate(1);
    odd.profiles.clear();
    odd.samples[0].value = f64::INFINITY;
    odd.samples[1].value = f64::NAN;
    odd.host.steal = f64::NAN;
    odd.host.wall = 61.123_456_789_012_345;
    odd.usage[0].user = f64::NAN;
    odd.console.clear();
    odd
}

/// A boot with sampled profiles, with or without call paths in programs.
fn with_samples(boot_index: u32, has_programs: bool) -> Boot {
    let mut boot = boot("6.1", boot_index, Outcome::Complete);
    for profile in &mut boot.profiles {
        profile.sampled = Some(Sampled {
            event: "cycles".into(),
            frequency: 99,
            begun: 1,
            ended: 20,
            lost: 3,
            dropped: 4,
            slices: vec![Slice { ended: 10, samples: vec![(0, 7)] }],
        });
        let functions = if has_programs { vec!["main".into()] } else { Vec::new() };
        let process = Place::Process { id: 7, name: "autonuma".into(), functions };
        let path = Place::Path(vec!["do_anonymous_page".into(); 2]);
        profile.costs = Profile::sampled_costs([(path, 9), (process, 1)], |_| "".into());
    }
    boot
}

/// A file of a version of the schema, with the contents of [`fill`].
pub fn file_of(version: i64) -> StoreFile {
    let name = format!("{}/src/tests/fixtures/{version}.db.zst", env!("CARGO_MANIFEST_DIR"));
    let file = StoreFile::new();
    fs::create_dir_all(file.path.parent().unwrap()).unwrap();
    let packed = fs::read(name).unwrap();
    fs::write(&file.path, zstd::decode_all(&*packed).unwrap()).unwrap();
    file
}

/// Everything in a store as text. Values are not compared, because some are NaN, which is not equal to itself.
pub fn contents(store: &Sqlite) -> Vec<String> {
    let rows = store.experiments().unwrap().into_iter().map(|row| {
        assert!(row.created > 1_700_000_000, "{row:?}");
        let id = row.id;
        let (experiment, reading) = (store.experiment(id), store.reading(id));
        let boots = store.boots(id, Detail::Whole).unwrap();
        let ends = store.boots(id, Detail::Ends(&["vmstat", "workload"])).unwrap();
        // Older profiles are packed otherwise.
        assert!(row.size > 0 || row.outcomes.is_empty(), "{row:?}");
        let row = ExperimentRow { created: 0, size: 0, ..row };
        let contents = format!("{row:?} {experiment:?} {reading:?} {:?}", store.done(id));
        let boots = boots.iter().chain(&ends).map(|kept| format!("{kept:?}"));
        [contents].into_iter().chain(boots).collect::<Vec<_>>()
    });
    rows.flatten().collect()
}

/// Writes the file of the present version to the path in `FAULTLINE_TEST_FIXTURE`; does nothing without the variable.
#[test]
fn maker() {
    let Some(path) = std::env::var_os("FAULTLINE_TEST_FIXTURE") else { return };
    fill(&mut Sqlite::open(path.as_ref()).unwrap());
}
