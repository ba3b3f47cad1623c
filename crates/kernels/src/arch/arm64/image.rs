//! Reads images that arm64 machines boot: an `Image`, or one that gzip packed
//! (`Documentation/arch/arm64/booting.rst`).

use std::io;

use crate::compressed::Format;

/// The names of both in the cache.
pub(crate) const PLAIN: &str = "Image";
pub(crate) const PACKED: &str = "Image.gz";

/// Limit of an unpacked kernel's size.
const LIMIT: usize = 1 << 30;
const MAGIC: (usize, &[u8]) = (0x38, b"ARM\x64");
/// The magic number of an image that unpacks itself under EFI (`drivers/firmware/efi/libstub/zboot-header.S`).
const ZBOOT: (usize, &[u8]) = (0x04, b"zimg");
/// The offset of the flags. Big-endian kernels have the lowest bit set.
const FLAGS: usize = 0x18;

/// Why a file is no image that can be booted here.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No header.
    #[error("it is not an arm64 Image: there is no header of one")]
    NotImage,
    /// It needs EFI.
    #[error("it unpacks itself under EFI (CONFIG_EFI_ZBOOT), which machines here do not have")]
    Zboot,
    /// The other byte order.
    #[error("it is a big-endian kernel, but only little-endian ones are supported")]
    BigEndian,
    /// The packed image is damaged.
    #[error("its packed kernel is damaged: {0}")]
    Damaged(#[from] io::Error),
}

/// Unpacks an image. `None` if it is an `Image` already.
///
/// # Errors
/// When it is no image of arm64, or one that cannot be booted.
pub fn unpack(file: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let has = |(offset, magic): (usize, &[u8])| {
        file.get(offset..).is_some_and(|rest| rest.starts_with(magic))
    };
    if has(ZBOOT) {
        return Err(Error::Zboot);
    }
    if Format::of(file) == Some(Format::Gzip) {
        let image = Format::Gzip.unpack(file, LIMIT)?;
        let is_plain = unpack(&image)?.is_none();
        return if is_plain { Ok(Some(image)) } else { Err(Error::NotImage) };
    }
    match (has(MAGIC), file.get(FLAGS)) {
        (true, Some(flags)) if flags & 1 != 0 => Err(Error::BigEndian),
        (true, Some(_)) => Ok(None),
        _ => Err(Error::NotImage),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn image(flags: u8) -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        bytes[FLAGS] = flags;
        bytes[MAGIC.0..][..4].copy_from_slice(MAGIC.1);
        bytes
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn plain_and_packed_images_are_read() {
        assert_eq!(unpack(&image(0xa)).unwrap(), None);
        assert_eq!(unpack(&gzip(&image(0xa))).unwrap(), Some(image(0xa)));
    }

    #[test]
    fn other_files_are_refused() {
        let mut zboot = image(0);
        zboot[ZBOOT.0..][..4].copy_from_slice(ZBOOT.1);
        let mut cut = gzip(&image(0));
        cut.truncate(cut.len() - 9);
        for (file, problem) in [
            (vec![], "it is not an arm64 Image"),
            (vec![0; 4096], "it is not an arm64 Image"),
            (b"\x7fELF".repeat(40), "it is not an arm64 Image"),
            (image(1), "it is a big-endian kernel"),
            (zboot, "it unpacks itself under EFI"),
            (cut, "its packed kernel is damaged"),
            (gzip(&gzip(&image(0))), "it is not an arm64 Image"),
        ] {
            let error = unpack(&file).unwrap_err().to_string();
            assert!(error.starts_with(problem), "{error}");
        }
    }
}
