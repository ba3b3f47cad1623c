//! Mounts the pseudo file systems that programs expect.

use std::fs;
use std::io;

use guest::reason;
use rustix::mount::{MountFlags, mount};

/// The type, the directory, and whether the mount is required. The order matters, because one may be below another.
const MOUNTS: [(&str, &str, bool); 8] = [
    ("proc", "/proc", true),
    ("sysfs", "/sys", true),
    ("devtmpfs", "/dev", true),
    ("debugfs", "/sys/kernel/debug", false),
    ("devpts", "/dev/pts", false),
    ("tmpfs", "/dev/shm", false),
    ("tmpfs", "/tmp", false),
    ("tmpfs", "/run", false),
];

/// A required file system cannot be mounted.
#[derive(Debug, thiserror::Error)]
#[error("{kind} cannot be mounted on {place} ({})", reason(.error))]
pub struct MountError {
    kind: &'static str,
    place: &'static str,
    error: io::Error,
}

/// Mounts the pseudo file systems. Fails if one that the agent needs cannot be mounted. Others are skipped, because a
/// kernel may lack them. Those that would hide files are skipped too.
pub fn mount_all() -> Result<(), MountError> {
    for (kind, place, needed) in MOUNTS {
        // If this fails, so does mounting, which reports it.
        let _ = fs::create_dir_all(place);
        // The user's archive may contain files in /tmp.
        if kind == "tmpfs" && fs::read_dir(place).is_ok_and(|mut found| found.next().is_some()) {
            continue;
        }
        let mounted = mount(kind, place, kind, MountFlags::empty(), None);
        if let (true, Err(error)) = (needed, mounted) {
            return Err(MountError { kind, place, error: error.into() });
        }
    }
    Ok(())
}

/// Mounts tracefs, where the numbers of tracepoints are. If the kernel lacks it, opening an event reports that.
pub fn mount_tracefs() {
    let _ = mount("tracefs", "/sys/kernel/tracing", "tracefs", MountFlags::empty(), None);
}
