//! Moves the agent to a root that it mounts itself, a tmpfs. The kernel unpacks the initramfs into a root of its own:
//! a tmpfs, or a ramfs if its command line has `root=` (`init/do_mounts.c`, `init_rootfs`). Creating files costs less
//! on a ramfs, and a ramfs has no limit.

use std::fs::{self, File, FileTimes};
use std::io;
use std::os::unix::fs::{chroot, symlink};
use std::path::{Path, PathBuf};

use flight::job::AGENT_PATH;
use guest::reason;
use rustix::mount::{MountFlags, mount, mount_move};

/// Where the new root is mounted within the root of the kernel.
const NEW: &str = "/new-root";

/// The root cannot be changed.
#[derive(Debug, thiserror::Error)]
#[error("the root cannot be moved to a tmpfs: {} cannot be {tried} ({})", path.display(), reason(.error))]
pub struct RootError {
    path: PathBuf,
    tried: &'static str,
    error: io::Error,
}

/// Mounts the new root, moves all files there but the agent's own, and enters it. Nothing may be mounted yet. Kernel
/// threads share the root of PID 1. Fails when the kernel has no tmpfs, or the files do not fit into half of the memory.
pub fn enter() -> Result<(), RootError> {
    let new = Path::new(NEW);
    fs::create_dir(new).map_err(failed(new, "made"))?;
    let mounted = mount("tmpfs", new, "tmpfs", MountFlags::empty(), Some(c"mode=755"));
    mounted.map_err(|error| failed(new, "mounted")(error.into()))?;
    move_all(Path::new("/"), new, &[new, Path::new(AGENT_PATH)])?;
    std::env::set_current_dir(new).map_err(failed(new, "entered"))?;
    mount_move(".", "/").map_err(|error| failed(new, "moved")(error.into()))?;
    chroot(".").map_err(failed(new, "entered"))?;
    std::env::set_current_dir("/").map_err(failed(new, "entered"))
}

/// Moves the contents of a directory to another, except `kept`. It moves file by file, so that only one file is in
/// memory twice. Devices are left out.
fn move_all(from: &Path, to: &Path, kept: &[&Path]) -> Result<(), RootError> {
    for entry in fs::read_dir(from).map_err(failed(from, "listed"))? {
        let entry = entry.map_err(failed(from, "listed"))?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if kept.contains(&&*path) {
            continue;
        }
        let metadata = entry.metadata().map_err(failed(&path, "examined"))?;
        if metadata.is_dir() {
            fs::create_dir(&target).map_err(failed(&path, "moved"))?;
            move_all(&path, &target, kept)?;
            // This comes last, because the directory may be read-only.
            fs::set_permissions(&target, metadata.permissions()).map_err(failed(&path, "moved"))?;
        } else if metadata.is_symlink() {
            let link = fs::read_link(&path).and_then(|to| symlink(to, &target));
            link.map_err(failed(&path, "moved"))?;
        } else if metadata.is_file() {
            move_file(&path, &target).map_err(failed(&path, "moved"))?;
        }
    }
    Ok(())
}

/// Moves a file with its permissions and times.
fn move_file(from: &Path, to: &Path) -> io::Result<()> {
    let metadata = fs::metadata(from)?;
    fs::copy(from, to)?;
    let times = FileTimes::new().set_modified(metadata.modified()?);
    File::open(to)?.set_times(times)?;
    fs::remove_file(from)
}

/// For `map_err`: adds the path and the operation that failed.
fn failed(path: &Path, tried: &'static str) -> impl FnOnce(io::Error) -> RootError {
    let path = path.to_owned();
    move |error| RootError { path, tried, error }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn files_move_with_their_modes_and_times() {
        let [old, new] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let (from, to) = (old.path(), new.path());
        fs::create_dir_all(from.join("home/me")).unwrap();
        let program = from.join("home/me/test.sh");
        fs::write(&program, "exit 0\n").unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o750)).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        File::open(&program).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
        fs::set_permissions(from.join("home"), Permissions::from_mode(0o711)).unwrap();
        symlink("me/test.sh", from.join("home/link")).unwrap();
        fs::write(from.join("init"), "").unwrap();
        move_all(from, to, &[&from.join("init")]).unwrap();
        let moved = fs::metadata(to.join("home/link")).unwrap();
        assert_eq!((moved.mode(), moved.len()), (0o100_750, 7));
        assert_eq!(moved.modified().unwrap(), time);
        assert_eq!(fs::metadata(to.join("home")).unwrap().mode(), 0o40_711);
        assert!(!program.exists() && from.join("init").exists() && !to.join("init").exists());
    }
}
