//! Makes an initramfs: an archive in cpio's "newc" format
//! (`Documentation/driver-api/early-userspace/buffer-format.rst`). It is reproducible: the same calls give
//! the same bytes, which do not depend on the host or the time.

use std::collections::BTreeSet;

const DIRECTORY: u32 = 0o040_755;
const FILE: u32 = 0o100_644;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_777;
const CONSOLE: u32 = 0o020_600;
/// The device numbers of `/dev/console` (`Documentation/admin-guide/devices.txt`).
const CONSOLE_NUMBERS: (u32, u32) = (5, 1);
/// The archive is padded to a multiple of this, as cpio does.
const BLOCK: usize = 512;

/// An archive under construction. Paths are absolute paths in the guest; parent directories are added
/// automatically.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    directories: BTreeSet<String>,
    entries: u32,
}

impl Archive {
    /// An empty archive.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a directory, unless it exists.
    pub fn directory(&mut self, path: &str) {
        let path = path.trim_matches('/');
        if path.is_empty() || !self.directories.insert(path.to_owned()) {
            return;
        }
        self.parent(path);
        self.entry(path, DIRECTORY, (0, 0), &[]);
    }

    /// Adds a file that everyone can read.
    ///
    /// # Panics
    /// When it has 4 GiB or more, which the format does not support.
    pub fn file(&mut self, path: &str, data: &[u8]) {
        self.leaf(path, FILE, (0, 0), data);
    }

    /// Adds an executable file.
    ///
    /// # Panics
    /// When it has 4 GiB or more, which the format does not support.
    pub fn program(&mut self, path: &str, data: &[u8]) {
        self.leaf(path, PROGRAM, (0, 0), data);
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &str, target: &str) {
        self.leaf(path, LINK, (0, 0), target.as_bytes());
    }

    /// Adds `/dev/console`. Without it the kernel starts PID 1 with no open files.
    pub fn console(&mut self) {
        self.leaf("/dev/console", CONSOLE, CONSOLE_NUMBERS, &[]);
    }

    /// The finished archive, uncompressed.
    pub fn finish(mut self) -> Vec<u8> {
        self.entries = 0; // the trailer's inode number is always 0
        self.header("TRAILER!!!", 0, (0, 0), 0);
        self.bytes.resize(self.bytes.len().next_multiple_of(BLOCK), 0);
        self.bytes
    }

    fn leaf(&mut self, path: &str, mode: u32, device: (u32, u32), data: &[u8]) {
        let path = path.trim_matches('/');
        self.parent(path);
        self.entry(path, mode, device, data);
    }

    fn parent(&mut self, path: &str) {
        if let Some((parent, _)) = path.rsplit_once('/') {
            self.directory(parent);
        }
    }

    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), data: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(data.len()).expect("documented under Panics");
        self.header(path, mode, device, size);
        self.bytes.extend(data);
        self.align();
    }

    fn header(&mut self, path: &str, mode: u32, (major, minor): (u32, u32), size: u32) {
        let links = if mode == DIRECTORY { 2 } else { 1 };
        let name_size = path.len() as u32 + 1;
        // Inode, mode, uid, gid, links, mtime, size, the file system's device numbers, those of
        // the device itself, length of the name, checksum (unused).
        let fields = [self.entries, mode, 0, 0, links, 0, size, 0, 0, major, minor, name_size, 0];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08X}").bytes());
        }
        self.bytes.extend(path.bytes());
        self.bytes.push(0);
        self.align();
    }

    /// Headers and data begin at multiples of 4.
    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Path, header fields and data of one entry.
    type Entry = (String, Vec<u32>, Vec<u8>);

    /// A strict reader of the format.
    fn read(mut archive: &[u8]) -> Vec<Entry> {
        let mut entries = Vec::new();
        assert!(archive.len().is_multiple_of(BLOCK));
        loop {
            let (header, rest) = archive.split_at(110);
            assert_eq!(&header[..6], b"070701");
            let number = |digits| u32::from_str_radix(str::from_utf8(digits).unwrap(), 16).unwrap();
            let fields: Vec<u32> = header[6..].chunks(8).map(number).collect();
            let (size, name_size) = (fields[6] as usize, fields[11] as usize);
            let name = str::from_utf8(&rest[..name_size - 1]).unwrap().to_owned();
            assert_eq!(rest[name_size - 1], 0);
            if name == "TRAILER!!!" {
                return entries;
            }
            let data = &rest[(110 + name_size).next_multiple_of(4) - 110..];
            entries.push((name, fields, data[..size].to_vec()));
            archive = &data[size.next_multiple_of(4)..];
        }
    }

    fn sample() -> Vec<u8> {
        let mut archive = Archive::new();
        archive.directory("/dev");
        archive.console();
        archive.program("/init", b"#!/bin/sh\n");
        archive.file("/lib/modules/one.ko", &[7; 5]);
        archive.file("/lib/modules/two.ko", &[]);
        archive.directory("/lib");
        archive.link("/lib64", "lib");
        archive.finish()
    }

    #[test]
    fn files_are_read_back() {
        let entries = read(&sample());
        let listed: Vec<_> = entries
            .iter()
            .map(|(path, fields, data)| (path.as_str(), fields[1], data.len()))
            .collect();
        let expected = [
            ("dev", DIRECTORY, 0),
            ("dev/console", CONSOLE, 0),
            ("init", PROGRAM, 10),
            ("lib", DIRECTORY, 0),
            ("lib/modules", DIRECTORY, 0),
            ("lib/modules/one.ko", FILE, 5),
            ("lib/modules/two.ko", FILE, 0),
            ("lib64", LINK, 3),
        ];
        assert_eq!(listed, expected);
        assert_eq!(entries[1].1[9..11], [5, 1]);
        assert_eq!(entries[5].2, [7; 5]);
    }

    #[test]
    fn the_bytes_depend_only_on_the_calls() {
        assert_eq!(sample(), sample());
        for (number, (path, fields, _)) in (1..).zip(read(&sample())) {
            assert_eq!((fields[0], fields[5]), (number, 0), "inode and mtime of {path}");
        }
    }
}
