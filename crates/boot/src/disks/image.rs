//! Reads the contents of an image, which is a sparse file. Blocks of zeros are skipped, whether or
//! not they are holes.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::SeekFrom;
use rustix::io::Errno;
use sha2::{Digest, Sha256};

/// The size of the blocks in which images are read, in bytes.
const BLOCK: usize = 4096;

/// The extents of an image, each with its offset in bytes.
pub type Extents = Vec<(u64, Vec<u8>)>;

/// Returns the SHA-256 of an image in hexadecimal. It covers the image's length, and the offset and
/// contents of each block that is not zero. Fails when the image cannot be read.
pub fn digest(image: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    hash.update(fs::metadata(image)?.len().to_le_bytes());
    each_block(image, |offset, block| {
        hash.update(offset.to_le_bytes());
        hash.update(block);
    })?;
    Ok(format!("{:x}", hash.finalize()))
}

/// Reads all blocks of an image that are not zero. `None` if they exceed `limit` bytes. Fails when
/// the image cannot be read.
pub fn extents(image: &Path, limit: u64) -> io::Result<Option<Extents>> {
    let mut extents = Extents::new();
    let mut length = 0;
    each_block(image, |offset, block| {
        length += block.len() as u64;
        if length > limit {
            return;
        }
        match extents.last_mut() {
            Some((start, bytes)) if *start + bytes.len() as u64 == offset => bytes.extend(block),
            _ => extents.push((offset, block.to_vec())),
        }
    })?;
    Ok((length <= limit).then_some(extents))
}

/// Passes each block of a file that is not zero to `sink`, with its offset. Skips holes (lseek(2),
/// `SEEK_DATA`).
fn each_block(path: &Path, mut sink: impl FnMut(u64, &[u8])) -> io::Result<()> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut block = [0; BLOCK];
    let mut offset = 0;
    loop {
        let data = match rustix::fs::seek(&file, SeekFrom::Data(offset)) {
            Err(Errno::NXIO) => return Ok(()),
            data => data?,
        };
        let hole = rustix::fs::seek(&file, SeekFrom::Hole(data))?;
        offset = data - data % BLOCK as u64;
        while offset < hole {
            let part = (length - offset).min(BLOCK as u64) as usize;
            file.read_exact_at(&mut block[..part], offset)?;
            if block[..part].iter().any(|byte| *byte != 0) {
                sink(offset, &block[..part]);
            }
            offset += BLOCK as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: u64 = 1 << 20;

    #[test]
    fn holes_and_zeros_do_not_count() {
        let directory = tempfile::tempdir().unwrap();
        let [holes, zeros] = ["holes", "zeros"].map(|name| directory.path().join(name));
        File::create(&holes).unwrap().set_len(LENGTH).unwrap();
        fs::write(&zeros, vec![0; LENGTH as usize]).unwrap();
        let write = |path: &Path, offset, bytes: &[u8]| {
            let file = File::options().write(true).open(path).unwrap();
            file.write_all_at(bytes, offset).unwrap();
        };
        let same = || digest(&holes).unwrap() == digest(&zeros).unwrap();
        assert!(same());
        for path in [&holes, &zeros] {
            assert!(same() == (path == &holes));
            write(path, 4095, b"ab");
            write(path, LENGTH - 1, b"c");
        }
        assert!(same());
        let found = extents(&zeros, u64::MAX).unwrap().unwrap();
        let lengths: Vec<_> = found.iter().map(|(offset, bytes)| (*offset, bytes.len())).collect();
        assert_eq!(lengths, [(0, 8192), (LENGTH - 4096, 4096)]);
        assert_eq!((found[0].1[4095], found[0].1[4096], found[1].1[4095]), (b'a', b'b', b'c'));
        assert_eq!(extents(&holes, 3 * 4096).unwrap(), Some(found));
        assert_eq!(extents(&holes, 3 * 4096 - 1).unwrap(), None);
    }

    #[test]
    fn length_and_offset_count() {
        let image = tempfile::NamedTempFile::new().unwrap();
        let file = image.as_file();
        let mut digests = vec![digest(image.path()).unwrap()];
        let changes: [&dyn Fn(); 4] = [
            &|| file.set_len(LENGTH).unwrap(),
            &|| file.write_all_at(b"x", 0).unwrap(),
            &|| file.write_all_at(b"\0", 0).and_then(|()| file.write_all_at(b"x", 4096)).unwrap(),
            &|| file.set_len(LENGTH + 1).unwrap(),
        ];
        for change in changes {
            change();
            let digest = digest(image.path()).unwrap();
            assert!(!digests.contains(&digest));
            digests.push(digest);
        }
    }
}
