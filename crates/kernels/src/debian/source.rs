//! Fetches the source of a kernel as Debian packages it, with Debian's patches applied.

use std::path::{Path, PathBuf};

use super::suite::Suite;
use super::{DAY, GROUPS, fetch, listed, version};
use crate::Error;

/// Fetches the newest packaged source of a series such as `6.12` and unpacks the package into `root`. Returns
/// the archive of the source, and the package with its version.
pub(crate) fn source(
    directory: &Path,
    series: &str,
    root: &Path,
    say: &dyn Fn(&str),
) -> Result<(PathBuf, String), Error> {
    let name = format!("linux-source-{series}");
    let mut known = std::collections::BTreeSet::new();
    let mut failure = None;
    for group in GROUPS {
        let mut found = None;
        for suite in group {
            let suite = Suite::open(directory, suite)?;
            match suite.update(DAY, say) {
                Err(error @ Error::Tool { .. }) => {
                    say(&format!("The lists of {} cannot be fetched: {error}", suite.name));
                    failure = Some(error);
                }
                other => other?,
            }
            known.extend(suite.source_packages()?);
            for package in suite.versions(&name)? {
                let is_newer = found.as_ref().is_none_or(|(_, other): &(Suite, super::Package)| {
                    version::compare(&package.version, &other.version).is_gt()
                });
                if is_newer {
                    found = Some((suite.clone(), package));
                }
            }
        }
        if let Some((suite, package)) = found {
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
