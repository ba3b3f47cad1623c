//! Reads everything in a store, and lists the damage.

use crate::checksums::{self, Numbers, StoreSums};
use crate::{Error, ExperimentId, Store, Trouble, boots, experiments};
use model::BootId;

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
    /// The name of its experiment; `None` if it belongs to the entire file.
    pub experiment: Option<String>,
    /// Its boot and variant, if it belongs to a boot.
    pub boot: Option<(BootId, String)>,
    /// The part.
    pub what: String,
    /// The damage.
    pub why: String,
}

impl Store {
    /// Verifies the structure of the file and every checksum. Fails when the store fails for another reason
    /// than damage.
    pub fn check(&self) -> Result<Checked, Error> {
        self.read(|transaction| {
            let mut checked = Checked::default();
            match checksums::integrity(transaction) {
                Ok(complaints) => checked.lost.extend(complaints.into_iter().map(of_file)),
                Err(trouble) => checked.lose(None, None, trouble)?,
            }
            let store = match StoreSums::read(transaction) {
                Ok(store) => store,
                Err(trouble) => {
                    checked.lose(None, None, trouble)?;
                    return Ok(checked);
                }
            };
            if let Err(trouble) = Numbers::read(transaction) {
                checked.lose(None, None, trouble)?;
            }
            for entry in &store.experiments {
                checked.experiments += 1;
                let name = Some(entry.name.as_str());
                let id = ExperimentId(entry.id);
                let sums = match store.experiment(transaction, id) {
                    Ok(sums) => sums,
                    Err(trouble) => {
                        checked.lose(name, None, trouble)?;
                        continue;
                    }
                };
                if let Err(trouble) = experiments::row(transaction, id, &sums) {
                    checked.lose(name, None, trouble)?;
                }
                for entry in &sums.boots {
                    let (boot, troubles) = boots::check(transaction, entry);
                    checked.boots += 1;
                    checked.samples += boot.samples.len();
                    checked.series += boot.chunks.len();
                    for trouble in troubles {
                        checked.lose(name, Some((entry.boot(), entry.variant.clone())), trouble)?;
                    }
                }
            }
            Ok(checked)
        })
    }
}

impl Checked {
    /// Records damage. Returns any other error.
    fn lose(
        &mut self,
        experiment: Option<&str>,
        boot: Option<(BootId, String)>,
        trouble: Trouble,
    ) -> Result<(), Trouble> {
        let (what, why) = match trouble {
            Trouble::Damaged { what, why } => (what, why),
            Trouble::Malformed(error) => ("the file".into(), error.to_string()),
            other => return Err(other),
        };
        self.lost.push(Lost { experiment: experiment.map(str::to_owned), boot, what, why });
        Ok(())
    }
}

fn of_file(complaint: String) -> Lost {
    Lost { experiment: None, boot: None, what: "the file".into(), why: complaint }
}
