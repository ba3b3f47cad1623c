//! Files for workloads to read, copy and truncate.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use guest::caches;

use super::random::Random;
use super::{Result, While};

/// Bytes written or read at a time, by default.
pub const BLOCK: usize = 1 << 20;

/// Makes a file of `bytes` bytes of incompressible data, always the same. When this returns, the file is on the disk.
pub fn create(path: &Path, bytes: u64) -> io::Result<()> {
    let mut file = File::create(path)?;
    let mut random = Random(0);
    let mut block = vec![0; BLOCK];
    let mut left = bytes;
    while left > 0 {
        block
            .chunks_exact_mut(8)
            .for_each(|word| word.copy_from_slice(&random.next().to_le_bytes()));
        let part = left.min(BLOCK as u64) as usize;
        file.write_all(&block[..part])?;
        left -= part as u64;
    }
    file.sync_all()
}

/// Reads the rest of a file, `block` bytes at a time, and returns its length.
pub fn read_all(mut file: File, block: usize) -> io::Result<u64> {
    let mut buffer = vec![0; block];
    let mut total = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(total),
            Ok(bytes) => total += bytes as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Writes all dirty data back and drops all clean caches.
pub fn drop_caches() -> Result<()> {
    caches::drop_caches().while_(caches::DROP_CACHES)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_has_its_size_and_is_read_completely() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        for bytes in [0, 1, BLOCK as u64 + 17] {
            create(&path, bytes).unwrap();
            assert_eq!(read_all(File::open(&path).unwrap(), 4096).unwrap(), bytes);
        }
        let bytes = fs::read(&path).unwrap();
        assert_ne!(bytes[..64], bytes[64..128]);
    }
}
