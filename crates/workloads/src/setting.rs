//! Kernel settings that a workload changes for a while, such as those of transparent huge pages.

use std::fs;
use std::path::{Path, PathBuf};

use guest::chosen;

use super::{Result, While};

/// A file with a changed value. The former value is restored when this is dropped.
#[derive(Debug)]
pub struct Setting {
    path: PathBuf,
    former: String,
}

impl Setting {
    /// Writes a value. Fails if the kernel has no such file or rejects the value.
    pub fn new(path: impl AsRef<Path>, value: &str) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let name = path.display().to_string();
        let former = fs::read_to_string(&path).while_(&name)?;
        fs::write(&path, value).while_(name)?;
        Ok(Self { path, former: chosen(&former).to_owned() })
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        let _ = fs::write(&self.path, &self.former);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gets_its_former_value_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("enabled");
        fs::write(&path, "always [madvise] never\n").unwrap();
        let setting = Setting::new(&path, "never").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "never");
        drop(setting);
        assert_eq!(fs::read_to_string(&path).unwrap(), "madvise");
        assert_eq!(chosen("0x0007\n"), "0x0007");
        assert!(Setting::new(directory.path().join("none"), "1").is_err());
    }
}
