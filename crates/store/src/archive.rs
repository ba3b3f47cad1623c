//! The interface of a store, which does not depend on the database behind it. `tests/conformance.rs` has the tests
//! that every implementation passes.

use std::fmt::Debug;
use std::ops::ControlFlow;

use model::{Boot, BootId, Experiment, Kept, Mode, Reading};

use crate::{BootEntry, Checked, Detail, Error, ExperimentId, ExperimentRow, Series};

/// Whether a kept boot counts, and replaces an earlier boot with the same variant and boot index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The boot counts. No other boot has its place.
    Counts,
    /// The boot will be repeated. It remains as evidence, but does not count as done.
    Aside,
    /// The boot counts in place of a failed one. The failed boot remains as evidence, and no longer counts.
    Instead,
}

/// Experiments and their boots. Several processes may use them at once. Each call is a transaction. Checksums of
/// everything that is read are verified. Every call fails when something that it reads is damaged, or when the
/// database fails.
pub trait Archive: Debug + Send {
    /// Whether the store cannot be written, and so is read without locks, as a file that does not change.
    fn is_frozen(&self) -> bool;

    /// Keeps an experiment. An experiment with the same name and the same identity is the same experiment and keeps
    /// its number. The number of boots is not part of the identity; the larger one is kept. Once an experiment has
    /// looks it keeps them: a later definition may change the margin, but not turn looks off. A lock of its user
    /// space is kept until another one is given. The latest reading of figures replaces the one before (`reading`,
    /// and what [`Manifest::as_run`](model::Manifest::as_run) leaves out of manifests). Any other change makes
    /// another experiment. Fails when the definition has no JSON form (it has a path that is not UTF-8).
    fn keep_experiment(
        &mut self,
        experiment: &Experiment,
        reading: &Reading,
    ) -> Result<ExperimentId, Error>;

    /// Renames an experiment. A run of the same definition with the new name then continues this experiment. Fails
    /// when no experiment has this number, or another experiment has this name and the same definition.
    fn rename_experiment(&mut self, id: ExperimentId, name: &str) -> Result<(), Error>;

    /// Replaces the remark on an experiment. An empty remark removes it. Fails when no experiment has this
    /// number.
    fn note_experiment(&mut self, id: ExperimentId, note: &str) -> Result<(), Error>;

    /// Removes an experiment with all its boots. Their numbers are not used again. Fails when no experiment has this
    /// number.
    fn remove_experiment(&mut self, id: ExperimentId) -> Result<(), Error>;

    /// Passes the experiments, or those of a name, to `each`, most recent first, until it breaks.
    fn each_row(
        &self,
        named: Option<&str>,
        each: &mut dyn FnMut(ExperimentRow) -> ControlFlow<()>,
    ) -> Result<(), Error>;

    /// An experiment's row in a list. Fails when no experiment has this number.
    fn row(&self, id: ExperimentId) -> Result<ExperimentRow, Error>;

    /// The definition of an experiment, with the largest requested number of boots. Fails when no experiment
    /// has this number.
    fn experiment(&self, id: ExperimentId) -> Result<Experiment, Error>;

    /// The reading of an experiment's figures that was kept last. Fails when no experiment has this number.
    fn reading(&self, id: ExperimentId) -> Result<Reading, Error>;

    /// Finds the most recent experiment with this name, or the one with this number. `NAME~2` is the second most
    /// recent one with that name, and so on. Fails when there is none; the error lists the existing names.
    fn find_experiment(&self, name_or_id: &str) -> Result<ExperimentId, Error>;

    /// The experiments of a mode whose variants have the names, kernels and command lines of those of `of`, most recent
    /// first.
    fn kin(&self, mode: Mode, of: &Experiment) -> Result<Vec<ExperimentId>, Error>;

    /// Keeps a boot with all its data, or nothing of it. `series` are kept after the boot's own chunks. When this
    /// returns, the boot is on disk. Fails when this boot of the variant was kept before and was neither
    /// interrupted nor superseded ([`Standing::Instead`]), or when the disk is full. Boots kept before remain
    /// unchanged.
    fn keep(
        &mut self,
        experiment: ExperimentId,
        boot: &Boot,
        series: &[Series],
        standing: Standing,
    ) -> Result<BootId, Error>;

    /// Marks invalid boots as superseded, so that they are repeated. They remain as evidence.
    fn set_invalid_aside(&mut self, experiment: ExperimentId) -> Result<(), Error>;

    /// The list of an experiment's boots in the order in which they were kept. Fails when one is missing, or the list
    /// of its parts is damaged. The parts are not read.
    fn listed(&self, experiment: ExperimentId) -> Result<Vec<BootEntry>, Error>;

    /// Passes the boots of an experiment to `each` in the order in which they were kept, until it breaks. Only one is in
    /// memory. A boot that was interrupted or superseded and then repeated occurs more than once.
    fn each_boot(
        &self,
        experiment: ExperimentId,
        detail: Detail,
        each: &mut dyn FnMut(Kept) -> ControlFlow<()>,
    ) -> Result<(), Error>;

    /// One boot with all its parts, and its experiment. Fails when no boot has this number.
    fn boot(&self, id: BootId) -> Result<(ExperimentId, Kept), Error>;

    /// Verifies everything, and lists the damage. Damage is no error; any other failure of the database is.
    fn check(&self) -> Result<Checked, Error>;

    /// All experiments, or those of a name, most recent last.
    fn rows(&self, named: Option<&str>) -> Result<Vec<ExperimentRow>, Error> {
        let mut rows = Vec::new();
        self.each_row(named, &mut |row| {
            rows.push(row);
            ControlFlow::Continue(())
        })?;
        rows.reverse();
        Ok(rows)
    }

    /// All experiments, most recent last.
    fn experiments(&self) -> Result<Vec<ExperimentRow>, Error> {
        self.rows(None)
    }

    /// All boots of [`Archive::each_boot`].
    fn boots(&self, experiment: ExperimentId, detail: Detail) -> Result<Vec<Kept>, Error> {
        let mut boots = Vec::new();
        self.each_boot(experiment, detail, &mut |kept| {
            boots.push(kept);
            ControlFlow::Continue(())
        })?;
        Ok(boots)
    }

    /// [`Archive::keep`] for a boot that counts and has all its series.
    fn keep_boot(&mut self, experiment: ExperimentId, boot: &Boot) -> Result<BootId, Error> {
        self.keep(experiment, boot, &[], Standing::Counts)
    }

    /// Variant and boot index of the boots that are done: all except interrupted, invalid and superseded ones.
    fn done(&self, experiment: ExperimentId) -> Result<Vec<(String, u32)>, Error> {
        let boots = self.listed(experiment)?.into_iter();
        let done = boots.filter(|entry| entry.is_done() && !entry.is_invalid());
        Ok(done.map(|entry| (entry.variant, entry.boot_index)).collect())
    }

    /// Variant and boot index of the failed boots of an experiment.
    fn failed(&self, experiment: ExperimentId) -> Result<Vec<(String, u32)>, Error> {
        let failed = self.listed(experiment)?.into_iter().filter(BootEntry::is_failed);
        Ok(failed.map(|entry| (entry.variant, entry.boot_index)).collect())
    }
}
