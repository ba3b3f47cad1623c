//! Fetches the files to build external modules for a kernel of the archive: the kernel's headers, the
//! programs of its build (`linux-kbuild-...`), and the libraries of these programs, which the host may lack
//! or have in another version.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use model::Architecture;

use super::releases::Package;
use super::suite::Suite;
use super::{DAY, GROUPS, USERSPACE, fetch, version};
use crate::Error;
use crate::error::Doing;

/// Fetches the headers of the kernel `release` with package version `version` and everything needed to use them, and
/// unpacks them into `root`. Returns false if the archive does not have them.
///
/// Lists on the disk are tried first, because the kernel was found in one of them.
pub(crate) fn headers(
    directory: &Path,
    (release, version): (&str, &str),
    root: &Path,
    say: &dyn Fn(&str),
) -> Result<bool, Error> {
    let name = format!("linux-headers-{release}");
    let mut failure = None;
    for age in [None, Some(DAY)] {
        for suite in suites(directory)? {
            let suite = Suite::open(directory, &suite, Architecture::X86_64)?;
            match headers_in(&suite, (&name, version), age, directory, root, say) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error @ Error::Tool { .. }) => {
                    if age.is_some() {
                        say(&format!("Skipping {}: {error}", suite.name));
                        failure = Some(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }
    failure.map_or(Ok(false), Err)
}

/// The suites that are searched for kernels, and those that were ever requested. The lists for user space are
/// in the same directory, but are not a suite.
fn suites(directory: &Path) -> Result<Vec<String>, Error> {
    let mut suites: Vec<String> = GROUPS.concat().into_iter().map(String::from).collect();
    if directory.is_dir() {
        for entry in fs::read_dir(directory).doing("list", directory)? {
            let name = entry.doing("list", directory)?.file_name();
            let name = name.into_string().ok();
            suites.extend(name.filter(|name| name != USERSPACE && !suites.contains(name)));
        }
    }
    Ok(suites)
}

/// Fetches the headers from `suite` if it has them, else returns false. Its lists are updated if they are older than
/// `age`; without an `age` they are not updated.
fn headers_in(
    suite: &Suite,
    (name, version): (&str, &str),
    age: Option<Duration>,
    directory: &Path,
    root: &Path,
    say: &dyn Fn(&str),
) -> Result<bool, Error> {
    if let Some(age) = age {
        suite.update(age, say)?;
    }
    let found = suite.versions(name)?;
    let Some(headers) = found.into_iter().find(|package| package.version == version) else {
        return Ok(false);
    };
    let parts = ["linux-headers-", "linux-kbuild-"];
    let mut packages = closure(suite, &headers, &parts)?;
    // Suites such as backports lack the libraries, so those of the release are used.
    let base = suite.name.split('-').next().unwrap_or(&suite.name);
    let base = Suite::open(directory, base, Architecture::X86_64)?;
    base.update(DAY, say)?;
    let mut libraries = Vec::new();
    for package in &packages {
        libraries.extend(closure(&base, package, &["lib", "zlib1g"])?.split_off(1));
    }
    libraries.sort_by(|a, b| a.name.cmp(&b.name));
    libraries.dedup();
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    fetch(suite, &packages, root, say)?;
    fetch(&base, &libraries, root, say)?;
    Ok(true)
}

/// `first`, and its direct and indirect dependencies whose names begin with one of `prefixes`, each in the
/// newest version of the suite. Packages that the suite lacks are left out.
fn closure(suite: &Suite, first: &Package, prefixes: &[&str]) -> Result<Vec<Package>, Error> {
    let mut packages = vec![first.clone()];
    let mut seen: BTreeSet<String> = [first.name.clone()].into();
    let mut place = 0;
    while let Some(package) = packages.get(place) {
        let wanted = package.depends.iter().filter(|name| {
            prefixes.iter().any(|prefix| name.starts_with(prefix)) && !seen.contains(*name)
        });
        for name in wanted.cloned().collect::<Vec<_>>() {
            let found = suite.versions(&name)?.into_iter();
            packages.extend(found.max_by(|a, b| version::compare(&a.version, &b.version)));
            seen.insert(name);
        }
        place += 1;
    }
    Ok(packages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_of_user_space_are_no_suite() {
        let directory = tempfile::tempdir().unwrap();
        for name in [USERSPACE, "sid", "stretch"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        let suites = suites(directory.path()).unwrap();
        assert!(!suites.iter().any(|name| name == USERSPACE), "{suites:?}");
        for name in ["sid", "stretch"] {
            assert_eq!(suites.iter().filter(|suite| *suite == name).count(), 1, "{suites:?}");
        }
    }
}
