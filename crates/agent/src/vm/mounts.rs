//! Mounts the pseudo file systems that programs expect.

use std::fs;
use std::io;

use guest::reason;
use rustix::mount::{MountFlags, mount};

/// Type, directory, and whether it is required. The order matters, because one may be below another.
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

/// Mounts the pseudo file systems. Fails when one that the agent itself needs cannot be mounted. Others are
/// skipped, because a kernel may lack them, and so are those that would hide files.
pub fn mount_all() -> Result<(), MountError> {
    for (kind, place, needed) in MOUNTS {
        // If the directory cannot be made, mounting reports it.
        let _ = fs::create_dir_all(place);
        // The user's archive may have files in /tmp.
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

/// Mounts tracefs, which has the numbers of tracepoints. A kernel may lack it; opening an event reports that.
pub fn mount_tracefs() {
    let _ = mount("tracefs", "/sys/kernel/tracing", "tracefs", MountFlags::empty(), None);
}
