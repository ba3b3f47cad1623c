//! Reads packages of rpm (the package format of its reference manual): a lead, a header with signatures, a header, and
//! an archive of cpio. Nothing is installed, and scripts of a package are not run. Signatures are not verified, but
//! digests of header and archive are, if the package has them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::cpio;
use super::target::{Failure, Target, refuse};
use crate::compressed::{self, Format};
use crate::error::Doing;

/// The lead: its magic number, its length, and the place of the kind of package, which is 0 for files to install.
const LEAD: [u8; 4] = [0xed, 0xab, 0xee, 0xdb];
const LEAD_LENGTH: usize = 96;
const KIND: usize = 6;
/// The magic number of a header, its version, and 4 bytes without a meaning.
const HEADER: [u8; 8] = [0x8e, 0xad, 0xe8, 1, 0, 0, 0, 0];
/// The length of an entry of a header: tag, type, offset and count.
const ENTRY: usize = 16;
/// The largest number of entries of a header, and the largest size of its data. Packages with 100,000 files have
/// about 20 MB.
const MAX_ENTRIES: usize = 1 << 14;
const MAX_DATA: usize = 64 << 20;
/// Types of entries.
const NUMBER: u32 = 4;
const STRING: u32 = 6;
const STRINGS: u32 = 8;
/// Tags: in the signatures the SHA-256 of the header; in the header the format, the compression and the digests of
/// the archive, and the algorithm of those, which is 8 for SHA-256.
const HEADER_SHA256: u32 = 273;
const FORMAT: u32 = 1124;
const COMPRESSOR: u32 = 1125;
const DIGESTS: u32 = 5092;
const ALGORITHM: u32 = 5093;
const SHA256: u32 = 8;

/// Unpacks the files of a package.
pub(super) fn unpack(path: &Path, target: &mut Target) -> Result<(), Failure> {
    let mut file = BufReader::new(File::open(path).doing("open", path)?);
    let header = headers(&mut file)?;
    if let Some(format) = header.string(FORMAT).filter(|it| *it != b"cpio") {
        let format = String::from_utf8_lossy(format);
        return refuse(&format!(
            "its files are in the format `{}`, not cpio",
            format.escape_debug()
        ));
    }
    let start = file.stream_position().doing("read", path)?;
    if header.number(ALGORITHM) == Some(SHA256)
        && let Some(expected) = header.string(DIGESTS)
    {
        let mut hash = Sha256::new();
        io::copy(&mut file, &mut hash)?;
        if !is_digest(expected, hash) {
            return refuse("it is damaged: the SHA-256 of its files differs");
        }
        file.seek(io::SeekFrom::Start(start)).doing("read", path)?;
    }
    let mut files = match (header.string(COMPRESSOR), Format::peek(&mut file)?) {
        (_, Some(format)) => format.reader(file)?,
        (Some(b"lzma"), None) => compressed::lzma(file)?,
        (Some(name), None) if !file.fill_buf()?.starts_with(b"0707") => {
            let name = String::from_utf8_lossy(name);
            return refuse(&format!(
                "its compression `{}` is not known here: gzip, xz, lzma and zstd are",
                name.escape_debug().take(20).collect::<String>()
            ));
        }
        (_, None) => Box::new(file),
    };
    cpio::unpack(&mut files, target)
}

/// Reads up to the end of the header, which is returned.
fn headers(file: &mut impl Read) -> Result<Header, Failure> {
    let mut lead = [0; LEAD_LENGTH];
    file.read_exact(&mut lead)?;
    if !lead.starts_with(&LEAD) {
        return refuse("it is not a package of rpm");
    }
    if lead[KIND..KIND + 2] != [0, 0] {
        return refuse("it is a package of sources: name the package that is built from it");
    }
    let signatures = Header::read(file)?;
    // The header begins at a multiple of 8.
    file.read_exact(&mut [0; 7][..(8 - signatures.bytes.len() % 8) % 8])?;
    let header = Header::read(file)?;
    match signatures.string(HEADER_SHA256) {
        Some(expected) if !is_digest(expected, Sha256::new_with_prefix(&header.bytes)) => {
            refuse("it is damaged: the SHA-256 of its header differs")
        }
        _ => Ok(header),
    }
}

/// A header: its first 16 bytes, entries of 16 bytes, and the data to which they refer.
struct Header {
    bytes: Vec<u8>,
    /// Where the data begin.
    data: usize,
}

impl Header {
    fn read(file: &mut impl Read) -> Result<Self, Failure> {
        let mut bytes = vec![0; ENTRY];
        file.read_exact(&mut bytes)?;
        if !bytes.starts_with(&HEADER) {
            return refuse("it is damaged: it has no header where one must be");
        }
        let [entries, length] = [8, 12].map(|at| word(&bytes[at..]) as usize);
        if entries > MAX_ENTRIES || length > MAX_DATA {
            return refuse("its header is larger than that of any kernel");
        }
        let data = ENTRY * (1 + entries);
        file.take((data + length - ENTRY) as u64).read_to_end(&mut bytes)?;
        match bytes.len() == data + length {
            true => Ok(Self { bytes, data }),
            false => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        }
    }

    /// The data of an entry, up to the header's end.
    fn entry(&self, tag: u32, kinds: &[u32]) -> Option<&[u8]> {
        let entries = self.bytes[ENTRY..self.data].chunks_exact(ENTRY);
        let is_it = |it: &&[u8]| word(it) == tag && kinds.contains(&word(&it[4..]));
        let entry = entries.into_iter().find(is_it)?;
        self.bytes[self.data..].get(word(&entry[8..]) as usize..)
    }

    /// The text of an entry, or the first of its texts.
    fn string(&self, tag: u32) -> Option<&[u8]> {
        self.entry(tag, &[STRING, STRINGS])?.split(|&byte| byte == 0).next()
    }

    fn number(&self, tag: u32) -> Option<u32> {
        self.entry(tag, &[NUMBER])?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
    }
}

/// The number at the start of at least 4 bytes.
fn word(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(*bytes.first_chunk().expect("the caller gives 4 bytes or more"))
}

fn is_digest(expected: &[u8], hash: Sha256) -> bool {
    format!("{:x}", hash.finalize()).into_bytes() == expected
}
