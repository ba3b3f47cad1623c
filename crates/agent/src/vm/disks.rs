//! Sets up disks: finds them under any name that the kernel gives them, fills RAM disks, mounts them, and unmounts
//! them before the machine powers off.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use flight::job::{Disk, Identity, Mount};
use guest::kmsg::KernelLog;
use guest::reason;
use model::Bytes;
use rustix::fs::statvfs;
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// How long a disk may take to appear. Drivers probe in the background.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long to wait if the kernel lacks the disk's driver. Built-in drivers and loaded modules exist before the agent
/// runs.
const BRIEF: Duration = Duration::from_secs(2);
/// The interval between two looks for a disk.
const LOOK: Duration = Duration::from_millis(10);
/// The unit of `/sys/block/*/size` (`Documentation/ABI/stable/sysfs-block`).
const SECTOR: u64 = 512;
/// The largest part of the kernel's log that the error of a failed mount quotes, in bytes.
const LOG: usize = 1024;

/// The kernel's message when there is no space (strerror(3), ENOSPC).
const NO_SPACE: &str = "No space left on device";

/// Options of mount(8) that are flags of mount(2). All others are options of the file system.
const FLAGS: [(&str, MountFlags); 11] = [
    ("ro", MountFlags::RDONLY),
    ("nosuid", MountFlags::NOSUID),
    ("nodev", MountFlags::NODEV),
    ("noexec", MountFlags::NOEXEC),
    ("sync", MountFlags::SYNCHRONOUS),
    ("dirsync", MountFlags::DIRSYNC),
    ("noatime", MountFlags::NOATIME),
    ("nodiratime", MountFlags::NODIRATIME),
    ("relatime", MountFlags::RELATIME),
    ("strictatime", MountFlags::STRICTATIME),
    ("lazytime", MountFlags::LAZYTIME),
];

/// How a disk differs from what the job describes.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The disk does not appear.
    #[error("{device} ({identity}) has not appeared within {} s{}", .waited.as_secs(), without(.lacking))]
    Absent {
        /// How long the agent waited.
        waited: Duration,
        /// The drivers that the kernel lacks.
        lacking: Vec<String>,
        /// The disk's name in the guest.
        device: String,
        identity: String,
    },
    /// The disk has another size.
    #[error("{device} ({name}) has {found}, but the experiment has {wanted}")]
    Size {
        /// The disk's name in the guest.
        device: String,
        /// The kernel's name of the disk.
        name: String,
        found: Bytes,
        wanted: Bytes,
    },
    /// The link to the disk, or its contents, cannot be written.
    #[error("{path}: {}", reason(.error))]
    File { path: PathBuf, error: io::Error },
    /// The disk cannot be mounted.
    #[error("{device} cannot be mounted on {}{} ({}){log}", .wanted.place, as_what(.wanted), reason(.error))]
    Mount {
        device: String,
        /// The directory, file system and options.
        wanted: Box<Mount>,
        error: io::Error,
        /// What the kernel logged about the failure.
        log: String,
    },
    /// The disk cannot be unmounted.
    #[error("{place} cannot be unmounted ({})", reason(.error))]
    Unmount { place: String, error: io::Error },
}

fn without(drivers: &[String]) -> String {
    match drivers {
        [] => String::new(),
        drivers => format!(
            ": the kernel has no {}, neither built in nor as a module",
            drivers.join(" and no ")
        ),
    }
}

fn as_what(Mount { filesystem, options, .. }: &Mount) -> String {
    let with = if options.is_empty() { "" } else { " with " };
    format!(" as {filesystem}{with}{options}")
}

/// Makes a disk ready for use. Fails when it does not appear, has another size, or cannot be filled or
/// mounted.
pub fn set_up(disk: &Disk) -> Result<(), DiskError> {
    let name = await_name(Path::new("/"), disk, PATIENCE)?;
    check_size(Path::new("/"), &name, disk)?;
    let device = Path::new(&disk.device);
    symlink(Path::new("/dev").join(&name), device).map_err(at(device))?;
    if let Some(contents) = &disk.contents {
        fill(device, Path::new(contents))?;
    }
    disk.mount.as_ref().map_or(Ok(()), |mount| put(&disk.device, mount))
}

/// A hint if a full disk explains a failure. `None` if no disk is full and the message of the failure does not
/// mention one.
pub fn remedy<'a>(disks: impl Iterator<Item = &'a Disk>, failure: &str) -> Option<String> {
    let places = disks.filter_map(|disk| disk.mount.as_ref()).map(|mount| mount.place.as_str());
    let full = places.into_iter().find(|place| is_full(Path::new(place)).unwrap_or(false));
    let what = match full {
        Some(place) => format!("the disk on {place} is full"),
        None if failure.contains(NO_SPACE) => "a disk was full".to_owned(),
        None => return None,
    };
    Some(format!("{what}: make it larger, or write less"))
}

/// Whether less than 1 % of a file system's blocks or no inodes are free.
fn is_full(place: &Path) -> io::Result<bool> {
    let room = statvfs(place)?;
    let inodes = room.f_files > 0 && room.f_ffree == 0;
    Ok(inodes || room.f_bavail < room.f_blocks.div_ceil(100))
}

/// Unmounts the file systems of these disks in reverse order. After a failure it continues with the others.
/// The error is the first failure.
pub fn unmount_all(disks: &[Disk]) -> Result<(), DiskError> {
    let mounts = disks.iter().rev().filter_map(|disk| disk.mount.as_ref());
    let mut unmounted = Ok(());
    for Mount { place, .. } in mounts {
        let done = unmount(place.as_str(), UnmountFlags::empty());
        let failed =
            |error: Errno| DiskError::Unmount { place: place.clone(), error: error.into() };
        unmounted = unmounted.and(done.map_err(failed));
    }
    unmounted
}

/// Waits for a disk, and returns the kernel's name of it. `root` is `/` except in tests.
fn await_name(root: &Path, disk: &Disk, patience: Duration) -> Result<String, DiskError> {
    let start = Instant::now();
    loop {
        if let Some(name) = find(root, &disk.identity) {
            return Ok(name);
        }
        let mut lacking = disk.drivers.clone();
        lacking.retain(|driver| !has_driver(&root.join("sys"), driver));
        let waited = if lacking.is_empty() { patience } else { patience.min(BRIEF) };
        if start.elapsed() >= waited {
            let identity = match &disk.identity {
                Identity::Name(name) => name.clone(),
                Identity::Handle(handle) => format!("memory module {handle}"),
                Identity::Serial(serial) => format!("serial number {serial}"),
            };
            return Err(DiskError::Absent {
                waited,
                lacking,
                device: disk.device.clone(),
                identity,
            });
        }
        thread::sleep(LOOK);
    }
}

/// Whether the kernel has a driver. A driver that is a module or has parameters is in `/sys/module`; one with
/// a bus is below the bus.
fn has_driver(sys: &Path, name: &str) -> bool {
    let of_buses = fs::read_dir(sys.join("bus")).into_iter().flatten().flatten();
    let names = [name.to_owned(), name.replace('_', "-")];
    let has = |directory: PathBuf| names.iter().any(|name| directory.join(name).exists());
    has(sys.join("module")) || of_buses.into_iter().any(|bus| has(bus.path().join("drivers")))
}

fn find(root: &Path, identity: &Identity) -> Option<String> {
    let (sys, dev) = (root.join("sys"), root.join("dev"));
    let disks = fs::read_dir(sys.join("block")).ok()?.flatten();
    let mut names = disks.map(|entry| entry.file_name().to_string_lossy().into_owned());
    // A disk appears in sysfs shortly before its device, and the device shortly before it can be opened. A path to an NVMe
    // drive never gets a device.
    names.find(|name| is_it(&sys, name, identity) && File::open(dev.join(name)).is_ok())
}

fn is_it(sys: &Path, name: &str, identity: &Identity) -> bool {
    let disk = sys.join("block").join(name);
    match identity {
        Identity::Name(wanted) => name == wanted,
        Identity::Handle(wanted) => {
            let handle = module(&disk)
                .map(|module| text(&sys.join("bus/nd/devices").join(module).join("nfit/handle")));
            handle == Some(format!("{wanted:#x}"))
        }
        Identity::Serial(wanted) => {
            // virtio-blk has the serial number in the directory of the disk, NVMe in that of the controller.
            ["serial", "device/serial"].iter().any(|file| text(&disk.join(file)) == *wanted)
        }
    }
}

/// The memory device of persistent memory: the first mapping of the region of its namespace
/// (`drivers/nvdimm/region_devs.c`, `mapping0`), such as `nmem1,0,1073741824,0`.
fn module(disk: &Path) -> Option<String> {
    let mapping = text(&disk.join("device/../mapping0"));
    mapping.split_once(',').map(|(module, _)| module.to_owned())
}

/// The text of a file; empty if there is none.
fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn check_size(root: &Path, name: &str, disk: &Disk) -> Result<(), DiskError> {
    let path = root.join("sys/block").join(name).join("size");
    let found = Bytes(text(&path).parse::<u64>().unwrap_or(0).saturating_mul(SECTOR));
    if found == disk.size {
        return Ok(());
    }
    let (device, name) = (disk.device.clone(), name.to_owned());
    Err(DiskError::Size { device, name, found, wanted: disk.size })
}

/// Writes the files of a directory to `device`, each at the offset in its name, and frees their memory.
fn fill(device: &Path, contents: &Path) -> Result<(), DiskError> {
    let disk = File::options().write(true).open(device).map_err(at(device))?;
    for entry in fs::read_dir(contents).map_err(at(contents))? {
        let path = entry.map_err(at(contents))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let offset = u64::from_str_radix(&name, 16);
        let offset = offset.map_err(|_| at(&path)(io::ErrorKind::InvalidData.into()))?;
        let bytes = fs::read(&path).map_err(at(&path))?;
        disk.write_all_at(&bytes, offset).map_err(at(device))?;
    }
    disk.sync_all().map_err(at(device))?;
    fs::remove_dir_all(contents).map_err(at(contents))
}

fn put(device: &str, wanted: &Mount) -> Result<(), DiskError> {
    let Mount { filesystem, place, options } = wanted;
    fs::create_dir_all(place).map_err(at(Path::new(place)))?;
    let (flags, own) = flags(options);
    let own = CString::new(own).map_err(io::Error::from);
    let mut log = KernelLog::from_now(LOG);
    let mounted =
        own.and_then(|own| Ok(mount(device, place.as_str(), filesystem.as_str(), flags, &*own)?));
    mounted.map_err(|error| {
        let mut said = String::new();
        log.drain(|lines| said += &lines);
        let said = said.trim_end().replace('\n', "; ");
        DiskError::Mount {
            device: device.into(),
            wanted: Box::new(wanted.clone()),
            error,
            log: if said.is_empty() { said } else { format!("; the kernel's messages: {said}") },
        }
    })
}

/// Splits options as in fstab(5) into mount flags and options of the file system.
fn flags(options: &str) -> (MountFlags, String) {
    let mut flags = MountFlags::empty();
    let mut own = Vec::new();
    for option in options.split(',').filter(|option| !option.is_empty()) {
        match FLAGS.iter().find(|(name, _)| *name == option) {
            Some((_, flag)) => flags |= *flag,
            None if matches!(option, "defaults" | "rw") => {}
            None => own.push(option),
        }
    }
    (flags, own.join(","))
}

/// For `map_err`: adds the path of the file.
fn at(path: &Path) -> impl FnOnce(io::Error) -> DiskError {
    let path = path.to_owned();
    |error| DiskError::File { path, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_has_a_hint() {
        let place = tempfile::tempdir().unwrap();
        let mut roomy = disk(Identity::Serial("disk0".into()));
        roomy.mount = Some(Mount {
            filesystem: "ext4".into(),
            place: place.path().to_str().unwrap().into(),
            options: String::new(),
        });
        assert_eq!(remedy([&roomy].into_iter(), "signal 9 killed it"), None);
        let error = io::Error::from(Errno::NOSPC);
        let told = remedy([&roomy].into_iter(), &format!("/disk0/source: {}", reason(&error)));
        assert!(told.unwrap().starts_with("a disk was full: make it larger"));
        // Pseudo file systems have no blocks, and are not full.
        assert!(!is_full(Path::new("/proc")).unwrap());
    }

    fn disk(identity: Identity) -> Disk {
        Disk {
            identity,
            drivers: vec!["virtio_pci".into(), "virtio_blk".into()],
            size: Bytes::mib(1),
            device: "/dev/disk0".into(),
            contents: None,
            mount: None,
        }
    }

    /// Files as a kernel has them for these disks in sysfs.
    fn root(disks: &[(&str, &[(&str, &str)])]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let write = |path: PathBuf, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (name, files) in disks {
            write(root.path().join("dev").join(name), "");
            for (file, text) in *files {
                write(root.path().join("sys/block").join(name).join(file), text);
            }
        }
        root
    }

    #[test]
    fn a_disk_is_found_by_its_name_or_serial_number() {
        let disks: [(&str, &[(&str, &str)]); 3] = [
            ("vda", &[("serial", "disk1"), ("size", "2048\n")]),
            ("nvme0n1", &[("device/serial", "disk0               \n"), ("size", "2050\n")]),
            ("ram0", &[("size", "2048\n")]),
        ];
        let root = root(&disks);
        let name = |identity| await_name(root.path(), &disk(identity), Duration::ZERO);
        assert_eq!(name(Identity::Serial("disk0".into())).unwrap(), "nvme0n1");
        assert_eq!(name(Identity::Serial("disk1".into())).unwrap(), "vda");
        assert_eq!(name(Identity::Name("ram0".into())).unwrap(), "ram0");
        let error = name(Identity::Serial("disk2".into())).unwrap_err().to_string();
        let absent = "/dev/disk0 (serial number disk2) has not appeared within 0 s";
        let lacks = |drivers| {
            format!("{absent}: the kernel has no {drivers}, neither built in nor as a module")
        };
        assert_eq!(error, lacks("virtio_pci and no virtio_blk"));
        for (driver, expected) in [
            ("bus/pci/drivers/virtio-pci", lacks("virtio_blk")),
            ("module/virtio_blk", absent.to_owned()),
        ] {
            fs::create_dir_all(root.path().join("sys").join(driver)).unwrap();
            let error = name(Identity::Serial("disk2".into())).unwrap_err().to_string();
            assert_eq!(error, expected);
        }
        let wanted = disk(Identity::Name(String::new()));
        assert!(check_size(root.path(), "vda", &wanted).is_ok());
        let error = check_size(root.path(), "nvme0n1", &wanted).unwrap_err().to_string();
        assert_eq!(error, "/dev/disk0 (nvme0n1) has 1025K, but the experiment has 1M");
    }

    /// The search waits briefly, not for a minute.
    #[test]
    fn the_wait_for_a_disk_without_driver_is_short() {
        let root = root(&[]);
        let wanted = disk(Identity::Serial("disk0".into()));
        let error = await_name(root.path(), &wanted, PATIENCE).unwrap_err();
        assert!(matches!(error, DiskError::Absent { waited: BRIEF, .. }), "{error}");
    }

    #[test]
    fn persistent_memory_is_found_by_its_memory_device() {
        let root = root(&[("pmem0", &[]), ("pmem1", &[]), ("vda", &[])]);
        let sys = root.path().join("sys");
        // A machine with three disks, whose regions and modules the kernel numbered in the order of detection.
        for (pmem, (region, (module, handle))) in
            [("pmem0", ("region0", ("nmem2", "0x3"))), ("pmem1", ("region1", ("nmem0", "0x1")))]
        {
            let namespace = sys.join("devices/ndbus0").join(region).join("namespace.0");
            fs::create_dir_all(&namespace).unwrap();
            fs::create_dir_all(sys.join("block").join(pmem)).unwrap();
            symlink(&namespace, sys.join("block").join(pmem).join("device")).unwrap();
            let mapping = format!("{module},0,77594624,0\n");
            fs::write(namespace.join("../mapping0"), mapping).unwrap();
            let nfit = sys.join("bus/nd/devices").join(module).join("nfit");
            fs::create_dir_all(&nfit).unwrap();
            fs::write(nfit.join("handle"), format!("{handle}\n")).unwrap();
        }
        let name = |handle| find(root.path(), &Identity::Handle(handle));
        assert_eq!(name(1).as_deref(), Some("pmem1"));
        assert_eq!(name(3).as_deref(), Some("pmem0"));
        assert_eq!(name(2), None);
    }

    #[test]
    fn a_disk_without_its_device_has_not_appeared() {
        let root = root(&[("ram0", &[("size", "2048\n")])]);
        let device = root.path().join("dev/ram0");
        fs::remove_file(&device).unwrap();
        let wanted = disk(Identity::Name("ram0".into()));
        let name = thread::scope(|scope| {
            let waits = scope.spawn(|| await_name(root.path(), &wanted, PATIENCE));
            fs::write(&device, "").unwrap();
            waits.join().unwrap()
        });
        assert_eq!(name.unwrap(), "ram0");
    }

    #[test]
    fn a_disk_is_filled_at_the_offsets_in_the_names() {
        let directory = tempfile::tempdir().unwrap();
        let (device, contents) = (directory.path().join("ram0"), directory.path().join("0"));
        fs::write(&device, [0; 16]).unwrap();
        fs::create_dir(&contents).unwrap();
        fs::write(contents.join("2"), "ab").unwrap();
        fs::write(contents.join("c"), "cd").unwrap();
        fill(&device, &contents).unwrap();
        assert_eq!(fs::read(&device).unwrap(), b"\0\0ab\0\0\0\0\0\0\0\0cd\0\0");
        assert!(!contents.exists());
        fs::create_dir(&contents).unwrap();
        fs::write(contents.join("x"), "").unwrap();
        let error = fill(&device, &contents).unwrap_err().to_string();
        assert!(error.ends_with("/x: invalid data"), "{error}");
    }

    #[test]
    fn options_are_split_into_flags_and_the_file_systems_own() {
        let (given, own) = flags("defaults,noatime,dax=always,,nodev,logbufs=8");
        assert_eq!(given, MountFlags::NOATIME | MountFlags::NODEV);
        assert_eq!(own, "dax=always,logbufs=8");
        assert_eq!(flags(""), (MountFlags::empty(), String::new()));
    }

    #[test]
    fn a_failed_mount_names_everything() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("data").to_str().unwrap().to_owned();
        let wanted =
            Mount { filesystem: "nofs".into(), place: place.clone(), options: "noatime,x".into() };
        let error = put("/dev/null", &wanted).unwrap_err().to_string();
        let expected = format!("/dev/null cannot be mounted on {place} as nofs with noatime,x (");
        assert!(error.starts_with(&expected), "{error}");
        let disk = Disk { mount: Some(wanted), ..disk(Identity::Name(String::new())) };
        let error = unmount_all(&[disk]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{place} cannot be unmounted (")), "{error}");
    }
}
