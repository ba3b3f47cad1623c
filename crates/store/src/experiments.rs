//! Experiments: their definitions, and how far they got.

use std::collections::BTreeMap;
use std::fmt;

use model::Experiment;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::{Error, Store, Trouble};

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
    /// When it was kept first, seconds since 1970.
    pub created: u64,
    /// Names of its variants, the baseline first.
    pub variants: Vec<String>,
    /// Boots wanted of each variant.
    pub boots: u32,
    /// Number of boots kept by how they ended: `complete`, `failed`, `panicked`, `timed-out`,
    /// `died` or `interrupted`. Superseded boots are not among them.
    pub outcomes: BTreeMap<String, u32>,
    /// Number of failed boots kept as evidence, but to be done again.
    pub superseded: u32,
}

impl Store {
    /// Keeps an experiment. One with the same name that runs the same is the same experiment and keeps
    /// its number, whatever it says of how many boots there are to be: it then wants the larger
    /// number of boots. Once boots have been judged as they came in they stay so: a later definition
    /// may judge them by another margin, but not as if nobody had looked. A lock of its user space is
    /// kept until another is given. How figures are read ([`WorkloadUse::as_run`](model::WorkloadUse::as_run))
    /// is as the last definition says. Any other change makes another experiment.
    ///
    /// # Errors
    /// When the definition has no JSON form (a path that is not UTF-8), one of the same name is damaged,
    /// or the store fails.
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
            let id = match known {
                Some((id, _)) => transaction.query_row(
                    "UPDATE experiments SET definition = ?, boots = ?,
                        used = (SELECT max(used) + 1 FROM experiments) WHERE id = ? RETURNING id",
                    params![definition, now.boots, id.0],
                    |row| row.get(0),
                )?,
                None => transaction.query_row(
                    "INSERT INTO experiments (name, definition, digest, boots, used) VALUES
                        (?, ?, ?, ?, (SELECT ifnull(max(used), 0) + 1 FROM experiments))
                        RETURNING id",
                    params![now.name, definition, Sha256::digest(identity).as_slice(), now.boots],
                    |row| row.get(0),
                )?,
            };
            Ok(ExperimentId(id))
        })
    }

    /// All experiments; the one last kept comes last.
    ///
    /// # Errors
    /// When a definition is damaged, or the store fails.
    pub fn experiments(&self) -> Result<Vec<ExperimentRow>, Error> {
        self.read(|transaction| {
            let mut statement = transaction.prepare("SELECT * FROM experiments ORDER BY used")?;
            let mut rows = statement.query([])?;
            let mut list = Vec::new();
            while let Some(row) = rows.next()? {
                list.push(experiment_row(transaction, row)?);
            }
            Ok(list)
        })
    }

    /// The definition of an experiment, with the largest number of boots wanted so far.
    ///
    /// # Errors
    /// When there is none of this number, its definition is damaged, or the store fails.
    pub fn experiment(&self, id: ExperimentId) -> Result<Experiment, Error> {
        self.read(|transaction| {
            let mut statement = transaction.prepare("SELECT * FROM experiments WHERE id = ?")?;
            let mut rows = statement.query([id.0])?;
            match rows.next()? {
                Some(row) => experiment(row),
                None => Err(no_experiment(transaction, &id.to_string())?),
            }
        })
    }

    /// The number of the experiment that was last kept under a name, or that has this number.
    ///
    /// # Errors
    /// When there is none, with the names that there are; or when the store fails.
    pub fn find_experiment(&self, name_or_id: &str) -> Result<ExperimentId, Error> {
        self.read(|transaction| {
            // Names come first: a name may be a number.
            let sql = "SELECT id FROM experiments WHERE name = ?1 OR id = ?2
                ORDER BY name = ?1 DESC, used DESC LIMIT 1";
            let id: Option<i64> = name_or_id.parse().ok();
            let found =
                transaction.query_row(sql, params![name_or_id, id], |row| row.get(0)).optional()?;
            match found {
                Some(id) => Ok(ExperimentId(id)),
                None => Err(no_experiment(transaction, name_or_id)?),
            }
        })
    }
}

/// What makes it the experiment that it is: all that says what is run, but not how often.
fn identity(experiment: &Experiment) -> serde_json::Result<String> {
    let mut run = experiment.clone();
    for used in &mut run.workloads {
        *used = used.as_run();
    }
    // Of user space the digest tells all that matters.
    definition(&run, &["boots", "sequential", "userspace"])
}

/// The experiment of this name and identity that was last kept. It is told by its definition: in stores
/// of old, digests are of more than the identity.
fn known(
    connection: &Connection,
    name: &str,
    identity: &str,
) -> Result<Option<(ExperimentId, Experiment)>, Trouble> {
    let sql = "SELECT * FROM experiments WHERE name = ? ORDER BY used DESC";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([name])?;
    while let Some(row) = rows.next()? {
        let kept = experiment(row)?;
        if self::identity(&kept).is_ok_and(|own| own == identity) {
            return Ok(Some((ExperimentId(row.get("id")?), kept)));
        }
    }
    Ok(None)
}

/// JSON with sorted keys of everything but what is left out.
fn definition(experiment: &Experiment, left_out: &[&str]) -> serde_json::Result<String> {
    let mut keys: Map<String, Value> = serde_json::from_value(serde_json::to_value(experiment)?)?;
    keys.retain(|key, _| !left_out.contains(&key.as_str()));
    let mut definition = Value::Object(keys);
    // They are sorted already, unless another crate turned on serde_json's `preserve_order`.
    definition.sort_all_objects();
    serde_json::to_string(&definition)
}

fn experiment(row: &Row) -> Result<Experiment, Trouble> {
    let id: i64 = row.get("id")?;
    let boots: u32 = row.get("boots")?;
    let definition: String = row.get("definition")?;
    let parse = || {
        let mut keys: Map<String, Value> = serde_json::from_str(&definition)?;
        keys.insert("boots".into(), boots.into());
        serde_json::from_value(Value::Object(keys))
    };
    parse().map_err(|error: serde_json::Error| {
        Trouble::damaged(format!("the definition of experiment {id}"), error)
    })
}

fn experiment_row(connection: &Connection, row: &Row) -> Result<ExperimentRow, Trouble> {
    let experiment = experiment(row)?;
    let id = row.get("id")?;
    let mut outcomes = BTreeMap::new();
    let mut superseded = 0;
    let sql = "SELECT outcome, superseded, count(*) FROM boots WHERE experiment = ? GROUP BY 1, 2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut counts = statement.query([id])?;
    while let Some(count) = counts.next()? {
        if count.get(1)? {
            superseded += count.get::<_, u32>(2)?;
        } else {
            outcomes.insert(count.get(0)?, count.get(2)?);
        }
    }
    let variants = experiment.variants.into_iter();
    Ok(ExperimentRow {
        id: ExperimentId(id),
        name: experiment.name,
        created: row.get("created")?,
        variants: variants.map(|variant| variant.name).collect(),
        boots: experiment.boots,
        outcomes,
        superseded,
    })
}

fn no_experiment(connection: &Connection, wanted: &str) -> Result<Trouble, Trouble> {
    let sql = "SELECT DISTINCT name FROM experiments ORDER BY name";
    let mut statement = connection.prepare(sql)?;
    let names = statement.query_map([], |row| row.get(0))?;
    Ok(Trouble::NoExperiment { wanted: wanted.into(), names: names.collect::<Result<_, _>>()? })
}
