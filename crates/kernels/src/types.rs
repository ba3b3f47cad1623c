//! The kernel's types, from its BTF: which field lies at an offset, and how memory is described.

mod allocated;
mod members;

use std::collections::BTreeMap;
use std::fmt;

use btf_rs::{Btf, BtfType, Type};

use crate::layout::{bit_offset, btf};

pub use allocated::begins_at_line;
pub use members::{Member, Members, PER_CPU_WORDS};

/// Maximum nesting of types.
const MAX_DEPTH: u32 = 12;
/// The section of per-CPU variables.
const PER_CPU: &str = ".data..percpu";

/// The source of a series with one reading in a boot: the bytes from one object to the next in each slab cache whose lines
/// were transferred.
pub const SLOTS: &str = "slots";

/// Slab caches of one type that do not have the type's name, where the kernel creates them.
const CACHES: [(&str, &str); 28] = [
    ("bdev_cache", "bdev_inode"),
    ("cred_jar", "cred"),
    ("debugfs_inode_cache", "debugfs_inode_info"),
    ("eventpoll_epi", "epitem"),
    ("ext4_inode_cache", "ext4_inode_info"),
    ("file_lock_cache", "file_lock"),
    ("files_cache", "files_struct"),
    ("filp", "file"),
    ("fs_cache", "fs_struct"),
    ("hugetlbfs_inode_cache", "hugetlbfs_inode_info"),
    ("inode_cache", "inode"),
    ("kernfs_iattrs_cache", "kernfs_iattrs"),
    ("kernfs_node_cache", "kernfs_node"),
    ("mnt_cache", "mount"),
    ("mqueue_inode_cache", "mqueue_inode_info"),
    ("numa_policy", "mempolicy"),
    ("proc_inode_cache", "proc_inode"),
    ("radix_tree_node", "xa_node"),
    ("shared_policy_node", "sp_node"),
    ("shmem_inode_cache", "shmem_inode_info"),
    ("sighand_cache", "sighand_struct"),
    ("signal_cache", "signal_struct"),
    ("skbuff_head_cache", "sk_buff"),
    ("sock_inode_cache", "socket_alloc"),
    ("tracefs_inode_cache", "tracefs_inode"),
    ("TCP", "tcp_sock"),
    ("UDP", "udp_sock"),
    ("UNIX", "unix_sock"),
];

/// Names and types of variables by their offset.
type Variables = BTreeMap<u64, (String, u32)>;

/// The types of a kernel.
pub struct Types {
    btf: Btf,
    /// The per-CPU variables by their offset in their section.
    per_cpu: Variables,
    /// The bytes of that section.
    per_cpu_size: u64,
}

/// Offsets in the kernel's descriptors of memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLayout {
    /// The size of `struct page`.
    pub page: u64,
    /// The offset of `compound_head`, or `compound_info`, in it.
    pub head: u64,
    /// The offset of `page_type` in it.
    pub kind: u64,
    /// How a slab is told from other pages: the upper 8 bits of `page_type`, or 256 and the number of a bit of `flags`.
    pub slab: u64,
    /// The offset of `slab_cache` in the first descriptor of a slab.
    pub cache: u64,
    /// The offset of `size` in `struct kmem_cache`.
    pub size: u64,
    /// The offset of `name` in `struct kmem_cache`.
    pub name: u64,
}

impl fmt::Debug for Types {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Types").field("per_cpu", &self.per_cpu.len()).finish_non_exhaustive()
    }
}

impl Types {
    /// The types of the kernel of this `vmlinux` or other image; `None` if it has no readable BTF.
    pub fn read(image: &[u8]) -> Option<Self> {
        let btf = btf(image)?;
        let (per_cpu, per_cpu_size) = per_cpu(&btf).unwrap_or_default();
        Some(Self { btf, per_cpu, per_cpu_size })
    }

    /// How the kernel describes memory; `None` if that is not understood.
    pub fn memory(&self) -> Option<MemoryLayout> {
        // Before Linux 5.17 a slab was described by fields of `struct page`.
        let cache =
            self.offset("slab", "slab_cache").or_else(|| self.offset("page", "slab_cache"))?;
        // Since Linux 6.12 a slab is a type of page (`include/linux/page-flags.h`).
        let kind = self.constant("pagetype", "PGTY_slab");
        // In newer kernels it can have a mask in place of an address.
        let info = || self.offset("page", "compound_info");
        let flag = || self.constant("pageflags", "PG_slab").map(|bit| 256 + bit);
        Some(MemoryLayout {
            page: self.size(&self.structure("page")?)?,
            head: self.offset("page", "compound_head").or_else(info)?,
            kind: self.offset("page", "page_type")?,
            slab: kind.or_else(flag)?,
            cache,
            size: self.offset("kmem_cache", "size")?,
            name: self.offset("kmem_cache", "name")?,
        })
    }

    /// The place of `this_cpu_off` among the per-CPU variables, and their size in bytes. `None` if that is not known.
    pub fn per_cpu(&self) -> Option<(u64, u64)> {
        let (place, _) = self.per_cpu.iter().find(|(_, (name, _))| name == "this_cpu_off")?;
        Some((*place, self.per_cpu_size))
    }

    /// The field at an offset of a type, such as `mm_struct.mmap_lock.count`; `None` for an unknown type or a place
    /// behind its end.
    pub fn field(&self, of: &str, offset: u64) -> Option<String> {
        let structure = self.structure(of)?;
        (offset < self.size(&structure)?).then(|| {
            let mut path = of.to_owned();
            self.descend(&structure, offset, MAX_DEPTH, &mut path);
            path
        })
    }

    /// The field at an offset of the objects of a slab cache; `None` if the type of its objects is not known.
    pub fn field_of_cache(&self, cache: &str, offset: u64) -> Option<String> {
        self.field(of_cache(cache), offset)
    }

    /// Whether the type of a slab cache's objects is known.
    pub fn has_cache(&self, cache: &str) -> bool {
        self.structure(of_cache(cache)).is_some()
    }

    /// The per-CPU variable at an offset of its section, with its field.
    pub fn per_cpu_variable(&self, offset: u64) -> Option<String> {
        let (start, (name, id)) = self.per_cpu.range(..=offset).next_back()?;
        let variable = self.stripped(self.btf.resolve_type_by_id(*id).ok()?)?;
        let mut path = name.clone();
        let within = offset - start;
        (within < self.size(&variable)?).then(|| {
            self.descend(&variable, within, MAX_DEPTH, &mut path);
            path
        })
    }

    /// Appends the fields at an offset of a value to its path.
    fn descend(&self, value: &Type, offset: u64, depth: u32, path: &mut String) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match value {
            Type::Struct(structure) | Type::Union(structure) => {
                let mut paths = structure.members.iter().filter_map(|member| {
                    let own = self.next(member)?;
                    let start = u64::from(member.bit_offset() / 8);
                    let range = start..start + self.bytes(member, &own)?;
                    range.contains(&offset).then(|| {
                        let name = self.btf.resolve_name(member).unwrap_or_default();
                        let dot = if name.is_empty() { "" } else { "." };
                        let mut path = format!("{dot}{name}");
                        if name.is_empty() || !is_one(&own) {
                            self.descend(&own, offset - start, depth, &mut path);
                        }
                        path
                    })
                });
                // Members of a union and bit fields have their bytes in common. New ones hardly ever come first.
                *path += &paths.find(|path| !path.is_empty()).unwrap_or_default();
            }
            Type::Array(array) => {
                let Some(element) = self.next(array) else { return };
                let Some(size) = self.size(&element).filter(|size| *size > 0) else { return };
                *path += "[]";
                if !is_one(&element) {
                    self.descend(&element, offset % size, depth, path);
                }
            }
            _ => {}
        }
    }

    /// The number of bytes that have a part of a member of this type.
    fn bytes(&self, member: &btf_rs::Member, own: &Type) -> Option<u64> {
        match member.bitfield_size().filter(|width| *width > 0) {
            Some(width) => Some(u64::from((member.bit_offset() % 8 + width).div_ceil(8))),
            None => self.size(own),
        }
    }

    /// The type that a member, a variable or an array has, without its qualifiers.
    fn next(&self, of: &dyn BtfType) -> Option<Type> {
        self.stripped(self.btf.resolve_type_by_id(of.get_type_id()?).ok()?)
    }

    fn stripped(&self, mut kind: Type) -> Option<Type> {
        for _ in 0..MAX_DEPTH {
            let id = match &kind {
                Type::Typedef(it) => it.get_type_id(),
                Type::Const(it) | Type::Volatile(it) | Type::Restrict(it) => it.get_type_id(),
                Type::TypeTag(it) => it.get_type_id(),
                Type::Var(it) => it.get_type_id(),
                _ => return Some(kind),
            };
            kind = self.btf.resolve_type_by_id(id?).ok()?;
        }
        None
    }

    fn size(&self, kind: &Type) -> Option<u64> {
        self.size_within(kind, MAX_DEPTH)
    }

    fn size_within(&self, kind: &Type, depth: u32) -> Option<u64> {
        Some(match kind {
            Type::Int(it) => it.size() as u64,
            Type::Ptr(_) => 8,
            Type::Struct(it) | Type::Union(it) => it.size() as u64,
            Type::Enum(it) => it.size() as u64,
            Type::Enum64(it) => it.size() as u64,
            Type::Float(it) => it.size() as u64,
            Type::Array(it) => {
                let element = self.size_within(&self.next(it)?, depth.checked_sub(1)?)?;
                element.checked_mul(it.len() as u64)?
            }
            _ => return None,
        })
    }

    fn structure(&self, name: &str) -> Option<Type> {
        let types = self.btf.resolve_types_by_name(name).ok()?;
        types.into_iter().find(|it| matches!(it, Type::Struct(_)))
    }

    fn offset(&self, of: &str, member: &str) -> Option<u64> {
        let Type::Struct(structure) = self.structure(of)? else { return None };
        bit_offset(&self.btf, &structure, member, MAX_DEPTH).map(|at| u64::from(at / 8))
    }

    /// The value of a constant of an enumeration.
    fn constant(&self, of: &str, name: &str) -> Option<u64> {
        let types = self.btf.resolve_types_by_name(of).ok()?;
        let members = types.iter().filter_map(|it| match it {
            Type::Enum(it) => Some(&it.members),
            _ => None,
        });
        let is_named =
            |it: &&btf_rs::EnumMember| self.btf.resolve_name(*it).is_ok_and(|it| it == name);
        members.flatten().find(is_named).map(|it| it.val().into())
    }
}

/// The name of the type of a slab cache's objects, if they have one.
pub fn of_cache(cache: &str) -> &str {
    CACHES.iter().find(|(name, _)| *name == cache).map_or(cache, |(_, of)| of)
}

/// Whether it is a structure of one field, which is a type of its own, such as a counter.
fn is_one(kind: &Type) -> bool {
    matches!(kind, Type::Struct(it) if it.members.len() == 1)
}

/// The per-CPU variables by their offset in their section, and its size.
fn per_cpu(btf: &Btf) -> Option<(Variables, u64)> {
    let sections = btf.resolve_types_by_name(PER_CPU).ok()?;
    let section = sections.into_iter().find_map(|it| match it {
        Type::Datasec(section) => Some(section),
        _ => None,
    })?;
    let variables = section.variables.iter().filter_map(|variable| {
        let id = variable.get_type_id()?;
        let Type::Var(own) = btf.resolve_type_by_id(id).ok()? else { return None };
        Some((variable.offset().into(), (btf.resolve_name(&own).ok()?, id)))
    });
    let variables: Variables = variables.collect();
    // Some compilers leave the section's own size out.
    let last = section.variables.iter().map(|it| u64::from(it.offset()) + it.size() as u64).max();
    Some((variables, last.unwrap_or(0).max(section.size() as u64)))
}

#[cfg(test)]
mod tests;
