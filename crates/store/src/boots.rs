//! Writes boots, and reads them at a chosen level of detail.

use std::collections::BTreeSet;

use model::{Boot, BootId, Kept, Outcome};
use rusqlite::{Connection, OptionalExtension, params};

use crate::parts::{self, Detail, Part, Parts};
use crate::record::{BootEntry, Digest, Numbers, Record, differs, digest, in_part};
use crate::{ExperimentId, Standing, Trouble, experiments};

/// Writes all of a boot.
pub fn keep(
    connection: &Connection,
    experiment: ExperimentId,
    boot: &Boot,
    parts: &Parts,
    standing: Standing,
) -> Result<BootId, Trouble> {
    let mut record = Record::read(connection, experiment)?;
    let is_it = |entry: &&mut BootEntry| {
        (&*entry.variant, entry.boot_index) == (&*boot.variant, boot.boot_index) && entry.is_done()
    };
    let before = record.boots.iter_mut().find(is_it);
    let mut entry = BootEntry {
        id: BootId(Numbers::next(connection)?.boot),
        variant: boot.variant.clone(),
        boot_index: boot.boot_index,
        outcome: boot.outcome.name().into(),
        superseded: standing == Standing::Aside,
        size: parts.size(),
        contents: [0; 32],
    };
    match before {
        Some(failed) if standing == Standing::Instead && failed.is_failed() => {
            failed.superseded = true;
        }
        // A failed boot keeps its place while repeats of it are invalid.
        Some(failed) if standing == Standing::Aside && failed.is_failed() => {}
        Some(before) if !matches!(boot.outcome, Outcome::Interrupted) => {
            let (variant, boot_index) = (before.variant.clone(), before.boot_index);
            return Err(Trouble::KeptAlready { experiment, variant, boot_index });
        }
        _ => {}
    }
    entry.contents = write(connection, experiment, entry.id, parts)?;
    let id = entry.id;
    record.boots.push(entry);
    record.update(connection, experiment)?;
    Ok(id)
}

/// Writes the parts of a boot and their list. Returns the digest of the list.
pub fn write(
    connection: &Connection,
    experiment: ExperimentId,
    id: BootId,
    parts: &Parts,
) -> Result<Digest, Trouble> {
    let contents = parts.contents()?;
    connection
        .prepare_cached("INSERT INTO boots VALUES (?, ?, ?)")?
        .execute(params![id.0, experiment.0, contents])?;
    let mut insert = connection.prepare_cached("INSERT INTO parts VALUES (?, ?, ?)")?;
    for (place, (part, bytes)) in parts.list.iter().zip(&parts.bytes).enumerate() {
        match part.is_text() {
            true => text(connection, part, bytes)?,
            false => {
                insert.execute(params![id.0, place, bytes])?;
            }
        }
    }
    Ok(digest(&contents))
}

/// Writes a text that boots share. Its digest is its key. So a row with this key and other bytes is damaged, and is
/// replaced.
fn text(connection: &Connection, part: &Part, bytes: &[u8]) -> Result<(), Trouble> {
    let sql = "INSERT INTO texts VALUES (?1, ?2)
        ON CONFLICT (digest) DO UPDATE SET bytes = ?2 WHERE bytes <> ?2";
    connection.prepare_cached(sql)?.execute(params![part.digest, bytes])?;
    Ok(())
}

/// The experiment and the entry of a boot. A boot that an experiment lists but that has no row is reported as damage.
pub fn find(connection: &Connection, id: BootId) -> Result<(ExperimentId, BootEntry), Trouble> {
    let row: Option<i64> = connection
        .prepare_cached("SELECT experiment FROM boots WHERE id = ?")?
        .query_row([id.0], |row| row.get(0))
        .optional()?;
    let of = |record: Record| record.boots.into_iter().find(|entry| entry.id == id);
    if let Some(experiment) = row.map(ExperimentId)
        && let Some(entry) = Record::find(connection, experiment)?.and_then(of)
    {
        return Ok((experiment, entry));
    }
    let is_listed =
        experiments::records(connection)?.into_iter().any(|(_, record)| of(record).is_some());
    match is_listed || row.is_some() {
        true => Err(differs(format!("the row of boot {id}"))),
        false => Err(Trouble::NoBoot(id)),
    }
}

/// The verified list of a boot's parts.
pub fn contents(
    connection: &Connection,
    experiment: ExperimentId,
    entry: &BootEntry,
) -> Result<Vec<Part>, Trouble> {
    let what = || format!("the row of boot {}", entry.id);
    let contents: Option<Vec<u8>> = connection
        .prepare_cached("SELECT contents FROM boots WHERE id = ? AND experiment = ?")?
        .query_row([entry.id.0, experiment.0], |row| row.get(0))
        .optional()
        .map_err(|error| in_part(what, error))?;
    let contents = contents.ok_or_else(|| Trouble::damaged(what(), "it is missing"))?;
    if digest(&contents) != entry.contents {
        return Err(differs(what()));
    }
    postcard::from_bytes(&contents).map_err(|error| Trouble::damaged(what(), error))
}

/// Reads a boot at the given level of detail.
pub fn read(
    connection: &Connection,
    experiment: ExperimentId,
    entry: &BootEntry,
    detail: Detail,
) -> Result<Kept, Trouble> {
    let list = contents(connection, experiment, entry)?;
    let mut boot = Boot::default();
    for place in 0..list.len() {
        let previous = place.checked_sub(1).map(|previous| &list[previous]);
        if parts::is_wanted(&list[place], previous, detail) {
            add(connection, entry.id, (&list, place), &mut boot, detail)?;
        }
    }
    Ok(Kept { id: entry.id, superseded: entry.superseded, boot })
}

/// Marks invalid boots as superseded.
pub fn set_invalid_aside(connection: &Connection, id: ExperimentId) -> Result<(), Trouble> {
    let mut record = Record::read(connection, id)?;
    let mut invalid = record.boots.iter_mut().filter(|entry| entry.is_invalid()).peekable();
    if invalid.peek().is_none() {
        return Ok(());
    }
    invalid.for_each(|entry| entry.superseded = true);
    record.update(connection, id)
}

/// The list of an experiment's boots. Fails if the row or the list of parts of one is damaged or missing.
pub fn listed(connection: &Connection, id: ExperimentId) -> Result<Vec<BootEntry>, Trouble> {
    let boots = Record::read(connection, id)?.boots;
    for entry in &boots {
        contents(connection, id, entry)?;
    }
    Ok(boots)
}

/// Reads every part of a boot. Returns the readable parts, and an error for each other part.
pub fn check(
    connection: &Connection,
    experiment: ExperimentId,
    entry: &BootEntry,
) -> (Boot, Vec<Trouble>) {
    let mut boot = Boot::default();
    let list = match contents(connection, experiment, entry) {
        Ok(list) => list,
        Err(trouble) => return (boot, vec![trouble]),
    };
    let mut ends = Boot::default();
    let mut troubles = Vec::new();
    for (place, part) in list.iter().enumerate() {
        let into = if part.kind == parts::Kind::Ends { &mut ends } else { &mut boot };
        let added = add(connection, entry.id, (&list, place), into, Detail::Whole);
        troubles.extend(added.err());
    }
    (boot, troubles)
}

/// Reads and verifies a part, and adds it to the boot.
fn add(
    connection: &Connection,
    id: BootId,
    (list, place): (&[Part], usize),
    boot: &mut Boot,
    detail: Detail,
) -> Result<(), Trouble> {
    let part = &list[place];
    let what = || parts::what(list, place, id);
    let bytes: Option<Vec<u8>> = match part.is_text() {
        true => connection
            .prepare_cached("SELECT bytes FROM texts WHERE digest = ?")?
            .query_row([part.digest], |row| row.get(0)),
        false => connection
            .prepare_cached("SELECT bytes FROM parts WHERE boot = ? AND place = ?")?
            .query_row(params![id.0, place], |row| row.get(0)),
    }
    .optional()
    .map_err(|error| in_part(what, error))?;
    let bytes = bytes.ok_or_else(|| Trouble::damaged(what(), "it is missing"))?;
    if digest(&bytes) != part.digest {
        return Err(differs(what()));
    }
    parts::add(boot, part, &bytes, detail).map_err(|error| Trouble::damaged(what(), error))
}

/// Removes all boots of an experiment, and the texts that only they have. If the list of a boot is damaged, all texts
/// remain.
pub fn remove(connection: &Connection, experiment: ExperimentId) -> Result<(), Trouble> {
    if let Ok(unused) = only_in(connection, experiment) {
        for text in unused {
            connection.execute("DELETE FROM texts WHERE digest = ?", [text])?;
        }
    }
    let of_it = "IN (SELECT id FROM boots WHERE experiment = ?)";
    connection.execute(&format!("DELETE FROM parts WHERE boot {of_it}"), [experiment.0])?;
    connection.execute("DELETE FROM boots WHERE experiment = ?", [experiment.0])?;
    Ok(())
}

/// The texts that only boots of one experiment have.
fn only_in(connection: &Connection, experiment: ExperimentId) -> Result<BTreeSet<Digest>, Trouble> {
    let (mut own, mut others) = (BTreeSet::new(), BTreeSet::new());
    for (id, record) in experiments::records(connection)? {
        let texts = if id == experiment { &mut own } else { &mut others };
        for entry in &record.boots {
            let parts = contents(connection, id, entry)?.into_iter().filter(Part::is_text);
            texts.extend(parts.map(|part| part.digest));
        }
    }
    Ok(&own - &others)
}
