//! The lock of user space that an experiment file names.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use model::{UserspaceLock, WorkloadUse};
use toml::Spanned;

use super::{Checked, fault};
use crate::lock;

/// Longer files are no locks.
const LONGEST: u64 = 8 << 20;

/// The lock in this file, if one is named: it is to have all packages that workloads want.
pub fn check(
    path: Option<Spanned<PathBuf>>,
    directory: &Path,
    workloads: &[WorkloadUse],
) -> Checked<Option<UserspaceLock>> {
    let Some(path) = path else { return Ok(None) };
    let file = directory.join(path.get_ref());
    let with_packages = workloads.iter().filter(|used| !used.manifest.packages.is_empty());
    let names: Vec<&str> = with_packages.map(|used| &*used.manifest.name).collect();
    let remedy = || {
        format!(
            "write it with `faultline userspace lock {} -o {}`; for a workload of your own name its \
             manifest",
            names.join(" "),
            file.display()
        )
    };
    let told =
        |problem: String| fault(path.span(), format!("{}: {problem}", file.display()), remedy());
    let text = match read(&file) {
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
            return told(format!("it lacks the package {package}, which workload `{name}` wants"));
        }
    }
    Ok(Some(lock))
}

fn read(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(file)?.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}
