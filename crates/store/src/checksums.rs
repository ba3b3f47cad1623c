//! Computes and verifies checksums of everything in the store at each read, because SQLite does not notice a
//! flipped bit in a row.
//!
//! They form a tree. A boot has a digest of each of its parts, over all columns of all rows in order. An
//! experiment has the digest of its row, and a list of its boots with the digests of their checksums. The
//! store has a list of its experiments with the digests of their checksums. Entries of a list are found by
//! number. Therefore a row that was changed, removed, added, reordered or moved to another boot is detected.
//!
//! Lists are updated incrementally, never rebuilt from the existing rows.

use model::BootId;
use std::collections::BTreeMap;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::{ExperimentId, Trouble};

/// A SHA-256.
pub type Digest = [u8; 32];

/// The checksums of the store.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct StoreSums {
    /// The experiments, most recent last.
    pub experiments: Vec<ExperimentEntry>,
}

/// The lowest numbers for the next experiment and boot. Numbers of removed ones are not used again, because a
/// mail may quote the number of a boot.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Numbers {
    pub experiment: i64,
    pub boot: i64,
}

/// An experiment in the list of the store.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExperimentEntry {
    /// Its number.
    pub id: i64,
    pub name: String,
    /// The digest of its checksums.
    digest: Digest,
}

/// The checksums of an experiment.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExperimentSums {
    /// The digest of its row.
    pub row: Digest,
    /// Its boots in the order in which they were kept.
    pub boots: Vec<BootEntry>,
}

/// A boot in the list of its experiment.
#[derive(Debug, Serialize, Deserialize)]
pub struct BootEntry {
    /// Its number.
    pub id: i64,
    /// The variant's name.
    pub variant: String,
    /// The number of this boot of the variant.
    pub replicate: u32,
    /// The word of its outcome.
    pub outcome: String,
    /// Whether it does not count because it is to be repeated.
    pub superseded: bool,
    /// The digest of its checksums.
    digest: Digest,
}

/// The digests of a boot's parts.
#[derive(Debug, Serialize, Deserialize)]
pub struct BootSums {
    /// Its row, without the console.
    pub row: Digest,
    /// The packed configuration of the kernel.
    pub config: Digest,
    /// The packed list of packages.
    pub userspace: Digest,
    /// The packed console.
    pub console: Digest,
    pub problems: Digest,
    pub notes: Digest,
    pub samples: Digest,
    /// The times of iterations.
    pub usage: Digest,
    /// All its chunks without their packed data. Most readers need only some of the data.
    pub chunks: Digest,
    /// The packed data of each chunk.
    pub series: Vec<Digest>,
    /// The packed ends of each chunk, if the store has them.
    pub ends: Vec<Option<Digest>>,
    pub profiles: Digest,
}

impl BootEntry {
    /// The boot's number.
    pub fn boot(&self) -> BootId {
        BootId(self.id)
    }

    /// Whether it need not be repeated.
    pub fn is_done(&self) -> bool {
        self.outcome != "interrupted" && !self.superseded
    }

    /// Whether it is done, and did not complete.
    pub fn is_failed(&self) -> bool {
        self.is_done() && self.outcome != "complete"
    }

    /// Whether it is done, and says nothing about the kernel. Older stores have another word for it.
    pub fn is_invalid(&self) -> bool {
        self.is_done() && matches!(&*self.outcome, "invalid" | "spoilt")
    }
}

impl StoreSums {
    /// Reads the checksums of the store.
    pub fn read(connection: &Connection) -> Result<Self, Trouble> {
        read(connection, "store", None)
    }

    /// Writes them.
    pub fn keep(&self, connection: &Connection) -> Result<(), Trouble> {
        keep(connection, "store", self).map(|_| ())
    }

    /// Reads the checksums of an experiment.
    pub fn experiment(
        &self,
        connection: &Connection,
        id: ExperimentId,
    ) -> Result<ExperimentSums, Trouble> {
        match self.experiments.iter().find(|entry| entry.id == id.0) {
            Some(entry) => read(connection, &of_experiment(id), Some(&entry.digest)),
            None => Err(self.no_experiment(&id.to_string())),
        }
    }

    /// Finds the experiment and the entry of a boot. If the boot is not found and the checksums of an
    /// experiment are damaged, the error is that damage.
    pub fn find_boot(
        &self,
        connection: &Connection,
        id: BootId,
    ) -> Result<(ExperimentId, BootEntry), Trouble> {
        let mut missing = Trouble::NoBoot(id);
        for entry in &self.experiments {
            let experiment = ExperimentId(entry.id);
            match self.experiment(connection, experiment) {
                Ok(sums) => {
                    if let Some(entry) = sums.boots.into_iter().find(|entry| entry.id == id.0) {
                        return Ok((experiment, entry));
                    }
                }
                Err(damaged) => missing = damaged,
            }
        }
        Err(missing)
    }

    /// The error for an experiment that does not exist.
    pub fn no_experiment(&self, wanted: &str) -> Trouble {
        let mut counted: BTreeMap<&str, usize> = BTreeMap::new();
        for entry in &self.experiments {
            *counted.entry(&entry.name).or_default() += 1;
        }
        let names = counted.into_iter().map(|(name, number)| match number {
            1 => name.to_owned(),
            number => format!("{name} ({number} of that name)"),
        });
        let names = names.collect();
        Trouble::NoExperiment { wanted: wanted.into(), names }
    }
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
        read(connection, "numbers", None)
    }

    /// Writes them.
    pub fn keep(&self, connection: &Connection) -> Result<(), Trouble> {
        keep(connection, "numbers", self).map(|_| ())
    }
}

impl ExperimentSums {
    /// Reads the checksums of an experiment.
    pub fn read(connection: &Connection, id: ExperimentId) -> Result<Self, Trouble> {
        StoreSums::read(connection)?.experiment(connection, id)
    }

    /// Writes the checksums of an experiment. Its entry keeps its position in the store's list. With a
    /// `name`, the entry moves to the end, because it is the most recent.
    pub fn keep(
        &self,
        connection: &Connection,
        id: ExperimentId,
        name: Option<&str>,
    ) -> Result<(), Trouble> {
        let mut store = StoreSums::read(connection)?;
        let digest = keep(connection, &of_experiment(id), self)?;
        if let Some(name) = name {
            store.experiments.retain(|entry| entry.id != id.0);
            store.experiments.push(ExperimentEntry { id: id.0, name: name.into(), digest });
        }
        for entry in store.experiments.iter_mut().filter(|entry| entry.id == id.0) {
            entry.digest = digest;
        }
        store.keep(connection)
    }
}

impl BootSums {
    /// Reads the checksums of a boot in the list.
    pub fn read(connection: &Connection, entry: &BootEntry) -> Result<Self, Trouble> {
        read(connection, &of_boot(entry.boot()), Some(&entry.digest))
    }

    /// Writes the checksums of a boot. Returns its entry for the experiment's list.
    pub fn keep(&self, connection: &Connection, id: BootId) -> Result<BootEntry, Trouble> {
        let digest = keep(connection, &of_boot(id), self)?;
        let sql = "SELECT variant, replicate, outcome, superseded FROM boots WHERE id = ?";
        Ok(connection.prepare_cached(sql)?.query_row([id.0], |row| {
            Ok(BootEntry {
                id: id.0,
                variant: row.get("variant")?,
                replicate: row.get("replicate")?,
                outcome: row.get("outcome")?,
                superseded: row.get("superseded")?,
                digest,
            })
        })?)
    }
}

/// Errors that SQLite finds in the structure of the file, at most a hundred.
pub fn integrity(connection: &Connection) -> Result<Vec<String>, Trouble> {
    let mut statement = connection.prepare("PRAGMA integrity_check")?;
    let lines = statement.query_map([], |row| row.get(0))?;
    let mut lines: Vec<String> = lines.collect::<Result<_, _>>()?;
    lines.retain(|line| line != "ok");
    Ok(lines)
}

fn of_experiment(id: ExperimentId) -> String {
    format!("experiment {id}")
}

fn of_boot(id: BootId) -> String {
    format!("boot {id}")
}

/// Reads checksums, and verifies them against their digest in the list above them.
fn read<T: DeserializeOwned>(
    connection: &Connection,
    of: &str,
    listed: Option<&Digest>,
) -> Result<T, Trouble> {
    let what = || format!("the checksums of {of}");
    let kept: Option<(Vec<u8>, Vec<u8>)> = connection
        .prepare_cached("SELECT sums, digest FROM checksums WHERE of = ?")?
        .query_row([of], |row| Ok((row.get("sums")?, row.get("digest")?)))
        .optional()
        .map_err(|error| in_part(what, error))?;
    let (sums, digest) = kept.ok_or_else(|| Trouble::damaged(what(), "they are missing"))?;
    let actual = digest_of(of, &sums);
    if actual[..] != digest || listed.is_some_and(|listed| *listed != actual) {
        return Err(differs(what()));
    }
    postcard::from_bytes(&sums).map_err(|error| Trouble::damaged(what(), error))
}

/// Writes checksums. Returns their digest.
fn keep(connection: &Connection, of: &str, sums: &impl Serialize) -> Result<Digest, Trouble> {
    let sums = postcard::to_stdvec(sums)
        .map_err(|error| Trouble::unkeepable(format!("the checksums of {of}"), error))?;
    let digest = digest_of(of, &sums);
    let sql = "INSERT INTO checksums VALUES (?1, ?2, ?3)
        ON CONFLICT (of) DO UPDATE SET sums = ?2, digest = ?3";
    connection.prepare_cached(sql)?.execute(params![of, sums, digest])?;
    Ok(digest)
}

fn digest_of(of: &str, sums: &[u8]) -> Digest {
    use sha2::Digest as _;
    Sha256::new().chain_update(of).chain_update([0]).chain_update(sums).finalize().into()
}

pub fn digest(bytes: &[u8]) -> Digest {
    use sha2::Digest as _;
    Sha256::digest(bytes).into()
}

/// An incremental digest of rows. It covers the number of values of each row, and each value with its type
/// and, if that varies, its length.
#[derive(Default)]
pub struct Digester {
    digest: Sha256,
    buffer: Vec<u8>,
}

impl Digester {
    /// Adds the first values of a row.
    pub fn add(&mut self, row: &Row, values: usize) -> rusqlite::Result<()> {
        use sha2::Digest as _;
        let buffer = &mut self.buffer;
        buffer.clear();
        buffer.extend((values as u64).to_le_bytes());
        for place in 0..values {
            match row.get_ref(place)? {
                ValueRef::Null => buffer.push(0),
                ValueRef::Integer(value) => number(buffer, 1, value.to_le_bytes()),
                ValueRef::Real(value) => number(buffer, 2, value.to_le_bytes()),
                ValueRef::Text(bytes) => text(buffer, 3, bytes),
                ValueRef::Blob(bytes) => text(buffer, 4, bytes),
            }
        }
        self.digest.update(buffer);
        Ok(())
    }

    /// The digest of the added rows.
    pub fn finish(self) -> Digest {
        use sha2::Digest as _;
        self.digest.finalize().into()
    }
}

fn number(buffer: &mut Vec<u8>, kind: u8, bytes: [u8; 8]) {
    buffer.push(kind);
    buffer.extend(bytes);
}

fn text(buffer: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    number(buffer, kind, (bytes.len() as u64).to_le_bytes());
    buffer.extend(bytes);
}

/// The rows that `sql` yields for a number, and their digest. Errors of `read` are separate from the digest,
/// because damaged rows often cannot be read.
pub fn rows<T>(
    connection: &Connection,
    sql: &str,
    id: i64,
    mut read: impl FnMut(&Row) -> Result<T, Trouble>,
) -> rusqlite::Result<(Result<Vec<T>, Trouble>, Digest)> {
    let mut statement = connection.prepare_cached(sql)?;
    let values = statement.column_count();
    let mut rows = statement.query([id])?;
    let mut digester = Digester::default();
    let mut all = Ok(Vec::new());
    while let Some(row) = rows.next()? {
        digester.add(row, values)?;
        if let Ok(list) = &mut all {
            match read(row) {
                Ok(one) => list.push(one),
                Err(error) => all = Err(error),
            }
        }
    }
    Ok((all, digester.finish()))
}

/// The rows that `sql` yields, verified against their digest.
pub fn verified<T>(
    connection: &Connection,
    sql: &str,
    id: i64,
    (expected, what): (&Digest, impl Fn() -> String),
    read: impl FnMut(&Row) -> Result<T, Trouble>,
) -> Result<Vec<T>, Trouble> {
    let (all, digest) = rows(connection, sql, id, read).map_err(|error| in_part(&what, error))?;
    if digest != *expected {
        return Err(differs(what()));
    }
    all.map_err(|error| match error {
        Trouble::Damaged { what: part, why } => Trouble::damaged(what(), format!("{part}: {why}")),
        error => Trouble::damaged(what(), error),
    })
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
