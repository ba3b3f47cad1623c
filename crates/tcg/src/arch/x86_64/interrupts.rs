//! Reads interrupt and exception entries to the kernel, and finds the interrupted code.
//!
//! The gates of the interrupt table point to the handlers. At a handler's first instruction the CPU has
//! pushed the interrupted instruction's code segment and address and then, for some exceptions, an error code
//! (Intel SDM, volume 3A, "64-bit mode stack frame").
//!
//! An instruction with a page fault has begun, but was not executed.

use flight::profile::Privilege;

use super::registers::{LEVEL, STACK_POINTER, UPPER_HALF};
use crate::machine::Machine;
use crate::observer::Interrupted;

/// The size of a table: 256 gates of 16 bytes in 64-bit mode.
const TABLE: usize = 256 * GATE;
/// The part of the stack frame that is read, in bytes.
const FRAME: usize = 24;
/// The vector of page faults.
const PAGE_FAULT: u8 = 14;

const GATE: usize = 16;
/// Error code bit of a page fault: the instruction itself could not be fetched, so it never began.
const FETCH: u64 = 1 << 4;
/// The vector of non-maskable interrupts.
const NMI: u8 = 2;
/// The first vector after the exceptions.
const FIRST_EXTERNAL: u8 = 32;
/// The vector whose gate in the table at `table` leads to the handler at `address`.
pub fn vector(table: u64, address: u64, machine: &impl Machine) -> Option<u8> {
    let table: [u8; TABLE] = machine.read(table)?;
    let (gates, _) = table.as_chunks::<GATE>();
    let vector = gates.iter().position(|gate| handler(gate) == address)?;
    u8::try_from(vector).ok()
}

/// The address in a gate (Intel SDM, volume 3A, "64-bit IDT gate descriptors").
fn handler(gate: &[u8; GATE]) -> u64 {
    let part = |at: usize| u64::from(u16::from_le_bytes([gate[at], gate[at + 1]]));
    part(0) | part(6) << 16 | part(8) << 32 | part(10) << 48
}

/// Whether the interrupted instruction of an interrupt with this vector may have begun without being executed.
pub fn is_fault(vector: u8) -> bool {
    vector == PAGE_FAULT
}

/// Reads the frame of an interrupt with this vector, at its handler's first instruction.
pub fn interrupted(vector: u8, machine: &impl Machine) -> Option<Interrupted> {
    let stack = machine.register(STACK_POINTER)?;
    let frame: [u8; FRAME] = machine.read(stack)?;
    let mut words = [0; FRAME / 8];
    for (word, bytes) in words.iter_mut().zip(frame.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    let at = usize::from(has_error_code(vector));
    let address = words[at];
    let privilege = match words[at + 1] & LEVEL == LEVEL {
        true => Privilege::User,
        false if address < UPPER_HALF => Privilege::Firmware,
        false => Privilege::Kernel,
    };
    Some(Interrupted {
        address,
        privilege,
        slot: stack.wrapping_add(8 * at as u64),
        faulted: is_fault(vector) && words[0] & FETCH == 0,
        external: vector >= FIRST_EXTERNAL || vector == NMI,
    })
}

/// Whether the CPU pushes an error code for an exception (Intel SDM, volume 3A, table 6-1, and AMD's manual, volume
/// 2, table 8-1).
fn has_error_code(vector: u8) -> bool {
    matches!(vector, 8 | 10..=14 | 17 | 21 | 29 | 30)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::x86_64::registers::REGISTERS;
    use crate::arch::{InterruptTables, X86_64};
    use crate::machine::fake::Fake;

    /// A machine with these words on its stack.
    fn frame(words: [u64; 3]) -> Fake {
        let mut machine = Fake::new(&REGISTERS);
        machine.set("rsp", 0x7000);
        machine.write(0x7000, words.map(u64::to_le_bytes).as_flattened());
        machine
    }

    #[test]
    fn handlers_are_found_in_any_table() {
        let mut tables = InterruptTables::default();
        tables.loaded(0x1000);
        tables.loaded(0x2000);
        let address = 0xffff_ffff_81a0_0b40_u64;
        let bytes = address.to_le_bytes();
        let mut table = [0x8e; TABLE];
        let gate = &mut table[14 * GATE..][..GATE];
        gate[0..2].copy_from_slice(&bytes[0..2]);
        gate[6..8].copy_from_slice(&bytes[2..4]);
        gate[8..12].copy_from_slice(&bytes[4..8]);
        let mut machine = Fake::new(&REGISTERS);
        machine.write(0x2000, &table);
        assert_eq!(tables.vector::<X86_64>(address, &machine), Some(PAGE_FAULT));
        assert_eq!(tables.vector::<X86_64>(address + 1, &machine), None);
        assert_eq!(InterruptTables::default().vector::<X86_64>(address, &machine), None);
    }

    #[test]
    fn an_instruction_that_could_not_be_fetched_had_not_begun() {
        let fault = |error, address, segment| {
            interrupted(PAGE_FAULT, &frame([error, address, segment])).unwrap()
        };
        let user = fault(6, 0x40_1000, 0x33);
        let expected = Interrupted {
            address: 0x40_1000,
            privilege: Privilege::User,
            slot: 0x7008,
            faulted: true,
            external: false,
        };
        assert_eq!(user, expected);
        assert!(!fault(0x14, 0x40_1000, 0x33).faulted);
        assert_eq!(fault(2, 0xffff_ffff_8100_0000, 0x10).privilege, Privilege::Kernel);
        assert_eq!(fault(2, 0x9f000, 0x8).privilege, Privilege::Firmware);
    }

    #[test]
    fn only_some_exceptions_have_an_error_code() {
        let interrupt = |vector| interrupted(vector, &frame([5, 0x10, 0x33])).unwrap();
        let timer = interrupt(0xec);
        assert_eq!((timer.address, timer.slot, timer.privilege), (5, 0x7000, Privilege::Firmware));
        assert!(timer.external && !timer.faulted);
        let protection = interrupt(13);
        assert_eq!((protection.address, protection.slot), (0x10, 0x7008));
        assert_eq!(protection.privilege, Privilege::User);
        assert!(!protection.external && !protection.faulted);
        assert!(interrupt(2).external);
        assert_eq!(interrupted(3, &Fake::new(&REGISTERS)), None);
    }
}
