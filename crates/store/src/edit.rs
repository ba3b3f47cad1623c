//! Removes and renames experiments, and sets notes on them.

use rusqlite::params;
use sha2::{Digest, Sha256};

use crate::checksums::{ExperimentSums, Numbers, StoreSums};
use crate::experiments::{self, definition, identity};
use crate::{Error, ExperimentId, Store, Trouble};

/// The tables with rows of boots.
const PARTS: [&str; 7] =
    ["chunk_ends", "chunks", "profiles", "usage", "samples", "notes", "problems"];

impl Store {
    /// Removes an experiment with all its boots. Their numbers are not used again. The file keeps its size;
    /// the freed space is reused. Fails when no experiment has this number, or the store fails. Then nothing
    /// is removed.
    pub fn remove_experiment(&mut self, id: ExperimentId) -> Result<(), Error> {
        self.write(|transaction| {
            let mut store = StoreSums::read(transaction)?;
            if !store.experiments.iter().any(|entry| entry.id == id.0) {
                return Err(store.no_experiment(&id.to_string()));
            }
            Numbers::next(transaction)?.keep(transaction)?;
            let of_it = "IN (SELECT id FROM boots WHERE experiment = ?)";
            for part in PARTS {
                transaction.execute(&format!("DELETE FROM {part} WHERE boot {of_it}"), [id.0])?;
            }
            let sums = "DELETE FROM checksums WHERE of = 'experiment ' || ?1
                OR of IN (SELECT 'boot b' || id FROM boots WHERE experiment = ?1)";
            transaction.execute(sums, [id.0])?;
            transaction.execute("DELETE FROM boots WHERE experiment = ?", [id.0])?;
            transaction.execute("DELETE FROM experiments WHERE id = ?", [id.0])?;
            let unused = "DELETE FROM texts WHERE id NOT IN
                (SELECT config FROM boots WHERE config IS NOT NULL
                UNION SELECT userspace FROM boots WHERE userspace IS NOT NULL)";
            transaction.execute(unused, [])?;
            store.experiments.retain(|entry| entry.id != id.0);
            store.keep(transaction)
        })
    }

    /// Renames an experiment. The same definition with the new name is then this experiment: a run of it
    /// continues with its boots. Fails when no experiment has this number, it is damaged, another experiment
    /// has this name and the same definition, or the store fails.
    pub fn rename_experiment(&mut self, id: ExperimentId, name: &str) -> Result<(), Error> {
        self.write(|transaction| {
            let mut sums = ExperimentSums::read(transaction, id)?;
            let mut experiment = experiments::row(transaction, id, &sums)?.experiment;
            name.clone_into(&mut experiment.name);
            let unkeepable = |error| Trouble::unkeepable(format!("experiment `{name}`"), error);
            let identity = identity(&experiment).map_err(unkeepable)?;
            if let Some((other, _)) = experiments::known(transaction, name, &identity)?
                && other != id
            {
                return Err(Trouble::NameTaken { name: name.into(), other });
            }
            let definition = definition(&experiment, &["boots"]).map_err(unkeepable)?;
            let digest = Sha256::digest(identity);
            let sql = "UPDATE experiments SET name = ?, definition = ?, digest = ? WHERE id = ?";
            transaction.execute(sql, params![name, definition, digest.as_slice(), id.0])?;
            sums.row = experiments::digest(transaction, id.0)?;
            sums.keep(transaction, id, None)?;
            let mut store = StoreSums::read(transaction)?;
            for entry in store.experiments.iter_mut().filter(|entry| entry.id == id.0) {
                name.clone_into(&mut entry.name);
            }
            store.keep(transaction)
        })
    }

    /// Replaces the remark on an experiment. An empty remark removes it. Fails when no experiment has this
    /// number, it is damaged, or the store fails.
    pub fn note_experiment(&mut self, id: ExperimentId, note: &str) -> Result<(), Error> {
        self.write(|transaction| {
            let mut sums = ExperimentSums::read(transaction, id)?;
            experiments::row(transaction, id, &sums)?;
            transaction
                .execute("UPDATE experiments SET note = ? WHERE id = ?", params![note, id.0])?;
            sums.row = experiments::digest(transaction, id.0)?;
            sums.keep(transaction, id, None)
        })
    }
}
