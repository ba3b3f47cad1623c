//! A boot of exact mode once more, with the very same inputs: what it does must be the same to the
//! bit.

use std::path::Path;

use kernels::Userspace;
use machine::{Emulator, Engine};
use model::{Boot, Experiment, Mode, Outcome, WorkloadUse};
use store::{BootId, Kept};

use crate::boot::{BootError, Bootable};
use crate::conclude::digest;
use crate::exact;
use crate::run::{Lab, RunError};
use crate::salvage::remove;
use crate::schedule::Slot;
use crate::watch::{Progress, Watch};

/// Between a kernel's or a program's name and its digest, in the definition of an experiment that
/// is kept.
pub const DIGEST_MARK: &str = " sha256:";

/// Why a boot cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It was not exact in the first place.
    #[error("{0} is of measured mode: only boots of exact mode can be replayed")]
    Measured(BootId),
    /// It did not come to an end of its own.
    #[error("{0} cannot be replayed: the host had a part in how it ended ({1})")]
    Ended(BootId, String),
    /// Its variant is not in its experiment.
    #[error("{0} is of variant `{1}`, which its experiment does not have")]
    NoVariant(BootId, String),
    /// An input is not what it was.
    #[error("{boot} cannot be replayed: its {what} was {was}, and here is {is}")]
    Input {
        /// The boot.
        boot: BootId,
        /// Which input.
        what: &'static str,
        /// What it was.
        was: String,
        /// What it is.
        is: String,
    },
    /// The host spoilt the new boot.
    #[error("nothing to compare, for the host spoilt the boot: {0}")]
    Spoilt(String),
    /// The host failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl From<BootError> for ReplayError {
    fn from(error: BootError) -> Self {
        Self::Run(error.into())
    }
}

impl From<store::Error> for ReplayError {
    fn from(error: store::Error) -> Self {
        Self::Run(error.into())
    }
}

impl Lab {
    /// Boots once more what was booted as `id`, in the directory `keep`, which afterwards holds
    /// recording, console and counts, or in one that is removed. Gives the first difference to the
    /// boot that is kept; none if there is none.
    ///
    /// # Errors
    /// When the boot is not one of exact mode, an input is not what it was, or the host fails.
    pub fn replay(
        &self,
        id: BootId,
        keep: Option<&Path>,
        watch: &mut Watch<'_>,
    ) -> Result<Option<String>, ReplayError> {
        let _lock = self.lock()?;
        self.replay_alone(id, keep, watch)
    }

    /// The same where nothing else runs.
    pub(crate) fn replay_alone(
        &self,
        id: BootId,
        keep: Option<&Path>,
        watch: &mut Watch<'_>,
    ) -> Result<Option<String>, ReplayError> {
        let Kept { boot: kept, .. } = self.store.boot(id)?;
        let experiment = unpinned(self.store.experiment(self.store.experiment_of(id)?)?);
        if experiment.mode != Mode::Exact {
            return Err(ReplayError::Measured(id));
        }
        if let Outcome::Interrupted | Outcome::TimedOut(_) | Outcome::Died(_) | Outcome::Spoilt(_) =
            kept.outcome
        {
            return Err(ReplayError::Ended(id, kept.outcome.to_string()));
        }
        let mut variants = experiment.variants.iter();
        let place = variants.position(|variant| variant.name == kept.variant);
        let variant = place.ok_or_else(|| ReplayError::NoVariant(id, kept.variant.clone()))?;
        let same = |what, was: &str, is: &str| match was == is {
            true => Ok(()),
            false => {
                Err(ReplayError::Input { boot: id, what, was: was.to_owned(), is: is.to_owned() })
            }
        };
        let kernel = self.kernel(&experiment.variants[variant].kernel, watch)?;
        same("kernel's digest", &kept.facts.kernel_digest, &kernel.digest)?;
        let userspace = self.userspace(&experiment, watch)?;
        let digest_of = |it: &Userspace| it.digest.clone();
        let is = userspace.as_ref().map(digest_of).unwrap_or_default();
        same("user space's digest", &kept.facts.userspace_digest, &is)?;
        let emulator = Emulator::find().map_err(BootError::from)?;
        same("QEMU", &kept.facts.emulator, emulator.version())?;
        let slot = Slot { variant, replicate: kept.replicate, block: kept.block };
        let known = self.known(&kernel, &emulator, watch)?;
        let externals = self.externals(&kernel, &experiment, watch)?;
        let inputs = exact::inputs(&self.libraries, experiment.profile, &known, slot);
        let bootable = Bootable {
            experiment: &experiment,
            variant: &experiment.variants[variant],
            kernel: &kernel,
            externals: &externals,
            guest: &self.guest,
            userspace: userspace.as_ref(),
            engine: Engine::Exact(&inputs),
            emulator: &emulator,
            symbols: Some(&known.symbols),
        };
        let own = self.scratch.join(format!("replay-{id}"));
        let directory = keep.unwrap_or(&own);
        let initramfs = bootable.prepare(directory)?.map_err(BootError::from)?;
        same("initramfs's digest", &kept.facts.initramfs_digest, &digest(&initramfs))?;
        let doing = &mut |what: &str| watch(Progress::Doing { number: None, what });
        let boot = bootable.start(slot, &initramfs, directory, doing)?;
        if keep.is_none() {
            remove(&own).map_err(RunError::from)?;
        }
        if let Outcome::Spoilt(how) = boot.outcome {
            return Err(ReplayError::Spoilt(how));
        }
        Ok(difference(&kept, &boot))
    }
}

/// What of a boot is not as it was.
fn difference(kept: &Boot, boot: &Boot) -> Option<String> {
    if kept.outcome != boot.outcome {
        return Some(format!("it ended so: {}; and now: {}", kept.outcome, boot.outcome));
    }
    if kept.console != boot.console {
        let mut lines = kept.console.lines().zip(boot.console.lines());
        return Some(match lines.position(|(a, b)| a != b) {
            Some(place) => format!("the log differs from line {} on", place + 1),
            None => "one log is longer than the other".to_owned(),
        });
    }
    if kept.facts.recording_digest != boot.facts.recording_digest {
        return Some("the recording differs".to_owned());
    }
    let mut profiles = kept.profiles.iter().zip(&boot.profiles);
    if let Some((kept, _)) = profiles.find(|(a, b)| a != b) {
        return Some(format!("the profile of {} differs in phase `{}`", kept.workload, kept.phase));
    }
    (kept.profiles.len() != boot.profiles.len()).then(|| "the profile has other phases".to_owned())
}

/// The experiment with names as they were given, without the digests.
pub(crate) fn unpinned(mut experiment: Experiment) -> Experiment {
    for variant in &mut experiment.variants {
        cut_digest(&mut variant.kernel);
    }
    for program in experiment.workloads.iter_mut().flat_map(WorkloadUse::programs_mut) {
        if let Some(mut path) = program.to_str().map(str::to_owned) {
            cut_digest(&mut path);
            *program = path.into();
        }
    }
    experiment
}

fn cut_digest(text: &mut String) {
    if let Some(place) = text.rfind(DIGEST_MARK) {
        text.truncate(place);
    }
}
