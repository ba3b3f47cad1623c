//! Repeats a boot of exact mode with the same inputs. The new boot must be identical to the stored
//! one.

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use boot::out_of_tree::OutOfTree;
use boot::symbols::KernelCode;
use boot::{BootError, Bootable, Guest, On, exact, provenance};
use kernels::{Userspace, digest};
use machine::{Emulator, Engine, Exact};
use model::{Boot, BootId, Experiment, Kept, Kernel, Mode, Outcome};
use plan::schedule::Slot;
use record::salvage::remove;

use crate::watch::{Progress, Replayed, Watch};
use crate::worker::{Report, work};
use crate::{Lab, RunError, RunOptions};

/// Why a boot cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The boot is not of exact mode.
    #[error("{0} is of measured mode: only boots of exact mode can be replayed")]
    Measured(BootId),
    /// The host influenced how the boot ended.
    #[error("{0} cannot be replayed: the host influenced how it ended ({1})")]
    Ended(BootId, String),
    /// The experiment of the boot does not have the boot's variant.
    #[error("{0} is of variant `{1}`, which its experiment does not have")]
    NoVariant(BootId, String),
    /// Exact machines have changed since the boot was stored.
    #[error(
        "{0} cannot be replayed: exact machines have changed since, such as their timers or the kernel's command \
         line; replay it with the faultline that made it, or run its experiment again"
    )]
    Machine(BootId),
    /// An input has changed since the boot was stored.
    #[error("{boot} cannot be replayed: its {what} was {was} and is now {is}")]
    Input {
        /// The number of the stored boot.
        boot: BootId,
        /// The name of the input.
        what: &'static str,
        /// Its value in the stored boot.
        was: String,
        /// The value that it has now.
        is: String,
    },
    /// The new boot is invalid because of the host.
    #[error("there is nothing to compare, because the new boot is invalid: {0}")]
    Invalid(String),
    /// The host failed while the boot was repeated.
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

/// All inputs of a stored boot, and the stored boot.
struct Replay {
    id: BootId,
    kept: Boot,
    slot: Slot,
    experiment: Experiment,
    kernel: Kernel,
    out_of_tree: OutOfTree,
    userspace: Option<Userspace>,
    guest: Guest,
    emulator: Emulator,
    code: KernelCode,
    inputs: Exact,
    directory: PathBuf,
    /// Whether the directory remains after the replay.
    keep: bool,
}

impl Lab {
    /// Replays stored boots of exact mode in parallel, and compares each with the stored one. With
    /// `keep`, which is only for a single boot, the recording, console and counts remain in that
    /// directory. After an error no further boot begins. Fails when a boot is not of exact mode, an
    /// input has changed, or the host fails. A difference is not an error.
    pub fn replay(
        &self,
        ids: &[BootId],
        keep: Option<&Path>,
        options: RunOptions,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<Replayed>, ReplayError> {
        for &id in ids {
            self.replayable(id)?;
        }
        let _lock = self.lock(watch)?;
        self.replay_all(ids, keep, options, watch)
    }

    /// Does the same as [`Lab::replay`]. The caller holds the lock on the scratch directory.
    pub(crate) fn replay_all(
        &self,
        ids: &[BootId],
        keep: Option<&Path>,
        options: RunOptions,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<Replayed>, ReplayError> {
        let mut ids = ids.iter().copied();
        let mut replayed = Vec::new();
        let mut failed = None;
        let (mut running, mut jobs) = (0, 1);
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            loop {
                while running < jobs && failed.is_none() {
                    let Some(id) = ids.next() else { break };
                    match self.prepare_replay(id, keep, options.each, watch) {
                        Ok(replay) => {
                            jobs = options.side_by_side(&replay.experiment);
                            let sender = sender.clone();
                            scope.spawn(move || {
                                work(id, &sender, |doing| replay.boot(doing));
                            });
                            running += 1;
                        }
                        Err(error) => failed = Some(error),
                    }
                }
                if running == 0 {
                    break;
                }
                let (boot, report) = receiver.recv().expect("this function has a sender");
                let ended = match report {
                    Report::Doing(what) => {
                        watch(Progress::Replaying { boot, what: &what });
                        continue;
                    }
                    Report::Ended(ended) => (*ended).unwrap_or_else(|panic| resume_unwind(panic)),
                };
                running -= 1;
                match ended {
                    Ok(difference) => {
                        let ended = Replayed { boot, difference };
                        watch(Progress::Replayed(&ended));
                        replayed.push(ended);
                    }
                    Err(error) => {
                        failed.get_or_insert(error);
                    }
                }
            }
        });
        replayed.sort_by_key(|it| it.boot);
        failed.map_or(Ok(replayed), Err)
    }

    /// Reads a boot and its experiment. Fails when the boot is not of exact mode, or when the host
    /// may have influenced how it ended.
    fn replayable(&self, id: BootId) -> Result<(Experiment, Boot), ReplayError> {
        let (experiment, Kept { boot, .. }) = self.store.boot(id)?;
        let experiment = self.store.experiment(experiment)?.unpinned();
        if experiment.mode != Mode::Exact {
            return Err(ReplayError::Measured(id));
        }
        match boot.outcome {
            Outcome::Interrupted
            | Outcome::TimedOut(_)
            | Outcome::Died(_)
            | Outcome::Invalid(_) => Err(ReplayError::Ended(id, boot.outcome.to_string())),
            _ => Ok((experiment, boot)),
        }
    }

    /// Collects all inputs of a boot. With `each`, the plugin is called at each instruction. Fails when one has changed.
    fn prepare_replay(
        &self,
        id: BootId,
        keep: Option<&Path>,
        each: bool,
        watch: &mut Watch<'_>,
    ) -> Result<Replay, ReplayError> {
        let (experiment, kept) = self.replayable(id)?;
        let mut variants = experiment.variants.iter();
        let place = variants.position(|variant| variant.name == kept.variant);
        let variant = place.ok_or_else(|| ReplayError::NoVariant(id, kept.variant.clone()))?;
        let experiment = experiment.seen_by(&experiment.variants[variant]);
        let kernel = self.kernel(&experiment.variants[variant].kernel.name, watch)?;
        same(id, "kernel's digest", &kept.facts.kernel_digest, &kernel.digest)?;
        let userspace = self.userspace(&experiment, watch)?;
        let digest_of = |it: &Userspace| it.digest.clone();
        let is = userspace.as_ref().map(digest_of).unwrap_or_default();
        same(id, "user space's digest", &kept.facts.userspace_digest, &is)?;
        let guest = self.guest.of(experiment.machine.arch).map_err(BootError::from)?;
        let emulator = Emulator::find(experiment.machine.arch).map_err(BootError::from)?;
        same(id, "QEMU", &kept.facts.provenance.emulator, emulator.version())?;
        if experiment.counted_by.machine != provenance::machine(&emulator) {
            return Err(ReplayError::Machine(id));
        }
        let slot = Slot { variant, boot_index: kept.boot_index, block: kept.block };
        let code = self.kernel_code(&kernel, &emulator, experiment.profile.transfers, watch)?;
        let out_of_tree = self.out_of_tree(&kernel, &experiment, watch)?;
        let inputs = exact::inputs(&self.libraries, &experiment, &code, slot, each);
        let own = self.scratch.join(format!("replay-{id}"));
        let directory = keep.map_or(own, Path::to_owned);
        let keep = keep.is_some();
        Ok(Replay {
            id,
            kept,
            slot,
            experiment,
            kernel,
            out_of_tree,
            userspace,
            guest,
            emulator,
            code,
            inputs,
            directory,
            keep,
        })
    }
}

impl Replay {
    /// Does the boot again and returns the first difference to the stored boot; `None` if there is
    /// none. Fails when an input has changed, the new boot is invalid, or the host fails. Runs in
    /// its own thread.
    fn boot(&self, doing: &mut dyn FnMut(&str)) -> Result<Option<String>, ReplayError> {
        let bootable = Bootable {
            experiment: &self.experiment,
            variant: &self.experiment.variants[self.slot.variant],
            kernel: &self.kernel,
            unbuilt: None,
            out_of_tree: &self.out_of_tree,
            guest: &self.guest,
            userspace: self.userspace.as_ref(),
            on: On::Vm { engine: Engine::Exact(&self.inputs), emulator: &self.emulator },
            provenance: &self.kept.facts.provenance,
            symbols: Some(&self.code.symbols),
            memory: self.code.memory.as_deref(),
        };
        let initramfs = bootable.prepare(&self.directory)?.map_err(BootError::from)?;
        let id = self.id;
        same(id, "initramfs's digest", &self.kept.facts.initramfs_digest, &digest(&initramfs))?;
        let boot = bootable.start(self.slot, &initramfs, &self.directory, doing)?;
        if !self.keep {
            remove(&self.directory).map_err(RunError::from)?;
        }
        match boot.outcome {
            Outcome::Invalid(how) => Err(ReplayError::Invalid(how)),
            _ => Ok(difference(&self.kept, &boot)),
        }
    }
}

/// Fails when an input has another value than in the stored boot.
fn same(boot: BootId, what: &'static str, was: &str, is: &str) -> Result<(), ReplayError> {
    match was == is {
        true => Ok(()),
        false => Err(ReplayError::Input { boot, what, was: was.to_owned(), is: is.to_owned() }),
    }
}

/// The most letters of a line of a log that a difference shows.
const LONGEST: usize = 120;

/// Returns the first difference between the stored boot and the new one; `None` if they are the
/// same.
fn difference(kept: &Boot, boot: &Boot) -> Option<String> {
    if kept.outcome != boot.outcome {
        return Some(format!(
            "it ended with: {}; the stored boot ended with: {}",
            boot.outcome, kept.outcome
        ));
    }
    if kept.console != boot.console {
        let lines = kept.console.lines().zip(boot.console.lines());
        // The guest wrote these lines, so they are quoted, and cut.
        let cut = |line: &str| format!("{:?}", line.chars().take(LONGEST).collect::<String>());
        return Some(match (1..).zip(lines).find(|(_, (was, is))| was != is) {
            Some((number, (was, is))) => format!(
                "the log differs from line {number} on: {} instead of {}",
                cut(is),
                cut(was)
            ),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_differ_are_shown() {
        let boot = |console: &str| Boot { console: console.into(), ..Boot::default() };
        let stored = boot("one\ntwo\n");
        let differs = |console: &str| difference(&stored, &boot(console));
        assert_eq!(differs("one\ntwo\n"), None);
        let said = "the log differs from line 2 on: \"t\\u{1b}o\" instead of \"two\"";
        assert_eq!(differs("one\nt\x1bo\nthree\n").unwrap(), said);
        assert_eq!(differs("one\n").unwrap(), "one log is longer than the other");
        let long = differs(&"x".repeat(1000)).unwrap();
        assert!(long.len() < 300, "{long}");
    }
}
