//! Packs bytes into zstd frames with a checksum, so that damage is detected.

use std::io::{self, Read};

use serde::Deserialize;
use zstd::bulk::Compressor;

/// The largest size before packing. Larger data is neither packed nor unpacked, so everything that is packed
/// can be unpacked, and a damaged frame cannot exhaust memory.
const LIMIT: usize = 1 << 30;

/// The default level of zstd.
pub const LEVEL: i32 = zstd::DEFAULT_COMPRESSION_LEVEL;

/// Compresses `bytes` with a level of zstd.
pub fn pack(bytes: &[u8], level: i32) -> io::Result<Vec<u8>> {
    if bytes.len() > LIMIT {
        return Err(too_large());
    }
    // Compresses all at once, which is faster than a stream.
    let mut compressor = Compressor::new(level)?;
    compressor.include_checksum(true)?;
    compressor.compress(bytes)
}

/// Unpacks the result of [`pack`]. Other bytes are an error.
pub fn unpack(packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let decoder = zstd::Decoder::with_buffer(packed)?;
    decoder.take(LIMIT as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > LIMIT {
        return Err(too_large());
    }
    Ok(bytes)
}

pub fn unpack_text(packed: &[u8]) -> io::Result<String> {
    String::from_utf8(unpack(packed)?).map_err(io::Error::other)
}

/// Deserializes all of `bytes`. Trailing bytes are an error.
pub fn whole<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> io::Result<T> {
    let (value, rest) = postcard::take_from_bytes(bytes).map_err(io::Error::other)?;
    match rest {
        [] => Ok(value),
        rest => Err(io::Error::other(format!("{} trailing bytes", rest.len()))),
    }
}

fn too_large() -> io::Error {
    io::Error::other("more than 1G of data")
}
