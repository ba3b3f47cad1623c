//! Why a run ended early.

use std::io;
use std::path::PathBuf;

use boot::{BootError, TooLarge};
use model::{Architecture, BootId};
use record::salvage::SalvageError;

/// Why a run ended early. Boots that were stored before remain stored.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Another run is under way on this store.
    #[error("another run is under way: {0}; wait for it or use another store")]
    Busy(lock::Held),
    /// The machine wants more memory than the host has.
    #[error(transparent)]
    Memory(#[from] TooLarge),
    /// A workload needs more NUMA nodes than a variant has.
    #[error(
        "workload `{workload}` needs {wants} NUMA nodes, but variant `{variant}` has {has}; nothing was \
         booted: set `nodes` of the machine (--nodes)"
    )]
    Nodes {
        /// The name of the workload.
        workload: String,
        /// The name of the variant.
        variant: String,
        /// The number of nodes that the workload needs.
        wants: u32,
        /// The number of nodes that the variant's machine has.
        has: usize,
    },
    /// None of the kernels supports a workload.
    #[error("workload `{workload}` runs on none of the kernels; nothing was booted: {why}")]
    Unsupported {
        /// The name of the workload.
        workload: String,
        /// The reason for each kernel.
        why: String,
    },
    /// None of the kernels has a tracepoint of the experiment.
    #[error(
        "no event {event} in {kernels}; nothing was booted{}; `faultline event list KERNEL` lists all",
        if near.is_empty() { String::new() } else { format!("; near names: {near}") }
    )]
    NoEvent {
        /// The event that no kernel has.
        event: String,
        /// The names of the kernels, separated by commas.
        kernels: String,
        /// Similar names of events, separated by commas; may be empty.
        near: String,
    },
    /// A kernel is for another architecture than the machine.
    #[error(
        "{kernel} is a kernel for {of}, but the machine is {machine}; nothing was booted: set `arch` of the machine (--arch {of})",
        of = of.name(), machine = machine.name()
    )]
    Architecture {
        /// The name of the kernel.
        kernel: String,
        /// Its architecture.
        of: Architecture,
        /// The architecture of the machine.
        machine: Architecture,
    },
    /// No kernel has a function whose lines are to be kept.
    #[error(
        "no kernel has a function `{0}`; nothing was booted: `faultline explain` lists functions. One that is inlined \
         everywhere, or is in a module, has no lines of its own"
    )]
    NoFunction(String),
    /// The scratch directory cannot be used.
    #[error("{path}: {error}")]
    Scratch {
        /// The file or directory.
        path: PathBuf,
        /// What the system reported.
        error: io::Error,
    },
    /// A user's program cannot be read.
    #[error("the program {}: {error}; nothing was booted", path.display())]
    Program {
        /// The path of the program.
        path: PathBuf,
        /// What the system reported.
        error: io::Error,
    },
    /// The search names a row that the good end does not have.
    #[error("no row is called `{name}`; there are: {known}")]
    NoRow {
        /// The name of the row that was asked for.
        name: String,
        /// The names of the rows that exist, separated by commas.
        known: String,
    },
    /// The boots of a search do not have the cost that was asked for.
    #[error(transparent)]
    NoCost(#[from] compare::NoCost),
    /// An end of a search does not have the figure that was asked for.
    #[error("{end} has no {figure}: no boot of it has this phase, or enters this function there")]
    NoFigure {
        /// The end, as the user named it.
        end: String,
        /// The figure that was asked for.
        figure: String,
    },
    /// A kernel is not available.
    #[error(transparent)]
    Kernel(#[from] kernels::Error),
    /// A boot failed because of the host.
    #[error(transparent)]
    Boot(#[from] BootError),
    /// Settings of this host cannot be changed.
    #[error(transparent)]
    Settings(#[from] machine::settings::SettingsError),
    /// This user may not count events of the whole host.
    #[error("{what} of the whole host: {why}; nothing was started")]
    NoEvents {
        /// What was asked for.
        what: &'static str,
        /// Why it is not possible, and what to do.
        why: String,
    },
    /// The requested machine is not possible.
    #[error(transparent)]
    Machine(#[from] machine::Error),
    /// The files of an interrupted run cannot be handled.
    #[error(transparent)]
    Salvage(#[from] SalvageError),
    /// The host spoilt a boot of a search, also when it was repeated.
    #[error(
        "{variant}: a boot was invalid each time, because of the host: {how}. Run the same command again to continue"
    )]
    Invalid {
        /// The name of the variant.
        variant: String,
        /// What the host did.
        how: String,
    },
    /// Two boots with the same inputs differ.
    #[error(
        "{variant}, seed {seed}: two boots with the same inputs differ: {difference}; \
         their files are in {one} and {other}"
    )]
    NotExact {
        /// The name of the variant.
        variant: String,
        /// The seed of both boots.
        seed: u32,
        /// The first difference between both boots.
        difference: String,
        /// The directory of the first boot.
        one: PathBuf,
        /// The directory of the second.
        other: PathBuf,
    },
    /// A replayed boot differs from the stored one.
    #[error("{boot} differs from the stored boot: {how}")]
    Changed {
        /// The number of the stored boot.
        boot: BootId,
        /// The first difference between both boots.
        how: String,
    },
    /// A stored boot cannot be replayed.
    #[error("{0}")]
    NotReplayed(String),
    /// The store failed. The next run stores a boot that could not be stored.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl RunError {
    /// Returns whether the cause is what the user asked for and not the host.
    pub fn is_the_users(&self) -> bool {
        match self {
            Self::Program { .. }
            | Self::NoRow { .. }
            | Self::NoCost(_)
            | Self::NoFigure { .. }
            | Self::NoEvent { .. }
            | Self::NoFunction(_)
            | Self::NoEvents { .. }
            | Self::Settings(_)
            | Self::Nodes { .. }
            | Self::Architecture { .. }
            | Self::Unsupported { .. } => true,
            Self::Kernel(error) => error.is_the_users(),
            Self::Boot(BootError::Disk(error)) => error.is_the_users(),
            _ => false,
        }
    }
}
