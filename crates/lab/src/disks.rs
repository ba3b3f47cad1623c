//! The disks of a machine on the host: sparse files, formatted anew for each boot, and what the
//! guest is told of them. How they are attached is the machine's part.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flight::job::{self, IMAGES_PATH, Identity, Mount};
use machine::disks::{handle, image_file, is_direct, serial};
use model::{Bytes, Disk, DiskKind, Experiment, FileSystem, Format, Mode};
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use sha2::{Digest, Sha256};

/// Contents of a disk are looked at in pieces of this; one that is all zeros was never written.
const BLOCK: usize = 4096;
/// A guest gets at most so much of a RAM disk's contents: it holds them twice for a while.
const RAM_CONTENTS: Bytes = Bytes::mib(64);
/// So many lines are told of what a program complained of.
const LAST_LINES: usize = 3;

/// Why a disk cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// An image cannot be written or read.
    #[error("{path}: {error}")]
    File {
        /// The image.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The program that makes the file system is not installed.
    #[error(
        "{tool} is not installed: it makes the file system of disk {number}, and is in the package {package}"
    )]
    NoTool {
        /// The disk.
        number: usize,
        /// The program.
        tool: String,
        /// The package of Debian's that has it.
        package: &'static str,
    },
    /// It failed.
    #[error("{tool} cannot make the file system of disk {number}: {problem}")]
    Tool {
        /// The disk.
        number: usize,
        /// The program.
        tool: String,
        /// What it said.
        problem: String,
    },
    /// Our library is not where it ought to be, or can't be loaded from there.
    #[error("{path}, which makes file systems the same each time, {problem}")]
    Library {
        /// Where it was looked for.
        path: PathBuf,
        /// What is wrong, and what to do.
        problem: &'static str,
    },
    /// A file system that is made for the contents of a RAM disk, and is too large for them.
    #[error(
        "the file system of disk {number} writes more than {RAM_CONTENTS} at first, too much for a \
         RAM disk: use kind = \"pmem\""
    )]
    TooMuch {
        /// The disk.
        number: usize,
    },
    /// A file system that must be the same and is not.
    #[error(
        "{tool} made another file system on disk {number} than at first: nothing about it is exact \
         then; was it changed, or is it linked statically?"
    )]
    Differs {
        /// The disk.
        number: usize,
        /// The program.
        tool: String,
    },
}

/// What a RAM disk holds at first.
#[derive(Debug, PartialEq, Eq)]
pub struct Contents {
    /// Where it lies in the guest.
    pub directory: String,
    /// Offsets, and the bytes from there on.
    pub stretches: Vec<(u64, Vec<u8>)>,
}

/// Makes the images of all disks in `directory`. RAM disks have none: the guest is given what they
/// hold. `library` makes the file systems the same each time.
///
/// # Errors
/// When there is no room, a file system can't be made, or it is not the one it must be.
pub fn make(disks: &[Disk], directory: &Path, library: &Path) -> Result<Vec<Contents>, DiskError> {
    let mut contents = Vec::new();
    for (number, disk) in disks.iter().enumerate() {
        let image = make_one(number, disk, directory, library)?;
        if let Some(Format { filesystem, digest: Some(wanted), .. }) = &disk.format
            && digest(&image)? != *wanted
        {
            return Err(DiskError::Differs { number, tool: mkfs(*filesystem) });
        }
        if disk.kind == DiskKind::Ram {
            let stretches = stretches(number, &image)?;
            contents.push(Contents { directory: contents_path(number), stretches });
            fs::remove_file(&image).map_err(at(&image))?;
        }
    }
    Ok(contents)
}

/// The experiment with the digests of the file systems that its boots begin with, in exact mode:
/// other programs on other hosts make other ones, and then it is another experiment. To have them,
/// all are made once below `scratch`.
///
/// # Errors
/// As with [`make`].
pub fn with_digests(
    experiment: &Experiment,
    scratch: &Path,
    library: &Path,
) -> Result<Experiment, DiskError> {
    let mut experiment = experiment.clone();
    if experiment.mode == Mode::Measured {
        return Ok(experiment);
    }
    let directory = tempfile::tempdir_in(scratch).map_err(at(scratch))?;
    for (number, disk) in experiment.machine.disks.iter_mut().enumerate() {
        if disk.format.is_some() {
            let image = make_one(number, disk, directory.path(), library)?;
            let digest = digest(&image)?;
            disk.format.iter_mut().for_each(|format| format.digest = Some(digest.clone()));
        }
    }
    Ok(experiment)
}

/// What is to be known of the disks made in `directory`.
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

/// The modules that drive these disks and their file systems.
pub fn modules(disks: &[Disk]) -> Vec<&'static str> {
    let of = |disk: &Disk| {
        let filesystem = disk.format.as_ref().map(|format| format.filesystem.name());
        disk.kind.modules().iter().copied().chain(filesystem)
    };
    disks.iter().flat_map(of).collect()
}

/// The parameters of a module for these disks: `brd` makes as many as it is told, of one size in
/// KiB (`drivers/block/brd.c`).
pub fn parameters(module: &str, disks: &[Disk]) -> String {
    let ram: Vec<&Disk> = disks.iter().filter(|disk| disk.kind == DiskKind::Ram).collect();
    match (module, ram.first()) {
        ("brd", Some(first)) => format!("rd_nr={} rd_size={}", ram.len(), first.size.0 >> 10),
        _ => String::new(),
    }
}

/// The disks as the agent knows them. RAM disks are numbered by the kernel in their order.
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

/// Where the contents of a RAM disk lie in the guest.
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
        make_file_system(number, format, &image, library)?;
    }
    Ok(image)
}

/// The program that makes a file system.
fn mkfs(filesystem: FileSystem) -> String {
    format!("mkfs.{}", filesystem.name())
}

fn make_file_system(
    number: usize,
    format: &Format,
    image: &Path,
    library: &Path,
) -> Result<(), DiskError> {
    check_library(library)?;
    let tool = mkfs(format.filesystem);
    // Users other than root often lack the directories of such programs in their path.
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/sbin");
    let output = Command::new(&tool)
        .arg("-q")
        .args(&format.mkfs)
        .arg(image)
        .env("PATH", path)
        .env("LC_ALL", "C")
        .env("LD_PRELOAD", library)
        .env("STILLMKFS_SEED", (number + 1).to_string())
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said: Vec<&str> =
                said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            let problem = match said[said.len().saturating_sub(LAST_LINES)..].join("; ") {
                said if said.is_empty() => output.status.to_string(),
                said => said,
            };
            Err(DiskError::Tool { number, tool, problem })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(DiskError::NoTool { number, tool, package: package(format.filesystem) })
        }
        Err(error) => Err(DiskError::Tool { number, tool, problem: error.to_string() }),
    }
}

/// The package of Debian's, and of most others', in which the program is.
const fn package(filesystem: FileSystem) -> &'static str {
    match filesystem {
        FileSystem::Ext4 => "e2fsprogs",
        FileSystem::Xfs => "xfsprogs",
        FileSystem::Btrfs => "btrfs-progs",
    }
}

/// Whether the loader will find our library; it only warns if not (`ld.so(8)`, `LD_PRELOAD`).
fn check_library(library: &Path) -> Result<(), DiskError> {
    let parts = |byte: &u8| *byte == b':' || byte.is_ascii_whitespace();
    let problem = if !library.is_file() {
        "is not there: build it with `make`"
    } else if library.as_os_str().as_bytes().iter().any(parts) {
        "cannot be loaded from a path with a colon or a blank: move it"
    } else {
        return Ok(());
    };
    Err(DiskError::Library { path: library.to_owned(), problem })
}

/// SHA-256 of an image: of its length, and of each block that is not all zeros behind its offset.
fn digest(image: &Path) -> Result<String, DiskError> {
    let mut hash = Sha256::new();
    let length = fs::metadata(image).map_err(at(image))?.len();
    hash.update(length.to_le_bytes());
    each_block(image, |offset, block| {
        hash.update(offset.to_le_bytes());
        hash.update(block);
    })
    .map_err(at(image))?;
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// All that an image holds but zeros.
fn stretches(number: usize, image: &Path) -> Result<Vec<(u64, Vec<u8>)>, DiskError> {
    let mut stretches: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut length = 0;
    each_block(image, |offset, block| {
        length += block.len() as u64;
        if length > RAM_CONTENTS.0 {
            return;
        }
        match stretches.last_mut() {
            Some((start, bytes)) if *start + bytes.len() as u64 == offset => bytes.extend(block),
            _ => stretches.push((offset, block.to_vec())),
        }
    })
    .map_err(at(image))?;
    if length > RAM_CONTENTS.0 { Err(DiskError::TooMuch { number }) } else { Ok(stretches) }
}

/// Gives each block of a file that is not all zeros to `sink`, with its offset. Holes are passed
/// over unread (lseek(2), `SEEK_DATA`).
fn each_block(path: &Path, mut sink: impl FnMut(u64, &[u8])) -> io::Result<()> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut hole = 0;
    loop {
        let data = match rustix::fs::seek(&file, SeekFrom::Data(hole)) {
            Err(Errno::NXIO) => return Ok(()),
            data => data?,
        };
        hole = rustix::fs::seek(&file, SeekFrom::Hole(data))?;
        let mut block = [0; BLOCK];
        let mut offset = data - data % BLOCK as u64;
        while offset < hole {
            let part = (length - offset).min(BLOCK as u64) as usize;
            file.read_exact_at(&mut block[..part], offset)?;
            if block[..part].iter().any(|byte| *byte != 0) {
                sink(offset, &block[..part]);
            }
            offset += BLOCK as u64;
        }
        // What is left of the last block is read.
        hole = offset.max(hole);
    }
}

/// For `map_err`: what went wrong with the file at `path`.
fn at(path: &Path) -> impl FnOnce(io::Error) -> DiskError {
    let path = path.to_owned();
    |error| DiskError::File { path, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(kind: DiskKind, mib: u64, format: Option<Format>) -> Disk {
        Disk { kind, size: Bytes::mib(mib), format }
    }

    fn format(filesystem: FileSystem, mkfs: &[&str]) -> Format {
        Format {
            filesystem,
            mkfs: mkfs.iter().map(|word| (*word).to_owned()).collect(),
            mount: "/mnt".into(),
            options: "noatime".into(),
            digest: None,
        }
    }

    /// Writes a file of holes but for these stretches.
    fn sparse(path: &Path, length: u64, stretches: &[(u64, &[u8])]) {
        let file = File::create(path).unwrap();
        file.set_len(length).unwrap();
        for (offset, bytes) in stretches {
            file.write_all_at(bytes, *offset).unwrap();
        }
    }

    #[test]
    fn what_was_never_written_counts_for_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let (holes, zeros) = (directory.path().join("holes"), directory.path().join("zeros"));
        let ends = [(4095, &b"ab"[..]), ((1 << 20) - 1, &b"c"[..])];
        sparse(&holes, 1 << 20, &ends);
        fs::write(&zeros, vec![0; 1 << 20]).unwrap();
        assert_ne!(digest(&holes).unwrap(), digest(&zeros).unwrap());
        let file = File::options().write(true).open(&zeros).unwrap();
        ends.iter().for_each(|(offset, bytes)| file.write_all_at(bytes, *offset).unwrap());
        assert_eq!(digest(&holes).unwrap(), digest(&zeros).unwrap());
        let found = stretches(0, &zeros).unwrap();
        let lengths: Vec<_> = found.iter().map(|(offset, bytes)| (*offset, bytes.len())).collect();
        assert_eq!(lengths, [(0, 8192), ((1 << 20) - 4096, 4096)]);
        assert_eq!((found[0].1[4095], found[0].1[4096], found[1].1[4095]), (b'a', b'b', b'c'));
        assert_eq!(stretches(0, &holes).unwrap(), found);
        file.write_all_at(b"d", 1 << 19).unwrap();
        assert_ne!(digest(&holes).unwrap(), digest(&zeros).unwrap());
        file.set_len(1 << 21).unwrap();
        assert_eq!(stretches(0, &zeros).unwrap().len(), 3);
    }

    #[test]
    fn contents_of_a_ram_disk_are_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("image");
        fs::write(&image, vec![1; RAM_CONTENTS.0 as usize]).unwrap();
        assert!(stretches(0, &image).is_ok());
        fs::write(&image, vec![1; RAM_CONTENTS.0 as usize + 1]).unwrap();
        assert!(matches!(stretches(7, &image), Err(DiskError::TooMuch { number: 7 })));
    }

    #[test]
    fn the_agent_is_told_of_every_disk() {
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
        let named = |name: &str| Identity::Name(name.into());
        let numbered = |serial: &str| Identity::Serial(serial.into());
        let expected = [
            numbered("disk0"),
            Identity::Handle(2),
            named("ram0"),
            numbered("disk3"),
            Identity::Handle(5),
            named("ram1"),
        ];
        assert_eq!(identities, expected);
        assert_eq!(told[5].contents.as_deref(), Some("/faultline/disks/5"));
        assert_eq!((told[4].device.as_str(), &told[4].mount), ("/dev/disk4", &None));
        assert_eq!(told[1].mount.as_ref().unwrap().filesystem, "xfs");
        assert_eq!(parameters("brd", &disks), "rd_nr=2 rd_size=2048");
        assert_eq!(parameters("xfs", &disks), "");
        let expected = ["virtio_pci", "virtio_blk", "nd_pmem", "nfit", "xfs"];
        assert_eq!(modules(&disks[..2]), expected);
    }

    #[test]
    fn what_is_missing_is_said_with_the_cure() {
        let directory = tempfile::tempdir().unwrap();
        let formatted = [disk(DiskKind::Pmem, 64, Some(format(FileSystem::Ext4, &[])))];
        let make = |library: &Path| make(&formatted, directory.path(), library).unwrap_err();
        let error = make(Path::new("/nonexistent.so")).to_string();
        assert!(error.ends_with("is not there: build it with `make`"), "{error}");
        let split = directory.path().join("a b.so");
        fs::write(&split, "").unwrap();
        let error = make(&split).to_string();
        assert!(error.contains("colon or a blank"), "{error}");
    }

    #[test]
    fn a_program_that_fails_is_quoted() {
        let directory = tempfile::tempdir().unwrap();
        // The loader passes over what is no library.
        let library = directory.path().join("none.so");
        fs::write(&library, "").unwrap();
        let small = disk(DiskKind::Pmem, 2, Some(format(FileSystem::Ext4, &["-b", "3"])));
        let error = make(&[small], directory.path(), &library).unwrap_err().to_string();
        assert!(error.starts_with("mkfs.ext4 cannot make the file system of disk 0: "), "{error}");
        assert!(error.ends_with("mkfs.ext4: invalid block size - 3"), "{error}");
    }

    #[test]
    fn another_file_system_than_it_must_be_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let library = directory.path().join("none.so");
        fs::write(&library, "").unwrap();
        let mut wanted = format(FileSystem::Ext4, &[]);
        wanted.digest = Some("00".into());
        let disks = [disk(DiskKind::Pmem, 64, Some(wanted))];
        let error = make(&disks, directory.path(), &library).unwrap_err();
        assert!(matches!(error, DiskError::Differs { number: 0, .. }), "{error}");
    }
}
