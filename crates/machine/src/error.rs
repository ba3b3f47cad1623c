//! Why a machine could not be run at all. Failures of a machine that was started are an [`crate::Ending`].

use std::io;
use std::path::{Path, PathBuf};

use model::{Bytes, DiskKind};

/// The host lacks something, or refused something.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// QEMU was not found.
    #[error(
        "{0} was not found: install QEMU for x86 (Debian, Ubuntu: apt-get install qemu-system-x86; \
         Fedora: dnf install qemu-system-x86)"
    )]
    NoEmulator(PathBuf),
    /// QEMU cannot be started.
    #[error("{path} cannot be started: {error}")]
    Emulator {
        /// The program.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The output of `--version` is not QEMU's.
    #[error("{path} does not tell its version: it said `{said}`; is it QEMU?")]
    NoVersion {
        /// The program.
        path: PathBuf,
        /// Its first line.
        said: String,
    },
    /// QEMU is too old.
    #[error(
        "{path} is {version}: version 7.0 or newer is needed (Debian 12: apt-get install \
         -t bookworm-backports qemu-system-x86)"
    )]
    OldEmulator {
        /// The program.
        path: PathBuf,
        /// Its version.
        version: String,
    },
    /// QEMU was built without the device for memory shared between host and guest.
    #[error(
        "{0} has no device `ivshmem-plain`, which the flight recorder needs: the QEMU of RHEL and \
         its kin is built without it; use that of Debian or Fedora, or one built from source"
    )]
    NoIvshmem(PathBuf),
    /// QEMU is too old for exact mode.
    #[error(
        "{path} is {version}: version 10 or newer is needed in exact mode, but for one CPU without \
         a profile (Debian 12: apt-get install -t bookworm-backports qemu-system-x86)"
    )]
    OldForExact {
        /// The program.
        path: PathBuf,
        /// Its version.
        version: String,
    },
    /// An exact machine cannot have a terminal.
    #[error(
        "a machine with a terminal is not exact: what is typed comes at no certain instruction; \
         leave exact mode out"
    )]
    ExactTerminal,
    /// Host threads complete the disk's requests, with the host's timing.
    #[error(
        "disk {number} is {} and not exact: threads of the host end its requests, at the host's \
         times; use kind = \"pmem\"", .kind.name()
    )]
    HostDisk {
        /// The disk's index among the machine's, from 0.
        number: usize,
        /// Its kind.
        kind: DiskKind,
    },
    /// A library of ours that QEMU has to load is missing.
    #[error("{0} is not there, and QEMU is to load it in exact mode: build it with `make build`")]
    NoLibrary(PathBuf),
    /// The path of a library of ours cannot be given to the dynamic linker.
    #[error(
        "{0} has a colon or a blank in its path, where the dynamic linker divides the list of what \
         it loads (LD_PRELOAD): move Faultline to a directory without"
    )]
    SplitPath(PathBuf),
    /// `setpriv` cannot be started.
    #[error("setpriv (package util-linux), which ties QEMU's life to ours, cannot be started: {0}")]
    Setpriv(io::Error),
    /// Not enough space for the recording.
    #[error(
        "{directory} has {free} free, and a machine needs at least {needed} to record: make room, \
         or use another directory"
    )]
    NoSpace {
        /// The machine's directory.
        directory: PathBuf,
        /// The space that an unprivileged user may still use.
        free: Bytes,
        /// The space required.
        needed: Bytes,
    },
    /// A file of the machine cannot be written or read.
    #[error("{path}: {error}")]
    File {
        /// The file or directory.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// KVM was requested by name and cannot be opened.
    #[error(
        "/dev/kvm cannot be opened: {0}; load the module kvm_intel or kvm_amd, join the group kvm, \
         or set accel to `tcg` for emulation"
    )]
    NoKvm(io::Error),
    /// KVM was requested by name, and guests do not start under it.
    #[error(
        "/dev/kvm is there, but {why} (remembered in {answers}; remove that file to try again): set \
         accel to `tcg` for emulation"
    )]
    KvmBroken {
        /// What went wrong with a guest.
        why: String,
        /// The file that remembers it.
        answers: PathBuf,
    },
    /// KVM was requested by name, and QEMU exited with it.
    #[error("the guest did not start under KVM: {0}; set accel to `tcg` for emulation")]
    KvmFails(String),
}

impl Error {
    /// For `map_err`: what went wrong with the file at `path`.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |error| Self::File { path, error }
    }
}
