//! Tells the size and the last use of cached kernels, and removes kernels and files that can be made again.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use model::Kernel;

use super::Cache;
use crate::Error;
use crate::checksums::USED;
use crate::error::Doing;

/// The size above which our git repository is removed. It keeps every source that it has read. One source of Linux
/// takes 0.3 GB.
const MOST_OF_REPOSITORY: u64 = 2 << 30;
/// The size of a block in `st_blocks` (stat(2)).
const BLOCK: u64 = 512;

/// A kernel of the cache with its size and last use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownKernel {
    /// The kernel's record.
    pub kernel: Kernel,
    /// The bytes that its files occupy.
    pub size: u64,
    /// The time when it was last obtained, to boot or inspect it.
    pub used: SystemTime,
}

/// The selection of what is removed.
#[derive(Clone, Copy, Debug)]
pub struct Prune {
    /// Kernels built from source are removed if they were not used for this time.
    pub older: Duration,
    /// Whether everything that builds can make again is removed too.
    pub builds: bool,
    /// Whether files are only listed and not removed.
    pub dry_run: bool,
}

/// A kernel or a directory that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pruned {
    /// The name of the kernel, or the path in the cache.
    pub name: String,
    /// The bytes that it occupied.
    pub size: u64,
    /// The kernel's origin; empty for other files.
    pub origin: String,
    /// Its path before it was removed.
    pub path: PathBuf,
}

impl Cache {
    /// All kernels with their sizes and last uses, in the order of [`Cache::list`].
    ///
    /// # Errors
    /// When the cache cannot be read.
    pub fn known(&self, say: &dyn Fn(&str)) -> Result<Vec<KnownKernel>, Error> {
        let kernels = self.list(say)?.into_iter();
        let known = kernels.map(|kernel| {
            let home = self.home(&kernel.name);
            Ok(KnownKernel { size: size(&home)?, used: used(&home)?, kernel })
        });
        known.collect()
    }

    /// Records that a kernel is used now. Errors are ignored, because a cache that cannot be written to can still be
    /// used.
    pub(super) fn touch(&self, name: &str) {
        let file = File::options().create(true).append(true).open(self.home(name).join(USED));
        let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
    }

    /// Removes kernels that were built from source and not used for long, and files of builds that can be
    /// made again. Packaged kernels and the user's images stay. Fails when the cache cannot be read, or files
    /// cannot be removed.
    pub fn prune(&self, prune: &Prune, say: &dyn Fn(&str)) -> Result<Vec<Pruned>, Error> {
        if prune.dry_run {
            return self.prunable(prune, say);
        }
        let _builds = self.lock_builds(say)?;
        let _lock = self.lock(say)?;
        let pruned = self.prunable(prune, say)?;
        let stage = self.stage()?;
        for (number, Pruned { path, .. }) in pruned.iter().enumerate() {
            fs::rename(path, stage.path().join(number.to_string())).doing("remove", path)?;
        }
        let directory = stage.path().to_owned();
        stage.close().doing("remove the files in", &directory)?;
        Ok(pruned)
    }

    fn prunable(&self, prune: &Prune, say: &dyn Fn(&str)) -> Result<Vec<Pruned>, Error> {
        let now = SystemTime::now();
        let mut pruned = Vec::new();
        for KnownKernel { kernel, size, used } in self.known(say)? {
            let unused = now.duration_since(used).unwrap_or_default();
            if kernel.built && unused >= prune.older {
                let path = self.home(&kernel.name);
                pruned.push(Pruned { name: kernel.name, size, origin: kernel.origin, path });
            }
        }
        for path in entries(&self.builds())? {
            let name = path.strip_prefix(&self.root).unwrap_or(&path).display().to_string();
            let size = size(&path)?;
            let is_large = path == self.repository() && size > MOST_OF_REPOSITORY;
            if path != self.lock_of_builds() && (prune.builds || is_large) {
                pruned.push(Pruned { name, size, origin: String::new(), path });
            }
        }
        Ok(pruned)
    }
}

/// The time when the kernel in a directory was last used, or else when it was added.
fn used(home: &Path) -> Result<SystemTime, Error> {
    let added = || fs::metadata(home.join("kernel.json"));
    fs::metadata(home.join(USED))
        .or_else(|_| added())
        .and_then(|it| it.modified())
        .doing("read", home)
}

/// The bytes that a file, or everything in a directory, occupies on disk. Files that another process removes
/// meanwhile are no error.
fn size(path: &Path) -> Result<u64, Error> {
    let mut size = 0;
    let mut wanted = vec![path.to_owned()];
    while let Some(path) = wanted.pop() {
        match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            found => {
                let found = found.doing("read", &path)?;
                size += BLOCK * found.blocks();
                if found.is_dir() {
                    wanted.extend(entries(&path)?);
                }
            }
        }
    }
    Ok(size)
}

/// The paths in a directory, sorted; empty if it does not exist.
fn entries(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => {
            let paths = entries.doing("list", directory)?.map(|entry| Ok(entry?.path()));
            paths.collect::<io::Result<Vec<_>>>().doing("list", directory)?
        }
    };
    entries.sort();
    Ok(entries)
}
