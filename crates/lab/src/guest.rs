//! The guest's files on the host: the static binaries, and the initramfs made of them.

use std::path::{Path, PathBuf};

/// The variable that names the directory of the guest's binaries.
pub const DIRECTORY_VARIABLE: &str = "FAULTLINE_GUEST";

/// The static binaries that go into a guest.
#[derive(Clone, Debug)]
pub struct Guest {
    /// The agent.
    pub agent: PathBuf,
    /// The built-in workloads.
    pub workloads: PathBuf,
}

/// The guest's binaries are not where they ought to be.
#[derive(Debug, thiserror::Error)]
#[error(
    "the guest's programs are not in {directory}: build them with `make`, or name their directory in {DIRECTORY_VARIABLE}"
)]
pub struct NoGuest {
    directory: PathBuf,
}

impl Guest {
    /// Finds the binaries: in the directory that `FAULTLINE_GUEST` names, else in `guest` beside
    /// the running program.
    ///
    /// # Errors
    /// When they are not there.
    pub fn find() -> Result<Self, NoGuest> {
        let directory = std::env::var_os(DIRECTORY_VARIABLE).map(PathBuf::from).or_else(|| {
            let program = std::env::current_exe().ok()?;
            Some(program.parent()?.join("guest"))
        });
        Self::at(&directory.unwrap_or_else(|| PathBuf::from("guest")))
    }

    fn at(directory: &Path) -> Result<Self, NoGuest> {
        let guest = Self { agent: directory.join("agent"), workloads: directory.join("workloads") };
        if guest.agent.is_file() && guest.workloads.is_file() {
            Ok(guest)
        } else {
            Err(NoGuest { directory: directory.to_owned() })
        }
    }
}
