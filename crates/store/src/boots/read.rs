//! Rows of a boot, read back.

use std::io;

use model::{Boot, BootFacts, Chunk, HostLoad, Problem, Profile, Sample, Usage};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{BootId, Detail, Kept, words};
use crate::packed::unpack_text;
use crate::{Trouble, chunk, profile};

/// Reads a boot as far as `detail` wants it.
pub fn boot(connection: &Connection, id: BootId, detail: Detail) -> Result<Kept, Trouble> {
    let mut kept = row(connection, id)?;
    let boot = &mut kept.boot;
    boot.facts.config = text(connection, id, "config")?;
    let userspace = text(connection, id, "userspace")?;
    boot.facts.userspace = userspace.lines().map(str::to_owned).collect();
    boot.problems = problems(connection, id)?;
    boot.notes = parts(connection, id, "SELECT text FROM notes", |row| row.get("text"))?;
    boot.samples = parts(connection, id, "SELECT * FROM samples", sample)?;
    boot.usage = parts(connection, id, "SELECT * FROM usage", usage)?;
    match detail {
        Detail::Summary => {}
        Detail::Series(sources) => boot.chunks = chunks(connection, id, Some(sources))?,
        Detail::AllSeries => boot.chunks = chunks(connection, id, None)?,
        Detail::Profiles(sources) => {
            boot.chunks = chunks(connection, id, Some(sources))?;
            boot.profiles = profiles(connection, id, profile::decode)?;
        }
        Detail::Ends(sources) => {
            boot.chunks = ends(connection, id, sources)?;
            boot.profiles = profiles(connection, id, accesses)?;
        }
        Detail::Whole => {
            boot.chunks = chunks(connection, id, None)?;
            boot.profiles = profiles(connection, id, profile::decode)?;
            boot.console = console(connection, id)?;
        }
    }
    Ok(kept)
}

/// What stands in the boot's own row, the packed parts aside.
fn row(connection: &Connection, id: BootId) -> Result<Kept, Trouble> {
    let sql = "SELECT superseded, variant, replicate, block, started, outcome, detail,
            release, version, banner, cmdline, preemption, cpus, nodes, memory, page_size,
            accel, emulator, kernel_origin, kernel_digest, initramfs_digest, recording_digest,
            userspace_digest,
            load_before, load_after, steal, wall
        FROM boots WHERE id = ?";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([id.0])?;
    let Some(row) = rows.next()? else {
        return Err(Trouble::NoBoot(id));
    };
    let word: String = row.get("outcome")?;
    let outcome = words::outcome(&word, row.get("detail")?).ok_or_else(|| {
        Trouble::damaged(format!("boot {id}"), format!("unknown outcome `{word}`"))
    })?;
    let boot = Boot {
        variant: row.get("variant")?,
        replicate: row.get("replicate")?,
        block: row.get("block")?,
        started: unsigned(row, "started")?,
        outcome,
        facts: facts(row)?,
        host: host(row)?,
        ..Boot::default()
    };
    Ok(Kept { id, superseded: row.get("superseded")?, boot })
}

fn facts(row: &Row) -> rusqlite::Result<BootFacts> {
    Ok(BootFacts {
        release: row.get("release")?,
        version: row.get("version")?,
        banner: row.get("banner")?,
        cmdline: row.get("cmdline")?,
        preemption: row.get("preemption")?,
        cpus: row.get("cpus")?,
        nodes: row.get("nodes")?,
        memory: unsigned(row, "memory")?,
        page_size: unsigned(row, "page_size")?,
        accel: row.get("accel")?,
        emulator: row.get("emulator")?,
        kernel_origin: row.get("kernel_origin")?,
        kernel_digest: row.get("kernel_digest")?,
        initramfs_digest: row.get("initramfs_digest")?,
        recording_digest: row.get("recording_digest")?,
        userspace_digest: row.get("userspace_digest")?,
        userspace: Vec::new(),
        config: String::new(),
    })
}

fn host(row: &Row) -> rusqlite::Result<HostLoad> {
    Ok(HostLoad {
        load_before: float(row, "load_before")?,
        load_after: float(row, "load_after")?,
        steal: float(row, "steal")?,
        wall: float(row, "wall")?,
    })
}

fn sample(row: &Row) -> rusqlite::Result<Sample> {
    Ok(Sample {
        workload: row.get("workload")?,
        iteration: row.get("iteration")?,
        phase: row.get("phase")?,
        metric: row.get("metric")?,
        label: row.get("label")?,
        value: float(row, "value")?,
        ended: row.get::<_, Option<i64>>("ended")?.map(i64::cast_unsigned),
    })
}

fn usage(row: &Row) -> rusqlite::Result<Usage> {
    Ok(Usage {
        workload: row.get("workload")?,
        iteration: row.get("iteration")?,
        user: float(row, "user")?,
        system: float(row, "system")?,
        elapsed: float(row, "elapsed")?,
    })
}

/// The rows of one boot in a table, in order of their places.
fn parts<T>(
    connection: &Connection,
    id: BootId,
    select: &str,
    read: impl FnMut(&Row) -> rusqlite::Result<T>,
) -> Result<Vec<T>, Trouble> {
    let sql = format!("{select} WHERE boot = ? ORDER BY place");
    let mut statement = connection.prepare_cached(&sql)?;
    let parts = statement.query_map([id.0], read)?;
    Ok(parts.collect::<Result<_, _>>()?)
}

fn problems(connection: &Connection, id: BootId) -> Result<Vec<Problem>, Trouble> {
    let rows = parts(connection, id, "SELECT * FROM problems", |row| {
        Ok((row.get::<_, String>("kind")?, row.get("text")?))
    })?;
    rows.into_iter()
        .map(|(word, text)| match words::problem(&word) {
            Some(kind) => Ok(Problem { kind, text }),
            None => Err(Trouble::damaged(
                format!("a problem of boot {id}"),
                format!("unknown kind `{word}`"),
            )),
        })
        .collect()
}

/// The chunks of a boot, of all sources or of some.
fn chunks(
    connection: &Connection,
    id: BootId,
    sources: Option<&[&str]>,
) -> Result<Vec<Chunk>, Trouble> {
    let sql = "SELECT * FROM chunks
        WHERE boot = ?1 AND (?2 IS NULL OR source IN (SELECT value FROM json_each(?2)))
        ORDER BY place";
    let sources = sources.map(|sources| serde_json::Value::from(sources).to_string());
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![id.0, sources])?;
    let mut chunks = Vec::new();
    while let Some(row) = rows.next()? {
        chunks.push(chunk(row, id)?);
    }
    Ok(chunks)
}

/// The chunks of some sources of a boot, each with its first and last sample alone.
fn ends(connection: &Connection, id: BootId, sources: &[&str]) -> Result<Vec<Chunk>, Trouble> {
    // Stores of old have no ends: then the series itself is read.
    let sql = "SELECT workload, iteration, phase, source, chunks.place AS place,
            ifnull(chunk_ends.packed, chunks.packed) AS packed
        FROM chunks LEFT JOIN chunk_ends USING (boot, place)
        WHERE boot = ?1 AND source IN (SELECT value FROM json_each(?2))
        ORDER BY place";
    let sources = serde_json::Value::from(sources).to_string();
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![id.0, sources])?;
    let mut chunks = Vec::new();
    while let Some(row) = rows.next()? {
        let chunk = chunk(row, id)?;
        let (times, columns) = chunk::ends(&chunk.times, &chunk.columns);
        chunks.push(Chunk { times, columns, ..chunk });
    }
    Ok(chunks)
}

fn chunk(row: &Row, boot: BootId) -> Result<Chunk, Trouble> {
    let chunk = Chunk {
        workload: row.get("workload")?,
        iteration: row.get("iteration")?,
        phase: row.get("phase")?,
        source: row.get("source")?,
        times: Vec::new(),
        columns: Vec::new(),
    };
    let place: u32 = row.get("place")?;
    let packed: Vec<u8> = row.get("packed")?;
    match chunk::decode(&packed) {
        Ok((times, columns)) => Ok(Chunk { times, columns, ..chunk }),
        Err(error) => {
            let what = format!(
                "chunk {place} of boot {boot} ({} in iteration {} of `{}`, phase `{}`)",
                chunk.source, chunk.iteration, chunk.workload, chunk.phase
            );
            Err(Trouble::damaged(what, error))
        }
    }
}

/// The profiles of a boot, as far as `decode` reads them.
fn profiles(
    connection: &Connection,
    id: BootId,
    decode: fn(&[u8]) -> io::Result<Profile>,
) -> Result<Vec<Profile>, Trouble> {
    let sql = "SELECT * FROM profiles WHERE boot = ? ORDER BY place";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([id.0])?;
    let mut profiles = Vec::new();
    while let Some(row) = rows.next()? {
        let packed: Vec<u8> = row.get("packed")?;
        let place: u32 = row.get("place")?;
        let profile = decode(&packed)
            .map_err(|error| Trouble::damaged(format!("profile {place} of boot {id}"), error))?;
        profiles.push(Profile {
            workload: row.get("workload")?,
            iteration: row.get("iteration")?,
            phase: row.get("phase")?,
            ..profile
        });
    }
    Ok(profiles)
}

/// A profile with its accesses alone.
fn accesses(packed: &[u8]) -> io::Result<Profile> {
    Ok(Profile { accesses: profile::decode_accesses(packed)?, ..Profile::default() })
}

/// The text that a column of the boot's row names; empty if there is none.
fn text(connection: &Connection, id: BootId, column: &str) -> Result<String, Trouble> {
    let sql =
        format!("SELECT packed FROM texts WHERE id = (SELECT {column} FROM boots WHERE id = ?)");
    let packed: Option<Vec<u8>> =
        connection.prepare_cached(&sql)?.query_row([id.0], |row| row.get("packed")).optional()?;
    packed
        .map_or(Ok(String::new()), |packed| unpack_text(&packed))
        .map_err(|error| Trouble::damaged(format!("the text {column} of boot {id}"), error))
}

fn console(connection: &Connection, id: BootId) -> Result<String, Trouble> {
    let packed: Vec<u8> = connection
        .prepare_cached("SELECT console FROM boots WHERE id = ?")?
        .query_row([id.0], |row| row.get("console"))?;
    unpack_text(&packed)
        .map_err(|error| Trouble::damaged(format!("the console of boot {id}"), error))
}

/// The 64 bits that were kept as a signed number.
fn unsigned(row: &Row, column: &str) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)?.cast_unsigned())
}

/// A number, NaN for NULL.
fn float(row: &Row, column: &str) -> rusqlite::Result<f64> {
    Ok(row.get::<_, Option<f64>>(column)?.unwrap_or(f64::NAN))
}
