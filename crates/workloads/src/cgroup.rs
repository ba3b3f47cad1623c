//! A memory cgroup (`Documentation/admin-guide/cgroup-v2.rst`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, mount};

use super::{Result, While, WorkloadError};

/// Where the hierarchy is mounted.
const ROOT: &str = "/tmp/cgroup";

/// A memory cgroup below the root. It is removed when this is dropped, if it has no processes then.
pub struct Memcg(PathBuf);

impl Memcg {
    /// Makes a cgroup. Fails if the kernel has no memory cgroups of version 2.
    pub fn new(name: &str) -> Result<Self> {
        let root = Path::new(ROOT);
        if !root.join("cgroup.procs").exists() {
            fs::create_dir_all(root).while_(ROOT)?;
            let mounted = mount("cgroup2", root, "cgroup2", MountFlags::empty(), None);
            mounted.map_err(io::Error::from).while_("mounting cgroup2")?;
        }
        let control = "enabling the memory controller of cgroups";
        fs::write(root.join("cgroup.subtree_control"), "+memory").while_(control)?;
        let path = root.join(name);
        fs::create_dir_all(&path).while_(path.display().to_string())?;
        Ok(Self(path))
    }

    /// Makes a cgroup that may have `bytes` bytes.
    pub fn limited(name: &str, bytes: u64) -> Result<Self> {
        let memcg = Self::new(name)?;
        memcg.set("memory.max", &bytes.to_string())?;
        Ok(memcg)
    }

    /// Moves this process into the cgroup.
    pub fn join(&self) -> Result<()> {
        self.set("cgroup.procs", "0")
    }

    /// Moves this process back to the root.
    pub fn leave(&self) -> Result<()> {
        let file = Path::new(ROOT).join("cgroup.procs");
        fs::write(&file, "0").while_(file.display().to_string())
    }

    fn set(&self, file: &str, value: &str) -> Result<()> {
        fs::write(self.0.join(file), value).while_(file)
    }

    /// Asks the kernel to reclaim `bytes` bytes of the cgroup (`memory.reclaim`). Returns whether that much was
    /// reclaimed. Fails if the kernel is older than Linux 5.19.
    pub fn reclaim(&self, bytes: u64) -> Result<bool> {
        let file = self.0.join("memory.reclaim");
        if !file.exists() {
            let why = "this kernel has no memory.reclaim, which came with Linux 5.19";
            return Err(WorkloadError::Unsupported(why));
        }
        match fs::write(file, bytes.to_string()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            written => written.while_("memory.reclaim").map(|()| true),
        }
    }

    /// The number of bytes that are charged to the cgroup (`memory.current`).
    pub fn current(&self) -> Result<u64> {
        let text = fs::read_to_string(self.0.join("memory.current")).while_("memory.current")?;
        text.trim().parse().map_err(io::Error::other).while_("memory.current")
    }

    /// A number of `memory.stat`. Fails if the kernel does not count it.
    pub fn stat(&self, name: &str) -> Result<u64> {
        self.number("memory.stat", name)
    }

    /// How often an event happened (`memory.events`). Fails if the kernel does not count it.
    pub fn event(&self, name: &str) -> Result<u64> {
        self.number("memory.events", name)
    }

    fn number(&self, file: &str, name: &str) -> Result<u64> {
        let text = fs::read_to_string(self.0.join(file)).while_(file)?;
        let number = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
        let found = text.lines().find_map(number);
        found.ok_or_else(|| io::Error::other(format!("it has no {name}"))).while_(file)
    }
}

impl Drop for Memcg {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
