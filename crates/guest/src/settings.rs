//! Applies a variant's settings: sysctls, and files below `/sys`.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Component, Path};

use model::Setting;

use crate::reason;

/// Files that are not settings: reading or writing them does something, or the kernel changes them itself.
pub const ACTIONS: [&str; 5] =
    ["compact_memory", "drop_caches", "ns_last_pid", "stat_refresh", "tainted"];

/// A setting that could not be applied.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// The file does not exist.
    #[error("{name}: this kernel does not have it ({path}: {})", reason(.error))]
    Absent {
        /// The setting, such as `sysctl kernel.numa_balancing`.
        name: String,
        /// The file.
        path: String,
        /// The kernel's answer.
        error: io::Error,
    },
    /// The file exists and rejects the value.
    #[error("{name}: this kernel rejects `{value}` ({path}: {})", reason(.error))]
    Refused {
        /// The setting.
        name: String,
        /// The rejected value.
        value: String,
        /// The file.
        path: String,
        /// The kernel's answer.
        error: io::Error,
    },
    /// The name is not the name of a setting.
    #[error("{name}: this is neither a sysctl's name nor a path of a file below /sys")]
    Elsewhere {
        /// The setting.
        name: String,
    },
}

/// Applies one setting below `root`, which is `/` except in tests. Fails when this kernel does not have it or
/// rejects the value.
pub fn apply(root: &Path, setting: &Setting) -> Result<(), SettingError> {
    let path = setting.file();
    let (name, home, value) = match setting {
        Setting::Sysctl { name, value } => (format!("sysctl {name}"), "/proc/sys", value),
        Setting::Sysfs { path, value } => (format!("sysfs {path}"), "/sys", value),
    };
    let below = Path::new(&path).strip_prefix(home).ok();
    let Some(below) = below.filter(|path| is_plain(path)) else {
        return Err(SettingError::Elsewhere { name });
    };
    let file =
        OpenOptions::new().write(true).truncate(true).open(root.join(&home[1..]).join(below));
    let written = file.and_then(|mut file| file.write_all(format!("{value}\n").as_bytes()));
    written.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => SettingError::Absent { name, path, error },
        _ => SettingError::Refused { name, value: value.clone(), path, error },
    })
}

/// Whether a path has only plain components, no `..` or the like.
fn is_plain(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn apply_to(files: &[&str], setting: Setting) -> (tempfile::TempDir, Result<(), String>) {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let result = apply(root.path(), &setting).map_err(|error| error.to_string());
        (root, result)
    }

    fn sysctl(name: &str) -> Setting {
        Setting::Sysctl { name: name.into(), value: "0".into() }
    }

    fn sysfs(path: &str) -> Setting {
        Setting::Sysfs { path: path.into(), value: "never".into() }
    }

    #[test]
    fn values_are_written() {
        let (root, result) =
            apply_to(&["proc/sys/kernel/numa_balancing"], sysctl("kernel.numa_balancing"));
        assert_eq!(result, Ok(()));
        let file = root.path().join("proc/sys/kernel/numa_balancing");
        assert_eq!(fs::read_to_string(file).unwrap(), "0\n");
        let path = "sys/kernel/mm/transparent_hugepage/enabled";
        assert_eq!(apply_to(&[path], sysfs(&format!("/{path}"))).1, Ok(()));
        let (_root, result) = apply_to(&["proc/sys/net/a.b/c"], sysctl("net/a.b/c"));
        assert_eq!(result, Ok(()));
    }

    #[test]
    fn a_missing_setting_is_named() {
        let error = apply_to(&["proc/sys/kernel/x"], sysctl("kernel.numa_balncing")).1.unwrap_err();
        assert_eq!(
            error,
            "sysctl kernel.numa_balncing: this kernel does not have it \
             (/proc/sys/kernel/numa_balncing: No such file or directory)"
        );
    }

    #[test]
    fn a_rejected_value_is_named() {
        let error = apply_to(&["sys/kernel/mm/x"], sysfs("/sys/kernel/mm")).1.unwrap_err();
        assert_eq!(
            error,
            "sysfs /sys/kernel/mm: this kernel rejects `never` (/sys/kernel/mm: Is a directory)"
        );
    }

    #[test]
    fn other_files_are_not_written() {
        for setting in [
            sysfs("/etc/passwd"),
            sysfs("/proc/sys/kernel"),
            sysfs("/sys/../etc/passwd"),
            sysfs("sys/kernel"),
            sysctl("../../etc/passwd"),
            sysctl("/etc/passwd/.."),
        ] {
            let error = apply_to(&["etc/passwd"], setting).1.unwrap_err();
            assert!(error.contains("below /sys"), "{error}");
        }
    }
}
