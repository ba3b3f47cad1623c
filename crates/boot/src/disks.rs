//! Makes the images of a machine's disks: sparse files, formatted for each boot. Also describes the
//! disks for the agent. The crate `machine` attaches them.

mod image;
pub mod mkfs;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use flight::job::{self, IMAGES_PATH, Identity, Mount};
use machine::disks::{handle, image_file, is_direct, of_brd, serial};
use model::{Bytes, Disk, DiskKind, Format, Mode};

use image::Extents;
pub use mkfs::MkfsError;

/// The largest size of a RAM disk's initial contents. The guest holds them in memory twice for a
/// while.
const RAM_CONTENTS: Bytes = Bytes::mib(64);

/// Why a disk cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// An image cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// The image that cannot be made.
        path: PathBuf,
        /// What the system reported.
        error: io::Error,
    },
    /// The file system of a disk cannot be made.
    #[error("the file system of disk {number} cannot be made: {error}")]
    Mkfs {
        /// The number of the disk, from 0.
        number: usize,
        /// Why it cannot be formatted.
        error: MkfsError,
    },
    /// The initial contents of a RAM disk are too large.
    #[error(
        "mkfs writes more than {RAM_CONTENTS} to disk {number}, which is too much for a RAM disk: \
         use kind = \"pmem\""
    )]
    TooMuch {
        /// The number of the disk, from 0.
        number: usize,
    },
    /// In exact mode, a file system differs from the one that was made before the first boot.
    #[error(
        "{tool} made a different file system on disk {number} than the first time, so boots would \
         not be exact. Check whether it was updated meanwhile or is linked statically"
    )]
    Differs {
        /// The number of the disk, from 0.
        number: usize,
        /// The program that makes its file system.
        tool: String,
    },
}

impl DiskError {
    /// Returns whether the cause is the experiment and not the host.
    pub fn is_the_users(&self) -> bool {
        match self {
            Self::Mkfs { error, .. } => matches!(error, MkfsError::Tool { .. }),
            Self::TooMuch { .. } => true,
            Self::File { .. } | Self::Differs { .. } => false,
        }
    }
}

/// The initial contents of a RAM disk.
#[derive(Debug, PartialEq, Eq)]
pub struct Contents {
    /// The directory in the guest's initramfs.
    pub directory: String,
    /// All blocks of the disk that are not zero.
    pub extents: Extents,
}

/// Makes the images of all disks in `directory`. RAM disks keep no image: their contents are
/// returned and go into the initramfs. `library` makes mkfs give the same result each time. Fails
/// when an image cannot be written, a file system cannot be made, a RAM disk's contents are too
/// large, or a file system's digest is not the one of the experiment.
pub fn make(disks: &[Disk], directory: &Path, library: &Path) -> Result<Vec<Contents>, DiskError> {
    let mut contents = Vec::new();
    for (number, disk) in disks.iter().enumerate() {
        let image = make_one(number, disk, directory, library)?;
        if let Some(Format { filesystem, digest: Some(wanted), .. }) = &disk.format
            && image::digest(&image).map_err(at(&image))? != *wanted
        {
            return Err(DiskError::Differs { number, tool: mkfs::program(*filesystem) });
        }
        if disk.kind == DiskKind::Ram {
            let extents = image::extents(&image, RAM_CONTENTS.0).map_err(at(&image))?;
            let extents = extents.ok_or(DiskError::TooMuch { number })?;
            contents.push(Contents { directory: contents_path(number), extents });
            fs::remove_file(&image).map_err(at(&image))?;
        }
    }
    Ok(contents)
}

/// Makes all file systems once below `scratch`, so that errors are reported before anything boots.
/// In exact mode, stores the digest of each file system in `disks`: another version of mkfs may
/// write other contents, which makes another experiment. Fails when a file system cannot be made.
pub fn try_all(
    disks: &mut [Disk],
    mode: Mode,
    scratch: &Path,
    library: &Path,
) -> Result<(), DiskError> {
    let directory = tempfile::tempdir_in(scratch).map_err(at(scratch))?;
    for (number, disk) in disks.iter_mut().enumerate() {
        if disk.format.is_some() {
            let image = make_one(number, disk, directory.path(), library)?;
            if mode == Mode::Exact {
                let digest = image::digest(&image).map_err(at(&image))?;
                disk.format.iter_mut().for_each(|format| format.digest = Some(digest.clone()));
            }
        }
    }
    Ok(())
}

/// Returns a note for each disk whose I/O went through the host's page cache. `directory` has the
/// images.
pub fn notes(disks: &[Disk], directory: &Path) -> Vec<String> {
    let through_cache = |(number, disk): &(usize, &Disk)| {
        disk.kind.is_asynchronous() && !is_direct(&directory.join(image_file(*number)))
    };
    let through_cache = disks.iter().enumerate().filter(through_cache);
    let note = |number| {
        format!(
            "disk {number} went through the host's page cache: the file system of {} does no \
             direct I/O, so much of what was read came from memory",
            directory.display()
        )
    };
    through_cache.map(|(number, _)| note(number)).collect()
}

/// Returns the modules that drive these disks and their file systems.
pub fn modules(disks: &[Disk]) -> Vec<&'static str> {
    let of = |disk: &Disk| {
        let filesystem = disk.format.as_ref().map(|format| format.filesystem.name());
        disk.kind.modules().iter().copied().chain(filesystem)
    };
    disks.iter().flat_map(of).collect()
}

/// Returns the parameters that a module needs for these disks. Only `brd` (RAM disks) has
/// parameters; the result is empty for others.
pub fn parameters(module: &str, disks: &[Disk]) -> String {
    let brd = (module == "brd").then(|| of_brd(disks)).flatten();
    brd.map_or(String::new(), |parameters| parameters.join(" "))
}

/// Describes the disks for the agent. The guest names RAM disks `ram0`, `ram1` and so on.
pub fn of_job(disks: &[Disk]) -> Vec<job::Disk> {
    let ram = |disk: &&Disk| disk.kind == DiskKind::Ram;
    let disk = |(number, disk): (usize, &Disk)| job::Disk {
        identity: match disk.kind {
            DiskKind::Pmem => Identity::Handle(handle(number)),
            DiskKind::Ram => {
                Identity::Name(format!("ram{}", disks[..number].iter().filter(ram).count()))
            }
            DiskKind::VirtioBlk | DiskKind::Nvme => Identity::Serial(serial(number)),
        },
        drivers: drivers(disk.kind),
        size: disk.size,
        device: Disk::device(number),
        contents: (disk.kind == DiskKind::Ram).then(|| contents_path(number)),
        mount: disk.format.as_ref().map(|format| Mount {
            filesystem: format.filesystem.name().to_owned(),
            place: format.mount.clone(),
            options: format.options.clone(),
        }),
    };
    disks.iter().enumerate().map(disk).collect()
}

/// Returns the modules that drive disks of a kind.
pub fn drivers(kind: DiskKind) -> Vec<String> {
    kind.modules().iter().map(|module| (*module).to_owned()).collect()
}

/// Returns the path of a RAM disk's contents in the guest.
fn contents_path(number: usize) -> String {
    format!("{IMAGES_PATH}/{number}")
}

fn make_one(
    number: usize,
    disk: &Disk,
    directory: &Path,
    library: &Path,
) -> Result<PathBuf, DiskError> {
    let image = directory.join(image_file(number));
    let file = File::create(&image).map_err(at(&image))?;
    file.set_len(disk.size.0).map_err(at(&image))?;
    if let Some(format) = &disk.format {
        // Two file systems of one machine must not have the same UUID, so each gets its own seed.
        let made = mkfs::make(format, number + 1, &image, library);
        made.map_err(|error| DiskError::Mkfs { number, error })?;
    }
    Ok(image)
}

/// Returns a function for `map_err` that adds the path of the file.
fn at(path: &Path) -> impl FnOnce(io::Error) -> DiskError {
    let path = path.to_owned();
    |error| DiskError::File { path, error }
}

#[cfg(test)]
mod tests {
    use model::FileSystem;

    use super::mkfs::tests::{any_library, format};
    use super::*;

    fn disk(kind: DiskKind, mib: u64, format: Option<Format>) -> Disk {
        Disk { kind, size: Bytes::mib(mib), format }
    }

    #[test]
    fn the_job_describes_every_disk() {
        let disks = [
            disk(DiskKind::VirtioBlk, 2, None),
            disk(DiskKind::Pmem, 2, Some(format(FileSystem::Xfs, &[]))),
            disk(DiskKind::Ram, 2, None),
            disk(DiskKind::Nvme, 2, None),
            disk(DiskKind::Pmem, 2, None),
            disk(DiskKind::Ram, 2, None),
        ];
        let told = of_job(&disks);
        let identities: Vec<_> = told.iter().map(|disk| disk.identity.clone()).collect();
        let expected = [
            Identity::Serial("disk0".into()),
            Identity::Handle(2),
            Identity::Name("ram0".into()),
            Identity::Serial("disk3".into()),
            Identity::Handle(5),
            Identity::Name("ram1".into()),
        ];
        assert_eq!(identities, expected);
        assert_eq!(told[0].drivers, ["virtio_pci", "virtio_blk"]);
        assert_eq!(told[5].contents.as_deref(), Some("/faultline/disks/5"));
        assert_eq!((told[4].device.as_str(), &told[4].mount), ("/dev/disk4", &None));
        assert_eq!(told[1].mount.as_ref().unwrap().filesystem, "xfs");
        assert_eq!(parameters("brd", &disks), "rd_nr=2 rd_size=2048");
        assert_eq!(parameters("xfs", &disks), "");
        let expected = ["virtio_pci", "virtio_blk", "nd_pmem", "nfit", "xfs"];
        assert_eq!(modules(&disks[..2]), expected);
    }

    #[test]
    fn images_are_made_and_ram_disks_get_contents() {
        let directory = tempfile::tempdir().unwrap();
        let ext4 = || Some(format(FileSystem::Ext4, &["-b", "4096"]));
        let disks = [
            disk(DiskKind::Pmem, 64, ext4()),
            disk(DiskKind::Nvme, 1024, None),
            disk(DiskKind::Ram, 64, ext4()),
        ];
        let contents = make(&disks, directory.path(), &any_library()).unwrap();
        let [Contents { directory: place, extents }] = contents.as_slice() else {
            panic!("{} disks", contents.len())
        };
        assert_eq!(place, "/faultline/disks/2");
        // The superblock (`Documentation/filesystems/ext4/super.rst`).
        assert_eq!((extents[0].0, &extents[0].1[1024 + 0x38..][..2]), (0, &b"\x53\xef"[..]));
        let length = |number| {
            fs::metadata(directory.path().join(image_file(number))).map(|file| file.len()).ok()
        };
        assert_eq!([0, 1, 2].map(length), [Some(64 << 20), Some(1 << 30), None]);
    }

    #[test]
    fn exact_boots_begin_with_the_same_file_system() {
        let unknown = vec![
            disk(DiskKind::Pmem, 2, None),
            disk(DiskKind::Pmem, 64, Some(format(FileSystem::Ext4, &[]))),
        ];
        let mut disks = unknown.clone();
        let directory = tempfile::tempdir().unwrap();
        let known =
            |disks: &mut [Disk], mode| try_all(disks, mode, directory.path(), &any_library());
        known(&mut disks, Mode::Measured).unwrap();
        assert_eq!(disks, unknown);
        known(&mut disks, Mode::Exact).unwrap();
        assert_eq!(disks[0].format, None);
        assert!(disks[1].format.as_ref().unwrap().digest.is_some());
        // Without our library no two file systems are the same.
        let error = make(&disks, directory.path(), &any_library()).unwrap_err();
        assert!(matches!(error, DiskError::Differs { number: 1, .. }), "{error}");

        disks[1].format = Some(format(FileSystem::Ext4, &["-b", "3"]));
        let error = known(&mut disks, Mode::Measured).unwrap_err();
        assert!(error.is_the_users(), "{error}");
        let library = Path::new("/none.so");
        let error = try_all(&mut disks, Mode::Measured, directory.path(), library).unwrap_err();
        assert!(!error.is_the_users(), "{error}");
    }
}
