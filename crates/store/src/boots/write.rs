//! Writes the rows of a boot.

use std::borrow::Cow;

use model::Boot;
use rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE;
use rusqlite::{Connection, OptionalExtension, Transaction, named_params, params};
use sha2::{Digest, Sha256};

use super::{BootId, words};
use crate::checksums::{Numbers, differs};
use crate::{Deltas, ExperimentId, Series, Trouble, chunk, packed, profile};

/// Writes all of a boot: its own chunks, then `series`.
pub fn boot(
    transaction: &Transaction,
    experiment: ExperimentId,
    boot: &Boot,
    series: &[Series],
) -> Result<BootId, Trouble> {
    let id = row(transaction, experiment, boot)?;
    problems(transaction, id, boot)?;
    notes(transaction, id, boot)?;
    samples(transaction, id, boot)?;
    usage(transaction, id, boot)?;
    let own = boot.chunks.iter().map(|chunk| Cow::Owned(chunk.into()));
    chunks(transaction, id, own.chain(series.iter().map(Cow::Borrowed)))?;
    profiles(transaction, id, boot)?;
    Ok(id)
}

fn row(connection: &Connection, experiment: ExperimentId, boot: &Boot) -> Result<BootId, Trouble> {
    let facts = &boot.facts;
    let (outcome, detail) = words::of_outcome(&boot.outcome);
    let console = packed::pack(boot.console.as_bytes(), packed::LEVEL)
        .map_err(|error| Trouble::unkeepable("the console", error))?;
    // The guest's u64 are stored as the i64 with the same bits, so that a wrong value does not lose the boot.
    connection
        .prepare_cached(
            "INSERT INTO boots (id, experiment, variant, replicate, block, started, outcome, detail,
                release, version, banner, cmdline, preemption, cpus, nodes, memory, page_size,
                accel, emulator, kernel_origin, kernel_digest, initramfs_digest,
                recording_digest, userspace_digest, userspace, config, load_before, load_after, steal, wall, console)
            VALUES (:id, :experiment, :variant, :replicate, :block, :started, :outcome, :detail,
                :release, :version, :banner, :cmdline, :preemption, :cpus, :nodes, :memory,
                :page_size, :accel, :emulator, :kernel_origin, :kernel_digest,
                :initramfs_digest, :recording_digest, :userspace_digest, :userspace, :config,
                :load_before, :load_after, :steal, :wall, :console)",
        )?
        .insert(named_params! {
            ":id": Numbers::next(connection)?.boot,
            ":experiment": experiment.0,
            ":variant": boot.variant,
            ":replicate": boot.replicate,
            ":block": boot.block,
            ":started": boot.started.cast_signed(),
            ":outcome": outcome,
            ":detail": detail,
            ":release": facts.release,
            ":version": facts.version,
            ":banner": facts.banner,
            ":cmdline": facts.cmdline,
            ":preemption": facts.preemption,
            ":cpus": facts.cpus,
            ":nodes": facts.nodes,
            ":memory": facts.memory.cast_signed(),
            ":page_size": facts.page_size.cast_signed(),
            ":accel": facts.execution_name(),
            ":emulator": facts.emulator,
            ":kernel_origin": facts.kernel_origin,
            ":kernel_digest": facts.kernel_digest,
            ":initramfs_digest": facts.initramfs_digest,
            ":recording_digest": facts.recording_digest,
            ":userspace_digest": facts.userspace_digest,
            ":userspace": text(connection, &facts.userspace.join("\n"))?,
            ":config": text(connection, &facts.config)?,
            ":load_before": boot.host.load_before,
            ":load_after": boot.host.load_after,
            ":steal": boot.host.steal,
            ":wall": boot.host.wall,
            ":console": console,
        })
        .map(BootId)
        .map_err(|error| match error.sqlite_error() {
            Some(failure) if failure.extended_code == SQLITE_CONSTRAINT_UNIQUE => {
                Trouble::KeptAlready {
                    experiment,
                    variant: boot.variant.clone(),
                    replicate: boot.replicate,
                }
            }
            _ => error.into(),
        })
}

/// The number of a text, which boots share; `None` for an empty one.
fn text(connection: &Connection, text: &str) -> Result<Option<i64>, Trouble> {
    if text.is_empty() {
        return Ok(None);
    }
    let digest = Sha256::digest(text);
    let known: Option<(i64, Vec<u8>)> = connection
        .prepare_cached("SELECT id, packed FROM texts WHERE digest = ?")?
        .query_row([digest.as_slice()], |row| Ok((row.get("id")?, row.get("packed")?)))
        .optional()?;
    if let Some((id, packed)) = known {
        // The boot's checksum covers the given text, so the stored copy must equal it.
        return match packed::unpack_text(&packed) {
            Ok(kept) if kept == text => Ok(Some(id)),
            _ => Err(differs(format!("text {id}, which boots share"))),
        };
    }
    let packed = packed::pack(text.as_bytes(), packed::LEVEL)
        .map_err(|error| Trouble::unkeepable("a text", error))?;
    let id = connection
        .prepare_cached("INSERT INTO texts (digest, packed) VALUES (?, ?)")?
        .insert(params![digest.as_slice(), packed])?;
    Ok(Some(id))
}

fn problems(connection: &Connection, id: BootId, boot: &Boot) -> Result<(), Trouble> {
    let sql = "INSERT INTO problems VALUES (?, ?, ?, ?)";
    let mut insert = connection.prepare_cached(sql)?;
    for (place, problem) in boot.problems.iter().enumerate() {
        insert.execute(params![id.0, place, problem.kind.name(), problem.text])?;
    }
    Ok(())
}

fn notes(connection: &Connection, id: BootId, boot: &Boot) -> Result<(), Trouble> {
    let mut insert = connection.prepare_cached("INSERT INTO notes VALUES (?, ?, ?)")?;
    for (place, note) in boot.notes.iter().enumerate() {
        insert.execute(params![id.0, place, note.to_string()])?;
    }
    Ok(())
}

fn samples(connection: &Connection, id: BootId, boot: &Boot) -> Result<(), Trouble> {
    let sql = "INSERT INTO samples VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let mut insert = connection.prepare_cached(sql)?;
    for (place, sample) in boot.samples.iter().enumerate() {
        insert.execute(params![
            id.0,
            place,
            sample.workload,
            sample.iteration,
            sample.phase,
            sample.metric,
            sample.label,
            sample.value,
            sample.ended.map(u64::cast_signed),
            sample.count,
        ])?;
    }
    Ok(())
}

fn usage(connection: &Connection, id: BootId, boot: &Boot) -> Result<(), Trouble> {
    let sql = "INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?)";
    let mut insert = connection.prepare_cached(sql)?;
    for (place, usage) in boot.usage.iter().enumerate() {
        insert.execute(params![
            id.0, place, usage.workload, usage.iteration, usage.user, usage.system, usage.elapsed,
        ])?;
    }
    Ok(())
}

fn chunks<'a>(
    connection: &Connection,
    id: BootId,
    series: impl Iterator<Item = Cow<'a, Series>>,
) -> Result<(), Trouble> {
    let sql = "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
    let mut insert = connection.prepare_cached(sql)?;
    let mut insert_ends = connection.prepare_cached("INSERT INTO chunk_ends VALUES (?, ?, ?)")?;
    for (place, series) in series.enumerate() {
        let pack = |times: &[u64], columns: &[Deltas]| {
            chunk::encode(times, columns).map_err(|error| {
                Trouble::unkeepable(format!("the series of {}", series.source), error)
            })
        };
        let packed = pack(&series.times, &series.columns)?;
        if let [first, _, .., last] = *series.times {
            let columns: Vec<Deltas> = series.columns.iter().map(Deltas::ends).collect();
            insert_ends.execute(params![id.0, place, pack(&[first, last], &columns)?])?;
        }
        insert.execute(params![
            id.0,
            place,
            series.workload,
            series.iteration,
            series.phase,
            series.source,
            series.times.len(),
            packed,
        ])?;
    }
    Ok(())
}

fn profiles(connection: &Connection, id: BootId, boot: &Boot) -> Result<(), Trouble> {
    let mut insert = connection.prepare_cached("INSERT INTO profiles VALUES (?, ?, ?, ?, ?, ?)")?;
    for (place, profile) in boot.profiles.iter().enumerate() {
        let packed = profile::encode(profile)
            .map_err(|error| Trouble::unkeepable("the exact profile", error))?;
        let model::Profile { workload, iteration, phase, .. } = profile;
        insert.execute(params![id.0, place, workload, iteration, phase, packed])?;
    }
    Ok(())
}
