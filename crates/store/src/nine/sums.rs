//! The checksums of schema version 9: a tree of SHA-256 over the store, its experiments, their boots and the parts of
//! each boot. A digest of rows covers all columns of all rows in order.

use model::BootId;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use crate::record::{differs, in_part};
use crate::{ExperimentId, Trouble};

pub use crate::record::Digest;

/// The checksums of the store.
#[derive(Deserialize)]
pub struct StoreSums {
    /// The experiments, most recent last.
    pub experiments: Vec<ExperimentEntry>,
}

/// The lowest numbers for the next experiment and boot.
#[derive(Deserialize)]
pub struct Numbers {
    pub experiment: i64,
    pub boot: i64,
}

/// An experiment in the list of the store.
#[derive(Deserialize)]
pub struct ExperimentEntry {
    pub id: i64,
    #[serde(rename = "name")]
    _name: String,
    /// The digest of its checksums.
    digest: Digest,
}

/// The checksums of an experiment.
#[derive(Deserialize)]
pub struct ExperimentSums {
    /// The digest of its row.
    pub row: Digest,
    /// Its boots in the order in which they were kept.
    pub boots: Vec<BootEntry>,
}

/// A boot in the list of its experiment.
#[derive(Deserialize)]
pub struct BootEntry {
    pub id: i64,
    #[serde(rename = "variant")]
    _variant: String,
    #[serde(rename = "replicate")]
    _replicate: u32,
    #[serde(rename = "outcome")]
    _outcome: String,
    #[serde(rename = "superseded")]
    _superseded: bool,
    /// The digest of its checksums.
    digest: Digest,
}

/// The digests of a boot's parts.
#[derive(Deserialize)]
pub struct BootSums {
    /// The digest of its row, without the console.
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
    /// All its chunks without their packed data, because most readers need only some of the data.
    pub chunks: Digest,
    /// The packed data of each chunk.
    pub series: Vec<Digest>,
    /// The packed ends of each chunk, if the store has them.
    pub ends: Vec<Option<Digest>>,
    pub profiles: Digest,
}

impl StoreSums {
    pub fn read(connection: &Connection) -> Result<Self, Trouble> {
        read(connection, "store", None)
    }
}

impl ExperimentSums {
    pub fn read(connection: &Connection, entry: &ExperimentEntry) -> Result<Self, Trouble> {
        let of = format!("experiment {}", ExperimentId(entry.id));
        read(connection, &of, Some(&entry.digest))
    }
}

impl Numbers {
    pub fn read(connection: &Connection) -> Result<Self, Trouble> {
        read(connection, "numbers", None)
    }
}

impl BootSums {
    pub fn read(connection: &Connection, entry: &BootEntry) -> Result<Self, Trouble> {
        read(connection, &format!("boot {}", BootId(entry.id)), Some(&entry.digest))
    }
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

fn digest_of(of: &str, sums: &[u8]) -> Digest {
    Sha256::new().chain_update(of).chain_update([0]).chain_update(sums).finalize().into()
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
fn rows<T>(
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
