//! The exact packages that a user space for guests is made of.

use serde::{Deserialize, Serialize};

/// The packages of a user space, pinned: the same lock gives the same files on any host, at any time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserspaceLock {
    /// The architecture of all of them, as Debian calls it.
    pub architecture: String,
    /// The suites that they were taken from.
    pub suites: Vec<String>,
    /// When the lists of these suites were fetched, in seconds since 1970: then they had these packages
    /// ([`UserspaceLock::day`]).
    pub taken: u64,
    /// The packages, in the order of their names.
    #[serde(rename = "package")]
    pub packages: Vec<LockedPackage>,
}

/// One package of a [`UserspaceLock`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedPackage {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its file, from the root of a mirror on: `debian/pool/main/f/fio/fio_3.33-3_amd64.deb`.
    pub file: String,
    /// The size of that file in bytes.
    pub size: u64,
    /// The SHA-256 of that file, in hexadecimal.
    pub sha256: String,
}

/// The year 2005 begins: what Debian had before, snapshot.debian.org does not know.
const FIRST_DAY: u64 = 1_104_537_600;

impl UserspaceLock {
    /// A time, in seconds since 1970, when the suites had these packages. None if it is not known: a
    /// clock that was never set, or the stamp of a file that was copied without it, tells of 1970.
    pub fn day(&self) -> Option<u64> {
        Some(self.taken).filter(|taken| *taken >= FIRST_DAY)
    }

    /// Whether a package of this name is in it.
    pub fn has(&self, name: &str) -> bool {
        self.packages.iter().any(|package| package.name == name)
    }

    /// The packages as `name=version`, in the order of their names.
    pub fn versions(&self) -> Vec<String> {
        let version = |package: &LockedPackage| format!("{}={}", package.name, package.version);
        self.packages.iter().map(version).collect()
    }
}
