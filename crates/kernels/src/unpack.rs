//! Unpacks packages of kernels. All that they say is hostile: their files are bounded in number, size and depth, and
//! stay below one directory. Nothing is installed, and scripts of packages are not run.

mod cpio;
mod deb;
mod links;
mod rpm;
mod tarball;
mod target;

use std::path::{Path, PathBuf};

use target::{Failure, Target};

use crate::Error;

/// A kind of packages.
#[derive(Clone, Copy)]
enum Kind {
    Deb,
    Rpm,
    Tar,
}

/// The endings of packages' names.
const ENDINGS: [(&str, Kind); 7] = [
    (".deb", Kind::Deb),
    (".rpm", Kind::Rpm),
    (".tar", Kind::Tar),
    (".tar.gz", Kind::Tar),
    (".tar.xz", Kind::Tar),
    (".tar.zst", Kind::Tar),
    (".tgz", Kind::Tar),
];

/// Whether a name is that of a package.
pub(crate) fn is_package(name: &str) -> bool {
    ENDINGS.iter().any(|(ending, _)| name.len() > ending.len() && name.ends_with(ending))
}

/// Unpacks the packages of one kernel below the directory `root`. Symbolic links that lead out of it are left out.
/// Fails when a package is damaged or larger than that of any kernel, or the host fails.
pub fn unpack(packages: &[PathBuf], root: &Path) -> Result<(), Error> {
    let mut target = Target::new(root)?;
    for path in packages {
        let name = path.to_string_lossy();
        let kind = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, kind)| *kind);
        let unpacked = match kind {
            Some(Kind::Deb) => deb::unpack(path, &mut target),
            Some(Kind::Rpm) => rpm::unpack(path, &mut target),
            Some(Kind::Tar) => tarball::unpack(path, &mut target),
            None => target::refuse("it is not a package: its name ends with none of theirs"),
        };
        unpacked.and_then(|()| target.end()).map_err(|failure| match failure {
            Failure::Archive(problem) => Error::NoKernel { path: path.clone(), problem },
            Failure::Host(error) => error,
        })?;
    }
    target.finish()?;
    links::confine(root)
}
