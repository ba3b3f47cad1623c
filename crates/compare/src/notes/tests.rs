use kernelfiles::klog;
use model::{Execution, Host, Note, NoteKind, Outcome, Pinned, Problem, Setting, Variant};

use super::*;
use crate::testing::{boot, columns, failed, named, variant};

fn problem(kind: ProblemKind, text: &str) -> Problem {
    Problem { kind, text: text.into() }
}

fn of_one(boots: &[Boot]) -> Notes {
    notes(&columns(&[variant("a")], &[boots]))
}

#[test]
fn variants_without_a_log_are_named() {
    let mut boots = [boot(0), boot(1)];
    assert!(of_one(&boots).without_log.is_empty());
    boots[1].notes = vec![Note::no_log()];
    assert_eq!(of_one(&boots).without_log, ["a"]);
}

#[test]
fn equal_complaints_are_listed_once_with_their_boots() {
    let mut boots = [boot(0), failed(1, "timeout")];
    boots[0].problems = vec![
        problem(ProblemKind::Stall, "rcu: INFO: stall"),
        problem(ProblemKind::Warning, "WARNING: at mm/vmscan.c:1"),
        problem(ProblemKind::Taint, &klog::taint(1 << 13).unwrap()),
    ];
    boots[1].problems = vec![problem(ProblemKind::Stall, "rcu: INFO: stall"); 2];
    let complaints = of_one(&boots).complaints;
    let said: Vec<_> = complaints.iter().map(|it| (it.kind, &*it.text, named(&it.boots))).collect();
    assert_eq!(
        said,
        [
            (ProblemKind::Warning, "WARNING: at mm/vmscan.c:1", "b0".into()),
            (ProblemKind::Stall, "rcu: INFO: stall", "b0 b1 b1".into()),
        ]
    );
}

#[test]
fn unmeasured_figures_are_reported_for_boots_that_count() {
    let mut boots = [boot(0), boot(1), failed(2, "no answer")];
    let quick = NoteKind::TooQuick.note("SeqRead-1");
    for boot in &mut boots {
        boot.notes = vec!["created 40 files".into(), quick.clone(), quick.clone()];
    }
    let [told] = of_one(&boots).unmeasured.try_into().unwrap();
    assert_eq!((told.text, named(&told.boots)), (quick.to_string(), "b0 b1".into()));
}

#[test]
fn a_higher_load_in_sessions_of_one_variant_is_noted() {
    let noted = |loads: [f64; 3], execution| {
        let made = |(number, (name, load)): (u32, (&str, f64))| {
            let mut boot = Boot { variant: name.into(), ..boot(number) };
            boot.facts.provenance.execution = Some(execution);
            boot.host.load_before = load;
            boot
        };
        let boots = (0..).zip(["a", "b", "b"].into_iter().zip(loads)).map(made);
        let boots: Vec<Boot> = boots.collect();
        let variants = [variant("a"), variant("b")];
        let facts = notes(&columns(&variants, &[&boots[..1], &boots[1..]])).facts;
        facts.into_iter().find(|it| it.name == "load").map(|it| it.values)
    };
    let said = |mean| Some(format!("{mean} on average when its sessions began"));
    let loads = [0.5, 1.0, 3.0];
    assert_eq!(noted(loads, Execution::Native), Some(vec![said("0.5"), said("2.0")]));
    assert_eq!(noted([0.5, 1.0, 1.5], Execution::Native), None);
    assert_eq!(noted([f64::NAN, 1.0, 3.0], Execution::Native), None);
    // In a VM the guest's load is not that of the host.
    assert_eq!(noted(loads, Execution::Kvm), None);
}

#[test]
fn what_changed_on_a_host_is_noted_with_its_sessions() {
    let mut boots = [boot(0), boot(1)];
    let hot = on_host::remarks(&Host::default(), &Host::default(), 3).remove(0);
    boots[1].notes = vec!["filled".into(), hot.clone()];
    let [told] = of_one(&boots).on_host.try_into().unwrap();
    assert_eq!((told.text, named(&told.boots)), (hot.text, "b1".into()));
}

#[test]
fn what_workloads_left_is_reported() {
    let mut boots = [boot(0), boot(1), boot(2)];
    let left = Note::from("left by fill: 312 MiB of memory in use");
    boots[0].notes = vec!["filled".into(), left.clone()];
    boots[1].notes = vec![left.clone()];
    boots[1].outcome = Outcome::Partial("after: signal 9 killed it".into());
    let [told] = of_one(&boots).left.try_into().unwrap();
    assert_eq!((told.text, named(&told.boots)), (left.to_string(), "b0 b1".into()));
}

#[test]
fn kernels_without_huge_pages_are_said_to_be_so() {
    let with = |thp: &str| {
        let note = format!("found by w: THP = {thp}; swap = none");
        [Boot { notes: vec![note.as_str().into()], ..boot(0) }]
    };
    let facts = |one: &str, other: &str| {
        let (one, other) = (with(one), with(other));
        let facts = notes(&columns(&[variant("a"), variant("b")], &[&one, &other])).facts;
        facts.into_iter().find(|it| it.name == "THP").map(|it| it.values)
    };
    assert_eq!(facts("never", "never"), Some(vec![Some("never".into()); 2]));
    assert_eq!(facts("always", "never"), None);
    assert_eq!(facts("always", "always"), None);
    assert!(of_one(&[boot(0)]).facts.iter().all(|it| it.name != "THP"));
}

#[test]
fn states_in_which_columns_differ_are_reported() {
    let noted =
        |notes: &[&str]| [Boot { notes: notes.iter().map(|it| (*it).into()).collect(), ..boot(0) }];
    let states = |one: &[&str], other: &[&str]| {
        let (one, other) = (noted(one), noted(other));
        let notes = notes(&columns(&[variant("a"), variant("b")], &[&one, &other]));
        let line = |fact: Fact| {
            let values = fact.values.into_iter().map(|it| it.unwrap_or("-".into()));
            format!("{}: {}", fact.name, values.collect::<Vec<_>>().join(" | "))
        };
        notes.states.into_iter().map(line).collect::<Vec<_>>()
    };
    let found = "found by w: THP = always; MGLRU = 0x0007; swap = none";
    assert_eq!(states(&[found], &[found, "created 40 files"]), [""; 0]);
    assert_eq!(states(&[found], &[]), [""; 0]);
    assert_eq!(
        states(&[found], &["found by w: THP = never; swap = none"]),
        ["THP: always | never", "MGLRU: 0x0007 | not in this kernel"]
    );
    assert_eq!(
        states(&["found by w: THP = always"], &["found by w: THP = always; zswap = N"]),
        [""; 0]
    );
    // Kernels without mTHP, and with it switched off, have huge pages of the usual size.
    let usual =
        "found by w: THP = always; mTHP = 16 to 1024 kB never, 2048 kB inherit; MGLRU = 0x0000";
    assert_eq!(states(&["found by w: THP = always"], &[usual]), [""; 0]);
    let large = "found by w: THP = always; mTHP = 64 to 16384 kB never, 32768 kB inherit";
    assert_eq!(states(&[large], &[usual]), [""; 0]);
    let small = usual.replace("2048 kB inherit", "2048 kB always");
    assert_eq!(
        states(&["found by w: THP = always"], &[&small]),
        ["mTHP: not in this kernel | 16 to 1024 kB never, 2048 kB always"]
    );
    let later = "found by x: THP = never; MGLRU = 0x0007; swap = none";
    assert_eq!(states(&[found, later], &[found]), ["THP: always for w, never for x | always"]);
}

#[test]
fn pages_of_other_sizes_are_another_state() {
    let sized = |page_size: u64| {
        let mut boot = boot(0);
        boot.facts.page_size = page_size;
        [boot]
    };
    let told = |one: u64, other: u64| {
        let (one, other) = (sized(one), sized(other));
        let variants = ["a", "b"].map(variant);
        let columns = columns(&variants, &[&one, &other]);
        (notes(&columns).states, pages(&columns.try_into().unwrap()))
    };
    let values = ["4 KiB (huge pages: 2 MiB)", "16 KiB (huge pages: 32 MiB)"];
    let values = values.map(|it| Some(it.to_owned())).into();
    let fact = Fact { name: PAGE_SIZE, values };
    let sizes = [4 << 10, 16 << 10];
    assert_eq!(told(sizes[0], sizes[1]), (vec![fact], Some(sizes)));
    for [one, other] in [[4 << 10; 2], [0, 4 << 10], [0, 0]] {
        assert_eq!(told(one, other), (vec![], None));
    }
}

#[test]
fn states_that_the_variants_set_are_no_difference() {
    let noted = |value: &str| {
        let note = format!("found by w: MGLRU = {value}");
        [Boot { notes: vec![note.as_str().into()], ..boot(0) }]
    };
    let setting = |kernel: &str, value: Option<&str>| {
        let path = "/sys/kernel/mm/lru_gen/enabled".to_owned();
        let sysfs = |value: &str| Setting::Sysfs { path: path.clone(), value: value.to_owned() };
        let settings = value.map(sysfs).into_iter().collect();
        Variant { kernel: Pinned::from(kernel), settings, ..variant("v") }
    };
    let differ = |variants: [Variant; 2], values: [&str; 2]| {
        let [one, other] = values.map(noted);
        !notes(&columns(&variants, &[&one, &other])).states.is_empty()
    };
    let (on, off) = (Some("y"), Some("n"));
    let states = ["0x0007", "0x0000"];
    assert!(!differ([setting("a", on), setting("b", off)], states));
    assert!(!differ([setting("a", None), setting("a", off)], states));
    // Another kernel may be in another state by itself, and a setting may have no effect.
    assert!(differ([setting("a", None), setting("b", off)], states));
    assert!(differ([setting("a", None), setting("a", None)], states));
    assert!(differ([setting("a", on), setting("b", on)], states));
}

#[test]
fn sizes_of_huge_pages_that_the_variants_set_are_no_difference() {
    let differ = |path: &str| {
        let variants = ["never", "always"].map(|value| Variant {
            settings: vec![Setting::Sysfs { path: path.into(), value: value.into() }],
            ..variant("v")
        });
        let [one, other] =
            ["64 kB never, 2048 kB inherit", "64 kB always, 2048 kB inherit"].map(|it| Boot {
                notes: vec![(&*format!("found by w: mTHP = {it}")).into()],
                ..boot(0)
            });
        !notes(&columns(&variants, &[&[one], &[other]])).states.is_empty()
    };
    let thp = "/sys/kernel/mm/transparent_hugepage";
    assert!(!differ(&format!("{thp}/hugepages-64kB/enabled")));
    assert!(differ(&format!("{thp}/hugepages-64kB/shmem_enabled")));
}

#[test]
fn data_that_was_not_imported_is_reported() {
    let mut boots = [boot(0), boot(1)];
    let unread = NoteKind::NotRead.note("pgbench, iteration 0: x.log: cut off");
    let missing = NoteKind::Missing.note("pgbench, iteration 0: txn-4");
    boots[0].notes = vec![unread.clone(), missing.clone()];
    let told = of_one(&boots).unmeasured;
    let told: Vec<_> = told.iter().map(|it| (&*it.text, named(&it.boots))).collect();
    assert_eq!(told, [(&*missing.to_string(), "b0".into()), (&*unread.to_string(), "b0".into())]);
}

#[test]
fn differences_between_boots_of_a_variant_are_reported() {
    let mut boots = [boot(0), boot(1), failed(2, "no answer")];
    boots[0].facts.provenance.emulator = "QEMU 10.0.2".into();
    boots[1].facts.provenance.emulator = "QEMU 10.0.3".into();
    boots[2].facts.provenance.execution = Some(Execution::Kvm);
    let [mixed] = of_one(&boots).mixed.try_into().unwrap();
    assert_eq!(mixed.what, "emulator");
    assert_eq!(mixed.values, ["QEMU 10.0.2", "QEMU 10.0.3"]);
}

/// A boot on the host with this digit in its identity.
fn on(host: &str, number: u32) -> Boot {
    let mut boot = boot(number);
    let host = Host {
        id: host.repeat(64),
        cpu: "EPYC".into(),
        kernel: format!("6.1.{host}"),
        ..Host::default()
    };
    boot.facts.provenance.host = host;
    boot
}

#[test]
fn hosts_of_one_variant_are_named() {
    let of = |boots: &[Boot]| {
        let mixed = of_one(boots).mixed.into_iter();
        mixed.map(|it| format!("{}: {}", it.what, it.values.join("; "))).collect::<Vec<_>>()
    };
    assert_eq!(of(&[on("1", 0), on("1", 1)]), [""; 0]);
    let two = ["made on: EPYC (11111111); EPYC (22222222)", "host's kernel: 6.1.1; 6.1.2"];
    assert_eq!(of(&[on("1", 0), on("2", 1)]), two);
    let old = ["made on: EPYC (11111111); unknown", "host's kernel: unknown; 6.1.1"];
    assert_eq!(of(&[boot(0), on("1", 1)]), old);
}

#[test]
fn columns_of_different_hosts_and_programs_are_told() {
    let told = |base: &[Boot], new: &[Boot]| {
        let facts = notes(&columns(&[variant("a"), variant("b")], &[base, new])).facts;
        let made = facts.into_iter().filter(|it| MADE.iter().any(|(name, _)| *name == it.name));
        made.map(|it| (it.name, it.values)).collect::<Vec<_>>()
    };
    let mut other = on("1", 0);
    assert_eq!(told(&[on("1", 0)], &[other.clone()]), []);
    assert_eq!(told(&[on("1", 0)], &[]), []);
    let hosts = ["EPYC (11111111)", "EPYC (22222222)"].map(|it| Some(it.to_owned()));
    assert_eq!(told(&[on("1", 0)], &[on("2", 0)]), [("made on", hosts.to_vec())]);
    other.facts.provenance.programs.plugin = "ab".repeat(32);
    let plugins = ["unknown", "abababababab"].map(|it| Some(it.to_owned()));
    assert_eq!(told(&[on("1", 0)], &[other]), [("plugin", plugins.to_vec())]);
}

#[test]
fn the_hosts_load_is_a_range_over_complete_boots() {
    let mut boots = [boot(0), boot(1), failed(2, "no answer")];
    for (boot, load) in boots.iter_mut().zip([1.0, 3.0, 9.0]) {
        boot.host.load_before = load;
        boot.host.load_after = load / 2.0;
        boot.host.steal = load / 100.0;
    }
    let [host] = of_one(&boots).host.try_into().unwrap();
    assert_eq!((host.load, host.steal), (Some([0.5, 3.0]), Some([1.0, 3.0])));
    assert_eq!(of_one(&[]).host, []);
}

#[test]
fn unknown_figures_of_the_host_are_skipped() {
    let mut boots = [boot(0), boot(1)];
    boots[0].host.load_before = f64::NAN;
    boots[0].host.load_after = 2.0;
    boots[1].host.load_before = 4.0;
    boots[1].host.load_after = f64::INFINITY;
    for boot in &mut boots {
        boot.host.steal = f64::NAN;
    }
    let [host] = of_one(&boots).host.try_into().unwrap();
    assert_eq!((host.load, host.steal), (Some([2.0, 4.0]), None));
    for boot in &mut boots {
        boot.host.load_before = f64::NAN;
        boot.host.load_after = f64::NAN;
    }
    assert_eq!(of_one(&boots).host, []);
}

#[test]
fn boots_set_aside_do_not_complain() {
    let mut boots = [boot(0), boot(0), failed(1, "no answer"), failed(1, "no answer")];
    boots[0].outcome = Outcome::Interrupted;
    for boot in &mut boots {
        boot.problems = vec![problem(ProblemKind::Bug, "BUG: x")];
    }
    let variants = [variant("a")];
    let mut columns = columns(&variants, &[&boots]);
    columns[0].boots[2].superseded = true;
    let [complaint] = notes(&columns).complaints.try_into().unwrap();
    assert_eq!(complaint.boots, [BootId(1), BootId(3)]);
}

#[test]
fn settings_are_noted_if_a_variant_has_some() {
    let facts = |variants: &[Variant]| {
        let facts = notes(&columns(variants, &[&[], &[]])).facts;
        facts.into_iter().map(|fact| (fact.name, fact.values)).collect::<BTreeMap<_, _>>()
    };
    let mut variants = [variant("a"), variant("b")];
    assert!(!facts(&variants).contains_key("settings"));
    let off = Setting::Sysctl { name: "kernel.numa_balancing".into(), value: "0".into() };
    variants[1].settings = vec![off];
    let facts = facts(&variants);
    let values = [Some(String::new()), Some("kernel.numa_balancing=0".into())];
    assert_eq!(facts["settings"], values);
    assert!(!facts.contains_key("modules"));
}

#[test]
fn facts_come_from_a_complete_boot_if_there_is_one() {
    let mut boots = [failed(0, "no answer"), boot(1)];
    boots[1].facts.release = "6.1.0".into();
    let kernel = |boots| of_one(boots).facts[0].values.clone();
    assert_eq!(kernel(&boots), [Some("6.1.0".into())]);
    assert_eq!(kernel(&boots[..1]), [None]);
    assert_eq!(kernel(&[]), [None]);
}
