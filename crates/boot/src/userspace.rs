//! Makes the user space of guests whose workloads want packages: one image for each experiment.

use std::path::Path;

use flight::job::{self, Identity, Mount, USERSPACE_IMAGE_PATH};
use kernels::{Cache, Userspace};
use machine::disks::{ReadOnly, USERSPACE_SERIAL, handle};
use model::{DiskKind, Experiment, FileSystem, Format, MAX_DISKS, Mode};

use crate::disks::{self, mkfs};

/// The device's name in the guest. The kernel's own name for the device varies.
const DEVICE: &str = "/dev/userspace";
/// Options for the image's file system. It is never written to, so it needs no journal. The options
/// replace the defaults of the host's mke2fs.conf(5). Inode tables take a sixteenth of the image,
/// but they are holes (`kernels::Cache::userspace`).
const MKFS: &[&str] = &[
    "-b",
    "4096",
    "-i",
    "8192",
    "-I",
    "256",
    "-m",
    "0",
    "-O",
    "none,dir_index,extent,extra_isize,filetype,huge_file,large_file,sparse_super,uninit_bg",
    "-E",
    "lazy_itable_init=1,nodiscard",
];
/// The seed of the image's file system. No disk of a machine has this seed.
const SEED: usize = MAX_DISKS + 1;

/// Returns the image of the packages that an experiment's workloads want, and checks it; `None` if
/// they want none. Uses the image that the experiment had before if the cache still has it.
/// Otherwise makes an image: of the packages in the experiment's lock, or without a lock of the
/// packages that the names now resolve to. `library` makes mkfs give the same result each time.
/// Fails when the packages are not available, or the image cannot be made or is damaged.
pub fn obtain(
    experiment: &Experiment,
    cache: &Cache,
    library: &Path,
    say: &dyn Fn(&str),
) -> Result<Option<Userspace>, kernels::Error> {
    let wanted: Vec<String> = experiment.packages().into_iter().map(str::to_owned).collect();
    if wanted.is_empty() {
        return Ok(None);
    }
    let digest = &experiment.userspace_digest;
    let mkfs = mkfs_with(library);
    let earlier = match digest.is_empty() {
        true => None,
        false => cache.userspace_of_digest(digest)?,
    };
    let image = match (earlier, &experiment.userspace) {
        (Some(image), _) => image,
        (None, Some(lock)) => cache.userspace_of_lock(lock, &mkfs, say)?,
        (None, None) => cache.userspace(&wanted, &mkfs, say)?,
    };
    image.check()?;
    Ok(Some(image))
}

/// Returns a function that makes the file system of an image, with this library.
pub fn mkfs_with(library: &Path) -> impl Fn(&Path, &Path) -> Result<(), String> {
    move |tree, image| make(tree, image, library)
}

/// Makes a file system with the files below `tree` in an image. The error is a message.
fn make(tree: &Path, image: &Path, library: &Path) -> Result<(), String> {
    let tree = tree.to_str().ok_or("the path of its directory is not UTF-8")?;
    let words = MKFS.iter().copied().chain(["-d", tree]).map(str::to_owned);
    let format = Format {
        filesystem: FileSystem::Ext4,
        mkfs: words.collect(),
        mount: String::new(),
        options: String::new(),
        digest: None,
    };
    mkfs::make(&format, SEED, image, library).map_err(|error| error.to_string())
}

/// Describes the image for the machine.
pub(crate) fn of_machine(userspace: &Userspace) -> ReadOnly<'_> {
    ReadOnly { image: &userspace.image, size: userspace.size }
}

/// Describes the image for the agent. In exact mode it is the memory device after those of the
/// disks; otherwise the guest finds it by its serial number.
pub(crate) fn of_job(userspace: &Userspace, experiment: &Experiment) -> job::Disk {
    job::Disk {
        identity: match experiment.mode {
            Mode::Exact => Identity::Handle(handle(experiment.machine.disks.len())),
            Mode::Measured => Identity::Serial(USERSPACE_SERIAL.into()),
        },
        drivers: disks::drivers(kind(experiment.mode)),
        size: userspace.size,
        device: DEVICE.into(),
        contents: None,
        mount: Some(Mount {
            filesystem: FileSystem::Ext4.name().into(),
            place: USERSPACE_IMAGE_PATH.into(),
            options: "ro".into(),
        }),
    }
}

/// Returns the modules that drive the image's device and its file system.
pub fn modules(mode: Mode) -> Vec<&'static str> {
    [kind(mode).modules(), &[FileSystem::Ext4.name()]].concat()
}

fn kind(mode: Mode) -> DiskKind {
    match mode {
        Mode::Exact => DiskKind::Pmem,
        Mode::Measured => DiskKind::VirtioBlk,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;
    use crate::disks::mkfs::tests::any_library;
    use crate::guest::Guest;

    #[test]
    fn an_image_has_the_files_of_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        let (tree, image) = (directory.path().join("tree"), directory.path().join("image"));
        fs::create_dir_all(tree.join("usr/bin")).unwrap();
        fs::write(tree.join("usr/bin/fio"), "a program").unwrap();
        fs::File::create(&image).unwrap().set_len(8 << 20).unwrap();
        make(&tree, &image, &any_library()).unwrap();
        let debugfs = Command::new("/usr/sbin/debugfs")
            .args(["-R", "cat /usr/bin/fio"])
            .arg(&image)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&debugfs.stdout), "a program");
        let check = Command::new("/usr/sbin/e2fsck").args(["-f", "-n"]).arg(&image).output();
        let check = check.unwrap();
        assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
    }

    #[test]
    #[ignore = "fetches 20 MB from deb.debian.org: `make check-long` runs it"]
    fn a_lock_makes_the_same_image_in_any_cache() {
        let library = Guest::find().expect("`make check-long` builds and names it").mkfs;
        // These two file systems list directories in different orders.
        let directories = [tempfile::tempdir(), tempfile::tempdir_in("/dev/shm")];
        let [one, other] = directories.each_ref().map(|it| Cache::at(it.as_ref().unwrap().path()));
        let (mkfs, say) = (mkfs_with(&library), |line: &str| eprintln!("{line}"));
        let made = one.userspace(&["dash".to_owned()], &mkfs, &say).unwrap();
        let text = plan::file::lock::write(made.lock.as_ref().unwrap());
        let lock = plan::file::lock::read(&text).unwrap();
        let again = other.userspace_of_lock(&lock, &mkfs, &say).unwrap();
        assert_eq!(again.digest, made.digest);
        assert!(fs::read(&again.image).unwrap() == fs::read(&made.image).unwrap());
    }

    #[test]
    fn an_image_without_room_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let (tree, image) = (directory.path().join("tree"), directory.path().join("image"));
        fs::create_dir_all(&tree).unwrap();
        fs::write(tree.join("large"), vec![b'x'; 8 << 20]).unwrap();
        fs::File::create(&image).unwrap().set_len(4 << 20).unwrap();
        let error = make(&tree, &image, &any_library()).unwrap_err();
        assert!(error.starts_with("mkfs.ext4 failed: "), "{error}");
    }
}
