//! Verifies exact mode: does each boot twice, with both ways of counting, and compares the two.

use std::path::Path;
use std::{fs, io};

use boot::{Bootable, in_file};
use machine::RECORDER_FILE;
use model::{BootId, Outcome};
use plan::schedule::{Slot, files_of};
use record::exact::difference;
use record::salvage::remove;
use store::{Detail, ExperimentId};

use crate::watch::{Replayed, Watch};
use crate::{Lab, RunError, RunOptions};

/// The prefix of the two directories that keep the files of boots that differ but should not.
const EVIDENCE: &str = "differs-";

/// The result of repeating a boot.
pub enum Verified {
    /// Both boots left the same files.
    Same,
    /// The boots were not compared, for this reason.
    Not(String),
}

/// Repeats the boot in `slot` and compares both. If they differ, both directories are renamed for
/// inspection. Fails when they differ, or the host fails.
pub fn verify(
    scratch: &Path,
    id: ExperimentId,
    bootable: &Bootable<'_>,
    slot: Slot,
    doing: &mut dyn FnMut(&str),
) -> Result<Verified, RunError> {
    let name = files_of(id, slot);
    let directory = scratch.join(&name);
    if !directory.join(RECORDER_FILE).exists() {
        return Ok(Verified::Not("not compared: the boot never began".to_owned()));
    }
    let again = scratch.join(format!("again-{name}"));
    if let Outcome::Invalid(how) = bootable.boot(slot, &again, doing)?.outcome {
        remove(&again)?;
        return Ok(Verified::Not(format!("not compared: the second boot is invalid: {how}")));
    }
    let Some(difference) = difference(&directory, &again).map_err(in_file(&again))? else {
        remove(&again)?;
        return Ok(Verified::Same);
    };
    let [one, other] = [1, 2].map(|number| scratch.join(format!("{EVIDENCE}{name}-{number}")));
    for (from, to) in [(&directory, &one), (&again, &other)] {
        replace(from, to).map_err(in_file(to))?;
    }
    let variant = bootable.variant.name.clone();
    Err(RunError::NotExact { variant, seed: slot.boot_index, difference, one, other })
}

impl Lab {
    /// Replays the stored boots of an experiment that count (complete or partial), and returns
    /// their number. Fails when one differs from the stored boot or cannot be repeated, or the host
    /// fails.
    pub(crate) fn verify_kept(
        &self,
        id: ExperimentId,
        options: RunOptions,
        watch: &mut Watch<'_>,
    ) -> Result<usize, RunError> {
        let kept = self.store.boots(id, Detail::Summary)?;
        let counts = kept.iter().filter(|kept| !kept.superseded && kept.boot.outcome.counts());
        let ids: Vec<BootId> = counts.map(|kept| kept.id).collect();
        // They were counted in blocks, unless the user asked for the other way.
        let options = RunOptions { each: !options.each, ..options };
        let replayed = self.replay_all(&ids, None, options, watch);
        let replayed = replayed.map_err(|error| RunError::NotReplayed(error.to_string()))?;
        for Replayed { boot, difference } in &replayed {
            if let Some(how) = difference {
                return Err(RunError::Changed { boot: *boot, how: how.clone() });
            }
        }
        Ok(replayed.len())
    }
}

/// Moves a directory to `to`. An existing directory there is removed.
fn replace(from: &Path, to: &Path) -> io::Result<()> {
    match fs::remove_dir_all(to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::rename(from, to),
    }
}
