//! Instructions, registers, exceptions and calls of arm64, in its 64-bit state.

mod classes;
mod exceptions;
mod instruction;
mod links;
mod registers;

use flight::profile::{self, Privilege};

use super::architecture::{Architecture, Examined};
use crate::machine::Machine;
use crate::observer::{Flow, Interrupted};

/// Machines whose kernel runs at exception level 1.
#[derive(Debug)]
pub struct Arm64;

impl Architecture for Arm64 {
    const TARGET: &str = "aarch64";
    const KIND: profile::Architecture = profile::Architecture::Arm64;
    const REGISTERS: &[&str] = &registers::REGISTERS;
    const STACK_POINTER: usize = registers::STACK_POINTER;
    const TICK_TIME: usize = registers::TICK_TIME;
    // It checks the permissions of the current exception level.
    const HIDES_KERNEL: bool = true;

    type Calls = links::Links;

    fn examine(bytes: &[u8]) -> Examined {
        instruction::examine(bytes)
    }

    fn privilege(address: u64, machine: &impl Machine) -> Privilege {
        registers::privilege(address, machine)
    }

    fn vector(table: u64, address: u64, _: &impl Machine) -> Option<u8> {
        exceptions::vector(table, address)
    }

    fn is_fault(vector: u8) -> bool {
        exceptions::is_synchronous(vector)
    }

    fn interrupted(vector: u8, machine: &impl Machine) -> Option<Interrupted> {
        exceptions::interrupted(vector, machine)
    }

    #[inline(always)]
    fn returns(machine: &impl Machine) -> Option<Flow<'static>> {
        exceptions::returns(machine)
    }

    #[inline(always)]
    fn links(site: u64, machine: &impl Machine) -> Option<Flow<'static>> {
        let slot = machine.register(Self::STACK_POINTER)?;
        Some(Flow::Call { site, slot, returns_to: site.wrapping_add(instruction::LENGTH) })
    }

    #[inline(always)]
    fn returns_to(register: usize, machine: &impl Machine) -> Option<Flow<'static>> {
        let returns_to = registers::unsigned(machine.register(register)?);
        let slot = machine.register(Self::STACK_POINTER)?;
        Some(Flow::Return { slot, returns_to })
    }

    fn next_task(value: u64, running: Option<u64>, machine: &impl Machine) -> Option<u64> {
        registers::next_task(value, running, machine)
    }
}
