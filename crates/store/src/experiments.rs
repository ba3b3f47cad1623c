//! Keeps experiments: their definitions and their progress.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;

use std::time::{SystemTime, UNIX_EPOCH};

use model::{Experiment, Mode, PatchStep, Reading, Variant, VariantReading, WorkloadReading};
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Trouble;
use crate::record::{
    Digest, Experiments, Numbers, Record, differs, digest, in_part, no_experiment,
};

/// The number of an experiment in its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExperimentId(pub i64);

impl fmt::Display for ExperimentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An experiment in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentRow {
    /// Its number in the store.
    pub id: ExperimentId,
    /// Its name, which other experiments may have too.
    pub name: String,
    /// When it was kept first, in seconds since 1970.
    pub created: u64,
    /// Names of its variants, the baseline first.
    pub variants: Vec<String>,
    /// The requested boots of each variant.
    pub boots: u32,
    /// The number of boots by outcome: `complete`, `failed`, `panicked`, `timed-out`, `died` or
    /// `interrupted`. Superseded boots are not counted.
    pub outcomes: BTreeMap<String, u32>,
    /// The number of superseded boots. They failed, remain as evidence and are repeated.
    pub superseded: u32,
    /// The bytes that its boots occupy, without texts that boots share and SQLite's own structures.
    pub size: u64,
    /// The user's remark; empty if there is none.
    pub note: String,
}

/// See [`Archive::keep_experiment`](crate::Archive::keep_experiment).
pub fn keep(
    connection: &Connection,
    experiment: &Experiment,
    reading: &Reading,
) -> Result<ExperimentId, Trouble> {
    let unkeepable =
        |error| Trouble::unkeepable(format!("experiment `{}`", experiment.name), error);
    let identity = identity(experiment).map_err(unkeepable)?;
    let known = known(connection, &experiment.name, &identity)?;
    let mut now = experiment.clone();
    if let Some(Known { experiment: before, .. }) = &known {
        now.boots = now.boots.max(before.boots);
        now.sequential = now.sequential.or(before.sequential);
        now.userspace = now.userspace.or_else(|| before.userspace.clone());
    }
    let definition = definition(&now, reading).map_err(unkeepable)?;
    let (id, record) = match known {
        Some(Known { id, record, .. }) => (id, described(record, &now, &definition)),
        None => (ExperimentId(Numbers::next(connection)?.experiment), new(&now, &definition)),
    };
    write(connection, id, &record, &definition)?;
    Ok(id)
}

/// The record of an experiment that is kept now, without boots.
pub(crate) fn new(experiment: &Experiment, definition: &str) -> Record {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let record = Record {
        name: String::new(),
        kin: Digest::default(),
        wanted: 0,
        created: now.as_secs(),
        note: String::new(),
        variants: Vec::new(),
        definition: Digest::default(),
        boots: Vec::new(),
    };
    described(record, experiment, definition)
}

/// The record with the fields that the experiment determines.
pub(crate) fn described(record: Record, experiment: &Experiment, definition: &str) -> Record {
    Record {
        name: experiment.name.clone(),
        kin: kin_of(experiment.mode, experiment),
        wanted: experiment.boots,
        variants: experiment.variants.iter().map(|variant| variant.name.clone()).collect(),
        definition: digest(definition.as_bytes()),
        ..record
    }
}

/// Writes the record and the definition of an experiment, and makes it the most recent one.
pub(crate) fn write(
    connection: &Connection,
    id: ExperimentId,
    record: &Record,
    definition: &str,
) -> Result<(), Trouble> {
    record.keep(connection, id)?;
    write_definition(connection, id, definition)
}

pub(crate) fn write_definition(
    connection: &Connection,
    id: ExperimentId,
    definition: &str,
) -> Result<(), Trouble> {
    let sql = "INSERT INTO definitions VALUES (?1, ?2)
        ON CONFLICT (experiment) DO UPDATE SET definition = ?2";
    connection.prepare_cached(sql)?.execute(params![id.0, definition.as_bytes()])?;
    Ok(())
}

/// The digest of the mode, and of the names, kernels and command lines of all variants. Kin have the same digest.
fn kin_of(mode: Mode, experiment: &Experiment) -> Digest {
    let variants = experiment.variants.iter().map(|variant| {
        let Variant { name, kernel, cmdline, .. } = variant;
        [name, &kernel.to_string(), cmdline].map(|it| it.replace('\0', " ")).join("\0")
    });
    let mut variants: Vec<String> = variants.collect();
    variants.sort_unstable();
    digest(format!("{}\0\0{}", mode.name(), variants.join("\0\0")).as_bytes())
}

/// The records of all experiments, most recent first.
pub(crate) fn records(connection: &Connection) -> Result<Vec<(ExperimentId, Record)>, Trouble> {
    let all = Experiments::read(connection)?;
    all.recent(|_| true).map(|id| Ok((id, Record::read(connection, id)?))).collect()
}

/// Passes the experiments, or those of a name, to `each`, most recent first, until it breaks. If `each` does not
/// break, verifies that the experiments are those in the store's list.
pub fn each_row(
    connection: &Connection,
    named: Option<&str>,
    each: &mut dyn FnMut(ExperimentRow) -> ControlFlow<()>,
) -> Result<(), Trouble> {
    let all = Experiments::read(connection)?;
    for id in all.recent(|it| named.is_none_or(|name| it.name == name)) {
        if each(row(id, Record::read(connection, id)?)).is_break() {
            return Ok(());
        }
    }
    match named {
        Some(_) => Ok(()),
        None => all.verify(connection),
    }
}

/// See [`Archive::kin`](crate::Archive::kin).
pub fn kin(
    connection: &Connection,
    mode: Mode,
    of: &Experiment,
) -> Result<Vec<ExperimentId>, Trouble> {
    let kin = kin_of(mode, of);
    Ok(Experiments::read(connection)?.recent(|it| it.kin == kin).collect())
}

/// The number of the most recent experiment with the name `wanted`, or of the one with this number.
pub fn find(connection: &Connection, wanted: &str) -> Result<ExperimentId, Trouble> {
    match found(connection, wanted)? {
        Some(id) => Record::read(connection, id).map(|_| id),
        None => Err(no_experiment(connection, wanted)?),
    }
}

fn found(connection: &Connection, wanted: &str) -> Result<Option<ExperimentId>, Trouble> {
    let all = Experiments::read(connection)?;
    let named = |name: &str, newer: u32| all.recent(|it| it.name == name).nth(newer as usize);
    // Names have precedence, because a name may look like a number.
    if let Some(id) = named(wanted, 0) {
        return Ok(Some(id));
    }
    if let Ok(id) = wanted.parse().map(ExperimentId)
        && all.has(id)
    {
        return Ok(Some(id));
    }
    let Some((name, place)) = wanted.rsplit_once('~') else { return Ok(None) };
    match place.parse::<u32>().ok().and_then(|place| place.checked_sub(1)) {
        Some(newer) => Ok(named(name, newer)),
        None => Ok(None),
    }
}

/// The identity of an experiment: everything that determines what is run, without the number of boots.
pub(crate) fn identity(experiment: &Experiment) -> serde_json::Result<String> {
    let mut run = serde_json::to_value(experiment)?;
    for (used, form) in experiment.workloads.iter().zip(list(&mut run, "workloads")) {
        form["manifest"] = serde_json::to_value(used.manifest.as_run())?;
    }
    // The digest of the user space represents the packages.
    sorted(run, &["boots", "sequential", "userspace"])
}

/// Whether two experiments of one name are the same ([`Archive::keep_experiment`](crate::Archive::keep_experiment)).
pub fn runs_the_same(one: &Experiment, other: &Experiment) -> bool {
    matches!((identity(one), identity(other)), (Ok(one), Ok(other)) if one == other)
}

/// A kept experiment.
pub(crate) struct Known {
    pub id: ExperimentId,
    record: Record,
    experiment: Experiment,
}

/// The most recent experiment with this name and identity. Definitions are compared, not digests, because a key that
/// an old definition lacks has its default.
pub(crate) fn known(
    connection: &Connection,
    name: &str,
    identity: &str,
) -> Result<Option<Known>, Trouble> {
    for id in Experiments::read(connection)?.recent(|it| it.name == name) {
        let record = Record::read(connection, id)?;
        let (kept, _) = read(connection, id, &record)?;
        if self::identity(&kept).is_ok_and(|own| own == identity) {
            return Ok(Some(Known { id, record, experiment: kept }));
        }
    }
    Ok(None)
}

/// The definition of an experiment as it is stored: what runs, with the reading of each variant and workload beside
/// it.
pub(crate) fn definition(experiment: &Experiment, reading: &Reading) -> serde_json::Result<String> {
    let mut keys = serde_json::to_value(experiment)?;
    for (variant, form) in experiment.variants.iter().zip(list(&mut keys, "variants")) {
        let VariantReading { axes, step } = reading.variant(variant);
        add(form, "axes", (!axes.is_empty()).then_some(axes))?;
        add(form, "step", step.as_ref())?;
    }
    for (used, form) in experiment.workloads.iter().zip(list(&mut keys, "workloads")) {
        let primary = &reading.workload(used).primary;
        add(form, "primary", (!primary.is_empty()).then_some(primary))?;
    }
    sorted(keys, &["boots"])
}

fn list<'a>(keys: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    keys[key].as_array_mut().into_iter().flatten()
}

fn add(form: &mut Value, key: &str, value: Option<impl Serialize>) -> serde_json::Result<()> {
    if let Some(value) = value {
        form[key] = serde_json::to_value(value)?;
    }
    Ok(())
}

/// JSON with sorted keys, without the keys in `left_out`.
fn sorted(mut document: Value, left_out: &[&str]) -> serde_json::Result<String> {
    if let Value::Object(keys) = &mut document {
        keys.retain(|key, _| !left_out.contains(&key.as_str()));
    }
    // The keys are already sorted, unless another crate enables serde_json's `preserve_order`.
    document.sort_all_objects();
    serde_json::to_string(&document)
}

/// Reads an experiment by its number.
pub fn find_and_read(
    connection: &Connection,
    id: ExperimentId,
) -> Result<(Experiment, Reading), Trouble> {
    read(connection, id, &Record::read(connection, id)?)
}

/// Reads the definition of an experiment whose record is given.
pub(crate) fn read(
    connection: &Connection,
    id: ExperimentId,
    record: &Record,
) -> Result<(Experiment, Reading), Trouble> {
    let what = || format!("the definition of experiment {id}");
    let definition: Option<Vec<u8>> = connection
        .prepare_cached("SELECT definition FROM definitions WHERE experiment = ?")?
        .query_row([id.0], |row| row.get(0))
        .optional()
        .map_err(|error| in_part(what, error))?;
    let definition = definition.ok_or_else(|| Trouble::damaged(what(), "it is missing"))?;
    if digest(&definition) != record.definition {
        return Err(differs(what()));
    }
    parse(&definition, record.wanted).map_err(|error| Trouble::damaged(what(), error))
}

/// The reading of a variant, as keys of a stored definition.
#[derive(Deserialize)]
struct VariantForm {
    #[serde(default)]
    axes: Vec<(String, String)>,
    #[serde(default)]
    step: Option<PatchStep>,
}

/// The reading of a workload, as keys of a stored definition.
#[derive(Deserialize)]
struct WorkloadForm {
    #[serde(default)]
    primary: Vec<String>,
}

/// Parses a definition into the experiment, with this number of boots, and the reading of its figures.
pub(crate) fn parse(definition: &[u8], boots: u32) -> serde_json::Result<(Experiment, Reading)> {
    let mut keys: Map<String, Value> = serde_json::from_slice(definition)?;
    keys.insert("boots".into(), boots.into());
    let mut keys = Value::Object(keys);
    let experiment = Experiment::deserialize(&keys)?;
    let mut reading = Reading::default();
    for (variant, form) in experiment.variants.iter().zip(list(&mut keys, "variants")) {
        let VariantForm { axes, step } = VariantForm::deserialize(&*form)?;
        reading.variants.insert(variant.short_name().to_owned(), VariantReading { axes, step });
    }
    for (used, form) in experiment.workloads.iter().zip(list(&mut keys, "workloads")) {
        let WorkloadForm { primary } = WorkloadForm::deserialize(&*form)?;
        let own = WorkloadReading { primary, left_out: None };
        reading.workloads.insert(used.manifest.name.clone(), own);
    }
    Ok((experiment, reading))
}

/// An experiment's row in a list.
pub fn row(id: ExperimentId, record: Record) -> ExperimentRow {
    let mut outcomes = BTreeMap::new();
    for boot in record.boots.iter().filter(|boot| !boot.superseded) {
        *outcomes.entry(boot.outcome.clone()).or_insert(0) += 1;
    }
    ExperimentRow {
        id,
        name: record.name,
        created: record.created,
        variants: record.variants,
        boots: record.wanted,
        outcomes,
        superseded: record.boots.iter().filter(|boot| boot.superseded).count() as u32,
        size: record.boots.iter().map(|boot| boot.size).sum(),
        note: record.note,
    }
}

#[cfg(test)]
mod tests {
    use model::{CountedBy, Experiment};

    use super::identity;

    /// Experiments that were stored before machines were known remain the same.
    #[test]
    fn a_machine_that_is_not_known_is_no_part_of_the_identity() {
        let of = |machine: &str| {
            let counted_by =
                CountedBy { plugin: "ab".into(), machine: machine.into(), ..CountedBy::default() };
            Experiment { counted_by, ..Experiment::default() }
        };
        let (old, new) = (identity(&of("")).unwrap(), identity(&of("cd")).unwrap());
        assert!(
            !old.contains("\"machine\":\"\"") && new.contains("\"machine\":\"cd\""),
            "{old} {new}"
        );
        let read: CountedBy = serde_json::from_str("{\"plugin\":\"ab\"}").unwrap();
        let read = Experiment { counted_by: read, ..Experiment::default() };
        assert_eq!(identity(&read).unwrap(), old);
    }
}
