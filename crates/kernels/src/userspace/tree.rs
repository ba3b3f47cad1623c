//! Turns the files of unpacked packages into a root file system for programs.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use model::{Bytes, DISK_UNIT};

use crate::Error;
use crate::error::Doing;

/// Directories that are merged into those of the same name in `/usr` (file-hierarchy(7)). Programs are
/// searched under either name.
const MERGED: [&str; 4] = ["bin", "lib", "lib64", "sbin"];
/// Directories of `/usr/share` with documentation and translations, which are removed. Programs in guests use
/// English.
const FOR_PEOPLE: [&str; 7] = ["bug", "doc", "i18n", "info", "lintian", "locale", "man"];
/// Accounts: root, nobody, and those that services require.
const ACCOUNTS: [(&str, u32, &str); 3] =
    [("root", 0, "/root"), ("nobody", 65534, "/nonexistent"), ("postgres", 999, "/tmp")];
/// Block size of the file system.
const BLOCK: u64 = 4096;

/// Makes a root file system of packages.
pub fn settle(tree: &Path) -> Result<(), Error> {
    let usr = tree.join("usr");
    make_directory(&usr)?;
    for name in MERGED {
        let (from, to) = (tree.join(name), usr.join(name));
        make_directory(&to)?;
        if from.is_dir() && !from.is_symlink() {
            merge(&from, &to)?;
        }
        if !from.is_symlink() {
            symlink(Path::new("usr").join(name), &from).doing("create", &from)?;
        }
    }
    for name in FOR_PEOPLE {
        let directory = usr.join("share").join(name);
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            result => result.doing("remove", &directory)?,
        }
    }
    accounts(&tree.join("etc"))?;
    for name in ["var", "var/tmp"] {
        make_directory(&tree.join(name))?;
    }
    remove_empty(tree)
}

/// Moves the contents of one directory into another, whose own files have precedence.
fn merge(from: &Path, to: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(from).doing("list", from)? {
        let path = entry.doing("list", from)?.path();
        let place = to.join(path.file_name().unwrap_or_default());
        let is_directory = |path: &Path| path.is_dir() && !path.is_symlink();
        if is_directory(&path) && is_directory(&place) {
            merge(&path, &place)?;
        } else if place.symlink_metadata().is_ok() {
            // Both names were meant to be one file, so either can be removed.
            fs::remove_file(&path).doing("remove", &path)?;
        } else {
            fs::rename(&path, &place).doing("move", &path)?;
        }
    }
    fs::remove_dir(from).doing("remove", from)
}

fn accounts(etc: &Path) -> Result<(), Error> {
    make_directory(etc)?;
    let users = ACCOUNTS.map(|(name, id, home)| format!("{name}:x:{id}:{id}::{home}:/bin/sh\n"));
    let groups = ACCOUNTS.map(|(name, id, _)| format!("{name}:x:{id}:\n"));
    for (name, text) in [("passwd", users.concat()), ("group", groups.concat())] {
        let path = etc.join(name);
        fs::write(&path, text).doing("write", &path)?;
        fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).doing("write", &path)?;
    }
    Ok(())
}

/// Creates a directory that everyone can read, independent of the user's umask.
fn make_directory(path: &Path) -> Result<(), Error> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        result => result.doing("create", path)?,
    }
    fs::set_permissions(path, PermissionsExt::from_mode(0o755)).doing("write", path)
}

/// Removes empty directories directly below the root. They are mount points.
fn remove_empty(tree: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(tree).doing("list", tree)? {
        let path = entry.doing("list", tree)?.path();
        if path.is_symlink() {
            continue;
        }
        match fs::remove_dir(&path) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
            result => result.doing("remove", &path)?,
        }
    }
    fs::set_permissions(tree, PermissionsExt::from_mode(0o755)).doing("write", tree)
}

/// The size of an ext4 image for all files, a multiple of the unit of disks. A sixteenth is for the inode
/// tables, with one inode for each 8 KiB.
pub fn size(tree: &Path) -> Result<Bytes, Error> {
    let bytes = blocks(tree).doing("read", tree)? * BLOCK;
    let bytes = bytes + bytes / 16 + (4 << 20);
    Ok(Bytes(bytes.next_multiple_of(DISK_UNIT.0)))
}

/// The blocks of all files, plus one for each for a block map or the target of a long link.
fn blocks(path: &Path) -> io::Result<u64> {
    let found = path.symlink_metadata()?;
    let mut sum = found.len().max(1).div_ceil(BLOCK) + 1;
    if found.is_dir() {
        for entry in fs::read_dir(path)? {
            sum += blocks(&entry?.path())?;
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn packages_become_a_root_file_system() {
        let directory = tempfile::tempdir().unwrap();
        let tree = directory.path();
        write(&tree.join("lib/x86_64-linux-gnu/libc.so.6"), "c");
        write(&tree.join("usr/lib/x86_64-linux-gnu/libaio.so.1"), "aio");
        write(&tree.join("usr/bin/fio"), "fio");
        write(&tree.join("bin/dash"), "dash");
        symlink("dash", tree.join("bin/sh")).unwrap();
        write(&tree.join("usr/share/doc/fio/README"), "much");
        write(&tree.join("usr/share/zoneinfo/UTC"), "zone");
        fs::create_dir_all(tree.join("home")).unwrap();
        settle(tree).unwrap();
        let read = |path: &str| fs::read_to_string(tree.join(path)).unwrap();
        assert_eq!(read("usr/lib/x86_64-linux-gnu/libc.so.6"), "c");
        assert_eq!(read("lib/x86_64-linux-gnu/libaio.so.1"), "aio");
        assert_eq!(read("bin/fio") + &read("bin/sh"), "fiodash");
        assert_eq!(read("usr/share/zoneinfo/UTC"), "zone");
        assert!(read("etc/passwd").contains("postgres:x:999:999:"));
        for gone in ["usr/share/doc", "home"] {
            assert!(!tree.join(gone).exists(), "{gone}");
        }
        assert!(tree.join("var/tmp").is_dir() && tree.join("lib64").is_symlink());
        // A second call changes nothing.
        settle(tree).unwrap();
        assert_eq!(read("lib/x86_64-linux-gnu/libc.so.6"), "c");
    }

    #[test]
    fn a_file_with_two_names_remains_one_file() {
        let directory = tempfile::tempdir().unwrap();
        let tree = directory.path();
        write(&tree.join("usr/bin/true"), "true");
        fs::create_dir_all(tree.join("bin")).unwrap();
        symlink("/usr/bin/true", tree.join("bin/true")).unwrap();
        settle(tree).unwrap();
        assert_eq!(fs::read_to_string(tree.join("bin/true")).unwrap(), "true");
    }

    #[test]
    fn the_size_is_large_enough() {
        let directory = tempfile::tempdir().unwrap();
        let empty = size(directory.path()).unwrap();
        assert_eq!(empty, Bytes(6 << 20));
        write(&directory.path().join("file"), &"x".repeat(5 << 20));
        for number in 0..1024 {
            write(&directory.path().join(number.to_string()), "");
        }
        assert!(size(directory.path()).unwrap().0 >= (4 << 20) + (5 << 20) + 1024 * 2 * BLOCK);
    }
}
