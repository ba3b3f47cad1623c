//! The disks of a machine, created and formatted for each boot.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Bytes;

/// The most disks that a machine can have.
pub const MAX_DISKS: usize = 16;
/// Disk sizes are a multiple of this: the kernel maps persistent memory in such units
/// (`include/linux/mmzone.h`, `SUBSECTION_SIZE`).
pub const DISK_UNIT: Bytes = Bytes::mib(2);

named! {
    /// The kind of device as which the guest sees a disk.
    pub enum DiskKind {
        /// A paravirtual disk. Host threads serve requests, with the host's timing.
        VirtioBlk = "virtio-blk",
        /// An NVMe drive, also served by host threads.
        Nvme = "nvme",
        /// Persistent memory, apart from the nodes' memory. Only the guest's own instructions access it.
        Pmem = "pmem",
        /// A disk in the guest's memory, by the kernel module `brd`.
        Ram = "ram",
    }
}

impl DiskKind {
    /// Whether host threads serve requests, so that their completion depends on the host.
    pub const fn is_asynchronous(self) -> bool {
        matches!(self, Self::VirtioBlk | Self::Nvme)
    }

    /// The kernel modules that drive a disk of this kind.
    pub const fn modules(self) -> &'static [&'static str] {
        match self {
            Self::VirtioBlk => &["virtio_pci", "virtio_blk"],
            Self::Nvme => &["nvme"],
            Self::Pmem => &["nd_pmem", "nfit"],
            Self::Ram => &["brd"],
        }
    }
}

named! {
    /// A file system that a disk can have.
    pub enum FileSystem {
        /// ext4(5)
        Ext4 = "ext4",
        /// xfs(5)
        Xfs = "xfs",
        /// btrfs(5)
        Btrfs = "btrfs",
    }
}

/// A file system on a disk, and its mount point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Format {
    /// The kind of file system.
    pub filesystem: FileSystem,
    /// Options for mkfs, one word each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mkfs: Vec<String>,
    /// The mount point in the guest.
    pub mount: String,
    /// Options for mount(2) as in fstab(5), separated by commas; empty for the defaults.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub options: String,
    /// SHA-256 of the freshly made file system, in hexadecimal, if every boot must have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// A disk of a machine. Its number is its index among the machine's disks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// The kind of device as which the guest sees it.
    pub kind: DiskKind,
    /// Its size, a multiple of 2 MiB. The file on the host is sparse.
    pub size: Bytes,
    /// The file system on it; `None` for a raw device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
}

impl Disk {
    /// The guest's name for disk `number`, independent of the kernel's name.
    pub fn device(number: usize) -> String {
        format!("/dev/disk{number}")
    }

    /// The path that a workload gets for disk `number`: the mount point, or the device of a raw disk.
    pub fn place(&self, number: usize) -> String {
        self.format.as_ref().map_or_else(|| Self::device(number), |format| format.mount.clone())
    }
}

/// As printed: `pmem 1G, ext4 (-O ^has_journal) on /mnt/data (noatime)`.
impl fmt::Display for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}, ", self.kind.name(), self.size)?;
        let Some(format) = &self.format else {
            return f.write_str("raw");
        };
        f.write_str(format.filesystem.name())?;
        if !format.mkfs.is_empty() {
            write!(f, " ({})", format.mkfs.join(" "))?;
        }
        write!(f, " on {}", format.mount)?;
        if !format.options.is_empty() {
            write!(f, " ({})", format.options)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_reads_as_it_is() {
        let format = Format {
            filesystem: FileSystem::Ext4,
            mkfs: vec!["-O".into(), "^has_journal".into()],
            mount: "/mnt/data".into(),
            options: "noatime".into(),
            digest: None,
        };
        let mut disk = Disk { kind: DiskKind::Pmem, size: Bytes::mib(1024), format: Some(format) };
        let text = "pmem 1G, ext4 (-O ^has_journal) on /mnt/data (noatime)";
        assert_eq!(disk.to_string(), text);
        assert_eq!(disk.place(3), "/mnt/data");
        disk.format = None;
        assert_eq!(disk.to_string(), "pmem 1G, raw");
        assert_eq!(disk.place(3), "/dev/disk3");
    }
}
