//! A run of an experiment: every boot of the schedule that is not done yet, each kept as soon as it ends.

mod boots;
mod check;
mod context;
mod error;
mod jobs;
mod looks;
mod plan;

use std::cell::RefCell;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use kernels::{Cache, Userspace};
use machine::Emulator;
use model::{Experiment, Kernel, Mode, Pinned, WorkloadUse};
use store::{ExperimentId, Store};

use crate::boot::BootError;
use crate::conclude::digest;
use crate::disks;
use crate::guest::{Guest, Libraries};
use crate::out_of_tree::{self, OutOfTree};
use crate::salvage::salvage;
use crate::symbols::{KernelCode, SymbolReader};
use crate::userspace;
use crate::watch::{Progress, Watch};
use check::check_support;
use context::RunContext;
use plan::Plan;

pub use check::{TooLarge, check, check_memory};
pub use error::RunError;

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

/// The options of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// Boots that failed count as not done.
    pub retry_failed: bool,
    /// In exact mode: repeat every boot, and compare.
    pub verify: bool,
    /// In exact mode: how many boots run side by side; `None` for as many as the host has room for.
    pub jobs: Option<u32>,
}

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// The experiment in the store.
    pub experiment: ExperimentId,
    /// Boots done by this run.
    pub boots: usize,
    /// How many of them failed, in whole or in part.
    pub failed: usize,
    /// In how many of these only some workloads failed, and the others count.
    pub partial: usize,
    /// Boots that failed in an earlier run, and count as done.
    pub failed_before: usize,
    /// Boots, of this run or before, that were repeated with the same result.
    pub verified: usize,
    /// Why it ended.
    pub ending: Ending,
}

/// Why a run ended without a failure of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every boot of the schedule is done.
    Schedule,
    /// Every verdict is in.
    Verdicts,
    /// The run has used up its time.
    Budget,
    /// A variant has no complete boot, and more boots would not help.
    Fruitless,
    /// Complete boots have no row for a verdict, and more boots would not help.
    Unjudged,
}

/// Takes the lock that keeps a second run off a scratch directory; without it no run of the store beside it
/// continues.
///
/// # Errors
/// When a run is under way, or the directory cannot be written.
pub fn lock(scratch: &Path) -> Result<File, RunError> {
    let path = scratch.join("lock");
    let failed = |error| RunError::Scratch { path: path.clone(), error };
    fs::create_dir_all(scratch).map_err(failed)?;
    let file = File::create(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(RunError::Busy(path)),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

impl Lab {
    /// Does the boots of the experiment that are not done yet.
    ///
    /// # Errors
    /// When the host fails: disk, emulator, package archive; or when a verified boot is not exact.
    /// A variant's failure is a result.
    pub fn run(
        &mut self,
        experiment: &Experiment,
        options: RunOptions,
        watch: &mut Watch<'_>,
    ) -> Result<RunSummary, RunError> {
        check(experiment)?;
        let _lock = lock(&self.scratch)?;
        salvage(&mut self.store, &self.scratch, &mut |line| watch(Progress::Remark(line)))?;
        let experiment =
            &disks::tried(experiment, &self.scratch, &self.guest.mkfs).map_err(BootError::from)?;
        let kernels = &self.kernels(experiment, watch)?;
        let userspace = &self.userspace(experiment, watch)?;
        let out_of_tree = kernels.iter().map(|kernel| self.out_of_tree(kernel, experiment, watch));
        let out_of_tree = out_of_tree.collect::<Result<Vec<_>, _>>()?;
        check_support(experiment, kernels, &out_of_tree)?;
        let pinned = self.pinned(experiment, kernels, userspace.as_ref())?;
        let id = self.store.keep_experiment(&pinned)?;
        let failed = self.store.failed(id)?;
        let mut done = self.store.done(id)?;
        let failed_before = match options.retry_failed {
            true => {
                done.retain(|it| !failed.contains(it));
                0
            }
            false => failed.len(),
        };
        let plan = Plan::of(experiment, &done);
        watch(Progress::Plan { boots: plan.boots, done: plan.boots - plan.due.len() });
        let verified = if options.verify { self.verify_kept(id, options, watch)? } else { 0 };
        let ending = Ending::Schedule;
        let mut summary = RunSummary {
            experiment: id,
            boots: 0,
            failed: 0,
            partial: 0,
            failed_before,
            verified,
            ending,
        };
        if let Some(first) = plan.due.first() {
            let parts = (experiment, kernels.as_slice());
            let context = RunContext::new(
                self,
                parts,
                out_of_tree,
                userspace.as_ref(),
                first.slot.variant,
                watch,
            )?;
            summary.ending = self.boot_all(&plan.due, &context, options, &mut summary, watch)?;
        }
        Ok(summary)
    }

    /// What is known of a kernel's code.
    pub(crate) fn kernel_code(
        &self,
        kernel: &Kernel,
        emulator: &Emulator,
        watch: &mut Watch<'_>,
    ) -> Result<KernelCode, RunError> {
        let reader = SymbolReader {
            cache: &self.cache,
            guest: &self.guest,
            libraries: &self.libraries,
            emulator,
            scratch: &self.scratch,
        };
        Ok(reader.read(kernel, &mut |line| watch(Progress::Remark(line)))?)
    }

    fn kernels(
        &self,
        experiment: &Experiment,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<Kernel>, RunError> {
        let variants = experiment.variants.iter();
        variants.map(|variant| self.kernel(&variant.kernel.name, watch)).collect()
    }

    /// The requested kernel, fetched if necessary.
    pub(crate) fn kernel(&self, spec: &str, watch: &mut Watch<'_>) -> Result<Kernel, RunError> {
        let watch = RefCell::new(watch);
        Ok(self.cache.obtain(spec, &|line| watch.borrow_mut()(Progress::Remark(line)))?)
    }

    /// The out-of-tree modules that an experiment's workloads want, for one kernel.
    pub(crate) fn out_of_tree(
        &self,
        kernel: &Kernel,
        experiment: &Experiment,
        watch: &mut Watch<'_>,
    ) -> Result<OutOfTree, RunError> {
        let watch = RefCell::new(watch);
        let say = |line: &str| watch.borrow_mut()(Progress::Remark(line));
        Ok(OutOfTree::build(&self.cache, kernel, experiment, &say)?)
    }

    /// The user space that an experiment's workloads want, made if necessary.
    pub(crate) fn userspace(
        &self,
        experiment: &Experiment,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Userspace>, RunError> {
        let watch = RefCell::new(watch);
        let say = |line: &str| watch.borrow_mut()(Progress::Remark(line));
        Ok(userspace::obtain(experiment, &self.cache, &self.guest.mkfs, &say)?)
    }

    /// The experiment with digests of the kernels' images, of the user space and of the user's own programs,
    /// so that boots with others are another experiment; in exact mode with those of our programs in the
    /// guest too.
    fn pinned(
        &self,
        experiment: &Experiment,
        kernels: &[Kernel],
        userspace: Option<&Userspace>,
    ) -> Result<Experiment, RunError> {
        let mut pinned = experiment.clone();
        for (variant, kernel) in pinned.variants.iter_mut().zip(kernels) {
            variant.kernel = Pinned::from(&*kernel.name).with_digest(&*kernel.digest);
        }
        for program in pinned.workloads.iter_mut().flat_map(WorkloadUse::programs_mut) {
            let bytes = fs::read(program.path())
                .map_err(|error| RunError::Program { path: program.path().to_owned(), error })?;
            program.digest = Some(digest(&bytes));
        }
        pinned.userspace_digest = userspace.map(|it| it.digest.clone()).unwrap_or_default();
        if experiment.mode == Mode::Exact {
            pinned.guest_digest = out_of_tree::pinned(self.guest.digest(), experiment);
        }
        Ok(pinned)
    }
}
