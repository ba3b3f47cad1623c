//! Runs an experiment: does every boot of the schedule that is not done yet, and stores each boot
//! when it ends.

mod boots;
mod check;
mod context;
mod due;
mod effort;
mod error;
mod failures;
mod hosts;
mod jobs;
mod known;
mod looks;
mod obtain;
mod pace;
mod remarks;
mod repeat;
mod replay;
mod verify;
mod watch;
mod worker;

use std::cell::RefCell;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ::lock::Held;
use boot::out_of_tree::{self, OutOfTree};
use boot::provenance::counted_by;
use boot::symbols::{KernelCode, SymbolReader};
use boot::{BootError, Guest, Libraries, disks, engine, userspace};
use kernels::{Cache, Userspace};
use machine::settings::{self, HostSettings};
use machine::{Emulator, Engine};
use model::{Accel, Architecture, Experiment, Host, Kernel, Mode};
use plan::Request;
use record::salvage::salvage;
use store::{Archive, ExperimentId};

use check::check_support;
use context::{RunContext, RunInputs};
use due::{Due, Plan};
use obtain::Obtained;

pub use check::{check, check_tracepoints};
pub use effort::time;
pub use error::RunError;
pub use failures::GivenUp;
pub use hosts::LeftOut;
pub use known::{Known, are_alike, known, usual_wall};
pub use obtain::complete;
pub use remarks::remarks;
pub use replay::ReplayError;
pub use watch::{Progress, Replayed, Watch};

/// What is needed to run experiments: the store, the cache of kernels, the guest's programs.
pub struct Lab {
    /// The cache of kernels.
    pub cache: Cache,
    /// The programs that run in a guest. Those for arm64 are found when they are needed.
    pub guest: Guest,
    /// The libraries that QEMU loads in exact mode.
    pub libraries: Libraries,
    /// The store for boots.
    pub store: Box<dyn Archive>,
    /// The host, as its boots report it.
    pub host: Host,
    /// The settings of the host, for experiments that run on it.
    pub settings: Arc<HostSettings>,
    /// A directory for the files of running boots, on a disk with room for their recordings.
    pub scratch: PathBuf,
    /// Whether programs on this host have standard input, output and error of this process. What they print is then not
    /// recorded.
    pub streams: bool,
    /// Whether a run waits while another run uses the store. If not, it fails.
    pub waits: bool,
}

/// The options of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// Repeat boots that failed in an earlier run.
    pub retry_failed: bool,
    /// In exact mode: boot further seeds of a variant after one has failed.
    pub keep_going: bool,
    /// In exact mode: repeat every boot and compare both.
    pub verify: bool,
    /// Whether the plugin is called at each instruction. Boots take longer and count the same.
    pub each: bool,
    /// In exact mode: the number of boots that run in parallel; `None` for as many as the host has
    /// room for.
    pub jobs: Option<u32>,
    /// The number of boots of each variant after which this run ends; the next ones continue it. Plan and estimates
    /// are about all boots. `None` for all.
    pub until: Option<u32>,
}

/// The result of a run that did not end with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// The experiment in the store.
    pub experiment: ExperimentId,
    /// The number of boots that this run stored, without invalid ones that it repeated.
    pub boots: usize,
    /// The number of these boots that are not complete: failed, partial or invalid.
    pub failed: usize,
    /// The number of these boots that are partial: some workloads failed, the others count.
    pub partial: usize,
    /// The number of boots that failed in an earlier run and were not repeated.
    pub failed_before: usize,
    /// The number of boots, of this and of earlier runs, that were repeated with the same result.
    pub verified: usize,
    /// The variants whose further boots were left out, because one boot had failed.
    pub given_up: Vec<GivenUp>,
    /// The number of boots that were left out, because another host began their blocks.
    pub of_other_hosts: usize,
    /// Why the run ended.
    pub ending: RunEnding,
}

/// Why a run ended without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnding {
    /// Every boot of the schedule is done.
    Schedule,
    /// Every verdict is decided.
    Verdicts,
    /// The time budget is used up.
    Budget,
    /// A variant has no complete boot, so more boots would not help.
    Fruitless,
    /// Complete boots have no row to judge, so more boots would not help.
    Unjudged,
}

/// Takes the lock on a scratch directory and returns the locked file. Only one run at a time may
/// use the store that the directory belongs to. Fails when another run holds the lock, or the
/// directory cannot be written.
pub fn lock(scratch: &Path) -> Result<File, RunError> {
    locked(scratch, ::lock::try_take)
}

/// The file whose lock a run holds.
pub fn lock_file(scratch: &Path) -> PathBuf {
    scratch.join("lock")
}

fn locked(
    scratch: &Path,
    take: impl FnOnce(&Path) -> io::Result<Result<File, Held>>,
) -> Result<File, RunError> {
    let path = lock_file(scratch);
    let failed = |error| RunError::Scratch { path: path.clone(), error };
    fs::create_dir_all(scratch).map_err(failed)?;
    take(&path).map_err(failed)?.map_err(RunError::Busy)
}

impl Lab {
    /// Takes the lock like [`lock()`]. While another run holds it, this one waits for its turn, without a time limit,
    /// and says for whom and since when; without [`Lab::waits`] it fails.
    pub fn lock(&self, watch: &mut Watch<'_>) -> Result<File, RunError> {
        if !self.waits {
            return lock(&self.scratch);
        }
        let watch = RefCell::new(watch);
        let say = |line: &str| watch.borrow_mut()(Progress::Message(line));
        let wait = ("for another run to end", Duration::MAX);
        locked(&self.scratch, |path| ::lock::take_within(path, wait, &say))
    }

    /// Does the boots of the experiment that are not done yet. Fails when the host fails (disk, emulator,
    /// package archive), or a verified boot is not exact. Failures of a variant are results.
    pub fn run(
        &mut self,
        request: &Request,
        options: RunOptions,
        watch: &mut Watch<'_>,
    ) -> Result<RunSummary, RunError> {
        self.check_kernels(request)?;
        let _lock = self.lock(watch)?;
        self.run_locked(request, options, watch)
    }

    /// Does the same as [`Lab::run`]. The caller holds the lock ([`Lab::lock`]).
    pub fn run_locked(
        &mut self,
        request: &Request,
        options: RunOptions,
        watch: &mut Watch<'_>,
    ) -> Result<RunSummary, RunError> {
        check(&request.experiment)?;
        let _changed = self.put_settings_back(&request.experiment, watch)?;
        salvage(&mut *self.store, &self.scratch, &mut |line| watch(Progress::Message(line)))?;
        let mut experiment = request.experiment.clone();
        let Experiment { machine, mode, .. } = &mut experiment;
        disks::try_all(&mut machine.disks, *mode, &self.scratch, &self.guest.mkfs)
            .map_err(BootError::from)?;
        let experiment = &experiment;
        let kernels = &self.kernels(request, watch)?;
        let userspace = &self.userspace(experiment, watch)?;
        let mut out_of_tree = Vec::new();
        for Obtained { kernel, unbuilt } in kernels {
            out_of_tree.push(match unbuilt {
                Some(_) => OutOfTree::default(),
                None => self.out_of_tree(kernel, experiment, watch)?,
            });
        }
        check_support(experiment, kernels, &out_of_tree)?;
        let built = kernels.iter().filter(|it| it.unbuilt.is_none());
        check_tracepoints(experiment, built.map(|it| &it.kernel))?;
        context::check_lines(self, experiment, kernels, watch)?;
        let pinned = self.pinned(experiment, kernels, userspace.as_ref())?;
        if let Some(line) = known::recounted(&pinned, &*self.store)? {
            watch(Progress::Message(&line));
        }
        let id = self.store.keep_experiment(&pinned, &request.reading)?;
        self.store.set_invalid_aside(id)?;
        let failed_before = match options.retry_failed {
            true => 0,
            false => self.store.failed(id)?.len(),
        };
        let done = known::done(&*self.store, id, options)?;
        let mut plan = Plan::of(experiment, options.until.unwrap_or(experiment.boots), &done);
        if done.is_empty() {
            remarks(experiment).iter().for_each(|remark| watch(Progress::Message(remark)));
        }
        let open = plan.due.len() + plan.later;
        watch(Progress::Plan {
            boots: plan.boots,
            done: plan.boots - open,
            at_most: experiment.sequential.is_some(),
            time: time(&pinned, open, options, &*self.store)?.filter(|_| open > 0),
        });
        let kept = (&*self.store, id);
        let of_other_hosts =
            hosts::leave_out_kept(&mut plan, &self.host, kept, (experiment.mode, &done))?;
        of_other_hosts.why.iter().for_each(|line| watch(Progress::Message(line)));
        let given_up = plan.give_up(failures::before(experiment, options, (&*self.store, id))?);
        given_up.iter().for_each(|it| it.announce(watch));
        let verified = if options.verify { self.verify_kept(id, options, watch)? } else { 0 };
        let ending = RunEnding::Schedule;
        let mut summary = RunSummary {
            experiment: id,
            boots: 0,
            failed: 0,
            partial: 0,
            failed_before,
            of_other_hosts: of_other_hosts.boots,
            verified,
            given_up,
            ending,
        };
        if let Some(first) = plan.due.first() {
            let is_built = |due: &&Due| kernels[due.slot.variant].unbuilt.is_none();
            let first = plan.due.iter().find(is_built).unwrap_or(first);
            let inputs = RunInputs {
                experiment,
                reading: &request.reading,
                kernels,
                out_of_tree,
                userspace: userspace.as_ref(),
            };
            let context = RunContext::new(self, inputs, first.slot.variant, watch)?;
            summary.ending = self.boot_all(&plan, &context, options, &mut summary, watch)?;
        }
        let place =
            |it: &GivenUp| experiment.variants.iter().position(|own| own.name == it.variant);
        summary.given_up.sort_by_key(place);
        Ok(summary)
    }

    /// Puts back the settings of this host that a killed run left. For an experiment that changes settings of this host,
    /// also keeps other runs from doing so, until the guard is dropped.
    fn put_settings_back(
        &self,
        experiment: &Experiment,
        watch: &mut Watch<'_>,
    ) -> Result<Option<settings::Held>, RunError> {
        let is_changed = experiment.variants.iter().any(|it| !it.settings.is_empty());
        let watch = RefCell::new(watch);
        let say = |line: &str| watch.borrow_mut()(Progress::Message(line));
        let (put_back, held) = match is_changed && !experiment.machine.kind.is_vm() {
            true => {
                let patience = if self.waits { Duration::MAX } else { Duration::ZERO };
                let (put_back, held) = self.settings.hold(patience, &say)?;
                (put_back, Some(held))
            }
            false => (self.settings.recover()?, None),
        };
        for line in put_back.lines() {
            say(&format!("A run was killed and left settings of this host: {line}"));
        }
        Ok(held)
    }

    /// Reads the functions of a kernel, how the plugin sees switches between its processes, and, with `memory`, what is
    /// known of its memory.
    pub(crate) fn kernel_code(
        &self,
        kernel: &Kernel,
        emulator: &Emulator,
        memory: bool,
        watch: &mut Watch<'_>,
    ) -> Result<KernelCode, RunError> {
        let reader = SymbolReader {
            cache: &self.cache,
            guest: &self.guest.of(kernel.arch).map_err(BootError::from)?,
            libraries: &self.libraries,
            emulator,
            scratch: &self.scratch,
            memory,
        };
        Ok(reader.read(kernel, &mut |line| watch(Progress::Message(line)))?)
    }

    /// Returns whether measured boots would run under KVM; false if the device cannot be opened. If
    /// the cache does not know, a guest is booted: with the kernel of the first variant, or with
    /// the newest kernel if that one has to be built. Fails when the kernel cannot be obtained, or
    /// the host fails.
    pub fn has_kvm(&self, request: &Request, watch: &mut Watch<'_>) -> Result<bool, RunError> {
        let arch = request.experiment.machine.arch;
        let opened = || File::options().read(true).write(true).open(machine::KVM);
        if arch != Architecture::X86_64 || opened().is_err() {
            return Ok(false);
        }
        let first = &request.experiment.variants[0];
        let kernel = if request.build(first).is_some() { "newest" } else { &*first.kernel.name };
        let kernel = self.kernel(kernel, watch)?;
        let (emulator, inputs) = (Emulator::find(arch)?, (&kernel, &self.guest));
        let (cache, scratch) = (&self.cache, &self.scratch);
        let chosen = engine::choose(Accel::Auto, &emulator, inputs, cache, scratch, &mut |_| ())?;
        Ok(chosen == Engine::Kvm)
    }

    /// Builds the out-of-tree modules that an experiment's workloads want, for one kernel.
    pub(crate) fn out_of_tree(
        &self,
        kernel: &Kernel,
        experiment: &Experiment,
        watch: &mut Watch<'_>,
    ) -> Result<OutOfTree, RunError> {
        let watch = RefCell::new(watch);
        let say = |line: &str| watch.borrow_mut()(Progress::Message(line));
        Ok(OutOfTree::build(&self.cache, kernel, experiment, &say)?)
    }

    /// Returns the user space that an experiment's workloads want; makes it if necessary. `None` if
    /// they want none.
    pub(crate) fn userspace(
        &self,
        experiment: &Experiment,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Userspace>, RunError> {
        let watch = RefCell::new(watch);
        let say = |line: &str| watch.borrow_mut()(Progress::Message(line));
        Ok(userspace::obtain(experiment, &self.cache, &self.guest.mkfs, &say)?)
    }

    /// Returns the experiment with the digests of the kernels' images, the user space and the
    /// user's programs, so that it is another experiment if one of them changes. In exact mode it
    /// also has the digests of our programs in the guest and the versions of what counts
    /// instructions.
    fn pinned(
        &self,
        experiment: &Experiment,
        kernels: &[Obtained],
        userspace: Option<&Userspace>,
    ) -> Result<Experiment, RunError> {
        let mut pinned = experiment.clone();
        for (variant, obtained) in pinned.variants.iter_mut().zip(kernels) {
            known::pin_kernel(variant, &obtained.kernel);
        }
        known::pin_programs(&mut pinned)?;
        pinned.userspace_digest = userspace.map(|it| it.digest.clone()).unwrap_or_default();
        if experiment.mode == Mode::Exact {
            let arch = experiment.machine.arch;
            let guest = self.guest.of(arch).map_err(BootError::from)?;
            pinned.guest_digest = out_of_tree::pinned(guest.digest(), experiment);
            pinned.counted_by = counted_by(&self.libraries, arch)?;
        }
        Ok(pinned)
    }
}
