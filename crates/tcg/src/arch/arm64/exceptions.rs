//! Reads entries to the kernel by exceptions, and finds the interrupted code.
//!
//! A table has 16 vectors of 128 bytes each, which are code (Arm ARM, D1.3.1.5 "Exception vectors"). Four of each kind:
//! synchronous exceptions, IRQs, FIQs and system errors. The CPU stores the interrupted address in a register, and
//! nothing on the stack.

use flight::profile::Privilege;

use super::registers::{
    RETURN_ADDRESS, RETURN_STATE, STACK_POINTER, SYNDROME, UPPER_HALF, is_user,
};
use crate::machine::Machine;
use crate::observer::{Flow, Interrupted};

const VECTOR: u64 = 0x80;
const VECTORS: u64 = 16;
/// The number of kinds of exceptions. A vector's number is its kind, plus this for each step of where it came from.
const KINDS: u8 = 4;
/// The first vector of exceptions in programs.
const FIRST_USER: u8 = 8;

/// The vector whose code in the table at `table` begins at `address`.
pub fn vector(table: u64, address: u64) -> Option<u8> {
    let offset = address.wrapping_sub(table);
    let is_vector = offset.is_multiple_of(VECTOR) && offset / VECTOR < VECTORS;
    is_vector.then_some((offset / VECTOR) as u8)
}

/// Whether the interrupted instruction is the reason of the exception.
pub fn is_synchronous(vector: u8) -> bool {
    vector.is_multiple_of(KINDS)
}

/// What an exception interrupted, at the first instruction of its vector. No address is on the stack, so its place is
/// the stack pointer, which is as it was in an interrupted kernel.
pub fn interrupted(vector: u8, machine: &impl Machine) -> Option<Interrupted> {
    let address = machine.register(RETURN_ADDRESS)?;
    let is_synchronous = is_synchronous(vector);
    Some(Interrupted {
        address,
        privilege: match vector {
            FIRST_USER.. => Privilege::User,
            _ if address < UPPER_HALF => Privilege::Firmware,
            _ => Privilege::Kernel,
        },
        slot: machine.register(STACK_POINTER)?,
        faulted: is_synchronous && machine.register(SYNDROME).is_some_and(is_begun),
        external: !is_synchronous,
    })
}

/// Whether the instruction had begun, and is executed again after the exception (Arm ARM, D24.2.40 "ESR_EL1"). One that
/// could not be fetched had not begun. System calls were executed, and what the kernel emulates counts as well.
fn is_begun(syndrome: u64) -> bool {
    const FLOATING_POINT: u64 = 0x07;
    const VECTORS: u64 = 0x19;
    const MATRICES: u64 = 0x1d;
    const DATA_ABORT_OF_PROGRAM: u64 = 0x24;
    const DATA_ABORT: u64 = 0x25;
    let class = syndrome >> 26 & 0x3f;
    matches!(class, FLOATING_POINT | VECTORS | MATRICES | DATA_ABORT_OF_PROGRAM | DATA_ABORT)
}

/// What a return from an exception does, which is about to be executed.
#[inline(always)]
pub fn returns(machine: &impl Machine) -> Option<Flow<'static>> {
    if is_user(machine.register(RETURN_STATE)?) {
        return Some(Flow::Boundary);
    }
    let returns_to = machine.register(RETURN_ADDRESS);
    machine.register(STACK_POINTER).map(|slot| Flow::InterruptReturn { slot, returns_to })
}

#[cfg(test)]
mod tests {
    use super::super::registers::REGISTERS;
    use super::*;
    use crate::machine::fake::Fake;

    const TABLE: u64 = 0xffff_8000_8001_0800;
    const CODE: u64 = 0xffff_8000_8002_0000;

    /// A machine at a vector.
    fn machine(address: u64, class: u64) -> Fake {
        let mut machine = Fake::new(&REGISTERS);
        machine.set("sp", 0xffff_8000_8100_3f00);
        machine.set("ELR_EL1", address);
        machine.set("ESR_EL1", class << 26 | 7);
        machine
    }

    #[test]
    fn vectors_are_at_fixed_offsets() {
        assert_eq!(vector(TABLE, TABLE + 0x200), Some(4));
        assert_eq!(vector(TABLE, TABLE + 0x480), Some(9));
        assert_eq!(vector(TABLE, TABLE + 0x404), None);
        assert_eq!(vector(TABLE, TABLE + 0x800), None);
        assert_eq!(vector(TABLE, TABLE - 0x80), None);
    }

    #[test]
    fn only_an_instruction_that_had_begun_is_taken_back() {
        let faulted = |vector, class| interrupted(vector, &machine(0x40_0000, class)).unwrap();
        let abort = faulted(8, 0x24);
        let expected = Interrupted {
            address: 0x40_0000,
            privilege: Privilege::User,
            slot: 0xffff_8000_8100_3f00,
            faulted: true,
            external: false,
        };
        assert_eq!(abort, expected);
        assert!(faulted(4, 0x25).faulted && faulted(8, 0x07).faulted);
        // A fetch, a system call, and a breakpoint.
        assert!([0x20, 0x15, 0x3c].iter().all(|class| !faulted(8, *class).faulted));
        // The register still has the reason of the last synchronous exception.
        assert!(!faulted(9, 0x24).faulted);
    }

    #[test]
    fn interrupts_are_external() {
        let interrupt = |vector, address| interrupted(vector, &machine(address, 0)).unwrap();
        let kernel = interrupt(5, CODE);
        assert_eq!((kernel.external, kernel.privilege), (true, Privilege::Kernel));
        assert!(interrupt(6, CODE).external && interrupt(9, 0).external);
        assert!(!interrupt(4, CODE).external);
        assert_eq!(interrupt(4, 0x4021_0000).privilege, Privilege::Firmware);
        assert_eq!(interrupted(4, &Fake::new(&REGISTERS)), None);
    }

    #[test]
    fn a_return_is_one_to_a_program_or_to_the_kernel() {
        let mut machine = machine(CODE, 0x15);
        machine.set("SPSR_EL1", 0x6000_0000);
        assert!(matches!(returns(&machine), Some(Flow::Boundary)));
        machine.set("SPSR_EL1", 0x6040_0005);
        let Some(Flow::InterruptReturn { slot, returns_to }) = returns(&machine) else { panic!() };
        assert_eq!((slot, returns_to), (0xffff_8000_8100_3f00, Some(CODE)));
    }
}
