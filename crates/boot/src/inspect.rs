//! Boots a kernel without a workload, to inspect it. Nothing is stored.

use std::fs;
use std::path::PathBuf;

use kernels::Cache;
use machine::{Emulator, Engine, Vm, run_interactive};
use model::{Architecture, Boot, Experiment, Kernel, Machine, Provenance, Variant};
use plan::schedule::Slot;

use crate::error::{BootError, in_file};
use crate::guest::Guest;
use crate::job::{self, RECORDER, image};
use crate::memory::{TooLarge, check_memory};
use crate::out_of_tree::OutOfTree;
use crate::{Bootable, On, engine};

/// A boot of a kernel for inspection.
pub struct Inspection {
    /// The cache of kernels.
    pub cache: Cache,
    /// The programs that run in the guest.
    pub guest: Guest,
    /// The name of the kernel.
    pub kernel: String,
    /// The architecture that it must have, if one was asked for.
    pub arch: Option<Architecture>,
    /// The machine that boots it.
    pub machine: Machine,
    /// Words added to the kernel's command line.
    pub cmdline: String,
    /// An empty directory for the boot's files.
    pub directory: PathBuf,
}

/// Why a kernel could not be inspected.
#[derive(Debug, thiserror::Error)]
pub enum InspectionError {
    /// The machine wants more memory than the host has.
    #[error(transparent)]
    Memory(#[from] TooLarge),
    /// The kernel or the shell is not available.
    #[error(transparent)]
    Kernel(#[from] kernels::Error),
    /// The kernel is for another architecture.
    #[error("{kernel} is a kernel for {}, not for {}; nothing was booted: leave out --arch", of.name(), asked.name())]
    Architecture {
        /// The name of the kernel.
        kernel: String,
        /// Its architecture.
        of: Architecture,
        /// The architecture that was asked for.
        asked: Architecture,
    },
    /// The machine could not be run.
    #[error(transparent)]
    Boot(#[from] BootError),
}

/// What an inspection obtains before it boots.
struct Prepared {
    kernel: Kernel,
    guest: Guest,
    emulator: Emulator,
    engine: Engine<'static>,
}

impl Inspection {
    /// Boots without a workload. The boot has the facts that the agent reported. Fails when the
    /// host fails. If the kernel panics, the outcome of the boot says so.
    pub fn boot(&self, say: &dyn Fn(&str)) -> Result<Boot, InspectionError> {
        let Prepared { kernel, guest, emulator, engine } = self.prepare(say)?;
        let experiment = self.experiment();
        let provenance = Provenance {
            execution: Some(engine.execution()),
            emulator: emulator.version().to_owned(),
            ..Provenance::default()
        };
        let bootable = Bootable {
            experiment: &experiment,
            variant: &experiment.variants[0],
            kernel: &kernel,
            unbuilt: None,
            out_of_tree: &OutOfTree::default(),
            guest: &guest,
            userspace: None,
            on: On::Vm { engine, emulator: &emulator },
            provenance: &provenance,
            symbols: None,
            memory: None,
        };
        let slot = Slot { variant: 0, boot_index: 0, block: 0 };
        Ok(bootable.boot(slot, &self.directory, &mut |what| say(what))?)
    }

    /// Boots and opens a shell on the terminal. Returns when the shell ends. Fails when the host
    /// fails or the shell cannot be obtained.
    pub fn shell(&self, say: &dyn Fn(&str)) -> Result<(), InspectionError> {
        let Prepared { kernel, guest, emulator, engine } = self.prepare(say)?;
        let experiment = self.experiment();
        let shell = self.cache.shell(say)?;
        let (mut job, modules) =
            job::job(&experiment, &experiment.variants[0], &kernel, &OutOfTree::default(), None)
                .map_err(BootError::from)?;
        job.shell = true;
        let bytes = job::initramfs(&guest, &job, &modules, &[], &[], Some(&shell))
            .map_err(BootError::from)?;
        let initramfs = self.directory.join("initramfs.cpio");
        fs::write(&initramfs, bytes).map_err(in_file(&initramfs))?;
        let vm = Vm {
            emulator: &emulator,
            engine,
            topology: &self.machine.topology,
            disks: &[],
            userspace: None,
            image: image(&kernel),
            initramfs: &initramfs,
            cmdline: &self.cmdline,
            directory: &self.directory,
            recorder: RECORDER,
            limits: &self.machine.limits,
        };
        run_interactive(&vm).map_err(BootError::from)?;
        Ok(())
    }

    fn prepare(&self, say: &dyn Fn(&str)) -> Result<Prepared, InspectionError> {
        check_memory(&self.machine.topology)?;
        let kernel = self.cache.obtain(&self.kernel, say)?;
        if let Some(asked) = self.arch.filter(|asked| *asked != kernel.arch) {
            return Err(InspectionError::Architecture {
                of: kernel.arch,
                kernel: kernel.name,
                asked,
            });
        }
        let guest = self.guest.of(kernel.arch).map_err(BootError::from)?;
        let emulator = Emulator::find(kernel.arch).map_err(BootError::from)?;
        let engine = engine::choose(
            self.machine.accel,
            &emulator,
            (&kernel, &guest),
            &self.cache,
            &self.directory,
            &mut |line| say(line),
        )?;
        Ok(Prepared { kernel, guest, emulator, engine })
    }

    /// Returns the experiment for this boot: one variant, no workload.
    fn experiment(&self) -> Experiment {
        Experiment {
            name: "inspection".into(),
            variants: vec![Variant {
                name: self.kernel.clone(),
                kernel: self.kernel.clone().into(),
                cmdline: self.cmdline.clone(),
                ..Variant::default()
            }],
            machine: self.machine.clone(),
            boots: 1,
            ..Experiment::default()
        }
    }
}
