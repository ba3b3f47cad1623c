//! Makes the root directory of workloads with packages. It has the read-only directories of the image and the
//! directories of the guest. The root itself is in memory, so that disks can be mounted anywhere in it.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use flight::job::{Job, USERSPACE_IMAGE_PATH, USERSPACE_PATH};
use guest::reason;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, unmount};

/// Directories of the guest that workloads see, with all mounts in them.
const SHARED: [&str; 3] = ["/dev", "/proc", "/sys"];
/// The directory of Faultline's programs.
const OWN: &str = "/faultline";
/// Directories for temporary files.
const SCRATCH: [&str; 2] = ["/tmp", "/run"];
/// A directory for temporary files within the image.
const VAR_TMP: &str = "/var/tmp";

/// Why a user space cannot be entered or left.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be {tried} ({})", path.display(), reason(.error))]
pub struct UserspaceError {
    path: PathBuf,
    tried: &'static str,
    error: io::Error,
}

/// Makes the root and mounts the disks in it. Fails if a mount fails, such as that of a disk where the image has
/// files.
pub fn enter(job: &Job) -> Result<(), UserspaceError> {
    let root = Path::new(USERSPACE_PATH);
    make(root)?;
    let mounted = mount("tmpfs", root, "tmpfs", MountFlags::empty(), Some(c"mode=755"));
    mounted.map_err(|error| failed(root, "mounted")(error.into()))?;
    show(Path::new(USERSPACE_IMAGE_PATH), root)?;
    for place in SHARED {
        let target = under(root, place);
        make(&target)?;
        let bound = mount_bind_recursive(place, &target);
        bound.map_err(|error| failed(&target, "mounted")(error.into()))?;
    }
    for place in SCRATCH {
        let target = under(root, place);
        make(&target)?;
        let all = Permissions::from_mode(0o1777);
        fs::set_permissions(&target, all).map_err(failed(&target, "opened to all"))?;
    }
    let scratch = under(root, VAR_TMP);
    let mounted = mount("tmpfs", &scratch, "tmpfs", MountFlags::empty(), Some(c"mode=1777"));
    mounted.map_err(|error| failed(&scratch, "mounted")(error.into()))?;
    for place in places(job).chain([OWN]) {
        bind(Path::new(place), &under(root, place))?;
    }
    Ok(())
}

/// Unmounts the disks. The data of a file system is complete on its disk only when it is mounted nowhere. Continues
/// after a failure, and returns the first one.
pub fn leave(job: &Job) -> Result<(), UserspaceError> {
    let root = Path::new(USERSPACE_PATH);
    let mut left = Ok(());
    if job.userspace.is_some() && root.exists() {
        // A disk may be mounted within another.
        for place in places(job).rev() {
            let target = under(root, place);
            // A disk that was never mounted, because an earlier mount failed, is no error.
            let Err(error) = unmount(&target, UnmountFlags::empty()) else { continue };
            if error != rustix::io::Errno::INVAL && error != rustix::io::Errno::NOENT {
                left = left.and(Err(failed(&target, "unmounted")(error.into())));
            }
        }
    }
    left
}

/// The directories where disks are mounted.
fn places(job: &Job) -> impl DoubleEndedIterator<Item = &str> {
    job.disks.iter().filter_map(|disk| disk.mount.as_ref()).map(|mount| mount.place.as_str())
}

/// Makes the top level of `image` visible in `root`.
fn show(image: &Path, root: &Path) -> Result<(), UserspaceError> {
    for entry in fs::read_dir(image).map_err(failed(image, "listed"))? {
        let entry = entry.map_err(failed(image, "listed"))?;
        let (path, target) = (entry.path(), root.join(entry.file_name()));
        let kind = entry.file_type().map_err(failed(&path, "examined"))?;
        if kind.is_symlink() {
            let to = fs::read_link(&path).map_err(failed(&path, "read"))?;
            symlink(to, &target).map_err(failed(&target, "made"))?;
        } else if kind.is_dir() && entry.file_name() != "lost+found" {
            bind(&path, &target)?;
        }
    }
    Ok(())
}

fn bind(from: &Path, to: &Path) -> Result<(), UserspaceError> {
    make(to)?;
    mount_bind(from, to).map_err(|error| failed(to, "mounted")(error.into()))
}

fn make(directory: &Path) -> Result<(), UserspaceError> {
    fs::create_dir_all(directory).map_err(failed(directory, "made"))
}

/// A path of the guest below `root`.
fn under(root: &Path, place: &str) -> PathBuf {
    root.join(place.trim_start_matches('/'))
}

/// For `map_err`: adds the path and the operation that failed.
fn failed(path: &Path, tried: &'static str) -> impl FnOnce(io::Error) -> UserspaceError {
    let path = path.to_owned();
    move |error| UserspaceError { path, tried, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_root() {
        let root = Path::new(USERSPACE_PATH);
        assert_eq!(under(root, "/mnt/disk0"), Path::new("/userspace/mnt/disk0"));
        assert_eq!(under(root, "//mnt"), Path::new("/userspace/mnt"));
    }

    #[test]
    fn a_missing_image_is_named() {
        let root = tempfile::tempdir().unwrap();
        let error = show(Path::new("/nonexistent"), root.path()).unwrap_err().to_string();
        assert_eq!(error, "/nonexistent cannot be listed (No such file or directory)");
    }
}
