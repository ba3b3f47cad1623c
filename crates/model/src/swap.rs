//! The swap space of a machine.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Bytes;

/// The swap space of a machine, created for each boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Swap {
    /// A file on the file system of a disk.
    File {
        /// The disk's number.
        disk: usize,
        /// The size of the file.
        size: Bytes,
    },
    /// A whole raw disk.
    Disk {
        /// The disk's number.
        disk: usize,
    },
    /// Compressed swap in the machine's memory (`Documentation/admin-guide/blockdev/zram.rst`).
    Zram {
        /// Its capacity before compression.
        size: Bytes,
        /// The kernel's name of the compression algorithm, such as `lz4`; empty for the kernel's default.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        algorithm: String,
    },
}

impl Swap {
    /// The number of the raw disk that it uses, if any.
    pub fn taken(&self) -> Option<usize> {
        match self {
            Self::Disk { disk } => Some(*disk),
            Self::File { .. } | Self::Zram { .. } => None,
        }
    }
}

/// As printed: `file of 1G on disk 0`, `disk 1`, `zram 1G (lz4)`.
impl fmt::Display for Swap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { disk, size } => write!(f, "file of {size} on disk {disk}"),
            Self::Disk { disk } => write!(f, "disk {disk}"),
            Self::Zram { size, algorithm } if algorithm.is_empty() => write!(f, "zram {size}"),
            Self::Zram { size, algorithm } => write!(f, "zram {size} ({algorithm})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swap_reads_as_it_is() {
        let size = Bytes::mib(1024);
        let algorithm = "lz4".to_owned();
        for (swap, text) in [
            (Swap::File { disk: 2, size }, "file of 1G on disk 2"),
            (Swap::Disk { disk: 1 }, "disk 1"),
            (Swap::Zram { size, algorithm }, "zram 1G (lz4)"),
            (Swap::Zram { size, algorithm: String::new() }, "zram 1G"),
        ] {
            assert_eq!(swap.to_string(), text);
        }
    }
}
