//! Checks images that x86-64 machines boot, and extracts the uncompressed `vmlinux` from a `bzImage`.
//!
//! Formats: the x86 boot protocol (`Documentation/arch/x86/boot.rst`) and ELF with Xen's notes
//! (`include/xen/interface/elfnote.h`).

use std::io;

use flate2::Crc;
use object::Endianness;
use object::elf::{EM_AARCH64, EM_X86_64, ET_EXEC, FileHeader64, NoteType, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader};

use crate::compressed::Format;
use crate::image::{self, is_elf};

/// Limit of an unpacked kernel's size.
const LIMIT: usize = 1 << 30;
/// Unit of the size of setup code and header.
const SECTOR: usize = 512;
/// `payload_offset` and `payload_length` exist since version 2.08.
const PAYLOAD_VERSION: u16 = 0x0208;
/// `xloadflags` exists since version 2.12; this bit means a 64-bit entry.
const FLAGS_VERSION: u16 = 0x020c;
const KERNEL_64: u16 = 1;
/// The unit of `syssize`.
const PARAGRAPH: usize = 16;
/// Signatures of images for other machines, and their offsets: `Documentation/arch/riscv/boot-image-header.rst`,
/// `arch/arm/boot/compressed/head.S`, and U-Boot's header.
const FOREIGN: [(usize, &[u8], &str); 3] = [
    (0x38, b"RSC\x05", "RISC-V"),
    (0x24, b"\x18\x28\x6f\x01", "32-bit ARM"),
    (0x00, b"\x27\x05\x19\x56", "U-Boot"),
];
/// The type of the note with the 32-bit entry point for PVH.
const XEN_ELFNOTE_PHYS32_ENTRY: NoteType = NoteType(18);

/// Why no `vmlinux` can be extracted from an image.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No boot protocol header.
    #[error("it is not a bzImage: there is no x86 boot protocol header")]
    NotBzImage,
    /// A header older than Linux 2.6.26. The value is the version of the boot protocol.
    #[error("its boot protocol {}.{:02} does not give the offset of the kernel (2.08 and newer do)",
        .0 >> 8, .0 & 0xff)]
    OldProtocol(u16),
    /// The file is shorter than its header says.
    #[error("it is truncated: its header requires {wanted} bytes or more, but it has {length}")]
    CutShort {
        /// The number of bytes by its header.
        wanted: usize,
        /// The file's length in bytes.
        length: usize,
    },
    /// A kernel for another architecture.
    #[error("it is a kernel for {0}, but only x86-64 and arm64 are supported")]
    Foreign(String),
    /// The `vmlinux` of an arm64 kernel.
    #[error(
        "it is the vmlinux of an arm64 kernel: use the Image, which the kernel's build writes to arch/arm64/boot/Image"
    )]
    Arm64,
    /// An ELF file that QEMU cannot boot.
    #[error(
        "it is an ELF file, but {0}: use the bzImage, which the kernel's build writes to \
         arch/x86/boot/bzImage"
    )]
    Elf(&'static str),
    /// An unknown compression.
    #[error("its compression is unknown: gzip, xz, zstd and lz4 are supported")]
    UnknownFormat,
    /// The compressed kernel is damaged.
    #[error("its packed kernel is damaged: {0}")]
    Damaged(#[from] io::Error),
    /// The checksum of the image is wrong.
    #[error("it is damaged: its CRC-32 is wrong")]
    Sum,
    /// The compressed data is not an ELF file.
    #[error("it contains no ELF file")]
    NotElf,
}

/// Extracts the uncompressed `vmlinux` from a `bzImage`. Fails when the file is not a `bzImage`, has an
/// unknown compression, or is damaged.
pub fn extract(bzimage: &[u8]) -> Result<Vec<u8>, Error> {
    let payload = payload(bzimage)?;
    let vmlinux = Format::of(payload).ok_or(Error::UnknownFormat)?.unpack(payload, LIMIT)?;
    // `arch/x86/boot/compressed/mkpiggy.c`
    if payload.last_chunk().map(|size| u32::from_le_bytes(*size) as usize) != Some(vmlinux.len()) {
        return Err(Error::Damaged(io::Error::other("its unpacked size is wrong")));
    }
    if is_elf(&vmlinux) { Ok(vmlinux) } else { Err(Error::NotElf) }
}

/// The packed kernel in a `bzImage`, which ends with its unpacked size.
fn payload(bzimage: &[u8]) -> Result<&[u8], Error> {
    let version = protocol(bzimage)?;
    if version < PAYLOAD_VERSION {
        return Err(Error::OldProtocol(version));
    }
    let offset = u32::from_le_bytes(field(bzimage, 0x248)?) as usize;
    let length = u32::from_le_bytes(field(bzimage, 0x24c)?) as usize;
    part(bzimage, setup(bzimage)? + offset, length)
}

/// Checks that a file is a kernel that can be booted here. Headers and checksum must show that it is complete and
/// undamaged. Fails when it is not a kernel, is for another machine, truncated, damaged, or a `vmlinux` without PVH
/// entry.
pub fn check(file: &[u8]) -> Result<(), Error> {
    if is_elf(file) {
        return check_elf(file);
    }
    let version = protocol(file)?;
    if version >= FLAGS_VERSION && u16::from_le_bytes(field(file, 0x236)?) & KERNEL_64 == 0 {
        return Err(Error::Foreign("32-bit x86".into()));
    }
    let paragraphs = u32::from_le_bytes(field(file, 0x1f4)?) as usize;
    let image = part(file, 0, setup(file)? + paragraphs * PARAGRAPH)?;
    // The other formats have their own checksums.
    let is_lz4 = payload(file).is_ok_and(|packed| Format::of(packed) == Some(Format::Lz4));
    if is_lz4 && !has_right_sum(image) {
        return Err(Error::Sum);
    }
    Ok(())
}

/// Checks the CRC-32 at the end of a `bzImage`. If it is right, the CRC-32 of the complete image is 0 before the last
/// inversion (`Documentation/arch/x86/boot.rst`). Linux 6.15 and newer have zeros there. The fields that signing
/// changes, the checksum and the address of the signature in the PE header, count as 0.
fn has_right_sum(image: &[u8]) -> bool {
    if image.ends_with(&[0; 4]) {
        return true;
    }
    let mut image = image.to_vec();
    let header = field(&image, 0x3c).map_or(0, |offset| u32::from_le_bytes(offset) as usize);
    if part(&image, header, 4).is_ok_and(|magic| magic == b"PE\0\0") {
        for (offset, length) in [(88, 4), (168, 8)] {
            let start = header + offset;
            image.get_mut(start..start + length).unwrap_or_default().fill(0);
        }
    }
    let mut sum = Crc::new();
    sum.update(&image);
    sum.sum() == !0
}

fn check_elf(file: &[u8]) -> Result<(), Error> {
    let header = FileHeader64::<Endianness>::parse(file);
    let Ok((header, endian)) = header.and_then(|header| Ok((header, header.endian()?))) else {
        return Err(Error::Elf("it is not a readable 64-bit one"));
    };
    let machine = header.e_machine(endian);
    if machine == EM_AARCH64 {
        return Err(Error::Arm64);
    }
    if machine != EM_X86_64 {
        return Err(Error::Foreign(format!("another machine (number {} in ELF)", machine.0)));
    }
    if header.e_type(endian) != ET_EXEC {
        return Err(Error::Elf("it is an object file or a program"));
    }
    let segments = header.program_headers(endian, file);
    let segments = segments.map_err(|_| Error::Elf("its program headers cannot be read"))?;
    let end = |it: &ProgramHeader64<_>| it.p_offset(endian).saturating_add(it.p_filesz(endian));
    let wanted = segments.iter().map(end).max().unwrap_or(0);
    if wanted > file.len() as u64 {
        return Err(Error::CutShort { wanted: wanted as usize, length: file.len() });
    }
    if has_entry(file) { Ok(()) } else { Err(Error::Elf("it has no PVH entry (CONFIG_PVH)")) }
}

/// The offset of the protected-mode kernel in a `bzImage`.
fn setup(bzimage: &[u8]) -> Result<usize, Error> {
    let sectors = match field(bzimage, 0x1f1)? {
        [0] => 4, // by the protocol, for old loaders
        [count] => usize::from(count),
    };
    Ok((sectors + 1) * SECTOR)
}

/// Whether a `vmlinux` has a PVH entry: a 64-bit ELF file with a note that has the entry point.
pub fn has_entry(vmlinux: &[u8]) -> bool {
    // A malformed file counts as one without the note.
    find_entry(vmlinux).unwrap_or(false)
}

fn find_entry(vmlinux: &[u8]) -> object::Result<bool> {
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

/// The output of `uname -r`: from a `bzImage`'s header (`kernel_version`), or a `vmlinux`'s banner.
pub fn release(file: &[u8]) -> Option<String> {
    let text = if is_elf(file) {
        image::banner(file)?
    } else {
        protocol(file).ok()?;
        let offset = usize::from(u16::from_le_bytes(field(file, 0x20e).ok()?));
        if offset == 0 {
            return None;
        }
        file.get(SECTOR + offset..)?
    };
    image::release(text)
}

/// The version of the boot protocol.
fn protocol(file: &[u8]) -> Result<u16, Error> {
    if let Some((_, _, machine)) = FOREIGN.iter().find(|(offset, magic, _)| {
        part(file, *offset, magic.len()).is_ok_and(|bytes| bytes == *magic)
    }) {
        return Err(Error::Foreign((*machine).to_owned()));
    }
    let magics = (field(file, 0x1fe), field(file, 0x202));
    if !matches!(magics, (Ok([0x55, 0xaa]), Ok([b'H', b'd', b'r', b'S']))) {
        return Err(Error::NotBzImage);
    }
    Ok(u16::from_le_bytes(field(file, 0x206)?))
}

/// The bytes of a header field.
fn field<const N: usize>(file: &[u8], offset: usize) -> Result<[u8; N], Error> {
    Ok(*part(file, offset, N)?.first_chunk().expect("it has that many"))
}

/// `length` bytes of a file from `offset` on.
fn part(file: &[u8], offset: usize, length: usize) -> Result<&[u8], Error> {
    let short = || Error::CutShort { wanted: offset + length, length: file.len() };
    file.get(offset..).and_then(|rest| rest.get(..length)).ok_or_else(short)
}
