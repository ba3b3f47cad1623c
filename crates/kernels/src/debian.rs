//! Finds a kernel in the Debian archive, fetches its packages and unpacks them. The caller processes the
//! unpacked files.

pub(crate) mod archive;
mod headers;
mod package;
mod releases;
mod source;
pub(crate) mod suite;
#[cfg(test)]
pub(crate) mod testing;
mod version;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) use archive::Archive;
pub(crate) use headers::headers;
use model::Architecture;
pub use package::is_name;
pub(crate) use package::{is_pin, letters};
pub(crate) use releases::{NEWEST_KERNEL, architecture, without_flavour};
use releases::{Package, Release};
pub(crate) use source::source;
use suite::Suite;
pub(crate) use version::compare as compare_versions;

use crate::Error;
use crate::error::Doing;
use crate::tool::DPKG_DEB;

/// Groups of suites. They are searched in order until one has the requested kernel, so that not all lists (10 MB for
/// a release) are fetched each time.
const GROUPS: [&[&str]; 4] = [
    &["bookworm", "bookworm-security", "bookworm-backports"],
    &["trixie", "trixie-security", "trixie-backports"],
    &["sid"],
    &["bullseye", "bullseye-security"],
];
/// Suites with the newest kernel.
const NEWEST: &[&str] = &["trixie-backports", "sid"];
/// The suite of the shell.
const SHELL_SUITE: &str = "bookworm";
const SHELL_PACKAGE: &str = "busybox-static";
/// The name of the lists for packages of guests' user space.
const USERSPACE: &str = "userspace";

/// How long unpacking a package may take. The largest takes a minute.
const LIMIT: Duration = Duration::from_secs(1800);
pub(crate) const DAY: Duration = Duration::from_secs(24 * 3600);
/// Lists are not fetched twice within this time, even if the wanted kernel is missing.
const JUST_NOW: Duration = Duration::from_secs(600);

/// The package version in an origin that [`KernelInSuite::origin`] wrote; `None` for other origins.
pub(crate) fn version_of(origin: &str) -> Option<&str> {
    Some(origin.strip_prefix("Debian ")?.split_once(", ")?.0)
}

/// A kernel that a suite of the archive has.
pub(crate) struct KernelInSuite {
    suite: Suite,
    release: Release,
}

impl KernelInSuite {
    /// The output of `uname -r`.
    pub fn release(&self) -> &str {
        &self.release.name
    }

    /// The name that means the version of its package.
    pub fn alias(&self) -> String {
        self.release.alias()
    }

    /// The package version and the package.
    pub fn origin(&self) -> String {
        format!("Debian {}, {}", self.release.version(), self.release.packages[0].name)
    }

    /// Whether a kernel of this release came from the same build: from the same package version, signed or
    /// not.
    pub fn is_origin(&self, origin: &str) -> bool {
        version_of(origin) == Some(self.release.version())
    }

    /// Fetches the packages and unpacks them into `root`.
    pub fn unpack(&self, root: &Path, say: &dyn Fn(&str)) -> Result<(), Error> {
        if !self.release.complete {
            say(&format!(
                "{} comes without modules: they are no longer in the archive",
                self.release()
            ));
        }
        fetch(&self.suite, &self.release.packages, root, say)
    }
}

/// Searches for a kernel, only in `suite` if that is given. Lists are kept in `directory` for a day, and
/// fetched again before a kernel is reported missing. A suite that cannot be reached is skipped with a
/// message.
pub(crate) fn find(
    directory: &Path,
    (wanted, arch): (&str, Architecture),
    suite: Option<&str>,
    say: &dyn Fn(&str),
) -> Result<KernelInSuite, Error> {
    let given = suite.as_slice();
    let groups: &[&[&str]] = match without_flavour(wanted) {
        _ if suite.is_some() => &[given],
        NEWEST_KERNEL => &[NEWEST],
        _ => &GROUPS,
    };
    let mut search = Search { directory, wanted, arch, say, known: BTreeSet::new(), failure: None };
    for age in [DAY, JUST_NOW] {
        for group in groups {
            if let Some(found) = search.group(group, age)? {
                return Ok(found);
            }
        }
        if search.known.is_empty()
            && let Some(failure) = search.failure
        {
            return Err(failure);
        }
    }
    let place = suite.map_or_else(|| "in its suites".into(), |suite| format!("in {suite}"));
    let place = if arch.is_usual() { place } else { format!("for {} {place}", arch.name()) };
    Err(Error::NotInArchive { wanted: wanted.into(), place, known: listed(search.known) })
}

/// A search through the suites, and its results so far.
struct Search<'a> {
    directory: &'a Path,
    wanted: &'a str,
    arch: Architecture,
    say: &'a dyn Fn(&str),
    /// The series of all kernels found.
    known: BTreeSet<String>,
    /// The error because of which a suite was skipped.
    failure: Option<Error>,
}

impl Search<'_> {
    /// The preferred kernel among the requested ones in a group of suites, with lists no older than `age`. If lists
    /// cannot be fetched, the previous ones are used.
    fn group(&mut self, names: &[&str], age: Duration) -> Result<Option<KernelInSuite>, Error> {
        let mut matches: Vec<KernelInSuite> = Vec::new();
        for name in names {
            let suite = Suite::open(self.directory, name, self.arch)?;
            match suite.update(age, self.say) {
                Err(error @ Error::Tool { .. }) => {
                    (self.say)(&format!("The lists of {name} cannot be fetched: {error}"));
                    self.failure = Some(error);
                }
                other => other?, // an error that affects every suite
            }
            let mut releases = releases::releases(&suite.kernel_packages()?, self.arch);
            releases.retain(|release| release.has_pages_of(self.wanted));
            for release in releases {
                self.known.insert(release.series());
                if release.is(self.wanted) {
                    matches.push(KernelInSuite { suite: suite.clone(), release });
                }
            }
        }
        Ok(matches.into_iter().max_by(|a, b| a.release.preference(&b.release)))
    }
}

/// Series in numerical order.
fn listed(series: BTreeSet<String>) -> String {
    let mut series: Vec<String> = series.into_iter().collect();
    series.sort_by(|a, b| version::compare(a, b));
    if series.is_empty() { "none".into() } else { series.join(", ") }
}

/// Fetches a static busybox and unpacks it into `root`. Returns its path.
pub(crate) fn shell(directory: &Path, root: &Path, say: &dyn Fn(&str)) -> Result<PathBuf, Error> {
    let suite = Suite::open(directory, SHELL_SUITE, Architecture::X86_64)?;
    suite.update(DAY, say)?;
    let found = suite.packages(&[SHELL_PACKAGE])?;
    let newest = found.into_iter().max_by(|a, b| version::compare(&a.version, &b.version));
    fetch(&suite, newest.as_slice(), root, say)?;
    let places = ["bin/busybox", "usr/bin/busybox"].map(|place| root.join(place));
    let problem = || format!("the package {SHELL_PACKAGE} contains no busybox");
    let found = places.into_iter().find(|place| place.is_file());
    found.ok_or_else(|| Error::Tool { tool: DPKG_DEB.name, problem: problem() })
}

/// Fetches packages and unpacks them into `root`. The package files are removed.
fn fetch(
    suite: &Suite,
    packages: &[Package],
    root: &Path,
    say: &dyn Fn(&str),
) -> Result<(), Error> {
    for package in packages {
        let Package { name, version, size, .. } = package;
        say(&format!("Fetching {name} {version} ({:.1} MB)", *size as f64 / 1e6));
    }
    let debs = root.with_extension("debs");
    fs::create_dir_all(&debs).doing("create", &debs)?;
    suite.download(packages, &debs)?;
    for entry in fs::read_dir(&debs).doing("list", &debs)? {
        let deb = entry.doing("list", &debs)?.path();
        unpack(&deb, root)?;
        fs::remove_file(&deb).doing("remove", &deb)?;
    }
    fs::remove_dir(&debs).doing("remove", &debs)
}

/// Unpacks the files of a package into `root`.
pub(crate) fn unpack(deb: &Path, root: &Path) -> Result<(), Error> {
    // An absolute path, because a relative one that begins with a dash would be an option.
    let deb = std::path::absolute(deb).doing("find", deb)?;
    DPKG_DEB.run_within(LIMIT, [OsStr::new("-x"), deb.as_os_str(), root.as_os_str()])?;
    Ok(())
}
