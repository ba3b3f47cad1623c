//! Runs machines: starts a QEMU VM with a given topology, watches it, limits its time, and leaves files in its
//! directory. The agent decides what the guest does. `record` reads its events. A session on this host leaves the same
//! files: [`run_on_host`] starts the agent as a process, and [`settings`] changes the host's settings for it.
//!
//! [`mod@run`] starts QEMU and returns within the limits, whatever happens to guest and emulator: a panic, a hang, a
//! stopped or spinning guest, a kill. An exact machine can take any time on a busy host. The recording up to its end
//! is in the directory's recorder file; [`read_log`] returns it.

mod arch;
mod arguments;
mod caches;
mod clock;
pub mod disks;
mod emulator;
mod ending;
mod error;
mod exact;
pub mod host;
mod kvm;
mod memory;
mod monitor;
mod option;
mod process;
mod run;
pub mod settings;
mod streams;
mod tail;
mod words;

pub use arguments::exact_machine;
pub use emulator::Emulator;
pub use ending::{Ending, How, Limit, Time};
pub use error::Error;
pub use exact::{Exact, Plugin, Switch, Transfers};
pub use kvm::{DEVICE as KVM, KVM_LIMIT, Probe};
pub use run::{run, run_interactive, run_on_host};
pub use streams::with_streams;
pub use tail::read_log;

use std::path::Path;

use model::{Bytes, Disk, Execution, Limits, Topology};

/// The flight recorder in a machine's directory: memory shared by host and guest.
pub const RECORDER_FILE: &str = flight::job::RECORDER_FILE;
/// The output of the guest's serial console, in a machine's directory.
pub const CONSOLE_FILE: &str = "console.log";
/// QEMU's standard error, in a machine's directory.
pub const EMULATOR_FILE: &str = "qemu.log";

/// The counts of an exact machine's plugin, in the machine's directory.
pub const PROFILE_FILE: &str = "profile.bin";
/// The plugin's list of the kernel's functions, in the machine's directory.
pub const FUNCTIONS_FILE: &str = "functions.bin";

/// The way in which QEMU executes a guest's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine<'a> {
    /// The host's processor under KVM.
    Kvm,
    /// QEMU's emulation, a host thread for each guest CPU.
    Tcg,
    /// QEMU's emulation on one thread, which counts instructions: a boot is a pure function of its inputs.
    Exact(&'a Exact),
}

/// One session on this host.
#[derive(Clone, Copy, Debug)]
pub struct Session<'a> {
    /// The program that carries out the job.
    pub agent: &'a Path,
    /// An existing directory with the job, for [`RECORDER_FILE`] and [`CONSOLE_FILE`], which has the agent's messages.
    pub directory: &'a Path,
    /// The size of the recorder. The file is sparse.
    pub recorder: Bytes,
    /// The time limits, by the host's time.
    pub limits: &'a Limits,
    /// Whether the agent passes standard input, output and error of this process to programs that [`with_streams`] starts.
    pub streams: bool,
}

impl Engine<'_> {
    /// The engine as boots record it.
    pub const fn execution(self) -> Execution {
        match self {
            Self::Kvm => Execution::Kvm,
            Self::Tcg | Self::Exact(_) => Execution::Tcg,
        }
    }
}

/// One start of a machine.
#[derive(Clone, Copy, Debug)]
pub struct Vm<'a> {
    /// The QEMU that runs it.
    pub emulator: &'a Emulator,
    /// The engine that executes its instructions.
    pub engine: Engine<'a>,
    /// CPUs, memory and nodes of the machine.
    pub topology: &'a Topology,
    /// Its disks. Their images ([`disks::image_file`]) are in the directory; a RAM disk has none.
    pub disks: &'a [Disk],
    /// A read-only image in addition to its disks: the user space.
    pub userspace: Option<disks::ReadOnly<'a>>,
    /// The kernel: a `vmlinux` with a PVH entry, or a bzImage.
    pub image: &'a Path,
    /// The initramfs, whose `/init` is the agent.
    pub initramfs: &'a Path,
    /// Words for the kernel's command line, after those of the machine.
    pub cmdline: &'a str,
    /// An existing directory for [`RECORDER_FILE`], [`CONSOLE_FILE`], [`EMULATOR_FILE`], [`PROFILE_FILE`] and
    /// [`FUNCTIONS_FILE`]. Files of an earlier start are replaced.
    pub directory: &'a Path,
    /// The size of the recorder: a power of two, because it is a PCI memory region. The file is sparse.
    pub recorder: Bytes,
    /// The time limits of boot, run and shutdown. In exact mode they limit QEMU's CPU time, else the host's time.
    pub limits: &'a Limits,
}
