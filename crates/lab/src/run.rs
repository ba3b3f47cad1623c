//! A run of an experiment: every boot of the schedule that is not done yet, each kept before the
//! next begins.

use std::cell::RefCell;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kernels::Cache;
use machine::Emulator;
use model::{Experiment, Kernel};
use sha2::{Digest, Sha256};
use store::{ExperimentId, Store};

use crate::boot::{BootError, Bootable};
use crate::engine;
use crate::guest::Guest;
use crate::salvage::{SalvageError, remove, salvage};
use crate::schedule::{Slot, schedule};
use crate::watch::{Progress, Watch};

/// Where experiments are carried out: the store, the kernels, the guest's programs.
pub struct Lab {
    /// The kernels.
    pub cache: Cache,
    /// The guest's programs.
    pub guest: Guest,
    /// Where the boots are kept.
    pub store: Store,
    /// A directory for the boot under way, on a disk with room for its recording.
    pub scratch: PathBuf,
}

/// Why a run ended early. Boots that were reported as kept are kept.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Another run is under way on this store.
    #[error("another run is under way: {0} is locked; wait for it or use another store")]
    Busy(PathBuf),
    /// The scratch directory cannot be used.
    #[error("{path}: {error}")]
    Scratch {
        /// The file or directory.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// A kernel cannot be had.
    #[error(transparent)]
    Kernel(#[from] kernels::Error),
    /// A boot failed for the host's reasons.
    #[error(transparent)]
    Boot(#[from] BootError),
    /// No machine as asked for.
    #[error(transparent)]
    Machine(#[from] machine::Error),
    /// What an earlier run left behind cannot be dealt with.
    #[error(transparent)]
    Salvage(#[from] SalvageError),
    /// The store refused; a boot that could not be kept is picked up by the next run.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// What a run did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// The experiment in the store.
    pub experiment: ExperimentId,
    /// Boots done now.
    pub boots: usize,
    /// How many of them failed.
    pub failed: usize,
}

impl Lab {
    /// Carries out what of the experiment is not done yet. With `retry_failed`, boots that failed
    /// count as not done.
    ///
    /// # Errors
    /// When the host fails: disk, emulator, package archive. A variant's failure is a result.
    pub fn run(
        &mut self,
        experiment: &Experiment,
        retry_failed: bool,
        watch: &mut Watch<'_>,
    ) -> Result<RunSummary, RunError> {
        let _lock = self.lock()?;
        salvage(&mut self.store, &self.scratch, &mut |line| watch(Progress::Remark(line)))?;
        let kernels = self.kernels(experiment, watch)?;
        let id = self.store.keep_experiment(&pinned(experiment, &kernels))?;
        if retry_failed {
            self.store.forget_failed(id)?;
        }
        let slots = schedule(experiment.variants.len(), experiment.boots);
        let done = self.store.done(id)?;
        let is_done = |slot: &Slot| {
            let name = &experiment.variants[slot.variant].name;
            done.iter().any(|(variant, replicate)| variant == name && *replicate == slot.replicate)
        };
        let (before, due): (Vec<_>, Vec<_>) =
            slots.iter().copied().enumerate().partition(|(_, slot)| is_done(slot));
        watch(Progress::Plan { boots: slots.len(), done: before.len() });
        let mut summary = RunSummary { experiment: id, boots: 0, failed: 0 };
        if due.is_empty() {
            return Ok(summary);
        }
        let emulator = Emulator::find()?;
        let engine = engine::choose(
            experiment.machine.accel,
            &emulator,
            (&kernels[due[0].1.variant], &self.guest),
            &self.cache,
            &self.scratch,
            &mut |line| watch(Progress::Remark(line)),
        )?;
        let begun = Instant::now();
        for (place, (index, slot)) in due.iter().enumerate() {
            let bootable = Bootable {
                experiment,
                variant: &experiment.variants[slot.variant],
                kernel: &kernels[slot.variant],
                guest: &self.guest,
                engine,
                emulator: &emulator,
            };
            let variant = &bootable.variant.name;
            watch(Progress::Boot { number: index + 1, variant });
            let start = Instant::now();
            let directory = self.scratch.join(format!("{id}-{}-{}", slot.variant, slot.replicate));
            let boot = bootable.boot(*slot, &directory, watch)?;
            self.store.keep_boot(id, &boot)?;
            remove(&directory)?;
            summary.boots += 1;
            summary.failed += usize::from(!boot.outcome.is_complete());
            let left = begun.elapsed() / (place as u32 + 1) * (due.len() - place - 1) as u32;
            watch(Progress::Kept {
                number: index + 1,
                variant,
                outcome: &boot.outcome,
                wall: start.elapsed(),
                left: Some(left).filter(|left| *left > Duration::ZERO),
            });
        }
        Ok(summary)
    }

    /// Takes the lock that keeps a second run off this scratch directory.
    fn lock(&self) -> Result<File, RunError> {
        let path = self.scratch.join("lock");
        let scratch = |error| RunError::Scratch { path: path.clone(), error };
        fs::create_dir_all(&self.scratch).map_err(scratch)?;
        let file = File::create(&path).map_err(scratch)?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(RunError::Busy(path)),
            Err(TryLockError::Error(error)) => Err(scratch(error)),
        }
    }

    fn kernels(
        &self,
        experiment: &Experiment,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<Kernel>, RunError> {
        let mut kernels = Vec::new();
        let watch = RefCell::new(watch);
        let say = |line: &str| watch.borrow_mut()(Progress::Remark(line));
        for variant in &experiment.variants {
            kernels.push(self.cache.obtain(&variant.kernel, &say)?);
        }
        Ok(kernels)
    }
}

/// The experiment with digests put in of the kernels' images and of programs of the user's own, so
/// that boots of others are another experiment.
fn pinned(experiment: &Experiment, kernels: &[Kernel]) -> Experiment {
    let mut pinned = experiment.clone();
    for (variant, kernel) in pinned.variants.iter_mut().zip(kernels) {
        variant.kernel = format!("{} sha256:{}", kernel.name, kernel.digest);
    }
    for program in pinned.workloads.iter_mut().filter_map(|used| used.program.as_mut()) {
        // One that cannot be read fails its boots, and tells why there.
        if let Ok(bytes) = fs::read(&*program) {
            let digest: String =
                Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            program.as_mut_os_string().push(format!(" sha256:{digest}"));
        }
    }
    pinned
}
