//! Maps the memory shared with the host: QEMU's ivshmem-plain, a PCI device whose second resource is the
//! host's file (QEMU `docs/specs/ivshmem-spec.rst`). Mapping it needs no driver.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use flight::job::RECORDER_PCI;
use guest::reason;
use guest::words::Words;

/// Why there is no recorder.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// QEMU has no such device.
    #[error(
        "no PCI device {:04x}:{:04x} (ivshmem-plain): the machine has no flight recorder",
        RECORDER_PCI.0,
        RECORDER_PCI.1
    )]
    Absent,
    /// The device exists, but cannot be used.
    #[error("{path}: {}", reason(.error))]
    Unusable { path: PathBuf, error: io::Error },
}

/// Finds the device below `sys`, which is `/sys` except in tests, enables it and maps it. Fails when there is
/// no such device, or the kernel does not permit its use.
pub fn map(sys: &Path) -> Result<Words, DeviceError> {
    let device = find(&sys.join("bus/pci/devices")).ok_or(DeviceError::Absent)?;
    // Without a driver, nothing else enables the device's memory.
    let enable = device.join("enable");
    fs::write(&enable, "1").map_err(|error| DeviceError::Unusable { path: enable, error })?;
    let path = device.join("resource2");
    let file = OpenOptions::new().read(true).write(true).open(&path);
    let mapped = file.and_then(|file| Words::shared(&file));
    mapped.map_err(|error| DeviceError::Unusable { path, error })
}

fn find(devices: &Path) -> Option<PathBuf> {
    let mut devices: Vec<_> =
        fs::read_dir(devices).ok()?.flatten().map(|entry| entry.path()).collect();
    devices.sort_unstable();
    let identity =
        |device: &PathBuf| Some((id(&device.join("vendor"))?, id(&device.join("device"))?));
    devices.into_iter().find(|device| identity(device) == Some(RECORDER_PCI))
}

/// A number as sysfs prints it: `0x1af4`.
fn id(path: &Path) -> Option<u16> {
    u16::from_str_radix(fs::read_to_string(path).ok()?.trim().strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(sys: &Path, name: &str, files: &[(&str, &str)]) {
        let directory = sys.join("bus/pci/devices").join(name);
        fs::create_dir_all(&directory).unwrap();
        for (file, text) in files {
            fs::write(directory.join(file), text).unwrap();
        }
    }

    #[test]
    fn the_device_is_found_and_enabled() {
        let sys = tempfile::tempdir().unwrap();
        device(sys.path(), "0000:00:01.0", &[("vendor", "0x1af4\n"), ("device", "0x1000\n")]);
        let memory = "\0".repeat(4096);
        let files = [
            ("vendor", "0x1af4\n"),
            ("device", "0x1110\n"),
            ("enable", "0\n"),
            ("resource2", &memory),
        ];
        device(sys.path(), "0000:00:02.0", &files);
        assert_eq!(map(sys.path()).unwrap().len(), 512);
        let enable = sys.path().join("bus/pci/devices/0000:00:02.0/enable");
        assert_eq!(fs::read_to_string(enable).unwrap(), "1");
    }

    #[test]
    fn a_missing_device_or_file_is_named() {
        let sys = tempfile::tempdir().unwrap();
        let error = map(sys.path()).err().unwrap().to_string();
        assert!(error.contains("1af4:1110"), "{error}");
        device(sys.path(), "0000:00:02.0", &[("vendor", "0x1af4\n"), ("device", "0x1110\n")]);
        let error = map(sys.path()).err().unwrap().to_string();
        assert!(error.ends_with("resource2: No such file or directory"), "{error}");
    }
}
