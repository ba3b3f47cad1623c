//! What a kernel image tells of itself, and the uncompressed `vmlinux` out of a `bzImage`.
//!
//! Formats: the x86 boot protocol (`Documentation/arch/x86/boot.rst`) and ELF with Xen's notes
//! (`include/xen/interface/elfnote.h`).

use std::io;

use object::Endianness;
use object::elf::{FileHeader64, NoteType};
use object::read::elf::{FileHeader, ProgramHeader};

use crate::compressed::Format;

/// More than any kernel unpacks to.
const LIMIT: usize = 1 << 30;
/// The setup code and the header are counted in sectors.
const SECTOR: usize = 512;
/// `payload_offset` and `payload_length` came with version 2.08.
const PAYLOAD_VERSION: u16 = 0x0208;
/// The note that holds the 32-bit entry point for a boot by PVH.
const XEN_ELFNOTE_PHYS32_ENTRY: NoteType = NoteType(18);

/// Why no `vmlinux` can be had from an image.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No boot protocol header.
    #[error("it is not a bzImage: there is no x86 boot protocol header")]
    NotBzImage,
    /// A header older than Linux 2.6.26.
    #[error("its boot protocol {}.{:02} does not tell where the kernel lies (2.08 and newer do)",
        .0 >> 8, .0 & 0xff)]
    OldProtocol(u16),
    /// The file ends before what its header promises.
    #[error("it is cut short: its header points beyond its end")]
    CutShort,
    /// Packed in an unknown way.
    #[error("it is compressed in a way unknown here: gzip, xz, zstd and lz4 are known")]
    UnknownFormat,
    /// The packed kernel is damaged.
    #[error("its packed kernel is damaged: {0}")]
    Damaged(#[from] io::Error),
    /// Something else was packed.
    #[error("it holds no ELF file")]
    NotElf,
}

/// Whether the file is an ELF file, as `vmlinux` is.
pub fn is_elf(file: &[u8]) -> bool {
    file.starts_with(b"\x7fELF")
}

/// The uncompressed `vmlinux` out of a `bzImage`.
///
/// # Errors
/// When the file is no `bzImage`, or packs its kernel in an unknown way, or is damaged.
pub fn extract(bzimage: &[u8]) -> Result<Vec<u8>, Error> {
    let version = protocol(bzimage)?;
    if version < PAYLOAD_VERSION {
        return Err(Error::OldProtocol(version));
    }
    let setup_sectors = match field(bzimage, 0x1f1)? {
        [0] => 4, // by the protocol, for loaders of old
        [count] => usize::from(count),
    };
    let offset = u32::from_le_bytes(field(bzimage, 0x248)?) as usize;
    let length = u32::from_le_bytes(field(bzimage, 0x24c)?) as usize;
    let payload = bzimage
        .get((setup_sectors + 1) * SECTOR + offset..)
        .and_then(|rest| rest.get(..length))
        .ok_or(Error::CutShort)?;
    let vmlinux = Format::of(payload).ok_or(Error::UnknownFormat)?.unpack(payload, LIMIT)?;
    if is_elf(&vmlinux) { Ok(vmlinux) } else { Err(Error::NotElf) }
}

/// Whether a `vmlinux` can be started by PVH: it is 64-bit ELF, and one of its notes holds the
/// entry point.
pub fn has_pvh_entry(vmlinux: &[u8]) -> bool {
    // Without a result a malformed file reads as one without the note.
    find_pvh_entry(vmlinux).unwrap_or(false)
}

fn find_pvh_entry(vmlinux: &[u8]) -> object::Result<bool> {
    let header = FileHeader64::<Endianness>::parse(vmlinux)?;
    let endian = header.endian()?;
    for segment in header.program_headers(endian, vmlinux)? {
        let Some(mut notes) = segment.notes(endian, vmlinux)? else {
            continue;
        };
        while let Some(note) = notes.next()? {
            if note.name() == b"Xen" && note.n_type(endian) == XEN_ELFNOTE_PHYS32_ENTRY {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// What `uname -r` will say, as the image tells it: a `bzImage` in its header (`kernel_version`),
/// a `vmlinux` in its banner (`init/version.c`).
pub fn release(file: &[u8]) -> Option<String> {
    const BANNER: &[u8] = b"Linux version ";
    let text = if is_elf(file) {
        let place = file.windows(BANNER.len()).position(|window| window == BANNER)?;
        &file[place + BANNER.len()..]
    } else {
        protocol(file).ok()?;
        let offset = usize::from(u16::from_le_bytes(field(file, 0x20e).ok()?));
        if offset == 0 {
            return None;
        }
        file.get(SECTOR + offset..)?
    };
    let end = text.iter().take(256).position(|&byte| byte == b' ' || byte == 0)?;
    let release = str::from_utf8(&text[..end]).ok()?;
    (!release.is_empty()).then(|| release.to_owned())
}

/// The version of the boot protocol.
fn protocol(file: &[u8]) -> Result<u16, Error> {
    let magics = (field(file, 0x1fe), field(file, 0x202));
    if !matches!(magics, (Ok([0x55, 0xaa]), Ok([b'H', b'd', b'r', b'S']))) {
        return Err(Error::NotBzImage);
    }
    Ok(u16::from_le_bytes(field(file, 0x206)?))
}

/// The bytes of a header field.
fn field<const N: usize>(file: &[u8], offset: usize) -> Result<[u8; N], Error> {
    file.get(offset..).and_then(|rest| rest.first_chunk()).copied().ok_or(Error::CutShort)
}
