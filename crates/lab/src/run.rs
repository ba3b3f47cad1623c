//! A run of an experiment: every boot of the schedule that is not done yet, each kept before the
//! next begins.

use std::cell::RefCell;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kernels::Cache;
use machine::{Emulator, Engine};
use model::{Experiment, Kernel, Mode};
use store::{BootId, ExperimentId, Store};

use crate::boot::{BootError, Bootable};
use crate::conclude::digest;
use crate::disks;
use crate::engine;
use crate::exact;
use crate::guest::{Guest, Libraries};
use crate::replay::DIGEST_MARK;
use crate::salvage::{SalvageError, remove, salvage};
use crate::schedule::{Slot, schedule};
use crate::symbols::{Known, Reader};
use crate::watch::{Progress, Watch};

/// Where experiments are carried out: the store, the kernels, the guest's programs.
pub struct Lab {
    /// The kernels.
    pub cache: Cache,
    /// The guest's programs.
    pub guest: Guest,
    /// What QEMU loads in exact mode.
    pub libraries: Libraries,
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
    /// Two boots with the same inputs differ.
    #[error(
        "{variant}, seed {seed}: two boots with the same inputs differ: {difference}; \
         what they left behind is in {one} and {other}"
    )]
    NotExact {
        /// The variant.
        variant: String,
        /// The seed.
        seed: u32,
        /// The first difference.
        difference: String,
        /// The directory of the first boot.
        one: PathBuf,
        /// The directory of the second.
        other: PathBuf,
    },
    /// A boot that was kept before is not what it was.
    #[error("{boot} is not what it was: {how}")]
    Changed {
        /// The boot.
        boot: BootId,
        /// The first difference.
        how: String,
    },
    /// A boot that was kept before cannot be booted again.
    #[error("{0}")]
    NotReplayed(String),
    /// The store refused; a boot that could not be kept is picked up by the next run.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// How to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// Boots that failed count as not done.
    pub retry_failed: bool,
    /// In exact mode: boot everything twice, and compare.
    pub verify: bool,
}

/// How the boots of an experiment are executed.
enum Execution {
    Measured(Engine<'static>),
    /// With what is known of each variant's kernel.
    Exact(Vec<Known>),
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
    /// Boots, of now or before, that were booted once more and did the same.
    pub verified: usize,
}

impl Lab {
    /// Carries out what of the experiment is not done yet.
    ///
    /// # Errors
    /// When the host fails: disk, emulator, package archive; or when a verified boot is not exact.
    /// A variant's failure is a result.
    pub fn run(
        &mut self,
        experiment: &Experiment,
        manner: Manner,
        watch: &mut Watch<'_>,
    ) -> Result<RunSummary, RunError> {
        let _lock = self.lock()?;
        salvage(&mut self.store, &self.scratch, &mut |line| watch(Progress::Remark(line)))?;
        let experiment = &disks::with_digests(experiment, &self.scratch, &self.guest.mkfs)
            .map_err(BootError::from)?;
        let kernels = self.kernels(experiment, watch)?;
        let id = self.store.keep_experiment(&self.pinned(experiment, &kernels))?;
        if manner.retry_failed {
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
        let verified = if manner.verify { self.verify_kept(id, watch)? } else { 0 };
        let mut summary = RunSummary { experiment: id, boots: 0, failed: 0, verified };
        if due.is_empty() {
            return Ok(summary);
        }
        let emulator = Emulator::find()?;
        let first = due[0].1.variant;
        let execution = self.execution(experiment, (&kernels, first), &emulator, watch)?;
        let begun = Instant::now();
        for (place, (index, slot)) in due.iter().enumerate() {
            let inputs;
            let (engine, symbols) = match &execution {
                Execution::Measured(engine) => (*engine, None),
                Execution::Exact(kernels) => {
                    let known = &kernels[slot.variant];
                    inputs = exact::inputs(&self.libraries, experiment.profile, known, *slot);
                    (Engine::Exact(&inputs), Some(&known.symbols))
                }
            };
            let bootable = Bootable {
                experiment,
                variant: &experiment.variants[slot.variant],
                kernel: &kernels[slot.variant],
                guest: &self.guest,
                engine,
                emulator: &emulator,
                symbols,
            };
            let variant = &bootable.variant.name;
            watch(Progress::Boot { number: index + 1, variant });
            let start = Instant::now();
            let directory = self.scratch.join(format!("{id}-{}-{}", slot.variant, slot.replicate));
            let boot = bootable.boot(*slot, &directory, watch)?;
            if manner.verify && self.verify(id, &bootable, *slot, &directory, watch)? {
                summary.verified += 1;
            }
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

    /// Finds out how the boots are executed: in measured mode from a boot of the first kernel that
    /// is due, in exact mode by learning the kernels' symbols.
    fn execution(
        &self,
        experiment: &Experiment,
        (kernels, first): (&[Kernel], usize),
        emulator: &Emulator,
        watch: &mut Watch<'_>,
    ) -> Result<Execution, RunError> {
        if experiment.mode == Mode::Exact {
            let known = kernels.iter().map(|kernel| self.known(kernel, emulator, watch));
            return Ok(Execution::Exact(known.collect::<Result<_, _>>()?));
        }
        let engine = engine::choose(
            experiment.machine.accel,
            emulator,
            (&kernels[first], &self.guest),
            &self.cache,
            &self.scratch,
            &mut |line| watch(Progress::Remark(line)),
        )?;
        Ok(Execution::Measured(engine))
    }

    /// What is known of a kernel's code.
    pub(crate) fn known(
        &self,
        kernel: &Kernel,
        emulator: &Emulator,
        watch: &mut Watch<'_>,
    ) -> Result<Known, RunError> {
        let reader = Reader {
            cache: &self.cache,
            guest: &self.guest,
            libraries: &self.libraries,
            emulator,
            scratch: &self.scratch,
        };
        Ok(reader.known(kernel, &mut |line| watch(Progress::Remark(line)))?)
    }

    /// Takes the lock that keeps a second run off this scratch directory.
    pub(crate) fn lock(&self) -> Result<File, RunError> {
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
        let variants = experiment.variants.iter();
        variants.map(|variant| self.kernel(&variant.kernel, watch)).collect()
    }

    /// The kernel that is asked for so, fetched if need be.
    pub(crate) fn kernel(&self, spec: &str, watch: &mut Watch<'_>) -> Result<Kernel, RunError> {
        let watch = RefCell::new(watch);
        Ok(self.cache.obtain(spec, &|line| watch.borrow_mut()(Progress::Remark(line)))?)
    }

    /// The experiment with digests put in of the kernels' images and of programs of the user's own, so
    /// that boots of others are another experiment; in exact mode those of ours in the guest too.
    fn pinned(&self, experiment: &Experiment, kernels: &[Kernel]) -> Experiment {
        let mut pinned = experiment.clone();
        for (variant, kernel) in pinned.variants.iter_mut().zip(kernels) {
            variant.kernel = format!("{}{DIGEST_MARK}{}", kernel.name, kernel.digest);
        }
        for program in pinned.workloads.iter_mut().filter_map(|used| used.program.as_mut()) {
            // One that cannot be read fails its boots, and tells why there.
            if let Ok(bytes) = fs::read(&*program) {
                program.as_mut_os_string().push(format!("{DIGEST_MARK}{}", digest(&bytes)));
            }
        }
        if experiment.mode == Mode::Exact {
            pinned.guest_digest = self.guest.digest();
        }
        pinned
    }
}
