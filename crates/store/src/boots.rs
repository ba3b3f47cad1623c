//! Keeps boots, each in one transaction, and reads them at a chosen level of detail.

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

/// The parts of a boot to read. Series and consoles are large.
#[derive(Clone, Copy, Debug)]
pub enum Detail<'a> {
    /// Everything except chunks, profiles and console, which are empty.
    Summary,
    /// The summary, and the chunks of the named sources.
    Series(&'a [&'a str]),
    /// The summary, and the chunks of all sources.
    AllSeries,
    /// The summary, the chunks of the named sources, and the profiles.
    Profiles(&'a [&'a str]),
    /// The summary, the memory accesses of the profiles, and the first and last sample of each chunk of the
    /// named sources. This is enough for differences.
    Ends(&'a [&'a str]),
    /// Everything.
    Whole,
}

impl Store {
    /// Keeps a boot with all its data, or nothing of it. When this returns, the boot is on disk. Fails when
    /// this replicate of the variant was kept before and was neither interrupted nor superseded
    /// ([`Store::keep_instead`]), when the disk is full, or when the store fails otherwise. Boots kept before
    /// remain unchanged.
    pub fn keep_boot(&mut self, experiment: ExperimentId, boot: &Boot) -> Result<BootId, Error> {
        self.keep_boot_with(experiment, boot, &[])
    }

    /// [`Store::keep_boot`] for a boot some or all of whose chunks are in `series`. Fails as
    /// [`Store::keep_boot`] does.
    pub fn keep_boot_with(
        &mut self,
        experiment: ExperimentId,
        boot: &Boot,
        series: &[Series],
    ) -> Result<BootId, Error> {
        self.write(|transaction| keep(transaction, experiment, boot, series, false))
    }

    /// [`Store::keep_boot`] for a boot that will be repeated. It remains as evidence, but does not count as
    /// done. Fails as [`Store::keep_boot`] does.
    pub fn keep_aside(&mut self, experiment: ExperimentId, boot: &Boot) -> Result<BootId, Error> {
        self.write(|transaction| keep(transaction, experiment, boot, &[], true))
    }

    /// Variant and replicate of the boots that are done: all except interrupted, invalid and superseded ones. Fails
    /// when the store fails.
    pub fn done(&self, experiment: ExperimentId) -> Result<Vec<(String, u32)>, Error> {
        self.read(|transaction| {
            let boots = ExperimentSums::read(transaction, experiment)?.boots.into_iter();
            let done = boots.filter(|entry| entry.is_done() && !entry.is_invalid());
            Ok(done.map(|entry| (entry.variant, entry.replicate)).collect())
        })
    }

    /// All boots of an experiment in the order in which they were kept. A replicate that was interrupted or
    /// superseded and then repeated occurs more than once. Fails when a requested part is damaged, or the
    /// store fails.
    pub fn boots(&self, experiment: ExperimentId, detail: Detail) -> Result<Vec<Kept>, Error> {
        self.read(|transaction| {
            let boots = ExperimentSums::read(transaction, experiment)?.boots;
            boots.iter().map(|entry| read::boot(transaction, entry, detail)).collect()
        })
    }

    /// Passes the boots of [`Store::boots`] to `each`, one at a time, so that only one is in memory. The
    /// first error of `each` ends this and is returned as the inner result. Fails as [`Store::boots`] does.
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

    /// One boot with all its parts. Fails when no boot has this number, a part of it is damaged, or the store
    /// fails.
    pub fn boot(&self, id: BootId) -> Result<Kept, Error> {
        self.read(|transaction| {
            let (_, entry) = StoreSums::read(transaction)?.find_boot(transaction, id)?;
            read::boot(transaction, &entry, Detail::Whole)
        })
    }

    /// The experiment that a boot belongs to. Fails when there is no such boot, or the store fails.
    pub fn experiment_of(&self, id: BootId) -> Result<ExperimentId, Error> {
        self.read(|transaction| {
            let (experiment, _) = StoreSums::read(transaction)?.find_boot(transaction, id)?;
            Ok(experiment)
        })
    }

    /// Variant and replicate of the failed boots of an experiment. Fails when the store fails.
    pub fn failed(&self, experiment: ExperimentId) -> Result<Vec<(String, u32)>, Error> {
        self.read(|transaction| {
            let boots = ExperimentSums::read(transaction, experiment)?.boots.into_iter();
            let failed = boots.filter(BootEntry::is_failed);
            Ok(failed.map(|entry| (entry.variant, entry.replicate)).collect())
        })
    }

    /// Marks boots that the host spoilt as superseded, so that they are repeated. They remain as evidence. Fails when
    /// the store fails, or a row of them is damaged.
    pub fn set_invalid_aside(&mut self, experiment: ExperimentId) -> Result<(), Error> {
        self.write(|transaction| {
            let mut sums = ExperimentSums::read(transaction, experiment)?;
            if !sums.boots.iter().any(BootEntry::is_invalid) {
                return Ok(());
            }
            for entry in sums.boots.iter_mut().filter(|entry| entry.is_invalid()) {
                *entry = supersede(transaction, entry)?;
            }
            sums.keep(transaction, experiment, None)?;
            Ok(())
        })
    }

    /// Keeps a boot in place of a failed one. The failed one remains as evidence, and no longer counts. Fails
    /// as [`Store::keep_boot`] does, and when the row of the failed boot is damaged.
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
