//! Keeps experiments: their definitions and their progress.

use std::collections::BTreeMap;
use std::fmt;

use model::Experiment;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::checksums::{self, BootEntry, ExperimentSums, Numbers, StoreSums, differs};
use crate::{Error, Store, Trouble};

const ROW: &str = "SELECT id, name, definition, digest, boots, created, used, note FROM experiments
    WHERE id = ?";
/// The bytes that each experiment's boots occupy. The numbers of a row count as 32.
const SIZES: &str = "SELECT boots.experiment, sum(part.bytes) FROM boots JOIN (
        SELECT id AS boot, length(console) + length(banner) + 256 AS bytes FROM boots
        UNION ALL SELECT boot, length(packed) + 32 FROM chunks
        UNION ALL SELECT boot, length(packed) + 32 FROM chunk_ends
        UNION ALL SELECT boot, length(packed) + 32 FROM profiles
        UNION ALL SELECT boot, length(text) + 32 FROM notes
        UNION ALL SELECT boot, length(workload) + length(phase) + length(metric) + length(label) + 32
            FROM samples
    ) AS part ON part.boot = boots.id GROUP BY boots.experiment";

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
    /// Its number.
    pub id: ExperimentId,
    /// Its name.
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
    /// The number of superseded boots: failed ones that remain as evidence and are to be repeated.
    pub superseded: u32,
    /// The user's remark; empty if there is none.
    pub note: String,
}

impl Store {
    /// Keeps an experiment. An experiment with the same name and the same identity is the same experiment and
    /// keeps its number. The number of boots is not part of the identity; the larger one is kept. Once an
    /// experiment has looks it keeps them: a later definition may change the margin, but not turn looks off.
    /// A lock of its user space is kept until another one is given. How figures are read
    /// ([`WorkloadUse::as_run`](model::WorkloadUse::as_run), [`Variant::as_run`](model::Variant::as_run)) is taken from the latest definition. Any other
    /// change makes another experiment. Fails when the definition has no JSON form (it has a path that is not
    /// UTF-8), an experiment with the same name is damaged, or the store fails.
    pub fn keep_experiment(&mut self, experiment: &Experiment) -> Result<ExperimentId, Error> {
        self.write(|transaction| {
            let unkeepable =
                |error| Trouble::unkeepable(format!("experiment `{}`", experiment.name), error);
            let identity = identity(experiment).map_err(unkeepable)?;
            let known = known(transaction, &experiment.name, &identity)?;
            let mut now = experiment.clone();
            if let Some((_, before)) = &known {
                now.boots = now.boots.max(before.boots);
                now.sequential = now.sequential.or(before.sequential);
                now.userspace = now.userspace.or_else(|| before.userspace.clone());
            }
            let definition = definition(&now, &["boots"]).map_err(unkeepable)?;
            let (id, boots) = match known {
                Some((id, _)) => {
                    let sql = "UPDATE experiments SET definition = ?, boots = ?,
                        used = (SELECT max(used) + 1 FROM experiments) WHERE id = ?";
                    transaction.execute(sql, params![definition, now.boots, id.0])?;
                    (id, ExperimentSums::read(transaction, id)?.boots)
                }
                None => {
                    let sql =
                        "INSERT INTO experiments (id, name, definition, digest, boots, used) VALUES
                        (?, ?, ?, ?, ?, (SELECT ifnull(max(used), 0) + 1 FROM experiments))";
                    let digest = Sha256::digest(identity);
                    let id = Numbers::next(transaction)?.experiment;
                    let values = params![id, now.name, definition, digest.as_slice(), now.boots];
                    (ExperimentId(transaction.prepare(sql)?.insert(values)?), Vec::new())
                }
            };
            let sums = ExperimentSums { row: digest(transaction, id.0)?, boots };
            sums.keep(transaction, id, Some(&now.name))?;
            Ok(id)
        })
    }

    /// All experiments, most recent last. Fails when a definition is damaged, or the store fails.
    pub fn experiments(&self) -> Result<Vec<ExperimentRow>, Error> {
        self.read(|transaction| {
            let store = StoreSums::read(transaction)?;
            let rows = store.experiments.iter().map(|entry| {
                let id = ExperimentId(entry.id);
                let sums = store.experiment(transaction, id)?;
                Ok(experiment_row(id, row(transaction, id, &sums)?, &sums.boots))
            });
            rows.collect()
        })
    }

    /// Checks that all boots of an experiment exist and have the listed outcomes. Their parts are not read.
    /// Fails when a boot is missing or has another outcome, or the store fails.
    pub fn check_listed(&self, id: ExperimentId) -> Result<(), Error> {
        self.read(|transaction| {
            let sql = "SELECT outcome, superseded FROM boots WHERE id = ? AND experiment = ?";
            let mut statement = transaction.prepare_cached(sql)?;
            for entry in ExperimentSums::read(transaction, id)?.boots {
                let found = statement
                    .query_row([entry.id, id.0], |row| Ok((row.get(0)?, row.get(1)?)))
                    .optional()?;
                if found != Some((entry.outcome.clone(), entry.superseded)) {
                    return Err(differs(format!("the row of boot {}", entry.boot())));
                }
            }
            Ok(())
        })
    }

    /// The definition of an experiment, with the largest requested number of boots. Fails when no experiment
    /// has this number, its definition is damaged, or the store fails.
    pub fn experiment(&self, id: ExperimentId) -> Result<Experiment, Error> {
        self.read(|transaction| {
            let sums = ExperimentSums::read(transaction, id)?;
            Ok(row(transaction, id, &sums)?.experiment)
        })
    }

    /// The bytes that the boots of each experiment occupy in the file, without texts that boots share and
    /// SQLite's own structures. Experiments without boots are left out. Fails when the store fails.
    pub fn sizes(&self) -> Result<BTreeMap<ExperimentId, u64>, Error> {
        self.read(|transaction| {
            let mut statement = transaction.prepare(SIZES)?;
            let sizes = statement.query_map([], |row| Ok((ExperimentId(row.get(0)?), row.get(1)?)));
            Ok(sizes?.collect::<Result<_, _>>()?)
        })
    }

    /// Finds the most recent experiment with this name, or the one with this number. `NAME~2` is the second
    /// most recent one with that name, and so on. Fails when there is none, with the existing names; or when
    /// the store fails.
    pub fn find_experiment(&self, name_or_id: &str) -> Result<ExperimentId, Error> {
        self.read(|transaction| {
            let store = StoreSums::read(transaction)?;
            // Names have precedence, because a name may look like a number.
            let id = name_or_id.parse().ok();
            let named = |name: &str, newer: usize| {
                store.experiments.iter().rev().filter(|entry| entry.name == name).nth(newer)
            };
            let found = named(name_or_id, 0)
                .or_else(|| store.experiments.iter().find(|entry| Some(entry.id) == id))
                .or_else(|| {
                    let (name, place) = name_or_id.rsplit_once('~')?;
                    named(name, place.parse::<usize>().ok()?.checked_sub(1)?)
                });
            let found = found.map(|entry| ExperimentId(entry.id));
            found.ok_or_else(|| store.no_experiment(name_or_id))
        })
    }
}

/// The identity of an experiment: everything that determines what is run, but not how often.
pub(crate) fn identity(experiment: &Experiment) -> serde_json::Result<String> {
    let mut run = experiment.clone();
    for used in &mut run.workloads {
        *used = used.as_run();
    }
    for variant in &mut run.variants {
        *variant = variant.as_run();
    }
    // The digest of the user space represents the packages.
    definition(&run, &["boots", "sequential", "userspace"])
}

/// Whether two experiments of one name are the same ([`Store::keep_experiment`]).
pub fn runs_the_same(one: &Experiment, other: &Experiment) -> bool {
    matches!((identity(one), identity(other)), (Ok(one), Ok(other)) if one == other)
}

/// The most recent experiment with this name and identity. Definitions are compared, not digests: a
/// definition from before there was a key has its default.
pub(crate) fn known(
    connection: &Connection,
    name: &str,
    identity: &str,
) -> Result<Option<(ExperimentId, Experiment)>, Trouble> {
    let store = StoreSums::read(connection)?;
    for entry in store.experiments.iter().rev().filter(|entry| entry.name == name) {
        let id = ExperimentId(entry.id);
        let kept = row(connection, id, &store.experiment(connection, id)?)?.experiment;
        if self::identity(&kept).is_ok_and(|own| own == identity) {
            return Ok(Some((id, kept)));
        }
    }
    Ok(None)
}

/// The definition as JSON with sorted keys, without the keys in `left_out`.
pub(crate) fn definition(experiment: &Experiment, left_out: &[&str]) -> serde_json::Result<String> {
    let mut keys: Map<String, Value> = serde_json::from_value(serde_json::to_value(experiment)?)?;
    keys.retain(|key, _| !left_out.contains(&key.as_str()));
    let mut definition = Value::Object(keys);
    // They are already sorted, unless another crate enables serde_json's `preserve_order`.
    definition.sort_all_objects();
    serde_json::to_string(&definition)
}

/// The columns of an experiment's row.
pub(crate) struct KeptExperiment {
    pub experiment: Experiment,
    created: u64,
    note: String,
}

/// The checksum of an experiment's row.
pub(crate) fn digest(connection: &Connection, id: i64) -> Result<checksums::Digest, Trouble> {
    Ok(checksums::rows(connection, ROW, id, |_| Ok(()))?.1)
}

/// The verified row of an experiment.
pub(crate) fn row(
    connection: &Connection,
    id: ExperimentId,
    sums: &ExperimentSums,
) -> Result<KeptExperiment, Trouble> {
    let what = || format!("the definition of experiment {id}");
    let rows = checksums::verified(connection, ROW, id.0, (&sums.row, what), |row| {
        let (created, note) = (row.get("created")?, row.get("note")?);
        Ok(KeptExperiment { experiment: experiment(row)?, created, note })
    });
    rows?.pop().ok_or_else(|| Trouble::damaged(what(), "it is missing"))
}

fn experiment(row: &Row) -> Result<Experiment, Trouble> {
    let boots: u32 = row.get("boots")?;
    let definition: String = row.get("definition")?;
    let parse = || {
        let mut keys: Map<String, Value> = serde_json::from_str(&definition)?;
        keys.insert("boots".into(), boots.into());
        serde_json::from_value(Value::Object(keys))
    };
    parse().map_err(|error: serde_json::Error| Trouble::damaged("its text", error))
}

fn experiment_row(id: ExperimentId, kept: KeptExperiment, boots: &[BootEntry]) -> ExperimentRow {
    let mut outcomes = BTreeMap::new();
    for boot in boots.iter().filter(|boot| !boot.superseded) {
        *outcomes.entry(boot.outcome.clone()).or_insert(0) += 1;
    }
    let superseded = boots.iter().filter(|boot| boot.superseded).count() as u32;
    let KeptExperiment { experiment, created, note } = kept;
    let variants = experiment.variants.into_iter();
    ExperimentRow {
        id,
        name: experiment.name,
        created,
        variants: variants.map(|variant| variant.name).collect(),
        boots: experiment.boots,
        outcomes,
        superseded,
        note,
    }
}
