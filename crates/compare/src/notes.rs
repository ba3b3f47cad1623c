//! Notes on the columns: in what they differ besides the code, and what happened while the boots ran.

mod config;
pub mod consistency;
mod facts;

use std::collections::{BTreeMap, BTreeSet};

use model::{Boot, BootFacts, BootId, HostLoad, Note, NoteKind, ProblemKind, STATES, Variant};
use serde::Serialize;

use crate::{Counting, Finding, VariantBoots};

/// The beginnings of notes on figures that a boot lacks.
const LACKS: [NoteKind; 5] = [
    NoteKind::TooQuick,
    NoteKind::NotRead,
    NoteKind::Missing,
    NoteKind::NotCounted,
    NoteKind::Profile,
];

/// What else there is to know of the columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Notes {
    /// States of the kernels, as the workloads found them, in which the columns differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<Fact>,
    /// Facts that the boots report, and what their variants change.
    pub facts: Vec<Fact>,
    /// How the configurations of the columns differ from the baseline's.
    pub config: Vec<ConfigDifference>,
    /// Variants whose boots differ in what should be the same.
    pub mixed: Vec<Mixed>,
    /// What the kernels complained of.
    pub complaints: Vec<Complaint>,
    /// Names of variants with a boot whose kernel's log was not kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without_log: Vec<String>,
    /// Figures that workloads could not measure, or that were not imported.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmeasured: Vec<Unmeasured>,
    /// What workloads left, so that the next ones of the boot found another state.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Unmeasured>,
    /// What the host did.
    pub host: Vec<HostRange>,
    /// What does not add up between counters of one kernel.
    pub findings: Vec<Finding>,
    /// What the columns count differently from the baseline.
    pub counting: Vec<Counting>,
}

/// One fact in all columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// Its name, such as `preemption`.
    pub name: &'static str,
    /// One value per column; `None` where it is not known. For command lines, only the words that not all
    /// columns have.
    pub values: Vec<Option<String>>,
}

impl Fact {
    /// Whether the columns differ in it.
    pub fn differs(&self) -> bool {
        self.values.windows(2).any(|pair| pair[0] != pair[1])
    }
}

/// How the configuration of a column differs from the baseline's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigDifference {
    /// The variant's name.
    pub variant: String,
    /// Number of options that differ; none if a configuration is not known.
    pub differing: Option<usize>,
    /// Those of them that matter to memory management and scheduling.
    pub relevant: Vec<ConfigChange>,
}

/// An option that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigChange {
    /// Its name, such as `CONFIG_PREEMPT`.
    pub option: String,
    /// Its value in the baseline, `n` if it is not set; none if that kernel does not know it.
    pub baseline: Option<String>,
    /// Its value in the column, likewise.
    pub value: Option<String>,
}

/// Boots of one variant that differ in what should be the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mixed {
    /// The variant's name.
    pub variant: String,
    /// What differs, such as `emulator`.
    pub what: &'static str,
    /// The values found.
    pub values: Vec<String>,
}

/// A complaint of a variant's kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Complaint {
    /// The variant's name.
    pub variant: String,
    /// Its kind.
    pub kind: ProblemKind,
    /// The kernel's own line, without its time.
    pub text: String,
    /// Names of the boots in which it was made, one entry per occurrence.
    pub boots: Vec<BootId>,
}

/// Figures that a workload could not measure in some of a variant's complete boots, or that were not imported; or what
/// a workload left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unmeasured {
    /// The variant's name.
    pub variant: String,
    /// The note of the workload, or of the import.
    pub text: String,
    /// Names of the boots.
    pub boots: Vec<BootId>,
}

/// The load of the host during a variant's complete boots: least and most, `None` if not known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostRange {
    /// The variant's name.
    pub variant: String,
    /// One-minute load average.
    pub load: Option<[f64; 2]>,
    /// Share of CPU time stolen by the host's own hypervisor, in percent.
    pub steal: Option<[f64; 2]>,
}

/// Notes on `columns`, of which the first is the baseline.
pub fn notes(columns: &[VariantBoots<'_>]) -> Notes {
    let boots: Vec<Option<&Boot>> = columns
        .iter()
        .map(|column| {
            let any = column.boots.first().map(|kept| kept.boot);
            column.complete().next().or(any)
        })
        .collect();
    let of_columns: Vec<_> = boots.iter().map(|boot| Some(&(*boot)?.facts)).collect();
    Notes {
        states: states(&boots),
        facts: facts(columns, &of_columns),
        config: config(columns, &of_columns),
        mixed: columns.iter().flat_map(mixed).collect(),
        complaints: columns.iter().flat_map(complaints).collect(),
        without_log: columns.iter().filter(has_no_log).map(|it| it.name().to_owned()).collect(),
        unmeasured: columns.iter().flat_map(|it| noted(it, &LACKS)).collect(),
        left: columns.iter().flat_map(|it| noted(it, &[NoteKind::Left])).collect(),
        host: columns.iter().filter_map(host).collect(),
        ..Notes::default()
    }
}

/// The facts of each column; none for a column without boots.
type ColumnFacts<'a> = Option<&'a BootFacts>;

/// The states in which columns differ, as far as they are known.
fn states(columns: &[Option<&Boot>]) -> Vec<Fact> {
    let notes = columns.iter().map(|boot| boot.map_or(&[][..], |boot| &boot.notes));
    let found: Vec<_> = notes.map(facts::found).collect();
    let fact =
        |name| Fact { name, values: found.iter().map(|it| facts::state(it, name)).collect() };
    let differs = |fact: &Fact| fact.values.iter().flatten().collect::<BTreeSet<_>>().len() > 1;
    STATES.into_iter().map(fact).filter(differs).collect()
}

fn facts(columns: &[VariantBoots<'_>], of_columns: &[ColumnFacts<'_>]) -> Vec<Fact> {
    let fact = |name, of: fn(&BootFacts) -> Option<String>| Fact {
        name,
        values: of_columns.iter().map(|facts| of((*facts)?)).collect(),
    };
    let cmdlines = of_columns.iter().map(|facts| facts.map(|facts| &*facts.cmdline));
    let cmdlines: Vec<_> = cmdlines.map(|it| it.filter(|it| !it.is_empty())).collect();
    let mut facts = vec![
        fact("kernel", |facts| given(&facts.release)),
        fact("origin", |facts| given(&facts.kernel_origin)),
        fact("machine", facts::machine),
        fact("preemption", facts::preemption),
        fact("HZ", facts::hz),
        fact("compiler", facts::compiler),
        Fact { name: "command line", values: facts::own_words(&cmdlines) },
    ];
    facts.extend(changed("settings", facts::settings, columns));
    facts.extend(changed("modules", facts::modules, columns));
    facts
}

/// What the variants change in the running kernel; empty if none changes anything.
fn changed(
    name: &'static str,
    of: fn(&Variant) -> String,
    columns: &[VariantBoots<'_>],
) -> Option<Fact> {
    let values = columns.iter().map(|column| of(column.variant));
    let values: Vec<_> = values.map(Some).collect();
    let any = values.iter().flatten().any(|value| !value.is_empty());
    any.then_some(Fact { name, values })
}

/// The baseline's configuration against that of every other column.
fn config(columns: &[VariantBoots<'_>], of_columns: &[ColumnFacts<'_>]) -> Vec<ConfigDifference> {
    let texts = of_columns.iter().map(|facts| facts.map_or("", |facts| &*facts.config));
    let mut columns = columns.iter().zip(texts);
    let Some((_, baseline)) = columns.next() else {
        return Vec::new();
    };
    columns.map(|(column, text)| config::difference(column.name(), baseline, text)).collect()
}

fn given(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// What should be the same in all boots of a variant: its name and where it stands.
type Common = (&'static str, fn(&BootFacts) -> &str);

fn mixed<'a>(column: &VariantBoots<'a>) -> impl Iterator<Item = Mixed> + use<'a> {
    let name = column.name();
    let boots: Vec<_> = column.complete().collect();
    let kept: [Common; 3] = [
        ("kernel image", |facts| &facts.kernel_digest),
        ("acceleration", |facts| facts.provenance.execution_name()),
        ("emulator", |facts| &facts.provenance.emulator),
    ];
    kept.into_iter().filter_map(move |(what, of)| {
        let values: BTreeSet<_> = boots.iter().map(|boot| of(&boot.facts)).collect();
        (values.len() > 1).then(|| Mixed {
            variant: name.to_owned(),
            what,
            values: values.into_iter().map(str::to_owned).collect(),
        })
    })
}

/// The complaints in all boots that stand for their places, failed ones included.
fn complaints<'a>(column: &VariantBoots<'a>) -> impl Iterator<Item = Complaint> + use<'a> {
    let name = column.name();
    let mut boots_by_complaint: BTreeMap<_, Vec<BootId>> = BTreeMap::new();
    for kept in column.standing() {
        for problem in &kept.boot.problems {
            let boots = boots_by_complaint.entry((problem.kind, &*problem.text)).or_default();
            boots.push(kept.id);
        }
    }
    let complaints = boots_by_complaint.into_iter();
    complaints.map(move |((kind, text), boots)| Complaint {
        variant: name.to_owned(),
        kind,
        text: text.to_owned(),
        boots,
    })
}

/// Whether the log of a boot that stands for its place was not kept.
fn has_no_log(column: &&VariantBoots<'_>) -> bool {
    column.standing().any(|kept| kept.boot.notes.iter().any(|note| note.kind == NoteKind::NoLog))
}

/// The notes of a column's boots of one of these kinds, each once.
fn noted<'a>(
    column: &VariantBoots<'a>,
    kinds: &[NoteKind],
) -> impl Iterator<Item = Unmeasured> + use<'a> {
    let name = column.name();
    let mut boots_by_note: BTreeMap<String, Vec<BootId>> = BTreeMap::new();
    for kept in column.standing().filter(|kept| kept.boot.outcome.counts()) {
        let is_one = |note: &&Note| kinds.contains(&note.kind);
        for note in kept.boot.notes.iter().filter(is_one) {
            boots_by_note.entry(note.to_string()).or_default().push(kept.id);
        }
    }
    boots_by_note.into_iter().map(move |(text, mut boots)| {
        // The iterations of one boot follow each other.
        boots.dedup();
        Unmeasured { variant: name.to_owned(), text, boots }
    })
}

/// `None` if nothing is known. A figure that is not a number was not taken.
fn host(column: &VariantBoots<'_>) -> Option<HostRange> {
    let range = |of: fn(&HostLoad) -> [f64; 2]| {
        let all = column.complete().flat_map(|boot| of(&boot.host));
        let known = all.filter(|value| value.is_finite()).map(|value| [value; 2]);
        known.reduce(|[least, most], [value, _]| [least.min(value), most.max(value)])
    };
    let load = range(|host| [host.load_before, host.load_after]);
    let steal = range(|host| [100.0 * host.steal; 2]);
    let variant = column.name().to_owned();
    (load.is_some() || steal.is_some()).then_some(HostRange { variant, load, steal })
}

#[cfg(test)]
mod tests {
    use model::{Execution, Outcome, Problem, Setting};

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
        ];
        boots[1].problems = vec![problem(ProblemKind::Stall, "rcu: INFO: stall"); 2];
        let complaints = of_one(&boots).complaints;
        let said: Vec<_> =
            complaints.iter().map(|it| (it.kind, &*it.text, named(&it.boots))).collect();
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
    fn states_in_which_columns_differ_are_reported() {
        let noted = |notes: &[&str]| {
            [Boot { notes: notes.iter().map(|it| (*it).into()).collect(), ..boot(0) }]
        };
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
        let later = "found by x: THP = never; MGLRU = 0x0007; swap = none";
        assert_eq!(states(&[found, later], &[found]), ["THP: always for w, never for x | always"]);
    }

    #[test]
    fn data_that_was_not_imported_is_reported() {
        let mut boots = [boot(0), boot(1)];
        let unread = NoteKind::NotRead.note("pgbench, iteration 0: x.log: cut off");
        let missing = NoteKind::Missing.note("pgbench, iteration 0: txn-4");
        boots[0].notes = vec![unread.clone(), missing.clone()];
        let told = of_one(&boots).unmeasured;
        let told: Vec<_> = told.iter().map(|it| (&*it.text, named(&it.boots))).collect();
        assert_eq!(
            told,
            [(&*missing.to_string(), "b0".into()), (&*unread.to_string(), "b0".into())]
        );
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
}
