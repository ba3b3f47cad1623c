//! Makes swap space, enables it before the workloads, and disables it before disks are unmounted.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use flight::job::{Disk, Swap};
use guest::{reason, sys};
use rustix::fs::{FallocateFlags, IFlags, fallocate, ioctl_getflags, ioctl_setflags};
use rustix::param::page_size;

/// The device of zram. The module makes one (`num_devices`).
const ZRAM: &str = "/dev/zram0";
const ZRAM_SYSFS: &str = "/sys/block/zram0";
/// The settings of zram (`Documentation/admin-guide/blockdev/zram.rst`).
const ZRAM_ALGORITHM: &str = "/sys/block/zram0/comp_algorithm";
const ZRAM_SIZE: &str = "/sys/block/zram0/disksize";

/// Why a swap space is not available.
#[derive(Debug, thiserror::Error)]
#[error("swap space: {path}: cannot {doing} ({})", reason(.error))]
pub struct SwapError {
    path: String,
    doing: &'static str,
    error: io::Error,
}

/// Makes a swap space and enables it. Fails when the kernel lacks the compression algorithm, there is no
/// space for the file, or the kernel rejects the swap space.
pub fn set_up(swap: &Swap) -> Result<(), SwapError> {
    match swap {
        Swap::File { path, size } => make_file(path, size.0).map_err(at(path, "make the file"))?,
        Swap::Disk { .. } => {}
        Swap::Zram { size, algorithm } => {
            look_for(Path::new(ZRAM_SYSFS)).map_err(at(ZRAM, "use it"))?;
            choose(algorithm).map_err(at(ZRAM_ALGORITHM, "choose the compression"))?;
            let failed = at(ZRAM_SIZE, "set the size");
            fs::write(ZRAM_SIZE, size.0.to_string()).map_err(failed)?;
        }
    }
    let path = device(swap);
    make_swap(Path::new(path)).map_err(at(path, "write the header"))?;
    let name = CString::new(path).map_err(io::Error::from);
    name.and_then(|name| sys::swap_on(&name)).map_err(at(path, "enable it"))
}

/// Disables the swap space, which reads its contents back into memory. Fails if they do not fit.
pub fn end(swap: &Swap) -> Result<(), SwapError> {
    let path = device(swap);
    let name = CString::new(path).map_err(io::Error::from);
    match name.and_then(|name| sys::swap_off(&name)) {
        // The swap space was never enabled, and that failure has been reported.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        ended => ended.map_err(at(path, "disable it")),
    }
}

/// Whether the swap space is a file on this disk, which it may fill.
pub fn is_on(swap: &Swap, disk: &Disk) -> bool {
    match (swap, &disk.mount) {
        (Swap::File { path, .. }, Some(mount)) => Path::new(path).starts_with(&mount.place),
        _ => false,
    }
}

fn device(swap: &Swap) -> &str {
    match swap {
        Swap::File { path, .. } => path,
        Swap::Disk { device } => device,
        Swap::Zram { .. } => ZRAM,
    }
}

/// Checks that the device of a driver exists.
fn look_for(place: &Path) -> io::Result<()> {
    match place.exists() {
        true => Ok(()),
        false => Err(io::Error::other("the kernel has no zram, neither built in nor as a module")),
    }
}

/// Sets the compression algorithm of zram, if one is given. An error lists the kernel's algorithms.
fn choose(algorithm: &str) -> io::Result<()> {
    if algorithm.is_empty() {
        return Ok(());
    }
    fs::write(ZRAM_ALGORITHM, algorithm).map_err(|error| {
        let known = fs::read_to_string(ZRAM_ALGORITHM).unwrap_or_default();
        let problem = format!("{algorithm}: {}; available: {}", reason(&error), known.trim());
        io::Error::other(problem)
    })
}

/// Makes a file without holes, because swapon(2) rejects holes. Disables copy-on-write, which swapon(2) rejects on
/// btrfs (btrfs(5), SWAPFILE SUPPORT).
fn make_file(path: &str, size: u64) -> io::Result<()> {
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(path)?;
    if let Ok(flags) = ioctl_getflags(&file) {
        // Other file systems do not have this flag and do not need it.
        let _ = ioctl_setflags(&file, flags | IFlags::NOCOW);
    }
    fallocate(&file, FallocateFlags::empty(), 0, size)?;
    file.sync_all()
}

/// Writes the header for swap space that takes an entire file or device (mkswap(8)).
fn make_swap(path: &Path) -> io::Result<()> {
    let mut file = File::options().read(true).write(true).open(path)?;
    let size = file.seek(SeekFrom::End(0))?;
    let pages = u32::try_from(size / page_size() as u64).unwrap_or(u32::MAX);
    let header = header(pages).ok_or(io::ErrorKind::FileTooLarge)?;
    file.write_all_at(&header, 0)?;
    file.sync_all()
}

/// The first page of a swap space of this many pages; `None` for fewer than two. The kernel reads version, last page
/// and number of bad pages from byte 1024 on, and the magic at the end of the page (`include/linux/swap.h`, `union
/// swap_header`). The UUID is zero, so that every boot is the same.
fn header(pages: u32) -> Option<Vec<u8>> {
    const INFO: usize = 1024;
    const MAGIC: &[u8] = b"SWAPSPACE2";
    let last = pages.checked_sub(1).filter(|last| *last > 0)?;
    let mut page = vec![0; page_size()];
    page[INFO..INFO + 4].copy_from_slice(&1u32.to_ne_bytes());
    page[INFO + 4..INFO + 8].copy_from_slice(&last.to_ne_bytes());
    let end = page.len();
    page[end - MAGIC.len()..].copy_from_slice(MAGIC);
    Some(page)
}

/// For `map_err`: adds the path and the operation that failed.
fn at(path: &str, doing: &'static str) -> impl FnOnce(io::Error) -> SwapError {
    let path = path.to_owned();
    move |error| SwapError { path, doing, error }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Compares our header with that of util-linux, except for the UUID.
    #[test]
    fn the_header_is_that_of_mkswap() {
        let directory = tempfile::tempdir().unwrap();
        let [ours, theirs] = ["ours", "theirs"].map(|name| directory.path().join(name));
        for path in [&ours, &theirs] {
            make_file(path.to_str().unwrap(), 1 << 20).unwrap();
        }
        make_swap(&ours).unwrap();
        let uuid = "00000000-0000-0000-0000-000000000000";
        let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap());
        let made =
            Command::new("mkswap").env("PATH", path).args(["-U", uuid]).arg(&theirs).output();
        let made = made.expect("mkswap is installed, see install-deps");
        assert!(made.status.success(), "{made:?}");
        assert!(fs::read(&ours).unwrap() == fs::read(&theirs).unwrap());
    }

    #[test]
    fn space_for_less_than_two_pages_is_none() {
        assert_eq!(header(1), None);
        assert_eq!(header(0), None);
        assert_eq!(header(2).unwrap().len(), page_size());
    }

    #[test]
    fn an_error_names_operation_and_path() {
        let swap = Swap::Disk { device: "/nonexistent/disk".into() };
        let error = set_up(&swap).unwrap_err().to_string();
        let expected = "swap space: /nonexistent/disk: cannot write the header (No such file";
        assert!(error.starts_with(expected), "{error}");
        let zram = |place| look_for(Path::new(place)).map_err(at(ZRAM, "use it"));
        assert!(zram("/sys").is_ok());
        let error = zram("/nonexistent/zram0").unwrap_err().to_string();
        let expected = "swap space: /dev/zram0: cannot use it (the kernel has no zram, neither";
        assert!(error.starts_with(expected), "{error}");
    }
}
