//! Finds our own binaries that a machine needs: the guest's static programs, and the libraries that
//! QEMU loads in exact mode.

use std::fs;
use std::path::{Path, PathBuf};

use kernels::{Damaged, check_files, digest};

/// The environment variable that names the directory of the guest's binaries.
pub const DIRECTORY_VARIABLE: &str = "FAULTLINE_GUEST";

/// The environment variable that names the directory of the libraries for QEMU.
const LIBRARIES_VARIABLE: &str = "FAULTLINE_LIBRARIES";

const CLOCK: &str = "libstillclock.so";
const PLUGIN: &str = "libtcg.so";

/// The guest's static binaries.
#[derive(Clone, Debug)]
pub struct Guest {
    /// The program that is PID 1 in a guest.
    pub agent: PathBuf,
    /// The program that has the built-in workloads.
    pub workloads: PathBuf,
    /// The library that makes the file systems of disks the same each time. It is preloaded into
    /// mkfs on the host.
    pub mkfs: PathBuf,
}

/// Why our own binaries cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NoGuest {
    /// The guest's binaries are missing.
    #[error(
        "the guest's programs are not in {0}. Build them with `make`, or name their directory in \
         {DIRECTORY_VARIABLE}. An installed faultline finds them after `make install`"
    )]
    Missing(PathBuf),
    /// A file is not the one that was built or installed, or its list of digests is missing.
    #[error(
        "{0}. Build our programs and libraries with `make`, or install them again with `make install`: both \
         write the list of digests"
    )]
    Damaged(#[from] Damaged),
}

impl Guest {
    /// Finds the binaries in the directory that `FAULTLINE_GUEST` names, otherwise in `guest` beside the
    /// program's files. Fails when they are missing, or are not those that the list of digests beside them has.
    pub fn find() -> Result<Self, NoGuest> {
        let named = std::env::var_os(DIRECTORY_VARIABLE).map(PathBuf::from);
        Self::at(&named.unwrap_or_else(|| own_files().join("guest")))
    }

    /// Returns the SHA-256 of the two programs, in hexadecimal; empty if they cannot be read.
    pub fn digest(&self) -> String {
        let programs = [&self.agent, &self.workloads].map(fs::read);
        let programs: Result<Vec<_>, _> = programs.into_iter().collect();
        programs.map_or_else(|_| String::new(), |programs| digest(&programs.concat()))
    }

    fn at(directory: &Path) -> Result<Self, NoGuest> {
        let guest = Self {
            agent: directory.join("agent"),
            workloads: directory.join("workloads"),
            mkfs: directory.join("libstillmkfs.so"),
        };
        if !guest.agent.is_file() || !guest.workloads.is_file() {
            return Err(NoGuest::Missing(directory.to_owned()));
        }
        check_files(directory, &["agent", "workloads", "libstillmkfs.so"])?;
        Ok(guest)
    }
}

/// The libraries that QEMU loads in exact mode.
#[derive(Clone, Debug)]
pub struct Libraries {
    /// The library that makes the host's wall clock stand still for QEMU.
    pub clock: PathBuf,
    /// The plugin that counts instructions.
    pub plugin: PathBuf,
}

impl Libraries {
    /// Locates the libraries in the directory that `FAULTLINE_LIBRARIES` names, otherwise beside
    /// the program's files. Does not check that they exist.
    pub fn find() -> Self {
        let named = std::env::var_os(LIBRARIES_VARIABLE).map(PathBuf::from);
        let directory = named.unwrap_or_else(own_files);
        Self { clock: directory.join(CLOCK), plugin: directory.join(PLUGIN) }
    }

    /// Checks the libraries against the list of digests beside them.
    ///
    /// # Errors
    /// When a library is missing or has changed, or the list is missing.
    pub fn check(&self) -> Result<(), NoGuest> {
        let directory = self.plugin.parent().unwrap_or(Path::new("."));
        Ok(check_files(directory, &[CLOCK, PLUGIN])?)
    }
}

/// Returns the directory of the running program's files: `lib/faultline` below its installation
/// prefix, otherwise the directory of the executable, in which it was built.
fn own_files() -> PathBuf {
    let program = std::env::current_exe().ok();
    let directory = program.as_deref().and_then(Path::parent).unwrap_or(Path::new("."));
    let installed = directory.parent().unwrap_or(directory).join("lib/faultline");
    if installed.is_dir() { installed } else { directory.to_owned() }
}
