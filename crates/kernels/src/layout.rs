//! Reads offsets in the kernel's structures from its BTF (`Documentation/bpf/btf.rst`), which is a section of
//! the image. An image that is no ELF file has the same bytes.

use btf_rs::{Btf, Type};
use memchr::memmem;
use model::TaskLayout;
use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};

/// Maximum nesting of structures.
const MAX_DEPTH: u32 = 8;

/// The first bytes of BTF: its magic number, version, flags, and the length of its header (`struct btf_header`).
const MAGIC: [u8; 8] = [0x9f, 0xeb, 1, 0, 24, 0, 0, 0];

/// The layout of tasks in the kernel of this `vmlinux` or other image; `None` if it has no readable BTF.
pub fn tasks(image: &[u8]) -> Option<TaskLayout> {
    tasks_in(&btf(image)?)
}

/// The types of the kernel of an image; `None` if it has no readable BTF.
pub(crate) fn btf(image: &[u8]) -> Option<Btf> {
    // Other bytes can look like a beginning.
    let read = |bytes| Btf::from_bytes(bytes).ok().filter(|btf| tasks_in(btf).is_some());
    match section(image, b".BTF") {
        Some(btf) => read(btf),
        None => memmem::find_iter(image, &MAGIC).find_map(|at| read(whole(&image[at..])?)),
    }
}

/// The BTF at the beginning of these bytes: its header and what that says of its types and names.
fn whole(bytes: &[u8]) -> Option<&[u8]> {
    let number = |place: usize| {
        let bytes = bytes.get(place..place + 4)?;
        usize::try_from(u32::from_le_bytes(bytes.try_into().ok()?)).ok()
    };
    let [types, length, names, size] = [8, 12, 16, 20].map(number);
    let end = (types? + length?).max(names? + size?);
    bytes.get(..MAGIC.len() + 16 + end)
}

fn tasks_in(btf: &Btf) -> Option<TaskLayout> {
    let types = btf.resolve_types_by_name("task_struct").ok()?;
    let task = types.into_iter().find_map(|kind| match kind {
        Type::Struct(task) => Some(task),
        _ => None,
    })?;
    let offset = |name| Some(u64::from(bit_offset(btf, &task, name, MAX_DEPTH)? / 8));
    Some(TaskLayout { tgid: offset("tgid")?, comm: offset("comm")? })
}

fn section<'a>(vmlinux: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let header = FileHeader64::<Endianness>::parse(vmlinux).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, vmlinux).ok()?;
    let (_, section) = sections.section_by_name(endian, name)?;
    section.data(endian, vmlinux).ok()
}

/// The offset of a member in bits, including members of nested unnamed structures.
pub(crate) fn bit_offset(
    btf: &Btf,
    structure: &btf_rs::Struct,
    name: &str,
    depth: u32,
) -> Option<u32> {
    structure.members.iter().find_map(|member| {
        let found = btf.resolve_name(member).ok()?;
        if found == name {
            return Some(member.bit_offset());
        }
        match btf.resolve_chained_type(member).ok()? {
            Type::Struct(inner) | Type::Union(inner) if found.is_empty() && depth > 0 => {
                let inside = bit_offset(btf, &inner, name, depth - 1)?;
                member.bit_offset().checked_add(inside)
            }
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_btf_has_no_layout() {
        assert_eq!(tasks(b""), None);
        assert_eq!(tasks(b"\x7fELF"), None);
        assert_eq!(tasks(&MAGIC), None);
        assert_eq!(tasks(&[&MAGIC[..], &[0xff; 16]].concat()), None);
    }
}
