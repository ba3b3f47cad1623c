//! Decompression of the formats used for kernel images and modules, with a size limit.

use std::io::{self, BufRead, Read};

use liblzma::bufread;
use liblzma::read::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};

/// Memory limit of `xz`. The kernel's build uses dictionaries of up to 128 MiB (`scripts/xz_wrap.sh`).
const XZ_MEMORY: u64 = 256 << 20;
/// The largest unpacked block of the legacy lz4 frame (`lib/decompress_unlz4.c`).
const LZ4_BLOCK: usize = 8 << 20;

/// A compression format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Gzip,
    Xz,
    Zstd,
    /// The legacy frame, which the kernel uses.
    Lz4,
}

impl Format {
    /// Recognises a format by its magic number (`lib/decompress.c`).
    pub fn of(bytes: &[u8]) -> Option<Self> {
        const MAGICS: [(&[u8], Format); 4] = [
            (&[0x1f, 0x8b], Format::Gzip),
            (&[0xfd, b'7', b'z', b'X', b'Z', 0], Format::Xz),
            (&[0x28, 0xb5, 0x2f, 0xfd], Format::Zstd),
            (&[0x02, 0x21, 0x4c, 0x18], Format::Lz4),
        ];
        let (_, format) = MAGICS.iter().find(|(magic, _)| bytes.starts_with(magic))?;
        Some(*format)
    }

    /// The format of a file by its first bytes, which are not consumed.
    pub fn peek(file: &mut impl BufRead) -> io::Result<Option<Self>> {
        Ok(Self::of(file.fill_buf()?))
    }

    /// Unpacks a file of any size while it is read. Fails for lz4, whose frames do not say where they end.
    pub fn reader(self, file: impl BufRead + 'static) -> io::Result<Box<dyn Read>> {
        Ok(match self {
            Self::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
            Self::Xz => {
                let stream = Stream::new_stream_decoder(XZ_MEMORY, CONCATENATED)?;
                Box::new(bufread::XzDecoder::new_stream(file, stream))
            }
            Self::Zstd => Box::new(zstd::Decoder::with_buffer(file)?),
            Self::Lz4 => return Err(io::Error::other("its compression, lz4, is not known here")),
        })
    }

    /// Unpacks `bytes`. Anything after the packed data is ignored, because the kernel's build appends the
    /// unpacked size (`size_append` in `scripts/Makefile.lib`). Fails when the data are damaged or unpack to
    /// more than `limit` bytes.
    pub fn unpack(self, bytes: &[u8], limit: usize) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip => read(flate2::read::GzDecoder::new(bytes), limit),
            Self::Xz => {
                let stream = Stream::new_stream_decoder(XZ_MEMORY, 0)?;
                read(XzDecoder::new_stream(bytes, stream), limit)
            }
            Self::Zstd => {
                read(zstd::stream::read::Decoder::with_buffer(bytes)?.single_frame(), limit)
            }
            Self::Lz4 => unpack_lz4(&bytes[4..], limit),
        }
    }
}

/// Unpacks a file in the format of `lzma`, which has no magic number.
pub(crate) fn lzma(file: impl BufRead + 'static) -> io::Result<Box<dyn Read>> {
    let stream = Stream::new_lzma_decoder(XZ_MEMORY)?;
    Ok(Box::new(bufread::XzDecoder::new_stream(file, stream)))
}

fn read(packed: impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    packed.take(limit as u64 + 1).read_to_end(&mut unpacked)?;
    if unpacked.len() > limit { Err(too_large(limit)) } else { Ok(unpacked) }
}

/// Unpacks blocks up to the end. A block is a length (32 bits, little-endian) and that many bytes.
fn unpack_lz4(mut bytes: &[u8], limit: usize) -> io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let length = u32::from_le_bytes(*length) as usize;
        if rest.is_empty() {
            break; // the appended size
        }
        let (block, rest) = rest
            .split_at_checked(length)
            .ok_or_else(|| io::Error::other("an lz4 block goes beyond the end"))?;
        let room = LZ4_BLOCK.min(limit - unpacked.len());
        let block = lz4_flex::block::decompress(block, room).map_err(io::Error::other)?;
        unpacked.extend(block);
        bytes = rest;
    }
    Ok(unpacked)
}

fn too_large(limit: usize) -> io::Error {
    io::Error::other(format!("it unpacks to more than {limit} bytes"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn pack(format: Format, bytes: &[u8]) -> Vec<u8> {
        match format {
            Format::Gzip => {
                let mut packer = flate2::write::GzEncoder::new(Vec::new(), Default::default());
                packer.write_all(bytes).unwrap();
                packer.finish().unwrap()
            }
            Format::Xz => {
                let mut packer = liblzma::write::XzEncoder::new(Vec::new(), 1);
                packer.write_all(bytes).unwrap();
                packer.finish().unwrap()
            }
            Format::Zstd => zstd::encode_all(bytes, 1).unwrap(),
            Format::Lz4 => {
                let mut packed = vec![0x02, 0x21, 0x4c, 0x18];
                for block in bytes.chunks(LZ4_BLOCK) {
                    let block = lz4_flex::block::compress(block);
                    packed.extend((block.len() as u32).to_le_bytes());
                    packed.extend(block);
                }
                packed
            }
        }
    }

    const FORMATS: [Format; 4] = [Format::Gzip, Format::Xz, Format::Zstd, Format::Lz4];

    #[test]
    fn every_format_is_unpacked_with_its_appended_size() {
        let bytes: Vec<u8> = (0..LZ4_BLOCK as u32 + 5000).map(|n| (n / 7) as u8).collect();
        for format in FORMATS {
            let mut packed = pack(format, &bytes);
            assert_eq!(Format::of(&packed), Some(format));
            packed.extend((bytes.len() as u32).to_le_bytes());
            assert!(format.unpack(&packed, bytes.len()).unwrap() == bytes, "{format:?}");
            assert!(format.unpack(&packed, bytes.len() - 1).is_err(), "{format:?}");
        }
    }

    proptest! {
        #[test]
        fn damage_is_an_error_and_never_a_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..400),
            place in any::<prop::sample::Index>(),
            value in any::<u8>(),
        ) {
            for format in FORMATS {
                let mut packed = pack(format, &bytes);
                let place = place.index(packed.len());
                packed[place] = value;
                if Format::of(&packed) == Some(format) {
                    let _ = format.unpack(&packed, 1000);
                }
                packed.truncate(place);
                if Format::of(&packed) == Some(format) {
                    let _ = format.unpack(&packed, 1000);
                }
            }
        }
    }
}
