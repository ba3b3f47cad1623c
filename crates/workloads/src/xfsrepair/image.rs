//! The file system image: makes it, mounts it through a loop device, damages it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use guest::kmsg::KernelLog;
use guest::sys::{attach_loop_device, detach_loop_device, free_loop_device};
use rustix::fs::statvfs;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::super::program::Program;
use super::super::{Result, While, WorkloadError};

/// The largest part of the kernel's log about a mount that is read, in bytes.
const LOG: usize = 64 << 10;
/// The largest number of lines of it that are reported.
const LINES: usize = 3;
/// The first bytes of an XFS (`fs/xfs/libxfs/xfs_format.h`, `XFS_SB_MAGIC`).
const MAGIC: &[u8] = b"XFSB";

/// Makes an image of `bytes` bytes at `path`. `mkfs.xfs` gets `log` as the size of its log.
pub fn make(path: &Path, bytes: u64, log: &str) -> Result<()> {
    let file = File::create(path).while_(path.display().to_string())?;
    file.set_len(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge | io::ErrorKind::InvalidInput => {
            WorkloadError::Arguments(format!(
                "the disk's file system does not allow a file of {bytes} bytes ({}): use xfs",
                guest::reason(&error)
            ))
        }
        _ => WorkloadError::Io { what: path.display().to_string(), error },
    })?;
    let arguments = [
        "-f".into(),
        "-d".into(),
        format!("file=1,name={},size={bytes}", path.display()),
        "-l".into(),
        format!("size={log}"),
    ];
    Program::new("mkfs.xfs").args(arguments).run()?;
    Ok(())
}

/// A mounted image. It is unmounted when this is dropped.
pub struct Mounted {
    place: PathBuf,
    device: File,
    name: String,
    log: KernelLog,
    busy: bool,
}

impl Mounted {
    /// Makes the directory `place`, and mounts the image at `path` on it.
    pub fn new(path: &Path, place: &Path, flags: MountFlags) -> Result<Self> {
        fs::create_dir_all(place).while_(place.display().to_string())?;
        let control = File::open("/dev/loop-control").while_("/dev/loop-control")?;
        let number = free_loop_device(&control).while_("looking for a free loop device")?;
        let name = format!("loop{number}");
        let loop_device = Path::new("/dev").join(&name);
        let open = |path: &Path| {
            let file = OpenOptions::new().read(true).write(true).open(path);
            file.while_(path.display().to_string())
        };
        let (device, file) = (open(&loop_device)?, open(path)?);
        attach_loop_device(&device, &file).while_(name.as_str())?;
        let log = KernelLog::from_now(LOG);
        let mut it = Self { place: place.into(), device, name, log, busy: false };
        match mount(&loop_device, place, "xfs", flags, None) {
            Ok(()) => it.busy = true,
            Err(error) => {
                // Otherwise the disk of the image would stay in use. If this fails, there is another error to report
                // already.
                let _ = detach_loop_device(&it.device);
                let said = it.errors("").join("; ");
                let said =
                    if said.is_empty() { said } else { format!("; the kernel's messages: {said}") };
                let error = io::Error::from(error);
                let why = guest::reason(&error);
                return Err(WorkloadError::Child(format!(
                    "the image cannot be mounted ({why}){said}"
                )));
            }
        }
        Ok(it)
    }

    /// The number of inodes in use: files, directories, and a few of the file system's own.
    pub fn inodes(&self) -> Result<u64> {
        let found = statvfs(&self.place).map_err(io::Error::from);
        let found = found.while_(self.place.display().to_string())?;
        Ok(found.f_files.saturating_sub(found.f_ffree))
    }

    /// Unmounts the image.
    ///
    /// The kernel reports failed writes only in its log, so an error there is an error.
    pub fn unmount(mut self) -> Result<()> {
        self.let_go().while_(format!("unmounting {}", self.place.display()))?;
        rustix::fs::sync();
        let errors = self.errors("rror");
        match errors.as_slice() {
            [] => Ok(()),
            lines => Err(WorkloadError::Child(format!(
                "the image could not be written completely; the kernel's messages: {}",
                lines.join("; ")
            ))),
        }
    }

    /// The first lines that the kernel logged about the mount and that contain `part`.
    fn errors(&mut self, part: &str) -> Vec<String> {
        let mut lines = Vec::new();
        let name = &self.name;
        self.log.drain(|piece| {
            let told = piece.lines().filter(|line| line.contains(name) && line.contains(part));
            lines.extend(told.map(str::to_owned));
        });
        lines.truncate(LINES);
        lines
    }

    fn let_go(&mut self) -> io::Result<()> {
        if self.busy {
            unmount(&self.place, UnmountFlags::empty())?;
            self.busy = false;
            detach_loop_device(&self.device)?;
        }
        Ok(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // There is another error to report already, or nothing is left to do.
        let _ = self.let_go();
    }
}

/// Overwrites the inode header (AGI) of the first `groups` allocation groups with zeros, and returns their
/// number.
///
/// `fs/xfs/libxfs/xfs_format.h`, `struct xfs_dsb` and `XFS_AGI_DADDR`, says where the header is. Numbers are
/// big-endian.
pub fn damage(path: &Path, groups: u32) -> io::Result<u32> {
    let image = OpenOptions::new().read(true).write(true).open(path)?;
    let mut superblock = [0; 512];
    image.read_exact_at(&mut superblock, 0)?;
    if !superblock.starts_with(MAGIC) {
        return Err(io::Error::other("it is not an XFS"));
    }
    let word = |at: usize| u32::from_be_bytes(superblock[at..at + 4].try_into().expect("4 bytes"));
    let [block, group_blocks, all] = [word(4), word(84), word(88)];
    let sector = u64::from(u16::from_be_bytes([superblock[102], superblock[103]]));
    let groups = groups.min(all);
    for group in 0..groups {
        let start = u64::from(group) * u64::from(group_blocks) * u64::from(block);
        image.write_all_at(&[0; 512], start + 2 * sector)?;
    }
    image.sync_all()?;
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_too_large_image_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let error = make(&directory.path().join("image"), 1 << 63, "64m").unwrap_err().to_string();
        assert!(
            error
                .starts_with("the disk's file system does not allow a file of 9223372036854775808")
        );
        assert!(error.ends_with("): use xfs"), "{error}");
    }

    #[test]
    fn headers_are_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("image");
        let mut bytes = vec![0xff; 3 * 8192];
        bytes[..4].copy_from_slice(MAGIC);
        for (at, value) in [(4, 1024u32), (84, 8), (88, 3)] {
            bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
        }
        bytes[102..104].copy_from_slice(&512u16.to_be_bytes());
        fs::write(&path, &bytes).unwrap();
        assert_eq!(damage(&path, 2).unwrap(), 2);
        for start in [1024, 8192 + 1024] {
            bytes[start..start + 512].fill(0);
        }
        assert_eq!(fs::read(&path).unwrap(), bytes);
        assert_eq!(damage(&path, 9).unwrap(), 3);
        fs::write(&path, [0; 512]).unwrap();
        assert_eq!(damage(&path, 1).unwrap_err().to_string(), "it is not an XFS");
    }
}
