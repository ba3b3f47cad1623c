//! Finds our own binaries that a machine needs: the guest's static programs, and the libraries that
//! QEMU loads in exact mode.

use std::fs;
use std::path::{Path, PathBuf};

use kernels::{Damaged, check_files, digest};
use model::Architecture;

/// The environment variable that names the directory of the guest's binaries.
pub const DIRECTORY_VARIABLE: &str = "FAULTLINE_GUEST";

/// The environment variable that names the directory of the libraries for QEMU.
const LIBRARIES_VARIABLE: &str = "FAULTLINE_LIBRARIES";

const CLOCK: &str = "libstillclock.so";
const PLUGIN: &str = "libtcg.so";

/// The programs that run in a guest.
const PROGRAMS: [&str; 2] = ["agent", "workloads"];
const MKFS: &str = "libstillmkfs.so";

/// The guest's static binaries.
#[derive(Clone, Debug)]
pub struct Guest {
    /// The directory of the binaries. Those for arm64 are in a directory in it.
    directory: PathBuf,
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
    /// The guest's binaries for arm64 are missing.
    #[error("the guest's programs for arm64 are not in {0}: `make arm64` builds them")]
    MissingForArm64(PathBuf),
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

    /// Returns the binaries for an architecture. The library for mkfs is always the host's. Fails when they are
    /// missing, or are not those that the list of digests beside them has.
    pub fn of(&self, arch: Architecture) -> Result<Self, NoGuest> {
        if arch == Architecture::X86_64 {
            return Ok(self.clone());
        }
        let directory = self.directory.join(arch.name());
        let [agent, workloads] = PROGRAMS.map(|name| directory.join(name));
        if !agent.is_file() || !workloads.is_file() {
            return Err(NoGuest::MissingForArm64(directory));
        }
        check_files(&directory, &PROGRAMS)?;
        Ok(Self { agent, workloads, ..self.clone() })
    }

    /// Returns the SHA-256 of the two programs, in hexadecimal; empty if they cannot be read.
    pub fn digest(&self) -> String {
        let programs = [&self.agent, &self.workloads].map(fs::read);
        let programs: Result<Vec<_>, _> = programs.into_iter().collect();
        programs.map_or_else(|_| String::new(), |programs| digest(&programs.concat()))
    }

    fn at(directory: &Path) -> Result<Self, NoGuest> {
        let [agent, workloads] = PROGRAMS.map(|name| directory.join(name));
        let (mkfs, directory) = (directory.join(MKFS), directory.to_owned());
        let guest = Self { agent, workloads, mkfs, directory };
        if !guest.agent.is_file() || !guest.workloads.is_file() {
            return Err(NoGuest::Missing(guest.directory));
        }
        check_files(&guest.directory, &[PROGRAMS[0], PROGRAMS[1], MKFS])?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_for_arm64_are_in_their_own_directory() {
        let place = tempfile::tempdir().unwrap();
        let put = |directory: &Path, names: &[&str]| {
            fs::create_dir_all(directory).unwrap();
            let line = |name: &&str| {
                fs::write(directory.join(name), name).unwrap();
                format!("{}  {name}\n", digest(name.as_bytes()))
            };
            let lines: String = names.iter().map(line).collect();
            fs::write(directory.join("sha256sums"), lines).unwrap();
        };
        put(place.path(), &["agent", "workloads", MKFS]);
        let guest = Guest::at(place.path()).unwrap();
        assert_eq!(guest.of(Architecture::X86_64).unwrap().agent, place.path().join("agent"));
        let error = guest.of(Architecture::Arm64).unwrap_err().to_string();
        assert!(error.ends_with("/arm64: `make arm64` builds them"), "{error}");
        let arm64 = place.path().join("arm64");
        put(&arm64, &PROGRAMS);
        let found = guest.of(Architecture::Arm64).unwrap();
        assert_eq!((found.agent, found.mkfs), (arm64.join("agent"), guest.mkfs.clone()));
        fs::write(arm64.join("workloads"), "other").unwrap();
        assert!(matches!(guest.of(Architecture::Arm64), Err(NoGuest::Damaged(_))));
    }
}
