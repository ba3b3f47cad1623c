//! Errors that prevent a machine from running. How a machine ended after its start is an [`crate::Ending`].

use std::io;
use std::path::{Path, PathBuf};

use model::{Bytes, DiskKind};

use crate::arch::Platform;

/// The host lacks something, or an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// QEMU was not found.
    #[error(
        "{path} was not found: install QEMU for {} ({}Debian, Ubuntu: apt-get install {}; Fedora: dnf install {})",
        platform.name, platform.install, platform.packages[0], platform.packages[1]
    )]
    NoEmulator {
        /// The program.
        path: PathBuf,
        /// The guest's platform.
        platform: &'static Platform,
    },
    /// What only a VM can do was asked of a host.
    #[error("a host cannot be booted by faultline: this needs a VM")]
    NotAVm,
    /// QEMU cannot be started.
    #[error("{path} cannot be started: {error}")]
    Emulator {
        /// The program.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The output of `--version` is not QEMU's.
    #[error("{path} is not QEMU: `--version` printed `{said}`")]
    NoVersion {
        /// The program.
        path: PathBuf,
        /// The first line of its output.
        said: String,
    },
    /// QEMU is too old.
    #[error(
        "{path} is {version}: version 7.0 or newer is needed (Debian 12: apt-get install \
         -t bookworm-backports {package})"
    )]
    OldEmulator {
        /// The program.
        path: PathBuf,
        /// Its version.
        version: String,
        /// Its package in Debian.
        package: &'static str,
    },
    /// QEMU did not answer a question about itself.
    #[error("{path} failed: {why}")]
    EmulatorFails {
        /// The program.
        path: PathBuf,
        /// The failure, with QEMU's own words.
        why: String,
    },
    /// QEMU was built without the device for memory shared between host and guest.
    #[error(
        "{path} has no device `ivshmem-plain`, which the flight recorder needs ({words}). RHEL and its \
         derivatives build QEMU without it; use the QEMU of Debian or Fedora, or build it from source"
    )]
    NoIvshmem {
        /// The program.
        path: PathBuf,
        /// Its message.
        words: String,
    },
    /// QEMU is too old or too new for exact mode.
    #[error(
        "{path} is {version}: exact mode needs version 10, except with one CPU and no profile (Debian 12: apt-get \
         install -t bookworm-backports {package}; Debian 13 has it without backports)"
    )]
    UnfitForExact {
        /// The program.
        path: PathBuf,
        /// Its version.
        version: String,
        /// Its package in Debian.
        package: &'static str,
    },
    /// An exact machine cannot have a terminal.
    #[error(
        "a machine with a terminal cannot be exact, because input arrives at no fixed instruction; \
         do not use exact mode"
    )]
    ExactTerminal,
    /// The host's threads complete the disk's requests.
    #[error(
        "disk {number} is {}, which is not exact: the host's threads decide when its requests \
         complete; use kind = \"pmem\"", .kind.name()
    )]
    HostDisk {
        /// The disk's index among the machine's, from 0.
        number: usize,
        /// Its kind.
        kind: DiskKind,
    },
    /// A library for QEMU is missing.
    #[error("{0} does not exist, but QEMU loads it in exact mode: build it with `make build`")]
    NoLibrary(PathBuf),
    /// The path of a library cannot be passed to the dynamic linker.
    #[error(
        "the path {0} has a colon or a space, which separate libraries in LD_PRELOAD: move Faultline \
         to a directory without them"
    )]
    SplitPath(PathBuf),
    /// `setpriv` cannot be started.
    #[error(
        "setpriv (package util-linux), which makes QEMU end with faultline, cannot be started: {0}"
    )]
    Setpriv(io::Error),
    /// Not enough space for the recording, before the start or during the run.
    #[error(
        "{directory} has {free} free, but a machine needs {needed} for its recording: free some \
         space, or use another directory"
    )]
    NoSpace {
        /// The machine's directory.
        directory: PathBuf,
        /// The space that an unprivileged user can use.
        free: Bytes,
        /// The required space.
        needed: Bytes,
    },
    /// QEMU cannot allocate its memory.
    #[error(
        "the host has too little free memory for the machine: free some, use a smaller machine, or fewer \
         --jobs. QEMU's message: {0}"
    )]
    NoMemory(String),
    /// A file of the machine cannot be written or read.
    #[error("{path}: {error}")]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// KVM was requested by name and cannot be opened.
    #[error(
        "/dev/kvm cannot be opened: {0}; load the module kvm_intel or kvm_amd, join the group kvm, \
         or set accel to `tcg` for emulation"
    )]
    NoKvm(io::Error),
    /// KVM was requested by name, but guests do not start under it.
    #[error(
        "/dev/kvm exists, but {why} (stored in {answers}; remove that file to try again): set \
         accel to `tcg` for emulation"
    )]
    KvmBroken {
        /// The failure of a guest.
        why: String,
        /// The file with the result.
        answers: PathBuf,
    },
    /// KVM was requested by name, but QEMU exited.
    #[error("the guest did not start under KVM: {0}; set accel to `tcg` for emulation")]
    KvmFails(String),
}

impl Error {
    /// Returns a function for `map_err` that adds the path of the file.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |error| Self::File { path, error }
    }
}
