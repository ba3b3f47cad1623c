//! The pinned packages of a user space for guests.

use serde::{Deserialize, Serialize};

/// The pinned packages of a user space: the same lock gives the same files on any host, at any time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserspaceLock {
    /// The architecture of all of them, as Debian calls it.
    pub architecture: String,
    /// The suites that they were taken from.
    pub suites: Vec<String>,
    /// The time when the package lists of these suites were fetched, in seconds since 1970 ([`UserspaceLock::day`]).
    pub taken: u64,
    /// The packages, sorted by name.
    #[serde(rename = "package")]
    pub packages: Vec<LockedPackage>,
}

/// One package of a [`UserspaceLock`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedPackage {
    /// The package's name.
    pub name: String,
    /// The package's version, as Debian writes it.
    pub version: String,
    /// Its file, relative to a mirror's root: `debian/pool/main/f/fio/fio_3.33-3_amd64.deb`.
    pub file: String,
    /// The size of that file in bytes.
    pub size: u64,
    /// The SHA-256 of that file, in hexadecimal.
    pub sha256: String,
}

/// The start of 2005: snapshot.debian.org has nothing older.
const FIRST_DAY: u64 = 1_104_537_600;

impl UserspaceLock {
    /// A time at which the suites had these packages, in seconds since 1970. `None` if it is unknown: an unset clock,
    /// or a file copied without its time stamp, gives 1970.
    pub fn day(&self) -> Option<u64> {
        Some(self.taken).filter(|taken| *taken >= FIRST_DAY)
    }

    /// Whether a package of this name is in it.
    pub fn has(&self, name: &str) -> bool {
        self.packages.iter().any(|package| package.name == name)
    }

    /// The packages as `name=version`, sorted by name.
    pub fn versions(&self) -> Vec<String> {
        let version = |package: &LockedPackage| format!("{}={}", package.name, package.version);
        self.packages.iter().map(version).collect()
    }
}
