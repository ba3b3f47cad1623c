//! Tests that two runs of a mkfs program write the same bytes.

use std::fs::{self, File};
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// mkfs.xfs needs at least 300 MiB.
const SIZE: u64 = 320 << 20;
const BLOCK: [u8; 4096] = [0; 4096];

/// The path of the library, which is above the directory of this test's program.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().unwrap().join("libstillmkfs.so");
    assert!(path.is_file(), "{}", path.display());
    path
}

/// The bytes that `program` writes to an empty disk.
fn made(program: &str, seed: u32) -> Vec<u8> {
    made_with(program, seed, &[])
}

/// The bytes that `program` writes with more words on the command line.
fn made_with(program: &str, seed: u32, words: &[&str]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    File::create(&image).unwrap().set_len(SIZE).unwrap();
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap());
    // Each run has its own parent process.
    let output = Command::new("sh")
        .args(["-c", "\"$@\"; exit $?", "sh", program, "-q"])
        .args(words)
        .arg(&image)
        .env("PATH", path)
        .env("LD_PRELOAD", library())
        .env("STILLMKFS_SEED", seed.to_string())
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}; `make deps` installs it"));
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    written(&image)
}

/// All blocks of a file that are not zero, each after its number.
fn written(image: &Path) -> Vec<u8> {
    let bytes = fs::read(image).unwrap();
    let blocks = (0u64..).zip(bytes.chunks(BLOCK.len()));
    let blocks = blocks.filter(|(_, block)| **block != BLOCK);
    blocks.flat_map(|(number, block)| [&number.to_le_bytes()[..], block].concat()).collect()
}

#[test]
fn file_systems_depend_only_on_the_seed() {
    for program in ["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"] {
        let first = made(program, 1);
        assert!(first.len() > 4096, "{program}");
        // Time stamps on disk are in seconds, so the second must change.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        assert!(made(program, 1) == first, "{program}");
        assert!(made(program, 2) != first, "{program}");
    }
}

/// Files with the same contents, created in this order, owned by another user if permitted.
fn tree(place: &Path, order: &[usize], owner: u32) {
    fs::create_dir_all(place.join("etc")).unwrap();
    for number in order {
        let path = place.join("etc").join(format!("file{number}"));
        fs::write(&path, format!("text {number}")).unwrap();
        // Most users are not permitted; the owner is the same then.
        let _ = chown(&path, Some(owner), Some(owner));
    }
    symlink("file1", place.join("etc/link")).unwrap();
}

#[test]
fn files_do_not_depend_on_owner_time_and_order() {
    let directory = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| directory.path().join(name));
    tree(&one, &(0..200).collect::<Vec<_>>(), 0);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    tree(&other, &(0..200).rev().collect::<Vec<_>>(), 12345);
    let made = |tree: &Path| made_with("mkfs.ext4", 1, &["-d", tree.to_str().unwrap()]);
    let first = made(&one);
    assert!(first == made(&other));
    fs::write(other.join("etc/file7"), "another").unwrap();
    assert!(first != made(&other));
}
