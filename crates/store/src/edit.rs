//! Removes and renames experiments, and sets notes on them.

use rusqlite::Connection;

use crate::experiments::{self, definition, described, identity};
use crate::record::{Experiments, Numbers, Record, no_experiment};
use crate::{ExperimentId, Trouble, boots};

/// Removes an experiment with all its boots.
pub fn remove(connection: &Connection, id: ExperimentId) -> Result<(), Trouble> {
    let mut all = Experiments::read(connection)?;
    if !all.has(id) {
        return Err(no_experiment(connection, &id.to_string())?);
    }
    Numbers::next(connection)?.keep(connection)?;
    boots::remove(connection, id)?;
    all.0.retain(|listed| listed.id != id.0);
    all.keep(connection)?;
    connection.execute("DELETE FROM definitions WHERE experiment = ?", [id.0])?;
    connection.execute("DELETE FROM experiments WHERE id = ?", [id.0])?;
    Ok(())
}

/// Renames an experiment.
pub fn rename(connection: &Connection, id: ExperimentId, name: &str) -> Result<(), Trouble> {
    let record = Record::read(connection, id)?;
    let (mut experiment, reading) = experiments::read(connection, id, &record)?;
    name.clone_into(&mut experiment.name);
    let unkeepable = |error| Trouble::unkeepable(format!("experiment `{name}`"), error);
    let identity = identity(&experiment).map_err(unkeepable)?;
    if let Some(experiments::Known { id: other, .. }) =
        experiments::known(connection, name, &identity)?
        && other != id
    {
        return Err(Trouble::NameTaken { name: name.into(), other });
    }
    let definition = definition(&experiment, &reading).map_err(unkeepable)?;
    // The experiment keeps its place in the list.
    let mut all = Experiments::read(connection)?;
    for listed in all.0.iter_mut().filter(|listed| listed.id == id.0) {
        name.clone_into(&mut listed.name);
    }
    all.keep(connection)?;
    described(record, &experiment, &definition).update(connection, id)?;
    experiments::write_definition(connection, id, &definition)
}

/// Replaces the remark on an experiment.
pub fn note(connection: &Connection, id: ExperimentId, note: &str) -> Result<(), Trouble> {
    let mut record = Record::read(connection, id)?;
    note.clone_into(&mut record.note);
    record.update(connection, id)
}
