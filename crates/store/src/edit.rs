//! Removes and renames experiments, and sets notes on them.

use crate::experiments::{self, definition, described, identity};
use crate::record::{Experiments, Numbers, Record, no_experiment};
use crate::{Error, ExperimentId, Store, Trouble, boots};

impl Store {
    /// Removes an experiment with all its boots. Their numbers are not used again. The file keeps its size;
    /// the freed space is reused. Fails when no experiment has this number, or the store fails. Then nothing
    /// is removed.
    pub fn remove_experiment(&mut self, id: ExperimentId) -> Result<(), Error> {
        self.write(|transaction| {
            let mut all = Experiments::read(transaction)?;
            if !all.0.contains(&id.0) {
                return Err(no_experiment(transaction, &id.to_string())?);
            }
            all.0.retain(|other| *other != id.0);
            all.keep(transaction)?;
            Numbers::next(transaction)?.keep(transaction)?;
            boots::remove(transaction, id)?;
            transaction.execute("DELETE FROM definitions WHERE experiment = ?", [id.0])?;
            transaction.execute("DELETE FROM experiments WHERE id = ?", [id.0])?;
            Ok(())
        })
    }

    /// Renames an experiment. The same definition with the new name is then this experiment: a run of it
    /// continues with its boots. Fails when no experiment has this number, it is damaged, another experiment
    /// has this name and the same definition, or the store fails.
    pub fn rename_experiment(&mut self, id: ExperimentId, name: &str) -> Result<(), Error> {
        self.write(|transaction| {
            let record = Record::read(transaction, id)?;
            let mut experiment = experiments::read(transaction, id, &record)?;
            name.clone_into(&mut experiment.name);
            let unkeepable = |error| Trouble::unkeepable(format!("experiment `{name}`"), error);
            let identity = identity(&experiment).map_err(unkeepable)?;
            if let Some((other, ..)) = experiments::known(transaction, name, &identity)?
                && other != id
            {
                return Err(Trouble::NameTaken { name: name.into(), other });
            }
            let definition = definition(&experiment, &["boots"]).map_err(unkeepable)?;
            let record = described(record, &experiment, &definition);
            experiments::write(transaction, id, &record, &definition)
        })
    }

    /// Replaces the remark on an experiment. An empty remark removes it. Fails when no experiment has this
    /// number, it is damaged, or the store fails.
    pub fn note_experiment(&mut self, id: ExperimentId, note: &str) -> Result<(), Error> {
        self.write(|transaction| {
            let mut record = Record::read(transaction, id)?;
            note.clone_into(&mut record.note);
            record.update(transaction, id)
        })
    }
}
