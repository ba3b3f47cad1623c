//! Reads the uncompressed image of a kernel, an ELF file, and the banner of any.

use object::elf::SHF_ALLOC;
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection, SectionFlags};
use sha2::{Digest, Sha256};

/// Sections that do not affect execution until an assertion fails: the build ID, and the file and line of each
/// assertion (`struct bug_entry`, `include/asm-generic/bug.h`).
const INDIFFERENT: [&str; 2] = [".notes", "__bug_table"];

/// Whether the file is an ELF file, as `vmlinux` is.
pub fn is_elf(file: &[u8]) -> bool {
    file.starts_with(b"\x7fELF")
}

/// What follows the first words of the kernel's banner (`init/version.c`).
pub(crate) fn banner(uncompressed: &[u8]) -> Option<&[u8]> {
    const WORDS: &[u8] = b"Linux version ";
    let is_banner =
        |window: &[u8]| window[..WORDS.len()] == *WORDS && window[WORDS.len()].is_ascii_digit();
    let place = uncompressed.windows(WORDS.len() + 1).position(is_banner)?;
    Some(&uncompressed[place + WORDS.len()..])
}

/// The release at the start of a text, which ends with a space or a zero.
pub(crate) fn release(text: &[u8]) -> Option<String> {
    let end = text.iter().take(256).position(|&byte| byte == b' ' || byte == 0)?;
    let release = str::from_utf8(&text[..end]).ok()?;
    (!release.is_empty()).then(|| release.to_owned())
}

/// SHA-256 of the code and data that are loaded from a `vmlinux`. Two kernels with the same digest run alike, but can
/// differ in the build ID and in the lines of their assertions. `None` if the file has no sections.
pub fn loaded(vmlinux: &[u8]) -> Option<String> {
    let file = ElfFile64::<Endianness>::parse(vmlinux).ok()?;
    let (mut digest, mut is_empty) = (Sha256::new(), true);
    for section in file.sections() {
        let name = section.name().ok()?;
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
        if !sh_flags.contains(SHF_ALLOC) || INDIFFERENT.contains(&name) {
            continue;
        }
        is_empty = false;
        digest.update(format!("{name} {:x} {:x}\n", section.address(), section.size()));
        digest.update(section.data().ok()?);
    }
    (!is_empty).then(|| format!("{:x}", digest.finalize()))
}
