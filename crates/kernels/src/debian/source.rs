//! Fetches the source of a kernel as Debian packages it, with Debian's patches applied.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use model::Architecture;

use super::releases::{NEWEST_KERNEL, Package};
use super::suite::{SOURCES, Suite};
use super::{DAY, GROUPS, NEWEST, fetch, listed, version};
use crate::Error;

/// Fetches the newest packaged source of a series such as `6.12`, or of all series (`newest`), and unpacks the
/// package into `root`. Returns the archive of the source, and the package with its version.
pub(crate) fn source(
    directory: &Path,
    series: &str,
    root: &Path,
    say: &dyn Fn(&str),
) -> Result<(PathBuf, String), Error> {
    let mut known = BTreeSet::new();
    let mut failure = None;
    let groups: &[&[&str]] = if series == NEWEST_KERNEL { &[NEWEST] } else { &GROUPS };
    for group in groups {
        let mut found: Option<(Suite, Package)> = None;
        for suite in *group {
            let suite = Suite::open(directory, suite, Architecture::X86_64)?;
            match suite.update(DAY, say) {
                Err(error @ Error::Tool { .. }) => {
                    say(&format!("The lists of {} cannot be fetched: {error}", suite.name));
                    failure = Some(error);
                }
                other => other?,
            }
            let available = suite.source_packages()?;
            known.extend(available.iter().cloned());
            let is_wanted = |it: &&String| series == NEWEST_KERNEL || series == *it;
            let names: Vec<String> =
                available.iter().filter(is_wanted).map(|it| format!("{SOURCES}{it}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            for package in suite.packages(&names)? {
                let is_newer = found.as_ref().is_none_or(|(_, other)| {
                    version::compare(&package.version, &other.version).is_gt()
                });
                if is_newer {
                    found = Some((suite.clone(), package));
                }
            }
        }
        if let Some((suite, package)) = found {
            let name = package.name.clone();
            let origin = format!("Debian {}, {name}", package.version);
            fetch(&suite, &[package], root, say)?;
            let archive = root.join("usr/src").join(format!("{name}.tar.xz"));
            return Ok((archive, origin));
        }
    }
    match failure.filter(|_| known.is_empty()) {
        Some(failure) => Err(failure),
        None => Err(Error::NotInArchive {
            wanted: format!("source {series}"),
            place: "in its suites".into(),
            known: listed(known),
        }),
    }
}
