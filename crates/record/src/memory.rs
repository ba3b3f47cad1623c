//! Names what lies in the kernel's memory: fields of types, variables, and what else the plugin could tell.

use flight::profile::Object;
use kernelfiles::kallsyms::{Symbols, Variables};
use kernels::types::{MemoryLayout, PER_CPU_WORDS, Types};

/// What the host knows of a kernel's memory.
#[derive(Debug, Default)]
pub struct Memory {
    types: Option<Types>,
    variables: Variables,
}

/// The name of a slab cache of a profile, and the bytes from one object to the next.
pub fn cache_and_slot(cache: &str) -> Option<(&str, u32)> {
    // A name can have spaces.
    let (name, slot) = cache.rsplit_once(' ')?;
    Some((name, slot.parse().ok()?))
}

/// The name of memory that is not known.
const UNKNOWN: &str = "[unknown]";

impl Memory {
    /// What the kernel's image and its symbols, in the form of `/proc/kallsyms`, say. Lists from an image have functions
    /// alone.
    pub fn read(image: &[u8], symbols: &str) -> Self {
        Self { types: Types::read(image), variables: Variables::parse(symbols) }
    }

    /// How the kernel describes memory; `None` if that is not known.
    pub fn layout(&self) -> Option<MemoryLayout> {
        self.types.as_ref()?.memory()
    }

    /// The place of `this_cpu_off` among the per-CPU variables, and their size in bytes; `None` if that is not known.
    pub fn per_cpu(&self) -> Option<(u64, u64)> {
        self.types.as_ref()?.per_cpu()
    }

    /// The name of what the plugin found: a field, a variable, a place in an allocation, or words in brackets. `caches`
    /// are the slab caches, as in a profile, and `symbols` the kernel's functions.
    pub fn name(&self, object: Object, caches: &[String], symbols: &Symbols) -> String {
        let types = self.types.as_ref();
        match object {
            Object::Unknown => UNKNOWN.to_owned(),
            Object::User => "[program]".to_owned(),
            Object::Mapped => "[stack, vmalloc]".to_owned(),
            Object::Other => "[page]".to_owned(),
            Object::Page(offset) => {
                let field = types.and_then(|types| types.field("page", offset.into()));
                field.unwrap_or_else(|| "page".to_owned())
            }
            Object::Image(address) => match self.variables.find(address) {
                Some((symbol, _)) => symbol.name.clone(),
                None => "[kernel data]".to_owned(),
            },
            Object::PerCpu(place) => match types.and_then(|types| types.per_cpu_variable(place)) {
                Some(name) => format!("{PER_CPU_WORDS}{name}"),
                None => "[per-CPU, allocated]".to_owned(),
            },
            Object::Allocated { site, size, offset } => {
                let function = allocator(site, symbols);
                let field = types.and_then(|types| {
                    types.field(types.allocated(function, size.into())?, offset.into())
                });
                // The size is left out: kernels may need another one for the same.
                field.unwrap_or_else(|| allocated("kmalloc", offset, function))
            }
            Object::AllocatedPerCpu(site, offset) => {
                allocated("per-CPU", offset, allocator(site, symbols))
            }
            Object::Slab(cache, offset) => {
                let cache = caches.get(cache as usize).and_then(|it| cache_and_slot(it));
                let Some((cache, _)) = cache else { return UNKNOWN.to_owned() };
                let field = types.and_then(|types| types.field_of_cache(cache, offset.into()));
                field.unwrap_or_else(|| match types.is_some_and(|types| types.has_cache(cache)) {
                    true => format!("[{cache}, behind its fields]"),
                    false => format!("[{cache}+{:#x}]", offset / 8 * 8),
                })
            }
        }
    }
}

/// The function whose call that allocates memory returns to `site`.
fn allocator(site: u64, symbols: &Symbols) -> &str {
    // The last byte of the call. Nothing of its function may follow it.
    let function = symbols.find(site.wrapping_sub(1));
    function.map_or(UNKNOWN, |it| code::Symbol::of(&it.name).name)
}

/// The name of a place in what a function allocated.
fn allocated(what: &str, offset: u32, function: &str) -> String {
    format!("{what}+{:#x} from {function}", offset / 8 * 8)
}
