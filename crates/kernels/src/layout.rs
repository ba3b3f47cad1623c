//! Reads offsets in the kernel's structures from its BTF (`Documentation/bpf/btf.rst`), which is a section of
//! the image.

use btf_rs::{Btf, Type};
use model::TaskLayout;
use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};

/// Maximum nesting of structures.
const MAX_DEPTH: u32 = 8;

/// The layout of tasks in the kernel of this `vmlinux`; `None` if it has no readable BTF.
pub fn tasks(vmlinux: &[u8]) -> Option<TaskLayout> {
    let btf = Btf::from_bytes(section(vmlinux, b".BTF")?).ok()?;
    let types = btf.resolve_types_by_name("task_struct").ok()?;
    let task = types.into_iter().find_map(|kind| match kind {
        Type::Struct(task) => Some(task),
        _ => None,
    })?;
    let offset = |name| Some(u64::from(bit_offset(&btf, &task, name, MAX_DEPTH)? / 8));
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
fn bit_offset(btf: &Btf, structure: &btf_rs::Struct, name: &str, depth: u32) -> Option<u32> {
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
    }
}
