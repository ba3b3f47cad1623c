//! Finds QEMU on this host, reads its version, and checks that it has what a machine needs.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::Error;

/// The name of QEMU for x86-64 guests.
const PROGRAM: &str = "qemu-system-x86_64";
/// The oldest version with all options used here.
const OLDEST_MAJOR: u32 = 7;

/// A QEMU that can run machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emulator {
    path: PathBuf,
    version: String,
    major: u32,
}

impl Emulator {
    /// The `qemu-system-x86_64` in the search path. Fails when there is none, it is too old, or it lacks the
    /// device for memory shared with the host.
    pub fn find() -> Result<Self, Error> {
        Self::at(Path::new(PROGRAM))
    }

    /// The QEMU at `path`, or with this name in the search path. Fails as [`Emulator::find`] does.
    pub fn at(path: &Path) -> Result<Self, Error> {
        let said = ask(path, ["--version"])?;
        let said = String::from_utf8_lossy(&said.stdout);
        let line = said.lines().next().unwrap_or_default();
        let (version, major) = version(line)
            .ok_or_else(|| Error::NoVersion { path: path.to_owned(), said: line.to_owned() })?;
        if major < OLDEST_MAJOR {
            let path = path.to_owned();
            return Err(Error::OldEmulator { path, version });
        }
        if !ask(path, ["-device", "ivshmem-plain,help"])?.status.success() {
            return Err(Error::NoIvshmem(path.to_owned()));
        }
        Ok(Self { path: path.to_owned(), version, major })
    }

    /// Its own version string, such as `QEMU 10.0.2 (Debian 1:10.0.2+ds-2)`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The major version.
    pub(crate) fn major(&self) -> u32 {
        self.major
    }

    /// The program.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// An emulator that is not checked.
    #[cfg(test)]
    pub(crate) fn unchecked(path: &Path, major: u32) -> Self {
        Self { path: path.to_owned(), version: format!("QEMU {major}.0.0"), major }
    }
}

fn ask<const N: usize>(path: &Path, arguments: [&str; N]) -> Result<Output, Error> {
    let output = Command::new(path).args(arguments.map(OsStr::new)).stdin(Stdio::null()).output();
    let output = output.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::NoEmulator(path.to_owned()),
        _ => Error::Emulator { path: path.to_owned(), error },
    })?;
    match output.status.signal() {
        None => Ok(output),
        // It says nothing about this QEMU.
        Some(_) => {
            let error = io::Error::other(output.status.to_string());
            Err(Error::Emulator { path: path.to_owned(), error })
        }
    }
}

/// Version and its first number from `QEMU emulator version 10.0.2 (Debian ...)`.
fn version(line: &str) -> Option<(String, u32)> {
    let version = line.strip_prefix("QEMU emulator version ")?;
    let major = version.split('.').next()?.parse().ok()?;
    Some((format!("QEMU {version}"), major))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::testing::script;

    #[test]
    fn versions_are_read() {
        let debian = "QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)";
        let expected = "QEMU 10.0.2 (Debian 1:10.0.2+ds-2)".to_owned();
        assert_eq!(version(debian), Some((expected, 10)));
        assert_eq!(version("GNU bash, version 5.2"), None);
        assert_eq!(version("QEMU emulator version x"), None);
    }

    #[test]
    fn a_missing_emulator_is_an_error_with_a_hint() {
        let error = Emulator::at(Path::new("/nonexistent/qemu")).unwrap_err();
        assert!(error.to_string().contains("apt-get install"), "{error}");
    }

    #[test]
    fn an_unsuitable_emulator_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let cases = [
            ("echo 'QEMU emulator version 6.2.0'", "version 7.0 or newer"),
            ("echo 'bash 5.2'", "is not QEMU"),
            ("[ $1 = --version ] && echo 'QEMU emulator version 9.1.0 (rhel)'", "ivshmem-plain"),
            ("kill -KILL $$", "cannot be started: signal: 9"),
        ];
        for (body, complaint) in cases {
            let error = Emulator::at(&script(directory.path(), body)).unwrap_err();
            assert!(error.to_string().contains(complaint), "{error}");
        }
    }
}
