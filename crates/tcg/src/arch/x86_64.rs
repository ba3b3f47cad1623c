//! Instructions, registers, interrupts and stacks of x86-64.

mod instruction;
mod interrupts;
mod registers;
mod stacks;
mod walk;

use flight::profile::{self, Privilege};

use super::architecture::{Architecture, Examined, Region, Walk};
use crate::machine::Machine;
use crate::observer::{Flow, Interrupted};

/// 64-bit PCs.
#[derive(Debug)]
pub struct X86_64;

impl Architecture for X86_64 {
    const TARGET: &str = "x86_64";
    const KIND: profile::Architecture = profile::Architecture::X86_64;
    const REGISTERS: &[&str] = &registers::REGISTERS;
    const STACK_POINTER: usize = registers::STACK_POINTER;
    const TICK_TIME: usize = registers::TICK_TIME;
    const HIDES_KERNEL: bool = false;

    type Calls = stacks::Stacks;

    fn examine(bytes: &[u8]) -> Examined {
        instruction::examine(bytes)
    }

    // Documentation/arch/x86/x86_64/mm.rst, with five levels of page tables and with four.
    fn region(address: u64) -> Region {
        const FIVE: u64 = 0xffd4_0000_0000_0000;
        const FOUR: u64 = 0xffff_ea00_0000_0000;
        match address {
            ..0x8000_0000_0000_0000 => Region::User,
            0xff11_0000_0000_0000..0xff91_0000_0000_0000 => Region::Memory { pages: FIVE },
            0xffa0_0000_0000_0000..0xffd2_0000_0000_0000 => Region::Mapped,
            FIVE..0xffd6_0000_0000_0000 => Region::Pages(FIVE),
            0xffff_8880_0000_0000..0xffff_c880_0000_0000 => Region::Memory { pages: FOUR },
            0xffff_c900_0000_0000..0xffff_e900_0000_0000 => Region::Mapped,
            FOUR..0xffff_eb00_0000_0000 => Region::Pages(FOUR),
            0xffff_ffff_8000_0000..0xffff_ffff_ff00_0000 => Region::Image,
            _ => Region::Unknown,
        }
    }

    fn walk(address: u64, machine: &impl Machine) -> Option<Walk> {
        walk::walk(address, machine)
    }

    fn per_cpu_base(machine: &impl Machine) -> Option<u64> {
        registers::per_cpu_base(machine)
    }

    fn argument(number: u8, machine: &impl Machine) -> Option<u64> {
        registers::argument(number, machine)
    }

    fn returned(machine: &impl Machine) -> Option<u64> {
        machine.register(registers::RAX)
    }

    fn privilege(address: u64, machine: &impl Machine) -> Privilege {
        registers::privilege(address, machine)
    }

    fn vector(table: u64, address: u64, machine: &impl Machine) -> Option<u8> {
        interrupts::vector(table, address, machine)
    }

    fn is_fault(vector: u8) -> bool {
        interrupts::is_fault(vector)
    }

    fn interrupted(vector: u8, machine: &impl Machine) -> Option<Interrupted> {
        interrupts::interrupted(vector, machine)
    }

    #[inline(always)]
    fn returns(machine: &impl Machine) -> Option<Flow<'static>> {
        let slot = machine.register(Self::STACK_POINTER)?;
        Some(Flow::InterruptReturn { slot, returns_to: None })
    }

    fn leaves_task(address: u64, load: &[u8], machine: &impl Machine) -> bool {
        instruction::leaves_task(address, load, machine)
    }

    fn switched_tasks(machine: &impl Machine) -> Option<(u64, u64)> {
        registers::switched_tasks(machine)
    }
}
