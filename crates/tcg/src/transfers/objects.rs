//! What lies at an address of the kernel's memory. The kernel's own descriptors of pages tell it, when a line is
//! transferred: the slab cache of an object.

use std::collections::HashMap;

use flight::profile::{MAX_CACHES, Object};

use crate::arch::{Architecture, Region};
use crate::arguments::{Layout, PerCpu, SlabMark};
use crate::machine::Machine;
use crate::transfers::PAGE;
use crate::transfers::sites::Sites;

/// The longest name of a slab cache. Longer ones are cut.
const LONGEST_NAME: u64 = 48;
/// How the names of the slab caches of `kmalloc` begin (`mm/slab_common.c`, `create_kmalloc_caches`).
const GENERAL: &str = "kmalloc-";

/// A slab cache.
#[derive(Clone, Copy)]
struct Cache {
    /// Its number in the profile.
    number: u32,
    /// The distance from one object to the next, in bytes.
    size: u64,
    /// Whether its objects have no type: it is one of `kmalloc`.
    is_general: bool,
}

/// A CPU's copies of the per-CPU variables.
#[derive(Clone, Copy, Default)]
struct Copies {
    /// The base address, by which the kernel finds the copies; 0 if it is not known.
    base: u64,
    /// The address of the first copy; `None` if it is not known.
    first: Option<u64>,
}

/// The most bytes of per-CPU variables of a CPU.
const MOST_PER_CPU: u64 = 1 << 20;
/// The bytes behind the variables that the kernel has for those of modules and for those that it allocates
/// (`PERCPU_MODULE_RESERVE` and `PERCPU_DYNAMIC_RESERVE` in `include/linux/percpu.h`).
const ALLOCATED: u64 = 36 << 10;

/// Reads the kernel's descriptors.
pub struct Objects {
    layout: Option<Layout>,
    per_cpu: Option<PerCpu>,
    /// Where the per-CPU variables of each CPU begin, if that is known, and their base address.
    copies: Vec<Copies>,
    /// The slab caches by the address of their descriptor.
    caches: HashMap<u64, Cache>,
    /// Those that are not written yet.
    new: Vec<String>,
    /// Who allocated the objects of `kmalloc`.
    pub sites: Sites,
}

impl Objects {
    /// Reads descriptors of this layout, in a machine with this number of CPUs.
    pub fn new(layout: Option<Layout>, per_cpu: Option<PerCpu>, cpus: u16) -> Self {
        let (caches, new, sites) = Default::default();
        let copies = vec![Copies::default(); cpus.into()];
        Self { layout, per_cpu, copies, caches, new, sites }
    }

    /// What lies at a virtual address, which has this physical address.
    pub fn find<A: Architecture>(
        &mut self,
        machine: &impl Machine,
        address: u64,
        physical: u64,
    ) -> Object {
        match A::region(address) {
            Region::User => Object::User,
            Region::Mapped => self.allocated_per_cpu(address).unwrap_or(Object::Mapped),
            Region::Image => Object::Image(address),
            Region::Unknown => Object::Unknown,
            Region::Pages(first) => self.layout.map_or(Object::Unknown, |layout| {
                Object::Page(((address - first) % layout.page) as u32)
            }),
            Region::Memory { pages } => {
                let object = self.in_memory::<A>(machine, pages, (address, physical));
                if let Some(known @ (Object::Slab(..) | Object::Allocated { .. })) = object {
                    return known;
                }
                let variable = self.per_cpu_variable::<A>(machine, address);
                let own = match variable {
                    Some(Object::PerCpu(place)) if self.is_variable(place) => variable,
                    _ => self.allocated_per_cpu(address).or(variable),
                };
                own.or(object).unwrap_or(Object::Unknown)
            }
        }
    }

    /// Whether a variable can be at this place among the per-CPU variables, and not what was allocated behind them.
    fn is_variable(&self, place: u64) -> bool {
        self.per_cpu.is_some_and(|per_cpu| place < per_cpu.size)
    }

    /// The per-CPU memory that was allocated and of which a CPU's copy is at this address.
    fn allocated_per_cpu(&self, address: u64) -> Option<Object> {
        let bases = self.copies.iter().map(|copies| copies.base).filter(|base| *base != 0);
        let mut pointers = bases.map(|base| address.wrapping_sub(base));
        let (site, offset) = pointers.find_map(|pointer| self.sites.find_per_cpu(pointer))?;
        Some(Object::AllocatedPerCpu(site, offset as u32))
    }

    /// What lies at a virtual and physical address, according to the descriptor of its page. Descriptors begin at `pages`.
    /// `None` if they cannot be read.
    fn in_memory<A: Architecture>(
        &mut self,
        machine: &impl Machine,
        pages: u64,
        (address, physical): (u64, u64),
    ) -> Option<Object> {
        let layout = self.layout?;
        let own = pages + physical / PAGE * layout.page;
        let head = match word(machine, own + layout.head)? {
            // The lowest bit tells pages that follow the first one of a larger block. The rest is the descriptor of that
            // one, or a mask for the own address (`compound_info`).
            follows if follows & 1 != 0 => match A::region(follows - 1) {
                Region::Pages(_) => follows - 1,
                _ => own & follows,
            },
            _ => own,
        };
        let is_slab = match layout.slab {
            SlabMark::Type(slab) => machine.read::<4>(head.wrapping_add(layout.kind))?[3] == slab,
            SlabMark::Flag(bit) => word(machine, head)? >> bit & 1 != 0,
        };
        if !is_slab {
            return Some(Object::Other);
        }
        let cache = word(machine, head.wrapping_add(layout.cache))?;
        let Cache { number, size, is_general } = self.cache(machine, cache)?;
        let first = head.checked_sub(pages)? / layout.page * PAGE;
        let offset = physical.checked_sub(first)? % size;
        let site = if is_general { self.sites.find(address - offset) } else { None };
        Some(match site {
            Some((site, size)) => Object::Allocated { site, size, offset: offset as u32 },
            None => Object::Slab(number, offset as u32),
        })
    }

    /// The slab cache with the descriptor at this address.
    fn cache(&mut self, machine: &impl Machine, address: u64) -> Option<Cache> {
        if let Some(known) = self.caches.get(&address) {
            return Some(*known);
        }
        let layout = self.layout?;
        let size = u32::from_le_bytes(machine.read(address.wrapping_add(layout.size))?);
        let name = word(machine, address.wrapping_add(layout.name))?;
        let bytes = (0..LONGEST_NAME).map_while(|at| {
            let [byte] = machine.read::<1>(name.wrapping_add(at))?;
            (byte != 0).then_some(byte)
        });
        let name = String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned();
        let number = self.caches.len();
        if size == 0 || number == MAX_CACHES {
            return None;
        }
        let is_general = name.starts_with(GENERAL);
        let cache = Cache { number: number as u32, size: size.into(), is_general };
        self.caches.insert(address, cache);
        self.new.push(format!("{name} {size}"));
        Some(cache)
    }

    /// The per-CPU variable that has a CPU's copy at this address.
    fn per_cpu_variable<A: Architecture>(
        &mut self,
        machine: &impl Machine,
        address: u64,
    ) -> Option<Object> {
        let per_cpu = self.per_cpu?;
        if let Some(base) = A::per_cpu_base(machine) {
            let own = self.copies.get_mut(machine.cpu())?;
            if own.base != base {
                *own = Copies { base, first: None };
            }
        }
        let places = self.copies.iter().filter_map(|copies| address.checked_sub(copies.first?));
        let known = places.min().filter(|place| *place < per_cpu.size + ALLOCATED);
        known.or_else(|| self.find_copies(machine, per_cpu, address)).map(Object::PerCpu)
    }

    /// Finds the copies among which this address is, by the copy of the variable that has their base address. Returns the
    /// place of the address among the copies.
    fn find_copies(
        &mut self,
        machine: &impl Machine,
        per_cpu: PerCpu,
        address: u64,
    ) -> Option<u64> {
        let is_wanted = |copies: &&mut Copies| copies.base != 0 && copies.first.is_none();
        // Most often all are known.
        self.copies.iter_mut().find(is_wanted)?;
        // They begin at a page.
        let most = per_cpu.size.min(MOST_PER_CPU) + ALLOCATED;
        let pages = (0..most.div_ceil(PAGE)).map(|it| it * PAGE);
        for first in pages.map_while(|before| (address / PAGE * PAGE).checked_sub(before)) {
            let Some(base) = word(machine, first + per_cpu.base) else { continue };
            let mut wanted = self.copies.iter_mut().filter(is_wanted);
            if let Some(own) = wanted.find(|copies| copies.base == base) {
                own.first = Some(first);
                return Some(address - first).filter(|place| *place < per_cpu.size + ALLOCATED);
            }
        }
        None
    }

    /// Returns the slab caches that were found since the last call.
    pub fn take_caches(&mut self) -> Vec<String> {
        std::mem::take(&mut self.new)
    }
}

fn word(machine: &impl Machine, address: u64) -> Option<u64> {
    machine.read(address).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::X86_64;
    use crate::machine::fake::Fake;
    use crate::transfers::sites::Returns;

    /// The kernel's map of all memory, and the descriptors of its pages, on a machine with five levels of page tables.
    const MEMORY: u64 = 0xff11_0000_0000_0000;
    const PAGES: u64 = 0xffd4_0000_0000_0000;
    const CACHE: u64 = MEMORY + 0x8000;
    /// The base address of a CPU's variables, which begin elsewhere.
    const BASE: u64 = 0x1000_0000;

    fn objects(slab: SlabMark) -> (Objects, Fake) {
        let layout = Layout { page: 64, head: 8, kind: 48, slab, cache: 8, size: 24, name: 96 };
        let per_cpu = PerCpu { base: 0x1010, size: 0x2000 };
        let mut machine = Fake::new(X86_64::REGISTERS);
        // Pages 4 and 5 are one slab, page 6 is of another type.
        let page = |number: u64| PAGES + number * 64;
        let words = [
            (page(4) + 8, CACHE),
            (page(4) + 48, 0xf500_0000),
            (page(4), 1 << 9),
            (page(5) + 8, page(4) + 1),
            // Pages 8 and 9 too, by a mask.
            (page(8) + 8, CACHE),
            (page(8) + 48, 0xf500_0000),
            (page(8), 1 << 9),
            (page(9) + 8, !127 | 1),
            (page(9) + 48, 0),
            (page(5) + 48, 0),
            (page(6) + 8, 0),
            (page(6) + 48, 0xf200_0000),
            (page(6), 0),
            (CACHE + 24, 192),
            (CACHE + 96, CACHE + 0x100),
            (MEMORY + 0x10_1010, BASE),
        ];
        for (address, word) in words {
            machine.write(address, &u64::to_le_bytes(word));
        }
        machine.write(CACHE + 0x100, b"mm_struct\0");
        (Objects::new(Some(layout), Some(per_cpu), 2), machine)
    }

    #[test]
    fn memory_is_named_by_the_descriptors_of_its_pages() {
        for slab in [SlabMark::Type(0xf5), SlabMark::Flag(9)] {
            let (mut objects, machine) = objects(slab);
            let mut find =
                |physical: u64| objects.find::<X86_64>(&machine, MEMORY + physical, physical);
            assert_eq!(find(0x4000 + 192 + 13), Object::Slab(0, 13));
            // An object that begins on the first page of the slab and ends on the second.
            assert_eq!(find(0x5000), Object::Slab(0, (0x1000 % 192) as u32));
            assert_eq!(find(0x9000), find(0x5000));
            assert_eq!(find(0x6000), Object::Other);
            assert_eq!(find(0x7000), Object::Unknown);
            assert_eq!(objects.take_caches(), ["mm_struct 192"]);
        }
    }

    #[test]
    fn other_regions_are_named_by_their_address() {
        let (mut objects, machine) = objects(SlabMark::Type(0xf5));
        let mut find = |address: u64| objects.find::<X86_64>(&machine, address, 0x7000);
        assert_eq!(find(0x1000), Object::User);
        assert_eq!(find(PAGES + 64 * 9 + 0x34), Object::Page(0x34));
        assert_eq!(find(0xffff_ffff_8234_567f), Object::Image(0xffff_ffff_8234_567f));
        assert_eq!(find(0xffa0_0000_0001_2345), Object::Mapped);
        assert_eq!(find(MEMORY + 0x20_0000), Object::Unknown);
    }

    #[test]
    fn per_cpu_variables_are_found_by_their_base() {
        let (mut objects, mut machine) = objects(SlabMark::Type(0xf5));
        let find = |objects: &mut Objects, machine: &Fake, at: u64| {
            objects.find::<X86_64>(machine, MEMORY + at, 0x7000)
        };
        assert_eq!(find(&mut objects, &machine, 0x10_0123), Object::Unknown);
        // Programs have another base, and the kernel's is kept in the other register.
        machine.set("gs_base", 0x1234);
        machine.set("k_gs_base", BASE | 1 << 63);
        machine.write(MEMORY + 0x10_1010, &(BASE | 1 << 63).to_le_bytes());
        assert_eq!(find(&mut objects, &machine, 0x10_1fff), Object::PerCpu(0x1fff));
        // Another CPU accesses them too.
        machine.cpu = 1;
        machine.set("gs_base", 1 << 63);
        assert_eq!(find(&mut objects, &machine, 0x10_0008), Object::PerCpu(8));
        // What is allocated follows them.
        assert_eq!(
            find(&mut objects, &machine, 0x10_2000 + 0x8fff),
            Object::PerCpu(0x2000 + 0x8fff)
        );
        assert_eq!(find(&mut objects, &machine, 0x10_2000 + 0x9000), Object::Unknown);
    }

    #[test]
    fn memory_without_a_type_is_named_by_who_allocated_it() {
        let (mut objects, mut machine) = objects(SlabMark::Type(0xf5));
        machine.write(CACHE + 0x100, b"kmalloc-192\0");
        let slot = 0xffa0_0000_0001_0000;
        let allocate = |objects: &mut Objects, what, value| {
            objects.sites.begins(slot, 77, what);
            objects.sites.returns(slot, || Some(value));
        };
        allocate(&mut objects, Returns::Object(100), MEMORY + 0x4000 + 192);
        let find = |objects: &mut Objects, machine: &Fake, physical: u64| {
            objects.find::<X86_64>(machine, MEMORY + physical, physical)
        };
        let allocated = Object::Allocated { site: 77, size: 100, offset: 8 };
        assert_eq!(find(&mut objects, &machine, 0x4000 + 200), allocated);
        assert_eq!(find(&mut objects, &machine, 0x4000), Object::Slab(0, 0));
        // Per-CPU memory in the area behind the variables, and in another one that was added.
        let base = BASE | 1 << 63;
        machine.set("gs_base", base);
        machine.write(MEMORY + 0x10_1010, &base.to_le_bytes());
        let behind = MEMORY + 0x10_2000;
        assert_eq!(objects.find::<X86_64>(&machine, behind, 0x7000), Object::PerCpu(0x2000));
        allocate(&mut objects, Returns::PerCpu(16), behind.wrapping_sub(base));
        let found = objects.find::<X86_64>(&machine, behind + 12, 0x7000);
        assert_eq!(found, Object::AllocatedPerCpu(77, 12));
        let added = 0xffa0_0000_0008_0000_u64;
        allocate(&mut objects, Returns::PerCpu(16), added.wrapping_sub(base));
        let mut mapped = |address| objects.find::<X86_64>(&machine, address, 0x7000);
        assert_eq!(mapped(added), Object::AllocatedPerCpu(77, 0));
        assert_eq!(mapped(added + 16), Object::Mapped);
    }

    #[test]
    fn an_unknown_layout_names_no_object() {
        let (_, machine) = objects(SlabMark::Type(0xf5));
        let mut objects = Objects::new(None, None, 2);
        assert_eq!(objects.find::<X86_64>(&machine, MEMORY + 0x4000, 0x4000), Object::Unknown);
        assert_eq!(objects.find::<X86_64>(&machine, PAGES, 0x4000), Object::Unknown);
    }
}
