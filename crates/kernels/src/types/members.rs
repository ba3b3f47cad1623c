//! Where the fields of a type lie.

use btf_rs::Type;

use super::{MAX_DEPTH, Types, is_one};

/// The most members of a type with those of nested types. The largest types of a kernel have some hundreds.
const MOST_MEMBERS: usize = 1 << 14;
/// The words before the name of a per-CPU variable.
pub const PER_CPU_WORDS: &str = "per-CPU ";

/// Where the fields of a type lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// The size of the type in bytes.
    pub size: u64,
    /// Where it begins among the per-CPU variables, in bytes; 0 for other types.
    pub begins: u64,
    /// The members in order of their offsets, with those of nested types in their place. Each has the name that
    /// [`Types::field`] gives to its bytes, but one member stands for all elements of an array. The members of a union
    /// overlap.
    pub members: Vec<Member>,
}

/// A field of a type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Its name within the type, such as `mmap_lock.count`.
    pub name: String,
    /// Its first byte.
    pub offset: u64,
    /// Its size in bytes; of a bit field, the bytes that have its bits.
    pub size: u64,
    /// Of a bit field, its first bit in its first byte, and the number of bits.
    pub bits: Option<(u32, u32)>,
}

impl Types {
    /// The fields of a structure, or of a per-CPU variable with [`PER_CPU_WORDS`] before its name. `None` for an unknown
    /// name and for another type.
    pub fn members(&self, of: &str) -> Option<Members> {
        let (kind, begins) = match of.strip_prefix(PER_CPU_WORDS) {
            None => (self.structure(of)?, 0),
            Some(variable) => {
                let (begins, (_, id)) = self.per_cpu.iter().find(|(_, own)| own.0 == variable)?;
                (self.stripped(self.btf.resolve_type_by_id(*id).ok()?)?, *begins)
            }
        };
        let size = self.size(&kind)?;
        let mut members = Vec::new();
        self.add_members(&kind, 0, ("", MAX_DEPTH), &mut members)?;
        members.sort_by_key(|it| it.offset);
        Some(Members { size, begins, members })
    }

    /// Adds the members of a structure or union that begins at this bit. `None` if a type cannot be read, or there are
    /// too many members.
    fn add_members(
        &self,
        of: &Type,
        begins: u64,
        (path, depth): (&str, u32),
        members: &mut Vec<Member>,
    ) -> Option<()> {
        let (Type::Struct(of) | Type::Union(of)) = of else { return None };
        for member in &of.members {
            let own = self.next(member)?;
            let name = self.btf.resolve_name(member).unwrap_or_default();
            let bit = begins + u64::from(member.bit_offset());
            let dot = if path.is_empty() || name.is_empty() { "" } else { "." };
            let path = format!("{path}{dot}{name}");
            // The members of a structure of one field have the name of the structure, like those that have no name.
            let is_nested = match &own {
                Type::Struct(it) | Type::Union(it) if !it.members.is_empty() => {
                    name.is_empty() || !is_one(&own)
                }
                _ => false,
            };
            if let Some(depth) = depth.checked_sub(1).filter(|_| is_nested) {
                self.add_members(&own, bit, (&path, depth), members)?;
                continue;
            }
            let width = member.bitfield_size().filter(|width| *width > 0);
            let elements = if matches!(own, Type::Array(_)) { "[]" } else { "" };
            members.push(Member {
                name: format!("{path}{elements}"),
                offset: bit / 8,
                size: self.bytes(member, &own)?,
                bits: width.map(|width| ((bit % 8) as u32, width)),
            });
            if members.len() > MOST_MEMBERS {
                return None;
            }
        }
        Some(())
    }
}
