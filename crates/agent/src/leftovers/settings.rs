//! The kernel's settings: all of sysctl, and files of sysfs that set how it manages memory.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use guest::chosen;
use guest::settings::ACTIONS;

/// Directories whose files are settings, with everything below them.
const TREES: [&str; 8] = [
    "proc/sys",
    "sys/kernel/mm/hugepages",
    "sys/kernel/mm/ksm",
    "sys/kernel/mm/lru_gen",
    "sys/kernel/mm/numa",
    "sys/kernel/mm/swap",
    "sys/kernel/mm/transparent_hugepage",
    "sys/module/zswap/parameters",
];
/// The directory of CPUs. Each has a file that says whether it is online.
const CPUS: &str = "sys/devices/system/cpu";

/// The values of settings, by file.
pub struct Settings(BTreeMap<PathBuf, String>);

impl Settings {
    /// Reads the settings of this machine. `root` is `/` except in tests.
    pub fn read(root: &Path) -> Self {
        let mut paths = Vec::new();
        let mut directories: Vec<PathBuf> = TREES.iter().map(|tree| root.join(tree)).collect();
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => directories.push(entry.path()),
                    Ok(kind) if kind.is_file() => paths.push(entry.path()),
                    _ => {}
                }
            }
        }
        let cpus = fs::read_dir(root.join(CPUS)).into_iter().flatten().flatten();
        paths.extend(cpus.map(|entry| entry.path().join("online")));
        Self(paths.into_iter().filter_map(|path| Some((path.clone(), value(&path)?))).collect())
    }

    /// Gives each changed setting its former value. Returns what is left; from then on it counts as part of the
    /// state.
    pub fn restore(&mut self, root: &Path) -> Vec<String> {
        // A second round is needed because a setting can change another one: huge pages change vm.min_free_kbytes.
        for _ in 0..2 {
            for (path, _) in Self::read(root).changed(self) {
                // If this fails, the value below shows it.
                let _ = self.0.get(path).map(|former| fs::write(path, former));
            }
        }
        let now = Self::read(root);
        let left = now.changed(self).map(|(path, value)| format!("{} = {value}", path.display()));
        let left = left.collect();
        *self = now;
        left
    }

    /// The settings whose value differs from that in `before`.
    fn changed<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = (&'a PathBuf, &'a String)> {
        self.0.iter().filter(|(path, value)| before.0.get(*path).is_some_and(|it| it != *value))
    }
}

/// The value of a file, if it can be read and written.
fn value(path: &Path) -> Option<String> {
    let is_action = ACTIONS.iter().any(|name| path.ends_with(name));
    let mode = fs::metadata(path).ok()?.permissions().mode();
    (!is_action && mode & 0o600 == 0o600).then_some(())?;
    Some(chosen(&fs::read_to_string(path).ok()?).to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;

    #[test]
    fn changed_settings_get_their_former_values() {
        let root = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        };
        let thp = write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        let ratio = write("proc/sys/vm/lowmem_reserve_ratio", "256\t256\t32\n");
        let action = write("proc/sys/vm/drop_caches", "1\n");
        let counter = write("sys/kernel/mm/ksm/pages_shared", "0\n");
        fs::set_permissions(&counter, Permissions::from_mode(0o444)).unwrap();
        let cpu = write("sys/devices/system/cpu/cpu1/online", "1\n");
        let mut settings = Settings::read(root.path());
        assert_eq!(settings.0.len(), 3);
        fs::write(&thp, "[always] madvise never\n").unwrap();
        fs::write(&ratio, "1\t1\t1\n").unwrap();
        fs::write(&action, "3\n").unwrap();
        fs::write(&cpu, "0\n").unwrap();
        assert_eq!(settings.restore(root.path()), [""; 0]);
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        assert_eq!((read(&thp), read(&ratio)), ("madvise".into(), "256\t256\t32".into()));
        assert_eq!((read(&action), read(&cpu)), ("3\n".into(), "1".into()));
    }
}
