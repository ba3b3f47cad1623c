//! Why a run ended early.

use std::io;
use std::path::PathBuf;

use model::BootId;

use super::check::TooLarge;
use crate::boot::BootError;
use crate::salvage::SalvageError;

/// Why a run ended early. Boots that were reported as kept are kept.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Another run is under way on this store.
    #[error("another run is under way: {0} is locked; wait for it or use another store")]
    Busy(PathBuf),
    /// The machine wants more memory than the host has.
    #[error(transparent)]
    Memory(#[from] TooLarge),
    /// A workload works on more NUMA nodes than a variant has.
    #[error(
        "workload `{workload}` wants {wants} NUMA nodes, and variant `{variant}` has {has}; nothing was \
         booted: set `nodes` of the machine (--nodes)"
    )]
    Nodes {
        /// The workload.
        workload: String,
        /// The variant.
        variant: String,
        /// How many it wants.
        wants: u32,
        /// How many there are.
        has: usize,
    },
    /// None of the kernels supports a workload.
    #[error("workload `{workload}` runs on none of the kernels; nothing was booted: {why}")]
    Unsupported {
        /// The workload.
        workload: String,
        /// Why not, kernel by kernel.
        why: String,
    },
    /// The scratch directory cannot be used.
    #[error("{path}: {error}")]
    Scratch {
        /// The file or directory.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// A program of the user's own cannot be read.
    #[error("the program {}: {error}; nothing was booted", path.display())]
    Program {
        /// The program.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// A kernel is not available.
    #[error(transparent)]
    Kernel(#[from] kernels::Error),
    /// A boot failed because of the host.
    #[error(transparent)]
    Boot(#[from] BootError),
    /// The requested machine is not possible.
    #[error(transparent)]
    Machine(#[from] machine::Error),
    /// The leftovers of an earlier run cannot be handled.
    #[error(transparent)]
    Salvage(#[from] SalvageError),
    /// Two boots with the same inputs differ.
    #[error(
        "{variant}, seed {seed}: two boots with the same inputs differ: {difference}; \
         what they left behind is in {one} and {other}"
    )]
    NotExact {
        /// The variant.
        variant: String,
        /// The seed.
        seed: u32,
        /// The first difference.
        difference: String,
        /// The directory of the first boot.
        one: PathBuf,
        /// The directory of the second.
        other: PathBuf,
    },
    /// A replayed boot differs from the kept one.
    #[error("{boot} is not what it was: {how}")]
    Changed {
        /// The boot.
        boot: BootId,
        /// The first difference.
        how: String,
    },
    /// A kept boot cannot be repeated.
    #[error("{0}")]
    NotReplayed(String),
    /// The store refused; a boot that could not be kept is picked up by the next run.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl RunError {
    /// Whether the experiment asks for something impossible, and the host is not at fault.
    pub fn is_the_users(&self) -> bool {
        match self {
            Self::Program { .. } | Self::Nodes { .. } | Self::Unsupported { .. } => true,
            Self::Kernel(error) => error.is_the_users(),
            Self::Boot(BootError::Disk(error)) => error.is_the_users(),
            _ => false,
        }
    }
}
