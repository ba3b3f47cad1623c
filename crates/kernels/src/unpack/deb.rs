//! Reads packages of Debian, with `dpkg-deb`. Their scripts are not run.

use std::io::{self, Read};
use std::path::Path;
use std::process::Stdio;

use super::tarball;
use super::target::{Failure, Target, refuse};
use crate::Error;
use crate::error::Doing;
use crate::tool::{DPKG_DEB, is_of_host};

/// The longest message of `dpkg-deb` about a damaged package that is read, in bytes.
const MAX_SAID: u64 = 1 << 16;

/// Unpacks the files of a package.
pub(super) fn unpack(deb: &Path, target: &mut Target) -> Result<(), Failure> {
    // An absolute path, because a relative one that begins with a dash would be an option.
    let deb = std::path::absolute(deb).doing("find", deb)?;
    let mut command = DPKG_DEB.command();
    command.arg("--fsys-tarfile").arg(&deb).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::NoTool { tool: DPKG_DEB.name, hint: DPKG_DEB.hint },
        _ => Error::Io { doing: "start", path: DPKG_DEB.name.into(), source: error },
    })?;
    let archive = child.stdout.take().expect("it is piped");
    let unpacked = tarball::entries(archive, target);
    if unpacked.is_err() {
        let _ = child.kill(); // it may have ended
    }
    let mut said = String::new();
    let errors = child.stderr.take().expect("it is piped");
    let _ = errors.take(MAX_SAID).read_to_string(&mut said);
    let status = child.wait().doing("run", Path::new(DPKG_DEB.name))?;
    let said = said.trim();
    match unpacked {
        Ok(()) if status.success() => Ok(()),
        Err(failure) if said.is_empty() => Err(failure),
        _ if is_of_host(said) => {
            let problem = said.to_owned();
            Err(Error::Tool { tool: DPKG_DEB.name, problem }.into())
        }
        _ if said.is_empty() => refuse(&format!("{}: {status}", DPKG_DEB.name)),
        _ => refuse(said),
    }
}
