//! Reads everything in a store, and lists the damage.

use std::collections::BTreeSet;

use model::BootId;
use rusqlite::Connection;

use crate::record::{Experiments, Numbers, Record, integrity};
use crate::{ExperimentId, Trouble, boots, experiments};

/// The result of a check.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The number of experiments.
    pub experiments: usize,
    /// The number of boots.
    pub boots: usize,
    /// The number of undamaged samples.
    pub samples: usize,
    /// The number of undamaged series.
    pub series: usize,
    /// The damaged and missing parts.
    pub lost: Vec<Lost>,
}

/// A damaged or missing part of a store.
#[derive(Debug, PartialEq, Eq)]
pub struct Lost {
    /// The name of the experiment that has it; `None` if it belongs to the entire file.
    pub experiment: Option<String>,
    /// The boot that has it and the boot's variant; `None` if it belongs to no boot.
    pub boot: Option<(BootId, String)>,
    /// The part's name, such as `profile 3 of boot 12`.
    pub what: String,
    /// The damage in words.
    pub why: String,
}

/// Verifies the structure of the file and every checksum.
pub fn check(connection: &Connection) -> Result<Checked, Trouble> {
    let mut checked = Checked::default();
    match integrity(connection) {
        Ok(complaints) => checked.lost.extend(complaints.into_iter().map(of_file)),
        Err(trouble) => checked.lose(None, None, trouble)?,
    }
    if let Err(trouble) = Numbers::read(connection) {
        checked.lose(None, None, trouble)?;
    }
    let mut all = Experiments::default();
    match Experiments::read(connection) {
        Ok(read) => {
            if let Err(trouble) = read.verify(connection) {
                checked.lose(None, None, trouble)?;
            }
            all = read;
        }
        Err(trouble) => checked.lose(None, None, trouble)?,
    }
    let mut listed = Some(BTreeSet::new());
    for (id, _) in numbered(connection, "SELECT id, '' FROM experiments ORDER BY id")? {
        let name = all.0.iter().find(|it| it.id == id).map(|it| &*it.name);
        checked.experiment(connection, ExperimentId(id), name, &mut listed)?;
    }
    for (id, _) in numbered(connection, "SELECT id, '' FROM boots")? {
        if listed.as_ref().is_some_and(|listed| !listed.contains(&id)) {
            let what = format!("the row of boot {}", BootId(id));
            let trouble = Trouble::damaged(what, "no experiment lists this boot");
            checked.lose(None, None, trouble)?;
        }
    }
    Ok(checked)
}

/// The pairs of number and text that a query yields.
fn numbered(connection: &Connection, sql: &str) -> Result<Vec<(i64, String)>, Trouble> {
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

impl Checked {
    /// Checks an experiment and its boots. Adds the boots' numbers to `listed`, or sets it to `None` if a record
    /// cannot be read.
    fn experiment(
        &mut self,
        connection: &Connection,
        id: ExperimentId,
        name: Option<&str>,
        listed: &mut Option<BTreeSet<i64>>,
    ) -> Result<(), Trouble> {
        self.experiments += 1;
        let record = match Record::read(connection, id) {
            Ok(record) => record,
            Err(trouble) => {
                *listed = None;
                return self.lose(name, None, trouble);
            }
        };
        if let Some(listed) = listed {
            listed.extend(record.boots.iter().map(|entry| entry.id.0));
        }
        let name = &*record.name;
        if let Err(trouble) = experiments::read(connection, id, &record) {
            self.lose(Some(name), None, trouble)?;
        }
        for entry in &record.boots {
            let (boot, troubles) = boots::check(connection, id, entry);
            self.boots += 1;
            self.samples += boot.samples.len();
            self.series += boot.chunks.len();
            for trouble in troubles {
                self.lose(Some(name), Some((entry.id, entry.variant.clone())), trouble)?;
            }
        }
        Ok(())
    }

    /// Adds an error to the list if it is damage. Returns any other error.
    fn lose(
        &mut self,
        experiment: Option<&str>,
        boot: Option<(BootId, String)>,
        trouble: Trouble,
    ) -> Result<(), Trouble> {
        let (what, why) = match trouble {
            Trouble::Damaged { what, why } => (what, why),
            Trouble::Malformed(error) => ("the file".into(), error),
            other => return Err(other),
        };
        self.lost.push(Lost { experiment: experiment.map(str::to_owned), boot, what, why });
        Ok(())
    }
}

fn of_file(complaint: String) -> Lost {
    Lost { experiment: None, boot: None, what: "the file".into(), why: complaint }
}
