//! Removes cgroups of version 2, which outlive their mount.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// Where the hierarchy is mounted while cgroups are removed.
const PLACE: &str = "/faultline/cgroups";

/// Removes all cgroups below the root, and disables the controllers that the root has enabled. Returns what is left.
pub fn remove() -> Vec<String> {
    let place = Path::new(PLACE);
    let _ = fs::create_dir_all(place);
    // A kernel without cgroups has none to remove.
    if mount("cgroup2", place, "cgroup2", MountFlags::empty(), None).is_err() {
        return Vec::new();
    }
    let mut left = Vec::new();
    let all = below(place);
    let stuck = all.iter().rev().filter(|path| fs::remove_dir(path).is_err()).count();
    if stuck > 0 {
        left.push(format!("{stuck} cgroups that cannot be removed"));
    }
    let file = place.join("cgroup.subtree_control");
    let given = fs::read_to_string(&file).unwrap_or_default();
    for controller in given.split_whitespace() {
        let _ = fs::write(&file, format!("-{controller}"));
    }
    if given.split_whitespace().any(|controller| controller == "memory") {
        // The static key is never disabled again (`mm/memcontrol.c`, `memcg_online_kmem`).
        left.push("the kernel's accounting for memory cgroups, which stays enabled".to_owned());
    }
    let _ = unmount(place, UnmountFlags::DETACH);
    left
}

/// All cgroups below `place`, each before its children.
fn below(place: &Path) -> Vec<PathBuf> {
    let mut all = vec![place.to_owned()];
    let mut next = 0;
    while let Some(path) = all.get(next) {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let found: Vec<PathBuf> = directories.map(|entry| entry.path()).collect();
        all.extend(found);
        next += 1;
    }
    all.remove(0);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_come_after_their_parents() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b/c")).unwrap();
        fs::create_dir(root.path().join("a/d")).unwrap();
        fs::write(root.path().join("a/cgroup.procs"), "").unwrap();
        let all = below(root.path());
        assert_eq!(all.len(), 4);
        assert!(all.iter().rev().all(|path| path.ends_with("a") || fs::remove_dir(path).is_ok()));
    }
}
