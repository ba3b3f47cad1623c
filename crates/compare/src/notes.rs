//! Notes on the columns: differences other than the code, and what happened while the boots ran.

mod build;
mod config;
pub mod consistency;
mod facts;
pub mod on_host;

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Boot, BootFacts, BootId, Execution, Host, HostLoad, Note, NoteKind, ProblemKind, STATES,
    StatesFound, Variant,
};
use serde::Serialize;

use crate::{Counting, Finding, VariantBoots};
pub use build::BuildDifference;
use config::Differing;

/// The kinds of notes that say that a boot lacks figures.
const LACKS: [NoteKind; 5] = [
    NoteKind::TooQuick,
    NoteKind::NotRead,
    NoteKind::Missing,
    NoteKind::NotCounted,
    NoteKind::Profile,
];

/// All notes on the columns of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Notes {
    /// States of the kernels, as the workloads found them, in which the columns differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<Fact>,
    /// Facts that the boots report, and settings that the variants change.
    pub facts: Vec<Fact>,
    /// How the configurations of the columns differ from the baseline's.
    pub config: Vec<ConfigDifference>,
    /// The columns whose kernels were built differently from the baseline's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub builds: Vec<BuildDifference>,
    /// Variants whose boots differ in something that should be the same.
    pub mixed: Vec<Mixed>,
    /// Complaints in the kernels' logs.
    pub complaints: Vec<Complaint>,
    /// Names of variants with a boot whose kernel's log was not kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without_log: Vec<String>,
    /// Figures that workloads could not measure, or that were not imported.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmeasured: Vec<Unmeasured>,
    /// State that workloads left behind, so that the next workloads of the boot found another state.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Unmeasured>,
    /// What changed on the host during sessions, such as its governor, and how often heat slowed it down.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on_host: Vec<Unmeasured>,
    /// The load of the host during each variant's boots.
    pub host: Vec<HostRange>,
    /// Counters of one kernel that do not add up.
    pub findings: Vec<Finding>,
    /// Rows of counters that columns count differently from the baseline.
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
    /// Number of options that differ; `None` if a configuration is not known.
    pub differing: Option<usize>,
    /// The differing options that matter to memory management and scheduling.
    pub relevant: Vec<ConfigChange>,
}

/// An option that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigChange {
    /// Its name, such as `CONFIG_PREEMPT`.
    pub option: String,
    /// Its value in the baseline, `n` if it is not set; `None` if that kernel does not know it.
    pub baseline: Option<String>,
    /// Its value in the column, in the same form.
    pub value: Option<String>,
}

/// A property that should be the same in all boots of a variant, but differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mixed {
    /// The variant's name.
    pub variant: String,
    /// The property, such as `emulator`.
    pub what: &'static str,
    /// The different values found.
    pub values: Vec<String>,
}

/// A complaint of a variant's kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Complaint {
    /// The variant's name.
    pub variant: String,
    /// The kind of problem that it is.
    pub kind: ProblemKind,
    /// The kernel's own line, without its time.
    pub text: String,
    /// The boots in which it was made, one entry per occurrence.
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
    /// The boots that have the note.
    pub boots: Vec<BootId>,
}

/// The load of the host during a variant's complete boots: least and most, `None` if not known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostRange {
    /// The variant's name.
    pub variant: String,
    /// One-minute load average of the host.
    pub load: Option<[f64; 2]>,
    /// Share of CPU time stolen by the host's own hypervisor, in percent.
    pub steal: Option<[f64; 2]>,
}

/// Notes on `columns`, of which the first is the baseline.
pub fn notes(columns: &[VariantBoots<'_>]) -> Notes {
    let boots: Vec<Option<&Boot>> = columns.iter().map(any_boot).collect();
    let of_columns: Vec<_> = boots.iter().map(|boot| Some(&(*boot)?.facts)).collect();
    let differing = config::differences(&of_columns);
    Notes {
        states: states_of(columns),
        facts: facts(columns, &of_columns)
            .into_iter()
            .chain(without_thp(columns, &boots))
            .collect(),
        config: config(columns, &differing),
        builds: builds_of(columns, &of_columns, &differing),
        mixed: columns.iter().flat_map(mixed).collect(),
        complaints: columns.iter().flat_map(complaints).collect(),
        without_log: columns.iter().filter(has_no_log).map(|it| it.name().to_owned()).collect(),
        unmeasured: columns
            .iter()
            .flat_map(|it| noted(it, |it| LACKS.contains(&it.kind)))
            .collect(),
        left: columns.iter().flat_map(|it| noted(it, |it| it.kind == NoteKind::Left)).collect(),
        on_host: columns.iter().flat_map(|it| noted(it, on_host::is_remark)).collect(),
        host: columns.iter().filter_map(host).collect(),
        ..Notes::default()
    }
}

/// A boot that stands for the column's kernel: a complete one if there is one.
fn any_boot<'a>(column: &VariantBoots<'a>) -> Option<&'a Boot> {
    let any = column.boots.first().map(|kept| kept.boot);
    column.complete().next().or(any)
}

/// The states in which the kernels of `columns` differ: the size of their pages, and what the workloads found but for what
/// the variants set to compare it.
pub fn states_of(columns: &[VariantBoots<'_>]) -> Vec<Fact> {
    let boots: Vec<_> = columns.iter().map(any_boot).collect();
    let pages = boots.iter().map(|boot| facts::pages(&(*boot)?.facts)).collect();
    let pages = Some(Fact { name: PAGE_SIZE, values: pages }).filter(varies);
    let found = states(&boots).into_iter().filter(|it| !is_asked_for(it, columns));
    pages.into_iter().chain(found).collect()
}

/// The name of the state that is the size of pages.
pub const PAGE_SIZE: &str = "page size";

/// The size of a base page in bytes in both columns; `None` if it is the same, or not known.
pub fn pages(columns: &[VariantBoots<'_>; 2]) -> Option<[u64; 2]> {
    let [base, new] = columns.each_ref().map(|it| any_boot(it).map_or(0, |it| it.facts.page_size));
    (base != new && base.min(new) > 0).then_some([base, new])
}

/// Whether the settings of the variants explain how a state differs: all set it, or some do on one kernel, and those with
/// equal settings are in equal states.
fn is_asked_for(state: &Fact, columns: &[VariantBoots<'_>]) -> bool {
    let set = columns.iter().map(|it| facts::set_to(it.variant, state.name));
    let set: Vec<Option<String>> = set.collect();
    let is_one_kernel =
        columns.windows(2).all(|pair| pair[0].variant.kernel == pair[1].variant.kernel);
    let found = || set.iter().zip(&state.values);
    let is_equal = |(one, state): (&Option<String>, &Option<String>)| {
        found().filter(|(other, _)| *other == one).all(|(_, other)| other == state)
    };
    let is_set =
        set.iter().all(Option::is_some) || is_one_kernel && set.iter().any(Option::is_some);
    is_set && found().all(is_equal)
}

/// How the kernels of `columns` were built differently from that of the first one, where that is known.
pub fn builds(columns: &[VariantBoots<'_>]) -> Vec<BuildDifference> {
    let of_columns: Vec<_> = columns.iter().map(|it| Some(&any_boot(it)?.facts)).collect();
    builds_of(columns, &of_columns, &config::differences(&of_columns))
}

fn builds_of(
    columns: &[VariantBoots<'_>],
    of_columns: &[ColumnFacts<'_>],
    differing: &[Differing<'_>],
) -> Vec<BuildDifference> {
    let base = of_columns.first().copied().flatten();
    let others = columns.iter().zip(of_columns).skip(1).zip(differing);
    let difference = |((column, facts), differing): ((&VariantBoots<'_>, &ColumnFacts<'_>), _)| {
        build::difference(column.name(), [base?, (*facts)?], differing)
    };
    others.filter_map(difference).collect()
}

/// The facts of each column; `None` for a column without boots.
type ColumnFacts<'a> = Option<&'a BootFacts>;

/// A fact of all columns; `unknown` where a boot does not say it.
fn of_all(name: &'static str, of: fn(&BootFacts) -> String, columns: &[ColumnFacts<'_>]) -> Fact {
    Fact { name, values: columns.iter().map(|facts| Some(known(of((*facts)?)))).collect() }
}

/// Whether columns with boots differ in the fact.
fn varies(fact: &Fact) -> bool {
    fact.values.iter().flatten().collect::<BTreeSet<_>>().len() > 1
}

/// The states in which columns differ, as far as they are known. What is off in one kernel and lacking in another does
/// not differ.
fn states(columns: &[Option<&Boot>]) -> Vec<Fact> {
    let notes = columns.iter().map(|boot| boot.map_or(&[][..], |boot| &boot.notes));
    let found: Vec<_> = notes.map(facts::found).collect();
    let fact =
        |name| Fact { name, values: found.iter().map(|it| facts::state(it, name)).collect() };
    let is_off = |fact: &Fact| fact.values.iter().flatten().all(|it| facts::is_off(it));
    STATES.into_iter().map(fact).filter(|it| varies(it) && !is_off(it)).collect()
}

/// The fact that no kernel had transparent huge pages, which is no difference between their states.
fn without_thp(columns: &[VariantBoots<'_>], boots: &[Option<&Boot>]) -> Option<Fact> {
    let thp = |boot: &Boot| facts::state(&facts::found(&boot.notes), STATES[0]);
    let is_never = self::thp(columns).as_deref() == Some("never");
    is_never.then(|| Fact {
        name: STATES[0],
        values: boots.iter().map(|boot| boot.and_then(thp)).collect(),
    })
}

/// When all complete boots of `columns` had transparent huge pages, such as `always`. `None` if they differ, or if it is
/// not known.
pub fn thp(columns: &[VariantBoots<'_>]) -> Option<String> {
    let notes = columns.iter().flat_map(VariantBoots::complete).flat_map(|boot| &boot.notes);
    let states = notes.filter_map(StatesFound::of_note).flat_map(|it| it.states);
    let mut values = states.filter(|(name, _)| *name == STATES[0]).map(|(_, value)| value);
    let first = values.next()?;
    values.all(|other| other == first).then(|| first.to_owned())
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
    facts.extend(MADE.into_iter().map(|(name, of)| of_all(name, of, of_columns)).filter(varies));
    facts.extend(load(columns));
    facts.extend(changed("settings", facts::settings, columns));
    facts.extend(changed("modules", facts::modules, columns));
    facts
}

/// Mean loads that differ by less are not noted: one more task that runs all the time makes a load of 1.
const LOAD: f64 = 1.0;

/// The mean load when the sessions of each column began, if that of two columns differs by [`LOAD`] or more.
fn load(columns: &[VariantBoots<'_>]) -> Option<Fact> {
    let mean = |column: &VariantBoots<'_>| {
        let is_session = |it: &&Boot| it.facts.provenance.execution == Some(Execution::Native);
        let loads = column.complete().filter(is_session).map(|it| it.host.load_before);
        let loads: Vec<f64> = loads.filter(|load| load.is_finite()).collect();
        (!loads.is_empty()).then(|| loads.iter().sum::<f64>() / loads.len() as f64)
    };
    let means: Vec<Option<f64>> = columns.iter().map(mean).collect();
    let known = || means.iter().flatten().copied();
    let [least, most] = [known().reduce(f64::min)?, known().reduce(f64::max)?];
    let said = |mean: f64| format!("{mean:.1} on average when its sessions began");
    let values = means.iter().map(|mean| mean.map(said)).collect();
    (most - least >= LOAD).then_some(Fact { name: "load", values })
}

/// The fact of what the variants change in the running kernel; `None` if no variant changes anything.
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
fn config(columns: &[VariantBoots<'_>], differing: &[Differing<'_>]) -> Vec<ConfigDifference> {
    let others = columns.iter().skip(1).zip(differing);
    others.map(|(column, differing)| config::difference(column.name(), differing)).collect()
}

fn given(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// A property that should be the same in all boots of a variant: its name, and its text for a boot.
type Common = (&'static str, fn(&BootFacts) -> String);

/// A fact of the host, of a session on it. The guest of a VM has its own.
fn of_session(facts: &BootFacts, of: impl FnOnce(&Host) -> String) -> String {
    let provenance = &facts.provenance;
    match provenance.execution {
        Some(Execution::Native) => of(&provenance.host),
        _ => String::new(),
    }
}

/// The host and the programs that made a boot, apart from the emulator, which is part of the machine.
const MADE: [Common; 12] = [
    ("made on", |facts| facts.provenance.host.label()),
    ("governor", |facts| of_session(facts, |host| host.governor.clone())),
    ("turbo", |facts| of_session(facts, |host| facts::turbo(host).to_owned())),
    ("SMT", |facts| of_session(facts, |host| host.smt.clone())),
    ("mitigations", |facts| of_session(facts, |host| host.mitigations.clone())),
    ("clocksource", |facts| of_session(facts, |host| host.clocksource.clone())),
    ("microcode", |facts| of_session(facts, |host| host.microcode.clone())),
    ("agent", |facts| facts::digest(&facts.provenance.programs.agent)),
    ("workloads", |facts| facts::digest(&facts.provenance.programs.workloads)),
    ("plugin", |facts| facts::digest(&facts.provenance.programs.plugin)),
    ("clock library", |facts| facts::digest(&facts.provenance.programs.clock)),
    ("mkfs library", |facts| facts::digest(&facts.provenance.programs.mkfs)),
];

/// Other properties that can change between two runs of one experiment.
const ELSE: [Common; 7] = [
    ("kernel image", |facts| facts.kernel_digest.clone()),
    ("acceleration", |facts| facts.provenance.execution_name().to_owned()),
    ("emulator", |facts| facts.provenance.emulator.clone()),
    ("host's kernel", |facts| facts.provenance.host.kernel.clone()),
    ("host's microcode", |facts| facts.provenance.host.microcode.clone()),
    ("host's governor", |facts| facts.provenance.host.governor.clone()),
    ("host's turbo", |facts| facts::turbo(&facts.provenance.host).to_owned()),
];

fn mixed<'a>(column: &VariantBoots<'a>) -> impl Iterator<Item = Mixed> + use<'a> {
    let name = column.name();
    let boots: Vec<_> = column.complete().collect();
    MADE.into_iter().chain(ELSE).filter_map(move |(what, of)| {
        let values: BTreeSet<_> = boots.iter().map(|boot| of(&boot.facts)).collect();
        let values: Vec<String> = values.into_iter().map(known).collect();
        (values.len() > 1).then(|| Mixed { variant: name.to_owned(), what, values })
    })
}

/// The text, or `unknown` if it is empty.
fn known(text: String) -> String {
    if text.is_empty() { "unknown".to_owned() } else { text }
}

/// The taint of a module without a signature, which a distribution's own modules may lack. It says nothing about figures.
const UNSIGNED: &str = "tainted 8192: E (unsigned module loaded)";

/// The complaints in all boots that occupy their places in the schedule, including failed boots.
fn complaints<'a>(column: &VariantBoots<'a>) -> impl Iterator<Item = Complaint> + use<'a> {
    let name = column.name();
    let mut boots_by_complaint: BTreeMap<_, Vec<BootId>> = BTreeMap::new();
    for kept in column.standing() {
        for problem in kept.boot.problems.iter().filter(|it| it.text != UNSIGNED) {
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

/// Whether the log of some boot that occupies its place in the schedule was not kept.
fn has_no_log(column: &&VariantBoots<'_>) -> bool {
    column.standing().any(|kept| kept.boot.notes.iter().any(|note| note.kind == NoteKind::NoLog))
}

/// The notes of a column's complete boots that are wanted. Equal texts are merged.
fn noted<'a, F: Fn(&Note) -> bool>(
    column: &VariantBoots<'a>,
    is_wanted: F,
) -> impl Iterator<Item = Unmeasured> + use<'a, F> {
    let name = column.name();
    let mut boots_by_note: BTreeMap<String, Vec<BootId>> = BTreeMap::new();
    for kept in column.standing().filter(|kept| kept.boot.outcome.counts()) {
        for note in kept.boot.notes.iter().filter(|note| is_wanted(note)) {
            boots_by_note.entry(note.to_string()).or_default().push(kept.id);
        }
    }
    boots_by_note.into_iter().map(move |(text, mut boots)| {
        // The iterations of one boot follow each other.
        boots.dedup();
        Unmeasured { variant: name.to_owned(), text, boots }
    })
}

/// The load of the host over a column's complete boots; `None` if nothing is known. NaN stands for a figure that was
/// not taken.
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
mod tests;
