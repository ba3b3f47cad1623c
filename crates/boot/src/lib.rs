//! Does one boot: makes the initramfs, runs and watches the machine, and turns what it left into a
//! boot. On a host a boot is a session: module `session`.

mod code;
pub mod disks;
pub mod engine;
mod error;
pub mod exact;
mod guest;
mod inspect;
mod job;
mod memory;
pub mod out_of_tree;
pub mod provenance;
mod session;
mod swap;
pub mod symbols;
pub mod userspace;

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use flight::Event;
use kernelfiles::kallsyms::Symbols;
use kernels::{Unbuilt, Userspace, digest};
use machine::settings::HostSettings;
use machine::{Emulator, Engine, Vm};
use model::{
    Boot, BootFacts, Experiment, Kernel, NoteKind, Outcome, Problem, ProblemKind, Provenance,
    Variant,
};
use plan::schedule::Slot;
use record::conclude::{Counting, Head, conclude, unknown_load};
use record::memory::Memory;

use disks::Contents;
use job::{RECORDER, image};
use out_of_tree::OutOfTree;

pub use code::{
    ChangedPlaces, CodeError, Vmlinux, changed_places, code_difference, images_of, kernels_that_ran,
};
pub use error::{BootError, in_file};
pub use guest::{Guest, Libraries, NoGuest};
pub use inspect::{Inspection, InspectionError};
pub use job::JobError;
pub use memory::{TooLarge, check_memory};

/// What all boots of one variant share.
pub struct Bootable<'a> {
    /// The experiment that the boot is for.
    pub experiment: &'a Experiment,
    /// The variant of the experiment that boots.
    pub variant: &'a Variant,
    /// The kernel of the variant.
    pub kernel: &'a Kernel,
    /// Why the kernel cannot be built from its source; `None` if it can.
    pub unbuilt: Option<&'a Unbuilt>,
    /// The modules that workloads want, for this kernel.
    pub out_of_tree: &'a OutOfTree,
    /// The programs that run in the guest.
    pub guest: &'a Guest,
    /// The user space for the workloads; `None` if they need none.
    pub userspace: Option<&'a Userspace>,
    /// Where the boot is made.
    pub on: On<'a>,
    /// Where and by what the boot is made, as the boot will say.
    pub provenance: &'a Provenance,
    /// The kernel's functions; `None` if instructions are not counted.
    pub symbols: Option<&'a Symbols>,
    /// What is known of the kernel's memory, if transfers of lines are counted.
    pub memory: Option<&'a Memory>,
}

/// Where a boot is made.
#[derive(Clone, Copy)]
pub enum On<'a> {
    /// In a VM.
    Vm {
        /// How it executes: KVM, emulation or exact mode.
        engine: Engine<'a>,
        /// The QEMU that runs it.
        emulator: &'a Emulator,
    },
    /// On this host: a session.
    Host {
        /// The settings of the host.
        settings: &'a HostSettings,
        /// Whether programs have standard input, output and error of this process.
        streams: bool,
    },
}

impl Bootable<'_> {
    /// Boots once in `directory`, which holds the recording until the boot is stored. `doing`
    /// receives short descriptions of what the boot does. If the variant or the guest fails, the
    /// outcome of the boot says so. Fails when the host fails.
    pub fn boot(
        &self,
        slot: Slot,
        directory: &Path,
        doing: &mut dyn FnMut(&str),
    ) -> Result<Boot, BootError> {
        if let Some(unbuilt) = self.unbuilt {
            let boot = never_booted(self.head(slot), unbuilt.problem());
            return Ok(Boot { console: unbuilt.output().to_owned(), ..boot });
        }
        if let On::Host { settings, streams } = self.on {
            return self.session((settings, streams), slot, directory, doing);
        }
        match self.prepare(directory)? {
            Ok(bytes) => self.start(slot, &bytes, directory, doing),
            Err(error) => Ok(never_booted(self.head(slot), &error.to_string())),
        }
    }

    /// Boots with the initramfs that [`Bootable::prepare`] returned for `directory`. Fails when the
    /// host fails.
    pub fn start(
        &self,
        slot: Slot,
        bytes: &[u8],
        directory: &Path,
        doing: &mut dyn FnMut(&str),
    ) -> Result<Boot, BootError> {
        let On::Vm { engine, emulator } = self.on else {
            return Err(BootError::Machine(machine::Error::NotAVm));
        };
        let mut head = self.head(slot);
        head.facts.initramfs_digest = digest(bytes);
        let machine = &self.experiment.machine;
        let notes = disks::notes(&machine.disks, directory);
        let initramfs = directory.join("initramfs.cpio");
        fs::write(&initramfs, bytes).map_err(in_file(&initramfs))?;
        head.write(directory).map_err(in_file(&Head::path(directory)))?;
        let vm = Vm {
            emulator,
            topology: &machine.topology,
            disks: &machine.disks,
            userspace: self.userspace.map(userspace::of_machine),
            engine,
            image: image(self.kernel),
            initramfs: &initramfs,
            cmdline: &self.variant.cmdline,
            directory,
            recorder: RECORDER,
            limits: &machine.limits,
        };
        let before = machine::host::Reading::take();
        let mut narrator = Narrator::new(&head.workloads);
        doing("booting");
        let ending = machine::run(&vm, &mut |event| {
            if let Some(what) = narrator.hear(event) {
                doing(what);
            }
        })?;
        let host = before.until_now();
        let topology = &machine.topology;
        let lines = &self.experiment.profile.lines;
        let counting =
            self.symbols.map(|symbols| Counting { symbols, memory: self.memory, topology, lines });
        let boot = conclude(head, directory, Some(&ending), host, counting);
        let mut boot = boot.map_err(in_file(directory))?;
        boot.notes.extend(notes.into_iter().map(|it| NoteKind::Remark.note(it)));
        boot.problems.extend(self.unsupported());
        Ok(boot)
    }

    /// Makes `directory` and the images of the disks in it. Returns the initramfs, or the reason
    /// why this variant cannot have one. Fails when the host fails.
    pub fn prepare(&self, directory: &Path) -> Result<Result<Vec<u8>, JobError>, BootError> {
        fs::create_dir_all(directory).map_err(in_file(directory))?;
        let contents = disks::make(&self.experiment.machine.disks, directory, &self.guest.mkfs)?;
        Ok(self.initramfs(&contents))
    }

    /// Makes the initramfs. If instructions are counted and modules are loaded, the agent records
    /// the kernel's symbols, because modules add symbols.
    fn initramfs(&self, contents: &[Contents]) -> Result<Vec<u8>, JobError> {
        let (mut job, modules) =
            job::job(self.experiment, self.variant, self.kernel, self.out_of_tree, self.userspace)?;
        job.seed = match self.on {
            On::Vm { engine: Engine::Exact(exact), .. } => Some(exact.seed),
            _ => None,
        };
        job.symbols = self.symbols.is_some() && !modules.is_empty();
        job::initramfs(self.guest, &job, &modules, &self.experiment.workloads, contents, None)
    }

    /// Returns a problem for each workload that the kernel does not support.
    fn unsupported(&self) -> impl Iterator<Item = Problem> {
        let kernel = &self.kernel.name;
        self.experiment.workloads.iter().filter_map(move |workload| {
            let why = self.out_of_tree.missing(workload)?;
            let name = &workload.manifest.name;
            let text = format!("{name} is not supported by this kernel: {kernel} {why}");
            Some(Problem { kind: ProblemKind::LeftOut, text })
        })
    }

    fn head(&self, slot: Slot) -> Head {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let workloads = self.experiment.workloads.iter();
        Head {
            experiment: self.experiment.name.clone(),
            variant: self.variant.name.clone(),
            boot_index: slot.boot_index,
            block: slot.block,
            started,
            workloads: workloads
                .map(|used| (used.manifest.name.clone(), job::iterations(used, self.out_of_tree)))
                .collect(),
            own_modules: self.out_of_tree.modules().next().is_some()
                && !out_of_tree::has_foreign(self.kernel, self.variant),
            mode: self.experiment.mode,
            facts: BootFacts {
                release: self.kernel.release.clone(),
                provenance: self.provenance.clone(),
                kernel_origin: self.kernel.origin.clone(),
                patched: self.kernel.patched.clone(),
                kernel_digest: self.kernel.digest.clone(),
                userspace_digest: self.userspace.map(|it| it.digest.clone()).unwrap_or_default(),
                userspace: self.userspace.map(|it| it.packages.clone()).unwrap_or_default(),
                config: kernels::text(self.kernel, "config").ok().flatten().unwrap_or_default(),
                ..BootFacts::default()
            },
        }
    }
}

/// Returns a boot of a variant that could not be started. Its outcome is `Failed` with this reason.
fn never_booted(head: Head, why: &str) -> Boot {
    Boot {
        variant: head.variant,
        boot_index: head.boot_index,
        block: head.block,
        started: head.started,
        outcome: Outcome::Failed(why.to_owned()),
        facts: head.facts,
        host: unknown_load(),
        ..Boot::default()
    }
}

/// Describes what a boot does now, from the events that it records.
struct Narrator<'a> {
    workloads: &'a [(String, u32)],
    now: String,
    doing: String,
}

impl<'a> Narrator<'a> {
    fn new(workloads: &'a [(String, u32)]) -> Self {
        Self { workloads, now: String::new(), doing: String::new() }
    }

    /// Updates the description after an event, and returns it; `None` if the event does not change
    /// it.
    fn hear(&mut self, event: &Event) -> Option<&str> {
        self.doing = match event {
            Event::Hello(_) => "setting up".to_owned(),
            Event::Begin { workload, iteration } => {
                let (name, of) = self.workloads.get(usize::from(*workload))?;
                self.now = match of {
                    1 => name.clone(),
                    _ => format!("{name} {}/{of}", iteration.saturating_add(1)),
                };
                self.now.clone()
            }
            Event::Phase(phase) if phase.is_empty() => self.now.clone(),
            Event::Phase(phase) => format!("{}: {phase}", self.now),
            Event::Bye { .. } => "shutting down".to_owned(),
            _ => return None,
        };
        Some(&self.doing)
    }
}
