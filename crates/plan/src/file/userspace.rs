//! Reads the lock of the user space that an experiment file names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use model::{UserspaceLock, WorkloadUse};
use toml::Spanned;

use super::{Checked, fault};
use crate::file::lock;
use crate::form::text;

/// Reads the lock in this file, if the experiment names one. It must contain all packages that workloads
/// want. Each of `sources` is the name of a built-in workload or the path of a manifest.
pub fn check(
    path: Option<Spanned<PathBuf>>,
    directory: &Path,
    workloads: &[WorkloadUse],
    sources: &[String],
) -> Checked<Option<UserspaceLock>> {
    let Some(path) = path else { return Ok(None) };
    let file = directory.join(path.get_ref());
    let sources = workloads.iter().zip(sources);
    let with_packages = sources.filter(|(used, _)| !used.manifest.packages.is_empty());
    let sources: BTreeSet<&str> = with_packages.map(|(_, source)| source.as_str()).collect();
    let remedy = || {
        let sources = sources.iter().copied().collect::<Vec<_>>().join(" ");
        format!("write it with `faultline userspace lock {sources} -o {}`", file.display())
    };
    let told =
        |problem: String| fault(path.span(), format!("{}: {problem}", file.display()), remedy());
    let text = match text::read(&file) {
        Ok(text) => text,
        Err(error) => return told(error.to_string()),
    };
    let lock = match lock::read(&text) {
        Ok(lock) => lock,
        Err(problem) => return told(problem),
    };
    for used in workloads {
        let mut packages = used.manifest.packages.iter();
        if let Some(package) = packages.find(|package| !lock.has(package)) {
            let name = &used.manifest.name;
            return told(format!(
                "the package {package} is missing, which workload `{name}` needs"
            ));
        }
    }
    Ok(Some(lock))
}
