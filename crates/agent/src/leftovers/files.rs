//! Removes files in memory that were not there before.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::mounts::Mounts;

/// The files on all file systems in memory, as device and inode numbers.
pub struct Known {
    places: Vec<PathBuf>,
    files: BTreeSet<(u64, u64)>,
}

impl Known {
    /// Reads the files on the mounted file systems in memory.
    pub fn in_memory(mounts: &Mounts) -> Self {
        let mut known = Self { places: mounts.in_memory(), files: BTreeSet::new() };
        let mut places = known.places.clone();
        while let Some(place) = places.pop() {
            let Ok(metadata) = fs::symlink_metadata(&place) else { continue };
            for entry in fs::read_dir(&place).into_iter().flatten().flatten() {
                known.files.insert((metadata.dev(), entry.ino()));
                if is_directory_on(metadata.dev(), &entry) {
                    places.push(entry.path());
                }
            }
        }
        known
    }

    /// Removes all other files on these file systems, as far as possible. Devices remain: the kernel made them.
    pub fn remove_others(&self, mounts: &Mounts) {
        let mut places: Vec<(PathBuf, bool)> = Vec::new();
        places.extend(self.places.iter().map(|place| (place.clone(), mounts.is_of_devices(place))));
        while let Some((place, of_devices)) = places.pop() {
            let Ok(metadata) = fs::symlink_metadata(&place) else { continue };
            for entry in fs::read_dir(&place).into_iter().flatten().flatten() {
                if self.files.contains(&(metadata.dev(), entry.ino())) {
                    if is_directory_on(metadata.dev(), &entry) {
                        places.push((entry.path(), of_devices));
                    }
                } else if !of_devices || entry.file_type().is_ok_and(|kind| kind.is_file()) {
                    remove(&entry.path());
                }
            }
        }
    }
}

/// Whether an entry is a directory on this device, and not a mount point of another device.
fn is_directory_on(device: u64, entry: &fs::DirEntry) -> bool {
    entry.metadata().is_ok_and(|it| it.is_dir() && it.dev() == device)
}

/// Removes a file or a directory. If that fails, the memory report shows what is left.
fn remove(path: &Path) {
    let is_directory = fs::symlink_metadata(path).is_ok_and(|it| it.is_dir());
    let _ = if is_directory { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_new_files_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        fs::create_dir_all(at("home/me")).unwrap();
        fs::write(at("home/me/test.sh"), "").unwrap();
        fs::create_dir(at("dev")).unwrap();
        let text = [("home", "tmpfs"), ("dev", "devtmpfs")].map(|(place, kind)| {
            format!("20 1 0:1 / {} rw - {kind} none rw\n", at(place).display())
        });
        let mounts = Mounts::parse(&text.concat());
        let known = Known::in_memory(&mounts);
        fs::create_dir_all(at("home/new/deep")).unwrap();
        fs::write(at("home/new/deep/file"), "").unwrap();
        fs::write(at("home/me/big"), "").unwrap();
        fs::rename(at("home/me/test.sh"), at("home/me/renamed")).unwrap();
        symlink("/", at("home/me/link")).unwrap();
        fs::write(at("dev/nul"), "").unwrap();
        fs::create_dir(at("dev/mapper")).unwrap();
        known.remove_others(&mounts);
        let names = |path: &str| {
            let entries = fs::read_dir(at(path)).unwrap().flatten();
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!((names("home"), names("home/me")), (vec!["me".into()], vec!["renamed".into()]));
        assert_eq!(names("dev"), ["mapper"]);
    }
}
