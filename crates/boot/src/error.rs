//! The errors of the host during a boot.

use std::io;
use std::path::{Path, PathBuf};

use crate::disks::DiskError;
use crate::guest::NoGuest;
use crate::job::JobError;

/// Why a boot has no result. The cause is the host, not the variant.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// A file of the boot cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// The file that cannot be read or written.
        path: PathBuf,
        /// What the system reported.
        error: io::Error,
    },
    /// The machine could not be run.
    #[error(transparent)]
    Machine(#[from] machine::Error),
    /// Settings of this host cannot be changed or put back.
    #[error(transparent)]
    Settings(#[from] machine::settings::SettingsError),
    /// The initramfs cannot be made.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The host spoilt the boot that reads a kernel's symbols.
    #[error(
        "the symbols of {kernel} could not be read, because of the host: {how}. Run the same command again"
    )]
    Symbols {
        /// The name of the kernel.
        kernel: String,
        /// What the host did.
        how: String,
    },
    /// A disk cannot be made.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Our own programs or libraries are missing or damaged.
    #[error(transparent)]
    Own(#[from] NoGuest),
    /// The cached files of the kernel cannot be read.
    #[error(transparent)]
    Kernel(#[from] kernels::Error),
}

/// Returns a function for `map_err` that adds the path of the file.
pub fn in_file(path: &Path) -> impl FnOnce(io::Error) -> BootError {
    let path = path.to_owned();
    |error| BootError::File { path, error }
}
