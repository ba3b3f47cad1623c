//! Page tables (Intel's manual, volume 3, chapter 5). They are read in the kernel's map of all memory.

use super::registers::{CR3, CR4};
use crate::arch::architecture::{Page, Walk};
use crate::machine::Machine;

/// The kernel's map of all memory, with four and with five levels (`Documentation/arch/x86/x86_64/mm.rst`).
const FOUR: u64 = 0xffff_8880_0000_0000;
const FIVE: u64 = 0xff11_0000_0000_0000;
/// The bit of CR4 for five levels.
const LA57: u64 = 1 << 12;
/// The bits of an entry.
const PRESENT: u64 = 1;
const LEAF: u64 = 1 << 7;
const GLOBAL: u64 = 1 << 8;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// Walks the page tables for a virtual address.
pub fn walk(address: u64, machine: &impl Machine) -> Option<Walk> {
    let (levels, memory) = match machine.register(CR4)? & LA57 {
        0 => (4, FOUR),
        _ => (5, FIVE),
    };
    let mut table = machine.register(CR3)? & ADDRESS;
    let mut loads = Vec::with_capacity(levels);
    for level in (0..levels as u32).rev() {
        let index = address >> (12 + 9 * level) & 0x1ff;
        let place = table + index * 8;
        let entry = u64::from_le_bytes(machine.read(memory + place)?);
        loads.push(place);
        if entry & PRESENT == 0 {
            return None;
        }
        if level == 0 || level <= 2 && entry & LEAF != 0 {
            return Some(Walk { loads, page: Page { size: level, global: entry & GLOBAL != 0 } });
        }
        table = entry & ADDRESS;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::{Architecture, X86_64};
    use crate::machine::fake::Fake;

    fn machine(five: bool, entries: &[(u64, u64)]) -> Fake {
        let mut machine = Fake::new(X86_64::REGISTERS);
        machine.set("cr3", 0x1018);
        machine.set("cr4", if five { LA57 } else { 0 });
        for (place, entry) in entries {
            let memory = if five { FIVE } else { FOUR };
            machine.write(memory + place, &entry.to_le_bytes());
        }
        machine
    }

    #[test]
    fn each_level_is_loaded_down_to_the_page() {
        // Entry 1 of each table, from the top.
        let address = 1 << 48 | 1 << 39 | 1 << 30 | 1 << 21 | 1 << 12 | 0x123;
        let tables = [(0x1008, 0x2001), (0x2008, 0x3001), (0x3008, 0x4001), (0x4008, 0x5001)];
        let page = (0x5008, 0x9000 | GLOBAL | PRESENT);
        let places = |number: usize| [0x1008, 0x2008, 0x3008, 0x4008, 0x5008][..number].to_vec();
        let five = machine(true, &[&tables[..], &[page]].concat());
        let of = |size, global, loads| Some(Walk { loads, page: Page { size, global } });
        assert_eq!(walk(address, &five), of(0, true, places(5)));
        // A page of 2 MiB, and one of 1 GiB.
        let large = |level: usize| {
            let (place, entry) = tables[level];
            machine(true, &[&tables[..level], &[(place, entry | LEAF)]].concat())
        };
        assert_eq!(walk(address, &large(3)), of(1, false, places(4)));
        assert_eq!(walk(address, &large(2)), of(2, false, places(3)));
        // The bit means something else above.
        assert_eq!(walk(address, &large(1)), None);
        let four = machine(false, &[&tables[..3], &[(0x4008, 0x9001)]].concat());
        assert_eq!(walk(address, &four), of(0, false, places(4)));
    }

    #[test]
    fn what_is_not_mapped_or_cannot_be_read_is_not_known() {
        assert_eq!(walk(0, &machine(true, &[(0x1000, 0)])), None);
        assert_eq!(walk(0, &machine(true, &[])), None);
        assert_eq!(walk(0, &Fake::new(X86_64::REGISTERS)), None);
    }
}
