//! Boots: kept each in one transaction, and read back at a chosen level of detail.

mod read;
mod words;
mod write;

use model::{Boot, BootId, Kept};
use rusqlite::{Connection, Transaction};

use crate::checksums::{BootEntry, BootSums, ExperimentSums, StoreSums, differs};
use crate::{Error, ExperimentId, Series, Store, Trouble};

pub(crate) use read::check;
#[cfg(test)]
pub(crate) use read::sums;

/// How much of a boot to read. Series and consoles are large.
#[derive(Clone, Copy, Debug)]
pub enum Detail<'a> {
    /// All but chunks, profiles and console, which are left empty.
    Summary,
    /// The same with the chunks of the named sources.
    Series(&'a [&'a str]),
    /// The same with the chunks of every source.
    AllSeries,
    /// The chunks of the named sources and the profiles.
    Profiles(&'a [&'a str]),
    /// The memory accesses of the profiles, and the first and last sample of the named sources' chunks.
    /// This is enough for differences.
    Ends(&'a [&'a str]),
    /// Everything.
    Whole,
}

impl Store {
    /// Keeps a boot with all its data, or nothing of it. The boot is on disk when this returns.
    ///
    /// # Errors
    /// When this replicate of the variant was kept before and was neither interrupted nor
    /// superseded ([`Store::keep_instead`]), when the disk is full, or when the store fails
    /// otherwise. Boots kept before are not touched.
    pub fn keep_boot(&mut self, experiment: ExperimentId, boot: &Boot) -> Result<BootId, Error> {
        self.keep_boot_with(experiment, boot, &[])
    }

    /// [`Store::keep_boot`] for a boot whose chunks are given, in whole or in part, as `series`.
    ///
    /// # Errors
    /// As for [`Store::keep_boot`].
    pub fn keep_boot_with(
        &mut self,
        experiment: ExperimentId,
        boot: &Boot,
        series: &[Series],
    ) -> Result<BootId, Error> {
        self.write(|transaction| keep(transaction, experiment, boot, series, false))
    }

    /// [`Store::keep_boot`] for a boot that is to be repeated. It stays as evidence, but does not count as
    /// done.
    ///
    /// # Errors
    /// As for [`Store::keep_boot`].
    pub fn keep_aside(&mut self, experiment: ExperimentId, boot: &Boot) -> Result<BootId, Error> {
        self.write(|transaction| keep(transaction, experiment, boot, &[], true))
    }

    /// Variant and replicate of the boots that are done: all but interrupted and forgotten ones.
    ///
    /// # Errors
    /// When the store fails.
    pub fn done(&self, experiment: ExperimentId) -> Result<Vec<(String, u32)>, Error> {
        self.read(|transaction| {
            let boots = ExperimentSums::read(transaction, experiment)?.boots.into_iter();
            let done = boots.filter(BootEntry::is_done);
            Ok(done.map(|entry| (entry.variant, entry.replicate)).collect())
        })
    }

    /// All boots of an experiment in the order in which they were kept. A replicate that was interrupted or
    /// forgotten and then repeated occurs more than once.
    ///
    /// # Errors
    /// When something wanted is damaged, or the store fails.
    pub fn boots(&self, experiment: ExperimentId, detail: Detail) -> Result<Vec<Kept>, Error> {
        self.read(|transaction| {
            let boots = ExperimentSums::read(transaction, experiment)?.boots;
            boots.iter().map(|entry| read::boot(transaction, entry, detail)).collect()
        })
    }

    /// The same, one boot at a time, so that only one is in memory. The first error of `each` stops it and
    /// is returned as the inner result.
    ///
    /// # Errors
    /// As for [`Store::boots`].
    pub fn each_boot<E>(
        &self,
        experiment: ExperimentId,
        detail: Detail,
        mut each: impl FnMut(Kept) -> Result<(), E>,
    ) -> Result<Result<(), E>, Error> {
        self.read(|transaction| {
            for entry in ExperimentSums::read(transaction, experiment)?.boots {
                if let Err(error) = each(read::boot(transaction, &entry, detail)?) {
                    return Ok(Err(error));
                }
            }
            Ok(Ok(()))
        })
    }

    /// One boot, whole.
    ///
    /// # Errors
    /// When there is none of this number, something in it is damaged, or the store fails.
    pub fn boot(&self, id: BootId) -> Result<Kept, Error> {
        self.read(|transaction| {
            let (_, entry) = StoreSums::read(transaction)?.find_boot(transaction, id)?;
            read::boot(transaction, &entry, Detail::Whole)
        })
    }

    /// The experiment that a boot belongs to.
    ///
    /// # Errors
    /// When there is no such boot, or the store fails.
    pub fn experiment_of(&self, id: BootId) -> Result<ExperimentId, Error> {
        self.read(|transaction| {
            let (experiment, _) = StoreSums::read(transaction)?.find_boot(transaction, id)?;
            Ok(experiment)
        })
    }

    /// Marks the failed boots of an experiment to be repeated: they stay as evidence, but no longer count
    /// as done. Returns how many there were.
    ///
    /// # Errors
    /// When the store fails.
    pub fn failed(&self, experiment: ExperimentId) -> Result<Vec<(String, u32)>, Error> {
        self.read(|transaction| {
            let boots = ExperimentSums::read(transaction, experiment)?.boots.into_iter();
            let failed = boots.filter(BootEntry::is_failed);
            Ok(failed.map(|entry| (entry.variant, entry.replicate)).collect())
        })
    }

    /// Keeps a boot in the place of one that failed. The failed one stays as evidence, and no longer
    /// counts.
    ///
    /// # Errors
    /// As for [`Store::keep_boot`], and when the row of the failed boot is damaged.
    pub fn keep_instead(&mut self, experiment: ExperimentId, boot: &Boot) -> Result<BootId, Error> {
        self.write(|transaction| {
            let mut sums = ExperimentSums::read(transaction, experiment)?;
            let is_it = |entry: &&mut BootEntry| {
                entry.is_failed()
                    && (&*entry.variant, entry.replicate) == (&*boot.variant, boot.replicate)
            };
            if let Some(entry) = sums.boots.iter_mut().find(is_it) {
                *entry = supersede(transaction, entry)?;
                sums.keep(transaction, experiment, None)?;
            }
            keep(transaction, experiment, boot, &[], false)
        })
    }
}

fn keep(
    transaction: &Transaction,
    experiment: ExperimentId,
    boot: &Boot,
    series: &[Series],
    superseded: bool,
) -> Result<BootId, Trouble> {
    let mut sums = ExperimentSums::read(transaction, experiment)?;
    let id = write::boot(transaction, experiment, boot, series)?;
    if superseded {
        mark_superseded(transaction, id)?;
    }
    sums.boots.push(read::sums(transaction, id)?.keep(transaction, id)?);
    sums.keep(transaction, experiment, None)?;
    Ok(id)
}

/// Marks a boot as superseded, after verifying its row: a new checksum over a damaged row would hide the
/// damage.
fn supersede(connection: &Connection, entry: &BootEntry) -> Result<BootEntry, Trouble> {
    let id = entry.boot();
    let mut sums = BootSums::read(connection, entry)?;
    if read::row_digest(connection, id)? != sums.row {
        return Err(differs(format!("the row of boot {id}")));
    }
    mark_superseded(connection, id)?;
    sums.row = read::row_digest(connection, id)?;
    sums.keep(connection, id)
}

fn mark_superseded(connection: &Connection, id: BootId) -> Result<(), Trouble> {
    connection.execute("UPDATE boots SET superseded = TRUE WHERE id = ?", [id.0])?;
    Ok(())
}
