//! The record of an experiment: everything but its definition, including the list of its boots with the digests of
//! their contents.
//!
//! Checksums form a tree for each experiment, because SQLite does not notice a flipped bit in a row. The record has
//! the digest of the definition, and of each boot the digest of its list of parts. That list has the digest of each
//! part. Each digest is verified when the bytes that it covers are read. Nothing above the records is written when a
//! boot is kept. The store's list of experiments has the number, name and kin by which each is found. It is written
//! when an experiment is created, kept again, renamed or removed.

use model::BootId;
use rusqlite::{Connection, OptionalExtension, params};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::Digest as _;
use sha2::Sha256;

use crate::{ExperimentId, Trouble};

/// A SHA-256 digest.
pub type Digest = [u8; 32];

/// The stored data of an experiment, except its definition.
#[derive(Debug, Serialize, Deserialize)]
pub struct Record {
    pub name: String,
    pub kin: Digest,
    /// The requested boots of each variant.
    pub wanted: u32,
    /// When it was kept first, in seconds since 1970.
    pub created: u64,
    /// The user's remark.
    pub note: String,
    /// The names of its variants.
    pub variants: Vec<String>,
    /// The digest of the definition.
    pub definition: Digest,
    /// Its boots in the order in which they were kept.
    pub boots: Vec<BootEntry>,
}

/// A boot in the list of its experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootEntry {
    /// The boot's number in the store.
    #[serde(with = "number")]
    pub id: BootId,
    /// The variant's name.
    pub variant: String,
    /// The number of this boot of the variant.
    #[serde(rename = "replicate")]
    pub boot_index: u32,
    /// The word of its outcome ([`model::Outcome::name`]).
    pub outcome: String,
    /// Whether it does not count, because it was repeated or will be.
    pub superseded: bool,
    /// The bytes of its parts, without texts that boots share.
    pub size: u64,
    /// The digest of the list of its parts.
    pub(crate) contents: Digest,
}

/// Serializes a [`BootId`] as a number.
mod number {
    use super::*;

    pub fn serialize<S: serde::Serializer>(id: &BootId, serializer: S) -> Result<S::Ok, S::Error> {
        id.0.serialize(serializer)
    }

    pub fn deserialize<'de, D: serde::Deserializer<'de>>(from: D) -> Result<BootId, D::Error> {
        i64::deserialize(from).map(BootId)
    }
}

impl BootEntry {
    /// Whether the boot need not be repeated.
    pub fn is_done(&self) -> bool {
        self.outcome != "interrupted" && !self.superseded
    }

    /// Whether it is done, and did not complete.
    pub fn is_failed(&self) -> bool {
        self.is_done() && self.outcome != "complete"
    }

    /// Whether it is done, and says nothing about the kernel.
    pub fn is_invalid(&self) -> bool {
        self.is_done() && self.outcome == "invalid"
    }
}

impl Record {
    /// Reads the record of an experiment.
    pub fn read(connection: &Connection, id: ExperimentId) -> Result<Self, Trouble> {
        match Self::find(connection, id)? {
            Some(record) => Ok(record),
            None => Err(missing(connection, id)?),
        }
    }

    /// The record of an experiment; `None` if there is no row with this number.
    pub fn find(connection: &Connection, id: ExperimentId) -> Result<Option<Self>, Trouble> {
        let what = || what(id);
        let kept: Option<(Vec<u8>, Vec<u8>)> = connection
            .prepare_cached("SELECT record, digest FROM experiments WHERE id = ?")?
            .query_row([id.0], |row| Ok((row.get("record")?, row.get("digest")?)))
            .optional()
            .map_err(|error| in_part(what, error))?;
        let Some((bytes, digest)) = kept else { return Ok(None) };
        if digest != digest_of(&what(), &bytes) {
            return Err(differs(what()));
        }
        postcard::from_bytes(&bytes).map(Some).map_err(|error| Trouble::damaged(what(), error))
    }

    /// Writes the record of an experiment, and lists the experiment with its name and kin as the most recent one.
    pub fn keep(&self, connection: &Connection, id: ExperimentId) -> Result<(), Trouble> {
        let mut all = Experiments::read(connection)?;
        all.0.retain(|listed| listed.id != id.0);
        all.0.push(Listed { id: id.0, name: self.name.clone(), kin: self.kin });
        all.keep(connection)?;
        let (bytes, digest) = self.sealed(id)?;
        let sql = "INSERT INTO experiments VALUES (?1, ?2, ?3)
            ON CONFLICT (id) DO UPDATE SET record = ?2, digest = ?3";
        connection.prepare_cached(sql)?.execute(params![id.0, bytes, digest])?;
        Ok(())
    }

    /// Writes a record in which only the boots or the remark changed.
    pub fn update(&self, connection: &Connection, id: ExperimentId) -> Result<(), Trouble> {
        let (bytes, digest) = self.sealed(id)?;
        let sql = "UPDATE experiments SET record = ?2, digest = ?3 WHERE id = ?1";
        connection.prepare_cached(sql)?.execute(params![id.0, bytes, digest])?;
        Ok(())
    }

    fn sealed(&self, id: ExperimentId) -> Result<(Vec<u8>, Digest), Trouble> {
        let bytes = encoded(self, || what(id))?;
        let digest = digest_of(&what(id), &bytes);
        Ok((bytes, digest))
    }
}

fn what(id: ExperimentId) -> String {
    format!("the record of experiment {id}")
}

/// The error for an experiment without a row. If the store's list has the experiment, the error is damage.
fn missing(connection: &Connection, id: ExperimentId) -> Result<Trouble, Trouble> {
    match Experiments::read(connection)?.has(id) {
        true => Ok(Trouble::damaged(what(id), "it is missing")),
        false => no_experiment(connection, &id.to_string()),
    }
}

/// The error for a name or a number that no experiment has. Fails when the store's list differs from the existing
/// experiments.
pub fn no_experiment(connection: &Connection, wanted: &str) -> Result<Trouble, Trouble> {
    let all = Experiments::read(connection)?;
    all.verify(connection)?;
    let mut names = std::collections::BTreeMap::<String, usize>::new();
    for listed in all.0 {
        *names.entry(listed.name).or_default() += 1;
    }
    let names = names.into_iter().map(|(name, number)| match number {
        1 => name,
        number => format!("{name} ({number} of that name)"),
    });
    Ok(Trouble::NoExperiment { wanted: wanted.into(), names: names.collect() })
}

/// An experiment in the list of the store, with its name and kin, by which it is found.
#[derive(Debug, Serialize, Deserialize)]
pub struct Listed {
    pub id: i64,
    pub name: String,
    pub kin: Digest,
}

/// All experiments, the most recent last.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Experiments(pub Vec<Listed>);

impl Experiments {
    pub fn read(connection: &Connection) -> Result<Self, Trouble> {
        read_list(connection, "experiments")
    }

    pub fn keep(&self, connection: &Connection) -> Result<(), Trouble> {
        keep_list(connection, "experiments", self)
    }

    /// The experiments that fit, the most recent first.
    pub fn recent(&self, fits: impl Fn(&Listed) -> bool) -> impl Iterator<Item = ExperimentId> {
        self.0.iter().rev().filter(move |it| fits(it)).map(|it| ExperimentId(it.id))
    }

    pub fn has(&self, id: ExperimentId) -> bool {
        self.0.iter().any(|listed| listed.id == id.0)
    }

    /// Checks that the listed experiments are those that have rows.
    pub fn verify(&self, connection: &Connection) -> Result<(), Trouble> {
        let mut statement = connection.prepare_cached("SELECT id FROM experiments ORDER BY id")?;
        let found = statement.query_map([], |row| row.get(0))?;
        let found: Vec<i64> = found.collect::<Result<_, _>>()?;
        let lacks = self.0.iter().find(|listed| found.binary_search(&listed.id).is_err());
        if let Some(listed) = lacks {
            return Err(Trouble::damaged(what(ExperimentId(listed.id)), "it is missing"));
        }
        match found.into_iter().map(ExperimentId).find(|id| !self.has(*id)) {
            Some(id) => {
                let why = format!("it lacks experiment {id}");
                Err(Trouble::damaged("the list of experiments", why))
            }
            None => Ok(()),
        }
    }
}

/// The lowest numbers for the next experiment and boot. Numbers of removed ones are not used again, because a
/// mail may quote the number of a boot. Written when an experiment is removed.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Numbers {
    pub experiment: i64,
    pub boot: i64,
}

impl Numbers {
    /// The numbers after the largest ones in the tables.
    pub fn next(connection: &Connection) -> Result<Self, Trouble> {
        let Self { experiment, boot } = Self::read(connection)?;
        let free = |table: &str| {
            let sql = format!("SELECT ifnull(max(id), 0) + 1 FROM {table}");
            connection.prepare_cached(&sql)?.query_row([], |row| row.get::<_, i64>(0))
        };
        Ok(Self {
            experiment: free("experiments")?.max(experiment),
            boot: free("boots")?.max(boot),
        })
    }

    /// Reads the stored numbers.
    pub fn read(connection: &Connection) -> Result<Self, Trouble> {
        read_list(connection, "numbers")
    }

    /// Writes the numbers.
    pub fn keep(&self, connection: &Connection) -> Result<(), Trouble> {
        keep_list(connection, "numbers", self)
    }
}

/// Reads a list of the store.
fn read_list<T: DeserializeOwned>(connection: &Connection, name: &str) -> Result<T, Trouble> {
    let what = || format!("the list of {name}");
    let kept: Option<(Vec<u8>, Vec<u8>)> = connection
        .prepare_cached("SELECT list, digest FROM lists WHERE name = ?")?
        .query_row([name], |row| Ok((row.get("list")?, row.get("digest")?)))
        .optional()
        .map_err(|error| in_part(what, error))?;
    let (list, digest) = kept.ok_or_else(|| Trouble::damaged(what(), "it is missing"))?;
    if digest != digest_of(&what(), &list) {
        return Err(differs(what()));
    }
    postcard::from_bytes(&list).map_err(|error| Trouble::damaged(what(), error))
}

/// Writes a list of the store.
fn keep_list(connection: &Connection, name: &str, list: &impl Serialize) -> Result<(), Trouble> {
    let what = || format!("the list of {name}");
    let list = encoded(list, what)?;
    let digest = digest_of(&what(), &list);
    let sql = "INSERT INTO lists VALUES (?1, ?2, ?3)
        ON CONFLICT (name) DO UPDATE SET list = ?2, digest = ?3";
    connection.prepare_cached(sql)?.execute(params![name, list, digest])?;
    Ok(())
}

/// Encodes a value in postcard's wire format (<https://postcard.jamesmunns.com>).
pub fn encoded(value: &impl Serialize, what: impl Fn() -> String) -> Result<Vec<u8>, Trouble> {
    postcard::to_stdvec(value).map_err(|error| Trouble::unkeepable(what(), error))
}

/// The digest of bytes and of their name, so that equal bytes of two experiments have different digests.
fn digest_of(what: &str, bytes: &[u8]) -> Digest {
    Sha256::new().chain_update(what).chain_update([0]).chain_update(bytes).finalize().into()
}

pub fn digest(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

/// Errors that SQLite finds in the structure of the file, at most a hundred.
pub fn integrity(connection: &Connection) -> Result<Vec<String>, Trouble> {
    let mut statement = connection.prepare("PRAGMA integrity_check")?;
    let lines = statement.query_map([], |row| row.get(0))?;
    let mut lines: Vec<String> = lines.collect::<Result<_, _>>()?;
    lines.retain(|line| line != "ok");
    Ok(lines)
}

/// The error for a checksum that does not match.
pub fn differs(what: impl Into<String>) -> Trouble {
    Trouble::damaged(what, "the checksum does not match")
}

/// Names the part that was being read when SQLite reported damage.
pub fn in_part(what: impl Fn() -> String, error: rusqlite::Error) -> Trouble {
    match Trouble::from(error) {
        Trouble::Malformed(error) | Trouble::Sqlite(error) => Trouble::damaged(what(), error),
        other => other,
    }
}
